# SPDX-License-Identifier: Apache-2.0
"""The kinematic elements of a robot, every body of a limb with its observed or sliding direction, and its loops as
equations of vectors: a gap r, and axes a and b that a joint keeps together, with their two rates.

Özgür, Andreff and Martinet, "Linear dynamic modeling of parallel kinematic manipulators from observable kinematic
elements", Mechanism and Machine Theory 2013, section 3, equations 35 and 37: sums of vectors carried by bodies, whose
rates are linear in the bodies' velocities. `observed_legs` solves them limb by limb.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pkm_description.mechanism import Array
from pkm_description.rotations import cross, skew
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels import records

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


@dataclass(eq=False)
class Moving:
    """A body: orientation, origin, velocities, accelerations; and velocities per rate of each joint of its limb."""

    R: Array
    p: Array
    w: Array = field(default_factory=lambda: np.zeros(3))
    v: Array = field(default_factory=lambda: np.zeros(3))
    dw: Array = field(default_factory=lambda: np.zeros(3))
    dv: Array = field(default_factory=lambda: np.zeros(3))
    W: Array = field(default_factory=lambda: np.zeros((3, 0)))
    V: Array = field(default_factory=lambda: np.zeros((3, 0)))

    def acceleration(self, r: Array) -> Array:
        """Acceleration of the body's point at r (3,) from its origin, base axes."""
        return self.dv + cross(self.dw, r) + cross(self.w, cross(self.w, r))


def ends(closure: Any, bodies: dict[int, Moving]) -> list[tuple[int, Array, Array]]:
    """Both ends of a closure, predecessor first: body, arm (3,) to its point, and axes (3, 3), base axes."""
    found: list[tuple[int, Array, Array]] = []
    for end in ("predecessor", "successor"):
        i = int(closure[end])
        found.append((i, bodies[i].R @ closure[f"{end}_point"], bodies[i].R @ closure[f"{end}_rotation"]))
    return found


def gap(closure: Any, bodies: dict[int, Moving]) -> Array:
    """Vector (3,) from the point of the predecessor to that of the successor."""
    (p, arm_p, _), (s, arm_s, _) = ends(closure, bodies)
    return bodies[s].p + arm_s - bodies[p].p - arm_p


def opening(closure: Any, bodies: dict[int, Moving]) -> Array:
    """Residual (rows,) of a closure's equations."""
    (_, _, Fp), (_, _, Fs) = ends(closure, bodies)
    r, a, b = gap(closure, bodies), Fp[:, 2], Fs[:, 2]
    kind = int(closure["kind"])
    if kind == records.SPHERICAL:
        return r
    if kind == records.UNIVERSAL:
        return np.append(r, a @ b)
    rows = [r, a - b]
    if kind in (records.CYLINDRICAL, records.PRISMATIC):
        rows[0] = cross(r, a)
    if kind == records.PLANAR:
        rows[0] = np.array([r @ a])
    if kind in (records.PRISMATIC, records.FIXED):
        rows.append(Fp[:, 0] - Fs[:, 0])
    return np.concatenate(rows)


def first_rates(closure: Any, bodies: dict[int, Moving], twists: Callable[[int], tuple[Array, Array]]) -> Array:
    """Rates (rows, k) of a closure's equations for k twists of its ends, `twists(i)` (3, k) linear and angular."""
    (p, arm_p, Fp), (s, arm_s, Fs) = ends(closure, bodies)
    (Vp, Wp), (Vs, Ws) = twists(p), twists(s)
    r = gap(closure, bodies)
    dr = Vs - skew(arm_s) @ Ws - Vp + skew(arm_p) @ Wp
    kind = int(closure["kind"])
    a, b = Fp[:, 2], Fs[:, 2]
    da, db = -skew(a) @ Wp, -skew(b) @ Ws
    if kind == records.SPHERICAL:
        return dr
    if kind == records.UNIVERSAL:
        return np.vstack([dr, b @ da + a @ db])
    rows = [dr, da - db]
    if kind in (records.CYLINDRICAL, records.PRISMATIC):
        rows[0] = skew(r) @ da - skew(a) @ dr
    if kind == records.PLANAR:
        rows[0] = (a @ dr + r @ da)[None]
    if kind in (records.PRISMATIC, records.FIXED):
        rows.append(-skew(Fp[:, 0]) @ Wp + skew(Fs[:, 0]) @ Ws)
    return np.vstack(rows)


def second_rates(closure: Any, bodies: dict[int, Moving]) -> Array:
    """Second rates (rows,) of the same equations at the bodies' velocities and accelerations."""
    (p, arm_p, Fp), (s, arm_s, Fs) = ends(closure, bodies)
    P, S = bodies[p], bodies[s]
    r = gap(closure, bodies)
    dr = S.v + cross(S.w, arm_s) - P.v - cross(P.w, arm_p)
    ddr = S.acceleration(arm_s) - P.acceleration(arm_p)
    kind = int(closure["kind"])

    def turned(body: Moving, axis: Array) -> tuple[Array, Array]:
        rate = cross(body.w, axis)
        return rate, cross(body.dw, axis) + cross(body.w, rate)

    a, b = Fp[:, 2], Fs[:, 2]
    (da, dda), (db, ddb) = turned(P, a), turned(S, b)
    if kind == records.SPHERICAL:
        return ddr
    if kind == records.UNIVERSAL:
        return np.concatenate([ddr, [dda @ b + 2.0 * (da @ db) + a @ ddb]])
    rows = [ddr, dda - ddb]
    if kind in (records.CYLINDRICAL, records.PRISMATIC):
        rows[0] = cross(ddr, a) + 2.0 * cross(dr, da) + cross(r, dda)
    if kind == records.PLANAR:
        rows[0] = np.array([ddr @ a + 2.0 * (dr @ da) + r @ dda])
    if kind in (records.PRISMATIC, records.FIXED):
        rows.append(turned(P, Fp[:, 0])[1] - turned(S, Fs[:, 0])[1])
    return np.concatenate(rows)
