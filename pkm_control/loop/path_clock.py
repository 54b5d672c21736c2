# SPDX-License-Identifier: Apache-2.0
"""The clock of a motion: time along its path, at the speed override, whose changes are without jerk.

With s the time on the path and r = ds/dt, a trajectory x(s) with twist v and acceleration a is run with the twist r v
and the acceleration r^2 a + r' v. Rate and its change r' are continuous, so accelerations and efforts are.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from pkm_control.controllers.controller import Reference
from pkm_control.motion.braking import CHANGE, ONSET, Braking
from pkm_control.motion.point_trajectory import PointTrajectory

_STEP = 2e-3  # s: longest step of the profile
_ARRIVED = 1e-9


class PathClock:
    """Time on the path of one motion.

    `time` is the time on the path [s], negative before the motion begins; `rate` is how fast it passes, and `slope` how
    fast that changes [1/s]. The first rate is also the wanted one; `braking` is how quickly the rate may change.
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
