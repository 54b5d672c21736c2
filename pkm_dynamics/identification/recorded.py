# SPDX-License-Identifier: Apache-2.0
"""Recorded motions: actuator positions and efforts over time, and the platform motion that follows from them.

A recording is a CSV file with a header: `time` [s], `position_<joint>` for every actuated joint or the measured
platform pose (`measured_x` ... `measured_qw`, as in the controller's recordings), and `effort_<joint>`. SI units.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy  # whose parts load when they are first used

from pkm_description.mechanism import Array
from pkm_dynamics.linear_form.random_motions import Motions
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.status import closes
from pkm_runtime.errors import PkmError
from pkm_runtime.whole_files import whole

POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")
ORDER = 4  # of the Butterworth filter, which runs forwards and backwards
HOLE = 3.0  # usual steps of time: samples are missing


class RecordingError(PkmError):
    """An unusable recording; says what is wrong, and where."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """`times` (n,) [s]; `positions` and `efforts` (n, n_actuated); `poses` (n, 7) where these were recorded too."""

    times: Array
    positions: Array
    efforts: Array
    poses: Array | None = None

    def save(self, path: Path, names: tuple[str, ...]) -> None:
        """Write the recording as a CSV file; `names` are the actuated joints."""
        header = ["time", *(f"position_{name}" for name in names), *(f"effort_{name}" for name in names)]
        table = np.column_stack([self.times, self.positions, self.efforts])
        with whole(path) as part, part.open("w", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerow(header)
            np.savetxt(file, table, delimiter=",", fmt="%.12g")

    @property
    def rate(self) -> float:
        """Samples per second."""
        return float((len(self.times) - 1) / (self.times[-1] - self.times[0]))


def read(path: Path, kinematics: Kinematics) -> Recorded:
    """Recording of a robot from a CSV file; `RecordingError` if unusable."""
    try:
        with path.open(encoding="utf-8") as file:
            cells = next(csv.reader(file, skipinitialspace=True), [""])
            header = [name.strip() for name in (cells[0].lstrip("# "), *cells[1:])]
            table = np.loadtxt(file, delimiter=",", ndmin=2)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, ValueError, csv.Error) as error:
        raise RecordingError(f"{path}: not a table of numbers: {error}") from error
    if len(table) < 20:
        raise RecordingError(f"{path}: {len(table)} samples; at least 20 are needed")
    if table.shape[1] != len(header):
        raise RecordingError(f"{path}: {len(header)} names in the header, but {table.shape[1]} columns")
    column = {name: table[:, k] for k, name in enumerate(header)}
    names = kinematics.actuated_names

    def take(wanted: list[str]) -> Array:
        missing = [name for name in wanted if name not in column]
        if missing:
            raise RecordingError(f"{path}: no column {', '.join(missing)}; the file has {', '.join(header)}")
        values = np.column_stack([column[name] for name in wanted])
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(bad):
            raise RecordingError(f"{path}: row {bad[0] + 2} has a value that is not a finite number")
        return values

    times = take(["time"])[:, 0]
    back = np.flatnonzero(np.diff(times) <= 0.0)
    if len(back):
        raise RecordingError(f"{path}: row {back[0] + 3}: time does not increase")
    efforts = take([f"effort_{name}" for name in names])
    if f"position_{names[0]}" in column:
        return Recorded(times, take([f"position_{name}" for name in names]), efforts)
    if "measured_x" not in column:
        wanted = f"position_{names[0]}, ... or measured_x ... measured_qw"
        raise RecordingError(f"{path}: no positions; expected {wanted}, the file has {', '.join(header)}")
    poses = take([f"measured_{name}" for name in POSE])
    answer = kinematics.inverse(poses)
    lost = np.flatnonzero(~closes(answer.status))
    if len(lost):
        reason = Status(int(answer.status[lost[0]])).meaning
        raise RecordingError(
            f"{path}: row {lost[0] + 2}: {kinematics.mechanism.name} does not reach this row: {reason}"
        )
    return Recorded(times, np.asarray(answer.actuated), efforts, poses)


def low_pass(values: Array, rate: float, cutoff: float) -> Array:
    """Values (n, ...) without frequencies above `cutoff` [Hz]; forwards and backwards, so without delay."""
    sections = scipy.signal.butter(ORDER, cutoff, fs=rate, output="sos")
    return np.asarray(scipy.signal.sosfiltfilt(sections, values, axis=0))


def uniform(recorded: Recorded, cutoff: float) -> Recorded:
    """The recording at equal time steps; `RecordingError` for holes of half a period of `cutoff` [Hz] or more."""
    steps = np.diff(recorded.times)
    hole = int(np.argmax(steps))
    if steps[hole] > max(HOLE * np.median(steps), 0.5 / cutoff):
        start, end = recorded.times[hole : hole + 2]
        raise RecordingError(f"no samples from {start:.3f} to {end:.3f} s: identify by the part before or after that")
    if np.ptp(steps) < 0.01 * steps.mean():
        return recorded
    times = np.linspace(recorded.times[0], recorded.times[-1], len(recorded.times))

    def at(values: Array) -> Array:
        return np.asarray(scipy.interpolate.make_interp_spline(recorded.times, values, k=3)(times))

    poses = None if recorded.poses is None else at(recorded.poses)
    if poses is not None:
        poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    return Recorded(times, at(recorded.positions), at(recorded.efforts), poses)


def motions_of(kinematics: Kinematics, recorded: Recorded, cutoff: float) -> Motions:
    """Platform motion of a uniform recording, filtered at `cutoff` [Hz], below half its rate, and splined."""
    if not 0.0 < cutoff < 0.5 * recorded.rate:
        raise RecordingError(f"cutoff {cutoff:g} Hz is outside (0, {0.5 * recorded.rate:g}) Hz, half the sampling rate")
    q = low_pass(recorded.positions, recorded.rate, cutoff)
    spline = scipy.interpolate.make_interp_spline(recorded.times, q, k=5)
    rates, second = spline(recorded.times, 1), spline(recorded.times, 2)
    start = kinematics.home if recorded.poses is None else recorded.poses[0]
    return platform_motions(kinematics, q, rates, second, start)


def platform_motions(kinematics: Kinematics, q: Array, rates: Array, second: Array, start: Array) -> Motions:
    """Platform motions from actuator positions (n, n_actuated), rates and second rates; `start` (7,) near the first."""
    n = len(q)
    poses = np.empty((n, 7))
    near, seed = start, None
    for k in range(n):
        answer = kinematics.forward(q[k], near=near, seed=seed)
        if not closes(answer.status):
            raise RecordingError(f"sample {k}: forward kinematics: {answer.reason(0)}")
        poses[k] = near = answer.pose
        seed = answer.joints
    at = kinematics.at(poses)
    twists = at.platform_twist(rates)
    return Motions(poses, twists, at.platform_acceleration(twists, second), 0.0)
