# SPDX-License-Identifier: Apache-2.0
"""What the nodes of one robot have in common, made once, in the process that they are forked from.

Importing libraries, building the robot, loading or compiling its kernels and planning its motion take seconds; seven
nodes that each do it at the same time take half a minute on two cores. What is made here the nodes find made, through
`shared_mechanism`, `shared_kinematics`, `shared_dynamics` and `planned`, and what is compiled is compiled for all.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Sequence

import numpy as np

from pkm_control.command_line.making import KERNELS, making
from pkm_control.controllers.laws import make_controller
from pkm_control.hardware.machine_kinds import SIMULATED
from pkm_control.hardware.simulated.simulated_machine import SimulatedMachine
from pkm_control.loop.follower import TrajectoryFollower, rehearse
from pkm_control.loop.guard import guard_of
from pkm_control.motion.limits import ActuatorLimits
from pkm_control.run import bringup
from pkm_control.run.main_job import planned
from pkm_description.load import shared_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.dynamics import shared_dynamics
from pkm_kinematics.forward.tracker import AssemblyModeTracker


def build(text: str) -> Dynamics:
    """The robot of a description (URDF+), which all nodes share; raises `PkmError` where there is none in it."""
    with making("building the robot; after an update kernels are compiled, which takes a minute"):
        return shared_dynamics(shared_mechanism(text))


def prepare(dynamics: Dynamics, specs: Sequence[bringup.NodeSpec], values: bringup.Values) -> None:
    """Make what the nodes need and what does not depend on ROS, and import their modules.

    Args:
        dynamics: of the robot, from `build`.
        specs: the nodes that will run.
        values: of the knobs.

    Raises:
        PkmError: the motion cannot be used.
    """
    wanted = {spec.name for spec in specs}
    with making(KERNELS):
        exercise(dynamics)
        if "controller" in wanted:
            rehearse_controller(dynamics, values["controller"])
        if "hardware" in wanted and values["hardware"] == SIMULATED:
            rehearse_machine(dynamics)
    if "motion_player" in wanted and values["motion"] != "none":
        with making("planning the motion"):
            planned(dynamics.mechanism, values["motion"], bringup.reserve(values), values["hardware_file"])
    with making("importing the nodes"):
        for spec in specs:
            importlib.import_module(spec.module)
    gc.collect()
    gc.freeze()  # what is made stays in pages that the nodes share


def exercise(dynamics: Dynamics) -> None:
    """Call once what the nodes of kinematics and dynamics call, and who records a run."""
    kinematics = dynamics.kinematics
    home, still = np.array(kinematics.home), np.zeros(6)
    positions = np.asarray(kinematics.inverse(home).actuated)
    tracker = AssemblyModeTracker(kinematics)
    tracker.observe(positions, np.zeros(len(positions)))
    kinematics.forward(np.tile(positions, (2, 1)), near=np.tile(home, (2, 1)))
    kinematics.singularity(home)
    dynamics.inverse(home, still, still)


def rehearse_controller(dynamics: Dynamics, law: str) -> None:
    """Have a controller do at home what it will be asked to."""
    kinematics, limits = dynamics.kinematics, ActuatorLimits.of(dynamics.mechanism)
    controller = make_controller(law, dynamics, limits, 1e-3)
    guard = guard_of(controller.commands, limits, 1.0, lambda pose: np.asarray(dynamics.gravity(pose).effort))
    rehearse(TrajectoryFollower(kinematics, controller, guard, lead=0.0), kinematics)


def rehearse_machine(dynamics: Dynamics) -> None:
    """Let a simulated machine pass a millisecond."""
    SimulatedMachine(dynamics, ActuatorLimits.of(dynamics.mechanism)).rehearse()
