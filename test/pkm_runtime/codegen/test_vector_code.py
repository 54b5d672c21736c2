# SPDX-License-Identifier: Apache-2.0
"""Recordings as code for columns: the same numbers, and where a comparison comes out otherwise, it is said."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pkm_runtime.codegen.machine_code import LANES, VectorCode, arc_tangent
from pkm_runtime.codegen.tape import Recording, Tape, call, extreme, select_larger

pytestmark = pytest.mark.skipif(not __import__("pkm_runtime.codegen").codegen.AVAILABLE, reason="LLVM is too old")


def test_every_operation_on_columns() -> None:
    tape = Tape()
    x, y = tape.inputs(0, np.array([0.3, 0.7]), (0, 1), first=1)
    results = (x + 2.0 * y, -x / y, call("sin", x), call("atan2", y, x), call("hypot", x, y), extreme("min", x, y))
    results += (select_larger(x, y, 1.0, call("floor", 10.0 * y)), call("sqrt", abs(x)), 5.0)
    code = VectorCode(Recording(tape, 1, results))
    assert code.inputs == (1, 2)
    columns = np.random.default_rng(0).normal(size=(2, 8 * LANES))
    out = np.empty((len(results) + 1, columns.shape[1]))
    code(columns, out)
    a, b = columns
    wanted = [a + 2 * b, -a / b, np.sin(a), np.arctan2(b, a), np.hypot(a, b), np.minimum(a, b)]
    wanted += [np.where(a > b, 1.0, np.floor(10.0 * b)), np.sqrt(np.abs(a)), np.full_like(a, 5.0), np.ones_like(a)]
    np.testing.assert_allclose(out, wanted, rtol=1e-14, atol=1e-14)


def test_rows_that_take_another_branch_are_named() -> None:
    tape = Tape()
    (x,) = tape.inputs(0, np.array([0.5]), (0,))
    root = call("sqrt", x) if x > 0.0 else 0.0
    out = np.empty((2, LANES))
    VectorCode(Recording(tape, 1, (root,)))(np.resize([4.0, -1.0, 0.0, np.nan], (1, LANES)), out)
    assert out[1].tolist() == [1.0, 0.0, 0.0, 0.0] * (LANES // 4)
    assert out[0, 0] == 2.0


def test_arrays_that_do_not_fit_are_refused() -> None:
    tape = Tape()
    (x,) = tape.inputs(0, np.array([0.5]), (0,))
    code = VectorCode(Recording(tape, 1, (2.0 * x,)))
    for columns, out in (((1, LANES + 1), (2, LANES + 1)), ((2, LANES), (2, LANES)), ((1, LANES), (1, LANES))):
        with pytest.raises(ValueError, match="do not fit"):
            code(np.zeros(columns), np.zeros(out))


def test_arc_tangent_is_exact_to_a_few_last_places() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20000, 2)) * 10.0 ** rng.uniform(-8, 8, (20000, 2))
    for y, x in [*points.tolist(), (0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0), (0.0, 0.0), (1.0, -1.0)]:
        assert abs(arc_tangent(y, x) - math.atan2(y, x)) <= 4 * math.ulp(math.atan2(y, x))
