# SPDX-License-Identifier: Apache-2.0
"""Straight-line code against the kernels that it is recorded from, and what happens where it has no result."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_dynamics import Distribution, Dynamics, lean_calls, robot_model
from pkm_dynamics.kernels.over_rows import BY_CODE, straight_direct_many, straight_inverse_many
from pkm_dynamics.lean_calls import record_direct, record_inverse
from pkm_dynamics.linear_form.random_motions import random_motions, speeds
from pkm_kinematics import Kinematics, Status, kinematics, lean_kinematics
from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_kinematics.recordings_at_home import parts_of_blocks
from pkm_runtime.codegen import MachineCode

FREE = Distribution()  # efforts by least squares, whether or not the drives can give them

N = 200
# The two round differently (fused operations, another order of pivots). Seen: 2e-11, hexaglide.
CLOSE = 1e-9


@pytest.fixture
def robot(robot_name: str) -> Dynamics:
    return Dynamics(load_mechanism(robot_name))


def error(found, expected):
    """Largest error over the largest expected value of a state."""
    return (np.abs(found - expected).max(axis=-1) / np.abs(expected).max(axis=-1)).max()


@pytest.mark.by_day("agile_eye", "five_bar", "gough_stewart")
@pytest.mark.not_for("without straight lines", "singular everywhere")
def test_code_gives_what_the_kernels_give(robot: Dynamics) -> None:
    states, rng = random_motions(robot.kinematics, N), np.random.default_rng(4)
    wrench, m = rng.normal(size=(N, 6)), len(robot.kinematics.actuated_names)
    mode = 0
    expected = robot.inverse(
        robot.kinematics.at(states.pose, mode=mode), states.twist, states.acceleration, wrench, distribution=FREE
    )
    problem = robot.problem(states.pose, states.twist, states.acceleration, wrench)
    effort, condition = np.zeros((N, m)), np.zeros(N)
    code = MachineCode(record_inverse(robot.robot, mode))
    straight_inverse_many(code.address, problem.motions, condition, effort, problem.status)
    by_code = _by_code(problem.status, expected)
    assert error(effort[by_code], expected.effort[by_code]) < CLOSE
    np.testing.assert_allclose(condition[by_code], expected.condition[by_code], rtol=CLOSE)

    expected = robot.direct(robot.kinematics.at(states.pose, mode=mode), states.twist, effort, wrench)
    problem = robot.problem(states.pose, states.twist, None, wrench)
    acceleration = np.zeros((N, 6))
    code = MachineCode(record_direct(robot.robot, mode))
    straight_direct_many(code.address, problem.motions, effort, acceleration, problem.status)
    by_code = _by_code(problem.status, expected)
    assert error(acceleration[by_code], expected.acceleration[by_code]) < CLOSE


def _by_code(status, expected):
    """States that the code did: all around home but one in a hundred, beside a singularity (one of linear_delta)."""
    by_code = expected.ok & (status == BY_CODE)
    assert by_code.sum() >= 0.99 * expected.ok.sum() > 0.9 * N
    assert (expected.condition[expected.ok & ~by_code] < 0.1).all()
    return by_code


@pytest.mark.parametrize("mode", [None, 0, 3])
def test_batches_by_code_and_by_kernels_agree(monkeypatch: pytest.MonkeyPatch, mode: int | None) -> None:
    """Also at poses out of reach and at input that is none: the answers and the statuses are those of the kernels."""
    one = Dynamics(load_mechanism("delta"))
    rng = np.random.default_rng(5)
    pose = np.tile(one.kinematics.home, (2000, 1))
    pose[:, :3] += rng.uniform(-0.6, 0.6, (2000, 3))
    pose[7, 3:] = 0.0
    rates, effort = rng.normal(size=(2, 2000, 3)) @ one.kinematics.task.subspace.T, rng.normal(size=(2000, 3))
    effort[11] = np.nan
    kernels = (
        one.inverse(one.kinematics.at(pose, mode=mode), *rates),
        one.direct(one.kinematics.at(pose, mode=mode), rates[0], effort),
    )
    monkeypatch.setattr(robot_model, "MANY", 1)
    again = Dynamics(one.kinematics)
    codes = (
        again.inverse(again.kinematics.at(pose, mode=mode), *rates),
        again.direct(again.kinematics.at(pose, mode=mode), rates[0], effort),
    )
    assert again.robot.codes
    assert not one.robot.codes
    for by_kernel, by_code in zip(kernels, codes, strict=True):
        assert (by_kernel.status == by_code.status).all()
        assert {Status.CONVERGED, Status.UNREACHABLE, Status.INVALID_INPUT} <= set(by_code.status)
    ok = kernels[0].ok
    assert error(codes[0].effort[ok], kernels[0].effort[ok]) < CLOSE
    assert np.isnan(codes[0].effort[~ok]).all()
    ok = kernels[1].ok
    assert error(codes[1].acceleration[ok], kernels[1].acceleration[ok]) < CLOSE
    assert np.isnan(codes[1].acceleration[~ok]).all()


def test_lean_calls_say_what_is_out_of_reach() -> None:
    one = Dynamics(load_mechanism("delta"))
    motion, effort = np.zeros(25), np.zeros(3)
    motion[:7] = one.kinematics.home
    call = one.lean_inverse()
    assert call(motion, effort) == Status.CONVERGED
    motion[0] = 3.0
    assert call(motion, effort) == Status.UNREACHABLE


def test_a_step_is_that_of_the_acceleration() -> None:
    one = Dynamics(load_mechanism("gough_stewart"))
    k, rng = one.kinematics, np.random.default_rng(6)
    motion, effort, acceleration = np.zeros(25), 100.0 * rng.normal(size=6), np.zeros(6)
    motion[:7], motion[7:13] = k.home, 0.1 * rng.normal(size=6)
    before = motion.copy()
    assert one.lean_step(1e-3)(motion, effort, acceleration) == Status.CONVERGED
    expected = one.direct(before[:7], before[7:13], effort).acceleration
    np.testing.assert_allclose(acceleration, expected, rtol=1e-10)
    np.testing.assert_allclose(motion[7:13], before[7:13] + 1e-3 * expected, rtol=1e-10)
    np.testing.assert_allclose(motion[:3], before[:3] + 1e-3 * motion[7:10], rtol=1e-10)
    assert np.linalg.norm(motion[3:7]) == pytest.approx(1.0, abs=1e-15)


ITERATED = ["five_dof_3rr_rrr", "irsbot2", "quattro", "wrist_3ruu", pytest.param("h4", marks=pytest.mark.slow)]


def path(k: Kinematics, n: int, far: float) -> Array:
    """Poses (n, 7) of a loop through home: `far` [rad, and of the robot's size] to each side."""
    S, poses, phase = k.task.subspace, np.empty((n, 7)), np.arange(k.mobility)
    per_speed = k.engine.size / speeds(S, k.engine.size)[0]
    for row, angle in zip(poses, 2.0 * np.pi * np.arange(n) / n, strict=True):
        shift_pose(k.home, far * S @ (per_speed * (np.sin(angle + phase) - np.sin(phase))), 1.0, row)
    return poses


@pytest.mark.by_day("quattro")
@pytest.mark.parametrize("mode", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ITERATED)
def test_limbs_in_fixed_steps_are_where_iteration_puts_them(
    name: str, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Positions, efforts and accelerations of the code alone, limbs carried along, against solves to the end."""
    with monkeypatch.context() as alone:
        for module in (lean_calls, lean_kinematics):
            alone.setattr(module, "with_fallback", lambda quick, general, code: lambda *x, _kept=code: quick(*x))
        one = Dynamics(load_mechanism(name), friction=False)
        positions, inverse, direct = one.kinematics.lean_inverse(mode), one.lean_inverse(mode), one.lean_direct(mode)
    k, rng = one.kinematics, np.random.default_rng(9)
    S, m = k.task.subspace, len(k.actuated_names)
    motion, q, effort, acceleration = np.zeros(25), np.zeros(m), np.zeros(m), np.zeros(6)
    seed = k.modes.start(mode)
    for pose in path(k, 500, 0.03):
        motion[:7], motion[7:13], motion[13:19] = pose, S @ rng.normal(size=S.shape[1]), S @ rng.normal(size=S.shape[1])
        motion[19:] = rng.normal(size=6)
        found = k.at(pose, seed=seed)
        seed = np.array(found.joints)
        assert positions(pose, q) == Status.CONVERGED
        np.testing.assert_allclose(q, found.actuated, atol=1e-9)  # Newton's method ends at 1e-10
        expected = one.inverse(found, motion[7:13], motion[13:19], motion[19:], distribution=FREE)
        assert inverse(motion, effort) == expected.status == Status.CONVERGED
        assert error(effort, expected.effort) < CLOSE
        assert direct(motion, effort, acceleration) == Status.CONVERGED
        assert error(acceleration, motion[13:19]) < CLOSE


@pytest.mark.by_day("wrist_3ruu")
@pytest.mark.parametrize("name", ITERATED)
def test_what_fixed_steps_do_not_reach_is_left_to_iteration(name: str) -> None:
    """A long step, then short ones from there; a pose out of reach, and home again: nothing is lost on the way."""
    one = Dynamics(load_mechanism(name), friction=False)
    k, call = one.kinematics, one.lean_inverse()
    motion, effort = np.zeros(25), np.zeros(len(k.actuated_names))
    poses = path(k, 40, 0.05)
    far = k.home.copy()
    shift_pose(k.home, 100.0 * k.engine.size * k.task.subspace[:, 0] * (1.0, 1.0, 1.0, 0.0, 0.0, 0.0), 1.0, far)
    for pose in (*poses[::8], *poses):
        motion[:7] = pose
        assert call(motion, effort) == Status.CONVERGED
        assert error(effort, one.inverse(pose, np.zeros(6), np.zeros(6), distribution=FREE).effort) < CLOSE
    if k.task.subspace[:3].any():
        motion[:7] = far
        assert call(motion, effort) != Status.CONVERGED
    motion[:7] = np.nan
    assert call(motion, effort) != Status.CONVERGED
    motion[:7] = k.home
    assert call(motion, effort) == Status.CONVERGED
    assert error(effort, one.inverse(k.home, np.zeros(6), np.zeros(6), distribution=FREE).effort) < CLOSE


@pytest.mark.parametrize(("name", "forms"), [("quattro", [2, 1]), ("five_dof_3rr_rrr", [2, 2, 2]), ("irsbot2", [])])
def test_parts_of_iterated_limbs_that_have_closed_forms(name: str, forms: list[int]) -> None:
    """Parallelogram and four-bar, arms with a wrist; limbs with neither take Newton's steps."""
    k = Kinematics(load_mechanism(name))
    assert [len(parts.forms) for parts in parts_of_blocks(k.tables, k.home).values()] == forms


def test_batches_of_limbs_that_are_iterated_have_no_straight_line() -> None:
    one = Dynamics(load_mechanism("h4"))
    assert record_inverse(one.robot, 0) is None
    assert record_direct(one.robot, 0) is None


def test_without_straight_lines_the_kernels_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where LLVM is too old for them."""
    calls = []
    for available in (True, False):
        monkeypatch.setattr(kinematics, "AVAILABLE", available)
        one = Dynamics(load_mechanism("five_bar"))
        assert one.kinematics.straight == available
        calls.append((one.lean_inverse(), one.kinematics.lean_track()))
    home = one.kinematics.home
    motion, efforts = np.concatenate([home, np.arange(18.0) * np.tile([1, 1, 0, 0, 0, 0], 3)]), np.empty((2, 2))
    q = np.ascontiguousarray(one.kinematics.inverse(home).actuated) + 0.01
    poses = np.tile(home, (2, 1))
    for (inverse, track), effort, pose in zip(calls, efforts, poses, strict=True):
        assert inverse(motion, effort) == Status.CONVERGED
        assert track(q, pose)[0] == Status.CONVERGED
    np.testing.assert_allclose(efforts[0], efforts[1], rtol=1e-12)
    np.testing.assert_allclose(poses[0], poses[1], atol=1e-14)
