# SPDX-License-Identifier: Apache-2.0
"""SDF, Gazebo's format, 1.4 to 1.12: a loop is a link with two parents. Written joints count from home."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence

import numpy as np

from pkm_description.description_error import DescriptionError, refuse_near
from pkm_description.formats.bodies_and_joints import (
    FLOATS,
    FREEDOMS,
    OTHER_WORDS,
    REMARKED,
    TURNING,
    WORLD,
    Assembly,
    Body,
    Connection,
    made_of,
    named,
    parent_frame_as_drawn,
    pose_of_body,
)
from pkm_description.formats.spanning_tree import SAME
from pkm_description.mechanism import Array, Inertial, Limits, Mechanism, Mimic, frozen, symmetric_of
from pkm_description.rotations import (
    rotation_about,
    rotation_from_quaternion,
    rotation_from_rpy,
    rpy_from_rotation,
    transform,
)
from pkm_description.tree_model import TreeModel
from pkm_description.urdf.elements import LARGEST, SIX, inertia_problem, numbers_of
from pkm_description.urdf.visuals import GREY, Visual
from pkm_description.urdf.xml_text import append, read_xml, row

VERSIONS = [f"1.{n}" for n in range(4, 13)]
MODEL = "__model__"
LONGEST = 300  # frames, each relative to the next
ROUNDED = 1e-4  # m and rad, of a loop as drawn
ENDLESS = 1e15  # limits beyond it are none: SDF writes 1e16
READ = {"link", "joint", "frame", "pose", "static", "self_collide", "allow_auto_disable", "enable_wind", "plugin"}
PARTS = {  # elements that are read, by the one around them: a misspelled one would go unnoticed
    "model": READ,
    "link": {"pose", "inertial", "visual", "collision"},
    "inertial": {"pose", "mass", "inertia"},
    "inertia": set(SIX),
    "joint": {"parent", "child", "pose", "axis", "axis2"},
    "axis": {"xyz", "limit", "dynamics", "mimic"},
    "axis2": {"xyz", "limit", "dynamics", "mimic"},
    "limit": {"lower", "upper", "effort", "velocity"},
    "dynamics": {"damping", "friction", "spring_stiffness", "spring_reference"},
}
BESIDE = ("sensor", "collision", "light", "particle_emitter", "projector", "audio_source", "battery", "physics")
NAMESPACE = "pkm"  # of our own element; libsdformat keeps elements with a prefix and does not read them
TYPES = {"spherical": "ball"}


def read_sdf(text: str, place: str = "<sdf>") -> Assembly:
    """Bodies and joints of the one model of an SDF text; `DescriptionError` for what is wrong or has no counterpart."""
    root = read_xml(text, place)
    version = root.get("version", "")
    if version not in VERSIONS:
        raise DescriptionError("<sdf>", f"version {version!r} is not known", f"write {VERSIONS[0]} to {VERSIONS[-1]}")
    models = [*root.findall("model"), *root.findall("world/model")]
    if len(models) != 1:
        raise DescriptionError("<sdf>", f"it has {len(models)} models", "keep one model in the file")
    reader = _Reader(Assembly(models[0].get("name") or "robot"), int(version.split(".")[1]))
    reader.read(models[0], root)
    return reader.assembly


def read_joints(elements: list[ET.Element], assembly: Assembly) -> None:
    """Add the joints of SDF elements between the bodies of a robot."""
    reader = _Reader(assembly, len(VERSIONS))
    reader.poses |= {body.name: body.pose for body in assembly.bodies.values()}
    reader.elements = {element.get("name", ""): element for element in elements}
    for element in elements:
        _refuse_misspelled(element, f'<joint name="{element.get("name", "")}">')
        reader.joint(element)


class _Reader:
    def __init__(self, assembly: Assembly, minor: int) -> None:
        self.minor = minor
        self.assembly = assembly
        self.elements: dict[str, ET.Element] = {}
        self.poses: dict[str, Array] = {MODEL: np.eye(4)}
        self.open: list[str] = []

    def read(self, model: ET.Element, root: ET.Element) -> None:
        label = f'<model name="{self.assembly.name}">'
        for tag in ("include", "model"):
            if model.find(tag) is not None:
                raise DescriptionError(
                    label, f"a <{tag}> in a model is not supported", "merge the models into one (gz sdf -p FILE)"
                )
        for tag in ("link", "joint", "frame"):
            for element in model.findall(tag):
                name = element.get("name", "")
                if not name or name in self.elements:
                    problem = "the name is used twice" if name else "it has no name"
                    raise DescriptionError(f'<{tag} name="{name}">', problem, "give each its own name")
                self.elements[name] = element
        _refuse_misspelled(model, label)
        gravity = root.find("world/gravity")
        if gravity is not None:
            self.assembly.gravity = _numbers(gravity, 3, "<gravity>")
        turn = self._frame(model.find("pose"), label)[:3, :3]  # of the model in the world
        self.assembly.gravity = turn.T @ self.assembly.gravity
        for element in model.findall("link"):
            self._link(element)
        for element in model.findall("joint"):
            self.joint(element)
        self._plugins(model)
        self._check_inertias(model)
        skipped = {str(e.tag) for e in model} - READ - {"{urn:pkm}remark"}
        skipped |= {str(e.tag) for e in root.findall("world/*")} - {"model", "gravity"}
        if skipped:
            self.assembly.notes.append(f"not read: {', '.join(f'<{tag}>' for tag in sorted(skipped))}")
        for tag in BESIDE:
            having = [
                e.get("name", "") for e in [*model.findall("link"), *model.findall("joint")] if e.find(tag) is not None
            ]
            self.assembly.notes += named(f"<{tag}> of", having, "not read")
        if model.findtext("static", "false").strip() in ("true", "1"):
            raise DescriptionError(label, "it is static: nothing moves", "remove <static>")
        remark = model.find("{urn:pkm}remark")
        if remark is not None:
            self.assembly.remark = read_xml(remark.text or "", "the remark <pkm:remark>")
            self.assembly.from_home = True

    # -- frames -------------------------------------------------------------------------------------------------------

    def _pose_of(self, name: str, asked: str) -> Array:
        if name in self.poses:
            return self.poses[name]
        if name == WORLD:
            return np.eye(4)
        element = self.elements.get(name)
        if element is None:
            raise DescriptionError(asked, f"there is no frame {name!r}", "name a link, joint or frame of the model")
        label = f'<{element.tag} name="{name}">'
        if name in self.open:
            raise DescriptionError(label, f"its pose depends on itself: {' of '.join(self.open)}", "break this cycle")
        if len(self.open) >= LONGEST:
            raise DescriptionError(label, f"more than {LONGEST} poses depend on each other", "write poses in the model")
        self.open.append(name)
        default = MODEL
        if element.tag == "joint":
            default = _text(element, "child", label)
        elif element.tag == "frame":
            default = element.get("attached_to") or MODEL
        pose = element.find("pose")
        about = (pose.get("relative_to") or pose.get("frame") or default) if pose is not None else default
        self.poses[name] = self._pose_of(about, label) @ self._frame(pose, label)
        self.open.pop()
        return self.poses[name]

    def _frame(self, pose: ET.Element | None, label: str) -> Array:
        if pose is None or not (pose.text or "").strip():
            return np.eye(4)
        if pose.get("rotation_format", "euler_rpy") == "quat_xyzw":
            values = _numbers(pose, 7, f"{label} <pose>")
            if not np.linalg.norm(values[3:]) > 0.0:
                raise DescriptionError(f"{label} <pose>", "a quaternion of length zero", "write x y z w of length 1")
            return transform(values[:3], rotation_from_quaternion(values[3:]))
        values = _numbers(pose, 6, f"{label} <pose>")
        turn = np.pi / 180.0 if pose.get("degrees") in ("true", "1") else 1.0
        return transform(values[:3], rotation_from_rpy(turn * values[3:]))

    # -- bodies -------------------------------------------------------------------------------------------------------

    def _link(self, element: ET.Element) -> None:
        name = element.get("name", "")
        label = f'<link name="{name}">'
        body = Body(name, self._pose_of(name, label), self._inertial(element, label))
        for visual in element.findall("visual"):
            self._visual(body, visual)
        self.assembly.bodies[name] = body

    def _inertial(self, element: ET.Element, label: str) -> Inertial:
        inertial = element.find("inertial")
        if inertial is None:
            return Inertial()  # refused below if the body moves
        if inertial.get("auto") in ("true", "1"):
            raise DescriptionError(f"{label} <inertial>", "auto: it has no values", "write mass, pose and inertia")
        frame = self._frame(inertial.find("pose"), f"{label} <inertial>")
        mass = inertial.find("mass")
        for tag, meant in (("mass", "1 kg"), ("inertia", "1 kg m^2")):
            if inertial.find(tag) is None:
                self.assembly.notes.append(f"no <{tag}> is stated, which is {meant} in SDF: {element.get('name')}")
        six = np.eye(3)[np.triu_indices(3)]  # what SDF means where it says nothing
        for n, key in enumerate(SIX):
            one = inertial.find(f"inertia/{key}")
            six[n] = six[n] if one is None else _numbers(one, 1, f"{label} <{key}>")[0]
        inertia = frame[:3, :3] @ symmetric_of(six) @ frame[:3, :3].T
        weight = 1.0 if mass is None else float(_numbers(mass, 1, f"{label} <mass>")[0])
        found = Inertial(weight, frozen(frame[:3, 3]), frozen(0.5 * (inertia + inertia.T)))
        problem = inertia_problem(found)
        if problem:
            raise DescriptionError(label, problem, "correct mass or inertia")
        return found

    def _check_inertias(self, model: ET.Element) -> None:
        """Refuse bodies that move without a stated inertia, for which SDF means 1 kg and 1 kg m^2."""
        fixed = {j.child for j in self.assembly.joints if j.parent == WORLD and j.kind == "fixed"}
        for element in model.findall("link"):
            name = element.get("name", "")
            if element.find("inertial") is None and name not in fixed:
                label = f'<link name="{name}">'
                raise DescriptionError(label, "it has no <inertial>, so its mass is 1 kg", "write its mass and inertia")

    def _visual(self, body: Body, element: ET.Element) -> None:
        label = f"<visual> of {body.name}"
        pose = element.find("pose")
        frame = self._frame(pose, label)
        if pose is not None and pose.get("relative_to"):
            frame = np.linalg.inv(body.pose) @ self._pose_of(pose.get("relative_to", ""), label) @ frame
        geometry = element.find("geometry")
        shape = next(iter(geometry), None) if geometry is not None else None
        if shape is None:
            return
        if shape.tag == "mesh":
            scale = shape.find("scale")
            size = np.ones(3) if scale is None else _numbers(scale, 3, label)
            body.meshes.append((frame, shape.findtext("uri", "").strip(), size))
            return
        keys = {"box": {"size": 3}, "cylinder": {"radius": 1, "length": 1}, "sphere": {"radius": 1}}.get(str(shape.tag))
        if keys is None:
            self.assembly.notes.append(f"not read: a {shape.tag} of {body.name}")
            return
        sizes = [_numbers(one, n, label) for key, n in keys.items() if (one := shape.find(key)) is not None]
        diffuse = element.find("material/diffuse")
        colour = GREY if diffuse is None else tuple(_numbers(diffuse, 4, label))
        body.visuals.append(Visual(body.name, frame, str(shape.tag), np.concatenate(sizes), colour))

    # -- joints -------------------------------------------------------------------------------------------------------

    def joint(self, element: ET.Element) -> None:
        name = element.get("name", "")
        label = f'<joint name="{name}">'
        kind = element.get("type", "")
        kind = OTHER_WORDS.get(kind, kind)
        if kind not in FREEDOMS:
            known = ", ".join([*FREEDOMS, *OTHER_WORDS])
            raise DescriptionError(label, f"a joint of type {kind!r} is not supported", f"use one of {known}")
        ends = [self._body_at(_text(element, tag, label), label) for tag in ("parent", "child")]
        pose = self._pose_of(name, label)
        child = pose_of_body(self.assembly.bodies, ends[1])
        second = np.linalg.inv(child) @ pose
        joint = Connection(name, kind, ends[0], ends[1], np.eye(4), second)
        if element.find("pose") is None:
            joint.doubt = f"it has no <pose>, and so is where the frame of {ends[1]} is"
        joint.first = parent_frame_as_drawn(self.assembly.bodies, joint)
        own = element.find("{urn:pkm}pose_in_parent")
        if own is not None and np.abs((exact := self._frame(own, label)) - joint.first).max() < ROUNDED:
            joint.first = exact
        for tag in ("axis", "axis2"):
            axis = element.find(tag)
            if axis is not None and kind not in ("fixed", "spherical"):
                setattr(joint, tag, self._axis(axis, pose, child, f"{label} <{tag}>"))
        about = element.find("axis")
        if about is not None and kind not in ("fixed", "spherical"):
            self._dynamics(joint, about, label)
        self.assembly.joints.append(joint)

    def _body_at(self, name: str, label: str) -> str:
        for _ in range(len(self.elements) + 1):
            if name == WORLD or name in self.assembly.bodies:
                return name
            element = self.elements.get(name)
            if element is None:
                break
            name = element.get("attached_to", "") if element.tag == "frame" else element.findtext("child", "").strip()
        raise DescriptionError(label, f"there is no link {name!r}", "name an existing <link>")

    def _axis(self, element: ET.Element, pose: Array, child: Array, label: str) -> Array:
        xyz = element.find("xyz")
        vector = np.array([0.0, 0.0, 1.0]) if xyz is None else _numbers(xyz, 3, label)
        length = np.linalg.norm(vector)
        if not length > 0.0:
            raise DescriptionError(label, "its length is zero", "write a direction, for example <xyz>0 0 1</xyz>")
        frame = pose
        if xyz is not None and xyz.get("expressed_in"):
            frame = self._pose_of(xyz.get("expressed_in", ""), label)
        elif self.minor < 5 or element.findtext("use_parent_model_frame", "0").strip() in ("true", "1"):
            frame = np.eye(4)
        return np.asarray(pose[:3, :3].T @ frame[:3, :3] @ vector / length)

    def _dynamics(self, joint: Connection, axis: ET.Element, label: str) -> None:
        def number(path: str, default: float) -> float:
            found = axis.find(path)
            return default if found is None else float(_numbers(found, 1, f"{label} <{path}>", np.inf)[0])

        low, high = number("limit/lower", -np.inf), number("limit/upper", np.inf)
        effort, velocity = number("limit/effort", -1.0), number("limit/velocity", -1.0)
        endless = joint.kind not in ("revolute", "prismatic")
        joint.limits = Limits(
            -np.inf if endless or abs(low) > ENDLESS else low,
            np.inf if endless or abs(high) > ENDLESS else high,
            velocity if 0.0 < velocity < ENDLESS else np.inf,
            effort if 0.0 < effort < ENDLESS else np.inf,
        )
        joint.damping, joint.friction = number("dynamics/damping", 0.0), number("dynamics/friction", 0.0)
        joint.spring_stiffness = number("dynamics/spring_stiffness", 0.0)
        joint.spring_reference = number("dynamics/spring_reference", 0.0)
        mimic = axis.find("mimic")
        if mimic is not None:
            ratio, offset = number("mimic/multiplier", 1.0), number("mimic/offset", 0.0)
            leader = mimic.get("joint", "")
            joint.mimic = Mimic(leader, ratio, offset - ratio * number("mimic/reference", 0.0))

    def _plugins(self, model: ET.Element) -> None:
        joints = {joint.name: joint for joint in self.assembly.joints}
        for plugin in model.findall("plugin"):
            named = [name for e in plugin.iter("joint_name") if (name := (e.text or "").strip()) in joints]
            if named and "JointStatePublisher" not in plugin.get("name", "") + plugin.get("filename", ""):
                self.assembly.drives |= dict.fromkeys(named, "effort")
            else:
                self.assembly.notes.append(f"not read: <plugin> {plugin.get('name', '')}")


def _refuse_misspelled(element: ET.Element, label: str) -> None:
    for child in element:
        tag, name = str(child.tag), child.get("name")
        refuse_near(tag, PARTS[element.tag], label)
        if tag in PARTS:
            _refuse_misspelled(child, f'<{tag} name="{name}">' if name else f"{label} <{tag}>")


def _text(element: ET.Element, tag: str, label: str) -> str:
    text = element.findtext(tag, "").strip()
    if not text:
        raise DescriptionError(label, f"no <{tag}>", f"add <{tag}>name of a link</{tag}>")
    return text


def to_sdf(mechanism: Mechanism | TreeModel, split: Sequence[str] = ()) -> tuple[str, list[str]]:
    """SDF text of a robot at home, and notes; joints of the kinds in `split` become hinges in a row."""
    assembly = made_of(mechanism, split)
    assembly.rename(lambda name: f"{name}_joint" if name in assembly.bodies else name)
    rounded: list[str] = []  # loops that their numbers leave open
    geared = [joint for joint in assembly.joints if joint.mimic]
    root = ET.Element("sdf", {"version": "1.11" if geared else "1.9", f"xmlns:{NAMESPACE}": "urn:pkm"})
    model = append(root, "model", name=mechanism.name)
    upright = _upright(assembly.gravity) if mechanism.base_link != WORLD else np.eye(4)
    if (upright != np.eye(4)).any():
        _pose(model, upright)
        assembly.notes.append("the model is turned in the world, whose gravity pulls down")
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
    notes += named("armature of passive joints,", [j.name for j in assembly.joints if j.armature and not j.driven])
    if rounded:
        notes.append(f"rounded numbers leave loops open, by a gap that other tools do not see: {', '.join(rounded)}")
    moved = [joint.name for joint in assembly.joints if joint.drawn]
    if moved:
        notes.append(f"positions of these joints count from home: {', '.join(moved)}; {REMARKED}: what they are there")
    return ET.tostring(root, encoding="unicode") + "\n", notes


def _upright(gravity: Array) -> Array:
    """The frame (4, 4) in the world of a model that has this gravity in its own axes."""
    down, frame = np.array([0.0, 0.0, -1.0]), np.eye(4)
    axis, along = np.cross(gravity, down), float(gravity @ down)
    across = float(np.linalg.norm(axis))
    if across > SAME * abs(along):
        frame[:3, :3] = rotation_about(axis / across, float(np.arctan2(across, along)))
    elif along < 0.0:
        frame[:3, :3] = np.diag([1.0, -1.0, -1.0])
    return frame


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
        for key, value in zip(SIX, body.inertial.inertia[np.triu_indices(3)], strict=True):
            append(inertia, key).text = row([value])
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
    bounded = math.isfinite(ends[0]) or math.isfinite(ends[1])
    if kind in TURNING:
        kind = "revolute" if bounded else "continuous"
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
        if bounded:
            for key, end in zip(("lower", "upper"), ends, strict=True):
                append(limit, key).text = row([min(max(end, -10.0 * ENDLESS), 10.0 * ENDLESS)])
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


def _numbers(element: ET.Element, count: int, label: str, largest: float = LARGEST) -> Array:
    return numbers_of((element.text or "").strip(), label, "", count, largest, largest < np.inf)
