# SPDX-License-Identifier: Apache-2.0
"""Derivatives of the inverse dynamics by pose, twist and acceleration of the platform: exact, by complex steps.

f(x + i h d) has h times the derivative along d as its imaginary part if h^2 is negligible: without a difference nothing
cancels (Squire and Trapp, "Using complex variables to estimate derivatives of real functions", SIAM Review 1998). All
directions pass at once, as the first axis d of dense complex matrices over the whole robot, through the equation of the
kernels (`closures.py`, `motion.py`, `wrenches.py`) without comparison, conjugate or absolute value:

    J qd + G V = 0,   J qdd + G A + drift = 0,   K_a^T tau = K^T f(q, qd, qdd)

A pose step moves each body by its velocity for that step. No step passes through a pseudo-inverse: the equations and
joints that determine the motion are chosen at the real pose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # whose parts load when they are first used
from numpy.typing import NDArray

from pkm_description.loops.closure import independent
from pkm_description.mechanism import Array, Mechanism
from pkm_description.rotations import skew
from pkm_dynamics.distribution import meant
from pkm_dynamics.inverse_and_direct import efforts_of
from pkm_dynamics.kernels.wrenches import COULOMB_SPEED
from pkm_dynamics.problem import ACCELERATION, TWIST, WRENCH, Problem
from pkm_dynamics.robot_model import RobotModel
from pkm_kinematics import Status
from pkm_kinematics.kernels.records import (
    BASE,
    CYLINDRICAL,
    FIXED,
    JOINT_SPRING,
    PLANAR,
    PLATFORM,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    UNIVERSAL,
)
from pkm_kinematics.solve.singularity import scaling
from pkm_kinematics.status import Solution
from pkm_runtime.errors import PkmError

STEP = 1e-40
AT_BOUND = 1e-9  # of the largest effort: what rounding leaves between an effort and the bound that holds it
DEPENDENT = 1e-9  # of the longest column: what remains of a joint whose closures leave it free


@dataclass(frozen=True, eq=False, repr=False)
class InverseDerivatives(Solution):
    """Efforts and their derivatives: NaN where the status is not CONVERGED.

    Columns go with those of the motion space S = `Kinematics.subspace` (6, n) at the pose. `pose`: per displacement S
    dx, linear [m] and then a rotation vector [rad] in base axes about the platform's origin: R becomes exp(S_angular
    dx) R. `twist`: per velocity S u. `acceleration`: per acceleration S ud, the mass matrix as the actuators feel it:
    `motion_jacobian.T @ acceleration` is `Dynamics.mass_matrix`.

    Quantities not varied keep their components in base axes. In a configuration-dependent motion space twist and
    acceleration cannot: they follow to the possible ones with the same components in S, the change being orthogonal to
    S, rotations times `Engine.characteristic_length`. Derivatives by the parameters are `Dynamics.regressor`.
    """

    effort: Array  # (..., n_actuated) N m or N
    pose: Array  # (..., n_actuated, n) per m or rad
    twist: Array  # (..., n_actuated, n) per m/s or rad/s
    acceleration: Array  # (..., n_actuated, n) kg, kg m, kg m^2
    status: NDArray[np.int64]  # (...,)

    def _values(self) -> list[str]:
        return [f"pose, twist and acceleration: derivatives of shape {self.pose.shape}, actuators by freedoms"]


def inverse_derivatives(problem: Problem) -> InverseDerivatives:
    """See `Dynamics.inverse_derivatives`."""
    k = problem.robot.kinematics
    if not k.constant_space and k.mechanism.mobility.left_out:
        raise PkmError(f"{k.mechanism.name}: no derivatives if the platform's branch rotates and carries load")
    (efforts, _), status = efforts_of(problem, meant(None, k.mechanism)), problem.status
    m, n = len(k.actuated_names), k.mobility
    out = np.full((len(problem), m, 3 * n), np.nan)
    for i in np.flatnonzero(status == Status.CONVERGED):
        try:
            out[i] = _at(problem, int(i), efforts[i])
        except np.linalg.LinAlgError:
            status[i] = Status.SINGULAR
    problem.refuse_overflow(out)
    efforts[status != Status.CONVERGED] = np.nan
    parts = [problem.shaped(x) for x in np.split(out, 3, axis=2)]
    return InverseDerivatives(problem.shaped(efforts), parts[0], parts[1], parts[2], problem.shaped(problem.status))


def _at(problem: Problem, i: int, efforts: Array) -> Array:
    """Derivatives (m, 3 n) of the efforts (m,) at row i along the motion space (6, n) of pose, twist, acceleration."""
    motion, S, bodies = problem.motions[i], problem.spaces[i], problem.model.bodies
    t, n = problem.robot.kinematics.tables, S.shape[1]
    swept = np.zeros((3 * n, len(bodies), 6))
    for c in range(n):
        step = motion.copy()
        step[TWIST], step[13:] = S[:, c], 0.0
        state = problem.moved(i, step).state
        swept[c, :, :3], swept[c, :, 3:] = state["v"], state["w"]
    dense = Dense(bodies, t.closures, t.gravity, state["R"], state["p"], swept, STEP, problem.model.springs)
    V, A = (np.tile(motion[at], (3 * n, 1)).astype(complex) for at in (TWIST, ACCELERATION))
    V[n : 2 * n] += 1j * STEP * S.T
    A[2 * n :] += 1j * STEP * S.T
    joints = _determined(dense, t.blocks, bodies)
    effort = _efforts(problem.robot, dense, joints, V, A, motion[WRENCH], S, efforts)
    return np.asarray(effort.imag / STEP).T


def _at_bounds(mechanism: Mechanism, efforts: Array) -> NDArray[np.bool_]:
    """Which actuators (m,) stay at a bound of their effort: only drives that pull, or push, share within bounds."""
    if not mechanism.one_way_actuators.any():
        return np.zeros(len(efforts), dtype=bool)
    lower, upper = mechanism.effort_range
    near = AT_BOUND * np.abs(efforts).max()
    return np.asarray((efforts <= lower + near) | (efforts >= upper - near))


def _determined(dense: Dense, blocks: NDArray[Any], bodies: NDArray[Any]) -> NDArray[np.int64]:
    """Joints (by body) that the closures of their block determine at the real pose: neither held nor left free."""
    J = dense.J[0].real
    found: list[int] = []
    for block in blocks:
        rows = slice(block["rows_at"], block["rows_at"] + block["rows"])
        free = [j for j in range(block["start"], block["start"] + block["count"]) if not bodies[j]["held"]]
        columns = J[rows, [j - 2 for j in free]]
        longest = float(np.linalg.norm(columns, axis=0).max(initial=0.0))
        found += [free[k] for k in independent(columns, DEPENDENT * longest)]
    return np.array(found, dtype=np.int64)


def _efforts(
    robot: RobotModel,
    dense: Dense,
    joints: NDArray[np.int64],
    V: Complex,
    A: Complex,
    external: Array,
    S: Array,
    real: Array,
) -> Complex:
    """Efforts (d, m); of the actuators that share, those at a bound of the real efforts (m,) stay there: 0 here."""
    k = robot.kinematics
    d, width = len(V), len(joints)
    J, G = dense.J[:, :, joints - 2], dense.G
    turning = not k.constant_space
    if turning:  # the platform's twist and acceleration follow: six unknowns more
        square = (S * scaling(k.engine.characteristic_length)[:, None] ** 2).T  # (n, 6)
        below = np.concatenate([np.zeros((len(square), width)), square], axis=1)
        J = np.concatenate([np.concatenate([J, G], axis=2), np.broadcast_to(below, (d, *below.shape))], axis=1)
    chosen = np.sort(scipy.linalg.qr(J[0].real.T, mode="r", pivoting=True)[1][: J.shape[2]])
    square_J = J[:, chosen]

    def close(opening: Complex, kept: Complex | Array | None = None) -> tuple[Complex, Complex]:
        """Rates of all joints (d, n_bodies, c) and of the platform (d, 6, c) that close an opening (d, n_rows, c)."""
        c = opening.shape[2]
        right = -opening
        if turning:
            right = np.concatenate([right, np.zeros((d, len(square), c)) if kept is None else kept], axis=1)
        solved = np.linalg.solve(square_J, right[:, chosen])
        rates: Complex = np.zeros((d, len(dense.bodies), c), dtype=np.complex128)
        rates[:, joints] = solved[:, :width]
        platform: Complex = np.zeros((d, 6, c), dtype=np.complex128)
        return rates, np.asarray(solved[:, width:]) if turning else platform

    if turning:
        unit = np.broadcast_to(square @ S, (d, S.shape[1], S.shape[1]))
        K, space = close(np.zeros((d, G.shape[1], S.shape[1]), dtype=complex), unit)
        qd, twist = close(np.zeros((d, G.shape[1], 1), dtype=complex), (V @ square.T)[:, :, None])
        V = twist[:, :, 0]
    else:
        space = np.broadcast_to(S, (d, *S.shape)).astype(complex)
        K, _ = close(G @ space)
        qd, _ = close(G @ V[:, :, None])
    dense.move(V, qd[:, :, 0])
    qdd, more = close(dense.accelerate(A, np.zeros_like(qd[:, :, 0]))[:, :, None])
    dense.accelerate(A + more[:, :, 0], qdd[:, :, 0])
    force, wrench = dense.forces(qd[:, :, 0], qdd[:, :, 0], external, robot.friction)
    b = np.einsum("djc,dj->dc", K, force) + np.einsum("drc,dr->dc", space, wrench)
    order = [int(np.flatnonzero(dense.bodies["actuator"] == a)[0]) for a in range(len(k.actuated_names))]
    Ka = K[:, order]
    if Ka.shape[1] == Ka.shape[2]:
        return np.asarray(np.linalg.solve(np.swapaxes(Ka, 1, 2), b[:, :, None])[:, :, 0])
    bounded = _at_bounds(k.mechanism, real)
    b = b - np.einsum("dmc,m->dc", Ka[:, bounded], real[bounded])
    Ka[:, bounded] = 0.0
    least = np.linalg.solve(np.swapaxes(Ka, 1, 2) @ Ka, b[:, :, None])
    return np.asarray((Ka @ least)[:, :, 0])


Complex = NDArray[np.complex128]

# Directions along which a closure holds its point: axes of the predecessor, or the base's where all three are held.
HELD = {CYLINDRICAL: (0, 1), PRISMATIC: (0, 1), PLANAR: (2,)}
# Axes of the predecessor and of the successor that a closure keeps square to each other.
SQUARE: dict[int, tuple[tuple[int, int], ...]] = {
    SPHERICAL: (),
    UNIVERSAL: ((2, 2),),
    REVOLUTE: ((0, 2), (1, 2)),
    CYLINDRICAL: ((0, 2), (1, 2)),
    PRISMATIC: ((0, 1), (1, 2), (2, 0)),
    PLANAR: ((0, 2), (1, 2)),
    FIXED: ((0, 1), (1, 2), (2, 0)),
}


def _cross(a: Any, b: Any) -> Complex:
    return np.asarray(np.cross(a, b))


def _dot(a: Any, b: Any) -> Complex:
    return np.asarray((a * b).sum(axis=-1))


class Dense:
    """A robot near one pose: bodies displaced by i `step` along the twists `swept` (d, n_bodies, 6)."""

    def __init__(
        self,
        bodies: NDArray[Any],
        closures: NDArray[Any],
        gravity: Array,
        R: Array,
        p: Array,
        swept: Array,
        step: float,
        springs: NDArray[Any] | tuple[()] = (),
    ) -> None:
        self.springs = springs
        self.bodies, self.closures = bodies, closures
        self.R: Complex = R + 1j * step * (skew(swept[:, :, 3:]) @ R)
        self.p: Complex = p + 1j * step * swept[:, :, :3]
        self.z = self.R[:, :, :, 2]
        self.v, self.w = np.zeros((2, *self.p.shape), dtype=complex)
        self.dv, self.dw = np.zeros((2, *self.p.shape), dtype=complex)
        self.dv[:, BASE] = -np.asarray(gravity)
        self._close()

    def _close(self) -> None:
        """Equations of all closures as wrenches (d, n_rows, 3), with J (d, n_rows, n_joints) and G (d, n_rows, 6).
        `gaps` (d, n_rows) are how far they are open, of directions the cosines.
        """
        d, n = len(self.R), len(self.bodies)
        total = int(self.closures["rows"].sum())
        self.force, self.moment = np.zeros((2, d, total, 3), dtype=complex)
        self.points = np.zeros((d, len(self.closures), 3), dtype=complex)
        self.gaps = np.zeros((d, total), dtype=complex)
        self.J, self.G = np.zeros((d, total, n - 2), dtype=complex), np.zeros((d, total, 6), dtype=complex)
        for k, closure in enumerate(self.closures):
            s, p = closure["successor"], closure["predecessor"]
            Fp = self.R[:, p] @ closure["predecessor_rotation"]
            Fs = self.R[:, s] @ closure["successor_rotation"]
            point = self.p[:, s] + self.R[:, s] @ closure["successor_point"]
            self.points[:, k] = point
            at = int(closure["rows_at"])
            kind = int(closure["kind"])
            if kind in HELD:
                for c in HELD[kind]:
                    self.force[:, at] = Fp[:, :, c]
                    at += 1
            else:
                self.force[:, at : at + 3] = np.eye(3)
                at += 3
            start = int(closure["rows_at"])
            apart = point - self.p[:, p] - self.R[:, p] @ closure["predecessor_point"]
            self.gaps[:, start:at] = _dot(self.force[:, start:at], apart[:, None])
            for a, b in SQUARE[kind]:
                self.moment[:, at] = _cross(Fs[:, :, b], Fp[:, :, a])
                self.gaps[:, at] = _dot(Fs[:, :, b], Fp[:, :, a])
                at += 1
            rows = slice(start, at)
            force, moment = self.force[:, rows], self.moment[:, rows]
            for body, sign in ((s, 1.0), (p, -1.0)):
                j = int(body)
                while j > PLATFORM:
                    z = self.z[:, j, None]
                    if self.bodies[j]["prismatic"]:
                        self.J[:, rows, j - 2] += sign * _dot(force, z)
                    else:
                        arm = (point - self.p[:, j])[:, None]
                        self.J[:, rows, j - 2] += sign * (_dot(force, _cross(z, arm)) + _dot(moment, z))
                    j = int(self.bodies[j]["parent"])
                if j == PLATFORM:
                    arm = (point - self.p[:, PLATFORM])[:, None]
                    self.G[:, rows, :3] += sign * force
                    self.G[:, rows, 3:] += sign * (moment + _cross(arm, force))

    def move(self, twist: NDArray[Any], qd: NDArray[Any]) -> None:
        """Set the velocities of all bodies for the platform's twist (d, 6) and joint rates (d, n_bodies)."""
        self.v[:, PLATFORM], self.w[:, PLATFORM] = twist[:, :3], twist[:, 3:]
        self.qd = qd
        for i in range(PLATFORM + 1, len(self.bodies)):
            parent = int(self.bodies[i]["parent"])
            slide = self.z[:, i] * qd[:, i, None]
            w = self.w[:, parent]
            v = self.v[:, parent] + _cross(w, self.p[:, i] - self.p[:, parent])
            if self.bodies[i]["prismatic"]:
                self.v[:, i], self.w[:, i] = v + slide, w
            else:
                self.v[:, i], self.w[:, i] = v, w + slide

    def accelerate(self, acceleration: NDArray[Any], qdd: NDArray[Any]) -> Complex:
        """Set the accelerations of all bodies; returns the second rates (d, n_rows) at which the closures open."""
        self.dv[:, PLATFORM] = acceleration[:, :3] + self.dv[:, BASE]
        self.dw[:, PLATFORM] = acceleration[:, 3:]
        for i in range(PLATFORM + 1, len(self.bodies)):
            parent = int(self.bodies[i]["parent"])
            w, arm = self.w[:, parent], self.p[:, i] - self.p[:, parent]
            dv = self.dv[:, parent] + _cross(self.dw[:, parent], arm) + _cross(w, _cross(w, arm))
            coriolis = _cross(w, self.z[:, i]) * self.qd[:, i, None]
            push = self.z[:, i] * qdd[:, i, None]
            if self.bodies[i]["prismatic"]:
                self.dv[:, i], self.dw[:, i] = dv + 2.0 * coriolis + push, self.dw[:, parent]
            else:
                self.dv[:, i], self.dw[:, i] = dv, self.dw[:, parent] + coriolis + push
        return self._opening()

    def _opening(self) -> Complex:
        out = np.zeros(self.force.shape[:2], dtype=complex)
        for k, closure in enumerate(self.closures):
            s, p = int(closure["successor"]), int(closure["predecessor"])
            point = self.points[:, k]
            speeds = [self.v[:, b] + _cross(self.w[:, b], point - self.p[:, b]) for b in (s, p)]
            seconds = [
                self.dv[:, b]
                + _cross(self.dw[:, b], point - self.p[:, b])
                + _cross(self.w[:, b], speeds[0] - self.v[:, b])
                for b in (s, p)
            ]
            ws, wp = self.w[:, s], self.w[:, p]
            turning = self.dw[:, s] - self.dw[:, p]
            rows = slice(int(closure["rows_at"]), int(closure["rows_at"] + closure["rows"]))
            force, moment = self.force[:, rows], self.moment[:, rows]
            out[:, rows] = _dot(force, (seconds[0] - seconds[1])[:, None]) + _dot(moment, turning[:, None])
            at, kind = rows.start, int(closure["kind"])
            if kind in HELD:
                for _ in HELD[kind]:
                    out[:, at] += _dot(_cross(wp, self.force[:, at]), speeds[0] - speeds[1])
                    at += 1
            else:
                at += 3
            Fp = self.R[:, p] @ closure["predecessor_rotation"]
            Fs = self.R[:, s] @ closure["successor_rotation"]
            for i, j in SQUARE[kind]:
                a, b = Fp[:, :, i], Fs[:, :, j]
                out[:, at] += _dot(ws - wp, _cross(_cross(ws, b), a) + _cross(b, _cross(wp, a)))
                at += 1
        return out

    def forces(self, qd: Complex, qdd: Complex, external: Array, friction: bool) -> tuple[Complex, Complex]:
        """Generalised forces of all joints (d, n_bodies) and of the platform (d, 6) that the motion requires."""
        d, n = self.p.shape[:2]
        force, torque = np.zeros((2, d, n, 3), dtype=complex)
        effort = self.bodies["armature"] * qdd
        if friction:
            effort = effort + self.bodies["viscous"] * qd + self.bodies["coulomb"] * np.tanh(qd / COULOMB_SPEED)
        inertia = np.zeros((n, 3, 3))
        upper = np.triu_indices(3)
        inertia[:, upper[0], upper[1]] = self.bodies["inertia"]
        inertia[:, upper[1], upper[0]] = self.bodies["inertia"]
        turned = self.R @ inertia @ np.swapaxes(self.R, -1, -2)
        h = (self.R @ self.bodies["moment"][:, :, None])[:, :, :, 0]
        mass = self.bodies["mass"][:, None]
        w, dw, dv = self.w, self.dw, self.dv
        force[:, PLATFORM:] = (mass * dv + _cross(dw, h) + _cross(w, _cross(w, h)))[:, PLATFORM:]
        Iw, Idw = (turned @ w[..., None])[..., 0], (turned @ dw[..., None])[..., 0]
        torque[:, PLATFORM:] = (_cross(h, dv) + Idw + _cross(w, Iw))[:, PLATFORM:]
        force[:, PLATFORM] -= external[:3]
        torque[:, PLATFORM] -= external[3:]
        self._add_springs(force, torque, effort)
        for i in range(n - 1, PLATFORM, -1):
            parent = int(self.bodies[i]["parent"])
            held = force[:, i] if self.bodies[i]["prismatic"] else torque[:, i]
            effort[:, i] += _dot(self.z[:, i], held)
            force[:, parent] += force[:, i]
            torque[:, parent] += torque[:, i] + _cross(self.p[:, i] - self.p[:, parent], force[:, i])
        return effort, np.concatenate([force[:, PLATFORM], torque[:, PLATFORM]], axis=1)

    def _add_springs(self, force: Complex, torque: Complex, effort: Complex) -> None:
        for spring in self.springs:
            first, second = int(spring["first"]), int(spring["second"])
            if spring["kind"] == JOINT_SPRING:
                effort[:, second] += spring["stiffness"] * (
                    self._joint_position(first, second, spring) - spring["rest"]
                )
                continue
            arms = [self.R[:, body] @ spring[f"{side}_point"] for side, body in (("first", first), ("second", second))]
            apart = self.p[:, second] + arms[1] - self.p[:, first] - arms[0]
            length = np.sqrt(_dot(apart, apart))[:, None]
            pull = (spring["stiffness"] + (spring["preload"] - spring["stiffness"] * spring["rest"]) / length) * apart
            for body, arm, sign in ((first, arms[0], -1.0), (second, arms[1], 1.0)):
                force[:, body] += sign * pull
                torque[:, body] += sign * _cross(arm, pull)

    def _joint_position(self, parent: int, body: int, spring: Any) -> Complex:
        """Position (d,) of a joint; where it turns, within half a turn of home."""
        of, z = self.bodies[body], self.z[:, body]
        if of["prismatic"]:
            return _dot(self.p[:, body] - self.p[:, parent] - self.R[:, parent] @ of["translation"], z)
        x, fixed = self.R[:, body, :, 0], self.R[:, parent] @ of["rotation"]
        c, s = _dot(fixed[:, :, 0], x), _dot(fixed[:, :, 1], x)
        angle = np.arctan2(s.real, c.real)
        angle = spring["home"] + np.angle(np.exp(1j * (angle - spring["home"])))
        # the angle of a complex displacement, to its first order, which is all that a complex step asks for
        return np.asarray(angle + 1j * (c.real * s.imag - s.real * c.imag))
