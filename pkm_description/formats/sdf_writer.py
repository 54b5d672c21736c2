# SPDX-License-Identifier: Apache-2.0
"""Write a robot as SDF, Gazebo's format: drawn at home, joints count from there, a loop is a link with two parents."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence

import numpy as np

from pkm_description.formats.bodies_and_joints import (
    FLOATS,
    REMARKED,
    TURNING,
    WORLD,
    Body,
    Connection,
    made_of,
    parent_frame_as_drawn,
)
from pkm_description.formats.spanning_tree import SAME
from pkm_description.mechanism import Array, Mechanism
from pkm_description.mjcf.mujoco_model import append, row
from pkm_description.rotations import rpy_from_rotation
from pkm_description.tree_model import TreeModel

NAMESPACE = "pkm"  # of our own element; libsdformat keeps elements with a prefix and does not read them
TYPES = {"spherical": "ball"}


def to_sdf(mechanism: Mechanism | TreeModel, split: Sequence[str] = ()) -> tuple[str, list[str]]:
    """SDF text of a robot at home, and a sentence for everything it does not say.

    Joints of the kinds in `split` (universal, spherical) become hinges one after the other.
    """
    assembly = made_of(mechanism, split)
    assembly.rename(lambda name: f"{name}_joint" if name in assembly.bodies else name)
    rounded: list[str] = []  # loops that their numbers leave open
    geared = [joint for joint in assembly.joints if joint.mimic]
    root = ET.Element("sdf", {"version": "1.11" if geared else "1.9", f"xmlns:{NAMESPACE}": "urn:pkm"})
    model = append(root, "model", name=mechanism.name)
    for body in assembly.bodies.values():
        if body.name != WORLD:
            _link(model, body)
    if mechanism.base_link != WORLD:
        mount = append(model, "joint", name="to_world", type="fixed")
        append(mount, "parent").text = WORLD
        append(mount, "child").text = mechanism.base_link
    for joint in assembly.joints:
        if joint.kind != FLOATS:
            _joint(model, joint)
            drawn = parent_frame_as_drawn(assembly.bodies, joint)
            if joint.closes and np.abs(drawn - joint.first).max() > SAME:
                _pose(model[-1], joint.first, f"{NAMESPACE}:pose_in_parent")
                rounded.append(joint.name)
    append(model, f"{NAMESPACE}:remark").text = ET.tostring(assembly.remark, encoding="unicode")  # type: ignore[arg-type]
    ET.indent(root)
    notes = [
        *assembly.notes,
        "left out: gravity, which is the world's",
        f"{REMARKED}: drives and the inertia of their rotors",
    ]
    if rounded:
        notes.append(f"rounded numbers leave loops open, by a gap that other tools do not see: {', '.join(rounded)}")
    moved = [joint.name for joint in assembly.joints if joint.drawn]
    if moved:
        notes.append(f"positions of these joints count from home: {', '.join(moved)}; {REMARKED}: what they are there")
    return ET.tostring(root, encoding="unicode") + "\n", notes


def _pose(parent: ET.Element, frame: Array, tag: str = "pose") -> None:
    append(parent, tag).text = row([*frame[:3, 3], *rpy_from_rotation(frame[:3, :3])])


def _link(model: ET.Element, body: Body) -> None:
    link = append(model, "link", name=body.name)
    _pose(link, body.pose)
    if not body.inertial.massless:
        inertial = append(link, "inertial")
        append(inertial, "pose").text = row([*body.inertial.com, 0.0, 0.0, 0.0])
        append(inertial, "mass").text = row([body.inertial.mass])
        inertia = append(inertial, "inertia")
        for key, at in (
            ("ixx", (0, 0)),
            ("ixy", (0, 1)),
            ("ixz", (0, 2)),
            ("iyy", (1, 1)),
            ("iyz", (1, 2)),
            ("izz", (2, 2)),
        ):
            append(inertia, key).text = row([body.inertial.inertia[at]])
    for n, visual in enumerate(body.visuals):
        shape = _visual(link, n, visual.frame, visual.shape, row(visual.colour))
        if visual.shape == "box":
            append(shape, "size").text = row(visual.size)
        else:
            for key, value in zip(("radius", "length"), visual.size, strict=False):
                append(shape, key).text = row([value])
    for n, (frame, file, scale) in enumerate(body.meshes, len(body.visuals)):
        shape = _visual(link, n, frame, "mesh", "")
        append(shape, "uri").text = file
        append(shape, "scale").text = row(scale)


def _visual(link: ET.Element, number: int, frame: Array, shape: str, colour: str) -> ET.Element:
    visual = append(link, "visual", name=f"visual{number}")
    _pose(visual, frame)
    found = append(append(visual, "geometry"), shape)
    if colour:
        material = append(visual, "material")
        append(material, "ambient").text = colour
        append(material, "diffuse").text = colour
    return found


def _joint(model: ET.Element, joint: Connection) -> None:
    ends = (joint.limits.lower - joint.drawn, joint.limits.upper - joint.drawn)
    kind = TYPES.get(joint.kind, joint.kind)
    if kind in TURNING:
        kind = "revolute" if math.isfinite(ends[1] - ends[0]) else "continuous"
    element = append(model, "joint", name=joint.name, type=kind)
    append(element, "parent").text = joint.parent
    append(element, "child").text = joint.child
    _pose(element, joint.second)
    if kind in ("fixed", "ball"):
        return
    for tag, axis in (("axis", joint.axis), ("axis2", joint.axis2)):
        if tag == "axis2" and kind != "universal":
            continue
        about = append(element, tag)
        append(about, "xyz").text = row(axis)
        limit = append(about, "limit")
        if math.isfinite(ends[1] - ends[0]):
            append(limit, "lower").text, append(limit, "upper").text = row(ends[:1]), row(ends[1:])
        for key, value in (("effort", joint.limits.effort), ("velocity", joint.limits.velocity)):
            if math.isfinite(value):
                append(limit, key).text = row([value])
        dynamics = append(about, "dynamics")
        append(dynamics, "damping").text = row([joint.damping])
        append(dynamics, "friction").text = row([joint.friction])
        if joint.spring_stiffness:
            append(dynamics, "spring_reference").text = row([joint.spring_reference - joint.drawn])
            append(dynamics, "spring_stiffness").text = row([joint.spring_stiffness])
        if joint.mimic:
            mimic = append(about, "mimic", joint=joint.mimic.joint)
            append(mimic, "multiplier").text = row([joint.mimic.multiplier])
            append(mimic, "offset").text = row([joint.mimic.offset])
            append(mimic, "reference").text = row([0.0])
