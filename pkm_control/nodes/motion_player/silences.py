# SPDX-License-Identifier: Apache-2.0
"""Silent nodes: a process that hangs, or was stopped, ends nothing and reports nothing."""

from __future__ import annotations

import math

_LATE = 1.0  # s between two looks: the observer itself stood still, and received nothing


class Silences:
    """Names that were heard before and then silent for `longest`; times are monotonic [s]."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._heard: dict[str, float] = {}
        self._silent: set[str] = set()
        self._looked = math.inf

    def hear(self, name: str, now: float) -> bool:
        """Note a sign of life; whether that ends a silence."""
        self._heard[name] = now
        was_silent = name in self._silent
        self._silent.discard(name)
        return was_silent

    def begun(self, now: float) -> list[str]:
        """Names that have fallen silent since the last call."""
        if now - self._looked > _LATE:
            self._heard = dict.fromkeys(self._heard, now)
        self._looked = now
        new = [n for n, at in self._heard.items() if now - at > self._longest and n not in self._silent]
        self._silent.update(new)
        return new
