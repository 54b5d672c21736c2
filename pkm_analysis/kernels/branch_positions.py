# SPDX-License-Identifier: Apache-2.0
"""Positions of the platform's branch at many poses."""

from pkm_kinematics.kernels.position.chain import read_chain
from pkm_runtime.kernels.compiled import compiled


@compiled
def branch_positions(model, data, R, p, seeds, out):
    """Positions out (n, k) at rotations R (n, 3, 3) and origins p (n, 3), in the turns nearest to seeds (k,)."""
    state = data.chain
    for row in range(p.shape[0]):
        for i in range(1, state.shape[0]):
            state[i].q = seeds[i - 1]
        read_chain(model, data, R[row], p[row])
        for i in range(1, state.shape[0]):
            out[row, i - 1] = state[i].q
