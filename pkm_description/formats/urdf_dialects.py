# SPDX-License-Identifier: Apache-2.0
"""URDF whose loops are in the words of others, in the file or in a YAML file beside it: read, and written.

    <constraint type=...>     `parent_origin`, `child_origin`, `parent_axis`, `child_axis` (proposed for ROS)
    <loop_joint type=...>     two `<link1>` or `<link2>` (Isaac Sim), or `parent_origin`, `child_origin` and `axis`
    <gazebo><joint>           a joint of SDF (Gazebo)
    <loop>                    ours, in a file without `<pkm>` whose platform is named otherwise
    loop_closures.yaml        `closures` by point and axis in the base's frame, or `pin_loops` and `ball_loops`
    robot.yaml                Extended URDF: `closed_loop` of frames that coincide, `type` 3d or 6d

Where a link has two parents, the joint after the first closes a loop. Positions are zero as drawn. Driven is what
`<ros2_control>`, `<transmission>` or the YAML file drives, and home what a `<pkm>` says.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pkm_description.description_error import DescriptionError
from pkm_description.formats.bodies_and_joints import (
    OTHER_WORDS,
    Assembly,
    Body,
    Connection,
    at,
    elements_left_out,
    of_joint,
    pose_attributes,
)
from pkm_description.formats.sdf import read_joints
from pkm_description.joint_geometry import home_positions
from pkm_description.mechanism import Array, Joint, JointType, LoopType, Mechanism
from pkm_description.rotations import inverse_transform
from pkm_description.tree_model import TreeModel
from pkm_description.urdf import elements, urdf_plus
from pkm_description.urdf.visuals import shapes_of
from pkm_description.urdf.xml_text import append, append_home, read_xml, row
from pkm_runtime.yaml_section import YamlError, read_yaml_text

TAGS = ("constraint", "loop_joint", "gazebo/joint")
KEYS = {"closures", "pin_loops", "ball_loops", "closed_loop"}  # in a YAML file of loops
OTHER_KEYS = {"type", "joint_name", "joint_type", "name_mot", "independent", "urdf"}
AXES = dict(zip("XYZ", np.eye(3), strict=True))
IN_YAML = {LoopType.REVOLUTE: "pin_loops", LoopType.SPHERICAL: "ball_loops"}
NAMELESS = "left out: which bodies are base and platform, gravity and home"
WITH_AXES = {LoopType.REVOLUTE, LoopType.CYLINDRICAL, LoopType.PRISMATIC, LoopType.PLANAR, LoopType.UNIVERSAL}


def is_others(text: str) -> bool:
    """Whether a URDF text has loops that are read here, and none of ours."""
    root = read_xml(text, "URDF text")
    return root.tag == "robot" and root.find("loop") is None and any(root.find(tag) is not None for tag in TAGS)


def read_urdf(text: str, source: str = "") -> Assembly:
    """Bodies and joints of a URDF text that came from the file `source`."""
    return _Reader(read_xml(text, "URDF text"), source).assembly


def read_loops_file(path: Path, text: str, expanded: Callable[[Path], str]) -> Assembly:
    """Bodies and joints of the URDF file beside a YAML file of loops, with these; `expanded` reads the former."""
    label = f"file {path}"
    try:
        content = read_yaml_text(text)
    except YamlError as error:
        raise DescriptionError(label, str(error), "correct the YAML at that line") from error
    if not isinstance(content, dict) or not content.keys() & KEYS:
        raise DescriptionError(label, "it defines no loop", f"write {' or '.join(sorted(KEYS))}, or give the URDF file")
    if "version" in content:
        problem = f"version {content['version']!r} is not known"
        raise DescriptionError(label, problem, "leave it out: this format has no versions")
    unknown = [str(key) for key in content if key not in KEYS | OTHER_KEYS]
    if odd := [key for key in unknown if key.endswith("_loops") or "coupl" in key]:
        remedy = "this format has pin_loops and ball_loops; write <loop> or <coupling> in URDF+ (pkm convert)"
        raise DescriptionError(label, f"{', '.join(odd)} is not known", remedy)
    names = [str(content.get("urdf", "")), *(path.stem + ending for ending in (".urdf", ".urdf.xacro"))]
    found = [one for name in filter(None, names) if (one := path.parent / name).is_file()][:1]
    if not found and names[0]:
        remedy = f"pkm convert ROBOT --to urdf -o {names[0]} writes it"
        raise DescriptionError(label, f"its robot's file {names[0]} is not in its folder", remedy)
    folders = (path.parent, path.parent / "urdf", path.parent.parent / "urdf")
    found = found or next((there for folder in folders if (there := sorted(folder.glob("*.urdf")))), [])
    if len(found) != 1:
        problem = f"{len(found)} URDF files are in its folder" if found else "no URDF file is in its folder"
        raise DescriptionError(
            label, problem, f"name the robot's {path.stem}.urdf, or write `urdf: FILE` into this one"
        )
    reader = _Reader(read_xml(expanded(found[0]), f"file {found[0]}"), str(found[0]))
    if not reader.assembly.bodies:
        raise DescriptionError(f"file {found[0]}", "it has no link", "write the robot's links and joints into it")
    reader.assembly.notes += [f"not read: {', '.join(unknown)} of {path.name}"] if unknown else []
    try:
        _loops_of(reader, content, label)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"a loop has an unknown form: {type(error).__name__} {error}"
        raise DescriptionError(label, problem, "see docs/formats.md for its keys") from error
    return reader.assembly


class _Reader:
    def __init__(self, root: ET.Element, source: str) -> None:
        urdf_plus.check_version(root)
        urdf_plus.refuse_misspelled(root)
        self.root = root
        self.assembly = Assembly(root.get("name") or "robot", notes=urdf_plus.unread(root))
        for element in root.findall("link"):
            link = elements.link_of(element, False)
            self.assembly.bodies[link.name] = Body(link.name, np.eye(4), link.inertial)
        self._pictures(source)
        self._tree()
        for element in root.findall("loop"):
            loop = elements.loop_of(element)
            ends = ((loop.predecessor, loop.predecessor_frame), (loop.successor, loop.successor_frame))
            self.assembly.close(loop.name, loop.type.value, *ends, (loop.axis, loop.axis2))
        for element in (*root.findall("constraint"), *root.findall("loop_joint")):
            self._closure(element)
        read_joints(root.findall("gazebo/joint"), self.assembly)
        kept = [element for tag in ("pkm", "ros2_control", "spring", "coupling") for element in root.findall(tag)]
        if kept:
            self.assembly.remark = ET.Element("robot")
            self.assembly.remark.extend(kept)
        else:
            self._tell_massless()
        home = {e.get("name", ""): float(e.get("position", "0")) for e in root.iterfind("pkm/home/joint")}
        self.assembly.starts = bool(home) or root.find("loop") is not None  # ours are searched for
        for joint in self.assembly.joints:
            joint.drawn = home.get(joint.name, joint.drawn)
        for element in root.findall("transmission/joint"):
            self.assembly.drive(element.get("name", ""), "<transmission>")
        read = [
            *root.findall("transmission"),
            *(one for one in root.findall("gazebo") if one.find("joint") is not None),
        ]
        self.assembly.notes += elements_left_out(root, "not read", read)

    def _tell_massless(self) -> None:
        # which bodies move and have no mass, by themselves or welded on
        bodies, joints = self.assembly.bodies.values(), self.assembly.joints
        heavy = {one.name for one in bodies if not one.inertial.massless}
        heavy |= {joint.parent for joint in joints if joint.kind == "fixed" and joint.child in heavy}
        light = {joint.child for joint in joints if joint.kind != "fixed" and not joint.closes} - heavy
        names = ", ".join(one.name for one in bodies if one.name in light)
        self.assembly.notes += [f"no mass is stated: {names}"] if names else []

    def _pictures(self, source: str) -> None:
        visuals, left_out = shapes_of(self.root, "visual", source)
        for visual in visuals:
            if visual.shape != "mesh" and visual.link in self.assembly.bodies:
                self.assembly.bodies[visual.link].visuals.append(visual)
        for link in self.root.findall("link"):
            for element in link.findall("visual"):
                mesh, origin = element.find("geometry/mesh"), element.find("origin")
                if mesh is not None:  # named as the file names it
                    frame = np.eye(4) if origin is None else elements.pose_of(origin, "<visual>")
                    scale = np.array([float(word) for word in mesh.get("scale", "1 1 1").split()])
                    body = self.assembly.bodies[link.get("name", "")]
                    body.meshes.append((frame, mesh.get("filename", ""), scale))
        self.assembly.notes += [f"not drawn: {problem}" for problem in left_out]

    def _tree(self) -> None:
        """Place bodies from those that no joint carries; what reaches one again closes a loop."""
        bodies, joints = self.assembly.bodies, self.assembly.joints
        joints += [_joint_of(element) for element in self.root.findall("joint")]
        for joint in joints:
            for name in (joint.parent, joint.child):
                if name not in bodies:
                    label = f'<joint name="{joint.name}">'
                    raise DescriptionError(label, f"there is no link {name!r}", "name an existing <link>")
        placed = set(bodies) - {joint.child for joint in joints}
        self.assembly.base = next((name for name in bodies if name in placed), "")
        waiting = list(joints)
        while waiting:
            near = [one for one in waiting if one.parent in placed]
            if not near:
                label = f'<joint name="{waiting[0].name}">'
                raise DescriptionError(label, "its joints form a cycle", "keep one link without a parent")
            joint = near[0]
            waiting = [one for one in waiting if one is not joint]
            joint.closes = joint.child in placed
            if joint.closes:
                joint.doubt = f"{joint.child} has two parents, {joint.parent} and another, which must agree where it is"
            if not joint.closes:
                bodies[joint.child].pose = bodies[joint.parent].pose @ joint.first
            placed.add(joint.child)

    def _closure(self, element: ET.Element) -> None:
        name = element.get("name", "")
        label = f'<{element.tag} name="{name}">'
        ends = [*element.findall("link1"), *element.findall("link2")]
        frames = ends
        if not ends:
            ends = [end for tag in ("parent", "child") if (end := element.find(tag)) is not None]
            frames = [_or_empty(element.find(f"{tag}_origin")) for tag in ("parent", "child")]
        if len(ends) != 2 or not all(end.get("link") for end in ends):
            raise DescriptionError(
                label, "it does not name two links", "write <parent link=.../> and <child link=.../>"
            )
        origins = ("parent_origin", "child_origin") if frames is not ends else ()
        lacking = [f"<{tag}>" for tag in origins if element.find(tag) is None]
        doubt = f"it has no {' and no '.join(lacking)}" if lacking else ""
        (one, first), (two, second) = (
            (end.get("link", ""), elements.pose_of(frame, label)) for end, frame in zip(ends, frames, strict=True)
        )
        axis = elements.axis_of(element, "parent_axis", label)
        axis2 = elements.axis_of(element, "child_axis", label)
        single = element.find("axis")
        if axis is None and single is not None:
            axis = elements.axis_of(element, "axis", label)
            if axis is not None and single.get("frame") == "parent":  # of the link
                axis = np.asarray(first[:3, :3].T @ axis)
        kind = element.get("type", "").removesuffix("_joint")
        self.assembly.close(name, kind, (one, first), (two, second), None if axis is None else (axis, axis2), doubt)


def _or_empty(element: ET.Element | None) -> ET.Element:
    return ET.Element("origin") if element is None else element


def _joint_of(element: ET.Element) -> Connection:
    """A joint of URDF at zero, or one of those that others write as well."""
    kind = OTHER_WORDS.get(element.get("type", ""), element.get("type", ""))
    if kind != "spherical":
        return of_joint(elements.joint_of(element))
    element.set("type", JointType.CONTINUOUS.value)
    joint = of_joint(elements.joint_of(element))
    joint.kind = kind
    return joint


def _loops_of(reader: _Reader, content: dict[str, Any], label: str) -> None:
    assembly = reader.assembly
    assembly.starts = True  # these files say nowhere where their loops close
    own = {joint.name.removesuffix("/loop") for joint in assembly.joints if joint.closes}
    base = inverse_transform(assembly.bodies[assembly.base].pose)
    for n, one in enumerate(content.get("closures") or (), 1):
        first, second = one["link_a"], one["link_b"]
        point, axis = _vector(one, "point", f"closure{n}"), _unit(one, "axis", f"closure{n}")
        backs = [inverse_transform(base @ _pose_of(assembly, body, label)) for body in (first, second)]
        ends = [
            (body, at((back @ np.append(point, 1.0))[:3])) for body, back in zip((first, second), backs, strict=True)
        ]
        axes = [back[:3, :3] @ axis for back in backs]
        assembly.close(f"closure{n}", "revolute", ends[0], ends[1], (axes[0], axes[1]))
    for key, kind in (("pin_loops", "revolute"), ("ball_loops", "spherical")):
        for one in content.get(key) or ():
            if one["name"] in own:
                remedy = "give that URDF alone, or write `urdf: FILE` of its tree (pkm convert ROBOT --to urdf -o FILE)"
                raise DescriptionError(label, f"the URDF that it is read with closes {one['name']}, too", remedy)
            ends = [(one[end], at(_vector(one, f"{end}_xyz", one["name"]))) for end in ("parent", "child")]
            units = [None if one.get(way) is None else _unit(one, way, one["name"]) for way in ("axis", "child_axis")]
            assembly.close(one["name"], kind, ends[0], ends[1], None if units[0] is None else (units[0], units[1]))
    for name, kind in zip(content.get("joint_name") or (), content.get("joint_type") or (), strict=True):
        _retype(assembly, name, kind)
    for (one, two), kind in zip(content.get("closed_loop") or (), content.get("type") or (), strict=True):
        carried = {joint.name: joint.child for joint in assembly.joints}
        ends = [(carried.get(end, end), np.eye(4)) for end in (one, two)]
        assembly.close(f"{one}--{two}", kind.lower(), ends[0], ends[1])
    for name in (*(content.get("name_mot") or ()), *(content.get("independent") or ())):
        if any(joint.name == name and joint.mimic for joint in assembly.joints):
            assembly.notes.append(f"not driven: {name}, which follows another joint")
        else:
            assembly.drive(name, label)


def _vector(loop: dict[str, Any], key: str, name: str) -> Array:
    values = np.array([float(v) for v in loop[key]])
    if len(values) != 3 or not np.isfinite(values).all():
        raise DescriptionError(f"loop {name}", f"{key} {loop[key]} is not made of 3 finite numbers", "write 3, in m")
    return values


def _unit(loop: dict[str, Any], key: str, name: str) -> Array:
    """The direction of a key of a loop, which may be a letter."""
    given = loop[key]
    vector = AXES[given] if isinstance(given, str) else _vector(loop, key, name)
    length = np.linalg.norm(vector)
    if not length > 0.0:
        raise DescriptionError(f"loop {name}", f"the length of {key} is zero", "write a direction, as [0, 0, 1]")
    return np.asarray(vector / length)


def _pose_of(assembly: Assembly, name: str, label: str) -> Array:
    if name not in assembly.bodies:
        raise DescriptionError(label, f"there is no link {name!r}", "name an existing <link>")
    return assembly.bodies[name].pose


def _retype(assembly: Assembly, name: str, kind: str) -> None:
    """Make a joint what Extended URDF says it is: SPHERICAL, FIXED, or UJOINT_ and the letters of two axes."""
    joint = next((one for one in assembly.joints if one.name == name), None)
    if joint is None:  # its own loader passes over such names
        assembly.notes.append(f"not read: the type of {name}, which is no joint")
        return
    joint.kind, letters = kind.lower(), kind.removeprefix("UJOINT_")
    if letters != kind:
        joint.kind, joint.axis, joint.axis2 = "universal", AXES[letters[0]], AXES[letters[1]]


def to_tree(mechanism: Mechanism | TreeModel) -> tuple[str, list[str]]:
    """Plain URDF: the spanning tree, and a sentence for everything it does not say."""
    root, notes = _plain(mechanism)
    for element in root.findall("pkm"):
        root.remove(element)
    names = ", ".join(loop.name for loop in mechanism.loops)
    return _text(root), [*[f"left out: loops {names}"] * bool(names), NAMELESS, *notes]


def to_constraints(mechanism: Mechanism | TreeModel) -> tuple[str, list[str]]:
    """URDF with a `<constraint>` for each loop; `<pkm>`, which others skip, says what our reader needs."""
    root, notes = _plain(mechanism, ours=("beam", "bearing"))
    sprung = [joint for joint in root.findall("joint") if joint.find("dynamics[@spring_stiffness]") is not None]
    for what, kept in (
        ("couplings of joints", root.findall("coupling")),
        ("springs", [*root.findall("spring"), *sprung]),
    ):
        names = ", ".join(element.get("name", "") for element in kept)
        notes += [f"only in elements and attributes that other tools skip: {what}, {names}"] if names else []
    pkm = root.find("pkm")
    if pkm is not None:
        append_home(pkm, home_positions(mechanism))
    for loop in mechanism.loops:
        element = append(root, "constraint", name=loop.name, type=f"{loop.type.value}_joint")
        for end, link, frame, axis in (
            ("parent", loop.predecessor, loop.predecessor_frame, loop.axis),
            ("child", loop.successor, loop.successor_frame, loop.axis2),
        ):
            append(element, end, link=link)
            append(element, f"{end}_origin", **pose_attributes(frame))
            if loop.type in WITH_AXES:
                append(element, f"{end}_axis", xyz=row(axis))
    return _text(root), notes


def to_yaml(mechanism: Mechanism | TreeModel) -> tuple[str, list[str]]:
    """The hinges and balls of loops as `loop_closures.yaml`, for the file that `to_tree` writes."""
    urdf = f"{mechanism.name}_tree.urdf"
    lines = [f"urdf: {urdf}"]
    for kind, key in IN_YAML.items():
        loops = [loop for loop in mechanism.loops if loop.type is kind]
        lines += [f"{key}:"] if loops else []
        for loop in loops:
            lines += [f"  - name: {loop.name}", f"    parent: {loop.predecessor}", f"    child: {loop.successor}"]
            for end, key_of_axis, frame, axis in (
                ("parent", "axis", loop.predecessor_frame, loop.axis),
                ("child", "child_axis", loop.successor_frame, loop.axis2),
            ):
                lines.append(f"    {end}_xyz: {_numbers(frame[:3, 3])}")
                if kind is LoopType.REVOLUTE:
                    lines.append(f"    {key_of_axis}: {_numbers(frame[:3, :3] @ axis)}")
    lines.append(f"independent: [{', '.join(mechanism.actuated_joints)}]")
    others = [f"{one.name} ({one.type.value})" for one in mechanism.loops if one.type not in IN_YAML]
    notes = [f"left out, as this format has only hinges and balls: {', '.join(others)}"] if others else []
    beside = f"all but loops and drives is in {urdf}, with which it is read; --to urdf -o {urdf} writes it"
    return "\n".join(lines) + "\n", [NAMELESS, beside, *notes, *_plain(mechanism)[1]]


def _plain(
    mechanism: Mechanism | TreeModel, ours: Sequence[str] = ("spring", "coupling", "beam", "bearing")
) -> tuple[ET.Element, list[str]]:
    """The URDF+ text without loops and elements `ours`, and sentences about what is lost."""
    root = read_xml(mechanism.urdf, "URDF text")
    lost: dict[str, list[str]] = {}
    for parent in list(root.iter()):
        for tag in ("loop", *ours):
            for child in parent.findall(tag):
                parent.remove(child)
                if tag != "loop":
                    lost.setdefault(f"<{tag}>", []).append(child.get("name", "") or parent.get("name", ""))
    for joint in root.findall("joint"):
        dynamics = joint.find("dynamics") if "spring" in ours else None
        if dynamics is not None and dynamics.attrib.pop("spring_stiffness", ""):
            dynamics.attrib.pop("spring_reference", "")
            lost.setdefault("springs of joints", []).append(joint.get("name", ""))
    for dynamics in root.iter("dynamics"):
        if not {"damping", "friction"} & dynamics.attrib.keys():  # without either, ROS refuses the file
            dynamics.set("damping", "0")
    if isinstance(mechanism, TreeModel):
        for chain in mechanism.floating:
            _fold(root, chain)
    return root, [f"left out: {what} {', '.join(names)}" for what, names in lost.items()]


def _fold(root: ET.Element, chain: Sequence[Joint]) -> None:
    """Write a body that floats in URDF's own word, with the same names of its coordinates."""
    first, body = chain[0], chain[-1].child
    gone = {joint.name for joint in chain} | {joint.child for joint in chain[:-1]}
    for element in [e for e in root if e.tag in ("joint", "link") and e.get("name") in gone - {body}]:
        root.remove(element)
    joint = append(root, "joint", name=first.name.removesuffix("/x"), type=JointType.FLOATING.value)
    append(joint, "parent", link=first.parent)
    append(joint, "child", link=body)
    append(joint, "origin", **pose_attributes(first.origin))


def _text(root: ET.Element) -> str:
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _numbers(values: Iterable[float]) -> str:
    return f"[{', '.join(repr(float(value) + 0.0) for value in values)}]"
