# SPDX-License-Identifier: Apache-2.0
"""All poses of a rigid platform that satisfy six constraints: spheres, planes, directions, in any mixture.

This is the forward kinematics of every robot whose limbs, once the actuators are locked, hold a platform point on a
sphere or in a plane, let a platform plane pass through a base point, or fix the angle between a base and a platform
direction (`study.ConstraintKind`): 6-UPS, 6-RUS and 6-PUS, 3-RPS and 3-PRS, a tricept with its passive leg, and so on.
Up to 40 complex solutions, all of which are found.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_description.rotations import rotation_from_vector
from pkm_kinematics.assembly.geometry.candidates import consistent, polished, status_of
from pkm_kinematics.assembly.geometry.self_motion import real_part, real_roots, square_system
from pkm_kinematics.assembly.geometry.study import (
    SOLUTIONS,
    STUDY_QUADRIC,
    Constraint,
    ConstraintKind,
    constraint_quadric,
    generic_system,
    parameters_of,
    pose_of,
)
from pkm_kinematics.assembly.homotopy.roots import Roots
from pkm_kinematics.assembly.result import Array, AssemblyStatus, SolutionSet, no_solutions

HALF_TURN = 1e-9  # below this qw is rounding, and its sign does not tell two quaternions of one rotation apart


def poses(
    kinds: ArrayLike, base: ArrayLike, platform: ArrayLike, values: ArrayLike, consistency: float = 1e-7
) -> SolutionSet:
    """All poses (n, 7) of the platform under k >= 6 constraints: x y z qx qy qz qw, base frame, in order of falling z.

    qw >= 0 but for rounding. Complex solutions are counted with multiplicity, at most 40. With more than six
    constraints random combinations (always the same) give the candidates. Where the equations allow a self-motion, the
    solutions are the isolated ones and, of multiplicity 0, a few real poses of the self-motion if it has real ones.

    Args:
        kinds: (k,) of `ConstraintKind`.
        base: vectors (k, 3) in the base frame.
        platform: vectors (k, 3) in the platform frame.
        values: (k,); lengths in m.
        consistency: share of the robot's size by which a solution may violate any of more than six constraints.
    """
    kind = np.asarray(kinds, dtype=np.int64)
    a, b = np.asarray(base, dtype=np.float64), np.asarray(platform, dtype=np.float64)
    value = np.asarray(values, dtype=np.float64)
    if not (kind.ndim == 1 and len(kind) >= 6 and a.shape == b.shape == (len(kind), 3) and value.shape == kind.shape):
        return no_solutions((7,), AssemblyStatus.INVALID_INPUT)
    sphere = kind == ConstraintKind.SPHERE
    if not (np.isfinite(a).all() and np.isfinite(b).all() and np.isfinite(value).all() and np.all(value[sphere] >= 0)):
        return no_solutions((7,), AssemblyStatus.INVALID_INPUT)
    scaled = _Scaled(kind, a, b, value)
    system = scaled.system()
    points, multiplicity, roots = real_roots(system, generic_system, lambda z: z[:4] @ z[:4])
    real = [scaled.polished(real_part(z)) for z in points]
    return _report(scaled, real, multiplicity, roots, consistency)


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


def gradients(constraints: Sequence[Constraint], pose: Array) -> Array:
    """Derivatives (k, 6) of k constraints by the twist at a pose (7,): their wrenches at the platform's origin."""
    kind, base, platform, value = (np.array(column) for column in zip(*constraints, strict=True))
    rotation, _ = pose_of(np.concatenate([pose[[6, 3, 4, 5]], np.zeros(4)]))
    return _Scaled(kind, base, platform, value).closure(rotation, pose[:3])[1]


class _Scaled:
    """The constraints with both origins at the centres of their points and lengths in units of the robot's size."""

    def __init__(self, kind: NDArray[np.int64], base: Array, platform: Array, value: Array) -> None:
        self.kind, self.base, self.platform, self.value = kind, base.copy(), platform.copy(), value.copy()
        self.given = (base, platform, value)
        sphere, plane = kind == ConstraintKind.SPHERE, kind == ConstraintKind.PLANE
        moving = kind == ConstraintKind.MOVING_PLANE
        base_points, platform_points = sphere | moving, sphere | plane
        self.base_centre = base[base_points].mean(axis=0) if base_points.any() else np.zeros(3)
        self.platform_centre = platform[platform_points].mean(axis=0) if platform_points.any() else np.zeros(3)
        self.base[base_points] -= self.base_centre
        self.platform[platform_points] -= self.platform_centre
        self.value[plane] -= base[plane] @ self.base_centre
        self.value[moving] -= platform[moving] @ self.platform_centre
        lengths = np.concatenate(
            [
                self.base[base_points].ravel(),
                self.platform[platform_points].ravel(),
                self.value[sphere | plane | moving],
            ]
        )
        size = float(np.sqrt(np.mean(lengths**2))) if len(lengths) else 1.0
        self.size = size if size > 0.0 else 1.0
        self.base[base_points] /= self.size
        self.platform[platform_points] /= self.size
        self.value[sphere | plane | moving] /= self.size

    def system(self) -> Array:
        """Seven quadrics (7, 8, 8) of unit norm, the squared norm of f in the first alone."""
        rows = zip(self.kind, self.base, self.platform, self.value, strict=True)
        quadrics = np.array([constraint_quadric(*row) for row in rows])
        quadrics /= np.linalg.norm(quadrics, axis=(1, 2))[:, None, None]
        return square_system(quadrics, quadrics[:, 4, 4], 6, STUDY_QUADRIC)

    def given_pose(self, z: Array) -> tuple[Array, Array]:
        """Rotation and translation [m] in the frames of the caller."""
        rotation, translation = pose_of(z)
        return rotation, self.size * translation + self.base_centre - rotation @ self.platform_centre

    def closure(self, rotation: Array, translation: Array) -> tuple[Array, Array]:
        """Errors (k,) and their derivatives (k, 6) by translation and rotation vector, caller's frames."""
        base, platform, value = self.given
        turned = platform @ rotation.T
        error, slope = np.empty(len(value)), np.zeros((len(value), 6))
        for i, kind in enumerate(self.kind):
            if kind == ConstraintKind.SPHERE:
                leg = translation + turned[i] - base[i]
                length = float(np.linalg.norm(leg))
                unit = leg / length if length > 0.0 else leg
                error[i] = length - value[i]
                slope[i, :3], slope[i, 3:] = unit, np.cross(turned[i], unit)
            elif kind == ConstraintKind.PLANE:
                error[i] = base[i] @ (translation + turned[i]) - value[i]
                slope[i, :3], slope[i, 3:] = base[i], np.cross(turned[i], base[i])
            elif kind == ConstraintKind.MOVING_PLANE:
                error[i] = turned[i] @ (base[i] - translation) - value[i]
                slope[i, :3], slope[i, 3:] = -turned[i], np.cross(turned[i], base[i] - translation)
            else:
                error[i] = base[i] @ turned[i] - value[i]
                slope[i, 3:] = np.cross(turned[i], base[i])
        return error, slope

    def polished(self, z: Array) -> tuple[Array, Array, float]:
        """Pose after Gauss-Newton steps on the closure errors, as long as they shrink, and the largest error."""
        weight = np.array([1.0, 1.0, 1.0, 1 / self.size, 1 / self.size, 1 / self.size])
        pose, error = polished(lambda at: self.closure(*at), self.given_pose(z), weight=weight, move=_moved)
        return *pose, error


def _moved(pose: tuple[Array, Array], step: Array) -> tuple[Array, Array]:
    """Rotation and translation after a small displacement (6,)."""
    return rotation_from_vector(step[3:]) @ pose[0], pose[1] + step[:3]


def _report(
    scaled: _Scaled,
    real: list[tuple[Array, Array, float]],
    multiplicity: NDArray[np.int64],
    roots: Roots,
    consistency: float,
) -> SolutionSet:
    """Sort the real poses and say what is known of the set."""
    solutions = np.zeros((len(real), 7))
    residuals = np.array([residual for _, _, residual in real])
    for row, (rotation, translation, _) in zip(solutions, real, strict=True):
        e = parameters_of(rotation, translation)[:4]
        leading = e[0] if abs(e[0]) > HALF_TURN else e[np.argmax(np.abs(e))]
        e = e if leading > 0.0 else -e
        row[:3], row[3:6], row[6] = translation, e[1:], e[0]
    unit = np.array([scaled.size] * 3 + [1.0] * 4)
    if len(scaled.kind) > 6:
        good = consistent(solutions, residuals, consistency * scaled.size, unit)
        solutions, residuals, multiplicity = solutions[good], residuals[good], multiplicity[good]
    rounded = np.round(solutions / unit, 6)
    order = np.lexsort((rounded[:, 4], rounded[:, 3], rounded[:, 1], rounded[:, 0], -rounded[:, 2]))
    solutions, residuals, multiplicity = solutions[order], residuals[order], multiplicity[order]
    status = status_of(multiplicity, bool(roots.on_component.any()), roots.lost, len(scaled.kind) > 6)
    n_complex = SOLUTIONS - roots.excluded - roots.lost - int(np.sum(roots.multiplicity[roots.on_component]))
    return SolutionSet(solutions, residuals, multiplicity, n_complex, status)
