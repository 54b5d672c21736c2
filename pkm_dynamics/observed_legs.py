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

Elements carried by the platform (articulated travelling plate) also move with it. Loops are those of the derivatives
(`Dense`); no code is shared with the kernels, so that each tests the other. Only `of_pose` asks the kinematics, for
joint positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from pkm_description.mechanism import Array
from pkm_description.rotations import cross, quaternion_from_rotation, quaternion_product, skew, transform_from_pose
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.inverse_derivatives import Dense
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels import records
from pkm_kinematics.solve.robot_constants import refuse_redundant
from pkm_runtime.errors import PkmError

ACROSS = 1e-9  # cosine: axes that ought to be perpendicular or parallel, against rounding in a description's numbers
LEVER = 0.1  # sine of the angle between a cross's axis and its bar at home, below which the cross has to be seen too


@dataclass(frozen=True, eq=False)
class Element:
    """A body of a limb. It slides along z of its joint, or turns about it and is then observed by its direction."""

    body: int  # in the tables
    link: str  # of the description
    joint: str
    slides: bool
    d: Array  # (3,) direction in its own frame; for a cross, the axis that it carries, square to its own
    bar: int  # for a cross: the body whose direction tells how it is turned; -1 for all that are seen
    side: float  # of a cross: sign of the axis that it carries against its own axis x direction of the bar


def read_elements(k: Kinematics) -> dict[int, Element]:
    """Elements of all limb bodies by number in the tables; crosses follow the bars that they carry."""
    found: dict[int, Element] = {}
    bodies, names = k.tables.bodies, k.tables.names
    child = {joint.name: joint.child for joint in k.mechanism.joints}
    at = k.engine.placed(k.home, k.home_joints).state
    carried = {i: [j for j in range(2, len(bodies)) if bodies[j]["parent"] == i] for i in range(2, len(bodies))}
    ends = k.tables.closures
    for i in range(2, len(bodies)):
        row = bodies[i]
        link = child.get(names[i], names[i])
        slides = bool(row["prismatic"])
        direction, bar, side = _direction(k, i, carried[i]), -1, 1.0
        if len(carried[i]) == 1 and row["massless"] and row["armature"] == 0.0 and not slides:
            j = carried[i][0]
            axis, along = bodies[j]["rotation"][:, 2], _direction(k, j, carried[j])
            held = i in (*ends["predecessor"], *ends["successor"]) or bodies[j]["actuator"] >= 0
            if not (bodies[j]["prismatic"] or held or max(abs(axis[2]), abs(along[2])) > ACROSS):
                Ri, Rj = at[i]["R"], at[j]["R"]
                sine = float(cross(Ri[:, 2], Rj @ along) @ (Ri @ axis))
                if abs(sine) > LEVER:
                    direction, bar, side = axis, j, 1.0 if sine > 0.0 else -1.0
        found[i] = Element(i, link, names[i], slides, direction, bar, side)
    return found


def _direction(k: Kinematics, i: int, carried: list[int]) -> Array:
    """Direction (3,) of a body in its own frame: along a body that slides out of it, else to its end, else an axis."""
    bodies, closures = k.tables.bodies, k.tables.closures
    for j in carried:
        if bodies[j]["prismatic"]:
            slide = bodies[j]["rotation"][:, 2]
            if abs(slide[2]) < 1.0 - ACROSS:
                return np.asarray(slide if _lengthens(k, j) else -slide)
    ends = []
    for c in closures:
        for end in ("predecessor", "successor"):
            if c[end] == i:
                ends.append((c[f"{end}_point"], c[f"{end}_rotation"][:, 2]))
    ends += [(bodies[j]["translation"], bodies[j]["rotation"][:, 2]) for j in carried]
    candidates = [v for v, _ in ends] + [v for _, v in ends] + [np.array([1.0, 0.0, 0.0])]
    for v in candidates:
        flat = np.array([v[0], v[1], 0.0])
        if np.linalg.norm(flat) > ACROSS:
            return flat / np.linalg.norm(flat)
    raise AssertionError("the last candidate has a length")


def _lengthens(k: Kinematics, j: int) -> bool:
    """Whether a body that slides out of another one is, at home, ahead along its axis."""
    row = k.tables.bodies[j]
    at_home = float(k.home_joints[k.engine.body_column[j]])
    tip = np.zeros(3)
    for c in k.tables.closures:
        for end in ("predecessor", "successor"):
            if c[end] == j:
                tip = c[f"{end}_point"]
    point = row["translation"] + row["rotation"] @ tip
    return float(row["rotation"][:, 2] @ point) + at_home > 0.0


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
class _Motion:
    dense: Dense
    constraints: Array  # M (n_bodies, 6), zero for base and platform
    inverse: Array  # (n_bodies - 2, n_rows): from what the loops open by to the rates that close them
    space: Array  # (6, n)


class ObservedLegs:
    """The element model of any one robot."""

    def __init__(self, dynamics: Dynamics) -> None:
        if len(dynamics.robot.springs):
            raise ObservationError(
                f"{dynamics.mechanism.name} has springs; this model does not support them: use Dynamics"
            )
        refuse_redundant(dynamics.kinematics.redundant_names, "observed legs")
        self.dynamics, self.kinematics = dynamics, dynamics.kinematics
        self.tables = self.kinematics.tables
        self._root = [records.BASE, records.PLATFORM]  # of every body: which of the two carries it
        for row in self.tables.bodies[2:]:
            self._root.append(self._root[int(row["parent"])])
        self._limbs = [self._slices(first, stop) for first, stop in self.tables.limbs]
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
        qd = motion.constraints @ twist
        motion.dense.move(twist[None], qd[None])
        for i, e in enumerate(self._visible):
            if e.slides:
                ds[i] = qd[e.body]
            else:
                dx[i] = cross(motion.dense.w[0, e.body].real, x[i])
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
        opened = motion.dense.J[0].real @ self._observed_rates(motion.dense, x, dx, ds, np.zeros(3))[2:]
        rows = self._fit_rows(motion.dense, x) @ motion.space
        if np.linalg.matrix_rank(rows, tol=REGULAR) < rows.shape[1]:
            raise ObservationError("the limbs' ends do not determine the motion of the platform")
        twist = -motion.space @ np.linalg.lstsq(rows, opened, rcond=None)[0]
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
        motion, dense, S = (found := self._motion(state)), found.dense, found.space
        twist, wanted = state.twist[None], np.asarray(acceleration, dtype=np.float64)[None]
        qd = (motion.constraints @ state.twist).astype(complex)[None]
        qdd = np.zeros_like(qd)
        dense.move(twist, qd)
        qdd[0, 2:] = -motion.inverse @ dense.accelerate(wanted, qdd)[0].real
        dense.accelerate(wanted, qdd)
        efforts, force = (x[0].real for x in dense.forces(qd, qdd, external, self.dynamics.friction))
        driven = self.tables.bodies["actuator"]
        order = [int(np.flatnonzero(driven == a)[0]) for a in range(len(self.kinematics.actuated_names))]
        return S.T @ motion.constraints[order].T, -S.T @ (motion.constraints.T @ efforts + force)

    # -- orientations from directions -------------------------------------------------------------------------------

    def _placed(self, x: Array, s: Array, pose: Array) -> Dense:
        bodies = self.tables.bodies
        R, p = np.zeros((len(bodies), 3, 3)), np.zeros((len(bodies), 3))
        R[records.BASE], R[records.PLATFORM] = np.eye(3), transform_from_pose(pose)[:3, :3]
        p[records.PLATFORM] = pose[:3]
        for i, e in self.elements.items():
            row = bodies[i]
            on = int(row["parent"])
            R[i], p[i] = R[on] @ row["rotation"], p[on] + R[on] @ row["translation"]
            z = R[i, :, 2].copy()
            if e.slides:
                p[i] += s[self._row[i]] * z
            else:
                R[i] = self._turned(e, z, x)
        still = np.zeros((1, len(bodies), 6))
        return Dense(bodies, self.tables.closures, self.tables.gravity, R, p, still, 0.0)

    def _turned(self, e: Element, z: Array, x: Array) -> Array:
        """Orientation of an element from its joint axis z and its direction, or that of its bar."""
        seen = e.side * cross(z, x[self._row[e.bar]]) if e.bar >= 0 else x[self._row[e.body]]
        seen, own = seen - z * (z @ seen), e.d - Z * e.d[2]
        square = float(seen @ seen)
        if not square > ACROSS**2:
            name = self.elements[e.bar].link if e.bar >= 0 else e.link
            raise ObservationError(
                f"'{name}' lies along the axis of joint '{e.joint}': its direction determines no angle"
            )
        seen, own = seen / sqrt(square), own / sqrt(own @ own)
        return np.outer(seen, own) + np.outer(z, Z) + np.outer(cross(z, seen), cross(Z, own))

    def _observed_rates(self, dense: Dense, x: Array, dx: Array, ds: Array, turning: Array) -> Array:
        """Joint rates (n_bodies,) from observed rates and the platform's angular velocity `turning` (3,)."""
        qd, w = np.zeros(len(dense.bodies)), np.zeros((len(dense.bodies), 3))
        w[records.PLATFORM] = turning
        for i, e in self.elements.items():
            w[i] = w[int(dense.bodies[i]["parent"])]
            if e.slides:
                qd[i] = ds[self._row[i]]
                continue
            z, k = dense.z[0, i].real, self._row[e.bar if e.bar >= 0 else i]
            y, dy = x[k], dx[k]
            # of a cross, what turns the bar's direction along the axis that it carries
            lever = dense.R[0, i].real @ e.d if e.bar >= 0 else cross(z, y)
            qd[i] = lever @ (dy - cross(w[i], y)) / (lever @ cross(z, y))
            w[i] += qd[i] * z
        return qd

    # -- motion constraints -----------------------------------------------------------------------------------------

    def _motion(self, state: Observed) -> _Motion:
        dense, k = self._placed(state.directions, state.lengths, state.pose), self.kinematics
        J, G = dense.J[0].real, dense.G[0].real
        inverse, M = np.zeros(J.T.shape), np.zeros((len(dense.bodies), 6))
        for rows, joints in self._limbs:
            inverse[joints, rows] = np.linalg.pinv(J[rows, joints], rcond=REGULAR)
        M[2:] = -inverse @ G
        space = k.task.subspace
        if not k.constant_space:  # what the platform's own branch allows and no limb resists
            allowed = k.engine.spaces.allowed_at(state.pose)
            space = allowed @ np.linalg.svd((G + J @ M[2:]) @ allowed)[2][-k.mobility :].T
        return _Motion(dense, M, inverse, np.asarray(space))

    # -- the platform from where the limbs end ------------------------------------------------------------------------

    def _fitted(self, x: Array, s: Array) -> Array:
        hung = any(root == records.PLATFORM for root in self._root[2:])
        return self._fitted_from_home(x, s) if hung else self._fitted_at_once(x, s)

    def _fitted_from_home(self, x: Array, s: Array) -> Array:
        """By Gauss-Newton: where the platform carries elements, the limbs' ends are not points of it."""
        k = self.kinematics
        pose = np.array(k.home)
        allowed = k.task.subspace if k.constant_space else np.eye(6)
        for _ in range(ATTEMPTS):
            dense = self._placed(x, s, pose)
            gaps = dense.gaps[0].real
            step = -allowed @ np.linalg.lstsq(self._fit_rows(dense, x) @ allowed, gaps, rcond=None)[0]
            pose[:3] += step[:3]
            turn = np.append(0.5 * step[3:], 1.0)
            pose[3:] = quaternion_product(turn / sqrt(turn @ turn), pose[3:])
            if np.abs(step).max() < FITTED:
                break
        else:
            raise ObservationError("no pose of the platform fits the directions")
        self._check_fit(float(np.abs(gaps).max()))
        return pose

    def _fit_rows(self, dense: Dense, x: Array) -> Array:
        """Rates of all loop equations per platform twist (rows, 6) at constant observed directions."""
        still, none, rows = np.zeros_like(x), np.zeros(len(x)), dense.G[0].real.copy()
        for j, turning in enumerate(np.eye(3)):
            rows[:, 3 + j] += dense.J[0].real @ self._observed_rates(dense, x, still, none, turning)[2:]
        return rows

    def _check_fit(self, off: float) -> None:
        if off > MISFIT * self.kinematics.characteristic_length:
            raise ObservationError(f"the limbs do not reach the platform: one ends {off:.3g} m from its joint there")

    def _fitted_at_once(self, x: Array, s: Array) -> Array:
        """By one singular value decomposition: the limbs' ends are points and directions of the platform."""
        home, k = self.kinematics.home, self.kinematics
        dense = self._placed(x, s, home)
        at, p = dense.R[0].real, dense.p[0].real
        points: list[tuple[Array, Array]] = []  # where they are, and where in the platform's frame
        axes: list[tuple[Array, Array]] = []
        lines: list[tuple[Array, Array, Array]] = []  # points, and in what directions they are held
        for row in self.tables.closures:
            if records.PLATFORM not in (int(row["predecessor"]), int(row["successor"])):
                continue
            on = "successor" if row["successor"] == records.PLATFORM else "predecessor"
            limb = "predecessor" if on == "successor" else "successor"
            i, kind = int(row[limb]), int(row["kind"])
            point, F = p[i] + at[i] @ row[f"{limb}_point"], at[i] @ row[f"{limb}_rotation"]
            own, F0 = row[f"{on}_point"], row[f"{on}_rotation"]
            if kind == records.CYLINDRICAL:
                lines.append((point, own, skew(F[:, 2])))
            elif kind == records.PLANAR:
                lines.append((point, own, F[:, 2][None]))
            elif kind != records.PRISMATIC:
                lines.append((point, own, np.eye(3)))
                points.append((point, own))
            if kind not in (records.SPHERICAL, records.UNIVERSAL):
                both = (0, 1, 2) if kind in (records.PRISMATIC, records.FIXED) else (2,)
                axes += [(F[:, j], F0[:, j]) for j in both]
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

    def _slices(self, first: int, stop: int) -> tuple[slice, slice]:
        """Rows of the closures of a limb, and its joints, of blocks from `first` up to `stop`."""
        blocks = self.tables.blocks[first:stop]
        rows = slice(int(blocks["rows_at"][0]), int(blocks["rows_at"][-1] + blocks["rows"][-1]))
        return rows, slice(int(blocks["start"][0]) - 2, int(blocks["start"][-1] + blocks["count"][-1]) - 2)


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
