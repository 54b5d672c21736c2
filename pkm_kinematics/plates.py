# SPDX-License-Identifier: Apache-2.0
"""Robots of three translations and a turn whose limbs hold plates that are hinged to the platform: H4, Par4 and kin.

All plates turn about the platform's axis at most, as their hinges show (`translation_surfaces.py` says how directions
are known). With the actuators locked, a rod keeps a plate's point at a distance from a point of the base. Two rods of
one length that are parallel at some yaw of the plate, with X from the middle of their ends on the base to that of their
ends on the plate and 2 e from one end to the other, demand at a yaw that is farther by d

    X . (R_d e - e) = 0,    |X|^2 = l^2 - 4 sin^2(d/2) |e|^2,

so that either d = 0, and the pair is one rod, or X lies in the plane of the axis and of R_(d/2) e. Two such pairs, not
parallel to each other, hold a plate in these ways:

* d = 0, the plate does not turn. If no plate does, the rods are distances for `assembly/schoenflies.py`.
* d != 0, the plate is folded. With c = cos(d/2), s = sin(d/2) both X across the axis are linear in c and s, and their
  lengths a quadratic or quartic equation in s / c: at most eight places (`_Plate.folded`). Each leaves the platform to
  turn about its hinge only, which the other rods hardly ever allow; all are tried.

So no mode is missing, whichever way the plates stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np
from numpy.polynomial import polynomial
from scipy.spatial.transform import Rotation

from pkm_description.mechanism import Array
from pkm_kinematics.assembly.modes import AssemblyModes
from pkm_kinematics.assembly.schoenflies import positions_and_angle
from pkm_kinematics.engine import Engine
from pkm_kinematics.kernels.records import BASE, PLATFORM
from pkm_kinematics.translation_surfaces import CLOSE, HELD, chains, parts

AGREE = 1e-7  # of the robot's size: how well the rods of other plates must fit where one is folded
TURNED = 1e-6  # tan(d/2) from which on a plate is turned
REAL = 1e-6  # imaginary part below which a root counts as real: what it leads to is checked


@dataclass(frozen=True, eq=False)
class _Rod:
    """|P + R_psi arm - centre| = length for the origin P of a body at yaw psi; arms across the axis, all in m."""

    centre: Array
    arm: Array
    length: float


@dataclass(frozen=True, eq=False)
class _Plate:
    """Two pairs of rods that hold a plate at a yaw, and its hinge: p = P + R_psi hinge + offset + R_phi arm."""

    axis: Array
    yaw: float
    pairs: list[tuple[_Rod, _Rod]]
    hinge: Array
    offset: Array
    arm: Array

    def folded(self) -> list[Array] | None:
        """Where the plate's hinge, with the offset, can be while the plate is turned: points (3,).

        None where these are not isolated.
        """
        across = np.linalg.svd(self.axis[None])[2][1:]
        across = np.array([across[0], np.cross(self.axis, across[0])])
        J = np.array([[0.0, -1.0], [1.0, 0.0]])
        middles = [0.5 * (a.centre + b.centre) for a, b in self.pairs]
        arms = [0.5 * (a.arm + b.arm) for a, b in self.pairs]
        halves = [across @ (0.5 * (a.centre - b.centre)) for a, b in self.pairs]
        lengths = [a.length for a, _ in self.pairs]
        D = across @ (middles[0] - middles[1])
        M = across @ _turned(self.axis, self.yaw, arms[0] - arms[1])
        e = [half / np.linalg.norm(half) for half in halves]
        E = np.column_stack([e[0], -e[1]])
        reach = np.linalg.solve(E, np.column_stack([M - D, J @ (M + D)]))  # of both X, by c and by s
        one = np.array([1.0, 0.0, 1.0])  # 1 + t^2, t = s / c
        squares = [
            length**2 * one - [0.0, 0.0, 4.0 * half @ half] - polynomial.polymul(row, row)
            for length, half, row in zip(lengths, halves, reach, strict=True)
        ]  # of the heights of both X, times 1 + t^2
        step = float(self.axis @ (middles[1] - middles[0]))
        size = max(lengths)
        difference = squares[0] - squares[1] + step**2 * one
        level = abs(step) < CLOSE * size
        if level:
            equation = difference
        else:
            equation = polynomial.polysub(
                polynomial.polymul(difference, difference), 4.0 * step**2 * polynomial.polymul(one, squares[0])
            )
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
            along = _turned(self.axis, d / 2.0, e[0] @ across) * float(reach[0] @ [c, s])
            only = float(difference @ [c * c, s * c, s * s]) / (2.0 * step) if not level else 0.0
            for z in (up, -up) if level else (only,):
                P = along + z * self.axis + middles[0] - _turned(self.axis, self.yaw + d, arms[0])
                places.append(P + _turned(self.axis, self.yaw + d, self.hinge) + self.offset)
        return places


def _projective_roots(equation: Array) -> list[float]:
    """Real roots of a polynomial, infinity for each that its degree falls short of."""
    scale = np.abs(equation).max()
    degree = int(np.flatnonzero(np.abs(equation) > 1e-12 * scale)[-1])
    roots = polynomial.polyroots(equation[: degree + 1])
    real = [float(r.real) for r in roots if abs(r.imag) < REAL * (1.0 + abs(r))]
    return real + [np.inf] * (degree < len(equation) - 1)


def _turned(axis: Array, angle: float, vector: Array) -> Array:
    """A vector turned about a unit axis."""
    along = axis * float(axis @ vector)
    return np.asarray(along + np.cos(angle) * (vector - along) + np.sin(angle) * np.cross(axis, vector))


class Plates:
    """The rods and plates of one robot, ready for any positions of the actuators."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @cached_property
    def axis(self) -> Array:
        """Unit vector (3,), base frame, about which platform and plates turn."""
        axis = self._engine.task.subspace[3:, -1]
        return np.asarray(axis / np.linalg.norm(axis))

    @cached_property
    def recognised(self) -> bool:
        """Whether rods hold the platform at home, and every plate between has two pairs of its own."""
        e = self._engine
        turning = np.linalg.matrix_rank(e.task.subspace[3:]) if e.task.subspace[3:].any() else 0
        if not (e.constant_space and e.mobility == 4 and turning == 1):
            return False
        q = e.home_joints[e.actuated_column]
        at = self._at(q)
        if at is None or not at[1] or any(plate.folded() is None for plate in at[1]):
            return False
        errors = [np.linalg.norm(e.home[:3] + rod.arm - rod.centre) - rod.length for rods in at[0] for rod in rods]
        rows = self.rows(q, e.home)
        values = np.linalg.svd(rows / np.linalg.norm(rows, axis=1)[:, None], compute_uv=False)
        return bool(np.abs(errors).max() < CLOSE * e.size and len(values) == 4 and values[-1] > HELD * values[0])

    def poses(self, q: Array) -> tuple[Array, AssemblyModes, bool]:
        """Poses (k, 7) with the actuators at q (n_actuated,), those with folded plates last.

        Also what `positions_and_angle` says of the others, and whether folded plates have isolated places.
        """
        e, at = self._engine, self._at(q)
        assert at is not None
        rods = [rod for group in at[0] for rod in group]
        arms = np.array([rod.arm for rod in rods])
        found = positions_and_angle(
            [rod.centre for rod in rods],
            np.zeros_like(arms),
            arms,
            np.cross(self.axis, arms),
            [rod.length for rod in rods],
        )
        folded = self._folded(*at)
        solutions = np.vstack([found.solutions, *(folded or [])])
        turns = Rotation.from_rotvec(np.outer(solutions[:, 3], self.axis)) * Rotation.from_quat(e.home[3:])
        return np.column_stack([solutions[:, :3], turns.as_quat().reshape(-1, 4)]), found, folded is not None

    def rows(self, q: Array, pose: Array) -> Array:
        """Gradients (k, 4) of the rods' lengths by translation and yaw at a pose (7,) with plates that do not turn."""
        at = self._at(q)
        assert at is not None
        turn = Rotation.from_quat(pose[3:]) * Rotation.from_quat(self._engine.home[3:]).inv()
        rows = []
        for rod in (rod for group in at[0] for rod in group):
            arm = turn.apply(rod.arm)
            leg = pose[:3] + arm - rod.centre
            rows.append([*leg, leg @ np.cross(self.axis, arm)])
        return np.array(rows)

    def unfolded(self, q: Array, pose: Array) -> bool:
        """Whether the rods reach a pose (7,) with plates that do not turn."""
        at, e = self._at(q), self._engine
        assert at is not None
        turn = Rotation.from_quat(pose[3:]) * Rotation.from_quat(e.home[3:]).inv()
        legs = [(pose[:3] + turn.apply(rod.arm) - rod.centre, rod.length) for group in at[0] for rod in group]
        return max(abs(float(np.linalg.norm(leg)) - length) for leg, length in legs) < AGREE * e.size

    def _folded(self, groups: list[list[_Rod]], plates: list[_Plate]) -> list[Array] | None:
        """Positions and yaws (4,) of the platform with one plate folded or more; None where places are not isolated."""
        places = [plate.folded() for plate in plates]
        if any(place is None for place in places):
            return None
        found = []
        choices = [[None, *(place or [])] for place in places]
        for chosen in product(*choices):
            first = next((k for k, place in enumerate(chosen) if place is not None), None)
            if first is None:
                continue
            G, arm = chosen[first], plates[first].arm
            assert G is not None
            rest: list[_Rod] = []  # |G + R_phi y - centre| = length
            for k, place in enumerate(chosen):
                if k == first:
                    continue
                if place is None:
                    rest += [_Rod(rod.centre, arm + rod.arm, rod.length) for rod in groups[k]]
                else:
                    rest.append(_Rod(place, arm - plates[k].arm, 0.0))
            rest += [_Rod(rod.centre, arm + rod.arm, rod.length) for rod in groups[len(plates)]]
            yaws = self._yaws(G, rest)
            if yaws is None:
                return None
            found += [np.append(G + _turned(self.axis, yaw, arm), yaw) for yaw in yaws]
        return found

    def _yaws(self, G: Array, rest: list[_Rod]) -> list[float] | None:
        """Yaws at which a platform that turns about G agrees with all rods; None where any would."""
        size = self._engine.size

        def error(rod: _Rod, yaw: float) -> float:
            return abs(float(np.linalg.norm(G + _turned(self.axis, yaw, rod.arm) - rod.centre)) - rod.length)

        for rod in rest:
            away = G - rod.centre
            cosine, sine = 2.0 * float(away @ rod.arm), 2.0 * float(away @ np.cross(self.axis, rod.arm))
            value = rod.length**2 - float(rod.arm @ rod.arm) - float(away @ away)
            amplitude = float(np.hypot(cosine, sine))
            if amplitude < CLOSE * size**2:
                if abs(value) > AGREE * size**2:
                    return []
                continue
            if abs(value) > amplitude * (1.0 + AGREE):
                return []
            middle, off = np.arctan2(sine, cosine), np.arccos(np.clip(value / amplitude, -1.0, 1.0))
            yaws = [middle + off, middle - off] if off > 0.0 else [middle]
            return [float(yaw) for yaw in yaws if max(error(other, yaw) for other in rest) < AGREE * size]
        return None

    def _at(self, q: Array) -> tuple[list[list[_Rod]], list[_Plate]] | None:
        """Rods of the platform, plate by plate and then those without a plate, and the plates; None if not known."""
        e, axis = self._engine, self.axis
        graph = parts(e, q, axis)
        _, _, turning, _, groups = graph
        platform = turning[PLATFORM]
        home = Rotation.from_quat(e.home[3:])
        frames = {}  # of groups that turn about the axis: at yaw 0
        for k, group in enumerate(groups):
            if group.rotation is None and group.known:
                own, world = group.known[0]
                if np.linalg.norm(np.cross(world, axis)) < CLOSE:
                    frames[k] = Rotation.align_vectors(axis, own * float(world @ axis))[0]
        if platform not in frames or turning[BASE] == platform:
            return None
        frames[platform] = home * Rotation.from_matrix(graph[3][PLATFORM]).inv()

        def rods_to(target: int) -> list[tuple[dict[int, Array], int, Array, float]]:
            """Of chains with one bar of unknown direction: vectors that turn, the bar, constant and length."""
            some = []
            for chain in chains(graph[0], target, *graph[2:]):
                vectors = {
                    k: v for k, (v, slides) in chain.turning.items() if np.linalg.norm(v) > CLOSE * e.size or slides
                }
                bars = [k for k in vectors if not groups[k].known]
                if chain.free or len(bars) != 1 or any(slides for _, slides in chain.turning.values()):
                    continue
                bar = vectors.pop(bars[0])
                if all(k in frames for k in vectors):
                    turned = {k: frames[k].apply(v) for k, v in vectors.items()}
                    some.append((turned, bars[0], chain.constant, float(np.linalg.norm(bar))))
            return some

        without: list[_Rod] = []
        through: dict[int, list[tuple[Array, Array, int, Array, float]]] = {}
        for vectors, bar, constant, length in rods_to(PLATFORM):
            arm = vectors.pop(platform, np.zeros(3))
            if not vectors:
                without.append(_Rod(constant, -arm, length))
            elif len(vectors) == 1:
                ((plate, vector),) = vectors.items()
                through.setdefault(plate, []).append((vector, arm, bar, constant, length))
        held, plates = [], []
        for k, platform_rods in through.items():
            direct = {}
            for vectors, bar, constant, length in rods_to(turning.index(k)):
                if set(vectors) <= {k}:
                    direct[bar] = _Rod(constant, -vectors.get(k, np.zeros(3)), length)
            pairs = _parallel_pairs(axis, list(direct.values()), e.size)
            if pairs is None:
                continue
            yaw, two = pairs
            mine = [row for row in platform_rods if row[2] in direct]
            if not mine:
                continue
            vector, arm, bar, constant, _ = mine[0]
            rod = direct[bar]
            plates.append(_Plate(axis, yaw, two, vector + rod.arm, constant - rod.centre, arm))
            standing = [_Rod(c + _turned(axis, yaw, v), -a, length) for v, a, _, c, length in mine]
            held.append(_distinct(standing, e.size))
        return [*held, _distinct(without, e.size)], plates


def _parallel_pairs(axis: Array, rods: list[_Rod], size: float) -> tuple[float, list[tuple[_Rod, _Rod]]] | None:
    """The one yaw at which two pairs of rods are parallel, not all of them to each other, and the pairs."""
    sides: list[tuple[float, list[tuple[_Rod, _Rod]]]] = []
    small = CLOSE * size
    for a, b in combinations(rods, 2):
        centres, arms = a.centre - b.centre, a.arm - b.arm
        apart = (
            abs(a.length - b.length) + abs(float(axis @ centres)) + abs(np.linalg.norm(centres) - np.linalg.norm(arms))
        )
        if apart > small or np.linalg.norm(arms) < small:
            continue
        yaw = float(np.arctan2(np.cross(arms, centres) @ axis, arms @ centres))
        for other, pairs in sides:
            if abs(np.angle(np.exp(1j * (yaw - other)))) < CLOSE:
                if np.linalg.norm(np.cross(pairs[0][0].centre - pairs[0][1].centre, centres)) > HELD * size**2:
                    pairs.append((a, b))
                break
        else:
            sides.append((yaw, [(a, b)]))
    known = [(yaw, pairs[:2]) for yaw, pairs in sides if len(pairs) > 1]
    return known[0] if len(known) == 1 else None


def _distinct(rods: list[_Rod], size: float) -> list[_Rod]:
    """Rods without those that repeat others."""
    kept: list[_Rod] = []
    for rod in rods:
        mine = np.concatenate([rod.centre, rod.arm, [rod.length]])
        if all(np.abs(mine - [*r.centre, *r.arm, r.length]).max() > CLOSE * size for r in kept):
            kept.append(rod)
    return kept
