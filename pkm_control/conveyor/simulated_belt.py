# SPDX-License-Identifier: Apache-2.0
"""A simulated belt: it runs at a speed, with an encoder whose stamps have errors."""

from __future__ import annotations

import numpy as np

from pkm_control.conveyor.belt import Belt
from pkm_control.conveyor.conveyor import Conveyor


class SimulatedBelt:
    """Runs, and passes its encoder's readings to a `Belt`; `seed` is of the errors of the stamps.

    Its `speed` [m/s] may be changed at any time, reached at the conveyor's largest acceleration; while `silent` the
    encoder gives no readings; adding to `slip` [m] makes the reading jump, not the belt.
    """

    def __init__(self, conveyor: Conveyor, seed: int = 1) -> None:
        self.conveyor = conveyor
        self.speed = conveyor.simulated.speed
        self.travel = 0.0
        self.silent = False
        self.slip = 0.0
        self.running = self.speed  # m/s, now
        self._random = np.random.default_rng(seed)
        self._time = 0.0
        self._next = 0.0

    def step(self, time: float, belt: Belt) -> None:
        """Advance to a time [s] on the clock of the readings, and pass each reading that is due to `belt`."""
        drive = self.conveyor.simulated
        while self._next <= time:
            self._run(self._next)
            self._next += 1.0 / drive.rate
            if not self.silent:
                stamp = self._time + drive.jitter * self._random.uniform(-1.0, 1.0)
                read = (self.travel + self.slip) / self.conveyor.metres_per_unit + self.conveyor.offset
                belt.hear(stamp + self.conveyor.latency, read)
        self._run(time)

    def _run(self, until: float) -> None:
        passed, self._time = until - self._time, until
        most = self.conveyor.max_acceleration * passed
        before = self.running
        self.running += min(max(self.speed - before, -most), most)
        self.travel += 0.5 * (before + self.running) * passed
