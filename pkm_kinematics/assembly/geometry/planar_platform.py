# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics of a rigid platform in a plane (3-RRR, 3-PRR, 3-RPR): points of it on circles; at most 6 poses.

Everything is in 2-D coordinates of the plane of motion. A limb with its actuator locked holds a platform point at a
distance from a base point. Two of three such equations, less the third, are linear in the position; elimination leaves
a trigonometric polynomial of degree 3 in phi (Gosselin and Sefrioui, 1991: the sextic of the 3-RPR). It is
written in u = exp(i phi), so that real solutions are the roots on the unit circle and phi = pi is a point as any other,
and its coefficients come from values on that circle by a discrete Fourier transform, with no expansion by hand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_kinematics.assembly.result import Array, AssemblyStatus, SolutionSet, no_solutions, polished, walked_away

DEGREE = 3  # of the trigonometric polynomial: at most 6 orientations
SAMPLES = 16  # of it, more than twice the degree
VANISHING = 1e-12  # coefficient over the largest one that counts as zero
CANDIDATE = 1e-3  # distance from the unit circle of a root that Newton's method may pull onto it
CLUSTER = 1e-5  # distance between computed copies of a multiple root
SAME = 1e-6  # distance (positions over the robot's size, angles in rad) below which two solutions are one
CLOSED = 1e-12  # closure error over the robot's size of a solution
RANK = 1e-6  # relative singular value that counts as zero
EXCURSION = 1e-2  # how far to walk from a singular solution to see whether it is isolated
POLISH_STEPS = 60


def planar_poses(base: ArrayLike, platform: ArrayLike, lengths: ArrayLike, consistency: float = 1e-7) -> SolutionSet:
    """All poses (n, 3), x y [m] and phi in (-pi, pi] [rad], with |p + R(phi) platform_i - base_i| = lengths_i, k >= 3.

    In order of phi; points (k, 2) [m] each in its frame. Three distances give the candidates; any of more may be missed
    by `consistency` of the robot's size. A self-motion is answered with samples of it.
    """
    a, b, length = (np.asarray(x, dtype=np.float64) for x in (base, platform, lengths))
    if not (length.ndim == 1 and len(length) >= 3 and a.shape == b.shape == (len(length), 2)):
        return no_solutions((3,), AssemblyStatus.INVALID_INPUT)
    if not (np.isfinite(a).all() and np.isfinite(b).all() and np.isfinite(length).all() and np.all(length >= 0.0)):
        return no_solutions((3,), AssemblyStatus.INVALID_INPUT)
    closure = _Closure(a, b, length)
    angles, n_complex = _orientations(closure)
    candidates = [pose for u in angles for pose in _positions(closure, float(np.angle(u)))]
    return _report(closure, candidates, angles, n_complex, consistency)


class _Closure:
    """The circles seen from the first one's centre and its point p' of the platform, in units of the robot's size."""

    def __init__(self, base: Array, platform: Array, lengths: Array) -> None:
        self.base, self.platform = base[0], platform[0]
        spread = np.concatenate([(base - base[0]).ravel(), (platform - platform[0]).ravel(), lengths])
        self.size = float(np.abs(spread).max()) or 1.0
        self.centres, self.arms = (base - base[0]) / self.size, (platform - platform[0]) / self.size
        self.lengths = lengths / self.size

    def lines(self, phi: Array) -> tuple[Array, Array]:
        """Circles 1 and 2 less circle 0: g . p' + h = 0, with g (n, 2, 2) and h (n, 2) for orientations phi (n,)."""
        offsets, r = _turned(self.arms[1:3], phi) - self.centres[1:3], self.lengths
        return 2.0 * offsets, np.sum(offsets**2, axis=2) + (r[0] - r[1:3]) * (r[0] + r[1:3])

    def errors(self, pose: Array) -> tuple[Array, Array]:
        """Closure errors (k,) and Jacobian (k, 3) at p', phi."""
        turned = _turned(self.arms, pose[2:])[0]
        legs = pose[:2] + turned - self.centres
        lengths = np.hypot(legs[:, 0], legs[:, 1])
        units = np.where(lengths[:, None] > 0.0, legs, [1.0, 0.0]) / np.where(lengths > 0.0, lengths, 1.0)[:, None]
        return lengths - self.lengths, np.column_stack([units, np.sum(units * _quarter(turned), axis=1)])

    def polished(self, pose: Array, count: int) -> Array:
        """Pose after Gauss-Newton on the first `count` circles."""

        def some(at: Array) -> tuple[Array, Array]:
            error, slope = self.errors(at)
            return error[:count], slope[:count]

        return polished(some, pose, POLISH_STEPS, rcond=1e-12)[0]

    def given_pose(self, pose: Array) -> Array:
        """x, y [m], phi [rad] in the caller's frames."""
        position = self.size * pose[:2] + self.base - _turned(self.platform[None], pose[2:])[0, 0]
        angle = np.angle(np.exp(1j * pose[2]))
        return np.append(position, angle if angle > -np.pi else np.pi)

    def residual(self, pose: Array, count: int) -> float:
        """Largest error of the first `count` circles [m]."""
        return self.size * float(np.max(np.abs(self.errors(pose)[0][:count])))


def _turned(vectors: Array, phi: Array) -> Array:
    cosine, sine, (x, y) = np.cos(phi)[:, None], np.sin(phi)[:, None], vectors.T
    return np.stack([cosine * x - sine * y, sine * x + cosine * y], axis=-1)


def _quarter(vectors: Array) -> Array:
    return np.stack([-vectors[..., 1], vectors[..., 0]], axis=-1)


def _orientations(closure: _Closure) -> tuple[NDArray[np.complex128], int]:
    """Roots u near the unit circle, and the number of all finite complex ones; -1 where every u is a root."""
    phi = 2.0 * np.pi * np.arange(SAMPLES) / SAMPLES
    gradient, constant = closure.lines(phi)
    g0, g1, h0, h1 = gradient[:, 0], gradient[:, 1], constant[:, :1], constant[:, 1:]
    determinant = g0[:, 0] * g1[:, 1] - g0[:, 1] * g1[:, 0]
    values = (
        np.sum((h0 * g1 - h1 * g0) ** 2, axis=1) - (closure.lengths[0] * determinant) ** 2
    )  # |p'|^2 - r^2, times it
    largest = np.sum((np.abs(h0 * g1) + np.abs(h1 * g0)) ** 2, axis=1)  # and of its terms
    largest += closure.lengths[0] ** 2 * np.sum(g0**2, axis=1) * np.sum(g1**2, axis=1)
    if np.max(np.abs(values)) <= VANISHING * np.max(largest):
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
    gradient, constant = closure.lines(np.angle(roots))
    lost = np.abs(gradient).max(axis=(1, 2), initial=0.0) < CANDIDATE
    contradiction = np.abs(constant).max(axis=1, initial=0.0) > 10.0 * CANDIDATE
    return lost & contradiction & (np.abs(np.abs(roots) - 1.0) < CANDIDATE)


def _positions(closure: _Closure, phi: float) -> list[Array]:
    gradient, constant = closure.lines(np.array([phi]))
    g, h = gradient[0], constant[0]
    sizes = np.linalg.norm(g, axis=1)
    sine = abs(float(np.linalg.det(g))) / max(sizes[0] * sizes[1], 1e-300)
    found = []
    if sine > 1e-9:
        found.append(np.append(np.linalg.solve(g, -h), phi))
    if sine < 1e-3 or sizes.min() < 1e-3:  # both equations are one line, or none
        row = int(np.argmax(sizes))
        found += [np.append(p, phi) for p in _line_on_circle(g[row], h[row], closure.lengths[0])]
    return found


def _line_on_circle(gradient: Array, constant: float, radius: float) -> list[Array]:
    """Points with g . p + h = 0 and |p| = radius; the nearest to the circle where there are none, any where g = 0."""
    size = float(np.linalg.norm(gradient))
    normal = gradient / size if size > 1e-12 else np.array([1.0, 0.0])
    along = -constant / size if size > 1e-12 else 0.0
    across = np.sqrt(max((radius - along) * (radius + along), 0.0))
    return [along * normal + side * across * _quarter(normal) for side in (1.0, -1.0)]


def _report(
    closure: _Closure, candidates: list[Array], angles: NDArray[np.complex128], n_complex: int, consistency: float
) -> SolutionSet:
    count = len(closure.lengths)
    minimal = 3 if n_complex >= 0 else count
    poses: list[Array] = []
    for candidate in candidates:
        pose = closure.polished(candidate, minimal)
        if closure.residual(pose, minimal) < CLOSED * closure.size and not any(_apart(pose, q) < SAME for q in poses):
            poses.append(pose)
    isolated = [n_complex >= 0 and _is_isolated(closure, pose) for pose in poses]
    moving = n_complex < 0 or not all(isolated)
    counts = [int(one) for one in isolated] if moving else _multiplicities(poses, angles)
    if count > 3 and not moving:
        poses = [closure.polished(pose, count) for pose in poses]
    keep = [k for k, p in enumerate(poses) if closure.residual(p, count) < consistency * closure.size]
    poses, counts = [poses[k] for k in keep], [counts[k] for k in keep]
    status = AssemblyStatus.COMPLETE
    if moving:
        n_complex, status = sum(counts), AssemblyStatus.POSITIVE_DIMENSIONAL
    elif count > 3 and not poses:
        status = AssemblyStatus.INCONSISTENT
    elif any(multiplicity > 1 for multiplicity in counts):
        status = AssemblyStatus.SINGULAR
    solutions = np.array([closure.given_pose(pose) for pose in poses]).reshape(-1, 3)
    residuals = np.array([closure.residual(pose, count) for pose in poses])
    order = np.argsort(solutions[:, 2], kind="stable")
    return SolutionSet(solutions[order], residuals[order], np.array(counts, dtype=np.int64)[order], n_complex, status)


def _apart(first: Array, second: Array) -> float:
    turn = np.abs(np.angle(np.exp(1j * (first[2] - second[2]))))
    return float(max(np.max(np.abs(first[:2] - second[:2])), turn))


def _multiplicities(poses: list[Array], angles: NDArray[np.complex128]) -> list[int]:
    counts = []
    for k, pose in enumerate(poses):
        turns = np.array([abs(np.exp(1j * pose[2]) - np.exp(1j * other[2])) for other in poses])
        same = np.flatnonzero(turns < CLUSTER)
        roots = int(np.sum(np.abs(angles - np.exp(1j * pose[2])) < CLUSTER))
        counts.append(max(1, roots // len(same) + int(k == same[0] and roots % len(same) > 0)))
    return counts


def _is_isolated(closure: _Closure, pose: Array) -> bool:
    walker = walked_away(closure.errors, pose, RANK, EXCURSION)
    if walker is None:
        return True
    return not (np.max(np.abs(closure.errors(walker)[0])) < CLOSED and _apart(walker, pose) > 0.1 * EXCURSION)
