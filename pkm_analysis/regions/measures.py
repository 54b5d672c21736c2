# SPDX-License-Identifier: Apache-2.0
"""Measures whether a singularity lies at points, or on the straight line between two of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.kernels.pose_quantities import HOLD, REACH, REGULARITY, TYPE2, UNLIMITED, WIDTH
from pkm_analysis.requirements.membership import INSIDE, Membership
from pkm_description.mechanism import Array

NUMBERS = (REACH, TYPE2, HOLD, REGULARITY)
UNSIGNED = {HOLD: "the limbs lose a constraint", REGULARITY: "a singularity inside a limb"}
CONSTRAINT, LIMB, TURN, TYPE_2, JUMP = (
    -1,
    -2,
    -3,
    -4,
    -5,
)  # what separates two points inside, beside the codes of conditions
BETWEEN = {
    TYPE_2: "type 2",
    CONSTRAINT: UNSIGNED[HOLD],
    LIMB: UNSIGNED[REGULARITY],
    TURN: "a turn that a joint cannot make for its limits",
    JUMP: "a jump of the coordinates that follow",
}
NOTHING = 1e-7  # of the margin of type 2: rounding below
BEND = 0.3  # of the way between two poses: how far a smooth way is from its chord halfway, at most
ZERO = 1e-5  # of a margin at the ends of a line: what its least value along it is below where it passes a zero
ROUNDS = 22  # of the search for that value


@dataclass(frozen=True, eq=False)
class Measured:
    """Points (n, d) [m, rad] and what is known of them.

    `codes` (n,) are those of conditions, or TYPE_2 on a singularity; `sign` (n,) that of the direct determinant
    relative to home's, 0 where unknown or without sign; `margins` (n, 2) of the constraints and inside limbs, not
    negative; `turns` (n, t) positions [rad] of revolute joints with limits; `poses` (n, 7) where coordinates follow,
    positions in characteristic lengths, else (n, 0).
    """

    points: Array
    codes: NDArray[np.int32]
    sign: NDArray[np.int8]
    margins: Array
    turns: NDArray[np.float32]
    poses: Array

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Where all conditions hold."""
        return np.asarray(self.codes == INSIDE)


class Measures:
    """Measures points of the domain of its conditions."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        kinematics = membership.robot.kinematics
        self.signed = len(kinematics.actuated_names) == kinematics.mobility
        lower, upper = kinematics.engine.ranges.limits
        columns = [int(c) for c in kinematics.engine.body_column[2:] if c >= 0]
        turning = [c for c in columns if kinematics.engine.names.units[kinematics.joint_names[c]] == "rad"]
        limited = [c for c in turning if np.isfinite(lower[c]) or np.isfinite(upper[c])]
        self._follows = not kinematics.engine.constant_space
        self._joints = tuple(WIDTH + c for c in limited) if membership.joint_limits else ()

    def of(self, points: Array) -> Measured:
        """Measure points (n, d) [m, rad]."""
        codes = self.membership.codes(points)
        n, inside = len(points), codes == INSIDE
        sign, margins = np.zeros(n, dtype=np.int8), np.full((n, 2), UNLIMITED)
        turns = np.zeros((n, len(self._joints)), dtype=np.float32)
        at = np.zeros((n, 7 if self._follows else 0))
        if inside.any():
            poses, _ = self.membership.domain.poses(points[inside])
            numbers = self.membership.robot.numbers(poses, (*NUMBERS, *self._joints))
            if self.signed:
                type2 = np.nan_to_num(numbers[1])
                sign[inside] = np.where(np.abs(type2) > NOTHING, np.sign(type2), 0.0)
            margins[inside] = np.nan_to_num(numbers[2:4].T)
            turns[inside] = numbers[4:].T
            if self._follows:
                at[inside] = poses
                at[:, :3] /= self.membership.robot.kinematics.characteristic_length
            if self.signed:
                codes[inside] = np.where(sign[inside] == 0, TYPE_2, INSIDE)
        return Measured(points, codes, sign, margins, turns, at)

    def between(self, a: Measured, b: Measured, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.int32]:
        """What separates pairs of points inside, a[i] and b[j] (m,): 0 for nothing, else a code.

        Tested at their ends, halfway, and where margins dip to zero. A code is that of a condition that fails halfway,
        or one of `BETWEEN`.
        """
        found = np.zeros(len(i), dtype=np.int32)
        middle = self.of(0.5 * (a.points[i] + b.points[j]))
        for k, what in enumerate((CONSTRAINT, LIMB)):
            p, q, m = a.margins[i, k], b.margins[j, k], middle.margins[:, k]
            dips = np.flatnonzero((m < 0.5 * (p + q) - 0.4 * np.minimum(p, q)) & (p < UNLIMITED / 2.0) & middle.inside)
            if len(dips):
                least = self._least(a.points[i[dips]], b.points[j[dips]], k)
                found[dips[least < ZERO * np.maximum(p, q)[dips]]] = what
        if self._joints:
            found[(np.abs(a.turns[i] - b.turns[j]) > np.pi).any(axis=1)] = TURN
        found = np.where(middle.codes != INSIDE, middle.codes, found)
        if self.signed:
            crossed = (a.sign[i] != b.sign[j]) | (middle.inside & (middle.sign != a.sign[i]))
            found[crossed] = TYPE_2
        if self._follows:
            found[middle.inside & _jumps(a.poses[i], middle.poses, b.poses[j])] = JUMP
        return found.astype(np.int32)

    def _least(self, a: Array, b: Array, which: int) -> Array:
        """Least margins (n,) on the lines from `a` to `b`, by golden section search."""
        ratio = 0.5 * (np.sqrt(5.0) - 1.0)
        low, high = np.zeros(len(a)), np.ones(len(a))
        domain, robot = self.membership.domain, self.membership.robot
        number = (HOLD, REGULARITY)[which]

        def at(t: Array) -> Array:
            poses, _ = domain.poses(a + t[:, None] * (b - a))
            reach, values = robot.numbers(poses, (REACH, number))
            return np.where(reach >= 0.0, np.nan_to_num(values), np.inf)

        inner, outer = high - ratio * (high - low), low + ratio * (high - low)
        one, two = at(inner), at(outer)
        for _ in range(ROUNDS):
            left = one < two
            low, high = np.where(left, low, inner), np.where(left, outer, high)
            fresh = np.where(left, high - ratio * (high - low), low + ratio * (high - low))
            values = at(fresh)
            inner, outer = np.where(left, fresh, outer), np.where(left, inner, fresh)
            one, two = np.where(left, values, two), np.where(left, one, values)
        return np.minimum(one, two)

    def what(self, code: int) -> str:
        """What separates two points, in words."""
        return BETWEEN[code] if code in BETWEEN else self.membership.stop(code).text


def _jumps(a: Array, middle: Array, b: Array) -> NDArray[np.bool_]:
    """Whether intermediate poses (n, 7) are off a smooth way from those before to those after."""
    ends = []
    for end in (a, b):
        side = np.where((end * middle)[:, 3:].sum(axis=1) < 0.0, -1.0, 1.0)  # q and -q are the same rotation
        ends.append(np.hstack([end[:, :3], side[:, None] * end[:, 3:]]))
    a, b = ends
    return np.asarray(np.linalg.norm(middle - 0.5 * (a + b), axis=1) > BEND * np.linalg.norm(b - a, axis=1))
