# SPDX-License-Identifier: Apache-2.0
"""Regions: those of the literature, those of a count of its own, and paths that judges of their own go along."""

from __future__ import annotations

import itertools
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy

from pkm_analysis import Analysis, AnalysisError
from pkm_analysis.command_line.analyse import main
from pkm_analysis.kernels.pose_quantities import TYPE2
from pkm_analysis.regions.regions import Regions
from pkm_description import load_mechanism
from pkm_description.command_options import OPEN
from pkm_description.mechanism import Array

CUSPIDAL = Path(__file__).resolve().parents[3] / "docs" / "examples" / "cuspidal_3rpr.urdf.xacro"
BASE = np.array([[0.0, 0.0], [1.591, 0.0], [0.0, 1.0]])
SIDES = np.array([1.704, 1.654, 2.084])  # from joint 1 to 2, 2 to 3, 1 to 3
LEGS = np.array([1.498, 1.538, 1.2])


@cache
def analysis(name: str) -> Analysis:
    return Analysis(load_mechanism(name))


@cache
def cuspidal() -> Regions:
    return analysis(str(CUSPIDAL)).regions(joint_limits=False, resolution=35)


def legs_and_determinant(point: Array) -> tuple[Array, float]:
    """Leg lengths of the published 3-RPR, and the determinant of the lines of its legs, by hand."""
    x, y, yaw = point
    corner = np.arccos((SIDES[0] ** 2 + SIDES[2] ** 2 - SIDES[1] ** 2) / (2.0 * SIDES[0] * SIDES[2]))
    own = np.array([[0.0, 0.0], [SIDES[0], 0.0], [SIDES[2] * np.cos(corner), SIDES[2] * np.sin(corner)]])
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    arms = own @ turn.T
    legs = np.array([x, y]) + arms - BASE
    lengths = np.linalg.norm(legs, axis=1)
    lines = legs / lengths[:, None]
    moments = arms[:, 0] * lines[:, 1] - arms[:, 1] * lines[:, 0]
    return lengths, float(np.linalg.det(np.column_stack([lines, moments])))


def test_a_cuspidal_3rpr_has_two_regions_and_three_assembly_modes_in_each() -> None:
    # Six assembly modes at these legs, and non-singular changes between those of one sign: Innocenti and
    # Parenti-Castelli (1998), McAree and Daniel (1999); two aspects: Zein, Wenger and Chablat (2008).
    found = cuspidal()
    assert [one.sign for one in found.regions] == [1, -1]
    assert [(t.first, t.second, t.through) for t in found.touches] == [(1, 2, "type 2")]
    modes = found.assembly_modes()
    assert len(modes) == 6
    assert sorted(one.region for one in modes) == [1, 1, 1, 2, 2, 2]
    for one in modes:
        legs, determinant = legs_and_determinant(one.point)
        np.testing.assert_allclose(legs, LEGS, atol=1e-8)
        home = legs_and_determinant(modes[0].point)[1]
        assert np.sign(determinant * home) == found.regions[one.region - 1].sign
    assert len(found.changes) == 6


def test_it_changes_its_assembly_mode_without_a_singularity() -> None:
    for a, b in cuspidal().changes[:2]:
        path = cuspidal().path(a.point, b.point)
        assert path.found
        assert np.abs(a.point - b.point).max() > 0.5
        np.testing.assert_allclose(path.waypoints[[0, -1]], [a.point, b.point])
        for end in (a.point, b.point):
            np.testing.assert_allclose(legs_and_determinant(end)[0], LEGS, atol=1e-8)
        between = np.concatenate([np.linspace(p, q, 2000) for p, q in itertools.pairwise(path.waypoints)])
        determinants = np.array([legs_and_determinant(point)[1] for point in between])
        assert np.abs(determinants).min() > 1e-3
        assert len(np.unique(np.sign(determinants))) == 1
        assert path.prove().verdict == "proved"


@pytest.mark.slow
def test_chosen_margins_are_kept_and_what_is_in_the_way_is_told() -> None:
    a = analysis(str(CUSPIDAL))
    end = {"x": -0.5495660821636335, "y": -1.3935498273193208, "yaw": -0.0473313687726446}
    kept = a.path({}, end, margins=["type2 > 0.04"], resolution=35)
    assert kept.found
    points = kept.samples()
    values = a.robot.kinematics.singularity(a.robot.coordinates.poses(points)[0]).type2
    assert float(np.min(values)) >= 0.04
    assert kept.least()["type2 > 0.04"] == pytest.approx(float(np.min(values)), rel=1e-6)
    proof = kept.prove()
    assert (proof.verdict, proof.that) == ("proved", ("inside", "no singularity", "type2 > 0.04"))
    folded = analysis("five_bar").path({}, {"y": -0.4}, resolution=61)  # of the same sign, in the same mode
    assert not folded.found
    assert not folded.proved
    assert "by exhaustion" in folded.reason
    assert sum(folded.barrier.values()) == pytest.approx(1.0)
    assert any("type 2" in what for what in folded.barrier)


def test_regions_of_a_five_bar_are_those_of_its_own_count() -> None:
    found = analysis("five_bar").regions(joint_limits=False, platform_limits=False, resolution=201)
    x, y = np.meshgrid(np.linspace(-0.8, 0.8, 801), np.linspace(-0.8, 0.8, 801), indexing="ij")
    elbows, reach = [], np.ones(x.shape, dtype=bool)
    for base, side in ((-0.125, 1.0), (0.125, -1.0)):  # arms of 0.3, rods of 0.4, elbows outwards
        u, v = x - base, y
        r = np.hypot(u, v)
        reach &= (r > 0.1) & (r < 0.7)
        with np.errstate(invalid="ignore", divide="ignore"):
            along = (0.3**2 - 0.4**2 + r**2) / (2.0 * r)
            across = side * np.sqrt(0.3**2 - along**2)
            elbows.append((base + (along * u - across * v) / r, (along * v + across * u) / r))
    (ax, ay), (bx, by) = elbows
    determinant = (x - ax) * (y - by) - (y - ay) * (x - bx)
    cell = 0.002**2
    sizes = []
    for sign in (1.0, -1.0):
        parts, n = scipy.ndimage.label(reach & (sign * determinant > 0.0))
        sizes += [size for size in np.bincount(parts.ravel())[1 : n + 1] * cell if size > 0.01]
    ours = [one.size for one in found.regions if one.size > 0.01]
    np.testing.assert_allclose(sorted(ours), sorted(sizes), rtol=0.03)


@pytest.mark.slow
def test_working_modes_touch_where_a_limb_is_stretched() -> None:
    found = analysis("five_bar").regions(modes=[0, 1, 3], resolution=101)
    k = analysis("five_bar").robot.kinematics
    between = [t for t in found.touches if t.through.startswith("type 1")]
    limbs = {(0, 1): "left_arm", (1, 3): "right_arm"}
    of = {one.number: one.mode for one in found.regions}
    assert {(of[t.first], of[t.second]) for t in between} == set(limbs)
    for t in between:
        modes = of[t.first], of[t.second]
        assert limbs[modes] in t.through
        base = -0.125 if limbs[modes] == "left_arm" else 0.125
        assert min(abs(np.hypot(t.at[0] - base, t.at[1]) - r) for r in (0.1, 0.7)) < 1e-4
        a, b = (k.inverse(t.at, mode=mode).actuated for mode in modes)
        assert np.abs(a - b).max() < 0.03


def test_type_2_proves_that_there_is_no_path() -> None:
    a = analysis("two_rpr")
    found = a.regions(joint_limits=False, platform_limits=False, ranges={"x": (-0.5, 1.5), "y": (-0.9, 0.9)})
    assert sorted(one.sign for one in found.regions) == [-1, 1]
    for one in found.regions:
        assert one.size == pytest.approx(1.8, rel=0.02)  # above or below the line of the bases
    crossing = a.path({"y": 0.3}, {"y": -0.3}, joint_limits=False)
    assert not crossing.found
    assert crossing.proved
    with pytest.raises(AnalysisError, match="there is no path"):
        crossing.prove()
    straight = a.path({"x": 0.2, "y": 0.3}, {"x": 0.7, "y": 0.4}, joint_limits=False)
    assert len(straight.waypoints) == 2
    assert straight.length == pytest.approx(np.hypot(0.5, 0.1))


def test_robots_without_such_regions_are_told() -> None:
    with pytest.raises(AnalysisError, match="start of the path"):
        analysis("five_bar").path({"x": 3.0}, {"x": 0.1})
    redundant = analysis("planar_redundant").regions(resolution=41)
    assert [one.sign for one in redundant.regions] == [0]
    assert "separates no regions" in redundant.notes[0]


@pytest.mark.slow
def test_a_robot_singular_everywhere_has_no_regions() -> None:
    with pytest.raises(AnalysisError, match="singular of type 2 all over"):
        analysis("griffis_duffy").regions(resolution=9)


@pytest.mark.slow
def test_constraints_that_are_lost_separate_regions() -> None:
    found = analysis("dymo_3uru").regions(modes=[1], resolution=17)
    lost = [t for t in found.touches if t.through == "the limbs lose a constraint"]
    assert lost
    k = analysis("dymo_3uru").robot.kinematics
    graph = found.graph
    around = lost[0].at + np.stack(np.meshgrid(*[np.linspace(-1, 1, 9)] * 3), axis=-1).reshape(-1, 3) * graph.steps
    margins = k.singularity(graph.domain.poses(around)[0], mode=1).constraint_hold
    assert float(np.nanmin(margins)) < 0.05 * float(np.nanmax(margins))


def test_the_commands_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["five_bar", "regions", "--modes", "0,1", "--resolution", "31", "--assembly", "--json"]
    assert main(words) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert {one["mode"] for one in numbers["regions"]} == {0, 1}
    assert numbers["assembly_modes"][0]["label"] == "+1"
    words = ["five_bar", "path", "--to", "x=100mm", "--that", "margin > 0.1", "--report", str(tmp_path)]
    assert main([*words, "--resolution", "31", "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert numbers["found"]
    assert numbers["least"]["margin > 0.1"] >= 0.1
    tight = numbers["least"]["margin > 0.1"] * (1.0 - 1e-13)  # no box around its place is known so well
    words = ["five_bar", "path", "--to", "x=100mm", "--that", f"margin > {tight}", "--resolution", "31", "--json"]
    assert main([*words, "--prove"]) == OPEN
    numbers = json.loads(capsys.readouterr().out)
    assert (numbers["found"], numbers["proof"]["verdict"], numbers["proved_none"]) == (True, "undecided", False)
    assert float(numbers["proof"]["that"][-1].split()[-1]) == pytest.approx(tight, rel=1e-14)  # not rounded
    picture = tmp_path / "path.png"
    words = ["five_bar", "path", "--to", "y=-0.0080952", "--resolution", "31", "--json", "--picture", str(picture)]
    assert main(words) == 1
    assert "another sign" in json.loads(capsys.readouterr().out)["reason"]
    assert picture.stat().st_size > 10_000
    assert main(["five_bar", "regions", "--modes", "x"]) == 2
    assert "write numbers" in capsys.readouterr().err


def test_signs_do_not_turn_with_the_motion_space() -> None:
    # Singularity-free, for 9 rp^2 / (2 bk^2) = 8.43 > 8: Ottaviano and Ceccarelli (2002), their prototype of CaPaMan.
    robot = analysis("capaman").robot
    conditions = analysis("capaman").conditions()
    domain = conditions.domain.within({"yaw": (-0.5, 0.5), "pitch": (-0.15, 0.15), "roll": (-0.15, 0.15)})
    points = np.random.default_rng(0).uniform(domain.lower, domain.upper, (200, 3))
    points = points[conditions.over(domain).inside(points)]
    assert len(points) > 20
    assert (robot.evaluator.numbers(domain.poses(points)[0], (TYPE2,)) > 1.0).all()


@pytest.mark.slow
def test_the_prototype_of_capaman_is_one_region() -> None:
    found = analysis("capaman").regions(resolution=9)
    assert [(one.sign, one.home) for one in found.regions] == [(1, True)]
    assert not found.touches


def test_regions_that_a_joint_parts_say_so() -> None:
    # The legs of a 2-RPR turn no further than half a turn and a little from home: across the line of one leg straight
    # away from home lies no singularity, and still no way.
    found = analysis("two_rpr").regions(resolution=60)
    parted = [t for t in found.touches if "turn that a joint cannot make" in t.through]
    signs = {one.number: one.sign for one in found.regions}
    assert len(found.regions) == 4
    assert len(parted) == 2
    assert all(signs[t.first] == signs[t.second] == -1 for t in parted)
    free = analysis("two_rpr").regions(resolution=60, joint_limits=False)
    assert [t.through for t in free.touches] == ["type 2"]
