# SPDX-License-Identifier: Apache-2.0
"""Tools on a platform: named points in its frame, and their file (YAML). `docs/motion_files.md` has every key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from pkm_description.mechanism import Array, Inertial
from pkm_description.rotations import (
    quaternion_from_rotation,
    quaternion_inverse,
    quaternion_product,
    rotation_from_rpy,
)
from pkm_dynamics.weight import together
from pkm_runtime.errors import PkmError, nearest, shortened
from pkm_runtime.yaml_section import Section, read_yaml

_LENGTH = (-1e3, 1e3)  # m
_MOST = 1e5  # kg


class ToolError(PkmError):
    """There is no such tool; the message names the nearest."""


@dataclass(frozen=True, eq=False)
class Tool:
    """A point for poses: `pose` (7,), its mass [kg] and centre of mass `com` (3,) [m], platform frame."""

    name: str
    pose: Array
    mass: float
    com: Array

    @property
    def offset(self) -> bool:
        """Whether its point differs from the platform's origin."""
        return bool(self.pose[:3].any())

    def of_platform(self, poses: Array) -> Array:
        """Poses of the platform (..., 7) for poses of the tool (..., 7), base frame."""
        poses = np.asarray(poses, dtype=np.float64)
        attitude = quaternion_product(poses[..., 3:], quaternion_inverse(self.pose[3:]))
        return np.concatenate([poses[..., :3] - _turned(attitude, self.pose[:3]), attitude], axis=-1)

    def on_platform(self, poses: Array) -> Array:
        """Poses of the tool (..., 7) for poses of the platform (..., 7), base frame."""
        poses = np.asarray(poses, dtype=np.float64)
        attitude = quaternion_product(poses[..., 3:], self.pose[3:])
        return np.concatenate([poses[..., :3] + _turned(poses[..., 3:], self.pose[:3]), attitude], axis=-1)

    def platform_motion(self, pose: Array, twist: Array, acceleration: Array) -> tuple[Array, Array, Array]:
        """Pose (n, 7), twist and acceleration (n, 6) of the platform's origin from those of the tool, base frame."""
        there = self.of_platform(pose)
        arm = pose[:, :3] - there[:, :3]
        rate, change = twist[:, 3:], acceleration[:, 3:]
        velocity = twist[:, :3] - np.cross(rate, arm)
        second = acceleration[:, :3] - np.cross(change, arm) - np.cross(rate, np.cross(rate, arm))
        return there, np.hstack([velocity, rate]), np.hstack([second, change])

    def payload(self, carried: float) -> Inertial | None:
        """Tool and a load of `carried` [kg] at its point as one body, platform frame; None where both weigh nothing."""
        return together(point_mass(self.mass, self.com), point_mass(carried, self.pose[:3]))


def point_mass(mass: float, at: Array) -> Inertial | None:
    """Point mass [kg] at (3,) [m], platform frame; None where it weighs nothing."""
    return Inertial(mass, np.array(at, dtype=np.float64)) if mass > 0.0 else None


def read_tools(path: str) -> Mapping[str, Tool]:
    """Tools by name from their file; none for an empty path. Raises `ConfigurationError` where it cannot be used."""
    if not path:
        return MappingProxyType({})
    source, values = read_yaml(path)
    top = Section(source, "", values)
    sections = {str(name): Section(source, f"tools.{name}", one) for name, one in top.mapping("tools").items()}
    found = {name: _tool(name, section) for name, section in sections.items()}
    top.finish()
    if not found:
        raise top.wrong("tools", "names no tool", "give at least one, with xyz")
    return MappingProxyType(found)


def _tool(name: str, section: Section) -> Tool:
    xyz = np.array(section.numbers("xyz", (3,)))
    rpy = np.array(section.numbers("rpy", (3,), [0.0] * 3))
    com = np.array(section.numbers("com", (3,), xyz.tolist()))
    if (np.abs([*xyz, *com]) > _LENGTH[1]).any():
        raise section.wrong("xyz", "is more than a kilometre away", "give metres in the platform's frame")
    mass = section.number("mass", 0.0, (0.0, _MOST))
    section.finish()
    return Tool(name, np.concatenate([xyz, quaternion_from_rotation(rotation_from_rpy(rpy))]), mass, com)


def tool_named(name: str, tools: Mapping[str, Tool]) -> Tool:
    """The tool of a name; `ToolError` with the nearest name where there is none."""
    if name in tools:
        return tools[name]
    asked = f"there is no tool '{shortened(name)}'"
    if not tools:
        raise ToolError(f"{asked}: no file of tools was given (tool_file)")
    known = f"there are {', '.join(sorted(tools))}"
    raise ToolError(f"{asked}; {nearest(name, tools, known)}")


def _turned(attitude: Array, vector: Array) -> Array:
    axis, w = attitude[..., :3], attitude[..., 3:]
    along = np.cross(axis, np.broadcast_to(vector, axis.shape))
    return np.asarray(vector + 2.0 * (w * along + np.cross(axis, along)))
