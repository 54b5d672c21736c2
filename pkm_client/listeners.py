# SPDX-License-Identifier: Apache-2.0
"""Listeners of output changes, called in a thread of their own so that they may be slow."""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable

Listener = Callable[[str, float], None]


class Listeners:
    """Calls listeners with each output change, one after the other, in the order of the events."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._events: queue.SimpleQueue[tuple[str, float]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def add(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with name and value of each event from now on; the function returned removes it."""
        self._listeners.append(listener)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="outputs", daemon=True)
            self._thread.start()
        return lambda: self._remove(listener)

    def _remove(self, listener: Listener) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    def put(self, name: str, value: float) -> None:
        """Queue an event; does not block the caller."""
        if self._listeners:
            self._events.put((name, value))

    def _run(self) -> None:
        while True:
            event = self._events.get()
            for listener in tuple(self._listeners):
                try:
                    listener(*event)
                except Exception:  # the robot goes on, whatever a listener does
                    traceback.print_exc()
