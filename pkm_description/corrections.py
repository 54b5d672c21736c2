# SPDX-License-Identifier: Apache-2.0
"""Corrections of a drawing: where a real machine's joints sit, beside where its description has them.

Calibration finds displacements of frames on their bodies, a YAML file keeps them, and
`load_mechanism(robot, {"corrections": FILE})` applies them; the corrected robot is a description like any other::

    robot: delta
    displacements:
      - joint: limb1_arm                 # its origin
        translation: [0.0002, 0, 0]      # m, in the axes of the frame itself
        rotation: [0, 0.001, 0]          # rad, a rotation vector
      - loop: limb1_a_ball
        frame: predecessor               # or successor
        translation: [0.00031, 0, 0]
      - joint: limb1_arm
        ratio: 0.001                     # of its gear: it moves 1.001 times as far as the drawing says
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pkm_description.description_error import DescriptionError
from pkm_description.from_urdf import mechanism_from_urdf
from pkm_description.joint_geometry import home_positions
from pkm_description.loops.closure import ClosureModel, advance, null_space
from pkm_description.loops.home import CLOSED, close
from pkm_description.loops.mobility import check_gears
from pkm_description.mechanism import Array, JointType, Mechanism, frozen
from pkm_description.rotations import (
    rotation_from_rpy,
    rotation_from_vector,
    rpy_from_rotation,
    transform,
    vector_from_rotation,
)
from pkm_description.urdf.xml_text import append, append_home, row
from pkm_runtime.yaml_section import Section, read_yaml

PLACES = ("origin", "predecessor", "successor")
LARGEST = 0.2  # m, rad, or of a ratio: beyond, it is no correction but another robot
AWAY = 0.02  # a dimensionless motion of the drawing, which displaced loops have to have, too
NAMES = ("x", "y", "z", "yaw", "pitch", "roll")  # a free platform's coordinates


@dataclass(frozen=True, eq=False)
class Displacement:
    """A frame moved on its body by `twist` (6,): translation [m], then rotation vector [rad], in its own axes.

    `element` names a joint, whose `place` is "origin", or a loop with "predecessor" or "successor". With "ratio" no
    frame moves: the joint moves (1 + twist[0]) times as far for its leader, or its drive's encoder, as in the drawing.
    """

    element: str
    place: str
    twist: Array

    def moved(self, frame: Array) -> Array:
        """The frame (4, 4) after it."""
        return np.asarray(frame @ transform(self.twist[:3], rotation_from_vector(self.twist[3:])))


def read_corrections(path: str | os.PathLike[str]) -> tuple[str, list[Displacement]]:
    """The robot's name and the displacements of a file. Raises `ConfigurationError` where it cannot be used."""
    source, values = read_yaml(Path(path))
    section = Section(source, "", values)
    robot = section.text("robot", "")
    section.has("parameters")  # for people
    listed = values.get("displacements") if section.has("displacements") else None
    if not isinstance(listed, list):
        raise section.wrong("displacements", "is no list", "write '- joint: NAME' or '- loop: NAME' lines below it")
    section.finish()
    found: dict[tuple[str, str], Displacement] = {}
    for k, one in enumerate(listed):
        part = Section(source, f"displacements[{k}]", one)
        moved = _read(part)
        if (moved.element, moved.place) in found:
            raise part.wrong("", f"displaces {moved.element!r} a second time", "join the two, or remove one")
        found[moved.element, moved.place] = moved
    return robot, list(found.values())


def _read(one: Section) -> Displacement:
    joint, loop = one.text("joint", ""), one.text("loop", "")
    if bool(joint) == bool(loop):
        raise one.wrong("", "names no joint and no loop, or both", "write 'joint: NAME' or 'loop: NAME'")
    place = one.text("frame", choices=PLACES[1:]) if loop else "ratio" if one.has("ratio") else "origin"
    if place == "ratio":
        twist = [one.number("ratio"), *[0.0] * 5]
    else:
        twist = [*one.numbers("translation", (3,), [0.0] * 3), *one.numbers("rotation", (3,), [0.0] * 3)]
    if max(map(abs, twist)) > LARGEST:
        problem = f"it displaces by {max(map(abs, twist)):g} m or rad (of a ratio: 1), more than {LARGEST:g}"
        raise one.wrong("", problem, "give corrections of this drawing, in m and rad")
    one.finish()
    return Displacement(joint or loop, place, frozen(twist))


def corrections_text(mechanism: Mechanism, found: Sequence[Displacement], about: Sequence[str] = ()) -> str:
    """The file's text, with comment lines `about` at its head."""
    lines = [f"# {line}" for line in about] + [f"robot: {mechanism.name}", f"displacements:{'' if found else ' []'}"]
    for one in found:
        lines.append(f"  - {'loop' if one.place in PLACES[1:] else 'joint'}: {one.element}")
        if one.place == "ratio":
            lines.append(f"    ratio: {one.twist[0]:.17g}")
            continue
        if one.place != "origin":
            lines.append(f"    frame: {one.place}")
        for name, part in (("translation", one.twist[:3]), ("rotation", one.twist[3:])):
            if part.any():
                lines.append(f"    {name}: [{', '.join(f'{value:.17g}' for value in part)}]")
    return "\n".join(lines) + "\n"


def joined(first: Sequence[Displacement], then: Sequence[Displacement]) -> list[Displacement]:
    """Displacements of a drawing that has the `first` ones, and `then` those that were found of it so."""
    found = {(one.element, one.place): one for one in first}
    for one in then:
        before = found.get((one.element, one.place))
        if before is not None and one.place == "ratio":
            ratio = (1.0 + before.twist[0]) * (1.0 + one.twist[0]) - 1.0
            one = replace(one, twist=frozen([ratio, *[0.0] * 5]))
        elif before is not None:
            frame = one.moved(before.moved(np.eye(4)))
            twist = np.concatenate((frame[:3, 3], vector_from_rotation(frame[:3, :3])))
            one = replace(one, twist=frozen(twist))
        found[one.element, one.place] = one
    return list(found.values())


def corrected(mechanism: Mechanism, displacements: Sequence[Displacement]) -> Mechanism:
    """The robot with displaced joints, loaded anew: its home has the drives where they were.

    Where the loops then tilt the platform out of its task coordinates, all six take their place. Raises
    `DescriptionError` for an unknown joint or loop, or where the displaced loops cannot close.
    """
    for one in displacements:
        if one.element in mechanism.unbuilt:
            where, problem = (
                f"correction of joint {one.element!r}",
                "it is a coordinate of the platform, and holds nothing",
            )
            raise DescriptionError(where, problem, "give the place of a joint of the machine")
    free = bool(mechanism.virtual_chain) and not _keeps_its_branch(mechanism, displacements)
    found = mechanism_from_urdf(corrected_text(mechanism, displacements, free), mechanism.source)
    followers = [d.element for d in displacements if d.place == "ratio" and mechanism.joint_named[d.element].mimic]
    if followers and found.mobility.platform != mechanism.mobility.platform:
        where, remedy = f"correction of the ratio of {followers[0]!r}", "leave it out; the solvers use loops, not gears"
        raise DescriptionError(where, "the loops imply its ratio: with another one they hold the platform", remedy)
    try:
        check_gears(found)
    except DescriptionError as error:
        geared = ", ".join(repr(joint.name) for joint in mechanism.joints if joint.mimic is not None)
        problem = f"with them, the platform has a motion that only the gear of {geared} prevents"
        remedy = "use the robot as drawn: the solvers follow loops, not gears"
        raise DescriptionError(f"corrections of {mechanism.name}", problem, remedy) from error
    return found


def _keeps_its_branch(mechanism: Mechanism, displacements: Sequence[Displacement]) -> bool:
    """Whether the displaced loops close, move as drawn, and have the platform on the branch of the drawing."""
    # In some pose they may close by chance. Ratios do not count: those of drives change no loop, others' loops imply.
    moves = {(one.element, one.place): one for one in displacements}

    def moved(element: str, place: str, frame: Array) -> Array:
        one = moves.get((element, place))
        return frame if one is None else one.moved(frame)

    joints = [replace(j, origin=moved(j.name, "origin", j.origin)) for j in mechanism.joints]
    loops = [
        replace(
            one,
            predecessor_frame=moved(one.name, "predecessor", one.predecessor_frame),
            successor_frame=moved(one.name, "successor", one.successor_frame),
        )
        for one in mechanism.loops
    ]
    model = ClosureModel(mechanism.links, joints, loops, mechanism.base_link)
    drawn = ClosureModel(mechanism.links, mechanism.joints, mechanism.loops, mechanism.base_link)
    start, every = model.reduced(mechanism.home_joints), np.ones(model.size, dtype=bool)
    here, gap = close(model, model.closure, every, start)

    def moves_along(one: ClosureModel, q: Array, way: Array) -> bool:
        there, left = close(one, one.closure, every, advance(one, q, AWAY * way))
        return bool(left < CLOSED and way @ ((there - q) / one.scale) > 0.5 * AWAY)

    ways = [way for way in null_space(drawn.closure(start)[1]).T if moves_along(drawn, start, way)]
    return gap < CLOSED and all(moves_along(model, here, way) for way in ways)


def corrected_text(mechanism: Mechanism, displacements: Sequence[Displacement], free_platform: bool) -> str:
    """URDF+ text of the robot with displaced joints; `free_platform` writes its pose in six coordinates."""
    root = ET.fromstring(mechanism.urdf)
    joints = {one.get("name", ""): one for one in root.findall("joint")}
    loops = {one.get("name", ""): one for one in root.findall("loop")}
    for one in displacements:
        if one.place == "ratio":
            _set_ratio(root, mechanism, one)
            continue
        if one.place == "origin":
            holder, named = joints.get(one.element), mechanism.joint_named.get(one.element)
            frame = None if named is None else named.origin
        else:
            loop = loops.get(one.element)
            holder, cut = None if loop is None else loop.find(one.place), mechanism.loop_named.get(one.element)
            frame = None if cut is None else getattr(cut, f"{one.place}_frame")
        if holder is None or frame is None:
            kind = "joint" if one.place == "origin" else "loop"
            where, problem = f"correction of {kind} {one.element!r}", f"{mechanism.name} has no such {kind}"
            raise DescriptionError(where, problem, "give the corrections of this robot; pkm calibrate writes them")
        set_origin(holder, one.moved(frame))
    homes = home_positions(mechanism)
    if free_platform:
        for name in _free(root, mechanism, joints):
            homes.pop(name, None)
        homes |= _task_home(mechanism)
    pkm = root.find("pkm")
    assert pkm is not None  # the robot was loaded from this text
    append_home(pkm, homes)  # without a pose: drives stay where they start, and loops say where the platform is
    return ET.tostring(root, encoding="unicode")


def _set_ratio(root: ET.Element, mechanism: Mechanism, one: Displacement) -> None:
    """Change the multiplier of a follower, or the gear ratio of a drive, which is motor speed over joint speed.
    `gear_correction` of the drive passes the change on to the machine, whose file has the ratio of the drawing.
    """
    joint, factor = mechanism.joint_named.get(one.element), 1.0 + float(one.twist[0])
    if joint is not None and joint.mimic is not None:
        mimic = root.find(f"joint[@name='{one.element}']/mimic")
        assert mimic is not None
        mimic.set("multiplier", repr(joint.mimic.multiplier * factor))
        return
    if joint is None or joint.drive is None or joint.drive.gear_ratio == 1.0:
        problem = f"{mechanism.name} has no such joint with a gear: a <mimic>, or a drive with gear_ratio"
        remedy = "give the corrections of this robot; pkm calibrate writes them"
        raise DescriptionError(f"correction of the ratio of {one.element!r}", problem, remedy)
    drive = root.find(f"ros2_control/joint[@name='{one.element}']")
    assert drive is not None
    for name, number in (
        ("gear_ratio", joint.drive.gear_ratio / factor),
        ("gear_correction", joint.drive.gear_correction * factor),
    ):
        parameter = drive.find(f"param[@name='{name}']")
        (append(drive, "param", name=name) if parameter is None else parameter).text = repr(number)


def set_origin(holder: ET.Element, frame: Array) -> None:
    """Write a frame (4, 4) into the element of a joint, or of an end of a loop, with all digits."""
    for origin in holder.findall("origin"):
        holder.remove(origin)
    append(holder, "origin", xyz=row(frame[:3, 3]), rpy=row(_accurate_rpy(frame[:3, :3])))


def _accurate_rpy(rotation: Array) -> Array:
    """Angles of a rotation; beside pitch of a quarter turn these lose half of the digits, which a step gives back."""
    rpy = rpy_from_rotation(rotation)
    for _ in range(3):
        made = rotation_from_rpy(rpy)
        error = 0.5 * (rotation @ made.T - (rotation @ made.T).T)
        miss = np.array([error[2, 1], error[0, 2], error[1, 0]])
        if np.abs(miss).max() < 1e-15:
            break
        _, pitch, yaw = rpy
        axes = np.column_stack(
            (
                rotation_from_rpy(np.array([0.0, pitch, yaw]))[:, 0],
                rotation_from_rpy(np.array([0.0, 0.0, yaw]))[:, 1],
                np.array([0.0, 0.0, 1.0]),
            )
        )
        rpy = rpy + np.linalg.lstsq(axes, miss, rcond=1e-12)[0]
    return np.asarray(rpy)


def _free(root: ET.Element, mechanism: Mechanism, joints: Mapping[str, ET.Element]) -> tuple[str, ...]:
    """Put six joints in place of the platform's branch; the names that are gone."""
    limits = {}
    for name in mechanism.virtual_chain:
        joint = mechanism.joint_named[name]
        axis = (mechanism.home[:3, :3] if joint.type is not JointType.PRISMATIC else np.eye(3)) @ joint.axis
        if joint.type is JointType.PRISMATIC and np.abs(axis).max() > 1.0 - 1e-9:
            limits["xyz"[int(np.argmax(np.abs(axis)))]] = joints[name].find("limit")
        root.remove(joints[name])
        child = joint.child
        if child != mechanism.platform_link:
            root.remove(next(link for link in root.findall("link") if link.get("name") == child))
    parent = mechanism.base_link
    for name, direction in zip(NAMES, ("1 0 0", "0 1 0", "0 0 1", "0 0 1", "0 1 0", "1 0 0"), strict=True):
        child = mechanism.platform_link if name == "roll" else f"platform_{name}_frame"
        if name != "roll":
            append(root, "link", name=child)
        kind = "revolute" if name in NAMES[3:] else "prismatic"
        made = append(root, "joint", name=f"platform_{name}", type=kind)
        for tag, value in (("parent", {"link": parent}), ("child", {"link": child}), ("axis", {"xyz": direction})):
            append(made, tag, **value)
        limit = limits.get(name)
        if limit is not None:
            made.append(limit)
        parent = child
    return mechanism.virtual_chain


def _task_home(mechanism: Mechanism) -> dict[str, float]:
    roll, pitch, yaw = rpy_from_rotation(mechanism.home[:3, :3])
    values = (*mechanism.home[:3, 3], yaw, pitch, roll)
    return {f"platform_{name}": float(value) for name, value in zip(NAMES, values, strict=True)}


def corrected_from_file(mechanism: Mechanism, path: str | os.PathLike[str]) -> Mechanism:
    """The robot with the corrections of a file. Raises `DescriptionError` for those of another robot."""
    robot, found = read_corrections(path)
    if robot and robot != mechanism.name:
        problem = f"they belong to {robot!r}, but the robot is {mechanism.name!r}"
        raise DescriptionError(f"corrections {Path(path)}", problem, "give the corrections of this description")
    return corrected(mechanism, found)
