# SPDX-License-Identifier: Apache-2.0
"""Derivatives of recordings, of every operation and of derivatives, against difference quotients and transposes."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_runtime.codegen import AVAILABLE
from pkm_runtime.codegen.derivatives import pulled, pushed, restated
from pkm_runtime.codegen.machine_code import LANES, VectorCode
from pkm_runtime.codegen.tape import Recording, Tape, call, extreme, select_larger

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="LLVM is too old")

POINT = np.array([0.3, -0.7, 1.9])


def recording() -> Recording:
    tape = Tape()
    x, y, z = tape.inputs(0, POINT, (0, 1, 2))
    several = x * y + z / x - 2.0 / z
    results = (several, call("sqrt", z), abs(y), call("sin", x * z), call("cos", y), call("tanh", several))
    results += (call("atan2", y, z), call("hypot", x, y), extreme("max", x, y, z), extreme("min", x, y * y))
    results += (select_larger(x, y, x * z, y), z * call("floor", z), extreme("worse", x * x, y), 5.0, -x)
    assert x > y
    return Recording(tape, 1, results)


def values(recording: Recording, x: np.ndarray) -> np.ndarray:
    code, out = VectorCode(recording), np.empty((len(recording.results) + 1, LANES))
    code(np.repeat(x[list(code.inputs)][:, None], LANES, axis=1), out)
    assert out[-1].all()
    return out[:-1, 0]


def test_a_direction_and_its_transpose() -> None:
    rng, h, one = np.random.default_rng(0), 1e-6, recording()
    d, w = rng.normal(size=3), rng.normal(size=len(one.results))
    rates = values(pushed(one, 3), np.append(POINT, d))
    quotient = (values(one, POINT + h * d) - values(one, POINT - h * d)) / (2 * h)
    np.testing.assert_allclose(rates, quotient, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(values(pulled(one, 3), np.append(POINT, w)) @ d, w @ rates, rtol=1e-13)


def test_derivatives_of_derivatives() -> None:
    rng, h, one = np.random.default_rng(1), 1e-6, recording()
    at, d = np.append(POINT, rng.normal(size=len(one.results))), rng.normal(size=3 + len(one.results))
    first = pulled(one, 3)
    quotient = (values(first, at + h * d) - values(first, at - h * d)) / (2 * h)
    found = values(pushed(first, len(at)), np.append(at, d))
    np.testing.assert_allclose(found, quotient, rtol=1e-7, atol=1e-8)


def test_what_is_known_becomes_a_constant() -> None:
    one = recording()
    known = restated(one, lambda tape: lambda _, k: 0.3 if k == 0 else tape.inputs(0, POINT, [k])[k])
    assert known is not None
    assert len(known.tape.order) < len(one.tape.order)
    np.testing.assert_array_equal(values(known, POINT), values(one, POINT))


def test_constants_that_take_another_branch_have_no_recording() -> None:
    assert restated(recording(), lambda tape: lambda _, k: -1.0 if k == 0 else POINT[k]) is None
