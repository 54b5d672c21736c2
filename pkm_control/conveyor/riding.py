# SPDX-License-Identifier: Apache-2.0
"""A motion that rides on a conveyor: as it is checked, with the predicted motion of the belt, and as it is run.

With p(s) the motion's points, f(s) the share of the ride, d the direction and u the belt's travel beyond the place for
which the points hold, the platform is at p(s) + f(s) u d. A motion that has to end before its time leaves the belt as
it was then: from there on u grows with the time on the path, and both come to rest together, on the checked curve.
"""

from __future__ import annotations

import numpy as np

from pkm_control.controllers.controller import Reference
from pkm_control.conveyor.belt import Belt
from pkm_control.conveyor.conveyor import STANDS, BeltState, Conveyor, ConveyorError, Ride
from pkm_control.motion.path_clock import PathClock
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_description.mechanism import Array

_SLOWER = 0.1  # of the predicted speed, by which a belt may run otherwise when a motion begins
_LATE = 0.01  # m, by which a belt may have passed the start of a motion


class RidingTrajectory(PointTrajectory):
    """Points (as if the frame stood), carried by a belt that keeps its speed; `aside` is its offset from its
    prediction, along its direction [m]. ConveyorError: the ride makes no sense, the belt is not known, or has gone by.
    """

    def __init__(
        self, points: PointTrajectory, ride: Ride, conveyor: Conveyor, belt: BeltState, aside: float = 0.0
    ) -> None:
        problem = ride.problem(points.cycle) or belt.problem
        if points.duration > points.cycle:
            problem = "a motion in a moving frame runs once"
        if problem:
            raise ConveyorError(problem)
        self.__dict__.update(points.__dict__)
        self.points, self.ride, self.conveyor, self.belt, self.aside = points, ride, conveyor, belt, aside
        self.stands = abs(belt.speed) < STANDS
        self.speed = 0.0 if self.stands else belt.speed
        late = np.sign(self.speed) * (belt.travel - ride.start)
        if late > _LATE:
            raise ConveyorError(
                f"conveyor '{conveyor.name}' has passed the start of the motion by {1e3 * late:.1f} mm; follow the "
                "next object"
            )

    def predicted(self, times: Array) -> Array:
        """Predicted travel (n,) [m] of the belt beyond the place for which the points hold, at times (n,) [s]."""
        begin = self.belt.travel if self.stands else self.ride.start
        return np.asarray(begin - self.ride.travel + self.aside + self.speed * times)

    def sample(self, times: Array) -> tuple[Array, Array, Array]:
        """Pose (n, 7), twist (n, 6) and acceleration (n, 6) on the belt, base frame, at times (n,) [s]."""
        times = np.asarray(times, dtype=np.float64)
        pose, twist, acceleration = self.points.sample(times)
        share, rate, bend = (part[:, None] * self.conveyor.direction for part in self.ride.share(times))
        u = self.predicted(times)[:, None]
        pose[:, :3] += share * u
        twist[:, :3] += rate * u + share * self.speed
        acceleration[:, :3] += bend * u + 2.0 * rate * self.speed
        return pose, twist, acceleration

    def between(self, time: float, later: float) -> Reference:
        """Pose and twist at a time [s] from the start, acceleration at a later one, on a belt that keeps its speed."""
        instants = np.clip((time, later), self.times[0], self.duration)
        pose, twist, acceleration = self.sample(instants)
        return Reference(pose[0], twist[0], acceleration[1])

    def shifted(self, aside: float) -> RidingTrajectory:
        """The same motion on a belt that is `aside` [m] further along its direction."""
        return RidingTrajectory(self.points, self.ride, self.conveyor, self.belt, aside)


class Passenger:
    """A motion while it rides: its reference in each period, by the belt's travel."""

    def __init__(self, motion: RidingTrajectory, belt: Belt) -> None:
        self._motion = motion
        self._belt = belt
        self._jumps = belt.jumps
        self._left = False  # the belt counts no longer
        self._u = self._rate = self._change = 0.0
        self._time = 0.0  # s, on the path

    def advance(self, time: float, clock: PathClock, leaves: bool) -> str:
        """Advance to a time [s] on the clock of the readings; return why the motion has to end, or nothing. `clock` is
        the motion's, which is started here; `leaves`: the motion is being ended on its path.
        """
        motion, belt = self._motion, self._belt
        belt.advance(time)
        before, self._time = self._time, clock.time
        if self._left or leaves:
            self._left, self._change = True, 0.0
            self._u += self._rate * (clock.time - before)
            return ""
        problem = belt.problem(time)
        if belt.jumps > self._jumps:
            problem = f"conveyor '{motion.conveyor.name}' jumped by {1e3 * belt.jumped:.3g} mm"
        begins = clock.time < 0.0 or before < 0.0
        if not problem and begins:
            problem = self._await(clock)
        if problem:
            return self._lose(problem, before, clock)
        u = belt.travel - motion.ride.travel
        missed = u - float(motion.predicted(np.array(clock.time)))
        if clock.time >= 0.0 and abs(missed) > motion.conveyor.deviation:  # where it says to be now may be far away
            problem = (
                f"conveyor '{motion.conveyor.name}' is {1e3 * missed:.1f} mm from where it was predicted to be, more "
                f"than {1e3 * motion.conveyor.deviation:g} mm; it runs at {belt.speed:.3g} m/s instead of "
                f"{motion.speed:.3g} m/s"
            )
            return self._lose(problem, before, clock)
        self._u, self._rate, self._change = u, belt.speed, belt.acceleration
        return ""

    def _lose(self, problem: str, before: float, clock: PathClock) -> str:
        """Leave the belt at its last known travel; a platform that leaves it anyway need not end for that."""
        self._u += self._rate * max(0.0, clock.time - before)
        self._left, self._change = True, 0.0
        return problem if clock.time < self._motion.ride.instants[2] else ""

    def _await(self, clock: PathClock) -> str:
        motion = self._motion
        if not motion.stands:
            clock.time = (self._belt.travel - motion.ride.start) / motion.speed
        self._time = clock.time
        if clock.time >= 0.0 and abs(self._belt.speed - motion.speed) > max(_SLOWER * abs(motion.speed), STANDS):
            return (
                f"conveyor '{motion.conveyor.name}' runs at {self._belt.speed:.3g} m/s instead of the "
                f"{motion.speed:.3g} m/s with which the motion was judged"
            )
        return ""

    def reference(self, clock: PathClock, lead: float) -> Reference:
        """The motion at the present rate, carried; the acceleration is taken `lead` [s] later than pose and twist."""
        motion = self._motion
        at = clock.reference(motion.points, lead)
        times = np.array((clock.time, clock.time + lead * clock.rate))
        share, rise, bend = motion.ride.share(times)
        r, slope = clock.rate, clock.slope
        u = self._u
        du, ddu = (r * self._rate, slope * self._rate) if self._left else (self._rate, self._change)
        later = u + lead * du
        pose, twist, acceleration = at.pose.copy(), at.twist.copy(), at.acceleration.copy()
        d = motion.conveyor.direction
        pose[:3] += share[0] * u * d
        twist[:3] += (r * rise[0] * u + share[0] * du) * d
        acceleration[:3] += ((r * r * bend[1] + slope * rise[1]) * later + 2.0 * r * rise[1] * du + share[1] * ddu) * d
        return Reference(pose, twist, acceleration)
