# SPDX-License-Identifier: Apache-2.0
"""Velocities and forces that a platform can have within its actuators' limits, and indices of performance.

With K the rates of the m actuators per platform velocity, the velocities are the polytope |K v| <= q_max, an
intersection of m pairs of half-spaces, and the forces the zonotope K^T tau, |tau| <= tau_max, spanned by m segments.
Both are exact under actuation redundancy, where the condition number of K is not (Krut, Company and Pierrot, "Velocity
performance indexes for parallel mechanisms with actuation redundancy", 2002).

Of the ellipsoids v^T M^-1 v <= 1 with a^T M a <= 1 for every face a . v = 1, the one of largest determinant is found by
its dual, weights u of the faces of largest det sum u a a^T, a D-optimal design (Boyd and Vandenberghe, Convex
Optimization, section 7.5.2; Titterington, "Optimal design: some geometrical aspects of D-optimality", 1975).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import TaskCoordinates
from pkm_analysis.kernels.geometry import faces_of
from pkm_analysis.plottable import Plottable
from pkm_description.mechanism import Array
from pkm_kinematics.kinematics import Kinematics
from pkm_kinematics.solve.singularity import conditions, scaling
from pkm_runtime.describable import measure

OUTSIDE = 1e-9  # of the limits: what rounding may leave a vertex outside
FLAT = 1e-12  # a determinant, of unit rows, that is zero but for rounding
STEPS, FADING = 32, 0.3  # of the search for the largest ellipsoid
Part = Literal["all", "translation", "rotation"]
_SMALL_IS_BAD = ("condition", "isotropy", "smallest transmission", "slowest", "weakest")
_LARGE_IS_BAD = ("largest transmission", "speed_ratio", "force_ratio", "ellipsoid_ratio")


def all_signs(n: int) -> Array:
    """All combinations of signs (n, 2^(n - 1)), one of each opposite pair."""
    return np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=n - 1)]).T


def largest_displacements(jacobians: Array, errors: Array) -> Array:
    """Largest length |J e| (n,) [m] or [rad] over all |e| <= errors (m,), at a corner of that box; NaN where J is.

    First order; Merlet, "Computing the worst case accuracy of a PKM over a workspace or a trajectory" (2006).
    `jacobians` (n, 3, m) give the platform's linear or angular velocity per rate of the actuators.
    """
    return np.asarray(np.linalg.norm((jacobians * errors) @ all_signs(jacobians.shape[2]), axis=1).max(axis=1))


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

    Each is the set of sums of generators (n, m, f), m >= f, with factors between -1 and 1. A face is spanned by f - 1
    generators (Ziegler, Lectures on Polytopes, 7.3). Of f generators the faces are the rows of the inverse.
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
    `loads` (n, f, d) a basis whose coordinates define length, or with d = 1 the direction.
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
    """Semi-axes of the largest ellipsoid inside |rows @ v| <= 1: lengths (f,), longest first; directions as columns."""
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


@dataclass(frozen=True)
class Limits:
    """Limits of the actuators, one for each or one for all; None: the description's, or 1 where it has none."""

    speed: tuple[float, ...] | None = None  # rad/s, m/s
    effort: tuple[float, ...] | None = None  # N m, N


@dataclass(frozen=True, eq=False, repr=False)
class PerformanceIndices(Plottable):
    """Indices at poses (n,); NaN where there is no regular configuration.

    Rotations are scaled by `length`: 1 rad/s counts as `length` m/s, 1 N m as 1 / `length` N.
    """

    _picture: ClassVar[str] = "performance_pictures.indices_picture"
    _elsewhere: ClassVar[dict[str, str]] = {"manipulability gci": "see condition, isotropy, and worst()"}

    coordinates: Array  # (n, c) task coordinates, or poses (n, 7)
    length: float  # m
    part: Part
    transmission: Array  # (n, f) platform speed by actuator speed along the principal directions, largest first
    condition: Array  # (n,) reciprocal, as that of `Singularity`: 1 / (|J| |J^-1|) with |J|^2 = tr(J J^T) / f
    isotropy: Array  # (n,) smallest over largest transmission factor, 1 where isotropic
    fastest: Array  # (n,) m/s: largest speed within the actuators' limits
    slowest: Array  # (n,) m/s: largest speed possible in every direction
    strongest: Array  # (n,) N: largest force within the limits
    weakest: Array  # (n,) N: largest force possible in every direction
    ellipsoid: Array  # (n, f) m/s: semi-axes of the largest ellipsoid of velocities, longest first, or NaN
    robot: str  # its name
    labels: tuple[str, ...]  # of the coordinates, with their units

    @property
    def speed_ratio(self) -> Array:
        """Fastest over slowest (n,), 1 for a sphere."""
        return np.asarray(self.fastest / self.slowest)

    @property
    def force_ratio(self) -> Array:
        """Strongest over weakest (n,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.strongest / self.weakest)

    @property
    def ellipsoid_ratio(self) -> Array:
        """Longest over shortest semi-axis (n,) of the ellipsoid."""
        return np.asarray(self.ellipsoid[:, 0] / self.ellipsoid[:, -1])

    @property
    def units(self) -> dict[str, str]:
        """Units of the indices of `worst`, by name; transmission factors have that of their drives."""
        return {**dict.fromkeys((*_SMALL_IS_BAD, *_LARGE_IS_BAD), "1"), "slowest": "m/s", "weakest": "N"}

    def of(self, name: str) -> Array:
        """An index (n,) by its name in `worst`."""
        if name.endswith("transmission"):
            return self.transmission[:, -1 if name.startswith("smallest") else 0]
        return np.asarray(getattr(self, name))

    def worst(self) -> dict[str, tuple[float, Array, float]]:
        """Worst value of each index, the coordinates (c,) where it occurs, and the mean."""
        table = {}
        for sign, group in ((1.0, _SMALL_IS_BAD), (-1.0, _LARGE_IS_BAD)):
            for name in group:
                values = self.of(name)
                known = np.isfinite(values) | np.isinf(values)
                if known.any():
                    at = int(np.nanargmin(sign * values))
                    table[name] = (float(values[at]), self.coordinates[at], float(np.nanmean(values)))
        return table

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        each = self.worst().items()
        return {
            **self._plain("robot", "part", "length"),
            "quantity": "indices of performance",
            "poses": len(self.coordinates),
            "coordinates": list(self.labels),
            "indices": {name: {"worst": one, "at": at.tolist(), "mean": mean} for name, (one, at, mean) in each},
        }

    def _summary(self) -> str:
        return f"of {len(self.coordinates)} poses, {self.part}, rotations at {self.length:.4g} m"

    def _details(self) -> list[str]:
        each = self.worst().items()
        return [f"{n}: worst {one:.6g} at {np.array2string(at, precision=6)}, mean {m:.6g}" for n, (one, at, m) in each]


def performance_indices(
    kinematics: Kinematics,
    poses: ArrayLike,
    limits: Limits | None = None,
    part: Part = "all",
    *,
    length: float | None = None,
    ellipsoids: bool = True,
    mode: int | None = None,
) -> PerformanceIndices:
    """Indices of performance at poses (..., 7) or task coordinates (..., c).

    `part` "translation" stands for velocities without rotation, and forces with any moment, "rotation" likewise.
    `length` scales rotations [m], the robot's characteristic length by default. The largest `ellipsoids` take about a
    millisecond each. Raises `ModeError`, `ShapeError`, and `AnalysisError` for an empty part or limits not positive.
    """
    rows, L, K, within = _asked(kinematics, poses, limits, part, length, mode)
    n, _, f = K.shape
    transmission, condition = np.full((n, f), np.nan), np.full(n, np.nan)
    numbers, axes = np.full((4, n), np.nan), np.full((n, f), np.nan)
    for k in np.flatnonzero(np.isfinite(K).all(axis=(1, 2))):
        values = np.linalg.svd(K[k], compute_uv=False)[:f]
        with np.errstate(divide="ignore"):
            transmission[k] = 1.0 / values[::-1]
        condition[k] = conditions(values[None], f)[0]
        velocity, force = within(K[k])
        numbers[:, k] = velocity.fastest, velocity.slowest, force.strongest, force.weakest
        if ellipsoids and values[-1] > 0.0:
            axes[k], _ = largest_ellipsoid(velocity.rows)
    known = TaskCoordinates(kinematics).all
    labels = tuple(f"{c.label} [{c.unit}]" for c in known)
    if rows.shape[1] != len(known):
        labels = ("x [m]", "y [m]", "z [m]", "qx", "qy", "qz", "qw")
    isotropy = transmission[:, -1] / transmission[:, 0]
    name, (fastest, slowest, strongest, weakest) = kinematics.mechanism.name, numbers
    return PerformanceIndices(
        rows, L, part, transmission, condition, isotropy, fastest, slowest, strongest, weakest, axes, name, labels
    )


def polytopes(
    kinematics: Kinematics,
    pose: ArrayLike,
    limits: Limits | None = None,
    part: Part = "all",
    *,
    length: float | None = None,
    mode: int | None = None,
) -> tuple[VelocityPolytope, ForcePolytope]:
    """The polytopes of platform velocities and forces at a regular pose; as `performance_indices` otherwise."""
    _, _, K, within = _asked(kinematics, pose, limits, part, length, mode)
    if len(K) != 1 or not np.isfinite(K).all():
        raise AnalysisError("polytopes", "they need one pose that the limbs reach", "give another pose")
    return within(K[0])


def _asked(
    kinematics: Kinematics, poses: ArrayLike, limits: Limits | None, part: Part, length: float | None, mode: int | None
) -> tuple[Array, float, Array, Callable[[Array], tuple[VelocityPolytope, ForcePolytope]]]:
    """Rows of poses, the length [m], rates (n, m, f), and the polytopes of rates within the limits."""
    rows = np.atleast_2d(np.asarray(poses, dtype=float))
    rows = rows.reshape(-1, rows.shape[-1])
    L = kinematics.characteristic_length if length is None else float(length)
    if not L > 0.0:
        raise AnalysisError("characteristic length", f"{L:g} m is not positive", "take the size of the platform")
    limits = Limits() if limits is None else limits
    speeds = _limits(kinematics, limits.speed, "velocity")
    least, most = kinematics.mechanism.effort_range
    least, most = np.where(np.isinf(least), -1.0, least), np.where(np.isinf(most), 1.0, most)
    if limits.effort is not None:
        most = _limits(kinematics, limits.effort, "effort")
        least = -most
    at = kinematics.at(rows, mode=mode)
    S, K = at.subspace, at.inverse_jacobian
    known = np.isfinite(S).all(axis=(1, 2)) & np.isfinite(K).all(axis=(1, 2))
    U = part_of(S[known], part, L) if known.any() else S[:0]
    rates = np.full((len(rows), K.shape[1], U.shape[2]), np.nan)
    rates[known] = K[known] @ U

    def within(K: Array) -> tuple[VelocityPolytope, ForcePolytope]:
        return VelocityPolytope(K, speeds), ForcePolytope(K, 0.5 * (most - least), 0.5 * (most + least))

    return rows, L, rates, within


def _limits(kinematics: Kinematics, given: tuple[float, ...] | None, what: Literal["velocity", "effort"]) -> Array:
    m = len(kinematics.actuated_names)
    if given is None:
        found = limits_of(kinematics, what)
        return np.where(np.isfinite(found), found, 1.0)
    if len(given) not in (1, m) or not min(given) > 0.0:
        raise AnalysisError(f"limits of {what}", f"{given} are not valid", f"give one positive number, or {m}")
    return np.broadcast_to(np.asarray(given, dtype=float), (m,))


def limits_of(kinematics: Kinematics, what: Literal["velocity", "effort"]) -> Array:
    """Limits (m,) of the actuators in the description [rad/s, m/s] or [N m, N], infinite where it has none."""
    joints = (kinematics.mechanism.joint_named[name] for name in kinematics.actuated_names)
    found = np.array([getattr(joint.limits, what) for joint in joints])
    return np.where(found > 0.0, found, np.inf)


def part_of(S: Array, part: Part, length: float) -> Array:
    """Orthonormal twists (n, 6, f) of one part of motion spaces S (n, 6, d), rotations scaled by `length` [m]."""
    weights = scaling(length)
    if part not in ("all", "translation", "rotation"):
        raise AnalysisError(f"part '{part}'", "there is none of that name", "take all, translation or rotation")
    other = {"all": slice(0, 0), "translation": slice(3, 6), "rotation": slice(0, 3)}[part]
    found = []
    for basis in S * weights[:, None]:
        U, values, _ = np.linalg.svd(basis, full_matrices=False)
        U = U[:, values > 1e-12]
        if U[other].size:
            _, values, Vt = np.linalg.svd(U[other])
            rank = int((values > 1e-9).sum())
            U = U @ Vt[rank:].T
        found.append(U)
    widths = {U.shape[1] for U in found}
    if widths == {0} or len(widths) != 1:
        raise AnalysisError(f"part '{part}'", "the platform has no such degree of freedom", "take another part")
    return np.asarray(np.array([_aligned(U) for U in found]) / weights[:, None])


def _aligned(U: Array) -> Array:
    kept = [axis for axis in np.eye(6) if np.linalg.norm(axis - U @ (U.T @ axis)) < 1e-9]
    return np.array(kept).T if len(kept) == U.shape[1] else U
