# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics from observed legs: kinematic elements in space, `A Gamma + b = 0`.

Özgür, Andreff and Martinet, "Linear dynamic modeling of parallel kinematic manipulators from observable kinematic
elements", Mechanism and Machine Theory 2013, for bars in space. The state is redundant: unit vectors along the bars and
their rates, as a camera sees them, or from a pose. With them every equation is linear, and none has an angle or a
trigonometric function: a bar's orientation follows from its direction and the axis it turns about, velocities from
solving for one unknown at a time. Forces are projected on the platform's freedoms by the bodies' partial velocities
(the paper's dynamic coordinates, equations 53 and 64).

Covered are limbs of a *carrier* and *bars*. A carrier is an arm that turns on the base, a slider, or nothing. A bar
points from its joint to where it meets the platform in a spherical joint, or in a revolute joint of a planar robot. It
is carried on a universal joint, or on a revolute joint across it, and may be extensible. That is most of the gallery;
`ObservedLegs` says what it misses of other robots. It shares no code with the kernels, so that each tests the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt, tanh
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pkm_description.errors import PkmError
from pkm_description.mechanism import Array
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.kernels.wrenches import COULOMB_SPEED
from pkm_kinematics.kernels import records
from pkm_kinematics.pose import transform_of

ACROSS = 1e-9  # cosine: axes that ought to be perpendicular or parallel, against rounding in a description's numbers
MISFIT = 0.1  # of the characteristic length: how far observed bars may end from the platform's joints
Z = np.array([0.0, 0.0, 1.0])


class ObservationError(PkmError):
    """A robot that is not made of carriers and bars, or a state that it cannot have."""


@dataclass(frozen=True, eq=False)
class Carrier:
    """A body that turns about, or slides along, an axis fixed in the base; None of both for the base itself."""

    body: int
    name: str
    origin: Array  # (3,) on the axis, base frame
    axis: Array  # (3,)
    slides: bool
    e: Array  # (3,) body frame, across the axis: the direction that is seen


@dataclass(frozen=True, eq=False)
class Bar:
    """A body that points from its joint to the platform."""

    body: int
    cross: int  # body between the two axes of a universal joint, -1 for a revolute joint
    rod: int  # body that slides out of the bar, -1 where the length is constant
    name: str
    carrier: int  # index, -1 for the base
    start: Array  # (3,) joint centre in the frame of the carrier's body
    first: Array  # (3,) axis of the joint, frame of the carrier's body
    d: Array  # (3,) direction of the bar in its own frame, across z
    side: float  # sign of the second axis against first x direction
    length: float  # from joint to platform; for an extensible bar with its rod at zero
    along: float  # +1 where a sliding rod lengthens the bar, -1 where it shortens it
    end: Array  # (3,) in the platform's frame


@dataclass(frozen=True, eq=False)
class Observed:
    """Directions (n, 3) of all elements and their rates, with lengths of sliders and extensions; platform to match."""

    directions: Array  # (n, 3), carriers first, then bars; zeros for sliders
    rates: Array  # (n, 3)
    lengths: Array  # (n,) position of a slider or of an extension [m], 0 for others
    length_rates: Array  # (n,)
    pose: Array  # (7,)
    twist: Array  # (6,)


@dataclass(eq=False)
class _Moving:
    """A body's orientation, origin, and what moves: real velocities and accelerations, or those of one freedom."""

    R: Array
    p: Array
    w: Array = field(default_factory=lambda: np.zeros(3))
    v: Array = field(default_factory=lambda: np.zeros(3))
    dw: Array = field(default_factory=lambda: np.zeros(3))
    dv: Array = field(default_factory=lambda: np.zeros(3))

    def at(self, r: Array) -> tuple[Array, Array]:
        """Velocity and acceleration of the body's point at r (3,) from its origin, base axes."""
        return self.v + cross(self.w, r), (self.dv + cross(self.dw, r) + cross(self.w, cross(self.w, r)))


class ObservedLegs:
    """The element model of one robot. Raises `ObservationError` for robots that it does not cover."""

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics, self.kinematics = dynamics, dynamics.kinematics
        if not self.kinematics.constant_space:
            raise ObservationError(f"{dynamics.mechanism.name}: its motion space turns with the pose")
        self.tables = self.kinematics.tables
        self.S: Array = self.kinematics.task.subspace
        self.carriers: list[Carrier] = []
        self.bars: list[Bar] = []
        self._seen = {records.BASE, records.PLATFORM}
        for closure in self.tables.closures:
            self._read(closure)
        left = [self.tables.names[i] for i in range(len(self.tables.bodies)) if i not in self._seen]
        if left:
            raise ObservationError(
                f"joint '{left[0]}' belongs to neither a carrier nor a bar that ends on the platform"
            )
        child = {joint.name: joint.child for joint in dynamics.mechanism.joints}
        links = [child[element.name] for element in self._elements()]
        self.names = tuple(links)  # of the elements: links of the description
        self.seen = tuple(x for k, x in enumerate(links) if not self._slides(k))  # those whose directions are needed
        self.measured = tuple(filter(None, map(self._length_joint, range(len(links)))))  # joints whose positions are
        self._home_sides = self._sides()

    # -- state ------------------------------------------------------------------------------------------------------

    def of_pose(self, pose: ArrayLike, twist: ArrayLike | None = None) -> Observed:
        """What would be seen at a pose (7,) and twist (6,), in home's working mode."""
        pose = np.asarray(pose, dtype=np.float64)
        twist = np.zeros(6) if twist is None else np.asarray(twist, dtype=np.float64)
        n = len(self.names)
        x, s = np.zeros((n, 3)), np.zeros(n)
        R, P = transform_of(pose)[:3, :3], pose[:3]
        for k, carrier in enumerate(self.carriers):
            bar = next(b for b in self.bars if b.carrier == k)
            x[k], s[k] = self._carrier_reaching(carrier, bar, P + R @ bar.end, self._home_sides[k])
        for k, bar in enumerate(self.bars, len(self.carriers)):
            at = self._carried(bar, x, s)
            reach = P + R @ bar.end - at.p - at.R @ bar.start
            length = float(np.linalg.norm(reach))
            x[k] = reach / length
            s[k] = bar.along * (length - bar.length) if bar.rod >= 0 else 0.0
        still = Observed(x, np.zeros_like(x), s, np.zeros(n), pose, twist)
        return self._with_rates(still, twist)

    def of_directions(
        self,
        directions: Mapping[str, ArrayLike],
        rates: Mapping[str, ArrayLike],
        lengths: Mapping[str, float] | None = None,
        length_rates: Mapping[str, float] | None = None,
    ) -> Observed:
        """State from directions (3,) of arms and bars and their rates (3,), base axes, by link (see `seen`).

        Sliders and extensions are read from encoders: `lengths` [m] and `length_rates` [m/s] by joint (`measured`). The
        platform follows from the bars' ends, which are points of it, by linear least squares and one singular value
        decomposition. Raises `ObservationError` for what is missing or impossible.
        """
        n, lengths, length_rates = len(self.names), lengths or {}, length_rates or {}
        x, dx, s, ds = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(n), np.zeros(n)
        for k, name in enumerate(self.names):
            if not self._slides(k):
                x[k], dx[k] = self._seen_one(name, directions, rates)
            joint = self._length_joint(k)
            if joint:
                if joint not in lengths or joint not in length_rates:
                    raise ObservationError(f"the position or the speed of joint '{joint}' is missing")
                s[k], ds[k] = float(lengths[joint]), float(length_rates[joint])
                if not np.isfinite([s[k], ds[k]]).all():
                    raise ObservationError(f"the position or the speed of joint '{joint}' is not finite")
        ends = np.zeros((len(self.bars), 3))
        for k, bar in enumerate(self.bars):
            at = self._carried(bar, x, s)
            i = len(self.carriers) + k
            ends[k] = at.p + at.R @ bar.start + (bar.length + bar.along * s[i]) * x[i]
        pose = self._fitted(ends)
        R = transform_of(pose)[:3, :3]
        off = max(float(np.linalg.norm(pose[:3] + R @ b.end - end)) for b, end in zip(self.bars, ends, strict=True))
        if off > MISFIT * self.kinematics.characteristic_length:
            raise ObservationError(f"the bars do not meet at the platform: one ends {off:.3g} m from its joint there")
        speeds, arms = np.zeros((len(self.bars), 3)), np.zeros((len(self.bars), 3))
        for k, bar in enumerate(self.bars):
            i = len(self.carriers) + k
            at = self._carried(bar, x, s)
            c = self.carriers[bar.carrier] if bar.carrier >= 0 else None
            if c is not None:
                at.v = ds[bar.carrier] * c.axis if c.slides else at.v
                at.w = np.zeros(3) if c.slides else c.axis * (cross(c.axis, x[bar.carrier]) @ dx[bar.carrier])
            start = at.at(at.R @ bar.start)[0]
            speeds[k] = start + (bar.length + bar.along * s[i]) * dx[i] + bar.along * ds[i] * x[i]
            arms[k] = R @ bar.end
        rows = np.vstack([np.hstack([np.eye(3), -_skew(r)]) @ self.S for r in arms])
        if np.linalg.matrix_rank(rows, tol=1e-9) < self.S.shape[1]:
            raise ObservationError("the bars' ends do not determine how the platform moves")
        twist = self.S @ np.linalg.lstsq(rows, speeds.ravel(), rcond=None)[0]
        return Observed(x, dx, s, ds, pose, twist)

    # -- dynamics ---------------------------------------------------------------------------------------------------

    def inverse(self, state: Observed, acceleration: ArrayLike, wrench: ArrayLike | None = None) -> Array:
        """Actuator efforts (n_actuated,) for a platform acceleration (6,) at a state; `wrench` (6,) acts from outside.

        Redundant actuators share by minimum norm.
        """
        A, b = self.linear_model(state, acceleration, wrench)
        return np.asarray(-np.linalg.pinv(A) @ b)

    def linear_model(
        self, state: Observed, acceleration: ArrayLike, wrench: ArrayLike | None = None
    ) -> tuple[Array, Array]:
        """A (n, n_actuated) and b (n,) of `A Gamma + b = 0`, in the platform's n freedoms (equation 64)."""
        force = np.zeros(6) if wrench is None else np.asarray(wrench, dtype=np.float64)
        bodies, rates, seconds = self._bodies(state, state.twist, np.asarray(acceleration, dtype=np.float64), True)
        loads = {i: self._load(i, m) for i, m in bodies.items()}
        A, b = np.zeros((self.S.shape[1], len(self.kinematics.actuated_names))), self.S.T @ force
        for freedom in range(self.S.shape[1]):
            parts, partial, _ = self._bodies(state, self.S[:, freedom], np.zeros(6), False)
            for i, (f, torque) in loads.items():
                b[freedom] += f @ parts[i].v + torque @ parts[i].w
            for i, rate in partial.items():
                row = self.tables.bodies[i]
                b[freedom] -= rate * float(row["armature"]) * seconds[i]
                if self.dynamics.friction:
                    resists = row["viscous"] * rates[i] + row["coulomb"] * tanh(rates[i] / COULOMB_SPEED)
                    b[freedom] -= rate * float(resists)
                if row["actuator"] >= 0:
                    A[freedom, row["actuator"]] = rate
        return A, b

    def _load(self, i: int, at: _Moving) -> tuple[Array, Array]:
        """Weight and inertia of a body as force and torque (3,) at its origin."""
        row = self.tables.bodies[i]
        a = at.dv - np.asarray(self.tables.gravity)
        h = at.R @ row["moment"]
        xx, xy, xz, yy, yz, zz = row["inertia"]
        inertia = at.R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ at.R.T
        force = row["mass"] * a + cross(at.dw, h) + cross(at.w, cross(at.w, h))
        torque = inertia @ at.dw + cross(at.w, inertia @ at.w) + cross(h, a)
        return -force, -torque

    # -- motion: velocities are linear in the platform's twist, one unknown at a time ---------------------------------

    def _bodies(
        self, state: Observed, twist: Array, acceleration: Array, real: bool
    ) -> tuple[dict[int, _Moving], dict[int, float], dict[int, float]]:
        """Motion of all bodies, joint rates and their second rates, by body; `real`: with what squares of rates add."""
        bodies: dict[int, _Moving] = {}
        rates: dict[int, float] = {}
        seconds: dict[int, float] = {}
        x, s = state.directions, state.lengths
        platform = _Moving(transform_of(state.pose)[:3, :3], state.pose[:3], twist[3:], twist[:3])
        platform.dw, platform.dv = acceleration[3:], acceleration[:3]
        bodies[records.PLATFORM] = platform

        def squares(moving: _Moving, r: Array) -> tuple[Array, Array]:
            velocity, second = moving.at(r)
            return velocity, second if real else np.zeros(3)

        for k, carrier in enumerate(self.carriers):  # the first bar's constant length tells how the carrier moves
            bar = self.bars[next(i for i, b in enumerate(self.bars) if b.carrier == k)]
            at = self._carried(bar, x, s)
            y = x[len(self.carriers) + self.bars.index(bar)]
            dB, ddB = squares(platform, platform.R @ bar.end)
            r = at.R @ bar.start
            lever = carrier.axis if carrier.slides else cross(carrier.axis, at.p + r - carrier.origin)
            through = float(y @ lever)
            rate = float(y @ dB) / through
            rates[carrier.body] = rate
            if carrier.slides:
                at.v = rate * carrier.axis
            else:
                at.w = rate * carrier.axis
            if real:
                dA, without = at.at(r)
                relative = dB - dA
                second = (float(y @ (ddB - without)) + float(relative @ relative) / bar.length) / through
                seconds[carrier.body] = second
                if carrier.slides:
                    at.dv = second * carrier.axis
                else:
                    at.dw = second * carrier.axis
            bodies[carrier.body] = at
        for k, bar in enumerate(self.bars, len(self.carriers)):
            at = bodies[self.carriers[bar.carrier].body] if bar.carrier >= 0 else _Moving(np.eye(3), np.zeros(3))
            self._bar(bar, x[k], s[k], at, squares(platform, platform.R @ bar.end), bodies, rates, seconds, real)
        return bodies, rates, seconds

    def _bar(
        self, bar: Bar, x: Array, s: float, at: _Moving, end: tuple[Array, Array],
        bodies: dict[int, _Moving], rates: dict[int, float], seconds: dict[int, float], real: bool,
    ) -> None:  # fmt: skip
        """Motion of a bar whose start is carried by `at` and whose end moves with `end`."""
        r = at.R @ bar.start
        u = at.R @ bar.first
        w = self._second_axis(bar, u, x)
        length = bar.length + bar.along * s
        start, start2 = at.at(r)
        dx = (end[0] - start - x * (x @ (end[0] - start))) / length  # rate of x; what is along x lengthens the bar
        stretch = float(x @ (end[0] - start))
        R = np.outer(x, bar.d) + np.outer(w, Z) + np.outer(cross(w, x), cross(Z, bar.d))
        me = _Moving(R, at.p + r, v=start)
        first, second = self._turns(bar, u, w, x, dx - cross(at.w, x))
        me.w = at.w + first * u + second * w
        if real:
            stretch2 = float(x @ (end[1] - start2)) + length * float(dx @ dx)
            ddx = (end[1] - start2 - stretch2 * x - 2.0 * stretch * dx) / length
            drift = at.dw + first * cross(at.w, u) + second * cross(at.w + first * u, w)
            first2, second2 = self._turns(bar, u, w, x, ddx - cross(me.w, dx) - cross(drift, x))
            me.dw, me.dv = drift + first2 * u + second2 * w, start2
            seconds[bar.body] = second2
            if bar.cross >= 0:
                seconds[bar.cross] = first2
        bodies[bar.body], rates[bar.body] = me, second
        if bar.cross >= 0:
            rates[bar.cross] = first  # the cross has no inertia
        if bar.rod >= 0:
            row = self.tables.bodies[bar.rod]
            axis = bar.along * x
            slide = R @ row["translation"] + s * axis
            rod = _Moving(R @ row["rotation"], me.p + slide, me.w)
            velocity, second_rate = me.at(slide)
            rod.v = velocity + stretch * x
            rates[bar.rod] = bar.along * stretch
            if real:
                rod.dw = me.dw
                rod.dv = second_rate + stretch2 * x + 2.0 * stretch * cross(me.w, x)
                seconds[bar.rod] = bar.along * stretch2
            bodies[bar.rod] = rod

    @staticmethod
    def _turns(bar: Bar, u: Array, w: Array, x: Array, rate: Array) -> tuple[float, float]:
        """Rates about the first and second axis that turn x with `rate`: (a u + b w) x direction = rate."""
        across = cross(w, x)
        if bar.cross < 0:
            return 0.0, float(rate @ across)
        ux = cross(u, x)
        first = float(rate @ w) / float(ux @ w)
        return first, float((rate - first * ux) @ across)

    def _second_axis(self, bar: Bar, u: Array, x: Array) -> Array:
        if bar.cross < 0:
            return u
        w = cross(u, x)
        return np.asarray(bar.side * w / sqrt(w @ w))

    # -- positions --------------------------------------------------------------------------------------------------

    def _carried(self, bar: Bar, x: Array, s: Array) -> _Moving:
        """The body that carries a bar, at rest."""
        if bar.carrier < 0:
            return _Moving(np.eye(3), np.zeros(3))
        carrier = self.carriers[bar.carrier]
        base = self.tables.bodies[carrier.body]["rotation"]
        if carrier.slides:
            return _Moving(base, carrier.origin + s[bar.carrier] * carrier.axis)
        p, z, e = x[bar.carrier], carrier.axis, carrier.e
        R = np.outer(p, e) + np.outer(z, Z) + np.outer(cross(z, p), cross(Z, e))
        return _Moving(R, carrier.origin)

    def _carrier_reaching(self, carrier: Carrier, bar: Bar, end: Array, side: float) -> tuple[Array, float]:
        """Direction of an arm, or position of a slider, from which a bar reaches a point: a sphere meets a circle."""
        r, z = end - carrier.origin, carrier.axis
        if carrier.slides:
            r = r - self.tables.bodies[carrier.body]["rotation"] @ bar.start
            along = float(z @ r)
            square = along**2 - float(r @ r) + bar.length**2
            if square < 0.0:
                raise ObservationError(f"bar '{bar.name}' does not reach the pose")
            return np.zeros(3), along + side * sqrt(square)
        # the joint centre in the arm: radius e-wise, offset across, height along the axis
        a, c, h = float(bar.start @ carrier.e), float(bar.start @ cross(Z, carrier.e)), float(bar.start[2])
        flat = r - z * (z @ r)
        turned = cross(z, flat)
        rho2, m2 = a * a + c * c, float(flat @ flat)
        # (a p + c z x p) . flat = k, |p| = 1
        k = 0.5 * (m2 + (float(z @ r) - h) ** 2 + rho2 - bar.length**2)
        square = rho2 * m2 - k * k
        if square < 0.0:
            raise ObservationError(f"bar '{bar.name}' does not reach the pose")
        root = side * sqrt(square)
        # p in the basis (flat, z x flat): the unit vector whose product with the turned lever is k
        p1, p2 = (a * k - c * root) / (rho2 * m2), (c * k + a * root) / (rho2 * m2)
        return np.asarray(p1 * flat + p2 * turned), 0.0

    def _sides(self) -> list[float]:
        """On which side each carrier is at home."""
        k = self.kinematics
        at = k.engine.placed(k.home, k.home_joints)
        R, P = transform_of(k.home)[:3, :3], k.home[:3]
        found = []
        for i, carrier in enumerate(self.carriers):
            bar = next(b for b in self.bars if b.carrier == i)
            there = at.state[carrier.body]
            errors = []
            for side in (1.0, -1.0):
                p, s = self._carrier_reaching(carrier, bar, P + R @ bar.end, side)
                errors.append(abs(s - there["q"]) if carrier.slides else np.linalg.norm(p - there["R"] @ carrier.e))
            found.append(1.0 if errors[0] <= errors[1] else -1.0)
        return found

    def _with_rates(self, state: Observed, twist: Array) -> Observed:
        bodies, rates, _ = self._bodies(state, twist, np.zeros(6), False)
        dx, ds = np.zeros_like(state.rates), np.zeros(len(self.names))
        for k, element in enumerate(self._elements()):
            dx[k] = cross(bodies[element.body].w, state.directions[k])
            if self._length_joint(k):
                ds[k] = rates[element.body if isinstance(element, Carrier) else element.rod]
        return Observed(state.directions, dx, state.lengths, ds, state.pose, twist)

    def _fitted(self, ends: Array) -> Array:
        """The pose (7,) whose points on the platform are nearest to `ends` (n, 3), in the platform's freedoms."""
        points = np.array([bar.end for bar in self.bars])
        home = self.kinematics.home
        pose = np.array(home)
        if np.abs(self.S[3:]).max() > 0.0:
            across = (ends - ends.mean(0)).T @ (points - points.mean(0))
            U, _, Vt = np.linalg.svd(across)
            R = U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt
            pose[3:] = _quaternion(R)
        R = transform_of(pose)[:3, :3]
        pose[:3] = (ends - points @ R.T).mean(0)
        free = np.linalg.svd(self.S[:3], full_matrices=False)
        basis = free[0][:, free[1] > 1e-9]
        pose[:3] = home[:3] + basis @ (basis.T @ (pose[:3] - home[:3]))
        return pose

    # -- reading the description ------------------------------------------------------------------------------------

    def _elements(self) -> list[Carrier | Bar]:
        return [*self.carriers, *self.bars]

    def _slides(self, k: int) -> bool:
        return k < len(self.carriers) and self.carriers[k].slides

    def _length_joint(self, k: int) -> str:
        """Name of the joint that gives an element's length; empty where it is constant."""
        if k < len(self.carriers):
            return self.carriers[k].name if self.carriers[k].slides else ""
        rod = self.bars[k - len(self.carriers)].rod
        return self.tables.names[rod] if rod >= 0 else ""

    @staticmethod
    def _seen_one(name: str, directions: Mapping[str, ArrayLike], rates: Mapping[str, ArrayLike]) -> tuple[Any, Any]:
        if name not in directions or name not in rates:
            raise ObservationError(f"the direction or the rate of '{name}' is missing")
        x, dx = np.asarray(directions[name], dtype=np.float64), np.asarray(rates[name], dtype=np.float64)
        length = float(np.linalg.norm(x)) if x.shape == (3,) and dx.shape == (3,) else 0.0
        if not (np.isfinite(length) and length > 0.0 and np.isfinite(dx).all()):
            raise ObservationError(f"the direction or the rate of '{name}' is not a finite vector of three")
        x = x / length
        return x, dx - x * (x @ dx)

    def _read(self, closure: Any) -> None:
        """Take the bar that a closure joins to the platform, and its carrier, into the model."""
        bodies, names = self.tables.bodies, self.tables.names
        ends = (int(closure["predecessor"]), int(closure["successor"]))
        if records.PLATFORM not in ends or closure["kind"] not in (records.SPHERICAL, records.REVOLUTE):
            raise ObservationError("a loop joins other bodies than a bar and the platform")
        here, there = ("predecessor", "successor") if ends[1] == records.PLATFORM else ("successor", "predecessor")
        last, tip = int(closure[here]), closure[f"{here}_point"]
        rod, body = (last, int(bodies[last]["parent"])) if bodies[last]["prismatic"] == 1 else (-1, last)
        carrier_body = -1
        middle = -1
        if bodies[body]["prismatic"] == 1 or body == records.BASE:
            raise ObservationError(f"joint '{names[last]}' does not turn a bar")
        if closure["kind"] == records.SPHERICAL:
            middle = int(bodies[body]["parent"])
            if middle in (records.BASE, records.PLATFORM) or bodies[middle]["prismatic"] == 1:
                raise ObservationError(f"bar '{names[body]}' is not carried on a universal joint")
            if not bodies[middle]["massless"] or bodies[middle]["armature"] > 0.0:
                raise ObservationError(f"the cross '{names[middle]}' of a universal joint has inertia")
        joint = body if middle < 0 else middle
        parent = int(bodies[joint]["parent"])
        if parent != records.BASE:
            carrier_body = parent
            if bodies[parent]["parent"] != records.BASE:
                raise ObservationError(f"joint '{names[parent]}' is not fixed to the base")
        self._add(closure[f"{there}_point"], tip, (carrier_body, joint, middle, body, rod))

    def _add(self, end: Array, tip: Array, chain: tuple[int, int, int, int, int]) -> None:
        bodies, names = self.tables.bodies, self.tables.names
        carrier_body, joint, middle, body, rod = chain
        name = names[body]
        start, first = bodies[joint]["translation"], bodies[joint]["rotation"][:, 2]
        turned = abs(bodies[body]["rotation"][2, 2])  # cosine between the two axes of the joint
        if middle >= 0 and max(np.abs(bodies[body]["translation"]).max(), turned) > ACROSS:
            raise ObservationError(f"the axes of the universal joint of '{name}' do not cross at a right angle")
        point = tip
        along = 1.0
        if rod >= 0:
            row = bodies[rod]
            point = row["translation"] + row["rotation"] @ tip
            slide = row["rotation"][:, 2]
            off = point - slide * (slide @ point)
            if np.abs(off).max() > ACROSS:
                raise ObservationError(f"bar '{name}' does not slide along itself")
        if middle < 0:
            start, point = start + bodies[joint]["rotation"] @ Z * point[2], point * np.array([1.0, 1.0, 0.0])
        length = float(np.linalg.norm(point))
        if rod >= 0:
            at_home = float(self.kinematics.home_joints[self.kinematics.engine.body_column[rod]])
            forward = float(slide @ point) + at_home > 0.0
            d = slide if forward else -slide
            along, length = (1.0, float(slide @ point)) if forward else (-1.0, -float(slide @ point))
        else:
            if length < ACROSS:
                raise ObservationError(f"bar '{name}' has no length")
            d = point / length
        if abs(d[2]) > ACROSS:
            raise ObservationError(f"bar '{name}' does not lie across the axis that it turns about")
        number = -1
        if carrier_body >= 0:
            number = self._carrier(carrier_body, start)
        at = self.kinematics.engine.placed(self.kinematics.home, self.kinematics.home_joints)
        side = 1.0
        if middle >= 0:
            Rb, Rc = at.state[body]["R"], at.state[middle]["R"]
            side = 1.0 if cross(Rc[:, 2], Rb @ d) @ Rb[:, 2] >= 0.0 else -1.0
        self._seen |= {joint, body, *((rod,) if rod >= 0 else ())}
        self.bars.append(
            Bar(
                body, middle, rod, name, number, np.array(start), np.array(first), np.array(d), side, length, along,
                np.array(end),
            )
        )  # fmt: skip

    def _carrier(self, body: int, start: Array) -> int:
        for k, carrier in enumerate(self.carriers):
            if carrier.body == body:
                return k
        row = self.tables.bodies[body]
        e = np.array([start[0], start[1], 0.0])
        if row["prismatic"] == 0 and np.linalg.norm(e) < ACROSS:
            raise ObservationError(f"arm '{self.tables.names[body]}' has no length")
        e = e / np.linalg.norm(e) if np.linalg.norm(e) > ACROSS else np.array([1.0, 0.0, 0.0])
        axis = row["rotation"][:, 2]
        self.carriers.append(
            Carrier(
                body, self.tables.names[body], np.array(row["translation"]), np.array(axis), bool(row["prismatic"]), e
            )
        )
        self._seen.add(body)
        return len(self.carriers) - 1


def cross(u: Array, v: Array) -> Array:
    """u x v for vectors (3,), a tenth of the time that NumPy's takes."""
    a, b, c = u.tolist()
    d, e, f = v.tolist()
    return np.array([b * f - c * e, c * d - a * f, a * e - b * d])


def _skew(r: Array) -> Array:
    return np.array([[0.0, -r[2], r[1]], [r[2], 0.0, -r[0]], [-r[1], r[0], 0.0]])


def _quaternion(R: Array) -> Array:
    """Unit quaternion (x, y, z, w) of a rotation matrix, w >= 0, by square roots alone."""
    four = np.array(
        [
            [1 + R[0, 0] - R[1, 1] - R[2, 2], R[0, 1] + R[1, 0], R[0, 2] + R[2, 0], R[2, 1] - R[1, 2]],
            [R[0, 1] + R[1, 0], 1 - R[0, 0] + R[1, 1] - R[2, 2], R[1, 2] + R[2, 1], R[0, 2] - R[2, 0]],
            [R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], 1 - R[0, 0] - R[1, 1] + R[2, 2], R[1, 0] - R[0, 1]],
            [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], 1 + R[0, 0] + R[1, 1] + R[2, 2]],
        ]
    )
    best = four[int(np.argmax(np.diag(four)))]
    best = best / np.linalg.norm(best)
    return np.asarray(best if best[3] >= 0.0 else -best)
