# SPDX-License-Identifier: Apache-2.0
"""Solids near a simulated platform, and the points of its tool that touch them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pkm_description.mechanism import Array
from pkm_description.rotations import transform_from_pose
from pkm_hardware.platform_kernels import COLUMNS, POINT, contact_wrench, penetration

STEP = 2.5e-4  # s: the longest integration step of a machine that may touch something
CONTACT_STIFFNESS = 2.0e4  # N/m
TOUCHING = 1e-3  # m: deeper in a solid nothing begins
SEED = 0  # of the noise: the same each time
_RINGS, _AROUND = 6, 12  # points of a peg


class Touch(NamedTuple):
    """Surroundings for kernels: solids (m, COLUMNS), and points (n, 3) of the platform in its frame."""

    solids: Array
    points: Array


NOTHING = Touch(np.zeros((0, COLUMNS)), np.zeros((0, 3)))


@dataclass(frozen=True)
class Hole:
    """A bore into a plane, along its normal: centre of its mouth (base frame) [m], radius and depth [m]."""

    mouth: tuple[float, float, float]
    radius: float
    depth: float = math.inf


@dataclass(frozen=True)
class Plane:
    """A half-space: a point of its surface and the outward normal, base frame.

    `stiffness` [N/m] and `damping` [s/m] are those of one touching point: k p (1 + d p') with the penetration p.
    `friction` is Coulomb's coefficient, in full from the sliding speed `creep` [m/s] on.
    """

    point: tuple[float, float, float]
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    stiffness: float = CONTACT_STIFFNESS
    damping: float = 10.0
    friction: float = 0.2
    creep: float = 5e-3
    hole: Hole | None = None

    def row(self) -> Array:
        """The row (COLUMNS,) of `pkm_hardware/platform_kernels.py`; ValueError where a number makes no sense."""
        normal = np.asarray(self.normal, dtype=np.float64)
        length = float(np.linalg.norm(normal))
        if not (np.isfinite(length) and length > 0.0 and np.isfinite(self.point).all()):
            raise ValueError(f"a plane at {self.point} with the normal {self.normal}; give a point and a direction")
        for name in ("stiffness", "damping", "friction", "creep"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise ValueError(f"{name} is {value}; give zero or more")
        if self.stiffness == 0.0 or self.creep == 0.0:
            raise ValueError("stiffness and creep of a plane are greater than zero")
        row = np.zeros(COLUMNS)
        row[:6] = (*self.point, *(normal / length))
        hole = self.hole
        if hole is not None:
            if not (hole.radius > 0.0 and hole.depth > 0.0):
                raise ValueError(f"a hole of radius {hole.radius} m and depth {hole.depth} m; both are above zero")
            row[6:11] = (*hole.mouth, hole.radius, hole.depth)
        row[11:] = self.stiffness, self.damping, self.friction, self.creep
        return row


class Surroundings:
    """What a simulated machine may touch, and its force-torque sensor; ValueError: a number makes no sense.

    Args:
        points: of the platform that may touch the solids (n, 3), in its frame [m]; its origin by default.
        noise: standard deviation of the sensor's forces [N]; of its torques a tenth of that in N m.
        sensor: its frame on the platform: rotation (3, 3) and origin (3,) [m]; the platform's frame where None.
    """

    def __init__(
        self,
        planes: Sequence[Plane] = (),
        points: ArrayLike = ((0.0, 0.0, 0.0),),
        noise: float = 0.0,
        sensor: tuple[Array, Array] | None = None,
    ) -> None:
        points = np.ascontiguousarray(points, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 3 or not np.isfinite(points).all():
            raise ValueError(f"points have shape {points.shape}; give (n, 3) finite numbers")
        if not (math.isfinite(noise) and noise >= 0.0):
            raise ValueError(f"noise is {noise} N; give zero or more")
        solids = np.array([plane.row() for plane in planes]).reshape(len(planes), COLUMNS)
        self.touch = Touch(solids, points)
        self._noise = noise * np.array([1.0, 1.0, 1.0, 0.1, 0.1, 0.1])
        self._rotation, self._place = sensor or (np.eye(3), np.zeros(3))
        self._random = np.random.default_rng(SEED)

    def problem(self, pose: Array) -> str:
        """Why a machine cannot begin at a pose (7,): which point is how deep in which solid, or empty."""
        at = transform_from_pose(pose)
        for k, point in enumerate(self.touch.points):
            x, y, z = at[:3, :3] @ point + at[:3, 3]
            for solid in self.touch.solids:
                deep = float(penetration(solid, x, y, z)[0])
                if deep > TOUCHING:
                    through = ", ".join(f"{value:g}" for value in solid[POINT : POINT + 3])
                    return (
                        f"point {k} of the platform is {1e3 * deep:.1f} mm inside the plane through ({through}): "
                        "move the plane away from there, or turn its normal"
                    )
        return ""

    def read(self, wrench: Array) -> Array:
        """The noisy reading (6,), in the sensor's frame, of a wrench (6,) on the platform, in its frame [N, N m]."""
        force, torque = wrench.reshape(2, 3)
        wrench = (np.array([force, torque - np.cross(self._place, force)]) @ self._rotation).ravel()
        if not self._noise.any():
            return wrench
        return wrench + self._noise * self._random.standard_normal(6)


def peg(radius: float, length: float, tip: Sequence[float], axis: Sequence[float] = (0.0, 0.0, -1.0)) -> Array:
    """Contact points (n, 3) on a cylinder, platform frame [m]: rings along its side, the last about its end. `radius`
    and `length` of the side [m], `tip`: middle of the end [m], `axis`: its direction; ValueError: makes no sense.
    """
    along = np.asarray(axis, dtype=np.float64)
    if not (radius > 0.0 and length >= 0.0 and np.linalg.norm(along) > 0.0):
        raise ValueError(f"a peg of radius {radius} m, length {length} m along {tuple(axis)}")
    along = along / np.linalg.norm(along)
    side = np.cross(along, np.eye(3)[int(np.argmin(np.abs(along)))])
    side /= np.linalg.norm(side)
    angles = 2.0 * np.pi * np.arange(_AROUND) / _AROUND
    ring = radius * (np.cos(angles)[:, None] * side + np.sin(angles)[:, None] * np.cross(along, side))
    levels = np.linspace(0.0, length, _RINGS if length > 0.0 else 1)
    return np.concatenate([np.asarray(tip, dtype=np.float64) - level * along + ring for level in levels])


def touched(touch: Touch, pose: Array, twist: Array, wrench: Array) -> Array:
    """Contact wrench on a platform, for integrators that are not compiled as a whole; `pose` (7,), `twist` (6,), base
    frame. `wrench` (6,) is overwritten and returned: force [N] and torque about the platform's origin [N m], base axes.
    """
    if len(touch.solids):
        contact_wrench(touch.solids, touch.points, np.concatenate([pose, twist]), wrench)
    return wrench
