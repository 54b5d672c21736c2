# SPDX-License-Identifier: Apache-2.0
"""How a motion comes to rest on its path: how quickly its rate may be changed, place by place.

With r the rate of the time s on the path, a motion with twist v and acceleration a has the twist r v and the
acceleration r^2 a + r' v. At a place its efforts are linear in r^2 and r', so those of all rates from 0 to 1 are within
bounds where those of both ends are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pkm_description.mechanism import Array

CHANGE = 2.0  # 1/s: of the rate, where a motion does not say what its efforts leave
ONSET = 0.1  # s, in which the change of the rate itself comes up


@dataclass(frozen=True, eq=False)
class Braking:
    """Largest changes of the rate along one cycle of a motion [1/s]: at its full rate, and where it almost rests.

    At its full rate it is zero where the motion itself takes all that the drives give: it is stopped after that.
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

        The change itself rises and falls in `ONSET`, in time that passes at least as quickly as that on the path.

        Args:
            times: equidistant (n,) [s], two or more.
            full: allowed there at the full rate (n,) [1/s].
            slow: allowed there where the motion almost rests (n,) [1/s].
            closed: the motion begins anew at its end.
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
