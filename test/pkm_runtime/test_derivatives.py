# SPDX-License-Identifier: Apache-2.0
"""Derivatives on a tape are differences of what was recorded."""

from __future__ import annotations

import numpy as np

from pkm_runtime.codegen.derivatives import rates_of
from pkm_runtime.codegen.machine_code import VectorCode
from pkm_runtime.codegen.tape import Number, Recording, Tape, call, select_larger


def _function(x: Number, y: Number) -> Number:
    z = call("sin", x * y) / (2.0 + call("cos", y)) - x
    return select_larger(x, 0.0, z * z + call("sqrt", x * x + 1.0), -z)


def test_derivatives_are_differences() -> None:
    tape = Tape()
    x, y = tape.inputs(0, np.array([0.3, 0.8]), (0, 1))
    f = _function(x, y)
    (rate,) = rates_of(tape, [f], {x.number: 2.0, y.number: -1.0})
    code = VectorCode(Recording(tape, 1, (f, rate)))
    at = np.random.default_rng(0).uniform(-2.0, 2.0, (2, 8))
    out, ahead, behind = (np.empty((3, 8)) for _ in range(3))
    h, way = 1e-6, np.array([[2.0], [-1.0]])
    code(at, out)
    code(at + h * way, ahead)
    code(at - h * way, behind)
    np.testing.assert_allclose(out[1], (ahead[0] - behind[0]) / (2.0 * h), atol=1e-8)


def test_what_does_not_move_has_no_rate() -> None:
    tape = Tape()
    x, y = tape.inputs(0, np.array([0.3, 0.8]), (0, 1))
    assert rates_of(tape, [call("sin", y), 4.0], {x.number: 1.0}) == [0.0, 0.0]
