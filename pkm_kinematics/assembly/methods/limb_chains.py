# SPDX-License-Identifier: Apache-2.0
"""Limbs without inner loops as chains of axes from base to platform, for any positions of the actuators."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pkm_description.graph import rigid_with
from pkm_description.joint_geometry import frame_along
from pkm_description.loops.closure import ClosureModel
from pkm_description.mechanism import Array, Joint, JointType, Limb, Loop, LoopType, Mechanism
from pkm_description.rotations import rotation_about, transform


@dataclass(frozen=True, eq=False)
class Axis:
    """One degree of freedom of a joint at home, base frame: a turn about a line, or a slide along it."""

    slides: bool
    point: Array
    direction: Array
    actuator: int = -1  # index of the actuator that moves it
    sign: float = 1.0  # of the joint's positive motion, seen from base to platform

    def moved(self, displacement: Array) -> Axis:
        """The axis after a rigid displacement (4, 4)."""
        R, p = displacement[:3, :3], displacement[:3, 3]
        return replace(self, point=R @ self.point + p, direction=R @ self.direction)

    def motion(self, amount: float) -> Array:
        """Rigid displacement (4, 4) by an amount of the joint's motion [rad or m]."""
        if self.slides:
            return transform(self.sign * amount * self.direction, np.eye(3))
        R = rotation_about(self.direction, self.sign * amount)
        return transform(self.point - R @ self.point, R)


@dataclass(frozen=True, eq=False)
class PassiveChain:
    """What is left of a limb with its actuators locked: axes, base first, and the platform's pose (4, 4) on it."""

    axes: list[Axis]
    platform: Array


class LimbChains:
    """The limbs of a mechanism as chains of axes at home, actuators at `actuated_home` there; `size` is in m."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism
        model = ClosureModel(mechanism.links, mechanism.joints, mechanism.loops, mechanism.base_link)
        at_home = model.reduced(mechanism.home_joints)
        poses, _ = model.forward(at_home)
        self._poses = {name: poses[k] for name, k in model.link_index.items()}
        places = np.array([pose[:3, 3] for pose in self._poses.values()])
        self.size = float(np.max(np.linalg.norm(places - places.mean(axis=0), axis=1))) or 1.0
        self._home = self._poses[mechanism.platform_link]
        joints = [mechanism.joint_named[name] for name in mechanism.actuated_joints]
        self.actuated_home: Array = np.array([model.value(joint, at_home)[0] for joint in joints])
        self._chains = [self._chain(limb) for limb in mechanism.limbs]

    def locked(self, q: Array) -> list[PassiveChain] | None:
        """The chains with the actuated joints at q (n_actuated,); None where a limb is no chain."""
        offsets = q - self.actuated_home
        found = []
        for chain in self._chains:
            if chain is None:
                return None
            passive, displacement = [], np.eye(4)
            for axis in chain:
                placed = axis.moved(displacement)
                if axis.actuator >= 0:
                    displacement = placed.motion(float(offsets[axis.actuator])) @ displacement
                else:
                    passive.append(placed)
            found.append(PassiveChain(passive, displacement @ self._home))
        return found

    def _chain(self, limb: Limb) -> list[Axis] | None:
        """Axes of a limb from base to platform; None where it has inner loops or geared joints."""
        mechanism = self._mechanism
        joints = [mechanism.joint_named[name] for name in limb.joints]
        loops = [mechanism.loop_named[name] for name in limb.loops]
        if any(joint.mimic is not None for joint in joints) or len(joints) + len(loops) != len(limb.links) + 1:
            return None
        elements: list[tuple[str, str, Joint | Loop]] = [(joint.parent, joint.child, joint) for joint in joints]
        elements += [(loop.predecessor, loop.successor, loop) for loop in loops]
        edges: dict[str, list[tuple[str, Joint | Loop, bool]]] = {}
        for first, second, element in elements:
            edges.setdefault(first, []).append((second, element, False))
            edges.setdefault(second, []).append((first, element, True))
        ends = set(edges) - set(limb.links)
        starts = ends & rigid_with(mechanism.joints, mechanism.base_link)
        goals = ends & rigid_with(mechanism.joints, mechanism.platform_link)
        if len(starts) != 1 or len(goals) != 1:
            return None
        at, goal, axes, used = starts.pop(), goals.pop(), list[Axis](), list[Joint | Loop]()
        while at != goal:
            onward = [edge for edge in edges[at] if edge[1] not in used]
            if len(onward) != 1:
                return None
            at, element, backward = onward[0]
            used.append(element)
            freedoms = self._tree_axes(element) if isinstance(element, Joint) else self._loop_axes(element)
            if freedoms is None:
                return None
            axes += [replace(a, sign=-a.sign) for a in reversed(freedoms)] if backward else freedoms
        return axes if len(used) == len(elements) else None

    def _tree_axes(self, joint: Joint) -> list[Axis] | None:
        frame = self._poses[joint.parent] @ joint.origin
        direction, point = frame[:3, :3] @ joint.axis, frame[:3, 3]
        names = self._mechanism.actuated_joints
        actuator = names.index(joint.name) if joint.name in names else -1
        if joint.type is JointType.FIXED:
            return []
        if joint.type is JointType.PRISMATIC:
            return [Axis(True, point, direction, actuator)]
        if joint.type in (JointType.REVOLUTE, JointType.CONTINUOUS):
            return [Axis(False, point, direction, actuator)]
        return None

    def _loop_axes(self, loop: Loop) -> list[Axis] | None:
        first = self._poses[loop.predecessor] @ loop.predecessor_frame
        second = self._poses[loop.successor] @ loop.successor_frame
        point, axis, axis2 = first[:3, 3], first[:3, :3] @ loop.axis, second[:3, :3] @ loop.axis2
        turns = {
            LoopType.FIXED: [],
            LoopType.SPHERICAL: [Axis(False, point, unit) for unit in np.eye(3)],
            LoopType.UNIVERSAL: [Axis(False, point, axis), Axis(False, point, axis2)],
            LoopType.REVOLUTE: [Axis(False, point, axis)],
            LoopType.PRISMATIC: [Axis(True, point, axis)],
            LoopType.CYLINDRICAL: [Axis(True, point, axis), Axis(False, point, axis)],
        }
        if loop.type is LoopType.PLANAR:
            across = frame_along(axis).T
            return [Axis(True, point, across[0]), Axis(True, point, across[1]), Axis(False, point, axis)]
        return turns.get(loop.type)
