# SPDX-License-Identifier: Apache-2.0
"""Write a robot as URDF that other tools read: the tree alone, or with `<constraint>`, and loops as YAML beside it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence

from pkm_description.formats.bodies_and_joints import pose_attributes
from pkm_description.joint_geometry import home_positions
from pkm_description.mechanism import Joint, JointType, LoopType, Mechanism
from pkm_description.mjcf.mujoco_model import append, row
from pkm_description.tree_model import TreeModel
from pkm_description.urdf.xml_text import read_xml

IN_YAML = {LoopType.REVOLUTE: "pin_loops", LoopType.SPHERICAL: "ball_loops"}
NAMELESS = "left out: which bodies are base and platform, gravity and home"
AXES = {LoopType.REVOLUTE, LoopType.CYLINDRICAL, LoopType.PRISMATIC, LoopType.PLANAR, LoopType.UNIVERSAL}


def to_tree(mechanism: Mechanism | TreeModel) -> tuple[str, list[str]]:
    """Plain URDF: the spanning tree, and a sentence for everything it does not say."""
    root, notes = _plain(mechanism)
    for element in root.findall("pkm"):
        root.remove(element)
    names = ", ".join(loop.name for loop in mechanism.loops)
    return _text(root), [*[f"left out: loops {names}"] * bool(names), NAMELESS, *notes]


def to_constraints(mechanism: Mechanism | TreeModel) -> tuple[str, list[str]]:
    """URDF with a `<constraint>` for each loop; `<pkm>`, which others skip, says what our reader needs."""
    root, notes = _plain(mechanism, ours=("spring", "beam", "bearing"))
    if kept := [element.get("name", "") for element in root.findall("coupling")]:
        notes.append(f"only in elements that other tools skip: couplings of joints, {', '.join(kept)}")
    pkm = root.find("pkm")
    if pkm is not None:
        for element in pkm.findall("home"):
            pkm.remove(element)
        home = append(pkm, "home")
        for name, value in home_positions(mechanism).items():
            append(home, "joint", name=name, position=repr(value))
    for loop in mechanism.loops:
        element = append(root, "constraint", name=loop.name, type=f"{loop.type.value}_joint")
        for end, link, frame, axis in (
            ("parent", loop.predecessor, loop.predecessor_frame, loop.axis),
            ("child", loop.successor, loop.successor_frame, loop.axis2),
        ):
            append(element, end, link=link)
            append(element, f"{end}_origin", **pose_attributes(frame))
            if loop.type in AXES:
                append(element, f"{end}_axis", xyz=row(axis))
    return _text(root), notes


def to_yaml(mechanism: Mechanism | TreeModel) -> tuple[str, list[str]]:
    """The hinges and balls of loops as `loop_closures.yaml`, for the file that `to_tree` writes."""
    lines: list[str] = []
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
    couplings = mechanism.couplings if isinstance(mechanism, TreeModel) else ()
    others = [f"{one.name} ({one.type.value})" for one in mechanism.loops if one.type not in IN_YAML]
    others += [f"{one.name} (coupling of joints)" for one in couplings]
    notes = [f"left out, as this format has only hinges and balls: {', '.join(others)}"] if others else []
    return "\n".join(lines) + "\n", [NAMELESS, *notes]


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
        dynamics = joint.find("dynamics")
        if dynamics is not None and dynamics.attrib.pop("spring_stiffness", ""):
            dynamics.attrib.pop("spring_reference", "")
            lost.setdefault("springs of joints", []).append(joint.get("name", ""))
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
