# SPDX-License-Identifier: Apache-2.0
"""Layers around the robot: surfaces in GLB files that `pkm analyse` wrote, each with a switch; some of them move."""

from __future__ import annotations

import importlib
import itertools
import threading
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pkm_viewer.page_server import PageServer

EVERY = 0.1  # s, between two steps of what moves


def layer_files(text: str) -> list[Path]:
    """Sorted paths of layers from names, separated by commas, of files or of folders that hold some."""
    found: list[Path] = []
    for name in filter(None, (word.strip() for word in text.split(","))):
        path = Path(name)
        found += sorted(path.glob("*.glb")) if path.is_dir() else [path]
    return found


class Layers:
    """Shows surfaces in the base frame, each with a check box.

    In the files, a scene's extras have the name (`layer`) and the `unit` of its quantity, and of a layer that moves how
    many surfaces in a row are one thing on its way from one end to the other (`moving`).
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
        trimesh = importlib.import_module("trimesh")  # late: a launch for RViz lists files without it
        scene: Any = trimesh.load(str(path), force="scene", process=False)
        title, unit = str(scene.metadata["layer"]), str(scene.metadata["unit"])
        moving, steps = int(scene.metadata.get("moving", 0)), []
        for k, (name, mesh) in enumerate(scene.geometry.items()):
            shown = server.scene.add_mesh_trimesh(
                f"/layers/{number}_{k}", mesh, cast_shadow=False, receive_shadow=False, visible=not moving
            )
            if moving:
                steps.append(shown)
                if len(steps) == moving:
                    text = f"{title}: {name.partition(' #')[0]}"
                    self.switches[text] = switch = server.gui.add_checkbox(text, initial_value=False)
                    self.sheets[text] = swing = Swinging(server, steps)
                    switch.on_update(swing.switch)
                    steps = []
                continue
            text = f"{title}: {name}" + (f" [{unit}]" if unit != "1" else "")
            switch = server.gui.add_checkbox(text, initial_value=True)
            switch.on_update(partial(self.switch, shown))
            self.switches[text], self.sheets[text] = switch, shown

    @staticmethod
    def switch(shown: Any, event: Any) -> None:
        """Show a surface or hide it, by its box."""
        shown.visible = bool(event.target.value)


class Swinging:
    """Surfaces of which one at a time is shown, there and back, for as long as its box is checked."""

    def __init__(self, server: PageServer, steps: Sequence[Any]) -> None:
        self.steps = steps
        self._server = server
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def switch(self, event: Any) -> None:
        """Begin or end, by its box."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if event.target.value:
            self._ended.clear()
            self._thread = threading.Thread(target=self._swing, daemon=True)
            self._thread.start()

    def _swing(self) -> None:
        shown = None
        for step in itertools.cycle([*self.steps, *self.steps[-2:0:-1]]):
            with self._server.atomic():
                step.visible = True
                if shown is not None:
                    shown.visible = False
            shown = step
            if self._ended.wait(EVERY):
                shown.visible = False
                return
