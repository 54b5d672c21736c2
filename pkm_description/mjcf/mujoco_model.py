# SPDX-License-Identifier: Apache-2.0
"""A MuJoCo model as plain records, whatever reader made them. Frames are (4, 4) transforms."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from pkm_description.mechanism import Array, Coupling
from pkm_description.rotations import quaternion_from_rotation, rotation_from_quaternion, transform

WORLD = "world"
REMARK = "pkm"  # name of the <text> in <custom> that has what MJCF has no word for


@dataclass
class MjcfJoint:
    """A joint: `kind` is hinge, slide, ball or free; `pos` and `axis` (3,) are in the body's frame."""

    name: str
    kind: str
    pos: Array
    axis: Array
    limits: tuple[float, float] | None = None
    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    reference: float = 0.0  # position at which the body stands as drawn
    stiffness: float = 0.0  # of a spring that rests at the position `rest`
    rest: float = 0.0


@dataclass
class MjcfGeom:
    """A visual: `kind` is box, sphere, cylinder or capsule; `size` are radii and half lengths in MuJoCo's order."""

    kind: str
    size: list[float]
    frame: Array
    rgba: str


@dataclass
class MjcfBody:
    """A body in its parent's frame, with its inertia (3, 3) about the centre of mass in body axes."""

    name: str
    parent: str
    frame: Array
    mass: float = 0.0
    com: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))
    joints: list[MjcfJoint] = field(default_factory=list)
    geoms: list[MjcfGeom] = field(default_factory=list)


@dataclass
class MjcfClosure:
    """An equality constraint: `kind` is connect or weld; the two frames, each in its body, coincide."""

    name: str
    kind: str
    first: str
    second: str
    first_frame: Array
    second_frame: Array


@dataclass
class MjcfGear:
    """An equality between joints: position(follower) = offset + ratio * position(leader)."""

    follower: str
    leader: str
    offset: float
    ratio: float


@dataclass
class MjcfActuator:
    """A drive of a joint: `interface` is effort, position or velocity; `effort` its limit, infinite if none."""

    joint: str
    interface: str
    effort: float = np.inf


@dataclass
class MjcfSpring:
    """A spring between a point (3,) of one body and one of another, each in its body's frame."""

    name: str
    first: str
    first_point: Array
    second: str
    second_point: Array
    stiffness: float
    length: float  # without force


@dataclass
class MjcfModel:
    """A model; bodies in topological order, the world not among them. `home` are positions by MuJoCo's order."""

    name: str
    gravity: Array
    bodies: list[MjcfBody] = field(default_factory=list)
    closures: list[MjcfClosure] = field(default_factory=list)
    gears: list[MjcfGear] = field(default_factory=list)
    actuators: list[MjcfActuator] = field(default_factory=list)
    springs: list[MjcfSpring] = field(default_factory=list)
    couplings: list[Coupling] = field(default_factory=list)
    locked: list[tuple[str, float]] = field(default_factory=list)  # joints held by equalities, and where
    home: list[float] | None = None
    notes: list[str] = field(default_factory=list)


def append(parent: ET.Element, tag: str, **attributes: str) -> ET.Element:
    """A new element at the end of its parent."""
    return ET.SubElement(parent, tag, attributes)


def row(values: Iterable[float]) -> str:
    """Numbers with all digits, a zero without sign."""
    return " ".join(repr(float(v) + 0.0) for v in values)


def frame_of(pos: Array, quaternion: Array) -> Array:
    """Transform (4, 4) from a position (3,) and a quaternion w x y z, as MuJoCo orders it, of any length."""
    return transform(np.asarray(pos, dtype=np.float64), rotation_from_quaternion(np.roll(quaternion, -1)))


def quaternion(rotation: Array) -> list[float]:
    """Unit quaternion w x y z, as MuJoCo orders it, of a rotation (3, 3)."""
    x, y, z, w = quaternion_from_rotation(rotation).tolist()
    return [w, x, y, z]
