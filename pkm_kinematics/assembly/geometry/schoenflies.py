# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics of robots with three translations and one angle (H4, Par4, Schoenflies motion): at most 16.

Limb i holds a platform point at a distance from a base point, |p + b_i(phi) - a_i| = l_i, and the platform points
move with the angle as b_i = c_i + cos(phi) d_i + sin(phi) e_i. That covers a rigid platform that turns about a fixed
direction and articulated platforms whose parts keep their orientation (Pierrot and Company's H4, Nabat's Par4).

In z = (w, c, s, p), up to scale, with cos(phi) = c / w, sin(phi) = s / w, that is one quadric per limb and c^2 + s^2
= w^2. With the squared norm of p left in one of the four only, a generic member of that family has 16 solutions.

A `Plate` of an articulated platform is held by two pairs of rods at a yaw, or folded. Two rods of one length that are
parallel at some yaw, with X from the middle of their ends on the base to that of their ends on the plate and 2 e from
one end to the other, impose at a yaw that is farther by d

    X . (R_d e - e) = 0,    |X|^2 = l^2 - 4 sin^2(d/2) |e|^2,

so that either d = 0, and the pair is one rod, or X lies in the plane of the axis and of R_(d/2) e. With two pairs, not
parallel to each other, and c = cos(d/2), s = sin(d/2), both X across the axis are then linear in c and s, and their
lengths a quadratic or quartic equation in s / c: at most eight places.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import ArrayLike

from pkm_kinematics.assembly.quadrics import Complex, solve_by_monodromy
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
from pkm_kinematics.assembly.roots import real_roots, square_system

SOLUTIONS = 16

_CIRCLE = np.diag([-1.0, 1.0, 1.0, 0.0, 0.0, 0.0]) / np.sqrt(3.0)


def _generic_member(rng: np.random.Generator) -> Complex:
    """A random member (5, 6, 6) of the family; equation 0 is the one with p^T p, equation 4 the circle."""
    number = partial(complex_normal, rng)
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
    point = complex_normal(rng, 6)
    point[1] = np.sqrt(point[0] ** 2 - point[2] ** 2)
    return solve_by_monodromy(_generic_member, point, 4, SOLUTIONS, rng)


def positions_and_angle(
    base: ArrayLike, fixed: ArrayLike, cosine: ArrayLike, sine: ArrayLike, lengths: ArrayLike, consistency: float = 1e-7
) -> SolutionSet:
    """All p, phi with |p + fixed_i + cos(phi) cosine_i + sin(phi) sine_i - base_i| = lengths_i, i = 1 .. k, k >= 4.

    Answers (n, 4): x, y, z [m], phi in (-pi, pi] [rad], in order of phi; points (k, 3) [m] are in base axes. A rigid
    platform that turns about z has fixed = (0, 0, z), cosine = (x, y, 0), sine = (-y, x, 0). With more than four limbs,
    random combinations of the equations (always the same) give the candidates, and a solution may miss any length by
    `consistency` of the robot's size. Self-motions are answered with samples.
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
    count = len(points)
    quadrics = np.zeros((count, 6, 6))
    quadrics[:, :3, :3] = np.swapaxes(points, 1, 2) @ points
    quadrics[:, 0, 0] -= lengths**2
    quadrics[:, 3:, :3], quadrics[:, :3, 3:] = points, np.swapaxes(points, 1, 2)
    quadrics[:, 3:, 3:] = np.eye(3)
    return square_system(quadrics, np.ones(count), 4, _CIRCLE)


def _real_pose(z: Complex) -> Array:
    real = (z / z[0]).real
    return np.append(real[3:], np.arctan2(real[2], real[1]))


def _closure(points: Array, lengths: Array, pose: Array) -> tuple[Array, Array]:
    cosine, sine = np.cos(pose[3]), np.sin(pose[3])
    legs = pose[:3] + points @ np.array([1.0, cosine, sine])
    found = np.linalg.norm(legs, axis=1)
    units = legs / np.maximum(found, 1e-300)[:, None]
    turn = np.sum(units * (points @ np.array([0.0, -sine, cosine])), axis=1)
    return found - lengths, np.column_stack([units, turn])


CLOSE = 1e-9  # sine of an angle, or length over the robot's size, that counts as zero
SPREAD = 1e-6  # area over the squared size from which on two pairs are not parallel to each other
AGREE = 1e-7  # of the size: how well rods must fit where a plate is folded
TURNED = 1e-6  # tan(d/2) from which on a plate is turned
REAL = 1e-6  # imaginary part below which a root counts as real: what it leads to is checked


@dataclass(frozen=True, eq=False)
class Rod:
    """|P + R_psi arm - centre| = length for the origin P of a body at yaw psi; arms across the axis, all in m."""

    centre: Array
    arm: Array
    length: float


@dataclass(frozen=True, eq=False)
class Plate:
    """Two pairs of rods that hold a plate at a yaw, and its hinge: p = P + R_psi hinge + offset + R_phi arm.

    P and psi are the plate's origin and yaw, p and phi those of the platform that is hinged to it.
    """

    axis: Array
    yaw: float
    pairs: list[tuple[Rod, Rod]]
    hinge: Array
    offset: Array
    arm: Array

    def folded(self) -> list[Array] | None:
        """Points (3,) [m] of the hinge plus offset while the plate is folded; None where these are not isolated."""
        across = np.linalg.svd(self.axis[None])[2][1]
        across = np.array([across, np.cross(self.axis, across)])
        middles = [0.5 * (a.centre + b.centre) for a, b in self.pairs]
        arms = [0.5 * (a.arm + b.arm) for a, b in self.pairs]
        halves = [across @ (0.5 * (a.centre - b.centre)) for a, b in self.pairs]
        lengths = [a.length for a, _ in self.pairs]
        e = [half / np.linalg.norm(half) for half in halves]
        D = across @ (middles[0] - middles[1])
        M = across @ turned(self.axis, self.yaw, arms[0] - arms[1])
        quarter = np.array([[0.0, -1.0], [1.0, 0.0]])
        # of both X, by c and by s
        reach = np.linalg.solve(np.column_stack([e[0], -e[1]]), np.column_stack([M - D, quarter @ (M + D)]))
        squares = [_height(*of_pair) for of_pair in zip(lengths, halves, reach, strict=True)]
        step = float(self.axis @ (middles[1] - middles[0]))
        size = max(lengths)
        difference = squares[0] - squares[1] + step**2 * ONE
        level = abs(step) < CLOSE * size
        equation = difference if level else _of_both_heights(difference, squares[0], step)
        if np.abs(equation).max() < CLOSE * size ** (2 if level else 4):
            return None
        places = []
        for t in _projective_roots(equation):
            d = 2.0 * np.arctan(t) if np.isfinite(t) else np.pi
            c, s = np.cos(d / 2.0), np.sin(d / 2.0)
            height = float(squares[0] @ [c * c, s * c, s * s])
            if abs(s) < TURNED or height < -AGREE * size**2:
                continue
            up = np.sqrt(max(height, 0.0))
            along = turned(self.axis, d / 2.0, e[0] @ across) * float(reach[0] @ [c, s])
            only = float(difference @ [c * c, s * c, s * s]) / (2.0 * step) if not level else 0.0
            for z in (up, -up) if level else (only,):
                P = along + z * self.axis + middles[0] - turned(self.axis, self.yaw + d, arms[0])
                places.append(P + turned(self.axis, self.yaw + d, self.hinge) + self.offset)
        return places


ONE = np.array([1.0, 0.0, 1.0])  # 1 + t^2, t = s / c


def _height(length: float, half: Array, reach: Array) -> Array:
    return np.asarray(length**2 * ONE - [0.0, 0.0, 4.0 * half @ half] - polynomial.polymul(reach, reach))


def _of_both_heights(difference: Array, square: Array, step: float) -> Array:
    """The quartic (5,) in t, difference^2 = 4 step^2 square (1 + t^2): both heights differ by `step`."""
    twice = polynomial.polymul(difference, difference)
    return np.asarray(polynomial.polysub(twice, 4.0 * step**2 * polynomial.polymul(ONE, square)))


def _projective_roots(equation: Array) -> list[float]:
    """Real roots of a polynomial, and infinity as often as its degree is short."""
    scale = np.abs(equation).max()
    degree = int(np.flatnonzero(np.abs(equation) > 1e-12 * scale)[-1])
    roots = polynomial.polyroots(equation[: degree + 1])
    real = [float(r.real) for r in roots if abs(r.imag) < REAL * (1.0 + abs(r))]
    return real + [np.inf] * (degree < len(equation) - 1)


def turned(axis: Array, angle: float, vector: Array) -> Array:
    """A vector (3,) turned about a unit axis (3,) by an angle [rad]."""
    along = axis * float(axis @ vector)
    return np.asarray(along + np.cos(angle) * (vector - along) + np.sin(angle) * np.cross(axis, vector))


def parallel_pairs(axis: Array, rods: list[Rod], size: float) -> tuple[float, list[tuple[Rod, Rod]]] | None:
    """The one yaw [rad] of a plate at which two pairs of its rods are parallel, not all four, and these; or None."""
    yaws: list[tuple[float, list[tuple[Rod, Rod]]]] = []
    small = CLOSE * size
    for a, b in combinations(rods, 2):
        centres, arms = a.centre - b.centre, a.arm - b.arm
        apart = (
            abs(a.length - b.length) + abs(float(axis @ centres)) + abs(np.linalg.norm(centres) - np.linalg.norm(arms))
        )
        if apart > small or np.linalg.norm(arms) < small:
            continue
        yaw = float(np.arctan2(np.cross(arms, centres) @ axis, arms @ centres))
        for other, pairs in yaws:
            if abs(np.angle(np.exp(1j * (yaw - other)))) < CLOSE:
                if np.linalg.norm(np.cross(pairs[0][0].centre - pairs[0][1].centre, centres)) > SPREAD * size**2:
                    pairs.append((a, b))
                break
        else:
            yaws.append((yaw, [(a, b)]))
    known = [(yaw, pairs[:2]) for yaw, pairs in yaws if len(pairs) > 1]
    return known[0] if len(known) == 1 else None


def distinct_rods(rods: list[Rod], size: float) -> list[Rod]:
    """Rods without repetitions; `size` of the robot in m."""
    kept: list[Rod] = []
    for rod in rods:
        numbers = np.concatenate([rod.centre, rod.arm, [rod.length]])
        if all(np.abs(numbers - [*other.centre, *other.arm, other.length]).max() > CLOSE * size for other in kept):
            kept.append(rod)
    return kept
