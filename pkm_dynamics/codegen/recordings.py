# SPDX-License-Identifier: Apache-2.0
"""Dynamics of one robot as straight-line code, several times as fast as the kernels that it is recorded from.

For robots with a constant motion space and all limbs in closed form. The code is recorded at home and takes motions
(25,) as the kernels do; where a motion takes another branch than home (limb out of reach, singularity) it has no result
and the kernel is called. Constants of the motion space, such as a Delta's orientation, are constants of the code.
"""

from __future__ import annotations

import numpy as np

from pkm_dynamics.kernels.direct_dynamics import direct_dynamics
from pkm_dynamics.kernels.inverse_dynamics import conditioned_inverse_dynamics
from pkm_dynamics.robot_model import RobotModel
from pkm_kinematics.codegen import free_inputs, pose_inputs, rate_inputs
from pkm_kinematics.kernels.position.positions import CONVERGED
from pkm_runtime.codegen import Recording, Tape, loose, trace

POSE, TWIST, ACCELERATION, WRENCH = 0, 7, 13, 19  # where they begin in a motion (25,)


def record_inverse(robot: RobotModel, branch: int) -> Recording | None:
    """Efforts (n_actuated,) and reciprocal condition of the drives' Jacobian from a motion (25,); None without code."""
    kinematics = robot.kinematics
    if not kinematics.straight:
        return None
    tape, S = Tape(), kinematics.task.subspace
    motion = [pose_inputs(tape, 0, kinematics.home, S, kinematics.engine.size)]
    motion += [rate_inputs(tape, 0, TWIST, S), rate_inputs(tape, 0, ACCELERATION, S), free_inputs(tape, 0, WRENCH, 6)]
    effort = np.zeros(len(kinematics.actuated_names), dtype=object)
    fixed = loose(robot.model()), loose(kinematics.engine.data())
    status, condition = trace(conditioned_inverse_dynamics)(*fixed, branch, np.concatenate(motion), effort)
    return Recording(tape, 1, (*effort, condition)) if status == CONVERGED else None


def record_direct(robot: RobotModel, branch: int) -> Recording | None:
    """Platform acceleration (6,) from a motion (25,) and efforts (n_actuated,); None without code."""
    kinematics = robot.kinematics
    if not kinematics.straight:
        return None
    tape, S = Tape(), kinematics.task.subspace
    motion = [pose_inputs(tape, 0, kinematics.home, S, kinematics.engine.size), rate_inputs(tape, 0, TWIST, S)]
    motion += [np.zeros(6), free_inputs(tape, 0, WRENCH, 6)]
    effort = free_inputs(tape, 1, 0, len(kinematics.actuated_names))
    out = np.zeros(6, dtype=object)
    fixed = loose(robot.model()), loose(kinematics.engine.data())
    status = trace(direct_dynamics)(*fixed, branch, np.concatenate(motion), effort, out)
    return Recording(tape, 2, tuple(out)) if status == CONVERGED else None
