# SPDX-License-Identifier: Apache-2.0
"""Layers around the robot: surfaces in GLB files that `pkm analyse` wrote, each with a switch."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import trimesh

from pkm_viewer.page_server import PageServer


class Layers:
    """Shows surfaces in the base frame, each with a check box.
    In the files, a scene's extras have the name (`layer`) and the `unit` of its quantity.
    """

    def __init__(self, server: PageServer, files: Iterable[Path]) -> None:
        self.left_out: list[str] = []
        self.switches: dict[str, Any] = {}
        self.sheets: dict[str, Any] = {}
        for number, path in enumerate(files):
            try:
                self._add(server, number, path)
            except Exception as error:  # readers of meshes raise what they like
                self.left_out.append(f"layer {path.name}: {type(error).__name__}: {str(error)[:200]}")

    def _add(self, server: PageServer, number: int, path: Path) -> None:
        scene: Any = trimesh.load(str(path), force="scene", process=False)
        title, unit = str(scene.metadata["layer"]), str(scene.metadata["unit"])
        for k, (name, mesh) in enumerate(scene.geometry.items()):
            shown = server.scene.add_mesh_trimesh(
                f"/layers/{number}_{k}", mesh, cast_shadow=False, receive_shadow=False
            )
            text = f"{title}: {name}" + (f" [{unit}]" if unit != "1" else "")
            switch = server.gui.add_checkbox(text, initial_value=True)
            switch.on_update(partial(self.switch, shown))
            self.switches[text], self.sheets[text] = switch, shown

    @staticmethod
    def switch(shown: Any, event: Any) -> None:
        """Show a surface or hide it, by its box."""
        shown.visible = bool(event.target.value)
