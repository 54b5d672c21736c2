# SPDX-License-Identifier: Apache-2.0
"""A robot at a pose as an elastic structure: rigid nodes, and the beams, joints, drives and springs between them.

Nodes are rigid bodies of six degrees of freedom, node 0 the ground. Everything is in the base frame; six-vectors are
linear, then angular. Arrays may have leading axes, of poses at which the structure is the same and only lengths and
directions differ. Bodies without beams are one node: crosses without mass, what is said to be rigid, what has no
section and no visual that is long; base and platform unless they are described.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.stiffness.catenary import Line
from pkm_analysis.stiffness.link_beams import Body, Hung, Piece, alike, body_of, described, dots, drawn, lengths
from pkm_description.graph import rigid_with
from pkm_description.joint_geometry import frame_along, home_positions, link_frames, value_of
from pkm_description.mechanism import Array, Bearing, Cable, Joint, JointType, Link, Loop, LoopType, Mechanism
from pkm_description.rotations import inverse_transform, skew
from pkm_description.urdf.visuals import Visual, visuals_of

FREE, RIGID = 0.0, np.inf  # stiffness of a degree of freedom
ON_LINE = 1e-6  # m: a joint nearer than this to a cable's axis is its end
PARALLEL = 0.1  # sine of the angle between a slide and a beam along it
GROUND, PLATFORM = 0, -1  # a node; in place of a joint's number
SLIDE, TURN = 2, 5  # degree of freedom of a prismatic joint, and of one that turns
POINT = 1e-12  # m: of a shorter spring the direction is lost
_NO_CABLE = (
    ', as bars that bend and buckle; for cables write <param name="cable_stiffness">, E A in N, at their winches'
)
_LOOSE = {  # degrees of freedom that joints leave free, of slides along and turns about x, y, z of the joint
    LoopType.SPHERICAL: (3, 4, 5),
    LoopType.UNIVERSAL: (3, 4),
    LoopType.REVOLUTE: (5,),
    LoopType.CYLINDRICAL: (2, 5),
    LoopType.PRISMATIC: (2,),
    LoopType.PLANAR: (0, 1, 5),
    JointType.REVOLUTE: (5,),
    JointType.CONTINUOUS: (5,),
    JointType.PRISMATIC: (2,),
    JointType.PLANAR: (0, 1, 5),
    JointType.FLOATING: (0, 1, 2, 3, 4, 5),
}


class Node(NamedTuple):
    """A rigid node of the structure, a part of a link."""

    link: str
    point: Array  # (3,) m


class BeamBetween(NamedTuple):
    """A beam from one node to another; its ends are rigidly fixed to them."""

    joins: tuple[int, int]
    piece: Piece  # in the base frame

    @property
    def length(self) -> Array:
        """[m]."""
        along = self.piece.end - self.piece.start
        return np.asarray(np.sqrt((along * along).sum(axis=-1)))  # in a fifth of the time of `norm`

    @property
    def frame(self) -> Array:
        """Its axes (..., 3, 3) as columns: along it, y and z of the section."""
        x = (self.piece.end - self.piece.start) / self.length[..., None]
        return np.stack([x, self.piece.y, (skew(x) @ self.piece.y[..., None])[..., 0]], axis=-1)

    @property
    def by_power(self) -> Array:
        """Of `compliance` the factors (3, 6, 6) of its length, of the square, and of the cube."""
        names = ("E", "G", "A", "Iy", "Iz", "J", "Ay", "Az")
        E, G, A, Iy, Iz, J, Ay, Az = (getattr(self.piece.section, name) for name in names)
        C = np.zeros((3, 6, 6))
        C[0] = np.diag([1.0 / (E * A), 1.0 / (G * Ay), 1.0 / (G * Az), 1.0 / (G * J), 1.0 / (E * Iy), 1.0 / (E * Iz)])
        C[1, 1, 5] = C[1, 5, 1] = 1.0 / (2 * E * Iz)
        C[1, 2, 4] = C[1, 4, 2] = -1.0 / (2 * E * Iy)
        C[2] = np.diag([0.0, 1.0 / (3 * E * Iz), 1.0 / (3 * E * Iy), 0.0, 0.0, 0.0])
        return C

    @property
    def compliance(self) -> Array:
        """Displacement (..., 6, 6) of the end, the start held, per wrench there, in its axes."""
        (first, second, third), L = self.by_power, self.length[..., None, None]
        return np.asarray(L * first + L**2 * second + L**3 * third)


@dataclass(frozen=True, eq=False)
class JointBetween:
    """A joint from one node to another: stiffness (6,) along and about its axes (3, 3) at a point (3,).

    `driven` is the degree of freedom that a drive holds, with the drive's stiffness; a winch does by a `line`. A geared
    joint moves `multiplier` times as far as the joint `leader`.
    """

    name: str
    type: str
    links: tuple[str, str]
    joins: tuple[int, int]
    point: Array
    frame: Array
    stiffness: Array
    driven: int | None = None
    leader: str = ""
    multiplier: float = 1.0
    line: Line | None = None

    def twist(self, k: int) -> Array:
        """Unit displacement (..., 6) along a degree of freedom, at the joint's point."""
        axis = self.frame[..., k % 3]
        zero = np.zeros_like(axis)
        return np.concatenate([axis, zero] if k < 3 else [zero, axis], axis=-1)


class Mass(NamedTuple):
    """A link's mass [kg] at a point (3,) of a node, and its inertia (3, 3) about it, base axes."""

    link: str
    node: int
    mass: float
    point: Array
    inertia: Array


class SpringBetween(NamedTuple):
    """A spring between points of two nodes, or of a joint; it resists a displacement along `axis` (..., 6) at `point`.

    `force` (...) [N, N m] is that at this pose, before anything gives way; `length` (...) [m] is None of a joint's.
    """

    name: str
    links: tuple[str, str]
    joins: tuple[int, int]
    point: Array
    axis: Array
    stiffness: float
    force: Array
    length: Array | None

    @property
    def end(self) -> Array:
        """Its far end (..., 3)."""
        return np.asarray(self.point + (0.0 if self.length is None else self.length[..., None] * self.axis[..., :3]))


@dataclass(frozen=True, eq=False)
class ElasticModel:
    """The structure at a pose. `rigid` says why a link has no beams, `sources` where those of the others come from."""

    nodes: tuple[Node, ...]
    platform: int
    origin: Array  # (3,) of the platform
    beams: tuple[BeamBetween, ...]
    joints: tuple[JointBetween, ...]
    masses: tuple[Mass, ...]
    gravity: Array
    rigid: dict[str, str]
    sources: dict[str, str]
    springs: tuple[SpringBetween, ...] = ()

    @property
    def joint_named(self) -> dict[str, JointBetween]:
        """The joints by name."""
        return {one.name: one for one in self.joints}

    @property
    def lines(self) -> dict[str, Line]:
        """The cables, by their joints."""
        return {one.name: one.line for one in self.joints if one.line is not None}


class _Placed(NamedTuple):
    """A tree joint or loop at a pose: parent or predecessor first, each with the joint's point on it."""

    one: Joint | Loop
    links: tuple[str, str]
    points: tuple[Array, Array]
    frame: Array

    @property
    def point(self) -> Array:
        """On the second link."""
        return self.points[1]

    def on(self, link: str) -> Array:
        """The point on one of its links: the same where loops are closed."""
        return self.points[self.links.index(link)]


class _Assembly(NamedTuple):
    """A model while bodies are added; `at` has the node of each joint (by number) or spring at each of its links."""

    nodes: list[Node]
    beams: list[BeamBetween]
    at: dict[tuple[int | str, str], int]
    masses: list[Mass]
    sources: dict[str, str]


class Structure:
    """The robot's bodies with their beams; `drives` is the stiffness [N m/rad or N/m] where none is described."""

    def __init__(self, mechanism: Mechanism, drives: float | None = None) -> None:
        self.mechanism = mechanism
        self.drives = RIGID if drives is None else drives
        chain = {*mechanism.virtual_chain}
        self.joints = [j for j in mechanism.joints if j.type is not JointType.FIXED and j.name not in chain]
        self.loops = [loop for loop in mechanism.loops if loop.type is not LoopType.FIXED]
        virtual = {mechanism.joint_named[name].child for name in chain} - {mechanism.platform_link}
        virtual -= rigid_with(mechanism.joints, mechanism.platform_link, mechanism.loops)
        names = [mechanism.base_link, *(j.child for j in mechanism.joints if j.child not in virtual)]
        self.bodies: list[list[str]] = []
        for name in names:
            if not any(name in body for body in self.bodies):
                group = rigid_with(mechanism.joints, name, mechanism.loops)
                self.bodies.append([one for one in names if one in group])
        self.cables = {
            name: joint.name
            for joint in self.joints
            if joint.drive is not None and joint.drive.cable is not None
            for name in (joint.parent, joint.child)
        }
        self._pulled = {
            name
            for joint in self.joints
            if joint.drive is not None and joint.drive.effort_range[1] <= 0.0 and joint.type is JointType.PRISMATIC
            for name in (joint.parent, joint.child)
        }
        self.body_of = {name: k for k, body in enumerate(self.bodies) for name in body}
        self._constant: dict[int, Body] = {}
        self._constant_pieces: dict[int, list[Piece]] = {}

    @cached_property
    def _home(self) -> dict[str, float]:
        return home_positions(self.mechanism)

    @cached_property
    def _visuals(self) -> dict[str, list[Visual]]:
        found: dict[str, list[Visual]] = {}
        for visual in visuals_of(self.mechanism)[0]:
            found.setdefault(visual.link, []).append(visual)
        return found

    def model(self, pose: Array, values: dict[str, Array]) -> ElasticModel:
        """The structure at poses (..., 4, 4) of the platform and positions (...) of the joints."""
        m, poses = self.mechanism, link_frames(self.mechanism, pose, values)
        placed = [self._tree_joint(joint, poses) for joint in self.joints]
        placed += [self._loop(one, poses) for one in self.loops]
        pieces = [self._pieces(k, poses, placed) for k in range(len(self.bodies))]
        placed = [self._slid(p, pieces, poses) for p in placed]
        origin = poses[m.platform_link][..., :3, 3]
        found = _Assembly([Node(m.base_link, np.zeros_like(origin))], [], {}, [], {})
        for k in range(len(self.bodies)):
            self._add_body(found, k, pieces[k], placed, poses)
        rigid = {
            name: self._why_rigid(m.link_named[name])
            for body in self.bodies
            for name in body
            if name not in found.sources
        }
        ends = [(found.at[n, p.links[0]], found.at[n, p.links[1]]) for n, p in enumerate(placed)]
        joints = tuple(self._joint(p, joins, placed) for p, joins in zip(placed, ends, strict=True))
        return ElasticModel(
            nodes=tuple(found.nodes),
            platform=found.at[PLATFORM, m.platform_link],
            origin=origin.copy(),
            beams=tuple(found.beams),
            joints=joints,
            masses=tuple(found.masses),
            gravity=m.gravity,
            rigid=rigid,
            sources=found.sources,
            springs=tuple(self._springs(found, joints, poses, values)),
        )

    def _add_body(
        self, found: _Assembly, k: int, pieces: list[Piece], placed: list[_Placed], poses: dict[str, Array]
    ) -> None:
        """Nodes, beams and masses of a body, and on which of the nodes its joints hang."""
        m, body = self.mechanism, self.bodies[k]
        frame = poses[body[0]]
        R, to_body = frame[..., :3, :3], inverse_transform(frame)
        heavy = [m.link_named[name] for name in body if not m.link_named[name].inertial.massless]
        coms = {one.name: _point(poses[one.name], one.inertial.com) for one in heavy}
        own = [(n, link) for n, p in enumerate(placed) for link in p.links if self.body_of[link] == k]
        ends = [(PLATFORM, name) for name in (m.base_link, m.platform_link) if name in body]
        springs = [
            (spring.name, link, _point(poses[link], point))
            for spring in m.springs
            for link, point in ((spring.from_link, spring.from_point), (spring.to_link, spring.to_point))
            if self.body_of[link] == k
        ]
        made = self._constant.get(k)
        if made is None:
            hung = [Hung(_point(to_body, placed[n].on(link)), self._along(placed[n], to_body)) for n, link in own]
            hung += [Hung(_point(to_body, poses[name][..., :3, 3])) for _, name in ends]
            hung += [Hung(_point(to_body, point)) for _, _, point in springs]
            slides = any(placed[n].one.type in _SLIDING for n, _ in own)
            if not slides:  # everything is where it is at any pose
                hung = [Hung(_first(one.point), one.along) for one in hung]
            masses = [Hung(_first(_point(to_body, coms[one.name]))) for one in heavy]
            made = body_of(pieces, hung, masses)
            if not slides:
                self._constant[k] = made
        tied = [(name, link) for name, link, _ in springs]
        hangs = dict[tuple[int | str, str], int](zip([*own, *ends, *tied], made.hung, strict=False))
        grounded = hangs.get((PLATFORM, m.base_link))
        number = {}
        for inner in range(made.nodes):
            number[inner] = GROUND if inner == grounded else len(found.nodes)
            if inner != grounded:
                found.nodes.append(Node(body[0], frame[..., :3, 3]))
        found.at.update({key: number[inner] for key, inner in hangs.items()})
        for piece, joins in zip(made.pieces, made.ends, strict=True):
            turned = piece._replace(
                start=_point(frame, piece.start), end=_point(frame, piece.end), y=np.asarray(R @ piece.y)
            )
            found.beams.append(BeamBetween((number[joins[0]], number[joins[1]]), turned))
            for node, point in zip(joins, (turned.start, turned.end), strict=True):
                if number[node] != GROUND:
                    found.nodes[number[node]] = Node(piece.link, point)
            found.sources[piece.link] = piece.source
        for one, inner in zip(heavy, made.hung[len(hangs) :], strict=True):
            turn = poses[one.name][..., :3, :3]
            inertia = turn @ one.inertial.inertia @ np.swapaxes(turn, -1, -2)
            found.masses.append(Mass(one.name, number[inner], one.inertial.mass, coms[one.name], inertia))

    def _along(self, placed: _Placed, to_body: Array) -> Array | None:
        """The direction, in the body, along which a joint that turns may as well be elsewhere."""
        return _first((to_body[..., :3, :3] @ placed.frame[..., 2:])[..., 0]) if placed.one.type in _TURNING else None

    def _pieces(self, k: int, poses: dict[str, Array], placed: list[_Placed]) -> list[Piece]:
        if k in self._constant_pieces:
            return self._constant_pieces[k]
        m, found, body = self.mechanism, [], self.bodies[k]
        to_body = inverse_transform(poses[body[0]])
        ends = {m.base_link, m.platform_link} & {*body}
        for name in body:
            if name in self.cables:
                continue
            link, frame = m.link_named[name], _first(to_body @ poses[name])
            points = [_point(to_body, p.on(name)) for p in placed if name in p.links]
            if not any(p.one.type in _SLIDING for p in placed if name in p.links):
                points = [_first(point) for point in points]
            found += described(link, frame, points)
            asked = any(beam.section is None for beam in link.beams)
            if not link.beams and ends:
                continue
            if (asked and any(beam.material for beam in link.beams)) or not link.beams:
                bars = drawn(link, frame, self._visuals.get(name, ()))
                found += [bar._replace(source=bar.source + _NO_CABLE) for bar in bars] if name in self._pulled else bars
        between_joints = any(beam.section and beam.ends is None for name in body for beam in m.link_named[name].beams)
        if not between_joints or not any(p.one.type in _SLIDING for p in placed if {*body} & {*p.links}):
            self._constant_pieces[k] = found  # the same at any pose
        return found

    def _why_rigid(self, link: Link) -> str:
        if link.name in self.cables:
            return "it is drawn for a cable"
        if link.beams:
            if any(beam.section is not None or beam.material for beam in link.beams):
                return "its beams carry nothing between its joints"
            return "the description says so"
        if link.name == self.mechanism.base_link:
            return "it is the base"
        if link.name == self.mechanism.platform_link:
            return "it is the platform"
        if link.inertial.massless and link.name not in self._visuals:
            return "it has neither mass nor visuals"
        long = drawn(link, np.eye(4), self._visuals.get(link.name, ()))
        if not long:
            return "it has no section, and no visual that is twice as long as wide"
        return "nothing bends between its joints"

    def _tree_joint(self, joint: Joint, poses: dict[str, Array]) -> _Placed:
        """The joint at its child's origin; z along its axis, x of a planar joint its own."""
        child = poses[joint.child]
        before = (poses[joint.parent] @ joint.origin)[..., :3, :3]
        points = child[..., :3, 3], child[..., :3, 3]
        return _Placed(joint, (joint.parent, joint.child), points, before @ frame_along(joint.axis))

    def _loop(self, loop: Loop, poses: dict[str, Array]) -> _Placed:
        """The loop at its successor's frame; z along its axis, x and y the axes of a universal one."""
        first = poses[loop.predecessor] @ loop.predecessor_frame
        second = poses[loop.successor] @ loop.successor_frame
        frame = first[..., :3, :3] @ frame_along(loop.axis)
        if loop.type is LoopType.UNIVERSAL:
            x, y = first[..., :3, :3] @ loop.axis, second[..., :3, :3] @ loop.axis2
            z = np.cross(x, y)
            z /= np.linalg.norm(z, axis=-1, keepdims=True)
            frame = np.stack([x, np.cross(z, x), z], axis=-1)
        point = second[..., :3, 3]
        points = point if loop.type in (*_SLIDING, LoopType.PLANAR) else first[..., :3, 3], point
        return _Placed(loop, (loop.predecessor, loop.successor), points, frame)

    def _slid(self, placed: _Placed, pieces: list[list[Piece]], poses: dict[str, Array]) -> _Placed:
        """A slide between beams along it, as of a telescopic leg, is where they overlap, in the middle."""
        if placed.one.type not in _SLIDING:
            return placed
        axis, spans = placed.frame[..., 2], []
        for link in placed.links:
            k = self.body_of[link]
            frame, ends = poses[self.bodies[k][0]], list[Array]()
            for piece in pieces[k]:
                start, end = (_point(frame, point) - placed.point for point in (piece.start, piece.end))
                along = dots(axis, start), dots(axis, end)
                parallel = np.abs(along[1] - along[0]) > np.sqrt(1.0 - PARALLEL**2) * lengths(end - start)
                if alike(parallel & (lengths(start - along[0][..., None] * axis) < 4.0 * piece.half)):
                    ends += along
            if not ends:
                return placed
            spans.append((np.min(ends, axis=0), np.max(ends, axis=0)))
        low, high = np.maximum(spans[0][0], spans[1][0]), np.minimum(spans[0][1], spans[1][1])
        point = placed.point + (0.5 * (low + high))[..., None] * axis
        return placed._replace(points=(point, point))

    def _line(self, placed: _Placed, others: list[_Placed], cable: Cable) -> Line:
        """The line of a cable: between the joints of both links that are on the slide's axis."""
        ends = []
        for link in placed.links:
            points = [p.point for p in others if link in p.links and p is not placed]
            off = [np.linalg.norm(np.cross(placed.frame[..., 2], p - placed.point), axis=-1) for p in points]
            near = [p for p, apart in zip(points, off, strict=True) if alike(apart < ON_LINE)]
            if not near:
                problem = f"its axis passes no other joint of {link}"
                raise AnalysisError(f"cable {placed.one.name}", problem, "let it begin and end at joints")
            ends.append(near[0])
        return Line(ends[0], ends[1], cable)

    def _joint(self, placed: _Placed, joins: tuple[int, int], others: list[_Placed]) -> JointBetween:
        one = placed.one
        stiffness = _held(one.bearing, isinstance(one, Loop) and one.type is LoopType.UNIVERSAL)
        stiffness[list(_LOOSE[one.type])] = FREE
        found = JointBetween(one.name, one.type.value, placed.links, joins, placed.point, placed.frame, stiffness)
        if isinstance(one, Loop):
            return found
        driven = SLIDE if one.type is JointType.PRISMATIC else TURN
        if one.drive is not None:
            stiffness[driven] = one.drive.stiffness if np.isfinite(one.drive.stiffness) else self.drives
            line = None if one.drive.cable is None else self._line(placed, others, one.drive.cable)
            return replace(found, driven=driven, line=line)
        if one.mimic is not None:
            return replace(found, leader=one.mimic.joint, multiplier=one.mimic.multiplier)
        return found

    def _springs(
        self, found: _Assembly, joints: tuple[JointBetween, ...], poses: dict[str, Array], values: dict[str, Array]
    ) -> list[SpringBetween]:
        # those between links, then those of joints
        springs = list[SpringBetween]()
        for one in self.mechanism.springs:
            links = one.from_link, one.to_link
            near, far = _point(poses[links[0]], one.from_point), _point(poses[links[1]], one.to_point)
            length = np.maximum(np.linalg.norm(far - near, axis=-1), POINT)
            axis = np.concatenate([(far - near) / length[..., None], 0.0 * near], axis=-1)
            force = one.preload + one.stiffness * (length - one.rest_length)
            joins = found.at[one.name, links[0]], found.at[one.name, links[1]]
            springs.append(SpringBetween(one.name, links, joins, near, axis, one.stiffness, force, length))
        for joint, placed in zip(self.joints, joints, strict=False):
            if joint.spring_stiffness > 0.0:
                slides, home = joint.type is JointType.PRISMATIC, self._home[joint.name]
                turned = value_of(joint, joint.name, values) - home
                turned = turned if slides else np.arctan2(np.sin(turned), np.cos(turned))  # at most half a turn
                force = joint.spring_stiffness * (home + turned - joint.spring_reference)
                axis = placed.twist(SLIDE if slides else TURN)
                springs.append(
                    SpringBetween(
                        joint.name, placed.links, placed.joins, placed.point, axis, joint.spring_stiffness, force, None
                    )
                )
        return springs


_SLIDING = (JointType.PRISMATIC, LoopType.PRISMATIC, LoopType.CYLINDRICAL)
_TURNING = (JointType.REVOLUTE, JointType.CONTINUOUS, LoopType.REVOLUTE)


def _held(bearing: Bearing, universal: bool) -> Array:
    """Stiffness (6,) in the joint's axes, z along its axis; a universal joint's z is across both of its axes."""
    axial = bearing.radial if universal else bearing.axial
    return np.array([bearing.radial, bearing.radial, axial, bearing.tilt, bearing.tilt, bearing.torsion])


def _point(frame: Array, point: Array) -> Array:
    """A point (..., 3) of a frame (..., 4, 4) in that in which this is given."""
    return np.asarray((frame[..., :3, :3] @ point[..., None])[..., 0] + frame[..., :3, 3])


def _first(array: Array) -> Array:
    """What is the same at all poses: a vector (..., 3) or a frame (..., 4, 4) at the first one."""
    size = array.shape[-2:] if array.shape[-2:] == (4, 4) else array.shape[-1:]
    return np.asarray(array.reshape(-1, *size)[0])


def skewed(points: Array, twists: Array, to: Array) -> Array:
    """Twists (..., 6) at points (..., 3), as of the same motion at a point (..., 3)."""
    moved = twists[..., :3] - (skew(to - points) @ twists[..., 3:, None])[..., 0]
    return np.concatenate([moved, twists[..., 3:]], axis=-1)
