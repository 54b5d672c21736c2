# SPDX-License-Identifier: Apache-2.0
"""Random motions, meant well or not: trajectories judged whole, and streams that are steered while they run."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pkm_control.loop.jogging import Jog
from pkm_control.motion.motion_space_paths import ActuatorPath
from pkm_control.motion.point_trajectory import PointTrajectory, PointTrajectoryError
from pkm_description.mechanism import Array
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displace, displacement_between
from pkm_kinematics.solve.singularity import scaling
from pkm_runtime.errors import PkmError

PERIOD = 2e-3  # s, between two references of a stream
_KNOTS = 65  # of a motion in which the actuators go straight
_TWISTS, _HELD, _RENEWED = 3, 0.12, 0.04  # of a stream: how many, how long each [s], and how often it is said [s]
_SIZES = np.geomspace(0.05, 5.0, 20)  # characteristic lengths or radians
_PROBES = 60  # poses of a size
_LONGEST = 1.2  # s, from point to point
_TURN = 1.2  # rad from home at most: a trajectory does not turn by more than 2.5 between two points
_GENTLE = 1e-9  # m and rad: no motion


@dataclass(frozen=True, eq=False)
class Course:
    """What a platform is to do: times (n,) [s], poses (n, 7), twists and accelerations (n, 6), base frame."""

    times: Array
    poses: Array
    twists: Array
    accelerations: Array

    @staticmethod
    def of(trajectory: PointTrajectory, step: float) -> Course:
        """A trajectory every `step` seconds, beside the instants at which it was checked, and at its end."""
        times = np.append(np.arange(0.37 * step, trajectory.cycle, step), trajectory.cycle)
        return Course(times, *trajectory.sample(times))


class Draw:
    """Draws motions of one robot.

    Args:
        kinematics: of the robot.
        seed: of the random numbers.
    """

    def __init__(self, kinematics: Kinematics, seed: int) -> None:
        self.kinematics = kinematics
        self.random = np.random.default_rng(seed)
        self.home = np.array(kinematics.home)
        self._length = kinematics.characteristic_length
        space = np.asarray(kinematics.subspace(kinematics.home))
        self._paces: list[float] = []  # at which the way is still to be tried
        self._way_from = self.home
        self._reach = 1.0  # in characteristic lengths or radians
        self._fast = self._length  # m/s, of a point at the characteristic length
        self._space = space / np.linalg.norm(space * scaling(self._length)[:, None], axis=0)
        if kinematics.constant_space:
            self._reach, self._fast = self._reached(), self._fastest()

    def _reached(self) -> float:
        """Return the size of displacements from home of which half end within the workspace."""
        for size in _SIZES:
            poses = np.array([displace(self.home, self._step(size)) for _ in range(_PROBES)])
            if np.mean(np.asarray(self.kinematics.inverse(poses).ok)) < 0.5:
                return float(size)
        return float(_SIZES[-1])

    def _fastest(self) -> float:
        """Return the platform's speed at home where an actuator has its largest, the median of directions."""
        rates = np.asarray(self.kinematics.at(self.home).inverse_jacobian)
        largest = ActuatorLimits.of(self.kinematics.mechanism).velocity
        speeds = []
        for _ in range(_PROBES):
            twist = self._step(1.0)
            room = np.abs(rates @ twist) / largest
            speeds.append(np.linalg.norm(twist * scaling(self._length)) / room.max())
        return float(min(np.median(speeds), 10.0 * self._length))

    def _step(self, size: float) -> Array:
        """Return a displacement (6,) in the motion space at home, of `size` characteristic lengths or radians."""
        return np.asarray(self._space @ (size * self._length * self.random.normal(size=self._space.shape[1])))

    def _somewhere(self) -> Array:
        """Return a pose about home, within the workspace or well outside."""
        step = self._step(self._reach * self.random.choice((0.3, 1.0, 2.0)))
        step[3:] *= min(1.0, _TURN / max(float(np.linalg.norm(step[3:])), _TURN))
        return displace(self.home, step)

    def trajectory(self, start: Array) -> PointTrajectory | str:
        """A motion from a pose, or why it is none.

        Half are slow and go far, so that ranges and singularities end them before drives do; a third turn on the way;
        the others are as fast as no drive is.

        Args:
            start: (7,), base frame.

        Returns:
            The trajectory, at rest at both ends (one in twenty is not).
        """
        if not self.kinematics.constant_space and self.random.random() < 0.995:
            return self._by_actuators(start)
        kind = int(self.random.choice(3, p=(0.5, 0.3, 0.2)))
        n = 2 if kind == 0 else int(self.random.integers(3, 5))
        poses = np.array([start] + [self._somewhere() for _ in range(n - 1)])
        twists, accelerations = np.zeros((n, 6)), np.zeros((n, 6))
        speed = (0.0, 0.1, 5.0)[kind] * self._fast / self._length
        for k in range(1, n - 1):
            twists[k], accelerations[k] = self._step(speed), self._step(speed)
        if self.random.random() < 0.05:
            twists[self.random.choice((0, n - 1))] = self._step(0.5)
        ways = np.array([displacement_between(a, b) for a, b in pairwise(poses)]) * scaling(self._length)
        pace = self._fast * (self.random.choice((0.03, 0.1, 0.3)) if kind < 2 else 20.0)
        steps = np.clip(np.linalg.norm(ways, axis=1) / pace, 0.1, _LONGEST)
        try:
            return PointTrajectory(np.concatenate([[0.0], np.cumsum(steps)]), poses, twists, accelerations)
        except PointTrajectoryError as error:
            return str(error)

    def _by_actuators(self, start: Array) -> PointTrajectory | str:
        """Return a motion in which the actuators go straight, as the motion space turns on the way.

        Ways are long to compute, so each is tried slowly, faster and recklessly, until it is taken.
        """
        if not self._paces or not np.array_equal(self._way_from, start):
            goal = self.kinematics.nearest(self._somewhere())
            try:
                self._way = ActuatorPath(self.kinematics, start, np.asarray(goal.pose))
            except (PkmError, ValueError) as error:
                return str(error)
            self._way_from, self._paces = start.copy(), [1.0, 3.0, 9.0, 30.0]
        return _timed(self._way, self._way.length / (self._length * self._paces.pop()))

    def stream(self, jog: Jog, now: float) -> Course:
        """Steer from where a jog is, wildly, and take down what became of it.

        Half of the streams are twists, the others poses to go to, one after the other before the last is reached.

        Args:
            jog: that is steered; it moves on afterwards.
            now: s, on its clock.

        Returns:
            The references that a controller would have had.
        """
        rows = []
        for _ in range(_TWISTS):
            twist = self._step(self.random.choice((0.3, 3.0, 30.0)))
            servo = self.random.random() < 0.5
            if servo:
                try:
                    jog.go_to(jog.nearest(self._somewhere(), self.home))
                except PkmError:
                    servo = False
            for tick in range(round(_HELD / PERIOD)):
                if not servo and tick % round(_RENEWED / PERIOD) == 0:
                    jog.steer(twist, now)
                jog.advance(PERIOD, now)
                now += PERIOD
                at = jog.reference(0.0)
                rows.append((now, at.pose, at.twist, at.acceleration))
        return Course(*(np.array(column) for column in zip(*rows, strict=True)))


def _timed(way: ActuatorPath, duration: float) -> PointTrajectory | str:
    """Return a way from rest to rest, or why there is none."""
    u = np.linspace(0.0, 1.0, _KNOTS)
    s = way.length * u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    rate = way.length / duration * 30.0 * u**2 * (1.0 - u) ** 2
    change = way.length / duration**2 * 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u)
    at = way.sample(s)
    first, second = np.asarray(at.first), np.asarray(at.second)
    twists, accelerations = first * rate[:, None], second * rate[:, None] ** 2 + first * change[:, None]
    try:
        return PointTrajectory(u * duration, at.pose, twists, accelerations)
    except PointTrajectoryError as error:
        return str(error)


def moves(course: Course) -> bool:
    return bool(np.abs(course.poses - course.poses[0]).max() > _GENTLE)
