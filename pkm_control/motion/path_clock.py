# SPDX-License-Identifier: Apache-2.0
"""The clock of a motion: time along its path, at the speed override, and how quickly its rate may be changed.

With r the rate of the time s on the path, a motion with twist v and acceleration a has the twist r v and the
acceleration r^2 a + r' v. At a place its efforts are linear in r^2 and r', so those of all rates from 0 to 1 are within
bounds where those of both ends are. Rate and its change r' are continuous, so accelerations and efforts are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pkm_control.controllers.controller import Reference
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_description.mechanism import Array

CHANGE = 2.0  # 1/s: of the rate, where a motion does not say what its efforts leave
ONSET = 0.1  # s, in which the change of the rate itself comes up


@dataclass(frozen=True, eq=False)
class Braking:
    """Largest changes of the rate along one cycle of a motion [1/s]: at its full rate, and where it almost rests. At
    its full rate it is zero where the motion itself takes all that the drives give: it is stopped after that.
    """

    full: tuple[float, ...]
    slow: tuple[float, ...]
    first: float = 0.0  # s, on the path: of the first of them
    step: float = 1.0  # s, between two

    @staticmethod
    def steady(change: float) -> Braking:
        """The same change of the rate [1/s] everywhere."""
        return Braking((change,), (change,))

    @staticmethod
    def along(times: Array, full: Array, slow: Array, closed: bool) -> Braking:
        """Changes between each two instants that a changing rate can follow, lowered in time for smaller ones to come.

        The change itself rises and falls in `ONSET`, in time that passes at least as quickly as that on the path. At
        equidistant times (n,) [s], `full` and `slow` (n,) [1/s] are allowed at the full rate, and where the motion
        almost rests. `closed`: the motion begins anew at its end.
        """
        step = float(times[1] - times[0])
        steepest = max(float(full.max()), float(slow.max())) / ONSET * step
        both = [np.minimum(changes[:-1], changes[1:]).tolist() for changes in (full, slow)]
        for found in both:
            for _ in range(2 if closed else 1):
                after = found[0] if closed else found[-1]
                for k in range(len(found) - 1, -1, -1):
                    found[k] = after = min(found[k], after + steepest)
        return Braking(tuple(both[0]), tuple(both[1]), float(times[0]), step)

    @property
    def most(self) -> float:
        """Largest change [1/s]."""
        return max(*self.full, *self.slow)

    @property
    def least(self) -> float:
        """Smallest change [1/s]."""
        return min(*self.full, *self.slow)

    def at(self, time: float, rate: float) -> float:
        """Largest change [1/s] at a time on the path [s] and a rate, 0 to 1."""
        k = int((time - self.first) / self.step) % len(self.full) if time > self.first else 0
        return self.slow[k] + rate * rate * (self.full[k] - self.slow[k])


_STEP = 2e-3  # s: longest step of the profile
_ARRIVED = 1e-9


class PathClock:
    """Time on the path of one motion [s], negative before it begins.

    `rate` is how fast it passes, and `slope` how fast that changes [1/s]. The first rate is also the wanted one;
    `braking` is how quickly the rate may change.
    """

    def __init__(self, time: float = 0.0, rate: float = 1.0, braking: Braking | None = None) -> None:
        self.time = time
        self.rate = rate
        self.slope = 0.0
        self.wanted = rate
        self._braking = braking or Braking.steady(CHANGE)
        self._bend = self._braking.most / ONSET  # 1/s^2

    @property
    def at_rest(self) -> bool:
        """Whether time stands still on the path."""
        return self.rate == 0.0

    def advance(self, dt: float) -> None:
        """Let dt [s] of real time pass."""
        if self.time < 0.0:  # what begins later begins then, at whatever rate, unless it is halted before
            self.rate, self.slope = self.wanted, 0.0
            self.time += dt if self.wanted > 0.0 else 0.0
            dt = max(self.time, 0.0)
            self.time = min(self.time, 0.0)
        if self.rate == self.wanted and self.slope == 0.0:
            self.time += self.rate * dt
            return
        steps = max(1, math.ceil(dt / _STEP))
        for _ in range(steps):
            self._step(dt / steps)

    def _step(self, h: float) -> None:
        """Go on by a short time: slopes change by at most `bend` per second, and end where the rate is as wanted."""
        bend, allowed = self._bend, self._braking.at(self.time, self.rate)
        left = self.wanted - self.rate
        # the fastest slope from which the rate comes to rest, in steps of h, without passing what is wanted
        most = min(allowed, bend * (math.sqrt(0.25 * h * h + 2.0 * abs(left) / bend) - 0.5 * h))
        goal = math.copysign(most, left)
        slope = self.slope + max(-bend * h, min(bend * h, goal - self.slope))
        slope = max(-allowed, min(allowed, slope))
        before = self.rate
        self.rate += slope * h
        arrived = abs(self.wanted - self.rate) <= max(_ARRIVED, 0.5 * bend * h * h) and abs(slope) <= 1.5 * bend * h
        if arrived:
            self.rate, slope = self.wanted, 0.0
        self.rate = min(max(self.rate, 0.0), 1.0)
        self.slope = slope
        self.time += 0.5 * (before + self.rate) * h

    def reference(self, trajectory: PointTrajectory, lead: float, ahead: float = 0.0) -> Reference:
        """The present reference, its acceleration `lead` [s] later; the law looks `ahead` [s] along the motion."""
        at = trajectory.between(self.time, self.time + lead * self.rate)
        update_soon = (
            trajectory.at(self.time + max(self.rate + 0.5 * self.slope * ahead, 0.0) * ahead).pose if ahead else None
        )
        if self.rate == 1.0 and self.slope == 0.0:
            return at if update_soon is None else replace(at, update_soon=update_soon)
        acceleration = self.rate**2 * at.acceleration + self.slope * at.twist
        return Reference(at.pose, self.rate * at.twist, np.asarray(acceleration), update_soon)
