# SPDX-License-Identifier: Apache-2.0
"""Dynamics of one robot as straight-line code: several times as fast as the kernels that it is recorded from.

For robots whose limbs are all solved in closed form, in a motion space that does not turn with the pose. The code is
recorded at home, and takes motions (25,) as the kernels do. Where a motion would take another branch than home (a limb
that does not reach, a singularity), it has no result, and the kernel must be asked. What never changes inside the
motion space, such as the orientation of a Delta's platform, is a constant in it.
"""

from __future__ import annotations

import numpy as np

from pkm_dynamics.kernels.direct_dynamics import direct_dynamics
from pkm_dynamics.kernels.inverse_dynamics import conditioned_inverse_dynamics
from pkm_dynamics.robot_model import RobotModel
from pkm_kinematics.codegen import Recording, Tape, free_inputs, loose, pose_inputs, rate_inputs, recorded
from pkm_kinematics.kernels.position.positions import CONVERGED

POSE, TWIST, ACCELERATION, WRENCH = 0, 7, 13, 19  # where they begin in a motion (25,)


def record_inverse(robot: RobotModel, branch: int) -> Recording | None:
    """Efforts (n_actuated,) and the reciprocal condition of the drives' Jacobian from a motion (25,); None without."""
    kinematics = robot.kinematics
    if not kinematics.straight:
        return None
    tape, S = Tape(), kinematics.task.subspace
    motion = [pose_inputs(tape, 0, kinematics.home, S)]
    motion += [rate_inputs(tape, 0, TWIST, S), rate_inputs(tape, 0, ACCELERATION, S), free_inputs(tape, 0, WRENCH, 6)]
    effort = np.zeros(len(kinematics.actuated_names), dtype=object)
    fixed = loose(robot.model()), loose(kinematics.engine.data())
    status, condition = recorded(conditioned_inverse_dynamics)(*fixed, branch, np.concatenate(motion), effort)
    return Recording(tape, 1, (*effort, condition)) if status == CONVERGED else None


def record_direct(robot: RobotModel, branch: int) -> Recording | None:
    """Platform acceleration (6,) from a motion (25,) and efforts (n_actuated,); None as in `record_inverse`."""
    kinematics = robot.kinematics
    if not kinematics.straight:
        return None
    tape, S = Tape(), kinematics.task.subspace
    motion = [pose_inputs(tape, 0, kinematics.home, S), rate_inputs(tape, 0, TWIST, S)]
    motion += [np.zeros(6), free_inputs(tape, 0, WRENCH, 6)]
    effort = free_inputs(tape, 1, 0, len(kinematics.actuated_names))
    out = np.zeros(6, dtype=object)
    fixed = loose(robot.model()), loose(kinematics.engine.data())
    status = recorded(direct_dynamics)(*fixed, branch, np.concatenate(motion), effort, out)
    return Recording(tape, 2, tuple(out)) if status == CONVERGED else None
