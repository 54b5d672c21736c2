# SPDX-License-Identifier: Apache-2.0
"""Layers on the page: shown with their names, switched off and on, and told where they are none."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("viser", reason="viser, which shows the page, is not installed")
import trimesh

from pkm_description import load_mechanism
from pkm_viewer.layers import layer_files
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


def test_a_layer_that_moves_is_shown_one_step_at_a_time(tmp_path: Path) -> None:
    scene = trimesh.Scene()
    scene.metadata.update(layer="vibrations", unit="1", frame="base_link", moving=3)
    for name in ("mode 1: 5 Hz", "mode 2: 7 Hz"):
        for step in range(3):
            scene.add_geometry(trimesh.creation.box(), geom_name=f"{name} #{step}", node_name=f"{name} #{step}")
    (tmp_path / "modes.glb").write_bytes(scene.export(file_type="glb"))
    viewer = RobotViewer(load_mechanism("five_bar"), port=8470)
    try:
        assert viewer.show_layers([tmp_path / "modes.glb"]) == []
        assert list(viewer.layers.switches) == ["vibrations: mode 1: 5 Hz", "vibrations: mode 2: 7 Hz"]
        first, second = viewer.layers.sheets.values()
        assert not any(step.visible for step in (*first.steps, *second.steps))
        first.switch(SimpleNamespace(target=SimpleNamespace(value=True)))
        seen = set()
        deadline = time.monotonic() + 20.0
        while len(seen) < 3 and time.monotonic() < deadline:
            seen |= {k for k, step in enumerate(first.steps) if step.visible}
        assert seen == {0, 1, 2}
        first.switch(SimpleNamespace(target=SimpleNamespace(value=False)))
        assert not any(step.visible for step in (*first.steps, *second.steps))
    finally:
        viewer.close()
