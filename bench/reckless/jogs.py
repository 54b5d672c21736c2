# SPDX-License-Identifier: Apache-2.0
"""Jogs and stops at random on the simulated machine, judged by what the machine does, not by what its controller says.

`python -m bench.reckless.jogs --minutes 60 --write docs/reckless.md` goes on where it was ended before, by its journal,
until every robot has had all of them. Robots take turns, some jogs and stops each.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from bench.reckless.motions import Draw
from bench.reckless.seen_follower import seen
from bench.tables import table
from pkm_control.controllers.computed_torque import ComputedTorque
from pkm_control.keep_out import KeepOuts, RoundedBox
from pkm_control.loop.followed_motion import Action, Motion
from pkm_control.loop.follower import TrajectoryFollower
from pkm_control.loop.guard import EffortGuard
from pkm_control.loop.jogging import LOW, RENEWAL
from pkm_control.loop.operator import RecoveryError, recovery_pose
from pkm_control.motion.curve_check import configuration
from pkm_control.motion.path_clock import Braking
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_control.operator_interface import NATURAL_FREQUENCY, Mode, highest_natural_frequency
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_dynamics.weight import holding_efforts
from pkm_hardware.machine import Lifecycle
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displacement_between
from pkm_kinematics.solve.singularity import scaling

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
JOURNAL = Path("reports/jogs.jsonl")
HEADING = "\n## Jogs and stops\n\n"
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
    part: int = 0
    seed: int = SEED
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
        kept = self.speed <= OVER and self.effort <= OVER and self.beyond <= 0.02
        return kept and not self.falls and not self.not_led_back


class JoggedRobot:
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
        self.home = np.array(k.home)
        self.length = k.characteristic_length
        x, y, z = (self.home[:3] + np.array((0.6, 0.0, 0.0)) * self.length).tolist()
        half = 0.2 * self.length
        self._post = KeepOuts({"post": RoundedBox((x, y, z), (half, 10.0 * half, 10.0 * half))}, margin=0.05 * half)
        self.anew(0, seed)

    def anew(self, part: int, seed: int) -> None:
        """Begin another part of the trials.

        Args:
            part: its number.
            seed: of the random numbers, with that.
        """
        self.draw = Draw(self.kinematics, seed + 1000 * part)
        self.random = np.random.default_rng(seed + 1000 * part + 1)
        self.tally = Tally(self.name, part, seed)
        self.begin(part)

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
        controller = ComputedTorque(self.dynamics, limits, frequency)
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
            if machine.lifecycle is Lifecycle.ACTIVE and not action.withhold_command:
                machine.write(action.command)
            pose = machine.pose.copy()
            machine.step(1.0 / RATE)
            self.look(action, pose)
        return action

    def look(self, action: Action, pose: Array) -> None:
        """Judge one period by the machine's own state, and by the pose (7,) that it had when it was read."""
        machine, tally = self.machine, self.tally
        state = machine.read()
        tally.speed = float(np.maximum(tally.speed, np.max(np.abs(state.velocities) / self.limits.velocity)))
        span = self.limits.upper - self.limits.lower
        beyond = np.maximum(state.positions - self.limits.upper, self.limits.lower - state.positions) / span
        if np.isfinite(span).any():
            tally.beyond = float(np.maximum(tally.beyond, np.max(np.where(np.isfinite(span), beyond, 0.0))))
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
            at = configuration(self.kinematics, np.array([one.pose for one in references]))
            twist = np.array([one.twist for one in references])
            acceleration = np.array([one.acceleration for one in references])
            answer = self.dynamics.inverse(at, twist, acceleration, distribution=self.follower.check.shared)
            shares = np.abs(np.asarray(answer.effort)) / self.limits.effort
            most = float(np.nanmax(shares)) if np.isfinite(shares).all() else np.inf
            tally.effort = float(np.maximum(tally.effort, most))
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
            there = recovery_pose(seen(follower))
            problem = follower.jog_to(there, LOW) if there is not None else ""
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
        begun, part = time.perf_counter(), self.tally.part
        for number in range(jogs):
            if number % _CHAIN == 0 or self.fell:
                self.begin(part + number // _CHAIN)
            self.jog(number)
        for number in range(stops):
            if number % _CHAIN == 0 or self.fell:
                self.begin(part + number // _CHAIN)
            self.stop(number)
        self.tally.seconds += time.perf_counter() - begun
        return self.tally


def _direction(random: np.random.Generator, n: int) -> Array:
    way = random.normal(size=n)
    if random.random() < 0.3:  # along one degree of freedom
        way = np.where(np.arange(n) == random.integers(n), way, 0.0)
    return np.asarray(way / max(float(np.linalg.norm(way)), 1e-9))


def _scaled(trajectory: PointTrajectory, by: float) -> PointTrajectory:
    """Return the same motion in another time."""
    times = trajectory.times * by
    poses, twists, accelerations = trajectory.sample(trajectory.times)
    return PointTrajectory(times, poses, twists / by, accelerations / by**2)


def _border(reason: str) -> str:
    return next((kind for words, kind in _BORDERS if re.search(words, reason)), reason)


def known(journal: Path, seed: int) -> list[Tally]:
    """The parts that a journal has of the trials with a seed."""
    lines = journal.read_text("utf-8").splitlines() if journal.is_file() else []
    tallies = [Tally(**{**one, "borders": Counter(one["borders"])}) for one in map(json.loads, lines)]
    return [one for one in tallies if one.seed == seed]


def total(tallies: list[Tally]) -> Tally:
    whole = Tally(tallies[0].robot, seed=tallies[0].seed)
    for one in tallies:
        for name in ("jogs", "stops", "borders", "falls", "led_back", "not_led_back", "seconds", "notes"):
            setattr(whole, name, getattr(whole, name) + getattr(one, name))
        for name in ("speed", "effort", "beyond", "longest"):
            setattr(whole, name, max(getattr(whole, name), getattr(one, name)))
    return whole


PREFACE = """Jogs and stops of a simulated machine, judged by its motion and not by the reports of its controller.
`python -m bench.reckless.jogs --write docs/reckless.md --seed {seed}` makes this section and continues with its journal
until every robot has had {jogs} jogs and {stops} stops. A limit in minutes ends it earlier; another seed gives others.

Jogs go in random directions at random speeds until something stops them, each from the end of the last one. Stops,
pauses, short pauses and lower speed overrides come at random instants of motions that are as fast as the checks
allow. Every eight jogs, the nearest limit changes: the robot as described, weak drives, slow drives, a post
in its way. A platform counts as fallen if it is further from its reference than 5 % of the characteristic length, or
if its controller stops. Speeds of the drives, and efforts of the reference by inverse dynamics, are the largest shares
of the limits. After each jog and stop, `recover` is called: there is nothing to do if the platform is inside its
limits.

"""


def page(tallies: list[Tally]) -> str:
    wholes = [total([one for one in tallies if one.robot == name]) for name in dict.fromkeys(t.robot for t in tallies)]
    rows = [
        (
            one.robot,
            str(one.jogs),
            str(one.stops),
            ", ".join(f"{kind} {count}" for kind, count in one.borders.most_common()),
            str(one.falls),
            f"{one.speed:.3f}",
            f"{one.effort:.3f}",
            f"{one.beyond:.3f}",
            f"{one.jogs + one.stops - one.led_back - one.not_led_back}, {one.led_back}, {one.not_led_back}",
            f"{one.longest:.2f}",
        )
        for one in wholes
    ]
    header = (
        "robot",
        "jogs",
        "stops",
        "borders that ended jogs",
        "falls",
        "speed of the drives",
        "effort of the reference",
        "beyond a range",
        "nothing to do, led back, not",
        "longest way to rest [s]",
    )
    text = table(header, rows) + "\n"
    notes = [f"- {one.robot}: {note}" for one in wholes for note in one.notes]
    return text + ("\n" + "\n".join(notes) + "\n" if notes else "")


def main() -> None:
    """Do them, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("robots", nargs="*", default=ROBOTS)
    parser.add_argument("--jogs", type=int, default=JOGS, help="of each robot")
    parser.add_argument("--stops", type=int, default=STOPS, help="of each robot")
    parser.add_argument("--seed", type=int, default=SEED, help="of the random numbers")
    parser.add_argument("--minutes", type=float, default=1e6, help="when to end")
    parser.add_argument("--journal", type=Path, default=JOURNAL, help="where tallies are kept")
    parser.add_argument("--write", type=Path, help="the page whose section is written")
    given = parser.parse_args()
    done = {(one.robot, one.part) for one in known(given.journal, given.seed)}
    given.journal.parent.mkdir(parents=True, exist_ok=True)
    robots: dict[str, JoggedRobot] = {}
    until, parts = time.monotonic() + 60.0 * given.minutes, -(-given.jogs // _CHAIN)
    for part in range(parts):
        for name in given.robots:
            if (name, part) in done or time.monotonic() > until:
                continue
            robot = robots[name] = robots.get(name) or JoggedRobot(name, given.seed)
            robot.anew(part, given.seed)
            stops = given.stops * (part + 1) // parts - given.stops * part // parts
            tally = robot.trials(min(_CHAIN, given.jogs - part * _CHAIN), stops)
            with given.journal.open("a", encoding="utf-8") as out:
                out.write(json.dumps(vars(tally)) + "\n")
            print(tally, flush=True)
    tallies = [one for one in known(given.journal, given.seed) if one.robot in given.robots]
    print(page(tallies))
    if given.write is not None:
        before = given.write.read_text("utf-8").partition(HEADING)[0]
        preface = PREFACE.format(jogs=given.jogs, stops=given.stops, seed=given.seed)
        given.write.write_text(before + HEADING + preface + page(tallies), "utf-8")


if __name__ == "__main__":
    main()
