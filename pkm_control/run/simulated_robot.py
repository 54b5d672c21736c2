# SPDX-License-Identifier: Apache-2.0
"""A simulated robot with its controller, from what is asked of it: for `pkm simulate`, and for scripts."""

from __future__ import annotations

from pkm_control.controllers.law_settings import FORCE_LAWS, POSITION
from pkm_control.controllers.laws import make_controller
from pkm_control.hardware.contact.force_file import read_force_file
from pkm_control.hardware.machine_kinds import LOOPBACK
from pkm_control.hardware.make_machine import make_machine
from pkm_control.hardware.simulated.imperfections import realistic_machine
from pkm_control.hardware.simulated.simulated_machine import SimulatedMachine
from pkm_control.motion.planning import MotionPlanner
from pkm_control.run.main_job import Robot
from pkm_control.run.simulate_options import Setup
from pkm_control.space.keep_out_file import read_keep_outs
from pkm_description.mechanism import Inertial, Mechanism


def build_robot(mechanism: Mechanism, setup: Setup) -> Robot:
    """Wire machine, observer, controller and guard.

    Args:
        mechanism: the robot.
        setup: what it is like. With the law `position` the machine is a loopback, which is where it is told to be.

    Returns:
        The robot, which is not started.

    Raises:
        PkmError: it cannot be controlled.
        ValueError: a number makes no sense.
    """
    robot = Robot(mechanism, setup.rate)
    space = robot.planner.space = read_keep_outs(setup.keep_out_file)
    force = read_force_file(setup.force_file)
    controller = make_controller(
        setup.controller,
        robot.dynamics,
        robot.limits,
        1.0 / setup.rate,
        setup.natural_frequency,
        setup.damping,
        task=force.task,
    )
    robot.drive(robot.machine, controller)
    if setup.controller == POSITION:
        robot.drive(make_machine(LOOPBACK, robot.kinematics, None), robot.controller)
        return robot
    payload = Inertial(mass=setup.hidden_payload) if setup.hidden_payload > 0.0 else None
    if setup.realistic:
        robot.machine = realistic_machine(mechanism, payload=payload)
        robot.planner = MotionPlanner(
            robot.kinematics, robot.dynamics, robot.limits, reserve=setup.reserve, space=space
        )
    elif payload is not None:
        robot.machine = SimulatedMachine(robot.dynamics, robot.limits, payload=payload)
    if isinstance(robot.machine, SimulatedMachine) and (setup.force_file or setup.controller in FORCE_LAWS):
        robot.machine.surround(force.surroundings)
    return robot
