# SPDX-License-Identifier: Apache-2.0
"""A line on each page while several are open: its number, how many may command, and which one did last."""

from __future__ import annotations

import contextlib
from typing import Any

from pkm_viewer.panels import markup
from pkm_viewer.panels.asking import PageRequests


class OpenPages:
    """The pages that are open, numbered as they came; `order` is that of the line among the others."""

    def __init__(self, desk: PageRequests, order: float) -> None:
        self._desk, self._order = desk, order
        self._lines: dict[int, Any] = {}
        self._operators: set[int] = set()

    def on_connect(self, client: Any, operates: bool) -> None:
        """Add a browser, which may command or not."""
        self._lines[client.client_id] = client.gui.add_html("", order=self._order, visible=False)
        if operates:
            self._operators.add(client.client_id)

    def on_disconnect(self, client: Any) -> None:
        """Remove a browser."""
        self._lines.pop(client.client_id, None)
        self._operators.discard(client.client_id)

    def draw(self) -> None:
        """Update the lines."""
        number = {client: k for k, client in enumerate(sorted(self._lines), start=1)}
        for client, line in list(self._lines.items()):
            with contextlib.suppress(KeyError):  # a browser that leaves meanwhile
                text = self._text(client, number)
                content = markup.block(markup.escaped(text))
                if line.visible != bool(text):
                    line.visible = bool(text)
                if text and line.content != content:
                    line.content = content

    def _text(self, client: int, number: dict[int, int]) -> str:
        """The line of one page; empty where it is the only one."""
        if len(number) < 2:
            return ""
        may = "all" if len(self._operators) == len(number) else str(len(self._operators))
        text = f"This is page {number[client]} of {len(number)}, of which {may} may command."
        last = self._desk.last_client
        if last is None:
            return text
        where = "this one" if last == client else f"page {number[last]}" if last in number else "one that is closed"
        return f"{text} The last command came from {where}."
