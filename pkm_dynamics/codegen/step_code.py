# SPDX-License-Identifier: Apache-2.0
"""Calls of straight-line code (see `recordings`); they return ANOTHER_BRANCH where it has no result."""

import numpy as np

from pkm_dynamics.kernels.integration_step import advance
from pkm_kinematics.kernels.position.positions import CONVERGED
from pkm_runtime.codegen.call_code import call_code
from pkm_runtime.kernels.compiled import allocating, compiled

SOLVED = -2  # status of what the kernels need not look at, having passed over all that is not CONVERGED


@compiled
def straight_inverse(code, results, motion, effort):
    """Efforts (m,) for a motion (25,); `results` (m + 1,) is scratch."""
    status = call_code(code, motion, results)
    if status == CONVERGED:
        for a in range(effort.shape[0]):
            effort[a] = results[a]
    return status


@compiled
def straight_direct(code, motion, effort, out):
    """Platform acceleration (6,) for a motion (25,) and efforts (m,)."""
    return call_code(code, motion, effort, out)


@compiled
def straight_step(code, dt, motion, effort, out):
    """Like `semi_implicit_step`, by the code of `straight_direct`."""
    status = call_code(code, motion, effort, out)
    if status == CONVERGED:
        advance(motion, out, dt)
    return status


@allocating
def straight_inverse_many(code, motions, condition, efforts, status):
    """Efforts (k, m) and conditions (k,) for motions (k, 25); status (k,) is SOLVED where the code has a result."""
    m = efforts.shape[1]
    results = np.empty(m + 1)
    for k in range(motions.shape[0]):
        if status[k] == CONVERGED and straight_inverse(code, results, motions[k], efforts[k]) == CONVERGED:
            condition[k] = results[m]
            status[k] = SOLVED


@compiled
def straight_direct_many(code, motions, efforts, out, status):
    """Platform accelerations (k, 6) for motions (k, 25) and efforts (k, m); status as in `straight_inverse_many`."""
    for k in range(motions.shape[0]):
        if status[k] == CONVERGED and call_code(code, motions[k], efforts[k], out[k]) == CONVERGED:
            status[k] = SOLVED
