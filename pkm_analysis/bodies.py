# SPDX-License-Identifier: Apache-2.0
"""The rigid bodies of a robot, their shapes, and which pairs of them can meet."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pkm_description.mechanism import Array, JointType, LoopType, Mechanism
from pkm_description.picture import link_poses
from pkm_description.urdf.visuals import Visual, collisions_of, visuals_of
from pkm_runtime.optional import optional_library


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
    trimesh = optional_library("trimesh", "trimesh", "clearances of meshes")
    mesh = trimesh.load(str(shape.mesh), force="mesh")
    return np.asarray(mesh.vertices) * shape.size, np.asarray(mesh.faces)


def pairs_of(bodies: list[Body], tied: set[frozenset[str]]) -> list[tuple[int, int]]:
    """Indices of all pairs of bodies except those that joints connect."""
    return [
        (i, j)
        for i, j in itertools.combinations(range(len(bodies)), 2)
        if frozenset((bodies[i].name, bodies[j].name)) not in tied
    ]
