# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics by Newton's method whose steps are straight-line code."""

from math import inf

from pkm_kinematics.kernels.call_code import ANOTHER_BRANCH, call_code
from pkm_kinematics.kernels.compiled import compiled
from pkm_kinematics.kernels.forward import ITERATIONS, LAST_STEP
from pkm_kinematics.kernels.positions import CONVERGED


@compiled
def straight_track(code, at, out, q, pose):
    """`forward_newton` by straight-line code of `newton_step`; `at` (7,) and `out` (10,) are scratch.

    Returns the same, or a status of ANOTHER_BRANCH where it would not go the straight way, with `pose` left alone.
    """
    for k in range(7):
        at[k] = pose[k]
    step = before = inf
    for iteration in range(ITERATIONS):
        if call_code(code, q, at, out) != CONVERGED:
            break
        if step < LAST_STEP:
            for k in range(7):
                pose[k] = at[k]
            return CONVERGED, out[8], iteration
        if not out[7] < before:
            break
        before = out[7]
        step = out[9]
        for k in range(7):
            at[k] = out[k]
    return ANOTHER_BRANCH, 0.0, 0
