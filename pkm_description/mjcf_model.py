# SPDX-License-Identifier: Apache-2.0
"""What a MuJoCo model says of a mechanism: plain records, whoever read them. Frames are (4, 4) transforms."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pkm_description.mechanism import Array
from pkm_description.transforms import transform

WORLD = "world"


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


@dataclass
class MjcfGeom:
    """A picture: `kind` is box, sphere, cylinder or capsule; `size` are radii and half lengths in MuJoCo's order."""

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
class MjcfModel:
    """A model; bodies in topological order, the world not among them. `home` are positions by MuJoCo's order."""

    name: str
    gravity: Array
    bodies: list[MjcfBody] = field(default_factory=list)
    closures: list[MjcfClosure] = field(default_factory=list)
    gears: list[MjcfGear] = field(default_factory=list)
    actuators: list[MjcfActuator] = field(default_factory=list)
    home: list[float] | None = None


def frame_of(pos: Array, quaternion: Array) -> Array:
    """Transform (4, 4) from a position (3,) and a quaternion w x y z, as MuJoCo orders it, of any length."""
    w, x, y, z = np.asarray(quaternion) / np.linalg.norm(quaternion)
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    return transform(np.asarray(pos, dtype=np.float64), rotation)


def quaternion(rotation: Array) -> list[float]:
    """Unit quaternion w x y z, as MuJoCo orders it, of a rotation (3, 3)."""
    r = rotation
    outer = np.empty((4, 4))
    outer[0] = [1.0 + np.trace(r), r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]]
    outer[1:, 0] = outer[0, 1:]
    outer[1:, 1:] = r + r.T + (1.0 - np.trace(r)) * np.eye(3)
    row = outer[int(np.argmax(np.diag(outer)))]
    unit = row / np.linalg.norm(row)
    return [float(v) for v in (unit if unit[0] >= 0.0 else -unit)]
