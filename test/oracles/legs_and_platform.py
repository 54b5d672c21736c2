# SPDX-License-Identifier: Apache-2.0
"""Dynamics of legs and free platform apart, `tau = J_P^T (w_P + sum J_vi^T J_i^-T tau_i)`.

Briot and Khalil, "Dynamics of parallel robots", Encyclopedia of Robotics; equation numbers are the paper's. The loops
are opened where the legs meet the platform: each leg is a serial chain with all joints driven, with an inverse dynamic
model tau_i and an inertia matrix M_i of its own, and the platform is a free body. A leg transmits its reduced twist
V_i = J_i qd_i = J_vi V_P to the platform.

A leg with loops of its own is brought to independent joints, `qd = H y`: the local constraint embedding of Müller,
"Dynamics of parallel manipulators with hybrid complex limbs", section 6.3, then J H stands for J and H^T tau for tau.
Where a leg transmits more than its degrees of freedom (an overconstrained robot) its inverse is a left inverse; all are
equal on possible motions. Bodies carried by the platform (articulated travelling plate, leg described from its other
end) belong to the leg, move with the platform and weigh on it.

Plain NumPy, written to be read, one pose at a time. Only joint positions come from `pkm_kinematics`; it shares no code
with the kernels, so that each tests the other. A spatial vector (6,) is a twist (velocity of the body's point at the
base's origin, angular velocity), its rate, or a wrench (force, moment about the base's origin), in base axes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import cos, sin, tanh
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr

from pkm_description.mechanism import Array
from pkm_description.rotations import skew, transform_from_pose
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.kernels.wrenches import COULOMB_SPEED
from pkm_kinematics.kernels import records
from pkm_runtime.errors import PkmError

REGULAR = 1e-9  # singular values of a leg's Jacobian, in m and rad, below this share of the largest count as zero

# What each kind of joint transmits: directions of forces at its point and of moments, by the axes of its frame. The
# moment of a universal joint, across both of its axes, is made where it is needed.
TRANSMITTED: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {
    records.SPHERICAL: ((0, 1, 2), ()),
    records.UNIVERSAL: ((0, 1, 2), ()),
    records.REVOLUTE: ((0, 1, 2), (0, 1)),
    records.CYLINDRICAL: ((0, 1), (0, 1)),
    records.PRISMATIC: ((0, 1), (0, 1, 2)),
    records.PLANAR: ((2,), (0, 1)),
    records.FIXED: ((0, 1, 2), (0, 1, 2)),
}


class LegsError(PkmError):
    """A pose out of reach, or where the legs are not regular."""


@dataclass(frozen=True, eq=False)
class Leg:
    """Joints of a leg by their bodies in the tables, and its loops: those through the platform, and its own."""

    joints: tuple[int, ...]  # a body's carrier comes before it
    closures: tuple[int, ...]  # where the leg was opened: between what base and platform carry
    loops: tuple[int, ...]
    independent: tuple[int, ...]  # which of `joints` are independent in the loops; all, in a serial chain

    @property
    def serial(self) -> bool:
        """True for one serial chain, or two cut between them, the paper's case; others have loops."""
        return not self.loops and len(self.closures) == 1


@dataclass(frozen=True, eq=False)
class _Placed:
    """A leg at a pose. Spatial vectors of the k joints: `unit` (k, 6) is the twist per unit of the joint's rate."""

    leg: Leg
    R: dict[int, Array]  # rotation of each body
    p: dict[int, Array]  # origin
    unit: Array
    inertia: Array  # (k, 6, 6)
    carries: Array  # (k, k) 1 where joint j, the column, carries body i
    hangs: Array  # (k,) 1 where the platform carries body i
    H: Array  # (k, n_i) rates of all joints per rates of the independent ones
    J: Array  # (r, n_i) reduced twist per independent rates (equation 4)
    Jv: Array  # (r, 6) reduced twist per spatial twist of the platform (equation 5)

    @property
    def G(self) -> Array:
        """Rates of all joints per spatial twist of the platform (k, 6), `H J_i^-1 J_vi` (equation 8)."""
        return np.asarray(self.H @ np.linalg.pinv(self.J, rcond=REGULAR) @ self.Jv)


class LegsAndPlatform:
    """The model of any one robot."""

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics, self.kinematics = dynamics, dynamics.kinematics
        self.tables = self.kinematics.tables
        self.bodies, self.closures = self.tables.bodies, self.tables.closures
        self.gravity: Array = np.concatenate([self.tables.gravity, np.zeros(3)])
        self._root = [records.BASE, records.PLATFORM]  # of every body: which of the two carries it
        for row in self.bodies[2:]:
            self._root.append(self._root[int(row["parent"])])
        self.legs = tuple(self._leg(first, stop) for first, stop in self.tables.limbs)

    # -- models -----------------------------------------------------------------------------------------------------

    def inverse(
        self,
        pose: ArrayLike,
        twist: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        wrench: ArrayLike | None = None,
        joints: ArrayLike | None = None,
    ) -> Array:
        """Actuator efforts (n_actuated,) [N m or N] for a motion of the platform: the inverse dynamic model (13).

        By minimum norm if redundant. Arguments as in `Dynamics.inverse`; `joints` (n_joints,) are those of
        `Kinematics.inverse`, home's working mode where None.
        """
        at, space = self._placed(pose, joints)
        force = space.T @ self._cartesian(at, pose, twist, acceleration, wrench)
        return np.asarray(np.linalg.pinv((self._inverse_jacobian(at) @ space).T) @ force)

    def direct(
        self,
        pose: ArrayLike,
        twist: ArrayLike,
        effort: ArrayLike,
        wrench: ArrayLike | None = None,
        joints: ArrayLike | None = None,
    ) -> Array:
        """Platform acceleration (6,) for actuator efforts: `M_rob Vd_r + c_rob = J_inv^T tau` (19 to 22) and (18)."""
        at, space = self._placed(pose, joints)
        twist = np.asarray(twist, dtype=np.float64)
        k = self.kinematics
        turning = k.engine.spaces.at_one(np.asarray(pose, dtype=np.float64), self._positions(pose, joints), twist)[1]
        S = self._basis(pose, joints)
        c = space.T @ self._cartesian(at, pose, twist, turning, wrench)
        pushed = (self._inverse_jacobian(at) @ space).T @ np.asarray(effort, dtype=np.float64)
        return np.asarray(turning + S @ np.linalg.solve(self._mass_matrix(at, pose, space), pushed - c))

    def mass_matrix(self, pose: ArrayLike, joints: ArrayLike | None = None) -> Array:
        """M_rob (n, n) in the basis of `Kinematics.subspace` (21), rotors included."""
        at, space = self._placed(pose, joints)
        return self._mass_matrix(at, pose, space)

    # -- equations --------------------------------------------------------------------------------------------------

    def _cartesian(
        self,
        at: list[_Placed],
        pose: ArrayLike,
        twist: ArrayLike | None,
        acceleration: ArrayLike | None,
        wrench: ArrayLike | None,
    ) -> Array:
        """The bracket of (13) as a spatial wrench (6,): `w_P + sum J_vi^T J_i^-T tau_i`, less the external wrench."""
        pose = np.asarray(pose, dtype=np.float64)
        V, A = (np.zeros(6) if x is None else np.asarray(x, dtype=np.float64) for x in (twist, acceleration))
        to_origin = _shift(pose[:3])
        V, A = to_origin @ V, to_origin @ A - np.concatenate([np.cross(V[3:], V[:3]), np.zeros(3)])
        total = _newton_euler(self._platform_inertia(pose), V, A - self.gravity)
        if wrench is not None:
            total = total - np.linalg.inv(to_origin).T @ np.asarray(wrench, dtype=np.float64)
        for placed in at:
            tau, hung = self._leg_model(placed, V, A)
            total = total + placed.Jv.T @ np.linalg.pinv(placed.J, rcond=REGULAR).T @ placed.H.T @ tau + hung
        return np.asarray(total)

    def _leg_model(self, at: _Placed, platform: Array, rate: Array) -> tuple[Array, Array]:
        """tau_i = idm(q_i, qd_i, qdd_i) (k,), all joints driven, and the wrench (6,) of bodies on the platform."""
        qd = at.G @ platform
        V = at.carries @ (at.unit * qd[:, None]) + np.outer(at.hangs, platform)
        # what the rates alone give: with the independent joints at constant rate, then with all
        coasting = at.carries @ np.array([_twist_cross(v, s * r) for v, s, r in zip(V, at.unit, qd, strict=True)])
        coasting += np.outer(at.hangs, rate)
        h = np.zeros(len(qd))
        dependent = [j for j in range(len(qd)) if j not in at.leg.independent]
        if dependent:
            G = self._rows(at, at.leg.loops) @ self._opening(at, at.leg.loops)
            drift = self._drift(at, at.leg.loops, V, coasting, platform, rate)
            h[dependent] = -np.linalg.pinv(G[:, dependent], rcond=REGULAR) @ drift
        A = coasting + at.carries @ (at.unit * h[:, None])
        drift = self._drift(at, at.leg.closures, V, A, platform, rate)
        qdd = h - at.H @ np.linalg.pinv(at.J, rcond=REGULAR) @ drift
        A = coasting + at.carries @ (at.unit * qdd[:, None])
        forces = np.array([_newton_euler(at.inertia[i], V[i], A[i] - self.gravity) for i in range(len(qd))])
        carried = at.carries.T @ forces  # what each joint has to hold
        tau = np.sum(at.unit * carried, axis=1)
        for i, body in enumerate(at.leg.joints):
            row = self.bodies[body]
            tau[i] += row["armature"] * qdd[i]
            if self.dynamics.friction:
                tau[i] += row["viscous"] * qd[i] + row["coulomb"] * tanh(qd[i] / COULOMB_SPEED)
        return tau, at.hangs @ forces

    def _mass_matrix(self, at: list[_Placed], pose: ArrayLike, space: Array) -> Array:
        """`Psi^T I_P Psi + sum J_vi^T (J_i^-T M_i J_i^-1) J_vi` (n, n) (21)."""
        total = space.T @ self._platform_inertia(np.asarray(pose, dtype=np.float64)) @ space
        for placed in at:
            armature = np.diag([float(self.bodies[j]["armature"]) for j in placed.leg.joints])
            # twists of body i per joint rates: (6, k)
            twists = [(placed.carries[i][:, None] * placed.unit).T for i in range(len(placed.unit))]
            M = armature + sum(T.T @ inertia @ T for T, inertia in zip(twists, placed.inertia, strict=True))
            inverse = placed.H @ np.linalg.pinv(placed.J, rcond=REGULAR)
            moved = placed.Jv @ space
            total = total + moved.T @ (inverse.T @ M @ inverse) @ moved
            hung = [(T, inertia) for T, inertia, on in zip(twists, placed.inertia, placed.hangs, strict=True) if on]
            if hung:  # bodies that move with the platform and by their joints
                both = space.T @ sum(inertia @ T for T, inertia in hung) @ inverse @ moved
                total = total + space.T @ sum(inertia for _, inertia in hung) @ space + both + both.T
        return np.asarray(total)

    def _inverse_jacobian(self, at: list[_Placed]) -> Array:
        """J_inv (n_actuated, 6): rates of the actuators per spatial twist of the platform, rows of all G_i."""
        J = np.zeros((len(self.kinematics.actuated_names), 6))
        for placed in at:
            for i, body in enumerate(placed.leg.joints):
                if self.bodies[body]["actuator"] >= 0:
                    J[self.bodies[body]["actuator"]] = placed.G[i]
        return J

    # -- loops ------------------------------------------------------------------------------------------------------

    def _rows(self, at: _Placed, closures: tuple[int, ...]) -> Array:
        """Wrenches transmitted by joints, block by block: (r, 6 n), to be multiplied with what `_opening` stacks."""
        blocks = [self._transmitted(at, c) for c in closures]
        out = np.zeros((sum(map(len, blocks)), 6 * len(blocks)))
        row = 0
        for k, W in enumerate(blocks):
            out[row : row + len(W), 6 * k : 6 * k + 6] = W
            row += len(W)
        return out

    def _transmitted(self, at: _Placed, c: int) -> Array:
        """Wrenches (r, 6) transmitted by a joint, which do no work on its motion."""
        closure = self.closures[c]
        forces, moments = TRANSMITTED[int(closure["kind"])]
        body = int(closure["predecessor"])
        axes = at.R[body] @ closure["predecessor_rotation"]
        point = at.p[body] + at.R[body] @ closure["predecessor_point"]
        W = [np.concatenate([axes[:, k], np.cross(point, axes[:, k])]) for k in forces]
        W += [np.concatenate([np.zeros(3), axes[:, k]]) for k in moments]
        if closure["kind"] == records.UNIVERSAL:
            W.append(np.concatenate([np.zeros(3), np.cross(*self._two_axes(at, closure))]))
        return np.array(W)

    def _two_axes(self, at: _Placed, closure: Any) -> tuple[Array, Array]:
        """Axes of a universal joint: of the predecessor and of the successor."""
        a, b = (at.R[int(closure[e])] @ closure[f"{e}_rotation"][:, 2] for e in ("predecessor", "successor"))
        return a, b

    def _opening(self, at: _Placed, closures: tuple[int, ...]) -> Array:
        """Twist of the successor relative to the predecessor per joint rates, closures one above the other (6 n, k)."""
        found = np.zeros((6 * len(closures), len(at.leg.joints)))
        for n, c in enumerate(closures):
            for end, sign in (("successor", 1.0), ("predecessor", -1.0)):
                if int(self.closures[c][end]) in at.leg.joints:
                    i = at.leg.joints.index(int(self.closures[c][end]))
                    found[6 * n : 6 * n + 6] += sign * (at.carries[i][:, None] * at.unit).T
        return found

    def _drift(self, at: _Placed, closures: tuple[int, ...], V: Array, A: Array, platform: Array, rate: Array) -> Array:
        """Second rates (r,) at which closures would open, bodies at twists V (k, 6) with rates A (k, 6).

        A wrench W fixed in either body never does work on V_s - V_p if W (A_s - A_p - V_p x V_s) = 0. In a universal
        joint, with rates a and b about its axes, the first carries the second: the moment across sees a b more.
        """
        found = []
        for c in closures:
            closure = self.closures[c]
            ends = []
            for end in ("predecessor", "successor"):
                body = int(closure[end])
                i = at.leg.joints.index(body) if body in at.leg.joints else -1
                still = (platform, rate) if body == records.PLATFORM else (np.zeros(6), np.zeros(6))
                ends.append((V[i], A[i]) if i >= 0 else still)
            (Vp, Ap), (Vs, As) = ends
            gap = As - Ap - _twist_cross(Vp, Vs)
            rows = self._transmitted(at, c) @ gap
            if closure["kind"] == records.UNIVERSAL:
                first, second = self._two_axes(at, closure)
                turn, across = (Vs - Vp)[3:], np.cross(first, second)
                rows[-1] -= (turn @ first) * (turn @ second) * (across @ across)
            found.append(rows)
        return np.concatenate(found) if found else np.zeros(0)

    # -- placing ----------------------------------------------------------------------------------------------------

    def _positions(self, pose: ArrayLike, joints: ArrayLike | None) -> Array:
        if joints is not None:
            return np.asarray(joints, dtype=np.float64)
        found = self.kinematics.inverse(pose)
        if not np.isfinite(found.joints).all():
            raise LegsError(f"{self.dynamics.mechanism.name}: no configuration at this pose: {found.reason()}")
        return found.joints

    def _basis(self, pose: ArrayLike, joints: ArrayLike | None) -> Array:
        """Psi (6, n) of (1): twists at the platform's origin."""
        return self.kinematics.subspace(pose, self._positions(pose, joints))

    def _placed(self, pose: ArrayLike, joints: ArrayLike | None) -> tuple[list[_Placed], Array]:
        """All legs at a pose, and Psi (6, n) as spatial twists."""
        pose = np.asarray(pose, dtype=np.float64)
        q = self._positions(pose, joints)[np.maximum(self.kinematics.engine.body_column, 0)]
        at = [self._place(leg, pose, q) for leg in self.legs]
        space = _shift(pose[:3]) @ self._basis(pose, joints)
        if not np.isfinite(space).all():
            raise LegsError(f"{self.dynamics.mechanism.name}: the motion space is singular at this pose")
        return at, space

    def _place(self, leg: Leg, pose: Array, q: Array) -> _Placed:
        """A leg's bodies, joints and Jacobians at a pose (7,), its joints at q (n_bodies,)."""
        bare = self._bodies_of(leg, pose, q)
        H = bare.H[:, list(leg.independent)]
        dependent = [j for j in range(len(leg.joints)) if j not in leg.independent]
        if dependent:  # local constraint embedding
            G = self._rows(bare, leg.loops) @ self._opening(bare, leg.loops)
            H[dependent] = -np.linalg.pinv(G[:, dependent], rcond=REGULAR) @ G[:, list(leg.independent)]
        W = self._rows(bare, leg.closures)
        J = W @ self._opening(bare, leg.closures) @ H
        if np.linalg.matrix_rank(J, tol=REGULAR * np.linalg.norm(J, 2)) < J.shape[1]:
            raise LegsError(f"the leg of joint '{self.tables.names[leg.joints[0]]}' is singular, or has an idle joint")
        # the platform moves the successor, or against it the predecessor
        signs = [1.0 if self._root[self.closures[c]["predecessor"]] == records.PLATFORM else -1.0 for c in leg.closures]
        return replace(bare, H=H, J=J, Jv=W @ np.vstack([sign * np.eye(6) for sign in signs]))

    def _bodies_of(self, leg: Leg, pose: Array, q: Array) -> _Placed:
        """A leg's bodies and joints, its loops ignored."""
        R = {records.BASE: np.eye(3), records.PLATFORM: transform_from_pose(pose)[:3, :3]}
        p = {records.BASE: np.zeros(3), records.PLATFORM: pose[:3]}
        k = len(leg.joints)
        unit, inertia, carries = np.zeros((k, 6)), np.zeros((k, 6, 6)), np.eye(k)
        hangs = np.array([float(self._root[body] == records.PLATFORM) for body in leg.joints])
        for i, body in enumerate(leg.joints):
            row = self.bodies[body]
            parent = int(row["parent"])
            frame = R[parent] @ row["rotation"]
            z, origin = frame[:, 2], p[parent] + R[parent] @ row["translation"]
            if row["prismatic"]:
                R[body], p[body] = frame, origin + q[body] * z
                unit[i, :3] = z
            else:
                c, s = cos(q[body]), sin(q[body])
                R[body], p[body] = frame @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), origin
                unit[i] = np.concatenate([np.cross(origin, z), z])
            inertia[i] = _inertia(row, R[body], p[body])
            if parent in leg.joints:
                carries[i] += carries[leg.joints.index(parent)]
        return _Placed(leg, R, p, unit, inertia, carries, hangs, np.eye(k), np.zeros((0, k)), np.zeros((0, 6)))

    def _platform_inertia(self, pose: Array) -> Array:
        """I_P (6, 6) (11), as a spatial inertia."""
        return _inertia(self.bodies[records.PLATFORM], transform_from_pose(pose)[:3, :3], pose[:3])

    # -- reading the tables -----------------------------------------------------------------------------------------

    def _leg(self, first: int, stop: int) -> Leg:
        """The leg of a limb of the tables, with its independent joints: those that home's loops leave free."""
        blocks = self.tables.blocks[first:stop]
        joints = tuple(int(i) for b in blocks for i in range(b["start"], b["start"] + b["count"]))
        all_closures = [
            int(c) for b in blocks for c in range(b["closure_start"], b["closure_start"] + b["closure_count"])
        ]
        loops = tuple(
            c
            for c in all_closures
            if self._root[self.closures[c]["predecessor"]] == self._root[self.closures[c]["successor"]]
        )
        on_platform = tuple(c for c in all_closures if c not in loops)
        free = tuple(range(len(joints)))
        if loops:
            serial = Leg(joints, (), loops, free)
            home = self.kinematics.home_joints[np.maximum(self.kinematics.engine.body_column, 0)]
            at = self._bodies_of(serial, self.kinematics.home, home)
            G = self._rows(at, loops) @ self._opening(at, loops)
            # the tip-most joints are taken as dependent first, so that driven joints stay independent
            rank = int(np.linalg.matrix_rank(G, tol=1e-6))
            passive = [j for j in reversed(free) if self.bodies[joints[j]]["actuator"] < 0]
            order = qr(G[:, passive], mode="economic", pivoting=True)[2]
            free = tuple(j for j in free if j not in {passive[k] for k in order[:rank]})
        return Leg(joints, on_platform, loops, free)


def _shift(p: Array) -> Array:
    """Matrix (6, 6) from a twist at the point p to the twist at the base's origin."""
    out = np.eye(6)
    out[:3, 3:] = skew(p)
    return out


def _twist_cross(V: Array, W: Array) -> Array:
    """Rate of the spatial twist W (6,) fixed in a body that moves with V."""
    return np.concatenate([np.cross(V[3:], W[:3]) + np.cross(V[:3], W[3:]), np.cross(V[3:], W[3:])])


def _wrench_cross(V: Array, F: Array) -> Array:
    """Rate of the spatial wrench F (6,) fixed in a body that moves with V."""
    return np.concatenate([np.cross(V[3:], F[:3]), np.cross(V[3:], F[3:]) + np.cross(V[:3], F[:3])])


def _newton_euler(inertia: Array, V: Array, A: Array) -> Array:
    """Wrench (6,) that moves a body of spatial inertia (6, 6): `I A + V x* I V`, which is (10) about another point."""
    return np.asarray(inertia @ A + _wrench_cross(V, inertia @ V))


def _inertia(row: Any, R: Array, p: Array) -> Array:
    """Spatial inertia (6, 6) of a body of the tables, at R (3, 3) and p (3,): (11), about the base's origin."""
    xx, xy, xz, yy, yz, zz = row["inertia"]
    own = np.zeros((6, 6))
    own[:3, :3] = row["mass"] * np.eye(3)
    own[3:, :3] = skew(R @ row["moment"])
    own[:3, 3:] = own[3:, :3].T
    own[3:, 3:] = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
    back = _shift(-p)
    return np.asarray(back.T @ own @ back)
