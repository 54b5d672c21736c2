# SPDX-License-Identifier: Apache-2.0
"""Chains of joints from the base to a part of a locked graph: the part's position as a sum of vectors.

Each vector is fixed in one part. Vectors in a part that does not turn, or along its known direction, are constant; the
others turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.assembly.methods.locked_graph import LockedGraph, Orientation, PassiveJoint
from pkm_kinematics.kernels.records import BASE

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
    """Paths that go on from the part `at`, through no part twice."""
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
