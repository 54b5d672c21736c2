# SPDX-License-Identifier: Apache-2.0
"""Recordings of one robot's kernels: inputs near home, inverses of blocks, and motion spaces that turn with the pose.

`pkm_runtime.codegen` makes code of them. Blocks are inverted by elimination, in an order of pivots that is chosen near
home: equations of a limb have many zeros, which elimination keeps and orthogonalisation does not. With more equations
than joints, those without a pivot are left out: rates and closure forces in possible motions are the same by every
generalised inverse.

Where limbs constrain the platform more often than needed, the wrenches that are most independent near home are taken.
At poses where these are nearly dependent, the recording has no result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import cos, inf
from typing import Any

import numpy as np
import scipy  # whose parts load when they are first used

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_kinematics.kernels.model_and_data import NEAREST, Model
from pkm_kinematics.kernels.path.fixed_steps import newton_in_fixed_steps, place_iterated, turn_along
from pkm_kinematics.kernels.path.follow import CONTRACTION
from pkm_kinematics.kernels.position.closed_form import face, solve_closed_form, turn_near, turn_to
from pkm_kinematics.kernels.position.closures import (
    CLOSED,
    LENGTHS,
    block_jacobian,
    closed,
    inverse_by_rows,
    weigh_directions,
)
from pkm_kinematics.kernels.position.placement import joint_frame, move_joint, place_platform
from pkm_kinematics.kernels.position.positions import (
    CONVERGED,
    NEXT,
    ROUNDED,
    SINGULAR,
    solve_newton,
    solve_positions,
    write_block_rows,
)
from pkm_kinematics.kernels.rates.motion import accelerations, correct, invert_blocks, move_platform, velocities
from pkm_kinematics.kernels.rates.motion_space import (
    combined_acceleration,
    constraint_wrench,
    least_motion,
    null_combinations,
    onto_space,
    space_across,
)
from pkm_kinematics.kernels.records import NEWTON
from pkm_kinematics.kernels.regularity import is_regular
from pkm_kinematics.kernels.vectors import rotate, rotate_back
from pkm_kinematics.model.recognition import Parts, parts_in_closed_form
from pkm_kinematics.model.tables import Tables
from pkm_runtime.codegen import loose, trace
from pkm_runtime.codegen.tape import Number, Tape, Term, call, extreme, select_larger, value

# Recordings are made near home and in no special direction, so that nothing in them is zero by chance.
NEAR = 1e-3  # rad, and of the robot's size


def some_numbers(n: int) -> Array:
    """Numbers (n,) of no special relation, between -1 and 1."""
    return np.sin(1.0 + np.arange(float(n)))


def near_home(home: Array, subspace: Array, size: float) -> Array:
    """A pose (7,) near `home` in the motion space (6, n) of a robot of a size [m]."""
    pose, units = np.empty(7), np.repeat([size, 1.0], 3)
    unit = np.linalg.norm(subspace, axis=0) / np.linalg.norm(subspace / units[:, None], axis=0)  # of each dof
    shift_pose(np.array(home), subspace @ (unit * some_numbers(subspace.shape[1])), NEAR, pose)
    return pose


def pose_inputs(tape: Tape, array: int, pose: Array, subspace: Array) -> Array:
    """A pose (7,) near home as the first numbers of input array `array`; constants where the motion space rests."""
    slides = np.flatnonzero(subspace[:3].any(axis=1))
    return tape.inputs(array, pose, [*slides, *([3, 4, 5, 6] if subspace[3:].any() else [])])


def rate_inputs(tape: Tape, array: int, first: int, subspace: Array) -> Array:
    """A twist or acceleration (6,) in the motion space (6, n): the numbers from `first` on of input array `array`."""
    rate = subspace @ some_numbers(subspace.shape[1])
    return tape.inputs(array, rate, np.flatnonzero(subspace.any(axis=1)), first)


def free_inputs(tape: Tape, array: int, first: int, n: int) -> Array:
    """Any numbers (n,): the numbers from `first` on of input array `array`."""
    return tape.inputs(array, some_numbers(n), range(n), first)


def reading_inputs(tape: Tape, array: int, values: Array, turning: Array) -> Array:
    """Positions (m,) of drives, input array `array`, and cosines and sines of those that turn, behind them there."""
    q, m = tape.inputs(array, values, range(len(values))), len(values)
    for a in np.flatnonzero(turning):
        for k, (what, turn) in enumerate((("cos", np.cos), ("sin", np.sin))):
            tape.know(what, q[a], tape.inputs(array, turn(values[a : a + 1]), [0], m + k * m + int(a))[0])
    return q


def joint_inputs(tape: Tape, array: int, model: Model, data: Any) -> list[Any]:
    """Make where iterated limbs start, in loose `data`, input array `array`, as `fixed_steps` has it; their states."""
    found: list[Any] = []
    for block in model.blocks[model.blocks["solver"] == NEWTON]:
        for i in range(block["start"], block["start"] + block["count"]):
            me, slides = data.state[i], model.bodies["prismatic"][i] == 1
            names = ("q",) if slides else ("c", "s")
            values = np.array([getattr(me, name) for name in names])
            for name, term in zip(names, tape.inputs(array, values, range(len(names)), 2 * len(found)), strict=True):
                setattr(me, name, term)
            found.append(me)
    return found


def joint_results(model: Model, states: list[Any]) -> list[Any]:
    """Where iterated limbs end: numbers (2 n,) of the states of `joint_inputs`."""
    blocks = model.blocks[model.blocks["solver"] == NEWTON]
    bodies = [i for b in blocks for i in range(b["start"], b["start"] + b["count"])]
    return [x for i, me in zip(bodies, states, strict=True) for x in _place(model, i, me)]


def drive_results(model: Model, data: Any) -> list[Any]:
    """Where drives of limbs in closed form end, as `joint_results`."""
    blocks = model.blocks[model.blocks["solver"] != NEWTON]
    bodies = [i for b in blocks for i in range(b["start"], b["start"] + b["count"])]
    driven = [i for i in bodies if model.bodies["actuator"][i] >= 0]
    return [x for i in driven for x in _place(model, i, data.state[i])]


def _place(model: Model, i: int, me: Any) -> tuple[Any, Any]:
    return (me.q, 0.0) if model.bodies["prismatic"][i] == 1 else (me.c, me.s)


# Part of a joint's column that its pivot must keep, else the general kernels answer: rounding grows by one over it.
FIRM = 1e-3
LARGE = 0.1  # of the largest part: pivots to choose from, by how few zeros they cost


def inverse_in_fixed_order(work: Any, at: int, m: int, n: int, to: int, idle: int) -> Number:
    """In place of `inverse_by_rows`."""
    if idle:
        return trace(inverse_by_rows)(work, at, m, n, to, idle)
    columns, identity = range(n), np.eye(m).tolist()
    rows = [[*work[at + r * n : at + r * n + n], *identity[r]] for r in range(m)]
    squares = [sum(row[c] * row[c] for row in rows) for c in columns]
    free, pivots = set(range(m)), dict[int, int]()
    for _ in columns:
        found = _pivot(rows, free, set(columns) - set(pivots), squares)
        if found is None:
            return 0.0
        r, c = found
        pivot_row, pivot = rows[r], rows[r][c]
        if not pivot * pivot > FIRM * FIRM * squares[c]:
            return 0.0
        pivot_row[:] = [x * (1.0 / pivot) for x in pivot_row]
        pivot_row[c] = 1.0
        for other in rows:
            if other is not pivot_row and _there(factor := other[c]):
                other[:] = [x - factor * y for x, y in zip(other, pivot_row, strict=True)]
                other[c] = 0.0
        free.remove(r)
        pivots[c] = r
    inverted: Number = 0.0
    for c, r in pivots.items():
        work[to + c * m : to + c * m + m] = rows[r][n:]
        inverted = inverted + squares[c] * sum(x * x for x in rows[r][n:])
    return call("sqrt", n / inverted)


def _there(x: Number) -> bool:
    return not (isinstance(x, float) and x == 0.0)


def _pivot(rows: list[list[Number]], free: set[int], left: set[int], squares: list[Number]) -> tuple[int, int] | None:
    """Row and column of the pivot that costs the fewest zeros, of those that are large; None where all are zero."""
    part = {(r, c): abs(value(rows[r][c])) / value(squares[c]) ** 0.5 for r in free for c in left if _there(rows[r][c])}
    largest = max(part.values(), default=0.0)

    def cost(at: tuple[int, int]) -> tuple[int, float]:
        r, c = at
        others = sum(_there(row[c]) for row in rows) - 1
        return others * sum(map(_there, rows[r])), -part[at]

    return min((at for at in part if part[at] > LARGE * largest > 0.0), key=cost, default=None)


Instead = Sequence[tuple[Any, Callable[..., Any]]]


def in_fixed_steps(tables: Tables, home: Array) -> Instead:
    """Replacements of kernels: iterated limbs by closed forms of their parts, or a fixed number of Newton's steps."""
    quick = (inverse_by_rows, inverse_in_fixed_order)
    steps = trace(newton_in_fixed_steps, [quick])
    return quick, (solve_newton, nearby(parts_of_blocks(tables, home), steps))


class TwoSteps:
    """In place of `solve_newton`: a step by derivatives of its own and one by the same, from wherever a joint is.

    `moved` is the largest last step, and `gap` the largest gap before it, 1 where it just counts as closed. Nothing
    decides about them: who calls the code does.
    """

    def __init__(self, tables: Tables, home: Array) -> None:
        self.moved: Number = 0.0
        self.gap: Number = 0.0
        quick = (inverse_by_rows, inverse_in_fixed_order)
        self._otherwise = trace(newton_in_fixed_steps, [quick])
        self.instead: Instead = (
            quick,
            (solve_newton, nearby(parts_of_blocks(tables, home), self._solve)),
            (closed, self._open),
        )

    def _open(self, block: Any, residual: Number) -> bool:
        self.gap = extreme("worse", self.gap, residual / (CLOSED * block.size))
        return True

    def _solve(self, model: Any, data: Any, block: Any) -> tuple[Number, int]:
        if block.idle or block.rows < block.count:
            return self._otherwise(model, data, block)
        bodies, joints = model.bodies, range(block.start, block.start + block.count)
        residual, allowed, solve = inf, NEXT, None
        for _ in range(2):
            trace(place_iterated)(bodies, block, data.state)
            residual = trace(write_block_rows)(model.closures, block, data.state, data.rows)
            solve = solve or eliminated(model, data, block)
            if solve is None:
                return inf, 0
            steps = solve([data.rows[block.rows_at + r].gap for r in range(block.rows)])
            for i, step in zip(joints, steps, strict=True):
                trace(turn_along)(bodies[i], data.state[i], -step)
            units = [block.size if bodies[i].prismatic == 1 else 1.0 for i in joints]
            largest = extreme("max", *(abs(step) / unit for step, unit in zip(steps, units, strict=True)))
            if not largest <= allowed:
                return inf, 1
            allowed = extreme("max", CONTRACTION * largest, ROUNDED)
        self.moved = extreme("max", self.moved, largest)
        if any(b.actuators for b in model.blocks if b.limb_first == block.limb_first and b.start > block.start):
            trace(place_iterated)(bodies, block, data.state)
        return residual, 2


def eliminated(model: Any, data: Any, block: Any) -> Callable[[list[Number]], list[Number]] | None:
    """What gives the steps of a block's joints for gaps of its equations; in the order of `inverse_in_fixed_order`."""
    n, m = block.count, block.rows
    J, ones = [0.0] * (m * n), [1.0] * m
    trace(block_jacobian)(model, data, block, J, 0)
    trace(weigh_directions)(model.closures, block, J, 0, n, 1)
    for k in range(block.closure_start, block.closure_start + block.closure_count):
        closure = model.closures[k]
        for r in range(LENGTHS[closure.kind], closure.rows):
            ones[closure.rows_at - block.rows_at + r] = block.size
    rows = [J[r * n : r * n + n] for r in range(m)]
    squares = [sum(row[c] * row[c] for row in rows) for c in range(n)]
    free, left, pivots, taken = set(range(m)), set(range(n)), [], []
    while left:
        found = _pivot(rows, free, left, squares)
        if found is None:
            return None
        r, c = found
        if not rows[r][c] * rows[r][c] > FIRM * FIRM * squares[c]:
            return None
        free.remove(r)
        left.remove(c)
        inverse = 1.0 / rows[r][c]
        for other in free:
            if _there(rows[other][c]):
                factor = rows[other][c] * inverse
                rows[other] = [
                    x - factor * y if k in left else 0.0
                    for k, (x, y) in enumerate(zip(rows[other], rows[r], strict=True))
                ]
                taken.append((other, r, factor))
        pivots.append((r, c, inverse))

    def solve(gaps: list[Number]) -> list[Number]:
        right, found = [gap * one for gap, one in zip(gaps, ones, strict=True)], dict[int, Number]()
        for other, r, factor in taken:
            right[other] = right[other] - factor * right[r]
        for r, c, inverse in reversed(pivots):
            found[c] = inverse * (right[r] - sum(rows[r][k] * x for k, x in found.items()))
        return [found[c] for c in range(n)]

    return solve


class RecordedSpace:
    """The motion space of `n` dimensions at the pose of a recording, blocks inverted; becomes the model's."""

    def __init__(self, model: Any, data: Any, n: int, instead: Instead) -> None:
        self.model, self.data, self.instead = model, data, instead
        self.length = model.task[0].length
        found = [one for b in range(len(model.blocks)) for one in self._constraints(b)]
        values = np.array([[value(x) for x in wrench] for _, _, wrench in found]).T
        chosen = sorted(scipy.linalg.qr(values, mode="r", pivoting=True)[1][: 6 - n])
        self._combinations = [found[i][:2] for i in chosen]
        self._wrenches = np.array([found[i][2] for i in chosen], dtype=object).T.copy()
        self._inverse, self._weights = np.zeros((6 - n, 6 - n), dtype=object), np.zeros(6 - n, dtype=object)
        model.subspace = np.zeros((6, n), dtype=object)
        self.condition: Number = trace(space_across)(
            self._wrenches, self.length, self._inverse, self._weights, model.subspace
        )

    def _constraints(self, b: int) -> list[tuple[int, Array, Array]]:
        """What block b says of the platform: b, a combination of its equations, and the wrench."""
        block, found = self.model.blocks[b], []
        null = np.zeros((block.rows - block.count, block.rows), dtype=object)
        trace(null_combinations)(self.model, self.data, block, np.zeros(block.count, dtype=object), null)
        for combination in null:
            wrench = np.zeros(6, dtype=object)
            trace(constraint_wrench, self.instead)(self.model, self.data, b, combination, wrench)
            found.append((b, combination, wrench))
        return found

    def rates_by_twist(self, drives: Array) -> Array:
        """Drives' rates (n_actuated, n) in the basis, which may turn over, as (6, n_actuated) of the twists."""
        scaled = self.model.subspace * np.repeat([1.0, self.length], 3)[:, None]
        return np.array([[sum(x * y for x, y in zip(r, d, strict=True)) for d in drives] for r in scaled], dtype=object)

    def closing(self) -> Array:
        """The least displacement (6,) of the platform that closes what the limbs leave open by their constraints."""
        rows = self.data.rows
        gaps = [
            sum(x * rows[self.model.blocks[b].rows_at + r].gap for r, x in enumerate(combination))
            for b, combination in self._combinations
        ]
        return self._least(np.array(gaps, dtype=object))

    def _least(self, rates: Array) -> Array:
        least = np.zeros(6, dtype=object)
        trace(least_motion)(self._wrenches, self.length, self._inverse, self._weights, rates, least)
        return least

    def move(self, twist: Array, acceleration: Array) -> None:
        """Give all bodies the motion in the space nearest to a twist and an acceleration (6,), which become it."""
        trace(onto_space)(self.model.subspace, self.length, twist)
        trace(onto_space)(self.model.subspace, self.length, acceleration)
        trace(move_platform)(self.data.state, twist, np.zeros(6))
        trace(velocities, self.instead)(self.model, self.data)
        rates = np.zeros(len(self._combinations), dtype=object)
        corrected = trace(correct)

        def note(bodies: Any, block: Any, state: Any) -> None:
            """Before a block's joints accelerate, which no combination feels."""
            for i, (b, combination) in enumerate(self._combinations):
                if self.model.blocks[b] is block:
                    rates[i] = trace(combined_acceleration)(self.model, self.data, block, combination)
            corrected(bodies, block, state)

        trace(accelerations, [*self.instead, (correct, note)])(self.model, self.data)
        acceleration += self._least(rates)
        trace(move_platform)(self.data.state, twist, acceleration)
        trace(accelerations, self.instead)(self.model, self.data)


def motion_in_turning_space(n: int, instead: Instead) -> Callable[[Any, Any, int, Array], int]:
    """In place of `solve_motion` in recordings: the space of `n` dimensions at the pose, the nearest motion in it."""

    def solve(model: Any, data: Any, branch: int, motion: Array) -> int:
        trace(place_platform)(data.state, motion)
        status, _, _ = trace(solve_positions, instead)(model, data, branch, False)
        if status != CONVERGED:
            return int(status)
        if not trace(is_regular)(trace(invert_blocks, instead)(model, data)):
            return SINGULAR
        space = RecordedSpace(model, data, n, instead)
        if not space.condition > FIRM:
            return SINGULAR
        space.move(motion[7:13], motion[13:19])
        return CONVERGED

    return solve


def closed_form_nearby(parts: Parts, model: Any, data: Any, block: Any) -> Number:
    """The joints of an iterated block, by closed forms of its parts, near where they were; the largest gap.

    A joint turns by `NEXT` at most, and is farther than that from where its branches meet: it keeps its branch.
    """
    state, bodies, cosine = data.state, model.bodies, cos(NEXT)
    joints = range(block.start, block.start + block.count)
    before = {i: (state[i].c, state[i].s) for i in joints}

    def turn_nearest(me: Any, t: Any, e: Any, C: Number, sign: float) -> Number:
        """In place of `turn_near`, for the nearest branch."""
        A, B = t[0] * e[0] + t[1] * e[1], t[1] * e[0] - t[0] * e[1]
        side = select_larger(me.s * A - me.c * B, 0.0, 1.0, -1.0)
        me.c, me.s, margin = trace(turn_to)(A, B, C, side)
        return margin

    if parts.hinge >= 0:
        driver, me = state[parts.driver], state[parts.hinge]
        for i in (parts.driver, parts.hinge):
            trace(joint_frame)(bodies, state, i)
        trace(face)(me, parts.carried, trace(rotate_back)(me.R, trace(rotate)(driver.R, parts.swung)))
        trace(move_joint)(bodies, state, parts.hinge)
    for part, closure in parts.forms:
        form = trace(solve_closed_form, [(turn_near, turn_nearest)])
        margin = form(bodies, loose(closure), loose(part)[0], state, NEAREST)
        if isinstance(margin, Term) and not margin > 1.0 - cosine * cosine:
            return inf
    for i, (c, s) in before.items():
        if not c * state[i].c + s * state[i].s > cosine:
            return inf
    return trace(write_block_rows)(model.closures, block, state, data.rows)


def parts_of_blocks(tables: Tables, home: Array) -> dict[int, Parts]:
    """The iterated blocks whose parts have closed forms, by their first body."""
    iterated = [b for b, block in enumerate(tables.blocks) if block["solver"] == NEWTON]
    found = ((b, parts_in_closed_form(tables, b, home)) for b in iterated)
    return {int(tables.blocks["start"][b]): parts for b, parts in found if parts is not None}


def nearby(known: dict[int, Parts], otherwise: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """In place of `solve_newton` in recordings: the closed forms of a block, or `otherwise` where it has none."""

    def solve(model: Any, data: Any, block: Any) -> Any:
        parts = known.get(block.start)
        return otherwise(model, data, block) if parts is None else (closed_form_nearby(parts, model, data, block), 0)

    return solve
