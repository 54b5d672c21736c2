# SPDX-License-Identifier: Apache-2.0
"""Machine, controller and loop of a robot from settings that are plain data, so that another process can build them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from pkm_control.controllers.adaptive import Adaptive
from pkm_control.controllers.computed_torque import ComputedTorque
from pkm_control.controllers.controller import Controller
from pkm_control.controllers.force_laws import Admittance, Hybrid, Impedance
from pkm_control.controllers.force_task import ForceTask, read_force_file
from pkm_control.controllers.pd_gravity import PdGravity
from pkm_control.controllers.position import Position
from pkm_control.conveyor.belt import Belt
from pkm_control.conveyor.conveyor import read_conveyors
from pkm_control.keep_out import read_keep_outs
from pkm_control.loop.control_loop import ControlLoop
from pkm_control.loop.follower import TrajectoryFollower
from pkm_control.loop.guard import guard_of
from pkm_control.loop_settings import ControllerSettings, MachineSettings, Setup
from pkm_control.motion.compensation import read_compliance
from pkm_control.motion.planning import MotionPlanner
from pkm_control.operator_interface import (
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
from pkm_description.from_urdf import shared_mechanism
from pkm_description.mechanism import Inertial, Mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.dynamics import shared_dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.drivers.driver import disable_anew
from pkm_hardware.machine import Machine, drives_may_be_on, saying_unconfirmed, unconfirmed
from pkm_hardware.machine_file import read_machine_file
from pkm_hardware.machine_kinds import SIMULATED
from pkm_hardware.make_machine import limits_by_file, make_drives, make_machine
from pkm_hardware.simulated.drive_parts import Encoder
from pkm_hardware.simulated.simulated_machine import SimulatedMachine, realistic_machine
from pkm_kinematics import Kinematics
from pkm_kinematics.solve.robot_constants import refuse_redundant

_LAST_RESORT = 10.0  # s that a driver may take, of a board that is opened anew


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
    """A controller with the law of a name from `operator_interface.LAWS`, the law's other settings at their defaults.

    `period` [s] lies between two calls, `delay` [s] between a reading and the beginning of the time in which its
    command acts; `natural_frequency` [rad/s] and damping are of the tracking error, `task` of the force laws.
    """
    makers: dict[str, Callable[..., Controller]] = {
        COMPUTED_TORQUE: ComputedTorque,
        PD_GRAVITY: PdGravity,
        ADAPTIVE: partial(Adaptive, period=period),
        POSITION: partial(Position, period=period, delay=delay),
        IMPEDANCE: partial(Impedance, period=period, task=task),
        ADMITTANCE: partial(Admittance, period=period, task=task),
        HYBRID: partial(Hybrid, period=period, task=task),
    }
    if law not in (COMPUTED_TORQUE, PD_GRAVITY, POSITION):
        refuse_redundant(dynamics.kinematics.redundant_names, f"the law '{law}'")
    if law not in makers:
        raise ValueError(f"law is '{law}', not one of {', '.join(makers)}")
    return makers[law](dynamics, limits, natural_frequency, damping)


def build_machine(mechanism: Mechanism, settings: MachineSettings, dynamics: Dynamics | None = None) -> Machine:
    """Make a machine, unconfigured; a PkmError says why it cannot be built. `dynamics`: None, those that all share."""
    dynamics = dynamics or shared_dynamics(mechanism)
    if settings.kind != SIMULATED:
        file = read_machine_file(settings.file) if settings.file else None
        return make_machine(settings.kind, dynamics.kinematics, file, settings.simulate)
    payload = Inertial(mass=settings.hidden_payload) if settings.hidden_payload > 0.0 else None
    timeout = settings.command_timeout
    if settings.realistic:
        machine = realistic_machine(mechanism, timeout, payload)
    else:
        limits, encoder = ActuatorLimits.of(mechanism), Encoder(*settings.encoder) if settings.encoder else None
        machine = SimulatedMachine(dynamics, limits, encoder=encoder, command_timeout=timeout, payload=payload)
    if settings.force_file or settings.touches:
        machine.surround(read_force_file(settings.force_file).surroundings)
    return machine


def build_follower(
    mechanism: Mechanism, settings: ControllerSettings, dynamics: Dynamics | None = None
) -> TrajectoryFollower:
    """Make a controller with its guard and follower; a PkmError says why the robot cannot be controlled like that."""
    dynamics = dynamics or shared_dynamics(mechanism)
    limits = limits_by_file(mechanism, settings.machine_file)
    period, damping = settings.period, settings.damping
    controller = make_controller(
        settings.law,
        dynamics,
        limits,
        period,
        settings.usable_frequency(settings.natural_frequency, damping, settings.rate),
        damping,
        settings.delay * period,
        read_force_file(settings.force_file).task,
    )
    max_age = settings.stale_periods * period
    guard = guard_of(controller.commands, limits, max_age, controller.weight, settings.fallback, settings.hold_time)
    return TrajectoryFollower(
        dynamics.kinematics,
        controller,
        guard,
        (0.5 + settings.delay) * period,
        settings.abort_after,
        read_keep_outs(settings.keep_out_file),
        {one.name: Belt(one) for one in read_conveyors(settings.conveyor_file)},
        following_error=settings.following_error,
        compliance=read_compliance(settings.compliance_file, dynamics.kinematics),
    )


def last_resort(mechanism: Mechanism, settings: MachineSettings) -> str:
    """Disable drives whose process has died, by a driver of this one; a warning where they may be on, or empty."""
    if settings.kind == SIMULATED or settings.simulate:
        return ""
    kinematics = shared_dynamics(mechanism).kinematics
    drives = make_drives(settings.kind, kinematics, read_machine_file(settings.file) if settings.file else None)
    warnings: list[str] = []

    def turn_off() -> None:
        try:
            disable_anew(drives.driver, drives.scale.to_device(drives.home))
        except Exception as error:
            warnings.append(drives_may_be_on(error))
        else:
            warnings.append("")

    trying = threading.Thread(target=turn_off, daemon=True)
    with saying_unconfirmed(mechanism.actuated_joints):
        trying.start()
        trying.join(_LAST_RESORT)
    return warnings[0] if warnings else unconfirmed(mechanism.actuated_joints)


def build_robot_loop(text: str, machine: MachineSettings, controller: ControllerSettings) -> ControlLoop:
    """Make the loop of a robot's description (URDF+), its machine unconfigured; a PkmError says why it cannot be."""
    mechanism = shared_mechanism(text)
    return ControlLoop(build_machine(mechanism, machine), build_follower(mechanism, controller), controller.rate)


def build_loop(mechanism: Mechanism, setup: Setup, dynamics: Dynamics | None = None) -> ControlLoop:
    """Make the loop of a setup, its machine unconfigured, with `dynamics` of its own where none are given."""
    dynamics = dynamics or Dynamics(Kinematics(mechanism))
    machine, follower = setup.machine, setup.control
    return ControlLoop(
        build_machine(mechanism, machine, dynamics), build_follower(mechanism, follower, dynamics), setup.rate
    )


def planner_of(loop: ControlLoop, setup: Setup) -> MotionPlanner:
    """The planner of a loop's motions, which leaves the controller its reserve and avoids the loop's keep-outs."""
    space = loop.follower.check.space
    return MotionPlanner(loop.dynamics, loop.limits, reserve=setup.reserve, space=space)
