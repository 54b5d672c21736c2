# SPDX-License-Identifier: Apache-2.0
"""The efforts that hold a robot at rest, as its actuators can give them, and what a payload adds to a motion's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_control.kernels.payload import write_wrenches
from pkm_control.motion.limits import ActuatorLimits
from pkm_description.mechanism import Inertial
from pkm_dynamics import Distribution, Dynamics

Array = NDArray[np.float64]


def holding_efforts(
    dynamics: Dynamics,
    limits: ActuatorLimits,
    pose: Array,
    mode: int | None = None,
    payload: Inertial | None = None,
) -> Array:
    """Efforts that carry the weight at a pose; cables only pull for it.

    Args:
        dynamics: of the robot.
        limits: of its actuators.
        pose: of the platform (7,), base frame.
        mode: number of the working mode; what continues home where None.
        payload: what the platform carries, in its frame.

    Returns:
        (n_actuated,) [N m or N]; NaN where nothing within the bounds of one-sided actuators does it.
    """
    still = np.zeros(6)
    answer = dynamics.inverse(pose, still, still, payload=payload, mode=mode, distribution=pulling(limits))
    return np.asarray(answer.effort, dtype=np.float64)


def pulling(limits: ActuatorLimits, reserve: float = 0.0) -> Distribution | None:
    """How efforts are shared that are planned or judged: within the bounds where some actuators are one-sided.

    Args:
        limits: of the actuators.
        reserve: part of the stronger side that is left to the controller.

    Returns:
        The distribution; None where actuators push and pull, whose largest efforts are judged apart.
    """
    return Distribution(bounds=limits.bounds(reserve)) if limits.one_sided else None


def payload_wrench(payload: Inertial, gravity: Array, pose: Array, twist: Array, acceleration: Array) -> Array:
    """What a body that is fixed on the platform does to it.

    With it as the outer wrench, inverse dynamics of the robot alone are those of the robot with the body. So what is
    carried may change from one period to the next without another model.

    Args:
        payload: the body, in the platform's frame.
        gravity: (3,) [m/s^2], base frame.
        pose: of the platform (n, 7), base frame.
        twist: (n, 6) [m/s, rad/s].
        acceleration: (n, 6) [m/s^2, rad/s^2].

    Returns:
        Wrench (n, 6) on the platform, about its origin, base axes [N, N m].
    """
    body = np.concatenate(((payload.mass,), payload.com, payload.inertia.ravel(), gravity))
    found = np.empty((len(pose), 6))
    write_wrenches(body, np.concatenate((pose, twist, acceleration), axis=1), np.empty((3, 3)), found)
    return found


@dataclass(frozen=True, eq=False)
class Carried:
    """What the platform carries at each of many samples: payloads in its frame (None: nothing), and `which` (n,)."""

    payloads: tuple[Inertial | None, ...]
    which: NDArray[np.int64]

    @staticmethod
    def always(payload: Inertial | None, n: int) -> Carried:
        """The same at n samples.

        Args:
            payload: what is carried.
            n: how many.

        Returns:
            It.
        """
        return Carried((payload,), np.zeros(n, dtype=np.int64))

    def __getitem__(self, part: slice | NDArray[np.int64]) -> Carried:
        """Return some of the samples."""
        return Carried(self.payloads, self.which[part])

    def wrench(self, gravity: Array, pose: Array, twist: Array, acceleration: Array) -> Array | None:
        """What it does to the platform in a motion.

        Args:
            gravity: (3,) [m/s^2], base frame.
            pose: of the platform (n, 7), base frame.
            twist: (n, 6) [m/s, rad/s].
            acceleration: (n, 6) [m/s^2, rad/s^2].

        Returns:
            Wrench (n, 6) about its origin, base axes [N, N m]; None where nothing is carried at all.
        """
        found: Array | None = None
        for number in np.unique(self.which):
            payload = self.payloads[int(number)]
            if payload is not None:
                found = np.zeros((len(pose), 6)) if found is None else found
                at = self.which == number
                found[at] = payload_wrench(payload, gravity, pose[at], twist[at], acceleration[at])
        return found


def together(one: Inertial | None, other: Inertial | None) -> Inertial | None:
    """Two bodies that are fixed on each other, as one.

    Args:
        one: a body; none where None.
        other: another, in the same frame.

    Returns:
        Both, with the centre of mass of both.
    """
    if one is None or other is None:
        return one or other
    mass = one.mass + other.mass
    com = (one.mass * one.com + other.mass * other.com) / mass if mass > 0.0 else np.zeros(3)
    inertia = np.zeros((3, 3))
    for body in (one, other):
        arm = body.com - com
        inertia += body.inertia + body.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return Inertial(mass, com, inertia)
