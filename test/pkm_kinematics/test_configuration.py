# SPDX-License-Identifier: Apache-2.0
"""A configuration is solved once, and says of itself what the calls with poses say."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_description.gallery import robot_names
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_dynamics.energy import energy, power
from pkm_dynamics.natural_frequencies import natural_frequencies
from pkm_kinematics import Configuration, Kinematics, ShapeError, Status
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_kinematics.kernels.model_and_data import SOLVED, Choice
from pkm_kinematics.solve.position_solver import PositionSolver
from pkm_kinematics.status import closes
from pkm_runtime.errors import PkmError
from pkm_runtime.kernels.binding import WithScratch

NEAR = 0.05  # of the characteristic length
ROUNDED = 1e-6  # rad, m, N, 1: of numbers below, as margins of what is singular everywhere, the digits are rounding
SAME = 1e-9  # of the largest number: a placed configuration differs from a solved one by rounding, times its condition
SINGULAR_AT_HOME = {"griffis_duffy"}


def poses_of(k: Kinematics) -> Array:
    """Poses (2, 4, 7): six near home, of which the robot has configurations, one far away, and one that is none."""
    random = np.random.default_rng(3)
    poses = np.tile(k.home, (8, 1))
    if k.constant_space:
        steps = NEAR * k.characteristic_length * random.uniform(-1.0, 1.0, (6, k.mobility)) @ k.task.subspace.T
        poses[:6] = [displace(np.array(k.home), step) for step in steps]
    else:
        home = k.inverse(k.home).actuated
        found = k.forward(home + NEAR * k.characteristic_length * random.uniform(-1.0, 1.0, (6, len(home))))
        poses[:6] = np.where(found.ok[:, None], found.pose, k.home)
    poses[6, :3] += 1e3 * k.engine.size * (np.asarray(k.subspace(k.home))[:3, 0] + 0.5)
    poses[7, 2] = np.nan
    return poses.reshape(2, 4, 7)


def rates_of(k: Kinematics, poses: Array) -> tuple[Array, Array]:
    """Twists in the motion space at poses (2, 4, 7), and efforts of the drives."""
    random = np.random.default_rng(4)
    twists = np.nan_to_num(k.subspace(poses)) @ random.normal(size=k.mobility)
    return twists, random.normal(size=(2, 4, len(k.actuated_names)))


def assert_same(found: object, expected: object, what: str) -> None:
    a, b = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    assert a.shape == b.shape, what
    np.testing.assert_array_equal(np.isfinite(a), np.isfinite(b), err_msg=what)
    scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    np.testing.assert_allclose(a, b, rtol=0.0, atol=SAME * max(scale, ROUNDED), err_msg=what)


@pytest.mark.parametrize("name", robot_names())
def test_it_says_what_the_calls_with_poses_say(of_gallery, name: str) -> None:
    k = of_gallery[name].kinematics
    poses = poses_of(k)
    twists, _ = rates_of(k, poses)
    rates = np.cos(np.arange(len(k.actuated_names)))
    at = k.at(poses)
    joints = at.joints  # solved before anything else is asked, so that all else is placed by it
    solved = k.inverse(poses)
    assert at.ok.reshape(-1)[:6].any() or name in SINGULAR_AT_HOME
    assert joints.shape == (2, 4, len(k.joint_names))
    for what in ("joints", "actuated", "status", "residual", "iterations", "condition", "pose"):
        assert_same(getattr(at, what), getattr(solved, what), what)
    for what in ("inverse_jacobian", "motion_jacobian", "forward_jacobian", "subspace"):
        assert_same(getattr(at, what), getattr(k.at(poses), what), what)
    if len(k.task.names) in (0, k.mobility):
        assert_same(at.task_jacobian, k.at(poses).task_jacobian, "task_jacobian")
        assert_same(at.task_twists, k.at(poses).task_twists, "task_twists")
    margins, expected = at.singularity, k.singularity(poses)
    for field in fields(margins):
        a, b = getattr(margins, field.name), getattr(expected, field.name)
        if field.name == "force_amplification":  # whose reciprocal is compared, too, and has no poles
            continue
        if field.name == "determinant_sign":  # of what is singular everywhere by rounding
            a, b = (np.where(expected.type2 > SAME, sign, 0.0) for sign in (a, b))
        assert_same(a, b, field.name)
    for acceleration in (None, np.zeros(6)) if k.constant_space else (None,):
        motion, expected = at.motion(twists, acceleration), k.motion(poses, twists, acceleration)
        for what in ("joints", "velocities", "accelerations", "status", "residual", "actuated_velocities"):
            assert_same(getattr(motion, what), getattr(expected, what), what)
    assert_same(at.platform_twist(rates), k.at(poses).platform_twist(rates), "platform_twist")
    found = at.platform_acceleration(twists, rates)
    assert_same(found, k.at(poses).platform_acceleration(twists, rates), "platform_acceleration")
    if k.constant_space:
        assert_same(at.motion_jacobian_rate(twists), k.at(poses).motion_jacobian_rate(twists), "motion_jacobian_rate")


@pytest.mark.by_day("agile_eye", "delta", "gough_stewart", "planar_redundant")
@pytest.mark.parametrize("name", robot_names())
def test_the_dynamics_take_it_in_place_of_a_pose(of_gallery, name: str) -> None:
    k = of_gallery[name].kinematics
    d, poses = Dynamics(k), poses_of(k)
    twists, efforts = rates_of(k, poses)
    at = k.inverse(poses)
    found, expected = d.inverse(at, twists), d.inverse(poses, twists)
    assert_same(found.effort, expected.effort, "effort")
    known = at.status != Status.INVALID_INPUT  # kernels that are given poses do not ask if they are in the motion space
    np.testing.assert_array_equal(found.status[known], expected.status[known])
    assert_same(found.condition, expected.condition, "condition")
    moving, expected = d.direct(at, twists, efforts), d.direct(poses, twists, efforts)
    assert_same(moving.acceleration, expected.acceleration, "acceleration")
    np.testing.assert_array_equal(moving.status[known], expected.status[known])
    assert_same(moving.condition, expected.condition, "condition of the limbs")
    assert_same(d.gravity(at).effort, d.gravity(poses).effort, "gravity")
    assert_same(d.regressor(at, twists)[0], d.regressor(poses, twists)[0], "regressor")
    assert_same(d.reactions(at, twists).wrench, d.reactions(poses, twists).wrench, "reactions")
    for what in ("kinetic", "potential", "lost"):
        assert_same(getattr(energy(d, at, twists), what), getattr(energy(d, poses, twists), what), what)
    assert_same(power(d, at, twists, efforts), power(d, poses, twists, efforts), "power")
    one, pose = at.rows([0]), poses[0, 0]
    if not k.mechanism.mobility.left_out:
        derivatives, expected = d.inverse_derivatives(one, twists[0, 0]), d.inverse_derivatives(pose, twists[0, 0])
        assert_same(derivatives.pose[0], expected.pose, "derivatives")
    assert_same(d.mass_matrix(one)[0], d.mass_matrix(pose), "mass matrix")
    assert_same(d.mass_matrix(at)[0, 0], d.mass_matrix(pose), "mass matrices")
    assert_same(d.coriolis(one, twists[0, 0]), d.coriolis(pose, twists[0, 0]), "Coriolis forces")
    if at.ok[0, 0] and np.isfinite(at.motion_jacobian[0, 0]).all() and d.direct(pose, np.zeros(6), efforts[0, 0]).ok:
        found, expected = (natural_frequencies(d, here, 1e4).frequency for here in (one, pose))
        assert_same(found, expected, "vibrations")


@pytest.mark.parametrize("name", ["delta", "five_bar", "quattro", "tripod_3prs"])
def test_rows_without_a_configuration_say_why_everywhere(of_gallery, name: str) -> None:
    k = of_gallery[name].kinematics
    d, poses = Dynamics(k), poses_of(k)
    at, (twists, efforts) = k.at(poses), rates_of(k, poses)
    asked: dict[str, tuple[object, Array]] = {
        "configuration": (at, at.joints),
        "motion": (motion := at.motion(twists), motion.velocities),
        "efforts": (answer := d.inverse(at, twists), answer.effort),
        "accelerations": (moved := d.direct(at, twists, efforts), moved.acceleration),
        "reactions": (carried := d.reactions(at, twists), carried.wrench),
    }
    for what, (found, values) in asked.items():
        for row in (6, 7):
            status = found.status.reshape(-1)[row]
            assert status == at.status.reshape(-1)[row], what
            assert not closes(status), what
            assert found.reason(row), what
            assert np.isnan(values.reshape(8, -1)[row]).all(), what
        assert np.isfinite(values.reshape(8, -1)[:6]).any(), what
    for values in (at.inverse_jacobian, at.forward_jacobian, at.singularity.type2, d.regressor(at, twists)[0]):
        assert np.isnan(values.reshape(8, -1)[6:]).all()
        assert np.isfinite(values.reshape(8, -1)[:6]).any()
    assert (at.condition.reshape(-1)[6:] == 0.0).all()
    assert at.status[1, 3] == Status.INVALID_INPUT


@pytest.fixture
def solves(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of poses of every kernel call that solves positions, and does not place known ones."""
    seen: list[int] = []

    def noted(others: tuple[object, ...]) -> None:
        if isinstance(others[0], Choice) and others[0].branch != SOLVED:
            seen.append(len(others[1]))  # poses or motions

    call, over_rows = WithScratch.__call__, PositionSolver.over_rows

    def counted(self: WithScratch, model: object, *others: object) -> object:
        noted(others)
        return call(self, model, *others)

    def counted_rows(self: PositionSolver, poses: Array, choice: Choice, kernel: Callable[..., None]) -> None:
        noted((choice, poses))
        over_rows(self, poses, choice, kernel)

    monkeypatch.setattr(WithScratch, "__call__", counted)
    monkeypatch.setattr(PositionSolver, "over_rows", counted_rows)
    return seen


@pytest.mark.parametrize("first", ["joints", "inverse_jacobian", "forward_jacobian", "singularity", "condition"])
@pytest.mark.parametrize("name", ["delta", "gough_stewart", "quattro"])
def test_nothing_is_solved_twice(of_gallery, solves: list[int], name: str, first: str) -> None:
    k = of_gallery[name].kinematics
    d = Dynamics(k)
    at = k.at(np.tile(k.home, (3, 1)))
    once = [] if k.engine.iterated else [3]  # limbs that were carried to the poses are there
    del solves[:]
    assert not at.is_solved
    getattr(at, first)
    assert solves == once
    twist = 0.1 * np.asarray(at.subspace)[:, :, 0]
    for what in ("joints", "status", "condition", "inverse_jacobian", "forward_jacobian", "singularity"):
        getattr(at, what)
    at.motion(twist), at.platform_twist(np.zeros(len(k.actuated_names)))
    d.inverse(at, twist), d.direct(at, twist, np.zeros(len(k.actuated_names))), d.reactions(at, twist)
    d.regressor(at, twist), d.gravity(at), d.mass_matrix(at.rows([0])), energy(d, at, twist)
    assert solves == once


@pytest.mark.parametrize("name", ["delta", "gough_stewart", "quattro"])
def test_what_forward_kinematics_found_is_not_solved_again(of_gallery, solves: list[int], name: str) -> None:
    k = of_gallery[name].kinematics
    found = k.forward(k.inverse(k.home).actuated)
    expected = k.singularity(k.home).condition
    del solves[:]
    at = found.configuration
    assert found.condition == pytest.approx(expected, rel=1e-9)
    assert np.isfinite(at.inverse_jacobian).all()
    assert at.ok
    np.testing.assert_array_equal(at.joints, found.joints)
    assert Dynamics(k).gravity(at).ok
    assert not solves


def test_one_solve_for_a_call_with_poses(of_gallery, solves: list[int]) -> None:
    """Jacobians in one piece, motions with their positions."""
    k = of_gallery["delta"].kinematics
    twist = np.asarray(k.subspace(k.home))[:, 0]
    for call in (
        lambda: k.inverse(k.home),
        lambda: k.at(k.home).inverse_jacobian,
        lambda: k.at(k.home).forward_jacobian,
        lambda: k.at(k.home).platform_twist(np.ones(3)),
        lambda: k.singularity(k.home),
        lambda: k.motion(k.home, twist),
        lambda: Dynamics(k).direct(k.home, twist, np.zeros(3)),
    ):
        del solves[:]
        call()
        assert solves == [1]


def test_known_modes_are_configurations(of_gallery, solves: list[int]) -> None:
    k = of_gallery["delta"].kinematics
    modes = k.inverse_all(k.home)
    expected = [k.at(k.home, mode=mode).inverse_jacobian for mode in range(k.n_modes)]
    del solves[:]
    for one, jacobian in zip(modes, expected, strict=True):
        np.testing.assert_allclose(one.inverse_jacobian, jacobian, atol=1e-12)
    assert not solves


def test_whose_it_is_and_that_it_stays() -> None:
    delta, other = (Kinematics(load_mechanism(name)) for name in ("delta", "five_bar"))
    at = delta.at(np.tile(delta.home, (2, 1)), mode=1)
    assert delta.at(at) is at
    assert (at.mode, at.label) == (1, delta.mode_label(1))
    for wrong in (lambda: other.at(at).inverse_jacobian, lambda: Dynamics(other).gravity(at)):
        with pytest.raises(PkmError, match="another"):
            wrong()
    with pytest.raises(PkmError, match="seed or a mode"):
        delta.at(at, mode=0)
    with pytest.raises(ShapeError, match="single pose"):
        Dynamics(delta).coriolis(at, np.zeros(6))
    with pytest.raises(FrozenInstanceError):
        at.mode = 0
    with pytest.raises(AttributeError, match="inverse_jacobian"):
        _ = at.jacobian
    back: Configuration = pickle.loads(pickle.dumps(at))
    np.testing.assert_array_equal(back.joints, at.joints)
    assert "engine" not in dir(at)
    assert "singularity" in dir(at)
    with pytest.raises(ShapeError):
        at.motion(np.zeros((3, 6)))
