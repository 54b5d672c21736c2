# SPDX-License-Identifier: Apache-2.0
"""The equations of one call as straight-line C, by the C compiler: what the code of our own is compared with.

`python -m bench.straight_line [robot ...] [--write FILE]` has what lean calls take on a way there and back.

The terms are those of `recordings_at_home.py`. The checks of a call (does the limb reach, is the loop closed)
are left out, with all that only they need. What remains is the least that these equations cost.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench.tables import put
from bench.there_and_back import ThereAndBack
from bench.timing import interleaved, pin_to_one_core
from pkm_description import load_mechanism, robot_names
from pkm_dynamics import Dynamics
from pkm_runtime.codegen import Recording

_NAMES = {"max": "fmax", "min": "fmin"}


class StraightLineC:
    """A recording with one input array as C: `counts` of its operations, and `source`."""

    def __init__(self, recording: Recording) -> None:
        self.counts: Counter[str] = Counter()
        self._lines = []
        for term in recording.tape.needed(recording.results, conditions=False):
            self._lines.append(f"double t{term.number} = {self._text(*term.how)};")
        for k, result in enumerate(recording.results):
            self._lines.append(f"out[{k}] = {_name(getattr(result, 'number', result))};")

    def _text(self, what: str, *operands: int | float) -> str:
        if what == "input":
            return f"in[{operands[1]}]"
        names = [_name(o) for o in operands]
        if what == "negated":
            return "-" + names[0]
        self.counts[what] += 1
        if what == "select":
            return f"{names[0]} > {names[1]} ? {names[2]} : {names[3]}"
        if what in "+-*/":
            return f"{names[0]} {what} {names[1]}"
        return f"{_NAMES.get(what, what)}({', '.join(names)})"

    @property
    def source(self) -> str:
        """C text: the function, and a loop over it for timing."""
        body = "\n    ".join(self._lines)
        return (
            "#include <math.h>\n"
            f"__attribute__((noinline)) static void one(const double *restrict in, double *restrict out) {{\n"
            f"    {body}\n}}\n"
            "void many(long n, long inputs, long results, const double *in, double *out) {\n"
            "    for (long k = 0; k < n; k++) one(in + inputs * k, out + results * k);\n"
            "}\n"
        )

    def compile(self) -> Callable[[np.ndarray, np.ndarray], None]:
        """`call(inputs (n, ...), results (n, ...))`: n evaluations in one call of C.

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
        many.argtypes, many.restype = [ctypes.c_long, ctypes.c_long, ctypes.c_long, array, array], None
        return lambda inputs, results: many(len(inputs), inputs.shape[1], results.shape[1], inputs, results)


def _name(operand: int | float) -> str:
    return f"t{operand}" if isinstance(operand, int) else f"({operand!r})"


HEADER = ["robot", "limbs", "motion space", "inverse kinematics", "and dynamics", "and direct dynamics", "forward"]


def row(name: str) -> list[str]:
    """What the robot is, and the times of its lean calls; empty cells where it has none."""
    dynamics = Dynamics(load_mechanism(name))
    kinematics = dynamics.kinematics
    kind = ["iterated" if kinematics.engine.iterated else "", "" if kinematics.constant_space else "turns"]
    try:
        timed = interleaved(*ThereAndBack(dynamics).lean, repetitions=31)
    except LookupError:
        return [name, *kind, *[""] * 4]
    return [name, *kind, *(f"{1e6 * one.median / 2:.2f} µs" for one in timed)]


def main() -> None:
    """Print the rows; with `--write` put them into a page between its marks."""
    p = argparse.ArgumentParser(description="What the lean calls of robots take.")
    p.add_argument("robots", nargs="*", metavar="robot", help="robots of the gallery; all if none is given")
    p.add_argument("--write", type=Path, metavar="FILE", help="page in whose table the rows are replaced")
    given = p.parse_args()
    pin_to_one_core()
    for name in given.robots or robot_names():
        cells = row(name)
        print(" | ".join(cells), flush=True)
        if given.write:
            put(given.write, HEADER, cells)


if __name__ == "__main__":
    main()
