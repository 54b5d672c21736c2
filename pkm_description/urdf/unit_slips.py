# SPDX-License-Identifier: Apache-2.0
"""Numbers of a description that look like degrees instead of radians, or like millimetres instead of metres."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from xml.etree import ElementTree

import numpy as np

from pkm_description.joint_geometry import freedoms
from pkm_description.mechanism import Joint, JointType
from pkm_description.urdf.urdf_plus import Description

ANGLE = 7.0  # rad: a full turn, and a little for those who rounded up; beyond, round numbers are degrees
TURNS = 4.0 * np.pi  # rad: beyond, computed ones too; below, k * 2 * pi / 3 + offset comes to more than a turn
LARGE = 50.0  # m
FAST = 60.0  # rad/s, 570 turns a minute: limbs do not swing as fast; slow drives in deg/s have such numbers
FAST_SLIDE = 20.0  # m/s
BESIDE, OTHERS = 5.0, 100.0  # m, and times what the lengths of the same robot commonly are: one slip among metres


class Slip(Enum):
    """The unit written instead of radians or metres."""

    DEGREES = "degrees"
    MILLIMETRES = "mm"
    SLIDE = "mm of a slide"

    @property
    def factor(self) -> float:
        """Factor from the number to radians or metres."""
        return float(np.pi / 180.0) if self is Slip.DEGREES else 1e-3


@dataclass(frozen=True)
class Suspect:
    """A number that looks like another unit's."""

    slip: Slip
    about: str  # element, for people
    attribute: str  # of the element, where it has several such numbers
    value: float  # rad or m, as it would be taken


def suspects(description: Description, root: ElementTree.Element) -> list[Suspect]:
    """All numbers of a description that look like another unit's, joint limits first.

    Then positions at home, `rpy`, lengths, slides. `root` is the text as XML, with angles as written.
    """
    return [*_angles(description, root), *_lengths(description), *_slides(description)]


def _angles(description: Description, root: ElementTree.Element) -> Iterator[Suspect]:
    for joint in description.joints:
        if joint.type is JointType.REVOLUTE:
            for end, value in _ends(joint):
                if looks_like_degrees(value):
                    yield Suspect(Slip.DEGREES, f'<joint name="{joint.name}"> <limit>', end, value)
    turning = {f.name for joint in description.joints for f in freedoms(joint) if not f.slides}
    for name, position in description.home_joints.items():
        if name in turning and looks_like_degrees(position):
            yield Suspect(Slip.DEGREES, f'position of <joint name="{name}"> at home', "", position)
    yield from _written_angles(root, "")


def _written_angles(element: ElementTree.Element, around: str) -> Iterator[Suspect]:
    """Elements with too large an rpy angle, with their largest one; named by the element around them."""
    tag = str(element.tag).split("}")[-1]
    here = f'<{tag} name="{element.get("name")}">' if element.get("name") else around
    try:
        largest = max((float(x) for x in (element.get("rpy") or "").split()), key=abs, default=0.0)
    except ValueError:  # told by whoever reads the description
        largest = 0.0
    if looks_like_degrees(largest):
        yield Suspect(Slip.DEGREES, f"rpy of <{tag}> in {here or '<robot>'}", "", largest)
    for child in element:
        yield from _written_angles(child, here)


def looks_like_degrees(angle: float) -> bool:
    """Whether an angle is round beyond a turn, or beyond two turns: a computed angle has all its digits."""
    return abs(angle) > TURNS or (abs(angle) > ANGLE and abs(angle - round(angle, 2)) < 1e-9)


def _lengths(description: Description) -> Iterator[Suspect]:
    lengths = {f'<joint name="{j.name}"> <origin>': float(np.linalg.norm(j.origin[:3, 3])) for j in description.joints}
    for loop in description.loops:
        for frame in (loop.predecessor_frame, loop.successor_frame):
            about = f'<loop name="{loop.name}"> <origin>'
            lengths[about] = max(lengths.get(about, 0.0), float(np.linalg.norm(frame[:3, 3])))
    for spring in description.springs:
        ends = max(float(np.linalg.norm(point)) for point in (spring.from_point, spring.to_point))
        lengths[f'<spring name="{spring.name}">'] = max(ends, spring.rest_length)
    if description.home is not None:
        lengths["<pkm> <home>"] = float(np.linalg.norm(description.home[:3, 3]))
    common = float(np.median([length for length in lengths.values() if length > 0.0] or [0.0]))
    for about, length in lengths.items():
        if length > LARGE or length > max(BESIDE, OTHERS * common):
            yield Suspect(Slip.MILLIMETRES, about, "", length)


def _slides(description: Description) -> Iterator[Suspect]:
    for joint in description.joints:
        if joint.type is JointType.PRISMATIC:
            for end, value in _ends(joint):
                if abs(value) > LARGE:
                    yield Suspect(Slip.SLIDE, f'<joint name="{joint.name}"> <limit>', end, value)


def _ends(joint: Joint) -> Iterator[tuple[str, float]]:
    for end in ("upper", "lower"):
        value = float(getattr(joint.limits, end))
        if np.isfinite(value):
            yield end, value
