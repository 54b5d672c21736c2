# SPDX-License-Identifier: Apache-2.0
"""A robot in this process: the control loop of `pkm simulate`, in a thread."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from pkm_client.backend import Result, RobotState
from pkm_client.client_errors import NoRobotError
from pkm_control.controllers.controller import Controller
from pkm_control.conveyor.belt import SimulatedBelt
from pkm_control.conveyor.conveyor import BeltState, Conveyor, conveyor_named
from pkm_control.loop.control_loop import switch_on, warm_up
from pkm_control.loop.followed_motion import Action, Tolerances
from pkm_control.loop.goal_queue import GoalQueue, GoalRequest
from pkm_control.loop.operator import Operator
from pkm_control.loop.running_loop import Controls, LoopThread
from pkm_control.loop_settings import Setup
from pkm_control.motion.path_events import OutputEvent
from pkm_control.motion.point_trajectory import MotionPoints
from pkm_control.operator_interface import POSITION, Answer, Mode, Outcome
from pkm_control.robot_loop import build_loop
from pkm_description.mechanism import Array, Inertial, Mechanism
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics.kernels.compiled_rotations import displacement_between
from pkm_runtime.fixed_rate import FixedRateLoop

_SILENCE = 0.02, 3.0  # s, and periods at least, without a command after which the machine closes its brakes
_LOOK = 0.002  # s, between two looks at the queue
_HAND_OVER = 0.005  # s, that the loop waits for a caller that waited for this instant
_END = 5.0  # s, for the loop to end
_NONE = np.full(7, np.nan)


class SimulatedGoal:
    """A motion in the queue of the loop in this process."""

    def __init__(self, request: GoalRequest, goals: GoalQueue) -> None:
        self.request = request
        self.over = threading.Event()
        self._goals = goals

    @property
    def share(self) -> float:
        """How much of the motion is done, 0 to 1."""
        motion = self.request.motion
        if motion is None:
            return 0.0
        return motion.elapsed / motion.trajectory.duration if motion.trajectory.duration > 0.0 else 1.0

    def wait_begun(self) -> bool:
        """Wait until it is admitted or refused; True: admitted."""
        while not self.request.done and not self.over.wait(_LOOK):
            pass
        return self.request.motion is not None

    def wait(self) -> Result:
        """Wait for its end."""
        self.over.wait()
        motion = self.request.motion
        if motion is not None:
            assert motion.outcome is not None
            return Result(motion.outcome, motion.reason, **motion.errors)
        outcome = Outcome.PREEMPTED if self.request.withdrawn else Outcome.INVALID_GOAL
        return Result(outcome, self.request.problem)

    def cancel(self) -> None:
        """End it on its path, or keep it from beginning."""
        self._goals.withdraw(self.request)


class SimulatedBackend:
    """A control loop with a simulated machine in a thread of this process; lowers a frequency too high for the rate.

    In real time a stall of the computer stalls the simulated machine, too. Otherwise periods follow without a pause
    while somebody waits and something moves. `PkmError`: the robot cannot be controlled; `ValueError`: a number makes
    no sense.
    """

    def __init__(self, mechanism: Mechanism, setup: Setup, realtime: bool) -> None:
        if setup.controller != POSITION:
            setup = replace(setup, natural_frequency=min(setup.natural_frequency, setup.highest_frequency))
        self.mechanism = mechanism
        self._realtime = realtime
        trial = build_loop(mechanism, setup)
        warm_up(trial.follower, trial.kinematics)
        loop = self.loop = build_loop(mechanism, setup, trial.dynamics)  # the other has learned from the trial
        self.drives = {name: SimulatedBelt(belt.conveyor) for name, belt in loop.follower.belts.items()}
        self.on_output: Callable[[str, float], None] = lambda *_: None
        loop.on_output, loop.before_period = self._output, self._drive_belts
        if isinstance(loop.machine, SimulatedMachine):
            loop.machine.command_timeout = max(_SILENCE[0], _SILENCE[1] / setup.rate)
        switch_on(loop)
        self._told: dict[str, float] = {}  # outputs
        self._goals: list[SimulatedGoal] = []
        self._passed = threading.Condition()
        self._awaited: list[float] = []  # s of the machine's time: until then somebody waits
        self._waiting = 0  # who waits for the end of what moves
        self._closing = self._hurried = False
        self._rate = FixedRateLoop(setup.rate)
        self.running = LoopThread(loop, self._pace, self._after_period)
        self._controls = Controls(self.running)
        self._queue = GoalQueue(self._controls)
        self._operator = Operator(self._controls, self._queue.withdraw_waiting)
        self._rate.restart()
        self.running.start()
        atexit.register(self.close)

    def _output(self, event: OutputEvent) -> None:
        if self._told.get(event.name) != event.value:
            self._told[event.name] = event.value
            self.on_output(event.name, event.value)

    def _drive_belts(self, now: float) -> None:
        for name, drive in self.drives.items():
            drive.step(now, self.loop.follower.belts[name])

    # -- the contract -----------------------------------------------------------------------------------------------

    @property
    def limits(self) -> ActuatorLimits:
        """Limits of the actuators."""
        return self.loop.limits

    @property
    def time(self) -> float:
        """The machine's clock [s]."""
        return self.loop.machine.time

    @property
    def outputs(self) -> dict[str, float]:
        """Values that motions have set the outputs to, by name."""
        return dict(self._told)

    @property
    def payload(self) -> Inertial | None:
        """The platform's payload as the controller knows it."""
        return self.loop.follower.effects.payload

    def state(self) -> RobotState:
        """Return a snapshot, after a period that began after the call."""
        self.wait(1.5 / self._rate.rate)
        return _state_of(self.running.situation.action, self.loop.controller)

    def belt(self, name: str) -> tuple[Conveyor, BeltState]:
        """Return a conveyor's description and its present state."""
        self._require_alive()
        return conveyor_named(self.running.conveyors, name), self.running.belt(name)

    def begin(self, motion: MotionPoints, tolerances: Tolerances, asked: float) -> SimulatedGoal:
        """Queue a motion."""
        self._require_alive()
        goal = SimulatedGoal(GoalRequest(lambda: motion, tolerances, asked), self._queue)
        self._goals.append(goal)
        self._queue.put(goal.request)
        return goal

    @property
    def operator(self) -> Operator:
        """Takes an operator's requests."""
        self._require_alive()
        return self._operator

    def steer(self, twist: Array, asked: float) -> Answer:
        """Jog at a twist (6,) for a quarter of a second."""
        if twist.any() and asked <= self._queue.stopped:
            return Answer(False, self._queue.why_stopped)
        return self.operator.steer(twist)

    def wait(self, seconds: float) -> None:
        """Let time pass on the machine's clock."""
        with self._passed:
            until = self.time + seconds
            self._awaited.append(until)
            self._passed.wait_for(lambda: self.time >= until or not self._alive)
            self._awaited.remove(until)
        self._require_alive()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Within this context somebody waits for the robot."""
        with self._passed:
            self._waiting += 1
        try:
            yield
        finally:
            with self._passed:
                self._waiting -= 1

    def close(self) -> None:
        """End the loop with drives disabled; a running motion is lost."""
        if self._closing:
            return
        self._closing = True
        atexit.unregister(self.close)
        self.running.end(_END, "the robot was closed")
        self._queue.close()
        self._tell()

    # -- the loop ---------------------------------------------------------------------------------------------------

    @property
    def _alive(self) -> bool:
        return not self._closing and self.running.alive

    def _require_alive(self) -> None:
        if self.running.failure is not None:
            failure = self.running.failure
            raise NoRobotError(f"the loop of the robot has failed: {failure!r}") from failure
        if self._closing:
            raise NoRobotError("the robot was closed")

    def _pace(self) -> int:
        hurry = self._hurries()
        if self._hurried and not hurry:
            self._rate.restart()
        self._hurried = hurry
        passed = 1 if hurry else self._rate.wait()
        return passed if self._realtime else 1  # else what a program sees would hang on the computer's other work

    def _hurries(self) -> bool:
        if self._realtime:
            return False
        moving = self._waiting > 0 and self.loop.follower.moving
        return moving or bool(self._awaited)

    def _after_period(self) -> None:
        """Wake threads that wait for goals or instants; the latter get a little time to act at their instant."""
        if self._goals:
            self._tell()
        if not self._alive:
            with self._passed:
                self._passed.notify_all()
        elif self._awaited and self.time >= min(self._awaited, default=0.0):
            with self._passed:
                self._passed.notify_all()
                self._passed.wait_for(lambda: not self._awaited or self.time < min(self._awaited), _HAND_OVER)

    def _tell(self) -> None:
        for goal in tuple(self._goals):
            if goal.request.over:
                self._goals.remove(goal)
                goal.over.set()


def _state_of(action: Action, controller: Controller) -> RobotState:
    names, redundant = controller.limits.names, np.zeros(0)
    pose, twist, reference, error = _NONE, _NONE[:6], _NONE, _NONE[:6]
    positions = velocities = np.full(len(names), np.nan)
    if action.measured is not None and action.mode is not Mode.STOPPED:
        pose, twist = action.measured.pose.copy(), action.measured.twist.copy()
        positions, velocities = action.measured.positions, action.measured.velocities
    if action.measured is not None and action.reference is not None and action.mode is not Mode.STOPPED:
        reference, redundant = np.split(controller.with_redundant(action.reference.pose), [7])
        error = displacement_between(pose, reference)
    return RobotState(
        mode=action.mode,
        reason=action.reason,
        pose=pose,
        twist=twist,
        reference=reference,
        position_error=float(np.linalg.norm(error[:3])),
        rotation_error=float(np.linalg.norm(error[3:])),
        speed=action.speed,
        positions=dict(zip(names, positions.tolist(), strict=True)),
        velocities=dict(zip(names, velocities.tolist(), strict=True)),
        efforts=dict(zip(names, action.command.tolist(), strict=True)) if controller.commands == "effort" else {},
        redundant=dict(zip(controller.kinematics.redundant_names, redundant.tolist(), strict=False)),
        units=dict(zip(names, controller.limits.length_units, strict=True)),
    )
