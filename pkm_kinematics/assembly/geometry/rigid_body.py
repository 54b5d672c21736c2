# SPDX-License-Identifier: Apache-2.0
"""All poses of a rigid platform that satisfy six constraints on its points, planes and directions; rotations of three.

This is the forward kinematics of every robot whose limbs impose a `ConstraintKind` each once the actuators are locked:
6-UPS, 6-RUS and 6-PUS, 3-RPS and 3-PRS, a tricept with its passive leg, and so on.

Study parameters z = (e, f) of a pose, a point of P^7: e = (w, x, y, z) the quaternion of the rotation R, f = p e / 2
the dual part of the translation p, both up to one common scale, on the Study quadric e . f = 0. Then

    |e|^2 R b          is quadratic in e,
    |e|^2 p  = 2 vec(f e*),   |e|^2 R^T p = 2 vec(e* f),   |e|^2 |p|^2 = 4 |f|^2,

so every constraint is one quadric z^T M z = 0 (Husty, "An algorithm for solving the direct kinematics of general
Stewart-Gough platforms", 1996). With the squared norm of f left in one of the six only, they are members of the family

    e^T A_i e + f^T B_i e = 0,  i = 1..5,    f^T f + e^T A_6 e + f^T B_6 e = 0,    e^T f = 0,   B_i skew-symmetric,

of which a generic member has 40 solutions (Wampler, "Forward displacement analysis of general six-in-parallel SPS
(Stewart) platform manipulators using soma coordinates", 1996). That number is also the bound for every geometry. Three
directions alone (spherical 3-RRR) are quadrics in e, which meet in 8 points of P^3 by Bezout's theorem (Gosselin,
Sefrioui and Richard, 1994).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_description.rotations import rotation_from_vector
from pkm_kinematics.assembly.quadrics import Complex, solve_by_monodromy, start_system
from pkm_kinematics.assembly.result import (
    Array,
    AssemblyStatus,
    SolutionSet,
    complex_normal,
    consistent,
    no_solutions,
    polished,
    status_of,
)
from pkm_kinematics.assembly.roots import Roots, real_part, real_roots, square_system

SOLUTIONS = 40  # of a generic member of the family


class ConstraintKind(IntEnum):
    """What a limb with locked actuators imposes on the platform pose (R, p), by vectors (3,) of `base` and `platform`.

    Each vector is in the frame that it is named after; `value` is a length [m], a signed distance [m] or a cosine.
    """

    SPHERE = 0  # |p + R platform - base| = value: a platform point on a sphere
    PLANE = 1  # base . (p + R platform) = value: a platform point in a plane with unit normal `base`
    MOVING_PLANE = 2  # platform . R^T (base - p) = value: a base point in a platform plane with unit normal `platform`
    DIRECTION = 3  # base . (R platform) = value: the cosine of the angle between two unit vectors


class Constraint(NamedTuple):
    """One constraint on the platform pose; see `ConstraintKind`."""

    kind: ConstraintKind
    base: Array
    platform: Array
    value: float


def _product_tensor() -> Array:
    """T[k, i, j] with (a b)_k = T[k, i, j] a_i b_j for quaternions (w, x, y, z)."""
    tensor = np.zeros((4, 4, 4))
    tensor[0] = np.diag([1.0, -1.0, -1.0, -1.0])
    for k, i, j in ((1, 2, 3), (2, 3, 1), (3, 1, 2)):
        tensor[k, i, j], tensor[k, j, i] = 1.0, -1.0
        tensor[k, 0, k] = tensor[k, k, 0] = 1.0
    return tensor


_PRODUCT = _product_tensor()
_CONJUGATE = np.diag([1.0, -1.0, -1.0, -1.0])
# vec(f e*)_k = f^T _LEFT[k] e,  vec(e* f)_k = f^T _RIGHT[k] e
_LEFT = np.einsum("kij,jl->kil", _PRODUCT, _CONJUGATE)[1:]
_RIGHT = np.einsum("kij,il->kjl", _PRODUCT, _CONJUGATE)[1:]
# |e|^2 R[k, l] = e^T _ROTATION[k, l] e: the product e (0, v) e*
_ROTATION = np.einsum("kim,ila,bm->klab", _PRODUCT, np.swapaxes(_PRODUCT, 1, 2), _CONJUGATE)[1:, 1:]
_ROTATION = 0.5 * (_ROTATION + np.swapaxes(_ROTATION, 2, 3))


def _assemble(ee: Array, fe: Array | float, ff: float) -> Array:
    matrix = np.zeros((8, 8))
    matrix[:4, :4] = ee
    matrix[4:, :4] = 0.5 * np.asarray(fe)
    matrix[:4, 4:] = 0.5 * np.asarray(fe).T
    matrix[4:, 4:] = ff * np.eye(4)
    return matrix


STUDY_QUADRIC = _assemble(np.zeros((4, 4)), np.eye(4), 0.0)


def constraint_quadric(kind: int, base: Array, platform: Array, value: float) -> Array:
    """Symmetric (8, 8) matrix of a constraint of `ConstraintKind`; `ValueError` for an unknown kind."""
    rotated = np.einsum("k,l,klab->ab", base, platform, _ROTATION)  # base . R platform
    left = 2.0 * np.einsum("k,kab->ab", base, _LEFT)  # base . p
    right = 2.0 * np.einsum("k,kab->ab", platform, _RIGHT)  # platform . R^T p
    identity = np.eye(4)
    if kind == ConstraintKind.SPHERE:
        constant = base @ base + platform @ platform - value**2
        return _assemble(constant * identity - 2.0 * rotated, 2.0 * right - 2.0 * left, 4.0)
    if kind == ConstraintKind.PLANE:
        return _assemble(rotated - value * identity, left, 0.0)
    if kind == ConstraintKind.MOVING_PLANE:
        return _assemble(rotated - value * identity, -right, 0.0)
    if kind == ConstraintKind.DIRECTION:
        return _assemble(rotated - value * identity, np.zeros((4, 4)), 0.0)
    raise ValueError(f"unknown kind of constraint: {kind}")


def rotation_form(base: Array, platform: Array, value: float) -> Array:
    """Symmetric matrix (4, 4) in the quaternion alone of base . (R platform) = value."""
    return np.einsum("k,l,klab->ab", base, platform, _ROTATION) - value * np.eye(4)


def pose_of(z: Array) -> tuple[Array, Array]:
    """Rotation matrix (3, 3) and translation (3,) of real Study parameters (8,)."""
    e, f = z[:4], z[4:]
    square = e @ e
    rotation = np.einsum("klab,a,b->kl", _ROTATION, e, e) / square
    return rotation, 2.0 * np.einsum("kab,a,b->k", _LEFT, f, e) / square


def parameters_of(rotation: Array, translation: Array) -> Array:
    """Study parameters (8,) with |e| = 1 of a pose; the quaternion is a dominant eigenvector (Bar-Itzhack, 2000)."""
    form = np.einsum("kl,klab->ab", rotation, _ROTATION)  # e^T form e = trace(R(e)^T rotation)
    e = np.linalg.eigh(form)[1][:, -1]
    f = 0.5 * np.einsum("kij,i,j->k", _PRODUCT, np.concatenate([[0.0], translation]), e)
    return np.concatenate([e, f])


def _generic_member(rng: np.random.Generator) -> Complex:
    """A random member of the family: (7, 8, 8), equation 0 the one with f^T f, equation 6 the Study quadric."""
    number = partial(complex_normal, rng)
    member = np.zeros((7, 8, 8), dtype=np.complex128)
    for i in range(6):
        a, b = number(4, 4), number(4, 4)
        member[i, :4, :4] = a + a.T
        skew = 0.5 * (b - b.T)
        member[i, 4:, :4], member[i, :4, 4:] = skew, skew.T
    member[0, 4:, 4:] = number() * np.eye(4)
    member[6] = STUDY_QUADRIC
    member /= np.linalg.norm(member, axis=(1, 2))[:, None, None]
    return member


@lru_cache(maxsize=8)
def generic_system(seed: int) -> tuple[Complex, Complex]:
    """A generic member (7, 8, 8) of the family and its 40 solutions (40, 8), the same ones for the same seed."""
    rng = np.random.default_rng([1965, seed])
    point = complex_normal(rng, 8)
    point[4:] -= point[:4] * (point[:4] @ point[4:]) / (point[:4] @ point[:4])  # onto the Study quadric
    return solve_by_monodromy(_generic_member, point, 6, SOLUTIONS, rng)


HALF_TURN = 1e-9  # below this qw is rounding, and its sign does not tell two quaternions of one rotation apart


def poses(
    kinds: ArrayLike, base: ArrayLike, platform: ArrayLike, values: ArrayLike, consistency: float = 1e-7
) -> SolutionSet:
    """All poses (n, 7) of the platform under k >= 6 constraints: x y z qx qy qz qw, base frame, in order of falling z.

    qw >= 0 but for rounding. With more than six constraints random combinations (always the same) give the candidates,
    and a solution may violate any by `consistency` of the robot's size. Where the equations allow a self-motion, the
    solutions are the isolated ones and, of multiplicity 0, a few real poses of the self-motion if it has real ones.

    Args:
        kinds: (k,) of `ConstraintKind`.
        base: vectors (k, 3) in the base frame.
        platform: vectors (k, 3) in the platform frame.
        values: (k,); lengths in m.
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
    """All poses (n, 7), x y z qx qy qz qw, with |p + R platform_i - base_i| = lengths_i, k >= 6 of them, as `poses`.

    40 complex solutions in general (Ronga and Vust 1992; Lazard 1993), up to 40 of them real (Dietmaier 1998); 16 when
    the legs meet in pairs at three points (octahedral). Points (k, 3) [m] are each in its frame, lengths in m.
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
    return rotation_from_vector(step[3:]) @ pose[0], pose[1] + step[:3]


def _report(
    scaled: _Scaled,
    real: list[tuple[Array, Array, float]],
    multiplicity: NDArray[np.int64],
    roots: Roots,
    consistency: float,
) -> SolutionSet:
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


UNIT = 1e-6  # deviation of a direction's length from 1 that is put right without complaint


def three_angles(base: ArrayLike, platform: ArrayLike, cosines: ArrayLike, consistency: float = 1e-7) -> SolutionSet:
    """All rotations R with base_i . (R platform_i) = cosines_i, i = 1 .. k, k >= 3, for unit vectors (k, 3).

    Quaternions (n, 4): qx qy qz qw, qw >= 0; residuals are errors of cosines. With more than three constraints the
    first three give the candidates, and a solution may miss any cosine by `consistency`. Samples of self-motions come
    last.
    """
    w, v, cosine = (np.asarray(x, dtype=np.float64) for x in (base, platform, cosines))
    if not (w.ndim == 2 and w.shape == v.shape == (len(w), 3) and len(w) >= 3 and cosine.shape == (len(w),)):
        return no_solutions((4,), AssemblyStatus.INVALID_INPUT)
    if not (np.isfinite(w).all() and np.isfinite(v).all() and np.all(np.abs(cosine) <= 1.0 + UNIT)):
        return no_solutions((4,), AssemblyStatus.INVALID_INPUT)
    lengths = np.linalg.norm([w, v], axis=2)
    if np.max(np.abs(lengths - 1.0)) > UNIT:
        return no_solutions((4,), AssemblyStatus.INVALID_INPUT)
    w, v = w / lengths[0][:, None], v / lengths[1][:, None]
    forms = np.array([rotation_form(*row) for row in zip(w, v, cosine, strict=True)])
    system = forms[:3] / np.linalg.norm(forms[:3], axis=(1, 2))[:, None, None]
    points, multiplicity, roots = real_roots(system, partial(start_system, 3), lambda z: z @ z)
    solutions = np.array([_real_quaternion(z) for z in points]).reshape(-1, 4)
    residuals = np.array([np.max(np.abs(np.einsum("iab,a,b->i", forms, e, e))) for e in solutions])
    n_complex = int(roots.multiplicity[~roots.on_component].sum())
    if len(w) > 3:
        good = residuals < consistency
        solutions, residuals, multiplicity = solutions[good], residuals[good], multiplicity[good]
    order = np.lexsort(np.round(solutions[:, ::-1], 6).T)
    status = status_of(multiplicity, bool(roots.on_component.any()), roots.lost, len(w) > 3)
    listed_first = solutions[:, [1, 2, 3, 0]]
    return SolutionSet(listed_first[order], residuals[order], multiplicity[order], n_complex, status)


def _real_quaternion(z: Complex) -> Array:
    """Unit quaternion (w, x, y, z), w >= 0, of a point of P^3 that is its own conjugate."""
    e = real_part(z)
    return -e if e[0] < 0.0 else e
