# SPDX-License-Identifier: Apache-2.0
"""Whether a machine can run a curve, checked for all of it before any of it is run.

One list of conditions for trajectories, jogs and moves alike, in one working mode: the limbs reach every pose and
continue from the one before, every joint, passive ones too, stays in its range, the singularities of all types stay
away, actuators are fast and strong enough. Margins of singularities are those of `Kinematics.singularity`, compared
with what they are at home; where the direct Jacobian's determinant changes its sign, one of type 2 was crossed between
two samples.

A curve that begins outside a range, or nearer to a singularity than allowed, may run as long as it leads back in.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_control.keep_out import KeepOuts
from pkm_control.motion.compensation import ComplianceTable
from pkm_control.motion.path_clock import Braking
from pkm_control.motion.path_events import NO_EVENTS, PathEvents
from pkm_control.motion.point_trajectory import PointTrajectory, configuration
from pkm_description.mechanism import Array, Inertial
from pkm_dynamics import Dynamics, Efforts
from pkm_dynamics.distribution import Distribution
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_dynamics.weight import Carried, actuator_mass_matrix, pulling
from pkm_kinematics import Configuration, Kinematics, Status
from pkm_kinematics.solve.singularity import margins, per_unit_speed, scaling
from pkm_kinematics.status import closes

SHARE = 0.02  # of home's margin: nearer to a singularity nothing may come
SOFT = 0.3, 0.2  # the same for types 1 and 2 where a law lets the platform stray as a spring does
NOISE = 1.0 / 3.0  # of an effort limit: what a law may answer to the noise of encoders, as a standard deviation
_FELT = 0.5  # of home's margin from type 2: nearer, drives feel four times the mass or more, and noise is looked at
STRETCHED = 0.05  # the same for type 1, whose margin is as the root of the distance: 0.02 were within tracking errors
SAMPLING = 5e-3  # s, between two samples
FINENESS = 0.02  # of the characteristic length: the longest way of the platform between two samples
MOST_SAMPLES = 100_000  # of one cycle; a finer look at a long curve would take seconds
AT_ONCE = 500  # samples per batch: other threads get their turn in between
INSET = 0.02  # of a joint's range (at most of 0.1 rad or m), and of the margins: what steered motions keep in reserve
MOVING, STANDING = 0.8, 0.7  # of speeds and efforts: what a steered motion uses of them, and where it comes to rest
_GIVEN = 0.01  # rad, and of the robot's size at most: by how much a push may lead joints beyond their ranges
MOST_AT_REST = 0.6  # of the efforts: what a platform that is pushed aside may take of them, with noise
STRAINED = "its drives come to their limits"
_FURTHER = 0.25  # of what a push may break, if the platform was led there by a motion
_INWARDS = 0.05  # of that: less may be noise, and leads nowhere
_OF_THE_REST = 1.0 / 3.0  # where holding takes more: what such a motion uses of the efforts that are left
AT_REST = 0.02  # m/s and rad/s: the most that a motion may begin or end with
_JUMP = 0.1  # rad or m: more than that no joint strays from what its velocity says between two samples
_SLACK = 1e-6  # of a bound on speeds and efforts: rounding
_SAME = 1e-9  # by which a deficit may grow on the way back in
BRAKINGS = (4.0, 2.0, 1.0, 0.5, 0.25, 0.1)  # 1/s: changes of the rate of a motion, tried from the quickest on
BRAKING = 0.9  # of the efforts: what braking uses; where the motion itself uses more, half of what is left
_TOUCH = 1e-3  # s: the shortest motion
_BRAKING_SAMPLES = 1000
_CONSTRAINT_SAMPLES = 65  # this margin takes a call for each pose

_Found = TypeVar("_Found")
Sliced = Generator[None, None, _Found]  # work in steps of some tenths of a millisecond, for loops that cannot wait


def whole(work: Sliced[_Found]) -> _Found:
    """What sliced work finds, done at once."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            return done.value


MARGINS = (
    "it comes too near a type 1 singularity (a limb stretched or folded)",
    "it comes too near a type 2 singularity (the actuators no longer control the platform)",
    "the passive joints of a limb come too near a singularity",
    "it comes so near a type 2 singularity that the noise of encoders takes more than the drives can give",
)


@dataclass(frozen=True)
class Fault:
    """Where a curve first breaks a condition: number of the sample, and the reason in words."""

    sample: int
    reason: str


@dataclass(frozen=True, eq=False)
class Room:
    """Bounds (n_actuated,) on the drives in a motion: `velocity` [rad/s or m/s], `effort` as a share of what each can
    do on that side, `standing` the same at its last sample; `shared` is the distribution over redundant actuators.
    """

    velocity: Array
    effort: Array
    standing: Array
    shared: Distribution | None


@dataclass(eq=False)
class CurveCheck:
    """Checks curves of one machine in working mode `mode`. Calls may run in several threads at once. With its
    `compliance`, the platform is led against what gives way, so that the joints are those of other poses.
    """

    dynamics: Dynamics
    limits: ActuatorLimits
    mode: int = 0
    space: KeepOuts | None = None
    compliance: ComplianceTable | None = None
    payload: Inertial | None = None  # what the platform carries, in its frame
    noise: Callable[[], Array] | None = None  # see `Controller.noise`
    soft: bool = False  # see `Controller.soft`
    kinematics: Kinematics = field(init=False)

    def __post_init__(self) -> None:
        kinematics, limits = self.dynamics.kinematics, self.limits
        self.kinematics = kinematics
        # who has a choice shares within limits, as controllers do
        redundant = len(limits.names) > kinematics.engine.freedoms
        self.shared = Distribution(bounds=limits.bounds()) if redundant else pulling(limits)
        every = np.ones(len(limits.names))
        self._all = Room(limits.velocity, every, every, self.shared)
        self._lower, self._upper = (np.array(ends) for ends in kinematics.engine.ranges.limits)
        self._endless = kinematics.engine.joint_turning & ~np.isfinite(self._upper - self._lower)
        self._ending = kinematics.engine.joint_turning & ~self._endless
        drives = kinematics.engine.actuated_column  # the file of a machine may narrow their ranges
        slack = limits.slack(kinematics.engine.size)
        self._lower[drives] = np.maximum(self._lower[drives], limits.lower - slack)
        self._upper[drives] = np.minimum(self._upper[drives], limits.upper + slack)
        self._inset = INSET * np.minimum(self._upper - self._lower, 0.1)
        at_home = kinematics.singularity(kinematics.home, mode=self.mode)
        if not np.isfinite(at_home.type2):  # home is out of reach in this mode
            at_home = kinematics.singularity(kinematics.home, mode=0)
        of_home = np.array([at_home.type1, at_home.type2, at_home.limb_regularity], dtype=np.float64)
        shares = np.array([*(SOFT if self.soft else (STRETCHED, SHARE)), SHARE])
        self._floors = shares * np.nan_to_num(of_home)
        self._felt = _FELT * float(np.nan_to_num(of_home[1]))
        near = 0.0 if self.space is None else self.space.margin
        # of conditions, by how much a platform that is pushed may break them; noise counts with the weight, at the end
        given = _GIVEN * min(1.0, kinematics.engine.size)
        self._given = np.array([given, *(0.5 * self._floors), 1.0, 0.5 * near, MOST_AT_REST])
        self._hold = SHARE * float(np.nan_to_num(at_home.constraint_hold, posinf=0.0))  # 0 where limbs block nothing

    # -- trajectories -----------------------------------------------------------------------------------------------

    def times(self, trajectory: PointTrajectory) -> Array:
        """Instants (n,) [s] at which one cycle of a trajectory is checked: all points, and enough between them."""
        knots = trajectory.times
        if len(knots) < 2:
            return knots.copy()
        steps = np.diff(knots)
        middles = knots[:-1] + 0.5 * steps
        _, twists, _ = trajectory.sample(np.sort(np.concatenate([knots, middles])))
        speeds = np.linalg.norm(twists[:, :6] * scaling(self.kinematics.characteristic_length), axis=1)
        speeds += np.abs(twists[:, 6:]).sum(axis=1)  # redundant joints move limbs as a platform would
        fastest = np.maximum(np.maximum(speeds[0:-2:2], speeds[1:-1:2]), speeds[2::2])
        finest = FINENESS * self.kinematics.characteristic_length
        parts = np.ceil(np.maximum(steps / SAMPLING, np.nan_to_num(fastest * steps / finest, posinf=1e9)))
        allowed = max(1, MOST_SAMPLES // len(steps))
        counts = np.clip(parts, 2, max(2, allowed)).astype(np.int64)
        # a coarse look at what is much too fast finds that it is too fast: speeds are checked at every point
        shares = [np.arange(count) / count for count in counts]
        inner = np.concatenate([a + h * share for a, h, share in zip(knots[:-1], steps, shares, strict=True)])
        return np.append(inner, knots[-1])

    def refusal(self, trajectory: PointTrajectory, events: PathEvents = NO_EVENTS) -> str:
        """Why a trajectory, with payloads among its events, cannot be run, and the first time [s] of it; or empty."""
        for place, k in (("begins", 0), ("ends", -1)):
            _, twist, _ = trajectory.sample(trajectory.times[[k]])
            if np.abs(twist).max() > AT_REST:
                return (
                    f"at {trajectory.times[k]:.3f} s: it {place} with {np.linalg.norm(twist[0, :3]):.3g} m/s and "
                    f"{np.linalg.norm(twist[0, 3:6]):.3g} rad/s, not at rest"
                )
        times = self.times(trajectory)
        outset: Array | None = None
        for first in range(0, len(times), AT_ONCE):
            part = times[max(0, first - 1) : first + AT_ONCE]  # from the last sample of the batch before
            found, deficits = self._faults(
                *trajectory.sample(part), np.diff(part), carried=events.carried(part, self.payload)
            )
            if found is not None:
                return f"at {part[found.sample]:.3f} s: {found.reason}"
            outset = deficits[0] if outset is None else outset
        stays = (deficits[-1] > 0.0) & ~(deficits[-1] < outset)
        if stays.any():
            return (
                f"at {times[-1]:.3f} s: it ends as far outside as it begins: {self._lack(int(np.argmax(stays)), None)}"
            )
        return self._loses_hold(trajectory, times)

    def _loses_hold(self, trajectory: PointTrajectory, times: Array) -> str:
        # where the limbs lose hold of what they block (constraint singularity), checked at some samples
        if self._hold == 0.0:
            return ""
        some = times[np.unique(np.linspace(0, len(times) - 1, _CONSTRAINT_SAMPLES).astype(np.int64))]
        hold = np.asarray(self._at(trajectory.sample(some)[0]).singularity.constraint_hold)
        bad = np.flatnonzero(~(hold >= min(self._hold, float(hold[0]))))
        if not bad.size:
            return ""
        return (
            f"at {some[bad[0]]:.3f} s: it comes too near a constraint singularity (the limbs lose hold of the platform)"
        )

    def braking(self, trajectory: PointTrajectory, events: PathEvents = NO_EVENTS) -> Braking:
        """Largest changes of the rate along a possible trajectory that its efforts, with payloads by events, allow."""
        count = max(3, min(_BRAKING_SAMPLES, len(self.times(trajectory))))
        times = np.linspace(trajectory.times[0], max(trajectory.cycle, trajectory.times[0] + _TOUCH), count)
        pose, twist, acceleration = trajectory.sample(times)
        at, carried, still = self._at(pose), events.carried(times, self.payload), np.zeros_like(twist)

        def shares(rows: NDArray[np.int64], twist: Array, acceleration: Array) -> Array:
            return self._shares(self._efforts_of(at.rows(rows), twist, acceleration, carried[rows]).effort)

        every = np.arange(count)
        own = np.nan_to_num(np.maximum(shares(every, twist, acceleration), shares(every, still, still)))
        most = np.maximum(BRAKING, np.minimum(0.5 * (1.0 + own), 1.0)) * (1.0 + _SLACK)
        changes = []
        for motion in ((twist, acceleration), (still, still)):
            found, left = np.zeros(count), every
            for change in BRAKINGS:
                push = change * twist[left]
                slower = shares(left, motion[0][left], motion[1][left] - push) <= most[left]
                faster = shares(left, motion[0][left], motion[1][left] + push) <= most[left]
                well = (slower & faster).all(axis=1)
                found[left[well]] = change
                left = left[~well]
                if not left.size:
                    break
            changes.append(found)
        return Braking.along(times, changes[0], changes[1], trajectory.duration > trajectory.cycle)

    # -- curves by samples ------------------------------------------------------------------------------------------

    def first_fault(
        self,
        pose: Array,
        twist: Array | None = None,
        acceleration: Array | None = None,
        carried: Carried | None = None,
    ) -> Fault | None:
        """The first sample of a curve that breaks a condition, or None; poses that follow closely are one curve.

        Poses (n, 7), twists (n, 6) [m/s, rad/s] (None: at rest) and accelerations are in the base frame, commanded
        redundant joints behind them. `carried` is the payload of each sample, None: the present one.
        """
        still = np.zeros((len(pose), 6))
        twist, acceleration = still if twist is None else twist, still if acceleration is None else acceleration
        return self._faults(pose, twist, acceleration, None, carried)[0]

    def room_at(self, pose: Array) -> Room:
        """What a steered motion from a pose (7,), base frame, may ask of the drives: less than their limits.

        Where holding takes more than such a motion may leave, it may leave no more than that, and use a part of what is
        left: so it always can leave, and many of them do not creep up to the limits.
        """
        limits, still = self.limits, np.zeros((1, 6))
        held = self._shares(self._efforts_of(self._at(pose[None]), still, still).effort)[0]
        standing = np.maximum(STANDING, np.minimum(np.where(np.isfinite(held), held, 0.0), 1.0))
        effort = standing + _OF_THE_REST * (1.0 - standing)
        shared = self.shared
        if shared is not None:
            least, most = limits.bounds()
            shared = Distribution(
                bounds=(np.where(least < 0.0, effort * least, least), np.where(most > 0.0, effort * most, most))
            )
        return Room(MOVING * limits.velocity, effort, standing, shared)

    def load(self, pose: Array, twist: Array, acceleration: Array) -> float:
        """Largest share of an effort limit in a motion (n, 7), (n, 6), (n, 6), base frame; infinite: impossible."""
        shares = self._shares(self._efforts_of(self._at(pose), twist, acceleration).effort)
        return float(shares.max()) if np.isfinite(shares).all() else np.inf

    def _shares(self, efforts: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(efforts == 0.0, 0.0, np.abs(efforts) / self.limits.effort_bound(efforts))

    def _at(self, pose: Array) -> Configuration:
        # the configuration of the rigid robot at poses (n, 7) of the platform in the working mode
        if self.compliance is not None:
            pose = self.compliance.unbent(pose, self._payload_at_rest(pose))
        return configuration(self.kinematics, pose, self.mode)

    def _payload_at_rest(self, pose: Array) -> Array:
        still = np.zeros((len(pose), 6))
        found = Carried.always(self.payload, len(pose)).wrench(self.kinematics.mechanism.gravity, pose, still, still)
        return still if found is None else found

    def _efforts_of(
        self,
        at: Configuration,
        twist: Array,
        acceleration: Array,
        carried: Carried | None = None,
        room: Room | None = None,
    ) -> Efforts:
        # efforts (n, n_actuated) of a motion with payloads, by default the present one; NaN where there are none
        carried = Carried.always(self.payload, len(twist)) if carried is None else carried
        wrench = carried.wrench(self.kinematics.mechanism.gravity, at.pose, twist, acceleration)
        shared = self.shared if room is None else room.shared
        return self.dynamics.inverse(at, twist, acceleration, wrench, distribution=shared)

    def step_by_step(self, pose: Array, twist: Array, acceleration: Array, room: Room) -> Sliced[Fault | None]:
        """As `first_fault` with a little more of each distance, in steps of tenths of a millisecond, for loops that
        cannot wait for all. Yields after each step but the last. The room's `standing` holds for the last sample.
        """
        return (yield from self._examined(pose, twist, acceleration, None, True, None, room))[0]

    def deficits(self, pose: Array) -> Array:
        """How far poses (n, 7) violate conditions (n, 6): rad and m beyond the joints' ranges, what is missing of three
        margins of singularity, efforts by noise, and the distance from keep-outs [m]; NaN out of reach.
        """
        at = self._at(pose)
        found, _, felt = self._margins(at, False)
        return self._with_noise(found, at, felt, 1.0)

    def strayed(self, led: Array, found: Array) -> Sliced[str]:
        """Which condition a platform breaks more at poses (n, 7 + r) than where it is `led` (1, 7 + r), or empty."""
        given = self._given
        lacks = yield from self._lacks_at_rest(np.concatenate([led, found]))
        broken = lacks[1:] > np.maximum(lacks[0] + _FURTHER * given, given)
        which = np.flatnonzero(broken.any(axis=0))
        if not which.size:
            return ""
        if which[0] == len(given) - 1:
            return STRAINED
        return self._lack(int(which[0]), None, found[int(np.argmax(broken[:, which[0]]))])

    def leads_in(self, pose: Array, there: Array) -> Sliced[bool]:
        """Whether a platform that was pushed to a pose (7 + r,) may be pushed on to another one."""
        lacks = yield from self._lacks_at_rest(np.stack([pose, there]))
        return bool((lacks[1] <= np.maximum(lacks[0] - _INWARDS * self._given, self._given)).all())

    def _lacks_at_rest(self, pose: Array) -> Sliced[Array]:
        # deficits (n, 6), and the share of the efforts that weight and noise take; infinite out of reach
        at, still = self._at(pose), np.zeros((len(pose), 6))
        yield
        found, _, felt = self._margins(at, False)
        yield
        shaken = np.zeros(len(pose))
        if felt.size:
            shaken[felt] = self._shaken(at, felt)
            yield
        weight = self._shares(self._efforts_of(at, still, still).effort).max(axis=1)
        return np.nan_to_num(np.column_stack([found, weight + shaken]), nan=np.inf)

    def standing(self, pose: Array) -> str:
        """Why the platform cannot be held at a pose (7,) where motions begin that keep all conditions; or empty."""
        fault = self.first_fault(pose[None])
        if fault is not None:
            return fault.reason
        lacks = np.flatnonzero(self.deficits(pose[None])[0] > 0.0)
        return self._lack(int(lacks[0]), None, pose) if lacks.size else ""

    def _margins(self, at: Configuration, inset: bool) -> tuple[Array, Array, NDArray[np.int64]]:
        # deficits (n, 6) but of noise, the side (n,) of type 2, and where noise counts, nearest first
        k, pose = self.kinematics, at.pose
        joints = np.where(closes(at.status)[:, None], at.joints, np.nan)
        space = np.nan_to_num(at.subspace)
        K = at.inverse_jacobian @ space
        scaled = space * scaling(k.characteristic_length)[:, None]
        uniform = per_unit_speed(K, space, k.characteristic_length)
        known = margins(uniform, np.ones(len(pose)), np.ones(len(pose)), k.characteristic_length)
        side = np.asarray(known.determinant_sign)
        if K.shape[-1] == K.shape[-2] and not k.constant_space:  # a basis may turn over from pose to pose
            turned = np.linalg.det(np.swapaxes(scaled[:-1], 1, 2) @ scaled[1:])
            side = side * np.cumprod(np.concatenate([[1.0], np.sign(turned)]))
        room = self._inset if inset else 0.0
        beyond = np.maximum(np.maximum(joints - self._upper, self._lower - joints) + room, 0.0).sum(axis=1)
        more = 1.0 + (INSET if inset else 0.0)
        found = np.stack([np.asarray(known.type1), np.asarray(known.type2), at.condition], axis=1)
        near = np.zeros(len(pose))
        felt = np.argsort(found[:, 1])[: np.count_nonzero(found[:, 1] < self._felt)]
        if self.space is not None:
            near = self.space.lacks(pose, self.space.margin * more)
        lacks = np.maximum(more * self._floors - found, 0.0)
        return np.concatenate([beyond[:, None], lacks, np.zeros((len(pose), 1)), near[:, None]], axis=1), side, felt

    def _with_noise(self, deficits: Array, at: Configuration, felt: NDArray[np.int64], more: float) -> Array:
        # deficits (n, 6), those of noise written: what it takes of an effort, `more` times, beyond its share
        if felt.size:
            deficits[felt, len(MARGINS)] = np.maximum(more * self._shaken(at, felt) - NOISE, 0.0)
        return deficits

    def _shaken(self, at: Configuration, felt: NDArray[np.int64]) -> Array:
        # largest share of an effort limit (k,) that noise takes at the configurations that are `felt` (k,)
        if self.noise is None:
            return np.zeros(felt.size)
        masses = actuator_mass_matrix(self.dynamics, at.rows(felt))
        return np.asarray((np.sqrt(masses**2 @ self.noise() ** 2) / self.limits.effort).max(axis=1))

    def _faults(
        self,
        pose: Array,
        twist: Array,
        acceleration: Array,
        steps: Array | None,
        carried: Carried | None = None,
    ) -> tuple[Fault | None, Array]:
        return whole(self._examined(pose, twist, acceleration, steps, False, carried))

    def _examined(
        self,
        pose: Array,
        twist: Array,
        acceleration: Array,
        steps: Array | None,  # (n - 1,) from sample to sample [s]; None where these are no motion in time
        inset: bool,
        carried: Carried | None = None,
        room: Room | None = None,
    ) -> Sliced[tuple[Fault | None, Array]]:
        # the first fault after the first sample, or in it what no way back excuses, and the deficits (n, 6)
        n = len(pose)
        configurations = self._at(pose)
        pose = configurations.pose
        yield
        motion = configurations.motion(twist, acceleration)
        faults: list[Fault] = []

        def note(bad: ArrayLike, reason: Callable[[int], str]) -> None:
            if np.any(bad):
                sample = int(np.argmax(bad))
                faults.append(Fault(sample, reason(sample)))

        yield
        usable = closes(motion.status) & np.isfinite(motion.velocities).all(axis=1)
        undetermined = "the velocities of its joints are not determined there"
        note(~usable, lambda i: undetermined if closes(motion.status[i]) else motion.reason(i))
        end = faults[0].sample if faults else n  # of what comes later, nothing is known
        if end == 0:
            return faults[0], np.full((n, 6), np.nan)
        part = slice(0, end)
        at = configurations if end == n else configurations.rows(part)
        joints, rates = at.joints, motion.velocities[part]
        deficits, side, felt = self._margins(at, inset)
        if felt.size and self.noise is not None:
            yield
            deficits = self._with_noise(deficits, at, felt[:1] if inset else felt, 1.0 + INSET * inset)
        note(~np.isfinite(deficits).all(axis=1), lambda i: "the configuration is singular")
        note(np.diff(side, prepend=side[0]) != 0.0, lambda i: "it crosses a type 2 singularity")
        deeper = (deficits[1:] > 0.0) & ~(deficits[1:] <= deficits[:-1] + _SAME)
        for which in range(deficits.shape[1]):

            def lacking(i: int, which: int = which) -> str:
                return self._lack(which, joints[i], pose[i])

            note(_after(deeper[:, which]), lacking)
        turns = np.round(np.diff(joints, axis=0) / (2.0 * np.pi)) * self._ending
        note(_after(turns.any(axis=1)), lambda i: f"{self._farthest(turns, i)} would have to jump by a turn")
        if steps is not None and end > 1:
            expected = 0.5 * (rates[1:] + rates[:-1]) * steps[: end - 1, None]
            strays = np.diff(joints, axis=0) - expected
            turned_back = np.remainder(strays + np.pi, 2.0 * np.pi) - np.pi
            strays = np.abs(np.where(self._endless, turned_back, strays))  # whole turns of endless joints are none
            jumps = _after((strays > _JUMP + 0.5 * np.abs(expected)).any(axis=1))
            note(jumps, lambda i: f"{self._farthest(strays, i)} would have to jump")
        yield
        carried = None if carried is None else carried[part]
        efforts = self._efforts_of(at, twist[part], acceleration[part], carried, room)
        self._judge_drives(note, np.abs(motion.actuated_velocities[part]), efforts, room or self._all, end == n)
        return min(faults, key=lambda fault: fault.sample, default=None), deficits

    def _judge_drives(
        self, note: Callable[..., None], speeds: Array, answer: Efforts, room: Room, to_the_end: bool
    ) -> None:
        limits, efforts = self.limits, np.asarray(answer.effort)
        units = [f"{u}/s" for u in limits.length_units]
        most = np.tile(room.effort, (len(efforts), 1))
        if to_the_end:
            most[-1] = room.standing
        fast = (speeds > room.velocity * (1.0 + _SLACK)).any(axis=1)
        note(fast, lambda i: self._over("velocity", speeds[i], room.velocity, limits.velocity, units))
        note(~np.isfinite(efforts).all(axis=1), lambda i: self._effortless(int(answer.status[i])))
        weak = (self._shares(efforts) > most * (1.0 + _SLACK)).any(axis=1)
        strong = limits.effort_bound(efforts)
        note(
            weak,
            lambda i: self._over("effort", np.abs(efforts[i]), most[i] * strong[i], strong[i], limits.effort_units),
        )

    def _farthest(self, ways: Array, i: int) -> str:
        # name of the joint that goes farthest to sample i, by ways (n - 1, n_joints) from sample to sample
        return self.kinematics.joint_names[int(np.argmax(np.abs(ways[i - 1])))]

    def _effortless(self, status: int) -> str:
        if status == Status.EFFORT_LIMIT and self.limits.effort_range is not None:
            return f"no efforts do it within the bounds of the actuators ({self.limits.described_bounds})"
        return f"no efforts do it: {Status(status).meaning}"

    def _lack(self, which: int, joints: Array | None, pose: Array | None = None) -> str:
        """The broken condition in words, number 0 being the joints' ranges, the last that of keep-outs."""
        if which > len(MARGINS):
            return (
                "the tool comes too near to a keep-out"
                if self.space is None or pose is None
                else self.space.reason(pose)
            )
        if which > 0:
            return MARGINS[which - 1]
        if joints is None:
            return "a joint comes to the end of its range"
        engine = self.kinematics.engine
        beyond = self.limits.first_beyond(joints[None, engine.actuated_column], engine.size)
        named = "; ".join(self.kinematics.limit_violations(joints))
        return named or (beyond[1] if beyond else "a joint comes to the end of its range")

    def _over(self, what: str, values: Array, bounds: Array, limits: Array, units: Sequence[str]) -> str:
        worst = int(np.argmax(values / np.maximum(bounds, 1e-200)))
        bound = f"the limit is {limits[worst]:.4g} {units[worst]}"
        if bounds[worst] < limits[worst]:
            bound += f", of which {bounds[worst]:.4g} {units[worst]} are used"
        return f"{what} of {self.limits.names[worst]} would be {values[worst]:.4g} {units[worst]}, {bound}"


def _after(bad: ArrayLike) -> NDArray[np.bool_]:
    return np.concatenate([[False], np.asarray(bad)])
