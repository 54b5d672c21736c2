# SPDX-License-Identifier: Apache-2.0
"""Dynamics body by body: `sum J_Ai^T (F_i inertial - F_i applied) = 0`, with no recursion of forces.

Codourey and Burdet, "A body-oriented method for finding a linear form of the dynamic equation of fully parallel
robots", ICRA 1997; equation numbers are the paper's. The basic Jacobian J_Ai (1) of a body gives the motion of its
frame A per independent velocity; the inertial wrench about A (27), linear in the body's ten parameters (28), is turned
into the reference frame (32) and projected by the Jacobian, as are the actuators' wrenches, which make J_tau (17).
As in the paper the kinematics is given: `Kinematics` has the joint positions and their first and second rates.

The independent velocities are the platform's in its motion space. With the actuators', as in the paper, J_tau would
often be the identity and the equations would end at type 2 singularities. Plain NumPy, written to be read, one motion
at a time; it shares no code with the kernels, so that each tests the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import tanh

import numpy as np
from numpy.typing import ArrayLike

from pkm_description.mechanism import Array
from pkm_description.rotations import skew, transform_from_pose
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.kernels.wrenches import COULOMB_SPEED
from pkm_kinematics.kernels import records
from pkm_runtime.errors import PkmError


class NoMotionHereError(PkmError):
    """A motion that the robot cannot make."""


@dataclass(frozen=True, eq=False)
class BodyMotion:
    """Frame A of a body, origin on its joint, z along the joint's axis; its motion is in its own axes."""

    R: Array  # (3, 3) to base axes
    p: Array  # (3,) origin, base axes
    jacobian: Array  # (6, n) linear and angular velocity per independent velocity, base axes
    w: Array  # (3,)
    dw: Array  # (3,)
    a: Array  # (3,) acceleration of the origin, less that of gravity


class BodyProjection:
    """The body-oriented model of any one robot."""

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics, self.kinematics = dynamics, dynamics.kinematics
        self.tables = self.kinematics.tables
        self.bodies = self.tables.bodies
        self.column = self.kinematics.engine.body_column

    def inverse(
        self,
        pose: ArrayLike,
        twist: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        wrench: ArrayLike | None = None,
        joints: ArrayLike | None = None,
    ) -> Array:
        """Actuator efforts (n_actuated,) [N m or N]: `J_tau^-1 (sum J_Ai^T Omega_i p_i - J^T F_ext)` (18, 33).

        By minimum norm if redundant. Arguments as in `Dynamics.inverse`; the limbs are solved near `joints`
        (n_joints,), home's working mode where None.
        """
        at, rates, seconds, K = self.motions(pose, twist, acceleration, joints)
        force = np.zeros(K.shape[1])
        for i, body in at.items():
            force += body.jacobian.T @ self.omega(body) @ self.parameters(i)
        for i in range(2, len(self.bodies)):  # what rotors and friction take at the joints
            row = self.bodies[i]
            taken = row["armature"] * seconds[i]
            if self.dynamics.friction:
                taken += row["viscous"] * rates[i] + row["coulomb"] * tanh(rates[i] / COULOMB_SPEED)
            force += self._joint_rate(at, i) * taken
        if wrench is not None:
            force -= at[records.PLATFORM].jacobian.T @ np.asarray(wrench, dtype=np.float64)
        return np.asarray(np.linalg.pinv(self.j_tau(at)) @ force)

    def j_tau(self, at: dict[int, BodyMotion]) -> Array:
        """J_tau (n, n_actuated), with columns `J_A^T Upsilon` (17), from the motion of each body by number.

        A motor pushes the body that it drives and, the other way, the body that carries it, which need not be the base.
        """
        out = np.zeros((at[records.PLATFORM].jacobian.shape[1], len(self.kinematics.actuated_names)))
        for i in range(2, len(self.bodies)):
            if self.bodies[i]["actuator"] >= 0:
                out[:, self.bodies[i]["actuator"]] = self._joint_rate(at, i)
        return out

    def _joint_rate(self, at: dict[int, BodyMotion], i: int) -> Array:
        """(J_A of body i - J_A of its carrier at the same point)^T Upsilon (n,): the joint's rate."""
        me, carrier = at[i], at.get(int(self.bodies[i]["parent"]))
        relative = me.jacobian
        if carrier is not None:
            relative = relative - _moved(carrier.jacobian, me.p - carrier.p)
        upsilon = np.zeros(6)
        upsilon[0 if self.bodies[i]["prismatic"] else 3 :][:3] = me.R[:, 2]  # (15), in base axes
        return np.asarray(relative.T @ upsilon)

    @staticmethod
    def omega(body: BodyMotion) -> Array:
        """Omega_i (6, 10) (34): wrench at A in base axes per m, m r (3) and I_xx I_xy I_xz I_yy I_yz I_zz about A."""
        w = skew(body.w)
        out = np.zeros((6, 10))
        out[:3, 0] = body.a
        out[:3, 1:4] = w @ w + skew(body.dw)  # Lambda (29)
        out[3:, 1:4] = -skew(body.a)
        out[3:, 4:] = w @ _tilde(body.w) + _tilde(body.dw)  # psi (30)
        out[:3], out[3:] = body.R @ out[:3], body.R @ out[3:]
        return out

    def parameters(self, i: int) -> Array:
        """p_i (10,) of body `i` of the tables, in its frame A."""
        row = self.bodies[i]
        return np.concatenate([[row["mass"]], row["moment"], row["inertia"]])

    def motions(
        self, pose: ArrayLike, twist: ArrayLike | None, acceleration: ArrayLike | None, joints: ArrayLike | None
    ) -> tuple[dict[int, BodyMotion], Array, Array, Array]:
        """Bodies by number; rates, second rates (n_bodies,) and partial rates (n_bodies, n) of their joints."""
        k = self.kinematics
        pose = np.asarray(pose, dtype=np.float64)
        V, A = (np.zeros(6) if x is None else np.asarray(x, dtype=np.float64) for x in (twist, acceleration))
        S = k.subspace(pose, joints)
        real = k.motion(pose, V, A, seed=joints)
        if not real.ok or not np.isfinite(S).all():
            raise NoMotionHereError(f"{self.dynamics.mechanism.name}: cannot move like this at this pose")
        one = k.motion(np.tile(pose, (S.shape[1], 1)), S.T, seed=real.joints).velocities.T
        at_body = np.maximum(self.column, 0)
        q, qd, qdd, K = real.joints[at_body], real.velocities[at_body], real.accelerations[at_body], one[at_body]
        G = np.asarray(self.tables.gravity)
        R0 = transform_from_pose(pose)[:3, :3]
        found = {records.PLATFORM: BodyMotion(R0, pose[:3], S, R0.T @ V[3:], R0.T @ A[3:], R0.T @ (A[:3] - G))}
        ground = BodyMotion(np.eye(3), np.zeros(3), np.zeros_like(S), np.zeros(3), np.zeros(3), -G)
        for i in range(2, len(self.bodies)):
            found[i] = self._next(i, found.get(int(self.bodies[i]["parent"]), ground), q[i], qd[i], qdd[i], K[i])
        return found, qd, qdd, K

    def _next(self, i: int, on: BodyMotion, q: float, qd: float, qdd: float, partial: Array) -> BodyMotion:
        """Motion of a body from that of its carrier, in its own axes; z is the joint's axis in both."""
        row, z = self.bodies[i], np.array([0.0, 0.0, 1.0])
        slides = bool(row["prismatic"])
        c, s = (1.0, 0.0) if slides else (np.cos(q), np.sin(q))
        turn = row["rotation"] @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        r = row["translation"] + (q * turn[:, 2] if slides else 0.0)
        R, p = on.R @ turn, on.p + on.R @ r
        w, dw = turn.T @ on.w, turn.T @ on.dw
        a = turn.T @ (on.a + np.cross(on.dw, r) + np.cross(on.w, np.cross(on.w, r)))
        jacobian = _moved(on.jacobian, p - on.p)
        if slides:
            jacobian[:3] += np.outer(R[:, 2], partial)
            a = a + qdd * z + 2.0 * qd * np.cross(w, z)
        else:
            jacobian[3:] += np.outer(R[:, 2], partial)
            dw = dw + qdd * z + qd * np.cross(w, z)
            w = w + qd * z
        return BodyMotion(R, p, jacobian, w, dw, a)


def _moved(jacobian: Array, r: Array) -> Array:
    """Jacobian (6, n) of the body's point at r (3,) from that of `jacobian`."""
    out = np.array(jacobian)
    out[:3] -= skew(r) @ jacobian[3:]
    return out


def _tilde(w: Array) -> Array:
    """(31), `I w` per I_xx I_xy I_xz I_yy I_yz I_zz; the paper prints w_x to w_z of the second row a column off."""
    x, y, z = w
    return np.array([[x, y, z, 0, 0, 0], [0, x, 0, y, z, 0], [0, 0, x, 0, y, z]])
