# SPDX-License-Identifier: Apache-2.0
"""The lumped-rod model: massless rods with a third of their mass on the platform's side, two thirds on the base's.

Codourey and Burdet, "A body-oriented method for finding a linear form of the dynamic equation of fully parallel
robots", ICRA 1997, section 4.2, for the Delta: forearms then need no kinematics. A rod is here any body with exactly
two connections, each a universal or spherical joint, recognised from the graph; so the model also serves Hexa,
Hexaglide and Quattro. It is an approximation; `lumping_error` measures its error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pkm_description.mechanism import Array, Inertial, Joint, JointType, LoopType, Mechanism, frozen
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.linear_form.random_motions import Motions, random_motions
from pkm_runtime.errors import PkmError
from test.oracles.other_inertials import with_inertials

OUTER_SHARE = 1.0 / 3.0  # of a rod's mass, to the side of the platform
CONCURRENT = 1e-9  # m: axes of a universal joint miss each other by less


class NoRodsError(PkmError):
    """A mechanism without rods between universal or spherical joints."""

    def __init__(self, robot: str) -> None:
        self.robot = robot
        super().__init__(f"{robot} has no massive rod between universal or spherical joints: nothing to simplify")


@dataclass(frozen=True, eq=False)
class End:
    """One end of a rod: the link joined to it, and the joint's centre (3,) in that link's frame."""

    link: str
    point: Array


@dataclass(frozen=True, eq=False)
class Rod:
    """A rod: its links (fixed to each other), its mass, its end towards the base and its end towards the platform."""

    links: tuple[str, ...]
    mass: float
    inner: End
    outer: End


@dataclass(frozen=True, eq=False)
class LumpingError:
    """Effort errors (m,) of the lumped model: root mean square `rms` and `largest` [N m or N], and `relative` rms."""

    rms: Array
    largest: Array
    relative: Array


def lumped(mechanism: Mechanism, outer_share: float = OUTER_SHARE) -> Mechanism:
    """The mechanism with each rod's mass as points at its ends, `outer_share` of it on the platform's side."""
    rods = find_rods(mechanism)
    if not rods:
        raise NoRodsError(mechanism.name)
    inertials: dict[str, Inertial] = {name: Inertial() for rod in rods for name in rod.links}
    for rod in rods:
        for end, share in ((rod.inner, 1.0 - outer_share), (rod.outer, outer_share)):
            before = inertials.get(end.link, mechanism.link_named[end.link].inertial)
            inertials[end.link] = with_point(before, share * rod.mass, end.point)
    inertials.pop(mechanism.base_link, None)
    return with_inertials(mechanism, inertials)


def with_point(body: Inertial, mass: float, point: Array) -> Inertial:
    """A body with a point mass [kg] added at `point` (3,) of its frame."""
    total = body.mass + mass
    com = (body.mass * body.com + mass * point) / total
    inertia = np.array(body.inertia)
    for m, at in ((body.mass, body.com - com), (mass, point - com)):
        inertia += m * (at @ at * np.eye(3) - np.outer(at, at))
    return Inertial(total, frozen(com), frozen(inertia))


def lumping_error(full: Dynamics, simple: Dynamics, motions: Motions | None = None) -> LumpingError:
    """Compare the efforts of two models of one robot over motions, random ones by default."""
    if motions is None:
        motions = random_motions(full.kinematics, 200)
    at = motions.pose, motions.twist, motions.acceleration
    wanted = full.inverse(*at).effort
    difference = simple.inverse(*at).effort - wanted
    rms = np.sqrt(np.mean(difference**2, axis=0))
    return LumpingError(rms, np.abs(difference).max(axis=0), rms / np.sqrt(np.mean(wanted**2, axis=0)))


def find_rods(mechanism: Mechanism) -> tuple[Rod, ...]:
    """Rods of a mechanism, in the order of its links."""
    found = []
    graph = _Graph(mechanism)
    for body, links in graph.bodies.items():
        mass = sum(mechanism.link_named[name].inertial.mass for name in links)
        fixed = {mechanism.base_link, mechanism.platform_link}
        if mass > 0.0 and not fixed & set(links):
            ends = graph.ends(body)
            if ends is not None:
                found.append((links, mass, ends))
    beyond = graph.reached_from_platform({name for links, _, _ in found for name in links})
    rods = []
    for links, mass, (a, b) in found:
        outer = [end for end in (a, b) if end.link in beyond]
        if len(outer) == 1:
            inner = b if outer[0] is a else a
            rods.append(Rod(links, mass, inner, outer[0]))
    return tuple(rods)


class _Graph:
    """Links, tree joints and loops of a mechanism, for the search of rods."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.carrier: dict[str, str] = {mechanism.base_link: mechanism.base_link}
        chain = set(mechanism.platform_chain)
        self.joints = [joint for joint in mechanism.joints if joint.name not in chain]
        for joint in mechanism.joints:
            rigid = joint.type is JointType.FIXED and joint.name not in chain
            self.carrier[joint.child] = self.carrier[joint.parent] if rigid else joint.child
        self.bodies: dict[str, tuple[str, ...]] = {}
        for link, carrier in self.carrier.items():
            self.bodies[carrier] = (*self.bodies.get(carrier, ()), link)
        moving = [joint for joint in self.joints if joint.type is not JointType.FIXED]
        self.below = {joint.child: joint for joint in moving}
        self.above: dict[str, list[Joint]] = {}
        for joint in moving:
            self.above.setdefault(self.carrier[joint.parent], []).append(joint)
        self.loops: dict[str, list[int]] = {}
        for k, loop in enumerate(mechanism.loops):
            for link in (loop.predecessor, loop.successor):
                self.loops.setdefault(self.carrier[link], []).append(k)

    def ends(self, body: str) -> tuple[End, End] | None:
        """The two ends of a body with exactly two connections, both universal or spherical; else None."""
        below = [self.below[body]] if body in self.below else []
        above, loops = self.above.get(body, []), self.loops.get(body, [])
        if len(below) + len(above) + len(loops) != 2:
            return None
        ends = [self._down(joint) for joint in below] + [self._up(joint) for joint in above]
        ends += [self._across(body, k) for k in loops]
        if ends[0] is None or ends[1] is None:
            return None
        return ends[0], ends[1]

    def _across(self, body: str, k: int) -> End | None:
        loop = self.mechanism.loops[k]
        if loop.type not in (LoopType.SPHERICAL, LoopType.UNIVERSAL):
            return None
        if self.carrier[loop.predecessor] == body:
            return End(loop.successor, loop.successor_frame[:3, 3])
        return End(loop.predecessor, loop.predecessor_frame[:3, 3])

    def _between(self, link: str) -> bool:
        """Whether a massless link merely connects one revolute joint to one other."""
        return (
            self.mechanism.link_named[link].inertial.massless
            and len(self.bodies.get(link, ())) == 1
            and link in self.below
            and self.below[link].type in (JointType.REVOLUTE, JointType.CONTINUOUS)
            and len(self.above.get(link, [])) == 1
            and link not in self.loops
        )

    def _down(self, joint: Joint) -> End | None:
        """The joint below a body as two or three revolutes through one point, with the body at its end."""
        link, centre = joint.parent, None
        while self._between(link):
            lower = self.below[link]
            point = _crossing(joint, lower) if centre is None else centre
            if point is None or not _on_axis(lower, point):
                break
            centre = _apply(lower.origin, point)
            link = lower.parent
        return None if centre is None else End(link, centre)

    def _up(self, joint: Joint) -> End | None:
        """The joint above a body, as in `_down`."""
        link, centre = joint.child, None
        while self._between(link):
            upper = self.above[link][0]
            if upper.type not in (JointType.REVOLUTE, JointType.CONTINUOUS):
                break
            point = _crossing(upper, joint) if centre is None else centre
            if point is None:
                break
            inside = np.asarray(upper.origin[:3, :3].T @ (point - upper.origin[:3, 3]))
            if not _on_axis(upper, inside):
                break
            centre, link = inside, upper.child
        return None if centre is None else End(link, centre)

    def reached_from_platform(self, rods: set[str]) -> set[str]:
        """Links joined to the platform by a path that crosses neither rods nor the base."""
        edges = [(joint.parent, joint.child) for joint in self.joints]
        edges += [(loop.predecessor, loop.successor) for loop in self.mechanism.loops]
        blocked = rods | {self.mechanism.base_link}
        reached = {self.mechanism.platform_link}
        grown = True
        while grown:
            grown = False
            for a, b in edges:
                if (a in reached) != (b in reached) and not {a, b} & blocked:
                    reached |= {a, b}
                    grown = True
        return reached


def _apply(T: Array, point: Array) -> Array:
    return np.asarray(T[:3, :3] @ point + T[:3, 3])


def _on_axis(joint: Joint, point: Array) -> bool:
    """Whether a point (3,) of the joint's own frame lies on its axis."""
    return bool(np.linalg.norm(np.cross(joint.axis, point)) < CONCURRENT)


def _crossing(upper: Joint, lower: Joint) -> Array | None:
    """Where the axes of two revolutes meet, in the frame of the link between them: the child of `lower`; else None."""
    if upper.type not in (JointType.REVOLUTE, JointType.CONTINUOUS):
        return None
    at, along = upper.origin[:3, 3], upper.origin[:3, :3] @ upper.axis
    directions = np.column_stack([lower.axis, -along])
    if np.linalg.matrix_rank(directions, tol=1e-6) < 2:
        return None
    s, _ = np.linalg.lstsq(directions, at, rcond=None)[0]
    point = s * lower.axis
    return np.asarray(point) if np.linalg.norm(np.cross(along, point - at)) < CONCURRENT else None
