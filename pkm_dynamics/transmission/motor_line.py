# SPDX-License-Identifier: Apache-2.0
"""What a motor can push with at a speed: its torque-speed line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pkm_description.mechanism import Array, Joint


@dataclass(frozen=True)
class MotorLine:
    """Limits at the actuated joint, behind its gear: `effort` [N m or N] at most, none that drives beyond `speed`.

    Between, an electric motor's line falls from its `stall` effort at rest to none at `speed` [rad/s or m/s]; infinite
    where it is not known. Braking has `effort` at every speed.
    """

    effort: float
    speed: float = np.inf
    stall: float = np.inf

    @classmethod
    def of(cls, joint: Joint) -> MotorLine:
        """What a description says: a box of effort and speed."""
        return cls(joint.limits.effort, joint.limits.velocity)

    def bounds(self, speed: Array) -> tuple[Array, Array]:
        """Least and largest effort (n,) at speeds (n,)."""
        return -self._pushing(-speed), self._pushing(speed)

    def _pushing(self, speed: Array) -> Array:
        if np.isinf(self.stall):
            return np.where(speed < self.speed, self.effort, 0.0)
        return np.clip(self.stall * (1.0 - speed / self.speed), 0.0, self.effort)
