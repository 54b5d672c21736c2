# SPDX-License-Identifier: Apache-2.0
"""Robots in C: compiled without a warning, judged by Python's own calls, and attacked with any bits."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pkm_bringup.command_line.export_robot import main
from pkm_description import load_mechanism
from pkm_description.corrections import Displacement, corrected
from pkm_description.rotations import pose_distance
from pkm_dynamics import Dynamics
from pkm_dynamics.export_c import c_files
from pkm_dynamics.export_c.c_files import CFiles
from pkm_dynamics.export_c.c_test import CALLS, DOUBLE, PARTS, states_of
from pkm_dynamics.export_c.headers import PROTOTYPES
from pkm_dynamics.export_c.machines import arduino_library
from pkm_dynamics.export_c.recorded_function import ExportError
from pkm_dynamics.export_c.recorded_robot import ROOM
from pkm_dynamics.linear_form.random_motions import random_motions
from pkm_kinematics import Status, check
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_kinematics.status import closes

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wdouble-promotion", "-Werror", "-pedantic"]
SANITIZED = ["-g0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
NOT_CONNECTED = int(Status.NOT_CONNECTED)
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]

needs_compiler = pytest.mark.skipif(not COMPILERS, reason="no C compiler (gcc or clang)")


@cache
def recorded(robot: str, single: bool = False) -> tuple[CFiles, dict[str, str]]:
    """A robot's files and their texts, made once for all tests that write them."""
    files = CFiles(Dynamics(load_mechanism(robot)), single)
    return files, files.files


def put(texts: dict[str, str], folder: Path) -> None:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def written(robot: str, folder: Path, single: bool = False) -> CFiles:
    files, texts = recorded(robot, single)
    put(texts, folder)
    return files


def compiled(compiler: str, options: list[str], sources: list[Path], out: Path) -> Path:
    strict = STRICT if compiler in COMPILERS else ["-std=c++17", *STRICT[1:]]
    linked = [] if "-c" in options else ["-lm"]
    done = subprocess.run(
        [compiler, *strict, *options, *map(str, sources), "-o", str(out), *linked], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[:2000]
    return out


def plus_plus(compiler: str) -> str:
    """The C++ compiler beside a C compiler."""
    found = {"gcc": "g++", "clang": "clang++"}[compiler]
    return found if shutil.which(found) else pytest.skip(f"no {found}")


def passes(robot: str, folder: Path, compiler: str, options: list[str], single: bool = False) -> None:
    """Compile a robot with its test, without a warning, and run it."""
    name = written(robot, folder, single).name
    program = compiled(compiler, options, [folder / f"{name}.c", folder / f"{name}_test.c"], folder / compiler)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.by_day("tripod_3prs")
@needs_compiler
@pytest.mark.parametrize(
    ("compiler", "options"),
    [
        *((compiler, ["-O0"]) for compiler in COMPILERS),
        *(pytest.param(one, ["-O1", *SANITIZED], marks=pytest.mark.slow, id="clean") for one in COMPILERS[:1]),
    ],
)
def test_the_test_that_goes_along_passes(robot_name: str, compiler: str, options: list[str], tmp_path: Path) -> None:
    """By every compiler, without a warning; clean under sanitizers."""
    passes(robot_name, tmp_path, compiler, options)
    assert all(len(text.read_text().splitlines()) < 20_000 for text in tmp_path.glob("*.[ch]"))


class Library:
    """The functions of a robot in C, called from here."""

    def __init__(self, files: CFiles, folder: Path) -> None:
        self.files, self.dynamics, self.kinematics = files, files.dynamics, files.kinematics
        library = compiled(COMPILERS[0], ["-O0", "-shared", "-fPIC"], [folder / f"{self.files.name}.c"], folder / "lib")
        self.library = ctypes.CDLL(str(library))

    def call(self, name: str, *arguments: np.ndarray | int) -> int:
        function = getattr(self.library, f"{self.files.name}_{name}")
        return int(function(*(a if isinstance(a, int) else a.ctypes.data_as(ctypes.c_void_p) for a in arguments)))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Library]:
    """The library of a robot, compiled once."""

    @cache
    def made(name: str) -> Library:
        folder = tmp_path_factory.mktemp(name)
        return Library(written(name, folder), folder)

    return made


def compare_with_python(library: Library, n: int) -> None:
    dynamics, k, m = library.dynamics, library.kinematics, len(library.kinematics.actuated_names)
    states = states_of(dynamics, n, seed=11)
    given = {name: np.ascontiguousarray(states.given[name]) for name in PARTS}
    drives = np.ascontiguousarray(states.answers["inverse"][:, k.engine.actuated_column])
    for name in CALLS:
        expected, codes = states.answers[name], states.status[name]
        found, status = np.full(expected.shape, 7.0), np.zeros(n, dtype=np.int64)
        actuated, first = np.empty(m), found.copy()
        inputs = {
            "inverse_dynamics": ("pose", "twist", "acceleration"),
            "direct_dynamics": ("pose", "twist", "effort"),
        }.get(name, ("pose",))
        for i in range(n):
            if name == "forward":
                status[i] = library.call(name, drives[i], given["near"][i], first[i])
                found[i] = first[i]
                if status[i] == 0:  # it ends where little is left to correct, and goes on from there
                    status[i] = library.call(name, drives[i], first[i], found[i])
                continue
            out = (actuated, found[i]) if name == "inverse" else (found[i],)
            status[i] = library.call(name, *(given[what][i] for what in inputs), int(states.mode[i]), *out)
        known = np.isin(status, (Status.CONVERGED, Status.JOINT_LIMIT))
        assert np.isnan(found[~known]).all()
        refused = status == NOT_CONNECTED if name != "forward" else ~known
        refused |= (status == Status.SINGULAR) & np.isinf(states.bound(name))
        if refused.any():  # what Python reaches on another way
            way = refused & (codes == 0) & np.isfinite(states.bound(name))
            assert way.mean() < (0.1 if k.engine.iterated else 0.02)
            known &= codes == 0
        if name == "forward":
            once = k.forward(drives, near=given["near"]).pose  # from where it ends another mode may be nearer
            for pose, other in ((found, expected), (first, once)):
                pose[:, 3:] *= np.where((pose[:, 3:] * other[:, 3:]).sum(axis=1) < 0.0, -1.0, 1.0)[:, None]
            well = known & (states.bound(name) <= DOUBLE)
            off = np.nanmax(np.abs(first - once)[well], initial=0.0)
            assert off < 1e-10  # as foretold: 1e-13 of the size, seldom 100 times
        else:
            np.testing.assert_array_equal(status[~refused], codes[~refused], err_msg=name)
        top = np.abs(np.nan_to_num(expected)).max(axis=1, keepdims=True)
        off = np.abs(found - expected) / np.maximum(top, states.least(name))
        over = off.max(axis=1) / states.bound(name)
        assert over[known].max(initial=0.0) < 1.0, name


@pytest.mark.by_day("delta", "planar_redundant", "carpal_wrist")
@needs_compiler
@pytest.mark.parametrize(
    "name", ["delta", "planar_redundant", "gough_stewart_7", "orthoglide", "tripod_3prs", "carpal_wrist"]
)
def test_c_is_python(name: str, library: Callable[[str], Library]) -> None:
    compare_with_python(library(name), 2_000)


@needs_compiler
def test_many_working_modes_have_no_table_of_their_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_files, "MANY", 4)
    files = CFiles(Dynamics(load_mechanism("wrist_3ruu")), False)
    put(files.files, tmp_path)
    assert "start_of_mode" not in (tmp_path / "wrist_3ruu.c").read_text()
    library = Library(files, tmp_path)
    assert files.n_modes > 4
    assert set(states_of(files.dynamics, 300, seed=11).mode) == set(range(files.n_modes))
    compare_with_python(library, 300)


@needs_compiler
@pytest.mark.slow
def test_c_is_python_in_many_states(robot_name: str, library: Callable[[str], Library]) -> None:
    compare_with_python(library(robot_name), 100_000)


ANKLE = str(Path(__file__).parents[2] / "docs/examples/ankle.urdf.xacro")
ATTACK = """
#include "NAME.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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
    const long n = argc > 1 ? atol(argv[1]) : 0, seconds = argc > 2 ? atol(argv[2]) : 1;
    double in[6][64], out[2048], other[64];LIMBS
    long answered = 0;
    for (long i = 0; i < n && (i < LEAST || clock() / CLOCKS_PER_SEC < seconds); i++) {
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
        int status[PASSES * 8] = {0}, sizes[8] = {SIZES};
        double *outs[PASSES * 8];
        for (int k = 0; k < PASSES * 8; k++)
            outs[k] = out + 72 * k;
CALLS
        for (int f = 0; f < PASSES * 8; f++)
            for (int k = 0; k < sizes[f % 8]; k++) {
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


ATTACKS = """\
        status[0] = NAME_inverseNEAR(in[0], mode, other, outs[0]ALONG);
        status[1] = NAME_jacobianNEAR(in[0], mode, outs[1]ALONG);
        status[2] = NAME_inverse_dynamicsNEAR(in[0], in[1], in[2], mode, outs[2]ALONG);
        status[3] = NAME_direct_dynamicsNEAR(in[0], in[1], in[3], mode, outs[3]ALONG);
        status[4] = NAME_gravityNEAR(in[0], mode, outs[4]ALONG);
        status[5] = NAME_marginsNEAR(in[0], mode, outs[5]ALONG);
        status[6] = NAME_forwardNEAR(in[4], CONTINUED);
        status[7] = NAME_drivesNEAR(in[0], mode, outs[7]ALONG);
"""
ANY_LIMBS = """\
        if (bits() % 4 == 0) {
            fill(limbs.pose, 7, kind);
            fill(limbs.joints, 3 * UPPER_N_JOINTS, kind);
            limbs.known = (int)(bits() % 3);
            limbs.mode = kind == 0 ? (int)bits() : mode;
        }
"""


def attack(name: str, n: int, level: str, folder: Path, seconds: int = 1) -> None:
    """Any bits give a status and NaN, or numbers and none; nothing traps, nothing is read or written beyond its end.
    Of `n` patterns at least 10,000, and as many as the time allows.
    """
    files = written(name, folder)
    dynamics = files.dynamics
    m, joints = len(dynamics.kinematics.actuated_names), len(dynamics.kinematics.joint_names)
    sizes = f"{joints}, {6 * m}, {m}, 6, {m}, 2, 7, {m}"
    calls = ATTACKS.replace("NEAR", "").replace("ALONG", "").replace("CONTINUED", "in[0], outs[6]")
    if files.robot.iterated:
        near = ATTACKS.replace("NEAR", "_near").replace("ALONG", ", &limbs").replace("CONTINUED", "outs[6], &limbs")
        for k in range(8):
            near = near.replace(f"status[{k}] =", f"status[8 + {k}] =").replace(f"outs[{k}]", f"outs[8 + {k}]")
        calls += ANY_LIMBS + near
    limbs = "\n    struct NAME_limbs limbs = {0};" if files.robot.iterated else ""
    words = {"CALLS": calls, "LIMBS": limbs, "PASSES": str(1 + files.robot.iterated), "SIZES": sizes, "LEAST": "10000"}
    text = ATTACK
    for word, by in (words | {"UPPER": files.name.upper(), "NAME": files.name}).items():
        text = text.replace(word, by)
    (folder / "attack.c").write_text(text)
    sources = [folder / f"{files.name}.c", folder / "attack.c"]
    program = compiled(COMPILERS[0], [level, *SANITIZED], sources, folder / "attack")
    done = subprocess.run([program, str(n), str(seconds)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


@pytest.mark.by_day("carpal_wrist")
@needs_compiler
@pytest.mark.parametrize("name", ["wrist_3ruu", "carpal_wrist"])
def test_any_bits(name: str, tmp_path: Path) -> None:
    attack(name, 10_000, "-O0", tmp_path)


@needs_compiler
@pytest.mark.slow
def test_any_bits_of_every_robot(robot_name: str, tmp_path: Path) -> None:
    if robot_name != "griffis_duffy":
        attack(robot_name, 10_000_000, "-O1", tmp_path, seconds=600)


@needs_compiler
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", ["math", "test", "joint", "int"])
def test_names_that_mean_something_in_c(name: str, compiler: str, tmp_path: Path) -> None:
    """Of a robot, and of a joint that would end a comment, and has no end: the code compiles, and CMake takes it."""
    text = load_mechanism("five_bar").urdf.replace('name="five_bar"', f'name="{name}"')
    text = text.replace('"left_elbow" type="revolute"', '"left_elbow" type="continuous"')
    files = CFiles(Dynamics(load_mechanism(text.replace('"left_elbow"', '"*/ elbow"'))))
    put(files.files, tmp_path)
    compiled(compiler, ["-O0", "-c", "-I", str(tmp_path)], [tmp_path / f"{files.name}.c"], tmp_path / "object")
    if shutil.which("cmake"):
        there = ["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build")]
        done = subprocess.run(there, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.by_day("delta")
@needs_compiler
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", ["delta", "two_tpr"])
def test_floats(name: str, compiler: str, tmp_path: Path) -> None:
    passes(name, tmp_path, compiler, ["-O0"], single=True)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS)
def test_floats_of_every_robot(robot_name: str, compiler: str, tmp_path: Path) -> None:
    passes(robot_name, tmp_path, compiler, ["-O1"], single=True)


@pytest.mark.slow
@pytest.mark.by_day("quattro")
@needs_compiler
@pytest.mark.parametrize("name", ["wrist_3ruu", "quattro"])
def test_limbs_are_taken_along(name: str, library: Callable[[str], Library]) -> None:
    """On a path, and after a leap, the answers are those from home; memories of two loops do not meet."""
    in_c = library(name)
    k, states = in_c.kinematics, states_of(in_c.dynamics, 20, seed=5)
    ends = states.given["pose"][(states.mode == 0) & (states.status["forward"] == 0)][:4]
    joints, m = len(k.joint_names), len(k.actuated_names)
    loops = [np.zeros(8 + 3 * joints) for _ in ends]  # as the struct: two integers in the last number
    for part in (0.0, 0.3, 0.305, 0.31, 1.0, 0.0):
        for end, limbs in zip(ends, loops, strict=True):
            pose = straight(np.array(k.home), end, part)
            found, expected = np.empty((2, joints)), np.empty((2, 6 * m))
            drives = np.empty(m)
            assert in_c.call("inverse_near", pose, 0, drives, found[0], limbs) == 0
            assert in_c.call("inverse", pose, 0, drives, found[1]) == 0
            np.testing.assert_allclose(found[0], found[1], rtol=0.0, atol=1e-11)
            assert in_c.call("jacobian_near", pose, 0, expected[0], limbs) == 0
            assert in_c.call("jacobian", pose, 0, expected[1]) == 0
            np.testing.assert_allclose(expected[0], expected[1], rtol=0.0, atol=1e-10 * np.abs(expected).max())
            there = np.empty(7)
            ahead = straight(pose, end, 0.02)
            assert in_c.call("inverse", ahead, 0, drives, found[1]) == 0
            assert in_c.call("forward_near", drives, there, limbs) == 0
            there[3:] *= np.sign(there[3:] @ ahead[3:])
            np.testing.assert_allclose(there, ahead, rtol=0.0, atol=1e-10)


def straight(start: np.ndarray, end: np.ndarray, part: float) -> np.ndarray:
    """A pose on the way from one to another."""
    sign = np.sign(start[3:] @ end[3:])
    pose = start + part * (np.concatenate([end[:3], sign * end[3:]]) - start)
    pose[3:] /= np.linalg.norm(pose[3:])
    return pose


@pytest.mark.by_day("carpal_wrist")
@needs_compiler
@pytest.mark.parametrize("name", ["tricept", "carpal_wrist"])
def test_motions_in_a_space_that_turns(name: str, library: Callable[[str], Library]) -> None:
    """What the platform cannot do is refused as in Python, what it nearly does is moved to what it can."""
    in_c = library(name)
    dynamics, k, states = in_c.dynamics, in_c.kinematics, states_of(in_c.dynamics, 20, seed=3)
    effort, there, scale = np.empty(3), np.empty(7), k.engine.spaces.rate_scale
    for pose, twist, acceleration in zip(*(states.given[what] for what in PARTS[:3]), strict=True):
        across = np.linalg.svd((k.inverse(pose).subspace * scale[:, None]).T)[2][-1] / scale
        for off, far in ((0.0, 0.0), (1e-3, 0.0), (0.0, 0.01), (0.0, 0.5)):
            moving = twist + off * across
            wanted = acceleration + far * (1.0 + np.linalg.norm(acceleration * scale)) * across
            expected = dynamics.inverse(k.at(pose), moving, wanted)
            assert in_c.call("inverse_dynamics", pose, moving, wanted, 0, effort) == expected.status
            assert (expected.status == Status.CONVERGED) == (off == 0.0 and far < 0.1)
            np.testing.assert_allclose(effort, expected.effort, rtol=0.0, atol=1e-11 * np.nanmax([1.0, *abs(effort)]))
        shifted = pose.copy()
        shifted[:3] += 1e-3 * across[:3] + 1e-3 * across[3:]
        assert in_c.call("gravity", shifted, 0, effort) == Status.UNREACHABLE
        near = pose.copy()
        near[:3] += 1e-8 * k.engine.size
        assert in_c.call("forward", k.inverse(pose).actuated, near, there) == 0
        np.testing.assert_allclose(there, pose, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("name", ["carpal_wrist", "tripod_3prs"])
def test_poses_of_states_are_possible_to_rounding(name: str) -> None:
    """What they miss of a space that turns counts like rounding, and would be a hundred times as much of it."""
    k = Dynamics(load_mechanism(name)).kinematics
    assert k.inverse(random_motions(k, 200).pose).residual.max() < 1e-15 * k.engine.size


@pytest.mark.by_day("carpal_wrist")
@needs_compiler
@pytest.mark.parametrize("name", ["tricept", "carpal_wrist"])
def test_poses_that_miss_the_space_by_rounding(name: str, library: Callable[[str], Library]) -> None:
    """They are moved into it as by Python, those farther off are refused by both."""
    in_c, random = library(name), np.random.default_rng(4)
    dynamics, k = in_c.dynamics, in_c.kinematics
    joints, drives, effort = np.empty(len(k.joint_names)), np.empty(3), np.empty(3)
    for pose in states_of(dynamics, 20, seed=3).given["pose"]:
        off = random.normal(size=6)
        off *= np.repeat([k.engine.size, 1.0], 3) / np.linalg.norm(off)
        for part in (4e-7, 1e-5):
            beside = np.ascontiguousarray(displace(pose, part * off))
            at = k.at(beside)
            assert closes(at.status) == (part < 1e-6)
            assert in_c.call("inverse", beside, 0, drives, joints) == at.status
            np.testing.assert_allclose(joints, at.joints, rtol=0.0, atol=1e-11)
            expected = dynamics.inverse(at)
            assert in_c.call("gravity", beside, 0, effort) == expected.status
            np.testing.assert_allclose(effort, expected.effort, rtol=0.0, atol=1e-11)


@pytest.mark.slow
@needs_compiler
def test_turns_of_a_platform_with_one_way(library: Callable[[str], Library]) -> None:
    """All along the closed way of a four-bar, joints have made the turns that they make in Python.

    They have those of the other way round at most beside where both ways round meet.
    """
    in_c, others = library("reactionless_four_bar"), 0
    k = in_c.kinematics
    curve = k.engine.from_home.curve(k.home_joints)
    assert curve is not None
    joints, drives = np.empty(3), np.empty(1)
    for pose in np.ascontiguousarray(curve.poses[::3]):
        assert in_c.call("inverse", pose, 0, drives, joints) == k.inverse(pose).status == Status.CONVERGED
        off = (joints - k.inverse(pose).joints) / (2.0 * np.pi)
        np.testing.assert_allclose(off, np.round(off), rtol=0.0, atol=1e-11)
        others += int(np.abs(off).max() > 0.5)
    assert others <= 1


@pytest.mark.by_day("carpal_wrist")
@needs_compiler
@pytest.mark.parametrize(
    ("name", "spread", "told", "answered"),
    [
        ("carpal_wrist", 1.5, [[-0.38043, 0.17341, 1.68939], [-0.13694, 0.93091, -0.16799]], 235),
        ("reactionless_four_bar", 3.0, [[3.13062], [-0.62495], [3.1496]], 150),
    ],
)
def test_no_singularity_of_constraints_is_leapt_over(
    name: str, spread: float, told: list[list[float]], answered: int, library: Callable[[str], Library]
) -> None:
    """Drives far from home lead to Python's pose: beyond such a singularity, limbs close on several ways.

    A few ways pass so near to a singularity that Python refuses, and C does not.
    """
    in_c, there, ok, alone = library(name), np.empty(7), 0, 0
    k = in_c.kinematics
    at_home = k.inverse(k.home).actuated
    drives = at_home + np.random.default_rng(1).uniform(-spread, spread, (300, len(at_home)))
    for q in np.concatenate([told, drives]):
        if in_c.call("forward", q, k.home, there) == 0:
            expected = k.forward(q)
            ok += 1
            if not closes(expected.status):
                alone += 1
                continue
            there[3:] *= np.sign(there[3:] @ expected.pose[3:])
            np.testing.assert_allclose(there, expected.pose, rtol=0.0, atol=1e-6, err_msg=str(q))
    assert alone <= 3
    assert ok > answered


@needs_compiler
def test_far_ways_begin_in_the_mode_of_home(library: Callable[[str], Library]) -> None:
    """Wherever C has an answer it is Python's, and it has one on every way on which no limb is stretched or folded."""
    in_c, there, answers = library("five_bar"), np.empty(7), 0
    k = in_c.kinematics
    at_home = k.inverse(k.home).actuated
    for q in at_home + np.random.default_rng(1).uniform(-1.5, 1.5, (60, 2)):
        expected = k.forward(q)
        if in_c.call("forward", q, k.home, there) == 0:
            answers += 1
            np.testing.assert_allclose(there, expected.pose, rtol=0.0, atol=1e-9)
        elif closes(expected.status):
            assert not np.allclose(k.inverse(expected.pose).actuated, q)  # a limb has folded on the way
    assert answers > 20


@pytest.mark.by_day("agile_eye")
@needs_compiler
@pytest.mark.parametrize("name", ["agile_eye", "eclipse2"])
def test_a_platform_turns_by_more_than_a_right_angle(name: str, library: Callable[[str], Library]) -> None:
    """Of two ways to read its branch, each is once the right one."""
    in_c = library(name)
    k = in_c.kinematics
    for angle in (-3.0, -2.0, -1.0, 1.0, 2.0, 3.0):
        pose = displace(np.array(k.home), np.array([0.0, 0.0, 0.0, 0.0, 0.0, angle]))
        known, actuated, joints = k.inverse(pose), np.empty(len(k.actuated_names)), np.empty(len(k.joint_names))
        assert closes(known.status)
        assert in_c.call("inverse", pose, 0, actuated, joints) == known.status
        np.testing.assert_allclose(joints, known.joints, atol=1e-12)


@needs_compiler
def test_quaternions_are_as_rough_as_python_takes_them(library: Callable[[str], Library]) -> None:
    in_c, drives, k = library("five_bar"), np.empty(2), library("five_bar").kinematics
    for length in (1.0 - 9e-4, 1.0 + 1e-5, 1.0 + 9e-4, 1.002):
        pose = k.home * np.where(np.arange(7) < 3, 1.0, length)
        expected = k.inverse(pose)
        assert in_c.call("inverse", pose, 0, drives, np.empty(len(k.joint_names))) == expected.status
        np.testing.assert_allclose(drives, expected.actuated, rtol=0.0, atol=1e-12)


@pytest.mark.slow
@needs_compiler
def test_bases_of_a_space_that_turns_may_turn_over(library: Callable[[str], Library]) -> None:
    """In one state of these, the basis does between `near` and the pose, which is no singularity."""
    in_c, there = library("tricept"), np.empty(7)
    states = states_of(in_c.dynamics)
    drives = np.ascontiguousarray(states.answers["inverse"][:, in_c.kinematics.engine.actuated_column])
    near = np.ascontiguousarray(states.given["near"])
    for k in range(len(drives)):
        assert in_c.call("forward", drives[k], near[k], there) == 0


@pytest.mark.slow
@needs_compiler
def test_steps_that_are_nearly_straight_go_on_the_pose_alone(tmp_path: Path) -> None:
    """Also longer ones than a tenth of the characteristic length, which needs no way on all joints."""
    files, texts = recorded("tricept")
    way = "return follow_graph(actuated, span, q, at);"
    assert way in texts["tricept.c"]
    put(
        texts | {"tricept.c": texts["tricept.c"].replace(way, "return (void)follow_graph, (int)PKM_SINGULAR;")},
        tmp_path,
    )
    library, k, there = Library(files, tmp_path), files.kinematics, np.empty(7)
    goal = k.inverse(k.home).actuated + 0.015 * k.engine.size * np.array([1.0, 0.8, 0.9])
    expected = k.forward(goal).pose
    assert pose_distance(k.home, expected[None], k.characteristic_length)[0] > ROOM * k.characteristic_length
    assert library.call("forward", goal, k.home, there) == 0
    np.testing.assert_allclose(there, expected, rtol=0.0, atol=1e-10)


@pytest.mark.slow
@needs_compiler
def test_no_answer_where_constraints_are_nearly_dependent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the bound just below what it is at home, as these are far from dependent in all of the workspace."""
    monkeypatch.setattr("pkm_dynamics.export_c.recorded_function.FIRM", 0.92)
    files = CFiles(Dynamics(load_mechanism("tricept")))
    put(files.files, tmp_path)
    library, states = Library(files, tmp_path), states_of(files.dynamics, 200)
    out, status = np.empty(3), np.zeros(200, dtype=np.int64)
    for i in range(200):
        status[i] = library.call("gravity", np.ascontiguousarray(states.given["pose"][i]), int(states.mode[i]), out)
        wanted = states.answers["gravity"][i] if status[i] == 0 else np.full(3, np.nan)
        np.testing.assert_allclose(out, wanted, rtol=0.0, atol=1e-12 * np.abs(states.answers["gravity"][i]).max())
    assert set(status) == {0, NOT_CONNECTED}


IN_CPP = """
#include "NAME.hpp"
namespace robot = pkm_NAME;
int main()
{
    std::array<robot::real, robot::n_actuated> actuated{}, effort{};
    robot::real joints[robot::n_joints], jacobian[6 * robot::n_actuated];
    std::array<robot::real, 7> pose{};
    const std::array<robot::real, 7> nowhere{100, 0, 0, 0, 0, 0, 1};
    const auto ok = pkm::status::ok;
    bool right = robot::inverse(NAME_home, 0, actuated, joints) == ok && robot::inverse(NAME_home, 0, actuated) == ok;
    right = right && robot::gravity(pkm::span<const robot::real, 7>(&NAME_home[0]), 0, effort) == ok;
    right = right && robot::jacobian(NAME_home, 0, jacobian) == ok && robot::forward(actuated, NAME_home, pose) == ok;
    right = right && robot::inverse(nowhere, 0, actuated, joints) != ok && NAME_mode_labels[robot::n_modes - 1][0];
MORE    for (robot::real x : pkm::span<const robot::real, 7>(pose))
        right = right && x == x;
    return !right;
}
"""
ALONG_IN_CPP = """\
    robot::limbs limbs{};
    right = right && robot::inverse(NAME_home, 0, actuated, limbs) == ok && robot::forward(actuated, pose, limbs) == ok;
"""


@pytest.mark.by_day("carpal_wrist")
@needs_compiler
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", ["delta", "wrist_3ruu", "carpal_wrist"])
def test_cpp(name: str, compiler: str, tmp_path: Path) -> None:
    files = written(name, tmp_path)
    part = compiled(compiler, ["-O0", "-c"], [tmp_path / f"{name}.c"], tmp_path / "part.o")
    program = IN_CPP.replace("MORE", ALONG_IN_CPP if files.robot.iterated else "").replace("NAME", name)
    (tmp_path / "program.cpp").write_text(program)
    options = ["-O1", "-Wshadow", "-fno-exceptions", "-fno-rtti"]
    built = compiled(plus_plus(compiler), options, [tmp_path / "program.cpp", part], tmp_path / "program")
    assert subprocess.run([built]).returncode == 0
    wrong = program.replace("std::array<robot::real, 7> pose", "std::array<robot::real, 6> pose")
    (tmp_path / "wrong.cpp").write_text(wrong)
    with pytest.raises(AssertionError, match="forward"):
        compiled(plus_plus(compiler), options, [tmp_path / "wrong.cpp", part], tmp_path / "wrong")


ARDUINO = """\
#include <cstdio>
#define PI 3.1415926535897932384626433832795
#define abs(x) ((x)>0?(x):-(x))
#define min(a,b) ((a)<(b)?(a):(b))
struct Port {
    void begin(long) {}
    template <class T> void print(T x, int = 0) { std::printf("%g", static_cast<double>(x)); }
    template <class T> void println(T x, int = 0) { print(x), std::puts(""); }
    void print(const char *text) { std::fputs(text, stdout); }
};
static Port Serial;
inline unsigned long micros() { return 0; }
inline void delay(int) {}
"""


@pytest.mark.slow
@needs_compiler
def test_arduino(tmp_path: Path) -> None:
    """The library is built as Arduino's tools do, with a stand-in for the board, and its sketch runs."""
    files = recorded("delta", single=True)[0]
    put(arduino_library(files), tmp_path)
    (tmp_path / "Arduino.h").write_text(ARDUINO)
    sketch = (tmp_path / "examples" / "delta_at_home" / "delta_at_home.ino").read_text()
    (tmp_path / "sketch.cpp").write_text(f"#include <Arduino.h>\n{sketch}\nint main() {{ setup(); loop(); }}\n")
    for compiler in COMPILERS:
        include = [f"-I{tmp_path}", f"-I{tmp_path / 'src'}", "-Os"]
        part = compiled(compiler, [*include, "-c"], [tmp_path / "src" / "delta.c"], tmp_path / "part.o")
        options = [*include, "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"]
        program = compiled(plus_plus(compiler), options, [tmp_path / "sketch.cpp", part], tmp_path / "sketch")
        said = subprocess.run([program], capture_output=True, text=True).stdout
        assert said.startswith("status 0")
        assert said.count("held by") == 3
    properties = (tmp_path / "library.properties").read_text()
    for key in ("name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures"):
        assert f"\n{key}=" in f"\n{properties}"
    assert files.header.digest in (tmp_path / "src" / "delta.h").read_text()


def test_names_stay_as_they_are_in_what_goes_along_for_arduino() -> None:
    text = load_mechanism("five_bar").urdf.replace('name="five_bar"', 'name="ROBOT"').replace("left_arm", "UPPER_REAL")
    texts = arduino_library(CFiles(Dynamics(load_mechanism(text))))
    assert "Drives: UPPER_REAL, right_arm." in texts["README.md"]
    assert "double actuated[ROBOT_N_ACTUATED]" in texts["README.md"]
    assert "src/robot.c" in texts["README.md"]


def test_a_changed_description_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "delta")
    assert main(["delta", "--to", "c", "-o", folder]) == 0
    assert check.main(["delta", "--exported", folder]) == 0
    assert check.main(["linear_delta", "--exported", folder]) == 1
    assert "another description" in capsys.readouterr().err
    assert check.main(["delta", "--exported", str(tmp_path)]) == 1
    for name in ("delta.h", "delta.c", "delta.hpp"):
        file = tmp_path / "delta" / name
        text = file.read_text()
        file.write_text(text + "\n")
        assert check.main(["delta", "--exported", folder]) == 1
        said = capsys.readouterr().err
        assert f"delta/{name}" in said
        assert "edited since the export" in said
        file.write_text(text)
    assert check.main(["delta", "--exported", folder]) == 0
    (tmp_path / "delta" / "delta.c").unlink()
    assert check.main(["delta", "--exported", folder]) == 1
    assert "delta/delta.c: it is not there" in " ".join(capsys.readouterr().err.split())
    library = str(tmp_path / "library")
    assert main(["delta", "--to", "c", "--layout", "arduino", "--scalar", "float", "-o", library]) == 0
    assert check.main(["delta", "--exported", library]) == 0
    assert check.main(["delta", "--exported", library, "--xacro-args", "arm_length:=0.43"]) == 1
    again = f"pkm export delta --xacro-args arm_length:=0.43 --to c --scalar float --layout arduino -o {library}"
    assert again in " ".join(capsys.readouterr().err.split())


@needs_compiler
@pytest.mark.parametrize("wrong", ["NAN", "found[0] * (1.0 + 1e-9)"])
def test_the_test_that_goes_along_fails_where_one_number_is_wrong(wrong: str, tmp_path: Path) -> None:
    """Also if it is none, and right numbers follow it."""
    name = written("five_bar", tmp_path).name
    test = tmp_path / f"{name}_test.c"
    right = re.search(rf"{name}_jacobian\(.*?, found\)", test.read_text(encoding="utf-8")).group()  # type: ignore[union-attr]
    spoiled = test.read_text(encoding="utf-8").replace(right, f"(status = {right}, found[0] = {wrong}, status)")
    test.write_text(spoiled.replace("    int failed = 0;", "    int status, failed = 0;"), encoding="utf-8")
    program = compiled(COMPILERS[0], ["-O0"], [tmp_path / f"{name}.c", test], tmp_path / "program")
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 1
    assert re.search(r"^jacobian +largest error (inf|1.0e-09)", done.stdout, re.MULTILINE), done.stdout


@needs_compiler
def test_without_nan_it_is_not_compiled(tmp_path: Path) -> None:
    source = written("five_bar", tmp_path).name
    options = ["-ffast-math", "-fsyntax-only", f"{source}.c"]
    done = subprocess.run([COMPILERS[0], *options], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "compile without -ffast-math" in done.stderr


@pytest.mark.slow
@needs_compiler
def test_limbs_that_go_round_a_singularity(tmp_path: Path) -> None:
    """Those of an Eclipse II whose axes are not where they were drawn: it was refused."""
    random = np.random.default_rng(1)
    moved = [Displacement(f"limb{i}_turn", "origin", 2e-3 * random.standard_normal(6)) for i in (1, 2, 3)]
    put(CFiles(Dynamics(corrected(load_mechanism("eclipse2"), moved))).files, tmp_path)
    sources = [tmp_path / "eclipse2.c", tmp_path / "eclipse2_test.c"]
    program = compiled(COMPILERS[0], ["-O0"], sources, tmp_path / "program")
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_platform_that_its_own_branch_holds_is_refused_in_c_and_tracked_by_kernels() -> None:
    """An ankle: its rods leave the foot four degrees of freedom, of which the branch's universal joint takes two."""
    dynamics = Dynamics(load_mechanism(ANKLE))
    with pytest.raises(ExportError, match="its limbs do not hold the platform"):
        CFiles(dynamics).files()
    k = dynamics.kinematics
    pose, drives = np.array(k.home), k.home_joints[k.engine.actuated_column] + [2e-3, 1e-3]
    assert k.lean_track()(drives, pose)[0] == Status.CONVERGED
    np.testing.assert_allclose(pose, k.forward(drives).pose, rtol=0.0, atol=1e-9)


def test_the_header_has_what_was_promised(tmp_path: Path) -> None:
    header = CFiles(Dynamics(load_mechanism("delta"))).header.text()
    for word in ("DELTA_N_JOINTS 18", "DELTA_N_ACTUATED 3", "DELTA_N_MODES 8", "PKM_OK 0"):
        assert f"#define {word}" in header
    for name, _ in PROTOTYPES:
        assert f"int delta_{name}(" in header
