# SPDX-License-Identifier: Apache-2.0
"""What hybrid control is tried with: a plane beside home, and a motion that presses on it and slides."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pkm_control.controllers.controller import Reference
from pkm_control.controllers.force_task import ForceTask
from pkm_control.loop.platform_locator import PlatformObserver
from pkm_description.mechanism import Array
from pkm_hardware.simulated.surroundings import Plane, Surroundings
from pkm_kinematics import Kinematics

PRESS = 10.0  # N
SLIDE = 0.02  # of the characteristic length, there and back
_GAP = 5e-3  # m, to the plane at home, of a robot of 0.3 m or more; and behind it
_DOWN, _SETTLE, _SIDE = 0.3, 1.5, 0.5  # s: to behind the plane, until the force stands, to one side


@dataclass(frozen=True)
class Pressing:
    """A task, what is touched, and where the platform shall be.

    `normal` (6,) is the direction out of the plane, `straight` (6,) how the platform leaves it by as much, which may
    turn or shift it besides. `references`: one for each period; those from `slides` on slide.
    """

    task: ForceTask
    surroundings: Surroundings
    normal: Array
    straight: Array
    references: tuple[Reference, ...]
    slides: int

    def across(self, error: Array) -> Array:
        """An error (6,) without the way along the normal, where the force is controlled.

        Args:
            error: of position, then of orientation.

        Returns:
            (6,), the same.
        """
        return np.asarray(error - self.straight * (self.normal @ error))


def pressing(kinematics: Kinematics, period: float) -> Pressing:
    """Press with `PRESS` N along the axis along which the robot is freest, then slide there and back.

    Args:
        kinematics: of the robot.
        period: between two references [s].

    Returns:
        What to try. Of a robot that cannot shift its platform the task is one that hybrid control refuses.
    """
    home = kinematics.home
    space = np.asarray(kinematics.subspace(home))
    onto = space @ np.linalg.pinv(space)
    normal = np.eye(6)[max(range(3), key=lambda c: (round(onto[c, c], 6), c))]
    gap = _GAP * min(1.0, kinematics.characteristic_length / 0.3)
    task = replace(ForceTask.usual(), selected=normal > 0.5, wrench=-PRESS * normal)
    solid = Surroundings([Plane(tuple(home[:3] - gap * normal[:3]), tuple(normal[:3]))])
    drives = np.asarray(kinematics.inverse(home).actuated)
    jacobian = kinematics.at(home).inverse_jacobian
    straight = onto @ normal / max(float(normal @ onto @ normal), 1e-9)  # which may turn the platform besides
    down = -2.0 * gap * (jacobian @ straight)
    # the degrees of freedom that are left, all of them at once
    twist = (space - np.outer(straight, normal @ space)).sum(axis=1)
    size = float(np.hypot(np.linalg.norm(twist[:3]) / kinematics.characteristic_length, np.linalg.norm(twist[3:])))
    side = SLIDE / size * (jacobian @ twist) if size > 1e-9 else np.zeros_like(drives)
    times = np.arange(0.0, _DOWN + _SETTLE + 2.0 * _SIDE, period)
    begins = _DOWN + _SETTLE
    there = _smooth((times - begins) / _SIDE) - _smooth((times - begins - _SIDE) / _SIDE)
    positions = drives + np.outer(_smooth(times / _DOWN), down) + np.outer(there, side)
    rates = np.gradient(positions, period, axis=0)
    observer = PlatformObserver(kinematics)
    seen = [observer.observe(q, v) for q, v in zip(positions, rates, strict=True)]
    poses = [one.pose for one in seen if one is not None]
    twists = np.array([one.twist for one in seen if one is not None])
    if len(poses) < len(times):
        raise ValueError(f"the motion that slides leaves the motion space: {observer.reason}")
    accelerations = np.gradient(twists, period, axis=0)
    references = tuple(Reference(*one) for one in zip(poses, twists, accelerations, strict=True))
    return Pressing(task, solid, normal, straight, references, round(begins / period))


def _smooth(shares: Array) -> Array:
    """From 0 to 1, at rest at both ends."""
    x = np.clip(shares, 0.0, 1.0)
    return np.asarray(x**3 * (10.0 - 15.0 * x + 6.0 * x**2))
