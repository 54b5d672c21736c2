# SPDX-License-Identifier: Apache-2.0
"""Parameters of ros2_control's standard controllers for any robot, made from config/controllers.yaml and the mechanism.

Plain data: nothing here imports ROS.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from pkm_control.control_errors import SingularHomeError
from pkm_control.controllers.actuator_inertia import actuator_mass_matrix
from pkm_control.motion.limits import ActuatorLimits
from pkm_description.mechanism import Mechanism
from pkm_dynamics import Dynamics
from pkm_kinematics import Kinematics

MEASURED_STATES = "joint_state_broadcaster/joint_states"
"""Where joint_state_broadcaster publishes the driven joints; `joint_states` itself belongs to the kinematics node."""

_PARAMETERS = "ros__parameters"


def controller_parameters(
    template: Mapping[str, Any], mechanism: Mechanism, rate: float, natural_frequency: float
) -> dict[str, Any]:
    """Parameters of ros2_control's nodes for a robot.

    Args:
        template: parameters by node. Every node that has `joints` gets the driven joints, every one that has `gains`
            gets those of `effort_gains`; the controller manager gets the rate. The rest stays as it is.
        mechanism: the robot.
        rate: of the controller manager [Hz].
        natural_frequency: of the tracking error [rad/s].

    Returns:
        The parameters by node.
    """
    found: dict[str, Any] = copy.deepcopy(dict(template))
    for node in found.values():
        parameters = node[_PARAMETERS]
        if "update_rate" in parameters:
            parameters["update_rate"] = round(rate)
        if "joints" in parameters:
            parameters["joints"] = list(mechanism.actuated_joints)
        if "gains" in parameters:
            parameters["gains"] = effort_gains(mechanism, natural_frequency)
    return found


def effort_gains(mechanism: Mechanism, natural_frequency: float) -> dict[str, dict[str, Any]]:
    """Gains of a PID for each driven joint that commands its effort.

    With the inertia I that the drive feels at home, the error gets three poles at a = natural_frequency / 3:
    d = 3 a I, p = 3 a^2 I, i = a^3 I. The integral carries the weight; it and the output stay within the drive's limit.

    Args:
        mechanism: the robot.
        natural_frequency: of the tracking error [rad/s].

    Returns:
        Parameters of the PID, by joint.

    Raises:
        SingularHomeError: there is no such inertia.
    """
    kinematics = Kinematics(mechanism)
    inertia = np.diag(actuator_mass_matrix(kinematics, Dynamics(kinematics), kinematics.home))
    if not np.all(np.isfinite(inertia)):
        raise SingularHomeError(mechanism.name)
    limits = ActuatorLimits.of(mechanism)
    pole = natural_frequency / 3.0
    gains: dict[str, dict[str, Any]] = {}
    for name, felt, most in zip(limits.names, inertia.tolist(), limits.effort.tolist(), strict=True):
        gains[name] = {
            "p": _short(3.0 * pole**2 * felt),
            "i": _short(pole**3 * felt),
            "d": _short(3.0 * pole * felt),
            "u_clamp_max": most,
            "u_clamp_min": -most,
            "i_clamp_max": most,
            "i_clamp_min": -most,
            "antiwindup_strategy": "conditional_integration",
        }
    return gains


def controller_names(parameters: Mapping[str, Any]) -> list[str]:
    """The controllers that a controller manager knows.

    Args:
        parameters: by node, the manager's among them.

    Returns:
        Their names.

    Raises:
        ValueError: no controller manager.
    """
    for node, entry in parameters.items():
        if node.split("/")[-1] == "controller_manager":
            return [name for name, value in entry[_PARAMETERS].items() if isinstance(value, dict) and "type" in value]
    raise ValueError("no controller_manager in the parameters of the controllers")


def read_parameters(path: str | Path) -> dict[str, Any]:
    """Return the content of a parameter file of ROS, by node."""
    return dict(yaml.safe_load(Path(path).read_text(encoding="utf-8")))


def write_parameters(parameters: Mapping[str, Any], path: str | Path) -> None:
    """Write a parameter file of ROS."""
    Path(path).write_text(yaml.safe_dump(dict(parameters), sort_keys=False), encoding="utf-8")


def _short(value: float) -> float:
    """Return a number with four digits, which is more than a gain needs."""
    return float(f"{value:.4g}")
