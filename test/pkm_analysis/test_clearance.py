# SPDX-License-Identifier: Apache-2.0
"""Distances of bodies against those of capsules, counted by a minimiser that knows neither our bounds nor coal."""

from __future__ import annotations

import pickle
import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from pkm_analysis import Analysis, AnalysisError
from pkm_analysis.analysed_robot import _ROBOTS
from pkm_analysis.body_distances import Clearance
from pkm_analysis.kernels.pose_quantities import WIDTH
from pkm_analysis.requirements.quantity import Batch
from pkm_description import load_mechanism, mechanism_from_urdf
from pkm_description.joint_geometry import home_positions
from pkm_description.mechanism import Array
from pkm_description.picture import link_poses
from pkm_kinematics import Kinematics
from pkm_runtime import sweeps
from pkm_runtime.errors import UsageError
from pkm_runtime.sweeps import Sweeps

pytest.importorskip("coal")
RADIUS, LENGTH = 0.06, 0.6


@cache
def of_capsules() -> Analysis:
    """A planar 3-RRR whose forearms alone take up room: cylinders with a ball at either end."""
    urdf = load_mechanism("planar_3rrr").urdf
    shapes = (
        f'<collision><origin xyz="{0.5 * LENGTH} 0 0" rpy="0 {np.pi / 2} 0"/><geometry><cylinder radius="{RADIUS}" '
    )
    shapes += f'length="{LENGTH}"/></geometry></collision>'
    for x in (0.0, LENGTH):
        shapes += f'<collision><origin xyz="{x} 0 0"/><geometry><sphere radius="{RADIUS}"/></geometry></collision>'
    for k in (1, 2, 3):
        urdf, found = re.subn(rf'(<link name="limb{k}_forearm">)', rf"\1{shapes}", urdf)
        assert found == 1
    return Analysis(mechanism_from_urdf(urdf))


def capsule_distances(analysis: Analysis, pose: Array) -> dict[str, float]:
    """Distances of the axes of the three capsules less their radii, by bounded least squares."""
    joints = analysis.robot.kinematics.inverse(pose).joints
    mechanism = analysis.robot.mechanism
    frames = link_poses(mechanism, np.asarray(joints)[: len(mechanism.home_joints)])
    found = {}
    for i, j in ((1, 2), (1, 3), (2, 3)):
        a, b = frames[f"limb{i}_forearm"], frames[f"limb{j}_forearm"]
        A = np.column_stack([a[:3, 0] * LENGTH, -b[:3, 0] * LENGTH])
        away = b[:3, 3] - a[:3, 3]
        best = lsq_linear(A, away, (0.0, 1.0), tol=1e-14).x
        found[f"limb{i}_forearm and limb{j}_forearm"] = float(np.linalg.norm(A @ best - away)) - 2.0 * RADIUS
    return found


def some_poses(analysis: Analysis, n: int) -> Array:
    rng = np.random.default_rng(1)
    low, high = np.array([0.1, -0.1, -0.9]), np.array([0.9, 0.7, 0.9])
    poses = analysis.robot.coordinates.poses(rng.uniform(low, high, (n, 3)))[0]
    return poses[analysis.robot.kinematics.inverse(poses).status == 0]


def test_distances_are_those_of_capsules() -> None:
    analysis = of_capsules()
    clearance = analysis.robot.clearance
    assert clearance.source == "collision geometry"
    assert clearance.names == [
        "limb1_forearm and limb2_forearm",
        "limb1_forearm and limb3_forearm",
        "limb2_forearm and limb3_forearm",
    ]
    poses = some_poses(analysis, 150)
    assert len(poses) > 50
    quantity = analysis.quantity("clearance")
    values = quantity.of(analysis.robot, poses)
    met = 0
    for pose, value in zip(poses, values, strict=True):
        distances = capsule_distances(analysis, pose)
        least = min(distances.values())
        met += least < 0.0
        if least > 1e-3:
            assert value == pytest.approx(least, abs=1e-5)
        else:
            assert value < 2e-3
    assert 0 < met < len(poses)
    for bound in (0.02, 0.1):
        judged = analysis.requirement(f"clearance > {bound} m")
        slack, causes = judged.at(Batch(analysis.robot, poses, quantity.needs))
        clear = np.abs(values - bound) > 1e-5
        assert ((slack >= 0.0) == (values >= bound))[clear].all()
        for k in np.flatnonzero((slack < 0.0) & clear):
            assert capsule_distances(analysis, poses[k])[clearance.names[causes[k]]] < bound + 1e-5


def test_the_pair_that_stops_the_robot_is_named() -> None:
    analysis = of_capsules()
    found = analysis.workspace(
        {"x": (0.1, 0.9), "y": (-0.1, 0.7)},
        vary=["x", "y"],
        hold={"yaw": 0.8},
        requirements=["clearance > 20 mm"],
        resolution=25,
        tolerance=5e-3,
    )
    stops = {stop.text for stop, share in found.stopped_by if stop.kind == "requirement"}
    assert stops
    assert all(re.fullmatch(r"clearance > 20 mm: limb\d_forearm and limb\d_forearm", text) for text in stops)
    rng = np.random.default_rng(2)
    points = rng.uniform([0.1, -0.1], [0.9, 0.7], (200, 2))
    poses = analysis.robot.coordinates.poses(np.column_stack([points, np.full(200, 0.8)]))[0]
    solved = analysis.robot.kinematics.inverse(poses)
    least = np.full(200, -1.0)
    for k in np.flatnonzero(solved.status == 0):
        least[k] = min(capsule_distances(analysis, poses[k]).values())
    sure = np.abs(least - 0.02) > 1e-5
    assert (found.contains(points) == (least > 0.02))[sure].all()
    share = float(np.mean(least > 0.02))
    assert found.size / 0.64 == pytest.approx(share, abs=4.0 * np.sqrt(share * (1.0 - share) / 200))


@pytest.mark.parametrize("name", ["delta", "gough_stewart", "quattro", "planar_3rpr", "cable_8"])
def test_bodies_stand_where_links_are_drawn_and_what_is_left_out_is_told(name: str) -> None:
    kinematics = Kinematics(load_mechanism(name))
    clearance = Clearance(kinematics)
    pose = np.array(kinematics.home)
    pose[:2] += 0.01
    solution = kinematics.inverse(pose)
    rows = np.array([[solution.joints[k - WIDTH]] for k in clearance.needs])
    rotations, places = clearance.placed(pose[None], rows)
    frames = link_poses(kinematics.mechanism, _in_tree_order(kinematics, solution.joints))
    for k, body in enumerate(clearance.bodies):
        np.testing.assert_allclose(places[0, k], frames[body.link][:3, 3], atol=1e-8)
        np.testing.assert_allclose(rotations[0, k], frames[body.link][:3, :3], atol=1e-8)
    assert clearance.source.startswith("visuals")
    assert "left out, tied by a joint" in str(clearance)
    assert not set(clearance.names) & set(clearance.tied)


def _in_tree_order(kinematics: Kinematics, joints: Array) -> Array:
    values = {**home_positions(kinematics.mechanism), **dict(zip(kinematics.joint_names, joints, strict=True))}
    return np.array([values[name] for name in home_positions(kinematics.mechanism)])


def test_robots_that_nothing_is_known_of_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    urdf = re.sub(r"<visual>.*?</visual>", "", load_mechanism("two_rpr").urdf, flags=re.DOTALL)
    with pytest.raises(AnalysisError, match="0 bodies of the description have shapes"):
        Analysis(mechanism_from_urdf(urdf)).quantity("clearance")
    monkeypatch.setitem(sys.modules, "coal", None)
    with pytest.raises(UsageError, match=r"they need coal, which is not installed; .*pip install coal"):
        Analysis(load_mechanism("delta")).quantity("clearance")


@pytest.mark.slow
def test_another_mesh_is_another_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trimesh = pytest.importorskip("trimesh")
    monkeypatch.setattr(sweeps, "WORTH_KEEPING", 0.0)
    file, journal = tmp_path / "forearm.stl", tmp_path / "run.journal"
    urdf = of_capsules().robot.mechanism.urdf
    mesh = '<collision><geometry><mesh filename="forearm.stl"/></geometry></collision>'
    urdf = urdf.replace('<link name="limb1_forearm">', f'<link name="limb1_forearm">{mesh}')

    robot = tmp_path / "robot.urdf"
    robot.write_text(urdf)

    def asked(width: float) -> tuple[float, Analysis]:
        trimesh.creation.box((LENGTH, width, width)).export(file)
        analysis = Analysis(load_mechanism(str(robot)), sweeps=Sweeps(1, journal=journal))
        where = {"x": (0.2, 0.8), "y": (0.0, 0.6)}
        found = analysis.sweep("clearance", where, vary=["x", "y"], hold={"yaw": 0.8}, poses=30, seed=1)
        return found.mean, analysis

    first, sent = asked(0.02)
    assert asked(0.02)[0] == first
    second, _ = asked(0.3)
    assert second < first - 1e-3  # nothing was taken from the journal
    _ROBOTS.clear()
    with pytest.raises(AnalysisError, match="not those that the question was asked with"):
        _ = pickle.loads(pickle.dumps(sent.robot)).clearance
