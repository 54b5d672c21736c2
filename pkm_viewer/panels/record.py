# SPDX-License-Identifier: Apache-2.0
"""Buttons that record the page's readings for download. One panel for each browser that may command."""

from __future__ import annotations

from typing import Any

from pkm_control.operator_interface import Answer
from pkm_viewer.panels.asking import PageRequests
from pkm_viewer.panels.capture import Capture

_BEGIN, _END, _DOWNLOAD = "Begin", "End", "Download"


class RecordPanel:
    """Begin, end, download; `capture` is shared by all browsers, `name` is the downloaded file's."""

    def __init__(self, client: Any, desk: PageRequests, capture: Capture, name: str, order: float) -> None:
        self._client, self._desk, self._capture, self._name = client, desk, capture, name
        with client.gui.add_folder("Record", order=order, expand_by_default=False):
            buttons = client.gui.add_button_group("Table", (_BEGIN, _END, _DOWNLOAD))
        buttons.on_click(lambda event: self._pressed(event, str(buttons.value)))

    def _pressed(self, event: Any, button: str) -> None:
        if not self._desk.admits(event):
            return
        capture = self._capture
        if button == _BEGIN:
            capture.start()
            self._desk.tell(Answer(True, "recording"))
        elif button == _END:
            capture.stop()
            self._desk.tell(Answer(True, f"recorded {len(capture)} rows"))
        elif not len(capture):
            self._desk.tell(Answer(False, "nothing is recorded yet"))
        else:
            self._client.send_file_download(self._name, capture.table(), save_immediately=True)
