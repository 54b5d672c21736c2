# SPDX-License-Identifier: Apache-2.0
"""Derivatives of what a tape has: by the chain rule, forward, along one direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pkm_runtime.codegen.tape import Number, Tape, Term, call, select_larger


def derivatives(tape: Tape, numbers: Sequence[Number], seeds: Mapping[int, Number]) -> list[Number]:
    """Rates of some numbers, recorded on their tape, where the terms (by place on it) in `seeds` have these rates.

    For sums, products, quotients, roots, sines and cosines, and choices among them.
    """
    found: dict[int, Number] = dict(seeds)

    def of(operand: int | float) -> Number:
        return found.get(operand, 0.0) if isinstance(operand, int) else 0.0

    def number(operand: int | float) -> Number:
        return tape.order[operand] if isinstance(operand, int) else float(operand)

    for term in tape.needed(numbers, conditions=False):
        what, *operands = term.how
        if what == "input" or term.number in found:
            continue
        rates, values = [of(o) for o in operands], [number(o) for o in operands]
        if not any(isinstance(rate, Term) or rate != 0.0 for rate in rates):
            continue
        found[term.number] = _rate(what, term, rates, values)
    return [found.get(one.number, 0.0) if isinstance(one, Term) else 0.0 for one in numbers]


def _rate(what: str, term: Term, rates: Sequence[Number], values: Sequence[Number]) -> Number:
    if what == "+":
        return rates[0] + rates[1]
    if what == "-":
        return rates[0] - rates[1]
    if what == "*":
        return rates[0] * values[1] + values[0] * rates[1]
    if what == "/":
        return (rates[0] - term * rates[1]) / values[1]
    if what == "negated":
        return -rates[0]
    if what == "sqrt":
        return rates[0] / (2.0 * term)
    if what == "sin":
        return rates[0] * call("cos", values[0])
    if what == "cos":
        return -(rates[0] * call("sin", values[0]))
    if what == "select":
        return select_larger(values[0], values[1], rates[2], rates[3])
    raise NotImplementedError(f"the derivative of {what}")
