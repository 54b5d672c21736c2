# SPDX-License-Identifier: Apache-2.0
"""Warm-up: all requests to a follower, once before time matters."""

from __future__ import annotations

import math

import numpy as np

from pkm_control.loop.follower import TrajectoryFollower
from pkm_control.loop.motion import Motion
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_description.mechanism import Inertial
from pkm_dynamics.actuator_dynamics import ActuatorDynamics
from pkm_kinematics import Kinematics


def rehearse(follower: TrajectoryFollower, kinematics: Kinematics) -> None:
    """Warm up a follower that serves nothing else, at home and at rest, with a controller and a guard of its own.
    What is compiled, loaded or imported with the first call is so before time matters.
    """
    home, still = np.tile(kinematics.home, (2, 1)), np.zeros((2, 6))
    positions = np.asarray(kinematics.inverse(home).actuated[0], dtype=np.float64)
    rates = np.zeros_like(positions)
    follower.force.hear(np.zeros(6), math.inf)  # as long as it lasts
    follower.update(0.0, 0.0, positions, rates)
    motion = Motion(PointTrajectory(np.array((0.0, 0.1)), home, still, still), 0.0)
    follower.check.refusal(motion.trajectory)
    follower.check.braking(motion.trajectory)
    follower.follow(motion)
    follower.effects.on_payload(Inertial(1e-9))
    for time in np.arange(0.0, 0.2, 0.01):
        follower.update(float(time), float(time), positions, rates)
    follower.effects.on_payload(None)
    kinematics.nearest(home[0])  # what poses that cannot be reached take
    for time in np.arange(0.2, 0.3, 0.01):
        follower.steer(np.full(6, 1e-6), float(time))
        follower.update(float(time), float(time), positions, rates)
    if len(positions) == kinematics.mobility and kinematics.constant_space:
        ActuatorDynamics(follower.controller.dynamics).forward_jacobian()  # what a change of the working mode takes
    follower.silent(0.3 + 2.0 * follower.abort_after)
