# SPDX-License-Identifier: Apache-2.0
"""The main job in one process: a control loop repeats a motion, as the ROS nodes do."""

from __future__ import annotations

import gc
import math
import time as clock
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pkm_control.control_errors import GoalError
from pkm_control.controllers.computed_torque import ComputedTorque
from pkm_control.controllers.controller import Controller
from pkm_control.keep_out import read_keep_outs
from pkm_control.loop import requests
from pkm_control.loop.control_loop import ControlLoop, Period
from pkm_control.loop.followed_motion import Motion
from pkm_control.loop.guard import cause_of
from pkm_control.motion.files.default_motion import motion_named
from pkm_control.motion.files.motion_file import MotionFile
from pkm_control.motion.path_clock import Braking
from pkm_control.motion.path_events import PathEvents
from pkm_control.motion.planning import MotionPlanner
from pkm_control.motion.point_trajectory import MotionPoints, PointTrajectory
from pkm_control.motion.trajectory import Trajectory
from pkm_control.operator_interface import Mode, Outcome
from pkm_description.mechanism import Mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.dynamics import shared_dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.machine import NO_COMMAND, Machine
from pkm_hardware.machine_kinds import USUAL_RESERVE
from pkm_hardware.make_machine import limits_by_file
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics import Kinematics
from pkm_runtime.fixed_rate import FixedRateLoop
from pkm_runtime.optional import uncollected
from pkm_viewer.report.recording import Mark, Recorder, Recording, Run

_LATER = 1.0  # s, for a driver to say what is wrong: it waits longer for a reading than the loop does
_LONGER = 2.0  # s, that a motion may take longer which is stopped on its way


@dataclass(frozen=True, eq=False)
class Cycle:
    """One cycle of a motion, which ends where it begins, and the way there from home."""

    approach: Trajectory
    cycle: Trajectory


def plan_cycle(planner: MotionPlanner, motion: MotionFile) -> Cycle:
    """Plan a motion file as a cycle, and the way to its start from home."""
    cycle = planner.plan_closed(motion)
    home = np.asarray(planner.kinematics.home, dtype=np.float64)
    approach = planner.rest(home, 0.1) if planner.same(home, cycle.start) else planner.between(home, cycle.start)
    return Cycle(approach, cycle)


@dataclass(frozen=True, eq=False)
class Plan:
    """A motion file, planned for a robot as a cycle with the way to its start."""

    planner: MotionPlanner
    motion: MotionFile
    job: Cycle


@lru_cache(maxsize=2)
def planned(
    mechanism: Mechanism,
    motion: str,
    reserve: float = USUAL_RESERVE,
    machine_file: str = "",
    tool_file: str = "",
    keep_out_file: str = "",
) -> Plan:
    """The plan of a motion, by its name or the path of its file; the same object each time, as `shared_mechanism`'s.
    `reserve` is the share of actuator velocity and effort that is left to the controller. The limits of `machine_file`
    hold as well. Files are paths, empty for none.
    """
    dynamics = shared_dynamics(mechanism)
    limits, space = limits_by_file(mechanism, machine_file), read_keep_outs(keep_out_file)
    planner = MotionPlanner(dynamics, limits, reserve=reserve, space=space)
    file = motion_named(motion, dynamics.kinematics, tool_file)
    return Plan(planner, file, plan_cycle(planner, file))


def simulated_loop(
    mechanism: Mechanism,
    rate: float = 1000.0,
    dynamics: Dynamics | None = None,
    controller: Controller | None = None,
    machine: Machine | None = None,
) -> ControlLoop:
    """A control loop at `rate` [Hz], by default with the simulated machine and computed torque, to be configured."""
    dynamics = dynamics or Dynamics(Kinematics(mechanism))
    machine = machine or SimulatedMachine(dynamics, ActuatorLimits.of(mechanism))
    controller = controller or ComputedTorque(dynamics, machine.limits)
    return ControlLoop.of(machine, controller, rate)


@dataclass(frozen=True, eq=False)
class Ready:
    """A trajectory that can be followed at once: what takes longer than a period is computed."""

    path: PointTrajectory
    braking: Braking
    events: PathEvents
    cycles: int


def make_ready(loop: ControlLoop, trajectory: Trajectory, cycles: int = 1) -> Ready:
    """Make one cycle ready to be run `cycles` times on a loop. `GoalError`: the machine cannot run it."""
    points = MotionPoints.of(trajectory, cycles)
    path = PointTrajectory(points.times, points.poses, points.twists, points.accelerations, cycles)
    check, events = loop.follower.check, trajectory.events
    if refusal := check.refusal(path, events):
        raise GoalError(f"the motion cannot be run: {refusal}")
    return Ready(path, check.braking(path, events), events, cycles)


def run_motion(
    loop: ControlLoop,
    trajectory: Trajectory | Ready,
    cycles: int = 1,
    realtime: bool = False,
    watch: Callable[[Period], None] | None = None,
    stopped: Callable[[], bool] | None = None,
    recorded: bool = True,
    pace: FixedRateLoop | None = None,
) -> Recording:
    """Run a trajectory, one cycle, on a robot that is switched on and held. A fault ends the run with the drives off.

    Real drives take silence for a fault: where they are on already, give a trajectory that is `Ready`, and as `pace`
    the one that the periods before had. A gap between the two counts as missed deadlines. A short silence of theirs
    halts the motion on its path.

    In real time, missed deadlines are simulated time too: the machine moves on while the controller sleeps, for at most
    `CATCH_UP`. A computer that stalls for longer stalls the simulated machine as well, rather than let it run away
    under efforts that no machine would hold so long. `watch` is called with every period; `stopped` ends the run early
    where it is true: the platform comes to rest on its path. Periods are kept where `recorded`.
    """
    follower = loop.follower
    ready = trajectory if isinstance(trajectory, Ready) else make_ready(loop, trajectory, cycles)
    path, cycles, begun = ready.path, ready.cycles, clock.time()
    recorder = Recorder(loop.limits, round((path.duration + _LONGER) * loop.rate) if recorded else 0)
    motion = Motion(path, follower.time + 1.0 / loop.rate, braking=ready.braking, events=ready.events)
    requests.follow(follower, motion)
    loop.on_output = lambda event: recorder.mark(Mark(follower.time - motion.start, event.name, event.value))
    fixed = pace or FixedRateLoop(loop.rate)
    faults: tuple[str, ...] = ()
    if gc.isenabled():
        gc.collect()
    try:
        with uncollected():  # a collection takes longer than a period
            if pace is None:
                fixed.restart()
            missed = fixed.missed
            while motion.outcome is None:
                if stopped is not None and stopped():
                    follower.stop("ended")
                periods = fixed.wait() if realtime else 1
                done = loop.period(periods)
                action = done.action
                if action.reference is None or action.measured is None or action.mode is Mode.STOPPED:
                    continue  # a silence that is so long that the motion is lost ends it
                _record(recorder, loop, done, follower.time - motion.start, fixed.last_wake if realtime else math.nan)
                if watch is not None:
                    watch(done)
            if motion.outcome not in (Outcome.SUCCESSFUL, Outcome.PREEMPTED):
                faults = (_why_stopped(loop, fixed, realtime) or cause_of(motion.reason),)
    except BaseException:  # such as Ctrl-C in a notebook, where the loop stays, and real drives would hold meanwhile
        loop.disable()
        raise
    finally:
        follower.end(Outcome.PREEMPTED, "ended")
        loop.on_output = lambda _: None
    if faults:
        loop.disable()
    run = Run(loop.kinematics.mechanism.name, "", loop.rate, cycles, path.cycle, begun=begun)
    return recorder.recording(run, fixed.missed - missed, faults)


def _record(recorder: Recorder, loop: ControlLoop, done: Period, time: float, wake: float) -> None:
    """Add a period with a reference and a measurement, `time` [s] after the start of the motion."""
    action, state = done.action, done.state
    assert action.reference is not None
    assert action.measured is not None
    poses = (action.reference.pose[:7], action.measured.pose)
    efforts = action.command if loop.controller.commands == "effort" else state.efforts
    recorder.add(time, wake, poses, (state.positions, state.velocities), efforts, loop.controller.saturated)


def _why_stopped(loop: ControlLoop, fixed: FixedRateLoop, realtime: bool) -> str:
    """Why the loop stopped: by the driver of a real machine, whose message comes a little later, or by the follower."""
    cause = cause_of(loop.fault)
    left = round(_LATER * loop.rate) if realtime and loop.machine.real else 0
    while not loop.machine.fault and loop.follower.mode is Mode.STOPPED and left > 0:
        left -= 1
        loop.period(fixed.wait())
    fault = loop.machine.fault
    if fault.startswith(NO_COMMAND) and not cause.startswith(NO_COMMAND):  # since nothing is sent without a reading
        fault = ""
    return fault or cause
