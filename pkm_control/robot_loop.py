# SPDX-License-Identifier: Apache-2.0
"""Machine, controller and loop of a robot from settings that are plain data, so that another process can build them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pkm_control.controllers.force.force_file import read_force_file
from pkm_control.controllers.law_settings import (
    DAMPING,
    FORCE_LAWS,
    LAWS,
    NATURAL_FREQUENCY,
    POSITION,
    highest_natural_frequency,
)
from pkm_control.controllers.laws import make_controller
from pkm_control.conveyor.belt import Belt
from pkm_control.conveyor.conveyor_file import read_conveyors
from pkm_control.loop.control_loop import ControlLoop
from pkm_control.loop.follower import TrajectoryFollower
from pkm_control.loop.guard import guard_of
from pkm_control.motion.planning import MotionPlanner
from pkm_control.simulation_setup import Setup
from pkm_control.space.keep_out_file import read_keep_outs
from pkm_description.load import shared_mechanism
from pkm_description.mechanism import Array, Inertial, Mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.dynamics import shared_dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_dynamics.weight import holding_efforts
from pkm_hardware.machine import Machine, drives_may_be_on
from pkm_hardware.machine_file import read_machine_file
from pkm_hardware.machine_kinds import LOOPBACK, SIMULATED
from pkm_hardware.make_machine import limits_by_file, make_drives, make_machine
from pkm_hardware.simulated.drive_parts import Encoder
from pkm_hardware.simulated.imperfections import realistic_machine
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics import Kinematics

Fallback = Literal["zero", "gravity"]


@dataclass(frozen=True)
class MachineSettings:
    """A machine, as the parameters of the hardware node describe it; `hidden_payload` in kg, `command_timeout` in s."""

    kind: str = SIMULATED
    file: str = ""
    simulate: bool = False  # the device behind the driver
    force_file: str = ""
    command_timeout: float = 0.02
    encoder: Encoder | None = None
    realistic: bool = False
    hidden_payload: float = 0.0


@dataclass(frozen=True)
class ControllerSettings:
    """A controller, as the parameters of the controller node describe it.

    `rate` is in Hz, `natural_frequency` in rad/s, `stale_periods` and `delay` in periods (`delay` from a reading to the
    beginning of the time in which its command acts), times in s, `following_error` in m.
    """

    law: str = LAWS[0]
    rate: float = 1000.0
    natural_frequency: float = NATURAL_FREQUENCY
    damping: float = DAMPING
    delay: float = 0.0
    stale_periods: int = 10
    fallback: Fallback = "gravity"
    hold_time: float = 0.5
    abort_after: float = 1.0
    following_error: float = 0.0
    machine_file: str = ""
    force_file: str = ""
    keep_out_file: str = ""
    conveyor_file: str = ""

    @property
    def period(self) -> float:
        """Of the loop [s]."""
        return 1.0 / self.rate

    def usable_frequency(self, asked: float, damping: float, rate: float) -> float:
        """The natural frequency [rad/s], at most `asked`, that readings at a rate [Hz] permit."""
        if self.law == POSITION:  # which has no gains
            return asked
        return min(asked, highest_natural_frequency(1.0 / rate, damping, 0.5 + self.delay))


def build_machine(mechanism: Mechanism, settings: MachineSettings) -> Machine:
    """Make a machine, unconfigured; a PkmError says why it cannot be built."""
    if settings.kind != SIMULATED:
        file = read_machine_file(settings.file) if settings.file else None
        return make_machine(settings.kind, shared_dynamics(mechanism).kinematics, file, settings.simulate)
    payload = Inertial(mass=settings.hidden_payload) if settings.hidden_payload > 0.0 else None
    if settings.realistic:
        machine = realistic_machine(mechanism, settings.command_timeout, payload)
    else:
        machine = SimulatedMachine(
            shared_dynamics(mechanism),
            ActuatorLimits.of(mechanism),
            encoder=settings.encoder,
            command_timeout=settings.command_timeout,
            payload=payload,
        )
    if settings.force_file:
        machine.surround(read_force_file(settings.force_file).surroundings)
    return machine


def build_follower(mechanism: Mechanism, settings: ControllerSettings) -> TrajectoryFollower:
    """Make a controller with its guard and follower; a PkmError says why the robot cannot be controlled like that."""
    dynamics = shared_dynamics(mechanism)
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

    def weight(pose: Array) -> Array:
        return holding_efforts(dynamics, limits, pose, payload=controller.payload)

    max_age = settings.stale_periods * period
    guard = guard_of(controller.commands, limits, max_age, weight, settings.fallback, settings.hold_time)
    return TrajectoryFollower(
        dynamics.kinematics,
        controller,
        guard,
        (0.5 + settings.delay) * period,
        settings.abort_after,
        read_keep_outs(settings.keep_out_file),
        {one.name: Belt(one) for one in read_conveyors(settings.conveyor_file)},
        following_error=settings.following_error,
    )


def last_resort(mechanism: Mechanism, settings: MachineSettings) -> str:
    """Disable the drives of a machine whose own process has died, through a driver of this one.
    Returns a warning where they may still be on; empty where they confirm that they are off.
    """
    if settings.kind == SIMULATED or settings.simulate:
        return ""
    kinematics = shared_dynamics(mechanism).kinematics
    drives = make_drives(settings.kind, kinematics, read_machine_file(settings.file) if settings.file else None)
    driver = drives.driver
    try:
        driver.open(drives.scale.to_device(drives.home))  # which disables them, and confirms that they are off
    except Exception as error:
        try:
            driver.disable()  # something else is wrong, perhaps
        except Exception:
            return drives_may_be_on(error)
    finally:
        driver.close()
    return ""


def build_robot_loop(text: str, machine: MachineSettings, controller: ControllerSettings) -> ControlLoop:
    """Make the loop of a robot's description (URDF+), its machine unconfigured; a PkmError says why it cannot be."""
    mechanism = shared_mechanism(text)
    return ControlLoop(build_machine(mechanism, machine), build_follower(mechanism, controller), controller.rate)


def build_loop(mechanism: Mechanism, setup: Setup, dynamics: Dynamics | None = None) -> ControlLoop:
    """Connect machine, law, guard and follower of a setup; the machine is not configured. With the law `position` it is
    a loopback, whose readings are its commands.
    """
    dynamics = dynamics or Dynamics(Kinematics(mechanism))
    force, limits = read_force_file(setup.force_file), ActuatorLimits.of(mechanism)
    controller = make_controller(
        setup.controller,
        dynamics,
        limits,
        1.0 / setup.rate,
        setup.natural_frequency,
        setup.damping,
        task=force.task,
    )
    machine: Machine
    if setup.controller == POSITION:
        machine = make_machine(LOOPBACK, dynamics.kinematics, None)
    else:
        payload = Inertial(mass=setup.hidden_payload) if setup.hidden_payload > 0.0 else None
        if setup.realistic:
            machine = realistic_machine(mechanism, payload=payload)
        else:
            machine = SimulatedMachine(dynamics, limits, payload=payload)
        if setup.force_file or setup.controller in FORCE_LAWS:
            machine.surround(force.surroundings)
    loop = ControlLoop.of(machine, controller, setup.rate, setup.delay, read_keep_outs(setup.keep_out_file))
    loop.follower.belts.update({one.name: Belt(one) for one in read_conveyors(setup.conveyor_file)})
    return loop


def planner_of(loop: ControlLoop, setup: Setup) -> MotionPlanner:
    """The planner of a loop's motions, which leaves the controller its reserve and avoids the loop's keep-outs."""
    space = loop.follower.check.space
    return MotionPlanner(loop.kinematics, loop.dynamics, loop.limits, reserve=setup.reserve, space=space)
