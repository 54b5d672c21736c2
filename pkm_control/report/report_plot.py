# SPDX-License-Identifier: Apache-2.0
"""The picture of a run: way of the platform, tracking error, efforts and loop period, as a PNG file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pkm_control.report.recording import Recording
from pkm_control.report.report import tracking_errors

_MAX_POINTS = 20000
_EFFORT_CYCLES = 2.0  # more of them would be a solid block of colour


def plot(recording: Recording, path: Path) -> None:
    """Write the picture of a recording to `path` (PNG)."""
    step = max(1, len(recording.times) // _MAX_POINTS)
    times = recording.times[::step]
    figure = Figure(figsize=(12.0, 8.0), layout="constrained")
    FigureCanvasAgg(figure)
    way, error, effort, period = figure.subplots(2, 2).flat

    wanted, measured = 1e3 * recording.reference[::step, :3], 1e3 * recording.measured[::step, :3]
    across = 0 if np.ptp(wanted[:, 0]) >= np.ptp(wanted[:, 1]) else 1
    up = 2 if np.ptp(wanted[:, 2]) > 0.0 or across == 1 else 1 - across
    way.plot(wanted[:, across], wanted[:, up], label="reference", linewidth=2.5, color="#9db7e8")
    way.plot(measured[:, across], measured[:, up], label="measured", linewidth=1.0, color="#c8510b")
    way.set(title="Way of the platform", xlabel=f"{'xyz'[across]} [mm]", ylabel=f"{'xyz'[up]} [mm]")
    way.legend()
    way.axis("equal")

    position, attitude = tracking_errors(recording)
    error.plot(times, 1e3 * position[::step], label="position [mm]")
    if attitude.max() > 1e-9:
        error.plot(times, 1e3 * attitude[::step], label="attitude [mrad]")
    error.set(title="Tracking error of the platform", xlabel="time [s]", ylabel="error")
    error.legend()

    units = " or ".join(sorted(set(recording.effort_units))) or "N m or N"
    first = recording.times <= recording.times[0] + _EFFORT_CYCLES * recording.cycle_duration
    for i, name in enumerate(recording.actuated_names):
        effort.plot(recording.times[first], recording.efforts[first, i], label=name, linewidth=1.0)
    effort.set(title="Efforts of the actuators, first cycles", xlabel="time [s]", ylabel=f"effort [{units}]")
    effort.legend()

    if len(recording.wakes) > 1:
        periods = 1e3 * np.diff(recording.wakes)
        period.plot(recording.wakes[1::step] - recording.wakes[0], periods[::step], ".", markersize=2)
        period.axhline(1e3 / recording.rate, color="black", linewidth=0.8)
        period.set(title="Period of the control loop", xlabel="time [s]", ylabel="period [ms]")
    else:
        period.set_axis_off()
        period.text(0.5, 0.5, "not run in real time", ha="center", va="center")

    for axes in (way, error, effort, period):
        axes.grid(alpha=0.3)
    figure.suptitle(f"{recording.robot}: {recording.cycles} cycles at {recording.rate:.0f} Hz")
    figure.savefig(path, dpi=110)
