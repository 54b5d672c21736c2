# SPDX-License-Identifier: Apache-2.0
"""Numbers that record on a tape what is computed with them.

Constants are folded and equal terms shared, so that what depends on the robot alone costs nothing. Comparisons are
decided by the present values, and each decision is recorded as well: `Tape.conditions`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_runtime.kernels.binding import ByAddress
from pkm_runtime.kernels.compiled import is_zero, nan_max, select_gt

Array = NDArray[Any]
SIGNS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
FUNCTIONS: dict[str, Callable[..., float]] = {
    name: getattr(math, name) for name in ("sqrt", "fabs", "sin", "cos", "tanh", "atan2", "hypot", "floor")
}
Number = Any  # a Term or a float: what kernels compute with while they are recorded


class Constant(float):
    """A constant among operands, where integers are terms: it equals no number of a term, as 1.0 equals 1."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and float(self) == float(other)

    def __hash__(self) -> int:
        return hash(("constant", float(self)))


class Tape:
    """What was computed, in order; equal terms once."""

    def __init__(self) -> None:
        self.order: list[Term] = []
        self.conditions: dict[tuple[Any, ...], bool] = {}  # (comparison, left, right): what it was
        self._terms: dict[tuple[Any, ...], Term] = {}

    def inputs(self, array: int, values: Array, varying: Iterable[int], first: int = 0) -> Array:
        """Numbers (n,) of an input array from `first` on: terms if in `varying`, else constants."""
        numbers = values.astype(object)
        for k in varying:
            numbers[k] = self._term(("input", array, first + int(k)), float(values[k]))
        return numbers

    def apply(self, what: str, value: float, *operands: Number) -> Term:
        """The result of an operation."""
        keys = [key(o) for o in operands]
        if what in "+*":
            keys.sort(key=str)
        return self._term((what, *keys), value)

    def decide(self, comparison: str, left: Number, right: Number) -> bool:
        """The outcome of a comparison, which every run of the recording must share."""
        outcome = COMPARISONS[comparison](value(left), value(right))
        self.conditions[comparison, key(left), key(right)] = outcome
        return outcome

    def know(self, what: str, of: Number, result: Term) -> None:
        """Take `result`, such as an input, wherever a function of a term is asked for."""
        self._terms[what, key(of)] = result

    def needed(self, results: Iterable[Number], conditions: bool = True) -> list[Term]:
        """The terms, in order, that `results` need, and on request the conditions."""
        found: set[int] = set()
        waiting = [r.number for r in results if isinstance(r, Term)]
        if conditions:
            waiting += [k for _, *sides in self.conditions for k in sides if isinstance(k, int)]
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                what, *operands = self.order[number].how
                if what != "input":
                    waiting += [o for o in operands if isinstance(o, int)]
        return [self.order[number] for number in sorted(found)]

    def _term(self, how: tuple[Any, ...], value: float) -> Term:
        if how not in self._terms:
            self._terms[how] = Term(self, how, value, len(self.order))
            self.order.append(self._terms[how])
        return self._terms[how]


@dataclass(frozen=True)
class Recording:
    """What was computed from some input arrays, and the numbers wanted as results."""

    tape: Tape
    arrays: int
    results: tuple[Number, ...]


class Term:
    """A number that remembers where it comes from: its place `number` on the tape and `value` in the recording.

    `how` is an operation and its operands: numbers of terms on the tape (int) or constants (`Constant`).
    """

    __array_ufunc__ = None  # NumPy's numbers leave operations with it to it
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, tape: Tape, how: tuple[Any, ...], value: float, number: int) -> None:
        self.tape, self.how, self.value, self.number = tape, how, value, number

    def __add__(self, other: Number) -> Number:
        return self if _is(other, 0.0) else _combine("+", self, other)

    def __radd__(self, other: Number) -> Number:
        return self + other

    def __sub__(self, other: Number) -> Number:
        if other is self:
            return 0.0
        return self if _is(other, 0.0) else _combine("-", self, other)

    def __rsub__(self, other: Number) -> Number:
        return -self if _is(other, 0.0) else _combine("-", other, self)

    def __mul__(self, other: Number) -> Number:
        if _is(other, 0.0):
            return 0.0
        if _is(other, 1.0):
            return self
        return -self if _is(other, -1.0) else _combine("*", self, other)

    def __rmul__(self, other: Number) -> Number:
        return self * other

    def __truediv__(self, other: Number) -> Number:
        return self if _is(other, 1.0) else _combine("/", self, other)

    def __rtruediv__(self, other: Number) -> Number:
        return 0.0 if _is(other, 0.0) else _combine("/", other, self)

    def __pow__(self, exponent: int) -> Number:
        if exponent != 2:
            raise NotImplementedError(f"power {exponent}")
        return self * self

    def __neg__(self) -> Number:
        if self.how[0] == "negated":
            return self.tape.order[self.how[1]]
        return self.tape.apply("negated", -self.value, self)

    def __abs__(self) -> Number:
        return self.tape.apply("fabs", abs(self.value), self)

    def __lt__(self, other: Number) -> bool:
        return self.tape.decide("<", self, other)

    def __le__(self, other: Number) -> bool:
        return self.tape.decide("<=", self, other)

    def __gt__(self, other: Number) -> bool:
        return self.tape.decide(">", self, other)

    def __ge__(self, other: Number) -> bool:
        return self.tape.decide(">=", self, other)

    def __eq__(self, other: object) -> bool:
        return self.tape.decide("==", self, other)

    def __ne__(self, other: object) -> bool:
        return self.tape.decide("!=", self, other)


def value(x: Number) -> float:
    """The value in this recording."""
    return x.value if isinstance(x, Term) else float(x)


def key(x: Number) -> int | Constant:
    """A term's number on the tape, or a constant."""
    return x.number if isinstance(x, Term) else Constant(x)


def tape_of(*numbers: Number) -> Tape | None:
    """The tape of whichever of the numbers is a term."""
    return next((x.tape for x in numbers if isinstance(x, Term)), None)


def call(name: str, *arguments: Number) -> Number:
    """A function of `FUNCTIONS`."""
    result = FUNCTIONS[name](*map(value, arguments))
    tape = tape_of(*arguments)
    return result if tape is None else tape.apply(name, result, *arguments)


def extreme(what: str, *arguments: Number) -> Number:
    """The "max" or "min" of some numbers, or the "worse" of errors (see there), without a decision on the tape."""
    result = arguments[0]
    for x in arguments[1:]:
        tape = tape_of(result, x)
        a, b = value(result), value(x)
        best = min(a, b) if what == "min" else max(a, b)
        result = best if tape is None else tape.apply(what, best, result, x)
    return result


def select_larger(a: Number, b: Number, if_larger: Number, otherwise: Number) -> Number:
    """`if_larger` where a > b, else `otherwise`, without a decision on the tape."""
    tape = tape_of(a, b)
    if tape is None or if_larger is otherwise:
        return if_larger if value(a) > value(b) else otherwise
    chosen = value(if_larger if value(a) > value(b) else otherwise)
    return tape.apply("select", chosen, a, b, if_larger, otherwise)


def _is(x: Number, constant: float) -> bool:
    return not isinstance(x, Term) and x == constant


def _combine(what: str, left: Number, right: Number) -> Term:
    tape = tape_of(left, right)
    assert tape is not None
    return tape.apply(what, SIGNS[what](value(left), value(right)), left, right)


def trace(kernel: Any, instead: Sequence[tuple[Any, Callable[..., Any]]] = ()) -> Callable[..., Any]:
    """A kernel as a Python function, with all kernels that it calls, whose numbers may be terms.

    `instead` pairs called kernels with replacements. Record arrays and arrays with terms must be `loose`.
    """
    done: dict[int, Callable[..., Any]] = {
        id(nan_max): partial(extreme, "worse"),
        id(select_gt): select_larger,
        id(is_zero): lambda _: False,
    }
    done.update((id(one), other) for one, other in instead)
    return _recorded(kernel, done)


def loose(x: Any) -> Any:
    """A model and its data in a form that can hold terms: arrays of objects, records as objects, tuples of these."""
    if isinstance(x, ByAddress):
        return SimpleNamespace(**{name: loose(array) for name, array in x.arrays().items()})
    if isinstance(x, tuple):
        return type(x)(*map(loose, x))
    if isinstance(x, np.ndarray):
        return _Records(x) if x.dtype.names else x.astype(object)
    return x.item() if isinstance(x, np.generic) else x


class _Records(list[SimpleNamespace]):
    """A structured array as objects whose fields can hold terms."""

    def __init__(self, rows: np.ndarray) -> None:
        names = rows.dtype.names or ()
        super().__init__(SimpleNamespace(**{name: loose(row[name]) for name in names}) for row in rows)

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)


def _recorded(kernel: Any, done: dict[int, Callable[..., Any]]) -> Callable[..., Any]:
    if id(kernel) in done:
        return done[id(kernel)]
    source = kernel.py_func
    scope = dict(source.__globals__)
    function = FunctionType(source.__code__, scope, source.__name__, source.__defaults__, source.__closure__)
    done[id(kernel)] = function
    scope["max"], scope["min"] = partial(extreme, "max"), partial(extreme, "min")
    for name in source.__code__.co_names:
        used = scope.get(name)
        if hasattr(used, "py_func"):
            scope[name] = _recorded(used, done)
        elif name in FUNCTIONS and used is FUNCTIONS[name]:
            scope[name] = partial(call, name)
        elif used is math.isfinite:
            scope[name] = _is_finite
    return function


def _is_finite(x: Number) -> bool:
    return bool(abs(x) < math.inf)
