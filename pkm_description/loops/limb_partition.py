# SPDX-License-Identifier: Apache-2.0
"""Partition of a mechanism into limbs, as the literature counts them.

Without base and platform the limbs of a Delta fall apart. Those of an H4 or a Par4 do not: they meet in half plates
hinged to the bar with the tool, which belong to an articulated platform. A body belongs to it if several driven limbs
end in it whose drives alone do not hold it: the far link of a parallelogram is met by one driven chain, the tip of a
five-bar used as a limb is held by its two drives.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from pkm_description.description_error import DescriptionError
from pkm_description.graph import rigid_with
from pkm_description.loops.closure import ClosureModel, null_space, rank
from pkm_description.mechanism import Array, Joint, JointType, Limb, Link, Loop


@dataclass(frozen=True)
class _Edge:
    name: str
    ends: frozenset[str]
    loop: bool = False
    rigid: bool = False
    driven: bool = False


class LimbGraph:
    """Links, joints and loops without the joints `chain`; refused where base and platform are one body."""

    def __init__(
        self,
        links: Sequence[Link],
        joints: Sequence[Joint],
        loops: Sequence[Loop],
        base: str,
        platform: str,
        chain: Sequence[str],
    ) -> None:
        self.links = [link.name for link in links]
        self.base = rigid_with(joints, base)
        if platform in self.base:
            problem = f"platform_link {platform!r} is fixed to the base"
            raise DescriptionError("<pkm>", problem, "connect it by joints of another type than fixed")
        self.name = platform
        self.platform = rigid_with(joints, platform) | {joint.child for joint in joints if joint.name in chain}
        self.edges = [
            _Edge(j.name, frozenset((j.parent, j.child)), rigid=j.type is JointType.FIXED, driven=j.actuated)
            for j in joints
            if j.name not in chain
        ]
        self.edges += [_Edge(loop.name, frozenset((loop.predecessor, loop.successor)), loop=True) for loop in loops]

    def stand_on(self, redundant: Sequence[str], joints: Sequence[Joint]) -> None:
        """Count links that joints with `redundant` degrees of freedom carry to the base where limbs part from them."""
        names = {name.split("/")[0] for name in redundant}
        for joint in joints:
            if joint.name in names and joint.parent in self.base:
                body = rigid_with(joints, joint.child)
                if sum(bool(edge.ends & body) and not edge.rigid for edge in self.edges) > 2:
                    self.base |= body

    def connected(self) -> tuple[Limb, ...]:
        """Connected parts without base and platform and what is fixed to these; a direct joint has no links."""
        return self._partition(set())[0]

    def limbs(self, model: ClosureModel, home: Array) -> tuple[tuple[Limb, ...], Limb | None]:
        """The limbs, and the bodies of an articulated platform or None; `home` (size,) closes the loops."""
        articulated: set[str] = set()
        for part in self.connected():
            if len(part.actuated) > 1:
                articulated |= self._articulated(part, model, home)
        return self._partition(articulated)

    def _partition(self, articulated: Set[str]) -> tuple[tuple[Limb, ...], Limb | None]:
        ends = self.base | self.platform | articulated
        groups = self._groups(set(self.links) - ends, self.edges)
        plate = set(articulated)
        if articulated:  # what does not touch the base lies between them and the platform
            plate = plate.union(*(group for group in groups if not self._ends_on(group, self.base)))
        found = [self._limb(_common_beginning(g), g, self._touching(g)) for g in groups if not g & plate]
        direct = [edge for edge in self.edges if edge.ends <= ends | plate]
        inner = [edge for edge in direct if edge.ends & plate and not edge.ends & self.base]
        found += [self._limb(edge.name, set(), [edge]) for edge in direct if edge not in inner and not edge.rigid]
        return _with_unique_names(found), self._limb(self.name, plate, inner) if plate else None

    def _articulated(self, part: Limb, model: ClosureModel, home: Array) -> set[str]:
        """Links of bodies of a part in which driven limbs end whose drives do not hold them."""
        found: set[str] = set()
        for body in self._groups(set(part.links), [edge for edge in self.edges if edge.rigid]):
            limbs = [
                branch
                for branch in self._groups(set(part.links) - body, self.edges)
                if self._ends_on(branch, self.base)
                and not self._ends_on(branch, self.platform)
                and self._drives(branch)
            ]
            if len(limbs) > 1 and not self._held(body, set().union(*limbs), model, home):
                found |= body
        return found

    def _held(self, body: Set[str], limbs: Set[str], model: ClosureModel, home: Array) -> bool:
        """Whether limbs with held drives, with base and body alone, leave the body no motion."""
        inside = self.base | body | limbs
        loops = [loop for loop in model.loops if {loop.predecessor, loop.successor} <= inside]
        locked = np.vstack((model.closure(home, loops)[1], model.joint_map(self._drives(limbs))))
        return rank(model.twist_map(min(body), home) @ null_space(locked)) == 0

    def _groups(self, links: Set[str], edges: Sequence[_Edge]) -> list[set[str]]:
        beside: dict[str, list[str]] = {link: [] for link in links}
        for edge in edges:
            for link in edge.ends & links:
                beside[link] += edge.ends & links
        groups: list[set[str]] = []
        seen: set[str] = set()
        for link in self.links:
            if link not in links or link in seen:
                continue
            group, waiting = {link}, [link]
            while waiting:
                reached = set(beside[waiting.pop()]) - group
                group |= reached
                waiting += reached
            seen |= group
            groups.append(group)
        return groups

    def _ends_on(self, group: Set[str], other: Set[str]) -> bool:
        return any(edge.ends & other for edge in self._touching(group))

    def _drives(self, group: Set[str]) -> list[str]:
        return [edge.name for edge in self._touching(group) if edge.driven]

    def _touching(self, group: Set[str]) -> list[_Edge]:
        return [edge for edge in self.edges if edge.ends & group]

    def _limb(self, name: str, links: Set[str], edges: Sequence[_Edge]) -> Limb:
        return Limb(
            name=name,
            links=tuple(link for link in self.links if link in links),
            joints=tuple(edge.name for edge in edges if not edge.loop),
            loops=tuple(edge.name for edge in edges if edge.loop),
            actuated=tuple(edge.name for edge in edges if edge.driven),
        )


def _common_beginning(links: Set[str]) -> str:
    ordered = sorted(links)
    first, last = ordered[0], ordered[-1]
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    common = first[:length]
    if length < max(len(first), len(last)):
        common = common.rpartition("_")[0]
    return common


def _with_unique_names(found: list[Limb]) -> tuple[Limb, ...]:
    names = [limb.name for limb in found]
    kept = {name for name in names if name and names.count(name) == 1}
    free = (f"limb{number}" for number in count(1) if f"limb{number}" not in kept)
    return tuple(limb if limb.name in kept else replace(limb, name=next(free)) for limb in found)
