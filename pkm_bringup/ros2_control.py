# SPDX-License-Identifier: Apache-2.0
"""Parameters of ros2_control's standard controllers for any robot, from config/controllers.yaml and the mechanism."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from pkm_control.control_errors import SingularHomeError, UnequalDrivesError
from pkm_control.operator_interface import highest_natural_frequency
from pkm_description.mechanism import Mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_dynamics.weight import actuator_mass_matrix
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.regularity import SINGULAR_BELOW

# Where the driven joints are published; `joint_states` itself belongs to the kinematics node
MEASURED_STATES = "joint_state_broadcaster/joint_states"
FORWARD = "forward_effort_controller"  # hands on what it is given; our own controller commands through it
TRAJECTORY = "joint_trajectory_controller"  # the standard one, that closes one loop per drive
DELAY = 2.5  # periods, from a reading to the middle of the time in which its effort acts: two topics and two loops

LEAST_BANDWIDTH = 10.0  # rad/s: below, a robot sags by centimetres before the integrals carry it

_PARAMETERS = "ros__parameters"
_ON_THE_WAY, _AT_THE_GOAL = 0.05, 0.003  # of a joint's range: the largest error of a trajectory, and at its end


def controller_parameters(
    template: Mapping[str, Any],
    mechanism: Mechanism,
    rate: float,
    natural_frequency: float,
    interface: str = "effort",
    wanted: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Parameters of ros2_control's nodes for a robot, by node.

    In the `template`, every node that has `joints` gets the driven joints, every one that has `gains` gets those of
    `effort_gains` (which raises errors), every one that has `constraints` gets tolerances for each joint; the
    controller manager gets the `rate` [Hz], and cuts efforts to the drives' limits, where those are as many newtons
    either way. `natural_frequency` of the tracking error [rad/s]. `interface`: what controllers command, effort, or
    position without gains. `wanted`: controllers to be active, None: all; others that cannot hold it are left out.
    """
    found: dict[str, Any] = copy.deepcopy(dict(template))
    for name, node in list(found.items()):
        parameters = node[_PARAMETERS]
        of_robot = {
            "update_rate": round(rate),
            # positions are not: the manager's limiter leads them away from the last command, wherever the machine is
            "enforce_command_limits": interface == "effort" and _one_bound_each(mechanism),
            "joints": list(mechanism.actuated_joints),
            "command_interfaces": [interface],
            "interface_name": interface,
        }
        parameters |= {key: value for key, value in of_robot.items() if key in parameters}
        if "gains" in parameters:
            try:
                parameters["gains"] = effort_gains(mechanism, natural_frequency, rate) if interface == "effort" else {}
            except (UnequalDrivesError, SingularHomeError):
                if wanted is None or name.split("/")[-1] in wanted:
                    raise
                _leave_out(found, name)
                continue
            if not parameters["gains"]:
                del parameters["gains"]
        if "constraints" in parameters:
            of_all = {key: value for key, value in parameters["constraints"].items() if not isinstance(value, dict)}
            parameters["constraints"] = {**of_all, **tolerances(mechanism)}
    return found


def _one_bound_each(mechanism: Mechanism) -> bool:
    """Whether all drives push as much as they pull: the manager's limiter knows one number for both."""
    limits = ActuatorLimits.of(mechanism)
    return bool(np.all(limits.least_effort == -limits.most_effort))


def _leave_out(parameters: dict[str, Any], node: str) -> None:
    del parameters[node]
    for other in parameters.values():
        other[_PARAMETERS].pop(node.split("/")[-1], None)


def tolerances(mechanism: Mechanism) -> dict[str, dict[str, float]]:
    """How far driven joints may be from a trajectory, on the way and at the goal [rad or m]: shares of their ranges."""
    limits = ActuatorLimits.of(mechanism)
    spans = np.where(np.isfinite(limits.upper - limits.lower), limits.upper - limits.lower, 1.0)
    return {
        name: {"trajectory": _short(_ON_THE_WAY * span), "goal": _short(_AT_THE_GOAL * span)}
        for name, span in zip(limits.names, spans.tolist(), strict=True)
    }


def effort_gains(mechanism: Mechanism, natural_frequency: float, rate: float) -> dict[str, dict[str, Any]]:
    """PID gains for each driven joint in effort mode, as parameters by joint; `rate` of the controller manager [Hz].

    Every joint's gains are multiples of the inertia I that its drive feels at home while the others stand still. The
    robot as a whole is lighter than that in some directions and heavier in others, by factors l, the eigenvalues of
    diag(I) over the mass matrix in the actuators. A direction's loop has the damping d l, the stiffness p l, the
    integral i l: d is as large as `natural_frequency` asks, or as rate and delay permit in the lightest direction;
    p = d^2 l / 3 and i = d^3 l^2 / 27 give three poles at d l / 3 in the heaviest one, and others more damping. The
    integral carries the weight; it and the output stay within the drive's limit.

    `natural_frequency` [rad/s] is three times the pole of a direction with l = 1. SingularHomeError: there is no such
    inertia. UnequalDrivesError: the drives are redundant, so that integrals of single joints push against each other;
    or the directions differ so much that the slowest would have a bandwidth of less than `LEAST_BANDWIDTH`.
    """
    kinematics = Kinematics(mechanism)
    mass = actuator_mass_matrix(Dynamics(kinematics), kinematics.home)
    if not np.all(np.isfinite(mass)):
        raise SingularHomeError(mechanism.name)
    if len(mass) > kinematics.engine.freedoms:
        count = f"{len(mass)} drives for {kinematics.engine.freedoms} degrees of freedom"
        why = f"it has {count}, whose integrals push against each other"
        raise UnequalDrivesError(mechanism.name, why)
    inertia = np.diag(mass)
    shares = np.linalg.eigvalsh(mass / np.sqrt(np.outer(inertia, inertia)))
    if shares.min() < SINGULAR_BELOW * shares.max():  # drives that do not move the platform in every direction
        raise SingularHomeError(mechanism.name)
    factors = 1.0 / shares
    lightest, heaviest = float(factors.max()), float(min(1.0, factors.min()))
    carried = 2.0 * highest_natural_frequency(1.0 / rate, 1.0, DELAY)
    damping = min(natural_frequency, carried / lightest)
    bandwidth = damping * heaviest / 3.0
    if bandwidth < LEAST_BANDWIDTH:
        why = (
            f"its lightest direction moves {lightest / heaviest:.3g} times as easily as its heaviest, so that at "
            f"{rate:g} Hz a loop that the one carries has {bandwidth:.2g} rad/s in the other, less than "
            f"{LEAST_BANDWIDTH:g}"
        )
        raise UnequalDrivesError(mechanism.name, why)
    limits = ActuatorLimits.of(mechanism)
    gains: dict[str, dict[str, Any]] = {}
    bounds = zip(limits.least_effort.tolist(), limits.most_effort.tolist(), strict=True)
    for name, felt, (least, most) in zip(limits.names, inertia.tolist(), bounds, strict=True):
        gains[name] = {
            "p": _short(damping**2 * heaviest / 3.0 * felt),
            "i": _short(damping**3 * heaviest**2 / 27.0 * felt),
            "d": _short(damping * felt),
            "u_clamp_max": most,
            "u_clamp_min": least,
            "i_clamp_max": most,
            "i_clamp_min": least,
            "antiwindup_strategy": "conditional_integration",
        }
    return gains


def controller_names(parameters: Mapping[str, Any]) -> list[str]:
    """Names of the controllers in a manager's parameters, given by node; ValueError: no controller manager."""
    for node, entry in parameters.items():
        if node.split("/")[-1] == "controller_manager":
            return [name for name, value in entry[_PARAMETERS].items() if isinstance(value, dict) and "type" in value]
    raise ValueError("no controller_manager in the parameters of the controllers")


def read_parameters(path: str | Path) -> dict[str, Any]:
    """The content of a file of ROS in YAML: parameters by node, or a view of RViz."""
    return dict(yaml.safe_load(Path(path).read_text(encoding="utf-8")))


def write_parameters(parameters: Mapping[str, Any], path: str | Path) -> None:
    """Write such a file."""
    Path(path).write_text(yaml.safe_dump(dict(parameters), sort_keys=False), encoding="utf-8")


def _short(value: float) -> float:
    return float(f"{value:.4g}")
