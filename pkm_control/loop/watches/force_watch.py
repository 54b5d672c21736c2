# SPDX-License-Identifier: Apache-2.0
"""The force-torque sensor of a law that needs one: its newest reading, and a watch on its silence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.controllers.controller import Controller, Measured

Array = NDArray[np.float64]

SILENT = "the force sensor is silent"


class ForceWatch:
    """Adds sensor readings to measurements, as long as they are at most `max_age` [s] old.

    `lost` says why forces can no longer be followed, and is empty while they can. It stays until the readings are back
    and `regain` was called, which is for a platform at rest.
    """

    def __init__(self, controller: Controller, max_age: float) -> None:
        self._controller = controller
        self._max_age = max_age
        self._reading: Array | None = None
        self._heard = -np.inf
        self.lost = ""

    def hear(self, reading: Array, now: float) -> None:
        """Take a wrench (6,) on the platform, in the sensor's frame [N, N m], at `now` [s]; ignored unless finite."""
        if np.isfinite(reading).all():
            self._reading, self._heard = np.array(reading, dtype=np.float64), now

    def feel(self, measured: Measured, now: float) -> Measured:
        """Add the wrench where the law needs it and it is known; the law is told which. `now` as in `hear`."""
        controller = self._controller
        if not controller.feels:
            return measured
        age = now - self._heard
        if self._reading is None:
            self.lost = f"{SILENT}: no reading has ever come"
        elif not age <= self._max_age:
            self.lost = f"{SILENT}: the last reading is {1e3 * age:.0f} ms old, more than {1e3 * self._max_age:.0f} ms"
        controller.engage(not self.lost)
        if self._reading is None or self.lost:
            return measured
        return controller.felt_by(measured, self._reading)

    def fresh(self, now: float) -> bool:
        """Whether readings come."""
        return now - self._heard <= self._max_age

    def regain(self) -> None:
        """Follow forces again."""
        self.lost = ""
