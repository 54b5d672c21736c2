# SPDX-License-Identifier: Apache-2.0
"""Health of streams: bad at once when one is silent, good again when all have flowed for a while."""

from __future__ import annotations

import math


class Health:
    """Judges streams by the arrival of their messages.
    A stream has stopped after `silence` [s] without a message; all are trusted once they have flowed for `steady` [s].
    """

    def __init__(self, silence: float, steady: float) -> None:
        self._silence, self._steady = silence, steady
        self._heard: dict[str, float] = {}  # s: when each stream's newest message came
        self._since = math.inf  # s: since when all have flowed

    def hear(self, stream: str, now: float) -> None:
        """Note a message of a stream at `now` [s]."""
        self._heard[stream] = now

    def silent(self, streams: list[str], now: float) -> str:
        """Which of some streams has stopped, and for how long; empty where all of them flow."""
        for stream in streams:
            if stream not in self._heard:
                return f"nothing has come on {stream} yet"
            age = now - self._heard[stream]
            if age > self._silence:
                return f"{stream} has been silent for {age:.2f} s"
        return ""

    def steady(self, streams: list[str], now: float) -> bool:
        """Whether all of some streams have flowed for a while; call it often."""
        self._since = math.inf if self.silent(streams, now) else min(self._since, now)
        return now - self._since >= self._steady
