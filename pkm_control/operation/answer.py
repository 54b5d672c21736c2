# SPDX-License-Identifier: Apache-2.0
"""What an operator asks of a robot, however it is reached, and the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

STOPPED_SINCE = "it was stopped after this was asked for"


@dataclass(frozen=True)
class Answer:
    """Whether a request is done, and a message: where it is not, the reason."""

    success: bool
    message: str = ""


class OperatorRequests(Protocol):
    """Requests to a running robot. Calls may come from any thread, and wait for the answer."""

    def enable(self) -> Answer:
        """Enable the drives."""

    def disable(self) -> Answer:
        """Disable the drives."""

    def emergency_stop(self) -> Answer:
        """Disable the drives at once, until a reset."""

    def reset(self) -> Answer:
        """Clear a fault of the machine; its drives stay disabled."""

    def pause(self) -> Answer:
        """Halt on the path."""

    def resume(self) -> Answer:
        """Go on with what was halted."""

    def stop(self) -> Answer:
        """Decelerate whatever moves, and hold."""

    def recover(self) -> Answer:
        """Lead the robot out of a stop."""

    def set_speed(self, fraction: float) -> Answer:
        """Run motions at a fraction (0 to 1) of their planned speed."""

    def change_working_mode(self, label: str) -> Answer:
        """Begin the change to the working mode of this label, or continue it."""
