# SPDX-License-Identifier: Apache-2.0
"""A file as a tree of serial joints with clusters of loops: humanoids, grippers, anything without one platform.

A cluster is what loops and mimic joints tie together, and is solved by itself: two legs on a pelvis are two of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from pkm_description.description_error import DescriptionError
from pkm_description.graph import ordered_tree, path_from_base
from pkm_description.joint_geometry import Freedom, child_frame, floating_freedoms, freedoms, home_positions
from pkm_description.loops.closure import ClosureModel, independent, null_space
from pkm_description.loops.home import ROUNDED, WITHIN_LIMITS, close
from pkm_description.loops.mobility import generic_configurations
from pkm_description.mechanism import Array, Coupling, Joint, JointType, Link, Loop, Mechanism, Spring, frozen
from pkm_description.rotations import skew
from pkm_description.urdf import urdf_plus
from pkm_runtime.describable import Describable, counted, listed

Tie = Loop | Coupling

MUCH = 0.1  # of the most that a link of a cluster carries: rods of linkages carry less
SINGLE = 1e-6  # dimensionless gap of overconstrained loops whose numbers have single precision
DEPENDENT = 1e-3  # of a row of motions, what is left of it beside those chosen before: it says nothing new


@dataclass(frozen=True)
class Cluster:
    """Names of what loops tie together, and the link that carries it.

    `independent` joints are those that a simulator or planner calls the joints: on the way to the body that carries
    most. `idle` ones do not matter to these or to `actuators` (rods that spin between balls). All others are `passive`.
    """

    root: str
    joints: tuple[str, ...]
    loops: tuple[str, ...]
    independent: tuple[str, ...]
    actuators: tuple[str, ...]
    passive: tuple[str, ...]
    idle: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class TreeModel(Describable):
    """Links, joints in topological order from `base_link`, loops, and `home` [m, rad] by degree of freedom, closed."""

    name: str
    base_link: str
    gravity: Array
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    loops: tuple[Loop, ...]
    actuated_joints: tuple[str, ...]
    home: dict[str, float]
    source: str = ""
    urdf: str = ""  # URDF+ text
    springs: tuple[Spring, ...] = ()  # between links
    platform_link: str = ""  # where the file names one
    couplings: tuple[Coupling, ...] = ()
    notes: tuple[str, ...] = ()  # what of another tool's file was not taken, and which of its numbers look wrong

    def _summary(self) -> str:
        serial = len(self.joint_named) - sum(len(one.joints) for one in self.clusters)
        return f"{self.name}: {counted(serial, 'serial joint')}, {counted(len(self.clusters), 'cluster')} of loops"

    def _details(self) -> list[str]:
        return [
            f"on {c.root}: {counted(len(c.loops), 'loop')}, joints {listed(c.independent) or 'none, it is locked'}; "
            f"actuators {listed(c.actuators)}"
            for c in self.clusters
        ]

    @cached_property
    def joint_named(self) -> dict[str, Joint]:
        """Moving joints by name."""
        return {joint.name: joint for joint in self.joints if joint.type is not JointType.FIXED}

    @property
    def home_joints(self) -> Array:
        """Home by degree of freedom, in the order of the joints."""
        return np.array([self.home[f.name] for joint in self.joints for f in freedoms(joint)])

    @cached_property
    def floating(self) -> tuple[tuple[Joint, ...], ...]:
        """Bodies that nothing ties to the base: of each its floating joint, or the three slides and three turns."""
        massless = {link.name for link in self.links if link.inertial.massless}
        found: list[tuple[Joint, ...]] = []
        for joint in (one for one in self.joints if one.parent == self.base_link):
            wanted = floating_freedoms(joint.name.removesuffix("x"))
            chain = tuple(self.joint_named[f.name] for f in wanted if f.name in self.joint_named)
            steps = pairwise(chain)
            if joint.type is JointType.FLOATING:
                found.append((joint,))
            elif (
                len(chain) == 6
                and all(map(_is_freedom, chain, wanted))
                and all(
                    one.child == two.parent and one.child in massless and (two.origin == np.eye(4)).all()
                    for one, two in steps
                )
            ):
                found.append(chain)
        return tuple(found)

    @property
    def unbuilt(self) -> tuple[str, ...]:
        """Joints that are no body's but coordinates: those of bodies that float."""
        return tuple(joint.name for chain in self.floating for joint in chain)

    @cached_property
    def clusters(self) -> tuple[Cluster, ...]:
        """The clusters in the order of the tree."""
        return tuple(self._cluster(members, loops) for members, loops in self._tied)

    def tied_to(self, names: Iterable[str]) -> list[tuple[set[str], list[Tie]]]:
        """Names, loops and couplings of each cluster with one of some joints; a joint of none stands alone."""
        wanted = set(names)
        for name in sorted(wanted - self.joint_named.keys()):
            raise DescriptionError(
                f'<joint name="{name}">', "no such moving joint", f"it has {listed(self.joint_named)}"
            )
        found = [tied for tied in self._tied if tied[0] & wanted]
        alone = wanted - set().union(*(tied[0] for tied in found))
        return found + [({name}, []) for name in self.joint_named if name in alone]

    def closures(self, members: Collection[str], ties: Sequence[Tie]) -> ClosureModel:
        """The loops and couplings among some joints; joints between that are not of them stand at home."""
        loops = [one for one in ties if isinstance(one, Loop)]
        ends = [*(link for loop in loops for link in (loop.predecessor, loop.successor))]
        ends += [self.joint_named[name].child for name in members]
        ways = [path_from_base(self.joints, link) for link in ends]
        shared = set(ways[0]).intersection(*ways[1:])
        on_ways = [joint for joint in self.joints if joint in set().union(*ways) - shared]
        # the joint that carries all of them may be one of them: then they start at its parent
        above = [joint for joint in ways[0] if joint in shared]
        while above and any(joint.name in members for joint in above):
            on_ways.insert(0, above.pop())
        root = above[-1].child if above else self.base_link
        joints = [joint if joint.name in members else self._still(joint) for joint in on_ways]
        names = {root, *(joint.child for joint in joints)}
        links = [link for link in self.links if link.name in names]
        return ClosureModel(links, joints, loops, root, [one for one in ties if isinstance(one, Coupling)])

    @cached_property
    def whole(self) -> ClosureModel:
        """The whole tree, with all loops and couplings."""
        return ClosureModel(self.links, self.joints, self.loops, self.base_link, self.couplings)

    def home_of(self, model: ClosureModel) -> Array:
        """Home (size,) of part of the tree."""
        return np.array([self.home.get(f.name, 0.0) for joint in model.free for f in freedoms(joint)])

    def beyond(self) -> list[str]:
        """A sentence for each joint that is outside its range at home."""
        joints = [joint for joint in self.joint_named.values() if joint.type.dof == 1]
        slack = {"rad": WITHIN_LIMITS, "m": WITHIN_LIMITS * self.whole.length}
        return [
            f"home: joint '{joint.name}' at {at:.4g} {joint.unit} is outside [{low:.4g}, {high:.4g}]"
            for joint in joints
            for at, low, high in [(self.home[joint.name], joint.limits.lower, joint.limits.upper)]
            if not low - slack[joint.unit] <= at <= high + slack[joint.unit]
        ]

    def _still(self, joint: Joint) -> Joint:
        if joint.type is JointType.FIXED:
            return joint
        at = child_frame(joint, np.array([self.home.get(f.name, 0.0) for f in freedoms(joint)]))
        return replace(joint, type=JointType.FIXED, origin=frozen(joint.origin @ at), mimic=None)

    @cached_property
    def _tied(self) -> list[tuple[set[str], list[Tie]]]:
        """Sets of joints that loops, couplings and mimics tie together, with the first two."""
        sets: list[tuple[set[str], list[Tie]]] = []
        ties: list[tuple[set[str], list[Tie]]] = []
        for loop in self.loops:
            ways = (path_from_base(self.joints, link) for link in (loop.predecessor, loop.successor))
            one, other = ({j.name for j in way if j.type is not JointType.FIXED} for way in ways)
            if one == other:
                raise DescriptionError(f'<loop name="{loop.name}">', "no joint moves its ends", "remove it")
            ties.append((one ^ other, [loop]))
        ties += [({name for name, _ in one.terms}, [one]) for one in self.couplings]
        ties += [({j.name, j.mimic.joint}, []) for j in self.joints if j.mimic is not None]
        for names, loops in ties:
            for tied in [tied for tied in sets if tied[0] & names]:
                sets.remove(tied)
                names, loops = names | tied[0], tied[1] + loops
            sets.append((names, loops))
        order = {name: n for n, name in enumerate(self.joint_named)}
        return sorted(sets, key=lambda tied: min(order[name] for name in tied[0]))

    def _cluster(self, members: set[str], ties: Sequence[Tie]) -> Cluster:
        model = self.closures(members, ties)
        names = [f.name for joint in model.free for f in freedoms(joint)]
        motions = Motions.of(model, self.home_of(model))
        way = [f.name for j in path_from_base(model.joints, self._output(model, motions.rates)) for f in freedoms(j)]
        actuators = [name for name in self.actuated_joints if name in members]
        others = [name for name in names if name not in way]
        wanted = [n for n in way if n in names] + sorted(others, key=lambda n: n in actuators)
        independent, idle = motions.independent(wanted, [name for name in actuators if name in motions.rates])
        rest = [n for n in self.joint_named if n in members and n not in {*independent, *idle, *actuators}]
        listed_members = tuple(name for name in self.joint_named if name in members)
        return Cluster(
            next(iter(model.link_index)), listed_members, tuple(loop.name for loop in model.loops), independent,
            tuple(actuators), tuple(rest), idle,
        )  # fmt: skip

    def _output(self, model: ClosureModel, row: Mapping[str, Array]) -> str:
        """The platform, else the link that moves most freely of those that carry much, with all that hangs on them."""
        inside = {joint.name for joint in model.joints}
        mass = {link.name: link.inertial.mass for link in self.links}
        for joint in reversed(self.joints):
            if joint.name not in inside or joint.type is JointType.FIXED:
                mass[joint.parent] += mass[joint.child]

        def freedom(link: str) -> int:
            way = [row[f.name] for j in path_from_base(model.joints, link) for f in freedoms(j) if f.name in row]
            return int(np.linalg.matrix_rank(np.array(way), DEPENDENT)) if way else 0

        carried = [joint.child for joint in model.joints]
        if self.platform_link in carried:
            return self.platform_link
        most = max(mass[name] for name in carried)
        return max((n for n in carried if mass[n] >= MUCH * most), key=lambda name: (freedom(name), mass[name]))


@dataclass(frozen=True, eq=False)
class Motions:
    """The motions that loops allow in general position near home, one column each.

    `near` are that position, `rates` what each degree of freedom does (dof,), both by name; `points` (k, dof) how ends
    of loops and places of joints move, dimensionless. Motions that move no point are idle.
    """

    near: dict[str, float]
    rates: dict[str, Array]
    points: Array

    @classmethod
    def of(cls, model: ClosureModel, home: Array) -> Motions:
        """Those of a cluster."""
        one = generic_configurations(model, home, samples=1)
        found = one or generic_configurations(model, home, SINGLE, 1)
        q = found[0] if found else home
        names = [f.name for joint in model.free for f in freedoms(joint)]
        free = null_space(model.closure(q)[1])
        poses, columns = model.forward(q)
        twists = model.twists(columns)
        places = [(joint.parent, joint.origin) for joint in model.joints]
        for loop in model.loops:
            places += [(loop.predecessor, loop.predecessor_frame), (loop.successor, loop.successor_frame)]
        moved = [np.zeros((0, model.size))]
        for link, frame in places:
            k = model.link_index[link]
            point = (poses[k] @ frame)[:3, 3]
            moved.append((twists[k][:3] - skew(point) @ twists[k][3:]) / model.length)
        points = np.vstack(moved) * model.scale @ free
        return cls(dict(zip(names, map(float, q), strict=True)), dict(zip(names, free, strict=True)), points)

    def independent(self, wanted: Sequence[str], seen: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of independent joints among those `wanted`, in this order, and of idle ones, not among those `seen`."""
        rates = self.rates
        shown = np.vstack([self.points, *(rates[name][None] for name in seen)])
        _, sizes, directions = np.linalg.svd(shown)
        idle_motions = directions[int((sizes > DEPENDENT).sum()) :].T
        active = np.eye(len(directions)) - idle_motions @ idle_motions.T
        moves = np.array([rates[name] for name in wanted]).reshape(len(wanted), len(active))  # perhaps none
        chosen = independent(active @ moves.T, DEPENDENT)
        basis = list(np.linalg.qr(moves[chosen].T)[0].T)

        def left(row: Array) -> Array:
            return row - sum((b * (b @ row) for b in basis), np.zeros_like(row))

        idle: list[str] = []
        for _ in range(idle_motions.shape[1]):
            name = max((n for n in rates if n not in seen), key=lambda n: float(np.linalg.norm(left(rates[n]))))
            basis.append(left(rates[name]) / np.linalg.norm(left(rates[name])))
            idle.append(name)
        return tuple(wanted[k] for k in chosen), tuple(idle)


def tree_of_robot(m: Mechanism, origin: str) -> TreeModel:
    """A robot with one platform as a tree: its task coordinates are joints of a cluster."""
    return TreeModel(
        m.name, m.base_link, m.gravity, m.links, m.joints, m.loops, m.actuated_joints, home_positions(m), origin,
        m.urdf, m.springs, m.platform_link,
    )  # fmt: skip


def started_tree(description: urdf_plus.Description, origin: str, text: str) -> TreeModel:
    """The tree of a text, its joints where the search for home starts."""
    joints = ordered_tree(description.links, description.joints, description.base_link)
    return TreeModel(
        description.name, description.base_link, description.gravity, tuple(description.links), joints,
        tuple(description.loops), tuple(description.actuated), description.home_joints, origin, text,
        tuple(description.springs), couplings=tuple(description.couplings),
    )  # fmt: skip


def tree_of(description: urdf_plus.Description, origin: str, text: str) -> TreeModel:
    """The tree of a text without a platform, closed; refused if it stays open or locks a driven joint."""
    started = started_tree(description, origin, text)
    home = dict(description.home_joints)
    for members, loops in started.tied_to(started.joint_named):
        model = started.closures(members, loops)
        home |= _closed(model, started.home_of(model))
    for joint in started.joints:
        if joint.mimic is not None:
            home[joint.name] = joint.mimic.multiplier * home[joint.mimic.joint] + joint.mimic.offset
    tree = replace(started, home=home)
    _check_driven_joints_move(tree)
    return tree


def _check_driven_joints_move(tree: TreeModel) -> None:
    for one in tree.clusters:
        if one.actuators and not one.independent:
            ties = [*one.loops, *(tie.name for tie in tree.couplings if tie.terms[0][0] in one.joints)]
            ties += [f"<mimic> of {n}" for n in one.joints if tree.joint_named[n].mimic is not None]
            problem = f"it is driven, and its loops and couplings leave it no motion (mobility 0): {listed(ties)}"
            remedy = "leave out the one that contradicts the others, or correct positions and axes"
            raise DescriptionError(f'<joint name="{one.actuators[0]}">', problem, remedy)


def _is_freedom(joint: Joint, freedom: Freedom) -> bool:
    slides = joint.type is JointType.PRISMATIC
    return joint.name == freedom.name and slides is freedom.slides and bool((joint.axis == freedom.axis).all())


def _closed(model: ClosureModel, start: Array) -> dict[str, float]:
    """Positions near `start` (size,) that close the loops, by degree of freedom."""
    q, gap = close(model, model.closure, np.ones(model.size, dtype=bool), start)
    if gap > ROUNDED:
        where, gap = widest(model, q)
        remedy = "correct the geometry, or start the search with <home><joint name= position= /></home> (a keyframe)"
        raise DescriptionError(where, f"it stays open by {gap:.3g} m or rad at home", remedy)
    names = [f.name for joint in model.free for f in freedoms(joint)]
    return dict(zip(names, map(float, q), strict=True))


def widest(model: ClosureModel, q: Array) -> tuple[str, float]:
    """The element of the loop or coupling that is open the most at q (size,), and by how much [m or rad]."""
    ties: list[Tie] = [*model.loops, *model.couplings]
    gaps = [float(np.abs(model.closure(q, [one])[0]).max()) * model.length for one in ties]
    worst = int(np.argmax([*gaps, 0.0]))
    if worst == len(ties):
        return "", 0.0
    return f'<{"loop" if worst < len(model.loops) else "coupling"} name="{ties[worst].name}">', gaps[worst]
