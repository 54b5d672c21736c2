# SPDX-License-Identifier: Apache-2.0
"""A recording as machine code for very many rows: four of them in each instruction, on columns of numbers."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence

import numpy as np

from pkm_runtime.codegen.arc_tangent import arc_tangent
from pkm_runtime.codegen.machine_code import ARITY, CONDITIONS, INTRINSICS, OPERATIONS, compile_assembly
from pkm_runtime.codegen.tape import Array, Recording, Tape, Term, key

LANES = 4
_VECTOR = f"<{LANES} x double>"
_BITS = f"<{LANES} x i1>"
_NATIVE = {"sqrt", "fabs", "max", "min", "worse", "floor"}  # what processors do in one instruction


class VectorCode:
    """A recording of one input array as a function of columns, thread-safe and without the GIL; owns its code."""

    def __init__(self, recording: Recording) -> None:
        needed = recording.tape.needed(recording.results)
        inputs = {term.how[2] for term in needed if term.how[0] == "input"}
        self.inputs: tuple[int, ...] = tuple(sorted(inputs))  # columns of the input that the results depend on
        self.operations = sum(term.how[0] not in ("input", "negated") for term in needed)
        self._engine = compile_assembly(_text(recording, needed, self.inputs), level=2)
        address = self._engine.get_function_address("columns")
        self._call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3)(address)
        self._width = len(recording.results)

    def __call__(self, columns: Array, out: Array) -> None:
        """Fill `out` (results + 1, n) from `columns` (k, n) of `inputs`, n a multiple of LANES; or `ValueError`.

        The last is 1 where all comparisons came out as recorded, else 0: results not to be used. Rows are contiguous.
        """
        n = columns.shape[1]
        if columns.shape[0] != len(self.inputs) or out.shape != (self._width + 1, n) or n % LANES:
            raise ValueError(f"columns {columns.shape} and results {out.shape} do not fit the code")
        if not (columns.strides[1] == out.strides[1] == columns.itemsize == 8):
            raise ValueError("columns are not contiguous")
        strides = columns.strides[0] // 8, out.strides[0] // 8
        self._call(columns.ctypes.data, out.ctypes.data, None, n, *strides)


def _text(recording: Recording, needed: list[Term], inputs: Sequence[int]) -> str:
    functions = {t.how[0] for t in needed} - OPERATIONS.keys() - {"input", "negated", "select", "atan2", "hypot"}
    functions |= {"fabs", "sqrt", "max", "min"}
    declared = [
        f"declare {kind} @{name}({', '.join([kind] * ARITY.get(what, 1))})"
        for what in sorted(functions)
        for kind, name in [_function(what)]
    ]
    place = {k: row for row, k in enumerate(inputs)}
    lines = [line for term in needed for line in _term(term, place)]
    same = _splat_bits("true")
    for k, ((comparison, left, right), outcome) in enumerate(recording.tape.conditions.items()):
        predicate = CONDITIONS[comparison][0 if outcome else 1]
        lines.append(f"%c{k} = fcmp {predicate} {_VECTOR} {_name(left)}, {_name(right)}")
        lines.append(f"%s{k} = and {_BITS} {same}, %c{k}")
        same = f"%s{k}"
    results = [_name(key(result)) for result in recording.results]
    lines.append(f"%same = select {_BITS} {same}, {_VECTOR} {_number(1.0)}, {_VECTOR} {_number(0.0)}")
    for k, result in enumerate([*results, "%same"]):
        lines.append(f"%ok{k} = mul i64 {k}, %out_stride")
        lines.append(f"%oj{k} = add i64 %ok{k}, %at")
        lines.append(f"%o{k} = getelementptr double, ptr %out, i64 %oj{k}")
        lines.append(f"store {_VECTOR} {result}, ptr %o{k}, align 8")
    return "\n".join(
        [
            *declared,
            *_arc_tangent(),
            "define void @columns(ptr noalias readonly %in, ptr noalias %out, ptr %unused, i64 %n, i64 %in_stride, "
            "i64 %out_stride) nounwind {",
            "%some = icmp sgt i64 %n, 0",
            "br i1 %some, label %loop, label %end",
            "loop:",
            "%at = phi i64 [0, %0], [%next, %loop]",
            *lines,
            f"%next = add i64 %at, {LANES}",
            "%more = icmp slt i64 %next, %n",
            "br i1 %more, label %loop, label %end",
            "end:",
            "ret void",
            "}",
        ]
    )


def _arc_tangent() -> list[str]:
    """`atan2` of vectors as a function, from its own recording."""
    tape = Tape()
    y, x = tape.inputs(0, np.array([0.3, 0.7]), (0, 1))
    result = arc_tangent(y, x)
    lines = []
    for term in tape.needed([result]):
        if term.how[0] == "input":
            source = ("%y", "%x")[term.how[2]]
            lines.append(f"{_name(term.number)} = fadd {_VECTOR} {source}, {_number(-0.0)}")
        else:
            lines += _term(term, {})
    head = f"define internal {_VECTOR} @arc_tangent({_VECTOR} %y, {_VECTOR} %x) alwaysinline nounwind {{"
    return [head, *lines, f"ret {_VECTOR} {_name(key(result))}", "}"]


def _term(term: Term, place: dict[int, int]) -> list[str]:
    what, *operands = term.how
    me, number = _name(term.number), term.number
    if what == "input":
        row = place[operands[1]]
        return [
            f"%ik{number} = mul i64 {row}, %in_stride",
            f"%ij{number} = add i64 %ik{number}, %at",
            f"%i{number} = getelementptr double, ptr %in, i64 %ij{number}",
            f"{me} = load {_VECTOR}, ptr %i{number}, align 8",
        ]
    names = [_name(o) for o in operands]
    if what == "negated":
        return [f"{me} = fneg {_VECTOR} {names[0]}"]
    if what == "select":
        a, b, larger, otherwise = names
        return [
            f"%l{number} = fcmp ogt {_VECTOR} {a}, {b}",
            f"{me} = select {_BITS} %l{number}, {_VECTOR} {larger}, {_VECTOR} {otherwise}",
        ]
    if what in OPERATIONS:
        return [f"{me} = {OPERATIONS[what]} contract {_VECTOR} {names[0]}, {names[1]}"]
    if what == "atan2":
        return [f"{me} = call {_VECTOR} @arc_tangent({_VECTOR} {names[0]}, {_VECTOR} {names[1]})"]
    if what == "hypot":
        return [
            f"%ha{number} = fmul {_VECTOR} {names[0]}, {names[0]}",
            f"%hb{number} = fmul {_VECTOR} {names[1]}, {names[1]}",
            f"%hc{number} = fadd contract {_VECTOR} %ha{number}, %hb{number}",
            f"{me} = call {_VECTOR} @{_function('sqrt')[1]}({_VECTOR} %hc{number})",
        ]
    if what in _NATIVE:
        arguments = ", ".join(f"{_VECTOR} {name}" for name in names)
        return [f"{me} = call {_VECTOR} @{_function(what)[1]}({arguments})"]
    return _lane_by_lane(term, names)


def _lane_by_lane(term: Term, names: list[str]) -> list[str]:
    """A function of the C library, once for each lane."""
    what, number = term.how[0], term.number
    lines, before = [], "poison"
    for lane in range(LANES):
        for k, name in enumerate(names):
            lines.append(f"%x{number}.{k}.{lane} = extractelement {_VECTOR} {name}, i32 {lane}")
        arguments = ", ".join(f"double %x{number}.{k}.{lane}" for k in range(len(names)))
        lines.append(f"%y{number}.{lane} = call double @{what}({arguments})")
        into = _name(number) if lane == LANES - 1 else f"%z{number}.{lane}"
        lines.append(f"{into} = insertelement {_VECTOR} {before}, double %y{number}.{lane}, i32 {lane}")
        before = into
    return lines


def _function(what: str) -> tuple[str, str]:
    """The type of the numbers and the name of a function."""
    if what in _NATIVE:
        return _VECTOR, INTRINSICS[what].replace(".f64", f".v{LANES}f64")
    return "double", what


def _splat_bits(value: str) -> str:
    return f"<{', '.join([f'i1 {value}'] * LANES)}>"


def _number(value: float) -> str:
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    return f"<{', '.join([f'double 0x{bits:016X}'] * LANES)}>"


def _name(operand: int | float) -> str:
    return f"%t{operand}" if isinstance(operand, int) else _number(operand)
