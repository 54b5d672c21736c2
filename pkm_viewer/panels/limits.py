# SPDX-License-Identifier: Apache-2.0
"""Distances from singularities, joint limits and effort limits, and the passive joints."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pkm_description.mechanism import Array, Joint, Mechanism
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_viewer.operations import DISTANCES, Readings
from pkm_viewer.page_server import PageServer
from pkm_viewer.panels import markup

_NEAR, _VERY_NEAR = 0.4, 0.2  # of home's distance from a singularity: amber, red
_HIGH, _VERY_HIGH = 0.7, 0.9  # of an effort's limit
_END, _VERY_END = 0.08, 0.03  # of a joint's range, from its nearer end
_TIGHT, _VERY_TIGHT = 0.02, 0.01  # m from a place to keep out of


class LimitsPanel:
    """Bars that turn red."""

    def __init__(self, server: PageServer, mechanism: Mechanism) -> None:
        self._joints = [mechanism.joint_named[name] for name in mechanism.actuated_joints]
        self._limits = ActuatorLimits.of(mechanism)
        self.home: tuple[float | None, ...] = (None,) * len(DISTANCES)  # distances from singularities there
        self._html = server.gui.add_html("")

    def show(self, readings: Readings, positions: Array) -> None:
        """Show readings, with the actuated joints at `positions` (n_actuated,) [rad or m]."""
        parts = []
        rows = [
            _distance_row(name, now, home, unit)
            for name, now, home, unit in zip(DISTANCES, readings.distances, self.home, readings.units, strict=True)
            if now is not None and math.isfinite(now)
        ]
        if rows:
            parts += [markup.heading("Distance to singularities, of home's"), *rows]
        if readings.clearance is not None:
            parts += [markup.heading("Places to keep out of"), _clearance_row(readings.clearance)]
        if readings.limit is not None:
            parts += [markup.heading("Joint nearest to an end of its range"), _nearest_row(*readings.limit)]
        parts.append(markup.heading("Actuated joints"))
        parts += [_position_row(joint, float(q)) for joint, q in zip(self._joints, positions, strict=True)]
        if readings.efforts is not None and len(readings.efforts) == len(self._joints):
            parts.append(markup.heading("Efforts"))
            bounds = self._limits.effort_bound(readings.efforts)
            efforts = zip(self._joints, readings.efforts.tolist(), bounds.tolist(), strict=True)
            parts += [_effort_row(joint, effort, limit) for joint, effort, limit in efforts]
        self._html.content = markup.block("".join(parts))


def _distance_row(name: str, now: float, home: float | None, unit: str) -> str:
    if home is None or not math.isfinite(home) or home <= 0.0:
        return markup.bar_row(name, 0.0, markup.GREY, f"{now:.3g} {unit}")
    share = now / home
    colour = markup.RED if share < _VERY_NEAR else markup.AMBER if share < _NEAR else markup.GREEN
    row = markup.bar_row(name, share, colour, f"{100 * share:.0f} %")
    return row.replace("<div ", f'<div title="{markup.escaped(f"{now:.4g} {unit}; at home {home:.4g}")}" ', 1)


def _clearance_row(clearance: float) -> str:
    # a full bar is ten times what is amber
    colour = markup.RED if clearance < _VERY_TIGHT else markup.AMBER if clearance < _TIGHT else markup.GREEN
    return markup.bar_row("clearance", min(clearance / (10.0 * _TIGHT), 1.0), colour, f"{1e3 * clearance:.1f} mm")


def _nearest_row(name: str, share: float) -> str:
    # what is left of half the range, passive joints included
    colour = markup.RED if share < 2.0 * _VERY_END else markup.AMBER if share < 2.0 * _END else markup.GREEN
    return markup.bar_row(name, share, colour, f"{100 * share:.0f} % left")


def _position_row(joint: Joint, position: float) -> str:
    text = written(joint, position)
    low, high = joint.limits.lower, joint.limits.upper
    if not (math.isfinite(low) and math.isfinite(high) and high > low):
        return markup.bar_row(joint.name, 0.5, markup.GREY, text, marker=True)
    share = (position - low) / (high - low)
    left = min(share, 1.0 - share)
    colour = markup.RED if left < _VERY_END else markup.AMBER if left < _END else markup.BLUE
    row = markup.bar_row(joint.name, share, colour, text, marker=True)
    return row.replace(
        "<div ", f'<div title="{markup.escaped(f"{written(joint, low)} to {written(joint, high)}")}" ', 1
    )


def _effort_row(joint: Joint, effort: float, limit: float) -> str:
    text = f"{_plain(effort)} {joint.effort_unit}"
    if not (math.isfinite(limit) and limit > 0.0):
        return markup.bar_row(joint.name, 0.0, markup.GREY, text)
    share = abs(effort) / limit
    colour = markup.RED if share > _VERY_HIGH else markup.AMBER if share > _HIGH else markup.GREEN
    row = markup.bar_row(joint.name, share, colour, text)
    return row.replace("<div ", f'<div title="at most {limit:g} {joint.effort_unit}" ', 1)


def written(joint: Joint, position: float) -> str:
    """A position in degrees or millimetres."""
    if not math.isfinite(position):
        return "no end"
    value = round(1e3 * position if joint.unit == "m" else math.degrees(position), 1) + 0.0  # no -0.0
    return f"{value:.1f} mm" if joint.unit == "m" else f"{value:.1f}°"


def _plain(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10.0 else f"{value:.2f}"


class JointsPanel:
    """Values and limits of the passive joints with one degree of freedom, limb after limb."""

    def __init__(self, server: PageServer, mechanism: Mechanism) -> None:
        driven = {*mechanism.actuated_joints, *mechanism.platform_chain}
        self._joints = [joint for joint in mechanism.joints if joint.type.dof == 1 and joint.name not in driven]
        self._html = None
        if self._joints:
            with server.gui.add_folder("Passive joints", expand_by_default=False):
                self._html = server.gui.add_html("")

    def show(self, positions: Mapping[str, float]) -> None:
        """Show positions by name [rad or m]."""
        if self._html is None:
            return
        rows = {}
        for joint in self._joints:
            low, high = joint.limits.lower, joint.limits.upper
            text = written(joint, positions[joint.name])
            if low > -1e6 and high < 1e6:
                text += f"  ({written(joint, low)} to {written(joint, high)})"
            rows[joint.name] = text
        self._html.content = markup.block(markup.table(rows))
