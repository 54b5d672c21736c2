# SPDX-License-Identifier: Apache-2.0
"""A recording as a function in machine code, compiled in this process by LLVM, which numba brings along."""

from __future__ import annotations

import struct
from collections import Counter

import llvmlite.binding as llvm

from pkm_runtime.codegen.call_code import ANOTHER_BRANCH
from pkm_runtime.codegen.tape import Recording, Term, key

# The assembly written here has pointers without a type, which LLVM reads since version 16.
AVAILABLE = hasattr(llvm, "create_pass_builder") and llvm.llvm_version_info[0] >= 16

OPERATIONS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
INTRINSICS = {
    "sqrt": "llvm.sqrt.f64",
    "fabs": "llvm.fabs.f64",
    "max": "llvm.maxnum.f64",
    "min": "llvm.minnum.f64",
    "worse": "llvm.maximum.f64",
    "floor": "llvm.floor.f64",
}
ARITY = {"max": 2, "min": 2, "worse": 2, "atan2": 2, "hypot": 2}
CONDITIONS = {  # comparison: LLVM's name where it must hold, and where it must not (NaN: holds never)
    "<": ("olt", "uge"),
    "<=": ("ole", "ugt"),
    ">": ("ogt", "ule"),
    ">=": ("oge", "ult"),
    "==": ("oeq", "une"),
    "!=": ("une", "oeq"),
}


class MachineCode:
    """A recording as a function at `address`: an `int64 f(const double *input0, ..., double *results)`.

    It returns 0, or ANOTHER_BRANCH with nothing written; `counts` are its operations. It lives as long as this object.
    """

    def __init__(self, recording: Recording) -> None:
        needed = recording.tape.needed(recording.results)
        self.counts = Counter(term.how[0] for term in needed if term.how[0] not in ("input", "negated"))
        self._engine = compile_assembly(_text(recording, needed))
        self.address: int = self._engine.get_function_address("straight_line")


def compile_assembly(text: str, level: int = 3) -> llvm.ExecutionEngine:
    """LLVM assembly of a module as code for this processor, alive as long as the engine; `level` 0 to 3 optimises."""
    module = llvm.parse_assembly(text)
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=level, jit=True
    )
    builder = llvm.create_pass_builder(target, llvm.PipelineTuningOptions(speed_level=level))
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    return engine


def _features() -> str:
    try:
        return str(llvm.get_host_cpu_features().flatten())
    except RuntimeError:  # not known for every processor; its name says most
        return ""


def _text(recording: Recording, needed: list[Term]) -> str:
    """LLVM assembly of the function."""
    functions = {t.how[0] for t in needed} - OPERATIONS.keys() - {"input", "negated", "select"}
    declared = [
        f"declare double @{INTRINSICS.get(name, name)}({', '.join(['double'] * ARITY.get(name, 1))})"
        for name in sorted(functions)
    ]
    lines = [line for term in needed for line in _term(term)]
    same = "true"
    for k, ((comparison, left, right), outcome) in enumerate(recording.tape.conditions.items()):
        predicate = CONDITIONS[comparison][0 if outcome else 1]
        lines.append(f"%c{k} = fcmp {predicate} double {_name(left)}, {_name(right)}")
        lines.append(f"%s{k} = and i1 {same}, %c{k}")
        same = f"%s{k}"
    pointers = ", ".join(f"ptr noalias readonly %in{k}" for k in range(recording.arrays))
    stores = []
    for k, result in enumerate(recording.results):
        stores.append(f"%o{k} = getelementptr double, ptr %out, i64 {k}")
        stores.append(f"store double {_name(key(result))}, ptr %o{k}")
    return "\n".join(
        [
            *declared,
            f"define i64 @straight_line({pointers}, ptr noalias %out) nounwind {{",
            *lines,
            f"br i1 {same}, label %taken, label %other",
            "taken:",
            *stores,
            "ret i64 0",
            "other:",
            f"ret i64 {ANOTHER_BRANCH}",
            "}",
        ]
    )


def _term(term: Term) -> list[str]:
    what, *operands = term.how
    me = _name(term.number)
    if what == "input":
        array, k = operands
        at = f"%i{array}.{k}"
        return [f"{at} = getelementptr double, ptr %in{array}, i64 {k}", f"{me} = load double, ptr {at}"]
    names = [_name(o) for o in operands]
    if what == "negated":
        return [f"{me} = fneg double {names[0]}"]
    if what == "select":
        a, b, larger, otherwise = names
        test = f"%l{term.number}"
        return [
            f"{test} = fcmp ogt double {a}, {b}",
            f"{me} = select i1 {test}, double {larger}, double {otherwise}",
        ]
    if what in OPERATIONS:
        return [f"{me} = {OPERATIONS[what]} contract double {names[0]}, {names[1]}"]
    return [f"{me} = call double @{INTRINSICS.get(what, what)}({', '.join(f'double {n}' for n in names)})"]


def _name(operand: int | float) -> str:
    if isinstance(operand, int):
        return f"%t{operand}"
    return f"0x{struct.unpack('<Q', struct.pack('<d', operand))[0]:016X}"
