# SPDX-License-Identifier: Apache-2.0
"""A tape as a table that the interpreter of jets runs (see `kernels/program.py`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.proof.kernels import program as operations
from pkm_description.mechanism import Array
from pkm_runtime.codegen import Tape
from pkm_runtime.codegen.tape import Constant, Number, Term, key

Numbers = NDArray[np.int64]

_BINARY = {
    "+": operations.ADD,
    "-": operations.SUBTRACT,
    "atan2": operations.ANGLE,
    "max": operations.LARGER,
    "min": operations.SMALLER,
}
_UNARY = {
    "negated": operations.NEGATED,
    "fabs": operations.ABSOLUTE,
    "sqrt": operations.ROOT,
    "sin": operations.SINE,
    "cos": operations.COSINE,
}
_COMPARISONS = {
    "<": operations.LESS,
    "<=": operations.LESS_OR_EQUAL,
    ">": operations.GREATER,
    ">=": operations.GREATER_OR_EQUAL,
    "==": operations.EQUAL,
    "!=": operations.UNEQUAL,
}


class Program(NamedTuple):
    """A tape in rows: constants first, then inputs and what is computed from them, in order."""

    terms: Numbers  # (n, 5) operation and operands
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


class NoIntervalFormError(Exception):
    """An operation without an interval form."""


def compile_tape(tape: Tape, results: Iterable[Number], conditions: bool = True) -> Program:
    """The rows of a tape that `results` need; with `conditions`, also the comparisons recorded.

    Closed forms take the root of the larger of a number and zero. The number itself is used here, which leaves an
    interval with a root of its own where it is negative nowhere, and it is listed in `reaches`: a limb reaches its
    target where it is not negative. Raises `NoIntervalFormError`.
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
    rows: dict[int | Constant, int] = {value: i for i, value in enumerate(constants)}
    table = _Rows([[operations.GIVEN, 0, 0, 0, 0] for _ in constants], rows, len(constants))
    for term in needed:
        table.add(term)
    checks = [
        [_COMPARISONS[comparison], rows[left], rows[right], int(outcome)]
        for (comparison, left, right), outcome in decided.items()
    ]
    return Program(
        np.array(table.rows, dtype=np.int64).reshape(-1, 5),
        np.arange(len(constants)),
        np.array(constants, dtype=float),
        np.array(checks, dtype=np.int64).reshape(-1, 4),
        rows,
        tuple(dict.fromkeys(table.reaches)),
    )


class _Rows:
    """Collects rows."""

    def __init__(self, rows: list[list[int]], places: dict[int | Constant, int], constants: int) -> None:
        self.rows, self.places, self.constants = rows, places, constants
        self.reaches: list[int] = []
        self._reciprocals: dict[int, int] = {}
        self._squares: dict[int, int] = {}

    def _write(self, what: int, *operands: int) -> int:
        self.rows.append([what, *operands, *[0] * (4 - len(operands))])
        return len(self.rows) - 1

    def _square(self, a: int) -> int:
        if a not in self._squares:
            self._squares[a] = self._write(operations.SQUARE, a)
        return self._squares[a]

    def add(self, term: Term) -> None:
        """Write the rows of one term."""
        what = term.how[0]
        self.places[term.number] = self._write(operations.GIVEN) if what == "input" else self._computed(term)

    def _computed(self, term: Term) -> int:
        what, *operands = term.how
        at = [self.places[o] for o in operands]
        if what == "max" and Constant(0.0) in operands:
            reach = at[1] if operands[0] == Constant(0.0) else at[0]
            self.reaches.append(reach)
            return reach
        if what == "*":
            return self._product(*at)
        if what == "/":
            if at[1] not in self._reciprocals:
                self._reciprocals[at[1]] = self._write(operations.RECIPROCAL, at[1])
            return self._product(at[0], self._reciprocals[at[1]])
        if what == "hypot":
            return self._write(operations.ROOT, self._write(operations.ADD, *map(self._square, at)))
        if what == "select":
            return self._write(operations.SELECTED, *at)
        if what in _BINARY:
            return self._write(_BINARY[what], *at)
        if what in _UNARY:
            return self._write(_UNARY[what], *at)
        raise NoIntervalFormError(what)

    def _product(self, a: int, b: int) -> int:
        if a == b:
            return self._square(a)
        if a < self.constants:
            return self._write(operations.MULTIPLE, a, b)
        if b < self.constants:
            return self._write(operations.MULTIPLE, b, a)
        return self._write(operations.MULTIPLY, a, b)
