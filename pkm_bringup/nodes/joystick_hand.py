# SPDX-License-Identifier: Apache-2.0
"""From joystick axes and buttons to a twist."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pkm_description.mechanism import Array

NONE = -1  # no such axis or button
DIRECTIONS = ("x", "y", "z", "rx", "ry", "rz")


@dataclass(frozen=True)
class Hand:
    """How axes and buttons of a joystick move a platform.

    `axes`: number of the axis for each of `DIRECTIONS`, -1 where none moves along or about it. `held` is the button
    that must be held for anything to move, `fast` the one with which it moves `faster` times as fast. `linear` [m/s]
    and `angular` [rad/s] are the speeds at full deflection; less than `dead_zone` of it is rest.
    """

    axes: tuple[int, ...]
    held: int
    fast: int
    linear: float
    angular: float
    faster: float
    dead_zone: float

    def __post_init__(self) -> None:
        """Refuse what makes no sense (ValueError)."""
        if len(self.axes) != len(DIRECTIONS) or any(number < NONE for number in self.axes):
            raise ValueError(f"axes are {list(self.axes)}; give six numbers, for {', '.join(DIRECTIONS)}; -1: none")

    def lacks(self, axes: int, buttons: int) -> str:
        """The missing inputs of a joystick with so many axes and buttons, as a sentence; empty where none."""
        missing = [
            f"axis {number} ({name})" for name, number in zip(DIRECTIONS, self.axes, strict=True) if number >= axes
        ]
        buttons_named = ((self.held, "held to move"), (self.fast, "fast"))
        missing += [f"button {number} ({what})" for number, what in buttons_named if number >= buttons]
        if not missing:
            return ""
        return f"this joystick has {axes} axes and {buttons} buttons, and not {', '.join(missing)}"

    def twist(self, axes: Sequence[float], buttons: Sequence[int]) -> Array | None:
        """The requested twist (6,) [m/s, rad/s], base axes, of axes (-1 to 1, clipped) and buttons (1: pressed).
        None where the button that must be held is not, or an axis is NaN.
        """
        if not _pressed(buttons, self.held):
            return None
        chosen = [axes[k] if 0 <= k < len(axes) else 0.0 for k in self.axes]
        if not all(math.isfinite(value) for value in chosen):
            return None
        shares = np.clip(np.array(chosen, dtype=np.float64), -1.0, 1.0)
        beyond = np.maximum(np.abs(shares) - self.dead_zone, 0.0) / (1.0 - self.dead_zone)  # begins at rest, no step
        speeds = np.repeat([self.linear, self.angular], 3) * (self.faster if _pressed(buttons, self.fast) else 1.0)
        return np.asarray(np.sign(shares) * beyond * speeds)


def _pressed(buttons: Sequence[int], number: int) -> bool:
    return 0 <= number < len(buttons) and bool(buttons[number])
