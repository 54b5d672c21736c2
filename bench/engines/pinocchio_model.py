# SPDX-License-Identifier: Apache-2.0
"""A mechanism as a Pinocchio model: tree, inertias and armatures, and its loops as constraints on frame velocities.

The tree dynamics (RNEA, CRBA), frame placements, frame Jacobians and frame accelerations are Pinocchio's. This module
adds which components of a loop's relative motion vanish, and solves the dense linear systems with NumPy. Frames: twists
and wrenches of the platform are (linear, angular) and (force, moment) at its origin, base axes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from pkm_description.mechanism import Array, Joint, JointType, LoopType, Mechanism

X, Y, Z = np.eye(3)
# A singular value below this fraction of the largest is a repeated equation.
RANK_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class PinocchioLoop:
    """A loop closure: its frames in the model, and the joint that closes it."""

    name: str
    type: LoopType
    predecessor: int
    successor: int
    axis: Array  # in the predecessor's loop frame
    axis2: Array  # in the successor's loop frame
    rows: Array  # what it forbids at every position; see `forbidden`

    def forbidden(self, second: Array) -> Array:
        """Rows (k, 6) whose product with the relative twist (linear, angular; predecessor frame) is zero.

        `second` is the successor's axis in the predecessor's frame, with which the last row of a universal joint moves.
        """
        if self.type is not LoopType.UNIVERSAL:
            return self.rows
        return np.vstack([self.rows, np.append(np.zeros(3), cross(self.axis, second))])


class PinocchioRobot:
    """The Pinocchio model of a mechanism. Coordinates have the names and the meaning of `Kinematics.joint_names`."""

    def __init__(
        self,
        mechanism: Mechanism,
        payload: pin.Inertia | None = None,
        armature: bool = True,
        free_platform: bool = False,
    ) -> None:
        """With `free_platform` a free-flyer joint stands for the platform's branch: fewer joints, for the benchmark.

        Its coordinates are then not those of the suite (see `free_coordinates`).
        """
        self.mechanism = mechanism
        self.model = pin.Model()
        self.model.gravity.linear = np.array(mechanism.gravity)
        carrier = {mechanism.base_link: (0, pin.SE3.Identity())}
        self.link_frame: dict[str, int] = {}
        for joint in mechanism.joints:
            if free_platform and joint.name in mechanism.platform_chain:
                if joint.child == mechanism.platform_link:
                    parent = self.model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "platform")
                    carrier[joint.child] = (parent, pin.SE3.Identity())
                continue
            parent, at = carrier[joint.parent]
            at = at * pin.SE3(np.array(joint.origin))
            for name, kind in freedoms(joint):
                parent = self.model.addJoint(parent, kind, at, name)
                at = pin.SE3.Identity()
            carrier[joint.child] = (parent, at)
        for link in mechanism.links:
            if link.name not in carrier:
                continue
            parent, at = carrier[link.name]
            body = link.inertial
            if parent > 0 and not body.massless:
                inertia = pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia))
                self.model.appendBodyToJoint(parent, inertia, at)
            self.link_frame[link.name] = self.model.addFrame(
                pin.Frame(link.name, parent, at, pin.FrameType.OP_FRAME), False
            )
        if payload is not None:
            parent, at = carrier[mechanism.platform_link]
            self.model.appendBodyToJoint(parent, payload, at)
        self.names = tuple(self.model.names)[1:]
        self.column = {name: self.model.joints[k + 1].idx_v for k, name in enumerate(self.names)}
        loops = []
        for loop in mechanism.loops:
            ends = []
            for side, link, frame in (
                ("predecessor", loop.predecessor, loop.predecessor_frame),
                ("successor", loop.successor, loop.successor_frame),
            ):
                parent, at = carrier[link]
                placement = at * pin.SE3(np.array(frame))
                ends.append(
                    self.model.addFrame(
                        pin.Frame(f"{loop.name}/{side}", parent, placement, pin.FrameType.OP_FRAME), False
                    )
                )
            axis = np.array(loop.axis)
            loops.append(PinocchioLoop(loop.name, loop.type, *ends, axis, np.array(loop.axis2), rows(loop.type, axis)))
        self.loops = tuple(loops)
        self.platform = self.link_frame[mechanism.platform_link]
        self.actuated = [self.column[name] for name in mechanism.actuated_joints]
        drives = {j.name: j.drive for j in mechanism.joints if j.drive is not None}
        if armature:
            inertia = np.zeros(self.model.nv)
            for name, k in zip(mechanism.actuated_joints, self.actuated, strict=True):
                inertia[k] = drives[name].armature
            self.model.armature = inertia
        self.data = self.model.createData()

    # -- coordinates ------------------------------------------------------------------------------------------------

    def coordinates(self, joint_names: tuple[str, ...], values: Array) -> Array:
        """Values (n_joints,) in the order of `joint_names`, in the order of the model."""
        q = np.zeros(self.model.nq)
        for name, value in zip(joint_names, values, strict=True):
            q[self.column[name]] = value
        return q

    def free_coordinates(self, joint_names: tuple[str, ...], values: Array, pose: Array) -> Array:
        """Coordinates (nq,) of the model with a free platform, at its pose (7,)."""
        q = pin.neutral(self.model)
        for k, name in enumerate(self.names):
            at = self.model.joints[k + 1].idx_q
            if name == "platform":
                q[at : at + 7] = pose
            else:
                q[at] = values[joint_names.index(name)]
        return q

    def free_rates(self, joint_names: tuple[str, ...], values: Array, pose: Array, twist: Array) -> Array:
        """Velocities (nv,) of the model with a free platform, from joint rates and the platform's twist (6,)."""
        R = pin.XYZQUATToSE3(pose).rotation
        v = np.zeros(self.model.nv)
        for name, at in self.column.items():
            if name == "platform":
                v[at : at + 6] = [*R.T @ twist[:3], *R.T @ twist[3:]]
            else:
                v[at] = values[joint_names.index(name)]
        return v

    def free_accelerations(
        self, joint_names: tuple[str, ...], values: Array, pose: Array, twist: Array, acceleration: Array
    ) -> Array:
        """Accelerations (nv,) of the model with a free platform, whose own is a spatial acceleration in its axes."""
        spatial = np.append(acceleration[:3] - np.cross(twist[3:], twist[:3]), acceleration[3:])
        return self.free_rates(joint_names, values, pose, spatial)

    # -- positions --------------------------------------------------------------------------------------------------

    def place(self, q: Array) -> None:
        """Frame placements at coordinates q."""
        pin.framesForwardKinematics(self.model, self.data, q)

    def platform_pose(self, q: Array) -> pin.SE3:
        """Platform frame in the base frame."""
        self.place(q)
        return self.data.oMf[self.platform].copy()

    def closure_gap(self, q: Array) -> float:
        """Largest error of all loops: m for points, the sine of the angle for directions."""
        self.place(q)
        return max((float(np.abs(self._gap(loop)).max()) for loop in self.loops), default=0.0)

    def _gap(self, loop: PinocchioLoop) -> Array:
        relative = self.data.oMf[loop.predecessor].actInv(self.data.oMf[loop.successor])
        p, R, a = relative.translation, relative.rotation, loop.axis
        across = p - (p @ a) * a
        match loop.type:
            case LoopType.SPHERICAL:
                return p
            case LoopType.UNIVERSAL:
                return np.append(p, a @ R @ loop.axis2)
            case LoopType.REVOLUTE:
                return np.concatenate([p, R @ loop.axis2 - a])
            case LoopType.CYLINDRICAL:
                return np.concatenate([across, R @ loop.axis2 - a])
            case LoopType.PRISMATIC:
                return np.concatenate([across, pin.log3(R)])
            case LoopType.PLANAR:
                return np.append(R @ loop.axis2 - a, p @ a)
            case LoopType.FIXED:
                return np.concatenate([p, pin.log3(R)])

    # -- velocities -------------------------------------------------------------------------------------------------

    def constraints(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Loops as `J qd = 0` and `J qdd + drift = 0` at closed coordinates: J (rows, nv), drift (rows,).

        The relative twist of a loop's frames, in the predecessor's, is confined to a subspace that is constant there;
        only a universal joint's second axis moves with the successor.
        """
        self._coast(q, v)
        return self._constraints()

    def _coast(self, q: Array, v: Array) -> None:
        """Jacobians, velocities and accelerations of all frames while the coordinates move at constant rates."""
        pin.computeJointJacobians(self.model, self.data, q)
        pin.forwardKinematics(self.model, self.data, q, v, np.zeros(self.model.nv))
        pin.updateFramePlacements(self.model, self.data)

    def _constraints(self) -> tuple[Array, Array]:
        m, d = self.model, self.data
        matrices, drifts = [], []
        for loop in self.loops:
            to_predecessor = d.oMf[loop.predecessor].actInv(d.oMf[loop.successor])
            X_ = to_predecessor.toActionMatrix()
            Js = X_ @ pin.getFrameJacobian(m, d, loop.successor, pin.LOCAL)
            Jp = pin.getFrameJacobian(m, d, loop.predecessor, pin.LOCAL)
            vs = to_predecessor.act(pin.getFrameVelocity(m, d, loop.successor, pin.LOCAL))
            relative = vs - pin.getFrameVelocity(m, d, loop.predecessor, pin.LOCAL)
            acceleration = (
                to_predecessor.act(pin.getFrameAcceleration(m, d, loop.successor, pin.LOCAL))
                + relative.cross(vs)
                - pin.getFrameAcceleration(m, d, loop.predecessor, pin.LOCAL)
            )
            second = to_predecessor.rotation @ loop.axis2
            T = loop.forbidden(second)
            drift = T @ acceleration.vector
            if loop.type is LoopType.UNIVERSAL:
                drift[-1] += cross(loop.axis, cross(relative.angular, second)) @ relative.angular
            matrices.append(T @ (Js - Jp))
            drifts.append(drift)
        if not matrices:
            return np.zeros((0, m.nv)), np.zeros(0)
        return np.vstack(matrices), np.concatenate(drifts)

    def platform_rows(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Platform twist `J qd` and acceleration `J qdd + drift`: J (6, nv), drift (6,)."""
        self._coast(q, v)
        return self._platform_rows()

    def _platform_rows(self) -> tuple[Array, Array]:
        m, d = self.model, self.data
        J = pin.getFrameJacobian(m, d, self.platform, pin.LOCAL_WORLD_ALIGNED)
        drift = pin.getFrameClassicalAcceleration(m, d, self.platform, pin.LOCAL_WORLD_ALIGNED)
        return J, drift.vector

    def rates(self, q: Array, twist: Array, acceleration: Array) -> tuple[Array, Array]:
        """Velocities and accelerations (nv,) of all coordinates for a platform twist and acceleration (6,)."""
        self._coast(q, np.zeros(self.model.nv))
        A = np.vstack([self._constraints()[0], self._platform_rows()[0]])
        inverse = np.linalg.pinv(A, rcond=RANK_TOLERANCE)
        n_loop = len(A) - 6
        v = inverse[:, n_loop:] @ twist
        self._coast(q, v)
        drift = np.concatenate([self._constraints()[1], self._platform_rows()[1]])
        wanted = np.concatenate([np.zeros(n_loop), acceleration])
        return v, inverse @ (wanted - drift)

    def rates_from(self, q: Array, columns: list[int], rates: Array, second: Array) -> tuple[Array, Array]:
        """Velocities and accelerations (nv,) of all coordinates from those of some that determine the others."""
        select = np.eye(self.model.nv)[columns]
        J, _ = self.constraints(q, np.zeros(self.model.nv))
        inverse = np.linalg.pinv(np.vstack([J, select]), rcond=RANK_TOLERANCE)
        v = inverse[:, len(J) :] @ rates
        _, drift = self.constraints(q, v)
        return v, inverse @ np.concatenate([-drift, second])

    def free_directions(self, q: Array) -> Array:
        """Orthonormal basis (nv, f) of the velocities that the loops allow."""
        J, _ = self.constraints(q, np.zeros(self.model.nv))
        _, values, Vt = np.linalg.svd(J)
        independent = int(np.sum(values > RANK_TOLERANCE * values[0]))
        return Vt[independent:].T

    # -- dynamics ---------------------------------------------------------------------------------------------------

    def friction(self, v: Array) -> Array:
        """Joint friction (nv,) from the description: viscous and, with a hard sign, Coulomb."""
        force = np.zeros(self.model.nv)
        for joint in self.mechanism.joints:
            for name, _ in freedoms(joint):
                k = self.column[name]
                force[k] = joint.viscous_friction * v[k] + joint.coulomb_friction * np.sign(v[k])
        return force

    def inverse_dynamics(
        self, q: Array, v: Array, vdot: Array, wrench: Array | None = None, friction: bool = False
    ) -> Array:
        """Actuator efforts (m,) of minimum norm for a motion that respects the loops: `B^T tau = N^T (rnea - J_p^T w)`.

        N spans the velocities that the loops allow, so that the loop forces drop out.
        """
        force = pin.rnea(self.model, self.data, q, v, vdot).copy()
        if friction:
            force += self.friction(v)
        if wrench is not None:
            force -= self.platform_rows(q, v)[0].T @ wrench
        N = self.free_directions(q)
        effort: Array = np.linalg.lstsq(N[self.actuated].T, N.T @ force, rcond=None)[0]
        return effort

    def direct_dynamics(
        self, q: Array, v: Array, effort: Array, wrench: Array | None = None, friction: bool = False
    ) -> tuple[Array, Array]:
        """Platform acceleration (6,) and all joint accelerations (nv,) for actuator efforts (m,)."""
        M = self.mass_matrix(q)
        force = -pin.nonLinearEffects(self.model, self.data, q, v)
        force[self.actuated] += effort
        if friction:
            force -= self.friction(v)
        self._coast(q, v)
        rows, platform_drift = self._platform_rows()
        if wrench is not None:
            force += rows.T @ wrench
        J, drift = self._constraints()
        U, values, Vt = np.linalg.svd(J)
        rank = int(np.sum(values > RANK_TOLERANCE * values[0]))
        N = Vt[rank:].T
        particular = -Vt[:rank].T @ ((U[:, :rank].T @ drift) / values[:rank])
        free = np.linalg.solve(N.T @ M @ N, N.T @ (force - M @ particular))
        vdot = particular + N @ free
        return rows @ vdot + platform_drift, vdot

    def mass_matrix(self, q: Array) -> Array:
        """Mass matrix (nv, nv) of the tree, armatures included."""
        upper = np.triu(pin.crba(self.model, self.data, q))
        return upper + np.triu(upper, 1).T

    def energy(self, q: Array, v: Array) -> float:
        """Kinetic energy, rotors included, plus potential energy, J."""
        return 0.5 * float(v @ self.mass_matrix(q) @ v) + self.potential_energy(q)

    def potential_energy(self, q: Array) -> float:
        """Potential energy of the weights, J."""
        return float(pin.computePotentialEnergy(self.model, self.data, q))


def freedoms(joint: Joint) -> list[tuple[str, pin.JointModel]]:
    """A joint as one-freedom joints, named as the suite names them."""
    if joint.type in (JointType.REVOLUTE, JointType.CONTINUOUS):
        return [(joint.name, pin.JointModelRevoluteUnaligned(np.array(joint.axis)))]
    if joint.type is JointType.PRISMATIC:
        return [(joint.name, pin.JointModelPrismaticUnaligned(np.array(joint.axis)))]
    if joint.type is JointType.FIXED:
        return []
    if joint.type is JointType.FLOATING:  # about axes of the joint frame: Rz(yaw) Ry(pitch) Rx(roll)
        slides = (pin.JointModelPX(), pin.JointModelPY(), pin.JointModelPZ())
        turns = (pin.JointModelRZ(), pin.JointModelRY(), pin.JointModelRX())
        names = ("x", "y", "z", "yaw", "pitch", "roll")
        return [(f"{joint.name}/{name}", kind) for name, kind in zip(names, slides + turns, strict=True)]
    raise NotImplementedError(f"joint '{joint.name}': {joint.type.value}")


def cross(a: Array, b: Array) -> Array:
    """Product of two vectors (3,): `np.cross` takes ten times as long, mostly to learn that they are such."""
    (a0, a1, a2), (b0, b1, b2) = a, b
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])


def across(axis: Array) -> Array:
    """Two unit vectors (2, 3) square to an axis."""
    helper = np.eye(3)[int(np.argmin(np.abs(axis)))]
    first = np.cross(axis, helper)
    first /= np.linalg.norm(first)
    return np.vstack([first, np.cross(axis, first)])


def rows(type_: LoopType, axis: Array) -> Array:
    """The rows (k, 6) of `PinocchioLoop.forbidden` that are the same at every position of the joint."""
    linear = np.hstack([np.eye(3), np.zeros((3, 3))])
    angular = np.hstack([np.zeros((3, 3)), np.eye(3)])
    square = across(axis)
    match type_:
        case LoopType.SPHERICAL | LoopType.UNIVERSAL:
            return linear
        case LoopType.REVOLUTE:
            return np.vstack([linear, square @ angular])
        case LoopType.CYLINDRICAL:
            return np.vstack([square @ linear, square @ angular])
        case LoopType.PRISMATIC:
            return np.vstack([square @ linear, angular])
        case LoopType.PLANAR:
            return np.vstack([axis @ linear, square @ angular])
        case LoopType.FIXED:
            return np.eye(6)


def constraint_model(robot: PinocchioRobot, accuracy: float = 1e-12) -> tuple[Any, ...]:
    """What `pinocchio.constraintDynamics` takes for a robot with spherical loops.

    Model, data, rigid constraint models and data (three-dimensional contacts, without stabilisation), and proximal
    settings that stop at `accuracy`.
    """
    model = robot.model
    constraints, constraint_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for loop in robot.loops:
        if loop.type is not LoopType.SPHERICAL:
            raise NotImplementedError(f"loop '{loop.name}': {loop.type.value}")
        p, s = model.frames[loop.predecessor], model.frames[loop.successor]
        constraint = pin.RigidConstraintModel(
            pin.ContactType.CONTACT_3D, model, p.parentJoint, p.placement, s.parentJoint, s.placement,
            pin.ReferenceFrame.LOCAL,
        )  # fmt: skip
        constraints.append(constraint)
        constraint_data.append(constraint.createData())
    data = model.createData()
    pin.initConstraintDynamics(model, data, constraints, constraint_data)
    return model, data, constraints, constraint_data, pin.ProximalSettings(accuracy, 1e-10, 100)
