# SPDX-License-Identifier: Apache-2.0
"""The browser page in a process of its own, so that drawing never takes time from a control loop."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from multiprocessing.sharedctypes import RawArray
from typing import Any

import numpy as np

from pkm_description.mechanism import Array, Mechanism
from pkm_viewer.operations import Readings

_PICTURES_PER_SECOND = 30.0
_START_TIMEOUT = 30.0  # s
_OF_TERMINAL = (signal.SIGINT, signal.SIGHUP)


class ViewerProcess:
    """A `RobotViewer` that is fed through shared memory: `update` only copies numbers, and never waits.

    A picture may mix two neighbouring updates; that is not visible, and costs the loop no lock. The process ends with
    `close`, or by itself when its parent is gone. `url` is the address of the page, `problem` says why there is none.
    Arguments as in `RobotViewer`, with initial `joints` (n_joints,) [rad or m] in the order of `joint_names`.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        joint_names: tuple[str, ...],
        joints: Array,
        port: int,
        planned: Array,
        host: str = "127.0.0.1",
    ) -> None:
        self._n = len(joint_names)
        context = multiprocessing.get_context("spawn")
        # joints, pose, time, error, speed, efforts, and a count of updates in the end
        size = self._n + 7 + 3 + len(mechanism.actuated_joints) + 1
        self._shared: Any = RawArray(ctypes.c_double, size)
        self._values: Array = np.ctypeslib.as_array(self._shared)
        receive, send = context.Pipe(duplex=False)
        arguments = (mechanism, joint_names, joints, (host, port), planned, self._shared, send)
        self._process = context.Process(target=_serve, args=arguments, name="viewer", daemon=True)
        with _without_signals():
            self._process.start()
        send.close()
        self.url = ""
        self.problem = f"it was not there after {_START_TIMEOUT:g} s: is this computer busy?"
        if receive.poll(_START_TIMEOUT):
            try:
                self.url, self.problem = str(receive.recv()), ""
            except EOFError:
                self._process.join(1.0)
                self.problem = f"its process ended with code {self._process.exitcode}"

    @property
    def alive(self) -> bool:
        """True while the page is served."""
        return bool(self.url) and self._process.is_alive()

    def update(self, joints: Array, pose: Array, time: float, error: float, speed: float, efforts: Array) -> None:
        """Show joints (n_joints,), the platform's pose (7,), time [s], tracking error [m], speed [m/s] and efforts."""
        n, values = self._n, self._values
        values[:n] = joints
        values[n : n + 7] = pose
        values[n + 7] = time
        values[n + 8] = error
        values[n + 9] = speed
        values[n + 10 : -1] = efforts
        values[-1] += 1.0

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join(2.0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(2.0)


@contextlib.contextmanager
def _without_signals() -> Iterator[None]:
    """Let a process that begins inside ignore the terminal's signals, which are for its parent alone."""
    if threading.current_thread() is not threading.main_thread():  # which alone may do this
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _OF_TERMINAL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _serve(
    mechanism: Mechanism,
    joint_names: tuple[str, ...],
    joints: Array,
    address: tuple[str, int],
    planned: Array,
    shared: Any,
    ready: Any,
) -> None:
    for number in _OF_TERMINAL:  # are for the parent, which then ends this process
        signal.signal(number, signal.SIG_IGN)
    parent = os.getppid()
    from pkm_viewer.viewer import RobotViewer  # needs viser, which only those install who want a page

    initial = dict(zip(joint_names, (float(q) for q in joints), strict=True))
    viewer = RobotViewer(mechanism, address[1], initial, planned, address[0])
    ready.send(viewer.url)
    ready.close()
    values: Array = np.ctypeslib.as_array(shared)
    n, shown = len(joint_names), 0.0
    while os.getppid() == parent:
        if values[-1] != shown:
            shown = values[-1]
            seen = values.copy()
            readings = Readings(
                time=float(seen[n + 7]),
                mode="TRACKING",
                pose=seen[n : n + 7],
                error=float(seen[n + 8]),
                speed=float(seen[n + 9]),
                efforts=None if np.isnan(seen[n + 10 : -1]).any() else seen[n + 10 : -1],
            )
            viewer.look(joint_names, seen[:n], readings)
        time.sleep(1.0 / _PICTURES_PER_SECOND)
    viewer.close()
