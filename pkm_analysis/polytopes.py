# SPDX-License-Identifier: Apache-2.0
"""The velocities that a platform can have, and the forces that it can exert, within its actuators' limits.

With K the rates of the m actuators per platform velocity, the velocities are the polytope |K v| <= q_max, an
intersection of m pairs of half-spaces, and the forces the zonotope K^T tau, |tau| <= tau_max, spanned by m segments.
Both are exact under actuation redundancy, where the condition number of K is not (Krut, Company and Pierrot, "Velocity
performance indexes for parallel mechanisms with actuation redundancy", 2002).

Of the ellipsoids v^T M^-1 v <= 1 with a^T M a <= 1 for every face a . v = 1, the one of largest determinant is found by
its dual, weights u of the faces of largest det sum u a a^T, a D-optimal design (Boyd and Vandenberghe, Convex
Optimization, section 7.5.2; Titterington, "Optimal design: some geometrical aspects of D-optimality", 1975).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import ClassVar

import numpy as np

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.kernels.geometry import faces_of
from pkm_analysis.plottable import Plottable
from pkm_description.mechanism import Array
from pkm_runtime.describable import measure

OUTSIDE = 1e-9  # of the limits: what rounding may leave a vertex outside
FLAT = 1e-12  # a determinant, of unit rows, that is zero but for rounding
STEPS, FADING = 32, 0.3  # of the search for the largest ellipsoid


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


@dataclass(frozen=True, eq=False, repr=False)
class VelocityPolytope(Plottable):
    """Velocities v (f,) with |K v| <= limits."""

    _picture: ClassVar[str] = "performance_pictures.polytope_picture"

    jacobian: Array  # (m, f) actuator rates per platform velocity
    limits: Array  # (m,) of the actuators, positive

    def _summary(self) -> str:
        return f"{len(self.limits)} actuators, {measure(self.fastest)} m/s at most, {measure(self.slowest)} everywhere"

    @cached_property
    def rows(self) -> Array:
        """Normals (m, f) of the faces: |rows @ v| <= 1 inside."""
        return np.asarray(self.jacobian / self.limits[:, None])

    @cached_property
    def vertices(self) -> Array:
        """Vertices (k, f); none where the actuators do not hold the platform."""
        m, f = self.rows.shape
        signs = np.array(list(product((1.0, -1.0), repeat=f)))
        found = []
        for chosen in combinations(range(m), f):
            A = self.rows[list(chosen)]
            size = np.linalg.norm(A, axis=1)
            if size.min(initial=np.inf) == 0.0 or abs(np.linalg.det(A / size[:, None])) < FLAT:
                continue
            corners = np.linalg.solve(A, signs.T).T
            found.append(corners[(np.abs(corners @ self.rows.T) <= 1.0 + OUTSIDE).all(axis=1)])
        return np.unique(np.concatenate([np.zeros((0, f)), *found]).round(15), axis=0)

    @property
    def fastest(self) -> float:
        """The largest speed; infinite where the actuators do not hold the platform."""
        held = np.linalg.matrix_rank(self.rows) == self.rows.shape[1]
        return float(np.linalg.norm(self.vertices, axis=1).max(initial=0.0)) if held else np.inf

    @property
    def slowest(self) -> float:
        """The largest speed possible in every direction: the distance of the nearest face."""
        return float(1.0 / np.linalg.norm(self.rows, axis=1).max())


@dataclass(frozen=True, eq=False, repr=False)
class ForcePolytope(Plottable):
    """Forces K^T tau (f,) of efforts |tau| <= limits."""

    _picture: ClassVar[str] = "performance_pictures.polytope_picture"

    jacobian: Array  # (m, f) actuator rates per platform velocity
    limits: Array  # (m,) of the actuators, positive
    middle: Array | None = None  # (m,) efforts that the limits lie about, zero where None: of winches, which only pull

    def _summary(self) -> str:
        return f"{len(self.limits)} actuators, {measure(self.strongest)} N at most, {measure(self.weakest)} everywhere"

    @cached_property
    def generators(self) -> Array:
        """The forces (m, f) of each actuator at its limit."""
        return np.asarray(self.jacobian * self.limits[:, None])

    @cached_property
    def centre(self) -> Array:
        """The force (f,) of the actuators in the middle of their limits."""
        return np.zeros(self.jacobian.shape[1]) if self.middle is None else np.asarray(self.middle @ self.jacobian)

    @cached_property
    def rows(self) -> Array:
        """Normals (k, f) of pairs of faces: |rows @ (w - centre)| <= 1 inside."""
        return zonotope_faces(self.generators[None])[0]

    @property
    def strongest(self) -> float:
        """The largest force, at a vertex."""
        sums = all_signs(len(self.generators)).T @ self.generators
        return float(max(np.linalg.norm(self.centre + side * sums, axis=1).max() for side in (1.0, -1.0)))

    @property
    def weakest(self) -> float:
        """The largest force possible in every direction: the distance of the nearest face; 0 without faces."""
        if np.linalg.matrix_rank(self.generators) < self.generators.shape[1]:
            return 0.0
        return float(least_reach(self.rows[None], self.centre[None], np.eye(self.generators.shape[1])[None])[0])


def zonotope_faces(generators: Array) -> Array:
    """Normals (n, k, f) of pairs of faces, |rows @ w| <= 1 inside, of n zonotopes; zero rows for no face.

    Each is the set of sums of generators (n, m, f), m >= f, with factors between -1 and 1. A face in f dimensions is
    spanned by f - 1 generators (Ziegler, Lectures on Polytopes, 7.3); the others give its distance from the centre. Of
    f generators it is a parallelepiped, and its faces are the rows of the inverse.
    """
    n, m, f = generators.shape
    if m != f:
        return _faces_of_combinations(generators)
    sizes = np.linalg.norm(generators, axis=2, keepdims=True)
    regular = np.abs(np.linalg.det(generators / np.where(sizes > 0.0, sizes, 1.0))) > FLAT
    rows = np.empty((n, m, f))
    rows[regular] = np.swapaxes(np.linalg.inv(generators[regular]), 1, 2)
    rows[~regular] = _faces_of_combinations(generators[~regular])
    return rows


def _faces_of_combinations(generators: Array) -> Array:
    _, m, f = generators.shape
    sums = np.abs(generators).sum(axis=(1, 2))
    if f == 1:
        return np.asarray(1.0 / np.maximum(sums, np.finfo(float).tiny))[:, None, None]
    chosen = np.array(list(combinations(range(m), f - 1)), dtype=np.int64)
    rows = np.empty((len(generators), len(chosen), f))
    faces_of(np.ascontiguousarray(generators), chosen, FLAT, rows, np.empty((f - 1, f)), np.empty(f))
    return rows


def least_reach(rows: Array, centre: Array, loads: Array) -> Array:
    """Least distance (n,) from the origin to a zonotope's border over a subspace, or along one direction.

    0 where the origin is outside, infinite where no face bounds it. `rows` (n, k, f) are faces about the centre (n, f);
    `loads` (n, f, d) a basis, d > 1, whose coordinates define length, or with d = 1 the direction.
    """
    across = rows @ loads
    offset = np.einsum("nkf,nf->nk", rows, centre)
    steep = np.sqrt(np.einsum("nkd,nkd->nk", across, across))
    away = np.sign(across[:, :, 0]) * offset if loads.shape[2] == 1 else -np.abs(offset)
    steep = np.where(steep > FLAT * np.sqrt(np.einsum("nkf,nkf->nk", rows, rows)), steep, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(steep > 0.0, (1.0 + away) / steep, np.inf).min(axis=1)
    return np.where(np.abs(offset).max(axis=1) > 1.0, 0.0, np.maximum(reach, 0.0))


def largest_ellipsoid(rows: Array) -> tuple[Array, Array]:
    """Semi-axes of the largest ellipsoid inside |rows @ v| <= 1: lengths (f,), longest first; directions as columns.

    Args:
        rows: (m, f) normals of pairs of faces.

    Raises:
        AnalysisError: the polytope is unbounded.
    """
    rows = np.asarray(rows, dtype=float)
    f = rows.shape[1]
    if not np.isfinite(rows).all() or np.linalg.matrix_rank(rows) < f:
        raise AnalysisError("largest ellipsoid", "the polytope is not bounded", "leave the singular pose")
    # In coordinates in which the faces are spread evenly, the programme is well conditioned.
    values, V = np.linalg.eigh(rows.T @ rows)
    spread = V / np.sqrt(values)
    faces = rows @ spread

    u = np.full(len(rows), 1.0 / len(rows))
    for k in range(STEPS):  # of Newton's method, with a barrier that keeps weights positive and fades
        barrier = FADING**k
        G = faces @ np.linalg.solve(faces.T @ (u[:, None] * faces), faces.T)
        slopes = np.stack([np.diag(G) + barrier / u, np.ones(len(u))], axis=1)
        ahead, level = np.linalg.solve(G**2 + np.diag(barrier / u**2), slopes).T
        step = ahead - level * (ahead.sum() / level.sum())
        u = u + step * min(1.0, 0.9 / max(float((-step / u).max()), 1e-300))
    M = spread @ np.linalg.inv(faces.T @ (u[:, None] * faces)) @ spread.T
    M /= np.einsum("ij,jk,ik->i", rows, M, rows).max()  # inside to the last digit
    squared, directions = np.linalg.eigh(M)
    return np.sqrt(np.maximum(squared[::-1], 0.0)), directions[:, ::-1]
