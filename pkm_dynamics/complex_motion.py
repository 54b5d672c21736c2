# SPDX-License-Identifier: Apache-2.0
"""Closures, motion and forces of a whole robot as dense complex arrays, for several perturbed states at once.

The equations are those of the kernels (`closures.py`, `motion.py`, `wrenches.py`) without comparison, conjugate or
absolute value. The first axis, d, is the perturbation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_description.rotations import skew
from pkm_dynamics.kernels.wrenches import COULOMB_SPEED
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
        """Add what bodies and joints have to resist because of springs (`kernels/spring_forces.py`)."""
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
