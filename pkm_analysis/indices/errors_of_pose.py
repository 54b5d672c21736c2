# SPDX-License-Identifier: Apache-2.0
"""The platform's error for errors of the actuators' sensors in their worst combination."""

from __future__ import annotations

from itertools import product

import numpy as np

from pkm_description.mechanism import Array


def all_signs(n: int) -> Array:
    """All combinations of signs (n, 2^(n - 1)), one of each opposite pair."""
    return np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=n - 1)]).T


def largest_displacements(jacobians: Array, errors: Array) -> Array:
    """Largest length |J e| (n,) [m] or [rad] over all |e| <= errors; NaN where J is.

    A convex function is largest at a corner of the box. First order; Merlet, "Computing the worst case accuracy of a
    PKM over a workspace or a trajectory" (2006). `jacobians` (n, 3, m) give the platform's linear or angular velocity
    per rate of the actuators, `errors` (m,) are those of the sensors [rad, m].
    """
    m = jacobians.shape[2]
    return np.asarray(np.linalg.norm((jacobians * errors) @ all_signs(m), axis=1).max(axis=1))
