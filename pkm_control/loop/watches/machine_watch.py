# SPDX-License-Identifier: Apache-2.0
"""What a controller waits for: a machine whose drives follow commands."""

from __future__ import annotations

ACTIVE = "active"
"""What a machine calls the state of its life cycle in which its drives follow commands."""
_PATIENCE = 2.0  # s, for a machine that came back to say how it is; it repeats it several times meanwhile
_UNTOLD = "the machine has not said yet whether its drives follow commands"


class MachineWatch:
    """Whether the drives follow commands, as far as the machine says; one that never said anything is believed to.

    Args:
        beside: the machine is in the same process: what it said last holds, however long readings were silent.
    """

    def __init__(self, beside: bool = False) -> None:
        self._beside = beside
        self._said = ""
        self._until = 0.0  # s, on the clock of the caller: how long it is waited for

    def hear(self, state: str) -> None:
        """Note what the machine says.

        Args:
            state: of its life cycle.
        """
        self._said = state

    def forget(self, now: float) -> None:
        """What a machine said before a long silence tells nothing: it may have been started anew, brakes closed.

        Args:
            now: s.
        """
        if self._said and not self._beside:
            self._said = ""
            self.expect(now)

    def expect(self, now: float) -> None:
        """Wait a while for one that is known to say how it is, and has not yet.

        Args:
            now: s.
        """
        self._until = now + _PATIENCE

    def problem(self, now: float) -> str:
        """Why nothing can be moved.

        Args:
            now: s, on the same clock.

        Returns:
            The reason; empty where the drives follow.
        """
        if self._said == ACTIVE:
            return ""
        if self._said:
            return f"the machine is {self._said}: its drives do not follow commands"
        return _UNTOLD if now < self._until else ""
