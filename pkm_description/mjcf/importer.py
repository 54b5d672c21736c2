# SPDX-License-Identifier: Apache-2.0
"""From MJCF to URDF+; `load_mechanism("robot.xml")` uses it where the root element is `<mujoco>`.

`python -m pkm_description.mjcf.importer robot.xml --platform plate -o robot.urdf` writes the description, to be edited.
Bodies become links in the same frames; several joints of one body a chain with massless links between, a ball three
revolute joints about x, y, z, a free joint three prismatic and three revolute ones. `connect` becomes a spherical loop,
two between the same bodies a revolute one, `weld` a fixed one. Motors become effort interfaces, position and velocity
servos those interfaces; tendons that are a spring between two sites become springs. The keyframe `home` (else the
first, else the drawing) is home. The base is the world; the platform is the body at which most loops end, unless it is
named.
"""

from __future__ import annotations

import argparse
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pkm_description.command_options import add_output, write_output
from pkm_description.description_error import DescriptionError
from pkm_description.joint_geometry import floating_freedoms
from pkm_description.mechanism import Array
from pkm_description.mjcf.compiled_defaults import read_compiled
from pkm_description.mjcf.mujoco_model import (
    WORLD,
    MjcfBody,
    MjcfClosure,
    MjcfJoint,
    MjcfModel,
    append,
    frame_of,
    quaternion,
    row,
)
from pkm_description.mjcf.reader import NeedsCompilerError, read
from pkm_description.rotations import rpy_from_rotation, transform
from pkm_description.urdf.xml_text import read_file, read_xml, root_tag

SAME = 1e-6  # m, two points of a hinge are equally far apart in both bodies
AT_ORIGIN = 1e-12  # m


def is_mjcf(text: str) -> bool:
    """Whether the root element is `<mujoco>`."""
    return root_tag(text) == "mujoco"


def import_mjcf(source: str | Path, platform: str | None = None, base: str | None = None) -> str:
    """URDF+ text of an MJCF text or file, for `mechanism_from_urdf`.

    `platform` is by default the body at which most loops end, `base` the world. Raises `DescriptionError` for what has
    no counterpart, or where the file needs MuJoCo's compiler and the package `mujoco` is missing.
    """
    path = None if isinstance(source, str) and is_mjcf(source) else Path(source)
    text = str(source) if path is None else read_file(path)
    root = read_xml(text, "<mujoco>")
    try:
        model = read(root)
    except NeedsCompilerError as need:
        model = read_compiled(text, path, str(need))
    return _Writer(model, platform, base or WORLD).text()


class _Writer:
    def __init__(self, model: MjcfModel, platform: str | None, base: str) -> None:
        self.model = model
        self.base = base
        self.loops = _hinges(model.closures)
        self.platform = platform or self._most_loops()
        names = {WORLD, *(body.name for body in model.bodies)}
        joints = {joint.name for body in model.bodies for joint in body.joints}
        for what, name in (("platform", self.platform), ("base", base)):
            if name not in names:
                raise DescriptionError(f"<body name={name!r}>", f"no such body for the {what}", "name an existing body")
        for what, name in (
            *(("actuator", actuator.joint) for actuator in model.actuators),
            *(("equality", name) for gear in model.gears for name in (gear.follower, gear.leader)),
        ):
            if name not in joints:
                raise DescriptionError(f"<{what}>", f"{name!r} is no joint", "name an existing <joint>")
        self.home: dict[str, float] = {}
        self.drives = {actuator.joint: actuator for actuator in model.actuators}
        self.gears = {gear.follower: gear for gear in model.gears}
        self.root = ET.Element("robot", name=model.name)
        self.references = {j.name: j.reference for body in model.bodies for j in body.joints}

    def text(self) -> str:
        append(self.root, "link", name=WORLD)
        positions = list(self.model.home or [])
        for body in self.model.bodies:
            self._body(body, positions)
        if positions:
            raise DescriptionError("<key>", f"qpos has {len(positions)} number(s) too many", "correct the keyframe")
        for loop, kind, axes in self.loops:
            self._loop(loop, kind, axes)
        for spring in self.model.springs:
            given = {"name": spring.name, "stiffness": repr(spring.stiffness), "rest_length": repr(spring.length)}
            element = append(self.root, "spring", **given)
            append(element, "from", link=spring.first, xyz=row(spring.first_point))
            append(element, "to", link=spring.second, xyz=row(spring.second_point))
        pkm = append(
            self.root, "pkm", base_link=self.base, platform_link=self.platform, gravity=row(self.model.gravity)
        )
        home = append(pkm, "home")
        for name, value in self.home.items():
            append(home, "joint", name=name, position=repr(value))
        control = append(self.root, "ros2_control", name=self.model.name, type="system")
        for name, drive in self.drives.items():
            joint = append(control, "joint", name=name)
            append(joint, "command_interface", name=drive.interface)
            state = append(joint, "state_interface", name="position")
            append(state, "param", name="initial_value").text = repr(self.home.get(name, 0.0))
            append(append(joint, "state_interface", name="velocity"), "param", name="initial_value").text = "0.0"
            armature = next(j.armature for b in self.model.bodies for j in b.joints if j.name == name)
            append(joint, "param", name="rotor_inertia").text = repr(armature)
        ET.indent(self.root)
        return ET.tostring(self.root, encoding="unicode") + "\n"

    def _most_loops(self) -> str:
        counts: dict[str, int] = {}
        for loop, _, _ in self.loops:
            for body in (loop.first, loop.second):
                if body not in (WORLD, self.base):
                    counts[body] = counts.get(body, 0) + 1
        if not counts:
            raise DescriptionError("<equality>", "no connect or weld closes a loop", "this is a tree, not parallel")
        best = [body for body, count in counts.items() if count == max(counts.values())]
        if len(best) > 1:
            raise DescriptionError(
                "<mujoco>",
                f"several bodies could be the platform: {', '.join(best)}",
                f'name it: load_mechanism(file, {{"platform": "{best[0]}"}}), or --platform {best[0]}',
            )
        return best[0]

    def _body(self, body: MjcfBody, positions: list[float]) -> None:
        """A body's link, and the chain of joints that carries it."""
        parent, at = body.parent, body.frame
        if any(joint.kind == "free" for joint in body.joints):
            at = np.eye(4)  # a free joint's position is the pose in the world itself
        steps = [step for joint in body.joints for step in self._steps(joint, positions)]
        before = np.zeros(3)
        for k, (name, kind, axis, joint) in enumerate(steps):
            origin = at if k else at @ transform(joint.pos, np.eye(3))
            if k:
                origin = transform(joint.pos - before, np.eye(3))
            before = joint.pos
            last = k == len(steps) - 1 and np.abs(joint.pos).max() < AT_ORIGIN
            child = body.name if last else f"{body.name}/{name}"
            if not last:
                append(self.root, "link", name=child)
            self._joint(name, kind, parent, child, origin, axis, joint)
            parent, at = child, np.eye(4)
        if parent != body.name:
            offset = transform(-before, np.eye(3)) if steps else at
            fixed = append(self.root, "joint", name=f"{body.name}/mount", type="fixed")
            append(fixed, "parent", link=parent)
            append(fixed, "child", link=body.name)
            append(fixed, "origin", **_pose(offset))
        self._link(body)

    def _steps(self, joint: MjcfJoint, positions: list[float]) -> list[tuple[str, str, Array, MjcfJoint]]:
        """A joint as elementary joints (name, type, axis, joint), and their home positions."""

        def taken(count: int, drawn: list[float]) -> list[float]:
            if self.model.home is None:
                return drawn
            if len(positions) < count:
                raise DescriptionError("<key>", "qpos has too few numbers", "correct the keyframe")
            values = positions[:count]
            del positions[:count]
            return values

        x, y, z = np.eye(3)
        if joint.kind in ("hinge", "slide"):
            self.home[joint.name] = taken(1, [joint.reference])[0] - joint.reference
            return [(joint.name, "prismatic" if joint.kind == "slide" else "revolute", joint.axis, joint)]
        if joint.kind == "ball":
            R = frame_of(np.zeros(3), np.array(taken(4, [1.0, 0.0, 0.0, 0.0])))[:3, :3]
            angles = tuple(-rpy_from_rotation(R.T))  # R = Rx Ry Rz
            parts = [
                (f"{joint.name}_{letter}", "revolute", axis) for letter, axis in zip("xyz", (x, y, z), strict=True)
            ]
        elif joint.kind == "free":
            body = next(b for b in self.model.bodies if joint in b.joints)
            values = taken(7, [*body.frame[:3, 3], *quaternion(body.frame[:3, :3])])
            R = frame_of(np.zeros(3), np.array(values[3:]))[:3, :3]
            angles = (*values[:3], *rpy_from_rotation(R)[::-1])
            parts = [
                (freedom.name, "prismatic" if freedom.slides else "revolute", freedom.axis)
                for freedom in floating_freedoms(f"{joint.name}_")
            ]
        else:
            raise DescriptionError(f'<joint name="{joint.name}">', f"unknown type {joint.kind!r}", "use hinge or slide")
        for (name, _, _), value in zip(parts, angles, strict=True):
            self.home[name] = float(value)
        return [(name, kind, axis, joint) for name, kind, axis in parts]

    def _joint(
        self, name: str, kind: str, parent: str, child: str, origin: Array, axis: Array, joint: MjcfJoint
    ) -> None:
        element = append(self.root, "joint", name=name, type=kind)
        append(element, "parent", link=parent)
        append(element, "child", link=child)
        append(element, "origin", **_pose(origin))
        append(element, "axis", xyz=row(axis))
        effort = self.drives[name].effort if name in self.drives else np.inf
        low, high = joint.limits or (0.0, 0.0)
        if joint.limits:
            low, high = low - joint.reference, high - joint.reference
        limit = append(element, "limit", lower=repr(low), upper=repr(high))
        limit.set("velocity", "0")
        limit.set("effort", repr(float(effort)) if np.isfinite(effort) else "0")
        dynamics = append(element, "dynamics", damping=repr(joint.damping), friction=repr(joint.friction))
        if joint.stiffness:
            dynamics.set("spring_stiffness", repr(joint.stiffness))
            dynamics.set("spring_reference", repr(joint.rest - joint.reference))
        if name in self.gears:
            gear = self.gears[name]
            offset = gear.offset  # in MuJoCo between departures from the drawing, as here
            append(element, "mimic", joint=gear.leader, multiplier=repr(gear.ratio), offset=repr(offset))

    def _link(self, body: MjcfBody) -> None:
        link = append(self.root, "link", name=body.name)
        if body.mass or body.inertia.any():
            inertial = append(link, "inertial")
            append(inertial, "origin", xyz=row(body.com))
            append(inertial, "mass", value=repr(float(body.mass)))
            keys = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
            append(inertial, "inertia", **{key: repr(float(body.inertia[at])) for key, at in keys.items()})
        for number, geom in enumerate(body.geoms):
            visual = append(link, "visual")
            append(visual, "origin", **_pose(geom.frame))
            geometry = append(visual, "geometry")
            if geom.kind == "box":
                append(geometry, "box", size=row(2.0 * v for v in geom.size[:3]))
            elif geom.kind == "sphere":
                append(geometry, "sphere", radius=repr(geom.size[0]))
            else:
                append(geometry, "cylinder", radius=repr(geom.size[0]), length=repr(2.0 * geom.size[1]))
            material = append(visual, "material", name=f"{body.name}/{number}")
            append(material, "color", rgba=geom.rgba)

    def _loop(self, loop: MjcfClosure, kind: str, axes: tuple[Array, Array] | None) -> None:
        element = append(self.root, "loop", name=loop.name, type=kind)
        for tag, body, frame in (
            ("predecessor", loop.first, loop.first_frame),
            ("successor", loop.second, loop.second_frame),
        ):
            end = append(element, tag, link=body)
            if axes:
                frame = transform(frame[:3, 3], np.eye(3))  # axes of a hinge are given in the bodies' own axes
            append(end, "origin", **_pose(frame))
        if axes:
            append(element, "axis", xyz=row(axes[0]))
            append(element, "axis2", xyz=row(axes[1]))


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


def _pose(frame: Array) -> dict[str, str]:
    """Position and roll, pitch, yaw with R = Rz(yaw) Ry(pitch) Rx(roll)."""
    return {"xyz": row(frame[:3, 3]), "rpy": row(rpy_from_rotation(frame[:3, :3]))}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(prog="pkm import", description="Write a MuJoCo model as a URDF+ description.")
    p.add_argument("file", metavar="FILE", help="an MJCF file")
    add_output(p)
    p.add_argument(
        "--platform", metavar="BODY", help="body that is the platform; by default the one at which most loops end"
    )
    p.add_argument("--base", metavar="BODY", help="body that is the base; by default the world")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 1 for an unusable file."""
    given = parser().parse_args(arguments)
    try:
        write_output(import_mjcf(Path(given.file), given.platform, given.base), given.output)
    except (DescriptionError, OSError) as error:
        print(f"pkm import: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
