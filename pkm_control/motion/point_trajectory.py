# SPDX-License-Identifier: Apache-2.0
"""A platform motion given by points: pose, twist and acceleration at instants, quintic polynomials in between.

Between two points the position follows the quintic that meets position, velocity and acceleration at both ends; the
attitude is the first point's, turned by a rotation vector (base axes) that follows such a quintic too. The rates of a
rotation vector r and the angular velocity w are related by w = J(r) r', J(r) = I + a [r] + b [r]^2 with a = (1 - cos
|r|) / |r|^2 and b = (|r| - sin |r|) / |r|^3 (Bullo and Murray, "Proportional derivative (PD) control on the Euclidean
group", 1995).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from pkm_control.controllers.controller import ROUNDED, Reference
from pkm_control.conveyor.conveyor import Ride
from pkm_control.kernels.tracking import NUMBERS, write_curve
from pkm_control.motion.path_events import NO_EVENTS, PathEvents
from pkm_control.motion.trajectory import SAME, Trajectory, size_of
from pkm_description.mechanism import Array
from pkm_description.rotations import quaternion_inverse, quaternion_product, skew, with_unit_quaternions
from pkm_kinematics import Configuration, Kinematics
from pkm_kinematics.kernels.compiled_rotations import displacement_between
from pkm_kinematics.status import closes
from pkm_runtime.errors import PkmError

# rows: value, first and second derivative at s = 0, the same at s = 1, of 1, s, ..., s^5
_QUINTIC = np.linalg.inv(
    np.array(
        [
            [1, 0, 0, 0, 0, 0],
            [0, 1, 0, 0, 0, 0],
            [0, 0, 2, 0, 0, 0],
            [1, 1, 1, 1, 1, 1],
            [0, 1, 2, 3, 4, 5],
            [0, 0, 2, 6, 12, 20],
        ],
        dtype=np.float64,
    )
)
_BY_SHARE = np.diag(np.arange(1.0, 6.0), 1)  # powers (6,) of the share times this: their derivatives
_DERIVATIVES = np.stack([np.eye(6), _BY_SHARE, _BY_SHARE @ _BY_SHARE])
_TURN = 2.5  # rad between two points: beyond that the rotation vector is too near its singularity at 2 pi


class PointTrajectoryError(PkmError):
    """Points that are no motion: says which point, and what is wrong with it."""


class PointTrajectory:
    """Motion through points, and rest after it. Before its first instant it is at its first pose, at rest.

    At increasing times (n,) [s], the first not negative, poses (n, 7), twists and accelerations (n, 6) are in the base
    frame. Behind them there may be positions and rates of redundant joints, (n, r) each. With more than one repetition
    it must begin at time zero and end as it begins.
    """

    def __init__(self, times: Array, poses: Array, twists: Array, accelerations: Array, repetitions: int = 1) -> None:
        self.times = np.array(times, dtype=np.float64)
        self.poses = with_unit_quaternions(np.array(poses, dtype=np.float64))
        n = len(self.times)
        if n == 0:
            raise PointTrajectoryError("the trajectory has no points")
        for what, values in (("time", self.times), ("pose", poses), ("twist", twists), ("acceleration", accelerations)):
            bad = np.flatnonzero(~np.isfinite(np.reshape(values, (n, -1))).all(axis=1))
            if bad.size:
                raise PointTrajectoryError(f"point {bad[0]}: its {what} is not finite")
        lengths = np.linalg.norm(self.poses[:, 3:7], axis=1)
        bad = np.flatnonzero(np.abs(lengths - 1.0) > 1e-6)
        if bad.size:
            raise PointTrajectoryError(f"point {bad[0]}: its quaternion has length {lengths[bad[0]]:.6g}, not 1")
        if self.times[0] < 0.0:
            raise PointTrajectoryError(f"point 0: its time {self.times[0]:.6g} s is negative")
        bad = np.flatnonzero(np.diff(self.times) <= 0.0)
        if bad.size:
            k = int(bad[0])
            raise PointTrajectoryError(
                f"point {k + 1}: its time {self.times[k + 1]:.6g} s is not after {self.times[k]:.6g} s of point {k}"
            )
        self._coefficients = self._segments(np.asarray(twists, np.float64), np.asarray(accelerations, np.float64))
        self.cycle = float(self.times[-1])  # s: duration of one repetition
        self.duration = self.cycle * repetitions
        if repetitions > 1 and (n < 2 or self.times[0] > 0.0 or not self._closed(twists, accelerations)):
            raise PointTrajectoryError("a trajectory that is repeated must begin at time 0 and end as it begins")

    def _closed(self, twists: Array, accelerations: Array) -> bool:
        """Whether the motion ends as it begins, within a millionth of its size and a thousandth of its rates."""
        first, last = self.poses[0], self.poses[-1]
        away = np.append(displacement_between(first, last), last[7:] - first[7:])
        size = np.append(np.repeat(size_of(self.poses[:, :3]), 3), np.ones(len(away) - 3))
        rates = [np.reshape(x, (-1, len(size))) / size for x in (twists, accelerations)]
        same = all((np.abs(x[0] - x[-1]) <= 1e-3 * np.abs(x).max()).all() for x in rates)
        return same and bool((np.abs(away) < SAME * size).all())

    def _segments(self, twists: Array, accelerations: Array) -> Array:
        """Coefficients (n - 1, 6, 6 + r) of the displacements from each point in powers of the share of the way."""
        n, width = len(self.times), self.poses.shape[1] - 1
        if n < 2:
            return np.zeros((0, 6, width))
        h = np.diff(self.times)[:, None]
        turned = quaternion_product(self.poses[1:, 3:7], quaternion_inverse(self.poses[:-1, 3:7]))
        turns = Rotation.from_quat(turned).as_rotvec()
        angles = np.linalg.norm(turns, axis=1)
        bad = np.flatnonzero(angles > _TURN)
        if bad.size:
            raise PointTrajectoryError(
                f"point {bad[0] + 1}: it turns by {angles[bad[0]]:.3g} rad, more than {_TURN} rad"
            )
        twists, accelerations = np.reshape(twists, (n, width)), np.reshape(accelerations, (n, width))
        ends = np.zeros((n - 1, 6, width))
        ends[:, 1], ends[:, 2] = twists[:-1] * h, accelerations[:-1] * h**2
        steps = np.diff(self.poses, axis=0)
        ends[:, 3] = np.concatenate([steps[:, :3], turns, steps[:, 7:]], axis=1)
        ends[:, 4], ends[:, 5] = twists[1:] * h, accelerations[1:] * h**2
        turning = turns.any(axis=1) | ends[:, :, 3:6].any(axis=(1, 2))
        for k in np.flatnonzero(turning):
            inverse = np.asarray(np.linalg.inv(rate_matrix(turns[k])), dtype=np.float64)
            rate = inverse @ ends[k, 4, 3:6]
            ends[k, 5, 3:6] = inverse @ (ends[k, 5, 3:6] - rate_matrix_rate(turns[k], rate) @ rate)
            ends[k, 4, 3:6] = rate
        return np.asarray(_QUINTIC @ ends)

    def sample(self, times: Array) -> tuple[Array, Array, Array]:
        """Pose (n, 7), twist and acceleration (n, 6), base frame, at times (n,) [s] from the first to the last point's.
        At the ends, too, the rates are the curve's, not those of the rest beside it.
        """
        times = np.asarray(times, dtype=np.float64)
        if len(self.times) < 2:
            still = np.zeros((len(times), self.poses.shape[1] - 1))
            return np.repeat(self.poses, len(times), axis=0), still, still.copy()
        return self._curve(times)

    def _curve(self, times: Array) -> tuple[Array, Array, Array]:
        rows = np.empty((len(times), NUMBERS))
        write_curve(self.times, self.poses, self._coefficients, times, rows)
        found = rows[:, :7].copy(), rows[:, 7:13].copy(), rows[:, 13:].copy()
        if self.poses.shape[1] == 7:
            return found
        k = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, len(self.times) - 2)
        h, part = (self.times[k + 1] - self.times[k])[:, None], self._coefficients[k, :, 6:]
        share = ((times - self.times[k])[:, None] / h) ** np.arange(6)
        value, rate, change = ((share @ _DERIVATIVES)[:, :, None] @ part)[:, :, 0]
        beside = self.poses[k, 7:] + value, rate / h, change / h**2
        return tuple(np.concatenate(both, axis=1) for both in zip(found, beside, strict=True))  # type: ignore[return-value]

    def at(self, time: float) -> Reference:
        """The motion at a time from the start [s]."""
        return self.between(time, time)

    def between(self, time: float, later: float) -> Reference:
        """Pose and twist at a time [s] from the start, acceleration at a later one."""
        rests = self._rests(time), self._rests(later)
        pose, still = self.poses[0 if time < self.duration else -1], np.zeros(self.poses.shape[1] - 1)
        if all(rests):
            return Reference(pose.copy(), still, still.copy())
        poses, twists, accelerations = self._curve(np.array((self._turn(time), self._turn(later))))
        acceleration = still if rests[1] else accelerations[1]
        return (
            Reference(pose.copy(), still.copy(), acceleration)
            if rests[0]
            else Reference(poses[0], twists[0], acceleration)
        )

    def _rests(self, time: float) -> bool:
        return time >= self.duration or time <= self.times[0]

    def _turn(self, time: float) -> float:
        return time % self.cycle if time > self.cycle else time


def _factors(angle: float) -> tuple[float, float, float, float]:
    """a and b of J(r), and their derivatives by the angle, each divided by the angle."""
    t2 = angle * angle
    if angle < 1e-2:  # series: the closed forms cancel
        return 0.5 - t2 / 24.0, 1.0 / 6.0 - t2 / 120.0, -1.0 / 12.0 + t2 / 180.0, -1.0 / 60.0 + t2 / 1260.0
    sine, cosine = np.sin(angle), np.cos(angle)
    a, b = (1.0 - cosine) / t2, (angle - sine) / (t2 * angle)
    return a, b, (sine / angle - 2.0 * a) / t2, ((1.0 - cosine) / t2 - 3.0 * b) / t2


def rate_matrix(r: Array) -> Array:
    """J(r) (3, 3) of a rotation vector (3,): J times its rates is the angular velocity."""
    a, b, _, _ = _factors(float(np.linalg.norm(r)))
    cross = skew(r)
    return np.asarray(np.eye(3) + a * cross + b * cross @ cross)


def rate_matrix_rate(r: Array, rate: Array) -> Array:
    """Rate (3, 3) of J(r) for a rotation vector (3,) and its rate (3,)."""
    a, b, da, db = _factors(float(np.linalg.norm(r)))
    cross, moving = skew(r), skew(rate)
    along = float(r @ rate)
    square = cross @ cross
    return np.asarray(a * moving + b * (moving @ cross + cross @ moving) + along * (da * cross + db * square))


MOST_POINTS = 50_000  # of one motion
_PERIOD = 0.004  # s, between two points of a plan; the controller interpolates
_MOST_OF_PLANS = 40_000  # points
_STEADY = 32  # periods, between two points where a plan does not accelerate
_NOTHING = 1e-9  # m or rad: what an acceleration that is left out would come to between two points


@dataclass(frozen=True, eq=False)
class MotionPoints:
    """Points of a motion, run `repetitions` times without a pause.

    `times` (n,) [s] from its start; `poses` (n, 7), `twists` and `accelerations` (n, 6), base frame, with redundant
    joints (n, r) behind them or without. `start` is the instant of the beginning [s, on the clock of the readings]; 0:
    at once. If the first point is later, the way there from the platform's pose is part of the motion. With a `ride`,
    the points are in a moving frame. `events` happen on the way, in each repetition.
    """

    times: Array
    poses: Array
    twists: Array
    accelerations: Array
    repetitions: int = 1
    start: float = 0.0
    ride: Ride | None = None
    events: PathEvents = NO_EVENTS

    @staticmethod
    def of(plan: Trajectory, repetitions: int = 1) -> MotionPoints:
        """Points of a plan from rest to rest, so close that the curve between them is the plan.

        Where it does not accelerate they are fewer: a slow motion is as quick to send and to check as others.
        """
        n = min(max(2, round(plan.duration / _PERIOD) + 1), _MOST_OF_PLANS)
        sample = plan.sample(np.linspace(0.0, plan.duration, n))
        gap = _STEADY * sample.times[1]
        steady = np.abs(sample.acceleration).max(axis=1) * gap**2 < _NOTHING
        alone = np.concatenate([[False], steady[:-2] & steady[1:-1] & steady[2:], [False]])
        kept = ~alone | (np.arange(n) % _STEADY == 0)
        points = sample.times[kept], sample.pose[kept], sample.twist[kept], sample.acceleration[kept]
        return MotionPoints(*points, repetitions, events=plan.events)

    def at_speed(self, fraction: float) -> MotionPoints:
        """The same path at a fraction of its speed; for a motion without events."""
        f = fraction
        return replace(self, times=self.times / f, twists=f * self.twists, accelerations=f * f * self.accelerations)

    def starting(self, on_other_clock: Callable[[float], float]) -> MotionPoints:
        """The same motion with its start on another clock; one that begins at once stays so."""
        return replace(self, start=on_other_clock(self.start)) if self.start else self

    def __len__(self) -> int:
        return len(self.times)

    def beside(self, kinematics: Kinematics, pose: Array) -> MotionPoints:
        """These points with the redundant joints of a pose (7 + r,), or following it, unless the points say or ride."""
        inputs, n = kinematics.engine.inputs, len(self)
        if len(pose) == 7 or self.ride is not None or self.poses.shape[1] > 7:
            return self
        twists, accelerations = (inputs.coordinate_rates(x, n, "rates") for x in (self.twists, self.accelerations))
        poses = inputs.beside(self.poses, inputs.offset(pose))
        return replace(self, poses=poses, twists=twists, accelerations=accelerations)

    def trajectory(self, kinematics: Kinematics, pose: Array | None, start_tolerance: float) -> PointTrajectory:
        """The trajectory from the platform's pose (7 + r,), base frame; None: from the first point.

        Points that say nothing of redundant joints leave them to the description, see `beside`. They can be reached;
        the curve between them is checked elsewhere. `start_tolerance` is the largest distance to a first point that is
        due at once [m and rad]. PointTrajectoryError: the points are no motion, out of reach, or begin too far away;
        PathEventError: an event makes no sense.
        """
        times, poses, twists, accelerations = self.times, self.poses, self.twists, self.accelerations
        if not len(times):
            raise PointTrajectoryError("the trajectory has no points")
        pose = poses[0] if pose is None else kinematics.engine.inputs.beside(pose[None])[0, : poses.shape[1]]
        inserted = bool(times[0] > 0.0)
        if inserted:  # the way to the first point is part of the motion
            times, poses = np.concatenate([[0.0], times]), np.vstack([pose, poses])
            still = np.zeros(twists.shape[1])
            twists, accelerations = np.vstack([still, twists]), np.vstack([still, accelerations])
        trajectory = PointTrajectory(times, poses, twists, accelerations, max(1, self.repetitions))
        self.events.require(trajectory.cycle)
        jump = displacement_between(pose, trajectory.poses[0])
        if np.linalg.norm(jump[:3]) > start_tolerance or np.linalg.norm(jump[3:]) > start_tolerance:
            raise PointTrajectoryError(
                f"point 0 is {1e3 * np.linalg.norm(jump[:3]):.1f} mm and {np.linalg.norm(jump[3:]):.3g} rad from where"
                " the platform is; begin there, or give the first point a time greater than zero"
            )
        for name, by in zip(kinematics.redundant_names, (trajectory.poses[0] - pose)[7:].tolist(), strict=False):
            if abs(by) > start_tolerance:
                raise PointTrajectoryError(
                    f"point 0: {name} is {abs(by):.3g} from where it is, in rad or m; begin there"
                )
        if self.ride is not None:  # the platform is elsewhere
            return trajectory
        answer = configuration(kinematics, trajectory.poses, None)
        bad = np.flatnonzero(~closes(answer.status))
        if bad.size:
            raise PointTrajectoryError(f"point {bad[0] - inserted}: {answer.reason(int(bad[0]))}")
        return trajectory


def configuration(kinematics: Kinematics, pose: Array, mode: int | None = 0) -> Configuration:
    """The configuration at poses (n, 7 + r), with those that interpolation put off a configuration-dependent motion
    space moved into it. Those that miss it by more stay. Other motion spaces need no help: the solvers round.
    """
    at = kinematics.at(pose, mode=mode)
    if kinematics.constant_space:
        return at
    near = np.flatnonzero(~closes(at.status) & (at.residual < ROUNDED * kinematics.characteristic_length))
    if not near.size:
        return at
    pose, seed = at.pose.copy(), kinematics.home_joints
    for k in near:
        goes_on = k > 0 and closes(at.status[k - 1])
        found = kinematics.nearest(pose[k], seed=at.joints[k - 1] if goes_on else seed)
        if closes(found.status):
            pose[k] = found.pose
    return kinematics.at(pose, mode=mode)
