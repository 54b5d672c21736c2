# SPDX-License-Identifier: Apache-2.0
"""Pictures of a transmission: polygons of efforts and a map of inertia over two joints, curves over one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.drawing.sheet import COLOURS, grid, sheet
from pkm_analysis.requirements.grammar import familiar
from pkm_analysis.transmission.over_range import TransmissionRange

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POLYGONS = 7  # along each joint
FILLED = 0.42  # of the distance between two, that the largest polygon takes to each side


def transmission_picture(found: TransmissionRange) -> Figure:
    """One picture of a range; `AnalysisError` for more than two joints."""
    if not found.axes:
        joints = found.transmission.joints
        raise AnalysisError(
            "picture", f"it shows one or two joints, and here are {len(joints)}", "name fewer: --joints"
        )
    return _curves(found) if len(found.axes) == 1 else _maps(found)


def _axis(found: TransmissionRange, k: int) -> tuple[np.ndarray, str]:
    name = found.transmission.joints[k]
    unit, factor = familiar(found.transmission.tree.joint_named[name].unit)
    return factor * found.axes[k], f"{name} [{unit}]"


def _curves(found: TransmissionRange) -> Figure:
    figure = sheet(7.0, 7.5)
    x, label = _axis(found, 0)
    ratios, efforts, inertia = figure.subplots(3, 1, sharex=True)
    t = found.transmission
    for k, name in enumerate(t.actuators):
        ratios.plot(x, found.jacobian[:-1, k, 0], color=COLOURS[k % len(COLOURS)], label=name)
    ratios.set_ylabel("rate of a motor per rate of the joint")
    efforts.plot(x, found.effort[:-1, 0], color=COLOURS[0])
    efforts.set_ylabel(f"largest effort [{t.tree.joint_named[t.joints[0]].effort_unit}]")
    inertia.plot(x, found.rotors[:-1, 0, 0], color=COLOURS[0], label="rotors")
    inertia.plot(x, found.armature[:-1, 0, 0], color=COLOURS[1], label="with the linkage")
    inertia.set_ylabel("inertia at the joint")
    inertia.set_xlabel(label)
    for axes in (ratios, efforts, inertia):
        grid(axes)
    ratios.legend(fontsize=8, frameon=False)
    inertia.legend(fontsize=8, frameon=False)
    return figure


def _maps(found: TransmissionRange) -> Figure:
    figure = sheet(12.5, 4.6)
    polygons, inertia, margin = figure.subplots(1, 3)
    (x, first), (y, second) = (_axis(found, k) for k in (0, 1))
    shape = (len(x), len(y))
    grown = np.where(found.solved, np.sqrt(np.abs(np.linalg.det(found.armature))), np.nan)
    for axes, values, title in (
        (inertia, grown, "inertia at the joints, root of the determinant"),
        (margin, np.where(found.solved, found.margin, np.nan), "margin to a fold"),
    ):
        drawn = axes.pcolormesh(x, y, values[:-1].reshape(shape).T, cmap="viridis", shading="nearest")
        figure.colorbar(drawn, ax=axes)
        axes.set_title(title, fontsize=10)
    _draw_polygons(polygons, found, x, y)
    for axes in (polygons, inertia, margin):
        axes.set_xlabel(first)
        axes.set_ylabel(second)
    return figure


def _draw_polygons(axes: Axes, found: TransmissionRange, x: np.ndarray, y: np.ndarray) -> None:
    """Polygons of efforts where they are, all to one scale."""
    t = found.transmission
    if not np.isfinite([motor.effort for motor in t.motors.values()]).all():
        axes.set_title("efforts: no limits are known", fontsize=10)
        return
    nodes = [np.linspace(0, len(one) - 1, POLYGONS).round().astype(int) for one in (x, y)]
    places = [(i, j) for i in nodes[0] for j in nodes[1] if found.solved[i * len(y) + j]]
    shapes = [t.effort_polygon(found.q[i * len(y) + j]) for i, j in places]
    largest = np.max([np.abs(one).max(axis=0) for one in shapes], axis=0)
    pitch = np.array([np.ptp(x), np.ptp(y)]) / (POLYGONS - 1)
    for (i, j), shape in zip(places, shapes, strict=True):
        drawn = np.array([x[i], y[j]]) + FILLED * pitch * shape / largest
        axes.fill(*drawn.T, facecolor=COLOURS[0], alpha=0.35, edgecolor=COLOURS[0], linewidth=0.8)
        axes.plot(x[i], y[j], ".", color=COLOURS[0], markersize=2)
    units = [t.tree.joint_named[name].effort_unit for name in t.joints]
    axes.set_title(f"efforts, largest {largest[0]:.3g} {units[0]} and {largest[1]:.3g} {units[1]}", fontsize=10)
