# SPDX-License-Identifier: Apache-2.0
"""The task of a platform in contact, in a task frame that is fixed in the base frame."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pkm_control.controllers.controller import Measured
from pkm_description.mechanism import Array
from pkm_description.rotations import rotation_from_quaternion

AXES = ("x", "y", "z", "rx", "ry", "rz")
STIFFNESS = 2000.0  # N/m
CONTACT_STIFFNESS = 2.0e4  # N/m: of what is touched, the sensor and the tool together


@dataclass(frozen=True, eq=False)
class ForceTask:
    """Numbers of the force laws. Wrenches: force [N], then torque about the platform's origin [N m].

    `rotation` (3, 3) takes vectors of the task frame to the base frame. `stiffness` (6,) is along and about its axes
    [N/m, N m/rad]; rotations count at the robot's characteristic length where they are NaN. `contact_stiffness` is that
    of the stiffest contact to come [N/m]. `wrench` (6,) is what the platform shall exert along the axes that are
    `selected` (6,), in the task frame. `sensor_rotation` (3, 3) and `sensor_place` (3,) give the sensor's frame on the
    platform.
    """

    rotation: Array
    stiffness: Array
    contact_stiffness: float
    selected: NDArray[np.bool_]
    wrench: Array
    sensor_rotation: Array
    sensor_place: Array

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        for name in ("rotation", "sensor_rotation"):
            rotation = getattr(self, name)
            if not (np.shape(rotation) == (3, 3) and np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-6)):
                raise ValueError(f"{name} of a force task is not a rotation matrix")
        known = self.stiffness[~np.isnan(self.stiffness)]
        if not (np.isfinite(known) & (known >= 0.0)).all() or np.isnan(self.stiffness[:3]).any():
            raise ValueError(f"stiffness is {self.stiffness}; give zero or more")
        if not (math.isfinite(self.contact_stiffness) and self.contact_stiffness > 0.0):
            raise ValueError(f"contact_stiffness is {self.contact_stiffness} N/m; give more than zero")
        if not np.isfinite(self.wrench).all():
            raise ValueError(f"the wanted wrench is not finite: {self.wrench}")

    @staticmethod
    def usual() -> ForceTask:
        """The default task: task frame as the base frame, no axis selected, the sensor in the platform's frame."""
        stiffness = np.array([STIFFNESS] * 3 + [np.nan] * 3)
        none = np.zeros(6, dtype=bool)
        return ForceTask(np.eye(3), stiffness, CONTACT_STIFFNESS, none, np.zeros(6), np.eye(3), np.zeros(3))

    @property
    def axes(self) -> Array:
        """Unit motions (6, 6) along and about the axes of the task frame, base axes, in columns."""
        return np.asarray(np.kron(np.eye(2), self.rotation))

    @property
    def pressed(self) -> Array:
        """Columns (6, k) of `axes` for the selected axes."""
        return self.axes[:, self.selected]

    def stiffness_matrix(self, length: float) -> Array:
        """Stiffness (6, 6) in base axes [N/m, N m/rad]; rotations without one of their own count at a length [m]."""
        usual = np.repeat(np.mean(self.stiffness[:3]) * length**2, 6)
        axes = self.axes
        return np.asarray(axes @ np.diag(np.where(np.isnan(self.stiffness), usual, self.stiffness)) @ axes.T)

    def felt(self, measured: Measured, reading: Array) -> Measured:
        """Add a sensor reading of the same instant: wrench (6,) on the platform, sensor frame."""
        turned = rotation_from_quaternion(measured.pose[3:])
        force, torque = reading.reshape(2, 3) @ (turned @ self.sensor_rotation).T
        torque = torque + np.cross(turned @ self.sensor_place, force)
        return replace(measured, wrench=np.concatenate([force, torque]))
