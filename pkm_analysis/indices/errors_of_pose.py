# SPDX-License-Identifier: Apache-2.0
"""How far the platform can be off for errors of the actuators' sensors, in their worst combination."""

from __future__ import annotations

from itertools import product

import numpy as np

from pkm_description.mechanism import Array


def all_signs(n: int) -> Array:
    """All combinations of signs (n, 2^(n - 1)), of opposite ones one."""
    return np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=n - 1)]).T


def largest_displacements(jacobians: Array, errors: Array) -> Array:
    """The largest length of J e over all |e| <= errors: a convex function, largest at a corner of that box.

    Merlet, "Computing the worst case accuracy of a PKM over a workspace or a trajectory" (2006), to the first order.

    Args:
        jacobians: (n, 3, m) velocity of the platform, linear or angular, per rate of the actuators.
        errors: (m,) largest errors of the sensors [rad, m].

    Returns:
        (n,) [m] or [rad]; NaN where the Jacobian is.
    """
    m = jacobians.shape[2]
    return np.asarray(np.linalg.norm((jacobians * errors) @ all_signs(m), axis=1).max(axis=1))
