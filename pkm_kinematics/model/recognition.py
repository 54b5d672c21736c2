# SPDX-License-Identifier: Apache-2.0
"""Recognise, from the tables alone, the blocks with a closed form (see `kernels/position/closed_form.py`)."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.kernels import records
from pkm_kinematics.kernels.position.closed_form import solve_closed_form
from pkm_kinematics.kernels.position.closures import closed
from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.positions import place_block, write_block_rows
from pkm_kinematics.model.tables import Tables
from pkm_runtime.errors import PkmError

# rad, and of the robot's size: the same configuration, found twice; near a branch point Newton's method is only half as
# exact.
SAME = 1e-6
MOST_MODES = 2**62  # numbers of working modes that integers hold
# rad, and of the robot's size: axes that ought to meet or to be parallel, against rounding in a description's numbers.
EXACT = 1e-9


# Closures that hold a point. Where a chain's position alone determines its joints, the orientations that a universal
# or fixed closure holds besides follow from the motion space, as does that the point of a chain that moves in a plane
# lies in that plane (PRS, RPS, RRS); like all equations, they are checked at each pose.
PLACING = (records.SPHERICAL, records.UNIVERSAL, records.FIXED)


class _Layout(NamedTuple):
    """Role of each joint of a serial chain; `aiming` joints do the pointing."""

    lift: int | None
    driver: int | None
    pointing: int
    aiming: int
    extension: int | None


_IN_SPACE = {
    "RRR": _Layout(None, 0, 1, 2, None),
    "PRR": _Layout(None, 0, 1, 2, None),
    "RR": _Layout(None, None, 0, 2, None),
    "RRP": _Layout(None, None, 0, 2, 2),
}
_IN_PLANE = {
    "RR": _Layout(None, 0, 1, 1, None),
    "PR": _Layout(None, 0, 1, 1, None),
    "RP": _Layout(None, None, 0, 1, 1),
    "PRR": _Layout(0, 1, 2, 1, None),
}
_ON_SPHERE = {"RR": _Layout(None, 0, 1, 1, None)}


def recognise(tables: Tables, home_pose: Array) -> None:
    """Mark every block that has a closed form, and number the working modes, in `tables`; `PkmError` if too many.

    A pattern is accepted only when it reproduces the home configuration that Newton's method found.
    """
    data = tables.data()
    state, rows = data.state, data.rows
    place_platform(state, home_pose)
    stride = 1
    for block in tables.blocks:
        place_block(tables.model.bodies, block, state)
        if _match(tables, block) and _reproduces(tables, block, state, rows):
            block["solver"] = records.CLOSED_FORM
            block["branches"] = 2 if block["driver"] >= 0 else 1
            driven = [i for i in _bodies(block) if tables.bodies["actuator"][i] >= 0]
            grounded = tables.bodies["parent"][block["start"]] == records.BASE
            ends = tables.closures["successor"][block["closure_start"]] == records.PLATFORM
            first = block["lift"] if block["lift"] >= 0 else block["driver"]
            block["direct"] = grounded and ends and driven in ([first], [block["extension"]])
        else:
            block["driver"] = block["pointing"] = block["extension"] = block["lift"] = -1
            place_block(tables.model.bodies, block, state)
        block["stride"] = stride
        stride *= int(block["branches"])
        if stride > MOST_MODES:
            raise PkmError(
                f"the limbs have more than {MOST_MODES:.0e} working modes, too many to be numbered; describe a robot "
                "with fewer limbs of two branches each, or two robots"
            )


def _bodies(block: Any) -> range:
    return range(int(block["start"]), int(block["start"] + block["count"]))


def _match(tables: Tables, block: Any) -> bool:
    """Fill in driver, pointing joint and extension where the block is such a chain; True if it is."""
    if block["closure_count"] != 1 or block["count"] == 0:
        return False
    closure = tables.closures[block["closure_start"]]
    chain = list(_bodies(block))
    if closure["successor"] == chain[-1] and closure["predecessor"] < block["start"]:
        _swap_sides(closure)
    if closure["predecessor"] != chain[-1] or closure["successor"] >= block["start"]:
        return False
    bodies = tables.bodies
    if any(bodies["parent"][i] != i - 1 for i in chain[1:]):
        return False
    shape = "".join("P" if bodies["prismatic"][i] else "R" for i in chain)
    planar = spherical = False
    axes = _axes(bodies, closure, chain)
    exact = EXACT * float(block["size"])
    if closure["kind"] in PLACING:
        if shape[-1] == "R" and np.abs(closure["predecessor_point"][:2]).max() < exact:
            return False  # a point on the last joint's axis says nothing of its angle
        planar = shape in _IN_PLANE and _parallel(axes[:-1], shape == "PRR")
        layout = (_IN_PLANE if planar else _IN_SPACE).get(shape)
    elif closure["kind"] == records.REVOLUTE:
        planar, spherical = _parallel(axes, shape == "PRR"), _concurrent(axes, exact)
        layout = _IN_PLANE.get(shape) if planar else _ON_SPHERE.get(shape) if spherical else None
    else:
        layout = None
    if layout is None:
        return False
    block["lift"], block["driver"], block["pointing"], block["extension"] = (
        chain[k] if k is not None else -1 for k in (layout.lift, layout.driver, layout.pointing, layout.extension)
    )
    block["pointing_count"], block["planar"], block["spherical"] = layout.aiming, planar, spherical
    return not (layout.aiming == 2 and np.abs(bodies["translation"][chain[layout.pointing + 1]]).max() > exact)


def _swap_sides(closure: Any) -> None:
    """Exchange predecessor and successor: a closure reads the same from either side."""
    for name in ("", "_anchor", "_rotation", "_point"):
        p, s = f"predecessor{name}", f"successor{name}"
        closure[p], closure[s] = np.copy(closure[s]), np.copy(closure[p])


def _axes(bodies: Any, closure: Any, chain: list[int]) -> list[tuple[Array, Array, bool]]:
    """Axis and point of every joint of a chain and of its closure, all joints at zero, in the first one's carrier."""
    found = []
    T = np.eye(4)
    for i in chain:
        step = np.eye(4)
        step[:3, :3], step[:3, 3] = bodies["rotation"][i], bodies["translation"][i]
        T = T @ step
        found.append((T[:3, 2], T[:3, 3], bool(bodies["prismatic"][i])))
    last = T[:3, :3] @ closure["predecessor_point"] + T[:3, 3]
    return [*found, ((T[:3, :3] @ closure["predecessor_rotation"])[:, 2], last, False)]


def _parallel(axes: list[tuple[Array, Array, bool]], lifted: bool) -> bool:
    """True where all turning axes are parallel, and slides across them: the first one must not be if it is a lift."""
    normal = next(axis for axis, _, slides in axes if not slides)
    across = [abs(axis @ normal) < EXACT for axis, _, slides in axes if slides]
    turning = all(np.linalg.norm(np.cross(axis, normal)) < EXACT for axis, _, slides in axes if not slides)
    return turning and (not across[0] if lifted else all(across))


def _concurrent(axes: list[tuple[Array, Array, bool]], exact: float) -> bool:
    """True where all axes turn and meet in one point, which they miss by less than `exact` [m]."""
    if any(slides for _, _, slides in axes):
        return False
    # nearest point to all lines
    projectors = [np.eye(3) - np.outer(axis, axis) for axis, _, _ in axes]
    normal = sum(projectors)
    centre = np.linalg.lstsq(normal, sum(P @ p for P, (_, p, _) in zip(projectors, axes, strict=True)), rcond=None)[0]
    return all(np.linalg.norm(P @ (centre - p)) < exact for P, (_, p, _) in zip(projectors, axes, strict=True))


def _lift_offset(tables: Tables, block: Any, state: Any) -> float:
    """Distance along the axes from the lift's body origin to the closure: the same in every configuration."""
    lift, last = state[block["lift"]], state[block["start"] + block["count"] - 1]
    closure = tables.closures[block["closure_start"]]
    there = last["R"] @ closure["predecessor_point"] + last["p"]
    normal = lift["R"] @ tables.bodies["rotation"][block["driver"]][:, 2]
    return float(normal @ (there - lift["p"]))


def _reproduces(tables: Tables, block: Any, state: Any, rows: Any) -> bool:
    """Choose signs so that branch 0 of the closed form is the configuration in the state; True if one is."""
    span = slice(int(block["start"]), int(block["start"] + block["count"]))
    home = state["q"][span].copy()
    if block["lift"] >= 0:
        place_block(tables.model.bodies, block, state)
        block["offset"] = _lift_offset(tables, block, state)
    turning = tables.bodies["prismatic"][span] == 0
    for flip, reach, sign in product((1.0, -1.0), (1.0, -1.0), (1.0, -1.0)):
        block["flip"], block["reach"], block["home_sign"] = flip, reach, sign
        place_block(tables.model.bodies, block, state)
        solve_closed_form(tables.model.bodies, tables.model.closures, block, state, 0)
        residual = write_block_rows(tables.model.closures, block, state, rows)
        found = np.where(turning, np.arctan2(state["s"][span], state["c"][span]), state["q"][span])
        state["q"][span] = home
        error = np.where(turning, np.angle(np.exp(1j * (found - home))), (found - home) / block["size"])
        if closed(block, residual) and np.abs(error).max() < SAME:
            return True
    return False
