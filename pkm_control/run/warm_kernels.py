# SPDX-License-Identifier: Apache-2.0
"""Compile every kernel once, so that numba's cache holds it and the first call of a node is as quick as the next."""

from __future__ import annotations

import sys
import time

import numpy as np

from pkm_control.controllers.controller import Reference
from pkm_control.controllers.law_settings import LAWS
from pkm_control.motion.default_motion import motion_named
from pkm_control.motion.shipped import AUTO
from pkm_control.run.main_job import Robot, plan_cycle
from pkm_control.run.prepare import exercise, rehearse_controller
from pkm_description import load_mechanism


def warm_kernels(robot: str = "delta") -> float:
    """Call every compiled path of the library on one robot; return the seconds that it took."""
    started = time.perf_counter()
    running = Robot(load_mechanism(robot))
    kinematics, dynamics = running.kinematics, running.dynamics
    pose = np.asarray(kinematics.home)
    for poses in (pose, np.tile(pose, (8, 1))):
        twist = np.zeros((*poses.shape[:-1], 6))
        solution = kinematics.inverse(poses)
        kinematics.forward(solution.actuated, near=poses)
        kinematics.motion(poses, twist, twist)
        effort = dynamics.inverse(poses, twist, twist).effort
        dynamics.direct(poses, twist, effort)
    solution = kinematics.inverse(pose)
    kinematics.inverse_all(pose)
    kinematics.forward_all(solution.actuated)
    kinematics.platform_twist(pose, np.zeros(len(kinematics.actuated_names)))
    trajectory = plan_cycle(running.planner, motion_named(AUTO, kinematics)).cycle
    running.start()
    sample = trajectory.sampled(running.rate)
    for k in range(3):
        reference = Reference(sample.pose[k], sample.twist[k], sample.acceleration[k])
        running.period(k / running.rate, reference, 1.0 / running.rate)
    exercise(dynamics)
    rehearse_controller(dynamics, LAWS[0])
    return time.perf_counter() - started


if __name__ == "__main__":
    print(f"kernels compiled in {warm_kernels(*sys.argv[1:2]):.1f} s")
