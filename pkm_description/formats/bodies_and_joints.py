# SPDX-License-Identifier: Apache-2.0
"""A robot as bodies and joints between any two of them, as SDF and USD say it, without a tree.

    child's frame = parent's frame @ first @ motion(position) @ inverse(second)

Frames are (4, 4) transforms. `made_of` takes a robot apart; `tree_text` in `spanning_tree.py` makes URDF+ again.

What a format has no word for (task coordinates, drives, home, links without mass) goes along as a piece of URDF+, the
`remark`, which other tools skip and our readers believe.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pkm_description.description_error import DescriptionError
from pkm_description.joint_geometry import child_frame, frame_along, freedoms, transform_along
from pkm_description.loops.closure import ClosureModel
from pkm_description.mechanism import (
    RIGID,
    Array,
    Coupling,
    Inertial,
    Joint,
    JointType,
    Limits,
    Loop,
    LoopType,
    Mechanism,
    Mimic,
    Spring,
)
from pkm_description.rotations import (
    inverse_transform,
    rotation_from_vector,
    rpy_from_rotation,
    transform,
    vector_from_rotation,
)
from pkm_description.tree_model import TreeModel
from pkm_description.urdf.elements import SIX
from pkm_description.urdf.visuals import Visual, visuals_of
from pkm_description.urdf.xml_text import append, append_home, read_xml, row

WORLD = "world"
SMALL = 1e-7  # of the robot's mass, and of that times its length squared: for bodies that have none
FREEDOMS = {"fixed": 0, "revolute": 1, "continuous": 1, "prismatic": 1, "universal": 2, "spherical": 3}
LOOSE = {"cylindrical": 2, "planar": 3}  # of more, which only a joint that closes a loop has
OTHER_WORDS = {"ball": "spherical", "hinge": "revolute", "weld": "fixed", "3d": "spherical", "6d": "fixed"}
EXACT = (LoopType.SPHERICAL, LoopType.REVOLUTE, LoopType.FIXED)  # whose frames need not be what is drawn
TURNING = ("revolute", "continuous")
FLOATS = "floating"
REMARKED = "only in the remark, which other tools skip"


@dataclass
class Body:
    """A body: its frame in the world as drawn, and its inertia. `meshes` are (frame, file, scale (3,))."""

    name: str
    pose: Array
    inertial: Inertial = field(default_factory=Inertial)
    visuals: list[Visual] = field(default_factory=list)
    meshes: list[tuple[Array, str, Array]] = field(default_factory=list)


@dataclass
class Connection:
    """A joint of a `kind` in `FREEDOMS`, `LOOSE` (which closes a loop) or `FLOATS` (of a floating body).

    `axis` (3,) and a universal joint's `axis2` are in the joint's frame. `drawn` is its position in the drawing, which
    is home; one that is `driven` is never cut. `doubt` is said where the loop does not close or locks.
    """

    name: str
    kind: str
    parent: str
    child: str
    first: Array
    second: Array
    axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    axis2: Array = field(default_factory=lambda: np.array([0.0, 1.0, 0.0]))
    limits: Limits = field(default_factory=Limits)
    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    spring_stiffness: float = 0.0  # N m/rad or N/m
    spring_reference: float = 0.0
    mimic: Mimic | None = None
    drawn: float = 0.0
    driven: bool = False
    closes: bool = False  # the file takes it for the joint that closes a loop
    doubt: str = ""


@dataclass
class Assembly:
    """Bodies by name and joints, and command interfaces by driven joint; a tree, several platforms or none are welcome.

    `notes` are sentences about what could not be said. `from_home`: positions count from the drawing, and the remark
    says what they are there. `starts`: loops need not close as drawn, where the search for home starts.
    """

    name: str
    bodies: dict[str, Body] = field(default_factory=dict)
    joints: list[Connection] = field(default_factory=list)
    drives: dict[str, str] = field(default_factory=dict)
    springs: list[Spring] = field(default_factory=list)
    couplings: list[Coupling] = field(default_factory=list)
    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    base: str = ""  # where the file says which body is fixed
    remark: ET.Element | None = None
    from_home: bool = False
    starts: bool = False
    notes: list[str] = field(default_factory=list)

    def add_chain(self, joint: Joint, values: Array) -> None:
        """Add a joint of several degrees of freedom as joints of one each, with bodies without mass between."""
        parent, at = joint.parent, joint.origin
        parts = freedoms(joint)
        pose = self.bodies[parent].pose @ at
        for n, (freedom, value) in enumerate(zip(parts, values, strict=True)):
            kind = "prismatic" if freedom.slides else "continuous"
            last = n == len(parts) - 1
            child = joint.child if last else f"{joint.child}/{freedom.name.rpartition('/')[2]}"
            one = Connection(freedom.name, kind, parent, child, at, np.eye(4), freedom.axis, drawn=float(value))
            pose = pose @ motion(one, float(value))
            if not last:
                self.bodies[child] = Body(child, pose)
            self.joints.append(one)
            parent, at = child, np.eye(4)

    def drive(self, name: str, label: str, interface: str = "effort") -> None:
        """Let a joint be driven; messages call the place `label`."""
        joint = next((one for one in self.joints if one.name == name), None)
        if joint is None:
            raise DescriptionError(label, f"{name!r} is not a joint", "name an existing <joint>")
        joint.driven = True
        self.drives[name] = interface

    def close(
        self,
        name: str,
        kind: str,
        parent: tuple[str, Array],
        child: tuple[str, Array],
        axes: tuple[Array, Array | None] | None = None,
        doubt: str = "",
    ) -> None:
        """Close a loop between frames of two bodies; `axes` (3,) in each, the second parallel as drawn if None."""
        kind, label = OTHER_WORDS.get(kind, kind), f'<joint name="{name}">'
        if kind not in FREEDOMS and kind not in LOOSE:
            known = ", ".join([*FREEDOMS, *LOOSE])
            raise DescriptionError(label, f"a loop of type {kind!r} is not supported", f"use one of {known}")
        if any(joint.closes and joint.name.removesuffix("/loop") == name for joint in self.joints):
            raise DescriptionError(label, "two loops have this name", "give each its own name")
        (one, first), (two, second) = parent, child
        for body in (one, two):
            if body not in self.bodies:
                raise DescriptionError(label, f"there is no body {body!r}", "name an existing one")
        if one == two:
            raise DescriptionError(label, f"it connects {one!r} to itself", "name two different links")
        if axes is None and kind not in ("spherical", "fixed"):
            raise DescriptionError(label, f"a {kind} loop needs an axis", "write the axis in both frames")
        turn = (self.bodies[two].pose @ second)[:3, :3].T @ (self.bodies[one].pose @ first)[:3, :3]
        joint = Connection(self._unused(name), kind, one, two, first, second, closes=True, doubt=doubt)
        if kind in ("spherical", "universal"):  # turned as drawn
            joint.first = first @ transform(np.zeros(3), turn.T)
        if axes is not None:
            ends = axes[0], turn @ axes[0] if axes[1] is None else axes[1]
            if kind == "universal":
                joint.axis, joint.axis2 = turn @ ends[0], ends[1]
            elif kind not in ("spherical", "fixed"):  # each frame's z along the axis, so that both ends keep their own
                joint.axis = np.array([0.0, 0.0, 1.0])
                joint.first, joint.second = (
                    frame @ transform_along(axis) for frame, axis in zip((first, second), ends, strict=True)
                )
        joint.drawn = position_as_drawn(self.bodies, joint)
        self.joints.append(joint)

    def _unused(self, name: str) -> str:
        while any(joint.name == name for joint in self.joints):
            name += "/loop"
        return name

    def rename(self, allowed: Callable[[str], str]) -> None:
        """Give joints names that a format allows, and remark on what they were."""
        changed = {joint.name: new for joint in self.joints if (new := allowed(joint.name)) != joint.name}
        self._call(changed)
        if self.remark is not None:
            for name, new in changed.items():
                append(self.remark, "renamed", joint=new, was=name)
        if changed:
            self.notes.append(f"joints are renamed: {', '.join(f'{a} to {b}' for a, b in changed.items())}")

    def name_back(self) -> None:
        """Give joints the names that the remark says they had."""
        found = [] if self.remark is None else self.remark.findall("renamed")
        self._call({e.get("joint", ""): e.get("was", "") for e in found})

    def _call(self, names: dict[str, str]) -> None:
        for joint in self.joints:
            joint.name = names.get(joint.name, joint.name)
            if joint.mimic:
                joint.mimic = replace(joint.mimic, joint=names.get(joint.mimic.joint, joint.mimic.joint))
        self.drives = {names.get(name, name): interface for name, interface in self.drives.items()}


def of_joint(joint: Joint, drawn: float = 0.0) -> Connection:
    """A URDF+ joint of at most one degree of freedom, whose position as drawn is given."""
    return Connection(
        joint.name, joint.type.value, joint.parent, joint.child, joint.origin, np.eye(4), joint.axis,
        limits=joint.limits, damping=joint.viscous_friction, friction=joint.coulomb_friction,
        armature=joint.drive.armature if joint.drive else joint.other_armature,
        spring_stiffness=joint.spring_stiffness, spring_reference=joint.spring_reference,
        mimic=joint.mimic, drawn=drawn, driven=joint.drive is not None,
    )  # fmt: skip


def motion(joint: Connection, position: float) -> Array:
    """Transform (4, 4) of a joint with at most one degree of freedom."""
    if joint.kind not in ("revolute", "continuous", "prismatic"):
        return np.eye(4)
    kind = JointType.PRISMATIC if joint.kind == "prismatic" else JointType.REVOLUTE
    return child_frame(Joint("", kind, "", "", np.eye(4), joint.axis), np.array([position]))


def pose_attributes(frame: Array) -> dict[str, str]:
    """URDF's attributes of a frame."""
    return {"xyz": row(frame[:3, 3]), "rpy": row(rpy_from_rotation(frame[:3, :3]))}


def inertial_element(link: ET.Element, inertial: Inertial) -> None:
    """Write `<inertial>` into a URDF link."""
    element = append(link, "inertial")
    append(element, "origin", xyz=row(inertial.com))
    append(element, "mass", value=repr(float(inertial.mass)))
    values = zip(SIX, inertial.inertia[np.triu_indices(3)], strict=True)
    append(element, "inertia", **{key: repr(float(value)) for key, value in values})


def made_of(mechanism: Mechanism | TreeModel, split: Sequence[str] = ()) -> Assembly:
    """A robot at home as bodies with mass, joints and remark; joints of the kinds in `split` become hinges in a row."""
    return _Apart(mechanism, split).assembly


class _Apart:
    def __init__(self, mechanism: Mechanism | TreeModel, split: Sequence[str]) -> None:
        self.mechanism = mechanism
        self.split = split
        self.assembly = Assembly(mechanism.name, gravity=mechanism.gravity)
        self.model = ClosureModel(mechanism.links, mechanism.joints, mechanism.loops, mechanism.base_link)
        poses = self.model.forward(self.model.reduced(mechanism.home_joints))[0]
        unbuilt = mechanism.unbuilt  # only remarked
        floating = mechanism.floating if isinstance(mechanism, TreeModel) else ()
        kept = {mechanism.platform_link, *(chain[-1].child for chain in floating)}
        virtual = {mechanism.joint_named[name].child for name in unbuilt} - kept
        for link in mechanism.links:
            if link.name not in virtual:
                pose = poses[self.model.link_index[link.name]]
                self.assembly.bodies[link.name] = Body(link.name, pose, link.inertial)
        self._pictures()
        positions = iter(mechanism.home_joints)
        self.home: dict[str, float] = {}
        named = {name: mechanism.joint_named[name].drive for name in mechanism.actuated_joints}
        self.assembly.drives = {name: drive.command_interfaces[0] for name, drive in named.items() if drive}
        for joint in mechanism.joints:
            values = np.array([next(positions) for _ in freedoms(joint)])
            self.home |= {f.name: float(v) for f, v in zip(freedoms(joint), values, strict=True)}
            if joint.name not in unbuilt:
                self._joint(joint, values)
        for chain in floating:
            name, body = chain[0].name.removesuffix("/x"), chain[-1].child
            self.assembly.joints.append(
                Connection(name, FLOATS, mechanism.base_link, body, np.eye(4), np.eye(4), driven=True)
            )
        for loop in mechanism.loops:
            self._loop(loop)
        self._remark(unbuilt, virtual)
        self._give_mass()
        self._list_left_out()

    def _pictures(self) -> None:
        found, left_out = visuals_of(self.mechanism)
        for visual in found:
            body = self.assembly.bodies[visual.link]
            if visual.shape == "mesh":
                body.meshes.append((visual.frame, str(visual.mesh), visual.size))
            else:
                body.visuals.append(visual)
        self.assembly.notes += [f"left out: {visual}" for visual in left_out]

    def _joint(self, joint: Joint, values: Array) -> None:
        if joint.type.dof > 1:
            self.assembly.add_chain(joint, values)
            return
        self.assembly.joints.append(of_joint(joint, float(values[0]) if len(values) else 0.0))

    def _loop(self, loop: Loop) -> None:
        """The joint of a loop at home, its frame the successor's; what no format has in two or three steps."""
        bodies = self.assembly.bodies
        here, there = bodies[loop.predecessor].pose, bodies[loop.successor].pose
        parent, second = loop.predecessor, loop.successor_frame
        axis, kind = loop.axis2, loop.type.value
        if loop.type is LoopType.UNIVERSAL:
            axis = (there @ second)[:3, :3].T @ (here @ loop.predecessor_frame)[:3, :3] @ loop.axis
        slides = {LoopType.CYLINDRICAL: [axis], LoopType.PLANAR: list(frame_along(axis).T[:2])}.get(loop.type, [])
        steps = [("prismatic", direction) for direction in slides]
        if steps:
            kind = "revolute"
        elif kind in self.split:
            turns = [axis] if loop.type is LoopType.UNIVERSAL else [*np.eye(3)[:2]]
            steps, kind = [("continuous", turn) for turn in turns], "revolute"
            axis = loop.axis2 if loop.type is LoopType.UNIVERSAL else np.array([0.0, 0.0, 1.0])
        for n, (step, direction) in enumerate(steps):
            stub = Body(f"{loop.name}/{n + 1}", there @ second)
            bodies[stub.name] = stub
            first = inverse_transform(bodies[parent].pose) @ stub.pose
            self.assembly.joints.append(Connection(stub.name, step, parent, stub.name, first, np.eye(4), direction))
            parent = stub.name
        first = inverse_transform(bodies[parent].pose) @ there @ second
        if not steps and loop.type in EXACT:
            first = _kept(loop, first, axis)
        self.assembly.joints.append(
            Connection(loop.name, kind, parent, loop.successor, first, second, axis, loop.axis2, closes=True)
        )

    def _remark(self, unbuilt: Sequence[str], virtual: Collection[str]) -> None:
        source = read_xml(self.mechanism.urdf, "URDF text")
        remark = ET.Element("robot", name=self.mechanism.name)
        pkm = source.find("pkm")
        given = {} if pkm is None else dict(pkm.attrib)
        given |= {"base_link": self.mechanism.base_link, "platform_link": self.mechanism.platform_link}
        append_home(append(remark, "pkm", **given), self.home)
        remark.extend([*source.findall("ros2_control"), *source.findall("spring"), *source.findall("coupling")])
        remark.extend(e for e in source.findall("link") if e.get("name") in virtual)
        remark.extend(e for e in source.findall("joint") if e.get("name") in unbuilt)
        self.assembly.remark = remark

    def _give_mass(self) -> None:
        """Let every body that moves have mass; the remark has the true inertia."""
        total = sum(link.inertial.mass for link in self.mechanism.links) or 1.0
        least = SMALL * total * self.model.length**2
        light = []
        for body in self.assembly.bodies.values():
            if body.name == self.mechanism.base_link:
                continue
            true = body.inertial
            mass = true.mass or SMALL * total
            moments = np.linalg.eigvalsh(true.inertia)
            short = max(0.0, SMALL * moments[2] - moments[0]) if moments[2] > 0.0 else least
            if mass == true.mass and not short:
                continue
            link = append(self.assembly.remark, "link", name=body.name)  # type: ignore[arg-type]
            if not true.massless:
                inertial_element(link, true)
            body.inertial = replace(true, mass=mass, inertia=true.inertia + short * np.eye(3))
            light.append(body.name)
        if light:
            self.assembly.notes.append(
                f"bodies without mass or inertia get {SMALL:g} of the robot's: {', '.join(light)}"
            )

    def _list_left_out(self) -> None:
        m, notes = self.mechanism, self.assembly.notes
        if m.unbuilt:
            what = "coordinates of floating bodies" if isinstance(m, TreeModel) else "task coordinates"
            notes.append(f"{REMARKED}: {what} {', '.join(m.unbuilt)}")
        drives = {name: m.joint_named[name].drive for name in m.actuated_joints}
        one_way = [n for n, d in drives.items() if d and (d.effort_range[0] >= 0.0 or d.effort_range[1] <= 0.0)]
        if one_way:
            notes.append(f"{REMARKED}: drives that only pull or only push, {', '.join(one_way)}")
        if m.springs:
            notes.append(f"{REMARKED}: springs between links, {', '.join(one.name for one in m.springs)}")
        if isinstance(m, TreeModel) and m.couplings:
            notes.append(f"{REMARKED}: couplings of joints, {', '.join(one.name for one in m.couplings)}")
        notes += left_out_of(m)


def left_out_of(m: Mechanism | TreeModel) -> list[str]:
    """Sentences about what simulators' formats have no place for."""
    beams = [link.name for link in m.links if link.beams]
    parts: list[Joint | Loop] = [*m.joints, *m.loops]
    bearings = [one.name for one in parts if one.bearing != RIGID]
    names = ", ".join(beams + bearings)
    notes = [f"left out: stiffness of beams and bearings, {names}"] if names else []
    root = read_xml(m.urdf, "URDF text")
    return notes + elements_left_out(root) + _drives_left_out(m, root)


# Elements of a URDF that only tools of ROS and Gazebo read, after the one that has them.
ELEMENTS = (
    "link/collision", "material/texture", "gazebo", "transmission", "sensor", "joint/safety_controller",
    "joint/calibration",
)  # fmt: skip


def elements_left_out(root: ET.Element, said: str = "left out", read: Collection[ET.Element] = ()) -> list[str]:
    """Sentences about `ELEMENTS` of a URDF, but for those that are `read`."""
    notes = []
    for path in ELEMENTS:
        owner, _, tag = path.rpartition("/")
        having = [one for one in root.iter(owner) if one.find(tag) is not None] if owner else root.findall(tag)
        kept = [one for one in having if one not in read]
        names = dict.fromkeys(one.get("name") or one.get("reference") or "of the robot" for one in kept)
        notes += named(f"<{tag}>", list(names), said)
    return notes


def _drives_left_out(m: Mechanism | TreeModel, root: ET.Element) -> list[str]:
    notes = []
    drives = {name: m.joint_named[name].drive for name in m.actuated_joints}
    for what, has in (
        ("stiffness of drives", lambda drive: math.isfinite(drive.stiffness)),
        ("cables of winches", lambda drive: drive.cable is not None),
    ):
        found = [name for name, drive in drives.items() if drive and has(drive)]
        notes += [f"{REMARKED}: {what}, {', '.join(found)}"] if found else []
    sensors = [one.get("name", "") for one in root.findall("ros2_control/sensor")]
    return [*notes, f"{REMARKED}: sensors of ros2_control, {', '.join(sensors)}"] if sensors else notes


def named(what: str, names: Sequence[str], said: str = "left out") -> list[str]:
    """The sentence that something of these names is left out; none without names."""
    return [f"{said}: {what} {', '.join(names)}"] if names else []


def weak_passive_joints(m: Mechanism | TreeModel) -> list[str]:
    """Names of joints with a limit of effort and no drive."""
    return [j.name for j in m.joints if math.isfinite(j.limits.effort) and j.name not in m.actuated_joints]


def _kept(loop: Loop, as_drawn: Array, axis: Array) -> Array:
    """A loop's frame in its predecessor, turned as it is drawn but for what the loop leaves open at home."""
    own = loop.predecessor_frame
    if loop.type is LoopType.FIXED:
        return own
    R = as_drawn[:3, :3]
    if loop.type is LoopType.REVOLUTE:
        there, here = R @ axis, own[:3, :3] @ loop.axis
        R = rotation_from_vector(np.cross(there, here)) @ R  # as good as exact: they are a rounding apart
    return transform(own[:3, 3], R)


def pose_of_body(bodies: dict[str, Body], name: str) -> Array:
    """Pose (4, 4) of a body as drawn; the world may be missing among them."""
    return np.eye(4) if name == WORLD and name not in bodies else bodies[name].pose


def parent_frame_as_drawn(bodies: dict[str, Body], joint: Connection) -> Array:
    """`first` of a joint whose frame the file gives in the child alone."""
    back = inverse_transform(pose_of_body(bodies, joint.parent))
    return back @ pose_of_body(bodies, joint.child) @ joint.second @ inverse_transform(motion(joint, joint.drawn))


def position_as_drawn(bodies: dict[str, Body], joint: Connection) -> float:
    """Position of a joint of one degree of freedom in the drawing; zero for others."""
    ends = pose_of_body(bodies, joint.parent) @ joint.first, pose_of_body(bodies, joint.child) @ joint.second
    between = inverse_transform(ends[0]) @ ends[1]
    if joint.kind == "prismatic":
        return float(joint.axis @ between[:3, 3])
    return float(joint.axis @ vector_from_rotation(between[:3, :3])) if joint.kind in TURNING else 0.0


def at(position: Array) -> Array:
    """A frame (4, 4) that is not turned."""
    return transform(position, np.eye(3))
