# SPDX-License-Identifier: Apache-2.0
"""The parameters of ros2_control's controllers: those shipped, and those made for other robots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pkm_control.control_errors import SingularHomeError
from pkm_control.motion.limits import ActuatorLimits
from pkm_control.run import bringup
from pkm_control.run.ros2_control import (
    controller_names,
    controller_parameters,
    effort_gains,
    read_parameters,
    write_parameters,
)
from pkm_description import load_mechanism, robot_names

SHIPPED = Path(__file__).parents[2] / "config" / "controllers.yaml"


@pytest.fixture(scope="module")
def shipped() -> dict[str, Any]:
    return read_parameters(SHIPPED)


def test_the_shipped_file_is_what_is_made_for_the_delta(shipped: dict[str, Any]) -> None:
    knobs = bringup.defaults()
    made = controller_parameters(
        shipped, load_mechanism("delta"), float(knobs["rate"]), float(knobs["natural_frequency"])
    )
    assert made == shipped


def test_every_controller_has_parameters_and_a_type(shipped: dict[str, Any]) -> None:
    names = controller_names(shipped)
    assert {"joint_state_broadcaster", "joint_trajectory_controller", "forward_effort_controller"} == set(names)
    assert {f"/**/{name}" for name in ("controller_manager", *names)} == set(shipped)


def test_another_robot_gets_its_joints_and_rate(shipped: dict[str, Any], tmp_path: Path) -> None:
    mechanism = load_mechanism("gough_stewart")
    made = controller_parameters(shipped, mechanism, 500.0, 60.0)
    write_parameters(made, tmp_path / "controllers.yaml")
    read = read_parameters(tmp_path / "controllers.yaml")
    assert read == made
    assert read["/**/controller_manager"]["ros__parameters"]["update_rate"] == 500
    trajectory = read["/**/joint_trajectory_controller"]["ros__parameters"]
    assert trajectory["joints"] == list(mechanism.actuated_joints)
    assert set(trajectory["gains"]) == set(mechanism.actuated_joints)
    assert trajectory["constraints"] == shipped["/**/joint_trajectory_controller"]["ros__parameters"]["constraints"]
    assert shipped["/**/forward_effort_controller"]["ros__parameters"]["joints"][0] == "limb1_arm", "template changed"


SINGULAR = ["griffis_duffy"]  # architecturally: it moves while its drives stand still


@pytest.mark.parametrize("robot", SINGULAR)
def test_a_singular_home_is_told(robot: str) -> None:
    with pytest.raises(SingularHomeError, match=robot):
        effort_gains(load_mechanism(robot), 120.0)


@pytest.mark.parametrize("robot", sorted(set(robot_names()) - set(SINGULAR)))
def test_gains_are_positive_and_within_the_drives(robot: str) -> None:
    mechanism = load_mechanism(robot)
    limits = ActuatorLimits.of(mechanism)
    gains = effort_gains(mechanism, 120.0)
    assert list(gains) == list(mechanism.actuated_joints)
    for gain, most in zip(gains.values(), limits.effort, strict=True):
        assert gain["p"] > 0.0 < gain["d"]
        assert gain["i"] == pytest.approx(gain["d"] ** 3 / (27.0 * (gain["d"] / 120.0) ** 2), rel=1e-2)
        assert gain["u_clamp_max"] == gain["i_clamp_max"] == most


def test_a_file_without_a_manager_is_told() -> None:
    with pytest.raises(ValueError, match="controller_manager"):
        controller_names({"/**/other": {"ros__parameters": {}}})
