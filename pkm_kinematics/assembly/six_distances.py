# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics of the Gough-Stewart platform, and of all robots that lock to it: all 40 solutions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pkm_kinematics.assembly.modes import AssemblyModes
from pkm_kinematics.assembly.rigid_body import poses
from pkm_kinematics.assembly.study import ConstraintKind


def six_distances(base: ArrayLike, platform: ArrayLike, lengths: ArrayLike, consistency: float = 1e-7) -> AssemblyModes:
    """All poses (R, p) with |p + R platform_i - base_i| = lengths_i.

    base (k, 3) in the base frame, platform (k, 3) in the platform frame, lengths (k,), all in m, k >= 6. Solutions
    are poses (n, 7): x y z qx qy qz qw. 6-RUS, 6-PUS and the like take the elbow positions as `base` once their
    actuators are locked.

    40 complex solutions in general (Ronga and Vust 1992; Lazard 1993), up to 40 of them real (Dietmaier 1998); 16
    when the legs meet in pairs at three points (octahedral). See `rigid_body.poses` for more than six legs and for
    self-motions.
    """
    kinds = np.full(np.shape(np.asarray(lengths)), ConstraintKind.SPHERE)
    return poses(kinds, base, platform, lengths, consistency)
