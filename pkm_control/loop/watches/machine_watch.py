# SPDX-License-Identifier: Apache-2.0
"""Whether the drives of a machine follow commands."""

from __future__ import annotations

ACTIVE = "active"
"""What a machine calls the state of its life cycle in which its drives follow commands."""
_PATIENCE = 2.0  # s, for a machine that came back to say how it is; it repeats it several times meanwhile
_UNTOLD = "the machine has not said yet whether its drives follow commands"


class MachineWatch:
    """Whether the drives follow commands, by the machine's reports; true for one that never reported anything.
    With `beside` the machine is in the same process: its last report holds, however long readings were silent.
    """

    def __init__(self, beside: bool = False) -> None:
        self._beside = beside
        self._said = ""
        self._until = 0.0  # s, on the clock of the caller: how long it is waited for

    def hear(self, state: str) -> None:
        """Note the life-cycle state that the machine reports."""
        self._said = state

    def forget(self, now: float) -> None:
        """Discard reports from before a long silence: the machine may have restarted, brakes closed; `now` [s]."""
        if self._said and not self._beside:
            self._said = ""
            self.expect(now)

    def expect(self, now: float) -> None:
        """Wait a while for a machine that is known to report, and has not yet; `now` [s]."""
        self._until = now + _PATIENCE

    def problem(self, now: float) -> str:
        """Why nothing can be moved, empty where the drives follow; `now` [s] on the same clock."""
        if self._said == ACTIVE:
            return ""
        if self._said:
            return f"the machine is {self._said}: its drives do not follow commands"
        return _UNTOLD if now < self._until else ""
