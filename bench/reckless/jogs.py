# SPDX-License-Identifier: Apache-2.0
"""Jogs and stops at random on the simulated machine, judged by what the machine does, not by what its controller says.

`python -m bench.reckless.jogs [ROBOT ...] --jogs 200 --stops 50` says per robot what became of them. Jogs go in random
directions at random speeds until something stops them, one after the other from where the last one ended; stops,
pauses and lower speed overrides come at random instants of motions that are as fast as the checks admit.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from bench.reckless.motions import Draw
from bench.reckless.seen_follower import seen
from bench.tables import table
from pkm_control.controllers.computed_torque import ComputedTorque
from pkm_control.controllers.law_settings import NATURAL_FREQUENCY, highest_natural_frequency
from pkm_control.loop.followed_motion import Action, Motion
from pkm_control.loop.follower import TrajectoryFollower
from pkm_control.loop.guard import EffortGuard
from pkm_control.loop.jogging import RENEWAL
from pkm_control.loop.modes import Mode
from pkm_control.loop.recovery import RecoveryError, go_back, way_back
from pkm_control.motion.braking import Braking
from pkm_control.motion.curve_check import rounded
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_control.space.keep_out import KeepOuts, RoundedBox
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_dynamics.weight import holding_efforts
from pkm_hardware.machine import Lifecycle
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displacement_between
from pkm_kinematics.solve.constraints import scaling
from pkm_runtime.errors import PkmError

ROBOTS = (
    "delta",
    "gough_stewart",
    "five_bar",
    "planar_3rrr",
    "quattro",
    "agile_eye",
    "hexaglide",
    "orthoglide",
    "tripod_3prs",
    "cable_8",
)
JOGS, STOPS, SEED = 200, 50, 5  # of a robot
RATE = 500.0  # Hz
OVER = 1.02  # of a limit: what is more breaks it
_FALL = 0.05  # of the characteristic length, and rad of that: a platform so far from its reference falls
_LASTS = (0.3, 1.0, 4.0, 8.0)  # s, that a jog is asked for
_REST = 3.0  # s, within which what was stopped rests
_BACK = 20.0  # s, within which the platform is led back
_CHAIN = 8  # jogs, one after the other, before all begins at home again
_FASTER = 1.25  # each time a motion is tried again
_BORDERS = (  # by words of what stopped a jog
    ("range", "range"),
    ("type 1", "type 1"),
    ("type 2", "type 2"),
    ("singular", "singular"),
    ("effort", "effort"),
    ("velocity", "speed"),
    ("keep-out|near to", "keep-out"),
    ("reach|close|loop|pose", "out of reach"),
    ("outside", "range"),
)


@dataclass
class Tally:
    """What became of a robot's jogs and stops; `speed` and `effort` are the most in shares of the limits."""

    robot: str
    jogs: int = 0
    stops: int = 0
    borders: Counter[str] = field(default_factory=Counter)
    falls: int = 0
    speed: float = 0.0
    effort: float = 0.0  # that the reference asks for
    beyond: float = 0.0  # a range of a joint, in shares of it
    led_back: int = 0
    not_led_back: int = 0
    longest: float = 0.0  # s, until what was stopped rested
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def well(self) -> bool:
        """Whether nothing was thrown, no limit exceeded, and every way led back."""
        return not self.falls and not self.not_led_back and max(self.speed, self.effort) <= OVER and self.beyond <= 0.02


class Robot:
    """One robot with its machine, controller and guard.

    Each time it begins anew, something else is its nearest border: all as described, weak drives, slow drives,
    something that stands in its way.

    Args:
        name: of the gallery.
        seed: of the random numbers.
    """

    def __init__(self, name: str, seed: int = SEED) -> None:
        self.name = name
        mechanism = load_mechanism(name)
        self.kinematics = k = Kinematics(mechanism)
        self.dynamics = Dynamics(k)
        self.described = ActuatorLimits.of(mechanism)
        self.draw = Draw(k, seed)
        self.random = np.random.default_rng(seed + 1)
        self.home = np.array(k.home)
        self.length = k.characteristic_length
        x, y, z = (self.home[:3] + np.array((0.6, 0.0, 0.0)) * self.length).tolist()
        half = 0.2 * self.length
        self._post = KeepOuts({"post": RoundedBox((x, y, z), (half, 10.0 * half, 10.0 * half))}, margin=0.05 * half)
        self.tally = Tally(name)
        self.begin(0)

    def begin(self, variant: int) -> None:
        """Everything anew, at home.

        Args:
            variant: which border is the nearest.
        """
        kind = ("as described", "weak", "slow", "post")[variant % 4]
        self.limits = limits = self.described
        if kind == "weak" and limits.effort_range is None:
            held = np.abs(holding_efforts(self.dynamics, limits, self.home)).max()
            self.limits = replace(limits, effort=np.minimum(limits.effort, max(1.8 * held, 0.02 * limits.effort.max())))
        elif kind == "slow":
            self.limits = replace(limits, velocity=0.05 * limits.velocity)
        limits, space = self.limits, self._post if kind == "post" else None
        frequency = min(NATURAL_FREQUENCY, highest_natural_frequency(1.0 / RATE))
        controller = ComputedTorque(self.kinematics, self.dynamics, limits, frequency)
        guard = EffortGuard(
            limits.bounds(), 5.0 / RATE, "gravity", lambda pose: holding_efforts(self.dynamics, limits, pose)
        )
        self.follower = TrajectoryFollower(self.kinematics, controller, guard, 0.5 / RATE, space=space)
        self.machine = SimulatedMachine(self.dynamics, limits)
        self.machine.configure()
        self.machine.activate()
        self.actions: list[Action] = []
        self.fell = ""
        self.run(2.0 / RATE)

    def run(self, seconds: float) -> Action:
        """Let time pass, and look at the machine after each period."""
        machine, follower = self.machine, self.follower
        for _ in range(max(1, round(seconds * RATE))):
            state = machine.read()
            if state.fault:
                self.fall(state.fault)
                action = follower.silent(state.time, state.fault)
            else:
                action = follower.update(state.time, state.time, state.positions, state.velocities)
            if machine.lifecycle is Lifecycle.ACTIVE and not action.gives_up:
                machine.write(action.command)
            pose = machine.pose.copy()
            machine.step(1.0 / RATE)
            self.look(action, pose)
        return action

    def look(self, action: Action, pose: Array) -> None:
        """Judge one period by the machine's own state, and by the pose (7,) that it had when it was read."""
        machine, tally = self.machine, self.tally
        state = machine.read()
        tally.speed = max(tally.speed, float(np.max(np.abs(state.velocities) / self.limits.velocity)))
        span = self.limits.upper - self.limits.lower
        beyond = np.maximum(state.positions - self.limits.upper, self.limits.lower - state.positions) / span
        if np.isfinite(span).any():
            tally.beyond = max(tally.beyond, float(np.nanmax(np.where(np.isfinite(span), beyond, 0.0))))
        if action.mode in (Mode.STOPPED, Mode.WAITING):
            self.fall(action.reason)
        elif action.reference is not None:
            off = displacement_between(action.reference.pose, pose) * scaling(self.length)
            if np.abs(off).max() > _FALL * self.length:
                self.fall(f"{np.abs(off).max() / self.length:.3f} characteristic lengths from its reference")
        if not self.fell:
            self.actions.append(action)

    def fall(self, reason: str) -> None:
        """Note that the platform is not where it should be, once for a motion."""
        if not self.fell:
            self.fell = reason

    def judge(self, what: str) -> None:
        """Judge what was recorded since the last time: its references' efforts, and whether it fell."""
        tally = self.tally
        references = [one.reference for one in self.actions if one.reference is not None]
        self.actions = []
        if references:
            pose = rounded(self.kinematics, np.array([one.pose for one in references]))
            twist = np.array([one.twist for one in references])
            acceleration = np.array([one.acceleration for one in references])
            answer = self.dynamics.inverse(pose, twist, acceleration, distribution=self.follower.check.shared)
            shares = np.abs(np.asarray(answer.effort)) / self.limits.effort
            most = float(np.nanmax(shares)) if np.isfinite(shares).all() else np.inf
            tally.effort = max(tally.effort, most)
            if most > OVER:
                tally.notes.append(f"{what}: the reference asks for {most:.3f} of the effort limit")
        if self.fell:
            tally.falls += 1
            tally.notes.append(f"{what}: fell, {self.fell}")

    # -- jogs -------------------------------------------------------------------------------------------------------

    def jog(self, number: int) -> None:
        """Jog in a random direction at a random speed until something stops it, then lead back."""
        random, follower = self.random, self.follower
        space = np.asarray(self.kinematics.subspace(follower.hold))
        space = space / np.linalg.norm(space * scaling(self.length)[:, None], axis=0)
        speed = self.length * float(random.choice((0.05, 0.2, 0.5, 2.0)))
        twists = [space @ (speed * _direction(random, space.shape[1])) for _ in range(int(random.integers(1, 3)))]
        lasts = float(random.choice(_LASTS))
        for twist in twists:
            until = self.machine.time + lasts
            while self.machine.time < until and not self.fell:
                if follower.steer(twist, self.machine.time):
                    break
                action = self.run(0.5 * RENEWAL)
                if follower.jog.blocked and not (action.reference is not None and action.reference.twist.any()):
                    break
        what = f"jog {number}"
        blocked = follower.jog.blocked
        if blocked:
            self.tally.borders[_border(blocked)] += 1
        self.rest(what)
        self.tally.jogs += 1
        self.judge(f"{what} ({blocked})" if blocked else what)

    def rest(self, what: str) -> None:
        """Let what moves come to rest, and have it led back where it should not stand."""
        since = self.machine.time
        while self.follower.moving and self.machine.time < since + _REST and not self.fell:
            self.run(10.0 / RATE)
        self.tally.longest = max(self.tally.longest, self.machine.time - since)
        if self.follower.moving and not self.fell:
            self.fall("it does not come to rest")
        if not self.fell:
            self.lead_back(what)

    def lead_back(self, what: str) -> None:
        """Recover, and see that it stands well afterwards."""
        follower = self.follower
        try:
            there = way_back(seen(follower))
            problem = go_back(follower, there) if there is not None else ""
        except RecoveryError as error:
            there, problem = None, str(error)
        if not problem and there is not None:
            until = self.machine.time + _BACK
            while follower.moving and self.machine.time < until and not self.fell:
                self.run(10.0 / RATE)
            stands = follower.check.standing(follower.hold)
            problem = stands and f"led back to where it stands no better: {stands}"
            self.tally.led_back += not problem
        if problem:
            self.tally.not_led_back += 1
            self.tally.notes.append(f"{what}: not led back, {problem}")

    # -- stops ------------------------------------------------------------------------------------------------------

    def stop(self, number: int) -> None:
        """Follow a motion that is as fast as it may be, and stop it, halt it or slow it down on its way."""
        follower, random = self.follower, self.random
        found = self._motion()
        if found is None:
            return
        trajectory, change = found
        motion = Motion(trajectory, follower.time + 0.02, braking=change)
        follower.follow(motion)
        at = float(random.uniform(0.02, 0.95)) * trajectory.duration
        self.run(0.02 + at)
        kind = str(random.choice(("stop", "pause", "slow", "blink")))
        if kind == "stop":
            follower.stop()
        elif kind == "slow":
            follower.set_override(float(random.uniform(0.0, 0.7)))
            self.run(0.5)
            follower.set_override(1.0)
            self.run(0.2)
            follower.stop()
        else:
            follower.pause()
            if kind == "blink":
                self.run(float(random.uniform(0.01, 0.3)))
                follower.resume()
                self.run(float(random.uniform(0.05, 0.5)))
                follower.pause()
        what = f"{kind} {number} at {at:.2f} of {trajectory.duration:.2f} s"
        self.rest(what)
        follower.stop()
        follower.set_override(1.0)
        self.run(2.0 / RATE)
        self.tally.stops += 1
        self.judge(what)

    def _motion(self) -> tuple[PointTrajectory, Braking] | None:
        """Return a motion from here, as fast as the checks admit, and how quickly its speed may change."""
        check = self.follower.check
        for _ in range(40):
            found = self.draw.trajectory(self.follower.hold)
            if isinstance(found, str) or check.refusal(found):
                continue
            while True:
                quicker = _scaled(found, 1.0 / _FASTER)
                if quicker.duration < 0.15 or check.refusal(quicker):
                    break
                found = quicker
            if found.duration < 20.0 and np.ptp(found.sample(check.times(found))[0], axis=0).max() > 1e-3:
                return found, check.braking(found)
        return None

    def trials(self, jogs: int, stops: int) -> Tally:
        """Do some of both.

        Args:
            jogs: how many.
            stops: how many.

        Returns:
            What became of them.
        """
        begun = time.perf_counter()
        for number in range(jogs):
            if number % _CHAIN == 0 or self.fell:
                self.begin(number // _CHAIN)
            self.jog(number)
        for number in range(stops):
            if number % _CHAIN == 0 or self.fell:
                self.begin(number // _CHAIN)
            self.stop(number)
        self.tally.seconds += time.perf_counter() - begun
        return self.tally


def _direction(random: np.random.Generator, n: int) -> Array:
    way = random.normal(size=n)
    if random.random() < 0.3:  # along one freedom
        way = np.where(np.arange(n) == random.integers(n), way, 0.0)
    return np.asarray(way / max(float(np.linalg.norm(way)), 1e-9))


def _scaled(trajectory: PointTrajectory, by: float) -> PointTrajectory:
    """Return the same motion in another time."""
    times = trajectory.times * by
    poses, twists, accelerations = trajectory.sample(trajectory.times)
    return PointTrajectory(times, poses, twists / by, accelerations / by**2)


def _border(reason: str) -> str:
    return next((kind for words, kind in _BORDERS if re.search(words, reason)), reason)


def page(tallies: list[Tally]) -> str:
    """The table of what became of them."""
    rows = [
        (
            one.robot,
            f"{one.jogs} + {one.stops}",
            ", ".join(f"{kind} {count}" for kind, count in one.borders.most_common()),
            str(one.falls),
            f"{one.speed:.3f}",
            f"{one.effort:.3f}",
            f"{one.beyond:.3f}",
            f"{one.led_back}, {one.not_led_back}",
            f"{one.longest:.2f}",
        )
        for one in tallies
    ]
    header = (
        "robot",
        "jogs + stops",
        "borders",
        "falls",
        "drive speed",
        "effort of the reference",
        "beyond a range",
        "led back, not",
        "longest way to rest, s",
    )
    return table(header, rows)


def main() -> None:
    """Do them, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("robots", nargs="*", default=ROBOTS)
    parser.add_argument("--jogs", type=int, default=JOGS)
    parser.add_argument("--stops", type=int, default=STOPS)
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    tallies = []
    for name in given.robots:
        try:
            tally = Robot(name, given.seed).trials(given.jogs, given.stops)
        except PkmError as error:
            print(f"{name}: {error}")
            continue
        tallies.append(tally)
        print(page([tally]).splitlines()[-1], f" {tally.seconds:.0f} s", flush=True)
        for note in tally.notes[:20]:
            print("   ", note, flush=True)
    print(page(tallies))


if __name__ == "__main__":
    main()
