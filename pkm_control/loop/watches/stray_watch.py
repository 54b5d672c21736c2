# SPDX-License-Identifier: Apache-2.0
"""What a controller does not put up with: a platform that strays."""

from __future__ import annotations

import math

from pkm_control.controllers.controller import Measured, Reference
from pkm_kinematics.kernels.compiled_rotations import displacement_between

_LARGEST = 0.2  # of the characteristic length: how far the platform may be from its reference unless told otherwise
_TURN = 2.0  # rad per characteristic length of that
_WORSE, _LOST = 2, 10  # a reading beyond it counts twice what one within it takes back; one that is wrong is no matter


class StrayWatch:
    """Whether the platform is where the controller wants it, and since when it is not, why (`lost`).

    A drive that does not follow, something that holds or pushes the platform, somebody else's efforts: the error grows,
    and with it what the law asks of the drives. What is lost stays so until `forgive`.

    Args:
        characteristic_length: of the robot [m].
        largest: distance from the reference [m]; 0: a fifth of the characteristic length. In rotation, twice as many
            radians as this is characteristic lengths.
    """

    def __init__(self, characteristic_length: float, largest: float = 0.0) -> None:
        self._position = largest or _LARGEST * characteristic_length
        self._rotation = _TURN * self._position / characteristic_length
        self._score = 0
        self.lost = ""

    def beyond(self, reference: Reference, measured: Measured) -> str:
        """Whether the platform is further from its reference than it may be.

        Args:
            reference: where it should be.
            measured: where it is.

        Returns:
            How far, in words; empty where it is near.
        """
        error = displacement_between(measured.pose, reference.pose).tolist()
        position, rotation = math.hypot(*error[:3]), math.hypot(*error[3:])
        if position > self._position:
            most = f"{1e3 * self._position:.1f} mm"
            return f"the platform is {1e3 * position:.1f} mm from where it should be, more than {most}"
        if rotation > self._rotation:
            return (
                f"the platform is turned by {rotation:.3g} rad from where it should be, more than "
                f"{self._rotation:.3g} rad"
            )
        return ""

    def judge(self, reference: Reference, measured: Measured) -> None:
        """Compare in every period.

        Args:
            reference: where it should be.
            measured: where it is.
        """
        if self.lost:
            return
        far = self.beyond(reference, measured)
        self._score = self._score + _WORSE if far else max(0, self._score - 1)
        if self._score >= _LOST:
            self.lost = (
                f"{far or 'the platform strays'}: something holds or pushes it, or a drive does not follow; "
                "the drives are let go until it is recovered"
            )

    def forgive(self) -> None:
        """Go on."""
        self._score, self.lost = 0, ""
