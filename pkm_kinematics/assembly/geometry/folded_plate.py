# SPDX-License-Identifier: Apache-2.0
"""A plate that two pairs of rods hold at a yaw, or folded.

A rod keeps a plate's point at a distance from a point of the base. Two rods of one length that are parallel at some yaw
of the plate, with X from the middle of their ends on the base to that of their ends on the plate and 2 e from one end
to the other, impose at a yaw that is farther by d

    X . (R_d e - e) = 0,    |X|^2 = l^2 - 4 sin^2(d/2) |e|^2,

so that either d = 0, and the pair is one rod, or X lies in the plane of the axis and of R_(d/2) e. Two such pairs, not
parallel to each other, hold a plate in these ways:

* d = 0: the plate does not turn.
* d != 0: the plate is folded. With c = cos(d/2), s = sin(d/2) both X across the axis are linear in c and s, and their
  lengths a quadratic or quartic equation in s / c: at most eight places.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.polynomial import polynomial

from pkm_kinematics.assembly.result import Array

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
    """Squared height of an X as a polynomial (3,) in t, times 1 + t^2."""
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
    """The one yaw [rad] of a plate, about `axis` (3,), at which two pairs of its rods are parallel, and the pairs.

    Not all four to each other; None where there is no such yaw, or several. `size` of the robot in m.
    """
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
