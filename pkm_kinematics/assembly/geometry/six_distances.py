# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics of the Gough-Stewart platform, and of all robots that lock to it: all 40 solutions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pkm_kinematics.assembly.geometry.rigid_body import poses
from pkm_kinematics.assembly.geometry.study import ConstraintKind
from pkm_kinematics.assembly.result import SolutionSet


def six_distances(base: ArrayLike, platform: ArrayLike, lengths: ArrayLike, consistency: float = 1e-7) -> SolutionSet:
    """All poses (n, 7), x y z qx qy qz qw, with |p + R platform_i - base_i| = lengths_i, i = 1 .. k, k >= 6.

    40 complex solutions in general (Ronga and Vust 1992; Lazard 1993), up to 40 of them real (Dietmaier 1998); 16
    when the legs meet in pairs at three points (octahedral). See `rigid_body.poses` for more than six legs and for
    self-motions.

    Args:
        base: points (k, 3) [m] in the base frame; those of the elbows in 6-RUS, 6-PUS and the like.
        platform: points (k, 3) [m] in the platform frame.
        lengths: (k,) [m].
        consistency: share of the robot's size by which a solution may miss any of more than six lengths.
    """
    kinds = np.full(np.shape(np.asarray(lengths)), ConstraintKind.SPHERE)
    return poses(kinds, base, platform, lengths, consistency)
