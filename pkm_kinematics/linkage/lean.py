# SPDX-License-Identifier: Apache-2.0
"""A linkage in a control loop: one state after the other, each found from the last, arrays in and out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.path.led_linkage import to_outputs
from pkm_kinematics.linkage.linkage import Linkage
from pkm_kinematics.linkage.recorded_linkage import record_lean, state_at
from pkm_runtime.codegen.machine_code import MachineCode
from pkm_runtime.kernels.binding import bind


def lean_outputs(
    linkage: Linkage, outputs: Sequence[str], start: Array | None = None
) -> Callable[[Array, Array, Array, Array], tuple[int, float]]:
    """`call(q, effort, position, output_effort)`, see `to_outputs`; the first starts at home or `start` (names,)."""
    system = linkage.system
    recording, names = record_lean(system, outputs)
    code, n, m = MachineCode(recording), len(system.inputs), len(outputs)
    states = 2 * len(names)
    at = linkage.home if start is None else start
    positions = system.home | dict(zip(linkage.names, map(float, at), strict=True))
    inputs = np.concatenate([at[:n], state_at(system, positions, names), np.zeros(n)])
    fixed = (code.address, states, np.empty(states), inputs, np.empty(states + 2 + 2 * m))
    call = bind(to_outputs, fixed, (inputs[:n].copy(), np.zeros(n), np.zeros(m), np.zeros(m)))
    vars(call)["code"] = code  # alive as long as the call
    return call
