# SPDX-License-Identifier: Apache-2.0
"""Numbers of a description that look like degrees instead of radians, or like millimetres instead of metres.

A description shows values of expressions: 21.57 rad where a property says 20 and means degrees. The number at fault in
a xacro file is found by trial: the file is expanded with its numbers turned into the other unit, and those not needed
for a plausible result are restored. Angles that enter by cosines and sines alone leave no trace in the result: these
are found in the expressions themselves.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from pkm_description.description_error import DescriptionError
from pkm_description.joint_geometry import freedoms
from pkm_description.mechanism import Joint, JointType
from pkm_description.urdf.urdf_plus import Description, parse
from pkm_description.urdf.xacro_expansion import expand_text
from pkm_description.urdf.xml_text import read_file, read_xml

ANGLE = 7.0  # rad: a full turn, and a little for those who rounded up; beyond, round numbers are degrees
TURNS = 4.0 * np.pi  # rad: beyond, computed ones too; below, k * 2 * pi / 3 + offset comes to more than a turn
LARGE = 50.0  # m
FAST = 60.0  # rad/s, 570 turns a minute: limbs do not swing as fast; slow drives in deg/s have such numbers
FAST_SLIDE = 20.0  # m/s
BESIDE, OTHERS = 5.0, 100.0  # m, and times what the lengths of the same robot commonly are: one slip among metres
WIDE = 10.0  # radius of gyration of a body, times the largest length of the robot
MOST = 40  # expansions, each a tenth of a second
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"<([\w:]+)((?:\s+[\w:.]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*)\s*/?>")
_ATTRIBUTE = re.compile(r"([\w:.]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_NUMBER = re.compile(r"(?<![\w.])(?:(?<![\w)\]}.])-)?\d+\.?\d*(?:[eE][-+]?\d+)?(?![\w.])")
_TRIGONOMETRIC = {"cos", "sin", "tan"}
_EXPRESSION = re.compile(r"\$\{([^{}]*)\}")
_SET = re.compile(
    r"<xacro:(?:property|arg)\s+name\s*=\s*[\"'](\w+)[\"']\s+(?:value|default)\s*=\s*[\"']\$\{([^{}]*)\}[\"']"
)
_GIVEN = re.compile(r"(\w+)\s*=\s*[\"']\$\{([^{}]*)\}[\"']")  # arguments in calls of macros


class Slip(Enum):
    """The unit written instead of radians, metres or kg m^2."""

    DEGREES = "degrees"
    MILLIMETRES = "mm"
    SLIDE = "mm of a slide"
    INERTIA = "kg mm^2"

    @property
    def factor(self) -> float:
        """Factor from the number to SI units."""
        return {Slip.DEGREES: np.pi / 180.0, Slip.INERTIA: 1e-6}.get(self, 1e-3)

    @property
    def si(self) -> str:
        """The SI unit."""
        return {Slip.DEGREES: "rad", Slip.INERTIA: "kg m^2"}.get(self, "m")


@dataclass(frozen=True)
class Suspect:
    """A number that looks like another unit's."""

    slip: Slip
    about: str  # element, for people
    attribute: str  # of the element, where it has several such numbers
    value: float  # rad, m or kg m^2, as it would be taken


def suspects(description: Description, root: ElementTree.Element) -> list[Suspect]:
    """Numbers that look like another unit's, limits first; `root` is the text with angles as written."""
    return [*_angles(description, root), *_lengths(description), *_slides(description), *_inertias(description)]


def in_words(found: Sequence[Suspect]) -> list[str]:
    """Each unit other than SI that numbers look like, with the largest of them."""
    ascending = sorted(found, key=lambda one: abs(one.value))
    return [
        f"{one.about}: {one.value:.4g} looks like {one.slip.value}; write {one.slip.si}"
        for one in {one.slip: one for one in ascending}.values()
    ]


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


def _inertias(description: Description) -> Iterator[Suspect]:
    bodies = [(link.name, link.inertial) for link in description.links if link.inertial.mass > 0.0]
    points = [joint.origin[:3, 3] for joint in description.joints] + [body.com for _, body in bodies]
    points += [frame[:3, 3] for loop in description.loops for frame in (loop.predecessor_frame, loop.successor_frame)]
    size = max(map(np.linalg.norm, points), default=0.0)
    for name, body in bodies:
        moment = float(np.abs(body.inertia.diagonal()).max())
        if size > 0.0 and moment > body.mass * (WIDE * size) ** 2:
            yield Suspect(Slip.INERTIA, f'<link name="{name}"> <inertia>', "", moment)


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


LEAST = {Slip.DEGREES: ANGLE, Slip.MILLIMETRES: 10.0, Slip.SLIDE: 10.0}  # as written; below are counts and indices


@dataclass(frozen=True)
class Written:
    """A number as the author of a file wrote it."""

    element: str  # such as `<xacro:property name="rod_length">`
    attribute: str
    line: int
    start: int  # place in the text
    end: int
    value: float

    @property
    def place(self) -> str:
        """Its location."""
        return f"line {self.line}: {self.element}, {self.attribute}"


def numbers(text: str) -> Iterator[Written]:
    """All numbers in attributes of a xacro text, those of properties and macros first."""
    bare = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    tags = sorted(_TAG.finditer(bare), key=lambda tag: not tag[1].startswith("xacro:"))
    for tag in tags:
        name = re.search(r"\bname\s*=\s*[\"']([^\"'$]*)[\"']", tag[2])
        element = f'<{tag[1]} name="{name[1]}">' if name else f"<{tag[1]}>"
        for attribute in _ATTRIBUTE.finditer(bare, tag.start(2), tag.end(2)):
            group = 2 if attribute[2] is not None else 3
            for number in _NUMBER.finditer(bare, attribute.start(group), attribute.end(group)):
                line = text.count("\n", 0, number.start()) + 1
                yield Written(element, attribute[1], line, number.start(), number.end(), float(number[0]))


def blamed(path: Path, arguments: Mapping[str, str] | None, slip: Slip) -> list[Written]:
    """Numbers of a xacro file which, turned into radians or metres, explain all slips of this factor; or none."""
    text = read_file(path)
    tries = 0

    def explained(changed: Sequence[Written]) -> bool:
        """Whether nothing looks wrong with some numbers turned."""
        nonlocal tries
        tries += 1
        try:
            description = expand_text(turned(text, changed, slip.factor), arguments, beside=path)
            left = suspects(parse(description), read_xml(description, "text"))
        except DescriptionError:
            return False
        return not [one for one in left if one.slip.factor == slip.factor]

    changed = [one for one in numbers(text) if abs(one.value) >= LEAST[slip] and not _in_radians(text, one, slip)]
    if not changed or not explained(changed):
        return []
    share = len(changed)  # how many are left as they are at once, to see whether they matter
    while share > 0:
        for part in [changed[i : i + share] for i in range(0, len(changed), share)]:
            fewer = [one for one in changed if one not in part]
            if tries < MOST and fewer and explained(fewer):
                changed = fewer
        share //= 2
    return changed if tries < MOST else []


def turned(text: str, changed: Sequence[Written], factor: float) -> str:
    """The text with some numbers multiplied by a factor."""
    for one in sorted(changed, key=lambda one: -one.start):
        text = f"{text[: one.start]}{one.value * factor!r}{text[one.end :]}"
    return text


def _in_radians(text: str, number: Written, slip: Slip) -> bool:
    around = text[max(0, number.start - 20) : number.start]
    return slip is Slip.DEGREES and bool(re.search(r"radians\(\s*$", around))


def taken_as_radians(text: str) -> list[Written]:
    """Whole values of properties or arguments that look like degrees and enter cosines, sines and tangents."""
    bare = _COMMENT.sub("", text)
    literals = _literals(text)
    signs = {name for name, found in literals.items() if all(abs(one.value) <= 1.0 for one in found)}
    made: dict[str, list[ast.expr]] = defaultdict(list)  # expressions by the property or argument that they make
    for name, expression in [*_SET.findall(bare), *_GIVEN.findall(bare)]:
        made[name] += _parsed(expression)
    signs -= made.keys()
    calls = [call for found in _EXPRESSION.findall(bare) for tree in _parsed(found) for call in ast.walk(tree)]
    arguments = [
        argument
        for call in calls
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _TRIGONOMETRIC
        for argument in call.args
    ]
    angles: set[str] = set()
    while arguments:
        for name in _terms(arguments.pop(), signs):
            if name not in angles:
                angles.add(name)
                arguments += made[name]
    return [one for name in sorted(angles) for one in literals.get(name, ()) if looks_like_degrees(one.value)]


def _literals(text: str) -> dict[str, list[Written]]:
    found: dict[str, list[Written]] = defaultdict(list)
    for one in numbers(text):
        if text[one.start - 1] in "\"'" and text[one.end] in "\"'" and one.element.startswith("<xacro:"):
            name = re.search(r'<xacro:(?:property|arg) name="(\w+)">', one.element)
            found[name[1] if name else one.attribute].append(one)
    return found


def _parsed(expression: str) -> Sequence[ast.expr]:
    """Tree of an expression; empty where it is not Python, such as one with another substitution."""
    try:
        return [ast.parse(expression.strip(), mode="eval").body]
    except SyntaxError:
        return []


def _terms(tree: ast.expr, signs: set[str]) -> Iterator[str]:
    """Names of the terms of an angle; of products those whose other factors are all signs."""
    if isinstance(tree, ast.Name):
        yield tree.id
    elif isinstance(tree, ast.UnaryOp):
        yield from _terms(tree.operand, signs)
    elif isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Add, ast.Sub)):
        yield from _terms(tree.left, signs)
        yield from _terms(tree.right, signs)
    elif isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Mult):
        for factor, other in ((tree.left, tree.right), (tree.right, tree.left)):
            if isinstance(other, ast.Name) and other.id in signs:
                yield from _terms(factor, signs)
