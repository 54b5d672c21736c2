# SPDX-License-Identifier: Apache-2.0
"""Straight-line code of a robot's limbs: four poses in each instruction."""

from __future__ import annotations

import numpy as np

from pkm_analysis.evaluation.twist_frame import TwistFrame
from pkm_analysis.kernels.pose_quantities import WIDTH, pose_quantities
from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics
from pkm_kinematics.codegen import Recording, Tape, loose, pose_inputs, recorded
from pkm_kinematics.codegen.vector_code import VectorCode
from pkm_kinematics.kernels.model_and_data import Model
from pkm_kinematics.kernels.position.solve_poses import take_seed
from pkm_kinematics.kernels.records import PLATFORM

SCRATCH = (8, 14, 14)  # of `pose_quantities`


def straight_quantities(
    kinematics: Kinematics, model: Model, branch: int, seed: Array, frame: TwistFrame, wanted: tuple[int, ...]
) -> VectorCode | None:
    """Code for numbers `wanted`, as of `PoseEvaluator`, over columns of poses, for a `straight` robot.

    The model has the frame as its subspace; `seed` (n_joints,) are joint positions at home in that branch of the closed
    forms. None where home has no regular configuration to record at.
    """
    tape, data = Tape(), kinematics.engine.data()
    take_seed(model, data, np.array(seed))
    pose = pose_inputs(tape, 0, kinematics.home, kinematics.task.subspace)
    out = np.zeros(WIDTH, dtype=object)
    freedoms = frame.freedoms if any(3 < k < WIDTH for k in wanted) else 0
    held = loose(data)
    try:
        recorded(pose_quantities)(
            loose(model), held, branch, freedoms, frame.ranks, pose, np.zeros(SCRATCH, dtype=object), out
        )
    except (ZeroDivisionError, ValueError):  # singular at home: numbers, not terms, divided by zero
        return None
    joints = dict(zip(kinematics.engine.body_column[2:], held.state[PLATFORM + 1 :], strict=True))
    results = tuple(out[k] if k < WIDTH else joints[k - WIDTH].q for k in wanted)
    return VectorCode(Recording(tape, 1, results))
