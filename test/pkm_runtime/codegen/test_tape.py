# SPDX-License-Identifier: Apache-2.0
"""Recorded functions against the functions themselves."""

from __future__ import annotations

import ctypes
from math import atan2, cos, hypot, isfinite, nan, sin, sqrt, tanh

import numpy as np
import pytest

from pkm_kinematics.kernels.regularity import factorise, nearest
from pkm_runtime.codegen import AVAILABLE, MachineCode, Recording, Tape, trace
from pkm_runtime.codegen.tape import call
from pkm_runtime.kernels.binding import ANOTHER_BRANCH
from pkm_runtime.kernels.compiled import compiled, nan_max

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="numba brings an LLVM before 16: no machine code for one robot")
TWO = np.array([0.4, -1.3])


def run(code: MachineCode, x: np.ndarray, n: int) -> tuple[int, np.ndarray]:
    """Answer and results (n,) of code with one input array; results are NaN where it writes none."""
    out = np.full(n, nan)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(code.address)
    return call(x.ctypes.data, out.ctypes.data), out


def code_of(kernel: object, x: np.ndarray, n: int, varying: object = None) -> MachineCode:
    """Code of `kernel(x, out (n,))` recorded at x."""
    tape, out = Tape(), np.zeros(n, dtype=object)
    trace(kernel)(tape.inputs(0, x, range(len(x)) if varying is None else varying), out)
    return MachineCode(Recording(tape, 1, tuple(out)))


def test_what_is_known_of_an_input_is_not_computed_again() -> None:
    x, tape = np.array([0.3, 0.9]), Tape()  # the second stands for the cosine of the first, which it is not
    a, cosine = tape.inputs(0, x, (0, 1))
    tape.know("cos", a, cosine)
    code = MachineCode(Recording(tape, 1, (call("cos", a) + 1.0, call("cos", cosine))))
    np.testing.assert_allclose(run(code, x, 2)[1], [1.9, cos(0.9)], rtol=1e-15)
    assert code.counts["cos"] == 1


@compiled
def everything(x, out):
    a = x[0]
    b = x[1]
    out[0] = (a + 2.0) * (3.0 - b) / (1.0 + a * a) - -b
    out[1] = sqrt(abs(a)) + sin(a) * cos(b) + tanh(a - b)
    out[2] = atan2(a, b) + hypot(a, b) + max(a, b, 0.1) * min(a, 0.3) + nan_max(abs(a), abs(b))
    out[3] = a * 0.0 + 0.0 / b + (b - b)
    out[4] = 7.0


@compiled
def numbered(x, out):
    out[0] = x[2] * x[0] + 2.0 * x[0]  # x[2] is term 2
    out[1] = (x[1] + x[0]) - (1.0 + x[0])


@compiled
def branching(x, out):
    if isfinite(x[0]) and x[0] > 0.5:
        out[0] = x[0] ** 2
    else:
        out[0] = x[0] - 1.0


@compiled
def linear(x, out):
    A = x[:16].reshape(4, 4)
    inverse, weights = out[5:21].reshape(4, 4), out[21:25]
    out[4] = factorise(A, 4, 4, inverse, weights)
    nearest(A, 4, 4, inverse, weights, x[16:20], out)


def test_a_constant_is_not_taken_for_the_term_of_that_number():
    x = np.array([0.7, -0.4, 0.3])
    answer, out = run(code_of(numbered, x, 2), x, 2)
    assert answer == 0
    np.testing.assert_allclose(out, [2.3 * 0.7, -1.4], rtol=1e-15)


def test_every_operation() -> None:
    code = code_of(everything, TWO, 5)
    rng = np.random.default_rng(1)
    for x in rng.normal(size=(100, 2)):
        expected = np.empty(5)
        everything(x, expected)
        status, found = run(code, x, 5)
        assert status == 0
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)
    assert code.counts["sqrt"] == 1


def test_what_does_not_vary_is_folded() -> None:
    code = code_of(everything, TWO, 5, varying=[])
    assert sum(code.counts.values()) == 0
    expected = np.empty(5)
    everything(TWO, expected)
    _, found = run(code, np.array([nan, nan]), 5)
    np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.parametrize("recorded_at", [0.2, 0.9])
@pytest.mark.parametrize("x", [-1.0, 0.3, 0.5, 0.6, 2.0, nan])
def test_another_branch_is_said(recorded_at: float, x: float) -> None:
    status, found = run(code_of(branching, np.array([recorded_at]), 1), np.array([x]), 1)
    if (x > 0.5) == (recorded_at > 0.5) and not np.isnan(x):
        assert (status, found[0]) == (0, x * x if x > 0.5 else x - 1.0)
    else:
        assert status == ANOTHER_BRANCH
        assert np.isnan(found[0])


def test_linear_equations_whatever_the_signs() -> None:
    rng = np.random.default_rng(2)
    code = code_of(linear, rng.normal(size=20), 25)
    for _ in range(300):
        A, b = rng.normal(size=(4, 4)), rng.normal(size=4)
        status, found = run(code, np.concatenate([A.ravel(), b]), 25)
        assert status == 0
        # relative to the solution, rounding grows with the condition number: seen 1.2 eps cond
        expected = np.linalg.solve(A, b)
        limit = 10.0 * np.finfo(float).eps * np.linalg.cond(A) * np.abs(expected).max()
        np.testing.assert_allclose(found[:4], expected, rtol=0, atol=limit)
        kernel = np.zeros(25)
        linear(np.concatenate([A.ravel(), b]), kernel)
        assert found[4] == pytest.approx(kernel[4], rel=1e-9)


def test_a_singular_matrix_is_another_branch() -> None:
    rng = np.random.default_rng(3)
    code = code_of(linear, rng.normal(size=20), 25)
    status, _ = run(code, np.zeros(20), 25)
    assert status == ANOTHER_BRANCH
