# SPDX-License-Identifier: Apache-2.0
"""The parameters of ros2_control's controllers: those shipped, and those made for other robots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.joint_loops import told_to_stay, try_out
from pkm_bringup import bringup
from pkm_bringup.ros2_control import (
    controller_names,
    controller_parameters,
    effort_gains,
    read_parameters,
    write_parameters,
)
from pkm_control.control_errors import SingularHomeError, UnequalDrivesError
from pkm_description import load_mechanism, robot_names
from pkm_dynamics.motion_limits import ActuatorLimits

SHIPPED = Path(__file__).parents[2] / "config" / "controllers.yaml"


@pytest.fixture(scope="module")
def shipped() -> dict[str, Any]:
    return read_parameters(SHIPPED)


def test_the_shipped_file_is_what_is_made_for_the_delta(shipped: dict[str, Any]) -> None:
    settings = bringup.defaults()
    made = controller_parameters(
        shipped, load_mechanism("delta"), float(settings["rate"]), float(settings["natural_frequency"])
    )
    assert made == shipped


def test_every_controller_has_parameters_and_a_type(shipped: dict[str, Any]) -> None:
    names = controller_names(shipped)
    assert {"joint_state_broadcaster", "joint_trajectory_controller", "forward_effort_controller"} == set(names)
    assert {f"/**/{name}" for name in ("controller_manager", *names)} == set(shipped)


def test_another_robot_gets_its_joints_and_rate(shipped: dict[str, Any], tmp_path: Path) -> None:
    mechanism = load_mechanism("quattro")
    made = controller_parameters(shipped, mechanism, 500.0, 60.0)
    write_parameters(made, tmp_path / "controllers.yaml")
    read = read_parameters(tmp_path / "controllers.yaml")
    assert read == made
    assert read["/**/controller_manager"]["ros__parameters"]["update_rate"] == 500
    trajectory = read["/**/joint_trajectory_controller"]["ros__parameters"]
    assert trajectory["joints"] == list(mechanism.actuated_joints)
    assert set(trajectory["gains"]) == set(mechanism.actuated_joints)
    assert set(trajectory["constraints"]) == {"goal_time", "stopped_velocity_tolerance", *mechanism.actuated_joints}
    assert shipped["/**/forward_effort_controller"]["ros__parameters"]["joints"][0] == "limb1_arm", "template changed"


@pytest.mark.parametrize(("robot", "cut"), [("delta", True), ("gough_stewart", True), ("cable_8", False)])
def test_the_manager_cuts_efforts_of_drives_with_one_bound_for_both_ways(
    robot: str, cut: bool, shipped: dict[str, Any]
) -> None:
    """Its limiter takes min(-least, most) for both: winches from -600 N to -20 N would all pull with 20 N."""
    wanted = ["forward_effort_controller"]
    made = controller_parameters(shipped, load_mechanism(robot), 250.0, 120.0, "effort", wanted)
    assert made["/**/controller_manager"]["ros__parameters"]["enforce_command_limits"] is cut
    made = controller_parameters(shipped, load_mechanism(robot), 250.0, 120.0, "position", wanted)
    assert made["/**/controller_manager"]["ros__parameters"]["enforce_command_limits"] is False


SINGULAR = ["griffis_duffy"]  # architecturally: it moves while its drives stand still


@pytest.mark.parametrize("robot", SINGULAR)
def test_a_singular_home_is_told(robot: str) -> None:
    with pytest.raises(SingularHomeError, match=robot):
        effort_gains(load_mechanism(robot), 120.0, 1000.0)


UNEQUAL = {  # why one loop per drive does not hold them by effort, at 1 kHz
    "cable_8": "8 drives for 6 degrees of freedom",
    "gough_stewart_7": "7 drives for 6 degrees of freedom",
    "planar_redundant": "3 drives for 2 degrees of freedom",
    "dietmaier": "23.1 times as easily",
    "four_upu": "17.6 times as easily",
    "gough_stewart": "584 times as easily",
    "planar_mixed": "78 times as easily",
    "tricept": "16.3 times as easily",
}


@pytest.mark.parametrize("robot", UNEQUAL)
def test_drives_that_one_loop_each_does_not_hold_are_refused_by_effort(robot: str, shipped: dict[str, Any]) -> None:
    mechanism = load_mechanism(robot)
    with pytest.raises(UnequalDrivesError, match=UNEQUAL[robot]) as error:
        controller_parameters(shipped, mechanism, 1000.0, 120.0)
    assert "command_interface:=position" in str(error.value)
    made = controller_parameters(shipped, mechanism, 1000.0, 120.0, "position")
    trajectory = made["/**/joint_trajectory_controller"]["ros__parameters"]
    assert trajectory["command_interfaces"] == ["position"]
    assert "gains" not in trajectory
    assert set(trajectory["constraints"]) >= set(mechanism.actuated_joints)


@pytest.mark.parametrize("robot", sorted(set(robot_names()) - set(SINGULAR) - set(UNEQUAL)))
def test_gains_are_positive_and_within_the_drives(robot: str) -> None:
    mechanism = load_mechanism(robot)
    limits = ActuatorLimits.of(mechanism)
    gains = effort_gains(mechanism, 120.0, 1000.0)
    assert list(gains) == list(mechanism.actuated_joints)
    for gain, most in zip(gains.values(), limits.effort, strict=True):
        felt = gain["d"] ** 2 / gain["p"] / 3.0  # of the heaviest direction: p = d^2 l / 3 I
        assert gain["i"] == pytest.approx(gain["p"] ** 2 / (3.0 * gain["d"]), rel=2e-3)  # three equal poles there
        assert gain["p"] > 0.0 < felt
        assert gain["u_clamp_max"] == gain["i_clamp_max"] == most


def test_loops_keep_to_both_bounds_of_a_drive_that_is_weaker_on_one_side() -> None:
    """The manager's limiter is off there, and would know the weaker side alone."""
    bounds = '<command_interface name="effort"><param name="min">-4</param><param name="max">5</param>'
    text = load_mechanism("five_bar").urdf
    uneven = text.replace('<command_interface name="effort"/>', f"{bounds}</command_interface>")
    for gain in effort_gains(load_mechanism(uneven), 120.0, 1000.0).values():
        assert gain["u_clamp_min"] == gain["i_clamp_min"] == -4.0
        assert gain["u_clamp_max"] == gain["i_clamp_max"] == 5.0


def test_goals_have_tolerances(shipped: dict[str, Any]) -> None:
    constraints = shipped["/**/joint_trajectory_controller"]["ros__parameters"]["constraints"]
    for name in load_mechanism("delta").actuated_joints:
        assert 0.0 < constraints[name]["goal"] < constraints[name]["trajectory"] < 0.5


@pytest.mark.parametrize("interface", ["effort", "position"])
@pytest.mark.parametrize("robot", ["delta", "five_bar", "quattro", "wrist_3ups_s"])
def test_one_loop_per_drive_holds_and_moves_a_robot(robot: str, interface: str) -> None:
    """The gains, on the simulated machine with the delay of the bridge; docs/joint_loops.md has all robots."""
    tried = try_out(robot, interface, 1000.0)
    assert not tried.why_not
    assert tried.held < 0.03
    assert tried.moved < 0.005


@pytest.mark.parametrize("robot", ["gough_stewart", "gough_stewart_7", "cable_8", "four_upu"])
def test_drives_that_close_their_own_loops_hold_those_that_are_refused(robot: str) -> None:
    tried = try_out(robot, "position", 250.0)
    assert (tried.why_not, tried.held < 1e-6, tried.moved < 1e-3) == ("", True, True)


def test_a_file_without_a_manager_is_told() -> None:
    with pytest.raises(ValueError, match="controller_manager"):
        controller_names({"/**/other": {"ros__parameters": {}}})


@pytest.mark.parametrize(("robot", "thrown"), [("delta", 5e-3), ("quattro", 5e-3)])
def test_a_goal_that_arrives_does_not_double_gravity(robot: str, thrown: float, shipped: dict[str, Any]) -> None:
    """By default the trajectory controller adds its last command, which carries the weight, to what carries it."""
    trajectory = shipped["/**/joint_trajectory_controller"]["ros__parameters"]
    assert told_to_stay(robot, 250.0, trajectory["interpolate_from_desired_state"]) < 1e-4
    assert told_to_stay(robot, 250.0, from_desired=False) > thrown
