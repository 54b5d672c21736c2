# SPDX-License-Identifier: Apache-2.0
"""Write a robot as MJCF, so that it runs in MuJoCo, with its loops closed at the keyframe `home`.

Tree joints become MuJoCo joints of the same names. A massless link between joints (universal cross, virtual link of the
platform's branch) becomes one more joint of the body behind it, because MuJoCo wants mass in every moving body. Loops
become equality constraints between sites: `connect` for spherical, `weld` for fixed, two `connect` along the axis for
revolute loops. Other types become a small body with the loop's first degrees of freedom, closed by a revolute or fixed
constraint. Such bodies, and massless links that cannot be passed over, weigh `SMALL` of the robot.

MuJoCo's soft constraints are as stiff as is stable at its usual time step (impedance 0.9999, time constant of two
steps): accelerations agree with rigid loops to about one part in ten thousand. Ranges of the platform's virtual joints
go along only where its branch takes degrees of freedom away, as an ankle does (else they are no stops). Visuals are
primitives without contact. What MJCF has no word for is a `<text>` that our reader believes.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any

import numpy as np

from pkm_description.description_error import DescriptionError
from pkm_description.formats.bodies_and_joints import WORLD, made_of
from pkm_description.formats.mjcf_model import REMARK
from pkm_description.joint_geometry import child_frame, frame_along, freedoms, home_positions
from pkm_description.loops.closure import ClosureModel
from pkm_description.mechanism import Array, Joint, JointType, Loop, LoopType, Mechanism
from pkm_description.rotations import inverse_transform, transform, wxyz_from_rotation
from pkm_description.tree_model import TreeModel
from pkm_description.urdf.visuals import visuals_of
from pkm_description.urdf.xml_text import append, row

SMALL = 1e-7  # of the robot's mass, and of that times its length squared: where MuJoCo wants mass and there is none
TIME_STEP = 0.002  # s, MuJoCo's own default
HALVES = {"box": (0.5, 0.5, 0.5), "cylinder": (1.0, 0.5), "sphere": (1.0,)}  # MuJoCo's numbers per URDF's
SLIVER = 1e-9  # smallest principal moment over the largest: a thin rod has no inertia about its axis


def export_mjcf(mechanism: Mechanism | TreeModel) -> str:
    """MJCF text of a robot, with the keyframe `home`; `DescriptionError` for an element without counterpart."""
    if any(joint.child == WORLD for joint in mechanism.joints):
        raise DescriptionError(
            '<link name="world">', "MuJoCo reserves the name world for its fixed body", "rename the link"
        )
    return _Export(mechanism).text()


def gap_in_mujoco(text: str, duration: float = 0.2) -> float:
    """Largest gap [m or rad] of a loop while a robot falls from home in MuJoCo for [s]; infinite if unstable."""
    import mujoco  # an optional package

    mujoco.set_mju_user_warning(lambda _: None)  # else it writes into a file
    try:
        return _gap(mujoco, text, duration)
    finally:
        mujoco.set_mju_user_warning(None)


def _gap(mujoco: Any, text: str, duration: float) -> float:
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    worst = 0.0
    for _ in range(round(duration / model.opt.timestep)):
        mujoco.mj_step(model, data)
        equal = data.efc_type[: data.nefc] == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        worst = max(worst, float(np.abs(data.efc_pos[: data.nefc][equal]).max(initial=0.0)))
    unstable = mujoco.mjtWarning.mjWARN_BADQACC, mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL
    return np.inf if any(data.warning[one].number for one in unstable) else worst


class _Export:
    def __init__(self, mechanism: Mechanism | TreeModel) -> None:
        self.mechanism = mechanism
        self.model = ClosureModel(mechanism.links, mechanism.joints, mechanism.loops, mechanism.base_link)
        poses = self.model.forward(self.model.reduced(mechanism.home_joints))[0]
        self.home_pose = {name: poses[index] for name, index in self.model.link_index.items()}
        self.home = home_positions(mechanism)
        self.children: dict[str, list[Joint]] = {}
        for joint in mechanism.joints:
            self.children.setdefault(joint.parent, []).append(joint)
        self.ends = {link for loop in mechanism.loops for link in (loop.predecessor, loop.successor)}
        self.ends |= {link for spring in mechanism.springs for link in (spring.from_link, spring.to_link)}
        mass = sum(link.inertial.mass for link in mechanism.links) or 1.0
        self.small_mass = SMALL * mass
        self.small_inertia = SMALL * mass * self.model.length**2
        self.inertials = {link.name: link.inertial for link in mechanism.links}
        self.massless = {name for name, inertial in self.inertials.items() if inertial.massless}
        self.moved = {joint.child for joint in mechanism.joints if joint.type is not JointType.FIXED}
        self.floating = mechanism.floating if isinstance(mechanism, TreeModel) else ()
        self.bodies: dict[str, ET.Element] = {}
        self.qpos: list[float] = []  # of the keyframe, in MuJoCo's order: depth first
        self.visuals = visuals_of(mechanism)[0]
        self.drawn = {visual.link for visual in self.visuals}

    def text(self) -> str:
        m = self.mechanism
        root = ET.Element("mujoco", model=m.name)
        append(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
        option = append(root, "option", gravity=row(m.gravity), timestep=row([TIME_STEP]), solver="Newton")
        option.set("integrator", "implicitfast")
        option.set("tolerance", "1e-12")
        option.set("iterations", "200")
        append(option, "flag", contact="disable")
        default = append(root, "default")
        append(default, "geom", contype="0", conaffinity="0", group="1", mass="0")
        append(default, "equality", solref=row([2.0 * TIME_STEP, 1.0]), solimp="0.9999 0.9999 0.001 0.5 2")
        world = append(root, "worldbody")
        append(world, "light", pos="0 0 3", dir="0 0 -1", directional="true")
        # MuJoCo's world has that name, and no mass
        self.world = world
        base = world if m.base_link == WORLD else append(world, "body", name=m.base_link)
        self.bodies[m.base_link] = base
        if base is not world:
            self._inertial(base, m.base_link)
        self._picture(base, m.base_link)
        stubs = {name: self._stubs(name) for name in self.ends}
        self._carry_on(m.base_link, stubs)
        equality = append(root, "equality")
        for loop in m.loops:
            self._close(equality, loop)
        for joint in m.joints:
            if joint.mimic:
                coefficients = [joint.mimic.offset, joint.mimic.multiplier, 0.0, 0.0, 0.0]
                append(equality, "joint", joint1=joint.name, joint2=joint.mimic.joint, polycoef=row(coefficients))
        self._couplings(root, equality)
        self._springs(root)
        self._actuators(root)
        keyframe = append(root, "keyframe")
        append(keyframe, "key", name="home", qpos=row(self.qpos))
        remark = made_of(m).remark
        assert remark is not None
        for name in sorted(set(self.bodies) - {link.name for link in m.links}):
            append(remark, "link", name=name)
        floating = {name for chain in self.floating for one in chain for name in (one.name, one.child)}
        for element in [e for e in remark if e.tag in ("link", "joint") and e.get("name") in floating]:
            remark.remove(element)  # MuJoCo has such joints
        append(append(root, "custom"), "text", name=REMARK, data=ET.tostring(remark, encoding="unicode"))
        ET.indent(root)
        return ET.tostring(root, encoding="unicode") + "\n"

    # -- the tree -----------------------------------------------------------------------------------------------------

    def _carry_on(self, link: str, stubs: dict[str, list[Loop]]) -> None:
        """Write everything carried by `link`; `stubs` are the loops that begin with a body of their own on a link."""
        for loop in stubs.get(link, []):
            self._stub(self.bodies[link], loop)
        for joint in self.children.get(link, []):
            joints = [joint]
            while self._passed_over(joints[-1].child):
                joints.append(self.children[joints[-1].child][0])
            self._body(self.bodies[link], joints)
            self._carry_on(joints[-1].child, stubs)

    def _passed_over(self, link: str) -> bool:
        below = self.children.get(link, [])
        return (
            link in self.massless
            and link not in self.ends
            and link != self.mechanism.platform_link
            and len(below) == 1
            and link in self.moved
            and (below[0].type is not JointType.FIXED or link not in self.drawn)
        )

    def _body(self, parent: ET.Element, joints: Sequence[Joint]) -> None:
        """One body behind a chain of joints, their axes and points in the body's own frame."""
        placed = np.eye(4)
        frames = []
        for joint in joints:
            placed = placed @ joint.origin
            frames.append(placed)
        link = joints[-1].child
        floats = tuple(joints) in self.floating
        if floats:  # nothing may hold it, and its base does not move
            parent, placed = self.world, self.home_pose[link]
        body = append(parent, "body", name=link, **_pose(placed))
        self.bodies[link] = body
        back = inverse_transform(placed)
        if floats:
            append(body, "freejoint", name=joints[0].name.removesuffix("/x"))
            self.qpos += [*map(float, placed[:3, 3]), *wxyz_from_rotation(placed[:3, :3])]
        for joint, frame in zip(joints, frames, strict=True) if not floats else ():
            self._joint(body, joint, back @ frame)
        moving = any(joint.type is not JointType.FIXED for joint in joints)
        self._inertial(body, link, small=moving and link in self.massless)
        self._picture(body, link)

    def _joint(self, body: ET.Element, joint: Joint, frame: Array) -> None:
        R, p = frame[:3, :3], frame[:3, 3]
        axis = R @ joint.axis
        values = np.array([self.home[freedom.name] for freedom in freedoms(joint)])
        kind = joint.type
        if kind is JointType.FIXED:
            return
        if kind in (JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC):
            attributes = {"name": joint.name, "type": "slide" if kind is JointType.PRISMATIC else "hinge"}
            attributes |= {"pos": row(p), "axis": row(axis)}
            ends = (joint.limits.lower, joint.limits.upper)
            if np.isfinite(ends).all() and joint.name not in self.mechanism.unbuilt:
                attributes["range"] = row(ends)
            more = {"damping": joint.viscous_friction, "frictionloss": joint.coulomb_friction}
            if joint.spring_stiffness:
                more |= {"stiffness": joint.spring_stiffness, "springref": joint.spring_reference}
            for name, value in more.items():
                if value:
                    attributes[name] = row([value])
            armature = joint.drive.armature if joint.drive else joint.other_armature
            if armature:
                attributes["armature"] = row([armature])
            append(body, "joint", **attributes)
            self.qpos += [float(values[0])]
        elif kind is JointType.PLANAR:
            for freedom in freedoms(joint):
                what = "slide" if freedom.slides else "hinge"
                append(body, "joint", name=freedom.name, type=what, pos=row(p), axis=row(R @ freedom.axis))
            self.qpos += [float(v) for v in values]
        else:
            for freedom in freedoms(joint)[:3]:
                append(body, "joint", name=freedom.name, type="slide", pos=row(p), axis=row(R @ freedom.axis))
            append(body, "joint", name=f"{joint.name}/turn", type="ball", pos=row(p))
            # a ball's quaternion is in the body's axes at zero, the floating joint's rotation in the joint's
            turned = R @ child_frame(joint, values)[:3, :3] @ R.T
            self.qpos += [*(float(v) for v in values[:3]), *wxyz_from_rotation(turned)]

    def _inertial(self, body: ET.Element, link: str, small: bool = False) -> None:
        inertial = self.inertials[link]
        if inertial.massless and not small:
            return
        mass = inertial.mass or self.small_mass
        moments, axes = np.linalg.eigh(inertial.inertia)
        if moments[2] <= 0.0:
            moments = np.full(3, min(self.small_inertia, SMALL * mass * self.model.length**2))
        else:
            moments = np.maximum(moments, SLIVER * moments[2])
        # MuJoCo refuses principal moments that no body can have; published tables and rounding come near.
        moments[2] = min(moments[2], moments[0] + moments[1])
        if np.linalg.det(axes) < 0.0:
            axes[:, 0] = -axes[:, 0]
        _write_inertial(body, mass, inertial.com, axes, moments)

    def _picture(self, body: ET.Element, link: str) -> None:
        for visual in self.visuals:
            if visual.link == link and visual.shape != "mesh":
                place = _pose(visual.frame) if (visual.frame != np.eye(4)).any() else {}
                size = row(visual.size * np.array(HALVES[visual.shape]))
                append(body, "geom", rgba=row(visual.colour), type=visual.shape, size=size, **place)

    # -- loops --------------------------------------------------------------------------------------------------------

    def _stubs(self, link: str) -> list[Loop]:
        simple = (LoopType.SPHERICAL, LoopType.FIXED, LoopType.REVOLUTE)
        return [loop for loop in self.mechanism.loops if loop.predecessor == link and loop.type not in simple]

    def _stub(self, parent: ET.Element, loop: Loop) -> None:
        """First degrees of freedom of a loop as the joints of a small body on the predecessor."""
        body = append(parent, "body", name=f"{loop.name}/stub", **_pose(loop.predecessor_frame))
        self.bodies[f"{loop.name}/stub"] = body
        first = self.home_pose[loop.predecessor] @ loop.predecessor_frame
        second = self.home_pose[loop.successor] @ loop.successor_frame
        gap = first[:3, :3].T @ (second[:3, 3] - first[:3, 3])
        across = frame_along(loop.axis).T[:2]
        if loop.type is LoopType.UNIVERSAL:
            image = first[:3, :3].T @ second[:3, :3] @ loop.axis2
            parts = [("hinge", loop.axis, float(np.arctan2(across[1] @ image, across[0] @ image)))]
        elif loop.type is LoopType.PLANAR:
            parts = [("slide", direction, float(direction @ gap)) for direction in across]
        else:  # cylindrical, prismatic
            parts = [("slide", loop.axis, float(loop.axis @ gap))]
        for k, (kind, axis, value) in enumerate(parts):
            append(body, "joint", name=f"{loop.name}/{k + 1}", type=kind, axis=row(axis))
            self.qpos.append(value)
        _write_inertial(body, self.small_mass, np.zeros(3), np.eye(3), np.full(3, self.small_inertia))

    def _close(self, equality: ET.Element, loop: Loop) -> None:
        at, there = loop.predecessor_frame, loop.successor_frame
        carrier, axis = loop.predecessor, loop.axis
        kind = loop.type
        if f"{loop.name}/stub" in self.bodies:
            carrier, at = f"{loop.name}/stub", np.eye(4)
            axis = frame_along(loop.axis)[:, 0] if kind is LoopType.UNIVERSAL else loop.axis
            kind = LoopType.FIXED if kind is LoopType.PRISMATIC else LoopType.REVOLUTE
        sites = self._sites(loop, "", carrier, at, there)
        if kind is LoopType.FIXED:
            append(equality, "weld", name=loop.name, **sites)
            return
        append(equality, "connect", name=loop.name, **sites)
        if kind is LoopType.REVOLUTE:
            # a second point, so far along the axis that tilting weighs as much as shifting
            reach = 0.5 * self.model.length
            sites = self._sites(loop, "/axis", carrier, _shifted(at, reach * axis), _shifted(there, reach * loop.axis2))
            append(equality, "connect", name=f"{loop.name}/axis", **sites)

    def _sites(self, loop: Loop, suffix: str, carrier: str, at: Array, there: Array) -> dict[str, str]:
        names = {}
        for key, body, frame in (("site1", carrier, at), ("site2", loop.successor, there)):
            names[key] = f"{loop.name}{suffix}/{'predecessor' if key == 'site1' else 'successor'}"
            append(self.bodies[body], "site", name=names[key], size="0.002", group="4", **_pose(frame))
        return names

    def _couplings(self, root: ET.Element, equality: ET.Element) -> None:
        """Sums of joints as fixed tendons, a curve between two joints as a polynomial; others are remarked alone."""
        for one in self.mechanism.couplings if isinstance(self.mechanism, TreeModel) else ():
            straight = [(name, numbers[0]) for name, numbers in one.terms if not any(numbers[1:])]
            if len(straight) == len(one.terms):
                tendons = root.find("tendon")
                tendon = append(append(root, "tendon") if tendons is None else tendons, "fixed", name=one.name)
                for name, number in straight:
                    append(tendon, "joint", joint=name, coef=row([number]))
                append(equality, "tendon", name=one.name, tendon1=one.name, polycoef=row([-one.offset, 0, 0, 0, 0]))
            elif len(one.terms) == 2 and len(straight) == 1:
                ((follower, number),) = straight
                leader, numbers = next(term for term in one.terms if term[0] != follower)
                curve = [-value / number for value in (one.offset, *numbers, 0.0, 0.0, 0.0)]
                append(equality, "joint", name=one.name, joint1=follower, joint2=leader, polycoef=row(curve[:5]))

    # -- springs ------------------------------------------------------------------------------------------------------

    def _springs(self, root: ET.Element) -> None:
        """Springs between links as tendons, whose force is stiffness times (length - springlength)."""
        if not self.mechanism.springs:
            return
        found = root.find("tendon")
        tendons = append(root, "tendon") if found is None else found
        for spring in self.mechanism.springs:
            free = spring.rest_length - spring.preload / spring.stiffness if spring.stiffness else spring.preload
            if free < 0.0 or (free and not spring.stiffness):
                problem = "its preload is more than stiffness times rest_length; MuJoCo's tendons do not support this"
                raise DescriptionError(f'<spring name="{spring.name}">', problem, "remove the preload")
            tendon = append(tendons, "spatial", name=spring.name, stiffness=row([spring.stiffness]))
            tendon.set("springlength", row([free]))
            ends = ("from", spring.from_link, spring.from_point), ("to", spring.to_link, spring.to_point)
            for end, link, point in ends:
                site = f"{spring.name}/{end}"
                append(self.bodies[link], "site", name=site, size="0.002", group="4", pos=row(point))
                append(tendon, "site", site=site)

    # -- drives -------------------------------------------------------------------------------------------------------

    def _actuators(self, root: ET.Element) -> None:
        element = append(root, "actuator")
        for name in self.mechanism.actuated_joints:
            motor = append(element, "motor", name=name, joint=name, gear="1")
            joint = self.mechanism.joint_named[name]
            least, most = joint.drive.effort_range if joint.drive else (-np.inf, np.inf)
            ends = max(-joint.limits.effort, least), min(joint.limits.effort, most)
            if np.isfinite(ends).all():
                motor.set("ctrlrange", row(ends))


def _write_inertial(body: ET.Element, mass: float, com: Array, axes: Array, moments: Array) -> None:
    quat = row(wxyz_from_rotation(axes))
    append(body, "inertial", pos=row(com), quat=quat, mass=row([mass]), diaginertia=row(moments))


def _shifted(frame: Array, by: Array) -> Array:
    return frame @ transform(by, np.eye(3))


def _pose(frame: Array) -> dict[str, str]:
    return {"pos": row(frame[:3, 3]), "quat": row(wxyz_from_rotation(frame[:3, :3]))}
