# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics by kinematic elements, `A Gamma + b = 0`, for planar limbs of two bars that meet in a point.

Özgür, Andreff and Martinet, "Linear dynamic modeling of parallel kinematic manipulators from observable kinematic
elements", Mechanism and Machine Theory 2013; numbers are the paper's equations. The redundant state is the unit vectors
of the bars and their rates, from encoders or a camera; no equation has a trigonometric function or an angle. Forces on
the bars (table 2) are projected by the kinematic coordinates on the motion basis xd (53), and by the motion constraints
xd = M Xd (41, 43) on the platform: (64).

This is the suite's one equation with other names: M is K for unit vectors, A^T the inverse Jacobian. It shares no code
with the kernels, so that each tests the other. Vectors are pairs of numbers in the robot's plane; `turn` is the cross
product with its normal. Functions take any number type with sum and product, which `operation_count` uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, sin, sqrt, tanh
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pkm_description.mechanism import Array
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.kernels.wrenches import COULOMB_SPEED
from pkm_kinematics.kernels import records
from pkm_runtime.errors import PkmError


@dataclass
class Count:
    """Operations so far."""

    additions: int = 0
    multiplications: int = 0
    divisions: int = 0


class Counted:
    """A number that counts its operations; a change of sign is free."""

    __slots__ = ("count", "value")

    def __init__(self, value: float, count: Count) -> None:
        self.value, self.count = value, count

    def _other(self, other: Any) -> float:
        return other.value if isinstance(other, Counted) else float(other)

    def __add__(self, other: Any) -> Counted:
        """Count an addition."""
        self.count.additions += 1
        return Counted(self.value + self._other(other), self.count)

    def __sub__(self, other: Any) -> Counted:
        """Count a subtraction as an addition."""
        self.count.additions += 1
        return Counted(self.value - self._other(other), self.count)

    def __mul__(self, other: Any) -> Counted:
        """Count a multiplication."""
        self.count.multiplications += 1
        return Counted(self.value * self._other(other), self.count)

    def __rtruediv__(self, other: Any) -> Counted:
        """Count a division."""
        self.count.divisions += 1
        return Counted(self._other(other) / self.value, self.count)

    def __neg__(self) -> Counted:
        """Change the sign."""
        return Counted(-self.value, self.count)

    __radd__, __rmul__ = __add__, __mul__


Pair = tuple[Any, Any]

PAPER_ADDITIONS, PAPER_MULTIPLICATIONS = 404, 656  # the paper's own count for its five-bar, section 5.7


class ElementsError(PkmError):
    """A robot that is not made of planar limbs of two bars, or an impossible state."""


def add(u: Pair, v: Pair) -> Pair:
    """u + v."""
    return u[0] + v[0], u[1] + v[1]


def sub(u: Pair, v: Pair) -> Pair:
    """u - v."""
    return u[0] - v[0], u[1] - v[1]


def scale(s: Any, v: Pair) -> Pair:
    """s v."""
    return s * v[0], s * v[1]


def dot(u: Pair, v: Pair) -> Any:
    """u . v."""
    return u[0] * v[0] + u[1] * v[1]


def turn(v: Pair) -> Pair:
    """n x v, with n the plane's normal."""
    return -v[1], v[0]


@dataclass(frozen=True)
class Bar:
    """A bar element: length d [m], mass [kg], mass centre along x and across it [m], central inertia [kg m^2].

    `sense` is the sign of the joint axis along the plane's normal; armature and friction are those of that joint.
    """

    length: Any
    mass: Any
    along: Any
    across: Any
    inertia: Any
    sense: Any
    armature: Any
    viscous: Any
    coulomb: Any


@dataclass(frozen=True)
class Limb:
    """A limb: base point in the plane, less the limb's point on the platform; proximal and distal bar."""

    base: Pair
    proximal: Bar
    distal: Bar


@dataclass(frozen=True)
class LimbState:
    """Unit vectors of a limb's two bars, and their rates."""

    p: Pair
    a: Pair
    dp: Pair
    da: Pair


class PlanarElements:
    """The kinematic-element model of planar two-bar limbs with a translating platform; efforts of minimum norm."""

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics = dynamics
        self.kinematics = dynamics.kinematics
        t = self.kinematics.tables
        name = dynamics.mechanism.name
        driven = [i for i in range(2, len(t.bodies)) if t.bodies[i]["actuator"] >= 0]
        driven.sort(key=lambda i: int(t.bodies[i]["actuator"]))
        if not driven or self.kinematics.mobility != 2:
            raise ElementsError(f"{name}: kinematic elements here need a platform with two translations")
        normal = t.bodies[driven[0]]["rotation"][:, 2]
        e1 = t.bodies[driven[0]]["rotation"][:, 0]
        self.plane: Array = np.array([e1, np.cross(normal, e1)])  # (2, 3)
        self.gravity = self._pair(np.asarray(t.gravity))
        self.tip_mass = float(t.bodies[records.PLATFORM]["mass"])
        self.normal = normal
        self.start: list[tuple[Array, Array]] = []  # direction of each proximal bar at q = 0 and at a quarter turn
        self.limbs = [self._limb(i) for i in driven]
        self.sides = self._home_sides()
        if len(t.bodies) != 2 + 2 * len(driven):
            raise ElementsError(f"{name}: has bodies besides two bars per limb and the platform")

    # -- state ------------------------------------------------------------------------------------------------------

    def state_of_pose(self, pose: ArrayLike, twist: ArrayLike | None = None) -> list[LimbState]:
        """Unit vectors and rates of all bars at a pose (7,) and twist (6,), on the branches of home."""
        E, dE = self._tip(pose, twist)
        return [self._from_tip(limb, E, dE, side) for limb, side in zip(self.limbs, self.sides, strict=True)]

    def state_of_encoders(self, q: ArrayLike, rates: ArrayLike, near: ArrayLike | None = None) -> list[LimbState]:
        """Unit vectors and rates from encoder positions (n_actuated,) [rad] and rates [rad/s].

        The tip is where the circles about the first two elbows meet, on the side of the pose `near` (7,).
        """
        position, speed = np.asarray(q, dtype=np.float64), np.asarray(rates, dtype=np.float64)
        p, dp, elbows = [], [], []
        for k, limb in enumerate(self.limbs):
            at, quarter = self.start[k]
            c, s = (
                cos(position[k]),
                sin(position[k]),
            )  # an encoder gives an angle: the one place where its sine is needed
            direction = (c * at[0] + s * quarter[0], c * at[1] + s * quarter[1])
            p.append(direction)
            dp.append(scale(limb.proximal.sense * speed[k], turn(direction)))
            elbows.append(add(limb.base, scale(limb.proximal.length, direction)))
        chord = sub(elbows[1], elbows[0])
        square = dot(chord, chord)
        r0, r1 = self.limbs[0].distal.length, self.limbs[1].distal.length
        foot = 0.5 + (r0 * r0 - r1 * r1) / (2.0 * square)
        height = r0 * r0 / square - foot * foot
        if height < 0.0:
            raise ElementsError("the elbows are too far apart: the circles of the distal bars do not meet")
        guess = self._tip(self.kinematics.home if near is None else near, None)[0]
        side = 1.0 if dot(turn(chord), sub(guess, elbows[0])) >= 0.0 else -1.0
        tip = add(elbows[0], add(scale(foot, chord), scale(side * sqrt(height), turn(chord))))
        a = [scale(1.0 / limb.distal.length, sub(tip, elbow)) for limb, elbow in zip(self.limbs, elbows, strict=True)]
        # x_a . Ed = l_p x_a . xd_p of both limbs gives the velocity of the tip (equation 39)
        right = [limb.proximal.length * dot(x, d) for limb, x, d in zip(self.limbs, a, dp, strict=True)]
        tip_rate = solve2(a[0], a[1], (right[0], right[1]))
        return [
            LimbState(x, y, dx, scale(1.0 / limb.distal.length, sub(tip_rate, scale(limb.proximal.length, dx))))
            for limb, x, y, dx in zip(self.limbs, p, a, dp, strict=True)
        ]

    def state_of_directions(self, directions: ArrayLike, rates: ArrayLike) -> list[LimbState]:
        """Unit vectors and rates from directions (n_limbs, 2, 3), base axes, projected on the plane and normalised."""
        x = np.asarray(directions, dtype=np.float64) @ self.plane.T
        v = np.asarray(rates, dtype=np.float64) @ self.plane.T
        if x.shape != (len(self.limbs), 2, 2) or v.shape != x.shape:
            raise ElementsError(f"directions: expected ({len(self.limbs)}, 2, 3), got {np.shape(directions)}")
        x = x / np.linalg.norm(x, axis=-1, keepdims=True)
        v = v - np.sum(v * x, axis=-1, keepdims=True) * x
        pairs = np.concatenate([x, v], axis=1).tolist()
        return [LimbState(*((float(a), float(b)) for a, b in limb)) for limb in pairs]

    def directions(self, state: Sequence[LimbState]) -> tuple[Array, Array]:
        """Directions of all bars (n_limbs, 2, 3) in base axes, and their rates, as a camera would observe."""
        x = np.array([[limb.p, limb.a] for limb in state]) @ self.plane
        v = np.array([[limb.dp, limb.da] for limb in state]) @ self.plane
        return x, v

    # -- dynamics ---------------------------------------------------------------------------------------------------

    def inverse(self, state: Sequence[LimbState], acceleration: ArrayLike, wrench: ArrayLike | None = None) -> Array:
        """Actuator efforts (n_actuated,) [N m] for a platform acceleration (6,); `wrench` (6,) helps to move it."""
        ddE = self._pair(np.asarray(acceleration, dtype=np.float64)[:3])
        force = (0.0, 0.0) if wrench is None else self._pair(np.asarray(wrench, dtype=np.float64)[:3])
        columns, b = linear_model(self.limbs, state, ddE, self.gravity, self.tip_mass, force, self.dynamics.friction)
        return np.array(solve(columns, b))

    def operation_count(self, friction: bool = False) -> tuple[int, int, int]:
        """Additions, multiplications and divisions from state to efforts, counted in a run; a sign is free."""
        count = Count()

        def counted(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(counted(v) for v in value)
            if isinstance(value, (Bar, Limb, LimbState)):
                return type(value)(*(counted(getattr(value, f)) for f in value.__dataclass_fields__))
            return Counted(float(value), count)

        limbs = [counted(limb) for limb in self.limbs]
        state = [counted(limb) for limb in self.state_of_pose(self.kinematics.home, [0.3, 0.2, 0, 0, 0, 0])]
        pair = counted((1.0, 2.0))
        columns, b = linear_model(
            limbs, state, pair, counted(self.gravity), counted(self.tip_mass), counted((0.0, 0.0)), friction
        )
        solve(columns, b)
        return count.additions, count.multiplications, count.divisions

    # -- inside -----------------------------------------------------------------------------------------------------

    def _pair(self, vector: Array) -> Pair:
        found = self.plane @ vector
        return float(found[0]), float(found[1])

    def _tip(self, pose: ArrayLike, twist: ArrayLike | None) -> tuple[Pair, Pair]:
        velocity = np.zeros(6) if twist is None else np.asarray(twist, dtype=np.float64)
        return self._pair(np.asarray(pose, dtype=np.float64)[:3]), self._pair(velocity[:3])

    def _home_sides(self) -> list[float]:
        """Side of the line from base to tip on which each elbow is at home."""
        found = []
        E = self._tip(self.kinematics.home, None)[0]
        q = self.kinematics.inverse(self.kinematics.home).actuated
        for k, limb in enumerate(self.limbs):
            at, quarter = self.start[k]
            direction = np.cos(q[k]) * at + np.sin(q[k]) * quarter
            found.append(1.0 if dot(turn(sub(E, limb.base)), (direction[0], direction[1])) >= 0.0 else -1.0)
        return found

    @staticmethod
    def _from_tip(limb: Limb, E: Pair, dE: Pair, side: float) -> LimbState:
        """Bars of a limb with its tip at E, moving with dE; the elbow is where two circles meet."""
        reach = sub(E, limb.base)
        square = dot(reach, reach)
        lp, la = limb.proximal.length, limb.distal.length
        foot = 0.5 * (lp * lp - la * la + square) / square
        height = lp * lp / square - foot * foot
        if height < 0.0:
            raise ElementsError("a limb does not reach the pose")
        arm = add(scale(foot, reach), scale(side * sqrt(height), turn(reach)))
        p = scale(1.0 / lp, arm)
        a = scale(1.0 / la, sub(reach, arm))
        y = turn(p)
        dp = scale(dot(a, dE) / (lp * dot(a, y)), y)  # equation 41
        return LimbState(p, a, dp, scale(1.0 / la, sub(dE, scale(lp, dp))))  # equation 42

    def _limb(self, i: int) -> Limb:
        """The limb of a driven body, from the tables of the main formulation."""
        t = self.kinematics.tables
        joint = t.names[i]
        outer = [j for j in range(2, len(t.bodies)) if t.bodies[j]["parent"] == i]
        ends = [
            c
            for c in t.closures
            if outer and {int(c["predecessor"]), int(c["successor"])} == {outer[0], records.PLATFORM}
        ]
        if (
            t.bodies[i]["parent"] != records.BASE
            or len(outer) != 1
            or len(ends) != 1
            or t.bodies[i]["prismatic"] == 1
            or t.bodies[outer[0]]["prismatic"] == 1
        ):
            raise ElementsError(f"the limb of joint '{joint}' is not two bars on revolute joints")
        j, closure = outer[0], ends[0]
        here, there = ("predecessor", "successor") if closure["predecessor"] == j else ("successor", "predecessor")
        R = t.bodies[i]["rotation"]
        elbow, tip = t.bodies[j]["translation"], closure[f"{here}_point"]
        senses = [float(R[:, 2] @ self.normal), float((R @ t.bodies[j]["rotation"])[:, 2] @ self.normal)]
        if min(abs(s) for s in senses) < 1.0 - 1e-9:
            raise ElementsError(f"the limb of joint '{joint}' does not move in the plane of the others")
        u = elbow[:2] / np.linalg.norm(elbow[:2])
        flat = np.array([u[0], u[1], 0.0])
        self.start.append((self.plane @ (R @ flat), self.plane @ (R @ np.array([-u[1], u[0], 0.0]))))
        base = self._pair(t.bodies[i]["translation"] - closure[f"{there}_point"])
        return Limb(base, _bar(t.bodies[i], elbow, senses[0]), _bar(t.bodies[j], tip, senses[1]))


def _bar(body: Any, end: Array, sense: float) -> Bar:
    """A bar from a body with its frame's z axis on the joint, and the point (3,) of the next joint."""
    length = float(np.linalg.norm(end[:2]))
    u = end[:2] / length
    h, m = body["moment"][:2], float(body["mass"])
    along, across = float(u @ h), float(u[0] * h[1] - u[1] * h[0]) * sense
    if m > 0.0:
        central = float(body["inertia"][5] - h @ h / m)
        along, across = along / m, across / m
    else:
        central = float(body["inertia"][5])
    sign = 1.0 if sense > 0.0 else -1.0
    return Bar(
        length, m, along, across, central, sign, float(body["armature"]), float(body["viscous"]), float(body["coulomb"])
    )


def linear_model(
    limbs: Sequence[Limb],
    state: Sequence[LimbState],
    ddE: Pair,
    gravity: Pair,
    tip_mass: Any,
    external: Pair,
    friction: bool,
) -> tuple[list[Pair], Pair]:
    """A (columns, one per actuator) and b of `A Gamma + b = 0` in the two translations of the tip (equation 64)."""
    b = add(external, scale(tip_mass, sub(gravity, ddE)))
    columns = []
    for limb, x in zip(limbs, state, strict=True):
        P, D = limb.proximal, limb.distal
        y, ya = turn(x.p), turn(x.a)
        inverse = 1 / (P.length * dot(x.a, y))
        # second rates of the unit vectors: their part along themselves is minus the square of the first rate
        wp2, wa2 = dot(x.dp, x.dp), dot(x.da, x.da)
        spin = (dot(x.a, ddE) + D.length * wa2 + P.length * wp2 * dot(x.a, x.p)) * inverse
        ddp = sub(scale(spin, y), scale(wp2, x.p))
        ddA = scale(P.length, ddp)
        dda = scale(1 / D.length, sub(ddE, ddA))
        spin_a = dot(dda, ya)
        # forces at the mass centres: weight and inertia
        fp = scale(P.mass, sub(gravity, add(scale(P.along, ddp), scale(P.across, turn(ddp)))))
        fa = scale(D.mass, sub(gravity, add(ddA, add(scale(D.along, dda), scale(D.across, turn(dda))))))
        # torques along the normal: inertia of bar and rotor, friction of the two joints
        tp = -(P.inertia + P.armature) * spin
        ta = -D.inertia * spin_a
        if friction:
            wp, wa = dot(x.dp, y), dot(x.da, ya)
            tp = tp - resistance(P, wp)
            elbow = resistance(D, wa - wp)
            tp, ta = tp + elbow, ta - elbow
        # dynamic coordinates (equation 53): forces by d S / d xd, torques by d omega / d xd
        Fp = add(sub(scale(P.along, fp), scale(P.across, turn(fp))), add(scale(tp, y), scale(P.length, fa)))
        Fa = add(sub(scale(D.along, fa), scale(D.across, turn(fa))), scale(ta, ya))
        # motion constraints transposed: M_a^T F = (F - l_p M_p^T F) / l_a, M_p^T F = x_a (y . F) / (l_p x_a . y)
        share = scale(1 / D.length, Fa)
        through = (dot(y, Fp) - P.length * dot(y, share)) * inverse
        b = add(b, add(share, scale(through, x.a)))
        columns.append(scale(P.sense * inverse, x.a))
    return columns, b


def resistance(bar: Bar, rate: Any) -> Any:
    """Friction torque [N m] along the normal of a bar's joint, at a rate about the normal."""
    return bar.viscous * rate + bar.coulomb * smooth_sign(rate)


def smooth_sign(rate: Any) -> Any:
    """Sign of a joint rate, smoothed as in the kernels."""
    if isinstance(rate, Counted):
        return rate
    return tanh(rate / COULOMB_SPEED)


def solve2(first: Pair, second: Pair, right: Pair) -> Pair:
    """The pair v with first . v = right[0] and second . v = right[1]."""
    inverse = 1 / (first[0] * second[1] - first[1] * second[0])
    return (
        inverse * (right[0] * second[1] - right[1] * first[1]),
        inverse * (first[0] * right[1] - second[0] * right[0]),
    )


def solve(columns: Sequence[Pair], b: Pair) -> list[Any]:
    """Gamma of least norm with `A Gamma + b = 0`."""
    if len(columns) == 2:
        (a, c), (d, e) = columns
        return list(solve2((a, d), (c, e), (-b[0], -b[1])))
    A = np.array(columns, dtype=np.float64).T
    return list(-np.linalg.pinv(A) @ np.array(b, dtype=np.float64))
