# SPDX-License-Identifier: Apache-2.0
"""Real samples of the self-motions that a system of real quadrics allows."""

from __future__ import annotations

import numpy as np

from pkm_kinematics.assembly.homotopy.roots import RANK, Predicate
from pkm_kinematics.assembly.result import Array

STARTS = 24
ITERATIONS = 100
SOLVED = 1e-12  # residual of unit vectors in quadrics of unit norm


def real_samples(system: Array, excluded: Predicate) -> list[Array]:
    """Real solutions (unit vectors) with singular Jacobian of n quadrics (n, n + 1, n + 1), from random starts.

    A homotopy over the complex numbers meets a self-motion in complex points, so its real points need a search. An
    empty list proves nothing. `excluded` says which points are no solutions.
    """
    rng = np.random.default_rng(1897)
    samples = []
    for _ in range(STARTS):
        z = _minimised(system, rng.normal(size=(system.shape[1],)))
        point = z.astype(np.complex128)
        solved = np.max(np.abs(np.einsum("iab,a,b->i", system, z, z))) < SOLVED
        if solved and not excluded(point, False) and _singular(system, z):
            samples.append(z)
    return samples


def _singular(system: Array, z: Array) -> bool:
    """Whether the linearised system leaves a degree of freedom at z, as it does everywhere on a self-motion."""
    sizes = np.linalg.svd(np.vstack([2.0 * system @ z, z]), compute_uv=False)
    return bool(sizes[-1] < RANK * sizes[0])


def _minimised(system: Array, start: Array) -> Array:
    """Point after Levenberg-Marquardt on the unit sphere."""
    size = len(start)
    z, damping = start / np.linalg.norm(start), 1e-2
    value = np.einsum("iab,a,b->i", system, z, z)
    for _ in range(ITERATIONS):
        slope = np.vstack([2.0 * system @ z, z, np.sqrt(damping) * np.eye(size)])
        trial = z - np.linalg.lstsq(slope, np.append(value, np.zeros(size + 1)), rcond=None)[0]
        trial /= np.linalg.norm(trial)
        trial_value = np.einsum("iab,a,b->i", system, trial, trial)
        if np.linalg.norm(trial_value) < np.linalg.norm(value):
            z, value, damping = trial, trial_value, max(0.1 * damping, 1e-14)
        elif damping > 1e4 or np.linalg.norm(value) < 1e-14:
            break
        else:
            damping *= 10.0
    return z
