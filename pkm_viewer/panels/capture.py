# SPDX-License-Identifier: Apache-2.0
"""The page's readings as a table to download."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Sequence

import numpy as np

from pkm_description.mechanism import Array, Mechanism
from pkm_viewer.operations import DISTANCES, Readings

_MOST = 200_000  # rows: some hours at 25 Hz


class Capture:
    """Rows of readings from `start` to `stop`; thread-safe. `joint_names` are those of the positions to come."""

    def __init__(self, mechanism: Mechanism, joint_names: Sequence[str]) -> None:
        joints = [mechanism.joint_named[name] for name in mechanism.actuated_joints]
        self._head = [
            "time [s]",
            "mode",
            *(f"{name} [m]" for name in ("x", "y", "z")),
            *("qx", "qy", "qz", "qw"),
            "position error [m]",
            "rotation error [rad]",
            "speed [m/s]",
            *(f"distance from singularities: {kind}" for kind in DISTANCES),
            *(f"{joint.name} effort [{joint.effort_unit}]" for joint in joints),
            *joint_names,
        ]
        self._n = len(joints)
        self._rows: list[list[object]] = []
        self._lock = threading.Lock()
        self.running = False

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._rows)

    def start(self) -> None:
        """Begin with an empty table."""
        with self._lock:
            self._rows = []
            self.running = True

    def stop(self) -> None:
        """Keep what there is."""
        self.running = False

    def take(self, readings: Readings, joints: Array) -> None:
        """Add a row, while it is running: readings, and joints [rad or m] in the order of the names."""
        if not self.running:
            return
        efforts = readings.efforts if readings.efforts is not None else [None] * self._n
        pose = readings.pose if readings.pose is not None else [None] * 7
        row = [
            readings.time,
            readings.mode.lower(),
            *pose,
            readings.error,
            readings.rotation_error,
            readings.speed,
            *readings.distances,
            *efforts,
            *joints,
        ]
        with self._lock:
            if len(self._rows) < _MOST:
                self._rows.append(row)

    def table(self) -> bytes:
        """The rows as CSV, with names and units in the first line; unknown cells are empty."""
        with self._lock:
            rows = list(self._rows)
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(self._head)
        number = (float, np.floating)
        writer.writerows([f"{value:.9g}" if isinstance(value, number) else value for value in row] for row in rows)
        return text.getvalue().encode()
