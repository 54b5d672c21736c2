# SPDX-License-Identifier: Apache-2.0
"""The limits of a motion: those of the platform, set by the user, and those of the actuators, from the URDF."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import JointType, Mechanism
from pkm_kinematics.kernels.position.solve_poses import LIMIT_SLACK

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PlatformLimits:
    """Largest norms of the platform's motion, at its origin [m, rad, s], infinite: left to the actuators."""

    linear_velocity: float = 10.0
    linear_acceleration: float = 100.0
    linear_jerk: float = 2.0e4
    angular_velocity: float = 20.0
    angular_acceleration: float = 300.0
    angular_jerk: float = 6.0e4

    @staticmethod
    def none() -> PlatformLimits:
        """Infinite limits."""
        return PlatformLimits(*([math.inf] * 6))

    def lowered_by(self, other: PlatformLimits) -> PlatformLimits:
        """The lower of each pair of limits."""
        return PlatformLimits(*(min(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)))


@dataclass(frozen=True, eq=False)
class ActuatorLimits:
    """Bounds of each actuated joint (n_actuated,), in the order of `Mechanism.actuated_joints`, infinite where unset.

    `effort` in N m or N at the joint, behind the gear; `velocity` in rad/s or m/s; `acceleration` in rad/s^2 or m/s^2
    (URDF has no such limit, so it is infinite unless the caller sets it).
    """

    names: tuple[str, ...]
    length_units: tuple[str, ...]  # "rad" or "m" of each
    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    effort: Array
    effort_range: tuple[Array, Array] | None = None  # where a side is weaker, or an actuator pulls or pushes only

    @property
    def least_effort(self) -> Array:
        """Smallest effort of each actuator: minus the largest, unless the description says otherwise."""
        return -self.effort if self.effort_range is None else self.effort_range[0]

    @property
    def most_effort(self) -> Array:
        """Largest effort of each actuator."""
        return self.effort if self.effort_range is None else self.effort_range[1]

    @property
    def one_way(self) -> NDArray[np.bool_]:
        """Which actuators (n_actuated,) cannot both push and pull, such as winches."""
        least, most = self.least_effort, self.most_effort
        return ((least >= 0.0) & (most > 0.0)) | ((most <= 0.0) & (least < 0.0))

    @property
    def one_sided(self) -> bool:
        """Whether any actuator cannot both push and pull."""
        return bool(self.one_way.any())

    @property
    def described_bounds(self) -> str:
        """The bounds of actuators that are not as strong on both sides, in words."""
        sides = zip(self.names, self.least_effort, self.most_effort, self.effort_units, strict=True)
        uneven = [side for side in sides if side[1] != -side[2]]
        name, a, b, unit = uneven[0]
        others = f" and {len(uneven) - 1} more" if len(uneven) > 1 else ""
        return f"{name}{others}: {a:g} to {b:g} {unit}"

    def effort_bound(self, efforts: Array) -> Array:
        """Largest magnitudes on the side of each of some efforts (..., n_actuated)."""
        return np.abs(np.where(efforts < 0.0, self.least_effort, self.most_effort))

    def bounds(self, reserve: float = 0.0) -> tuple[Array, Array]:
        """Least and largest efforts (n_actuated,), less a fraction `reserve` of the stronger side, kept for control."""
        least, most = self.least_effort, self.most_effort
        share = 1.0 - reserve
        return np.where(least < 0.0, share * least, least), np.where(most > 0.0, share * most, most)

    def slack(self, size: float) -> Array:
        """Rounding tolerance (n_actuated,) [rad or m] at the ends of ranges, as in the solvers; robot's size [m]."""
        return LIMIT_SLACK * np.array([size if unit == "m" else 1.0 for unit in self.length_units])

    def first_beyond(self, positions: Array, size: float) -> tuple[int, str] | None:
        """First row of positions (n, n_actuated) outside a range, which a machine file may narrow, and why; or None."""
        over = np.maximum(positions - self.upper, self.lower - positions)
        rows = np.flatnonzero((over > self.slack(size)).any(axis=1))
        if not rows.size:
            return None
        row = int(rows[0])
        k = int(np.argmax(over[row]))
        low, high, unit = self.lower[k], self.upper[k], self.length_units[k]
        value = positions[row, k]
        return row, f"{self.names[k]} would be at {value:.4g} {unit}, its range is {low:.4g} to {high:.4g} {unit}"

    @property
    def effort_units(self) -> tuple[str, ...]:
        """Unit of each actuator's effort."""
        return tuple("N" if unit == "m" else "N m" for unit in self.length_units)

    @staticmethod
    def of(mechanism: Mechanism, acceleration: float = np.inf) -> ActuatorLimits:
        """Limits of the actuated joints in the description; URDF has no acceleration, given here [rad/s^2 or m/s^2]."""
        limits = [mechanism.joint_named[name].limits for name in mechanism.actuated_joints]
        least, most = mechanism.effort_range
        effort = np.maximum(-least, most)  # the stronger side
        bounded = bool((least != -most).any())
        types = [mechanism.joint_named[name].type for name in mechanism.actuated_joints]
        return ActuatorLimits(
            names=tuple(mechanism.actuated_joints),
            length_units=tuple("m" if kind is JointType.PRISMATIC else "rad" for kind in types),
            lower=np.array([limit.lower for limit in limits]),
            upper=np.array([limit.upper for limit in limits]),
            velocity=np.array([limit.velocity for limit in limits]),
            acceleration=np.full(len(limits), acceleration),
            effort=effort,
            effort_range=(least, most) if bounded else None,
        )
