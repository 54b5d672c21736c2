# SPDX-License-Identifier: Apache-2.0
"""The page's readings as a table to download, and the buttons for that."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from pkm_control.operator_interface import Answer
from pkm_description.mechanism import Array, Mechanism
from pkm_viewer.operations import DISTANCES, Readings
from pkm_viewer.panels.asking import PageRequests

_MOST = 200_000  # rows: some hours at 25 Hz

_BEGIN, _END, _DOWNLOAD = "Begin", "End", "Download"


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
        return len(self._rows)

    def start(self) -> None:
        """Begin with an empty table."""
        with self._lock:
            self._rows = []
            self.running = True

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


class RecordPanel:
    """Begin, end, download; `capture` is shared by all browsers, `name` is the downloaded file's."""

    def __init__(self, client: Any, requests: PageRequests, capture: Capture, name: str, order: float) -> None:
        self._client, self._requests, self._capture, self._name = client, requests, capture, name
        with client.gui.add_folder("Record", order=order, expand_by_default=False):
            buttons = client.gui.add_button_group("Table", (_BEGIN, _END, _DOWNLOAD))
        buttons.on_click(lambda event: self._pressed(event, str(buttons.value)))

    def _pressed(self, event: Any, button: str) -> None:
        if not self._requests.admits(event):
            return
        capture = self._capture
        if button == _BEGIN:
            capture.start()
            self._requests.tell(Answer(True, "recording"))
        elif button == _END:
            capture.running = False
            self._requests.tell(Answer(True, f"recorded {len(capture)} rows"))
        elif not len(capture):
            self._requests.tell(Answer(False, "nothing is recorded yet"))
        else:
            self._client.send_file_download(self._name, capture.table(), save_immediately=True)
