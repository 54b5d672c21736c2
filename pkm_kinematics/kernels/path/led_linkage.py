# SPDX-License-Identifier: Apache-2.0
"""A linkage led from where it was by its recorded steps (see `pkm_kinematics.linkage.recorded_linkage`)."""

from math import nan

from pkm_kinematics.kernels.position.positions import CONVERGED
from pkm_kinematics.kernels.regularity import is_regular
from pkm_kinematics.kernels.short_vectors import all_finite
from pkm_runtime.kernels.binding import call_code
from pkm_runtime.kernels.compiled import compiled

LOST = 1e-2  # a second correction above it, dimensionless: the step was too long
SOLVED = 1e-9  # a last correction below it: the next would be below rounding
CORRECTIONS = 6
FOLDS, INVALID, FAR = 3, 5, 8  # SINGULAR, INVALID_INPUT and NOT_CONNECTED of `pkm_kinematics.status.Status`


@compiled
def to_outputs(code, states, kept, inputs, results, q, effort, position, output_effort):
    """Positions (m,) and efforts (m,) of outputs for positions (n,) and efforts (n,) of the inputs.

    Returns a status and the margin to a fold, which nears zero before one. With any other status than CONVERGED the
    outputs are NaN, and so is the margin where it is not known.

    `inputs`, `results` and `kept` (states,) are scratch; they hold where the linkage was, and stay where it is lost.
    """
    n, m = q.shape[0], position.shape[0]
    for k in range(n):
        inputs[k] = q[k]
        inputs[n + states + k] = effort[k]
    for k in range(states):
        kept[k] = inputs[n + k]
    finite = all_finite(q) and all_finite(effort)
    for k in range(m):
        position[k] = output_effort[k] = nan
    if not finite:
        return INVALID, nan
    status = FAR
    for _ in range(CORRECTIONS):
        if call_code(code, inputs, results) != CONVERGED or not results[states] < LOST:
            break
        for k in range(states):
            inputs[n + k] = results[k]
        if results[states] < SOLVED:
            status = CONVERGED if is_regular(results[states + 1]) else FOLDS
            break
    if status == FAR:
        for k in range(states):
            inputs[n + k] = kept[k]
        return status, nan
    if status == CONVERGED and not all_finite(results[states + 2 : states + 2 + 2 * m]):
        status = INVALID  # efforts so large that they overflow
    if status == CONVERGED:
        for k in range(m):
            position[k] = results[states + 2 + k]
            output_effort[k] = results[states + 2 + m + k]
    return status, results[states + 1]
