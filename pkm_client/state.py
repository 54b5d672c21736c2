# SPDX-License-Identifier: Apache-2.0
"""A snapshot of the robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pkm_control.loop.modes import Mode
from pkm_description.mechanism import Array
from pkm_runtime.describable import fixed


@dataclass(frozen=True, eq=False)
class RobotState:
    """What the robot does now. Vectors and poses are in the base frame; NaN where there is no usable reading.

    `mode` and `reason` are the controller's. `pose` (7,), x y z qx qy qz qw, and `twist` (6,) of the platform are
    measured, `reference` (7,) is the commanded pose; `position_error` [m] and `rotation_error` [rad] lie between them.
    `speed` is the fraction of their plan at which motions run. `positions` [rad or m], `velocities` and `efforts` [N m
    or N] are those of the actuated joints, by name; `efforts` is empty where positions are commanded.
    """

    mode: Mode
    reason: str
    pose: Array
    twist: Array
    reference: Array
    position_error: float
    rotation_error: float
    speed: float
    positions: Mapping[str, float]
    velocities: Mapping[str, float]
    efforts: Mapping[str, float]

    @property
    def moving(self) -> bool:
        """Whether a motion or a jog is under way."""
        return self.mode in (Mode.TRACKING, Mode.JOGGING)

    @property
    def known(self) -> bool:
        """Whether the platform's pose is known."""
        return self.mode not in (Mode.WAITING, Mode.STOPPED) and bool(np.isfinite(self.reference).all())

    def __str__(self) -> str:
        """A few lines for a person."""
        lines = [self.mode.name.lower() + (f": {self.reason}" if self.reason else "")]
        place = ", ".join(fixed(value, 4) for value in self.pose[:3])
        attitude = ", ".join(fixed(value, 4) for value in self.pose[3:])
        lines.append(f"platform at ({place}) m, quaternion ({attitude})")
        lines.append(f"off by {1e3 * self.position_error:.3f} mm and {self.rotation_error:.5f} rad")
        lines.append(f"motions run at {self.speed:.0%} of their plan")
        lines += [f"{name} at {fixed(value, 4)}" for name, value in self.positions.items()]
        return "\n".join(lines)
