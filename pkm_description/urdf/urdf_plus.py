# SPDX-License-Identifier: Apache-2.0
"""Parser of URDF+ text: every element read into plain data, or refused by an error that names it.

URDF+ (Chignoli, Slotine, Wensing, Kim, "URDF+: an enhanced URDF for robots with kinematic loops", 2024) adds `<loop>`
to URDF; `<pkm>` is ours. Elements without meaning for the model (visuals, sensors, plugins) are skipped. The whole (a
tree, closable loops, enough actuators) is checked elsewhere.
"""

from __future__ import annotations

import math
import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pkm_description.description_error import DescriptionError, or_near, refuse_near
from pkm_description.graph import check_ends
from pkm_description.joint_geometry import freedoms
from pkm_description.mechanism import (
    Array,
    Cable,
    Coupling,
    Drive,
    Joint,
    JointType,
    Link,
    Loop,
    Spring,
    frozen,
)
from pkm_description.urdf.elements import (
    SIX,
    coupling_of,
    flag,
    joint_of,
    link_of,
    loop_of,
    number_of,
    numbers_of,
    pose_of,
    spring_label,
    spring_of,
    vector_of,
)
from pkm_description.urdf.xacro_expansion import XACRO_NAMESPACE
from pkm_description.urdf.xml_text import read_xml

# At most. The largest robot of the gallery has 32 links and 9 loops, none of the literature more than a few dozen; 60
# loops take seconds to close, also where they cannot be, so that a text from a topic does not hold a node for minutes.
PARTS = {"link": 500, "joint": 500, "loop": 60, "spring": 500, "coupling": 500}
NAME = 200  # characters of a name, at most
OTHER_LOOP = (  # of a loop in others' words
    "parent", "child", "parent_origin", "child_origin", "parent_axis", "child_axis", "link1", "link2", "axis",
)  # fmt: skip
LOOP_WORDS = ("loop", "constraint", "closure")  # an unknown element called so would close a loop
# Elements and attributes that may be left out, by the element that has them: a misspelled one would go unnoticed.
ELEMENTS = {
    "robot": (
        "link",
        "joint",
        "loop",
        "spring",
        "coupling",
        "pkm",
        "ros2_control",
        "transmission",
        "material",
        "gazebo",
        "sensor",
        "constraint",
        "loop_joint",
    ),
    "link": ("inertial", "visual", "collision", "beam"),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "axis", "limit", "dynamics", "mimic", "bearing"),
    "loop": ("axis", "axis2", "bearing"),
    "constraint": OTHER_LOOP,
    "loop_joint": OTHER_LOOP,
    "predecessor": ("origin",),
    "successor": ("origin",),
    "pkm": ("home", "redundant"),
}
ATTRIBUTES = {
    "origin": ("xyz", "rpy"),
    "inertia": SIX,
    "limit": ("lower", "upper", "velocity", "effort"),
    "dynamics": ("damping", "friction", "armature", "spring_stiffness", "spring_reference"),
    "mimic": ("multiplier", "offset"),
    "coupling": ("offset",),
    "pkm": ("gravity", "kinematics_only", "accept_singular", "accept_invalid_inertia"),
    "home": ("xyz", "rpy"),
    "redundant": ("follows",),
}
OTHER_WORDS = {  # of other formats, newer URDF, or habit: left unread, they would change the robot without a word
    "origin": dict.fromkeys(("quat_xyzw", "quat", "rotation", "rot", "euler"), "rpy")
    | dict.fromkeys(("position", "pos", "translation"), "xyz"),
    "limit": {"min": "lower", "max": "upper", "speed": "velocity", "torque": "effort", "force": "effort"},
    "dynamics": {"viscous": "damping", "coulomb": "friction"},
}
PARAMETERS = ("gear_ratio", "gear_correction", "rotor_inertia", "stiffness", "cable_stiffness", "cable_mass")


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
    refuse_misspelled(root)
    name = root.get("name") or "robot"
    pkm = ET.Element("pkm") if tree and root.find("pkm") is None else _single_pkm(root)
    accept = flag(pkm, "<pkm>", "accept_invalid_inertia")
    links = [link_of(element, accept) for element in _named(root, "link")]
    if not links:
        raise DescriptionError("<robot>", "it has no links", "add a <link> for each body")
    joints = [joint_of(element) for element in _named(root, "joint")]
    loops = [loop_of(element) for element in _named(root, "loop")]
    if not loops and not tree:
        problem = "it has no <loop>: the robot is serial or a tree"
        raise DescriptionError("<robot>", problem, 'close each limb on the platform with <loop name="..." type="...">')
    link_names = [link.name for link in links]
    for loop in loops:
        check_ends(f'<loop name="{loop.name}">', link_names, predecessor=loop.predecessor, successor=loop.successor)
    springs = [spring_of(element) for element in _named(root, "spring")]
    for spring in springs:
        check_ends(spring_label(spring), link_names, **{"from link": spring.from_link, "to link": spring.to_link})
    drives, starts = _drives(root, {joint.name: joint for joint in joints})
    if not drives and not tree:
        remedy = 'give each driven joint a <command_interface name="effort"/> in the <ros2_control> block'
        raise DescriptionError("<ros2_control>", "no joint is actuated", remedy)
    children = {joint.child for joint in joints}
    root_link = next((link for link in link_names if tree and link not in children), None)
    description = Description(
        name=name,
        base_link=_link_of_pkm(pkm, "base_link", link_names, root_link),
        platform_link=_link_of_pkm(pkm, "platform_link", link_names, "" if tree else None),
        gravity=vector_of(pkm, "gravity", "<pkm>", default="0 0 -9.81"),
        home=None,
        home_joints=starts,
        kinematics_only=flag(pkm, "<pkm>", "kinematics_only"),
        accept_singular=flag(pkm, "<pkm>", "accept_singular"),
        links=links,
        joints=[replace(joint, drive=drives.get(joint.name)) for joint in joints],
        loops=loops,
        springs=springs,
        actuated=list(drives),
        redundant=_redundant(pkm),
        couplings=[coupling_of(element, joints) for element in _named(root, "coupling")],
    )
    if description.base_link == description.platform_link:
        problem = f"base_link and platform_link are both {description.base_link!r}"
        raise DescriptionError("<pkm>", problem, "name the fixed body as base_link and the moving one as platform_link")
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
    check_version(root)
    foreign = next((element for element in root.iter() if str(element.tag).startswith(f"{{{XACRO_NAMESPACE}}}")), None)
    if foreign is not None:
        raise DescriptionError(
            place, f"it holds <xacro:{_tag(foreign)}>, but only files are expanded", "give the output of xacro"
        )
    return root


def refuse_misspelled(element: ET.Element, label: str = "<robot>") -> None:
    """Refuse elements and attributes whose name is nearly one that they may have, and loops in unknown words."""
    tag = _tag(element)
    for attribute in element.attrib:
        meant = OTHER_WORDS.get(tag, {}).get(attribute.lower())
        if meant and meant not in element.attrib:
            raise DescriptionError(label, f"attribute {attribute!r} is not known", f"did you mean {meant!r}?")
        refuse_near(attribute, ATTRIBUTES.get(tag, ()), label, "attribute")
    for child in element:
        name = _tag(child)
        inner = f"{'' if tag == 'robot' else label + ' '}<{name}{_quoted_name(child)}>"
        known = ELEMENTS.get(tag, ())
        if _foreign(child, element) and name in ("constraint", "loop_joint"):
            raise DescriptionError(
                inner, f"it is of the namespace {child.tag[1 : -len(name) - 1]}", "write it without one"
            )
        refuse_near(name, known, inner if tag == "robot" else label)
        if tag == "robot" and name not in known and any(word in name.lower() for word in LOOP_WORDS):
            raise DescriptionError(inner, f"element {name!r} is not known", "did you mean 'loop_joint'?")
        if known is OTHER_LOOP and name == "origin":
            raise DescriptionError(inner, "it is not said of which link", "write <parent_origin> and <child_origin>")
        if name in ELEMENTS or name in ATTRIBUTES:
            refuse_misspelled(child, inner)


def unread(root: ET.Element) -> list[str]:
    """A sentence that names the elements under `<robot>`, and of loops in others' words, that nobody here knows."""
    parents = [root, *(child for child in root if ELEMENTS.get(_tag(child)) is OTHER_LOOP)]
    children = [(child, parent) for parent in parents for child in parent]
    tags = {_tag(e) for e, parent in children if _foreign(e, parent) or _tag(e) not in ELEMENTS[_tag(parent)]}
    return [f"not read: {', '.join(f'<{tag}>' for tag in sorted(tags))}"] if tags else []


def _quoted_name(element: ET.Element) -> str:
    return f' name="{element.get("name")}"' if element.get("name") else ""


def check_version(root: ET.Element) -> None:
    """Refuse a `<robot>` of a version that URDF has not yet."""
    version = root.get("version", "1.0")
    if not re.fullmatch(r"1(\.\d)?", version.strip()):
        raise DescriptionError("<robot>", f"version {version!r} is not known", "write 1.0 to 1.9, or leave it out")


def _foreign(child: ET.Element, parent: ET.Element) -> bool:
    return child.tag.rpartition("}")[0] != parent.tag.rpartition("}")[0]


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
    seen = set()
    for number, element in enumerate(root.findall(tag), start=1):
        name = element.get("name")
        if not name:
            raise DescriptionError(f"<{tag}> number {number}", "it has no name", 'add the attribute name="..."')
        if len(name) > NAME:
            raise DescriptionError(
                f"<{tag}> number {number}", f"its name has {len(name)} characters", f"write at most {NAME}"
            )
        if any(unicodedata.category(letter) == "Cf" for letter in name):
            problem = f"its name {name!a} has characters that nobody sees"
            raise DescriptionError(f"<{tag}> number {number}", problem, "leave them out")
        check_number(tag, number)
        if name in seen:
            raise DescriptionError(f'<{tag} name="{name}">', "the name is used twice", f"give each {tag} its own name")
        seen.add(name)
        yield element


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
        raise DescriptionError(
            "<pkm>", f"{attribute} {name!r} is not a link", or_near(name, links, "name an existing <link>")
        )
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
                raise DescriptionError(label, "no such joint", or_near(name, joints, "name an existing <joint>"))
            initial = _initial_value(states, label)
            if initial is not None:
                starts[name] = initial
            if not commands:
                continue
            _check_can_be_driven(joints[name], commands, label)
            parameters = {e.get("name"): (e.text or "").strip() for e in element.findall("param")}
            for parameter in parameters:
                refuse_near(parameter or "", PARAMETERS, label, "parameter")
            drives[name] = Drive(
                command_interfaces=commands,
                state_interfaces=tuple(e.get("name", "") for e in states) or ("position", "velocity"),
                gear_ratio=_parameter(parameters, "gear_ratio", 1.0, label),
                gear_correction=_parameter(parameters, "gear_correction", 1.0, label),
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
                problem = "rotor_inertia is negative or gear_ratio is zero"
                raise DescriptionError(label, problem, "write rotor_inertia >= 0, gear_ratio not 0")
            if not drives[name].gear_correction > 0.0:
                raise DescriptionError(label, "gear_correction is not positive", "write one near 1, or leave it out")
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
                problem = f"the range of efforts from {least:g} to {most:g} is empty"
                raise DescriptionError(label, problem, "write a min less than the max")
            return least, most
    return -math.inf, math.inf


def _initial_value(states: Iterable[ET.Element], label: str) -> float | None:
    for state in states:
        if state.get("name") == "position":
            for parameter in state.findall("param"):
                if parameter.get("name") == "initial_value":
                    return float(numbers_of((parameter.text or "").strip(), label, "initial_value", 1)[0])
    return None


def _parameter(parameters: dict[str | None, str], name: str, default: float, label: str) -> float:
    return float(numbers_of(parameters[name], label, name, 1)[0]) if name in parameters else default


def _check_can_be_driven(joint: Joint, commands: tuple[str, ...], label: str) -> None:
    if joint.type.dof != 1:
        problem = f"a {joint.type.value} joint cannot have a command_interface"
        raise DescriptionError(label, problem, "drive revolute, continuous or prismatic joints only")
    if joint.mimic is not None:
        problem = f"it mimics {joint.mimic.joint!r}, so it cannot have a command_interface"
        raise DescriptionError(label, problem, f"drive {joint.mimic.joint!r} instead")
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
        found[name] = vector_of(element, "follows", label, default="0 0 0")
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
            remedy = or_near(name, named, "name an existing <joint>, or one of its degrees of freedom as <joint>/x")
            raise DescriptionError(label, "no such joint with one degree of freedom", remedy)
        description.home_joints[name] = number_of(element, "position", label)
