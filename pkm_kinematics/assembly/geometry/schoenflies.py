# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics of robots with three translations and one angle (H4, Par4, Schoenflies motion): at most 16.

Limb i holds a platform point at a distance from a base point, |p + b_i(phi) - a_i| = l_i, and the platform points
move with the angle as b_i = c_i + cos(phi) d_i + sin(phi) e_i. That covers a rigid platform that turns about a fixed
direction and articulated platforms whose parts keep their orientation (Pierrot and Company's H4, Nabat's Par4).

In z = (w, c, s, p), up to scale, with cos(phi) = c / w, sin(phi) = s / w, that is one quadric per limb and c^2 + s^2
= w^2. With the squared norm of p left in one of the four only, a generic member of that family has 16 solutions.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
from numpy.typing import ArrayLike

from pkm_kinematics.assembly.geometry.candidates import consistent, polished, status_of
from pkm_kinematics.assembly.geometry.self_motion import real_roots, square_system
from pkm_kinematics.assembly.homotopy.quadrics import Complex
from pkm_kinematics.assembly.homotopy.start_systems import solve_by_monodromy
from pkm_kinematics.assembly.result import Array, AssemblyStatus, SolutionSet, no_solutions

SOLUTIONS = 16

_CIRCLE = np.diag([-1.0, 1.0, 1.0, 0.0, 0.0, 0.0]) / np.sqrt(3.0)


def _generic_member(rng: np.random.Generator) -> Complex:
    """A random member (5, 6, 6) of the family; equation 0 is the one with p^T p, equation 4 the circle."""

    def number(*shape: int) -> Complex:
        return rng.normal(size=shape) + 1j * rng.normal(size=shape)

    member = np.zeros((5, 6, 6), dtype=np.complex128)
    for i in range(4):
        square, mixed = number(3, 3), number(3, 3)
        member[i, :3, :3] = square + square.T
        member[i, 3:, :3], member[i, :3, 3:] = mixed, mixed.T
    member[0, 3:, 3:] = number() * np.eye(3)
    member[4] = _CIRCLE
    return member / np.linalg.norm(member, axis=(1, 2))[:, None, None]


@lru_cache(maxsize=8)
def _generic_system(seed: int) -> tuple[Complex, Complex]:
    """A generic member (5, 6, 6) of the family and its 16 solutions (16, 6)."""
    rng = np.random.default_rng([1999, seed])
    point = rng.normal(size=6) + 1j * rng.normal(size=6)
    point[1] = np.sqrt(point[0] ** 2 - point[2] ** 2)
    return solve_by_monodromy(_generic_member, point, 4, SOLUTIONS, rng)


def positions_and_angle(
    base: ArrayLike, fixed: ArrayLike, cosine: ArrayLike, sine: ArrayLike, lengths: ArrayLike, consistency: float = 1e-7
) -> SolutionSet:
    """All p, phi with |p + fixed_i + cos(phi) cosine_i + sin(phi) sine_i - base_i| = lengths_i, i = 1 .. k, k >= 4.

    Answers (n, 4): x, y, z [m], phi in (-pi, pi] [rad], in order of phi. A rigid platform that turns about z by phi has
    fixed = (0, 0, z), cosine = (x, y, 0), sine = (-y, x, 0). With more than four limbs, random combinations of the
    equations (always the same) give the candidates. Self-motions are answered with samples.

    Args:
        base: points (k, 3) [m], base frame; `fixed`, `cosine` and `sine` (k, 3) [m] are in base axes too.
        lengths: (k,) [m].
        consistency: share of the robot's size by which a solution may miss any of more than four lengths.
    """
    a, c, d, e = (np.asarray(x, dtype=np.float64) for x in (base, fixed, cosine, sine))
    length = np.asarray(lengths, dtype=np.float64)
    if not (a.ndim == 2 and a.shape == c.shape == d.shape == e.shape == (len(a), 3) and len(a) >= 4):
        return no_solutions((4,), AssemblyStatus.INVALID_INPUT)
    if not (
        length.shape == (len(a),) and np.isfinite([a, c, d, e]).all() and ((length >= 0.0) & (length < np.inf)).all()
    ):
        return no_solutions((4,), AssemblyStatus.INVALID_INPUT)
    points = np.stack(
        [c - a, d, e], axis=2
    )  # (k, 3, 3): maps (1, cos, sin) to the offset of p from the sphere's centre
    centre = points.mean(axis=0) * np.array([1.0, 0.0, 0.0])  # to be seen from the middle of the centres
    points = points - centre
    size = max(float(np.max(np.linalg.norm(points, axis=1))), float(np.max(length)), 1e-300)
    system = _system(points / size, length / size)
    found, multiplicity, roots = real_roots(system, _generic_system, lambda z: z[0] ** 2)
    closure = partial(_closure, points / size, length / size)
    polishes = [polished(closure, _real_pose(z)) for z in found]
    solutions = np.array([pose for pose, _ in polishes]).reshape(-1, 4)
    turns = np.angle(np.exp(1j * solutions[:, 3]))
    solutions[:, 3] = np.where(turns > -np.pi, turns, np.pi)
    residuals = size * np.array([residual for _, residual in polishes])
    solutions[:, :3] = size * solutions[:, :3] - centre[:, 0]
    n_complex = int(roots.multiplicity[~roots.on_component].sum())
    if len(a) > 4:
        good = consistent(solutions, residuals, consistency * size, [size, size, size, 1.0])
        solutions, residuals, multiplicity = solutions[good], residuals[good], multiplicity[good]
    order = np.lexsort((-solutions[:, 2], np.round(solutions[:, 3], 6)))
    status = status_of(multiplicity, bool(roots.on_component.any()), roots.lost, len(a) > 4)
    return SolutionSet(solutions[order], residuals[order], multiplicity[order], n_complex, status)


def _system(points: Array, lengths: Array) -> Array:
    """Five quadrics (5, 6, 6) of unit norm, p^T p in the first alone."""
    count = len(points)
    quadrics = np.zeros((count, 6, 6))
    quadrics[:, :3, :3] = np.swapaxes(points, 1, 2) @ points
    quadrics[:, 0, 0] -= lengths**2
    quadrics[:, 3:, :3], quadrics[:, :3, 3:] = points, np.swapaxes(points, 1, 2)
    quadrics[:, 3:, 3:] = np.eye(3)
    return square_system(quadrics, np.ones(count), 4, _CIRCLE)


def _real_pose(z: Complex) -> Array:
    """p, phi (4,) of a point of P^5 that is its own conjugate."""
    real = (z / z[0]).real
    return np.append(real[3:], np.arctan2(real[2], real[1]))


def _closure(points: Array, lengths: Array, pose: Array) -> tuple[Array, Array]:
    """Errors (k,) of the distances at p, phi, and their slope (k, 4)."""
    cosine, sine = np.cos(pose[3]), np.sin(pose[3])
    legs = pose[:3] + points @ np.array([1.0, cosine, sine])
    found = np.linalg.norm(legs, axis=1)
    units = legs / np.maximum(found, 1e-300)[:, None]
    turn = np.sum(units * (points @ np.array([0.0, -sine, cosine])), axis=1)
    return found - lengths, np.column_stack([units, turn])
