# SPDX-License-Identifier: Apache-2.0
"""A simulated robot with its controller, for `pkm simulate` and for scripts."""

from __future__ import annotations

from pkm_control.controllers.law_settings import FORCE_LAWS, POSITION
from pkm_control.controllers.laws import make_controller
from pkm_control.conveyor.belt import Belt
from pkm_control.conveyor.conveyor_file import read_conveyors
from pkm_control.hardware.contact.force_file import read_force_file
from pkm_control.hardware.machine import Machine
from pkm_control.hardware.machine_kinds import LOOPBACK
from pkm_control.hardware.make_machine import make_machine
from pkm_control.hardware.simulated.imperfections import realistic_machine
from pkm_control.hardware.simulated.simulated_machine import SimulatedMachine
from pkm_control.loop.control_loop import ControlLoop
from pkm_control.motion.limits import ActuatorLimits
from pkm_control.motion.planning import MotionPlanner
from pkm_control.run.simulate_options import Setup
from pkm_control.space.keep_out_file import read_keep_outs
from pkm_description.mechanism import Inertial, Mechanism
from pkm_dynamics import Dynamics
from pkm_kinematics import Kinematics


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
