# SPDX-License-Identifier: Apache-2.0
"""The one curve on which a mechanism of a single degree of freedom moves, traced from home (a four-bar, a Jansen leg).

Its platform has nowhere else to go, so that what continues home is on this curve or nowhere. It is traced once, to both
sides, in all joints together, which has no dead points of cranks; it ends where it closes, or another crosses it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_description.rotations import pose_distance, pose_from_transform
from pkm_kinematics.solve.whole_graph import GraphEquations, WholeGraph

STEP = 0.08  # rad, and of the robot's size: the farthest that a joint moves in a step
SHORTEST = 1e-3  # of a step: where even this fails, another curve crosses
SHARPEST = 0.95  # cosine of the largest angle between the tangents at both ends of a step
MOST = 4000  # steps to each side
CORRECTIONS = 12
NEXT = 1e-6  # of the robot's size: a pose this far from the curve is beside it by rounding
ROWS = 256  # poses that are looked for at once
EXACT = 1e-13  # of the robot's size: what the loops are closed to
RANK = 1e-9  # relative singular value below which closure equations repeat others


@dataclass(frozen=True, eq=False)
class CouplerCurve:
    """Points of the curve one after the other, home among them: all joints (m, k) [rad, m], and platform poses (m, 7).

    `order` has the numbers of the points, those first to which the drives' way from home is shortest; `size` [m] makes
    rotations comparable with translations; `complete` where the curve closes: then nothing else continues home.
    """

    positions: Array
    poses: Array
    order: NDArray[np.int64]
    size: float
    complete: bool

    def passages(self, poses: Array, rank: int) -> tuple[Array, NDArray[np.bool_]]:
        """Joints (n, k) where the curve passes by poses (n, 7) for the `rank`-th time from home; which it does."""
        found, positions = np.zeros(len(poses), dtype=bool), np.repeat(self.positions[:1], len(poses), axis=0)
        steps = pose_distance(self.poses[1:], self.poses[:-1], self.size)
        room = 1.1 * np.maximum(np.append(steps, 0.0), np.append(0.0, steps)) + NEXT * self.size
        for first in range(0, len(poses), ROWS):
            part = poses[first : first + ROWS]
            far = pose_distance(part[:, None], self.poses, self.size)
            ends = np.pad(far, ((0, 0), (1, 1)), constant_values=np.inf)
            passes = ((far <= room) & (far <= ends[:, :-2]) & (far < ends[:, 2:]))[:, self.order]
            nth = passes & (np.cumsum(passes, axis=1) == rank + 1)
            rows = np.flatnonzero(nth.any(axis=1))
            at = self.order[nth[rows].argmax(axis=1)]
            found[first + rows] = True
            positions[first + rows] = self._between(part[rows], at)
        return positions, found

    def _between(self, poses: Array, at: NDArray[np.int64]) -> Array:
        """Positions of all joints (n, k) at poses (n, 7) between the points `at` (n,) and their nearer neighbours."""
        last = len(self.poses) - 1
        sides = np.stack([np.maximum(at - 1, 0), np.minimum(at + 1, last)])
        far = [pose_distance(poses, self.poses[side], self.size) for side in sides]
        here = pose_distance(poses, self.poses[at], self.size)
        side = np.where(far[0] < far[1], *sides)
        there = np.minimum(*far)
        share = np.where(side == at, 0.0, here / np.maximum(here + there, 1e-300))
        return np.asarray(self.positions[at] + share[:, None] * (self.positions[side] - self.positions[at]))


def trace(
    whole: WholeGraph, start: Array, drives: NDArray[np.int64], limits: tuple[Array, Array], size: float
) -> CouplerCurve | None:
    """The curve through a configuration `start` (k,) at home; None where that is on no single curve.

    `drives` are the joints whose way from home is measured, `limits` (k,) ends of the ranges, `size` the robot's [m].
    """
    tracer = _Tracer(whole, size)
    tangent = tracer.tangent(start, None)
    if tangent is None:
        return None
    ahead, closes = tracer.follow(start, tangent)
    behind, _ = tracer.follow(start, -tangent)
    positions = np.array([*behind[::-1], start, *ahead])
    poses = np.array([tracer.pose(x) for x in positions])
    beyond = np.asarray(((positions < limits[0]) | (positions > limits[1])).any(axis=1))
    home = len(behind)
    stopped = np.concatenate([np.cumsum(beyond[home::-1])[::-1], np.cumsum(beyond[home + 1 :])]) > 0
    moved = np.abs(np.diff(positions[:, drives], axis=0)).sum(axis=1)
    ways = np.concatenate([np.cumsum(moved[:home][::-1])[::-1], [0.0], np.cumsum(moved[home:])])
    # a way round that meets no stop comes before a shorter one that does
    return CouplerCurve(positions, poses, np.lexsort((ways, stopped)), size, closes)


class _Tracer:
    """Follows the curve: each step goes along the tangent, and Newton's method leads back onto it."""

    def __init__(self, whole: WholeGraph, size: float) -> None:
        self._whole, self._size = whole, size
        self._equations = GraphEquations(whole.tables)
        self._span, self._turning = self._equations.span, ~self._equations.sliding
        self._scale = np.where(self._turning, 1.0, size)

    def _linear(self, x: Array) -> tuple[Array, Array]:
        return self._equations.gaps(x[self._span]), self._equations.slope() * self._scale

    def pose(self, x: Array) -> Array:
        """Pose (7,) of the platform."""
        self._equations.gaps(x[self._span])
        return pose_from_transform(self._whole.platform_transform(self._equations.state))

    def tangent(self, x: Array, before: Array | None) -> Array | None:
        """Tangent of the curve, on the side of the one before; None where it is no single curve."""
        _, sizes, right = np.linalg.svd(self._linear(x)[1])
        n = len(self._scale)
        if int((sizes > RANK * sizes[0]).sum()) != n - 1:
            return None
        along: Array = right[n - 1]
        return -along if before is not None and along @ before < 0.0 else along

    def _onto(self, x: Array, longest: float) -> Array | None:
        """The point of the curve next to x, no farther away than a part of the step that led there."""
        moved = 0.0
        for _ in range(CORRECTIONS):
            gap, slope = self._linear(x)
            if float(np.abs(gap).max()) < EXACT * self._size:
                break
            step = np.linalg.lstsq(slope, gap, rcond=RANK)[0]
            moved += float(np.abs(step).max())
            if not moved < longest:
                return None
            x = x.copy()
            x[self._span] -= self._scale * step
        self._equations.gaps(x[self._span])
        return x if self._equations.closed else None

    def follow(self, start: Array, tangent: Array) -> tuple[list[Array], bool]:
        """Points to one side of `start`, and whether they lead back to it."""
        points: list[Array] = []
        x, first, longest = start, tangent, STEP
        while len(points) < MOST:
            step = longest / float(np.abs(tangent).max())
            ahead = x.copy()
            ahead[self._span] += step * self._scale * tangent
            after = self._onto(ahead, 0.5 * longest)
            turned = self.tangent(after, tangent) if after is not None else None
            if after is None or turned is None or turned @ tangent < SHARPEST:
                longest *= 0.5
                if longest < SHORTEST * STEP:
                    return points, False
                continue
            points.append(after)
            x, tangent, longest = after, turned, min(2.0 * longest, STEP)
            if len(points) > 2 and self._apart(x, start) <= 1.01 * STEP and tangent @ first > SHARPEST:
                return points, True
        return points, False

    def _apart(self, x: Array, other: Array) -> float:
        """How far the joint that is farthest away is, whole turns not counted."""
        off = (x - other)[self._span]
        off = np.where(self._turning, np.angle(np.exp(1j * off)), off / self._size)
        return float(np.abs(off).max())
