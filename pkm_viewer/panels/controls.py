# SPDX-License-Identifier: Apache-2.0
"""Controls of the drives' power and of the motion. One panel of each for each browser that may command.

The emergency stop is there three times: as a button of the panel, over the picture, where it stays when the panel is
folded or scrolled, and as a key.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

from viser._messages import RunJavascriptMessage

from pkm_control.operator_interface import Answer
from pkm_viewer.operations import Motion, Readings
from pkm_viewer.panels.asking import Newest, PageRequests

EMERGENCY_STOP, ENABLE, DISABLE, RESET = "Emergency stop", "Enable drives", "Disable drives", "Reset"
_KEY = "escape"
_HINT = "Turn the drives off at once, until a reset. Key: Escape"
_OFFERED = {  # states of the machine in which a button makes sense
    ENABLE: ("unconfigured", "inactive"),
    DISABLE: ("active",),
    RESET: ("fault",),
}
LOST = "No connection: cut the power"
_PATIENCE = 3.0  # s without a beat, after which the button says so
_BEAT_EVERY = 1.0  # s
_OVER_ALL = Template(Path(__file__).with_name("emergency_stop.js").read_text()).substitute(
    label=EMERGENCY_STOP, hint=_HINT, lost=LOST, patience=1e3 * _PATIENCE
)

_START, _PAUSE, _RESUME = "Start", "Pause", "Resume"
_MOST_CYCLES = 100_000


class PowerPanel:
    """Emergency stop, and those of enable, disable and reset that make sense; `order` is that among the panels."""

    def __init__(self, client: Any, requests: PageRequests, order: float) -> None:
        self._requests = requests
        gui, ask = client.gui, requests.operations
        stop = gui.add_button(EMERGENCY_STOP, color="red", order=order, hint=_HINT)
        key = gui.add_command(EMERGENCY_STOP, description=_HINT, hotkey=_KEY)
        self._line = gui._websock_interface
        self._line.queue_message(RunJavascriptMessage(source=_OVER_ALL))
        self._beat = 0.0  # s, monotonic: the last one
        stop.on_click(self._stop)
        key.on_trigger(self._stop)
        self._buttons = {}
        for k, (label, request) in enumerate(((ENABLE, ask.enable), (DISABLE, ask.disable), (RESET, ask.reset))):
            button = gui.add_button(label, order=order + 0.1 * (k + 1), visible=False)
            button.on_click(self._asked(request))
            self._buttons[label] = button

    async def _stop(self, event: Any) -> None:
        """Stop at once. Viser awaits this itself: its threads may all wait for answers of others."""
        if self._requests.admits(event):
            self._requests.operations.emergency_stop_at_once(self._requests.tell)

    def _asked(self, request: Any) -> Any:
        return lambda event: self._requests.ask(request) if self._requests.admits(event) else None

    def show(self, readings: Readings) -> None:
        """Offer what makes sense in the machine's state, and let the page know that it is connected."""
        if (now := time.monotonic()) - self._beat > _BEAT_EVERY:
            self._beat = now
            self._line.queue_message(RunJavascriptMessage(source="window.pkmBeat?.()"))
        for label, button in self._buttons.items():
            offered = readings.machine in _OFFERED[label]
            if button.visible != offered:
                button.visible = offered


class RunPanel:
    """Stop, start, pause, resume, recover, speed, motion, cycles, working mode; `order` is that among the panels."""

    def __init__(self, client: Any, requests: PageRequests, order: float) -> None:
        self._requests = requests
        ask = requests.operations
        gui = client.gui
        stop = gui.add_button("Stop", color="orange", order=order, hint="End whatever moves, and hold")
        self._recover = gui.add_button("Recover", color="yellow", order=order + 0.1, visible=False)
        with gui.add_folder("Run", order=order + 0.2):
            go = gui.add_button_group("Control", (_START, _PAUSE, _RESUME))
            self._speed = gui.add_slider("Speed [%]", min=0.0, max=100.0, step=1.0, initial_value=100.0)
            self._motion = gui.add_dropdown("Motion", tuple(ask.motions), initial_value=ask.motions[0])
            self._cycles = gui.add_number("Cycles", 1, min=1, max=_MOST_CYCLES, step=1)
            self._modes = gui.add_dropdown("Working mode", ("",), initial_value="", visible=False)
        self._set_speed = Newest(lambda: self._ask_quietly(lambda: ask.set_speed(0.01 * float(self._speed.value))))
        self._speed_is = 1.0
        self._begun: Motion | None = None  # which the fields show, until another one is chosen
        stop.on_click(self._checked(lambda: requests.ask(ask.stop)))
        self._recover.on_click(self._checked(lambda: requests.ask(ask.recover)))
        go.on_click(lambda event: self._pressed(event, str(go.value)))
        self._speed.on_update(self._checked(self._set_speed))
        self._modes.on_update(self._checked(self._change_mode))
        self._mode = ""  # that the robot is in, or on its way to: what the list shows without anybody's hand

    def show(self, readings: Readings) -> None:
        """Update the controls by the robot's readings."""
        recovers = readings.mode == "STOPPED" and readings.machine in ("", "active")  # else it is to be enabled first
        if self._recover.visible != recovers:
            self._recover.visible = recovers
        if readings.motion is not None and readings.motion != self._begun:
            self._show_motion(readings.motion)
        share = readings.speed_override
        if share is not None and abs(share - self._speed_is) > 5e-3:  # it was changed, here or elsewhere
            self._speed_is = share
            self._speed.value = round(100.0 * share)

    def _show_motion(self, motion: Motion) -> None:
        self._begun = motion
        if motion.name not in self._motion.options:
            self._motion.options = (motion.name, *self._motion.options)
        if self._motion.value != motion.name:
            self._motion.value = motion.name
        cycles = min(motion.cycles, _MOST_CYCLES)
        if self._cycles.value != cycles:
            self._cycles.value = cycles

    def show_modes(self, labels: Sequence[str], present: str) -> None:
        """Offer working modes; `present` is the robot's."""
        options = tuple(dict.fromkeys((*labels, *((present,) if present else ()))))
        if len(options) < 2:
            self._modes.visible = False
            return
        if tuple(self._modes.options) != options:
            self._modes.options = options
        self._mode = present or options[0]
        if self._modes.value != self._mode:
            self._modes.value = self._mode
        self._modes.visible = True

    def _checked(self, action: Any) -> Any:
        return lambda event: action() if self._requests.admits(event) else None

    def _pressed(self, event: Any, button: str) -> None:
        if not self._requests.admits(event):
            return
        ask = self._requests.operations
        if button == _PAUSE:
            self._requests.ask(ask.pause)
        elif button == _RESUME:
            self._requests.ask(ask.resume)
        else:
            motion, cycles = str(self._motion.value), int(self._cycles.value)
            self._requests.tell(Answer(True, f"planning {motion} ..."))
            self._requests.ask(lambda: ask.play(motion, cycles))

    def _change_mode(self) -> None:
        wanted, before = str(self._modes.value), self._mode
        if wanted in ("", before):
            return
        self._mode = wanted  # halted on its way, the robot can be sent back to where it came from
        self._requests.tell(Answer(True, f"looking for a way to working mode {wanted} ..."))
        answer = self._requests.ask(lambda: self._requests.operations.change_working_mode(wanted))
        if not answer.success and self._mode == wanted:
            self._mode = self._modes.value = before

    def _ask_quietly(self, request: Any) -> None:
        answer = request()
        if not answer.success:
            self._requests.tell(answer)
