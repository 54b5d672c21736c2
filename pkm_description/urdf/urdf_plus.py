# SPDX-License-Identifier: Apache-2.0
"""Parser of URDF+ text: every element read into plain data, or refused by an error that names it.

URDF+ (Chignoli, Slotine, Wensing, Kim, "URDF+: an enhanced URDF for robots with kinematic loops", 2024) adds `<loop>`
to URDF; `<pkm>` is ours. Elements without meaning for the model (visuals, sensors, plugins) are skipped. The whole (a
tree, closable loops, enough actuators) is checked elsewhere.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from pkm_description.description_error import DescriptionError, or_near
from pkm_description.graph import check_ends
from pkm_description.joint_geometry import freedoms
from pkm_description.mechanism import (
    RIGID,
    Array,
    Beam,
    Bearing,
    Cable,
    Coupling,
    Drive,
    Inertial,
    Joint,
    JointType,
    Limits,
    Link,
    Loop,
    LoopType,
    Mimic,
    Section,
    Spring,
    frozen,
)
from pkm_description.rotations import rotation_from_rpy, transform
from pkm_description.sections import MATERIALS, hollow_section, rectangle, tube
from pkm_description.urdf.inertia import inertia_problem
from pkm_description.urdf.xacro_expansion import XACRO_NAMESPACE
from pkm_description.urdf.xml_text import read_xml

ZERO_LENGTH = 1e-9
# At most. The largest robot of the gallery has 32 links and 9 loops, none of the literature more than a few dozen; 60
# loops take seconds to close, also where they cannot be, so that a text from a topic does not hold a node for minutes.
PARTS = {"link": 500, "joint": 500, "loop": 60, "spring": 500, "coupling": 500}
LARGEST = 1e9  # of any number but a limit: beyond it, squares and products of a solver overflow
SPRING = ("name", "stiffness", "rest_length", "preload")  # attributes
NAME = 200  # characters of a name, at most
Kind = TypeVar("Kind", JointType, LoopType)


@dataclass
class Description:
    """Elements of a URDF+ text, before they are checked as a whole."""

    name: str
    base_link: str
    platform_link: str  # empty in a tree without one
    gravity: Array
    home: Array | None
    home_joints: dict[str, float]  # positions of degrees of freedom by name: initial values, and joints of <home>
    kinematics_only: bool
    accept_singular: bool
    links: list[Link]
    joints: list[Joint]
    loops: list[Loop]
    springs: list[Spring] = field(default_factory=list)
    actuated: list[str] = field(default_factory=list)
    # joints, or degrees of freedom, of <redundant>: how far each follows the platform (3,), per m
    redundant: dict[str, Array] = field(default_factory=dict)
    couplings: list[Coupling] = field(default_factory=list)


def parse(text: str, source: str = "", *, tree: bool = False) -> Description:
    """Elements of plain URDF+ text; `DescriptionError` for the first unusable one.

    A `tree` needs neither `<pkm>` nor a platform, drives or loops; its base is the root link unless it is named.
    """
    root = _root(text, source)
    name = root.get("name") or "robot"
    pkm = ET.Element("pkm") if tree and root.find("pkm") is None else _single_pkm(root)
    accept = _flag(pkm, "<pkm>", "accept_invalid_inertia")
    links = [link_of(element, accept) for element in _named(root, "link")]
    if not links:
        raise DescriptionError("<robot>", "it has no links", "add a <link> for each body")
    joints = [joint_of(element) for element in _named(root, "joint")]
    loops = [loop_of(element) for element in _named(root, "loop")]
    if not loops and not tree:
        raise DescriptionError(
            "<robot>",
            "it has no <loop>: the robot is serial or a tree",
            'close each limb on the platform with <loop name="..." type="...">',
        )
    link_names = [link.name for link in links]
    for loop in loops:
        check_ends(f'<loop name="{loop.name}">', link_names, predecessor=loop.predecessor, successor=loop.successor)
    springs = [_spring(element) for element in _named(root, "spring")]
    for spring in springs:
        check_ends(spring_label(spring), link_names, **{"from link": spring.from_link, "to link": spring.to_link})
    drives, starts = _drives(root, {joint.name: joint for joint in joints})
    if not drives and not tree:
        raise DescriptionError(
            "<ros2_control>",
            "no joint is actuated",
            'give each driven joint a <command_interface name="effort"/> in the <ros2_control> block',
        )
    children = {joint.child for joint in joints}
    root_link = next((link for link in link_names if tree and link not in children), None)
    description = Description(
        name=name,
        base_link=_link_of_pkm(pkm, "base_link", link_names, root_link),
        platform_link=_link_of_pkm(pkm, "platform_link", link_names, "" if tree else None),
        gravity=_vector(pkm, "gravity", "<pkm>", default="0 0 -9.81"),
        home=None,
        home_joints=starts,
        kinematics_only=_flag(pkm, "<pkm>", "kinematics_only"),
        accept_singular=_flag(pkm, "<pkm>", "accept_singular"),
        links=links,
        joints=[replace(joint, drive=drives.get(joint.name)) for joint in joints],
        loops=loops,
        springs=springs,
        actuated=list(drives),
        redundant=_redundant(pkm),
        couplings=[_coupling(element, joints) for element in _named(root, "coupling")],
    )
    if description.base_link == description.platform_link:
        raise DescriptionError(
            "<pkm>",
            f"base_link and platform_link are both {description.base_link!r}",
            "name the fixed body as base_link and the moving one as platform_link",
        )
    _read_home(pkm, description)
    return description


def is_tree(text: str) -> bool:
    """Whether a text says that it has no platform, by an empty `platform_link`, as trees are written."""
    pkm = read_xml(text, "URDF text").find("pkm")
    return pkm is not None and pkm.get("platform_link") == ""


def _root(text: str, source: str) -> ET.Element:
    place = f"file {source}" if source else "URDF text"
    root = read_xml(text, place)
    if _tag(root) != "robot":
        raise DescriptionError(place, f"the root element is <{_tag(root)}>", "start with <robot name='...'>")
    foreign = next((element for element in root.iter() if str(element.tag).startswith(f"{{{XACRO_NAMESPACE}}}")), None)
    if foreign is not None:
        raise DescriptionError(
            place, f"it holds <xacro:{_tag(foreign)}>, but only files are expanded", "give the output of xacro"
        )
    return root


def _tag(element: ET.Element) -> str:
    return element.tag.rsplit("}", 1)[-1]


def _single_pkm(root: ET.Element) -> ET.Element:
    found = root.findall("pkm")
    remedy = 'write <pkm base_link="..." platform_link="..."/> once, directly under <robot>'
    if not found:
        raise DescriptionError("<pkm>", "it is missing; base and platform have no names", remedy)
    if len(found) > 1:
        raise DescriptionError("<pkm>", f"it appears {len(found)} times", remedy)
    return found[0]


def check_number(tag: str, number: int) -> None:
    """Refuse more elements of a kind than `PARTS` allows."""
    if number > PARTS[tag]:
        raise DescriptionError("<robot>", f"it has more than {PARTS[tag]} {tag}s", "describe one robot in a file")


def _named(root: ET.Element, tag: str) -> Iterable[ET.Element]:
    """Elements `tag` directly under the root, with unique names."""
    seen = set()
    for number, element in enumerate(root.findall(tag), start=1):
        name = element.get("name")
        if not name:
            raise DescriptionError(f"<{tag}> number {number}", "it has no name", 'add the attribute name="..."')
        if len(name) > NAME:
            raise DescriptionError(
                f"<{tag}> number {number}", f"its name has {len(name)} characters", f"write at most {NAME}"
            )
        check_number(tag, number)
        if name in seen:
            raise DescriptionError(f'<{tag} name="{name}">', "the name is used twice", f"give each {tag} its own name")
        seen.add(name)
        yield element


def _flag(element: ET.Element, label: str, attribute: str) -> bool:
    text = element.get(attribute, "false").strip().lower()
    if text not in ("true", "false", "1", "0"):
        raise DescriptionError(label, f'{attribute}="{text}" is neither true nor false', "write true or false")
    return text in ("true", "1")


def _numbers(text: str, label: str, what: str, count: int, largest: float = LARGEST) -> Array:
    parts = text.split()
    try:
        values = np.array([float(part) for part in parts])
    except ValueError:
        raise DescriptionError(
            label, f'{what}="{text}" is not made of numbers', f"write {count} number(s), with a point as decimal sign"
        ) from None
    if len(values) != count:
        raise DescriptionError(
            label, f'{what}="{text}" has {len(values)} number(s)', f"write {count}, separated by spaces"
        )
    if not np.isfinite(values).all():
        raise DescriptionError(label, f'{what}="{text}" is not finite', "write finite numbers")
    if (np.abs(values) > largest).any():
        raise DescriptionError(label, f'{what}="{text}" is larger than {largest:g}', "write SI units: m, rad, kg, N")
    return values


def _number(
    element: ET.Element, attribute: str, label: str, default: float | None = None, largest: float = LARGEST
) -> float:
    text = element.get(attribute)
    if text is None:
        if default is None:
            raise DescriptionError(label, f"attribute {attribute} is missing", f'add {attribute}="..."')
        return default
    return float(_numbers(text, label, attribute, 1, largest)[0])


def _vector(element: ET.Element, attribute: str, label: str, default: str = "0 0 0") -> Array:
    return frozen(_numbers(element.get(attribute, default), label, attribute, 3))


def _origin(parent: ET.Element, label: str) -> Array:
    """Transform (4, 4) of the `<origin>` child; the identity where there is none."""
    element = parent.find("origin")
    if element is None:
        return frozen(np.eye(4))
    return frozen(pose_of(element, f"{label} <origin>"))


def pose_of(element: ET.Element, label: str) -> Array:
    """Transform (4, 4) of an element's attributes xyz and rpy."""
    return transform(_vector(element, "xyz", label), rotation_from_rpy(_vector(element, "rpy", label)))


def axis_of(parent: ET.Element, tag: str, label: str) -> Array | None:
    """Unit vector (3,) of the child `tag`, or None where there is none."""
    element = parent.find(tag)
    if element is None:
        return None
    if element.get("xyz") is None:
        raise DescriptionError(f"{label} <{tag}>", "attribute xyz is missing", f'write <{tag} xyz="0 0 1"/>')
    vector = _vector(element, "xyz", f"{label} <{tag}>")
    length = float(np.linalg.norm(vector))
    if length < ZERO_LENGTH:
        raise DescriptionError(
            f"{label} <{tag}>", "its length is zero", f'write a direction, for example <{tag} xyz="0 0 1"/>'
        )
    return frozen(vector / length)


def _type(element: ET.Element, kinds: type[Kind], label: str) -> Kind:
    name = element.get("type", "")
    known = {one.value: one for one in kinds}
    if name not in known:
        raise DescriptionError(label, f"unknown type {element.get('type')!r}", f"use one of {', '.join(known)}")
    return known[name]


def link_of(element: ET.Element, accept_invalid: bool) -> Link:
    """The body of a `<link>`, its inertia checked unless `accept_invalid`."""
    name = element.get("name", "")
    label = f'<link name="{name}">'
    child = element.find("inertial")
    beams = tuple(_beam(one, f"{label} <beam>") for one in element.findall("beam"))
    if child is None:
        return Link(name, Inertial(), beams)
    mass_element, inertia_element = child.find("mass"), child.find("inertia")
    if mass_element is None:
        raise DescriptionError(label, "<inertial> has no <mass>", 'add <mass value="..."/> or remove <inertial>')
    mass = _number(mass_element, "value", f"{label} <mass>")
    inertia = np.zeros((3, 3))
    if inertia_element is not None:
        place = f"{label} <inertia>"
        for (row, column), key in zip(
            ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)), ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), strict=True
        ):
            # URDF wants all six; products of inertia that are left out are zero.
            value = _number(inertia_element, key, place, default=None if row == column else 0.0)
            inertia[row, column] = inertia[column, row] = value
    frame = _origin(child, f"{label} <inertial>")
    rotated = frame[:3, :3] @ inertia @ frame[:3, :3].T
    inertial = Inertial(mass, frozen(frame[:3, 3]), frozen(0.5 * (rotated + rotated.T)))
    problem = inertia_problem(inertial)
    if problem and not (accept_invalid and mass >= 0.0):
        raise DescriptionError(
            label,
            problem,
            "correct mass or inertia"
            + (
                '; for a published table with this error, write <pkm accept_invalid_inertia="true">'
                if mass >= 0
                else ""
            ),
        )
    return Link(name, inertial, beams)


_SECTIONS = (  # what is given, and what it may be given with
    (("radius",), ("inner_radius",)),
    (("width", "height"), ("thickness",)),
    (("A", "Iy", "Iz", "J"), ()),
)


def _beam(element: ET.Element, label: str) -> Beam:
    """How a link bends: its section and material, its ends."""
    y = _vector(element, "y", label) if element.get("y") else None
    if y is not None and np.linalg.norm(y) < ZERO_LENGTH:
        raise DescriptionError(label, "the length of y is zero", 'write a direction, for example y="0 1 0"')
    material = element.get("material", "")
    if material and material not in MATERIALS:
        problem = f"the material {material!r} is unknown"
        raise DescriptionError(label, problem, f"write one of {', '.join(MATERIALS)}, or E and G [Pa]")
    ends = None
    if element.get("from") is not None or element.get("to") is not None:
        if element.get("from") is None or element.get("to") is None:
            raise DescriptionError(label, "it has only one end", "write both, from and to")
        ends = frozen([_vector(element, key, label) for key in ("from", "to")])
        if np.linalg.norm(ends[1] - ends[0]) < ZERO_LENGTH:
            raise DescriptionError(label, "its length is zero", "write two different points, from and to")
    given = {name for needed, more in _SECTIONS for name in (*needed, *more) if element.get(name) is not None}
    if not given:
        if ends is not None or element.get("E") is not None:
            problem = "its section is missing"
            remedy = "write radius, or width and height, or A, Iy, Iz and J; without from and to, its visuals define it"
            raise DescriptionError(label, problem, remedy)
        return Beam(None, material, None, y)
    sizes = {name: _positive(element, name, label) for name in given}
    moduli = MATERIALS[material] if material else tuple(_positive(element, name, label) for name in ("E", "G"))
    shape = next((n for n, (needed, more) in enumerate(_SECTIONS) if {*needed} <= given <= {*needed, *more}), None)
    if shape is None:
        problem = f"{', '.join(sorted(given))} do not form a section"
        remedy = "write radius (with inner_radius), or width and height (with thickness), or A, Iy, Iz and J"
        raise DescriptionError(label, problem, remedy)
    if shape == 0:
        inner = sizes.get("inner_radius", 0.0)
        if inner >= sizes["radius"]:
            problem = f"the inner radius {inner:g} is not less than the radius"
            raise DescriptionError(label, problem, "write it less than radius")
        numbers = tube(sizes["radius"], inner)
    elif shape == 1:
        width, height, thickness = sizes["width"], sizes["height"], sizes.get("thickness", 0.0)
        if 2.0 * thickness >= min(width, height):
            raise DescriptionError(label, f"walls of {thickness:g} leave no hole", "remove thickness")
        numbers = hollow_section(width, height, thickness) if thickness else rectangle(width, height)
    else:
        numbers = (sizes["A"], sizes["Iy"], sizes["Iz"], sizes["J"])
    E, G = moduli
    return Beam(Section(E, G, *numbers), material, ends, y)


def _positive(element: ET.Element, attribute: str, label: str) -> float:
    value = _number(element, attribute, label, largest=1e15)  # moduli are large
    if not value > 0.0:
        raise DescriptionError(label, f'{attribute}="{value:g}" is not greater than zero', "write a positive number")
    return value


def _bearing(element: ET.Element, label: str) -> Bearing:
    """Stiffness of what a joint holds."""
    child = element.find("bearing")
    if child is None:
        return RIGID
    place = f"{label} <bearing>"
    radial = _positive(child, "radial", place) if child.get("radial") else math.inf
    return Bearing(
        radial,
        *(
            _positive(child, key, place) if child.get(key) else default
            for key, default in (("axial", radial), ("tilt", math.inf), ("torsion", math.inf))
        ),
    )


def joint_of(element: ET.Element) -> Joint:
    """The joint of a `<joint>`, without its drive."""
    name = element.get("name", "")
    label = f'<joint name="{name}">'
    kind = _type(element, JointType, label)
    axis = None if kind is JointType.FIXED else axis_of(element, "axis", label)  # exporters write one of zeros
    dynamics = element.find("dynamics")
    damping = friction = stiffness = reference = armature = 0.0
    if dynamics is not None:
        damping = _number(dynamics, "damping", f"{label} <dynamics>", default=0.0)
        friction = _number(dynamics, "friction", f"{label} <dynamics>", default=0.0)
        if damping < 0.0 or friction < 0.0:
            raise DescriptionError(f"{label} <dynamics>", "friction is negative", "write damping and friction >= 0")
        armature = _number(dynamics, "armature", f"{label} <dynamics>", default=0.0)
        if armature < 0.0:
            raise DescriptionError(f"{label} <dynamics>", "armature is negative", "write it >= 0")
        stiffness = _number(dynamics, "spring_stiffness", f"{label} <dynamics>", default=0.0)
        reference = _number(dynamics, "spring_reference", f"{label} <dynamics>", default=0.0)
        if stiffness < 0.0:
            raise DescriptionError(f"{label} <dynamics>", "spring_stiffness is negative", "write it >= 0")
        if stiffness > 0.0 and kind.dof != 1:
            raise DescriptionError(
                f"{label} <dynamics>",
                f"a {kind.value} joint cannot have a spring",
                "write a <spring> between links",
            )
    return Joint(
        name=name,
        type=kind,
        parent=_link_name(element, "parent", label),
        child=_link_name(element, "child", label),
        origin=_origin(element, label),
        axis=frozen((1.0, 0.0, 0.0)) if axis is None else axis,
        limits=_limits(element, kind, label),
        viscous_friction=damping,
        coulomb_friction=friction,
        mimic=_mimic(element, label),
        bearing=_bearing(element, label),
        spring_stiffness=stiffness,
        spring_reference=reference,
        other_armature=armature,
    )


def _link_name(element: ET.Element, tag: str, label: str) -> str:
    child = element.find(tag)
    name = child.get("link") if child is not None else None
    if not name:
        raise DescriptionError(label, f"no <{tag}> link", f'add <{tag} link="..."/>')
    return name


def _limits(element: ET.Element, kind: JointType, label: str) -> Limits:
    limit = element.find("limit")
    if limit is None:
        return Limits()
    place = f"{label} <limit>"
    lower = _number(limit, "lower", place, -np.inf, np.inf)
    upper = _number(limit, "upper", place, np.inf, np.inf)
    velocity = _number(limit, "velocity", place, 0.0, np.inf)
    effort = _number(limit, "effort", place, 0.0, np.inf)
    if velocity < 0.0 or effort < 0.0:
        raise DescriptionError(place, "velocity or effort is negative", "write both as magnitudes, >= 0")
    if kind not in (JointType.REVOLUTE, JointType.PRISMATIC) or lower == upper == 0.0:
        # CAD exporters write zeros where the author stated no range.
        lower, upper = -np.inf, np.inf
    # Others write the largest number they know.
    lower, upper = -np.inf if lower < -LARGEST else lower, np.inf if upper > LARGEST else upper
    if lower > LARGEST or upper < -LARGEST:
        raise DescriptionError(place, f"the range from {lower:g} to {upper:g} is empty", "write rad or m")
    if lower > upper:
        raise DescriptionError(place, f"lower {lower:g} is above upper {upper:g}", "swap them")
    if lower == upper:
        raise DescriptionError(place, f"lower and upper are equal, both {lower:g}", 'use type="fixed"')
    return Limits(lower, upper, velocity or np.inf, effort or np.inf)


def _mimic(element: ET.Element, label: str) -> Mimic | None:
    mimic = element.find("mimic")
    if mimic is None:
        return None
    place = f"{label} <mimic>"
    joint = mimic.get("joint")
    if not joint:
        raise DescriptionError(place, "attribute joint is missing", 'write <mimic joint="..."/>')
    return Mimic(joint, _number(mimic, "multiplier", place, 1.0), _number(mimic, "offset", place, 0.0))


_NEEDS_AXIS = {LoopType.UNIVERSAL, LoopType.REVOLUTE, LoopType.CYLINDRICAL, LoopType.PRISMATIC, LoopType.PLANAR}


def loop_of(element: ET.Element) -> Loop:
    """The closure of a `<loop>`."""
    name = element.get("name", "")
    label = f'<loop name="{name}">'
    kind = _type(element, LoopType, label)
    sides = []
    for tag in ("predecessor", "successor"):
        side = element.find(tag)
        if side is None or not side.get("link"):
            raise DescriptionError(label, f"no <{tag}> link", f'add <{tag} link="..."><origin xyz="..."/></{tag}>')
        sides.append((side.get("link", ""), _origin(side, f"{label} <{tag}>")))
    axis, axis2 = axis_of(element, "axis", label), axis_of(element, "axis2", label)
    if kind in _NEEDS_AXIS and axis is None:
        raise DescriptionError(label, f"a {kind.value} loop needs an axis", 'add <axis xyz="..."/>')
    if kind is LoopType.UNIVERSAL and axis2 is None:
        raise DescriptionError(
            label, "a universal loop needs a second axis", 'add <axis2 xyz="..."/> in the successor\'s loop frame'
        )
    if axis is None:
        axis = frozen((0.0, 0.0, 1.0))
    return Loop(
        name=name,
        type=kind,
        predecessor=sides[0][0],
        successor=sides[1][0],
        predecessor_frame=sides[0][1],
        successor_frame=sides[1][1],
        axis=axis,
        axis2=axis if axis2 is None else axis2,
        bearing=_bearing(element, label),
    )


def spring_label(spring: Spring) -> str:
    """How messages name a spring."""
    return f'<spring name="{spring.name}">'


def _spring(element: ET.Element) -> Spring:
    name = element.get("name", "")
    label = f'<spring name="{name}">'
    for key in element.attrib.keys() - SPRING:
        remedy = or_near(key, SPRING, f"write {', '.join(SPRING)}")
        raise DescriptionError(label, f"there is no attribute {key!r}", remedy)
    ends: list[tuple[str, Array]] = []
    for tag in ("from", "to"):
        end = element.find(tag)
        if end is None or not end.get("link"):
            raise DescriptionError(label, f"no <{tag}> link", f'add <{tag} link="..." xyz="..."/>')
        ends.append((end.get("link", ""), _vector(end, "xyz", f"{label} <{tag}>")))
    stiffness, rest = _number(element, "stiffness", label), _number(element, "rest_length", label, 0.0)
    for what, value in (("stiffness", stiffness), ("rest_length", rest)):
        if value < 0.0:
            raise DescriptionError(label, f"{what} {value:g} is negative", "write it >= 0")
    return Spring(name, stiffness, *ends[0], *ends[1], rest, _number(element, "preload", label, 0.0))


def _coupling(element: ET.Element, joints: Sequence[Joint]) -> Coupling:
    name, terms = element.get("name", ""), []
    label = f'<coupling name="{name}">'
    leading = {joint.name for joint in joints if joint.type.dof == 1 and joint.mimic is None}
    for one in element.findall("joint"):
        joint, text = one.get("name", ""), one.get("coefficients", "")
        if joint not in leading:
            problem = f"{joint!r} is no joint with one degree of freedom of its own"
            raise DescriptionError(label, problem, "name a revolute or prismatic joint that mimics no other")
        numbers = _numbers(text, label, "coefficients", len(text.split()))
        if not numbers.any():
            remedy = 'write coefficients="1", of powers 1, 2, ...'
            raise DescriptionError(label, f"{joint!r} has no coefficient", remedy)
        terms.append((joint, tuple(map(float, numbers))))
    if len({joint for joint, _ in terms}) != len(terms) or len(terms) < 2:
        raise DescriptionError(label, "it does not couple two or more joints", 'add <joint name="" coefficients=""/>')
    return Coupling(name, tuple(terms), _number(element, "offset", label, 0.0))


def _link_of_pkm(pkm: ET.Element, attribute: str, links: list[str], default: str | None) -> str:
    name = pkm.get(attribute)
    if not name and default is not None:
        return default
    if name == "":
        problem, remedy = f"{attribute} is empty: the file is a tree", "load it with load_model, or write a link there"
        raise DescriptionError("<pkm>", problem, remedy)
    if not name:
        raise DescriptionError("<pkm>", f"attribute {attribute} is missing", f'add {attribute}="..."')
    if name not in links:
        raise DescriptionError("<pkm>", f"{attribute} {name!r} is not a link", "name an existing <link>")
    return name


def _drives(root: ET.Element, joints: dict[str, Joint]) -> tuple[dict[str, Drive], dict[str, float]]:
    """Drives of the actuated joints and initial positions, by joint, in the order of the `<ros2_control>` blocks."""
    drives: dict[str, Drive] = {}
    starts: dict[str, float] = {}
    seen = set()
    for block in root.findall("ros2_control"):
        for element in block.findall("joint"):
            name = element.get("name", "")
            label = f'<ros2_control> <joint name="{name}">'
            if name in seen:
                raise DescriptionError(label, "the joint is listed twice", "list it once")
            seen.add(name)
            commands = tuple(e.get("name", "") for e in element.findall("command_interface"))
            states = element.findall("state_interface")
            if name not in joints:
                raise DescriptionError(label, "no such joint", "name an existing <joint>")
            initial = _initial_value(states, label)
            if initial is not None:
                starts[name] = initial
            if not commands:
                continue
            _check_can_be_driven(joints[name], commands, label)
            parameters = {e.get("name"): (e.text or "").strip() for e in element.findall("param")}
            drives[name] = Drive(
                command_interfaces=commands,
                state_interfaces=tuple(e.get("name", "") for e in states) or ("position", "velocity"),
                gear_ratio=_parameter(parameters, "gear_ratio", 1.0, label),
                rotor_inertia=_parameter(parameters, "rotor_inertia", 0.0, label),
                initial_value=initial,
                effort_range=_effort_range(element, label),
                stiffness=_parameter(parameters, "stiffness", math.inf, label),
                cable=_cable(parameters, joints[name].type, label),
            )
            if not drives[name].stiffness > 0.0:
                remedy = "write that of motor, gear and position loop at the joint; remove it for a rigid drive"
                raise DescriptionError(label, "its stiffness is not greater than zero", remedy)
            if drives[name].rotor_inertia < 0.0 or drives[name].gear_ratio == 0.0:
                raise DescriptionError(
                    label,
                    "rotor_inertia is negative or gear_ratio is zero",
                    "write rotor_inertia >= 0, gear_ratio not 0",
                )
    return drives, starts


def _cable(parameters: dict[str | None, str], kind: JointType, label: str) -> Cable | None:
    """What a winch pulls with, None where no parameter says that it is one."""
    if not {"cable_stiffness", "cable_mass"} & parameters.keys():
        return None
    stiffness = _parameter(parameters, "cable_stiffness", 0.0, label)
    mass = _parameter(parameters, "cable_mass", 0.0, label)
    if kind is not JointType.PRISMATIC:
        raise DescriptionError(label, f"a {kind.value} joint cannot be a cable", "use a prismatic joint for a cable")
    if not 0.0 < stiffness < math.inf or not 0.0 <= mass < math.inf:
        remedy = "write E A in N as cable_stiffness, kg/m as cable_mass"
        raise DescriptionError(label, "the stiffness of its cable is missing, or the mass is negative", remedy)
    return Cable(stiffness, mass)


def _effort_range(element: ET.Element, label: str) -> tuple[float, float]:
    """Smallest and largest allowed effort, as in ros2_control; infinite where there is none."""
    for command in element.findall("command_interface"):
        if command.get("name") == "effort":
            given = {e.get("name"): (e.text or "").strip() for e in command.findall("param")}
            least, most = _parameter(given, "min", -math.inf, label), _parameter(given, "max", math.inf, label)
            if not least < most:
                raise DescriptionError(
                    label,
                    f"the range of efforts from {least:g} to {most:g} is empty",
                    "write a min less than the max",
                )
            return least, most
    return -math.inf, math.inf


def _initial_value(states: Iterable[ET.Element], label: str) -> float | None:
    for state in states:
        if state.get("name") == "position":
            for parameter in state.findall("param"):
                if parameter.get("name") == "initial_value":
                    return float(_numbers((parameter.text or "").strip(), label, "initial_value", 1)[0])
    return None


def _parameter(parameters: dict[str | None, str], name: str, default: float, label: str) -> float:
    return float(_numbers(parameters[name], label, name, 1)[0]) if name in parameters else default


def _check_can_be_driven(joint: Joint, commands: tuple[str, ...], label: str) -> None:
    if joint.type.dof != 1:
        raise DescriptionError(
            label,
            f"a {joint.type.value} joint cannot have a command_interface",
            "drive revolute, continuous or prismatic joints only",
        )
    if joint.mimic is not None:
        raise DescriptionError(
            label,
            f"it mimics {joint.mimic.joint!r}, so it cannot have a command_interface",
            f"drive {joint.mimic.joint!r} instead",
        )
    known = ("position", "velocity", "effort", "acceleration")
    for command in commands:
        if command not in known:
            raise DescriptionError(label, f"unknown command_interface {command!r}", f"use one of {', '.join(known)}")


def _redundant(pkm: ET.Element) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for element in pkm.findall("redundant"):
        name = element.get("joint", "")
        label = f'<redundant joint="{name}">'
        if not name:
            raise DescriptionError("<redundant>", "attribute joint is missing", 'write <redundant joint="..."/>')
        if name in found:
            raise DescriptionError(label, "it appears twice", "write it once")
        found[name] = _vector(element, "follows", label, default="0 0 0")
    return found


def _read_home(pkm: ET.Element, description: Description) -> None:
    homes = pkm.findall("home")
    if len(homes) > 1:
        raise DescriptionError("<home>", f"it appears {len(homes)} times", "write it once")
    if not homes:
        return
    home = homes[0]
    if home.get("xyz") is not None or home.get("rpy") is not None:
        description.home = frozen(pose_of(home, "<home>"))
    named = {freedom.name for joint in description.joints for freedom in freedoms(joint)}
    for element in home.findall("joint"):
        name = element.get("name", "")
        label = f'<home> <joint name="{name}">'
        if name not in named:
            raise DescriptionError(
                label,
                "no such joint with one degree of freedom",
                "name an existing <joint>, or one of its degrees of freedom as <joint>/x",
            )
        description.home_joints[name] = _number(element, "position", label)
