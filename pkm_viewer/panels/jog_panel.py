# SPDX-License-Identifier: Apache-2.0
"""Jogging: a gizmo in the picture and a slider for each degree of freedom, for each browser that may command."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pkm_control.operator_interface import Answer
from pkm_description.mechanism import Array
from pkm_runtime.describable import fixed
from pkm_viewer.fitting import round_length
from pkm_viewer.jog_space import Coordinate, JogSpace, Target
from pkm_viewer.panels.asking import Newest, PageRequests
from pkm_viewer.panels.situation import attitude

GIZMO_SHARE = 0.16  # of the robot's size: how long the arrows and how wide the rings are
HANDS_OFF = 3.0  # s, after the last touch, before sliders and gizmo follow the robot again: people type slowly
_SETTLED = 0.4  # s without a change, after which a slider's value is meant: each key of a number is a change
_STEPS = 200  # of a slider, about
_UNITS = {True: ("mm", 1e3), False: ("deg", 180.0 / np.pi)}


def handle_ends(space: JogSpace, size: float) -> Array:
    """Ends (n, 3) [m], base frame, of the arrows and rings at home, for a robot of a size [m]."""
    moves, turns = space.translations, space.rotations
    ends = [axis for k, axis in enumerate(np.eye(3)) if moves[k] or any(turns[:k] + turns[k + 1 :])]
    return np.asarray(space.kinematics.home[:3] + GIZMO_SHARE * size * np.array(ends).reshape(-1, 3))


def _words(one: Coordinate) -> str:
    return one.name.removeprefix("platform_").replace("_", " ")


class JogPanel:
    """Sliders and gizmo, which request poses; `joints` returns all joints, `size` [m] is the robot's."""

    def __init__(
        self,
        client: Any,
        requests: PageRequests,
        space: JogSpace,
        joints: Callable[[], Array],
        size: float,
        order: float,
    ) -> None:
        self._requests = requests
        self._space = space
        self._joints = joints
        self._touched = 0.0  # s, monotonic
        self._coordinates = np.array([one.home for one in (*space.all, *space.redundant)])
        self._pose = np.array(space.kinematics.home, dtype=np.float64)
        self._rows = {one.index: one for one in (*space.independent, *space.redundant)}
        self._moved_slider = 0, 0.0  # which one, and its value
        self._waits: asyncio.TimerHandle | None = None  # for the value of a slider to settle
        self._moved_gizmo: Any = None  # which one, its position and its quaternion w x y z
        self._by_slider = Newest(self._slide)
        self._by_gizmo = Newest(self._drag)
        with client.gui.add_folder("Jog", order=order):
            self._sliders = {k: self._slider(client, one) for k, one in self._rows.items()}
            shown = client.gui.add_checkbox("Handles in the picture", True)
        self._gizmos = self._add_gizmos(client, GIZMO_SHARE * size)
        for k, slider in self._sliders.items():
            slider.on_update(partial(self._slider_moved, k))
        for gizmo in self._gizmos:
            gizmo.on_update(partial(self._gizmo_moved, gizmo))
        self._wanted = shown
        self._let = True
        shown.on_update(lambda event: self._show_gizmos())

    def follow(self, pose: Array, joints: Array) -> None:
        """Show the platform's pose (7,), with all joints, unless an operator uses the controls."""
        if time.monotonic() - self._touched < HANDS_OFF:
            return
        self._place(pose, self._space.coordinates(pose, joints))

    def let(self, possible: bool) -> None:
        """Show handles in the picture only while jogs are possible."""
        if possible != self._let:
            self._let = possible
            if not possible:
                self._touched = 0.0  # when they are back, they stand where the platform is
            self._show_gizmos()

    # Sliders

    @staticmethod
    def _slider(client: Any, one: Coordinate) -> Any:
        unit, scale = _UNITS[one.slides]
        step = round_length(scale * (one.high - one.low) / _STEPS)
        low, high = step * np.ceil(scale * one.low / step), step * np.floor(scale * one.high / step)
        at = float(np.clip(step * round(scale * one.home / step), low, high))
        return client.gui.add_slider(f"{_words(one)} [{unit}]", float(low), float(high), step, at)

    async def _slider_moved(self, k: int, event: Any) -> None:
        """Note a slider's position, on the page's own thread, before it can follow the robot; act on another."""
        if not self._requests.admits(event):
            return
        self._touched = time.monotonic()
        self._moved_slider = k, float(self._sliders[k].value)
        if self._waits is not None:
            self._waits.cancel()
        loop = asyncio.get_running_loop()
        self._waits = loop.call_later(_SETTLED, lambda: loop.run_in_executor(None, self._by_slider))

    def _slide(self) -> None:
        k, value = self._moved_slider
        wanted = self._coordinates.copy()
        unit, scale = _UNITS[self._rows[k].slides]
        wanted[k] = value / scale
        asked = f"{_words(self._rows[k])} {value:g} {unit}"
        if self._rows[k] in self._space.redundant:
            self._go(self._space.target_beside(self._pose, wanted, self._joints()), asked, beside=True)
        else:
            self._go(self._space.target(wanted, self._joints()), asked)

    # Gizmo

    def _add_gizmos(self, client: Any, size: float) -> list[Any]:
        """Arrows for the directions in which the platform can move, rings for those about which it can turn."""

        def add(name: str, axes: tuple[bool, bool, bool], turns: bool, scale: float) -> Any:
            return client.scene.add_transform_controls(
                f"/jog/{name}",
                scale=scale,
                line_width=3.0,
                active_axes=axes,
                disable_axes=turns,
                disable_sliders=True,
                disable_rotations=not turns,
                depth_test=False,
                opacity=0.85,
                position=tuple(self._pose[:3]),
                wxyz=(1.0, 0.0, 0.0, 0.0),
            )

        gizmos = []
        moves, turns = self._space.translations, self._space.rotations
        if any(moves):
            gizmos.append(add("move", moves, False, size))
        if all(turns):
            gizmos.append(add("turn", turns, True, size))
        else:
            for k in np.flatnonzero(turns):  # a ring about one axis lies between the two others
                others = tuple(axis != k for axis in range(3))
                gizmos.append(add(f"turn_{'xyz'[k]}", others, True, size))  # type: ignore[arg-type]
        return gizmos

    async def _gizmo_moved(self, gizmo: Any, event: Any) -> None:
        if not self._requests.admits(event):
            return
        self._touched = time.monotonic()
        if event.phase == "update":
            self._moved_gizmo = gizmo, np.array(gizmo.position), np.array(gizmo.wxyz, dtype=np.float64)
            asyncio.get_running_loop().run_in_executor(None, self._by_gizmo)
        elif event.phase == "end":
            self._place(self._pose, self._coordinates)

    def _drag(self) -> None:
        gizmo, position, wxyz = self._moved_gizmo
        wanted = self._pose.copy()
        if gizmo.disable_rotations:
            wanted[:3] = position
            asked = f"({', '.join(fixed(1e3 * one, 1) for one in position)}) mm"
        else:
            wanted[3:] = np.roll(wxyz, -1)
            wanted[3:] /= np.linalg.norm(wanted[3:]) or 1.0
            asked = f"roll, pitch, yaw ({', '.join(fixed(one, 1) for one in attitude(wanted))}) deg"
        self._go(self._space.target_at(wanted, self._joints()), asked, held=gizmo)

    def _show_gizmos(self) -> None:
        shown = self._let and bool(self._wanted.value)
        for gizmo in self._gizmos:
            gizmo.visible = shown

    # Both

    def _go(self, target: Target, asked: str, held: Any = None, beside: bool = False) -> None:
        """Request a pose, or what is beside it, in words `asked`, and move all controls but the held one there."""
        if target.problem:
            who = "the robot" if beside else "the platform"
            self._requests.tell(Answer(False, f"{who} cannot be at {asked}: {target.problem}"))
            return
        ask = self._requests.operations
        if beside:
            first, seconds = len(self._space.all), self._space.duration(self._coordinates, target.coordinates)
            answer = ask.move_beside(target.coordinates[first:], seconds)
        else:
            answer = ask.jog_to(target.pose)
        if not answer.success:
            self._requests.tell(Answer(False, f"{asked}: {answer.message}"))
            return
        self._requests.tell(None)
        self._place(target.pose, target.coordinates, held)

    def _place(self, pose: Array, coordinates: Array, held: Any = None) -> None:
        self._pose, self._coordinates = np.array(pose), np.array(coordinates)
        for k, slider in self._sliders.items():
            value = _UNITS[self._rows[k].slides][1] * coordinates[k]
            shown = float(np.clip(slider.step * round(value / slider.step), slider.min, slider.max))
            if abs(shown - slider.value) > 0.5 * slider.step:
                slider.value = shown
        for gizmo in self._gizmos:
            if gizmo is held:
                continue
            if np.linalg.norm(gizmo.position - pose[:3]) > 1e-6:
                gizmo.position = tuple(pose[:3])
            if not gizmo.disable_rotations and abs(np.asarray(gizmo.wxyz) @ np.roll(pose[3:], 1)) < 1.0 - 1e-10:
                gizmo.wxyz = tuple(np.roll(pose[3:], 1))
