# SPDX-License-Identifier: Apache-2.0
"""What a controller does not guess: in which assembly mode the platform is, once it may have changed it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.controllers.controller import Measured
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.short_vectors import magnitude

Array = NDArray[np.float64]

_PERIODS = 3  # as the platform comes nearer to a singularity now, it is there within so many: it may be behind it
_BESIDE = 0.2  # rad, and of the characteristic length: further than that from the last reading, one says little
_MANY = 10  # readings of that kind are no slip of an encoder
_CALM = 1.0  # s, for which the law holds the platform at rest: behind a singularity its efforts would push it away
CROSSED = (
    "the limbs may have lost hold of the platform on its way (type 2 singularity), "
    "so that it may be in another assembly mode"
)


class AssemblyWatch:
    """Whether readings still tell where the platform is: `doubt` says why not, and is empty where they do.

    Two assembly modes meet in a singularity of type 2, and their readings are alike on both sides: a platform that
    falls through it looks as one that turned back. There the platform moves infinitely far per motion of the actuators,
    and the reciprocal of that goes to zero with its distance. It is compared from reading to reading, so that neither
    the robot's size nor its speed matters. Behind a singularity of type 1 it falls from infinity, less and less.

    Args:
        kinematics: of the robot.
    """

    def __init__(self, kinematics: Kinematics) -> None:
        self.doubt = ""
        self._length = kinematics.characteristic_length
        self._beside = _BESIDE * np.where(kinematics.engine.actuated_turning, 1.0, self._length)
        self._hold = 0.0  # speed of the actuators per speed of the platform, at the last reading
        self._drop = 0.0  # of that, since the one before
        self._at: Array | None = None  # actuators (n_actuated,) there
        self._lost = 0  # readings since then that nothing continued
        self._calm = 0.0  # s

    def judge(self, measured: Measured) -> None:
        """Take note of a reading that goes on from the last one.

        Args:
            measured: what it shows.
        """
        hold = 1.0 / magnitude(measured.jacobian, self._length)
        drop, ahead = self._hold - hold, 0.0
        if drop > 0.0 and self._drop > 0.0:
            less = min(drop / self._drop, 1.0)
            ahead = drop * sum(less**k for k in range(1, _PERIODS + 1))
        if not ahead < hold:
            self._begin()
        self._hold, self._drop, self._at, self._lost = hold, drop, measured.positions, 0

    def lose(self, positions: Array) -> None:
        """Take note of a reading before which a singularity of type 2 lies.

        Args:
            positions: of the actuators (n_actuated,) [rad or m].
        """
        self._lost += 1
        if self._at is not None and ((np.abs(positions - self._at) < self._beside).all() or self._lost >= _MANY):
            self._begin()

    def settle(self, passed: float, held: bool) -> None:
        """Believe again in the mode in which a law has held the platform for a while.

        Args:
            passed: time [s].
            held: whether it holds the platform at rest.
        """
        if not self.doubt:
            return
        self._calm = self._calm + passed if held else 0.0
        if self._calm > _CALM:
            self.doubt = ""

    def forget(self) -> None:
        """Begin anew with a platform whose assembly mode is known."""
        self.doubt, self._hold, self._drop, self._at, self._lost = "", 0.0, 0.0, None, 0

    def _begin(self) -> None:
        self.doubt, self._calm = CROSSED, 0.0
