# SPDX-License-Identifier: Apache-2.0
"""Recordings as C99 that people can read, with `math.h` alone; and as kernels of GPUs, by NVRTC through CuPy."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pkm_runtime.codegen.tape import Array, Constant, Number, Recording, Tape, Term, key
from pkm_runtime.errors import UsageError
from pkm_runtime.optional import optional_library

WIDTH = 116  # columns of a line
LONGEST = 48  # characters of a value that stands in another's expression rather than on a line of its own
# Operations of a function from which on it has its limbs one after the other. Fewer values then wait, and the code is
# shorter: all steps of a limb in turn, each for all limbs, keep a processor busier, until the code outgrows its cache.
LONG = 5000
SIGNS = {"+": 1, "-": 1, "*": 2, "/": 2}
TERNARY, UNARY, ATOM = 0, 3, 4  # how tightly a text binds, as `SIGNS`
HELPERS = {"max": "larger", "min": "smaller", "worse": "worse"}  # functions that the C file itself has
CHOICES = {  # what these return
    "larger": "a > b ? a : b",
    "smaller": "a < b ? a : b",
    "worse": "a != a || b <= a ? a : b",  # of two errors; NaN where one is NaN
}
# what must hold so that a comparison comes out as recorded; false for NaN
HOLDS = {
    "<": ("<", ">="),
    "<=": ("<=", ">"),
    ">": (">", "<="),
    ">=": (">=", "<"),
    "==": ("==", "!="),
    "!=": ("!=", "=="),
}
Test = tuple[str, int | Constant, int | Constant]  # comparison that must hold, left, right
KEEPS_NAN = """\
#if (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || defined(_M_FP_FAST)
#error "NaN tells where there is no answer: compile without -ffast-math, -ffinite-math-only and /fp:fast"
#endif
"""
THREADS = 128  # of a block
BLOCKS = 65535  # at most; more rows than threads are taken in turns
OPTIONS = ("-std=c++17", "-default-device", "-diag-suppress=222")  # functions are the device's; infinity is 1e308 * 10
HEAD = """\
#ifdef __CUDACC_RTC__
#define HUGE_VAL (1e308 * 10.0)
#define INFINITY HUGE_VAL
#define NAN (HUGE_VAL - HUGE_VAL)
#define NULL 0
#define DBL_DIG 15
#endif
"""
ROWS = """\
    const long long stride = (long long)blockDim.x * gridDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)"""
COLUMNS = """
extern "C" __global__ void columns(long long n, const double *__restrict__ in, double *__restrict__ out)
{{
{rows} {{
        double same = 1.0;
{body}
        out[{width} * n + i] = same;
    }}
}}
"""


@dataclass
class Part:
    """A stretch of a recording, up to a term and a comparison, with its `results` by place in C."""

    title: str
    terms: int
    conditions: int
    refusal: str  # the statement where a comparison comes out otherwise
    results: list[tuple[str, Number]] = field(default_factory=list)


class CCode:
    """The body of one function, from parts of one tape.

    `inputs` says how C reads an input (array, index); `names` are values with a name, by number on the tape; `groups`
    say whose part of the robot such a value is, others belong to the only one that needs them. `single` makes floats.
    """

    def __init__(
        self,
        tape: Tape,
        parts: Sequence[Part],
        inputs: Mapping[tuple[int, int], str],
        names: Mapping[int, str],
        groups: Mapping[int, str],
        single: bool = False,
    ) -> None:
        self.tape, self.parts, self.inputs, self.groups = tape, parts, inputs, dict(groups)
        self.type, self.suffix = ("float", "f") if single else ("double", "")
        conditions = list(tape.conditions.items())[: parts[-1].conditions]
        self._tests = [list(dict.fromkeys(self._apart(*one))) for one in conditions]
        wanted = [number for part in parts for _, number in part.results]
        sides = [tape.order[k] for tests in self._tests for _, *pair in tests for k in pair if isinstance(k, int)]
        self.needed = tape.needed([*wanted, *sides], conditions=False)
        self._uses = Counter(r.number for r in [*wanted, *sides] if isinstance(r, Term))
        for term in self.needed:
            if term.how[0] != "input":
                self._uses.update(o for o in term.how[1:] if isinstance(o, int))
        self._texts: dict[int, tuple[str, int]] = {}
        self._names, self._taken, self._counts = dict(names), set(names.values()), Counter[str]()
        self._own_groups()
        self.counts = Counter(term.how[0] for term in self.needed if term.how[0] not in ("input", "negated"))

    def _own_groups(self) -> None:
        """Give values without a group that of everything that needs them, "" where several do."""
        users: dict[int, set[str]] = {}
        for term in reversed(self.needed):
            own = self.groups.get(term.number)
            if own is None:
                found = users.get(term.number, set())
                own = self.groups[term.number] = next(iter(found)) if len(found) == 1 else ""
            if term.how[0] != "input":
                for o in term.how[1:]:
                    if isinstance(o, int):
                        users.setdefault(o, set()).add(own)
        for term in self.needed:  # what several need may still be made of one limb's values alone
            if not self.groups[term.number] and term.how[0] != "input":
                made_of = {self.groups[o] for o in term.how[1:] if isinstance(o, int)} - {""}
                if len(made_of) == 1:
                    self.groups[term.number] = made_of.pop()

    @property
    def is_long(self) -> bool:
        """Whether the code has its limbs one after the other, and all checks behind them."""
        return self.counts.total() > LONG

    def lines(self, titles: Mapping[str, str]) -> list[str]:
        """The statements, four columns in; `titles` are comments at the beginning of each group, by group."""
        written: list[str] = []
        done = decided = 0
        if self.is_long:
            written += self._values(self._limb_by_limb(), titles)
        for part in self.parts:
            values = [t for t in self.needed if done <= t.number < part.terms and not self.is_long]
            lines = self._values(values, titles)
            lines += self._checks(self._tests[decided : part.conditions], part.refusal)
            lines += [line for place, number in part.results for line in self._assigned(f"{place} =", number)]
            written += ["", f"    /* {part.title} */", *lines] if lines else []
            done, decided = part.terms, part.conditions
        return written

    def _values(self, terms: Iterable[Term], titles: Mapping[str, str]) -> list[str]:
        written, group = list[str](), None
        for term in terms:
            line, own = self._statement(term), self.groups[term.number]
            if line is None:
                continue
            if own != group and (own or self.is_long) and own in titles:
                written.append(f"    /* {titles[own]} */")
            group = own if own or self.is_long else group
            written += line
        return written

    def _limb_by_limb(self) -> list[Term]:
        """The terms, those of a group together as far as they need none of the groups behind it."""
        left: dict[str, list[Term]] = {"": []}
        for term in self.needed:
            left.setdefault(self.groups[term.number], []).append(term)
        done, order = set[int](), list[Term]()

        def take(group: str) -> bool:
            rest, n = list[Term](), len(order)
            for term in left[group]:
                ready = term.how[0] == "input" or all(o in done for o in term.how[1:] if isinstance(o, int))
                if ready:
                    done.add(term.number)
                (order if ready else rest).append(term)
            left[group] = rest
            return len(order) > n

        while any(left.values()):
            for group in left:
                while take(group) and group and take(""):
                    pass
        return order

    # -- values -------------------------------------------------------------------------------------------------------

    def constant(self, x: float) -> str:
        """A number in C."""
        if math.isinf(x):
            return "HUGE_VAL" + self.suffix.upper() if x > 0.0 else "-HUGE_VAL" + self.suffix.upper()
        if self.suffix and 0.0 < abs(x) < 1e-30:  # below what a float can hold or divide by
            x = math.copysign(1e-30, x)
        text = repr(float(x))
        return (text if re.search(r"[.en]", text) else text + ".0") + self.suffix

    def _operand(self, operand: int | Constant, least: int) -> str:
        if isinstance(operand, Constant):
            text = self.constant(operand)
            return f"({text})" if text.startswith("-") and least > 1 else text
        text, binds = self._texts[operand]
        return text if binds >= least else f"({text})"

    def _is_negative(self, operand: int | Constant) -> bool:
        """Whether the text of an operand is a minus sign and something that binds."""
        if isinstance(operand, Constant):
            return operand < 0.0
        text, binds = self._texts[operand]
        return binds == UNARY and text.startswith("-")

    def _expression(self, term: Term) -> tuple[str, int]:
        what, *operands = term.how
        if what == "input":
            return self.inputs[operands[0], operands[1]], ATOM
        if what == "negated":
            return "-" + self._operand(operands[0], ATOM), UNARY
        if what in SIGNS:
            binds = SIGNS[what]
            left, right = operands
            if what == "+" and (isinstance(left, Constant) or self._is_negative(left)):
                left, right = right, left  # sorted by the tape: a sum reads better with these behind
            if binds == 1 and self._is_negative(right):
                what = "-" if what == "+" else "+"
                positive = self.constant(-right) if isinstance(right, Constant) else self._texts[right][0][1:]
                return f"{self._operand(left, binds)} {what} {positive}", binds
            return f"{self._operand(left, binds)} {what} {self._operand(right, binds + 1)}", binds
        if what == "select":
            a, b, larger, otherwise = (self._operand(o, 1) for o in operands)
            return f"{a} > {b} ? {larger} : {otherwise}", TERNARY
        name = HELPERS.get(what) or what + self.suffix
        return f"{name}({', '.join(self._operand(o, TERNARY) for o in operands)})", ATOM

    def _statement(self, term: Term) -> list[str] | None:
        """The line that a value is computed on; None where it stands in the expressions that need it."""
        text, binds = self._expression(term)
        number, given = term.number, term.how[0] == "input"
        once = self._uses[number] == 1 and number not in self._names and len(text) <= LONGEST
        if given or once or (term.how[0] == "negated" and isinstance(term.how[1], int) and len(text) <= LONGEST):
            self._texts[number] = (text, binds)
            return None
        name = self._names.get(number) or self._new_name(self.groups[number] or "at")
        self._texts[number] = (name, ATOM)
        return self._wrapped(f"const {self.type} {name} =", text)

    def _new_name(self, group: str) -> str:
        while True:
            self._counts[group] += 1
            name = f"{group}_{self._counts[group]}"
            if name not in self._taken:
                return name

    def _assigned(self, place: str, number: Number) -> list[str]:
        return self._wrapped(place, self._operand(key(number), TERNARY))

    def _wrapped(self, head: str, text: str) -> list[str]:
        line = f"    {head} {text};"
        lines: list[str] = []
        while len(line) > WIDTH:
            at = line.rfind(" ", 0, WIDTH)
            if at <= 12:
                break
            lines.append(line[:at])
            line = " " * 8 + line[at + 1 :]
        return [*lines, line]

    # -- comparisons --------------------------------------------------------------------------------------------------

    def _apart(self, condition: tuple[Any, ...], outcome: bool) -> Iterator[Test]:
        """What must hold so that a comparison comes out as recorded: each of the errors of which it takes the worst."""
        comparison, left, right = condition
        sign = HOLDS[comparison][0 if outcome else 1]
        waiting = [left]
        while waiting:
            one = waiting.pop()
            what, *operands = self.tape.order[one].how if isinstance(one, int) else ("constant",)
            if what in {"<": ("worse", "max"), ">": ("min",)}.get(sign, ()):
                waiting += reversed(operands)
            elif isinstance(one, int) or isinstance(right, int):
                yield sign, one, right

    def _checks(self, conditions: Iterable[list[Test]], refusal: str) -> list[str]:
        tests = dict.fromkeys(
            f"{self._operand(left, 1)} {sign} {self._operand(right, 1)}"
            for one in conditions
            for sign, left, right in one
        )
        if not tests:
            return []
        lines, line = [], "    if (!("
        for k, test in enumerate(tests):
            piece = test + (" && " if k < len(tests) - 1 else "))")
            if len(line) + len(piece) > WIDTH and line.strip() != "if (!(":
                lines.append(line.rstrip())
                line = " " * 10
            line += piece
        return [*lines, line, f"        {refusal}"]


def identifier(name: str) -> str:
    """A name in C: small letters, digits and underscores."""
    text = re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_") or "robot"
    return text if not text[0].isdigit() else f"r{text}"


def quoted(text: str) -> str:
    """Text from a file as a string of C, its bytes of UTF-8, whatever is in it."""
    as_it_is = frozenset(b"_-. abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
    return '"' + "".join(chr(b) if b in as_it_is else f"\\{b:03o}" for b in text.encode()) + '"'


def harmless(text: str) -> str:
    """Text from a file for comments of C and Python and strings of Python: one line that ends neither."""
    # Python reads these escapes as what they stand for
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    plain = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in quoted)
    return plain.replace("*/", r"*\x2f").replace("/*", r"/\x2a")


def cupy_with_gpu(purpose: str) -> Any:
    """CuPy; `UsageError` where it is not installed or finds no GPU."""
    cupy = optional_library("cupy", "cupy-cuda12x", purpose)
    if not cupy.is_available():
        raise UsageError(purpose, "CuPy finds no GPU", "use a computer with a GPU of NVIDIA and its driver")
    return cupy


def launch(kernel: Any, n: int, *arguments: Any) -> None:
    """Run a kernel of CuPy with a thread for each of n rows, which is its first argument."""
    if n:
        kernel((min(-(-n // THREADS), BLOCKS),), (THREADS,), (np.int64(n), *arguments))


class GpuCode:
    """A recording of one array as a function of columns, as `VectorCode`, a thread for each row."""

    def __init__(self, recording: Recording, cupy: Any) -> None:
        self._cupy, self._width, tape = cupy, len(recording.results), recording.tape
        inputs = {term.how[2] for term in tape.needed(recording.results) if term.how[0] == "input"}
        self.inputs: tuple[int, ...] = tuple(sorted(inputs))
        texts = {(0, k): f"in[{place} * n + i]" for place, k in enumerate(self.inputs)}
        results = [(f"out[{place} * n + i]", x) for place, x in enumerate(recording.results)]
        part = Part("all results", len(tape.order), len(tape.conditions), "same = 0.0;", results)
        body = "\n".join(CCode(tape, [part], texts, {}, {}).lines({}))
        helpers = "".join(
            f"static double {name}(double a, double b) {{ return {CHOICES[name]}; }}\n" for name in CHOICES
        )
        self.source = HEAD + helpers + COLUMNS.format(rows=ROWS, body=body, width=self._width)

    @cached_property
    def _kernel(self) -> Any:
        return self._cupy.RawModule(code=self.source, options=OPTIONS).get_function("columns")

    def __call__(self, columns: Array, out: Array) -> None:
        """Fill `out` (results + 1, n), whose last row is 1 where comparisons came out as recorded."""
        out[:] = self._cupy.asnumpy(self.there(self._cupy.asarray(np.ascontiguousarray(columns))))

    def there(self, columns: Any) -> Any:
        """The same of contiguous columns on the GPU, where the results stay."""
        found = self._cupy.empty((self._width + 1, columns.shape[1]), dtype=np.float64)
        launch(self._kernel, columns.shape[1], columns, found)
        return found
