# SPDX-License-Identifier: Apache-2.0
"""Requests from a browser: checked, executed outside the page's own thread, answered for all to see."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pkm_control.operator_interface import Answer
from pkm_viewer.operations import Operations
from pkm_viewer.page_server import PageServer


class PageRequests:
    """Passes the requests of browsers that may command to the robot; `answered` gets every answer, None meanwhile."""

    def __init__(self, server: PageServer, operations: Operations, answered: Callable[[Answer | None], None]) -> None:
        self.operations = operations
        self._server = server
        self.tell = answered  # shows a text without a request
        self.last_client: int | None = None  # the browser whose request was admitted last

    def admits(self, event: Any) -> bool:
        """Whether an event of viser comes from a browser that may command, not from the page itself or from others."""
        admitted = event.client_id is not None and self._server.may_operate(event.client_id)
        if admitted:
            self.last_client = event.client_id
        return admitted

    def ask(self, request: Callable[[], Answer]) -> Answer:
        """Make a request, and show its answer; an exception is an answer too."""
        try:
            answer = request()
        except Exception as error:  # whatever is behind: a thread of the web server must not end for it
            answer = Answer(False, f"{type(error).__name__}: {error}")
        self.tell(answer)
        return answer


class Newest:
    """Calls a function as often as it can, for requests that come faster: the last one always counts."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function
        self._running = threading.Lock()
        self._again = False

    def __call__(self) -> None:
        """Call the function, or have the thread that is in it call it again."""
        self._again = True
        while self._again and self._running.acquire(blocking=False):
            try:
                self._again = False
                self._function()
            finally:
                self._running.release()
