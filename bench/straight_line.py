# SPDX-License-Identifier: Apache-2.0
"""The equations of one call as straight-line C: what a code generator for that one robot would make of them.

The kernels are run as plain Python on numbers that write down what is done to them. Loops, tables and branches leave
no trace; what is constant for the robot is folded, equal terms are shared, and terms that nothing needs are left out.
The checks of a call (does the limb reach, is the loop closed) are comparisons, so that they are gone as well. What
remains is the least that these equations cost, and a count of their operations.
"""

from __future__ import annotations

import ctypes
import math
import operator
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from pkm_dynamics import Dynamics
from pkm_dynamics.kernels.inverse import inverse_dynamics

POINTS = 64  # states that a timed loop goes through, so that nothing can be computed once for all
_FUNCTIONS = {name: getattr(math, name) for name in ("sqrt", "sin", "cos", "atan2", "hypot")}
_SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


class Tape:
    """What was computed, in order; equal terms once."""

    def __init__(self) -> None:
        self.terms: dict[tuple[Any, ...], Term] = {}  # by operation and operands: numbers of terms, or constants
        self.order: list[Term] = []

    def input(self, k: int, value: float) -> Term:
        """Number k of the input."""
        return self._term(("input", k), value)

    def apply(self, what: str, value: float, *operands: Term | float) -> Term:
        """The result of an operation."""
        keys = [o.number if isinstance(o, Term) else float(o) for o in operands]
        if what in "+*":
            keys.sort(key=str)
        return self._term((what, *keys), value)

    def _term(self, key: tuple[Any, ...], value: float) -> Term:
        if key not in self.terms:
            self.terms[key] = Term(self, key, value, len(self.terms))
            self.order.append(self.terms[key])
        return self.terms[key]


class Term:
    """A number that remembers where it comes from. Comparisons are decided by its value."""

    __array_ufunc__ = None  # NumPy's numbers leave operations with it to it

    def __init__(self, tape: Tape, key: tuple[Any, ...], value: float, number: int) -> None:
        self.tape, self.value, self.number = tape, value, number
        self.how = key

    def _with(self, what: str, left: Any, right: Any) -> Any:
        a, b = _value(left), _value(right)
        plain_a, plain_b = not isinstance(left, Term), not isinstance(right, Term)
        if what == "*" and ((plain_a and a == 0.0) or (plain_b and b == 0.0)):
            return 0.0
        if (what in "*" and plain_a and a == 1.0) or (what == "+" and plain_a and a == 0.0):
            return right
        if (what in "*/" and plain_b and b == 1.0) or (what in "+-" and plain_b and b == 0.0):
            return left
        if what == "/" and plain_a and a == 0.0:
            return 0.0
        if what == "-" and plain_a and a == 0.0:
            return -right
        if what == "*" and plain_a and a == -1.0:
            return -right
        if what == "*" and plain_b and b == -1.0:
            return -left
        if what == "-" and left is right:
            return 0.0
        return self.tape.apply(what, _SIGNS[what](a, b), left, right)

    def __add__(self, other: Any) -> Any:
        return self._with("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._with("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._with("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._with("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._with("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._with("*", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._with("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with("/", other, self)

    def __pow__(self, exponent: int) -> Any:
        if exponent != 2:
            raise NotImplementedError(f"power {exponent}")
        return self * self

    def __neg__(self) -> Any:
        if self.how[0] == "negated":
            return self.tape.order[self.how[1]]
        return self.tape.apply("negated", -self.value, self)

    def __abs__(self) -> Any:
        return self.tape.apply("fabs", abs(self.value), self)

    def __lt__(self, other: Any) -> bool:
        return self.value < _value(other)

    def __le__(self, other: Any) -> bool:
        return self.value <= _value(other)

    def __gt__(self, other: Any) -> bool:
        return self.value > _value(other)

    def __ge__(self, other: Any) -> bool:
        return self.value >= _value(other)

    def __eq__(self, other: object) -> bool:
        return self.value == _value(other)

    def __ne__(self, other: object) -> bool:
        return self.value != _value(other)

    __hash__ = None  # type: ignore[assignment]


def _value(x: Any) -> float:
    return x.value if isinstance(x, Term) else float(x)


class Records(list[SimpleNamespace]):
    """A structured array as objects whose fields can hold terms."""

    def __init__(self, rows: np.ndarray) -> None:
        super().__init__(SimpleNamespace(**{name: _loose(row[name]) for name in rows.dtype.names}) for row in rows)

    @property
    def shape(self) -> tuple[int]:
        """As an array has it."""
        return (len(self),)


def _loose(x: Any) -> Any:
    """Numbers as Python's own, arrays as arrays of objects."""
    if isinstance(x, np.ndarray):
        return Records(x) if x.dtype.names else x.astype(object)
    return x.item() if isinstance(x, np.generic) else x


def interpreted(kernel: Any, done: dict[int, Callable[..., Any]] | None = None) -> Callable[..., Any]:
    """A kernel as a Python function, the kernels that it calls as well, and functions that know terms."""
    done = {} if done is None else done
    if id(kernel) in done:
        return done[id(kernel)]
    source = kernel.py_func
    scope = dict(source.__globals__)
    function = FunctionType(source.__code__, scope, source.__name__, source.__defaults__, source.__closure__)
    done[id(kernel)] = function
    for name in source.__code__.co_names:
        used = scope.get(name)
        if hasattr(used, "py_func"):
            scope[name] = interpreted(used, done)
        elif name in _FUNCTIONS and used is _FUNCTIONS[name]:
            scope[name] = _knowing(name)
        elif used is math.isfinite:
            scope[name] = lambda x: math.isfinite(_value(x))
    return function


def _knowing(name: str) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        result = _FUNCTIONS[name](*map(_value, arguments))
        tape = next((a.tape for a in arguments if isinstance(a, Term)), None)
        return result if tape is None else tape.apply(name, result, *arguments)

    return call


class StraightLine:
    """Inverse dynamics of one robot, inverse kinematics included, for platforms that keep their orientation.

    Inputs (15,): position, linear velocity and acceleration of the platform, external wrench. Working mode 0.
    """

    INPUTS = (*range(3), *range(7, 10), *range(13, 16), *range(19, 25))  # of a lean call's motion (25,)

    def __init__(self, dynamics: Dynamics, motion: np.ndarray) -> None:
        """`motion` (25,) as in `Dynamics.lean_inverse`: any regular one that takes the same branches."""
        t = dynamics.kinematics.tables
        tape = Tape()
        traced = motion.astype(object)
        for k, at in enumerate(self.INPUTS):
            traced[at] = tape.input(k, float(motion[at]))
        self.n = len(dynamics.kinematics.actuated_names)
        effort = np.zeros(self.n, dtype=object)
        tables = (t.bodies, t.closures, t.blocks, *t.workspace(), dynamics._system(), dynamics._subspace)
        status = interpreted(inverse_dynamics)(*map(_loose, tables), 0, dynamics.friction, traced, effort)
        if status != 0:
            raise ValueError(f"no efforts at this motion: status {status}")
        self._lines(tape, effort)

    def _lines(self, tape: Tape, results: Iterable[Any]) -> None:
        order = tape.order
        needed: set[int] = set()
        waiting = [r.number for r in results if isinstance(r, Term)]
        while waiting:
            number = waiting.pop()
            if number not in needed:
                needed.add(number)
                how = order[number].how
                waiting += [o for o in how[1:] if isinstance(o, int)] if how[0] != "input" else []
        self.lines: list[str] = []
        self.counts: Counter[str] = Counter()
        for term in order:
            if term.number in needed:
                self.lines.append(f"double t{term.number} = {self._text(term.how)};")
        self.lines += [
            f"out[{k}] = {self._name(r.number if isinstance(r, Term) else r)};" for k, r in enumerate(results)
        ]

    def _text(self, how: tuple[Any, ...]) -> str:
        what, operands = how[0], how[1:]
        if what == "input":
            return f"in[{operands[0]}]"
        names = [self._name(o) for o in operands]
        if what == "negated":
            return "-" + names[0]
        self.counts[what] += 1
        return f"{names[0]} {what} {names[1]}" if what in _SIGNS else f"{what}({', '.join(names)})"

    @staticmethod
    def _name(operand: int | float) -> str:
        return f"t{operand}" if isinstance(operand, int) else f"({operand!r})"

    @property
    def source(self) -> str:
        """C text: the function, and a loop over it for timing."""
        body = "\n    ".join(self.lines)
        size = len(self.INPUTS)
        return (
            "#include <math.h>\n"
            f"__attribute__((noinline)) static void one(const double *restrict in, double *restrict out) {{\n"
            f"    {body}\n}}\n"
            "void many(long n, long points, const double *in, double *out) {\n"
            f"    for (long k = 0; k < n; k++) one(in + {size} * (k % points), out + {self.n} * (k % points));\n"
            "}\n"
        )

    def compile(self) -> Callable[[int, np.ndarray, np.ndarray], None]:
        """`call(n, inputs (points, 15), efforts (points, n_actuated))`: n evaluations in one call of C.

        Raises `FileNotFoundError` where there is no C compiler.
        """
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            raise FileNotFoundError("no C compiler")
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder) / "line.c", Path(folder) / "line.so"
            source.write_text(self.source)
            options = ["-O3", "-march=native", "-fno-math-errno", "-fPIC", "-shared"]
            subprocess.run([compiler, *options, str(source), "-o", str(library), "-lm"], check=True)
            many = ctypes.CDLL(str(library)).many
        array = np.ctypeslib.ndpointer(np.float64, flags="C_CONTIGUOUS")
        many.argtypes, many.restype = [ctypes.c_long, ctypes.c_long, array, array], None
        return lambda n, inputs, efforts: many(n, len(inputs), inputs, efforts)
