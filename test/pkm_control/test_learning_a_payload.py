# SPDX-License-Identifier: Apache-2.0
"""Fifteen cycles of a robot's default motion with half the platform's mass more on it than the controller knows of."""

from __future__ import annotations

import numpy as np
import pytest

from bench.tracking import PAYLOAD, PERIOD, RESERVE_UNKNOWN, machine_of
from pkm_bringup.main_job import planned, run_motion
from pkm_control.controllers.controller import Controller
from pkm_control.loop.control_loop import ControlLoop, Period, switch_on
from pkm_control.operator_interface import ADAPTIVE, COMPUTED_TORQUE
from pkm_control.robot_loop import make_controller
from pkm_description import load_mechanism
from pkm_description.mechanism import Mechanism
from pkm_dynamics.dynamics import shared_dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_kinematics.kernels.compiled_rotations import displacement_between

CYCLES = 15


def last_cycle(mechanism: Mechanism, law: str) -> tuple[float, float, Controller]:
    """RMS of the error in the last cycle, in position [m] and orientation [rad], and the controller."""
    dynamics = shared_dynamics(mechanism)
    plan = planned(mechanism, "auto", RESERVE_UNKNOWN)
    controller = make_controller(law, dynamics, ActuatorLimits.of(mechanism), PERIOD)
    loop = ControlLoop.of(machine_of(mechanism, PAYLOAD, law), controller, 1.0 / PERIOD)
    switch_on(loop)
    errors: list[np.ndarray] = []

    def watch(period: Period) -> None:
        errors.append(displacement_between(period.action.measured.pose, period.action.reference.pose))

    run_motion(loop, plan.job.approach, realtime=False, recorded=False)
    run_motion(loop, plan.job.cycle, CYCLES, realtime=False, watch=watch, recorded=False)
    last = np.array(errors[-len(errors) // CYCLES :])
    position, rotation = (np.sqrt(np.mean(np.sum(last[:, of] ** 2, axis=1))) for of in (slice(0, 3), slice(3, 6)))
    return float(position), float(rotation), controller


@pytest.mark.slow
@pytest.mark.parametrize("name", ["delta", "five_bar", "gough_stewart", "orthoglide", "tricept"])
def test_the_payload_is_found_and_the_error_falls_to_a_quarter(name: str) -> None:
    mechanism = load_mechanism(name)
    link = next(link for link in mechanism.links if link.name == mechanism.platform_link)
    position, rotation, _ = last_cycle(mechanism, COMPUTED_TORQUE)
    after, turned, adaptive = last_cycle(mechanism, ADAPTIVE)
    assert after < 0.25 * position
    assert turned <= 0.25 * rotation
    platform = shared_dynamics(mechanism).parameters
    told = platform.values[platform.names.index(f"{mechanism.platform_link}.m")]
    found = adaptive.adapted[f"{mechanism.platform_link}.m"] - told
    assert found == pytest.approx(0.5 * link.inertial.mass, rel=0.02)
