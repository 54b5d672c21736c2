# SPDX-License-Identifier: Apache-2.0
"""`pkm cycle`: figures that the plan and inverse dynamics give, and honest words where a robot cannot."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from pkm_bringup.command_line.cycle import cycle_figures, main
from pkm_bringup.command_line.cycle_search import Places, pick_and_place
from pkm_bringup.main_job import plan_cycle
from pkm_control.motion.files.motion_file import read_motion_file
from pkm_control.motion.planning import MotionPlanner

ACROSS = ["--pick", "-0.15", "0", "-0.85", "--place", "0.15", "0", "-0.85"]


def test_the_motion_that_ships_has_the_figures_of_its_plan(dynamics, kinematics, limits) -> None:
    found = cycle_figures(dynamics, read_motion_file("pick_and_place"))
    plan = plan_cycle(MotionPlanner(dynamics, limits), read_motion_file("pick_and_place")).cycle
    assert found.duration == pytest.approx(plan.duration)
    assert found.cycles_per_minute == pytest.approx(60.0 / plan.duration)
    assert 0.78 < found.effort.peak_share.max() <= 0.8 + 1e-6  # what the reserve leaves, used
    assert (found.effort.rms < found.effort.peak).all()
    assert any("limited by effort" in note for note in found.notes)


def test_a_payload_costs_cycles_and_efforts_keep_their_limits(dynamics, kinematics) -> None:
    places = Places(np.array([-0.15, 0.0, -0.85]), np.array([0.15, 0.0, -0.85]), False, 0.0, None, None, 0.0)
    motion = pick_and_place(kinematics, places)
    empty, loaded = cycle_figures(dynamics, motion), cycle_figures(dynamics, motion, payload=3.0)
    assert loaded.cycles_per_minute < 0.97 * empty.cycles_per_minute
    assert loaded.effort.peak_share.max() <= 0.8 + 1e-6
    careful = cycle_figures(dynamics, motion, reserve=0.5)
    assert careful.effort.peak_share.max() <= 0.5 + 1e-6


def test_places_lift_and_rounding_are_those_asked_for(kinematics) -> None:
    home = np.asarray(kinematics.home)
    places = Places(np.array([-0.1, 0.0, 0.0]), np.array([0.1, 0.05, 0.01]), True, 0.0, 0.04, 0.015, 0.1)
    motion = pick_and_place(kinematics, places)
    np.testing.assert_allclose(motion.poses[0, :3], home[:3] + np.array([-0.1, 0.0, 0.0]))
    np.testing.assert_allclose(motion.poses[3, :3], home[:3] + np.array([0.1, 0.05, 0.01]))
    np.testing.assert_allclose(motion.poses[1, :3] - motion.poses[0, :3], [0.0, 0.0, 0.04])
    np.testing.assert_allclose(motion.blends, [0.0, 0.015, 0.015, 0.0, 0.015, 0.015, 0.0])
    np.testing.assert_allclose(motion.dwells, [0.1, 0.0, 0.0, 0.1, 0.0, 0.0, 0.0])


def test_the_command_tells_in_text_and_json(capsys) -> None:
    assert main(["delta", *ACROSS, "--payload", "1"]) == 0
    text = capsys.readouterr().out
    for words in (
        "with 1 kg",
        "cycles per minute",
        "limb1_arm",
        "of 200 N m",
        " of 573 deg/s",
        "limited by",
        "pick to place",
    ):
        assert words in text
    assert main(["delta", *ACROSS, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cycles_per_minute"] == pytest.approx(60.0 / found["duration"])
    assert [one["name"] for one in found["actuators"]] == ["limb1_arm", "limb2_arm", "limb3_arm"]


def test_a_planar_robot_goes_straight_and_one_that_turns_turns(capsys) -> None:
    assert main(["five_bar", "--pick", "-0.1", "0.45", "0", "--place", "0.1", "0.45", "0"]) == 0
    assert "left_arm" in capsys.readouterr().out
    words = ["planar_3rrr", "--frame", "home", "--pick", "-0.02", "0", "0", "--place", "0.02", "0", "0"]
    assert main([*words, "--turn", "10"]) == 0
    assert re.search(
        r"platform: up to [\d.]+ m/s and [\d.]+ m/s\^2; [\d.]+ deg/s and [\d.]+ deg/s\^2", capsys.readouterr().out
    )
    assert main(["agile_eye"]) == 0
    assert re.search(r"platform: up to [\d.]+ deg/s and [\d.]+ deg/s\^2\n", capsys.readouterr().out)  # and no 2e-16 m/s


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["agile_eye", "--pick", "0", "0", "0", "--place", "1", "0", "0"], "only turns"),
        (["delta", "--pick", "0", "0", "-5", "--place", "0.1", "0", "-0.85"], "pick"),
        (["delta", "--pick", "200", "0", "-600", "--place", "0.1", "0", "-0.85"], "mm, give --pick 0.2 0 -0.6"),
        (["delta", *ACROSS, "--lift", "25"], "mm, give --lift 0.025"),
        (["delta", *ACROSS, "--turn", "30"], "cannot move by --turn"),
        (["five_bar", "--pick", "0", "0.4", "0", "--place", "0", "0.4", "0.1"], "from --pick to --place"),
        (["five_bar", "--pick", "0", "0.4", "0", "--place", "0.1", "0.4", "0", "--lift", "0.1"], "--lift"),
        (["no_such_robot"], "no such robot"),
        (["delta", *ACROSS, "--optimise", "--clearance", "0.1", "--highest", "0.05"], "cannot be from 0.1 to 0.05 m"),
        (["agile_eye", "--optimise"], "does not move along x or y"),
        (["delta", *ACROSS, "--write", "/nowhere/best.csv"], "cannot be written"),
        (["delta", *ACROSS, "--payload", "1000"], "actuators cannot hold"),
    ],
)
def test_what_a_robot_cannot_do_is_one_line(arguments: list[str], said: str, capsys) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr().err.splitlines()
    (error,) = (line for line in told if not line.endswith(" s ..."))  # a busy computer says what takes long
    assert error.startswith("pkm cycle: ")
    assert said in error


@pytest.mark.parametrize(
    "arguments",
    [
        ["--pick", "0", "0", "0"],
        ["--turn", "3"],
        ["--shift", "0.1"],
        ["--write", "best.csv"],
        ["--payload", "-1"],
        ["--reserve", "1"],
        [*ACROSS, "--motion", "circle"],
        [*ACROSS, "--tool-file", "tools.yaml"],
    ],
)
def test_wrong_command_lines_are_refused(arguments: list[str], capsys) -> None:
    with pytest.raises(SystemExit) as end:
        main(["delta", *arguments])
    assert end.value.code == 2


def test_a_motion_of_a_tool_has_its_weight(tmp_path, capsys) -> None:
    (tmp_path / "tools.yaml").write_text("tools:\n  gripper: {xyz: [0, 0, -0.05], mass: 2.0}\n")
    motion = tmp_path / "motion.csv"
    lines = "# frame: home\nx [m], y [m], z [m]\n-0.1,0,0\n0.1,0,0\n"
    files = ["delta", "--motion", str(motion), "--tool-file", str(tmp_path / "tools.yaml"), "--json"]
    found = []
    for first, more in (("", ["--payload", "2"]), ("# tool: gripper\n", [])):  # a platform that does not turn: the same
        motion.write_text(first + lines)
        assert main([*files, *more]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[1]["duration"] == pytest.approx(found[0]["duration"], rel=1e-6)
    for loaded, tooled in zip(found[0]["actuators"], found[1]["actuators"], strict=True):
        assert tooled["effort_peak"] == pytest.approx(loaded["effort_peak"], rel=1e-6)
    motion.write_text("# tool: griper\n" + lines)
    assert main(files) == 2
    assert "did you mean 'gripper'?" in capsys.readouterr().err


def test_the_fastest_lift_is_found_and_written(tmp_path, capsys, dynamics) -> None:
    file = tmp_path / "best.csv"
    words = ["--optimise", "--lift", "0.05", "--clearance", "0.02", "--candidates", "6", "--write", str(file)]
    assert main(["delta", *ACROSS, *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    search = found["search"]
    assert found["duration"] < 0.99 * search["duration_before"]
    assert 0.02 - 1e-9 <= search["lift"] < 0.05
    assert search["rounding"] <= search["lift"] + 1e-9
    assert search["candidates"] <= 6
    assert found["bounded_by"]
    again = cycle_figures(dynamics, read_motion_file(file))
    assert again.duration == pytest.approx(found["duration"], rel=1e-3)


def test_the_line_is_placed_where_it_is_faster(capsys) -> None:
    words = ["--pick", "-0.1", "0.45", "0", "--place", "0.1", "0.45", "0", "--optimise"]
    assert main(["five_bar", *words, "--shift", "0.05", "--candidates", "12"]) == 0
    text = capsys.readouterr().out
    before, after = (float(one) for one in re.search(r"^([\d.]+) -> ([\d.]+) cycles per minute", text).groups())
    assert after > before
    assert "both places shifted by" in text
    assert main(["five_bar", *words]) == 2
    assert "only --shift is free" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["delta", "quattro", "h4", "hexa", "linear_delta", "gough_stewart"])
def test_no_robot_gets_slower(name: str, capsys) -> None:
    places = ["--frame", "home", "--pick", "-0.05", "0", "0", "--place", "0.05", "0", "0"]
    assert main([name, *places, "--optimise", "--shift", "0.02", "--candidates", "25", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["duration"] <= found["search"]["duration_before"] + 1e-9
    assert found["search"]["candidates"] <= 25


def test_it_needs_neither_ros_nor_matplotlib() -> None:
    program = "import sys; from pkm_bringup.command_line.cycle import main; main(['delta']);"
    program += "print([n for n in sys.modules if n.split('.')[0] in ('rclpy', 'matplotlib')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
