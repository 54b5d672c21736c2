# SPDX-License-Identifier: Apache-2.0
"""The present state of the robot, its faults, the answer to the last request, and which pages are open."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from pkm_control.operator_interface import Answer
from pkm_description.mechanism import Mechanism
from pkm_runtime.describable import fixed
from pkm_viewer.operations import Readings
from pkm_viewer.page_server import PageServer
from pkm_viewer.panels import markup
from pkm_viewer.panels.asking import PageRequests

_COLOURS = {"TRACKING": markup.GREEN, "JOGGING": markup.BLUE, "PAUSED": markup.AMBER, "STOPPED": markup.RED}
_MACHINE = {  # state of its life cycle: colour, and what that means
    "unconfigured": (markup.GREY, "the drives are off"),
    "inactive": (markup.AMBER, "the drives are off"),
    "active": (markup.GREEN, "the drives are on"),
    "fault": (markup.RED, "the drives are off until a reset"),
}


def attitude(pose: NDArray[np.float64]) -> NDArray[np.float64]:
    """Roll, pitch and yaw (3,) [deg] of a pose (7,), as the joints of a platform's branch turn."""
    yaw, pitch, roll = Rotation.from_quat(pose[3:]).as_euler("ZYX", degrees=True)
    return np.array((roll, pitch, yaw))


class StatusPanel:
    """The uppermost lines of the page; `order` is that among the panels."""

    def __init__(self, server: PageServer, mechanism: Mechanism, order: float) -> None:
        self._html = server.gui.add_html("", order=order)
        self._turns = "R" in mechanism.mobility.motion
        rows = ("motion", "position [mm]", "roll, pitch, yaw [°]", "tracking error", "speed", "speed override", "time")
        self._rows = dict.fromkeys(rows, "")
        self._mode = self._reason = self._faults = self._machine = ""
        self._answer: Answer | None = None
        self._controls = False
        self._silence = 0.0  # s

    @property
    def content(self) -> str:
        """The HTML that is shown."""
        return str(self._html.content)

    def show(self, readings: Readings) -> None:
        """Show what is known; rows that were once known and are not now keep their value."""
        rows = self._rows
        self._mode, self._reason = readings.mode, readings.reason
        if readings.machine != self._machine and readings.machine == "active":
            self._answer = None  # such as that the drives are off
        self._machine, self._silence = readings.machine, readings.silence
        if readings.motion is not None:
            times = f"{readings.motion.cycles} cycle" + "s" * (readings.motion.cycles != 1)
            rows["motion"] = f"{readings.motion.source or readings.motion.name}, {times}"
        if readings.pose is not None and np.isfinite(readings.pose[:3]).all():
            rows["position [mm]"] = "  ".join(fixed(1e3 * value, 1) for value in readings.pose[:3])
            if self._turns:
                rows["roll, pitch, yaw [°]"] = "  ".join(fixed(value, 2) for value in attitude(readings.pose))
        if readings.error is not None:
            text = f"{1e3 * readings.error:.3f} mm"
            if readings.rotation_error is not None:
                text += f", {1e3 * readings.rotation_error:.3f} mrad"
            rows["tracking error"] = text
        if readings.speed is not None:
            rows["speed"] = f"{readings.speed:.2f} m/s"
        if readings.speed_override is not None:
            rows["speed override"] = f"{100 * readings.speed_override:.0f} %"
        if readings.time is not None:
            rows["time"] = f"{readings.time:.1f} s"
        self._draw()

    def warn(self, faults: str) -> None:
        """Show faults on a red ground; an empty text removes them."""
        if faults != self._faults:
            self._faults = faults
            self._draw()

    def make_room(self) -> None:
        """Keep room for answers: there are controls."""
        self._controls = True
        self._draw()

    def answer(self, answer: Answer | None) -> None:
        """Show the answer to a request, until the next one."""
        self._answer = answer
        self._draw()

    def _draw(self) -> None:
        parts = [markup.banner(self._faults)] if self._faults else []
        if self._machine in _MACHINE:
            colour, meaning = _MACHINE[self._machine]
            if self._silence:
                colour, meaning = markup.GREY, f"so it was {self._silence:.0f} s ago; nothing has come from it since"
            parts.append(markup.badge(self._machine, colour, meaning))
        if self._mode:
            colour = markup.GREY if self._silence else _COLOURS.get(self._mode, markup.GREY)
            parts.append(markup.badge(self._mode.lower(), colour, self._reason))
        elif self._reason:
            parts.append(f"<div>{markup.escaped(self._reason)}</div>")
        parts.append(markup.table({name: text for name, text in self._rows.items() if text}))
        if self._controls:  # with room for two lines, so that the controls below do not move
            answer = self._answer or Answer(True)
            colour = "transparent" if not answer.message else markup.GREEN if answer.success else markup.AMBER
            parts.append(
                f'<div data-answer style="border-left:4px solid {colour};padding-left:0.5em;margin:0.3em 0;'
                f'min-height:2.7em">{markup.escaped(answer.message)}</div>'
            )
        content = markup.block("".join(parts))
        if content != self._html.content:
            self._html.content = content


class OpenPages:
    """The pages that are open, numbered as they came; `order` is that of the line among the others."""

    def __init__(self, requests: PageRequests, order: float) -> None:
        self._requests, self._order = requests, order
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
        if len(number) < 2:
            return ""
        may = "all" if len(self._operators) == len(number) else str(len(self._operators))
        text = f"This is page {number[client]} of {len(number)}, of which {may} may command."
        last = self._requests.last_client
        if last is None:
            return text
        where = "this one" if last == client else f"page {number[last]}" if last in number else "one that is closed"
        return f"{text} The last command came from {where}."
