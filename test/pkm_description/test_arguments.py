# SPDX-License-Identifier: Apache-2.0
"""Drawing numbers of the gallery are arguments: listed with unit and meaning, and changed without touching the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkm_description.gallery import robot_names, robot_path
from pkm_description.load import load_mechanism
from pkm_description.urdf.xacro_expansion import arguments_of, expand_file
from pkm_kinematics.check import main

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
OWN = ("ankle", "ankle_cranks", "biglide", "hobby_hexapod", "packaging_delta")
TOPICS = {"joint_commands_topic", "joint_states_topic", "command_interface"}


@pytest.mark.by_day("cable_8", "delta", "five_bar", "quattro")
@pytest.mark.parametrize("robot", [*robot_names(), *OWN])
def test_listed_arguments_are_all_there_is_and_their_defaults_are_the_robot(robot: str) -> None:
    """Each has a unit and a meaning; given with its default, nothing changes. Numbers behind them are properties."""
    path = EXAMPLES / f"{robot}.urdf.xacro" if robot in OWN else robot_path(robot)
    found = arguments_of(path)
    assert len(found) > 3 + len(TOPICS) or robot in ("reactionless_four_bar", "biglide")
    for one in found:
        assert one.meaning, one.name
        assert one.unit or one.name in {*TOPICS, "actuation"}, one.name
    assert {one.name for one in found} >= TOPICS or robot == "biglide"
    lengths = {one.name: one.default for one in found}
    assert expand_file(path, lengths) == expand_file(path)


def test_an_arm_of_another_length() -> None:
    delta = load_mechanism("delta", {"arm_length": "0.35"})
    pin = next(joint for joint in delta.joints if joint.parent == delta.joint_named["limb1_arm"].child)
    assert pin.origin[0, 3] == pytest.approx(0.35)
    assert delta.home[2, 3] == pytest.approx(-((1.055**2 - (0.33 + 0.35 - 0.125) ** 2) ** 0.5))
    points = "[[0.7,0.2,0],[0.1,0.5,0.1],[-0.3,0.3,0.1],[-0.3,-0.4,0],[0.2,-0.3,-0.05],[0.5,-0.2,0],[0.5,0,0]]"
    moved = load_mechanism("gough_stewart", {"base_points": points})
    assert moved.home_joints.tolist() != load_mechanism("gough_stewart").home_joints.tolist()


def test_check_lists_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["delta", "--args"]) == 0
    rows = [row.split() for row in capsys.readouterr().out.splitlines()]
    assert ["arm_length", "m", "arm,", "from", "joint", "to", "joint", "[1]", "0.420"] in rows
    assert rows[0][0] == "payload"  # its own first, in their order
    assert rows[-1][0] == "command_interface"
    plain = tmp_path / "plain.urdf"
    plain.write_text(load_mechanism("five_bar").urdf)
    assert main([str(plain), "--args"]) == 0
    assert "no arguments" in capsys.readouterr().out
    assert main(["delta", "--xacro-args", "arm_lenght:=0.3"]) == 1
    assert "did you mean arm_length?" in capsys.readouterr().out
