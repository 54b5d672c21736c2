# SPDX-License-Identifier: Apache-2.0
"""A robot in this process: machine, observer, controller and guard of `pkm simulate`, the follower of the ROS node."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pkm_control.client.errors import NoRobotError
from pkm_control.client.state import RobotState
from pkm_control.client.task import Result
from pkm_control.controllers.law_settings import POSITION
from pkm_control.conveyor.belt import Belt
from pkm_control.conveyor.conveyor import BeltState, Conveyor, conveyor_named
from pkm_control.conveyor.conveyor_file import read_conveyors
from pkm_control.conveyor.simulated_belt import SimulatedBelt
from pkm_control.hardware.machine_state import Lifecycle
from pkm_control.hardware.simulated.simulated_machine import SimulatedMachine
from pkm_control.loop.fixed_rate import FixedRateLoop
from pkm_control.loop.follower import TrajectoryFollower
from pkm_control.loop.modes import Mode, Outcome
from pkm_control.loop.motion import Action, Motion, Tolerances
from pkm_control.loop.rehearsal import rehearse
from pkm_control.motion.limits import ActuatorLimits
from pkm_control.motion.path_events import Effects, OutputEvent
from pkm_control.operation.answer import Answer
from pkm_control.operation.controls import Controls
from pkm_control.operation.goal_desk import Application, GoalDesk
from pkm_control.operation.motion_points import MotionPoints
from pkm_control.operation.operator import Operator
from pkm_control.run import main_job
from pkm_control.run.simulate_options import Setup
from pkm_control.run.simulated_robot import build_robot
from pkm_control.space.keep_out_file import read_keep_outs
from pkm_description.mechanism import Inertial, Mechanism
from pkm_kinematics.kernels.compiled_rotations import displacement_between

Array = NDArray[np.float64]

_SILENCE = 20  # periods without a command after which the simulated machine closes its brakes, as over ROS
_LOOK = 0.002  # s, between two looks at the desk
_HAND_OVER = 0.005  # s, that the loop waits for who waited for this instant
_END = 5.0  # s, for the loop to end
_NONE = np.full(7, np.nan)


class SimulatedGoal:
    """A motion at the desk of the loop in this process."""

    def __init__(self, application: Application, desk: GoalDesk) -> None:
        self.application = application
        self.over = threading.Event()
        self._desk = desk

    @property
    def share(self) -> float:
        """How much of the motion is done, 0 to 1."""
        motion = self.application.motion
        if motion is None:
            return 0.0
        return motion.elapsed / motion.trajectory.duration if motion.trajectory.duration > 0.0 else 1.0

    def wait_begun(self) -> bool:
        """Wait until it is admitted, or refused; return which."""
        while not self.application.done and not self.over.wait(_LOOK):
            pass
        return self.application.motion is not None

    def wait(self) -> Result:
        """Wait for its end."""
        self.over.wait()
        motion = self.application.motion
        if motion is not None:
            return _result_of(motion)
        outcome = Outcome.PREEMPTED if self.application.withdrawn else Outcome.INVALID_GOAL
        return Result(outcome, self.application.problem)

    def cancel(self) -> None:
        """Have it end on its path, or not begin at all."""
        self._desk.withdraw(self.application)


class SimulatedBackend:
    """The main job's robot under a follower, whose loop runs in a thread of this process.

    In real time the loop keeps its rate; what the computer stalls, the simulated machine stalls too. Else it keeps it
    only while nobody waits: where somebody does and something moves, periods follow each other as fast as they can.

    Args:
        mechanism: the robot.
        setup: what it is like. A natural frequency that the rate does not carry is lowered.
        realtime: its time passes as the clock's.

    Raises:
        PkmError: it cannot be controlled.
        ValueError: a number makes no sense.
    """

    def __init__(self, mechanism: Mechanism, setup: Setup, realtime: bool) -> None:
        if setup.controller != POSITION:
            setup = replace(setup, natural_frequency=min(setup.natural_frequency, setup.highest_frequency))
        self.mechanism = mechanism
        self._realtime = realtime
        self._rate = setup.rate
        self.conveyors = {one.name: one for one in read_conveyors(setup.conveyor_file)}
        self.drives = {name: SimulatedBelt(one) for name, one in self.conveyors.items()}
        self._robot = build_robot(mechanism, setup)
        rehearse(self._new_follower(setup), self._robot.kinematics)
        self._robot = build_robot(mechanism, setup)  # what was rehearsed with has learned from it
        follower = self._new_follower(setup)
        self._controls = Controls(follower=follower)
        self.on_output: Callable[[str, float], None] = lambda *_: None
        self._load = follower.effects.on_payload
        follower.effects.on_output, follower.effects.on_payload = self._set_output, self._carry
        self._desk = GoalDesk(self._controls)
        self._operator = Operator(self._controls)
        if isinstance(self._robot.machine, SimulatedMachine):
            self._robot.machine.command_timeout = _SILENCE / setup.rate
        self._robot.start()
        self._goals: list[SimulatedGoal] = []
        self._passed = threading.Condition()
        self._awaited: list[float] = []  # s of the machine's time: until then somebody waits
        self._waiting = 0  # who waits for the end of what moves
        self._closing = False
        self._failure: BaseException | None = None
        self._period()
        self._thread = threading.Thread(target=self._run, name="robot", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def _new_follower(self, setup: Setup) -> TrajectoryFollower:
        robot = self._robot
        lead, space = (0.5 + setup.delay) / setup.rate, read_keep_outs(setup.keep_out_file)
        belts = {name: Belt(one) for name, one in self.conveyors.items()}
        return TrajectoryFollower(robot.kinematics, robot.controller, robot.guard, lead, space=space, belts=belts)

    def _set_output(self, event: OutputEvent) -> None:
        changes = self._robot.machine.outputs.get(event.name) != event.value
        self._robot.machine.set_output(event.name, event.value)
        if changes:
            self.on_output(event.name, event.value)

    def _carry(self, payload: Inertial | None) -> None:
        self._load(payload)
        self._robot.machine.carry(payload)

    # -- the contract -----------------------------------------------------------------------------------------------

    @property
    def limits(self) -> ActuatorLimits:
        """Of the actuators."""
        return self._robot.limits

    @property
    def time(self) -> float:
        """That of the machine [s]."""
        return self._robot.machine.time

    @property
    def outputs(self) -> dict[str, float]:
        """What motions have set the outputs to, by name."""
        with self._controls.lock:
            return dict(self._effects.outputs)

    @property
    def payload(self) -> Inertial | None:
        """What the controller knows the platform to carry."""
        return self._effects.payload

    @property
    def _effects(self) -> Effects:
        assert self._controls.follower is not None
        return self._controls.follower.effects

    def state(self) -> RobotState:
        """One look at it, after a period that began after the call."""
        self.wait(1.5 / self._rate)
        action, follower = self._controls.action, self._controls.follower
        assert action is not None
        assert follower is not None
        return _state_of(action, self._robot.limits.names, follower.controller.commands)

    def belt(self, name: str) -> tuple[Conveyor, BeltState]:
        """A conveyor, and where it is."""
        self._require_alive()
        conveyor = conveyor_named(self.conveyors, name)
        with self._controls.lock:
            follower = self._controls.ready()
            return conveyor, follower.belts[name].state(follower.time)

    def begin(self, motion: MotionPoints, tolerances: Tolerances) -> SimulatedGoal:
        """Hand a motion to the desk."""
        self._require_alive()
        goal = SimulatedGoal(Application(lambda: motion, tolerances), self._desk)
        self._desk.apply(goal.application)
        with self._controls.lock:
            self._goals.append(goal)
        return goal

    def steer(self, twist: Array) -> Answer:
        """Jog at a twist (6,) for a quarter of a second."""
        self._require_alive()
        return self._operator.steer(twist, self._robot.machine.time)

    def pause(self) -> Answer:
        """Halt on the path."""
        self._require_alive()
        return self._operator.pause()

    def resume(self) -> Answer:
        """Go on with what was halted."""
        self._require_alive()
        return self._operator.resume()

    def stop(self) -> Answer:
        """End whatever moves, and hold."""
        self._require_alive()
        return self._operator.stop()

    def recover(self) -> Answer:
        """Lead the robot out of a stop."""
        self._require_alive()
        return self._operator.recover()

    def change_working_mode(self, label: str) -> Answer:
        """Begin to go to the working mode of a label, or go on with it."""
        self._require_alive()
        return self._operator.change_working_mode(label)

    def set_speed(self, fraction: float) -> Answer:
        """Run motions at a fraction of their planned speed."""
        self._require_alive()
        return self._operator.set_speed(fraction)

    def wait(self, seconds: float) -> None:
        """Let time pass on the machine's clock."""
        with self._passed:
            until = self._robot.machine.time + seconds
            self._awaited.append(until)
            self._passed.wait_for(lambda: self._robot.machine.time >= until or not self._alive)
            self._awaited.remove(until)
        self._require_alive()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Within it, somebody waits for the robot."""
        with self._passed:
            self._waiting += 1
        try:
            yield
        finally:
            with self._passed:
                self._waiting -= 1

    def close(self) -> None:
        """End the loop; what runs is lost."""
        if self._closing:
            return
        self._closing = True
        atexit.unregister(self.close)
        self._thread.join(_END)
        self._desk.close()
        with self._controls.lock:
            if self._controls.follower is not None:
                self._controls.follower.end(Outcome.STATE_LOST, "the robot was closed")
            self._robot.stop()
            self._tell()

    # -- the loop ---------------------------------------------------------------------------------------------------

    @property
    def _alive(self) -> bool:
        return not self._closing and self._failure is None

    def _require_alive(self) -> None:
        if self._failure is not None:
            raise NoRobotError(f"the loop of the robot has failed: {self._failure!r}") from self._failure
        if self._closing:
            raise NoRobotError("the robot was closed")

    def _run(self) -> None:
        loop = FixedRateLoop(self._rate)
        loop.restart()
        hurried, most = False, max(1, round(main_job.CATCH_UP * self._rate))
        try:
            while not self._closing:
                hurry = self._hurries()
                if hurried and not hurry:
                    loop.restart()
                hurried = hurry
                self._period(1 if hurry else min(loop.wait(), most))
        except BaseException as error:  # whoever asks next hears of it
            self._failure = error
            with self._passed:
                self._passed.notify_all()
            with self._controls.lock:
                if self._controls.follower is not None:
                    self._controls.follower.end(Outcome.STATE_LOST, f"the loop of the robot has failed: {error!r}")
                self._tell()

    def _hurries(self) -> bool:
        """Whether the next period may begin at once."""
        if self._realtime:
            return False
        follower = self._controls.follower
        moving = self._waiting > 0 and follower is not None and follower.moving
        return moving or bool(self._awaited)

    def _period(self, periods: int = 1) -> None:
        machine = self._robot.machine
        with self._controls.lock:
            follower = self._controls.follower
            assert follower is not None
            state, now = machine.read(), machine.time
            if machine.lifecycle is Lifecycle.FAULT:
                action = follower.silent(now, machine.fault)
            else:
                if state.wrench is not None:
                    follower.force.hear(state.wrench, now)
                for name, drive in self.drives.items():
                    drive.step(now, follower.belts[name])
                action = follower.update(now, now, state.positions, state.velocities)
            self._controls.action = action
            if not action.gives_up and action.mode is not Mode.WAITING and machine.lifecycle is Lifecycle.ACTIVE:
                machine.write(action.command)
            if self._goals:
                self._tell()
        machine.step(periods / self._rate)
        if self._awaited and machine.time >= min(self._awaited, default=0.0):
            with self._passed:
                self._passed.notify_all()
                self._passed.wait_for(lambda: not self._awaited or machine.time < min(self._awaited), _HAND_OVER)

    def _tell(self) -> None:
        """Tell who waits for goals that are over."""
        for goal in self._goals:
            if goal.application.over:
                goal.over.set()
        self._goals = [goal for goal in self._goals if not goal.over.is_set()]


def _result_of(motion: Motion) -> Result:
    assert motion.outcome is not None
    rms, largest = motion.rms, motion.largest
    return Result(motion.outcome, motion.reason, float(rms[0]), float(largest[0]), float(rms[1]), float(largest[1]))


def _state_of(action: Action, names: tuple[str, ...], commands: str) -> RobotState:
    pose, twist, reference, error = _NONE, _NONE[:6], _NONE, _NONE[:6]
    positions = velocities = np.full(len(names), np.nan)
    if action.measured is not None and action.mode is not Mode.STOPPED:
        pose, twist = action.measured.pose.copy(), action.measured.twist.copy()
        positions, velocities = action.measured.positions, action.measured.velocities
    if action.measured is not None and action.reference is not None and action.mode is not Mode.STOPPED:
        reference = action.reference.pose.copy()
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
        efforts=dict(zip(names, action.command.tolist(), strict=True)) if commands == "effort" else {},
    )
