# SPDX-License-Identifier: Apache-2.0
"""One robot in one state, ready to be timed by everyone."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from bench.engines.mujoco_model import MujocoRobot
from bench.engines.pinocchio_model import PinocchioRobot
from bench.states import random_states
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_dynamics import Distribution, Dynamics
from pkm_kinematics import Kinematics


class Sample:
    """A robot of the gallery in a random regular state; without friction, which the peers do not have."""

    def __init__(self, name: str, seed: int = 7) -> None:
        self.mechanism = load_mechanism(name)
        self.kinematics = Kinematics(self.mechanism)
        self.dynamics = Dynamics(self.kinematics, friction=False)
        free = len(self.kinematics.task.names) == 6
        self.pinocchio = PinocchioRobot(self.mechanism, free_platform=free)
        states = random_states(self.kinematics, PinocchioRobot(self.mechanism), 1, seed)
        self.pose, self.twist, self.acceleration = states.pose[0], states.twist[0], states.acceleration[0]
        moved = self.kinematics.motion(self.pose, self.twist, self.acceleration)
        self.actuated: Array = np.ascontiguousarray(moved.actuated)
        names = self.kinematics.joint_names
        judge, at = self.pinocchio, (self.pose, self.twist)
        if free:
            self.q = judge.free_coordinates(names, moved.joints, self.pose)
            self.v = judge.free_rates(names, moved.velocities, *at)
            self.vdot = judge.free_accelerations(names, moved.accelerations, *at, self.acceleration)
        else:
            self.q = judge.coordinates(names, moved.joints)
            self.v = judge.coordinates(names, moved.velocities)
            self.vdot = judge.coordinates(names, moved.accelerations)
        self.effort: Array = self.dynamics.inverse(
            self.pose, self.twist, self.acceleration, distribution=Distribution()
        ).effort
        self._moved = moved
        self._free = free

    def motion(self, acceleration: bool) -> Array:
        """Pose, twist, acceleration and wrench as the lean calls take them (25,)."""
        second = self.acceleration if acceleration else np.zeros(6)
        return np.concatenate([self.pose, self.twist, second, np.zeros(6)])

    @cached_property
    def mujoco(self) -> MujocoRobot:
        """MuJoCo's robot in the same state, under the same efforts."""
        robot = MujocoRobot(self.mechanism, free_platform=self._free)
        robot.set_state(self.kinematics.joint_names, self._moved.joints, self._moved.velocities, self.pose, self.twist)
        robot.data.qfrc_applied[robot.actuated] = self.effort
        return robot


def difference(found: Array, expected: Array) -> str:
    """Largest difference over the largest expected value, in words."""
    return f"to {np.abs(found - expected).max() / np.abs(expected).max():.0e}"
