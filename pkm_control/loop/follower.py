# SPDX-License-Identifier: Apache-2.0
"""From reading to reading: hold, follow a motion or an operator, stop without readings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from pkm_control.controllers.controller import Controller, Measured, Reference, found_at
from pkm_control.conveyor.belt import Belt
from pkm_control.keep_out import KeepOuts
from pkm_control.loop.followed_motion import Action, Motion, PathRun
from pkm_control.loop.follower_watches import ForceWatch, MachineWatch, PushWatch, StrayWatch
from pkm_control.loop.guard import Guard
from pkm_control.loop.jogging import FASTEST, RENEWAL, Jog
from pkm_control.loop.mode_change import InMode, ModeChange
from pkm_control.loop.platform_locator import FAR, OTHER_MODE, PlatformLocator
from pkm_control.motion.compensation import Compensation, ComplianceTable
from pkm_control.motion.curve_check import MOVING, CurveCheck
from pkm_control.motion.path_events import Effects
from pkm_control.operator_interface import NO_FURTHER, TOOK_OVER, Mode, Outcome, unready_to_jog
from pkm_description.mechanism import Array, Inertial
from pkm_description.rotations import pose_distance
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import separation
from pkm_runtime.errors import PkmError

_SLOWEST = 1e-4  # of a plan: a motion that takes longer is meant to halt
_BACK = 1e-3  # of the robot's size: nearer than this to its path the platform is back
_LOST = (Mode.WAITING, Mode.STOPPED)
CHANGING = "the robot is changing its working mode"
HALTED = "the robot was halted on the way to another working mode: change to that one, or back, first"
WERE_OFF = "the drives were turned off"


class TrajectoryFollower:
    """A controller with its guard: one call for each reading, one when readings are missing.

    Readings carry their time [s], on whose clock motions run, at the speed override. Without readings the plan's
    efforts go on, and soon halt the platform on its path. When readings come back, the motion goes on from where on its
    path the platform is found, if the drives can lead it. Otherwise it is caught: brought to rest from its measured
    pose and twist, and led back to its path, unless the silence was so long that the motion is lost. A clock of the
    readings that jumps moves nothing: time then advances by the interval between their arrivals.

    Operator requests return an empty text where they succeed, else the reason why not. A pause holds until it is
    resumed or stopped; where the platform was jogged away meanwhile, `resume` first moves it back to the path. Where
    the readings of a force-torque sensor cease, a motion is ended by a deceleration under position control, and at rest
    nothing is sent any more (stop category 1), until readings come again. A motion on a belt is also ended where the
    belt departs from the prediction, and by a pause or a lower speed override: a belt does not wait. A change of the
    working mode is halted by a pause or a stop; motions and jogs wait for its end.

    `known_hold` is the pose (7,) that is held at rest, of robots with redundant joints (7 + r,) with their positions,
    None before the first reading; `time` [s] that of the last reading, or of now where some are missing.

    Args:
        lead: from a reading to the middle of the time in which its efforts act [s]: half a period where they are
            applied at once, one period more where they take effect in the next. The acceleration is that of then.
        abort_after: silence of the readings that loses the motion [s].
        following_error: distance from the reference [m] at which the platform is lost; 0: see `StrayWatch`.
        compliance: of the robot, where its platform is to be led against what gives way.
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
        compliance: ComplianceTable | None = None,
    ) -> None:
        def load(payload: Inertial | None) -> None:
            controller.load(payload)
            self.check.payload = payload

        self.controller = controller
        self.guard = guard
        self.lead = lead
        self.abort_after = abort_after
        self.run: PathRun | None = None
        self.change: ModeChange | None = None
        self.mode = Mode.WAITING
        self.reason = ""  # of the mode, as the loop tells it
        self.override = 1.0
        self.time = 0.0
        self.compensation = None if compliance is None else Compensation(compliance, controller)
        self.check = CurveCheck(
            controller.dynamics, controller.limits, 0, space, compliance, noise=controller.noise, soft=controller.soft
        )
        self.jog = Jog(self.check)
        self.force = ForceWatch(controller, guard.max_age)
        self.belts = dict(belts or {})
        self.machine = MachineWatch()
        self.stray = StrayWatch(kinematics.characteristic_length, following_error)
        self.push = PushWatch(controller)
        self.locator = PlatformLocator(controller, guard.max_age)
        self.effects = Effects(on_payload=load)
        self.known_hold: Array | None = None
        self._last: Action | None = None
        self._border = ""  # why the last jog ended, where that was not its own end
        self._jogging = False
        self._held_down = -math.inf  # s, clock of the caller: until when twists are those of a jog that was stopped
        self._caught = ""  # why the platform is being brought to rest from where it was found
        self._let_go = False  # it strayed, or cannot be told where it is
        self._unseen: float | None = None  # s, clock of the caller: until when it came to rest without readings
        self._added: Array | None = None  # to the plan's efforts by the law, at the last reading
        self._gravity = guard.gravity  # in the mode that a change comes from

    # -- motions ----------------------------------------------------------------------------------------------------

    def follow(self, motion: Motion) -> None:
        """Follow a motion from now on; its `outcome` tells how it ends. A motion under way ends as preempted."""
        self.end(Outcome.PREEMPTED, TOOK_OVER)
        self.push.release()
        self._jogging, self._border = False, ""
        self.run = PathRun(motion, self.time, self.override, self.belts)
        trajectory = motion.trajectory
        self.effects.begin(motion.events, trajectory.cycle, round(trajectory.duration / max(trajectory.cycle, 1e-9)))

    def drives_off(self, reason: str) -> None:
        """End at once what moves: the drives do not follow any more. A change of the working mode is halted, and the
        robot held between two modes once drives are on, until somebody chooses one of them.
        """
        self.end(Outcome.STATE_LOST, reason)
        if self._jogging:  # else it would go on with the next twist, once drives are on
            self._held_down = self.jog.release()
        if self.change is not None:
            self.change.hold_here(WERE_OFF)

    def end(self, outcome: Outcome, reason: str = "") -> None:
        """End the motion under way at once, if any; the platform holds at its reference."""
        if self.run is not None:
            self.run.motion.outcome, self.run.motion.reason = outcome, reason
            self.run = None
            self.effects.end()

    @property
    def moving(self) -> bool:
        """Whether the reference moves, or is about to."""
        if self.change is not None:
            return not self.change.resting
        return self._jogging or (self.run is not None and not self.run.resting)

    @property
    def paused(self) -> bool:
        """Whether a pause was requested and not ended."""
        if self.change is not None:
            return self.change.halted
        return self.run is not None and self.run.paused

    @property
    def hold(self) -> Array:
        """Pose (7 + r,) that is held at rest; PkmError where no reading has arrived yet."""
        if self.known_hold is None:
            raise PkmError("no measured state yet")
        return self.known_hold

    @property
    def speed(self) -> float:
        """Present fraction of the planned speed."""
        if self.change is not None:
            return self.change.rate
        return self.override if self.run is None else self.run.clock.rate

    # -- what an operator asks for ----------------------------------------------------------------------------------

    def set_override(self, fraction: float) -> str:
        """Run motions at a fraction (0 to 1) of their planned speed."""
        if not 0.0 <= fraction <= 1.0:
            return f"the fraction is {fraction:g}; give a number from 0 to 1"
        if 0.0 < fraction < _SLOWEST:
            return f"the fraction is {fraction:g}; the slowest is {_SLOWEST:g}, and 0 halts"
        self.override = abs(float(fraction))  # which -0.0 is not
        if self.run is not None and self.run.passenger is not None and fraction < 1.0 and not self.run.stopping:
            self.stop("its speed was lowered, and a conveyor does not wait")
        if self.change is not None:
            self.change.set_pace(self.override)
        elif self.run is not None:
            self.run.set_pace(self.override)
        return ""

    def pause(self) -> str:
        """Halt the motion on its path."""
        run = self.run
        if self.change is not None:
            self.change.pause()
        elif run is not None and run.goes_on:
            run.goes_on = False  # it stays paused
        elif self._jogging:
            return "the platform is being jogged, which a stop ends"
        elif run is None:
            return "no motion runs"
        elif run.stopping:
            return "the motion is being stopped"
        elif run.passenger is not None:
            return self.stop("paused on a moving frame, which does not wait")
        else:
            run.paused = True
            run.set_pace(self.override)
        return ""

    def resume(self) -> str:
        """Go on with the motion that is paused."""
        run = self.run
        if self.change is not None:
            return self.change.resume(self.override)
        if run is None or not run.paused:
            return "nothing is paused"
        if run.stopping:
            return "the motion is being stopped"
        if self._caught:
            run.goes_on = True
            return ""
        if self._jogging:
            return "the platform is being jogged"
        if run.aside:
            problem = _moved_beside(self.controller.kinematics, run.pose, self.hold) or self.jog_to(run.pose)
            run.returning = not problem
            return problem
        run.paused = False
        run.set_pace(self.override)
        return "" if self.override else "the speed override is 0: raise it to go on"

    def stop(self, reason: str = "stopped") -> str:
        """Decelerate on the way, then hold; `reason` is for the outcome of the motion."""
        run = self.run
        if self.change is not None:
            return self.pause()
        if not self._jogging and run is None:
            return "nothing moves"
        if self._jogging:
            self._held_down = self.jog.release()
        if run is None:
            return ""
        run.returning = False
        if not run.begun or run.aside or run.clock.at_rest:
            self.end(Outcome.PREEMPTED, reason)
        else:
            run.stopping = reason
            run.set_pace(self.override)
        return ""

    def steer(self, twist: Array, now: float) -> str:
        """Jog at a twist (6,) [m/s, rad/s], base axes, for a short time; `now` [s] on the caller's clock.
        After a stop, or with drives off, one of zero or a pause has to come first: the stick may still be held.
        """
        if not (np.abs(twist) <= FASTEST).all():
            return "the twist is not finite, or beyond what anything moves at"
        if not np.any(twist):
            self._held_down = -math.inf
            if not self._jogging:
                return ""
        elif (off := self.machine.problem(now)) or now < self._held_down:
            self._held_down = now + RENEWAL
            return (off and unready_to_jog(self.mode, self.reason)) or "the jog was stopped: let go before another one"
        problem = self._begin_jog()
        if not problem:
            self.jog.steer(twist, now)
        return problem

    def jog_to(self, pose: Array, speed: float = 1.0) -> str:
        """Move to a pose (7,), base frame, from `Jog.nearest`, at a fraction of the usual jog speed."""
        problem = self._begin_jog()
        if not problem:
            try:
                self.jog.go_to(pose, speed)
            except PkmError as error:
                self._jogging = not self.jog.at_rest
                return str(error)
        return problem

    def _begin_jog(self) -> str:
        run = self.run
        if self.mode in _LOST:
            return unready_to_jog(self.mode, self.reason)
        if self.change is not None:
            return HALTED if self.change.resting else CHANGING
        if run is not None and run.returning:
            return "the platform is on its way back to its path"
        if run is not None and not self._jogging and not (run.paused and run.clock.at_rest):
            return unready_to_jog(Mode.TRACKING)
        if not self._jogging:
            self.jog.start(self.hold)
        self.push.release()
        self._jogging, self._border, self._caught = True, "", ""
        if run is not None:
            run.away, run.goes_on = True, False
        return ""

    def relocate(self) -> str:
        """Look for the platform anew with the next reading; return from where. An unknown pose stays unknown."""
        self.stray.reset()
        self.push.release()
        if self.change is None or not self.change.lost:
            return "the pose that was last followed"
        self.change, self.guard.gravity = None, self._gravity
        self.locator.search_from_home(self.check.mode)
        return "home"

    def restart(self) -> None:
        """Take the next reading as the first one: the machine was connected again."""
        self.relocate()
        self.locator.restart(self.check.mode)
        if self.compensation is not None:
            self.compensation.restart()
        self.end(Outcome.STATE_LOST, "the machine was connected again")
        self._jogging, self._border, self._caught, self._let_go = False, "", "", False
        self._last = self._unseen = None
        self.mode = Mode.WAITING

    # -- working modes ----------------------------------------------------------------------------------------------

    def begin_change(self, change: ModeChange) -> str:
        """Begin a change of the working mode that was planned from the held pose."""
        if self.mode is not Mode.HOLDING or self.known_hold is None or self.change is not None:
            return f"the controller is {self.mode.name.lower()}; it must hold the platform"
        if _apart(self.controller.kinematics, self.known_hold, change.way.pose) > _BACK:
            return "the platform was moved while a way was looked for"
        if self.controller.payload is not None:
            return "the platform carries a payload, with which no way to another working mode is looked for"
        if self.controller.commands != "effort":
            return f"a way to another working mode takes efforts, and this law commands a {self.controller.commands}"
        if self.compensation is not None:
            return "the compliance that is compensated is known in one working mode only"
        self.change, self._gravity = change, self.guard.gravity
        self.guard.gravity = lambda _: change.weight()
        change.set_pace(self.override)
        return ""

    def _take_mode(self, there: InMode) -> None:
        self.change = None
        self.check, self.jog = there.check, there.jog
        self.check.payload = self.controller.payload
        self.controller.change_mode(there.model)
        self.locator.observer.start(there.pose, there.joints)
        self.locator.assembly.restart()
        dynamics, mode = self.controller.dynamics, there.check.mode
        self.guard.gravity = lambda pose: np.asarray(
            dynamics.gravity(dynamics.kinematics.at(pose, mode=mode), payload=self.controller.payload).effort
        )
        self.known_hold = there.pose.copy()

    def _changing(self, change: ModeChange, time: float, now: float, positions: Array, velocities: Array) -> Action:
        locator = self.locator
        silence = now - locator.heard
        if silence > self.abort_after:
            why = f"no usable reading for {silence:.3g} s" if math.isfinite(silence) else WERE_OFF
            change.hold_here(change.reason or why)
        step = change.step(locator.passed(time - self.time, silence), self.lead, positions, velocities)
        if isinstance(step, str):
            if locator.heard == -math.inf:  # the machine was connected again, and the robot is elsewhere
                self.change, self.guard.gravity = None, self._gravity
            return self.silent(now, step)
        locator.heard, self.time = now, time
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

    # -- one period -------------------------------------------------------------------------------------------------

    def _catch(self, reason: str, measured: Measured, outcome: Outcome | None = None) -> None:
        if outcome is not None:
            self.end(outcome, reason)
        run = self.run
        if run is not None and (run.passenger is not None or not run.begun):
            self.end(Outcome.STATE_LOST, reason)
        elif run is not None and run.stopping:
            self.end(run.stop_outcome(self.force.lost), run.stopping)
        elif run is not None:
            run.leave()
        self.known_hold = found_at(self.controller.kinematics, measured).copy()
        self.controller.forget()
        self.guard.begin(measured.positions)
        self.jog.catch(measured)
        self._border = ""
        self._jogging = self.run is not None or not self.jog.at_rest
        self._caught = reason if self._jogging else ""

    def update(self, time: float, now: float, positions: Array, velocities: Array) -> Action:
        """The command for a reading of a time [s] that came at `now` [s, caller's clock]: actuators' positions
        (n_actuated,) [rad or m] and velocities. A reading that jumps is left out, and what was commanded goes on; many
        of them count as a silence, after which nothing goes on.
        """
        locator = self.locator
        silence = now - locator.heard
        locator.ask(now)
        if problem := locator.implausible(positions, max(silence, min(time - self.time, self.abort_after))):
            if self._last is not None and silence <= self.guard.max_age:
                return self.between(now, self._last)
            locator.rejected = problem
            return self.silent(now, problem)
        if self.change is not None:
            locator.accept(positions)
            self._last = self._changing(self.change, time, now, positions, velocities)
            return self._last
        elastic = self.compensation
        joints = positions if elastic is None else elastic.joint_side(positions)
        measured = locator.locate(joints, velocities, self.check.mode)
        if elastic is not None and measured is not None:
            measured = elastic.seen(measured)
        if locator.pose_unknown and (self.mode in _LOST or locator.out_of_touch):
            return self._withhold(now, locator.pose_unknown)
        if measured is None:
            return self.silent(now, locator.observer.reason)
        locator.accept(positions)
        locator.out_of_touch = False
        self._last = self._accepted(time, now, silence, measured)
        locator.assembly.settle(min(max(silence, 0.0), self.guard.max_age), self.mode is Mode.HOLDING)
        return self._last

    def _accepted(self, time: float, now: float, silence: float, measured: Measured) -> Action:
        locator, k = self.locator, self.controller.kinematics
        found = found_at(k, measured)
        silent = f"no usable reading for {silence:.3g} s" if self.guard.max_age < silence < math.inf else ""
        if (silent or self.mode in _LOST) and locator.far_off(found, measured.positions, FAR):
            return self._withhold(now, OTHER_MODE)
        if silence > self.abort_after or locator.rejected:
            self._catch(locator.rejected or silent or WERE_OFF, measured, Outcome.STATE_LOST)
            locator.rejected = ""
            self.machine.forget(now)
        passed = locator.passed(time - self.time, silence)
        if self._unseen is not None:  # the reference went on meanwhile
            passed = min(passed, max(now - self._unseen, 0.0))
        self._unseen = self._added = None
        locator.heard, self.time = now, time
        measured = self._felt(measured, now)
        if self._let_go and not self.stray.lost:
            self._let_go = False
            self._catch("the platform is found again", measured)
            passed = 0.0
        run, yields = self.run, self.controller.yields
        if silent and run is not None:
            run.seen(self.override)
        reference = self._reference(passed, now)
        apart = separation(measured.pose, reference.pose)
        departed = self.stray.departure(*apart) if self.moving else ""
        if silent and run is not None and (departed or _out_of_hand(self.controller, reference, measured)):
            run.find(measured, silence, k.characteristic_length, self.override)
            reference = self._reference(0.0, now)
            apart = separation(measured.pose, reference.pose)
        departed = "" if silent or yields else departed
        soft = yields and self.moving  # and would let what was not led meanwhile fly on
        pushed = self._last is not None and self.push.judge(self.check, reference, measured, self._last.command, time)
        left = (silent or departed) and (soft or _out_of_hand(self.controller, reference, measured))
        if pushed:
            self._catch(self.push.beyond, measured, Outcome.PATH_TOLERANCE_VIOLATED)
            self.push.hold()
        elif left:
            self._catch(silent or departed, measured, _departed(self.stray, self.run) if departed else None)
        if pushed or left:
            reference = self._reference(0.0, now)
            apart = separation(measured.pose, reference.pose)
        # a law that yields to forces leaves its reference as it should
        distance, angle = (0.0, 0.0) if yields else apart
        self.stray.judge(distance, angle, locator.astray(measured, yields))
        if self.stray.lost:
            if not self._let_go:
                self._catch(self.stray.lost, measured, Outcome.PATH_TOLERANCE_VIOLATED)
            self.known_hold = found.copy()
            return self._withhold(now, "", reference, measured)
        if self.run is not None and self.run.goes_on and not self._jogging:
            self.run.goes_on, self.mode = False, Mode.PAUSED
            self._border = self.resume()
        return self._held_to(reference, measured, passed, now)

    def _held_to(self, reference: Reference, measured: Measured, passed: float, now: float) -> Action:
        self.controller.advance(passed)
        asked = _led(self.compensation, self.controller.command, reference, measured, passed)
        verdict = self.guard.check(now, {"measured state": now}, asked, found_at(self.controller.kinematics, measured))
        over = None
        if self.run is not None and self.run.begun and not self.run.aside:
            over = self.run.judge(passed, reference, measured)
        if over is not None and over[0] is Outcome.PATH_TOLERANCE_VIOLATED:
            self._catch(over[1], measured, over[0])
        elif over is not None:
            self.end(*over)
        idle = self.machine.problem(now)
        if reason := verdict.reason or idle:
            self._catch(reason, measured, Outcome.STATE_LOST)
            self.mode = Mode.WAITING if idle else Mode.STOPPED
        elif self._jogging:
            self.mode, reason = Mode.JOGGING, self.jog.blocked and f"{NO_FURTHER}: {self.jog.blocked}"
            reason = f"{self._caught}: it comes to rest" if self._caught else reason
        elif self.run is None:
            self.mode, reason = Mode.HOLDING, self._border or self.push.beyond
        else:
            self.mode, reason = (Mode.PAUSED, self._border) if self.run.resting else (Mode.TRACKING, "")
        if self.force.lost and not self.moving and not reason:
            self.mode = Mode.STOPPED
            return Action(self.mode, verdict.command, self.force.lost, reference, measured, 0.0, withhold_command=True)
        return Action(self.mode, verdict.command, reason, reference, measured, self.speed, verdict.withhold_command)

    def _withhold(
        self, now: float, reason: str, reference: Reference | None = None, measured: Measured | None = None
    ) -> Action:
        """Send nothing to a platform that strayed or is elsewhere; located again, it is held at its measured pose."""
        self.end(Outcome.STATE_LOST, reason or self.stray.lost)
        self.push.release()
        self._let_go, self._jogging = True, False
        self.mode = Mode.WAITING if measured is None and self.machine.problem(now) else Mode.STOPPED
        nothing = np.zeros(len(self.controller.limits.names))
        reasons = "; ".join(r for r in (self.stray.lost, reason) if r)
        return Action(self.mode, nothing, reasons, reference, measured, 0.0, withhold_command=True)

    def _felt(self, measured: Measured, now: float) -> Measured:
        """Add the wrench for force laws; where it is unknown, end what moves, and go on once it is known again."""
        lost = self.force.lost
        if lost and not self.moving and self.force.fresh(now):
            self.force.sensor_returned()
            self._catch(lost, measured, Outcome.STATE_LOST)
        measured = self.force.feel(measured, now)
        if self.force.lost and self.moving and not (self.run is not None and self.run.stopping):
            self.stop(self.force.lost)
        return measured

    def silent(self, now: float, reason: str = "") -> Action:
        """The guard's fallback without a usable reading; `now` [s] of the caller's clock, `reason` if not silence."""
        locator = self.locator
        heard = None if locator.heard == -math.inf else locator.heard
        locator.ask(now)
        verdict = self.guard.check(now, {"measured state": heard}, None, locator.observer.pose)
        if heard is None:
            return Action(
                Mode.WAITING, verdict.command, reason or verdict.reason, speed=self.speed, withhold_command=True
            )
        self.mode = Mode.STOPPED
        if now - heard > self.abort_after:
            self.end(Outcome.STATE_LOST, reason or verdict.reason)
            self._jogging = False
            if self.change is not None:
                self.change.pause()  # readings may come back; going on then takes a request
        reasons = "; ".join(r for r in (self.stray.lost, reason, verdict.reason) if r)
        if self._let_go or (reason and locator.out_of_touch):  # efforts for where it was would throw it: brakes hold it
            return Action(self.mode, 0.0 * verdict.command, reasons, speed=self.speed, withhold_command=True)
        blind = None if verdict.withhold_command else self._blindly(now, reasons)
        command = verdict.command if blind is None else blind
        return Action(self.mode, command, reasons, speed=self.speed, withhold_command=verdict.withhold_command)

    def between(self, now: float, last: Action) -> Action:
        """The action while a reading is missing for a moment: the plan goes on, with what the law added last."""
        self.locator.ask(now)
        run, seen = self.run, self._last
        if run is None or self._jogging or seen is None or last.measured is not seen.measured or self.mode in _LOST:
            return last
        ahead, measured = run.foresee(now - self.locator.heard, self.lead, self.controller.ahead), seen.measured
        if ahead is None or seen.reference is None or measured is None:
            return last

        def planned(reference: Reference) -> Array:
            return _led(self.compensation, self.controller.foreseen, reference, measured, 0.0)

        if self._added is None:
            self._added = seen.command - planned(seen.reference)
        command = planned(ahead) + self._added
        return replace(seen, command=self.guard.within(command)) if np.isfinite(command).all() else last

    def _blindly(self, now: float, reason: str) -> Array | None:
        """The command without readings, by the model, as long as it is to move; None: it rested."""
        last, locator = self._last, self.locator
        if self.change is not None or locator.out_of_touch or last is None or last.measured is None:
            return None
        if self._unseen is None:
            if last.reference is None or not last.reference.twist.any() or last.withhold_command:
                return None
            self._unseen = locator.heard
        passed, self._unseen = now - self._unseen, now
        self.time += passed  # a belt runs on
        reference = self._reference(passed, now)
        run = self.run
        if now - locator.heard > self.guard.max_age and self.moving and not self._caught:  # it comes to rest from here
            if self._jogging:
                self.jog.release()
                self._caught = reason
                if run is not None and run.returning:
                    run.returning, run.goes_on = False, True
            elif run is None or not run.halt_unseen():
                self._catch(reason, last.measured)
        command = _led(self.compensation, self.controller.foreseen, reference, last.measured, passed)
        return self.guard.within(command) if np.isfinite(command).all() else None

    def _reference(self, passed: float, now: float) -> Reference:
        run = self.run
        if self._jogging:
            self.jog.advance(passed, now)
            reference = self.jog.reference(self.lead)
            self.known_hold = reference.pose
            if self.jog.at_rest:
                self._jogging, self._caught = False, ""
                self.stray.rest()
                self._border = self.jog.blocked and f"the jog ended: {self.jog.blocked}"
                if run is not None and run.returning:
                    run.returned(_apart(self.controller.kinematics, reference.pose, run.pose) < _BACK, self.override)
            return reference
        if run is None or run.aside:
            return Reference.at_rest(self.hold)
        problem = run.advance(passed, self.time)
        if problem and not run.begun:
            self.end(Outcome.STATE_LOST, problem)
        elif problem:
            self.stop(problem)
            run.left_behind = True
        if self.run is None or not run.begins_within(self.lead):
            return Reference.at_rest(self.hold)
        self.effects.advance(run.clock.time)
        reference = run.reference(self.lead, self.controller.ahead)
        self.known_hold = reference.pose
        if run.stopping and run.clock.at_rest:
            self.end(run.stop_outcome(self.force.lost), run.stopping)
        return reference


def _departed(stray: StrayWatch, run: PathRun | None) -> Outcome | None:
    """How a motion ends that departs from its path again where it did before; None where it came further."""
    stray.note_departure()
    return None if run is None or not run.begun or run.aside or run.depart() else Outcome.PATH_TOLERANCE_VIOLATED


def _moved_beside(k: Kinematics, pose: Array, hold: Array) -> str:
    """Why a jog does not lead from `hold` back to a pose (7 + r,): redundant joints are elsewhere; or empty."""
    off = np.abs(k.engine.inputs.offset(pose) - k.engine.inputs.offset(hold))
    far = [name for name, by in zip(k.redundant_names, off, strict=True) if by > _BACK * k.engine.size]
    return f"{', '.join(far)} moved meanwhile, and jogs move the platform alone: stop the motion" if far else ""


def _apart(kinematics: Kinematics, one: Array, other: Array) -> float:
    size = kinematics.engine.size
    return float(pose_distance(one[:7], other[:7], size)) / size


def _out_of_hand(controller: Controller, reference: Reference, measured: Measured) -> bool:
    k, limits = controller.kinematics, controller.limits
    missed = np.abs(controller.model.positions(reference.pose) - measured.positions)
    missed = np.where(k.engine.joint_turning[k.engine.actuated_column], np.minimum(missed, 2.0 * np.pi), missed)
    pace = math.sqrt(controller.stiffness)
    speeds = missed * pace / math.e + np.abs(measured.velocities)
    if not (speeds <= MOVING * limits.velocity).all():
        return True
    controller.command(reference, measured)
    return bool(controller.saturated.any())


def _led(
    compensation: Compensation | None,
    law: Callable[[Reference, Measured], Array],
    reference: Reference,
    measured: Measured,
    passed: float,
) -> Array:
    """The command (n_actuated,) of a law, led against what gives way where that is known."""
    if compensation is None:
        return law(reference, measured)
    return compensation.command(law, reference, measured, passed)
