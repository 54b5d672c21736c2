# SPDX-License-Identifier: Apache-2.0
"""What a run measured, as numbers and as text. `report_plot.py` draws it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from pkm_control.loop.fixed_rate import LoopStatistics, statistics
from pkm_control.report.recording import Recording

Array = NDArray[np.float64]


def tracking_errors(recording: Recording) -> tuple[Array, Array]:
    """Return the position error (n,) [m] and the attitude error (n,) [rad] of the platform in every period."""
    position = np.linalg.norm(recording.measured[:, :3] - recording.reference[:, :3], axis=1)
    wanted = Rotation.from_quat(recording.reference[:, 3:])
    attitude = (wanted.inv() * Rotation.from_quat(recording.measured[:, 3:])).magnitude()
    return position, attitude


@dataclass(frozen=True, eq=False)
class Report:
    """Figures of a run; errors in m and rad, efforts in N m or N per actuator."""

    robot: str
    actuated_names: tuple[str, ...]
    cycles: int
    cycles_done: int
    cycles_per_minute: float
    duration: float
    position_rms: float
    position_max: float
    attitude_rms: float
    attitude_max: float
    effort_peak: Array
    effort_rms: Array
    saturated_periods: NDArray[np.int64]
    wanted_rate: float
    loop: LoopStatistics | None
    missed: int
    faults: tuple[str, ...]
    effort_units: tuple[str, ...]

    @staticmethod
    def of(recording: Recording) -> Report:
        """The figures of a recording.

        Cycles per minute are those of the clock where the run was in real time: a computer that is too slow shows.

        Args:
            recording: of a run.

        Returns:
            Its report.

        Raises:
            ValueError: not a single control period took place.
        """
        if len(recording.times) == 0:
            raise ValueError("the recording is empty: no control period took place")
        position, attitude = tracking_errors(recording)
        clock = recording.wakes if len(recording.wakes) > 1 else recording.times
        took = float(clock[-1] - clock[0])
        moved = float(recording.times[-1] - recording.times[0])
        done = moved / recording.cycle_duration if recording.cycle_duration > 0.0 else 0.0
        return Report(
            robot=recording.robot,
            actuated_names=recording.actuated_names,
            cycles=recording.cycles,
            cycles_done=min(int(done + 0.01), recording.cycles),
            cycles_per_minute=60.0 * done / took if took > 0.0 else 0.0,
            duration=took,
            position_rms=float(np.sqrt(np.mean(position**2))),
            position_max=float(position.max()),
            attitude_rms=float(np.sqrt(np.mean(attitude**2))),
            attitude_max=float(attitude.max()),
            effort_peak=np.abs(recording.efforts).max(axis=0),
            effort_rms=np.sqrt(np.mean(recording.efforts**2, axis=0)),
            saturated_periods=recording.saturated.sum(axis=0),
            wanted_rate=recording.rate,
            loop=statistics(recording.wakes, recording.rate)
            if len(recording.wakes) > 1 and recording.every == 1
            else None,
            missed=recording.missed,
            faults=recording.faults,
            effort_units=recording.effort_units or ("N m or N",) * len(recording.actuated_names),
        )

    def __str__(self) -> str:
        """Return the figures as a table."""
        rows = [
            ("cycles", f"{self.cycles_done} of {self.cycles} in {self.duration:.2f} s"),
            ("cycles per minute", f"{self.cycles_per_minute:.1f}"),
            (
                "tracking error of the platform",
                f"RMS {1e3 * self.position_rms:.4f} mm, max {1e3 * self.position_max:.4f} mm",
            ),
            ("", f"RMS {1e3 * self.attitude_rms:.4f} mrad, max {1e3 * self.attitude_max:.4f} mrad"),
        ]
        for i, name in enumerate(self.actuated_names):
            saturated = f", saturated in {self.saturated_periods[i]} periods" if self.saturated_periods[i] else ""
            rows.append(
                (
                    f"effort of {name}",
                    f"peak {self.effort_peak[i]:.2f}, RMS {self.effort_rms[i]:.2f} {self.effort_units[i]}{saturated}",
                )
            )
        if self.loop is None:
            rows.append(("loop", f"{self.wanted_rate:.0f} Hz of simulated time; not run in real time"))
        else:
            rows += [
                ("loop rate", f"{self.loop.rate:.2f} Hz, wanted {self.wanted_rate:.0f} Hz"),
                (
                    "deviation of the period",
                    f"p99 {1e3 * self.loop.deviation_p99:.3f} ms, max {1e3 * self.loop.deviation_max:.3f} ms",
                ),
                ("missed deadlines", f"{self.missed} of {self.loop.wakes + self.missed}"),
            ]
        rows += [("fault", fault) for fault in self.faults]
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:<{width}}  {value}" for name, value in rows]
        ruler = "-" * max(len(line) for line in lines)
        return "\n".join([f"{self.robot}: what the run measured", ruler, *lines, ruler])
