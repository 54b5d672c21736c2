# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics of a rigid platform in a plane (3-RRR, 3-RPR, mixed limbs): circles, lines, angles; at most 6.

Everything is in 2-D coordinates of the plane of motion. A limb with its actuator locked imposes one of

* CIRCLE: a platform point at a given distance from a base point (RRR, PRR, RPR with an active slide),
* LINE: a platform point on a base line (PPR, and RPR with its base joint locked),
* MOVING_LINE: a platform line through a base point (RPP, and RPR with its platform joint locked),
* ANGLE: the orientation of the platform (limbs that keep no passive revolute joint),

which covers all planar three-legged platforms, mixed limbs included (enumerated by Hayes and Husty, 2002). Two of three
equations can be made linear in the position; elimination leaves a trigonometric polynomial of degree 3 in the
orientation phi (Gosselin and Sefrioui, 1991: the sextic of the 3-RPR). It is written in u = exp(i phi), so that real
solutions are the roots on the unit circle and phi = pi is a point like any other, and its coefficients come from
values on that circle by a discrete Fourier transform, with no expansion by hand.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_kinematics.assembly.geometry.planar import two_circles
from pkm_kinematics.assembly.result import Array, AssemblyStatus, SolutionSet, no_solutions
from pkm_kinematics.kernels.position.three_spheres import APART, COLLINEAR, TANGENT

DEGREE = 3  # of the trigonometric polynomial: at most 6 orientations
SAMPLES = 16  # of it, more than twice the degree
VANISHING = 1e-12  # coefficient over the largest one that counts as zero
CANDIDATE = 1e-3  # distance from the unit circle of a root that Newton's method may pull onto it
CLUSTER = 1e-5  # distance between computed copies of a multiple root
SAME = 1e-6  # distance (positions over the robot's size, angles in rad) below which two solutions are one
CLOSED = 1e-12  # closure error over the robot's size of a solution
RANK = 1e-6  # relative singular value that counts as zero
EXCURSION = 1e-2  # how far to walk from a singular solution to see whether it is isolated


class PlanarKind(IntEnum):
    """What a limb with locked actuators imposes on the platform pose (R(phi), p); vectors (2,)."""

    CIRCLE = 0  # |p + R platform - base| = value
    LINE = 1  # base . (p + R platform) = value, base a unit normal
    MOVING_LINE = 2  # platform . R^T (base - p) = value, platform a unit normal
    ANGLE = 3  # phi = value; base and platform are not used


def planar_poses(
    kinds: ArrayLike, base: ArrayLike, platform: ArrayLike, values: ArrayLike, consistency: float = 1e-7
) -> SolutionSet:
    """All poses (n, 3) of a rigid platform in the plane under k >= 3 constraints: x, y [m], phi in (-pi, pi] [rad].

    In order of phi. Three constraints give the candidates. A self-motion is answered with samples of it.

    Args:
        kinds: (k,) of `PlanarKind`.
        base: vectors (k, 2) in the base frame.
        platform: vectors (k, 2) in the platform frame.
        values: (k,) [m or rad].
        consistency: share of the robot's size by which a solution may violate any of more than three constraints.
    """
    kind = np.asarray(kinds, dtype=np.int64)
    a, b = np.asarray(base, dtype=np.float64), np.asarray(platform, dtype=np.float64)
    value = np.asarray(values, dtype=np.float64)
    if not (kind.ndim == 1 and len(kind) >= 3 and a.shape == b.shape == (len(kind), 2) and value.shape == kind.shape):
        return no_solutions((3,), AssemblyStatus.INVALID_INPUT)
    finite = np.isfinite(a).all() and np.isfinite(b).all() and np.isfinite(value).all()
    if not (finite and np.all(value[kind == PlanarKind.CIRCLE] >= 0.0)):
        return no_solutions((3,), AssemblyStatus.INVALID_INPUT)
    order = np.argsort(np.array([1, 2, 3, 0])[kind], kind="stable")  # angles first, then circles
    closure = _Closure(kind[order], a[order], b[order], value[order])
    if kind[order[0]] == PlanarKind.ANGLE:
        candidates, n_complex = _with_known_angle(closure)
        angles = np.exp(1j * closure.value[:1])
    else:
        angles, n_complex = _orientations(closure)
        candidates = [pose for u in angles for pose in _positions(closure, float(np.angle(u)))]
    return _report(closure, candidates, angles, n_complex, consistency)


class _Closure:
    """The constraints, lengths in units of the robot's size, those that give the candidates first.

    Positions are p' = p - base_0 + R platform_0 where constraint 0 is a circle, which then reads |p'| = value_0 and
    takes a degree off the others.
    """

    def __init__(self, kind: NDArray[np.int64], base: Array, platform: Array, value: Array) -> None:
        self.kind, self.base, self.platform, self.value = kind, base.copy(), platform.copy(), value.copy()
        base_points = (kind == PlanarKind.CIRCLE) | (kind == PlanarKind.MOVING_LINE)
        platform_points = (kind == PlanarKind.CIRCLE) | (kind == PlanarKind.LINE)
        has_length = kind != PlanarKind.ANGLE
        # what no choice of the origins can change
        spread = [base[base_points] - base[base_points][:1], platform[platform_points] - platform[platform_points][:1]]
        lengths = np.concatenate([spread[0].ravel(), spread[1].ravel(), value[kind == PlanarKind.CIRCLE]])
        size = float(np.max(np.abs(lengths), initial=0.0))
        self.size = size if size > 0.0 else 1.0
        self.base[base_points] /= self.size
        self.platform[platform_points] /= self.size
        self.value[has_length] /= self.size
        self.circle = bool(kind[0] == PlanarKind.CIRCLE)
        self.shift_base = self.base[0].copy() if self.circle else np.zeros(2)
        self.shift_platform = self.platform[0].copy() if self.circle else np.zeros(2)

    def rows(self, phi: Array, which: tuple[int, ...]) -> tuple[Array, Array]:
        """Equations linear in p': g . p' + h = 0, with g (n, rows, 2) and h (n, rows) for orientations phi (n,)."""
        gradient, constant = np.empty((len(phi), len(which), 2)), np.empty((len(phi), len(which)))
        for row, i in enumerate(which):
            a = self.base[i] - self.shift_base
            point = _turned(self.platform[i] - self.shift_platform, phi)
            if self.kind[i] == PlanarKind.LINE:
                gradient[:, row] = self.base[i]
                constant[:, row] = point @ self.base[i] + self.base[i] @ self.shift_base - self.value[i]
            elif self.kind[i] == PlanarKind.MOVING_LINE:
                normal = _turned(self.platform[i], phi)
                gradient[:, row] = -normal
                constant[:, row] = normal @ a + self.platform[i] @ self.shift_platform - self.value[i]
            else:  # a circle less circle 0
                gradient[:, row] = 2.0 * (point - a)
                difference = (self.value[0] - self.value[i]) * (self.value[0] + self.value[i])
                constant[:, row] = np.sum((point - a) ** 2, axis=1) + difference
        return gradient, constant

    def errors(self, pose: Array) -> tuple[Array, Array]:
        """Closure errors (k,) and Jacobian (k, 3) at p', phi."""
        phi = pose[2:]
        arm = _turned(self.shift_platform, phi)[0]
        p, p_slope = pose[:2] + self.shift_base - arm, -_quarter(arm)
        error, slope = np.empty(len(self.kind)), np.zeros((len(self.kind), 3))
        for i, kind in enumerate(self.kind):
            turned = _turned(self.platform[i], phi)[0]
            if kind == PlanarKind.CIRCLE:
                leg = p + turned - self.base[i]
                length = float(np.hypot(leg[0], leg[1]))
                unit = leg / length if length > 0.0 else np.array([1.0, 0.0])
                error[i] = length - self.value[i]
                slope[i, :2], slope[i, 2] = unit, unit @ (p_slope + _quarter(turned))
            elif kind == PlanarKind.LINE:
                error[i] = self.base[i] @ (p + turned) - self.value[i]
                slope[i, :2], slope[i, 2] = self.base[i], self.base[i] @ (p_slope + _quarter(turned))
            elif kind == PlanarKind.MOVING_LINE:
                error[i] = turned @ (self.base[i] - p) - self.value[i]
                slope[i, :2], slope[i, 2] = -turned, _quarter(turned) @ (self.base[i] - p) - turned @ p_slope
            else:
                error[i] = np.angle(np.exp(1j * (pose[2] - self.value[i])))
                slope[i, 2] = 1.0
        return error, slope

    def polished(self, pose: Array, count: int) -> Array:
        """Pose after Gauss-Newton on the first `count` constraints, while it helps."""
        error, slope = self.errors(pose)
        for _ in range(60):
            trial = pose - np.linalg.lstsq(slope[:count], error[:count], rcond=1e-12)[0]
            new_error, new_slope = self.errors(trial)
            if not np.linalg.norm(new_error[:count]) < np.linalg.norm(error[:count]):
                break
            pose, error, slope = trial, new_error, new_slope
        return pose

    def given_pose(self, pose: Array) -> Array:
        """x, y [m], phi [rad] in the caller's frames."""
        position = pose[:2] + self.shift_base - _turned(self.shift_platform, pose[2:])[0]
        angle = np.angle(np.exp(1j * pose[2]))
        return np.append(self.size * position, angle if angle > -np.pi else np.pi)

    def residual(self, pose: Array, count: int) -> float:
        """Largest error of the first `count` constraints [m, rad]."""
        error = np.abs(self.errors(pose)[0]) * np.where(self.kind == PlanarKind.ANGLE, 1.0, self.size)
        return float(np.max(error[:count]))


def _turned(vector: Array, phi: Array) -> Array:
    """vector (2,) turned by each angle (n,): (n, 2)."""
    cosine, sine = np.cos(phi), np.sin(phi)
    return np.stack([cosine * vector[0] - sine * vector[1], sine * vector[0] + cosine * vector[1]], axis=-1)


def _quarter(vector: Array) -> Array:
    """vector (2,) turned by a right angle."""
    return np.array([-vector[1], vector[0]])


def _eliminant(closure: _Closure, phi: Array) -> tuple[Array, Array]:
    """Values (n,) of the trigonometric polynomial whose roots are the orientations, and of its largest term."""
    if not closure.circle:
        gradient, constant = closure.rows(phi, (0, 1, 2))
        rows = np.concatenate([gradient, constant[..., None]], axis=2)
        return np.linalg.det(rows), np.prod(np.linalg.norm(rows, axis=2), axis=1)
    gradient, constant = closure.rows(phi, (1, 2))
    g0, g1, h0, h1 = gradient[:, 0], gradient[:, 1], constant[:, :1], constant[:, 1:]
    determinant = g0[:, 0] * g1[:, 1] - g0[:, 1] * g1[:, 0]
    numerator = h0 * g1 - h1 * g0  # p' times the determinant, turned by a right angle
    size = np.sum((np.abs(h0 * g1) + np.abs(h1 * g0)) ** 2, axis=1) + closure.value[0] ** 2 * np.sum(
        g0**2, axis=1
    ) * np.sum(g1**2, axis=1)
    return np.sum(numerator**2, axis=1) - (closure.value[0] * determinant) ** 2, size


def _orientations(closure: _Closure) -> tuple[NDArray[np.complex128], int]:
    """Roots u near the unit circle, and the number of all finite complex ones; -1 where every u is a root."""
    phi = 2.0 * np.pi * np.arange(SAMPLES) / SAMPLES
    values, sizes = _eliminant(closure, phi)
    if np.max(np.abs(values)) <= VANISHING * np.max(sizes):
        return np.exp(1j * phi), -1
    spectrum = np.fft.fft(values) / SAMPLES
    coefficients = spectrum[np.arange(DEGREE, -DEGREE - 1, -1)]  # of u^6 ... u^0, after multiplication by u^3
    while len(coefficients) > 1 and abs(coefficients[0]) < VANISHING * np.max(np.abs(coefficients)):
        coefficients = coefficients[1:-1]  # a pair of roots at zero and infinity: no finite complex pose
    roots = np.roots(coefficients).astype(np.complex128)
    roots = roots[~_spurious(closure, roots)]
    return roots[np.abs(np.abs(roots) - 1.0) < CANDIDATE], len(roots)


def _spurious(closure: _Closure, roots: NDArray[np.complex128]) -> NDArray[np.bool_]:
    """Orientations at which both linear equations lose the position and contradict (congruent base and platform)."""
    if not closure.circle or not len(roots):
        return np.zeros(len(roots), dtype=bool)
    gradient, constant = closure.rows(np.angle(roots), (1, 2))
    lost = np.max(np.abs(gradient), axis=(1, 2)) < CANDIDATE
    contradiction = np.max(np.abs(constant), axis=1) > 10.0 * CANDIDATE
    return lost & contradiction & (np.abs(np.abs(roots) - 1.0) < CANDIDATE)


def _positions(closure: _Closure, phi: float) -> list[Array]:
    """Poses (3,) at an orientation that is a root, or close to one."""
    if not closure.circle:
        gradient, constant = closure.rows(np.array([phi]), (0, 1, 2))
        return [np.append(np.linalg.lstsq(gradient[0], -constant[0], rcond=1e-9)[0], phi)]
    gradient, constant = closure.rows(np.array([phi]), (1, 2))
    g, h = gradient[0], constant[0]
    sizes = np.linalg.norm(g, axis=1)
    sine = abs(float(np.linalg.det(g))) / max(sizes[0] * sizes[1], 1e-300)
    found = []
    if sine > 1e-9:
        found.append(np.append(np.linalg.solve(g, -h), phi))
    if sine < 1e-3 or sizes.min() < 1e-3:  # both equations are one line, or none
        row = int(np.argmax(sizes))
        found += [np.append(p, phi) for p in _line_on_circle(g[row], h[row], closure.value[0])]
    return found


def _line_on_circle(gradient: Array, constant: float, radius: float) -> list[Array]:
    """Points with g . p + h = 0 and |p| = radius; the nearest to the circle where there are none, any where g = 0."""
    size = float(np.linalg.norm(gradient))
    normal = gradient / size if size > 1e-12 else np.array([1.0, 0.0])
    along = -constant / size if size > 1e-12 else 0.0
    across = np.sqrt(max((radius - along) * (radius + along), 0.0))
    return [along * normal + side * across * _quarter(normal) for side in (1.0, -1.0)]


def _with_known_angle(closure: _Closure) -> tuple[list[Array], int]:
    """Candidates (3,) where constraint 0 gives the orientation, and the number of finite complex solutions."""
    phi = closure.value[:1]
    free = [i for i in range(1, len(closure.kind)) if closure.kind[i] != PlanarKind.ANGLE][:2]
    if len(free) < 2:
        return [], -1
    circles = [i for i in free if closure.kind[i] == PlanarKind.CIRCLE]
    lines = [i for i in free if closure.kind[i] != PlanarKind.CIRCLE]
    centres = [closure.base[i] - _turned(closure.platform[i], phi)[0] for i in circles]
    gradient, constant = closure.rows(phi, tuple(lines))
    if len(circles) == 2:
        points = np.empty((2, 2))
        answer = two_circles(np.array(centres), closure.value[circles], points)
        if answer == COLLINEAR:
            return [np.append(centres[0] + [closure.value[circles[0]], 0.0], phi)], 0
        return ([] if answer == APART else [np.append(p, phi) for p in points[: 1 if answer == TANGENT else 2]]), 2
    if len(circles) == 1:
        shifted = constant[0, 0] + gradient[0, 0] @ centres[0]
        points = np.array(_line_on_circle(gradient[0, 0], shifted, closure.value[circles[0]])) + centres[0]
        return [np.append(p, phi) for p in points], 2
    position, _, rank, _ = np.linalg.lstsq(gradient[0], -constant[0], rcond=1e-12)
    return [np.append(position, phi)], 1 if rank == 2 else 0


def _report(
    closure: _Closure, candidates: list[Array], angles: NDArray[np.complex128], n_complex: int, consistency: float
) -> SolutionSet:
    """Polish the candidates, merge equal ones, share the multiplicities, and say what is known."""
    count = len(closure.kind)
    minimal = 3 if n_complex >= 0 else count
    poses: list[Array] = []
    for candidate in candidates:
        pose = closure.polished(candidate, minimal)
        if closure.residual(pose, minimal) < CLOSED * closure.size and not any(_apart(pose, q) < SAME for q in poses):
            poses.append(pose)
    isolated = [n_complex >= 0 and _is_isolated(closure, pose) for pose in poses]
    if n_complex < 0 or not all(isolated):
        keep = [k for k, p in enumerate(poses) if closure.residual(p, count) < consistency * closure.size]
        poses, counts = [poses[k] for k in keep], [int(isolated[k]) for k in keep]
        n_complex, status = sum(counts), AssemblyStatus.POSITIVE_DIMENSIONAL
    else:
        counts = _multiplicities(poses, angles)
        status = AssemblyStatus.COMPLETE
        if count > 3:
            poses = [closure.polished(pose, count) for pose in poses]
            keep = [k for k, p in enumerate(poses) if closure.residual(p, count) < consistency * closure.size]
            poses, counts = [poses[k] for k in keep], [counts[k] for k in keep]
            status = status if poses else AssemblyStatus.INCONSISTENT
        if any(multiplicity > 1 for multiplicity in counts):
            status = AssemblyStatus.SINGULAR
    solutions = np.array([closure.given_pose(pose) for pose in poses]).reshape(-1, 3)
    residuals = np.array([closure.residual(pose, count) for pose in poses])
    order = np.argsort(solutions[:, 2], kind="stable")
    return SolutionSet(solutions[order], residuals[order], np.array(counts, dtype=np.int64)[order], n_complex, status)


def _apart(first: Array, second: Array) -> float:
    """Distance of two poses: positions in units of the size, angles in rad."""
    turn = np.abs(np.angle(np.exp(1j * (first[2] - second[2]))))
    return float(max(np.max(np.abs(first[:2] - second[:2])), turn))


def _multiplicities(poses: list[Array], angles: NDArray[np.complex128]) -> list[int]:
    """Share the roots at each orientation among the poses with it."""
    counts = []
    for k, pose in enumerate(poses):
        turns = np.array([abs(np.exp(1j * pose[2]) - np.exp(1j * other[2])) for other in poses])
        same = np.flatnonzero(turns < CLUSTER)
        roots = int(np.sum(np.abs(angles - np.exp(1j * pose[2])) < CLUSTER))
        counts.append(max(1, roots // len(same) + int(k == same[0] and roots % len(same) > 0)))
    return counts


def _is_isolated(closure: _Closure, pose: Array) -> bool:
    """Whether an attempt to walk away from a solution along its null space fails."""
    _, sizes, right = np.linalg.svd(closure.errors(pose)[1])
    rank = int(np.sum(sizes > RANK * sizes[0]))
    if rank == 3:
        return True
    walker = pose + EXCURSION * right[-1]
    for _ in range(10):
        error, slope = closure.errors(walker)
        left, sizes, right = np.linalg.svd(slope, full_matrices=False)
        walker = walker - right[:rank].T @ ((left[:, :rank].T @ error) / sizes[:rank])
    moved = _apart(walker, pose)
    return not (np.max(np.abs(closure.errors(walker)[0])) < CLOSED and moved > 0.1 * EXCURSION)
