# SPDX-License-Identifier: Apache-2.0
"""Bounds of stiffness and sag over boxes beside their values at random poses, and proofs made of them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pkm_analysis.analysed_robot import AnalysedRobot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line.analyse import main
from pkm_analysis.domain import Domain, corners
from pkm_analysis.proof.enclosures import Encloser
from pkm_analysis.proof.halving import prove
from pkm_analysis.requirements.quantities import Assumed, requirement
from pkm_analysis.requirements.quantity import Batch
from pkm_description import load_mechanism
from pkm_kinematics import Kinematics
from test.oracles.sprung_robots import sprung

DRIVES = 2e5  # N m/rad or N/m


@pytest.mark.parametrize(
    ("name", "quantity", "half", "narrow"),
    [
        ("delta", "stiffness", 1e-3, 0.95),
        ("delta", "sag", 1e-3, 0.98),
        ("five_bar", "stiffness:y", 5e-3, 0.9),  # the platform's branch holds the spin of its pen
        ("orthoglide", "turning_stiffness", 2e-3, 0.85),  # overconstrained
        ("agile_eye", "sag", 2e-3, 0.98),  # overconstrained
        ("cable_8", "stiffness:z", 1e-3, 0.9),
        ("planar_3rrr", "stiffness", 1e-3, 0.9),
        pytest.param("gough_stewart", "sag", 3e-4, 0.95, marks=pytest.mark.slow),  # legs change their lengths
        pytest.param("orthoglide", "sag", 2e-3, 0.9, marks=pytest.mark.slow),
        pytest.param("hexaglide", "stiffness:1,0,1", 2e-4, 0.8, marks=pytest.mark.slow),
        pytest.param("gough_stewart", "stiffness", 3e-4, 0.9, marks=pytest.mark.slow),
        pytest.param("par2", "stiffness", 1e-3, 0.9, marks=pytest.mark.slow),
    ],
)
def test_values_at_poses_of_a_box_are_within_its_bounds(name: str, quantity: str, half: float, narrow: float) -> None:
    robot = AnalysedRobot(Kinematics(load_mechanism(name)))
    unit = "m" if quantity == "sag" else "N m/rad" if "turning" in quantity else "N/m"
    wanted = requirement(robot, f"{quantity} > 1 {unit}", Assumed(DRIVES)).quantity
    middle = np.array([c.home for c in robot.coordinates.all]) + 3.0 * half
    domain = Domain.of_box(robot.coordinates, np.column_stack([middle - half, middle + half]))
    encloser = Encloser(domain, robot.mode, more=wanted.recorded)
    found = []
    for size in (1.0, 0.1):
        box = np.column_stack([middle - size * half, middle + size * half])
        points = [*np.random.default_rng(0).uniform(*box.T, (40, len(box))), *corners(box[None])[0]]
        values = wanted.evaluate(Batch(robot, robot.coordinates.poses(np.array(points))[0]))
        assert np.isfinite(values).all()
        over = encloser(box[None])
        least, most = wanted.least(over)[0], wanted.most(over)[0]
        assert least < values.min() < values.max() < most
        found.append(np.array([1.0 - least / values.min(), most / values.max() - 1.0]))
    assert (found[0] < 1.0 - narrow).all()
    if quantity != "sag":  # where the bounds' linear part is one quantity's own, and not the norm of three
        assert (found[1] < 0.05 * found[0] + 1e-6).all()  # to the second order: a tenth of the size leaves a hundredth


def test_a_stiffness_is_proved_refuted_by_a_pose_or_left_undecided(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["five_bar", "prove", "--box", "x=-20:20mm", "y=380:420mm", "--stiffness", "2e5"]
    assert main([*words, "--that", "stiffness:y > 0.05 N/um", "--that", "margin > 0.1"]) == 0
    assert main([*words, "--that", "stiffness > 1 N/um"]) == 1
    assert "'stiffness > 1 N/um' does not hold" in capsys.readouterr().out
    assert main([*words, "--that", "stiffness > 0.05 N/um", "--most-boxes", "1"]) == 3


def test_a_sag_is_proved_and_an_upper_bound_of_the_stiffness(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["five_bar", "prove", "--box", "x=-20:20mm", "y=380:420mm", "--stiffness", "2e5"]
    assert main([*words, "--that", "sag < 0.1 mm", "--that", "stiffness < 1 N/um"]) == 0
    assert main([*words, "--that", "sag < 0.05 mm"]) == 1
    assert "'sag < 0.05 mm' does not hold" in capsys.readouterr().out


def test_what_bounds_do_not_cover_is_refused_by_name() -> None:
    rigid = re.sub(r'(<link name="[^"]*_(?:fore)?arm">)', r"\1<beam/>", load_mechanism("planar_3rrr").urdf)
    cases = (sprung("delta"), "its springs are in no bound"), (load_mechanism(rigid), "rigid parts leave")
    for mechanism, problem in cases:
        robot = AnalysedRobot(Kinematics(mechanism))
        home = np.array([c.home for c in robot.coordinates.all])
        domain = Domain.of_box(robot.coordinates, np.column_stack([home, home + 1e-3]))
        with pytest.raises(AnalysisError, match=problem):
            prove(robot, domain, [requirement(robot, "sag < 1 m", Assumed(DRIVES))])
