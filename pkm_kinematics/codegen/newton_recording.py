# SPDX-License-Identifier: Apache-2.0
"""A step of Newton's method for the forward kinematics of one robot as straight-line code."""

from __future__ import annotations

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.codegen.at_home import pose_inputs
from pkm_kinematics.kernels.model_and_data import Data, Model
from pkm_kinematics.kernels.path.newton import RESULTS, newton_step
from pkm_kinematics.kernels.position.positions import CONVERGED
from pkm_runtime.codegen.record_kernel import loose, trace
from pkm_runtime.codegen.tape import Recording, Tape


def record_newton_step(model: Model, data: Data, home: Array, actuated: Array) -> Recording | None:
    """`newton_step` recorded at home (pose, `data` and q there); None where singular or redundantly actuated."""
    m = len(actuated)
    if m != model.subspace.shape[1]:
        return None
    tape = Tape()
    start = tape.inputs(0, actuated, range(m))
    pose = pose_inputs(tape, 1, home, model.subspace, float(model.task[0].size))
    q = tape.inputs(2, actuated, range(m))
    out = np.zeros(RESULTS, dtype=object)
    status = trace(newton_step)(loose(model), loose(data), start, q, pose, out)
    return Recording(tape, 3, tuple(out)) if status == CONVERGED else None
