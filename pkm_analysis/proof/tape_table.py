# SPDX-License-Identifier: Apache-2.0
"""A tape as a table that the interpreter of jets runs (see `kernels/jets.py`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.proof.kernels import jets
from pkm_description.mechanism import Array
from pkm_runtime.codegen import Tape
from pkm_runtime.codegen.tape import Constant, Number, Term, key

Numbers = NDArray[np.int64]

_PLAIN = {  # that have one operation of their own
    "+": jets.ADD,
    "-": jets.SUBTRACT,
    "atan2": jets.ANGLE,
    "negated": jets.NEGATED,
    "sqrt": jets.ROOT,
    "sin": jets.SINE,
    "cos": jets.COSINE,
}
_COMPARISONS = {  # what is compared with which outcome, and whether the sides change places
    "<": (jets.LESS, True, False),
    ">": (jets.LESS, True, True),
    "<=": (jets.LESS, False, True),
    ">=": (jets.LESS, False, False),
    "==": (jets.EQUAL, True, False),
    "!=": (jets.EQUAL, False, False),
}


class Program(NamedTuple):
    """A tape in rows: constants first, then inputs and what is computed from them, in order."""

    terms: Numbers  # (n, 3) operation and operands
    constants: Numbers  # (c,) rows of constants
    values: Array  # (c,) what they are
    conditions: Numbers  # (d, 4) comparison, left, right, outcome
    rows: dict[int | Constant, int]  # of terms and constants, by their identity in the tape
    reaches: tuple[int, ...]  # rows that must not be negative: what is under the roots of closed forms

    def row(self, number: Number) -> int:
        """The row of a needed term, or of a constant among the results."""
        return self.rows[key(number)]

    def rows_of(self, numbers: Iterable[Number]) -> Numbers:
        """The rows (n,) of numbers; -1 for terms that nothing needs."""
        return np.array([self.rows.get(key(n), -1) for n in numbers], dtype=np.int64)


def compile_tape(tape: Tape, results: Iterable[Number], conditions: bool = True) -> Program:
    """The rows of a tape that `results` need; with `conditions`, also the comparisons recorded.

    Closed forms take the root of the larger of a number and zero. The number itself is used here, which leaves an
    interval with a root of its own where it is negative nowhere, and it is listed in `reaches`: a limb reaches its
    target where it is not negative. `AnalysisError` for an operation without an interval form.
    """
    results = list(results)
    needed = tape.needed(results, conditions)
    decided = tape.conditions if conditions else {}
    used: list[int | Constant] = [key(r) for r in results]
    for term in needed:
        if term.how[0] != "input":
            used += term.how[1:]
    for _, left, right in decided:
        used += [left, right]
    constants = list(dict.fromkeys(k for k in [*used, Constant(1.0)] if isinstance(k, Constant)))
    table = _Rows(constants)
    for term in needed:
        table.places[term.number] = table.add(term)
    checks = []
    for (comparison, *sides), was in decided.items():
        what, outcome, turned = _COMPARISONS[comparison]
        left, right = (table.places[side] for side in (sides[::-1] if turned else sides))
        checks.append([what, left, right, int(was == outcome)])
    return Program(
        np.array(table.rows, dtype=np.int64).reshape(-1, 3),
        np.arange(len(constants)),
        np.array(constants, dtype=float),
        np.array(checks, dtype=np.int64).reshape(-1, 4),
        table.places,
        tuple(dict.fromkeys(table.reaches)),
    )


class _Rows:
    """Collects rows, those of constants first."""

    def __init__(self, constants: list[Constant]) -> None:
        self.places: dict[int | Constant, int] = {value: i for i, value in enumerate(constants)}
        self.rows, self.constants, self.reaches = [(jets.GIVEN, 0, 0)] * len(constants), len(constants), list[int]()
        self._known: dict[tuple[int, int, int], int] = {}

    def _write(self, what: int, a: int = 0, b: int = 0) -> int:
        """The row of an operation, one for all that are equal."""
        row = (what, a, b)
        if what == jets.GIVEN or row not in self._known:
            self.rows.append(row)
            self._known[row] = len(self.rows) - 1
        return self._known[row]

    def add(self, term: Term) -> int:
        """Write the rows of one term; the row of its value."""
        what, *operands = term.how
        if what == "input":
            return self._write(jets.GIVEN)
        at = [self.places[o] for o in operands]
        if what == "max" and Constant(0.0) in operands:
            reach = at[1] if operands[0] == Constant(0.0) else at[0]
            self.reaches.append(reach)
            return reach
        if what == "*":
            return self._product(*at)
        if what == "/":
            return self._product(at[0], self._write(jets.RECIPROCAL, at[1]))
        if what in _PLAIN:
            return self._write(_PLAIN[what], *at)
        raise AnalysisError("proof", f"the operation '{what}' has no interval form", "prove what does not need it")

    def _product(self, a: int, b: int) -> int:
        if a == b:
            return self._write(jets.SQUARE, a)
        if b < self.constants:
            a, b = b, a
        return self._write(jets.MULTIPLE if a < self.constants else jets.MULTIPLY, a, b)
