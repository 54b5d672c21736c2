# SPDX-License-Identifier: Apache-2.0
"""Makes a controller from the name of its law."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pkm_control.controllers.adaptive import Adaptive
from pkm_control.controllers.computed_torque import ComputedTorque
from pkm_control.controllers.controller import Controller
from pkm_control.controllers.force.admittance import Admittance
from pkm_control.controllers.force.force_task import ForceTask
from pkm_control.controllers.force.hybrid import Hybrid
from pkm_control.controllers.force.impedance import Impedance
from pkm_control.controllers.law_settings import (
    ADAPTIVE,
    ADMITTANCE,
    COMPUTED_TORQUE,
    DAMPING,
    HYBRID,
    IMPEDANCE,
    NATURAL_FREQUENCY,
    PD_GRAVITY,
    POSITION,
)
from pkm_control.controllers.pd_gravity import PdGravity
from pkm_control.controllers.position import Position
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_kinematics.solve.robot_constants import refuse_redundant


def make_controller(
    law: str,
    dynamics: Dynamics,
    limits: ActuatorLimits,
    period: float,
    natural_frequency: float = NATURAL_FREQUENCY,
    damping: float = DAMPING,
    delay: float = 0.0,
    task: ForceTask | None = None,
) -> Controller:
    """A controller with the law of a name from `law_settings.LAWS`, the law's other settings at their defaults.

    Args:
        dynamics: of the robot as the controller believes it to be.
        period: time between two calls of the controller [s], over which laws learn, and look ahead.
        natural_frequency: of the closed loop's tracking error [rad/s].
        damping: of the same; 1 is critical.
        delay: from a reading to the beginning of the time in which its command acts [s].
        task: of the force laws.
    """
    makers: dict[str, Callable[..., Controller]] = {
        COMPUTED_TORQUE: ComputedTorque,
        PD_GRAVITY: PdGravity,
        ADAPTIVE: partial(Adaptive, period=period),
        POSITION: partial(Position, period=period, delay=delay),
    }
    if law not in (COMPUTED_TORQUE, PD_GRAVITY, POSITION):
        refuse_redundant(dynamics.kinematics.redundant_names, f"the law '{law}'")
    force_makers: dict[str, Callable[..., Controller]] = {IMPEDANCE: Impedance, ADMITTANCE: Admittance, HYBRID: Hybrid}
    if law in force_makers:
        return force_makers[law](dynamics, limits, natural_frequency, damping, period, task)
    if law not in makers:
        raise ValueError(f"law is '{law}', not one of {', '.join((*makers, *force_makers))}")
    return makers[law](dynamics.kinematics, dynamics, limits, natural_frequency, damping)
