# SPDX-License-Identifier: Apache-2.0
"""Layers on the page: shown with their names, switched off and on, and told where they are none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("viser", reason="viser, which shows the page, is not installed")
import trimesh

from pkm_description import load_mechanism
from pkm_viewer.layer_files import layer_files
from pkm_viewer.viewer import RobotViewer


def test_layers_are_shown_and_switched(tmp_path: Path) -> None:
    scene = trimesh.Scene()
    scene.metadata.update(layer="height", unit="m", frame="base_link")
    scene.add_geometry(trimesh.creation.box(), geom_name="top", node_name="top")
    (tmp_path / "a.glb").write_bytes(scene.export(file_type="glb"))
    (tmp_path / "b.glb").write_text("nothing")
    files = layer_files(str(tmp_path))
    assert [one.name for one in files] == ["a.glb", "b.glb"]
    assert layer_files(f" {files[0]}, {files[1]} ") == files
    viewer = RobotViewer(load_mechanism("five_bar"), port=8470)
    try:
        problems = viewer.show_layers(files)
        assert len(problems) == 1
        assert problems[0].startswith("layer b.glb")
        (switch,) = viewer.layers.switches.values()
        assert list(viewer.layers.switches) == ["height: top [m]"]
        shown = viewer.layers.sheets["height: top [m]"]
        assert shown.visible
        switch.value = False
        viewer.layers.switch(shown, SimpleNamespace(target=switch))
        assert not shown.visible
    finally:
        viewer.close()
