# SPDX-License-Identifier: Apache-2.0
"""The power of the drives: an emergency stop that is always in view, and the ways back. One for each browser.

The stop is there three times: as a button of the panel, over the picture, where it stays when the panel is folded or
scrolled, and as a key.
"""

from __future__ import annotations

from typing import Any

from viser._messages import RunJavascriptMessage

from pkm_viewer.operations import Readings
from pkm_viewer.panels.asking import PageRequests

EMERGENCY_STOP, ENABLE, DISABLE, RESET = "Emergency stop", "Enable drives", "Disable drives", "Reset"
_KEY = "escape"
_HINT = "Turn the drives off at once, until a reset. Key: Escape"
_OFFERED = {  # states of the machine in which a button makes sense
    ENABLE: ("unconfigured", "inactive"),
    DISABLE: ("active",),
    RESET: ("fault",),
}
_OVER_ALL = f"""(() => {{
  document.getElementById("emergency-stop")?.remove();
  const stop = document.createElement("button");
  Object.assign(stop, {{id: "emergency-stop", textContent: "{EMERGENCY_STOP}", title: "{_HINT}"}});
  stop.style.cssText = `position: fixed; top: 10px; left: max(10px, 50vw - 6em); width: 12em; height: 3em;
    z-index: 1000; font: 600 14px sans-serif; color: white; background: #c62828;
    border: 3px solid #ffd600; cursor: pointer`;
  stop.onclick = () => document.documentElement.dispatchEvent(
    new KeyboardEvent("keydown", {{key: "Escape", code: "Escape", bubbles: true}}));
  document.body.append(stop);
}})()"""  # viser's own buttons are gone while the panel is folded


class PowerPanel:
    """Emergency stop, and those of enable, disable and reset that make sense; `order` is that among the panels."""

    def __init__(self, client: Any, desk: PageRequests, order: float) -> None:
        self._desk = desk
        gui, ask = client.gui, desk.operations
        stop = gui.add_button(EMERGENCY_STOP, color="red", order=order, hint=_HINT)
        key = gui.add_command(EMERGENCY_STOP, description=_HINT, hotkey=_KEY)
        gui._websock_interface.queue_message(RunJavascriptMessage(source=_OVER_ALL))
        stop.on_click(self._stop)
        key.on_trigger(self._stop)
        self._buttons = {}
        for k, (label, request) in enumerate(((ENABLE, ask.enable), (DISABLE, ask.disable), (RESET, ask.reset))):
            button = gui.add_button(label, order=order + 0.1 * (k + 1), visible=False)
            button.on_click(self._asked(request))
            self._buttons[label] = button

    async def _stop(self, event: Any) -> None:
        """Stop at once. Viser awaits this itself: its threads may all wait for answers of others."""
        if self._desk.admits(event):
            self._desk.operations.emergency_stop_at_once(self._desk.tell)

    def _asked(self, request: Any) -> Any:
        return lambda event: self._desk.ask(request) if self._desk.admits(event) else None

    def show(self, readings: Readings) -> None:
        """Offer what makes sense in the machine's state."""
        for label, button in self._buttons.items():
            offered = readings.machine in _OFFERED[label]
            if button.visible != offered:
                button.visible = offered
