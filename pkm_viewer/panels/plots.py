# SPDX-License-Identifier: Apache-2.0
"""Curves of the last seconds: efforts against their limits, and the tracking error."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from viser import uplot

from pkm_description.mechanism import Array, Mechanism
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_viewer.operations import Readings
from pkm_viewer.page_server import PageServer

_SPAN = 10.0  # s that are shown
_APART = 0.05  # s, at least, between two points
_HEIGHT = 150  # pixels
_TICKS, _MARGIN = 64, 10  # pixels, for numbers such as -0.0025, and around the uppermost and the last of them
_COLOURS = ("#1565c0", "#ef6c00", "#2e7d32", "#8e24aa", "#00838f", "#6d4c41", "#d81b60", "#9e9d24")
_THIN = 1.4  # pixels; limbs that do the same have curves on each other, so that the first are wider
_WIDER, _WIDEST = 1.2, 5.0  # pixels: from one to the next, and all together at most
_LEAST_ERROR = 0.01  # mm and mrad: what is less is shown small
_LIMIT = "#c62828"
_TIME_SCALE = {"x": uplot.Scale(time=False, range=(-_SPAN, 0.0))}


class PlotsPanel:
    """Two plots, whose lines `draw` updates."""

    def __init__(self, server: PageServer, mechanism: Mechanism) -> None:
        joints = [mechanism.joint_named[name] for name in mechanism.actuated_joints]
        self._limits = limits = ActuatorLimits.of(mechanism)
        self._relative = bool(np.all(np.isfinite(limits.effort) & (limits.effort > 0.0)))
        unit = "% of limit" if self._relative else ", ".join(sorted({joint.effort_unit for joint in joints}))
        motion = mechanism.mobility.motion  # such as 3T1R
        self._errors = [name for kind, name in (("T", "mm"), ("R", "mrad")) if kind in motion]
        self._rows: deque[tuple[float, Array, Array]] = deque(maxlen=round(_SPAN / _APART) + 2)
        self._n = len(joints)
        self._error_top = 0.0
        lines = [*(joint.name for joint in joints), *(("limit", "limit ") if self._relative else ())]
        self._effort_plot = self._add(server, f"Efforts [{unit}]", lines)
        self._effort_plot.visible = False  # until there are some: who commands positions has none
        self._error_plot = self._add(server, f"Tracking error [{', '.join(self._errors)}]", self._errors)

    def take(self, readings: Readings) -> None:
        """Note readings; without a time there is nothing to note."""
        if readings.time is None:
            return
        efforts = np.full(self._n, np.nan) if readings.efforts is None else readings.efforts
        if len(efforts) != self._n:
            return
        if self._rows and readings.time < self._rows[-1][0]:
            self._rows.clear()
        if self._rows and readings.time - self._rows[-1][0] < _APART:
            return
        found = {"mm": readings.error, "mrad": readings.rotation_error}
        errors = [1e3 * value if (value := found[name]) is not None else np.nan for name in self._errors]
        if self._relative:
            bounds = self._limits.effort_bound(efforts)
            efforts = 100.0 * np.divide(efforts, bounds, out=np.zeros(self._n), where=bounds > 0.0)
        self._rows.append((readings.time, efforts, np.array(errors)))

    def draw(self) -> None:
        """Show what was noted."""
        if len(self._rows) < 2:
            return
        times = np.array([row[0] for row in self._rows])
        recent = times >= times[-1] - _SPAN
        since = times[recent] - times[-1]
        efforts = np.array([row[1] for row in self._rows])[recent]
        errors = np.array([row[2] for row in self._rows])[recent]
        ends = [np.full(len(since), value) for value in (100.0, -100.0)] if self._relative else []
        if (measured := bool(np.isfinite(efforts).any())) != self._effort_plot.visible:
            self._effort_plot.visible = measured
        if measured:
            self._effort_plot.data = (since, *np.ascontiguousarray(efforts.T), *ends)
        largest = np.nanmax(errors, initial=_LEAST_ERROR)
        if not 0.3 * self._error_top < largest <= self._error_top:
            self._error_top = 1.5 * largest
            self._error_plot.scales = {**_TIME_SCALE, "y": uplot.Scale(range=(0.0, self._error_top))}
        self._error_plot.data = (since, *np.ascontiguousarray(errors.T))

    @staticmethod
    def _add(server: PageServer, title: str, lines: list[str]) -> Any:
        series: list[uplot.Series] = [uplot.Series(label="s")]
        curves = sum(not end_of(line) for line in lines)
        wider = min(_WIDER, _WIDEST / max(curves - 1, 1))
        for k, line in enumerate(lines):
            look: Any = {"stroke": _COLOURS[k % len(_COLOURS)], "width": _THIN + wider * (curves - 1 - k)}
            if end_of(line):
                look = {"stroke": _LIMIT, "width": 1.0, "dash": (6.0, 4.0)}
            series.append(uplot.Series(label=line, **look))
        nothing = np.array([-_SPAN, 0.0])
        data = (nothing, *(np.full(2, 100.0 if line == "limit" else -100.0 if end_of(line) else 0.0) for line in lines))
        return server.gui.add_uplot(
            data,
            tuple(series),
            title=title,
            scales=_TIME_SCALE,
            axes=({}, {"size": _TICKS}),
            padding=(_MARGIN, _MARGIN, 0, 0),
            legend=uplot.Legend(show=False),
            height=_HEIGHT,
        )


def end_of(line: str) -> bool:
    """Whether a line is that of a limit."""
    return line.startswith("limit")
