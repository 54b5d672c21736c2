# SPDX-License-Identifier: Apache-2.0
"""Proofs of pose errors: enclosures hold what they say, bounds hold for machines at random, and what fails is shown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pkm_analysis import Analysis
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line.analyse import main
from pkm_analysis.errors.certified_errors import COVERED, DIRECTIONS, ProvedErrors, _Enclosure, prove_pose_error
from pkm_analysis.errors.enclosed_graph import Enclosed, EnclosedGraph, EnclosedRods, rods_of
from pkm_analysis.errors.error_budget import ErrorModel
from pkm_analysis.errors.tolerances import Tolerances
from pkm_description import load_mechanism
from pkm_kinematics.geometry import GraphModel
from pkm_kinematics.geometry.graph_model import rotations

FINE = Tolerances(lengths=1e-5, angles=1e-5)


def box_of(analysis: Analysis, half: float) -> dict[str, tuple[float, float]]:
    return {c.name: (c.home - half, c.home + half) for c in analysis.robot.coordinates.all if c.unit == "m"}


def proved(name: str, half: float, bound: float) -> tuple[Analysis, ProvedErrors]:
    analysis = Analysis(load_mechanism(name))
    found = prove_pose_error(analysis.robot, analysis.box(box_of(analysis, half)), FINE, bound, 0.01, 3000)
    return analysis, found


def test_every_direction_is_near_one_of_those_that_are_asked() -> None:
    random = np.random.default_rng(0).standard_normal((20_000, 3))
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    assert np.abs(random @ DIRECTIONS.T).max(axis=1).min() >= COVERED


@pytest.mark.parametrize("name", ["delta", "linear_delta", "hexa", "hexaglide", "gough_stewart", "tripod_3prs"])
def test_derivatives_at_random_points_of_a_box_are_within_their_enclosures(name: str) -> None:
    """Of loops and of rods, joints and places displaced: each within its interval, elementwise."""
    enclosure = _Enclosure(Analysis(load_mechanism(name)).robot, Tolerances(lengths=1e-3, angles=1e-3))
    model, random = enclosure.model, np.random.default_rng(0)
    home, n = model.home(), 40
    wide = Enclosed(home.q, np.full((1, model.size), 0.01))
    platform = enclosure._platform(home.platform, np.full((1, 3), 0.01), np.array([0.01]))
    rods = rods_of(model)
    assert (rods is None) == (name == "tripod_3prs")
    for make in (EnclosedGraph, *([] if rods is None else [lambda m, *box: EnclosedRods(m, rods, *box)])):
        J, by_place = make(model, wide, *platform, enclosure.shifts).derivatives()
        for _ in range(n):
            still = np.zeros_like(enclosure.shifts)
            moved = GraphModel(model.mechanism, _within(enclosure.shifts, random))
            q = home.q + 0.01 * random.uniform(-1.0, 1.0, home.q.shape)
            turn = rotations(0.005 * random.uniform(-1.0, 1.0, (1, 3)))
            position = home.platform[:, :3, 3] + 0.01 * random.uniform(-1.0, 1.0, (1, 3))
            there = (
                Enclosed(position, np.zeros((1, 3))),
                Enclosed(turn @ home.platform[:, :3, :3], np.zeros((1, 3, 3))),
            )
            exact, places = make(moved, Enclosed(q, np.zeros_like(q)), *there, still).derivatives()
            for one, point in zip((J, *by_place), (exact, *places), strict=True):
                assert (np.abs(point.middle - one.middle) <= one.radius + point.radius).all()


def _within(shifts: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Displacements whose translation and rotation are no longer than the radii."""
    directions = random.standard_normal((len(shifts), 2, 3))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    return (directions * (shifts * random.uniform(0.0, 1.0, shifts.shape))[:, :, None]).reshape(-1, 6)


@pytest.mark.parametrize(
    ("name", "half", "bound"), [("delta", 0.004, 6e-4), ("hexa", 0.003, 4e-4), ("linear_delta", 0.001, 8e-4)]
)
def test_no_machine_misses_a_proved_box_by_more_than_the_bound(name: str, half: float, bound: float) -> None:
    analysis, found = proved(name, half, bound)
    assert found.verdict == "proved"
    assert found.share == pytest.approx(1.0)
    assert found.largest <= bound
    random = np.random.default_rng(1)
    task, ends = analysis.robot.coordinates, box_of(analysis, half)
    points = np.array([[random.choice(ends[c.name]) if c.name in ends else c.home for c in task.all] for _ in range(6)])
    model = ErrorModel(analysis.robot, FINE, task.poses(points)[0])
    drives = model.parameters.model.columns_of(model.mechanism.actuated_joints)
    off = []
    for k, (values, _) in enumerate(model.worst_machines()):
        for sign in (1.0, -1.0):
            for share in (1.0, 0.0):  # the worst machine, and others at random
                drawn = {
                    name: sign * value if share else value * random.uniform(-1.0, 1.0) for name, value in values.items()
                }
                built = GraphModel(model.mechanism, model.parameters.displacements(drawn))
                start = model.states.rows(slice(k, k + 1))
                end, gap = built.closed(start, drives)
                assert gap[0] < 1e-10
                off.append(float(np.linalg.norm(end.platform[0, :3, 3] - start.platform[0, :3, 3])))
    assert max(off) <= found.largest
    assert max(off) > 0.5 * found.largest  # the bound is not idle


def test_what_does_not_hold_is_refuted_by_a_machine_and_a_pose() -> None:
    _, found = proved("delta", 0.004, 1e-4)
    assert found.verdict == "refuted"
    assert found.point is not None
    assert found.missed > 1e-4


def test_too_large_a_box_is_undecided_rather_than_wrong() -> None:
    analysis = Analysis(load_mechanism("delta"))
    found = prove_pose_error(analysis.robot, analysis.box(box_of(analysis, 0.03)), FINE, 6e-4, 0.5, 50)
    assert found.verdict == "undecided"
    assert 0.0 <= found.share < 1.0
    assert len(found.open_boxes) > 0


@pytest.mark.parametrize("name", ["orthoglide", "cable_8", "five_bar"])
def test_robots_that_cannot_be_enclosed_are_refused_by_name(name: str) -> None:
    analysis = Analysis(load_mechanism(name))
    with pytest.raises(AnalysisError, match="pose_error of"):
        prove_pose_error(analysis.robot, analysis.box(box_of(analysis, 0.001)), FINE, 1e-3)


def test_the_command_proves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tolerances.yaml"
    file.write_text("lengths: 0.01 mm\nangles: 0.01 mrad\n")
    words = ["hexa", "prove", "--that", "pose_error < 0.4 mm", "--box", "x=-3mm:3mm"]
    assert main([*words, "--tolerances", str(file), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "proved"
    assert answer["largest"] < 4e-4
    assert main(words) == 2
    assert "give --tolerances FILE" in capsys.readouterr().err
