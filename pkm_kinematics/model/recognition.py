# SPDX-License-Identifier: Apache-2.0
"""Recognise, from the tables alone, the blocks with a closed form (see `kernels/position/closed_form.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
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
FLAT = 10.0  # of the robot's size: where axes meet farther away, directions from there say too little of positions
SLIM = 0.02  # of the robot's size: a point this near to a joint's axis says too little of its angle, if aught else does
LEANING = 0.5  # sine between a slide and the plane in which the motion space keeps a chain's point

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
    kind: str  # how the axes lie: "space", "plane" (behind a lift) or "sphere"


_LAYOUTS = {
    "R": (_Layout(None, None, 0, 1, None, "plane"),),
    "RR": (
        _Layout(None, 0, 1, 1, None, "plane"),
        _Layout(None, 0, 1, 1, None, "sphere"),
        _Layout(None, None, 0, 2, None, "space"),
    ),
    "PR": (_Layout(None, 0, 1, 1, None, "plane"),),
    "RP": (_Layout(None, None, 0, 1, 1, "plane"),),
    "RRR": (_Layout(None, 0, 1, 2, None, "space"), _Layout(0, 1, 2, 1, None, "plane")),
    "PRR": (_Layout(None, 0, 1, 2, None, "space"), _Layout(0, 1, 2, 1, None, "plane")),
    "RPR": (_Layout(0, 1, 2, 1, None, "plane"),),
    "RRP": (_Layout(None, None, 0, 2, 2, "space"),),
    "PRP": (_Layout(0, None, 1, 1, 2, "plane"),),
}


def recognise(tables: Tables, home_pose: Array) -> None:
    """Mark every block whose closed form reproduces home, and number the working modes; `PkmError` if too many."""
    data = tables.data()
    state, rows = data.state, data.rows
    place_platform(state, home_pose)
    stride = 1
    for block in tables.blocks:
        place_block(tables.model.bodies, block, state)
        if any(_reproduces(tables, block, state, rows) for _ in _candidates(tables, block)):
            block["solver"] = records.CLOSED_FORM
            block["branches"] = 2 if block["driver"] >= 0 else 1
            driven = [i for i in _bodies(block) if tables.bodies["actuator"][i] >= 0]
            grounded = tables.bodies["parent"][block["start"]] == records.BASE
            ends = tables.closures["successor"][block["closure_start"]] == records.PLATFORM
            first = block["lift"] if block["lift"] >= 0 else block["driver"]
            turned = block["lift"] >= 0 and not tables.bodies["prismatic"][first]
            block["direct"] = grounded and ends and not turned and driven in ([first], [block["extension"]])
        else:
            block["driver"] = block["pointing"] = block["extension"] = block["lift"] = block["wrist"] = -1
            place_block(tables.model.bodies, block, state)
        block["stride"] = stride
        stride *= int(block["branches"])
        if stride > MOST_MODES:
            raise PkmError(
                f"the limbs have more than {MOST_MODES:.0e} working modes, too many to number; describe a robot "
                "with fewer limbs of two branches each, or two robots"
            )


def _bodies(block: Any) -> range:
    return range(int(block["start"]), int(block["start"] + block["count"]))


def _candidates(tables: Tables, block: Any) -> Iterator[None]:
    """Fill in the roles of the joints as each layout has it whose axes lie as those of the block do."""
    if block["closure_count"] != 1 or block["count"] == 0:
        return
    closure = tables.closures[block["closure_start"]]
    chain = list(_bodies(block))
    if len(chain) == 2 and closure["kind"] == records.SPHERICAL and _opposed(tables, block, closure):
        yield
        return
    if closure["successor"] == chain[-1] and closure["predecessor"] < block["start"]:
        _swap_sides(closure)
    if closure["predecessor"] != chain[-1] or closure["successor"] >= block["start"]:
        return
    if any(tables.bodies["parent"][i] != i - 1 for i in chain[1:]):
        return
    block["wrist"] = -1
    block["tip"], block["target"] = closure["predecessor_point"], closure["successor_point"]
    yield from _laid_out(tables, block, closure, chain)
    if closure["kind"] == records.REVOLUTE and len(chain) > 1 and _put_wrist(tables, block, closure, chain[-1]):
        yield from _laid_out(tables, block, closure, chain[:-1])


def _opposed(tables: Tables, block: Any, closure: Any) -> bool:
    """Lay out a driver, and an arm of its own that turns on the successor's side; False for other pairs of bodies."""
    bodies, pair = tables.bodies, (int(closure["predecessor"]), int(closure["successor"]))
    if sorted(pair) != list(_bodies(block)) or any(bodies["parent"][i] in pair for i in pair):
        return False
    if bodies["actuator"][pair[1]] >= 0 > bodies["actuator"][pair[0]]:
        _swap_sides(closure)
        pair = pair[1], pair[0]
    driver, arm = pair
    block["tip"], block["elbow"] = closure["successor_point"], closure["predecessor_point"]
    block["target"] = bodies["translation"][arm]
    block["driver"], block["pointing"], block["pointing_count"] = driver, arm, 1
    reaches = np.abs(block["tip"][:2]).max() > EXACT * float(block["size"])
    return bool(bodies["prismatic"][arm] == 0 and reaches)


def _laid_out(tables: Tables, block: Any, closure: Any, chain: list[int]) -> Iterator[None]:
    """The layouts for a chain that holds the tip of the block at its target."""
    bodies, wrist, exact = tables.bodies, block["wrist"] >= 0, EXACT * float(block["size"])
    kind = records.SPHERICAL if wrist else closure["kind"]
    shape = "".join("P" if bodies["prismatic"][i] else "R" for i in chain)
    slim = SLIM * float(block["size"]) if block["rows"] > block["count"] else exact
    on_axis = shape[-1] == "R" and np.abs(block["tip"][:2]).max() < slim  # where a point says nothing of the angle
    axes = _axes(bodies, chain)
    if kind not in PLACING:
        end = closure["predecessor_point"], closure["predecessor_rotation"][:, 2]
        axes.append(_in_carrier(bodies, chain, *end))
    for layout in _LAYOUTS.get(shape, ()):
        lifted = layout.lift is not None
        if layout.kind == "plane":
            fits = kind in (*PLACING, records.REVOLUTE, *(() if lifted else (records.CYLINDRICAL,)))
            fits = fits and _parallel(axes, lifted, LEANING if kind in PLACING and not lifted else EXACT)
        elif layout.kind == "sphere":
            fits = kind == records.REVOLUTE and _centre(axes, exact, FLAT * float(block["size"])) is not None
        else:
            fits = kind in (*PLACING, records.REVOLUTE)
        if fits and not (on_axis and layout.kind != "sphere") and _assign(tables, block, closure, chain, layout):
            yield


def _assign(tables: Tables, block: Any, closure: Any, chain: list[int], layout: _Layout) -> bool:
    """Write a layout to the block; False where the axes of two pointing joints do not meet."""
    bodies = tables.bodies
    block["lift"], block["driver"], block["pointing"], block["extension"] = (
        chain[k] if k is not None else -1 for k in (layout.lift, layout.driver, layout.pointing, layout.extension)
    )
    block["pointing_count"] = layout.aiming
    block["planar"], block["spherical"] = layout.kind == "plane", layout.kind == "sphere"
    if layout.kind == "sphere":
        block["tip"], block["target"] = (closure[f"{side}_rotation"][:, 2] for side in ("predecessor", "successor"))
    if layout.lift is not None:
        block["normal"] = _in_carrier(bodies, chain[1 : layout.pointing + 1], np.zeros(3), np.array([0.0, 0.0, 1.0]))[0]
    first = bodies[chain[layout.pointing]]
    arm = bodies["translation"][chain[layout.pointing + 1]] if layout.aiming == 2 else np.zeros(3)
    block["rise"] = arm[2]
    block["elbow"] = first["translation"] + arm[2] * first["rotation"][:, 2]
    return bool(np.abs(arm[:2]).max() <= EXACT * float(block["size"]))


def _put_wrist(tables: Tables, block: Any, closure: Any, last: int) -> bool:
    """Make the last joint a wrist, the tip where its axis meets that of the closure; False where they do not meet."""
    if tables.bodies["prismatic"][last]:
        return False
    point, axis = closure["predecessor_point"], closure["predecessor_rotation"][:, 2]
    across = np.array([axis[1], -axis[0], 0.0])  # to both axes
    if np.linalg.norm(across) < EXACT or abs(across @ point) > EXACT * float(block["size"]) * np.linalg.norm(across):
        return False
    along = -(axis[:2] @ point[:2]) / (axis[:2] @ axis[:2])
    body = tables.bodies[last]
    block["wrist"] = last
    block["tip"] = body["translation"] + body["rotation"][:, 2] * (point + along * axis)[2]
    block["target"] = closure["successor_point"] + along * closure["successor_rotation"][:, 2]
    return True


def _swap_sides(closure: Any) -> None:
    """Exchange predecessor and successor: a closure reads the same from either side."""
    for name in ("", "_anchor", "_rotation", "_point"):
        p, s = f"predecessor{name}", f"successor{name}"
        closure[p], closure[s] = np.copy(closure[s]), np.copy(closure[p])


def _axes(bodies: Any, chain: list[int]) -> list[tuple[Array, Array, bool]]:
    """Axis and point of every joint of a chain at zero, in the first one's carrier, and whether it slides."""
    ends = [chain[: k + 1] for k in range(len(chain))]
    origin, z = np.zeros(3), np.array([0.0, 0.0, 1.0])
    return [(*_in_carrier(bodies, part, origin, z)[:2], bool(bodies["prismatic"][part[-1]])) for part in ends]


def _in_carrier(bodies: Any, chain: list[int], point: Array, axis: Array) -> tuple[Array, Array, bool]:
    """As in `_axes`, of a point and an axis in the last body of a chain, which turn."""
    for i in reversed(chain):
        R = bodies["rotation"][i]
        point, axis = bodies["translation"][i] + R @ point, R @ axis
    return axis, point, False


def _parallel(axes: list[tuple[Array, Array, bool]], lifted: bool, leaning: float) -> bool:
    """True where axes turn in parallel, or slide across by a sine of `leaning`, but for a first joint that lifts."""
    rest = axes[1:] if lifted else axes
    normal = next(axis for axis, _, slides in rest if not slides)
    fits = all(abs(axis @ normal) < leaning for axis, _, slides in rest if slides)
    fits = fits and all(np.linalg.norm(np.cross(axis, normal)) < EXACT for axis, _, slides in rest if not slides)
    if not lifted:
        return fits
    axis, _, slides = axes[0]
    return fits and bool(abs(axis @ normal) > EXACT if slides else np.linalg.norm(np.cross(axis, normal)) > EXACT)


def _centre(axes: list[tuple[Array, Array, bool]], exact: float, most: float = np.inf) -> Array | None:
    """The one point, within `most` [m], where all axes turn and meet, missed by less than `exact` [m]; None without."""
    if any(slides for _, _, slides in axes):
        return None
    # nearest point to all lines
    projectors = [np.eye(3) - np.outer(axis, axis) for axis, _, _ in axes]
    off = sum(P @ p for P, (_, p, _) in zip(projectors, axes, strict=True))
    centre: Array = np.array(np.linalg.lstsq(sum(projectors), off, rcond=None)[0], dtype=np.float64)
    meet = all(np.linalg.norm(P @ (centre - p)) < exact for P, (_, p, _) in zip(projectors, axes, strict=True))
    return centre if meet and np.linalg.norm(centre - axes[0][1]) < most else None


def _lift_offset(tables: Tables, block: Any, state: Any) -> float:
    """Distance along the axes from the lift's body origin to the tip: the same in every configuration."""
    end = block["wrist"] if block["wrist"] >= 0 else block["start"] + block["count"]
    lift, last = state[block["lift"]], state[end - 1]
    there = last["R"] @ block["tip"] + last["p"]
    return float(lift["R"] @ block["normal"] @ (there - lift["p"]))


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


class Parts(NamedTuple):
    """Closed forms that find the joints of an iterated block one after the other, for recordings of lean calls.

    Where two rods of equal length make a parallelogram, what they carry turns first, on its `hinge`: the line between
    its balls, `carried` in its frame, gets parallel to that between the rods' other ends, `swung` in the driver's.
    """

    forms: tuple[tuple[Any, Any], ...]  # of each, arrays (1,) of records.BLOCK and records.CLOSURE
    hinge: int = -1
    driver: int = -1
    carried: tuple[float, ...] = ()
    swung: tuple[float, ...] = ()


def parts_in_closed_form(tables: Tables, b: int, home_pose: Array) -> Parts | None:
    """The closed forms of parts of a block solved by iteration; None where none are known."""
    block, data = tables.blocks[b], tables.data()
    place_platform(data.state, home_pose)
    for before in tables.blocks[: b + 1]:
        place_block(tables.model.bodies, before, data.state)
    if not (tables.bodies["prismatic"][block["start"] : block["start"] + block["count"]] == 0).all():
        return None
    found = (one(tables, block, data) for one in (_parallelogram, _arm_and_wrist, _four_bar))
    return next((parts for parts in found if parts is not None), None)


def _part(tables: Tables, block: Any, closure: Any, chain: list[int], data: Any) -> tuple[Any, Any] | None:
    """A chain of a block that holds its end at a closure (1,), as a block in closed form; None where it has none."""
    part = np.array([block])
    part["start"], part["count"], part["closure_start"], part["closure_count"] = chain[0], len(chain), 0, 1
    part["driver"] = part["pointing"] = part["extension"] = part["lift"] = part["wrist"] = -1
    alone = replace(tables, closures=closure)
    for _ in _candidates(alone, part[0]):
        if _reproduces(alone, part[0], data.state, data.rows):
            return part, closure
    return None


def _four_bar(tables: Tables, block: Any, data: Any) -> Parts | None:
    """Two bodies that a pin joins, each on one that is known: as with a ball in its place."""
    closure = tables.closures[block["closure_start"] : block["closure_start"] + 1].copy()
    if block["closure_count"] != 1 or block["count"] != 2 or closure["kind"][0] != records.REVOLUTE:
        return None
    closure["kind"], closure["rows"] = records.SPHERICAL, 3
    bodies = list(_bodies(block))
    part = _part(tables, block, closure, bodies, data) if tables.bodies["parent"][bodies[1]] != bodies[0] else None
    return Parts((part,)) if part else None


def _arm_and_wrist(tables: Tables, block: Any, data: Any) -> Parts | None:
    """An arm that carries the point in which the axes behind it meet that of the closure, and those axes."""
    chain, closure = list(_bodies(block)), tables.closures[block["closure_start"] : block["closure_start"] + 1].copy()
    if block["closure_count"] != 1 or closure["kind"][0] != records.REVOLUTE:
        return None
    if closure["successor"][0] == chain[-1]:
        _swap_sides(closure[0])
    for k in range(1, len(chain) - 1):
        held = closure["predecessor_point"][0], closure["predecessor_rotation"][0, :, 2]
        axes = [*_axes(tables.bodies, chain[k:]), _in_carrier(tables.bodies, chain[k:], *held)]
        centre = _centre(axes, EXACT * float(block["size"]))
        if centre is None:
            continue
        axis, point, _ = axes[-1]
        point_of_arm = closure.copy()
        point_of_arm["kind"], point_of_arm["rows"], point_of_arm["predecessor"] = records.SPHERICAL, 3, chain[k - 1]
        point_of_arm["predecessor_point"] = centre
        along = (centre - point) @ axis * closure["successor_rotation"][0, :, 2]
        point_of_arm["successor_point"] = closure["successor_point"] + along
        arm = _part(tables, block, point_of_arm, chain[:k], data)
        wrist = _part(tables, block, closure, chain[k:], data) if arm else None
        if arm and wrist:
            return Parts((arm, wrist))
    return None


def _parallelogram(tables: Tables, block: Any, data: Any) -> Parts | None:
    """A driver, two rods of equal length, and the hinge on which what they carry turns."""
    bodies, chain, size = tables.bodies, list(_bodies(block)), float(block["size"])
    closures = tables.closures[block["closure_start"] : block["closure_start"] + block["closure_count"]].copy()
    if len(closures) != 2 or len(chain) != 6 or (closures["kind"] != records.SPHERICAL).any():
        return None
    for closure in closures:
        if closure["predecessor"] == chain[0]:
            _swap_sides(closure)
    closures["successor_anchor"] = closures["successor"]  # which is in place when the rods are
    hinge, rods = chain[0], (chain[1:4], chain[4:])
    ends = closures["successor"] == hinge, closures["predecessor"] == [rod[-1] for rod in rods]
    if not all(np.all(end) for end in ends) or bodies["parent"][chain[4]] != chain[1]:
        return None
    forms = [_part(tables, block, closures[k : k + 1].copy(), rod, data) for k, rod in enumerate(rods)]
    first, second = forms
    if first is None or second is None or first[0]["driver"][0] != chain[1]:
        return None
    carried = closures["successor_point"][1] - closures["successor_point"][0]
    swung = second[0]["elbow"][0] - first[0]["elbow"][0]
    longer = np.linalg.norm(second[0]["tip"]) - np.linalg.norm(first[0]["tip"])
    parallel = data.state["R"][hinge] @ carried - data.state["R"][chain[1]] @ swung
    if np.abs([*parallel, *swung[:2], longer]).max() > EXACT * size:
        return None
    return Parts((first, second), hinge, chain[1], tuple(map(float, carried)), tuple(map(float, swung)))
