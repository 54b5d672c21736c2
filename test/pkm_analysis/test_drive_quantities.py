# SPDX-License-Identifier: Apache-2.0
"""Speeds, forces and errors of pose within the drives' limits, beside linear programmes and brute force."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from pkm_analysis import Analysis, AnalysisError
from pkm_analysis.domain import TaskCoordinates
from pkm_analysis.indices import performance_indices
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_dynamics import Distribution
from pkm_kinematics import Kinematics

ROBOTS = ["delta", "five_bar", "planar_3rpr", "planar_redundant", "cable_8", "gough_stewart", "gough_stewart_7"]
MIXED = ["tripod_3prs", "quattro", "agile_eye"]
RNG = np.random.default_rng(5)


def _poses(kinematics: Kinematics, n: int = 4) -> Array:
    """Home and poses near it that the robot reaches."""
    coordinates = TaskCoordinates(kinematics)
    size, rng = 0.03 * kinematics.characteristic_length, np.random.default_rng(2)
    home = np.array([c.home for c in coordinates.all])
    points = home + size * np.vstack([np.zeros((1, len(home))), rng.uniform(-1.0, 1.0, (n - 1, len(home)))])
    return coordinates.poses(points)[0] if kinematics.engine.constant_space else np.array(kinematics.engine.home_row)


def _limits(kinematics: Kinematics) -> tuple[Array, Array]:
    joints = [kinematics.mechanism.joint_named[name] for name in kinematics.actuated_names]
    lower = [max(-j.limits.effort, j.drive.effort_range[0]) for j in joints]
    upper = [min(j.limits.effort, j.drive.effort_range[1]) for j in joints]
    return np.array(lower), np.array(upper)


def _strongest(analysis: Analysis, pose: Array, wrench: Array) -> float:
    """By a linear programme: the longest wrench of that direction that efforts within their limits balance."""
    kinematics, dynamics = analysis.robot.kinematics, analysis.robot.dynamics
    S = np.asarray(kinematics.subspace(pose))
    K = kinematics.at(pose).inverse_jacobian @ S
    lower, upper = _limits(kinematics)
    equal = np.hstack([K.T, -(S.T @ wrench)[:, None]])
    target = np.r_[np.zeros(len(lower)), -1.0]
    ranges = [*zip(lower, upper, strict=True), (0.0, None)]
    found = linprog(
        target, A_eq=equal, b_eq=K.T @ dynamics.inverse(pose, distribution=Distribution()).effort, bounds=ranges
    )
    return np.inf if found.status == 3 else -found.fun


@pytest.mark.by_day("delta", "planar_redundant", "cable_8", "agile_eye")
@pytest.mark.parametrize("name", [*ROBOTS, *MIXED])
def test_forces_are_those_of_linear_programmes(name: str) -> None:
    analysis = Analysis(load_mechanism(name))
    kinematics = analysis.robot.kinematics
    poses = _poses(kinematics)
    asked = [q for q in ("force", "moment") if q in analysis.quantities]
    assert asked
    for quantity in asked:
        everywhere = analysis.quantity(quantity).of(analysis.robot, poses)
        assert (everywhere > 0.0).all()
        for direction in RNG.normal(size=(6, 3)):
            unit = direction / np.linalg.norm(direction)
            wrench = np.concatenate([np.zeros(3), unit] if quantity == "moment" else [unit, np.zeros(3)])
            expected = [_strongest(analysis, pose, wrench) for pose in poses]
            text = f"{quantity}:{','.join(map(repr, unit.tolist()))}"
            np.testing.assert_allclose(analysis.quantity(text).of(analysis.robot, poses), expected, rtol=1e-6)
            assert (everywhere <= np.array(expected) * (1.0 + 1e-6)).all()


@pytest.mark.by_day("planar_redundant")
@pytest.mark.parametrize(("name", "plane"), [("delta", 3), ("five_bar", 2), ("planar_redundant", 2), ("cable_8", 3)])
def test_force_in_every_direction_is_the_least_of_all(name: str, plane: int) -> None:
    analysis = Analysis(load_mechanism(name))
    pose = _poses(analysis.robot.kinematics, 2)[1]
    rng = np.random.default_rng(1)

    def tried(directions: Array) -> list[tuple[float, Array]]:
        units = directions / np.linalg.norm(directions, axis=1)[:, None]
        return [(_strongest(analysis, pose, np.concatenate([unit, np.zeros(6 - plane)])), unit) for unit in units]

    # each face of the polytope has a least of its own: several are followed, ever nearer
    best = sorted(tried(rng.normal(size=(150, plane))), key=lambda one: one[0])[:5]
    for size in (0.2, 0.07, 0.02, 0.007):
        best = [min([one, *tried(one[1] + size * rng.normal(size=(20, plane)))], key=lambda o: o[0]) for one in best]
    least = min(value for value, _ in best)
    found = analysis.quantity("force").of(analysis.robot, pose[None])[0]
    assert found <= least * (1.0 + 1e-9)
    assert found == pytest.approx(least, rel=2e-3)


@pytest.mark.parametrize("name", ["delta", "orthoglide", "planar_redundant", "gough_stewart_7", "cable_8"])
def test_speeds_are_those_of_the_polytope(name: str) -> None:
    analysis = Analysis(load_mechanism(name))
    kinematics = analysis.robot.kinematics
    poses = _poses(kinematics)
    expected = performance_indices(kinematics, poses, part="translation", ellipsoids=False).slowest
    np.testing.assert_allclose(analysis.quantity("speed").of(analysis.robot, poses), expected, rtol=1e-9)
    speeds = np.array([kinematics.mechanism.joint_named[n].limits.velocity for n in kinematics.actuated_names])
    rates = kinematics.at(poses).inverse_jacobian @ np.array([0.6, -0.8, 0.0, 0.0, 0.0, 0.0])
    along = analysis.quantity("speed:0.6,-0.8,0").of(analysis.robot, poses)
    np.testing.assert_allclose(np.abs(rates * along[:, None] / speeds).max(axis=1), 1.0, rtol=1e-9)


@pytest.mark.parametrize("name", ["delta", "planar_3rpr", "gough_stewart_7"])
def test_errors_of_pose_are_those_of_forward_kinematics(name: str) -> None:
    error = 1e-6
    analysis = Analysis(load_mechanism(name), sensors=(error,))
    kinematics = analysis.robot.kinematics
    pose = _poses(kinematics, 2)[1]
    J = kinematics.at(pose).forward_jacobian
    signs = np.array(list(product((1.0, -1.0), repeat=J.shape[1])))
    if J.shape[1] == kinematics.mobility:  # by solving, not by the Jacobian
        q = kinematics.inverse(pose).actuated
        moved = [kinematics.forward(q + error * s, near=pose).pose[:3] - pose[:3] for s in signs]
    else:
        moved = list(error * signs @ J[:3].T)
    found = analysis.quantity("position_error").of(analysis.robot, pose[None])[0]
    assert found == pytest.approx(np.linalg.norm(moved, axis=1).max(), rel=1e-4)


@pytest.mark.slow
def test_they_bound_workspaces_and_fill_maps() -> None:
    analysis = Analysis(load_mechanism("five_bar"), sensors=(1e-4,))
    whole = analysis.workspace(tolerance=6e-3)
    for text in ("force > 60 N", "speed > 4 m/s", "position_error < 0.08 mm", "largest_transmission < 0.5 m/rad"):
        assert 0.0 < analysis.workspace(requirements=[text], tolerance=6e-3).size < 0.95 * whole.size, text
    found = analysis.map("force:x", resolution=30)
    assert found.quantity.unit == "N"
    assert 0.0 <= found.least[0] < found.mean < found.most[0]


@pytest.mark.parametrize(
    ("robot", "name", "answer"),
    [
        ("five_bar", "force:z", "no degree of freedom there"),
        ("five_bar", "turning_speed", "take speed"),
        ("five_bar", "force:w", "'w' is not a direction"),
        ("five_bar", "position_error", "--sensor-error"),
        ("tripod_3prs", "speed", "turns with the pose"),
        ("agile_eye", "force", "take moment"),
        ("five_bar", "forse:x", "did you mean 'force:x'?"),
    ],
)
def test_what_has_no_answer_says_why(robot: str, name: str, answer: str) -> None:
    with pytest.raises(AnalysisError, match=answer.replace("?", r"\?")):
        Analysis(load_mechanism(robot)).quantity(name)


def test_without_limits_in_the_description_there_is_no_force(tmp_path: Path) -> None:
    urdf = load_mechanism("five_bar").urdf
    path = tmp_path / "free.urdf"
    path.write_text(re.sub(r'effort="[\d.]+"', 'effort="0"', urdf))
    with pytest.raises(AnalysisError, match="no limit of effort"):
        Analysis(load_mechanism(str(path))).quantity("force")


def test_cables_that_only_pull_exert_less_than_drives_that_also_push() -> None:
    kinematics = Kinematics(load_mechanism("cable_8"))
    found = performance_indices(kinematics, kinematics.home, ellipsoids=False)
    K = kinematics.at(kinematics.home).inverse_jacobian
    lower, upper = _limits(kinematics)
    weights = np.array([1.0, 1.0, 1.0, *3 * (kinematics.characteristic_length,)])
    directions = RNG.normal(size=(20000, 6))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    pulls = directions @ (K / weights).T  # what each drive does along a unit of force
    support = np.maximum(pulls * lower, pulls * upper).sum(axis=1)
    assert found.weakest[0] <= support.min()
    assert found.weakest[0] == pytest.approx(support.min(), rel=0.35)  # directions are coarse in six dimensions
    assert found.strongest[0] >= support.max()


@pytest.mark.slow
def test_a_robot_that_is_singular_everywhere_gives_no_force_and_no_accuracy() -> None:
    analysis = Analysis(load_mechanism("griffis_duffy"), sensors=(1e-4,))
    assert analysis.map("force", resolution=9).most[0] == 0.0
    for name in ("position_error", "largest_transmission"):
        with pytest.raises(AnalysisError, match="singular of type 2 everywhere"):
            analysis.map(name, resolution=9)
        with pytest.raises(AnalysisError, match=r"no pose where all conditions hold.*singular of type 2 everywhere"):
            analysis.sweep(name, poses=1000)
    assert any("everywhere" in note for note in analysis.sweep("force", poses=1000).notes)
    assert not Analysis(load_mechanism("delta")).sweep("type2", poses=1000).notes
    with pytest.raises(AnalysisError, match="it is empty"):
        analysis.workspace(requirements=["force > 1 N"])


def _tensions_exist(kinematics: Kinematics, pose: Array, efforts: Array) -> bool:
    """By a linear programme: efforts within their ranges that do the same work."""
    K = kinematics.at(pose).inverse_jacobian @ np.asarray(kinematics.subspace(pose))
    ranges = list(zip(*_limits(kinematics), strict=True))
    return bool(linprog(np.zeros(len(K)), A_eq=K.T, b_eq=K.T @ efforts, bounds=ranges).status == 0)


def test_at_rest_cables_pull_and_carry_the_weight_with_the_least_tensions_of_all() -> None:
    analysis = Analysis(load_mechanism("cable_8"))
    kinematics, quantity = analysis.robot.kinematics, analysis.quantity("effort_at_rest")
    dynamics, (lower, upper) = analysis.robot.dynamics, _limits(kinematics)
    poses = TaskCoordinates(kinematics).poses(
        np.random.default_rng(3).uniform(-0.9, 0.9, (60, 6)) * ([1.0] * 3 + [0.4] * 3)
    )[0]
    values = quantity.of(analysis.robot, poses)
    held = np.isfinite(values)
    assert 5 < held.sum() < 55
    for pose, value in zip(poses, values, strict=True):
        plain = dynamics.inverse(pose, distribution=Distribution()).effort
        assert (plain > upper).any()  # least squares push with some cables
        assert _tensions_exist(kinematics, pose, plain) == np.isfinite(value)
    for pose, value in list(zip(poses[held], values[held], strict=True))[:5]:
        K = kinematics.at(pose).inverse_jacobian @ np.asarray(kinematics.subspace(pose))
        work = K.T @ dynamics.inverse(pose, distribution=Distribution()).effort
        found = minimize(
            lambda t: 0.5 * t @ t,
            0.5 * (lower + upper),
            jac=lambda t: t,
            bounds=list(zip(lower, upper, strict=True)),
            constraints={"type": "eq", "fun": lambda t: K.T @ t - work, "jac": lambda t: K.T},  # noqa: B023
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert value == pytest.approx(float(np.abs(found.x).max()), rel=1e-5)


def test_where_no_tensions_carry_the_weight_no_bound_on_them_holds() -> None:
    analysis = Analysis(load_mechanism("cable_8"))
    turned = {"pitch": 0.25, "x": 0.2, "z": -0.3}
    ranges = {"yaw": (-0.49, 0.49), "roll": (-0.39, 0.39)}
    free = analysis.map("type1", ranges, hold=turned, resolution=13)
    assert free.inside.all()
    asked = analysis.map("effort_at_rest", ranges, hold=turned, resolution=13)
    assert any("unknown at" in note for note in asked.notes)
    none = analysis.map("type1", ranges, hold=turned, requirements=["effort_at_rest < 1e6 N"], resolution=13)
    np.testing.assert_array_equal(none.inside, np.isfinite(asked.values))
    assert 0 < none.inside.sum() < none.inside.size
