# SPDX-License-Identifier: Apache-2.0
"""From bodies and joints to URDF+: which joints make the tree, and which close loops.

Cut is what the file takes for closing, else passive balls and hinges, then others, but nothing driven, geared, limited.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pkm_description.description_error import DescriptionError
from pkm_description.formats import DOUBT, PARTS
from pkm_description.formats.bodies_and_joints import (
    TURNING,
    WORLD,
    Assembly,
    Body,
    Connection,
    inertial_element,
    motion,
    of_joint,
    pose_attributes,
)
from pkm_description.joint_geometry import position_at
from pkm_description.mechanism import Array, Joint, JointType, Limits, Spring
from pkm_description.rotations import inverse_transform
from pkm_description.urdf import elements
from pkm_description.urdf.unit_slips import LARGE
from pkm_description.urdf.xml_text import append, append_home, row

OPEN = 1e-6  # m, a gap that is told
WIDE_OPEN = 1e-3  # of the robot's size, a gap as drawn that is a mistake: lengths, or which end is whose
MEETING = ("spherical", "revolute", "continuous", "universal", "fixed")  # whose ends coincide
SEVERAL = ("planar", "floating")  # kinds of joints with several freedoms, kept as they are
SAME = 1e-12  # m and rad: frames that are the same


def tree_text(assembly: Assembly, arguments: Mapping[str, str] | None = None) -> str:
    """URDF+ text; `arguments` name `platform`, `base` and the `actuated` joints, separated by commas.

    By default they are the remark's, else the base is the world or what is fixed to it, the platform the body with
    the most joints in loops, and driven what the file drives. `DescriptionError` where that does not decide. With an
    empty `platform` the text has none, its base may float, and nothing need be driven.
    """
    return _Tree(assembly, dict(arguments or {})).text()


class _Tree:
    def __init__(self, assembly: Assembly, given: dict[str, str]) -> None:
        self.assembly = assembly
        unknown = given.keys() - set(PARTS)
        if unknown:
            raise self._error(f"unknown argument(s) {', '.join(sorted(unknown))}", f"it takes {', '.join(PARTS)}")
        self.without_platform = given.get("platform") == ""
        self.bodies = assembly.bodies
        if not self.bodies.keys() - {WORLD}:
            raise self._error("it has no body", "give a file with bodies and joints")
        self.remark = assembly.remark
        self.pkm = self.remark.find("pkm") if self.remark is not None else None
        self._read_remark(given)
        tied = any(WORLD in (joint.parent, joint.child) for joint in assembly.joints)
        if not tied and self.without_platform and not (given.get("base") or self._said("base_link") or assembly.base):
            self._float(next(iter(self.bodies)))
            tied = True
        if tied:
            self.bodies.setdefault(WORLD, Body(WORLD, np.eye(4)))
        for joint in assembly.joints:
            for name in (joint.parent, joint.child):
                if name not in self.bodies:
                    label = f'<joint name="{joint.name}">'
                    raise DescriptionError(label, f"there is no body {name!r}", "name an existing one")
        self.base = given.get("base") or self._said("base_link") or assembly.base or self._base()
        of_world = [joint for joint in assembly.joints if WORLD in (joint.parent, joint.child)]
        ends = {end for joint in of_world for end in (joint.parent, joint.child)}
        if self.base != WORLD and ends == {WORLD, self.base} and of_world[0].kind == "fixed":
            assembly.joints.remove(of_world[0])  # the base stands for the world
            assembly.springs = [self._on_base(spring) for spring in assembly.springs]
        self.actuated = self._actuated(given.get("actuated"))
        self.tree, self.cut = spanning(assembly, self.base)
        self.gaps = {joint.name: self._gap(joint) for joint in self.cut if joint.kind in MEETING}
        self._skip_rigid()
        self.platform = ""
        if not self.without_platform:
            self.platform = given.get("platform") or self._said("platform_link") or self._platform()
        for what, name in (("platform", self.platform), ("base", self.base)):
            if name and name not in self.bodies:
                raise self._error(f"no body {name!r} for the {what}", "name an existing body")
        self.root = ET.Element("robot", name=assembly.name)

    def _on_base(self, spring: Spring) -> Spring:
        there = inverse_transform(self.bodies[self.base].pose)
        for end in ("from", "to"):
            if getattr(spring, f"{end}_link") == WORLD:
                point = (there @ np.append(getattr(spring, f"{end}_point"), 1.0))[:3]
                spring = replace(spring, **{f"{end}_link": self.base, f"{end}_point": point})
        return spring

    def _error(self, problem: str, remedy: str) -> DescriptionError:
        return DescriptionError(f"<{self.assembly.name}>", problem, remedy)

    def _said(self, attribute: str) -> str:
        return self.pkm.get(attribute, "") if self.pkm is not None else ""

    def _read_remark(self, given: dict[str, str]) -> None:
        """Positions as drawn, true inertias and the task coordinates."""
        if self.remark is None:
            return
        self.assembly.name_back()
        home = {e.get("name", ""): float(e.get("position", "0")) for e in self.remark.iterfind("pkm/home/joint")}
        for joint in self.assembly.joints if self.assembly.from_home else ():
            joint.drawn = home.get(joint.name, joint.drawn)
            joint.spring_reference += joint.drawn
            if joint.drawn:
                joint.limits = Limits(
                    joint.limits.lower + joint.drawn, joint.limits.upper + joint.drawn,
                    joint.limits.velocity, joint.limits.effort,
                )  # fmt: skip
            joint.first = joint.first @ inverse_transform(motion(joint, joint.drawn))
        self.assembly.starts |= bool(home)
        chain = [] if given.get("platform") else [elements.joint_of(e) for e in self.remark.findall("joint")]
        between = {joint.child for joint in chain}
        for element in self.remark.findall("link"):
            link = elements.link_of(element, True)
            if link.name in self.bodies or link.name in between:
                self.bodies.setdefault(link.name, Body(link.name, np.eye(4))).inertial = link.inertial
        for virtual in chain:
            one = of_joint(virtual, home.get(virtual.name, 0.0))
            one.driven = True  # never cut
            self.assembly.joints.append(one)

    def _float(self, body: str) -> None:
        pose = self.bodies[body].pose
        self.bodies[WORLD] = Body(WORLD, np.eye(4))
        joint = Joint("floating_base", JointType.FLOATING, WORLD, body, np.eye(4), np.array([0.0, 0.0, 1.0]))
        self.assembly.add_chain(joint, position_at(joint, pose))

    def _base(self) -> str:
        fixed = [j for j in self.assembly.joints if WORLD in (j.parent, j.child)]
        if not fixed:
            remedy = f'name the base: load_mechanism(file, {{"base": "{next(iter(self.bodies), "...")}"}}), or --base'
            raise self._error("no body is fixed to the world", remedy)
        if len(fixed) == 1 and fixed[0].kind == "fixed":
            return fixed[0].child if fixed[0].parent == WORLD else fixed[0].parent
        return WORLD

    def _actuated(self, names: str | None) -> list[str]:
        joints = {joint.name: joint for joint in self.assembly.joints}
        if names is None:
            found = [] if self.remark is None else self.remark.findall("ros2_control/joint")
            chosen = [e.get("name", "") for e in found if e.find("command_interface") is not None]
            chosen = chosen or list(self.assembly.drives)
        else:
            chosen = [name.strip() for name in names.split(",") if name.strip()]
        if not chosen and not self.without_platform:
            remedy = 'name the driven joints: load_mechanism(file, {"actuated": "one,two"}), or --actuated one,two'
            raise self._error("it drives no joint", remedy)
        for name in chosen:
            if name not in joints:
                raise DescriptionError(f'<joint name="{name}">', "no such joint to drive", "name an existing joint")
            joints[name].driven = True
        return chosen

    def _platform(self) -> str:
        between: dict[str, list[int]] = {}  # ends of joints that close loops, and of joints in loops
        for joint in self.cut:
            ways = [self._way(joint.parent), self._way(joint.child)]
            path = (ways[0] ^ ways[1]) | {joint.name}
            for one in self.assembly.joints:
                if one.name in path:
                    for body in (one.parent, one.child):
                        between.setdefault(body, [0, 0])
        for joint in self.assembly.joints:
            for body in (joint.parent, joint.child):
                if body in between and body not in (self.base, WORLD):
                    between[body][0] += joint.closes
                    between[body][1] += 1
        if not self.cut:
            raise self._error("its joints close no loop", "add a loop: this robot is a tree")
        most = [body for body, count in between.items() if count == max(between.values()) and any(count)]
        if len(most) != 1:
            remedy = f'name it: load_mechanism(file, {{"platform": "{most[0]}"}}), or --platform {most[0]}'
            remedy += "; its loops without a platform: load_model(file), pkm transmission"
            raise self._error(f"several bodies could be the platform: {', '.join(most)}", remedy)
        return most[0]

    def _way(self, body: str) -> set[str]:
        found = set()
        while body != self.base:
            joint, turned = self.tree[body]
            found.add(joint.name)
            body = joint.child if turned else joint.parent
        return found

    # -- URDF+ --------------------------------------------------------------------------------------------------------

    def text(self) -> str:
        used = {name for name in self.bodies if name in self.tree or name == self.base}
        for body in self.bodies.values():
            if body.name in used:
                self._link(body)
        self.home: dict[str, float] = {}
        order = {joint.name: n for n, joint in enumerate(self.assembly.joints)}
        for _body, (joint, turned) in sorted(self.tree.items(), key=lambda item: order[item[1][0].name]):
            self._joint(turned_round(joint) if turned else joint)
        for joint in self.cut:
            self._loop(joint)
        for spring in self.assembly.springs:
            self._spring(spring)
        for coupling in self.assembly.couplings:
            element = append(self.root, "coupling", name=coupling.name, offset=repr(float(coupling.offset)))
            for name, numbers in coupling.terms:
                append(element, "joint", name=name, coefficients=row(numbers))
        if self.remark is not None:
            written = {one.name for one in self.assembly.couplings}
            self.root.extend(one for one in self.remark.findall("coupling") if one.get("name") not in written)
            if not self.assembly.springs:
                self.root.extend(self.remark.findall("spring"))
        lost = [joint.name for joint in self.cut if _resists(joint) or _limited(joint)]
        if lost:
            self.assembly.notes.append(
                f"not read: limits, damping, friction and springs of joints at which loops are cut, {', '.join(lost)}"
            )
        self.assembly.notes += [
            f"in the file the ends of {name} are {gap:.3g} m apart: the loop is closed from there"
            for name, gap in self.gaps.items()
            if gap > OPEN
        ]
        self.assembly.notes += [f"{DOUBT}{joint.name}: {joint.doubt}" for joint in self.cut if joint.doubt]
        if self.cut:
            self.assembly.notes.append(f"loops are cut at {', '.join(f'{j.name} ({j.kind})' for j in self.cut)}")
        lost = [joint.name for joint in self.assembly.joints if joint.armature and not joint.driven]
        if lost:
            self.assembly.notes.append(
                f"only written for other tools: armature of joints without a drive, {', '.join(lost)}"
            )
        self._pkm()
        self._control()
        ET.indent(self.root)
        return ET.tostring(self.root, encoding="unicode") + "\n"

    def _skip_rigid(self) -> None:
        """Leave out loops between bodies that are fixed to each other; `DescriptionError` where such a one is open."""
        fixed = {joint.name for joint in self.assembly.joints if joint.kind == "fixed"}
        for joint in [one for one in self.cut if self._way(one.parent) ^ self._way(one.child) <= fixed]:
            ends = (self.bodies[joint.parent].pose @ joint.first, self.bodies[joint.child].pose @ joint.second)
            apart = np.abs(ends[1] - ends[0]) if joint.kind == "fixed" else self.gaps.get(joint.name, np.inf)
            between = f"no joint moves between {joint.parent} and {joint.child}"
            if not np.max(apart) <= OPEN:
                problem = f"{between}, and it is not closed"
                raise DescriptionError(f'<joint name="{joint.name}">', problem, "remove it, or correct its origins")
            self.cut.remove(joint)
            self.assembly.notes.append(f"not read: the loop {joint.name}, as {between}")

    def _gap(self, joint: Connection) -> float:
        """How far the ends of a loop are apart as drawn [m]; `DescriptionError` where that is a mistake."""
        ends = (self.bodies[joint.parent].pose @ joint.first, self.bodies[joint.child].pose @ joint.second)
        gap = float(np.linalg.norm(ends[1][:3, 3] - ends[0][:3, 3]))
        frames = [frame for one in self.assembly.joints for frame in (one.first, one.second)]
        if self.assembly.starts or gap <= WIDE_OPEN * max(float(np.linalg.norm(frame[:3, 3])) for frame in frames):
            return gap
        problem = f"its ends, on {joint.parent} and on {joint.child}, are {gap:.3g} m apart as drawn"
        problem += f"; {joint.doubt}" if joint.doubt else ""
        remedy = "correct its origins, or say where its joints stand when it closes (URDF <pkm><home>, MJCF <key>)"
        far = max(float(np.linalg.norm(frame[:3, 3])) for frame in (joint.first, joint.second))
        if far > LARGE:
            remedy = f"write m, {far:.4g} looks like mm; else {remedy}"
        raise DescriptionError(f'<joint name="{joint.name}">', problem, remedy)

    def _link(self, body: Body) -> None:
        link = append(self.root, "link", name=body.name)
        if not body.inertial.massless:
            inertial_element(link, body.inertial)
        for n, visual in enumerate(body.visuals):
            element = append(link, "visual")
            append(element, "origin", **pose_attributes(visual.frame))
            geometry, size = append(element, "geometry"), visual.size
            if visual.shape == "box":
                append(geometry, "box", size=row(size))
            elif visual.shape == "sphere":
                append(geometry, "sphere", radius=repr(float(size[0])))
            else:
                append(geometry, "cylinder", radius=repr(float(size[0])), length=repr(float(size[1])))
            material = append(element, "material", name=f"{body.name}/{n}")
            append(material, "color", rgba=row(visual.colour))
        for frame, file, scale in body.meshes:
            element = append(link, "visual")
            append(element, "origin", **pose_attributes(frame))
            append(append(element, "geometry"), "mesh", filename=file, scale=row(scale))

    def _joint(self, joint: Connection) -> None:
        """A joint of the tree as elementary ones, then a fixed one where the body's frame is not the joint's."""
        parts = [(joint.name, joint.kind, joint.axis)]
        if joint.kind == "universal":
            parts = [(f"{joint.name}/{n}", "continuous", a) for n, a in ((1, joint.axis), (2, joint.axis2))]
        elif joint.kind == "spherical":
            parts = [(f"{joint.name}/{n}", "continuous", a) for n, a in zip("xyz", np.eye(3), strict=True)]
        mounted = np.abs(joint.second - np.eye(4)).max() > SAME
        parent, at = joint.parent, joint.first
        for n, (name, kind, axis) in enumerate(parts):
            child = f"{joint.child}/{name}" if mounted or n < len(parts) - 1 else joint.child
            if child != joint.child:
                append(self.root, "link", name=child)
            self._single(name, kind, parent, child, at, axis, joint)
            parent, at = child, np.eye(4)
        if mounted:
            self._fixed(f"{joint.child}/mount", parent, joint.child, inverse_transform(joint.second))

    def _fixed(self, name: str, parent: str, child: str, frame: Array) -> None:
        element = append(self.root, "joint", name=name, type="fixed")
        append(element, "parent", link=parent)
        append(element, "child", link=child)
        append(element, "origin", **pose_attributes(frame))

    def _single(
        self, name: str, kind: str, parent: str, child: str, frame: Array, axis: Array, joint: Connection
    ) -> None:
        ends = (joint.limits.lower, joint.limits.upper)
        if kind in TURNING:
            kind = "revolute" if kind == "revolute" and any(map(math.isfinite, ends)) else "continuous"
        element = append(self.root, "joint", name=name, type=kind)
        append(element, "parent", link=parent)
        append(element, "child", link=child)
        append(element, "origin", **pose_attributes(frame))
        if kind == "fixed":
            return
        append(element, "axis", xyz=row(axis))
        limit = append(element, "limit")
        for key, value in (("lower", ends[0]), ("upper", ends[1])):
            if kind != "continuous" and math.isfinite(value):
                limit.set(key, repr(float(value)))
        for key, value in (("velocity", joint.limits.velocity), ("effort", joint.limits.effort)):
            limit.set(key, repr(float(value)) if math.isfinite(value) else "0")
        dynamics = append(element, "dynamics", damping=repr(float(joint.damping)), friction=repr(float(joint.friction)))
        if joint.spring_stiffness:
            dynamics.set("spring_stiffness", repr(float(joint.spring_stiffness)))
            dynamics.set("spring_reference", repr(float(joint.spring_reference)))
        if joint.armature and not joint.driven:
            dynamics.set("armature", repr(float(joint.armature)))
        if joint.mimic:
            numbers = {"multiplier": repr(joint.mimic.multiplier), "offset": repr(joint.mimic.offset)}
            append(element, "mimic", joint=joint.mimic.joint, **numbers)
        if kind not in SEVERAL:  # those are drawn at zero
            self.home[name] = joint.drawn if name == joint.name else 0.0

    def _loop(self, joint: Connection) -> None:
        kind = "revolute" if joint.kind == "continuous" else joint.kind
        element = append(self.root, "loop", name=joint.name, type=kind)
        for tag, link, frame in (("predecessor", joint.parent, joint.first), ("successor", joint.child, joint.second)):
            append(append(element, tag, link=link), "origin", **pose_attributes(frame))
        if kind not in ("spherical", "fixed"):
            append(element, "axis", xyz=row(joint.axis))
            append(element, "axis2", xyz=row(joint.axis2 if kind == "universal" else joint.axis))

    def _spring(self, spring: Spring) -> None:
        numbers = {"stiffness": spring.stiffness, "rest_length": spring.rest_length, "preload": spring.preload}
        element = append(self.root, "spring", name=spring.name, **{key: repr(v) for key, v in numbers.items() if v})
        append(element, "from", link=spring.from_link, xyz=row(spring.from_point))
        append(element, "to", link=spring.to_link, xyz=row(spring.to_point))

    def _pkm(self) -> None:
        given = {} if self.pkm is None else dict(self.pkm.attrib)
        given |= {"base_link": self.base, "platform_link": self.platform}
        turn = self.bodies[self.base].pose[:3, :3]  # of the base's frame, in which gravity is said
        given.setdefault("gravity", row(turn.T @ self.assembly.gravity))
        home = append_home(append(self.root, "pkm", **given), self.home)
        several = tuple(f"{joint.name}/" for joint in self.assembly.joints if joint.kind in SEVERAL)
        remarked = [] if self.pkm is None else self.pkm.findall("home/joint")
        home.extend(element for element in remarked if element.get("name", "").startswith(several))

    def _control(self) -> None:
        """The drives: the remark's where it has the same, else efforts."""
        blocks = [] if self.remark is None else self.remark.findall("ros2_control")
        driven = [e.get("name", "") for b in blocks for e in b if e.find("command_interface") is not None]
        if driven == self.actuated:
            self.root.extend(blocks)
            return
        control = append(self.root, "ros2_control", name=self.assembly.name, type="system")
        armature = {joint.name: joint.armature for joint in self.assembly.joints}
        for name in self.actuated:
            joint = append(control, "joint", name=name)
            append(joint, "command_interface", name=self.assembly.drives.get(name, "effort"))
            state = append(joint, "state_interface", name="position")
            append(state, "param", name="initial_value").text = repr(float(self.home.get(name, 0.0)))
            append(joint, "state_interface", name="velocity")
            append(joint, "param", name="rotor_inertia").text = repr(float(armature[name]))


def spanning(
    assembly: Assembly, base: str, own: bool = True
) -> tuple[dict[str, tuple[Connection, bool]], list[Connection]]:
    """Joints of the tree by the body they carry, and whether turned; those cut: the file's `own`, or a choice."""
    group = {name: name for name in assembly.bodies}

    def leader(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    kept, cut = [], []
    followed = {joint.mimic.joint for joint in assembly.joints if joint.mimic}
    followed |= {name for coupling in assembly.couplings for name, _ in coupling.terms}
    for joint in sorted(assembly.joints, key=lambda j: -_worth(j, followed, own)):
        one, two = leader(joint.parent), leader(joint.child)
        if one != two:
            group[two] = one
            kept.append(joint)
            continue
        if _worth(joint, followed, own) >= 8.0:
            problem = "every joint of its loop is driven, geared or limited; none can be cut"
            raise DescriptionError(f'<joint name="{joint.name}">', problem, "remove the limits of a passive joint")
        cut.append(joint)
    carried: dict[str, tuple[Connection, bool]] = {}
    reached, front = {base}, [base]
    while front:
        here = front.pop(0)
        for joint in kept:
            for near, far, turned in ((joint.parent, joint.child, False), (joint.child, joint.parent, True)):
                if near == here and far not in reached:
                    carried[far] = (joint, turned)
                    reached.add(far)
                    front.append(far)
    loose = [name for name in assembly.bodies if name not in reached and name != WORLD]
    if loose:
        raise DescriptionError(
            f'<link name="{loose[0]}">', f"no joint connects it to the base {base!r}", "add a joint, or remove the link"
        )
    order = {joint.name: n for n, joint in enumerate(assembly.joints)}
    return carried, sorted(cut, key=lambda joint: order[joint.name])


def _resists(joint: Connection) -> bool:
    return bool(joint.damping or joint.friction or joint.spring_stiffness)


def _limited(joint: Connection) -> bool:
    return joint.kind != "fixed" and (math.isfinite(joint.limits.lower) or math.isfinite(joint.limits.upper))


def _worth(joint: Connection, followed: set[str], own: bool) -> float:
    """How much a joint is to be kept in the tree: 8 and more is never cut."""
    worth = {"spherical": 0.0, "revolute": 0.0, "continuous": 0.0, "universal": 1.0}.get(joint.kind, 2.0)
    if own and joint.closes:
        worth = -1.0
    if _resists(joint):
        worth += 4.0
    if _limited(joint):
        worth += 8.0
    if joint.driven or joint.mimic or joint.name in followed:
        worth += 16.0
    return worth


def turned_round(joint: Connection) -> Connection:
    """The same joint seen from its child, of the same position."""
    axis, axis2 = (-joint.axis2, -joint.axis) if joint.kind == "universal" else (-joint.axis, joint.axis2)
    turned = replace(joint, parent=joint.child, child=joint.parent, first=joint.second, second=joint.first)
    return replace(turned, axis=axis, axis2=axis2)
