# SPDX-License-Identifier: Apache-2.0
"""A step of Newton's method for the forward kinematics of one robot as straight-line code."""

from __future__ import annotations

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.forward import newton_step
from pkm_kinematics.kernels.positions import CONVERGED
from pkm_kinematics.straight_line import Recording, Tape, loose, pose_inputs, recorded
from pkm_kinematics.tables import Tables


def record_newton_step(tables: Tables, subspace: Array, home: Array, actuated: Array) -> Recording | None:
    """`newton_step` from actuated joint positions and a pose (7,), recorded at home; None where home is singular.

    `subspace` (6, n) is the motion space, `home` (7,) and `actuated` (n_actuated,) the pose and joints at home.
    """
    tape, m, n = Tape(), len(actuated), subspace.shape[1]
    q = tape.inputs(0, actuated, range(m))
    pose = pose_inputs(tape, 1, home, subspace)
    scratch = (np.zeros((m, 6)), np.zeros((n, n)), np.zeros(max(m, n)), np.zeros(6))
    first = (tables.bodies, tables.closures, tables.blocks, *tables.workspace(), subspace, *scratch)
    out = np.zeros(10, dtype=object)
    status = recorded(newton_step)(*map(loose, first), q, pose, out)
    return Recording(tape, 2, tuple(out)) if status == CONVERGED else None
