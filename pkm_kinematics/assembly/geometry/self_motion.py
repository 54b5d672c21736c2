# SPDX-License-Identifier: Apache-2.0
"""The real solutions of a system of real quadrics, and samples of the self-motions that it allows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_kinematics.assembly.homotopy.quadrics import Complex
from pkm_kinematics.assembly.homotopy.roots import RANK, Form, Predicate, Roots, StartSystem, all_roots, nowhere
from pkm_kinematics.assembly.result import Array

STARTS = 24
ITERATIONS = 100
SOLVED = 1e-12  # residual of unit vectors in quadrics of unit norm


def real_roots(
    system: Array, start_system: StartSystem, finite: Form
) -> tuple[list[Complex], NDArray[np.int64], Roots]:
    """Isolated real solutions, then samples of self-motions; their multiplicities (k,), 0 of samples; and all roots."""
    roots = all_roots(system, start_system, finite)
    listed = roots.real & ~roots.on_component
    points, multiplicity = list(roots.points[listed]), roots.multiplicity[listed]
    if roots.on_component.any():
        samples = real_samples(system, nowhere(finite))
        points += [z.astype(np.complex128) for z in samples]
        multiplicity = np.append(multiplicity, np.zeros(len(samples), dtype=np.int64))
    return points, multiplicity, roots


def real_part(z: Complex) -> Array:
    """Real unit representative of a point of P^n that is its own conjugate."""
    z = z * np.exp(-0.5j * np.angle(z @ z))
    return np.asarray(z.real / np.linalg.norm(z.real))


def square_system(quadrics: Array, square: Array, n: int, last: Array) -> Array:
    """n combinations of k >= n quadrics (k, s, s), and `last`, of norm 1; the part `square` (k,) in the first alone."""
    count = len(quadrics)
    basis = np.linalg.qr(np.column_stack([square, np.eye(count)]))[0].T if square.any() else np.eye(count)
    mixed = np.einsum("ij,jab->iab", basis, quadrics)
    if count > n:
        mixing = np.linalg.qr(np.random.default_rng(1876).normal(size=(count - 1, count - 1)))[0]
        turned = np.einsum("ij,jab->iab", mixing, mixed[1:])
        # the sum of all says nothing in a pose where the limbs' forces balance: it needs a part of the others
        mixed = np.concatenate([mixed[:1] + turned[n - 1 :].sum(axis=0), turned[: n - 1]])
    system = np.concatenate([mixed, last[None]])
    norms = np.linalg.norm(system, axis=(1, 2))
    return np.asarray(system / np.where(norms > 1e-13, norms, 1.0)[:, None, None])


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
