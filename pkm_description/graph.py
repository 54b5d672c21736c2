# SPDX-License-Identifier: Apache-2.0
"""The graph of a description: spanning tree in topological order, platform chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from pkm_description.description_error import DescriptionError, or_near
from pkm_description.mechanism import Array, Joint, JointType, Link, Loop, LoopType, Mimic, frozen
from pkm_description.rotations import inverse_transform

PARALLEL = 1e-6  # sine between axes of joints one after the other, below which they give one angle


def ordered_tree(links: Sequence[Link], joints: Sequence[Joint], base_link: str) -> tuple[Joint, ...]:
    """Joints in topological order from the base, those of a branch together.

    A root above the base (`world`) is allowed where only fixed joints lie between, which are reversed. Raises
    `DescriptionError` where the joints form no tree, name an unknown link, or mimic a joint that cannot lead.
    """
    names = [link.name for link in links]
    _check_joint_links(joints, names)
    joints = _following(joints)
    parent = {joint.child: joint for joint in joints}
    roots = [name for name in names if name not in parent]
    if not roots:
        where, problem = f'<joint name="{joints[0].name}">', "the joints form a cycle, there is no root link"
        raise DescriptionError(where, problem, "cut one joint of the cycle and write it as <loop>")
    joints = _rooted_at_base(joints, parent, base_link)
    children: dict[str, list[Joint]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint)
    order: list[Joint] = []
    reached = {base_link}
    stack = [base_link]
    while stack:
        # Depth first, in the order of the file: the joints of a limb stay together.
        link = stack.pop()
        if link != base_link:
            order.append(next(j for j in joints if j.child == link))
        for joint in reversed(children.get(link, [])):
            reached.add(joint.child)
            stack.append(joint.child)
    missing = [name for name in names if name not in reached]
    if missing:
        on_cycle = [name for name in missing if any(j.child == name for j in joints)]
        stray = [name for name in missing if name not in on_cycle]
        if not stray:
            cut = next(j.name for j in joints if j.child == missing[0])
            remedy = "cut one joint of the cycle and write it as <loop>"
            raise DescriptionError(f'<joint name="{cut}">', f"the joints of {', '.join(missing)} form a cycle", remedy)
        remedy = "add a joint with this link as child; loops cannot replace it"
        raise DescriptionError(f'<link name="{stray[0]}">', f"no joint connects it to the base {base_link!r}", remedy)
    return tuple(order)


def check_ends(label: str, names: Sequence[str], **ends: str) -> None:
    """Refuse a joint or loop, in messages `label`, that does not join two different links of those named."""
    for side, link in ends.items():
        if link not in names:
            remedy = or_near(link, names, "name an existing <link>")
            raise DescriptionError(label, f"its {side} {link!r} is not a link", remedy)
    if len(set(ends.values())) == 1:
        raise DescriptionError(
            label, f"it connects {next(iter(ends.values()))!r} to itself", "name two different links"
        )


def _check_joint_links(joints: Sequence[Joint], names: Sequence[str]) -> None:
    carried: dict[str, str] = {}
    for joint in joints:
        label = f'<joint name="{joint.name}">'
        check_ends(label, names, parent=joint.parent, child=joint.child)
        if joint.child in carried:
            problem = f"its child {joint.child!r} already has the parent joint {carried[joint.child]!r}"
            raise DescriptionError(label, problem, "write one of the two joints as <loop>")
        carried[joint.child] = joint.name


def _following(joints: Sequence[Joint]) -> list[Joint]:
    """The joints, each that mimics one led by an independent joint: gears one after the other are one ratio."""
    named = {joint.name: joint for joint in joints}
    result = []
    for joint in joints:
        mimic, seen, label = joint.mimic, {joint.name}, f'<joint name="{joint.name}"> <mimic>'
        while mimic is not None:
            leader = named.get(mimic.joint)
            if leader is None:
                raise DescriptionError(
                    label, f"unknown joint {mimic.joint!r}", or_near(mimic.joint, named, "name an existing <joint>")
                )
            if leader.name in seen:
                raise DescriptionError(label, f"{leader.name!r} itself mimics a joint", "name an independent joint")
            if joint.type.dof != 1 or leader.type.dof != 1:
                problem = f"{joint.name!r} and {leader.name!r} must both have one degree of freedom"
                raise DescriptionError(label, problem, "use joints with one degree of freedom")
            joint, before = replace(joint, mimic=mimic), leader.mimic
            seen.add(leader.name)
            mimic = before and Mimic(
                before.joint, mimic.multiplier * before.multiplier, mimic.multiplier * before.offset + mimic.offset
            )
        result.append(joint)
    return result


def _rooted_at_base(joints: Sequence[Joint], parent: dict[str, Joint], base_link: str) -> list[Joint]:
    turned: dict[str, Joint] = {}
    link = base_link
    while link in parent and parent[link].name not in turned:
        joint = parent[link]
        if joint.type is not JointType.FIXED:
            problem = f"it moves {link!r}, so the base {base_link!r} is not the root of the tree"
            remedy = "start the tree at the base link, or name the root as base_link"
            raise DescriptionError(f'<joint name="{joint.name}">', problem, remedy)
        turned[joint.name] = replace(
            joint, parent=joint.child, child=joint.parent, origin=frozen(inverse_transform(joint.origin))
        )
        link = joint.parent
    return [turned.get(joint.name, joint) for joint in joints]


def path_from_base(joints: Sequence[Joint], link: str) -> tuple[Joint, ...]:
    """The joints from the root of the tree to a link, in that order."""
    parent = {joint.child: joint for joint in joints}
    path: list[Joint] = []
    while link in parent:
        path.append(parent[link])
        link = parent[link].parent
    return tuple(reversed(path))


def _undetermined(joints: Sequence[Joint], loops: Sequence[Loop], platform: str) -> list[str]:
    ends = {platform, *(link for loop in loops for link in (loop.predecessor, loop.successor))}
    determined = {joint.name for link in ends for joint in path_from_base(joints, link)}
    return [joint.name for joint in joints if joint.type is not JointType.FIXED and joint.name not in determined]


def check_leaders(joints: Sequence[Joint], loops: Sequence[Loop], platform: str) -> None:
    """Refuse a joint beyond which no loop closes, but which others follow, such as that of a motor beside its arm."""
    undetermined = _undetermined(joints, loops, platform)
    for joint in joints:
        if joint.mimic is not None and joint.mimic.joint in undetermined and joint.name not in undetermined:
            leader = f'<joint name="{joint.mimic.joint}">'
            remedy = f"drive {joint.name!r} instead, with the motor's gear_ratio and rotor_inertia"
            raise DescriptionError(leader, f"it is in no loop, and {joint.name!r}, which is, follows it", remedy)


def check_determined(joints: Sequence[Joint], loops: Sequence[Loop], platform: str) -> None:
    """Refuse a joint beyond which no loop closes and no platform hangs, such as a wheel spinning on the platform."""
    undetermined = _undetermined(joints, loops, platform)
    for joint in joints:
        if joint.name not in undetermined:
            continue
        problem = "no loop closure determines its position"
        remedy = "close its chain on the platform with a <loop>, or make the joint fixed"
        if joint.mimic is not None:
            problem = f"it is in no loop, and only follows {joint.mimic.joint!r}"
            remedy = "make it fixed, its inertia part of the rotor_inertia of the drive that turns it"
        raise DescriptionError(f'<joint name="{joint.name}">', problem, remedy)


def platform_chain(
    links: Sequence[Link], joints: Sequence[Joint], loops: Sequence[Loop], platform: str
) -> tuple[str, ...]:
    """Names of the joints from base to platform if these are the task coordinates, else empty.

    They are not actuated, and their links carry no other joint, end no loop, and are massless; or all of them turn, as
    those of an ankle whose cross has a mass. Those that turn alone are angles of an attitude, not bars in a row.
    """
    path = path_from_base(joints, platform)
    between = {joint.child for joint in path[:-1]}
    on_path = {joint.name for joint in path}
    carries = {joint.parent for joint in joints if joint.name not in on_path}
    closed = {link for loop in loops for link in (loop.predecessor, loop.successor)}
    massless = {link.name for link in links if link.inertial.massless}
    turns = (JointType.REVOLUTE, JointType.CONTINUOUS, JointType.FIXED)
    alone = not between & (carries | closed) and not any(joint.actuated or joint.mimic for joint in path)
    turning = all(joint.type in turns for joint in path)
    coordinates = alone and (_are_angles(path) if turning else between <= massless)
    return tuple(joint.name for joint in path) if coordinates else ()


def _are_angles(path: Sequence[Joint]) -> bool:
    axes: list[Array] = []
    R = np.eye(3)
    for joint in path:
        R = R @ joint.origin[:3, :3]
        if joint.type is not JointType.FIXED:
            axes.append(R @ joint.axis)
    parallel = any(np.linalg.norm(np.cross(one, other)) < PARALLEL for one, other in pairwise(axes))
    return len(axes) <= 3 and not parallel


def rigid_with(joints: Sequence[Joint], link: str, loops: Sequence[Loop] = ()) -> set[str]:
    """Names of a link and of all links tied to it by fixed joints and loops."""
    pairs = [{joint.parent, joint.child} for joint in joints if joint.type is JointType.FIXED]
    pairs += [{loop.predecessor, loop.successor} for loop in loops if loop.type is LoopType.FIXED]
    group, before = {link}, 0
    while len(group) > before:
        before = len(group)
        group = group.union(*(pair for pair in pairs if pair & group))
    return group
