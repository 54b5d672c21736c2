# SPDX-License-Identifier: Apache-2.0
"""The kinematic elements of a robot: every body of a limb with its observed or sliding direction.

Özgür, Andreff and Martinet, "Linear dynamic modeling of parallel kinematic manipulators from observable kinematic
elements", Mechanism and Machine Theory 2013, section 3. `observed_legs` solves for their motion limb by limb.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pkm_description.mechanism import Array
from pkm_description.rotations import cross
from pkm_kinematics import Kinematics

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
