# SPDX-License-Identifier: Apache-2.0
"""The bodies of a robot, which pairs of them can meet, and how far apart they are. Only this module uses coal."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # submodules load on first use
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.kernels.geometry import capsule_bounds
from pkm_analysis.kernels.pose_quantities import WIDTH
from pkm_description.joint_geometry import home_positions, link_frames
from pkm_description.mechanism import Array, JointType, LoopType, Mechanism
from pkm_description.picture import link_poses
from pkm_description.rotations import transform
from pkm_description.urdf.visuals import Visual, collisions_of, visuals_of
from pkm_kinematics import Kinematics
from pkm_runtime.chunks import slices
from pkm_runtime.describable import Describable, listed
from pkm_runtime.optional import optional_library

ROWS = 1 << 10  # poses whose bounds are in memory at once
TOUCHING = 1e-6  # of the robot's size


@dataclass(frozen=True, eq=False)
class Body:
    """Links fixed to each other, named after the one with most shapes; the shapes are in the frame of `link`."""

    name: str
    link: str
    shapes: tuple[Visual, ...]


def bodies_of(mechanism: Mechanism) -> tuple[list[Body], set[frozenset[str]], str]:
    """Bodies with shapes, names of pairs that joints connect (also across other links), and the source of shapes."""
    shapes, left_out, source = _shapes(mechanism)
    if left_out:
        source += f"; without {len(left_out)} that cannot be used: {left_out[0]}"
    leader = {link.name: link.name for link in mechanism.links}

    def lead(link: str) -> str:
        while leader[link] != link:
            link = leader[link]
        return link

    chain = set(mechanism.virtual_chain)
    ties = [(j.parent, j.child, j.type is JointType.FIXED) for j in mechanism.joints if j.name not in chain]
    ties += [(loop.predecessor, loop.successor, loop.type is LoopType.FIXED) for loop in mechanism.loops]
    for a, b, fixed in ties:
        if fixed:
            leader[lead(b)] = lead(a)
    at_home = link_poses(mechanism)
    parts: dict[str, list[Visual]] = {}
    for shape in shapes:
        parts.setdefault(lead(shape.link), []).append(shape)
    bodies = {}
    for link, of_body in parts.items():
        to_body = np.linalg.inv(at_home[link])
        moved = tuple(
            Visual(s.link, to_body @ at_home[s.link] @ s.frame, s.shape, s.size, s.colour, s.mesh) for s in of_body
        )
        names = [s.link for s in of_body]
        bodies[link] = Body(max(dict.fromkeys(names), key=names.count), link, moved)
    massive = {lead(link.name) for link in mechanism.links if not link.inertial.massless}
    real = {*bodies, *massive, lead(mechanism.base_link), lead(mechanism.platform_link)}
    tied = {
        pair for pair in _tied([(lead(a), lead(b)) for a, b, fixed in ties if not fixed], real) if pair <= {*bodies}
    }
    return list(bodies.values()), {frozenset(bodies[link].name for link in pair) for pair in tied}, source


def _shapes(mechanism: Mechanism) -> tuple[list[Visual], list[str], str]:
    """Shapes of the links, names of unusable ones, and their source in words."""
    shapes, left_out = collisions_of(mechanism)
    if shapes:
        return shapes, left_out, "collision geometry"
    return *visuals_of(mechanism), "visuals, for the description has no collision geometry"


def meshes_stamp(mechanism: Mechanism) -> str:
    """A hash of the mesh files, of which the description has only names; empty without meshes."""
    files = sorted({str(shape.mesh) for shape in _shapes(mechanism)[0] if shape.shape == "mesh"})
    seal = hashlib.sha256()
    for file in files:
        seal.update(Path(file).name.encode() + hashlib.sha256(Path(file).read_bytes()).digest())
    return seal.hexdigest() if files else ""


def _tied(ties: list[tuple[str, str]], solid: set[str]) -> set[frozenset[str]]:
    """Pairs of solid bodies that joints connect, across others such as the cross of a universal joint."""
    near: dict[str, set[str]] = {}
    for a, b in ties:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    found = set()
    for start in solid:
        waiting, seen = [start], {start}
        while waiting:
            for other in near.get(waiting.pop(), ()):
                if other in seen:
                    continue
                seen.add(other)
                if other in solid:
                    found.add(frozenset((start, other)))
                else:
                    waiting.append(other)
    return found


def capsule_around(shape: Visual) -> Array:
    """Ends and radius (7,) of a capsule that encloses a shape, in the body's frame."""
    middle, half, radius = np.zeros(3), np.zeros(3), 0.0
    if shape.shape == "sphere":
        radius = float(shape.size[0])
    elif shape.shape == "cylinder":
        radius, half = float(shape.size[0]), np.array([0.0, 0.0, 0.5 * shape.size[1]])
    else:
        edges = np.asarray(shape.size, dtype=np.float64)
        if shape.shape == "mesh":
            low, high = vertices_of(shape)[0].min(axis=0), vertices_of(shape)[0].max(axis=0)
            middle, edges = 0.5 * (low + high), high - low
        longest = int(np.argmax(edges))
        half[longest] = 0.5 * edges[longest]
        radius = 0.5 * float(np.linalg.norm(np.delete(edges, longest)))
    turn, place = shape.frame[:3, :3], shape.frame[:3, 3]
    return np.concatenate([place + turn @ (middle - half), place + turn @ (middle + half), [radius]])


def vertices_of(shape: Visual) -> tuple[Array, Array]:
    """Vertices (n, 3) [m] of a mesh in its own frame, and triangles (k, 3)."""
    mesh = optional_library("trimesh", "trimesh", "clearances of meshes").load(str(shape.mesh), force="mesh")
    return np.asarray(mesh.vertices) * shape.size, np.asarray(mesh.faces)


class ExactDistances:
    """Distances between the shapes of bodies; `AnalysisError` where coal is not installed."""

    def __init__(self, bodies: list[Body]) -> None:
        self._coal = optional_library("coal", "coal", "clearances between bodies")
        self._request = self._coal.DistanceRequest()
        self._geometry = [self._made(shape) for body in bodies for shape in body.shapes]
        self._frames = [(shape.frame[:3, :3], shape.frame[:3, 3]) for body in bodies for shape in body.shapes]

    def _made(self, shape: Visual) -> Any:
        coal = self._coal
        if shape.shape != "mesh":
            plain = {"sphere": coal.Sphere, "cylinder": coal.Cylinder, "box": coal.Box}
            return plain[shape.shape](*(float(v) for v in shape.size))
        vertices, triangles = vertices_of(shape)
        mesh = coal.BVHModelOBBRSS()
        mesh.beginModel(len(triangles), len(vertices))
        mesh.addVertices(vertices)
        for triangle in triangles:
            mesh.addTriangle(*(vertices[k] for k in triangle))
        mesh.endModel()
        return mesh

    def between(self, i: int, first: tuple[Array, Array], j: int, second: tuple[Array, Array]) -> float:
        """Distance [m] of shapes i and j on bodies at (rotation, position); not positive in contact."""
        coal = self._coal
        result = coal.DistanceResult()
        placed = []
        for k, (turn, place) in ((i, first), (j, second)):
            own_turn, own_place = self._frames[k]
            placed.append(coal.Transform3s(turn @ own_turn, turn @ own_place + place))
        return float(coal.distance(self._geometry[i], placed[0], self._geometry[j], placed[1], self._request, result))


class Clearance(Describable):
    """Distances between the bodies of a robot; `AnalysisError` without coal, or two bodies that can meet.

    Bodies are links fixed to each other, with their collision geometry, or, where the description has none, their
    visuals. Excluded are pairs that a joint connects and pairs that touch at home, such as parts that run in each
    other. Capsules around the shapes are compared first; the shapes themselves where these are not far enough apart.
    """

    def __init__(self, kinematics: Kinematics) -> None:
        self.kinematics = kinematics
        mechanism = kinematics.mechanism
        self.bodies, tied, self.source = bodies_of(mechanism)
        names = [body.name for body in self.bodies]
        pairs = [(i, j) for i, j in itertools.combinations(range(len(names)), 2) if {names[i], names[j]} not in tied]
        self.tied = sorted(" and ".join(sorted(pair)) for pair in tied)
        if not pairs:
            problem = f"{len(names)} bodies of the description have shapes, and none of them can meet another"
            raise AnalysisError("clearance", problem, "give links collision geometry or visuals")
        self.exact = ExactDistances(self.bodies)
        counts = [len(body.shapes) for body in self.bodies]
        ends = np.cumsum(counts)
        self._spans = np.stack([ends - counts, ends], axis=1).astype(np.int64)
        self._capsules = np.array([capsule_around(s) for body in self.bodies for s in body.shapes])
        self._balls = np.array([_ball(self._capsules[a:b]) for a, b in self._spans])
        self._set_pairs(pairs)
        frames, least = link_poses(mechanism), TOUCHING * kinematics.engine.size
        home = [(frames[body.link][:3, :3], frames[body.link][:3, 3]) for body in self.bodies]
        placed = ((s, home[pairs[k][0]], t, home[pairs[k][1]], k) for s, t, k in self._shape_pairs)
        near = {k for s, at, t, other, k in placed if self.exact.between(s, at, t, other) < least}
        self.touching = [self.names[k] for k in sorted(near)]
        self._set_pairs([pair for k, pair in enumerate(pairs) if k not in near])

    def _set_pairs(self, pairs: list[tuple[int, int]]) -> None:
        sizes = [len(self.bodies[i].shapes) * len(self.bodies[j].shapes) for i, j in pairs]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._pairs = np.array([(i, j, at) for (i, j), at in zip(pairs, starts, strict=False)], dtype=np.int64)
        self._pairs = self._pairs.reshape(-1, 3)
        self._width = int(starts[-1])
        self._shape_pairs = [
            (s, t, k) for k, (i, j) in enumerate(pairs) for s in range(*self._spans[i]) for t in range(*self._spans[j])
        ]
        self.names = [f"{self.bodies[i].name} and {self.bodies[j].name}" for i, j in pairs]

    def _summary(self) -> str:
        return f"{self.kinematics.mechanism.name}: {len(self.names)} pairs of {len(self.bodies)} bodies"

    def _details(self) -> list[str]:
        return [
            f"shapes: {self.source}",
            f"left out, tied by a joint: {listed(self.tied) or 'none'}",
            f"left out, touching at home: {listed(self.touching) or 'none'}",
        ]

    @cached_property
    def needs(self) -> tuple[int, ...]:
        """Numbers of `pose_quantities` that place the bodies: positions of the limbs' joints."""
        return tuple(WIDTH + int(c) for c in self.kinematics.engine.body_column[2:] if c >= 0)

    def placed(self, poses: Array, joints: Array) -> tuple[Array, Array]:
        """Rotations (n, b, 3, 3) and positions (n, b, 3) of bodies at poses (n, 7), `joints` (needs, n) [rad, m]."""
        names = [self.kinematics.joint_names[number - WIDTH] for number in self.needs]
        values = {name: np.full(len(poses), home) for name, home in home_positions(self.kinematics.mechanism).items()}
        platform = transform(poses[:, :3], scipy.spatial.transform.Rotation.from_quat(poses[:, 3:]).as_matrix())
        frames = link_frames(self.kinematics.mechanism, platform, values | dict(zip(names, joints, strict=True)))
        missing = [body.link for body in self.bodies if body.link not in frames]
        if missing:
            problem = f"link {missing[0]} is attached to the platform's branch"
            raise AnalysisError("clearance", problem, "attach it elsewhere")
        placed = np.stack([frames[body.link] for body in self.bodies], axis=1)
        return np.ascontiguousarray(placed[..., :3, :3]), np.ascontiguousarray(placed[..., :3, 3])

    def of(self, poses: Array, joints: Array, bound: float = np.inf) -> tuple[Array, NDArray[np.int64]]:
        """Least distances (n,) [m], not positive in contact, and the pairs (n,) that have them, indices of `names`.

        Arguments as for `placed`. With a finite `bound`, distances are only on the right side of it.
        """
        values, pair = np.empty(len(poses)), np.zeros(len(poses), dtype=np.int64)
        for at in slices(len(poses), ROWS):
            rotations, places = self.placed(poses[at], joints[:, at])
            lower = np.empty((len(rotations), self._width))
            cut = np.full(len(rotations), bound)
            scratch = np.empty((len(self._capsules), 6)), np.empty((len(self.bodies), 3))
            fixed = (self._capsules, self._balls, self._spans, self._pairs)
            capsule_bounds(rotations, places, *fixed, cut, *scratch, lower)
            least = lower.argmin(axis=1)
            values[at] = lower[np.arange(len(lower)), least]
            pair[at] = [self._shape_pairs[k][2] for k in least]
            for row in np.flatnonzero(values[at] < bound):
                k = at.start + int(row)
                values[k], pair[k] = self._nearest(lower[row], rotations[row], places[row], bound)
        return values, pair

    def _nearest(self, lower: Array, rotations: Array, places: Array, bound: float) -> tuple[float, int]:
        """Least exact distance at one pose, smallest bounds first; the first one found below the bound."""
        best, pair, left = np.inf, 0, lower.copy()
        while left[k := int(left.argmin())] < min(best, bound):
            left[k] = np.inf
            s, t, of = self._shape_pairs[k]
            i, j = self._pairs[of, 0], self._pairs[of, 1]
            gap = self.exact.between(s, (rotations[i], places[i]), t, (rotations[j], places[j]))
            if gap < best:
                best, pair = gap, of
            if best < bound < np.inf:
                break
        return best, pair


def _ball(capsules: Array) -> Array:
    ends = np.concatenate([capsules[:, :3], capsules[:, 3:6]])
    reach = np.concatenate([capsules[:, 6], capsules[:, 6]])[:, None]
    middle = 0.5 * ((ends - reach).min(axis=0) + (ends + reach).max(axis=0))
    return np.append(middle, float((np.linalg.norm(ends - middle, axis=1) + reach[:, 0]).max()))
