# SPDX-License-Identifier: Apache-2.0
"""Motion that an operator steers: by a twist, or to a pose, always within what the machine can do.

The rate of the motion follows the request through a critically damped filter of second order, so speed and acceleration
are continuous and the jerk is bounded. It goes from knot to knot, a few milliseconds apart. Before a knot becomes part
of the reference, it and the way on which the motion would come to rest from there are checked as trajectories are
(`CurveCheck`), with the twists, accelerations and efforts of that way. Where that fails, the motion takes the way to
rest that was checked with the knot before: so there always is one, and it ends before the border.

The motion is straight in the platform where the motion space is constant. Where it is configuration-dependent, the
actuators go straight, and the platform follows by forward kinematics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pkm_control.controllers.controller import Measured, Reference, found_at
from pkm_control.motion.curve_check import CurveCheck, Room, Sliced, whole
from pkm_control.motion.point_trajectory import PointTrajectory, rate_matrix, rate_matrix_rate
from pkm_description.mechanism import Array
from pkm_description.rotations import with_unit_quaternions
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displace, displacement_between
from pkm_kinematics.solve.singularity import scaling
from pkm_kinematics.status import closes
from pkm_runtime.errors import PkmError

TICK = 0.01  # s, between two knots
TICK_TURNING = 0.02  # s: the same where each needs forward kinematics
BANDWIDTH = 25.0  # rad/s, of the filter: it comes to rest within a third of a second
CATCHES = (2.0, 1.0, 0.5, 0.25, 0.125)  # of that: how quickly a platform that is found moving is brought to rest
_ALMOST = 1.25  # of what the drives give: a platform that has to be stopped at a border is worth that
APPROACH = 4.0 / 27.0 * BANDWIDTH  # 1/s: the most that brings position, rate and filter to a pose without overshoot
LINEAR = 0.25  # m/s: largest speed, that of machines which people stand beside
LENGTHS = 1.0  # 1/s: the same in characteristic lengths, for small machines
ANGULAR = 0.8  # rad/s
OF_ACTUATORS = 0.5  # of their velocity limits
RENEWAL = 0.25  # s: a twist that is not renewed for so long is zero
LOW = 0.3  # of these speeds: moves back in from outside
_STOPS = np.array((1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 11.0, 15.0, 21.0, 32.0))  # ticks: where the way to rest is looked at
_LESS = 0.6  # of its speed is left to a motion that was stopped by the check
_NOTHING = 0.02  # of its speed: less is a stop
_SAME_WAY = 0.95  # cosine of the angle within which a direction is still the one that was stopped
_FOUND_AT_REST = 1e-3  # of the characteristic length per second: a platform that is no faster rests
_ARRIVED = 1e-5  # of the characteristic length, and that per second
_SHARES = 257  # of the way to a pose that is out of reach, of which the last that can be taken is looked for
FASTEST = 1e6  # m/s or rad/s of a twist that is asked for, and m of a pose: beyond, numbers are nonsense
_FARTHEST = 1e6  # robot sizes, of a pose that is asked for: beyond, numbers are nonsense
_LONGEST = 0.05  # s, that one call moves on
_SLICE = 0.001  # s, of a period for each slice of planning: a loop of 1 kHz does one
_EVER = 100.0  # time constants after which the filter rests
_WAY_IN = 81  # poses looked at on the way back in


@dataclass(frozen=True, eq=False)
class _Knot:
    """Pose, twist and acceleration of the platform, and the coordinates that the filter moves with their rates."""

    pose: Array
    twist: Array
    acceleration: Array
    place: Array  # (6,) of the platform (not used), or the actuators (n_actuated,)
    rate: Array
    change: Array  # of the rate
    joints: Array | None = None


@dataclass(frozen=True, eq=False)
class _Way:
    """Samples of a way: poses (n, 7), twists and accelerations (n, 6)."""

    pose: Array
    twist: Array
    acceleration: Array


def jog_speeds(kinematics: Kinematics) -> tuple[float, float]:
    """Largest speeds of jogs [m/s, rad/s], to which requests are limited."""
    linear = min(LINEAR, LENGTHS * kinematics.characteristic_length)
    return linear, min(ANGULAR, linear / kinematics.characteristic_length)


class Jog:
    """The reference of a machine that an operator jogs; `blocked` says why a motion was stopped at a border."""

    def __init__(self, check: CurveCheck) -> None:
        self.check = check
        self.kinematics = k = check.kinematics
        self.blocked = ""
        self._straight = k.constant_space
        self._tick = TICK if self._straight else TICK_TURNING
        self._weights = scaling(k.characteristic_length)
        self._linear, self._angular = jog_speeds(k)
        self._fast = OF_ACTUATORS * check.limits.velocity
        self._twist: Array | None = None
        self._until = -math.inf
        self._target: Array | None = None
        self._goal_joints: Array | None = None
        self._speed = 1.0
        self._share = 1.0
        self._stopped_way: Array | None = None
        self.start(np.array(k.home))

    def start(self, pose: Array) -> None:
        """Begin at rest at a pose (7,), base frame, or (7 + r,): redundant joints stay, or follow, from there."""
        self._offset = self.kinematics.engine.inputs.offset(pose)
        pose = np.array(pose[:7], dtype=np.float64)
        still = np.zeros(6)
        if self._straight:
            self._begin = self._end = _Knot(pose, still, still, still, still, still)
        else:
            solution = self.kinematics.inverse(pose, mode=self.check.mode)
            joints = np.array(solution.joints)
            if not np.isfinite(joints).all():
                at = self.kinematics.nearest(pose)
                joints = np.array(at.joints)
            q = joints[self.kinematics.engine.actuated_column]
            self._begin = self._end = _Knot(pose, still, still, q, 0.0 * q, 0.0 * q, joints)
        self._base, self._stopping_for = self._end, 0.0  # the last checked knot, and how long it is ago, s
        self._pace = BANDWIDTH  # rad/s, of the way to rest from there
        self._segment: PointTrajectory | None = None
        self._since = self._tick  # s, on the segment
        self._plan: Sliced[tuple[_Knot, PointTrajectory | None]] | None = None
        self._next_knot: tuple[_Knot, PointTrajectory | None] | None = None
        self._share, self._stopped_way, self.blocked = 1.0, None, ""
        self._twist = self._target = None
        self._room: Room | None = None  # what it may ask of the drives, once that is known

    def catch(self, measured: Measured) -> None:
        """Begin at the measured pose and twist, and come to rest."""
        self.start(found_at(self.kinematics, measured))
        speeds = np.abs(measured.twist * self._weights)
        if not np.isfinite(speeds).all() or speeds.max() < _FOUND_AT_REST * self.kinematics.characteristic_length:
            return
        pose, twist, still = np.array(measured.pose), np.array(measured.twist), np.zeros(6)
        if self._straight:
            knot = _Knot(pose, twist, still, still, twist, still)
        else:
            place, rate = np.array(measured.positions), np.array(measured.velocities)
            knot = _Knot(pose, twist, still, place, rate, 0.0 * rate, np.array(measured.joints))
        self._begin = self._end = self._base = knot
        self._pace = self._gentle_enough(knot)

    def _gentle_enough(self, knot: _Knot) -> float:
        """The quickest pace at which the drives can bring a platform to rest; over a border, where all lead over one,
        the quickest that they can almost follow; else the one that asks least.
        """
        least, best, soonest = math.inf, CATCHES[0] * BANDWIDTH, 0.0
        for share in CATCHES:
            way = whole(self._way_to_rest(knot, share * BANDWIDTH))
            if way is None:
                continue
            poses = self._beside(way.pose)
            load = self.check.load(poses, way.twist, way.acceleration)
            if load <= 1.0 and self.check.first_fault(poses, way.twist, way.acceleration) is None:
                return share * BANDWIDTH
            if load <= _ALMOST:
                soonest = max(soonest, share * BANDWIDTH)
            if load < least:
                least, best = load, share * BANDWIDTH
        return soonest or best

    def steer(self, twist: Array, now: float) -> None:
        """Move at a twist (6,) [m/s, rad/s], base axes, for `RENEWAL` from `now` [s] on, limited as jogs are."""
        if not np.isfinite(twist).all():
            raise PkmError("the twist is not finite")
        self._twist, self._until = np.array(twist, dtype=np.float64), now + RENEWAL
        self._target, self._speed = None, 1.0

    def go_to(self, pose: Array, speed: float = 1.0) -> None:
        """Move to a pose (7,), base frame, from `nearest`, at a fraction of the usual speed; PkmError: unreachable."""
        goal = None
        if not self._straight:
            solution = self.kinematics.inverse(pose, mode=self.check.mode)
            if not closes(solution.status):
                raise PkmError(f"the platform cannot be there: {solution.reason(0)}")
            goal = np.array(solution.actuated)
        self._target, self._goal_joints, self._twist, self._speed = np.array(pose[:7]), goal, None, speed
        self._share, self._stopped_way, self.blocked = 1.0, None, ""

    def nearest(self, pose: Array, start: Array) -> Array:
        """The pose (7,), base frame, nearest to `pose` that closes the loops; else the last one straight from `start`.
        The motion there may end earlier, at a limit. PkmError: the pose is unusable, or nothing on the way is nearer.
        """
        pose = with_unit_quaternions(pose[None])[0]
        if not np.isfinite(pose).all() or abs(np.linalg.norm(pose[3:]) - 1.0) > 1e-6:
            raise PkmError("the pose is not finite, or its quaternion is not of unit length")
        if np.abs(pose[:3]).max() > _FARTHEST * self.kinematics.characteristic_length:
            raise PkmError(f"the pose is farther than {_FARTHEST:g} times the robot's size from its base")
        inputs = self.kinematics.engine.inputs
        offset = inputs.offset(start)
        if closes(self.kinematics.inverse(inputs.beside(pose[None], offset), mode=self.check.mode).status[0]):
            return np.array(pose)
        found = self.kinematics.nearest(pose)
        if closes(found.status):
            return np.array(found.pose)
        way = displacement_between(start, pose)
        on_the_way = np.array([displace(start, share * way) for share in np.linspace(0.0, 1.0, _SHARES)])
        open_to = closes(self.kinematics.inverse(inputs.beside(on_the_way, offset), mode=self.check.mode).status)
        last = int(np.argmin(open_to)) - 1  # before the first that cannot be taken
        if last < 1:
            raise PkmError(f"no feasible pose near that one: {found.reason(0)}")
        return np.array(on_the_way[last])

    def release(self) -> float:
        """Come to rest; until when the last twist would have been followed [s, clock of `steer`]."""
        self._twist = self._target = None
        return self._until

    @property
    def at_rest(self) -> bool:
        """Whether nothing moves and nothing is requested."""
        return self._twist is None and self._target is None and not self._end.rate.any() and self._since >= self._tick

    def advance(self, dt: float, now: float) -> None:
        """Let dt [s] pass; `now` [s] on the clock of `steer`."""
        if self._twist is not None and now > self._until:
            self._twist = None
        if self.at_rest:
            self._plan = self._next_knot = None
            return
        for _ in range(max(1, round(min(dt, _LONGEST) / _SLICE))):
            self._work()
        self._since += min(dt, _LONGEST)
        while self._since >= self._tick and not self.at_rest:
            moves = bool(self._end.rate.any())
            while moves and self._next_knot is None:
                self._work()
            if self._next_knot is None:  # a motion that begins at rest can wait
                self._since = self._tick
                return
            self._since = self._since - self._tick if moves else 0.0
            self._begin, (self._end, self._segment), self._next_knot = self._end, self._next_knot, None
            if self._segment is None:
                self._since = self._tick
                return

    def _work(self) -> None:
        if self._next_knot is not None:
            return
        self._plan = self._plan or self._planned()
        try:
            next(self._plan)
        except StopIteration as done:
            self._next_knot, self._plan = done.value, None

    def reference(self, lead: float) -> Reference:
        """The present reference; its acceleration is taken `lead` [s] later than pose and twist."""
        at, ahead = self._at(self._since), self._at(self._since + lead)
        return Reference(self._beside(at.pose[None])[0], at.twist, ahead.acceleration)

    def way_in(self, pose: Array) -> Array | None:
        """The first good pose (7,) towards home, from one (7 + r,) that is not; None where there is no way there."""
        inputs = self.kinematics.engine.inputs
        line = self._line(pose[:7], np.array(self.kinematics.home))
        if line is None:
            return None
        whole = inputs.beside(line, inputs.offset(pose))
        lacks = self.check.deficits(whole).any(axis=1)
        well = np.flatnonzero(~lacks)
        if not well.size:
            return None
        first = min(int(well[0]) + 1, len(line) - 1)
        return None if self.check.first_fault(whole[: first + 1]) is not None else line[first]

    # -- inside -----------------------------------------------------------------------------------------------------

    def _beside(self, poses: Array) -> Array:
        """Poses (n, 7) with the positions (n, r) that redundant joints have there in this jog."""
        return self.kinematics.engine.inputs.beside(poses, self._offset)

    def _at(self, since: float) -> Reference:
        if self._segment is None or since >= self._tick:
            return Reference(self._end.pose, self._end.twist, self._end.acceleration)
        if since <= 0.0:
            return Reference(self._begin.pose, self._begin.twist, self._begin.acceleration)
        return self._segment.at(since)

    def _between(self, a: _Knot, b: _Knot) -> PointTrajectory:
        times = np.array((0.0, self._tick))
        twists, accelerations = np.array((a.twist, b.twist)), np.array((a.acceleration, b.acceleration))
        return PointTrajectory(times, np.array((a.pose, b.pose)), twists, accelerations)

    def _planned(self) -> Sliced[tuple[_Knot, PointTrajectory | None]]:
        here = self._end
        requested = self._requested_rate()
        yield
        if requested is None:
            self._share, self._stopped_way = 1.0, None
        elif self._stopped_way is not None and _cosine(requested, self._stopped_way) < _SAME_WAY:
            self._share, self._stopped_way, self.blocked = 1.0, None, ""
        if requested is not None and self._share > 0.0:
            reason = "the configuration is singular"
            if self._room is None:
                self._room = self.check.room_at(self._beside(here.pose[None])[0])
                yield
            knot = yield from self._next(self._share * requested)
            yield
            way = None
            if knot is not None:
                way = yield from self._way_to_rest(knot)
                yield
            if knot is not None and way is not None:
                fault = yield from self.check.step_by_step(
                    self._beside(np.concatenate([[here.pose, knot.pose], way.pose])),
                    np.concatenate([[here.twist, knot.twist], way.twist]),
                    np.concatenate([[here.acceleration, knot.acceleration], way.acceleration]),
                    self._room,
                )
                yield
                if fault is None:
                    self._base, self._stopping_for, self._pace = knot, 0.0, BANDWIDTH
                    return knot, self._between(here, knot)
                reason = fault.reason
            self._share *= _LESS
            self._stopped_way = requested
            if self._share < _NOTHING:
                self._share, self._target = 0.0, None
                self.blocked = reason
        self._stopping_for += self._tick
        knot = yield from self._resting(self._base, self._stopping_for)
        if knot is None or self._nearly_at_rest(knot):
            end = here if knot is None else knot
            rest = np.zeros(6)
            knot = _Knot(end.pose, rest, rest, end.place, 0.0 * end.rate, 0.0 * end.rate, end.joints)
        moves = here.rate.any() or knot.rate.any()
        return knot, self._between(here, knot) if moves else None

    def _nearly_at_rest(self, knot: _Knot) -> bool:
        slow = _ARRIVED * self.kinematics.characteristic_length
        speeds = np.abs(np.concatenate([knot.twist * self._weights, knot.acceleration * self._weights / self._pace]))
        return bool(speeds.max() < slow)

    def _requested_rate(self) -> Array | None:
        k, here = self.kinematics, self._end
        if self._target is None and self._twist is None:
            return None
        at = k.at(self._beside(here.pose[None])[0], mode=self.check.mode)
        space, K = at.subspace, at.inverse_jacobian
        if not (np.isfinite(space).all() and np.isfinite(K).all()):
            return None
        weighted = space * self._weights[:, None]
        if self._target is None:
            assert self._twist is not None
            wanted = self._twist
        else:
            wanted = APPROACH * displacement_between(here.pose, self._target)
        twist = space @ np.linalg.lstsq(weighted, wanted * self._weights, rcond=None)[0]
        rates = K @ twist
        if self._target is not None and self._goal_joints is not None:
            rates = APPROACH * (self._goal_joints - here.place)
            twist = np.nan_to_num(k.at(here.pose, here.joints).platform_twist(rates))
        if self._target is not None:
            left = np.linalg.norm(twist * self._weights) / APPROACH
            if left < _ARRIVED * k.characteristic_length:
                self._target = None
                return None
        with np.errstate(divide="ignore", invalid="ignore"):
            rooms = [self._linear / np.linalg.norm(twist[:3]), self._angular / np.linalg.norm(twist[3:])]
            rooms.append(np.nanmin(np.where(rates == 0.0, np.inf, self._fast / np.abs(rates))))
        scale = min(1.0, self._speed * min(float(room) for room in rooms))
        return scale * (twist if self._straight else rates)

    def _next(self, requested: Array) -> Sliced[_Knot | None]:
        here = self._end
        ways, rates, changes = _filtered(here.rate, here.change, requested, np.array((self._tick,)))
        if self._straight:
            pose = displace(here.pose, ways[0])
            return _Knot(pose, rates[0], changes[0], here.place, rates[0], changes[0])
        return (yield from self._by_actuators(here, here.place + ways[0], rates[0], changes[0]))

    def _way_to_rest(self, knot: _Knot, pace: float = BANDWIDTH) -> Sliced[_Way | None]:
        """How the motion comes to rest from a knot by decaying rates, the last sample at rest; None where it cannot."""
        ticks = self._tick * _STOPS
        times = np.append(ticks[ticks < 8.5 / BANDWIDTH] * (BANDWIDTH / pace), math.inf)
        ways, rates, changes = _filtered(knot.rate, knot.change, np.zeros_like(knot.rate), times, pace)
        if self._straight:
            pose = np.array([displace(knot.pose, way) for way in ways])
            twist, acceleration = rates.copy(), changes.copy()
            for i in np.flatnonzero(ways[:, 3:].any(axis=1)):
                twist[i, 3:], acceleration[i, 3:] = _turning(ways[i, 3:], rates[i, 3:], changes[i, 3:])
            return _Way(pose, twist, acceleration)
        found = yield from self._continued(knot, knot.place + ways, rates, changes)
        return None if found is None else _Way(*found[:3])

    def _continued(
        self, near: _Knot, places: Array, rates: Array, changes: Array
    ) -> Sliced[tuple[Array, Array, Array, Array] | None]:
        """Poses, twists, accelerations and joints of actuator states after a knot; None where one has none."""
        rests = self.kinematics.forward(places, near=near.pose, seed=near.joints)
        if not closes(rests.status).all():
            return None
        yield
        at = rests.configuration
        twist = at.platform_twist(rates)
        if not np.isfinite(twist).all():
            return None
        yield
        acceleration = at.platform_acceleration(twist, changes)
        return (np.array(rests.pose), twist, acceleration, rests.joints) if np.isfinite(acceleration).all() else None

    def _resting(self, base: _Knot, since: float) -> Sliced[_Knot | None]:
        rest, after = np.zeros_like(base.rate), np.array((since,))
        ways, rates, changes = _filtered(base.rate, base.change, rest, after, self._pace)
        way, rate, change = np.asarray(ways[0]), np.asarray(rates[0]), np.asarray(changes[0])
        if not self._straight:
            return (yield from self._by_actuators(self._end, base.place + way, rate, change))
        twist, acceleration = np.array(rate), np.array(change)
        if way[3:].any():
            twist[3:], acceleration[3:] = _turning(way[3:], rate[3:], change[3:])
        return _Knot(displace(base.pose, way), twist, acceleration, base.place, twist, acceleration)

    def _by_actuators(self, near: _Knot, place: Array, rate: Array, change: Array) -> Sliced[_Knot | None]:
        found = yield from self._continued(near, place[None], rate[None], change[None])
        if found is None:
            return None
        pose, twist, acceleration, joints = (part[0] for part in found)
        return _Knot(pose, twist, acceleration, place, rate, change, joints)

    def _line(self, start: Array, end: Array) -> Array | None:
        shares = np.linspace(0.0, 1.0, _WAY_IN)
        if self._straight:
            way = displacement_between(start, end)
            return np.array([displace(start, share * way) for share in shares])
        k = self.kinematics
        ends = k.inverse(np.array([start, end]), mode=self.check.mode)
        if not closes(ends.status).all():
            return None
        q = ends.actuated
        found = k.forward(q[0] + shares[:, None] * (q[1] - q[0]), near=start, seed=ends.joints[0])
        return np.array(found.pose) if closes(found.status).all() else None


def _filtered(
    rate: Array, change: Array, requested: Array, times: Array, pace: float = BANDWIDTH
) -> tuple[Array, Array, Array]:
    """Way, rate and its change (n, m) after `times` (n,) [s], of a rate that follows a constant `requested` (m,)."""
    t = np.minimum(times, _EVER / pace)[:, None]
    off = rate - requested
    push = change + pace * off
    decay = np.exp(-pace * t)
    left = off + push * t
    way = requested * t + off / pace + push / pace**2 - decay * (left / pace + push / pace**2)
    return way, requested + left * decay, (push - pace * left) * decay


def _turning(turn: Array, rate: Array, change: Array) -> tuple[Array, Array]:
    """Angular velocity and acceleration (3,) from the rate and change of a rotation vector (3,)."""
    turned = rate_matrix(turn)
    return np.asarray(turned @ rate), np.asarray(turned @ change + rate_matrix_rate(turn, rate) @ rate)


def _cosine(a: Array, b: Array) -> float:
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms > 0.0 else 0.0
