# SPDX-License-Identifier: Apache-2.0
"""The one control loop: a machine and the follower that commands it, in one thread, without ROS.

One period is: read the drives, observe the platform, compute the law, guard its command, write it, and let the period
pass. The loop also owns the power of the drives. They are off until `enable`, and off after whatever ends or fails.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from pkm_control.controllers.controller import Controller
from pkm_control.keep_out import KeepOuts
from pkm_control.loop.followed_motion import Action, Motion
from pkm_control.loop.follower import TrajectoryFollower
from pkm_control.loop.follower_watches import MachineWatch
from pkm_control.loop.guard import cause_of, guard_of
from pkm_control.loop_settings import STALE_PERIODS
from pkm_control.motion.path_events import OutputEvent, PathEventError
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_control.operator_interface import Mode, Outcome
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.actuator_dynamics import ActuatorDynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.machine import EMERGENCY_STOP, NO_FAULT, Lifecycle, Machine, MachineState
from pkm_kinematics import Kinematics
from pkm_runtime.errors import PkmError
from pkm_runtime.fixed_rate import FixedRateLoop

_COMES_TO_REST = 2.0  # s, for a platform that moves when its drives are enabled, or seems to by noise
CATCH_UP = 0.002  # s that a simulated machine moves on at most while the loop is late


@dataclass(frozen=True, eq=False)
class Period:
    """What one control period saw and did."""

    state: MachineState
    action: Action


class ControlLoop:
    """A machine and its follower, both at `rate` [Hz], in one thread. Any exception in a period is a fault of the
    machine: brakes closed, drives off, and the text says why. A reading that is older than the guard allows counts as
    none. Requests return why not, empty where they succeed.
    """

    def __init__(self, machine: Machine, follower: TrajectoryFollower, rate: float) -> None:
        self.machine = machine
        self.follower = follower
        self.rate = rate
        self.last: Period | None = None
        self.stops = 0  # how often it was stopped, or its drives turned off
        self.went_off = -math.inf  # s, monotonic clock: when its drives were last known to go off
        self.on_output: Callable[[OutputEvent], None] = lambda _: None
        self.on_payload: Callable[[Inertial | None], None] = lambda _: None
        self.before_period: Callable[[float], None] = lambda _: None  # gets machine time [s]; for other inputs
        self._load = follower.effects.on_payload
        if not machine.elsewhere:
            follower.machine = MachineWatch(beside=True)
        self._known_lifecycle: Lifecycle | None = None  # what the follower knows of the machine's life cycle
        self._read = math.nan  # s: when the last reading was taken
        self.began = 0.0  # s: the machine's time when the last period began
        self._came = -math.inf  # s, of machine time: when it came
        follower.effects.on_output, follower.effects.on_payload = self._set_output, self._carry

    @classmethod
    def of(
        cls, machine: Machine, controller: Controller, rate: float, delay: float = 0.0, space: KeepOuts | None = None
    ) -> ControlLoop:
        """A loop around a law, with a guard that falls back on gravity; `rate` of machine and law [Hz] > 0. `delay`
        [periods]: from a reading to the beginning of the time in which its command acts; `space`: keep-out volumes.
        """
        if not (math.isfinite(rate) and rate > 0.0):
            raise ValueError(f"rate is {rate} Hz; give a number greater than zero")
        guard = guard_of(controller.commands, machine.limits, STALE_PERIODS / rate, controller.weight)
        follower = TrajectoryFollower(controller.kinematics, controller, guard, (0.5 + delay) / rate, space=space)
        return cls(machine, follower, rate)

    @property
    def kinematics(self) -> Kinematics:
        """Of the robot."""
        return self.follower.controller.kinematics

    @property
    def dynamics(self) -> Dynamics:
        """Of the robot."""
        return self.follower.controller.dynamics

    @property
    def limits(self) -> ActuatorLimits:
        """Of the machine's actuators."""
        return self.machine.limits

    @property
    def controller(self) -> Controller:
        """The law."""
        return self.follower.controller

    # Power of the drives

    def configure(self) -> str:
        """Connect the machine: inactive, drives off."""
        self.machine.configure()
        self._begin_anew()
        return self.machine.fault

    def enable(self) -> str:
        """Enable the drives; the platform is held at its pose. They stay off where they stand in another mode."""
        problem = self._misplaced or self.machine.enable()
        self._tell_follower()
        return problem

    @property
    def _misplaced(self) -> str:
        """Why real drives that are off stand where the platform could not be held; empty where nothing tells so."""
        machine, positions = self.machine, self.machine.read().positions
        if not (machine.real and machine.readable) or machine.lifecycle is not Lifecycle.INACTIVE or machine.misread:
            return ""
        problem = self.follower.locator.problem_at(positions, self.follower.check.mode)
        if not problem:
            return ""
        home = self.kinematics.inverse(self.kinematics.home).actuated
        rows = zip(self.limits.names, self.limits.length_units, positions, home, strict=True)
        places = ", ".join(f"{name} at {at:.4g} {unit} (at home {there:.4g})" for name, unit, at, there in rows)
        wrong = "is an `offset`, `sign` or `gear` in the machine's file wrong?"
        return f"{problem}. The drives stay off: {places}; {wrong}"

    def disable(self, reason: str = "the drives were disabled") -> str:
        """Disable the drives; what moves ends at once. Returns a warning where a drive may still be on."""
        self.machine.deactivate()
        self._drives_off(reason)
        return self.machine.drives_may_be_on

    def emergency_stop(self, reason: str = EMERGENCY_STOP) -> str:
        """Disable the drives at once, until `reset`; a warning where a drive may still be on."""
        self.machine.emergency_stop(reason)
        self._drives_off(reason)
        return self.machine.drives_may_be_on

    def reset(self) -> str:
        """Lead the machine out of a fault: inactive, drives off; refused while they are on."""
        problem = self.machine.reset_off()
        if problem != NO_FAULT:
            self._begin_anew()
        return problem

    def _begin_anew(self) -> None:
        self._read = math.nan
        self.follower.restart()
        self._tell_follower()

    def shut_down(self, reason: str = "the robot was switched off") -> str:
        """Disable the drives and close the line in any state; a warning where a drive may still be on."""
        self.follower.end(Outcome.STATE_LOST, reason)
        return self.machine.shut_down()

    def _drives_off(self, reason: str) -> None:
        """Tell the follower that the drives were disabled; no earlier request moves them again."""
        self._note_off()
        self.follower.drives_off(reason)
        self._tell_follower()

    def _note_off(self) -> None:
        self.stops += 1
        self.went_off = time.monotonic()

    def _tell_follower(self) -> None:
        life = self.machine.lifecycle
        if life is self._known_lifecycle or self.machine.elsewhere:
            return
        self._known_lifecycle = life
        self.follower.machine.hear(life.value)
        if life is Lifecycle.FAULT:
            self._note_off()
            self.follower.drives_off(self.machine.fault)

    # One period

    @property
    def fault(self) -> str:
        """Why nothing moves; empty while all is well."""
        action = self.last.action if self.last is not None else None
        return self.machine.fault or (action.reason if action is not None and action.mode is Mode.STOPPED else "")

    def period(self, periods: int = 1) -> Period:
        """Do one control period; `periods` pass on the clock, of which a simulated machine catches up `CATCH_UP`."""
        self.began = self.machine.time
        try:
            done = self._control()
            self.machine.withheld = cause_of(done.action.reason) if done.action.withhold_command else ""
            if not self.machine.real:
                periods = min(periods, max(1, round(CATCH_UP * self.rate)))
            self.machine.step(periods / self.rate)
        except Exception as error:
            done = self._failed(error)
        if self.machine.repeated and done.action.withhold_command:
            self._part(done.action)
        self._tell_follower()
        self.last, self.follower.reason = done, done.action.reason
        return done

    def _control(self) -> Period:
        machine, follower, now = self.machine, self.follower, self.machine.time
        self.before_period(now)
        state = machine.read()
        if state.wrench is not None:
            follower.force.hear(state.wrench, now)
        if machine.fault or not machine.readable:
            reason = machine.fault or machine.notice or f"the machine is {machine.lifecycle.value}"
            action = replace(follower.silent(now, reason), reason=reason, withhold_command=True)  # its drives are off
        elif state.time != self._read:
            self._read, self._came = state.time, now
            action = follower.update(state.time, now, state.positions, state.velocities)
        elif now - self._came > follower.guard.max_age or self.last is None:
            action = follower.silent(now)
            if missing := machine.missing:
                action = replace(action, reason=f"{missing}: {action.reason}")
        else:
            action = follower.between(now, self.last.action)
        if machine.lifecycle is Lifecycle.ACTIVE and not action.withhold_command and action.mode is not Mode.WAITING:
            machine.write(action.command)
        return Period(state, action)

    def _failed(self, error: Exception) -> Period:
        reason = f"the control loop failed: {type(error).__name__}: {error}"
        if not self.machine.fault:
            self.machine.emergency_stop(reason)
        self._drives_off(reason)
        self.follower.mode = Mode.STOPPED
        nothing = np.zeros(len(self.limits.names))
        state = self.machine.read() if self.last is None else self.last.state
        return Period(state, Action(Mode.STOPPED, nothing, reason, withhold_command=True))

    def _part(self, action: Action) -> None:
        """Leave efforts that carry the weight and no more, for they act until the brakes close. What the law asked for
        last would go on to act: of a platform that strays, all that the drives can give.
        """
        before = None if self.last is None else self.last.action
        follower, guard = self.follower, self.follower.guard
        if (
            before is None
            or before.withhold_command
            or before.measured is None
            or follower.controller.commands != "effort"
        ):
            return
        pose, weight = (action.measured or before.measured).pose, np.zeros(len(self.limits.names))
        with suppress(PkmError, FloatingPointError, np.linalg.LinAlgError):
            found = weight if guard.gravity is None else guard.gravity(pose)
            weight = found if np.isfinite(found).all() else weight
        self.machine.write(guard.within(weight))

    # What motions do besides moving

    def _set_output(self, event: OutputEvent) -> None:
        self.machine.set_output(event.name, event.value)
        self.on_output(event)

    def _carry(self, payload: Inertial | None) -> None:
        self._load(payload)
        self.machine.carry(payload)
        self.on_payload(payload)

    def require_outputs(self, names: tuple[str, ...]) -> None:
        """Refuse outputs that the machine does not have: PathEventError for the first that cannot be set."""
        for problem in (self.machine.output_problem(name) for name in names):
            if problem:
                raise PathEventError(problem)


def switch_on(loop: ControlLoop) -> None:
    """Connect a machine that stands at home, enable its drives, hold the platform; PkmError: drives are off then."""
    for problem in (loop.configure(), loop.enable()):
        if problem:
            raise PkmError(problem)
    hold(loop)


def hold(loop: ControlLoop, pace: FixedRateLoop | None = None) -> None:
    """Run periods until the platform is held; PkmError, drives off, where it is not within `_COMES_TO_REST`."""
    for k in range(STALE_PERIODS + round(_COMES_TO_REST * loop.rate)):
        loop.period(pace.wait() if pace is not None else 1)
        if loop.follower.mode is Mode.HOLDING:
            return
        if k >= STALE_PERIODS and loop.follower.mode is not Mode.JOGGING:  # it is not being brought to rest
            break
    fault = loop.fault or loop.machine.notice or "the machine does not tell where it is"
    loop.disable()
    raise PkmError(fault)


def warm_up(follower: TrajectoryFollower, kinematics: Kinematics) -> None:
    """Warm up a follower that serves nothing else, at home and at rest, with a controller and a guard of its own."""
    home, still = np.tile(kinematics.home, (2, 1)), np.zeros((2, 6))
    positions = np.asarray(kinematics.inverse(home).actuated[0], dtype=np.float64)
    rates = np.zeros_like(positions)
    follower.force.hear(np.zeros(6), math.inf)  # as long as it lasts
    follower.update(0.0, 0.0, positions, rates)
    motion = Motion(PointTrajectory(np.array((0.0, 0.1)), home, still, still), 0.0)
    follower.check.refusal(motion.trajectory)
    follower.check.braking(motion.trajectory)
    follower.follow(motion)
    follower.effects.on_payload(Inertial(1e-9))
    for at in np.arange(0.0, 0.2, 0.01):
        follower.update(float(at), float(at), positions, rates)
    follower.effects.on_payload(None)
    kinematics.nearest(home[0])  # what poses that cannot be reached take
    for at in np.arange(0.2, 0.3, 0.01):
        follower.steer(np.full(6, 1e-6), float(at))
        follower.update(float(at), float(at), positions, rates)
    if len(positions) == kinematics.mobility and kinematics.constant_space:
        ActuatorDynamics(follower.controller.dynamics).forward_jacobian()  # what a change of the working mode takes
    follower.silent(0.3 + 2.0 * follower.abort_after)
