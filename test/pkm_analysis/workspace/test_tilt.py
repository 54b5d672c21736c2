# SPDX-License-Identifier: Apache-2.0
"""How far a platform tilts: beside inverse kinematics just before and just beyond, and without an answer."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_analysis import Analysis, AnalysisError
from pkm_analysis.command_line.analyse import main
from pkm_description import load_mechanism
from pkm_kinematics import Status


def test_the_inverse_kinematics_ends_where_the_tilt_does() -> None:
    analysis = Analysis(load_mechanism("gough_stewart"))
    bound = {name: analysis.quantity(f"joint:{name}") for name in analysis.robot.kinematics.actuated_names}
    longest = (
        max(float(one.of(analysis.robot, analysis.robot.kinematics.home[None])[0]) for one in bound.values()) + 0.05
    )
    found = analysis.tilt(16, hold={"x": 0.05}, requirements=[f"joint:{name} < {longest} m" for name in bound])
    kinematics = analysis.robot.kinematics
    place = analysis.robot.coordinates.poses(analysis.robot.coordinates.point({"x": 0.05})[None])[0][0]
    for to, angle in zip(found.directions, found.angles, strict=True):
        lengths = []
        for tilt in (angle - 1e-3, angle + 1e-3):
            turn = Rotation.from_rotvec(tilt * np.array([-np.sin(to), np.cos(to), 0.0]))
            pose = np.r_[place[:3], (turn * Rotation.from_quat(place[3:])).as_quat()]
            at = kinematics.inverse(pose)
            lengths.append(at.actuated.max() if at.status == Status.CONVERGED else np.inf)
        assert lengths[0] < longest < lengths[1]
    assert found.to_dict()["every"] == found.angles.min()
    assert found.to_dict()["domain"] == "x 50 mm, y 100 mm, z 800 mm, yaw 0 deg, pitch 0 deg, roll 0 deg"
    assert sum(found.stopped_by.values()) == pytest.approx(1.0)


def test_no_singularity_lies_on_the_way() -> None:
    """Though the determinant is zero between two steps, and both ends are regular."""
    analysis = Analysis(load_mechanism("gough_stewart"))
    found = analysis.tilt(8, hold={"x": 0.1}, requirements=["no singularity"])
    kinematics, place = analysis.robot.kinematics, analysis.robot.coordinates.poses(found.point[None])[0][0]
    for to, angle in zip(found.directions, found.angles, strict=True):
        tilts = np.append(np.linspace(0.0, angle - 1e-3, 2000), angle + 1e-3)
        turns = Rotation.from_rotvec(tilts[:, None] * np.array([-np.sin(to), np.cos(to), 0.0]))
        poses = np.hstack([np.tile(place[:3], (len(tilts), 1)), (turns * Rotation.from_quat(place[3:])).as_quat()])
        side = np.linalg.det(kinematics.at(poses).inverse_jacobian) > 0.0
        assert (side[:-1] == side[0]).all()
        assert (side[-1] != side[0]) == (angle < 3.14)
    assert found.stopped_by == {"no singularity of type 2 on the way": 0.875, "half a turn": 0.125}


def test_a_platform_that_does_not_tilt_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AnalysisError, match="does not turn about two axes"):
        Analysis(load_mechanism("delta")).tilt()
    assert main(["gough_stewart", "tilt", "--hold", "z=5"]) == 2
    assert "lets the platform's z be at most" in capsys.readouterr().err


def test_the_command_tilts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gough_stewart", "tilt", "--directions", "8", "--hold", "yaw=10deg", "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert len(numbers["angles"]) == 8
    assert numbers["every"] == min(numbers["angles"])
