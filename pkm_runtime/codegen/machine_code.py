# SPDX-License-Identifier: Apache-2.0
"""Recordings as functions in machine code, compiled in this process by LLVM, which numba brings along."""

from __future__ import annotations

import ctypes
import hashlib
import struct
from collections import Counter
from collections.abc import Sequence
from functools import cache
from math import pi, sqrt
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from pkm_runtime.codegen.tape import Array, Number, Recording, Tape, Term, extreme, key, select_larger
from pkm_runtime.kernels.binding import ANOTHER_BRANCH

_DEGREE = 13  # in t^2: the series of Chebyshev falls by a factor of 25 from term to term
FOLD = sqrt(2.0) - 1.0  # tan(pi / 8): beyond, pi / 4 is taken off
_LEAST = 1e-300  # in place of a zero denominator
# The assembly written here has pointers without a type, which LLVM reads since version 16.
AVAILABLE = hasattr(llvm, "create_pass_builder") and llvm.llvm_version_info[0] >= 16
_MOST = 64  # modules that are kept for whoever wants the same
_LAST: dict[bytes, llvm.ExecutionEngine] = {}  # by digest of their text, the newest at the end
OPERATIONS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
# what processors do in one instruction; all else is a function of the C library
INTRINSICS = {"sqrt": "sqrt", "fabs": "fabs", "max": "maxnum", "min": "minnum", "worse": "maximum", "floor": "floor"}
ARITY = {"max": 2, "min": 2, "worse": 2, "atan2": 2, "hypot": 2}
CONDITIONS = {  # comparison: LLVM's name where it must hold, and where it must not (NaN: holds never)
    "<": ("olt", "uge"),
    "<=": ("ole", "ugt"),
    ">": ("ogt", "ule"),
    ">=": ("oge", "ult"),
    "==": ("oeq", "une"),
    "!=": ("une", "oeq"),
}


@cache
def arc_coefficients(degree: int = _DEGREE) -> tuple[float, ...]:
    """Coefficients of t^0, t^2, ... in atan(t) / t - 1 over t^2, for |t| up to `FOLD`."""

    def rest(square: np.ndarray) -> np.ndarray:
        terms = [(-1.0) ** (k + 1) / (2 * k + 3) * square**k for k in range(40)]
        return np.sum(terms[::-1], axis=0)

    fit = Chebyshev.interpolate(rest, degree, domain=(0.0, FOLD**2))
    return tuple(map(float, fit.convert(kind=Polynomial).coef))


# Within 4 ulp, in operations that are the same for all arguments: recorded, it serves a whole vector register, where
# the C library's serves one pair at a time.
def arc_tangent(y: Number, x: Number) -> Number:
    """Angle [rad] of the point (x, y), -pi to pi, without a decision on the tape; 0 for (-0.0, 0.0) and (0.0, -0.0)."""
    ax, ay = abs(x), abs(y)
    low, high = extreme("min", ax, ay), extreme("max", ax, ay)
    t = low / extreme("max", high, _LEAST)
    folded = (t - 1.0) / (t + 1.0)
    offset = select_larger(t, FOLD, 0.25 * pi, 0.0)
    t = select_larger(t, FOLD, folded, t)
    square = t * t
    *others, value = arc_coefficients()
    for coefficient in reversed(others):
        value = value * square + coefficient
    angle = (t * square) * value + t + offset
    angle = select_larger(ay, ax, 0.5 * pi - angle, angle)
    angle = select_larger(0.0, x, pi - angle, angle)
    return select_larger(0.0, y, -angle, angle)


def _features() -> str:
    try:
        return str(llvm.get_host_cpu_features().flatten())
    except RuntimeError:  # not known for every processor; its name says most
        return ""


LANES = 8 if "+avx512f" in _features() else 4  # numbers of `VectorCode` in one instruction


def empty_columns(*shape: int) -> Array:
    """Doubles without values for `VectorCode`, rows contiguous."""
    *rows, n = shape
    # An odd number of cache lines apart: at a power of two all rows would share the same few places of the cache.
    lines = -(-n // 8) | 1
    return np.empty((*rows, 8 * lines))[..., :n]


class MachineCode:
    """A recording as a function at `address`: an `int64 f(const double *input0, ..., double *results)`.

    It returns 0, or ANOTHER_BRANCH with nothing written; `counts` are its operations. It lives as long as this object.
    """

    def __init__(self, recording: Recording) -> None:
        needed = recording.tape.needed(recording.results)
        self.counts = Counter(term.how[0] for term in needed if term.how[0] not in ("input", "negated"))
        self._engine = _compiled(_for_one_row(recording, needed), level=3)
        self.address: int = self._engine.get_function_address("straight_line")


class VectorCode:
    """A recording of one input array as a function of columns, LANES of their numbers in each instruction.

    Thread-safe and without the GIL; owns its code. `also` is LLVM assembly that calls `@columns`.
    """

    def __init__(self, recording: Recording, also: str = "") -> None:
        needed = recording.tape.needed(recording.results)
        inputs = {term.how[2] for term in needed if term.how[0] == "input"}
        self.inputs: tuple[int, ...] = tuple(sorted(inputs))  # columns of the input that the results depend on
        self.operations = sum(term.how[0] not in ("input", "negated") for term in needed)
        self._engine = _compiled(_for_columns(recording, needed, self.inputs) + also, level=2)
        address = self.address("columns")
        self._call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3)(address)
        self._width = len(recording.results)

    def address(self, name: str) -> int:
        """Address of a function of the code."""
        return int(self._engine.get_function_address(name))

    def __call__(self, columns: Array, out: Array) -> None:
        """Fill `out` (results + 1, n) from `columns` (k, n) of `inputs`, n a multiple of LANES; or `ValueError`. The
        last is 1 where all comparisons came out as recorded, else 0: results not to be used. Rows are contiguous.
        """
        n = columns.shape[1]
        if columns.shape[0] != len(self.inputs) or out.shape != (self._width + 1, n) or n % LANES:
            raise ValueError(f"columns {columns.shape} and results {out.shape} do not fit the code")
        given = columns if columns.size else out  # results that are constant need none
        if not (given.strides[1] == out.strides[1] == given.itemsize == 8):
            raise ValueError("columns are not contiguous")
        self._call(columns.ctypes.data, out.ctypes.data, n, columns.strides[0] // 8, out.strides[0] // 8)


def _compiled(text: str, level: int) -> llvm.ExecutionEngine:
    """LLVM assembly of a module as code for this processor, alive as long as the engine; `level` 0 to 3 optimises."""
    name = hashlib.sha256(f"{level}{text}".encode()).digest()
    engine = _LAST.pop(name, None) or _compile(text, level)
    _LAST[name] = engine
    for old in list(_LAST)[:-_MOST]:
        _LAST.pop(old, None)
    return engine


def _compile(text: str, level: int) -> llvm.ExecutionEngine:
    module = llvm.parse_assembly(text)
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=level, jit=True
    )
    builder = llvm.create_pass_builder(target, llvm.PipelineTuningOptions(speed_level=level))
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    return engine


class _Writer:
    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.number, self.bit = ("double", "i1") if lanes == 1 else (f"<{lanes} x double>", f"<{lanes} x i1>")
        self.suffix = "f64" if lanes == 1 else f"v{lanes}f64"

    def all(self, kind: str, value: str) -> str:
        return value if self.lanes == 1 else f"<{', '.join([f'{kind} {value}'] * self.lanes)}>"

    def name(self, operand: int | float) -> str:
        if isinstance(operand, int):
            return f"%t{operand}"
        return self.all("double", f"0x{struct.unpack('<Q', struct.pack('<d', operand))[0]:016X}")

    def declared(self, whats: set[str]) -> list[str]:
        found = []
        for what in sorted(whats):
            kind, name = (
                (self.number, f"llvm.{INTRINSICS[what]}.{self.suffix}") if what in INTRINSICS else ("double", what)
            )
            found.append(f"declare {kind} @{name}({', '.join([kind] * ARITY.get(what, 1))})")
        return found

    def term(self, term: Term) -> list[str]:
        what, *operands = term.how
        me, k, names = self.name(term.number), term.number, [self.name(o) for o in operands]
        if what == "negated":
            return [f"{me} = fneg {self.number} {names[0]}"]
        if what == "select":
            a, b, larger, otherwise = names
            chosen = f"{self.bit} %l{k}, {self.number} {larger}, {self.number} {otherwise}"
            return [f"%l{k} = fcmp ogt {self.number} {a}, {b}", f"{me} = select {chosen}"]
        if what in OPERATIONS:
            return [f"{me} = {OPERATIONS[what]} contract {self.number} {names[0]}, {names[1]}"]
        arguments = ", ".join(f"{self.number} {name}" for name in names)
        if what in INTRINSICS:
            return [f"{me} = call {self.number} @llvm.{INTRINSICS[what]}.{self.suffix}({arguments})"]
        if self.lanes == 1:
            return [f"{me} = call double @{what}({arguments})"]
        if what == "atan2":
            return [f"{me} = call {self.number} @arc_tangent({arguments})"]
        if what == "hypot":
            return [
                f"%ha{k} = fmul {self.number} {names[0]}, {names[0]}",
                f"%hb{k} = fmul {self.number} {names[1]}, {names[1]}",
                f"%hc{k} = fadd contract {self.number} %ha{k}, %hb{k}",
                f"{me} = call {self.number} @llvm.sqrt.{self.suffix}({self.number} %hc{k})",
            ]
        lines, before = [], "poison"
        for lane in range(self.lanes):
            lines += [f"%x{k}.{j}.{lane} = extractelement {self.number} {o}, i32 {lane}" for j, o in enumerate(names)]
            arguments = ", ".join(f"double %x{k}.{j}.{lane}" for j in range(len(names)))
            lines.append(f"%y{k}.{lane} = call double @{what}({arguments})")
            into = me if lane == self.lanes - 1 else f"%z{k}.{lane}"
            lines.append(f"{into} = insertelement {self.number} {before}, double %y{k}.{lane}, i32 {lane}")
            before = into
        return lines

    def same(self, conditions: dict[tuple[Any, ...], bool]) -> tuple[list[str], str]:
        """Lines, and the name of what tells whether all comparisons come out as recorded."""
        lines, same = [], self.all("i1", "true")
        for k, ((comparison, left, right), outcome) in enumerate(conditions.items()):
            predicate = CONDITIONS[comparison][0 if outcome else 1]
            lines.append(f"%c{k} = fcmp {predicate} {self.number} {self.name(left)}, {self.name(right)}")
            lines.append(f"%s{k} = and {self.bit} {same}, %c{k}")
            same = f"%s{k}"
        return lines, same


def _functions(needed: Sequence[Term]) -> set[str]:
    return {term.how[0] for term in needed} - OPERATIONS.keys() - {"input", "negated", "select"}


def _for_one_row(recording: Recording, needed: Sequence[Term]) -> str:
    writer, lines = _Writer(1), []
    for term in needed:
        if term.how[0] == "input":
            _, array, k = term.how
            lines.append(f"%i{array}.{k} = getelementptr double, ptr %in{array}, i64 {k}")
            lines.append(f"%t{term.number} = load double, ptr %i{array}.{k}")
        else:
            lines += writer.term(term)
    decided, same = writer.same(recording.tape.conditions)
    pointers = ", ".join(f"ptr noalias readonly %in{k}" for k in range(recording.arrays))
    stores = []
    for k, result in enumerate(recording.results):
        stores.append(f"%o{k} = getelementptr double, ptr %out, i64 {k}")
        stores.append(f"store double {writer.name(key(result))}, ptr %o{k}")
    head = [
        *writer.declared(_functions(needed)),
        f"define i64 @straight_line({pointers}, ptr noalias %out) nounwind {{",
    ]
    taken = [f"br i1 {same}, label %taken, label %other", "taken:", *stores, "ret i64 0"]
    return "\n".join([*head, *lines, *decided, *taken, "other:", f"ret i64 {ANOTHER_BRANCH}", "}"])


def _for_columns(recording: Recording, needed: Sequence[Term], inputs: Sequence[int]) -> str:
    writer, lines = _Writer(LANES), []
    for term in needed:
        if term.how[0] == "input":
            k = term.number
            lines.append(f"%ik{k} = mul i64 {inputs.index(term.how[2])}, %in_stride")
            lines.append(f"%ij{k} = add i64 %ik{k}, %at")
            lines.append(f"%i{k} = getelementptr double, ptr %in, i64 %ij{k}")
            lines.append(f"%t{k} = load {writer.number}, ptr %i{k}, align 8")
        else:
            lines += writer.term(term)
    decided, same = writer.same(recording.tape.conditions)
    chosen = ", ".join(f"{writer.number} {writer.name(value)}" for value in (1.0, 0.0))
    lines += [*decided, f"%same = select {writer.bit} {same}, {chosen}"]
    for k, result in enumerate([*(writer.name(key(result)) for result in recording.results), "%same"]):
        lines.append(f"%ok{k} = mul i64 {k}, %out_stride")
        lines.append(f"%oj{k} = add i64 %ok{k}, %at")
        lines.append(f"%o{k} = getelementptr double, ptr %out, i64 %oj{k}")
        lines.append(f"store {writer.number} {result}, ptr %o{k}, align 8")
    arguments = "ptr noalias readonly %in, ptr noalias %out, i64 %n, i64 %in_stride, i64 %out_stride"
    head = [
        *writer.declared((_functions(needed) - {"atan2", "hypot"}) | {"fabs", "sqrt", "max", "min"}),
        *_arc_tangent(writer),
        f"define void @columns({arguments}) nounwind {{",
        "%some = icmp sgt i64 %n, 0",
        "br i1 %some, label %loop, label %end",
        "loop:",
        "%at = phi i64 [0, %0], [%next, %loop]",
    ]
    again = [f"%next = add i64 %at, {LANES}", "%more = icmp slt i64 %next, %n", "br i1 %more, label %loop, label %end"]
    return "\n".join([*head, *lines, *again, "end:", "ret void", "}"])


def _arc_tangent(writer: _Writer) -> list[str]:
    tape, kind = Tape(), writer.number
    y, x = tape.inputs(0, np.array([0.3, 0.7]), (0, 1))
    result = arc_tangent(y, x)
    lines = []
    for term in tape.needed([result]):
        if term.how[0] == "input":
            source = ("%y", "%x")[term.how[2]]
            lines.append(f"%t{term.number} = fadd {kind} {source}, {writer.name(-0.0)}")
        else:
            lines += writer.term(term)
    head = f"define internal {kind} @arc_tangent({kind} %y, {kind} %x) alwaysinline nounwind {{"
    return [head, *lines, f"ret {kind} {writer.name(key(result))}", "}"]
