# SPDX-License-Identifier: Apache-2.0
"""From reading to reading: hold, follow a motion or an operator, stop without readings."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pkm_control.controllers.controller import Controller, Measured, Reference
from pkm_control.conveyor.belt import Belt
from pkm_control.conveyor.riding import Passenger, RidingTrajectory
from pkm_control.loop.assembly_watch import CROSSED, AssemblyWatch
from pkm_control.loop.followed_motion import Action, Motion
from pkm_control.loop.follower_watches import ForceWatch, MachineWatch, StrayWatch
from pkm_control.loop.guard import Guard
from pkm_control.loop.jogging import Jog
from pkm_control.loop.mode_change import InMode, ModeChange
from pkm_control.loop.modes import Mode, Outcome, unready_to_jog
from pkm_control.loop.path_clock import PathClock
from pkm_control.loop.platform_observer import PlatformObserver
from pkm_control.motion.curve_check import MOVING, CurveCheck
from pkm_control.motion.path_events import Effects
from pkm_control.space.keep_out import KeepOuts
from pkm_description.mechanism import Inertial
from pkm_description.rotations import pose_distance
from pkm_hardware.reading_watch import ReadingWatch
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.short_vectors import separation
from pkm_runtime.errors import PkmError

Array = NDArray[np.float64]

_CLOCK_SLACK = 0.05  # s, by which the clock of the readings may differ from that of their arrival, in one period
_SLOWEST = 1e-4  # of a plan: a motion that takes longer is meant to halt
_BACK = 1e-3  # of the robot's size: nearer than this to its path the platform is back
_NEAR = 0.2  # rad, and of the characteristic length: so near to home a platform is that was led there by hand
_FAR = 0.05  # rad, and of the characteristic length: by so much more than errors differ the actuators of two modes
CHANGING = "the robot is changing its working mode"
HALTED = "the robot was halted on the way to another working mode: change to that one, or back, first"
WERE_OFF = "the drives were turned off"
OTHER_MODE = (
    "the robot is not in the working mode of the controller, as where a limb was stretched through a singularity of "
    "type 1: its drives do not lead it back from there, it must be led back by hand and then recovered"
)
NOT_HOME = "near home alone its mode is known again, and it is not there: it must be led home by hand"


class TrajectoryFollower:
    """A controller with its guard: one call for each reading, one when readings are missing.

    Readings carry their time [s], on whose clock motions run, at the speed override. When readings come back after a
    silence, and the law can lead the platform to its reference within what the drives can do, the motion goes on where
    it was. Otherwise the platform is caught: it is brought to rest from its measured pose and twist, and held; a motion
    is paused meanwhile, and goes on after a way back to its path, unless the silence was so long that it is lost. A
    clock of the readings that jumps moves nothing: time then advances by the interval between their arrivals.

    Operator requests return an empty text where they succeed, else the reason why not:

    * `pause` halts the motion on its path, `resume` goes on with it; where the platform was jogged away meanwhile, it
      first moves back to the path. A pause holds until it is resumed or stopped, whether or not goals come.
    * `stop` ends motions and jogs by a deceleration on their way, then holds.
    * A law that needs a force-torque sensor gets its readings by `force.hear`. Where they cease, a motion is ended by a
      deceleration on its way under position control, and at rest nothing is sent any more (stop category 1), until
      readings come again: then the platform is held where it is found.
    * Jogs are for a platform that holds, or is paused and at rest.
    * `effects` has the effects of a motion besides moving; its `on_output` may be set.
    * `begin_change` goes to another working mode (`ModeChange`). A pause or a stop halts it on its way, `resume` goes
      on; motions and jogs wait for its end.
    * A motion on a moving frame is ended by a deceleration on its way where its belt departs from the prediction, and
      by a pause or a lower speed override: a belt does not wait.

    Args:
        lead: from a reading to the middle of the time in which its efforts act [s]: half a period where they are
            applied at once, one period more where they take effect in the next. The acceleration is that of then.
        abort_after: silence of the readings that loses the motion [s].
        space: keep-out volumes of the tool.
        belts: that motions may ride on, by name.
        following_error: distance from the reference [m] at which the platform is lost; 0: see `StrayWatch`.
    """

    def __init__(
        self,
        kinematics: Kinematics,
        controller: Controller,
        guard: Guard,
        lead: float,
        abort_after: float = 1.0,
        space: KeepOuts | None = None,
        belts: Mapping[str, Belt] | None = None,
        following_error: float = 0.0,
    ) -> None:
        self.controller = controller
        self.guard = guard
        self.lead = lead
        self.abort_after = abort_after
        self.motion: Motion | None = None
        self.mode = Mode.WAITING
        self.override = 1.0
        self.time = 0.0  # s: of the last reading, on the clock of the readings
        self.check = CurveCheck(kinematics, controller.dynamics, controller.limits, space=space)
        self.jog = Jog(self.check)
        self.force = ForceWatch(controller, guard.max_age)
        self.belts = dict(belts or {})
        self.machine = MachineWatch()
        self.stray = StrayWatch(kinematics.characteristic_length, following_error)
        self.assembly = AssemblyWatch(kinematics)
        self._readings = ReadingWatch(controller.limits)
        self.effects = Effects(on_payload=self._load)
        self._observer = PlatformObserver(kinematics)
        self._clock = PathClock()
        self._hold: Array | None = None
        self._heard = -math.inf
        self._last: Action | None = None
        self._border = ""  # why the last jog ended, where that was not its own end
        self._rejected_reason = ""  # why readings were not believed for so long that nothing goes on
        self._overtime = 0.0  # s, since the motion's end on its path
        self._paused = False
        self._stopping = ""  # why the motion is being ended on its path
        self._passenger: Passenger | None = None  # the motion, where it rides on a belt
        self._left_behind = False  # it is being ended because its belt is not as predicted
        self._jogging = False
        self._caught = ""  # why the platform is being brought to rest from where it was found
        self._goes_on = False  # after that, on with the motion
        self._let_go = False  # it strayed, or cannot be told where it is
        self._from_home = False  # its assembly mode is known again where it is near home
        self._asked = -math.inf  # s, clock of the caller: when anything was last asked
        self._out_of_touch = False  # nothing was asked for so long that the platform may be anywhere
        self._unseen: float | None = None  # s, clock of the caller: until when it came to rest without readings
        self._aside = False  # the platform was jogged away from the path of the paused motion
        self._returning = False  # it is on its way back there
        self._change: ModeChange | None = None
        self._gravity = guard.gravity  # in the mode that a change comes from

    # -- motions ----------------------------------------------------------------------------------------------------

    def follow(self, motion: Motion) -> None:
        """Follow a motion from now on; its `outcome` tells how it ends. A motion under way ends as preempted."""
        self.end(Outcome.PREEMPTED, "another motion took over")
        self._jogging, self._border = False, ""
        self.motion = motion
        trajectory = motion.trajectory
        self.effects.begin(motion.events, trajectory.cycle, round(trajectory.duration / max(trajectory.cycle, 1e-9)))
        self._clock = PathClock(self.time - motion.start, self.override, motion.braking)
        if isinstance(motion.trajectory, RidingTrajectory):
            self._passenger = Passenger(motion.trajectory, self.belts[motion.trajectory.ride.frame])
        self._overtime = 0.0

    def drives_off(self, reason: str) -> None:
        """End at once what moves, because the drives do not follow any more. A change of the working mode is halted:
        the robot is between two modes, and is held there once drives are on, until somebody chooses one of them.
        """
        self.end(Outcome.STATE_LOST, reason)
        if self._change is not None:
            self._change.hold_here(WERE_OFF)

    def end(self, outcome: Outcome, reason: str = "") -> None:
        """End the motion under way at once, if any; the platform holds at its reference."""
        if self.motion is None:
            return
        self.motion.outcome, self.motion.reason = outcome, reason
        self.motion = self._passenger = None
        self.effects.end()
        self._paused = self._aside = self._returning = self._goes_on = False
        self._stopping, self._left_behind = "", False

    @property
    def moving(self) -> bool:
        """Whether the reference moves, or is about to."""
        if self._change is not None:
            return not self._change.resting
        return self._jogging or (self.motion is not None and not self.resting)

    @property
    def paused(self) -> bool:
        """Whether a pause was requested and not ended."""
        return self._paused if self._change is None else self._change.halted

    @property
    def change(self) -> ModeChange | None:
        """The change of the working mode that is under way, or halted on its way."""
        return self._change

    @property
    def hold(self) -> Array:
        """Pose (7,) that is held at rest; PkmError where no reading has come yet."""
        if self._hold is None:
            raise PkmError("no measured state yet")
        return self._hold

    @property
    def known_hold(self) -> Array | None:
        """The same; None where no reading has come yet."""
        return self._hold

    @property
    def resting(self) -> bool:
        """Whether a motion is halted on its path."""
        return self.motion is not None and self._clock.at_rest and self._clock.wanted == 0.0 and not self._jogging

    @property
    def speed(self) -> float:
        """Present fraction of the planned speed."""
        if self._change is not None:
            return self._change.rate
        return self.override if self.motion is None else self._clock.rate

    # -- what an operator asks for ----------------------------------------------------------------------------------

    def set_override(self, fraction: float) -> str:
        """Run motions at a fraction (0 to 1) of their planned speed."""
        if not 0.0 <= fraction <= 1.0:
            return f"the fraction is {fraction:g}; give a number from 0 to 1"
        if 0.0 < fraction < _SLOWEST:
            return f"the fraction is {fraction:g}; the slowest is {_SLOWEST:g}, and 0 halts"
        self.override = abs(float(fraction))  # which -0.0 is not
        if self._passenger is not None and fraction < 1.0 and not self._stopping:
            self.stop("its speed was lowered, and a conveyor waits for nobody")
        self._set_pace()
        return ""

    def pause(self) -> str:
        """Halt the motion on its path."""
        if self._change is not None:
            self._change.pause()
            return ""
        if self._goes_on:
            self._goes_on = False  # it stays paused
            return ""
        if self._jogging:
            return "the platform is being jogged, which a stop ends"
        if self.motion is None:
            return "no motion runs"
        if self._stopping:
            return "the motion is being stopped"
        if self._passenger is not None:
            return self.stop("paused on a moving frame, which waits for nobody")
        self._paused = True
        self._set_pace()
        return ""

    def resume(self) -> str:
        """Go on with the motion that is paused."""
        if self._change is not None:
            return self._change.resume(self.override)
        if self.motion is None or not self._paused:
            return "nothing is paused"
        if self._stopping:
            return "the motion is being stopped"
        if self._caught:
            self._goes_on = True
            return ""
        if self._jogging:
            return "the platform is being jogged"
        if self._aside:
            problem = self.jog_to(self.motion.trajectory.at(max(self._clock.time, 0.0)).pose)
            self._returning = not problem
            return problem
        self._paused = False
        self._set_pace()
        if self.override == 0.0:
            return "the speed override is 0: raise it to go on"
        return ""

    def stop(self, reason: str = "stopped") -> str:
        """Decelerate on the way, then hold; `reason` is for the outcome of the motion."""
        if self._change is not None:
            return self.pause()
        if not self._jogging and self.motion is None:
            return "nothing moves"
        self._returning = False
        if self._jogging:
            self.jog.release()
        if self.motion is None:
            return ""
        if self._clock.time < 0.0 or self._aside or self._clock.at_rest:
            self.end(Outcome.PREEMPTED, reason)
            return ""
        self._stopping = reason
        self._set_pace()
        return ""

    def steer(self, twist: Array, now: float) -> str:
        """Jog at a twist (6,) [m/s, rad/s], base axes, for a short time; `now` [s] on the caller's clock."""
        if not np.isfinite(twist).all():
            return "the twist is not finite"
        if not np.any(twist) and not self._jogging:
            return ""
        problem = self._unready_to_jog()
        if not problem:
            self._begin_jog()
            self.jog.steer(twist, now)
        return problem

    def jog_to(self, pose: Array, speed: float = 1.0) -> str:
        """Move to a pose (7,), base frame, from `Jog.nearest`, at a fraction of the usual jog speed."""
        problem = self._unready_to_jog()
        if problem:
            return problem
        self._begin_jog()
        try:
            self.jog.go_to(pose, speed)
        except PkmError as error:
            return str(error)
        return ""

    def _unready_to_jog(self) -> str:
        if self.mode in (Mode.WAITING, Mode.STOPPED):
            return unready_to_jog(self.mode)
        if self._change is not None:
            return HALTED if self._change.resting else CHANGING
        if self._returning:
            return "the platform is on its way back to its path"
        if self.motion is not None and not self._jogging and not (self._paused and self._clock.at_rest):
            return unready_to_jog(Mode.TRACKING)
        return ""

    def _begin_jog(self) -> None:
        assert self._hold is not None
        if not self._jogging:
            self.jog.start(self._hold)
        self._jogging, self._border = True, ""
        self._caught, self._goes_on = "", False
        self._aside = self.motion is not None

    def relocate(self) -> str:
        """Look for the platform anew with the next reading; what was lost is forgiven, but not a doubt.

        Returns:
            From where it is looked for, in words.
        """
        self.stray.reset()
        if self._change is None or not self._change.lost:
            return "the pose that was last followed"
        self._give_up_change()
        self._observer.forget(self.check.mode)
        self.assembly.doubt, self._from_home = CROSSED, True
        return "home"

    def place(self, pose: Array, joints: Array) -> None:
        """Take the next reading as one that goes on from a configuration, beyond doubt.

        Args:
            pose: of the platform (7,), base frame.
            joints: positions (n_joints,) there.
        """
        self._observer.start(pose, joints)
        self.assembly.forget()

    def restart(self) -> None:
        """Take the next reading as the first one, of a platform at home: the machine was contacted anew.

        After a doubt about its assembly mode it must be near home indeed.
        """
        self.relocate()
        self._observer.forget(self.check.mode)
        self._from_home = bool(self.assembly.doubt)
        self.end(Outcome.STATE_LOST, "the machine was contacted anew")
        self._readings = ReadingWatch(self.controller.limits)
        self._jogging, self._rejected_reason, self._border = False, "", ""
        self._caught, self._goes_on, self._let_go = "", False, False
        self._heard, self._asked, self._last, self._unseen = -math.inf, -math.inf, None, None
        self._out_of_touch = False
        self.mode = Mode.WAITING

    # -- working modes ----------------------------------------------------------------------------------------------

    def _apart(self, one: Array, other: Array) -> float:
        """Distance of two poses, of the robot's size."""
        size = self.controller.kinematics.engine.size
        return float(pose_distance(one, other, size)) / size

    def begin_change(self, change: ModeChange) -> str:
        """Begin a change of the working mode that was planned from the held pose."""
        if self.mode is not Mode.HOLDING or self._hold is None or self._change is not None:
            return f"the controller is {self.mode.name.lower()}; it must hold the platform"
        if self._apart(self._hold, change.way.pose) > _BACK:
            return "the platform was moved while a way was looked for"
        if self.controller.payload is not None:
            return "the platform carries a payload, with which no way to another working mode is looked for"
        if self.controller.commands != "effort":
            return f"a way to another working mode takes efforts, and this law commands a {self.controller.commands}"
        self._change, self._gravity = change, self.guard.gravity
        self.guard.gravity = lambda _: change.weight()
        change.set_pace(self.override)
        return ""

    def _load(self, payload: Inertial | None) -> None:
        """The payload changes from now on."""
        self.controller.load(payload)
        self.check.payload = payload

    def _take_mode(self, there: InMode) -> None:
        """Go on in the working mode that a change has led to."""
        self._change = None
        self.check, self.jog = there.check, there.jog
        self.check.payload = self.controller.payload
        self.controller.change_mode(there.model)
        self._observer.start(there.pose, there.joints)
        dynamics, mode = self.controller.dynamics, there.check.mode
        self.guard.gravity = lambda pose: np.asarray(
            dynamics.gravity(dynamics.kinematics.at(pose, mode=mode), payload=self.controller.payload).effort
        )
        self._hold = there.pose.copy()

    def _give_up_change(self) -> None:
        """Drop a change that has lost the robot's configuration."""
        self._change = None
        self.guard.gravity = self._gravity

    def _far_off(self, pose: Array, positions: Array, far: float) -> bool:
        """Whether actuators are further [rad, characteristic lengths] from those of the working mode at a pose."""
        k = self.controller.kinematics
        off = self.controller.model.positions(pose) - positions
        turning = k.engine.actuated_turning
        off = np.where(turning, np.remainder(off + np.pi, 2.0 * np.pi) - np.pi, off / k.characteristic_length)
        return not (np.abs(off) <= far).all()

    def _changing(self, change: ModeChange, time: float, now: float, positions: Array, velocities: Array) -> Action:
        """The action for a reading on the way to another working mode."""
        silence = now - self._heard
        if silence > self.abort_after:
            why = f"no usable reading for {silence:.3g} s" if math.isfinite(silence) else WERE_OFF
            change.hold_here(change.reason or why)
        step = change.step(self._passed(time, silence), self.lead, positions, velocities)
        if isinstance(step, str):
            if self._heard == -math.inf:  # the machine was contacted anew, and the robot is elsewhere
                self._give_up_change()
            return self.silent(now, step)
        self._heard, self.time = now, time
        verdict = self.guard.check(now, {"measured state": now}, step.efforts, step.measured.pose)
        idle = self.machine.problem(now)
        if problem := verdict.reason or idle:
            change.hold_here(verdict.reason or WERE_OFF)
            self.mode = Mode.WAITING if idle else Mode.STOPPED
            return Action(self.mode, verdict.command, problem, step.reference, step.measured, 0.0)
        self.mode = Mode.PAUSED if change.resting else Mode.TRACKING
        action = Action(self.mode, verdict.command, change.situation, step.reference, step.measured, change.rate)
        if change.done:
            self._take_mode(change.ends[1])
        return action

    def _set_pace(self) -> None:
        if self._change is not None:
            self._change.set_pace(self.override)
            return
        self._clock.wanted = 0.0 if self._paused or self._stopping else self.override

    # -- one period -------------------------------------------------------------------------------------------------

    def _stop_here(self, outcome: Outcome, reason: str, measured: Measured) -> None:
        """End the motion, and hold where the platform comes to rest rather than at the reference."""
        self.end(outcome, reason)
        self._catch(reason, measured)

    def _catch(self, reason: str, measured: Measured) -> None:
        """Bring the platform to rest from its measured pose and twist; a motion waits for that."""
        motion, goes_on = self.motion, not self._paused or self._goes_on
        if motion is not None and (self._passenger is not None or self._clock.time < 0.0):
            self.end(Outcome.STATE_LOST, reason)
        elif motion is not None and self._stopping:
            lost = self.force.lost or self._left_behind
            self.end(Outcome.STATE_LOST if lost else Outcome.PREEMPTED, self._stopping)
        elif motion is not None:
            self._clock = PathClock(self._clock.time, 0.0, motion.braking)
            self._paused = self._aside = True
            self._returning, self._goes_on = False, goes_on
        self._hold = measured.pose.copy()
        self.controller.forget()
        self.jog.catch(measured)
        self._border = ""
        self._jogging = self.motion is not None or not self.jog.at_rest
        self._caught = reason if self._jogging else ""

    def _out_of_hand(self, reference: Reference, measured: Measured) -> bool:
        """Whether leading the platform to its reference takes more than the drives can do."""
        controller = self.controller
        k, limits = controller.kinematics, controller.limits
        missed = np.abs(controller.model.positions(reference.pose) - measured.positions)
        missed = np.where(k.engine.joint_turning[k.engine.actuated_column], np.minimum(missed, 2.0 * np.pi), missed)
        pace = math.sqrt(controller.stiffness)
        speeds = missed * pace / math.e + np.abs(measured.velocities)
        if not (speeds <= MOVING * limits.velocity).all():
            return True
        controller.command(reference, measured)
        return bool(controller.saturated.any())

    def update(self, time: float, now: float, positions: Array, velocities: Array) -> Action:
        """The command for a reading, and the reason where it is not the controller's own.

        Args:
            time: of the reading [s], on the readings' clock; `now`: of its arrival [s], on the caller's clock.
            positions: of the actuators (n_actuated,) [rad or m].
            velocities: of the actuators (n_actuated,) [rad/s or m/s].
        """
        silence = now - self._heard
        self._out_of_touch |= now - self._asked > self.guard.max_age
        self._asked = now
        doubt = self._readings.check(positions, max(silence, min(time - self.time, self.abort_after)))
        if doubt:
            return self._rejected(now, silence, doubt)
        if self._change is not None:
            self._readings.accept(positions)
            return self._changing(self._change, time, now, positions, velocities)
        if self._from_home and not self._far_off(self.controller.kinematics.home, positions, _NEAR):
            self._from_home = False
            self._observer.forget(self.check.mode)
            self.assembly.forget()
        measured = self._observer.observe(positions, velocities)
        if measured is not None:
            self.assembly.judge(measured)
        elif self._observer.singular:
            self.assembly.lose(positions)
        if self.assembly.doubt and self.mode in (Mode.WAITING, Mode.STOPPED):
            return self._leave_alone(now, self.assembly.doubt + ("; " + NOT_HOME if self._from_home else ""))
        if measured is None:
            return self.silent(now, self._observer.reason)
        self._readings.accept(positions)
        self._out_of_touch = False
        self._last = self._believed(time, now, silence, measured)
        self.assembly.settle(min(max(silence, 0.0), self.guard.max_age), self.mode is Mode.HOLDING)
        return self._last

    def _rejected(self, now: float, silence: float, doubt: str) -> Action:
        """Go on as before for a reading that jumps; many of them count as a silence, after which nothing goes on."""
        if self._last is not None and silence <= self.guard.max_age:
            return self._last
        self._rejected_reason = doubt
        return self.silent(now, doubt)

    def _believed(self, time: float, now: float, silence: float, measured: Measured) -> Action:
        if self.mode in (Mode.WAITING, Mode.STOPPED) and self._far_off(measured.pose, measured.positions, _FAR):
            return self._leave_alone(now, OTHER_MODE)
        if silence > self.abort_after or self._rejected_reason:
            why = self._rejected_reason or f"no usable reading for {silence:.3g} s"
            self._stop_here(Outcome.STATE_LOST, why, measured)
            self._rejected_reason = ""
            self.machine.forget(now)
        passed = self._passed(time, silence)
        if self._unseen is not None:  # the reference has come to rest meanwhile
            passed, self._unseen = min(passed, max(now - self._unseen, 0.0)), None
        self._heard, self.time = now, time
        measured = self._felt(measured, now)
        if self._let_go and not self.stray.lost:
            self._let_go = False
            self._catch("the platform is found again", measured)
            passed = 0.0
        reference = self._reference(passed, now)
        if not self.controller.yields:  # a law that yields to forces leaves its reference as it should
            if silence > self.guard.max_age and math.isfinite(silence) and self._out_of_hand(reference, measured):
                self._catch(f"no usable reading for {silence:.3g} s", measured)
                reference = self._reference(0.0, now)
            self.stray.judge(*separation(measured.pose, reference.pose))
        if self.stray.lost:
            return self._strayed(reference, measured)
        self.controller.advance(passed)
        asked = self.controller.command(reference, measured)
        verdict = self.guard.check(now, {"measured state": now}, asked, measured.pose)
        if self.motion is not None and not self._aside:
            self._judge(self.motion, passed, reference, measured)
        idle = self.machine.problem(now)
        if reason := verdict.reason or idle:
            self._stop_here(Outcome.STATE_LOST, reason, measured)
            self.mode = Mode.WAITING if idle else Mode.STOPPED
        elif self._jogging:
            self.mode, reason = Mode.JOGGING, self.jog.blocked and f"it goes no further: {self.jog.blocked}"
            reason = f"{self._caught}: it comes to rest" if self._caught else reason
        elif self.motion is None:
            self.mode, reason = Mode.HOLDING, self._border
        else:
            self.mode = Mode.PAUSED if self.resting else Mode.TRACKING
        if self.force.lost and not self.moving and not reason:
            self.mode = Mode.STOPPED
            return Action(self.mode, verdict.command, self.force.lost, reference, measured, 0.0, withhold_command=True)
        return Action(self.mode, verdict.command, reason, reference, measured, self.speed, verdict.withhold_command)

    def _strayed(self, reference: Reference, measured: Measured) -> Action:
        """Give up a platform that has strayed; once it is located again, it is held at its measured pose."""
        if not self._let_go:
            self._stop_here(Outcome.PATH_TOLERANCE_VIOLATED, self.stray.lost, measured)
        self._let_go, self._jogging, self._hold = True, False, measured.pose.copy()
        self.mode = Mode.STOPPED
        nothing = np.zeros(len(self.controller.limits.names))
        return Action(self.mode, nothing, self.stray.lost, reference, measured, 0.0, withhold_command=True)

    def _leave_alone(self, now: float, reason: str) -> Action:
        """Send nothing to a platform whose efforts would be those of another place, and throw it."""
        self.end(Outcome.STATE_LOST, reason)
        self._let_go, self._jogging = True, False
        self.mode = Mode.WAITING if self.machine.problem(now) else Mode.STOPPED
        nothing = np.zeros(len(self.controller.limits.names))
        reasons = "; ".join(r for r in (self.stray.lost, reason) if r)
        return Action(self.mode, nothing, reasons, speed=0.0, withhold_command=True)

    def _felt(self, measured: Measured, now: float) -> Measured:
        """Add the wrench for force laws; where it is unknown, end what moves, and go on once it is known again."""
        lost = self.force.lost
        if lost and not self.moving and self.force.fresh(now):
            self.force.sensor_returned()
            self._stop_here(Outcome.STATE_LOST, lost, measured)
        measured = self.force.feel(measured, now)
        if self.force.lost and self.moving and not self._stopping:
            self.stop(self.force.lost)
        return measured

    def _passed(self, time: float, silence: float) -> float:
        """Time since the last usable reading, as far as anything may move for it [s]."""
        if not math.isfinite(silence):
            return 0.0
        passed = time - self.time
        if not 0.0 <= passed <= silence + _CLOCK_SLACK:
            passed = max(silence, 0.0)
        return min(passed, max(self.guard.max_age, _CLOCK_SLACK))

    def silent(self, now: float, reason: str = "") -> Action:
        """The guard's fallback without a usable reading; `now` [s] of the caller's clock, `reason` if not silence."""
        heard = None if self._heard == -math.inf else self._heard
        self._out_of_touch |= now - self._asked > self.guard.max_age
        self._asked = now
        verdict = self.guard.check(now, {"measured state": heard}, None, self._observer.pose)
        if heard is None:
            return Action(
                Mode.WAITING, verdict.command, reason or verdict.reason, speed=self.speed, withhold_command=True
            )
        self.mode = Mode.STOPPED
        if now - heard > self.abort_after:
            self.end(Outcome.STATE_LOST, reason or verdict.reason)
            self._jogging = False
            if self._change is not None:
                self._change.pause()  # readings may come back; going on then takes a request
        reasons = "; ".join(r for r in (self.stray.lost, reason, verdict.reason) if r)
        if self._let_go or (reason and self._out_of_touch):  # efforts for where it was would throw it: brakes hold it
            return Action(self.mode, 0.0 * verdict.command, reasons, speed=self.speed, withhold_command=True)
        command = verdict.command if verdict.withhold_command else self._blindly(now, reasons)
        command = verdict.command if command is None else command
        return Action(self.mode, command, reasons, speed=self.speed, withhold_command=verdict.withhold_command)

    def _blindly(self, now: float, reason: str) -> Array | None:
        """The command that brings a moving platform to rest without readings, by the model; None where it rested."""
        last = self._last
        if now - self._heard <= self.guard.max_age or self._change is not None or self._out_of_touch:
            return None
        if self._unseen is None:
            moved = last is not None and last.reference is not None and last.reference.twist.any()
            if last is None or last.measured is None or not moved or last.withhold_command:
                return None
            self._catch(reason, last.measured)
            self._unseen = self._heard
        passed, self._unseen = now - self._unseen, now
        reference = self._jogged(passed, now) if self._jogging else self._held()
        if last is None or last.measured is None:
            return None
        command = self.controller.foreseen(reference, last.measured)
        return self.guard.within(command) if np.isfinite(command).all() else None

    def _held(self) -> Reference:
        assert self._hold is not None
        return Reference(self._hold, np.zeros(6), np.zeros(6))

    def _reference(self, passed: float, now: float) -> Reference:
        assert self._hold is not None
        if self._jogging:
            return self._jogged(passed, now)
        if self.motion is None or self._aside:
            return self._held()
        self._clock.advance(passed)
        if self._passenger is not None:
            self._ride(self._passenger)
        if self.motion is None or self._clock.time < 0.0:
            return self._held()
        self.effects.advance(self._clock.time)
        if self._passenger is not None:
            reference = self._passenger.reference(self._clock, self.lead)
        else:
            reference = self._clock.reference(self.motion.trajectory, self.lead, self.controller.ahead)
        self._hold = reference.pose
        if self._stopping and self._clock.at_rest:
            lost = self.force.lost or self._left_behind
            self.end(Outcome.STATE_LOST if lost else Outcome.PREEMPTED, self._stopping)
        return reference

    def _ride(self, passenger: Passenger) -> None:
        """Go on with the belt; end the motion where the belt departs from the prediction."""
        problem = passenger.advance(self.time, self._clock, bool(self._stopping))
        if problem and self._clock.time < 0.0:
            self.end(Outcome.STATE_LOST, problem)
        elif problem:
            self.stop(problem)
            self._left_behind = self.motion is not None

    def _jogged(self, passed: float, now: float) -> Reference:
        """The reference while jogging, which ends when it is at rest."""
        self.jog.advance(passed, now)
        reference = self.jog.reference(self.lead)
        self._hold = reference.pose
        if self.jog.at_rest:
            self._jogging, self._caught = False, ""
            self._border = self.jog.blocked and f"the jog ended: {self.jog.blocked}"
            if self._returning and self.motion is not None:
                self._returning = False
                place = self.motion.trajectory.at(max(self._clock.time, 0.0)).pose
                if self._apart(reference.pose, place) < _BACK:
                    self._aside = self._paused = False
                    self._set_pace()
            elif self._goes_on:
                self._goes_on = False
                self._border = self.resume()
        return reference

    def _judge(self, motion: Motion, passed: float, reference: Reference, measured: Measured) -> None:
        """Compare with the tolerances; end the motion where it fails or is done."""
        elapsed = self._clock.time
        if elapsed < 0.0:
            return
        position, rotation = separation(measured.pose, reference.pose)
        motion.elapsed = min(elapsed, motion.trajectory.duration)
        allowed = motion.tolerances
        if elapsed <= motion.trajectory.duration:
            motion.note(position, rotation)
            if position > allowed.path_position:
                reason = f"{1e3 * position:.3f} mm from the path, more than {1e3 * allowed.path_position:.3f} mm"
                self._stop_here(Outcome.PATH_TOLERANCE_VIOLATED, reason, measured)
            elif rotation > allowed.path_rotation:
                reason = f"{rotation:.4g} rad from the path, more than {allowed.path_rotation:.4g} rad"
                self._stop_here(Outcome.PATH_TOLERANCE_VIOLATED, reason, measured)
            return
        self._overtime += passed
        if self._left_behind:
            self.end(Outcome.STATE_LOST, self._stopping)
        elif position <= allowed.goal_position and rotation <= allowed.goal_rotation:
            self.end(Outcome.SUCCESSFUL)
        elif self._overtime > allowed.goal_time:
            reason = f"{1e3 * position:.3f} mm and {rotation:.4g} rad from the goal"
            self.end(Outcome.GOAL_TOLERANCE_VIOLATED, reason)
