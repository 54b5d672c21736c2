# SPDX-License-Identifier: Apache-2.0
"""Efforts of drives that only pull by a fixed rule are those of the iteration, recorded once for all loads."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_dynamics.kernels.sharing import SHARED, nearest_within
from pkm_dynamics.outlets.recorded_functions import shared
from pkm_runtime.codegen import Recording, Tape
from pkm_runtime.codegen.machine_code import VectorCode

N = 4000


@pytest.mark.parametrize(("m", "spare"), [(2, 1), (4, 1), (4, 2), (8, 2)])
@pytest.mark.parametrize("upper", [np.inf, 30.0])
def test_efforts_are_those_of_the_iteration(m: int, spare: int, upper: float) -> None:
    rng = np.random.default_rng(m + spare)
    low, high = np.full(m, 1.0), np.full(m, upper)
    null = np.linalg.qr(rng.normal(size=(N, m, m)))[0][:, :, :spare]
    effort = rng.normal(size=(N, m)) * 8.0
    effort -= np.einsum("nik,njk,nj->ni", null, null, effort)  # of least norm
    given = np.concatenate([effort, null.reshape(N, -1)], axis=1)
    tape = Tape()
    numbers = tape.inputs(0, given[0], range(given.shape[1]))
    results = shared(list(numbers[:m]), numbers[m:].reshape(m, spare), low, high)
    code, out = VectorCode(Recording(tape, 1, tuple(results))), np.empty((m + 1, N))
    code(np.ascontiguousarray(given.T[list(code.inputs)]), out)
    wanted, some = np.full((N, m), np.nan), np.zeros(N, dtype=bool)
    for k in range(N):
        z = np.zeros(spare)
        some[k] = (
            nearest_within(null[k].copy(), effort[k].copy(), low, high, z, np.zeros((spare + 6, spare + 1))) == SHARED
        )
        wanted[k] = effort[k] + null[k] @ z
    assert 0.01 < some.mean() < 0.99
    np.testing.assert_array_equal(out[-1] == 1.0, some)
    np.testing.assert_allclose(out[:-1].T[some], wanted[some], rtol=0.0, atol=1e-9 * np.abs(wanted[some]).max())
