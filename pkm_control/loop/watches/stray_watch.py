# SPDX-License-Identifier: Apache-2.0
"""The following error of the platform."""

from __future__ import annotations

_LARGEST = 0.2  # of the characteristic length: how far the platform may be from its reference by default
_TURN = 2.0  # rad per characteristic length of that
_WORSE, _LOST = 2, 10  # a reading beyond it counts twice what one within it takes back; one that is wrong is no matter


class StrayWatch:
    """Whether the platform is near its reference; where it has not been for a while, `lost` says why.

    A drive that does not follow, something that holds or pushes the platform, other efforts: the error grows, and with
    it what the law asks of the drives. What is lost stays so until `forgive`. `largest` is the permitted distance [m];
    0: a fifth of the characteristic length [m]. In rotation, twice as many radians as this is characteristic lengths.
    """

    def __init__(self, characteristic_length: float, largest: float = 0.0) -> None:
        self._position = largest or _LARGEST * characteristic_length
        self._rotation = _TURN * self._position / characteristic_length
        self._score = 0
        self.lost = ""

    def judge(self, distance: float, angle: float) -> None:
        """Compare, in every period, the distance [m] and angle [rad] between platform and reference."""
        if self.lost:
            return
        far = self._beyond(distance, angle)
        self._score = self._score + _WORSE if far else max(0, self._score - 1)
        if self._score >= _LOST:
            self.lost = (
                f"{far or 'the platform strays'}: something holds or pushes it, or a drive does not follow; "
                "the drives are let go until it is recovered"
            )

    def _beyond(self, distance: float, angle: float) -> str:
        """How much further than permitted the platform is from its reference, in words; empty where it is near."""
        if distance > self._position:
            most = f"{1e3 * self._position:.1f} mm"
            return f"the platform is {1e3 * distance:.1f} mm from where it should be, more than {most}"
        if angle > self._rotation:
            return (
                f"the platform is turned by {angle:.3g} rad from where it should be, more than {self._rotation:.3g} rad"
            )
        return ""

    def forgive(self) -> None:
        """Go on."""
        self._score, self.lost = 0, ""
