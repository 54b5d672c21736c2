# SPDX-License-Identifier: Apache-2.0
"""From MJCF to bodies and joints.

Bodies stay in the same frames; several joints of one body become a chain with massless bodies between, a ball one of
three hinges about x, y, z, which are zero at home, a free joint three slides and three turns. `connect` becomes a ball,
two between the same bodies a hinge, `weld` a fixed joint. The keyframe `home`, else the first, is home.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.polynomial import Polynomial

from pkm_description.description_error import DescriptionError
from pkm_description.formats.bodies_and_joints import Assembly, Body, Connection, at, motion
from pkm_description.formats.mjcf_compiled import read_compiled
from pkm_description.formats.mjcf_model import (
    REMARK,
    WORLD,
    MjcfActuator,
    MjcfBody,
    MjcfClosure,
    MjcfGear,
    MjcfJoint,
    MjcfModel,
    NeedsCompilerError,
    effort_of,
    read,
)
from pkm_description.joint_geometry import freedoms
from pkm_description.mechanism import Array, Coupling, Inertial, Joint, JointType, Limits, Mimic, frozen
from pkm_description.rotations import inverse_transform, rpy_from_rotation, transform_from_wxyz, wxyz_from_rotation
from pkm_description.urdf import elements
from pkm_description.urdf.urdf_plus import check_number
from pkm_description.urdf.xml_text import read_xml

RANKED = ("effort", "velocity", "position")  # interfaces: of several, the last commands
SUMMED = "several actuators drive a joint, and their efforts add up"
UNLIMITED = "no limit of effort is known"
ONE_SIDED = "efforts differ by direction, and the smaller one, if not 0, counts both ways"
SAME = 1e-6  # m, two points of a hinge are equally far apart in both bodies


def read_mjcf(text: str, path: Path | None = None) -> Assembly:
    """Bodies and joints of an MJCF text, `path` its file; `DescriptionError` where it needs `mujoco`, too."""
    root = read_xml(text, "<mujoco>")
    if version := root.get("version"):
        raise DescriptionError("<mujoco>", f"version {version!r} is not known", "leave it out: MJCF has no versions")
    check_number("link", len(root.findall("worldbody//body")))  # before MuJoCo, which takes seconds
    try:
        model = read(root)
    except NeedsCompilerError as need:
        model = read_compiled(text, path, str(need))
    text_of_ours = root.find(f"custom/text[@name='{REMARK}']")
    remark = None if text_of_ours is None else read_xml(text_of_ours.get("data", ""), f"the remark <text {REMARK}>")
    return _Reader(model, remark).assembly


class _Reader:
    def __init__(self, model: MjcfModel, remark: ET.Element | None) -> None:
        self.model = model
        self.assembly = Assembly(model.name, gravity=model.gravity, notes=model.notes)
        self.assembly.bodies[WORLD] = Body(WORLD, np.eye(4))
        self.weighted = {body.parent for body in model.bodies if not body.joints and body.mass}  # by what is welded on
        self.positions = None if model.home is None else list(model.home)
        self.assembly.starts = model.home is not None
        self.references: dict[str, float] = {}  # of hinges and slides, from which equalities count
        for body in model.bodies:
            self._body(body)
        if self.positions:
            raise DescriptionError(
                "<key>", f"qpos has {len(self.positions)} number(s) too many", "correct the keyframe"
            )
        self._couple()
        self._drive(remark is not None)
        for closure, kind, axes in _hinges(model.closures):
            self._closure(closure, kind, axes)
        self.assembly.springs += model.springs
        self.assembly.couplings += map(self._of_positions, model.couplings)
        if remark is not None:
            self._believe(remark)

    def _body(self, body: MjcfBody) -> None:
        parent, place, bodies = body.parent, body.frame, self.assembly.bodies
        pose = bodies[parent].pose
        before = np.zeros(3)
        if not body.joints:
            pose = pose @ place
            self.assembly.joints.append(Connection(f"{body.name}/mount", "fixed", parent, body.name, place, np.eye(4)))
        for n, joint in enumerate(body.joints):
            last = n == len(body.joints) - 1
            child = body.name if last else f"{body.name}/{joint.name}"
            first = place @ at(joint.pos - before)
            second = at(joint.pos) if last else np.eye(4)
            if joint.kind == "free":
                pose = self._free(joint, body)
                continue
            one = self._joint(joint, parent, child, first, second)
            pose = pose @ one.first @ motion(one, one.drawn) @ inverse_transform(second)
            if not last:
                bodies[child] = Body(child, pose)
            parent, place, before = child, np.eye(4), joint.pos
        if body.joints and not body.mass and body.name not in self.weighted:
            self.assembly.notes.append(f"no mass is stated, which MuJoCo refuses: {body.name}")
        inertial = Inertial(body.mass, frozen(body.com), frozen(body.inertia))
        bodies[body.name] = Body(body.name, pose, inertial, body.visuals)

    def _taken(self, drawn: Sequence[float]) -> list[float]:
        if self.positions is None:
            return list(drawn)
        if len(self.positions) < len(drawn):
            raise DescriptionError("<key>", "qpos has too few numbers", "correct the keyframe")
        values = self.positions[: len(drawn)]
        del self.positions[: len(drawn)]
        return values

    def _free(self, joint: MjcfJoint, body: MjcfBody) -> Array:
        values = self._taken([*body.frame[:3, 3], *wxyz_from_rotation(body.frame[:3, :3])])
        pose = transform_from_wxyz(np.array(values[:3]), np.array(values[3:]))
        free = Joint(joint.name, JointType.FLOATING, WORLD, body.name, np.eye(4), np.array([0.0, 0.0, 1.0]))
        self.assembly.add_chain(free, np.array([*values[:3], *rpy_from_rotation(pose[:3, :3])[::-1]]))
        return pose

    def _joint(self, joint: MjcfJoint, parent: str, child: str, first: Array, second: Array) -> Connection:
        """A hinge, slide or ball; positions are MuJoCo's, those of a ball count from home."""
        one = Connection(joint.name, "spherical", parent, child, first, second, joint.axis)
        self.assembly.joints.append(one)
        one.damping, one.friction, one.armature = joint.damping, joint.friction, joint.armature
        if joint.kind == "ball":
            turned = transform_from_wxyz(np.zeros(3), np.array(self._taken([1.0, 0.0, 0.0, 0.0])))
            one.first = first @ turned
            return one
        if joint.kind not in ("hinge", "slide"):
            raise DescriptionError(f'<joint name="{joint.name}">', f"unknown type {joint.kind!r}", "use hinge or slide")
        one.kind = "prismatic" if joint.kind == "slide" else "continuous"
        one.first = first @ motion(one, -joint.reference)  # the drawing has it at `ref`
        self.references[joint.name] = joint.reference
        one.drawn = self._taken([joint.reference])[0]
        one.spring_stiffness, one.spring_reference = joint.stiffness, joint.rest
        if joint.limits:
            one.kind = "prismatic" if joint.kind == "slide" else "revolute"
            one.limits = Limits(*joint.limits)
        return one

    def _couple(self) -> None:
        joints = {joint.name: joint for joint in self.assembly.joints}
        driven = {drive.joint for drive in self.model.actuators}
        held: dict[str, float] = {}
        for name, position in self.model.locked:
            if held.setdefault(name, position) != position:
                problem = f"one equality holds it at {held[name]:g}, another at {position:g}"
                raise DescriptionError(f'<joint name="{name}">', problem, "leave one of them out")
            if name in driven:
                problem = "an equality holds it and an actuator drives it"
                raise DescriptionError(f'<joint name="{name}">', problem, "leave one of them out")
        for name, position in held.items():
            turn = motion(joints[name], self._zero(name) + position)
            joints[name].kind, joints[name].first = "fixed", joints[name].first @ turn
        for gear in self.model.gears:
            if gear.follower in driven and gear.leader not in driven and gear.ratio:  # the other way round
                ratio = 1.0 / gear.ratio
                gear = MjcfGear(gear.leader, gear.follower, -gear.offset * ratio, ratio)
            for name in (gear.follower, gear.leader):
                if name not in joints:
                    raise DescriptionError("<equality>", f"{name!r} is not a joint", "name an existing <joint>")
            if joints[gear.follower].mimic:
                problem = "two equalities couple it to other joints"
                raise DescriptionError(f'<joint name="{gear.follower}">', problem, "remove one of them")
            offset = self._zero(gear.follower) + gear.offset - gear.ratio * self._zero(gear.leader)
            joints[gear.follower].mimic = Mimic(gear.leader, gear.ratio, offset)

    def _drive(self, ours: bool) -> None:
        """What actuators of a joint have together, within the joint's own range; of `ours`, a remark has it."""
        ranges = {joint.name: joint.effort for body in self.model.bodies for joint in body.joints}
        joints = {joint.name: joint for joint in self.assembly.joints}
        notes: dict[str, list[str]] = {}
        of_joint: dict[str, list[MjcfActuator]] = {}
        for drive in self.model.actuators:
            of_joint.setdefault(drive.joint, []).append(drive)
        for name, drives in of_joint.items():
            self.assembly.drive(name, "<actuator>", max((drive.interface for drive in drives), key=RANKED.index))
            low, high = (effort_of(drives, ranges, way) for way in (-1.0, 1.0))
            ways = {way for way in (-low, high) if way > 0.0}
            effort = (max if ours else min)(ways, default=np.inf)
            limits = joints[name].limits
            joints[name].limits = Limits(limits.lower, limits.upper, effort=effort)
            doubts = {drive.doubt or "a range of zero" for drive in drives if drive.doubt or not ways}
            if len(drives) > 1:
                notes.setdefault(SUMMED, []).append(name)
            if np.isinf(effort) and doubts:
                notes.setdefault(UNLIMITED, []).append(f"{name} ({', '.join(sorted(doubts))})")
            elif -low != high and not ours:
                notes.setdefault(ONE_SIDED, []).append(f"{name} ({low:g} to {high:g}, taken as {effort:g})")
        self.assembly.notes += [f"{what}: {', '.join(names)}" for what, names in notes.items()]

    def _zero(self, joint: str) -> float:
        return self.references.get(joint, 0.0)

    def _of_positions(self, coupling: Coupling) -> Coupling:
        """A coupling between departures from the drawing, said of positions."""
        offset, terms = coupling.offset, []
        for joint, numbers in coupling.terms:
            constant, *powers = Polynomial([0.0, *numbers])(Polynomial([-self._zero(joint), 1.0])).coef
            offset += float(constant)
            terms.append((joint, tuple(map(float, powers))))
        return Coupling(coupling.name, tuple(terms), offset)

    def _closure(self, closure: MjcfClosure, kind: str, axes: tuple[Array, Array] | None) -> None:
        frames = (closure.first_frame, closure.second_frame)
        first, second = (at(frame[:3, 3]) for frame in frames) if axes else frames  # axes are the bodies' own
        self.assembly.close(closure.name, kind, (closure.first, first), (closure.second, second), axes)

    def _believe(self, remark: ET.Element) -> None:
        """Take our own remark; the platform's coordinates are its, where MuJoCo has joints of a body."""
        self.assembly.remark = remark
        chain = [elements.joint_of(element) for element in remark.findall("joint")]
        names = {freedom.name for joint in chain for freedom in freedoms(joint)}
        pkm = remark.find("pkm")
        platform = "" if pkm is None else pkm.get("platform_link", "")
        for joint in [one for one in self.assembly.joints if one.name in names]:
            self.assembly.joints.remove(joint)
            if joint.child != platform:
                del self.assembly.bodies[joint.child]


def _hinges(closures: Sequence[MjcfClosure]) -> list[tuple[MjcfClosure, str, tuple[Array, Array] | None]]:
    """Loops (closure, type, axes): two points that connect the same bodies are a hinge."""
    found: list[tuple[MjcfClosure, str, tuple[Array, Array] | None]] = []
    used: set[int] = set()
    for k, one in enumerate(closures):
        if k in used:
            continue
        if one.kind == "weld":
            found.append((one, "fixed", None))
            continue
        for n in range(k + 1, len(closures)):
            other = closures[n]
            if n in used or other.kind != "connect" or {one.first, one.second} != {other.first, other.second}:
                continue
            turned = one.first != other.first
            ends = (other.second_frame, other.first_frame) if turned else (other.first_frame, other.second_frame)
            first, second = ends[0][:3, 3] - one.first_frame[:3, 3], ends[1][:3, 3] - one.second_frame[:3, 3]
            lengths = np.linalg.norm(first), np.linalg.norm(second)
            if abs(lengths[0] - lengths[1]) < SAME < min(lengths):
                used.add(n)
                found.append((one, "revolute", (first / lengths[0], second / lengths[1])))
                break
        else:
            found.append((one, "spherical", None))
    return found
