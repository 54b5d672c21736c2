# SPDX-License-Identifier: Apache-2.0
"""What happened while a motion was run, as arrays: one row per control period."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Recording:
    """A run of n control periods.

    `times` (n,) [s] on the trajectory's clock; `reference` and `measured` (n, 7): poses of the platform, base frame;
    `efforts` (n, n_actuated) as applied [N m or N]; `saturated` (n, n_actuated); `wakes` (k,) [s]: when the control
    loop woke, on the monotonic clock, empty where it did not run in real time. `faults`: reasons, in order. Of a long
    run, only each second, fourth, ... period may have a row (`every`).
    """

    robot: str
    actuated_names: tuple[str, ...]
    rate: float
    cycles: int
    cycle_duration: float
    times: Array
    reference: Array
    measured: Array
    efforts: Array
    saturated: NDArray[np.bool_]
    wakes: Array
    missed: int = 0
    faults: tuple[str, ...] = ()
    effort_units: tuple[str, ...] = ()  # of each actuator; "N m or N" where nobody says
    every: int = 1  # of the control periods, those that have a row

    def save(self, path: Path) -> None:
        """Write the recording as a CSV table, one row per control period, SI units."""
        pose = ("x", "y", "z", "qx", "qy", "qz", "qw")
        header = ["time", *(f"reference_{p}" for p in pose), *(f"measured_{p}" for p in pose)]
        header += [f"effort_{name}" for name in self.actuated_names]
        table = np.column_stack([self.times, self.reference, self.measured, self.efforts])
        np.savetxt(path, table, delimiter=",", header=",".join(header), comments="", fmt="%.9g")


class Recorder:
    """Collects rows up to a capacity that is allocated at once, so that recording does not disturb the loop."""

    def __init__(self, capacity: int, n_actuated: int) -> None:
        self._times = np.zeros(capacity)
        self._reference = np.zeros((capacity, 7))
        self._measured = np.zeros((capacity, 7))
        self._efforts = np.zeros((capacity, n_actuated))
        self._saturated = np.zeros((capacity, n_actuated), dtype=bool)
        self._wakes = np.zeros(capacity)
        self._rows = 0

    @property
    def full(self) -> bool:
        """True when no further row fits."""
        return self._rows == len(self._times)

    def __len__(self) -> int:
        """Return the number of rows so far."""
        return self._rows

    def add(
        self, time: float, reference: Array, measured: Array, efforts: Array, saturated: NDArray[np.bool_], wake: float
    ) -> None:
        """Add one control period; without effect when full. `wake` is NaN where the loop does not run in real time."""
        if self.full:
            return
        i = self._rows
        self._times[i] = time
        self._reference[i] = reference
        self._measured[i] = measured
        self._efforts[i] = efforts
        self._saturated[i] = saturated
        self._wakes[i] = wake
        self._rows += 1

    def recording(
        self,
        robot: str,
        actuated_names: tuple[str, ...],
        rate: float,
        cycles: int,
        cycle_duration: float,
        missed: int = 0,
        faults: tuple[str, ...] = (),
        effort_units: tuple[str, ...] = (),
    ) -> Recording:
        """Return what was collected."""
        n = self._rows
        wakes = self._wakes[:n]
        return Recording(
            robot=robot,
            actuated_names=actuated_names,
            rate=rate,
            cycles=cycles,
            cycle_duration=cycle_duration,
            times=self._times[:n].copy(),
            reference=self._reference[:n].copy(),
            measured=self._measured[:n].copy(),
            efforts=self._efforts[:n].copy(),
            saturated=self._saturated[:n].copy(),
            wakes=wakes[np.isfinite(wakes)].copy(),
            missed=missed,
            faults=faults,
            effort_units=effort_units,
        )
