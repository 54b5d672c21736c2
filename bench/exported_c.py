# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.exported_c [robot ...] [--write FILE]`: robots in C, their size, speed and error.

The lean calls of Python stand beside the functions of C, in one run, and Pinocchio's inverse dynamics, which has the
joints for nothing. Those of C are called from a loop in C, as they would be used; a lean call has the way from Python
in it, as has Pinocchio's.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from bench.peers import pinocchio_inverse_dynamics
from bench.sample import Sample
from bench.states import NoRegularStatesError
from bench.tables import put
from bench.there_and_back import ThereAndBack
from bench.timing import interleaved, pin_to_one_core
from pkm_description import load_mechanism, robot_names
from pkm_dynamics import Dynamics
from pkm_dynamics.export_c.c_files import CFiles
from pkm_dynamics.export_c.recorded_function import ExportError

HEADER = [
    "robot", "lines", "KB", "gcc -O2", "inverse", "lean", "inverse dynamics", "lean", "direct dynamics", "lean",
    "forward", "lean", "Pinocchio", "largest error", "roundings × condition", "of float", "roundings × condition",
]  # fmt: skip
# What the CMakeLists.txt asks for, with -DNATIVE=ON
NATIVE = ["-std=gnu99", "-O3", "-DNDEBUG", "-fno-math-errno", "-fno-trapping-math", "-march=native"]
CALLS = 1000  # of a function of C in one call from Python

# A period's way there and back, as a loop asks; what is the lean call's memory is `limbs` in C.
LOOPS = """
#include "NAME.h"
#define AT (motion + 25 * (n & 1))
static double q[64], joints[256], effort[64], acceleration[6], pose[7];
LIMBS
void loop_inverse(const double *motion, const double *other, int n)
{
    (void)other;
    while (n-- > 0)
        INVERSE(AT, 0, qALONG);
}
void loop_inverse_dynamics(const double *motion, const double *other, int n)
{
    (void)other;
    while (n-- > 0)
        NAME_inverse_dynamicsNEAR(AT, AT + 7, AT + 13, 0, effortALONG);
}
void loop_direct_dynamics(const double *motion, const double *other, int n)
{
    while (n-- > 0)
        NAME_direct_dynamicsNEAR(AT, AT + 7, other, 0, accelerationALONG);
}
void loop_forward(const double *motion, const double *other, int n)
{
    for (int k = 0; k < 7; k++)
        pose[k] = motion[25 + k];
    while (n-- > 0)
        NAME_forwardNEAR(other + DRIVES * (n & 1), CONTINUED);
}
"""


def rows(names: Sequence[str], folder: Path) -> Iterator[list[str]]:
    """A row of each robot; of those that cannot be expressed the reason."""
    for name in names:
        dynamics = Dynamics(load_mechanism(name))
        try:
            files = CFiles(dynamics)
            floats = CFiles(dynamics, single=True)
        except ExportError as error:
            yield [name, *[""] * (len(HEADER) - 2), str(error).partition(": not recorded: ")[2].partition(";")[0]]
            continue
        errors = [text for k, one in enumerate((files, floats)) for text in _errors(one, folder / f"{name}{k}")]
        source = folder / f"{name}0" / f"{files.name}.c"
        begun = _children()
        _compile([source], ["-O2", "-c"], folder / "object")
        spent = _children() - begun
        text = source.read_text()
        timed = _times(dynamics, files, source, folder)
        size = [str(len(text.splitlines())), str(len(text) // 1000), f"{spent:.1f} s"]
        yield [name, *size, *timed, _pinocchio(name), *errors]


def _children() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def _compile(sources: Sequence[Path], options: Sequence[str], out: Path) -> None:
    subprocess.run(["gcc", "-std=c99", *options, *map(str, sources), "-o", str(out), "-lm"], check=True)


def _errors(files: CFiles, folder: Path) -> list[str]:
    """What the test that goes along found: largest error, roundings times the condition; each with its function."""
    folder.mkdir()
    for name, text in files.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    program = folder / "program"
    _compile([folder / f"{files.name}.c", folder / f"{files.name}_test.c"], ["-O1"], program)
    done = subprocess.run([program], capture_output=True, text=True)
    found = []
    for pattern in (r"^(\w+) +largest error (\S+) in [1-9]", r"^(\w+) .* (\S+) roundings"):
        pairs = re.findall(pattern, done.stdout, re.MULTILINE)
        function, number = max(pairs, key=lambda pair: float(pair[1]), default=("", ""))
        found.append(f"{number} ({function.replace('_', ' ')})" if number else "")
    if done.returncode:
        found[0] += " **above what the test allows**"
    return found


def _pinocchio(name: str) -> str:
    """Time of Pinocchio's inverse dynamics with the joints given; nothing where a loop is not a ball."""
    try:
        sample = Sample(name)
        call = pinocchio_inverse_dynamics(sample.pinocchio, sample.q, sample.v, sample.vdot)
    except (NotImplementedError, NoRegularStatesError):
        return ""
    return str(interleaved(call, repetitions=31)[0])


def _times(dynamics: Dynamics, files: CFiles, source: Path, folder: Path) -> list[str]:
    """Times of the functions in C and of the lean calls, in turn."""
    kinematics = dynamics.kinematics
    loops, out = folder / "loops.c", folder / f"{files.name}.so"
    direct = kinematics.direct_inverse  # the lean call then gives the drives alone
    text, carried = LOOPS, files.robot.iterated
    words = {"INVERSE(AT, 0, q": "NAME_drivesNEAR(AT, 0, q" if direct else "NAME_inverseNEAR(AT, 0, q, joints"}
    words |= {"NAME": files.name, "DRIVES": str(len(kinematics.actuated_names))}
    words |= {"NEAR": "_near" if carried else "", "ALONG": ", &limbs" if carried else ""}
    words |= {"LIMBS": f"static struct {files.name}_limbs limbs;" if carried else ""}
    words |= {"CONTINUED": "pose, &limbs" if carried else "pose, pose"}
    for word, by in words.items():
        text = text.replace(word, by)
    loops.write_text(text)
    _compile([source, loops], [*NATIVE, "-shared", "-fPIC", f"-I{source.parent}"], out)
    library = ctypes.CDLL(str(out))
    try:
        way = ThereAndBack(dynamics)
    except LookupError:
        return [""] * 8

    def in_c(name: str, motion: np.ndarray, other: np.ndarray) -> Callable[[], object]:
        call = getattr(library, f"loop_{name}")
        addresses = ctypes.c_void_p(motion.ctypes.data), ctypes.c_void_p(other.ctypes.data)
        return lambda: call(*addresses, CALLS)

    ours = [
        in_c("inverse", way.motion, way.q),
        in_c("inverse_dynamics", way.motion, way.q),
        in_c("direct_dynamics", way.coasting, way.effort),
        in_c("forward", way.motion, way.q),
    ]
    t = interleaved(*(call for pair in zip(ours, way.lean, strict=True) for call in pair), repetitions=31)
    calls = [CALLS, 2] * 4
    return [f"{1e6 * one.median / n:.2f} µs" for one, n in zip(t, calls, strict=True)]


def main() -> None:
    """Print the rows; with `--write` put them into a page between its marks."""
    p = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    p.add_argument("robots", nargs="*", metavar="robot", help="robots of the gallery; all if none is given")
    p.add_argument("--write", type=Path, metavar="FILE", help="page in whose table the rows are replaced")
    given = p.parse_args()
    pin_to_one_core()
    with tempfile.TemporaryDirectory() as folder:
        for row in rows(given.robots or robot_names(), Path(folder)):
            print(" | ".join(row), flush=True)
            if given.write:
                put(given.write, HEADER, row)


if __name__ == "__main__":
    main()
