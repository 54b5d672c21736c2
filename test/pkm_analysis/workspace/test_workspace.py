# SPDX-License-Identifier: Apache-2.0
"""Workspaces beside closed forms, beside counts by other means, and with a clear answer where there is none."""

from __future__ import annotations

import warnings
from functools import cache
from math import acos, pi, sqrt
from pathlib import Path

import numpy as np
import pytest

from pkm_analysis import Analysis, AnalysisError, Requirement, user_quantity
from pkm_analysis.workspace.workspace import depth
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_kinematics import Status


@cache
def analysis(name: str) -> Analysis:
    return Analysis(load_mechanism(name))


def lens(r: float, s: float, d: float) -> float:
    """Area common to two circles of radii r and s whose centres are d apart."""
    if d >= r + s:
        return 0.0
    if d <= abs(r - s):
        return pi * min(r, s) ** 2
    a, b = acos((d * d + r * r - s * s) / (2 * d * r)), acos((d * d + s * s - r * r) / (2 * d * s))
    return r * r * a + s * s * b - 0.5 * sqrt((r + s - d) * (d + r - s) * (d - r + s) * (d + r + s))


def rings(inner: float, outer: float, d: float) -> float:
    """Area common to two rings of the same radii whose centres are d apart."""
    return lens(outer, outer, d) - 2.0 * lens(inner, outer, d) + lens(inner, inner, d)


@pytest.mark.parametrize(
    ("name", "inner", "outer", "apart"), [("two_rpr", 0.1, 1.5, 0.6), ("five_bar", 0.1, 0.7, 0.25)]
)
def test_planar_workspaces_are_common_parts_of_rings(name: str, inner: float, outer: float, apart: float) -> None:
    own = name == "two_rpr"  # whose rings are limits of its legs; the five-bar's are the lengths of its bars
    found = analysis(name).workspace(joint_limits=own, platform_limits=False, tolerance=1e-4)
    assert abs(found.size - rings(inner, outer, apart)) < found.error
    assert found.error < 0.002 * found.size
    assert found.unit == "m^2"
    assert not found.caution
    assert {stop.kind for stop, _ in found.stopped_by} == {"joint limit" if own else "reach"}


def test_a_platform_without_a_branch_is_said_to_count_from_home() -> None:
    task = analysis("tricept").robot.coordinates
    (pose,), _ = task.poses(task.point({"z": 0.05})[None])
    home = task.kinematics.home
    assert np.linalg.norm(pose[:3] - home[:3]) == pytest.approx(0.05)
    said = "counted from the platform at home, along its axes there"
    found = analysis("tricept").workspace({"z": (-0.05, 0.05), "pitch": (-0.1, 0.1)}, resolution=8)
    assert "searched: z -50 to 50 mm, " in str(found)
    assert said in str(found)
    assert not analysis("tripod_3prs").robot.coordinates.frame


def test_poses_that_follow_from_home_are_not_called_all_that_is_reached() -> None:
    """Of a five-bar with its tool on a forearm, 8 % of what `inverse` reaches is on no straight way, behind a bay."""
    found = analysis("tripod_3prs").workspace({"z": (0.2, 0.3), "pitch": (-0.1, 0.1)}, resolution=8)
    assert not found.all_of_it
    assert "poses that follow from home on the straight way in these coordinates" in str(found)


@pytest.mark.parametrize(("dimension", "deep"), [(1, 0.5), (2, 1.0 / 4.0), (3, 1.0 / 6.0)])
def test_depth_of_a_ball_is_its_size_by_its_border(dimension: int, deep: float) -> None:
    axes = [np.linspace(-0.6, 0.6, n) for n in (90, 100, 110)[:dimension]]
    grid = np.meshgrid(*axes, indexing="ij")
    assert depth(sum(g * g for g in grid) < 0.25, axes) == pytest.approx(deep, rel=0.03)


@pytest.mark.parametrize("name", ["five_bar", pytest.param("tripod_3prs", marks=pytest.mark.slow)])
def test_without_a_tolerance_the_error_goes_by_the_size(name: str) -> None:
    found = analysis(name).workspace()
    assert found.error < 0.06 * found.size
    assert abs(found.size - found.sampled[0]) < found.error + 3.0 * found.sampled[1]


def test_nothing_lies_beyond_the_range_that_was_asked_for() -> None:
    box = {"x": (-0.1, 0.05), "y": (-0.1, 0.05), "z": (-0.95, -0.85)}
    found = analysis("delta").workspace(box, resolution=20)
    assert (found.corners >= found.domain.lower).all()
    assert (found.corners <= found.domain.upper).all()
    assert found.size == pytest.approx(0.15 * 0.15 * 0.1, rel=1e-3)
    assert "\n  searched: x -100 to 50 mm, y -100 to 50 mm, z -950 to -850 mm\n" in str(found)


@pytest.mark.slow
def test_tripteron_fills_its_cube_but_for_what_its_bars_do_not_reach() -> None:
    found = analysis("tripteron").workspace(tolerance=1e-3, joint_limits=False)
    # the limb along x reaches (y, z) within 0.7 of its rail; with a slide on every axis, a point on each pair
    rng = np.random.default_rng(3)
    points = rng.uniform(0.0, 0.6, (400_000, 3))
    within = [np.hypot(points[:, a], points[:, b]) <= 0.7 for a, b in ((0, 1), (1, 2), (2, 0))]
    share = np.mean(np.all(within, axis=0))
    assert found.size == pytest.approx(0.6**3 * share, abs=found.error + 4 * 0.6**3 * sqrt(share * (1 - share) / 4e5))


def inside_tori(points: Array) -> Array:
    """Distances (n, 6) from the limits of a Delta's reach, negative beyond them.

    Each arm has two: the torus of radius 0.420 and tube 1.055 about its motor's axis, from within and from without.
    """
    radius, arm, rod = 0.330 - 0.125, 0.420, 1.055
    found = []
    for angle in (0.0, 2 * pi / 3, 4 * pi / 3):
        out = points[:, :2] @ (np.cos(angle), np.sin(angle)) - radius
        side = points[:, :2] @ (-np.sin(angle), np.cos(angle))
        ring = np.hypot(out, points[:, 2])
        found += [rod - np.hypot(ring - arm, side), np.hypot(ring + arm, side) - rod]
    return np.stack(found, axis=1)


def test_delta_is_a_common_part_of_three_tori() -> None:
    ranges = {"x": (-1.5, 1.5), "y": (-1.5, 1.5), "z": (-1.5, -0.2)}
    found = analysis("delta").workspace(ranges, joint_limits=False, platform_limits=False, tolerance=1e-3)
    points = np.random.default_rng(0).uniform([-1.5, -1.5, -1.5], [1.5, 1.5, -0.2], (2_000_000, 3))
    inside = (inside_tori(points) >= 0.0).all(axis=1)
    size, deviation = 11.7 * inside.mean(), 11.7 * inside.std() / sqrt(len(points))
    assert abs(found.size - size) < found.error + 4.0 * deviation
    assert (found.contains(points[:20000]) == inside[:20000]).all()
    corners = found.corners[(np.abs(found.corners[:, :2]) < 1.499).all(axis=1) & (found.corners[:, 2] < -0.201)]
    nearest = inside_tori(corners).min(axis=1)  # 0 on the border
    assert np.abs(nearest).max() < found.tolerance


def test_delta_with_all_limits_beside_its_inverse_kinematics() -> None:
    a = analysis("delta")
    found = a.workspace(tolerance=1e-3)
    points = np.random.default_rng(5).uniform([-0.8, -0.8, -1.4], [0.8, 0.8, -0.4], (20000, 3))
    status = a.robot.kinematics.inverse(points).status
    assert (found.contains(points) == (status == Status.CONVERGED)).all()
    share = np.mean(status == Status.CONVERGED)
    assert found.size == pytest.approx(2.56 * share, abs=found.error + 4 * 2.56 * sqrt(share * (1 - share) / 20000))
    kinds = {stop.kind for stop, _ in found.stopped_by}
    assert {"joint limit", "platform limit"} <= kinds
    assert sum(share for _, share in found.stopped_by) == pytest.approx(1.0, abs=0.01)


def test_what_stops_the_robot_is_so() -> None:
    a = analysis("five_bar")
    found = a.workspace(tolerance=1e-5)
    assert "turns of left_arm, right_arm are counted on the straight path from home" in str(found)
    for stop, _ in found.stopped_by:
        code = next(c for c in np.unique(found.stops) if c and found.membership.stop(int(c)) == stop)
        stopped = found.corners[found.stops == code]
        corner = stopped[min(5, len(stopped) - 1)]
        joints = a.robot.kinematics.inverse(corner)
        if stop.kind == "joint limit":
            name, limit = stop.text.split()[0], np.radians(float(stop.text.split()[3]))
            at = float(np.nan_to_num(joints.joints)[a.robot.kinematics.joint_names.index(name)])
            assert abs(at) > abs(limit) - 1e-3  # more where the joint would have to come round from its other end
        elif stop.kind == "range":  # of the platform's own coordinates
            assert np.abs(corner).max() > 0.5
        else:
            side = -0.125 if "left" in stop.text else 0.125
            reach = np.hypot(corner[0] - side, corner[1])
            assert min(abs(reach - 0.7), abs(reach - 0.1)) < 1e-4


def test_a_turn_back_within_less_than_a_whole_turn_is_told() -> None:
    limits = {"arm_lower": "-3.1", "arm_upper": "3.1"}
    found = Analysis(load_mechanism("five_bar", limits)).workspace()
    assert "turns of left_arm, right_arm are counted on the straight path from home" in found.caution
    assert "mode 0 includes it" in str(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = Analysis(load_mechanism("five_bar", limits), mode=0).workspace()
    assert not whole.caution
    assert whole.size > 1.3 * found.size
    assert "turns" not in analysis("delta").workspace(tolerance=1e-2).caution  # its arms cannot come round


def test_requirements_cut_a_workspace() -> None:
    a = analysis("five_bar")
    whole, part = a.workspace(), a.workspace(requirements=["type2 > 1.5 rad/m"])
    assert part.size < whole.size - whole.error - part.error
    assert any(stop.text == "type2 > 1.5 rad/m" for stop, _ in part.stopped_by)
    points = np.random.default_rng(2).uniform(-0.6, 0.6, (300, 2))
    margins = a.robot.kinematics.singularity(points).type2
    allowed = (a.robot.kinematics.inverse(points).status == Status.CONVERGED) & (margins >= 1.5)
    assert (part.contains(points) == allowed).all()
    assert 0 < allowed.sum() < 300
    height = user_quantity("height", "m", lambda poses: poses[:, 1])
    above = a.workspace(requirements=[Requirement(height, 0.0)])
    assert above.bounds[0][1] == pytest.approx(0.0, abs=above.tolerance)


def test_slices_and_files(tmp_path: Path) -> None:
    found = analysis("delta").workspace(tolerance=5e-3, resolution=30)
    flat = found.slice_at("z", -1.0)
    assert flat.unit == "m^2"
    assert flat.domain.labels == ("x", "y")
    assert flat.size < 1.6**2
    found.save(tmp_path / "delta.stl")
    found.save(tmp_path / "delta.ply")
    trimesh = pytest.importorskip("trimesh", reason="trimesh is not installed")
    assert trimesh.load(tmp_path / "delta.stl").volume == pytest.approx(found.size, rel=1e-4)
    assert trimesh.load(tmp_path / "delta.ply").volume == pytest.approx(found.size, rel=1e-4)
    assert set(found.to_dict()) >= {"size", "error", "unit", "stopped_by", "sampled"}
    with pytest.raises(AnalysisError, match="not a surface"):
        flat.save(tmp_path / "flat.stl")


def test_one_coordinate_and_own_freedoms() -> None:
    line = analysis("delta").workspace(vary=["z"], tolerance=1e-6)
    assert line.unit == "m"
    assert line.size == pytest.approx(line.bounds[1][0] - line.bounds[0][0])
    tilts = analysis("tripod_3prs").workspace(vary=["pitch", "roll"], resolution=15)
    assert tilts.unit == "rad^2"
    assert tilts.size > 0.0
    constant = analysis("gough_stewart").workspace(vary="xy", hold={"yaw": 0.2}, resolution=60)
    assert constant.unit == "m^2"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ({"requirements": ["type2 > 1e6 rad/m"]}, "it is empty"),
        ({"ranges": {"x": (5.0, 6.0), "y": (5.0, 6.0)}}, "it is empty"),
        ({"requirements": ["type2 > 0.2"]}, "0.2 has no unit; write '0.2 rad/m'"),
        ({"requirements": ["type2 > 0.2 mm"]}, "'mm' is no unit of it"),
        ({"requirements": ["tipe2 > 0.2"]}, "did you mean 'type2'"),
        ({"requirements": ["type2"]}, "it cannot be read"),
        ({"requirements": ["joint:arm > 1 rad"]}, "no limb has one of that name"),
        ({"vary": ["w"]}, "the robot has none of that name; choose one of: x, y"),
        ({"vary": ["x"], "hold": {"x": 0.0}}, "to vary and to be held"),
        ({"ranges": {"x": (1.0, 0.0), "y": (0.0, 1.0)}}, "1 to 0 is empty"),
    ],
)
def test_questions_without_an_answer(question: dict[str, object], answer: str) -> None:
    with pytest.raises(AnalysisError) as error:
        analysis("five_bar").workspace(**question)  # type: ignore[arg-type]
    assert answer in str(error.value)


def test_a_robot_without_limits_goes_on_for_ever() -> None:
    with pytest.raises(AnalysisError, match="it has no end along x, y, z"):
        analysis("gough_stewart").workspace(joint_limits=False, platform_limits=False)


def test_a_robot_singular_everywhere_has_no_place_away_from_singularities() -> None:
    with pytest.raises(AnalysisError, match="empty"):
        analysis("griffis_duffy").workspace(requirements=["type2 > 0.01"])


@pytest.mark.slow
def test_an_angle_that_closes_on_itself_has_no_border_there() -> None:
    a = Analysis(load_mechanism("planar_3rrr"))
    found = a.workspace(vary=["x", "y", "yaw"], resolution=15)
    kinds = {stop.kind: share for stop, share in found.stopped_by}
    assert "range" not in kinds
    assert "seam" not in kinds
    assert sum(kinds.values()) <= 1.0 + 1e-9
    assert sum(share for _, share in found.stopped_by) == pytest.approx(1.0, abs=0.01)
    assert "no border: yaw closes on itself" in str(found)
    ends = np.abs(np.abs(found.corners[:, 2]) - np.pi) < 1e-9
    other = found.corners[ends] * [1.0, 1.0, -1.0]
    assert ends.sum() > 10
    inward = other * [1.0, 1.0, 1.0 - 1e-9]
    assert found.contains(inward).mean() > 0.7  # the other end goes on; corners at its rim are on either side
    part = a.workspace({"x": (0.3, 0.7), "y": (0.1, 0.5), "yaw": (-3.0, 3.0)}, resolution=15)
    assert any(stop.kind == "range" for stop, _ in part.stopped_by)
    assert "no border" not in str(part)


@pytest.mark.by_day("orthoglide")
@pytest.mark.parametrize("name", ["orthoglide", "delta"])
def test_a_mesh_is_closed_also_for_those_who_know_corners_by_their_places(name: str, tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    found = analysis(name).workspace(resolution=12)
    for ending in ("stl", "ply", "obj"):
        found.save(tmp_path / f"border.{ending}")
        mesh = trimesh.load(tmp_path / f"border.{ending}")
        assert mesh.is_watertight, ending
        assert mesh.is_winding_consistent, ending
        assert abs(mesh.volume) == pytest.approx(found.size, rel=1e-4)
        assert mesh.area_faces.min() > 0.0
