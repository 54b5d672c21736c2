# SPDX-License-Identifier: Apache-2.0
"""Silent nodes and streams: a process that hangs, or was stopped, ends nothing and reports nothing."""

from __future__ import annotations

import math

_LATE = 1.0  # s between two looks: the observer itself stood still, and received nothing
_SOON = 60.0  # s: streams that stop again within it after they were trusted have to flow for twice as long next time
_LONGEST = 30.0  # s, that they have to flow at most


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


class Health:
    """A stream has stopped after `silence` [s] without a message; all are trusted once they flowed for `steady` [s],
    for twice as long each time that `stopped` follows soon: what is late again and again is left alone.
    """

    def __init__(self, silence: float, steady: float) -> None:
        self._silence, self._steady = silence, steady
        self._wanted, self._trusted = steady, -math.inf  # s: flow that is asked for; when what flows was last trusted
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
        return now - self._since >= self._wanted

    def started(self, now: float) -> None:
        """Streams are relied on from `now` [s] on."""
        self._trusted = now

    def forgive(self) -> None:
        """Trust streams as soon as at first: somebody has seen to it."""
        self._wanted = self._steady

    def stopped(self, now: float) -> float:
        """Streams are relied on no more: for how long they have to flow before they are again [s]."""
        soon = now - self._trusted < _SOON
        self._wanted = min(max(2.0 * self._wanted, 1.0), _LONGEST) if soon else self._steady
        return self._wanted
