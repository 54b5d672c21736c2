# SPDX-License-Identifier: Apache-2.0
"""Recordings computed again with other numbers, and their derivatives as recordings: taping the tape.

Forward and backward sweeps after Griewank and Walther, *Evaluating Derivatives*, 2008, chapter 3.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pkm_runtime.codegen.tape import FUNCTIONS, SIGNS, Number, Recording, Tape, Term, call, extreme, key, select_larger

OF_TERMS: dict[str, Callable[..., Number]] = {
    **SIGNS,
    **{name: partial(call, name) for name in FUNCTIONS},
    **{name: partial(extreme, name) for name in ("max", "min", "worse")},
    "fabs": abs,
    "negated": operator.neg,
    "select": select_larger,
}


def again(terms: Iterable[Term], inputs: Callable[[int, int], Any], operations: Mapping[str, Any]) -> dict[int, Any]:
    """What terms, in order, come to by other `operations` from `inputs` (array, index): by number on the tape."""
    found: dict[int, Any] = {}
    for term in terms:
        what, *operands = term.how
        if what == "input":
            found[term.number] = inputs(operands[0], operands[1])
        else:
            found[term.number] = operations[what](*(found[o] if isinstance(o, int) else float(o) for o in operands))
    return found


def restated(recording: Recording, inputs: Callable[[Tape], Callable[[int, int], Number]]) -> Recording | None:
    """A recording on its own tape with `inputs` in place of inputs; None where constants alone decide otherwise."""
    old, new = recording.tape, Tape()
    found = again(old.needed(recording.results), inputs(new), OF_TERMS)

    def now(operand: Any) -> Number:
        return found[operand] if isinstance(operand, int) else float(operand)

    for (comparison, left, right), outcome in old.conditions.items():
        a, b = now(left), now(right)
        if isinstance(a, Term) or isinstance(b, Term):
            new.conditions[comparison, key(a), key(b)] = outcome
        elif new.decide(comparison, a, b) != outcome:
            return None
    return Recording(new, 1, tuple(now(key(x)) for x in recording.results))


def rates_of(tape: Tape, numbers: Sequence[Number], seeds: Mapping[int, Number]) -> list[Number]:
    """Rates of some numbers, recorded on their tape, where the terms (by place on it) in `seeds` have these rates."""
    rates: dict[int, Number] = dict(seeds)
    for term in tape.needed(numbers, conditions=False):
        if term.how[0] == "input" or term.number in rates:
            continue
        parts = [(by, rates[o]) for o, by in _partials(term) if isinstance(o, int) and o in rates]
        moving = [by * rate for by, rate in parts if isinstance(rate, Term) or rate != 0.0]
        if moving:
            rates[term.number] = sum(moving)
    return [rates.get(x.number, 0.0) if isinstance(x, Term) else 0.0 for x in numbers]


def pushed(recording: Recording, n: int) -> Recording:
    """Derivatives of the results in a direction (n,), which follows the n inputs of the one array."""
    tape = recording.tape
    used = [term for term in tape.needed(recording.results, conditions=False) if term.how[0] == "input"]
    seeds = {term.number: _direction(tape, n, term.how[2]) for term in used}
    return Recording(tape, 1, tuple(rates_of(tape, recording.results, seeds)))


def pulled(recording: Recording, n: int) -> Recording:
    """Derivatives by the n inputs of the one array of the results' sum, each by a weight that follows the inputs."""
    tape = recording.tape
    rates: dict[int, Number] = {}
    for k, x in enumerate(recording.results):
        if isinstance(x, Term):
            rates[x.number] = rates.get(x.number, 0.0) + _direction(tape, n, k)
    results: list[Number] = [0.0] * n
    for term in reversed(tape.needed(recording.results, conditions=False)):
        rate = rates.pop(term.number, 0.0)
        if term.how[0] == "input":
            results[term.how[2]] = rate
        else:
            for o, by in _partials(term):
                if isinstance(o, int):
                    rates[o] = rates.get(o, 0.0) + by * rate
    return Recording(tape, 1, tuple(results))


def _direction(tape: Tape, first: int, k: int) -> Number:
    return tape.inputs(0, np.array([1.0 + 0.5 * np.sin(k)]), [0], first + k)[0]


def _partials(term: Term) -> Sequence[tuple[Any, Number]]:
    what, *operands = term.how
    x = [term.tape.order[o] if isinstance(o, int) else float(o) for o in operands]
    return list(zip(operands, RULES[what](term, *x), strict=False))


def _larger(a: Number, b: Number) -> tuple[Number, Number]:
    return select_larger(a, b, 1.0, 0.0), select_larger(a, b, 0.0, 1.0)


# by name: derivatives of y by its operands; none where they count for nothing
RULES: dict[str, Callable[..., Sequence[Number]]] = {
    "max": lambda y, a, b: _larger(a, b),
    "worse": lambda y, a, b: _larger(a, b),
    "min": lambda y, a, b: _larger(b, a),
    "select": lambda y, a, b, one, other: (0.0, 0.0, *_larger(a, b)),
    "atan2": lambda y, a, b: (b / (a * a + b * b), -a / (a * a + b * b)),
    "+": lambda y, a, b: (1.0, 1.0),
    "-": lambda y, a, b: (1.0, -1.0),
    "*": lambda y, a, b: (b, a),
    "/": lambda y, a, b: (1.0 / b, -y / b),
    "negated": lambda y, a: (-1.0,),
    "sqrt": lambda y, a: (0.5 / y,),
    "fabs": lambda y, a: (select_larger(a, 0.0, 1.0, -1.0),),
    "sin": lambda y, a: (call("cos", a),),
    "cos": lambda y, a: (-call("sin", a),),
    "tanh": lambda y, a: (1.0 - y * y,),
    "hypot": lambda y, a, b: (a / y, b / y),
    "floor": lambda y, a: (),
}
