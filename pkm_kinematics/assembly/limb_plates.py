# SPDX-License-Identifier: Apache-2.0
"""Robots of three translations and a turn whose limbs hold plates that are hinged to the platform: H4, Par4 and kin.

All plates turn about the platform's axis at most, as their hinges show (`locked_graph.py` says how directions are
known). Each is held by two pairs of rods, at one yaw or folded (`geometry/schoenflies.py`). If no plate is folded, the
rods are distances for `geometry/schoenflies.py`. Each place of a folded plate leaves the platform to turn about its
hinge only, which the other rods hardly ever allow; all are tried. So no mode is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from scipy.spatial.transform import Rotation

from pkm_description.mechanism import Array
from pkm_kinematics.assembly.geometry.schoenflies import (
    AGREE,
    Plate,
    Rod,
    distinct_rods,
    parallel_pairs,
    positions_and_angle,
    turned,
)
from pkm_kinematics.assembly.locked_graph import CLOSE, LockedGraph, chains, locked_graph
from pkm_kinematics.assembly.method import HELD, UNKNOWN, MethodByRows
from pkm_kinematics.assembly.result import AssemblyPoses, poses_from
from pkm_kinematics.kernels.records import BASE, PLATFORM


@dataclass(frozen=True, eq=False)
class PlatesAndRods:
    """Rods that hold the platform with locked actuators while no plate is folded, and what folded plates do.

    `held` has for each plate its rods while it is not folded, and `rods` reach the platform without a plate.
    """

    plates: list[Plate]
    held: list[list[Rod]]
    rods: list[Rod]

    @property
    def unfolded(self) -> list[Rod]:
        """All rods of the platform while no plate is folded."""
        return [rod for rods in self.held for rod in rods] + self.rods


@dataclass(frozen=True, eq=False)
class _Bar:
    """A chain with one bar of unknown direction: constant + vectors that turn about the axis + the bar."""

    vectors: dict[int, Array]  # by group of parts, at yaw 0
    group: int  # of the bar
    constant: Array
    length: float


class Plates(MethodByRows):
    """Three translations and a turn, of a platform with rods to plates that rods hold."""

    name = "plates"

    @cached_property
    def recognised(self) -> bool:
        """Whether rods hold the platform at home, and every plate between has two pairs of its own."""
        e = self.engine
        turning = np.linalg.matrix_rank(e.task.subspace[3:]) if e.task.subspace[3:].any() else 0
        if not (e.constant_space and e.mobility == 4 and turning == 1):
            return False
        q = e.home_joints[e.actuated_column]
        found = self._known(q)
        if found is None or not found.plates or any(plate.folded() is None for plate in found.plates):
            return False
        errors = [np.linalg.norm(e.home[:3] + rod.arm - rod.centre) - rod.length for rod in found.unfolded]
        rows = self.rows(q, e.home[None])[0]
        values = np.linalg.svd(rows / np.linalg.norm(rows, axis=1)[:, None], compute_uv=False)
        return bool(np.abs(errors).max() < CLOSE * e.size and len(values) == 4 and values[-1] > HELD * values[0])

    def solve(self, q: Array) -> AssemblyPoses:
        """See `AssemblyMethod.solve`; poses with folded plates are last, and `n_complex` counts the others."""
        read = self.plates_and_rods(q)
        arms = np.array([rod.arm for rod in read.unfolded])
        found = positions_and_angle(
            [rod.centre for rod in read.unfolded],
            np.zeros_like(arms),
            arms,
            np.cross(self.axis, arms),
            [rod.length for rod in read.unfolded],
        )
        folded = self._folded(read)
        solutions = np.vstack([found.solutions, *(folded or [])])
        turns = Rotation.from_rotvec(np.outer(solutions[:, 3], self.axis)) * Rotation.from_quat(self.engine.home[3:])
        answer = poses_from(found, np.column_stack([solutions[:, :3], turns.as_quat().reshape(-1, 4)]))
        multiplicity = np.append(found.multiplicity, np.ones(len(folded or []), dtype=np.int64))
        if folded is not None:
            return AssemblyPoses(answer.poses, multiplicity, found.n_complex, answer.certified, answer.caution)
        caution = answer.caution or "a plate can move while it is folded: modes may be missing"
        return AssemblyPoses(answer.poses, multiplicity, found.n_complex, False, caution)

    def rows(self, q: Array, poses: Array) -> Array:
        """See `MethodByRows.rows`: of the rods' lengths by translation and yaw, with plates that do not turn."""
        arms, legs, _ = self._legs(q, poses)
        return np.concatenate([legs, np.sum(legs * np.cross(self.axis, arms), axis=2)[:, :, None]], axis=2)

    def prefixes(self, q: Array, poses: Array, joints: Array) -> Sequence[str]:
        """See `AssemblyMethod.prefixes`: a folded plate leaves more rods than degrees of freedom, and no sign."""
        signs = super().prefixes(q, poses, joints)
        return [sign if straight else UNKNOWN for sign, straight in zip(signs, self.unfolded(q, poses), strict=True)]

    def unfolded(self, q: Array, poses: Array) -> Array:
        """Whether (k,) rods reach poses (k, 7) with plates that do not turn, the actuators at q (n_actuated,)."""
        _, legs, lengths = self._legs(q, poses)
        return np.asarray(np.abs(np.linalg.norm(legs, axis=2) - lengths).max(axis=1) < AGREE * self.engine.size)

    def _legs(self, q: Array, poses: Array) -> tuple[Array, Array, Array]:
        """Arms and legs (k, m, 3) at poses (k, 7) with plates that do not turn, and the legs' lengths (m,)."""
        rods = self.plates_and_rods(q).unfolded
        turns = Rotation.from_quat(poses[:, 3:]) * Rotation.from_quat(self.engine.home[3:]).inv()
        arms = np.swapaxes(turns.as_matrix() @ np.array([rod.arm for rod in rods]).T, 1, 2)
        legs = poses[:, None, :3] + arms - np.array([rod.centre for rod in rods])
        return arms, legs, np.array([rod.length for rod in rods])

    @cached_property
    def axis(self) -> Array:
        """Unit vector (3,), base frame, about which platform and plates turn."""
        axis = self.engine.task.subspace[3:, -1]
        return np.asarray(axis / np.linalg.norm(axis))

    # -- folded plates -----------------------------------------------------------------------------------------------

    def _folded(self, read: PlatesAndRods) -> list[Array] | None:
        """Positions and yaws (4,) of the platform with one plate or more folded; None where places are not isolated."""
        places = [plate.folded() for plate in read.plates]
        if any(place is None for place in places):
            return None
        found = []
        for chosen in product(*([None, *(place or [])] for place in places)):
            first = next((k for k, place in enumerate(chosen) if place is not None), None)
            if first is None:
                continue
            hinge, arm = chosen[first], read.plates[first].arm
            assert hinge is not None
            yaws = self._yaws(hinge, self._others(read, chosen, first))
            if yaws is None:
                return None
            found += [np.append(hinge + turned(self.axis, yaw, arm), yaw) for yaw in yaws]
        return found

    def _others(self, read: PlatesAndRods, chosen: Sequence[Array | None], first: int) -> list[Rod]:
        """Rods of a platform on the hinge of the folded plate `first`; others are folded if `chosen` places them."""
        arm, rods = read.plates[first].arm, list[Rod]()
        for k, place in enumerate(chosen):
            if place is None:
                rods += [Rod(rod.centre, arm + rod.arm, rod.length) for rod in read.held[k]]
            elif k != first:
                rods.append(Rod(place, arm - read.plates[k].arm, 0.0))
        return rods + [Rod(rod.centre, arm + rod.arm, rod.length) for rod in read.rods]

    def _yaws(self, hinge: Array, rods: list[Rod]) -> list[float] | None:
        """Yaws at which a platform that turns about a hinge (3,) agrees with all rods; None where any would."""
        size = self.engine.size

        def error(rod: Rod, yaw: float) -> float:
            return abs(float(np.linalg.norm(hinge + turned(self.axis, yaw, rod.arm) - rod.centre)) - rod.length)

        for rod in rods:
            away = hinge - rod.centre
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
            return [float(yaw) for yaw in yaws if max(error(other, yaw) for other in rods) < AGREE * size]
        return None

    # -- reading -----------------------------------------------------------------------------------------------------

    def plates_and_rods(self, q: Array) -> PlatesAndRods:
        """What holds the platform with the actuators at q (n_actuated,), of a robot that is recognised."""
        found = self._known(q)
        assert found is not None
        return found

    def _known(self, q: Array) -> PlatesAndRods | None:
        graph = locked_graph(self.engine, q, self.axis)
        frames = self._upright(graph)
        platform = graph.group[PLATFORM]
        if platform not in frames or graph.group[BASE] == platform:
            return None
        home = Rotation.from_quat(self.engine.home[3:])
        frames[platform] = home * Rotation.from_matrix(graph.rotation[PLATFORM]).inv()
        rods: list[Rod] = []
        through: dict[int, list[tuple[Array, Array, _Bar]]] = {}  # by group of a plate: vector of plate, of platform
        for bar in self._bars(graph, graph.platform, frames):
            arm = bar.vectors.pop(platform, np.zeros(3))
            if not bar.vectors:
                rods.append(Rod(bar.constant, -arm, bar.length))
            elif len(bar.vectors) == 1:
                ((plate, vector),) = bar.vectors.items()
                through.setdefault(plate, []).append((vector, arm, bar))
        size = self.engine.size
        plates, held = [], []
        for group, to_platform in through.items():
            to_plate = {
                bar.group: Rod(bar.constant, -bar.vectors.get(group, np.zeros(3)), bar.length)
                for bar in self._bars(graph, graph.group.index(group), frames)
                if set(bar.vectors) <= {group}
            }
            pairs = parallel_pairs(self.axis, list(to_plate.values()), size)
            shared = [(vector, arm, bar) for vector, arm, bar in to_platform if bar.group in to_plate]
            if pairs is None or not shared:
                continue
            yaw, two = pairs
            vector, arm, bar = shared[0]
            rod = to_plate[bar.group]
            plates.append(Plate(self.axis, yaw, two, vector + rod.arm, bar.constant - rod.centre, arm))
            standing = [Rod(b.constant + turned(self.axis, yaw, v), -a, b.length) for v, a, b in shared]
            held.append(distinct_rods(standing, size))
        return PlatesAndRods(plates, held, distinct_rods(rods, size))

    def _upright(self, graph: LockedGraph) -> dict[int, Rotation]:
        """Groups of parts that turn about the axis, and their rotations at yaw 0."""
        frames = {}
        for k, orientation in enumerate(graph.orientations):
            if orientation.rotation is None and orientation.known:
                direction, in_base = orientation.known[0]
                if np.linalg.norm(np.cross(in_base, self.axis)) < CLOSE:
                    frames[k] = Rotation.align_vectors(self.axis, direction * float(in_base @ self.axis))[0]
        return frames

    def _bars(self, graph: LockedGraph, target: int, frames: dict[int, Rotation]) -> list[_Bar]:
        """Chains to a part with one bar of unknown direction."""
        found = []
        for chain in chains(graph, target):
            if chain.free or any(slides for _, slides in chain.turning.values()):
                continue
            vectors = {k: v for k, (v, _) in chain.turning.items() if np.linalg.norm(v) > CLOSE * self.engine.size}
            bars = [k for k in vectors if not graph.orientations[k].known]
            if len(bars) != 1:
                continue
            bar = vectors.pop(bars[0])
            if all(k in frames for k in vectors):
                upright = {k: frames[k].apply(v) for k, v in vectors.items()}
                found.append(_Bar(upright, bars[0], chain.constant, float(np.linalg.norm(bar))))
        return found
