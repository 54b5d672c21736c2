# SPDX-License-Identifier: Apache-2.0
"""Places that a platform and its tool keep out of, and their file (YAML, `docs/keep_out.md` has every key)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pkm_control.kernels.clearance import COLUMNS, clearances
from pkm_description.mechanism import Array
from pkm_description.rotations import rotation_from_rpy
from pkm_kinematics.kernels.compiled_rotations import displace, displacement_between
from pkm_runtime.yaml_section import Section, read_yaml

MARGIN = 5e-3  # m, where a file says none: of tools and what they may meet, whose size is not the robot's
_FINE = 0.2  # of the margin: how far the tool goes at most between two looks near a place
_MOST = 200  # looks between two samples


@dataclass(frozen=True)
class RoundedBox:
    """A box with rounded edges [m]: centre, half sizes, rotation (rows of a matrix), radius added all around.

    With two half sizes of zero it is a capsule, with three a sphere.
    """

    centre: tuple[float, float, float]
    half: tuple[float, float, float]
    rotation: tuple[tuple[float, float, float], ...] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    radius: float = 0.0

    def row(self) -> Array:
        """Numbers (COLUMNS,) for `kernels/clearance.py`; `ValueError` where a number makes no sense."""
        rotation = np.array(self.rotation, dtype=np.float64)
        numbers = np.array([*self.centre, *rotation.T.ravel(), *self.half, self.radius])
        if not np.isfinite(numbers).all() or numbers[12:].min() < 0.0:
            raise ValueError(f"a box at {self.centre} of half sizes {self.half} and radius {self.radius} m")
        if not np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-6):
            raise ValueError("the rotation of a box is not a rotation matrix")
        return numbers


def capsule(start: Sequence[float], end: Sequence[float], radius: float) -> RoundedBox:
    """Capsule about a segment: all points within a radius of it [m]."""
    a, b = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    length = float(np.linalg.norm(b - a))
    axis = (b - a) / length if length > 0.0 else np.array([0.0, 0.0, 1.0])
    side = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    side /= np.linalg.norm(side)
    rotation = np.column_stack([side, np.cross(axis, side), axis])
    x, y, z = 0.5 * (a + b)
    return RoundedBox((x, y, z), (0.0, 0.0, 0.5 * length), tuple((r[0], r[1], r[2]) for r in rotation), radius)


class KeepOuts:
    """A tool, by parts in the platform's frame (none: its origin), and named places in the base frame from which it
    stays away by a margin [m]. Calls may run in several threads.
    """

    def __init__(
        self, places: Mapping[str, RoundedBox], tool: Sequence[RoundedBox] = (), margin: float = MARGIN
    ) -> None:
        if not (math.isfinite(margin) and margin > 0.0):
            raise ValueError(f"the margin is {margin} m; give more than zero")
        self.margin = margin
        self.names = tuple(places)
        self._places = np.array([place.row() for place in places.values()]).reshape(len(places), COLUMNS)
        parts = list(tool) or [RoundedBox((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))]
        self._parts = np.array([part.row() for part in parts])
        reach = np.linalg.norm(self._parts[:, :3], axis=1) + np.linalg.norm(self._parts[:, 12:15], axis=1)
        self._reach = float((reach + self._parts[:, 15]).max())  # of the tool from the platform's origin, m

    def clearance(self, poses: Array) -> tuple[Array, NDArray[np.int64]]:
        """Lower bound (n,) [m] on the distance of the tool at poses (n, 7) to the nearest place, and its number (n,).
        Less than zero inside a place; without any place, huge, with the number -1.
        """
        poses = np.ascontiguousarray(poses, dtype=np.float64)
        found, which = np.empty(len(poses)), np.empty(len(poses), dtype=np.int64)
        clearances(self._parts, self._places, poses, np.empty((3, 3)), np.empty(COLUMNS), found, which)
        return found, which

    def distance(self, pose: Array) -> float:
        """The same lower bound [m] at one pose (7,), base frame."""
        return float(self.clearance(pose[None])[0][0])

    def lacks(self, poses: Array, margin: float) -> Array:
        """Clearance (n,) missing of a margin [m] at poses (n, 7) and on the way to each from the last; 0: none."""
        clear = self.clearance(poses)[0]
        if len(poses) > 1:
            ways = np.array([displacement_between(a, b) for a, b in pairwise(poses)])
            far = np.linalg.norm(ways[:, :3], axis=1) + self._reach * np.linalg.norm(ways[:, 3:], axis=1)
            near = np.minimum(clear[:-1], clear[1:]) < margin + 0.5 * far
            for i in np.flatnonzero(near & (far > _FINE * margin)):
                shares = np.linspace(0.0, 1.0, min(_MOST, math.ceil(far[i] / (_FINE * margin))) + 1)[1:-1]
                between = np.array([displace(poses[i], share * ways[i]) for share in shares]).reshape(-1, 7)
                clear[i + 1] = min(clear[i + 1], self.clearance(between)[0].min(initial=np.inf))
        return np.asarray(np.maximum(margin - clear, 0.0))

    def reason(self, pose: Array) -> str:
        """Message that the tool is too near at a pose (7,), with the name of the nearest place."""
        which = int(self.clearance(pose[None])[1][0])
        return f"the tool comes too near to '{self.names[which]}'"


_LENGTH = (0.0, 1e6)  # m


def read_keep_outs(path: str) -> KeepOuts | None:
    """Read the file; None for an empty path. Raises `ConfigurationError` where it cannot be read or used."""
    if not path:
        return None
    source, values = read_yaml(path)
    top = Section(source, "", values)
    margin = top.number("margin", MARGIN, (1e-5, 10.0))
    places = {
        str(name): _box(Section(source, f"keep_outs.{name}", one)) for name, one in top.mapping("keep_outs").items()
    }
    tool = [_box(Section(source, f"tool.{name}", one)) for name, one in top.mapping("tool").items()]
    top.finish()
    if not places:
        raise top.wrong("keep_outs", "names no place", "give at least one, with center and size")
    return KeepOuts(places, tool, margin)


def _box(section: Section) -> RoundedBox:
    radius = section.number("radius", 0.0, _LENGTH)
    if section.has("from"):
        shape = capsule(section.numbers("from", (3,)), section.numbers("to", (3,)), radius)
    else:
        rotation = rotation_from_rpy(np.array(section.numbers("rpy", (3,), [0.0] * 3)))
        x, y, z = section.numbers("center", (3,))
        a, b, c = (0.5 * one for one in section.numbers("size", (3,)))
        shape = RoundedBox((x, y, z), (a, b, c), tuple((r[0], r[1], r[2]) for r in rotation), radius)
    section.finish()
    try:
        shape.row()
    except ValueError as error:
        raise section.wrong("", str(error), "sizes are zero or more") from error
    return shape
