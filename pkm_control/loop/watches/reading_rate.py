# SPDX-License-Identifier: Apache-2.0
"""The rate of the machine's readings, by their own clock: gains suit this rate."""

from __future__ import annotations

_WINDOW = 0.5  # s
_FIRST = 4  # readings that give a first, coarse figure: too high a gain throws a machine in a tenth of a second
_SLACK = 0.9  # of the rate that is asked for: what is more counts as all of it, as clocks and counting differ


class ReadingRate:
    """Counts readings over half a second each; `asked`: wanted rate [Hz], `silence` [s]: a longer interval is a gap."""

    def __init__(self, asked: float, silence: float) -> None:
        self._asked, self._silence = asked, silence
        self._began = self._last = 0.0  # s
        self._readings = 0
        self.value = asked  # Hz, of the last window; not more than asked
        self.settled = False  # whether a whole window has been counted

    def note(self, stamp: float) -> None:
        """Count a reading by its stamp [s]; after a silence, or a step of the clock, counting begins anew."""
        if not 0.0 < stamp - self._last < self._silence:
            self._began, self._readings = stamp, 0
        else:
            self._readings += 1
        self._last = stamp
        whole = stamp - self._began >= _WINDOW
        if whole or (not self.settled and self._readings == _FIRST):
            rate = self._readings / (stamp - self._began)
            self.value = self._asked if rate > _SLACK * self._asked else rate
        if whole:
            self._began, self._readings, self.settled = stamp, 0, True
