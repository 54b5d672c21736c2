# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics from observed legs: kinematic elements in space, `A Gamma + b = 0`.

Özgür, Andreff and Martinet, "Linear dynamic modeling of parallel kinematic manipulators from observable kinematic
elements", Mechanism and Machine Theory 2013; numbers are the paper's equations. Every body of a limb is an element: an
observed unit vector x, or an encoder's length s. In this redundant state every equation is linear, without angles or
trigonometric functions. A body's orientation follows from its direction and the axis it turns about, carried by its
carrier; that of an unobserved universal cross from the bar it carries, unless it carries a motor or the bar lies along
its axis. A parallelogram makes four elements.

The loops are sums of element vectors up to the platform (35) and axes that a joint keeps together; their rates are
linear (37) and give, limb by limb, the motion constraints (55). The bodies' partial velocities, kinematic and dynamic
coordinates (49 to 53), project the forces on the platform's degrees of freedom: (64).

Elements carried by the platform (articulated travelling plate) also move with it. It shares no code with the kernels,
so that each tests the other; only `of_pose` asks the kinematics, for joint positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt, tanh
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pkm_description.mechanism import Array
from pkm_description.rotations import cross, quaternion_from_rotation, skew, transform_from_pose
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.kernels.wrenches import COULOMB_SPEED
from pkm_dynamics.kinematic_elements import (
    ACROSS,
    Element,
    Moving,
    ends,
    first_rates,
    opening,
    read_elements,
    second_rates,
)
from pkm_kinematics.kernels import records
from pkm_runtime.errors import PkmError

FITTED, ATTEMPTS = 1e-12, 30  # the pose of a platform that carries elements: last step [m, rad], and how many
MISFIT = 0.1  # of the characteristic length: how far observed bars may end from the platform's joints
REGULAR = 1e-9  # singular values of a limb's equations below this share of the largest count as zero
Z = np.array([0.0, 0.0, 1.0])


class ObservationError(PkmError):
    """An impossible state of a robot, or one with too little information."""


@dataclass(frozen=True, eq=False)
class Observed:
    """Directions (n, 3) of all elements and their rates, or lengths of those that slide; the platform to match."""

    directions: Array  # (n, 3), zeros where the element slides
    rates: Array  # (n, 3)
    lengths: Array  # (n,) position of a slider or of an extension [m], 0 for others
    length_rates: Array  # (n,)
    pose: Array  # (7,)
    twist: Array  # (6,)


@dataclass(frozen=True, eq=False)
class _Limb:
    """Elements of a limb, by their bodies' numbers in the tables, and its closures, rows of these."""

    bodies: tuple[int, ...]
    closures: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class _Motion:
    """Elements of a robot at a state: bodies, joint rates per twist (k, 6), and the platform's motion space."""

    bodies: dict[int, Moving]
    constraints: list[Array]  # of each limb: M, (k, 6)
    inverses: list[Array]  # of each limb: from what its loops open by to the rates that close them (k, rows)
    space: Array  # (6, n)


class ObservedLegs:
    """The element model of any one robot."""

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics, self.kinematics = dynamics, dynamics.kinematics
        self.tables = self.kinematics.tables
        self._root = [records.BASE, records.PLATFORM]  # of every body: which of the two carries it
        for row in self.tables.bodies[2:]:
            self._root.append(self._root[int(row["parent"])])
        self.limbs = tuple(self._limb(first, stop) for first, stop in self.tables.limbs)
        self.elements = read_elements(self.kinematics)
        self._visible = [e for e in self.elements.values() if e.bar < 0]
        self.names = tuple(e.link for e in self._visible)  # of the elements: links of the description
        self.seen = tuple(e.link for e in self._visible if not e.slides)  # those whose directions are needed
        self.measured = tuple(e.joint for e in self._visible if e.slides)  # joints whose positions are
        self._row = {e.body: k for k, e in enumerate(self._visible)}

    # -- state ------------------------------------------------------------------------------------------------------

    def of_pose(self, pose: ArrayLike, twist: ArrayLike | None = None) -> Observed:
        """State observed at a pose (7,) and twist (6,) [m/s, rad/s], at rest where None, in home's working mode."""
        pose = np.asarray(pose, dtype=np.float64)
        twist = np.zeros(6) if twist is None else np.asarray(twist, dtype=np.float64)
        k = self.kinematics
        answer = k.inverse(pose, mode=0)
        if not np.isfinite(answer.joints).all():
            raise ObservationError(f"a limb does not reach the pose: {answer.reason()}")
        at = k.engine.placed(pose, answer.joints, 0).state
        n = len(self.names)
        x, dx, s, ds = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(n), np.zeros(n)
        for i, e in enumerate(self._visible):
            if e.slides:
                s[i] = at[e.body]["q"]
            else:
                x[i] = at[e.body]["R"] @ e.d
        motion = self._motion(Observed(x, dx, s, ds, pose, twist))
        for limb, M in zip(self.limbs, motion.constraints, strict=True):
            for body, rate in zip(limb.bodies, M @ twist, strict=True):
                e = self.elements[body]
                if e.slides:
                    ds[self._row[body]] = rate
        self._move(motion, twist)
        for i, e in enumerate(self._visible):
            if not e.slides:
                dx[i] = cross(motion.bodies[e.body].w, x[i])
        return Observed(x, dx, s, ds, pose, twist)

    def of_directions(
        self,
        directions: Mapping[str, ArrayLike],
        rates: Mapping[str, ArrayLike],
        lengths: Mapping[str, float] | None = None,
        length_rates: Mapping[str, float] | None = None,
    ) -> Observed:
        """State from observed legs and the encoders of sliders and extensions; the platform by least squares.

        `directions` of arms and bars (3,), base axes, with rates [1/s] go by link (see `seen`); `lengths` of sliders
        and extensions [m], with rates [m/s], by joint (see `measured`).
        """
        n, lengths, length_rates = len(self.names), lengths or {}, length_rates or {}
        x, dx, s, ds = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(n), np.zeros(n)
        for i, e in enumerate(self._visible):
            if not e.slides:
                x[i], dx[i] = self._seen_one(e.link, directions, rates)
                continue
            if e.joint not in lengths or e.joint not in length_rates:
                raise ObservationError(f"the position or the speed of joint '{e.joint}' is missing")
            s[i], ds[i] = float(lengths[e.joint]), float(length_rates[e.joint])
            if not np.isfinite([s[i], ds[i]]).all():
                raise ObservationError(f"the position or the speed of joint '{e.joint}' is not finite")
        pose = self._fitted(x, s)
        motion = self._motion(Observed(x, dx, s, ds, pose, np.zeros(6)))
        # each limb opens its loops at some rate while the platform rests; the platform's twist closes them
        seen = [self._observed_rates(limb, motion.bodies, x, dx, ds, np.zeros(3)) for limb in self.limbs]
        open_rates = [self._joint_rows(limb, motion.bodies) @ qd for limb, qd in zip(self.limbs, seen, strict=True)]
        rows = self._fit_rows(motion.bodies, x) @ motion.space
        if np.linalg.matrix_rank(rows, tol=REGULAR) < rows.shape[1]:
            raise ObservationError("the limbs' ends do not determine how the platform moves")
        twist = -motion.space @ np.linalg.lstsq(rows, np.concatenate(open_rates), rcond=None)[0]
        return Observed(x, dx, s, ds, pose, twist)

    # -- dynamics ---------------------------------------------------------------------------------------------------

    def inverse(self, state: Observed, acceleration: ArrayLike, wrench: ArrayLike | None = None) -> Array:
        """Efforts (n_actuated,) of minimum norm for a platform acceleration (6,) and external wrench (6,)."""
        A, b = self.linear_model(state, acceleration, wrench)
        return np.asarray(-np.linalg.pinv(A) @ b)

    def linear_model(
        self, state: Observed, acceleration: ArrayLike, wrench: ArrayLike | None = None
    ) -> tuple[Array, Array]:
        """A (n, n_actuated) and b (n,) of `A Gamma + b = 0` in the platform's n degrees of freedom (64)."""
        external = np.zeros(6) if wrench is None else np.asarray(wrench, dtype=np.float64)
        motion = self._motion(state)
        rates = self._move(motion, state.twist)
        seconds = self._accelerate(motion, np.asarray(acceleration, dtype=np.float64), rates)
        S = motion.space
        A = np.zeros((S.shape[1], len(self.kinematics.actuated_names)))
        platform = motion.bodies[records.PLATFORM]
        on_platform = external + np.concatenate(self._load(records.PLATFORM, platform))
        b = np.zeros(S.shape[1])
        for limb, M, qd, qdd in zip(self.limbs, motion.constraints, rates, seconds, strict=True):
            on_joints = np.zeros(len(limb.bodies))  # dynamic coordinates (53)
            for k, i in enumerate(limb.bodies):
                row, at = self.tables.bodies[i], motion.bodies[i]
                force, torque = self._load(i, at)
                on_joints += force @ at.V + torque @ at.W
                if self._root[i] == records.PLATFORM:
                    on_platform += np.concatenate([force, torque + cross(at.p - platform.p, force)])
                on_joints[k] -= row["armature"] * qdd[k]
                if self.dynamics.friction:
                    on_joints[k] -= row["viscous"] * qd[k] + row["coulomb"] * tanh(qd[k] / COULOMB_SPEED)
                if row["actuator"] >= 0:
                    A[:, row["actuator"]] = S.T @ M[k]
            b += S.T @ M.T @ on_joints
        return A, b + S.T @ on_platform

    def _load(self, i: int, at: Moving) -> tuple[Array, Array]:
        """Weight and inertia of a body as force and torque (3,) at its origin."""
        row = self.tables.bodies[i]
        a = at.dv - np.asarray(self.tables.gravity)
        h = at.R @ row["moment"]
        xx, xy, xz, yy, yz, zz = row["inertia"]
        inertia = at.R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ at.R.T
        force = row["mass"] * a + cross(at.dw, h) + cross(at.w, cross(at.w, h))
        torque = inertia @ at.dw + cross(at.w, inertia @ at.w) + cross(h, a)
        return -force, -torque

    # -- orientations from directions -------------------------------------------------------------------------------

    def _placed(self, x: Array, s: Array, pose: Array) -> dict[int, Moving]:
        """All bodies at rest, from directions (n, 3) and lengths (n,), with velocities per rate of their joints."""
        found = {
            records.BASE: Moving(np.eye(3), np.zeros(3)),
            records.PLATFORM: Moving(transform_from_pose(pose)[:3, :3], pose[:3]),
        }
        for limb in self.limbs:
            k = len(limb.bodies)
            nothing = np.zeros((3, k))
            for j, i in enumerate(limb.bodies):
                e, row = self.elements[i], self.tables.bodies[i]
                on = found[int(row["parent"])]
                frame = on.R @ row["rotation"]
                z, p = frame[:, 2], on.p + on.R @ row["translation"]
                V, W = (on.V, on.W) if on.V.size else (nothing, nothing)
                V, W = V - skew(p - on.p) @ W, W.copy()
                if e.slides:
                    p = p + s[self._row[i]] * z
                    V -= s[self._row[i]] * skew(z) @ W
                    V[:, j] += z
                    R = frame
                else:
                    W[:, j] += z
                    R = self._turned(e, z, x)
                found[i] = Moving(R, p, V=V, W=W)
        return found

    def _turned(self, e: Element, z: Array, x: Array) -> Array:
        """Orientation of an element from its joint axis z and its direction, or that of its bar."""
        seen = e.side * cross(z, x[self._row[e.bar]]) if e.bar >= 0 else x[self._row[e.body]]
        seen, own = seen - z * (z @ seen), e.d - Z * e.d[2]
        square = float(seen @ seen)
        if not square > ACROSS**2:
            name = self.elements[e.bar].link if e.bar >= 0 else e.link
            raise ObservationError(f"'{name}' lies along the axis of joint '{e.joint}': its direction tells no angle")
        seen, own = seen / sqrt(square), own / sqrt(own @ own)
        return np.outer(seen, own) + np.outer(z, Z) + np.outer(cross(z, seen), cross(Z, own))

    def _observed_rates(
        self, limb: _Limb, bodies: dict[int, Moving], x: Array, dx: Array, ds: Array, turning: Array
    ) -> Array:
        """Joint rates (k,) of a limb from its observed rates and the platform's angular velocity `turning` (3,)."""
        qd = np.zeros(len(limb.bodies))
        for j, i in enumerate(limb.bodies):
            e = self.elements[i]
            if e.slides:
                qd[j] = ds[self._row[i]]
                continue
            z = bodies[i].R[:, 2]
            w = bodies[i].W[:, :j] @ qd[:j]
            if self._root[i] == records.PLATFORM:
                w = w + turning
            if e.bar >= 0:  # what turns the bar's direction along the axis that the cross carries
                y, dy = x[self._row[e.bar]], dx[self._row[e.bar]]
                along = bodies[i].R @ e.d
                qd[j] = along @ (dy - cross(w, y)) / (along @ cross(z, y))
            else:
                y, dy = x[self._row[i]], dx[self._row[i]]
                lever = cross(z, y)
                qd[j] = lever @ (dy - cross(w, y)) / (lever @ lever)
        return qd

    # -- motion constraints -----------------------------------------------------------------------------------------

    def _motion(self, state: Observed) -> _Motion:
        """Bodies, motion constraints of all limbs, and the platform's motion space."""
        bodies = self._placed(state.directions, state.lengths, state.pose)
        rows = [self._platform_rows(limb, bodies) for limb in self.limbs]
        J = [self._joint_rows(limb, bodies) for limb in self.limbs]
        inverses: list[Array] = [np.asarray(np.linalg.pinv(j, rcond=REGULAR)) for j in J]
        k = self.kinematics
        space = k.task.subspace
        if not k.constant_space:  # what the platform's own branch allows and no limb resists
            allowed = k.engine.spaces.allowed_at(state.pose)
            resisted = np.vstack([r - j @ (i @ r) for r, j, i in zip(rows, J, inverses, strict=True)]) @ allowed
            space = allowed @ np.linalg.svd(resisted)[2][-k.mobility :].T
        return _Motion(bodies, [-i @ r for i, r in zip(inverses, rows, strict=True)], inverses, np.asarray(space))

    def _move(self, motion: _Motion, twist: Array) -> list[Array]:
        """Set all bodies' velocities for the platform's twist; returns the joint rates (k,) of each limb."""
        motion.bodies[records.PLATFORM].v, motion.bodies[records.PLATFORM].w = twist[:3], twist[3:]
        rates = [M @ twist for M in motion.constraints]
        for limb, qd in zip(self.limbs, rates, strict=True):
            for i in limb.bodies:
                me = motion.bodies[i]
                V, W = self._with_platform(i, motion.bodies)
                me.v, me.w = me.V @ qd + V @ twist, me.W @ qd + W @ twist
        return rates

    def _accelerate(self, motion: _Motion, acceleration: Array, rates: list[Array]) -> list[Array]:
        """Set all bodies' accelerations, velocities given before; returns the second joint rates (k,) of each limb."""
        bodies = motion.bodies
        bodies[records.PLATFORM].dv, bodies[records.PLATFORM].dw = acceleration[:3], acceleration[3:]
        found = []
        for limb, inverse, qd in zip(self.limbs, motion.inverses, rates, strict=True):
            for rate, i in zip(qd, limb.bodies, strict=True):  # with all joints at constant rate
                me, on = bodies[i], bodies[int(self.tables.bodies[i]["parent"])]
                z = me.R[:, 2]
                me.dv, me.dw = on.acceleration(me.p - on.p), np.array(on.dw)
                if self.elements[i].slides:
                    me.dv += 2.0 * rate * cross(on.w, z)
                else:
                    me.dw += rate * cross(on.w, z)
            qdd = -inverse @ np.concatenate([second_rates(c, bodies) for c in limb.closures])
            for i in limb.bodies:
                bodies[i].dv, bodies[i].dw = bodies[i].dv + bodies[i].V @ qdd, bodies[i].dw + bodies[i].W @ qdd
            found.append(qdd)
        return found

    def _joint_rows(self, limb: _Limb, bodies: dict[int, Moving]) -> Array:
        """Rates of a limb's loop equations per rate of its joints (rows, k)."""
        still = np.zeros((3, len(limb.bodies)))

        def twists(i: int) -> tuple[Array, Array]:
            return (bodies[i].V, bodies[i].W) if i in limb.bodies else (still, still)

        return np.vstack([first_rates(c, bodies, twists) for c in limb.closures])

    def _platform_rows(self, limb: _Limb, bodies: dict[int, Moving]) -> Array:
        """Rates of a limb's loop equations per twist of the platform (rows, 6)."""
        return np.vstack([first_rates(c, bodies, lambda i: self._with_platform(i, bodies)) for c in limb.closures])

    def _with_platform(self, i: int, bodies: dict[int, Moving]) -> tuple[Array, Array]:
        """Linear and angular velocity (3, 6) per platform twist of a body that the platform carries."""
        V, W = np.zeros((3, 6)), np.zeros((3, 6))
        if self._root[i] == records.PLATFORM:
            V[:, :3] = W[:, 3:] = np.eye(3)
            V[:, 3:] = skew(bodies[records.PLATFORM].p - bodies[i].p)
        return V, W

    # -- the platform from where the limbs end ------------------------------------------------------------------------

    def _fitted(self, x: Array, s: Array) -> Array:
        """Pose (7,) of best fit to the limbs' ends."""
        hung = any(root == records.PLATFORM for root in self._root[2:])
        return self._fitted_from_home(x, s) if hung else self._fitted_at_once(x, s)

    def _fitted_from_home(self, x: Array, s: Array) -> Array:
        """By Gauss-Newton: where the platform carries elements, the limbs' ends are not points of it."""
        k = self.kinematics
        pose = np.array(k.home)
        allowed = k.task.subspace if k.constant_space else np.eye(6)
        for _ in range(ATTEMPTS):
            bodies = self._placed(x, s, pose)
            gaps = np.concatenate([opening(c, bodies) for limb in self.limbs for c in limb.closures])
            step = -allowed @ np.linalg.lstsq(self._fit_rows(bodies, x) @ allowed, gaps, rcond=None)[0]
            pose[:3] += step[:3]
            turn = np.append(0.5 * step[3:], 1.0)
            pose[3:] = _product(turn / sqrt(turn @ turn), pose[3:])
            if np.abs(step).max() < FITTED:
                break
        else:
            raise ObservationError("no pose of the platform fits the directions")
        self._check_fit(float(np.abs(gaps).max()))
        return pose

    def _fit_rows(self, bodies: dict[int, Moving], x: Array) -> Array:
        """Rates of all loop equations per platform twist (rows, 6) at constant observed directions."""
        still, none = np.zeros_like(x), np.zeros(len(x))
        found = []
        for limb in self.limbs:
            rows = self._platform_rows(limb, bodies)
            for j, turning in enumerate(np.eye(3)):
                qd = self._observed_rates(limb, bodies, x, still, none, turning)
                rows[:, 3 + j] += self._joint_rows(limb, bodies) @ qd
            found.append(rows)
        return np.vstack(found)

    def _check_fit(self, off: float) -> None:
        if off > MISFIT * self.kinematics.characteristic_length:
            raise ObservationError(f"the limbs do not meet at the platform: one ends {off:.3g} m from its joint there")

    def _fitted_at_once(self, x: Array, s: Array) -> Array:
        """By one singular value decomposition: the limbs' ends are points and directions of the platform."""
        home, k = self.kinematics.home, self.kinematics
        bodies = self._placed(x, s, home)
        R0 = bodies[records.PLATFORM].R
        points: list[tuple[Array, Array]] = []  # where they are, and where in the platform's frame
        axes: list[tuple[Array, Array]] = []
        lines: list[tuple[Array, Array, Array]] = []  # points, and in what directions they are held
        for row in self.tables.closures:
            if records.PLATFORM not in (int(row["predecessor"]), int(row["successor"])):
                continue
            i, arm, F = next(e for e in ends(row, bodies) if e[0] != records.PLATFORM)
            _, arm0, F0 = next(e for e in ends(row, bodies) if e[0] == records.PLATFORM)
            kind = int(row["kind"])
            point, own = bodies[i].p + arm, R0.T @ arm0
            if kind == records.CYLINDRICAL:
                lines.append((point, own, skew(F[:, 2])))
            elif kind == records.PLANAR:
                lines.append((point, own, F[:, 2][None]))
            elif kind != records.PRISMATIC:
                lines.append((point, own, np.eye(3)))
                points.append((point, own))
            if kind not in (records.SPHERICAL, records.UNIVERSAL):
                both = (0, 1, 2) if kind in (records.PRISMATIC, records.FIXED) else (2,)
                axes += [(F[:, j], R0.T @ F0[:, j]) for j in both]
        pose = np.array(home)
        allowed = k.task.subspace if k.constant_space else np.eye(6)
        if np.abs(allowed[3:]).max() > 0.0:
            pose[3:] = quaternion_from_rotation(_rotation(points, axes, k.characteristic_length))
        R = transform_from_pose(pose)[:3, :3]
        free = np.linalg.svd(allowed[:3], full_matrices=False)
        basis = free[0][:, free[1] > ACROSS]
        rows = np.vstack([line @ basis for _, _, line in lines])
        gaps = np.concatenate([line @ (point - R @ own - home[:3]) for point, own, line in lines])
        pose[:3] = home[:3] + basis @ np.linalg.lstsq(rows, gaps, rcond=None)[0]
        off = max(float(np.abs(line @ (point - R @ own - pose[:3])).max()) for point, own, line in lines)
        self._check_fit(off)
        return pose

    @staticmethod
    def _seen_one(
        name: str, directions: Mapping[str, ArrayLike], rates: Mapping[str, ArrayLike]
    ) -> tuple[Array, Array]:
        if name not in directions or name not in rates:
            raise ObservationError(f"the direction or the rate of '{name}' is missing")
        x, dx = np.asarray(directions[name], dtype=np.float64), np.asarray(rates[name], dtype=np.float64)
        length = float(np.linalg.norm(x)) if x.shape == (3,) and dx.shape == (3,) else 0.0
        if not (np.isfinite(length) and length > 0.0 and np.isfinite(dx).all()):
            raise ObservationError(f"the direction or the rate of '{name}' is not a finite vector of three")
        x = x / length
        return x, dx - x * (x @ dx)

    def _limb(self, first: int, stop: int) -> _Limb:
        blocks = self.tables.blocks[first:stop]
        bodies = (i for b in blocks for i in range(b["start"], b["start"] + b["count"]))
        numbers = (c for b in blocks for c in range(b["closure_start"], b["closure_start"] + b["closure_count"]))
        return _Limb(tuple(map(int, bodies)), tuple(self.tables.closures[c] for c in numbers))


def _rotation(points: list[tuple[Array, Array]], axes: list[tuple[Array, Array]], length: float) -> Array:
    """Rotation (3, 3) that best turns the second vector of each pair into the first; of points, the differences."""
    across = np.zeros((3, 3))
    for there, own in axes:
        across += length**2 * np.outer(there, own)
    if points:
        at, of = (np.array(x) for x in zip(*points, strict=True))
        across += (at - at.mean(0)).T @ (of - of.mean(0))
    U, _, Vt = np.linalg.svd(across)
    return np.asarray(U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt)


def _product(a: Array, b: Array) -> Array:
    """Product of two quaternions (4,) x y z w."""
    vector = a[3] * b[:3] + b[3] * a[:3] + cross(a[:3], b[:3])
    return np.append(vector, a[3] * b[3] - a[:3] @ b[:3])
