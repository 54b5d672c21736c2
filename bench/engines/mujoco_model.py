# SPDX-License-Identifier: Apache-2.0
"""A mechanism as a MuJoCo model: bodies, joints and armatures of the tree, spherical loops as `connect` equalities."""

from __future__ import annotations

from xml.etree import ElementTree

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from pkm_description.mechanism import Array, Inertial, Joint, JointType, LoopType, Mechanism

# Impedance of the equalities: as near to rigid as MuJoCo allows. Its default of 0.9 to 0.95 leaves a twentieth of the
# constraint force out.
RIGID = "0.9999 0.9999 0.001 0.5 2"
TINY = 1e-12  # kg, kg m^2: MuJoCo wants some inertia in every moving body


class MujocoRobot:
    """The MuJoCo model of a mechanism; contacts, friction and joint limits are left out.

    With `loops`, which must be spherical, they are equalities. Where the platform has a branch of six degrees of
    freedom, a free joint named `platform` stands for it if `free_platform`.
    """

    def __init__(
        self, mechanism: Mechanism, loops: bool = True, free_platform: bool = False, timestep: float = 1e-3
    ) -> None:
        self.mechanism = mechanism
        self.text = ElementTree.tostring(_document(mechanism, loops, free_platform, timestep), encoding="unicode")
        self.model = mujoco.MjModel.from_xml_string(self.text)
        self.data = mujoco.MjData(self.model)
        joints = [self.model.joint(k) for k in range(self.model.njnt)]
        self.qpos_at = {joint.name: int(joint.qposadr[0]) for joint in joints}
        self.dof_at = {joint.name: int(joint.dofadr[0]) for joint in joints}
        self.actuated = [self.dof_at[name] for name in mechanism.actuated_joints]

    def set_state(self, joint_names: tuple[str, ...], q: Array, v: Array, pose: Array, twist: Array) -> None:
        """Write positions and velocities of the joints (n_joints,), and of a free platform: pose (7,), twist (6,)."""
        for name, position, rate in zip(joint_names, q, v, strict=True):
            if name in self.qpos_at:
                self.data.qpos[self.qpos_at[name]] = position
                self.data.qvel[self.dof_at[name]] = rate
        if "platform" in self.qpos_at:
            at = self.qpos_at["platform"]
            self.data.qpos[at : at + 7] = [*pose[:3], pose[6], *pose[3:6]]
            at = self.dof_at["platform"]
            # a free joint turns in the axes of its body
            self.data.qvel[at : at + 6] = [*twist[:3], *Rotation.from_quat(pose[3:]).inv().apply(twist[3:])]

    def closure_gap(self) -> float:
        """Largest distance between the two ends of a loop, m."""
        ends = [self.data.site(f"{loop.name}/{side}").xpos for loop in self.mechanism.loops for side in ("p", "s")]
        gaps = [np.linalg.norm(p - s) for p, s in zip(ends[::2], ends[1::2], strict=True)]
        return float(max(gaps))

    def mass_matrix(self) -> Array:
        """Mass matrix (nv, nv) at the present positions."""
        M = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        return M


def _document(mechanism: Mechanism, loops: bool, free_platform: bool, timestep: float) -> ElementTree.Element:
    root = ElementTree.Element("mujoco", model=mechanism.name)
    ElementTree.SubElement(root, "compiler", angle="radian", autolimits="false")
    option = ElementTree.SubElement(root, "option", timestep=str(timestep), gravity=_text(mechanism.gravity))
    ElementTree.SubElement(option, "flag", contact="disable")
    world = ElementTree.SubElement(root, "worldbody")
    bodies = {mechanism.base_link: world}
    for joint in mechanism.joints:
        if free_platform and joint.name in mechanism.platform_chain:
            if joint.child == mechanism.platform_link:
                body = ElementTree.SubElement(world, "body", name=joint.child)
                ElementTree.SubElement(body, "freejoint", name="platform")
                bodies[joint.child] = body
            continue
        bodies[joint.child] = _body(bodies[joint.parent], joint)
    for link in mechanism.links:
        if link.name in bodies and link.name != mechanism.base_link:
            moving = link.name in {j.child for j in mechanism.joints if j.type is not JointType.FIXED}
            _inertial(bodies[link.name], link.inertial, moving)
    equality = ElementTree.SubElement(root, "equality")
    for loop in mechanism.loops if loops else ():
        if loop.type is not LoopType.SPHERICAL:
            raise NotImplementedError(f"loop '{loop.name}': {loop.type.value}")
        for side, link, frame in (
            ("p", loop.predecessor, loop.predecessor_frame),
            ("s", loop.successor, loop.successor_frame),
        ):
            ElementTree.SubElement(bodies[link], "site", name=f"{loop.name}/{side}", pos=_text(frame[:3, 3]))
        ends = {"site1": f"{loop.name}/p", "site2": f"{loop.name}/s"}
        ElementTree.SubElement(equality, "connect", ends, name=loop.name, solimp=RIGID)
    return root


def _body(parent: ElementTree.Element, joint: Joint) -> ElementTree.Element:
    x, y, z, w = Rotation.from_matrix(joint.origin[:3, :3]).as_quat()
    body = ElementTree.SubElement(
        parent, "body", name=joint.child, pos=_text(joint.origin[:3, 3]), quat=_text([w, x, y, z])
    )
    if joint.type in (JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC):
        kind = "slide" if joint.type is JointType.PRISMATIC else "hinge"
        armature = 0.0 if joint.drive is None else joint.drive.armature
        ElementTree.SubElement(
            body, "joint", name=joint.name, type=kind, axis=_text(joint.axis), armature=repr(armature)
        )
    elif joint.type is not JointType.FIXED:
        raise NotImplementedError(f"joint '{joint.name}': {joint.type.value}")
    return body


def _inertial(body: ElementTree.Element, inertial: Inertial, moving: bool) -> None:
    if inertial.massless and not moving:
        return
    mass, inertia = max(inertial.mass, TINY), inertial.inertia
    if inertial.massless:
        inertia = TINY * np.eye(3)
    entries = [inertia[0, 0], inertia[1, 1], inertia[2, 2], inertia[0, 1], inertia[0, 2], inertia[1, 2]]
    ElementTree.SubElement(
        body, "inertial", pos=_text(inertial.com), mass=repr(float(mass)), fullinertia=_text(entries)
    )


def _text(values: object) -> str:
    return " ".join(repr(float(v)) for v in np.asarray(values))
