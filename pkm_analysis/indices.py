# SPDX-License-Identifier: Apache-2.0
"""Indices of performance at many poses, with the worst pose beside the mean, for redundant actuation too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import TaskCoordinates
from pkm_analysis.plottable import Plottable
from pkm_analysis.polytopes import ForcePolytope, VelocityPolytope, largest_ellipsoid
from pkm_description.mechanism import Array
from pkm_kinematics.kinematics import Kinematics
from pkm_kinematics.solve.singularity import conditions, scaling

Part = Literal["all", "translation", "rotation"]


_SMALL_IS_BAD = ("condition", "isotropy", "smallest transmission", "slowest", "weakest")
_LARGE_IS_BAD = ("largest transmission", "speed_ratio", "force_ratio", "ellipsoid_ratio")


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
        units = dict.fromkeys((*_SMALL_IS_BAD, *_LARGE_IS_BAD), "1")
        return {**units, "slowest": "m/s", "weakest": "N"}

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
    """Indices of performance at poses.

    Args:
        poses: (..., 7), or task coordinates (..., c).
        part: "translation" for velocities without rotation, and forces with any moment; "rotation" likewise.
        length: scale of rotations [m], the robot's characteristic length by default.
        ellipsoids: whether to find the largest ellipsoids, about a millisecond each.
        mode: number of a working mode, home's by default.

    Raises:
        AnalysisError: the part is empty, or a limit or the length is not positive.
        ShapeError: an array of the wrong shape.
        ModeError: no such working mode.
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
    """The polytopes of platform velocities and forces at a pose; errors as of `performance_indices`.

    Args:
        pose: regular, (7,) or task coordinates (c,).
        part: as for `performance_indices`.
        length: scale of rotations [m], the robot's characteristic length by default.
        mode: number of a working mode, home's by default.
    """
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
    """Orthonormal twists (n, 6, f) of one part of motion spaces S (n, 6, d), rotations scaled by `length` [m].

    In orthonormal coordinates speeds and singular values keep their meaning. `AnalysisError` where the part is empty,
    or its dimension differs between poses.
    """
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
    """The same space, with axes of the base frame where it contains them."""
    kept = [axis for axis in np.eye(6) if np.linalg.norm(axis - U @ (U.T @ axis)) < 1e-9]
    return np.array(kept).T if len(kept) == U.shape[1] else U
