# SPDX-License-Identifier: Apache-2.0
"""The C++ law without ROS: it is Python's, allocates nothing, refuses what it must, and holds a trajectory."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pkm_control.controllers.computed_torque import ComputedTorque
from pkm_control.controllers.controller import Measured, Reference
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from test.pkm_ros2_control.native import PACKAGE, pose_near_home, robot_library

CORE = [
    *(PACKAGE / "src" / name for name in ("library.cpp", "robot.cpp", "computed_torque.cpp", "simulated_robot.cpp"))
]
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Werror", "-pedantic", f"-I{PACKAGE / 'include'}"]
FOLLOWED, HELD, LOST = range(3)

pytestmark = pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("g++")), reason="no gcc")


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("core") / "core_test"
    sanitized = ["-std=c++17", "-O0", "-fsanitize=undefined", "-fno-sanitize-recover=all"]
    sources = [*CORE, PACKAGE / "test" / "core_test.cpp"]
    subprocess.run(["g++", *WARNINGS, *sanitized, *map(str, sources), "-ldl", "-o", str(out)], check=True)
    return out


class Native:
    """A robot behind the C++ law, and the same in Python."""

    def __init__(self, name: str, program: Path, folder: Path) -> None:
        self.dynamics = Dynamics(load_mechanism(name))
        self.kinematics = self.dynamics.kinematics
        self.limits = ActuatorLimits.of(self.kinematics.mechanism)
        self.library, self.program = robot_library(self.dynamics, folder, ["-O0", *WARNINGS]), program

    def ask(self, *questions: str) -> np.ndarray:
        """Rows of what the program answers."""
        command = [str(self.program), str(self.library)]
        done = subprocess.run(command, input="\n".join(questions), capture_output=True, text=True, timeout=300.0)
        assert done.returncode == 0, done.stderr
        return np.array([[float(word) for word in line.split()] for line in done.stdout.splitlines()])

    def near(self, rng: np.random.Generator, size: float) -> tuple[np.ndarray, np.ndarray]:
        """A pose (7,) of the platform near home, and a twist (6,) that it can have."""
        k = self.kinematics
        S = np.asarray(k.subspace(k.home))
        return pose_near_home(k, rng, size), S @ rng.uniform(-1.0, 1.0, S.shape[1])


def numbers(*parts: np.ndarray) -> str:
    return " ".join(repr(float(x)) for part in parts for x in np.ravel(part))


@pytest.fixture(scope="session")
def native_of(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Native]:
    """A robot, compiled once."""
    return cache(lambda name: Native(name, program, tmp_path_factory.mktemp(name)))


@pytest.fixture
def delta(native_of: Callable[[str], Native]) -> Native:
    return native_of("delta")


@pytest.mark.by_day("delta")
@pytest.mark.parametrize("name", ["delta", "gough_stewart", "wrist_3ups_s", "quattro"])
def test_the_law_is_that_of_python(name: str, native_of: Callable[[str], Native]) -> None:
    """Efforts within limits, to 1e-10 of the largest; the platform found in the same place; nothing allocated."""
    native, rng = native_of(name), np.random.default_rng(5)
    k, m = native.kinematics, len(native.limits.names)
    law = ComputedTorque(native.dynamics, native.limits, 90.0, 0.8)
    questions, expected = [], []
    for _ in range(200):
        (pose, twist), (there, speed) = native.near(rng, 0.05), native.near(rng, 0.05)
        acceleration = native.near(rng, 0.05)[1]
        at = k.at(there)
        rates = at.inverse_jacobian @ speed
        q = np.asarray(k.inverse(there).actuated)
        measured = Measured(q, rates, there, at.forward_jacobian @ rates, np.asarray(at.joints), at.forward_jacobian)
        expected.append([*there, *measured.twist, *law.command(Reference(pose, 0.1 * twist, acceleration), measured)])
        questions.append(f"law 90 0.8 {numbers(pose, 0.1 * twist, acceleration, q, rates)}")
    found = native.ask(*questions)
    assert (found[:, 0] == FOLLOWED).all()
    assert (found[:, -1] == 0).all(), "memory was allocated"
    off = np.abs(found[:, 2:-1] - expected)
    efforts = off[:, -m:] / np.abs(np.array(expected)[:, -m:]).max()
    assert off[:, :13].max() < 1e-9
    assert efforts.max() < 1e-10
    if name == "delta":
        assert (np.abs(found[:, -1 - m : -1]) == native.limits.effort).any(), "no effort was cut"


@pytest.mark.by_day("delta")
@pytest.mark.parametrize(("name", "difference"), [("delta", 1e-6), ("gough_stewart", 1e-6), ("quattro", 1e-5)])
def test_a_reference_of_the_drives_is_one_of_the_platform(
    name: str, difference: float, native_of: Callable[[str], Native]
) -> None:
    """Positions and rates exactly, accelerations but for the central difference of Jacobians.

    That is off by the square of its step: by Python's Jacobians, a Quattro's by 4.3e-6 m/s^2 or rad/s^2 here.
    """
    native, rng = native_of(name), np.random.default_rng(6)
    k = native.kinematics
    questions, expected = [], []
    for _ in range(50):
        pose, twist = native.near(rng, 0.05)
        acceleration = native.near(rng, 0.05)[1]
        motion, drives = k.motion(pose, twist, acceleration), list(map(k.joint_names.index, k.actuated_names))
        joints = (motion.joints, motion.velocities, motion.accelerations)
        questions.append(f"drives {numbers(*(np.asarray(part)[drives] for part in joints))}")
        expected.append([*pose, *twist, *acceleration])
    found = native.ask(*questions)
    off = np.abs(found[:, 1:] - expected)
    assert (found[:, 0] == 0).all()
    assert off[:, :13].max() < 1e-9
    assert off[:, 13:].max() < difference


def test_a_drive_that_races_gets_no_efforts_any_more(delta: Native) -> None:
    """As of a platform that falls through a singularity; not for a few wrong readings, nor a little beyond a limit."""
    verdicts = delta.ask("race 1.5 5", "race 1.5 4", "race 1.2 100")[:, 0]
    np.testing.assert_array_equal(verdicts, [LOST, FOLLOWED, FOLLOWED])


def test_a_trajectory_is_held(delta: Native) -> None:
    """A circle within microradians of the drives, better at a higher rate; one that the drives cannot make is not."""
    slow, fast, impossible = delta.ask("track 120 1000 1 0.05", "track 120 4000 1 0.05", "track 120 1000 1 5.0")
    assert slow[0] == fast[0] == FOLLOWED
    assert slow[1] < 1e-5  # rad
    assert slow[2] < 1e-5  # m
    assert fast[1] < 0.5 * slow[1]
    assert impossible[0] == HELD


def test_references_are_refused_and_readings_disbelieved(delta: Native) -> None:
    k = delta.kinematics
    q, rest = np.asarray(k.inverse(k.home).actuated), np.zeros(6)
    away, quick, turn = np.array(k.home), 1e3 * np.eye(6)[0], np.eye(6)[5]
    away[2] += 10.0
    nan = np.full(7, np.nan)
    held = numbers(k.home, rest, rest, q, rest[:3])
    asked = (
        f"law 90 1 {held}",
        f"law 90 1 {numbers(away, rest, rest, q, rest[:3])}",
        f"law 90 1 {numbers(nan, rest, rest, q, rest[:3])}",
        f"law 90 1 {numbers(k.home, quick, rest, q, rest[:3])}",
        f"law 90 1 {numbers(k.home, rest, np.full(6, np.inf), q, rest[:3])}",
        f"law 90 1 {numbers(k.home, turn, rest, q, rest[:3])}",
        f"law 90 1 {numbers(k.home, rest, rest, q + np.nan, rest[:3])}",
        f"law 90 1 {numbers(k.home, rest, rest, q, rest[:3] + np.nan)}",
        f"law 90 1 {numbers(k.home, rest, rest, q + 100.0, rest[:3])}",
    )
    found = delta.ask(*asked)
    assert found[:, 0].tolist() == [FOLLOWED, *[HELD] * 5, *[LOST] * 3]
    np.testing.assert_allclose(found[:6, -4:-1], np.tile(delta.dynamics.gravity(k.home).effort, (6, 1)), atol=1e-9)
    assert np.isnan(found[6:, -4:-1]).all()


def test_any_bits_are_answered(delta: Native) -> None:
    """No trap and no endless loop, and what is followed has efforts within the limits."""
    bits = np.random.default_rng(7).integers(0, 2**64, (2000, 25), dtype=np.uint64, endpoint=False).view(np.float64)
    home = np.asarray(delta.kinematics.home)
    bits[::2, :7] = home
    bits[::4, 19:] = 0.0
    found = delta.ask(*(f"law 90 1 {numbers(row)}" for row in bits))
    assert len(found) == len(bits)
    known = found[:, 0] != LOST
    assert known.any()
    assert (np.abs(found[known, -4:-1]) <= delta.limits.effort).all()


def test_what_is_no_robot_is_refused(delta: Native, tmp_path: Path) -> None:
    other = tmp_path / "other.so"
    (tmp_path / "other.c").write_text("int nothing(void) { return 0; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", str(tmp_path / "other.c"), "-o", str(other)], check=True)
    for library, reason in ((other, "no pkm_robot_table"), (tmp_path / "none.so", "no library of the robot")):
        done = subprocess.run([delta.program, library], capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert reason in done.stderr
    assert ctypes.c_char_p.in_dll(ctypes.CDLL(str(delta.library)), "delta_drive_names").value == b"limb1_arm"
