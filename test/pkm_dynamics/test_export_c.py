# SPDX-License-Identifier: Apache-2.0
"""Robots in C: compiled without a warning, judged by Python's own calls, and attacked with any bits."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pkm_bringup.command_line.export_robot import main
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.export_c.c_files import PROTOTYPES, CFiles
from pkm_dynamics.export_c.c_test import CALLS, DOUBLE, PARTS, states_of
from pkm_dynamics.export_c.recorded_robot import ExportError
from pkm_kinematics import Status, check

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic"]
SANITIZED = ["-O1", "-g0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
NOT_CONNECTED = int(Status.NOT_CONNECTED)
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]

needs_compiler = pytest.mark.skipif(not COMPILERS, reason="no C compiler (gcc or clang)")


def expressible(dynamics: Dynamics) -> bool:
    return dynamics.kinematics.constant_space


def written(dynamics: Dynamics, folder: Path, single: bool = False) -> CFiles:
    files = CFiles(dynamics, single)
    for name, text in files.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return files


def compiled(compiler: str, options: list[str], sources: list[Path], out: Path) -> Path:
    done = subprocess.run(
        [compiler, *STRICT, *options, *map(str, sources), "-o", str(out), "-lm"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[:2000]
    return out


@needs_compiler
def test_the_test_that_goes_along_passes(robot_name: str, tmp_path: Path) -> None:
    """By every compiler, without a warning; clean under sanitizers. What cannot be expressed is refused by name."""
    dynamics = Dynamics(load_mechanism(robot_name))
    if not expressible(dynamics):
        with pytest.raises(ExportError, match=dynamics.kinematics.mechanism.name):
            CFiles(dynamics)
        return
    name = written(dynamics, tmp_path).name
    sources = [tmp_path / f"{name}.c", tmp_path / f"{name}_test.c"]
    for compiler in COMPILERS:
        program = compiled(compiler, SANITIZED if compiler == "gcc" else ["-O0"], sources, tmp_path / compiler)
        done = subprocess.run([program], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert all(len(text.read_text().splitlines()) < 20_000 for text in tmp_path.glob("*.[ch]"))


class Library:
    """The functions of a robot in C, called from here."""

    def __init__(self, dynamics: Dynamics, folder: Path) -> None:
        self.files = written(dynamics, folder)
        self.kinematics = dynamics.kinematics
        library = compiled(COMPILERS[0], ["-O1", "-shared", "-fPIC"], [folder / f"{self.files.name}.c"], folder / "lib")
        self.library = ctypes.CDLL(str(library))

    def call(self, name: str, *arguments: np.ndarray | int) -> int:
        function = getattr(self.library, f"{self.files.name}_{name}")
        return int(function(*(a if isinstance(a, int) else a.ctypes.data_as(ctypes.c_void_p) for a in arguments)))


def compare_with_python(dynamics: Dynamics, n: int, folder: Path) -> None:
    library, states = Library(dynamics, folder), states_of(dynamics, n, seed=11)
    k, m = dynamics.kinematics, len(dynamics.kinematics.actuated_names)
    given = {name: np.ascontiguousarray(states.given[name]) for name in PARTS}
    drives = np.ascontiguousarray(states.answers["inverse"][:, k.engine.actuated_column])
    for name in CALLS:
        expected, codes = states.answers[name], states.status[name]
        found, status = np.full(expected.shape, 7.0), np.zeros(n, dtype=np.int64)
        actuated = np.empty(m)
        inputs = {
            "inverse_dynamics": ("pose", "twist", "acceleration"),
            "direct_dynamics": ("pose", "twist", "effort"),
        }.get(name, ("pose",))
        for i in range(n):
            if name == "forward":
                status[i] = library.call(name, drives[i], given["near"][i], found[i])
                continue
            out = (actuated, found[i]) if name == "inverse" else (found[i],)
            status[i] = library.call(name, *(given[what][i] for what in inputs), int(states.mode[i]), *out)
        known = np.isin(status, (Status.CONVERGED, Status.JOINT_LIMIT))
        assert np.isnan(found[~known]).all()
        refused = status == NOT_CONNECTED if name != "forward" else ~known
        if refused.any():  # what Python reaches on another way
            assert (refused & (codes == 0)).mean() < (0.1 if k.engine.iterated else 0.02)
            known &= codes == 0
        if name == "forward":
            found[:, 3:] *= np.where((found[:, 3:] * expected[:, 3:]).sum(axis=1) < 0.0, -1.0, 1.0)[:, None]
        else:
            np.testing.assert_array_equal(status[~refused], codes[~refused], err_msg=name)
        top = np.abs(np.nan_to_num(expected)).max(axis=1, keepdims=True)
        off = np.abs(found - expected) / np.maximum(top, 1e-6 * top.max(initial=1e-300))
        assert off[known].max(initial=0.0) < DOUBLE, name


@needs_compiler
@pytest.mark.parametrize("name", ["delta", "hexa", "wrist_3ups_s", "gough_stewart_7", "orthoglide"])
def test_c_is_python(name: str, tmp_path: Path) -> None:
    compare_with_python(Dynamics(load_mechanism(name)), 10_000, tmp_path)


@needs_compiler
@pytest.mark.slow
def test_c_is_python_in_many_states(robot_name: str, tmp_path: Path) -> None:
    dynamics = Dynamics(load_mechanism(robot_name))
    if expressible(dynamics):
        compare_with_python(dynamics, 100_000, tmp_path)


ATTACK = """
#include "NAME.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static uint64_t state = 88172645463325252u;
static uint64_t bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}
static void fill(double *out, int n, int kind)
{
    for (int k = 0; k < n; k++) {
        const uint64_t any = bits();
        if (kind == 0 || (kind == 1 && any % 8 == 0))
            memcpy(&out[k], &any, sizeof any);
        else
            out[k] = (double)(any % 2000001u) * 2e-6 - 2.0;
    }
}
int main(int argc, char **argv)
{
    const long n = argc > 1 ? atol(argv[1]) : 0;
    double in[6][64], out[512], other[64];
    long answered = 0;
    for (long i = 0; i < n; i++) {
        const int kind = (int)(bits() % 3);
        const int mode = (int)(bits() % (UPPER_N_MODES + 2)) - 1;
        for (int k = 0; k < 6; k++)
            fill(in[k], 64, kind);
        if (bits() % 2) {
            memcpy(in[0], NAME_home, 7 * sizeof(double));
            for (int k = 0; k < 3; k++)
                in[0][k] += kind == 0 ? 0.0 : 0.1 * in[1][k];
        }
        memset(out, 0, sizeof out);
        int status[7] = {0}, sizes[7] = {SIZES};
        double *outs[7];
        for (int k = 0; k < 7; k++)
            outs[k] = out + 72 * k;
        status[0] = NAME_inverse(in[0], mode, other, outs[0]);
        status[1] = NAME_jacobian(in[0], mode, outs[1]);
        status[2] = NAME_inverse_dynamics(in[0], in[1], in[2], mode, outs[2]);
        status[3] = NAME_direct_dynamics(in[0], in[1], in[3], mode, outs[3]);
        status[4] = NAME_gravity(in[0], mode, outs[4]);
        status[5] = NAME_margins(in[0], mode, outs[5]);
        status[6] = NAME_forward(in[4], in[0], outs[6]);
        for (int f = 0; f < 7; f++)
            for (int k = 0; k < sizes[f]; k++) {
                const int solved = status[f] == PKM_OK || status[f] == PKM_JOINT_LIMIT;
                if (solved != (isfinite(outs[f][k]) != 0) || (!solved && !isnan(outs[f][k])))
                    return printf("function %d, state %ld, status %d: %g\\n", f, i, status[f], outs[f][k]), 1;
                answered += solved;
            }
        if ((mode < 0 || mode >= UPPER_N_MODES) && status[0] != PKM_NO_SUCH_MODE)
            return printf("mode %d: status %d\\n", mode, status[0]), 1;
    }
    printf("%ld\\n", answered);
    return answered == 0;
}
"""


def attack(name: str, n: int, folder: Path) -> None:
    """Any bits give a status and NaN, or numbers and none; nothing traps, nothing is read or written beyond its end."""
    dynamics = Dynamics(load_mechanism(name))
    files = written(dynamics, folder)
    m, joints = len(dynamics.kinematics.actuated_names), len(dynamics.kinematics.joint_names)
    sizes = f"{joints}, {6 * m}, {m}, 6, {m}, 2, 7"
    text = ATTACK.replace("UPPER", files.name.upper()).replace("NAME", files.name).replace("SIZES", sizes)
    (folder / "attack.c").write_text(text)
    program = compiled(COMPILERS[0], SANITIZED, [folder / f"{files.name}.c", folder / "attack.c"], folder / "attack")
    done = subprocess.run([program, str(n)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


@needs_compiler
@pytest.mark.parametrize("name", ["delta", "gough_stewart_7", "navaro", "orthoglide"])
def test_any_bits(name: str, tmp_path: Path) -> None:
    attack(name, 100_000, tmp_path)


@needs_compiler
@pytest.mark.slow
def test_any_bits_of_every_robot(robot_name: str, tmp_path: Path) -> None:
    if expressible(Dynamics(load_mechanism(robot_name))) and robot_name != "griffis_duffy":
        attack(robot_name, 10_000_000, tmp_path)


@needs_compiler
def test_floats(tmp_path: Path) -> None:
    name = written(Dynamics(load_mechanism("delta")), tmp_path, single=True).name
    sources = [tmp_path / f"{name}.c", tmp_path / f"{name}_test.c"]
    for compiler in COMPILERS:
        program = compiled(compiler, ["-O1"], sources, tmp_path / compiler)
        done = subprocess.run([program], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_changed_description_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "delta")
    assert main(["delta", "--to", "c", "-o", folder]) == 0
    assert check.main(["delta", "--exported", folder]) == 0
    assert check.main(["linear_delta", "--exported", folder]) == 1
    assert "another description" in capsys.readouterr().err
    assert check.main(["delta", "--exported", str(tmp_path)]) == 1
    assert main(["tricept", "--to", "c", "-o", folder]) == 1
    assert "tricept" in capsys.readouterr().err


def test_the_header_has_what_was_promised(tmp_path: Path) -> None:
    header = CFiles(Dynamics(load_mechanism("delta"))).header()
    for word in ("DELTA_N_JOINTS 18", "DELTA_N_ACTUATED 3", "DELTA_N_MODES 8", "PKM_OK 0"):
        assert f"#define {word}" in header
    for name, _ in PROTOTYPES:
        assert f"int delta_{name}(" in header
