# SPDX-License-Identifier: Apache-2.0
"""`--corrections FILE` of every command with a robot: the same as the argument of its file, clear where it fails."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest

from pkm_bringup import bringup, runner, simulate_command
from pkm_description.command_options import add_robot, with_corrections
from pkm_description.corrections import Displacement, corrected, joined
from pkm_description.description_error import DescriptionError
from pkm_description.load import expand, load_mechanism, xacro_arguments
from pkm_kinematics.check import examine
from pkm_runtime.errors import ConfigurationError

TEXT = "robot: five_bar\ndisplacements:\n  - joint: right_arm\n    translation: [0.001, 0, 0]\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "a folder"
    folder.mkdir()
    made = folder / "it's.yaml"
    made.write_text(TEXT)
    return made


@pytest.mark.parametrize("first", [True, False])
def test_it_goes_with_other_arguments_in_any_order(file: Path, first: bool) -> None:
    parser = argparse.ArgumentParser()
    add_robot(parser)
    both = ["--corrections", str(file), "--xacro-args", "payload:=2 a:='b c'"]
    given = parser.parse_args(["five_bar", *(both if first else both[2:] + both[:2])])
    assert xacro_arguments(given.xacro_args) == {"corrections": str(file), "payload": "2", "a": "b c"}
    assert parser.parse_args(["five_bar"]).xacro_args == ""


def test_commands_that_run_robots_take_it(file: Path) -> None:
    corrected = expand("five_bar", {"corrections": str(file)})[0]
    assert corrected != expand("five_bar")[0]
    run = runner.read_settings(["five_bar", "--corrections", str(file), "--no-page"])
    assert bringup.description(run) == corrected
    simulated = simulate_command.read_options(["five_bar", "--corrections", str(file)])
    assert expand(simulated.robot, xacro_arguments(simulated.xacro_args))[0] == corrected
    launched = bringup.defaults(robot="five_bar", xacro_args=f" {with_corrections(str(file))}")
    assert bringup.description(launched) == corrected


def test_what_is_wrong_is_said(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate_command.main(["delta", "--no-page", "--corrections", str(file)]) == 2
    assert "they belong to 'five_bar', but the robot is 'delta'" in capsys.readouterr().err
    with pytest.raises(ConfigurationError, match=r"missing\.yaml: cannot be read"):
        load_mechanism("five_bar", {"corrections": str(file.with_name("missing.yaml"))})
    with pytest.raises(DescriptionError, match="unclosed quotation mark"):
        xacro_arguments("name:='value")
    with pytest.raises(DescriptionError, match="length is given as 1 and as 2"):
        xacro_arguments("length:=1 length:=2")
    assert xacro_arguments("length:=1 length:=1") == {"length": "1"}


def test_a_corrected_robot_is_checked_as_any_other(file: Path) -> None:
    assert examine("five_bar", {"corrections": str(file)}, modes=False).usable


def test_corrections_of_a_corrected_robot_go_after_those_that_it_has() -> None:
    random, drawn = np.random.default_rng(0), load_mechanism("delta")
    places = [("limb1_arm", "origin"), ("limb1_a_ball", "predecessor"), ("limb1_a_ball", "successor")]
    first, then = (
        [Displacement(*at, 0.02 * random.standard_normal(6)) for at in some] for some in (places[:2], places[::-1])
    )
    first.append(Displacement("limb1_arm", "ratio", np.array([0.1, 0, 0, 0, 0, 0])))
    then.append(Displacement("limb1_arm", "ratio", np.array([-0.05, 0, 0, 0, 0, 0])))
    one, other = corrected(corrected(drawn, first), then), corrected(drawn, joined(first, then))
    for robot in (one, other):
        assert robot.joint_named["limb1_arm"].drive.gear_ratio == pytest.approx(55.0 / (1.1 * 0.95))
    arms, balls = (
        [r.joint_named["limb1_arm"] for r in (one, other)],
        [r.loop_named["limb1_a_ball"] for r in (one, other)],
    )
    np.testing.assert_allclose(arms[0].origin, arms[1].origin, atol=1e-12)
    np.testing.assert_allclose(balls[0].predecessor_frame, balls[1].predecessor_frame, atol=1e-12)
    np.testing.assert_allclose(balls[0].successor_frame, balls[1].successor_frame, atol=1e-12)


def test_a_task_coordinate_is_no_joint_to_correct() -> None:
    moved = Displacement("platform_x", "origin", np.array([1e-3, 0, 0, 0, 0, 0]))
    with pytest.raises(DescriptionError, match="'platform_x': it is a coordinate of the platform"):
        corrected(load_mechanism("delta"), [moved])
