# SPDX-License-Identifier: Apache-2.0
"""A linkage in a control loop: one state after the other, each found from the last, arrays in and out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.position.positions import CONVERGED
from pkm_kinematics.linkage.linkage import CORRECTIONS, FOLDED, LOST, SOLVED, Linkage
from pkm_kinematics.linkage.recorded_linkage import record_lean, state_at
from pkm_kinematics.status import Status
from pkm_runtime.codegen.call_code import call_code
from pkm_runtime.codegen.machine_code import MachineCode
from pkm_runtime.kernels.binding import bind
from pkm_runtime.kernels.compiled import compiled

FOLDS, FAR = int(Status.SINGULAR), int(Status.NOT_CONNECTED)


@compiled
def to_outputs(code, states, kept, inputs, results, q, effort, position, output_effort):
    """Positions (m,) and efforts (m,) of outputs for positions (n,) and efforts (n,) of the inputs; a status.

    `inputs`, `results` and `kept` (states,) are scratch; they hold where the linkage was, and stay where it is lost.
    """
    n, m = q.shape[0], position.shape[0]
    for k in range(n):
        inputs[k] = q[k]
        inputs[n + states + k] = effort[k]
    for k in range(states):
        kept[k] = inputs[n + k]
    status = FAR
    for _ in range(CORRECTIONS):
        if call_code(code, inputs, results) != CONVERGED or not results[states] < LOST:
            break
        for k in range(states):
            inputs[n + k] = results[k]
        if results[states] < SOLVED:
            status = CONVERGED if results[states + 1] > FOLDED else FOLDS
            break
    if status == FAR:
        for k in range(states):
            inputs[n + k] = kept[k]
        return status
    for k in range(m):
        position[k] = results[states + 2 + k]
        output_effort[k] = results[states + 2 + m + k]
    return status


def lean_outputs(linkage: Linkage, outputs: Sequence[str]) -> Callable[[Array, Array, Array, Array], int]:
    """`call(q, effort, position, output_effort)`, see `to_outputs`; the first call starts at home."""
    system = linkage.system
    recording, names = record_lean(system, outputs)
    code, n, m = MachineCode(recording), len(system.inputs), len(outputs)
    states = 2 * len(names)
    inputs = np.concatenate([[system.home[k] for k in system.inputs], state_at(system, system.home, names), np.zeros(n)])
    fixed = (code.address, states, np.empty(states), inputs, np.empty(states + 2 + 2 * m))
    call = bind(to_outputs, fixed, (inputs[:n].copy(), np.zeros(n), np.zeros(m), np.zeros(m)))
    call.__dict__["code"] = code  # kept alive with the call
    return call
