# SPDX-License-Identifier: Apache-2.0
"""Loop equations of a cluster in numbers that may be terms of a tape, each loop seen from where its two sides part.

Lengths are over the cluster's characteristic length; positions are given as cosines and sines of turning joints, and as
positions of sliding ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pkm_description.graph import path_from_base
from pkm_description.joint_geometry import Freedom, frame_along, freedoms
from pkm_description.loops.closure import ClosureModel
from pkm_description.mechanism import Array, Joint, Loop, LoopType
from pkm_runtime.codegen.tape import Number

NOTHING = 4e-16  # of an entry of a rotation or a length: rounding of a cosine of 90 degrees
Vector = Any  # (3,) of numbers, as an array of objects

Position = Callable[[str, float, float], tuple[Number, Number]]
"""Cosine and sine of `factor` times a coordinate plus `offset`, or position and 0 where it slides."""


@dataclass
class Row:
    """One equation: what is open, and its derivative by each coordinate by name."""

    gap: Number
    rates: dict[str, Number]


def loop_rows(model: ClosureModel, loop: Loop, position: Position) -> list[Row]:
    """The equations of a loop, 6 - dof of the cut joint."""
    ways = [path_from_base(model.joints, link) for link in (loop.predecessor, loop.successor)]
    shared = next((n for n, (one, two) in enumerate(zip(*ways, strict=False)) if one is not two), min(map(len, ways)))
    (R, p, before), (S, q, after) = (
        placed(model, way[shared:], frame, position)
        for way, frame in zip(ways, (loop.predecessor_frame, loop.successor_frame), strict=True)
    )
    if loop.type is LoopType.SPHERICAL:
        return _rows(q - p, [(-1, before, p), (1, after, q)], np.eye(3).astype(object))
    back = R.T
    sides = [(-1, before, q), (1, after, q)]
    linear, angular = _rows(back @ (q - p), sides, back), _rows(np.zeros(3, dtype=object), sides, back, turning=True)
    axis = loop.axis.astype(object)
    image = back @ S @ loop.axis2.astype(object)
    across = _clean(frame_along(loop.axis).T)
    if loop.type is LoopType.UNIVERSAL:
        return [*linear, _combined(np.cross(image, axis), angular, dot(axis, image))]
    tilt = [_combined(d, angular, dot(d, np.cross(axis, image))) for d in across[:2]]
    if loop.type is LoopType.REVOLUTE:
        return [_combined(d, linear) for d in across] + tilt
    if loop.type is LoopType.CYLINDRICAL:
        return [_combined(d, linear) for d in across[:2]] + tilt
    if loop.type is LoopType.PLANAR:
        return [_combined(across[2], linear), *tilt]
    turn = back @ S
    for k, row in enumerate(angular):
        i, j = (k + 1) % 3, (k + 2) % 3
        row.gap = 0.5 * (turn[j, i] - turn[i, j])
    if loop.type is LoopType.PRISMATIC:
        return [_combined(d, linear) for d in across[:2]] + angular
    return [*linear, *angular]


@dataclass
class Screw:
    """What a coordinate does: it slides along or turns about an axis (3,) through a point (3,)."""

    name: str
    factor: float
    slides: bool
    axis: Vector
    point: Vector


def placed(
    model: ClosureModel, way: tuple[Joint, ...], end: Array, position: Position
) -> tuple[Any, Vector, list[Screw]]:
    """Rotation (3, 3) and point (3,) of a frame on the last link of a way, and the screws of its joints."""
    R, p = np.eye(3).astype(object), np.zeros(3, dtype=object)
    screws = []
    for joint in way:
        R, p = _then(R, p, joint.origin, model.length)
        for freedom in freedoms(joint):
            name, factor, offset = freedom.name, 1.0, 0.0
            if joint.mimic is not None:
                name, factor, offset = joint.mimic.joint, joint.mimic.multiplier, joint.mimic.offset
            axis = R @ _clean(freedom.axis)
            screws.append(Screw(name, factor, freedom.slides, axis, p))
            c, s = position(name, factor, offset)
            if freedom.slides:
                p = p + np.array([a * c for a in axis], dtype=object)
            else:
                R = R @ rotation(freedom, c, s)
    return *_then(R, p, end, model.length), screws


def rotation(freedom: Freedom, c: Number, s: Number) -> Any:
    """Rotation (3, 3) about the axis of a freedom by an angle of cosine c and sine s."""
    a = [float(x) for x in _clean(freedom.axis)]
    cross = [[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]]
    rows = [[a[i] * a[j] + c * (float(i == j) - a[i] * a[j]) + s * cross[i][j] for j in range(3)] for i in range(3)]
    return np.array(rows, dtype=object)


def _then(R: Any, p: Vector, frame: Array, length: float) -> tuple[Any, Vector]:
    return R @ _clean(frame[:3, :3]), p + R @ _clean(frame[:3, 3] / length)


def _clean(values: Array) -> Any:
    """As objects, without what is rounding alone: zeros and ones cost no operation."""
    rounded = np.round(values)
    return np.where(np.abs(values - rounded) < NOTHING, rounded, values).astype(object)


def _rows(gap: Vector, sides: list[tuple[int, list[Screw], Vector]], back: Any, turning: bool = False) -> list[Row]:
    """Three equations: `gap` (3,), and velocities of one side less the other turned `back`, of points or `turning`."""
    rows = [Row(one, {}) for one in gap]
    for sign, screws, point in sides:
        for screw in screws:
            if turning:
                moved = np.zeros(3, dtype=object) if screw.slides else screw.axis
            else:
                moved = screw.axis if screw.slides else np.cross(screw.axis, point - screw.point)
            for row, value in zip(rows, back @ moved, strict=True):
                row.rates[screw.name] = row.rates.get(screw.name, 0.0) + sign * screw.factor * value
    return rows


def _combined(weights: Vector, rows: list[Row], gap: Number | None = None) -> Row:
    """A sum of three equations."""
    rates: dict[str, Number] = {}
    for weight, row in zip(weights, rows, strict=True):
        for name, value in row.rates.items():
            rates[name] = rates.get(name, 0.0) + weight * value
    return Row(dot(weights, [row.gap for row in rows]) if gap is None else gap, rates)


def dot(u: Any, v: Any) -> Number:
    """u . v of three numbers each."""
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]
