# SPDX-License-Identifier: Apache-2.0
"""Bounds of the stiffness over boxes beside its values at random poses, and proofs made of them."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_analysis.analysed_robot import Robot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line.analyse import main
from pkm_analysis.domain import Domain, corners
from pkm_analysis.proof.enclosures import Encloser
from pkm_analysis.requirements.quantities import Assumed, requirement
from pkm_analysis.requirements.quantity import Batch
from pkm_description import load_mechanism
from pkm_kinematics import Kinematics

DRIVES = 2e5  # N m/rad or N/m


@pytest.mark.parametrize(
    ("name", "quantity", "half", "narrow"),
    [
        ("delta", "stiffness", 1e-3, 0.95),
        ("five_bar", "stiffness:y", 5e-3, 0.9),  # the platform's branch holds the spin of its pen
        ("orthoglide", "turning_stiffness", 2e-3, 0.9),  # overconstrained
        ("cable_8", "stiffness:z", 1e-3, 0.9),
        ("planar_3rrr", "stiffness", 1e-3, 0.9),
        pytest.param("hexaglide", "stiffness:1,0,1", 2e-4, 0.8, marks=pytest.mark.slow),
        pytest.param("gough_stewart", "stiffness", 3e-4, 0.9, marks=pytest.mark.slow),  # legs change their lengths
        pytest.param("par2", "stiffness", 1e-3, 0.9, marks=pytest.mark.slow),
    ],
)
def test_no_pose_of_a_box_is_softer_than_its_bound(name: str, quantity: str, half: float, narrow: float) -> None:
    robot = Robot(Kinematics(load_mechanism(name)))
    wanted = requirement(robot, f"{quantity} > 1 {'N m/rad' if 'turning' in quantity else 'N/m'}", Assumed(DRIVES))
    middle = np.array([c.home for c in robot.coordinates.all]) + 3.0 * half
    domain = Domain.of_box(robot.coordinates, np.column_stack([middle - half, middle + half]))
    encloser = Encloser(domain, robot.mode, more=wanted.quantity.recorded)
    found = []
    for size in (1.0, 0.1):
        box = np.column_stack([middle - size * half, middle + size * half])
        points = [*np.random.default_rng(0).uniform(*box.T, (40, len(box))), *corners(box[None])[0]]
        values = wanted.quantity.evaluate(Batch(robot, robot.coordinates.poses(np.array(points))[0]))
        assert np.isfinite(values).all()
        least = wanted.quantity.least(encloser(box[None]))[0]
        assert least < values.min()
        found.append(1.0 - least / values.min())
    assert found[0] < 1.0 - narrow
    assert found[1] < 0.05 * found[0] + 1e-6  # to the second order: a tenth of the size leaves a hundredth


def test_a_stiffness_is_proved_refuted_by_a_pose_or_left_undecided(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["five_bar", "prove", "--box", "x=-20:20mm", "y=380:420mm", "--stiffness", "2e5"]
    assert main([*words, "--that", "stiffness:y > 0.05 N/um", "--that", "margin > 0.1"]) == 0
    assert main([*words, "--that", "stiffness > 1 N/um"]) == 1
    assert "'stiffness > 1 N/um' does not hold" in capsys.readouterr().out
    assert main([*words, "--that", "stiffness > 0.05 N/um", "--most-boxes", "1"]) == 3


def test_what_bounds_do_not_cover_is_refused_by_name() -> None:
    robot = Robot(Kinematics(load_mechanism("delta")))
    for text, problem in (("sag < 1 mm", "nothing is proved of 'sag'"), ("stiffness < 1 N/um", "an upper bound of it")):
        with pytest.raises(AnalysisError, match=problem):
            requirement(robot, text).check_provable()
