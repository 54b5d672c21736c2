# SPDX-License-Identifier: Apache-2.0
"""A change of the working mode while it is under way: reference and law in the actuators, which pass type 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pkm_control.controllers.controller import Controller, Measured, ModeModel, Reference
from pkm_control.keep_out import KeepOuts
from pkm_control.loop.jogging import Jog
from pkm_control.loop.mode_transition import Leg, ModeTransition
from pkm_control.motion.curve_check import MOVING, CurveCheck
from pkm_control.motion.path_clock import PathClock
from pkm_description.mechanism import Array
from pkm_dynamics.actuator_dynamics import ActuatorDynamics
from pkm_kinematics import Status
from pkm_runtime.errors import PkmError

DEVIATION = 0.1  # rad, and of the characteristic length: an actuator farther from its place ends the motion
_BACK_SPEED = 0.1  # of the actuators' velocity limits: back to the way
_SHORTEST = 0.5  # s
_LOOKS = 24  # on the way back
_RESTS = 0.01  # of the actuators' velocity limits: what brakes have brought below it rests


@dataclass(frozen=True, eq=False)
class InMode:
    """All that a follower holds of a working mode."""

    check: CurveCheck
    jog: Jog
    model: ModeModel
    pose: Array
    joints: Array

    @classmethod
    def of(cls, controller: Controller, mode: int, pose: Array, space: KeepOuts | None = None) -> InMode:
        """What a follower needs in a working mode, at a possible pose (7,) of it, base frame; takes milliseconds."""
        k = controller.kinematics
        joints = np.array(k.inverse(pose, mode=mode).joints)
        check = CurveCheck(
            controller.dynamics, controller.limits, mode, space, noise=controller.noise, soft=controller.soft
        )
        return cls(check, Jog(check), controller.in_mode(mode, pose, joints), np.array(pose), joints)


@dataclass(frozen=True, eq=False)
class Step:
    """The request of one period of a change."""

    efforts: Array
    reference: Reference
    measured: Measured


class ModeChange:
    """Follows a `ModeTransition` from the held pose by computed torque in the actuators, at the controller's gains.

    Where an actuator strays from its reference, or the drives were off, the robot is held where it is, with a `reason`,
    and goes back to the way when it is resumed. One that runs away is held by its brakes until it rests. `turn` goes
    back to the beginning. `lost` says why the last reading was of no use, empty where it was. PkmError: the robot is
    singular where the way begins.
    """

    def __init__(self, way: ModeTransition, ends: tuple[InMode, InMode], controller: Controller) -> None:
        self.way = way
        self.ends = ends
        self.reason = self.lost = ""
        self._controller = controller
        self._clock = PathClock(0.0, 0.0)
        self._robot, self._wanted = (ActuatorDynamics(controller.dynamics) for _ in range(2))
        for one in (self._robot, self._wanted):
            if one.place(way.pose, way.joints) is not Status.CONVERGED:
                raise PkmError("the robot is singular at the start of the path")
        k = controller.kinematics
        self._units = np.where(k.engine.actuated_turning, 1.0, k.characteristic_length)
        self._aside: Array | None = None  # where the actuators are held beside the way
        self._back: Leg | None = None  # from there to the way
        self._since = 0.0  # s, on the leg back
        self._unknown = np.full((6, len(way.legs[0].start)), np.nan)
        self._halted = False
        self._anew = False  # where it is held is not known before the next reading
        self._braking = False  # the brakes bring it to rest

    @property
    def resting(self) -> bool:
        """Whether it is held, on the way or beside it."""
        return self._back is None and (self._aside is not None or (self._clock.at_rest and self._halted))

    @property
    def done(self) -> bool:
        """Whether the end of the way is reached, at rest."""
        return self._aside is None and self._clock.time >= self.way.duration

    @property
    def halted(self) -> bool:
        """Whether a pause was requested and not ended."""
        return self._halted or self._aside is not None

    @property
    def progress(self) -> float:
        """Share of the time of the way."""
        return min(1.0, self._clock.time / self.way.duration)

    @property
    def situation(self) -> str:
        """Its state on the way, in words; and where it rests there, why, and how it goes on."""
        here, there = (end.check.kinematics.mode_label(end.check.mode) for end in self.ends)
        place = f"on the way to working mode {there}, {self.progress:.0%}"
        if not self.resting:
            return f"{self.reason}; {place}" if self.reason else place
        why = f"{self.reason}; " if self.reason else ""
        return f"{why}halted {place}: change the working mode to {there} to go on, or to {here} to go back"

    @property
    def rate(self) -> float:
        """Present fraction of the planned speed."""
        return self._clock.rate

    def set_pace(self, override: float) -> None:
        """Set the fraction (0 to 1) of the planned speed, unless a pause was requested."""
        self._clock.wanted = 0.0 if self._halted else override

    def pause(self) -> None:
        """Come to rest on the way."""
        self._halted = True
        self._clock.wanted = 0.0

    def resume(self, override: float) -> str:
        """Go on, from beside the way back to it first, at a fraction (0 to 1); why not, empty where it is done."""
        if self._aside is not None and self._back is None:
            problem = self._plan_back()
            if problem:
                return problem
        self._halted, self.reason = False, ""
        self.set_pace(override)
        return ""

    def turn(self, override: float) -> str:
        """Go back to the first working mode, at a fraction (0 to 1) of the plan; why not, empty where it is done."""
        if not self.resting:
            return "it is under way: stop it first"
        clock = PathClock(self.way.duration - self._clock.time, 0.0)
        self.way, self.ends, self._clock = self.way.back(self.ends[0].check.mode), self.ends[::-1], clock
        return self.resume(override)

    def hold_here(self, reason: str) -> None:
        """Hold the robot where the next reading finds it, beside the way or on it."""
        self._aside, self._back = self._robot.actuated.copy(), None
        self._halted, self._anew, self.reason = True, True, reason
        self._clock = PathClock(self._clock.time, 0.0)
        self._clock.wanted = 0.0

    def weight(self) -> Array:
        """Efforts (n_actuated,) that carry the robot in its last known configuration; NaN where brakes do."""
        return np.full(len(self._units), np.nan) if self._braking else self._robot.weight()

    def _plan_back(self) -> str:
        assert self._aside is not None
        place, _, _ = self.way.at(self._clock.time)
        speed = _BACK_SPEED * self._controller.limits.velocity
        duration = max(_SHORTEST, 15.0 / 8.0 * float(np.max(np.abs(place - self._aside) / speed)))
        for share in np.linspace(0.0, 1.0, _LOOKS + 1):
            if self._wanted.follow(self._aside + share * (place - self._aside)) is not Status.CONVERGED:
                return "no straight way of the actuators leads back: a type 2 singularity lies across; move it by hand"
        self._wanted.follow(self._aside)
        self._back, self._since = Leg(self._aside, place, duration), 0.0
        return ""

    def step(self, passed: float, lead: float, positions: Array, velocities: Array) -> Step | str:
        """The step for a reading of the actuators (n_actuated,), `passed` [s] after the last one, or why it is not
        usable. The acceleration is taken `lead` [s] later.
        """
        robot = self._robot
        if robot.follow(positions) is not Status.CONVERGED or robot.move(velocities) is not Status.CONVERGED:
            self.lost = "the readings do not go on from the last ones: the actuators have lost hold of the platform"
            return self.lost
        self.lost = ""
        if self._runs_away(velocities):
            return self.reason
        if self._anew:
            self._aside, self._anew = positions.copy(), False
        q, u, ud = self._advance(passed, lead)
        off, limits = np.abs(q - positions), self._controller.limits
        k = int(np.argmax(off / self._units))
        if off[k] > DEVIATION * self._units[k]:
            far = f"{limits.names[k]} is {off[k]:.3g} {limits.length_units[k]}"
            self.hold_here(f"{far} from its place on the way to the other working mode")
            q, u, ud = positions.copy(), 0.0 * u, 0.0 * ud
            self._aside, self._anew = q, False
        gains = self._controller
        efforts = robot.efforts(ud + gains.stiffness * (q - positions) + gains.viscosity * (u - velocities))
        measured = Measured(positions, velocities, robot.pose, robot.twist, robot.joints, self._unknown)
        wanted = self._wanted
        if wanted.follow(q) is Status.CONVERGED:
            wanted.move(u, ud)
        reference = Reference(wanted.pose, wanted.twist, wanted.acceleration)
        return Step(np.clip(efforts, *gains.limits.bounds()), reference, measured)

    def _runs_away(self, velocities: Array) -> bool:
        """Whether an actuator is so fast that brakes have to stop it: the way goes at a third of that."""
        limits = self._controller.limits
        shares = np.abs(velocities) / limits.velocity
        if shares.max() > MOVING:
            k = int(np.argmax(shares))
            speed = f"{shares[k]:.0%} of its largest speed"
            reason = f"{limits.names[k]} is at {speed} on the way to the other working mode"
            self.hold_here(self.reason if self._braking else reason)
        self._braking = bool(shares.max() > (_RESTS if self._braking else MOVING))
        return self._braking

    def _advance(self, passed: float, lead: float) -> tuple[Array, Array, Array]:
        if self._back is not None:
            self._since += passed
            if self._since < self._back.duration:
                q, u, _ = self._back.at(self._since)
                return q, u, self._back.at(self._since + lead)[2]
            self._aside = self._back = None
        if self._aside is not None:
            return self._aside, np.zeros_like(self._aside), np.zeros_like(self._aside)
        clock = self._clock
        clock.advance(passed)
        q, u, _ = self.way.at(clock.time)
        ahead = self.way.at(clock.time + lead * clock.rate)[2]
        return q, clock.rate * u, clock.rate**2 * ahead + clock.slope * u
