# SPDX-License-Identifier: Apache-2.0
"""A robot's graph with its actuators locked, and which of its directions are known.

Base and platform never turn, or the platform about one axis, and a joint that turns about an axis shares that direction
between its two bodies. So known directions spread through the graph: a part with two of them does not turn, a part with
one, `u`, turns about u at most.

Along a chain of joints from the base, a part's position is a sum of vectors, each fixed in one part. Vectors in a part
that does not turn, or along its known direction, are constant; the others turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from pkm_description.mechanism import Array
from pkm_kinematics.kernels import records
from pkm_kinematics.kernels.records import BASE, PLATFORM
from pkm_kinematics.model.tables import Tables
from pkm_kinematics.solve.engine import Engine

CLOSE = 1e-9  # sine of an angle, or length over the robot's size, that counts as zero


@dataclass(frozen=True, eq=False)
class PassiveJoint:
    """A passive joint between two rigid parts: what they share."""

    ends: tuple[int, int]  # parts
    points: tuple[Array, Array]  # that coincide, up to slides, in each part
    axes: tuple[Array, Array] | None = None  # directions that coincide
    turn: Array | None = None  # rotation of the second part's frame in the first's, where it is constant
    slides: tuple[Array, ...] = ()  # directions, in the first part


@dataclass
class Orientation:
    """What is known of parts that keep their orientation to each other, in a frame fixed in all of them."""

    known: list[tuple[Array, Array]] = field(default_factory=list)  # directions in that frame, and in the base frame
    rotation: Array | None = None  # of that frame, where two directions are known

    def learn(self, direction: Array, in_base: Array) -> bool:
        """Record where a direction points; True where it is new."""
        if self.rotation is not None:
            return False
        if any(np.linalg.norm(np.cross(direction, other)) < CLOSE for other, _ in self.known):
            return False
        self.known.append((direction, in_base))
        if len(self.known) == 2:
            frames = []
            for k in (0, 1):
                a, b = self.known[0][k], self.known[1][k]
                normal = np.cross(a, b) / np.linalg.norm(np.cross(a, b))
                frames.append(np.column_stack([a, normal, np.cross(a, normal)]))
            self.rotation = frames[1] @ frames[0].T
        return True

    def in_base(self, direction: Array) -> Array | None:
        """A direction in the base frame, None where it is not known."""
        if self.rotation is not None:
            return np.asarray(self.rotation @ direction)
        for other, in_base in self.known:
            if np.linalg.norm(np.cross(other, direction)) < CLOSE:
                return in_base * float(other @ direction)
        return None


@dataclass(frozen=True, eq=False)
class LockedGraph:
    """Rigid parts, each with the number of the first body in it, and the passive joints between them.

    A universal joint is two `joints`, with a part of its own between them. `group` says for each part which of the
    `orientations` is its own; `rotation` (3, 3) is that of each part in the frame of its group.
    """

    joints: list[PassiveJoint]
    group: list[int]
    rotation: list[Array]
    orientations: list[Orientation]
    platform: int


def locked_graph(engine: Engine, q: Array, axis: Array | None = None) -> LockedGraph:
    """The graph with actuators locked at q (n_actuated,); the platform turns about `axis` (3,), base frame, or not."""
    parts = _Parts(engine.tables, q)
    joints = [*parts.of_tree(), *parts.of_closures()]
    group, rotation = _grouped(joints, parts.count)
    orientations = [Orientation() for _ in range(parts.count)]
    orientations[group[BASE]].rotation = rotation[BASE].T
    at_home = Rotation.from_quat(engine.home[3:]).as_matrix()
    platform = orientations[group[PLATFORM]]
    if axis is None:
        platform.rotation = at_home @ rotation[PLATFORM].T
    else:
        platform.learn(rotation[PLATFORM] @ at_home.T @ axis, axis)
    graph = LockedGraph(joints, group, rotation, orientations, parts.part[PLATFORM])
    _spread(graph)
    return graph


class _Parts:
    """Bodies that locked actuators join to rigid parts."""

    def __init__(self, tables: Tables, q: Array) -> None:
        self._bodies, self._closures = tables.bodies, tables.closures
        self.count = len(self._bodies)
        self.part = list(range(self.count))
        self._R = [np.eye(3) for _ in self._bodies]  # of each body in its part's first
        self._p = [np.zeros(3) for _ in self._bodies]
        for i in range(2, self.count):
            row = self._bodies[i]
            if row["actuator"] < 0:
                continue
            turn, at = self._placed(i)
            value = float(q[row["actuator"]])
            self.part[i] = self.part[row["parent"]]
            self._R[i] = turn if row["prismatic"] else turn @ Rotation.from_rotvec([0.0, 0.0, value]).as_matrix()
            self._p[i] = at + turn[:, 2] * value if row["prismatic"] else at

    def _placed(self, i: int) -> tuple[Array, Array]:
        row = self._bodies[i]
        R, p = self._R[row["parent"]], self._p[row["parent"]]
        return R @ row["rotation"], R @ row["translation"] + p

    def of_tree(self) -> Iterator[PassiveJoint]:
        for i in range(2, len(self._bodies)):
            row = self._bodies[i]
            if row["actuator"] >= 0:
                continue
            turn, at = self._placed(i)
            ends, points = (self.part[row["parent"]], i), (at, np.zeros(3))
            if row["prismatic"]:
                yield PassiveJoint(ends, points, None, turn, (turn[:, 2],))
            else:
                yield PassiveJoint(ends, points, (turn[:, 2], np.eye(3)[2]))

    def of_closures(self) -> Iterator[PassiveJoint]:
        for closure in self._closures:
            yield from self._of_closure(closure)

    def _of_closure(self, closure: Any) -> Iterator[PassiveJoint]:
        i, j = int(closure["predecessor"]), int(closure["successor"])
        ends = self.part[i], self.part[j]
        frames = self._R[i] @ closure["predecessor_rotation"], self._R[j] @ closure["successor_rotation"]
        points = (
            self._R[i] @ closure["predecessor_point"] + self._p[i],
            self._R[j] @ closure["successor_point"] + self._p[j],
        )
        axes, slides = (frames[0][:, 2], frames[1][:, 2]), tuple(frames[0].T)
        kind = int(closure["kind"])
        if kind == records.SPHERICAL:
            yield PassiveJoint(ends, points)
        elif kind == records.UNIVERSAL:  # by its cross, with the two axes as x and y
            cross = self.count
            self.count += 1
            yield PassiveJoint((ends[0], cross), (points[0], np.zeros(3)), (axes[0], np.eye(3)[0]))
            yield PassiveJoint((cross, ends[1]), (np.zeros(3), points[1]), (np.eye(3)[1], axes[1]))
        elif kind in (records.FIXED, records.PRISMATIC):
            sliding = slides[2:] if kind == records.PRISMATIC else ()
            yield PassiveJoint(ends, points, None, frames[0] @ frames[1].T, sliding)
        else:
            sliding = {records.CYLINDRICAL: slides[2:], records.PLANAR: slides[:2]}.get(kind, ())
            yield PassiveJoint(ends, points, axes, None, sliding)


def _grouped(joints: list[PassiveJoint], count: int) -> tuple[list[int], list[Array]]:
    """Group of each part, and its rotation in the group's frame; joints fix the orientations inside a group."""
    group, rotation = list(range(count)), [np.eye(3) for _ in range(count)]
    for joint in joints:
        a, b = joint.ends
        if joint.turn is None or group[a] == group[b]:
            continue
        change = rotation[a] @ joint.turn @ rotation[b].T
        joined = [k for k in range(count) if group[k] == group[b]]
        for k in joined:
            rotation[k] = change @ rotation[k]
            group[k] = group[a]
    return group, rotation


def _spread(graph: LockedGraph) -> None:
    """Let what is known of directions spread over the axes that parts share."""
    news = True
    while news:
        news = False
        for joint in graph.joints:
            if joint.axes is None:
                continue
            axes = [graph.rotation[end] @ axis for end, axis in zip(joint.ends, joint.axes, strict=True)]
            for one, other in ((0, 1), (1, 0)):
                in_base = graph.orientations[graph.group[joint.ends[one]]].in_base(axes[one])
                target = graph.orientations[graph.group[joint.ends[other]]]
                news |= in_base is not None and target.learn(axes[other], in_base)


MOST_CHAINS = 64  # looked at per robot

Path = list[tuple[PassiveJoint, int]]  # joints, each with the end at which it is entered


@dataclass
class Chain:
    """A chain from the base: position = constant + sum of R vector over what turns + slides."""

    constant: Array  # (3,) base frame
    free: list[Array]  # slides in constant directions, base frame
    turning: dict[int, tuple[Array, list[Array]]]  # vector and slides in the frame of each group of parts that turns
    orientations: list[Orientation]  # of the groups
    shared: dict[tuple[int, int], tuple[Array, Array]]  # axes that two groups share, in the frame of each


def chains(graph: LockedGraph, target: int) -> Iterator[Chain]:
    """At most MOST_CHAINS chains from the base to the origin of the part `target`."""
    shared: dict[tuple[int, int], tuple[Array, Array]] = {}
    beside: dict[int, Path] = {}
    for joint in graph.joints:
        for end in (0, 1):
            beside.setdefault(joint.ends[end], []).append((joint, end))
        if joint.axes is not None:
            a, b = (graph.rotation[end] @ axis for end, axis in zip(joint.ends, joint.axes, strict=True))
            first, second = graph.group[joint.ends[0]], graph.group[joint.ends[1]]
            shared[first, second], shared[second, first] = (a, b), (b, a)
    for path in islice(_paths(beside, BASE, target, [], {BASE}), MOST_CHAINS):
        yield _chain(graph, path, target, shared)


def _paths(beside: dict[int, Path], at: int, target: int, path: Path, seen: set[int]) -> Iterator[Path]:
    if at == target:
        yield path
        return
    for joint, end in beside.get(at, []):
        onward = joint.ends[1 - end]
        if onward not in seen:
            yield from _paths(beside, onward, target, [*path, (joint, end)], seen | {onward})


def _chain(graph: LockedGraph, path: Path, target: int, shared: dict[tuple[int, int], tuple[Array, Array]]) -> Chain:
    vectors: dict[int, tuple[Array, list[Array]]] = {}
    for part, entry, leave, slides in _legs(path, target):
        vector, before = vectors.get(graph.group[part], (np.zeros(3), []))
        R = graph.rotation[part]
        vectors[graph.group[part]] = vector + R @ (leave - entry), before + [R @ slide for slide in slides]
    chain = Chain(np.zeros(3), [], {}, graph.orientations, shared)
    for group, (vector, slides) in vectors.items():
        orientation = graph.orientations[group]
        if orientation.rotation is not None:
            chain.constant = chain.constant + orientation.rotation @ vector
        elif orientation.known:
            direction, in_base = orientation.known[0]
            chain.constant = chain.constant + in_base * float(direction @ vector)
            vector = vector - direction * float(direction @ vector)
        known = [orientation.in_base(slide) for slide in slides]
        chain.free += [in_base for in_base in known if in_base is not None]
        if orientation.rotation is None:
            turning = [slide for slide, in_base in zip(slides, known, strict=True) if in_base is None]
            chain.turning[group] = vector, turning
    return chain


def _legs(path: Path, target: int) -> Iterator[tuple[int, Array, Array, list[Array]]]:
    """For each part along a path: where it is entered and left, and the slides of the joints that are fixed in it."""
    entry, part = np.zeros(3), BASE
    slides: list[Array] = []
    for joint, end in path:
        forward = list(joint.slides) if end == 0 else []
        yield part, entry, joint.points[end], slides + forward
        slides = list(joint.slides) if end == 1 else []
        entry, part = joint.points[1 - end], joint.ends[1 - end]
    yield target, entry, np.zeros(3), slides
