# SPDX-License-Identifier: Apache-2.0
"""A motion as it is requested: points of the platform's path, wherever the platform is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pkm_control.conveyor.conveyor import Ride
from pkm_control.motion.curve_check import configuration
from pkm_control.motion.path_events import NO_EVENTS, PathEvents
from pkm_control.motion.point_trajectory import PointTrajectory, PointTrajectoryError
from pkm_control.motion.trajectory import Trajectory
from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displacement_between
from pkm_kinematics.status import closes

MOST_POINTS = 50_000  # of one motion
_PERIOD = 0.004  # s, between two points of a plan; the controller interpolates
_MOST_OF_PLANS = 40_000  # points


@dataclass(frozen=True, eq=False)
class MotionPoints:
    """Points of a motion, run `repetitions` times without a pause.

    `times` (n,) [s] from its start; `poses` (n, 7), `twists` and `accelerations` (n, 6), base frame. `start` is the
    instant of the beginning [s, on the clock of the readings]; 0: at once. If the first point is later, the way there
    from the platform's pose is part of the motion. With a `ride`, the points are in a moving frame. `events` happen on
    the way, in each repetition.
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
        """Points of a plan from rest to rest, close enough that the curve between them is the plan.

        With more than one repetition it must end where it begins.
        """
        n = min(max(2, round(plan.duration / _PERIOD) + 1), _MOST_OF_PLANS)
        sample = plan.sample(np.linspace(0.0, plan.duration, n))
        points = sample.times, sample.pose, sample.twist, sample.acceleration
        return MotionPoints(*points, repetitions, events=plan.events)

    def at_speed(self, fraction: float) -> MotionPoints:
        """The same path at a fraction of its speed; for a motion without events."""
        f = fraction
        return replace(self, times=self.times / f, twists=f * self.twists, accelerations=f * f * self.accelerations)

    def starting(self, on_other_clock: Callable[[float], float]) -> MotionPoints:
        """The same motion with its start on another clock; one that begins at once stays so."""
        return replace(self, start=on_other_clock(self.start)) if self.start else self

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.times)

    def trajectory(self, kinematics: Kinematics, pose: Array | None, start_tolerance: float) -> PointTrajectory:
        """The trajectory from the platform's pose (7,), base frame; None: from the first point.

        Its points can be reached; the curve between them is checked elsewhere.

        Args:
            start_tolerance: largest distance to a first point that is due at once [m and rad].

        Raises:
            PointTrajectoryError: the points are no motion, one is out of reach, or the first is too far away.
            PathEventError: an event makes no sense.
        """
        times, poses, twists, accelerations = self.times, self.poses, self.twists, self.accelerations
        if not len(times):
            raise PointTrajectoryError("the trajectory has no points")
        pose = self.poses[0] if pose is None else pose
        inserted = bool(times[0] > 0.0)
        if inserted:  # the way to the first point is part of the motion
            times, poses = np.concatenate([[0.0], times]), np.vstack([pose, poses])
            twists, accelerations = np.vstack([np.zeros(6), twists]), np.vstack([np.zeros(6), accelerations])
        trajectory = PointTrajectory(times, poses, twists, accelerations, max(1, self.repetitions))
        self.events.require(trajectory.cycle)
        jump = displacement_between(pose, trajectory.poses[0])
        if np.linalg.norm(jump[:3]) > start_tolerance or np.linalg.norm(jump[3:]) > start_tolerance:
            raise PointTrajectoryError(
                f"point 0 is {1e3 * np.linalg.norm(jump[:3]):.1f} mm and {np.linalg.norm(jump[3:]):.3g} rad from where"
                " the platform is; begin there, or give the first point a time greater than zero"
            )
        if self.ride is not None:  # the platform is elsewhere
            return trajectory
        answer = configuration(kinematics, trajectory.poses, None)
        bad = np.flatnonzero(~closes(answer.status))
        if bad.size:
            raise PointTrajectoryError(f"point {bad[0] - inserted}: {answer.reason(int(bad[0]))}")
        return trajectory
