# SPDX-License-Identifier: Apache-2.0
"""The main job in one process: a controller follows a trajectory on a machine. The ROS nodes do the same.

One control period is: read the actuators, find the platform, compute efforts, let the guard check them, write them, and
let the period pass. Everything is measured from the readings, as on a real machine.
"""

from __future__ import annotations

import gc
import math
import time as clock
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pkm_control.controllers.computed_torque import ComputedTorque
from pkm_control.controllers.controller import Controller, Measured, Reference
from pkm_control.controllers.weight import holding_efforts
from pkm_control.hardware.machine import Machine
from pkm_control.hardware.machine_state import Lifecycle
from pkm_control.hardware.make_machine import limits_by_file
from pkm_control.hardware.simulated.encoder import Encoder
from pkm_control.hardware.simulated.simulated_machine import SimulatedMachine
from pkm_control.loop.fixed_rate import FixedRateLoop
from pkm_control.loop.platform_observer import PlatformObserver
from pkm_control.loop.watches.guard import guard_of
from pkm_control.loop.watches.stray_watch import StrayWatch
from pkm_control.motion.files.default_motion import motion_named
from pkm_control.motion.files.motion_file import MotionFile
from pkm_control.motion.limits import ActuatorLimits, PlatformLimits
from pkm_control.motion.path_events import Effects, OutputEvent, PathEventError
from pkm_control.motion.planning import MotionPlanner
from pkm_control.motion.trajectory import Trajectory, TrajectorySample
from pkm_control.realism import USUAL_RESERVE
from pkm_control.report.recording import Mark, Recorder, Recording, Run
from pkm_control.space.keep_out_file import read_keep_outs
from pkm_description.errors import PkmError
from pkm_description.mechanism import Inertial, Mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.dynamics import shared_dynamics
from pkm_kinematics import Kinematics

Array = NDArray[np.float64]

CATCH_UP = 0.002  # s that the simulated machine moves on at most while the loop is late
STALE_PERIODS = 5  # control periods without a reading after which efforts stop


@dataclass(frozen=True, eq=False)
class Period:
    """What one control period saw and did, for whoever watches (the browser page). `efforts`: of the machine."""

    time: float
    machine: Machine
    reference: Reference
    measured: Measured
    efforts: Array


@dataclass(frozen=True, eq=False)
class Cycle:
    """One cycle of a motion, which ends where it begins, and the way there from home."""

    approach: Trajectory
    cycle: Trajectory


def plan_cycle(planner: MotionPlanner, motion: MotionFile) -> Cycle:
    """Plan a motion file as a cycle, and the way to its start from home."""
    cycle = planner.plan_closed(motion)
    home = np.asarray(planner.kinematics.home, dtype=np.float64)
    if np.linalg.norm(home - cycle.start) < 1e-6:
        approach = planner.rest(home, 0.1)
    else:
        approach = planner.between(home, cycle.start)
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
    """The plan of a motion for a robot; the same object each time, as `shared_mechanism`'s.

    Args:
        mechanism: the robot.
        motion: its name or the path of its file.
        reserve: part of actuator velocity and effort that is left to the controller.
        machine_file: path of the file whose limits hold as well; empty: none.
        tool_file: path of the file of its tools; empty: none.
        keep_out_file: path of the file of places that the motion keeps out of; empty: none.

    Returns:
        The plan.

    Raises:
        PkmError: the motion cannot be read or run.
    """
    dynamics = shared_dynamics(mechanism)
    limits, space = limits_by_file(mechanism, machine_file), read_keep_outs(keep_out_file)
    planner = MotionPlanner(dynamics.kinematics, dynamics, limits, reserve=reserve, space=space)
    file = motion_named(motion, dynamics.kinematics, tool_file)
    return Plan(planner, file, plan_cycle(planner, file))


class Robot:
    """Controller, guard, observer and simulated machine of one mechanism, wired.

    Args:
        mechanism: the robot.
        rate: of controller and machine [Hz].
        kinematics: of the mechanism, where there is one already; with its dynamics.
        dynamics: the same.
        controller: computed torque where none is given.
        encoder: of the machine; an ideal one where none is given.
        platform_limits: for planning.

    Raises:
        ValueError: no rate that a machine can have.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        rate: float = 1000.0,
        kinematics: Kinematics | None = None,
        dynamics: Dynamics | None = None,
        controller: Controller | None = None,
        encoder: Encoder | None = None,
        platform_limits: PlatformLimits | None = None,
    ) -> None:
        if not (math.isfinite(rate) and rate > 0.0):
            raise ValueError(f"rate is {rate} Hz; give a number greater than zero")
        if kinematics is None or dynamics is None:
            kinematics = kinematics or Kinematics(mechanism)
            dynamics = dynamics or Dynamics(kinematics)
        self.mechanism = mechanism
        self.rate = rate
        self.kinematics = kinematics
        self.dynamics = dynamics
        self.limits = ActuatorLimits.of(mechanism)
        self.planner = MotionPlanner(kinematics, dynamics, self.limits, platform_limits)
        self.controller = controller or ComputedTorque(kinematics, dynamics, self.limits)
        self.observer = PlatformObserver(kinematics)
        self.stray = StrayWatch(kinematics.characteristic_length)
        self.guard = guard_of(self.controller.commands, self.limits, STALE_PERIODS / rate, self._gravity)
        self.machine: Machine = SimulatedMachine(dynamics, self.limits, encoder=encoder)
        self._passed = 1.0 / rate  # s, in the last period
        self.effects = Effects(self._set_output, self._load)

    def _set_output(self, event: OutputEvent) -> None:
        self.machine.set_output(event.name, event.value)

    def _load(self, payload: Inertial | None) -> None:
        """Controller and machine have the platform carry something else from now on."""
        self.controller.load(payload)
        self.machine.carry(payload)

    def require_outputs(self, names: Iterable[str]) -> None:
        """Refuse outputs that the machine does not have.

        Args:
            names: of outputs.

        Raises:
            PathEventError: of the first that cannot be set.
        """
        for problem in (self.machine.output_problem(name) for name in names):
            if problem:
                raise PathEventError(problem)

    def drive(self, machine: Machine, controller: Controller) -> None:
        """Take another machine, and the controller for it.

        Args:
            machine: whose limits hold from now on.
            controller: that commands what the machine takes.
        """
        self.machine, self.controller, self.limits = machine, controller, machine.limits
        self.guard = guard_of(controller.commands, self.limits, STALE_PERIODS / self.rate, self._gravity)

    def start(self) -> None:
        """Configure the machine at home and activate it.

        Raises:
            PkmError: the machine cannot be configured.
        """
        self.machine.configure()
        if self.machine.fault:
            raise PkmError(self.machine.fault)
        self.observer = PlatformObserver(self.kinematics)
        self.stray.forgive()
        self.machine.activate()

    def stop(self) -> None:
        """Close the brakes."""
        self.machine.deactivate()

    def period(self, time: float, reference: Reference, dt: float) -> Period | None:
        """Do one control period.

        Args:
            time: of the motion [s].
            reference: where the platform is to be.
            dt: how long the period is [s].

        Returns:
            What was done; None where the machine or its readings failed, or the platform strayed.
        """
        machine = self.machine
        state = machine.read()
        measured = self.observer.observe(state.positions, state.velocities) if not state.fault else None
        stamps: dict[str, float | None] = {"machine state": state.time}
        if self.controller.feels:
            stamps["force sensor"] = None if state.wrench is None else state.time
            if measured is not None and state.wrench is not None:
                measured = self.controller.felt_by(measured, state.wrench)
        self.controller.advance(self._passed)
        self._passed = dt
        asked = self.controller.command(reference, measured) if measured is not None else None
        verdict = self.guard.check(machine.time, stamps, asked, self.observer.pose)
        machine.write(verdict.command)
        machine.step(dt)
        if measured is None or machine.lifecycle is Lifecycle.FAULT:
            return None
        if not self.controller.yields:  # a law that yields to forces leaves its reference as it should
            self.stray.judge(reference, measured)
        if self.stray.lost:
            machine.deactivate()
            return None
        efforts = verdict.command if self.controller.commands == "effort" else state.efforts
        return Period(time, machine, reference, measured, efforts)

    @property
    def fault(self) -> str:
        """Why the machine or its readings failed; empty while all is well."""
        return self.machine.fault or self.observer.reason or self.stray.lost

    def _gravity(self, pose: Array) -> Array:
        return holding_efforts(self.dynamics, self.limits, pose, payload=self.controller.payload)


def run_motion(
    robot: Robot,
    trajectory: Trajectory,
    cycles: int = 1,
    realtime: bool = False,
    watch: Callable[[Period], None] | None = None,
    stopped: Callable[[], bool] | None = None,
    recorded: bool = True,
) -> Recording:
    """Run a trajectory on a started robot.

    In real time, what the loop missed is simulated time too: the machine moves on while the controller sleeps, for at
    most `CATCH_UP`. A computer that stalls for longer stalls the simulated machine as well, rather than let it run away
    under efforts that no machine would hold so long.

    Args:
        robot: which is started.
        trajectory: one cycle.
        cycles: how many.
        realtime: each period takes its time on the clock.
        watch: sees every period.
        stopped: ends the run early where it says so.
        recorded: keep every period.

    Returns:
        What happened. A fault ends the run, and is in there.
    """
    dt = 1.0 / robot.rate
    reference = _presampled(trajectory, robot.rate)
    per_cycle = len(reference)
    last = cycles * per_cycle
    recorder = Recorder(robot.limits, last + 1 if recorded else 0)
    effects = robot.effects
    effects.begin(trajectory.events, per_cycle * dt, cycles)
    faults: tuple[str, ...] = ()
    loop = FixedRateLoop(robot.rate)
    most = max(1, round(CATCH_UP * robot.rate))
    begin, begun = robot.machine.time, clock.time()
    time = 0.0
    gc.collect()
    gc.disable()  # a collection takes longer than a period
    try:
        loop.restart()
        while (tick := round(time * robot.rate)) <= last and not (stopped is not None and stopped()):
            periods = loop.wait() if realtime else 1
            wake = loop.last_wake if realtime else math.nan
            now = tick % per_cycle if tick < last else per_cycle - 1
            for event in effects.advance(time):
                recorder.mark(Mark(time, event.name, event.value))
            wanted = Reference(reference.pose[now], reference.twist[now], reference.acceleration[now])
            done = robot.period(time, wanted, (periods if robot.machine.real else min(periods, most)) * dt)
            if done is None:
                faults = (robot.fault,)
                break
            poses, readings = (wanted.pose, done.measured.pose), (done.measured.positions, done.measured.velocities)
            recorder.add(time, wake, poses, readings, done.efforts, robot.controller.saturated)
            if watch is not None:
                watch(done)
            time = robot.machine.time - begin
    finally:
        effects.end()
        gc.enable()
    run = Run(robot.mechanism.name, "", robot.rate, cycles, per_cycle * dt, begun=begun)
    return recorder.recording(run, loop.missed, faults)


def _presampled(trajectory: Trajectory, rate: float) -> TrajectorySample:
    """Return the trajectory at every control period: the loop has nothing left to plan.

    A trajectory ends at rest, so it is made to last a whole number of periods, by less than one more.
    """
    times = np.arange(math.floor(trajectory.duration * rate + 1e-9) + 1) / rate
    at, middle = trajectory.sample(times), trajectory.sample(times + 0.5 / rate)
    return TrajectorySample(times, at.pose, at.twist, middle.acceleration)  # see `Reference`
