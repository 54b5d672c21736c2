# SPDX-License-Identifier: Apache-2.0
"""The C++ between joints and actuators without ROS: it is Python's both ways, along a motion, and allocates nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pkm_description.load import load_model
from pkm_dynamics.transmission.transmission import Transmission
from pkm_kinematics.status import Status
from test.pkm_ros2_control.native import PACKAGE, linkage_library
from test.pkm_ros2_control.test_core import WARNINGS, numbers

BIPED = Path(__file__).parents[1] / "pkm_description" / "biped.xml"
NAN = np.full(2, np.nan)

pytestmark = pytest.mark.skipif(not (shutil.which("gcc") and shutil.which("g++")), reason="no gcc")


class Native:
    """An ankle in C++, and the same in Python."""

    def __init__(self, folder: Path) -> None:
        self.t = Transmission(load_model(BIPED), ("left_ankle_pitch", "left_ankle_roll"))
        self.library, self.program = linkage_library(self.t, folder, ["-O0", *WARNINGS]), folder / "linkage_test"
        sources = [str(PACKAGE / "src" / f"{name}.cpp") for name in ("library", "linkage")]
        sources.append(str(PACKAGE / "test" / "linkage_test.cpp"))
        sanitized = ["-std=c++17", "-O0", "-fsanitize=undefined", "-fno-sanitize-recover=all"]
        subprocess.run(["g++", *WARNINGS, *sanitized, *sources, "-ldl", "-o", str(self.program)], check=True)

    def ask(self, *questions: str) -> np.ndarray:
        """Rows: status; positions, velocities, efforts; allocations."""
        command = [str(self.program), str(self.library)]
        done = subprocess.run(command, input="\n".join(questions), capture_output=True, text=True, timeout=300.0)
        assert done.returncode == 0, done.stderr
        return np.array([[float(word) for word in line.split()] for line in done.stdout.splitlines()])


@pytest.fixture(scope="module")
def ankle(tmp_path_factory: pytest.TempPathFactory) -> Native:
    return Native(tmp_path_factory.mktemp("ankle"))


def test_both_ways_are_those_of_python(ankle: Native) -> None:
    """Along a motion, and from one end of the range to the other at once."""
    t, rng, s = ankle.t, np.random.default_rng(0), np.linspace(0.0, 6.0, 200)
    q = np.column_stack([0.5 * np.sin(s), 0.25 * np.sin(1.7 * s)])
    q = np.vstack([q, rng.choice([-1.0, 1.0], (100, 2)) * [0.5, 0.25]])
    v, efforts = rng.normal(size=q.shape), rng.normal(size=q.shape)
    there = t.to_actuator_motion(q, v)
    there_effort = t.to_actuator_efforts(q, efforts)
    questions = [f"actuators {numbers(*row)}" for row in zip(q, v, efforts, strict=True)]
    found = ankle.ask(*questions)
    assert not found[:, [0, -1]].any()
    np.testing.assert_allclose(found[:, 1:3], there.position, atol=1e-12)
    np.testing.assert_allclose(found[:, 3:5], there.velocity, atol=1e-11)
    np.testing.assert_allclose(found[:, 5:7], there_effort, atol=1e-11)
    back = ankle.ask(
        *(f"joints {numbers(*row)}" for row in zip(there.position, there.velocity, there_effort, strict=True))
    )
    assert not back[:, [0, -1]].any()
    for columns, expected in (((1, 3), q), ((3, 5), v), ((5, 7), efforts)):
        np.testing.assert_allclose(back[:, slice(*columns)], expected, atol=1e-10)


def test_efforts_without_positions_are_those_where_the_joints_are(ankle: Native) -> None:
    q, efforts = np.array([0.3, 0.1]), np.array([3.0, -1.0])
    position = ankle.t.to_actuators(q)
    found = ankle.ask(f"joints {numbers(position, NAN, NAN)}", f"actuators {numbers(NAN, NAN, efforts)}")
    assert found[:, 0].tolist() == [0, 0]
    assert np.isnan(found[0, 3:7]).all()
    assert np.isnan(found[1, 1:5]).all()
    np.testing.assert_allclose(found[1, 5:7], ankle.t.to_actuator_efforts(q, efforts), atol=1e-11)


def test_what_has_no_answer_is_nan_and_the_next_goes_on(ankle: Native) -> None:
    q, rest = np.array([0.2, -0.1]), np.zeros(2)
    position = ankle.t.to_actuators(q)
    for way, good, expected, far in (("actuators", q, position, [0.0, 3.0]), ("joints", position, q, [2.0, -2.0])):
        wrong = (np.array(far), np.array([1e300, 0.0]), np.array([np.nan, 0.0]), np.array([np.inf, 0.0]))
        found = ankle.ask(*(f"{way} {numbers(one, rest, rest)}" for one in (good, *wrong, good)))
        assert (found[:, 0] == 0).tolist() == [True, False, False, False, False, True]
        assert set(found[3:5, 0]) == {Status.INVALID_INPUT}
        assert np.isnan(found[1:5, 1:7]).all()
        np.testing.assert_allclose(found[-1, 1:3], expected, atol=1e-11)


def test_any_bits_are_answered(ankle: Native) -> None:
    bits = np.random.default_rng(7).integers(0, 2**64, (2000, 6), dtype=np.uint64, endpoint=False).view(np.float64)
    bits[::2, :2] = np.random.default_rng(8).uniform(-4.0, 4.0, (1000, 2))
    found = ankle.ask(*(f"{('joints', 'actuators')[k % 4 < 2]} {numbers(row)}" for k, row in enumerate(bits)))
    assert len(found) == len(bits)
    assert (found[:, 0] == 0).any()


def test_what_is_no_linkage_is_refused(ankle: Native, tmp_path: Path) -> None:
    done = subprocess.run([ankle.program, tmp_path / "none.so"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "no library of the linkage" in done.stderr
