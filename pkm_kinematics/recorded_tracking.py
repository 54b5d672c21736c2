# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics of one robot that tracks its actuators by straight-line code: a step of Newton's method on all.

The pose moves by what the actuators still miss, and by what the limbs' constraints leave open where the motion space
turns with the pose; limbs that are iterated move with it, each by a step of their own per step of the pose. That is
Newton's method on pose and joints together, limbs eliminated, and as quadratic.
"""

from __future__ import annotations

from collections.abc import Callable
from math import cos, inf, sin
from typing import Any

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_kinematics.kernels.dense import copy, determinant_sign, gram
from pkm_kinematics.kernels.model_and_data import NEAREST, VECTORS
from pkm_kinematics.kernels.path.fixed_steps import correct_joints, place_iterated, turn_along
from pkm_kinematics.kernels.path.follow import (
    CORRECTIONS,
    LONGEST_TURN,
    TWIST,
    actuator_error,
    contracts,
    correction,
    read_actuators,
    settled,
)
from pkm_kinematics.kernels.position.closures import CLOSED, closed, inverse_by_rows, invert_block
from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.positions import CONVERGED, solve_newton, solve_positions, write_block_rows
from pkm_kinematics.kernels.rates.motion import invert_blocks, move_platform, velocities
from pkm_kinematics.kernels.rates.projection import drive_rates
from pkm_kinematics.kernels.records import NEWTON
from pkm_kinematics.kernels.regularity import is_regular
from pkm_kinematics.recordings_at_home import (
    FIRM,
    RecordedSpace,
    inverse_in_fixed_order,
    joint_inputs,
    joint_results,
    nearby,
    parts_of_blocks,
    pose_inputs,
    reading_inputs,
)
from pkm_kinematics.solve.engine import Engine
from pkm_runtime.codegen import Recording, Tape, loose, trace
from pkm_runtime.codegen.tape import Number, Term, call, extreme
from pkm_runtime.kernels.binding import ANOTHER_BRANCH, ByAddress, arrays_type, call_code
from pkm_runtime.kernels.compiled import compiled

# What a step gives: the pose after it; then, before it, the largest error of an actuated joint; the turn [rad] and the
# length [m] of the step; the sign of the Jacobian's determinant; the largest gap, 1 where it just counts as closed, or
# what SMALL makes of the step: where limbs are open, rates are not exactly those of closed ones, and Newton's method
# is not quite quadratic.
POSE, ERROR, TURN, LENGTH, SIDE, GAP, RESULTS = 0, 7, 8, 9, 10, 11, 12


SMALL = 1e-11  # of the characteristic length: a step that need not be made


class Tracked(ByAddress):
    """Where a robot is that `straight_track` follows, and scratch."""

    _f = np.float64
    kind = arrays_type(
        "Tracked",
        False,
        last=(_f, 1),
        turning=(np.int64, 1),
        before=(_f, 1),
        reading=(_f, 1),
        farthest=(_f, 1),
        limbs=(_f, 1),
        first=(_f, 1),
        product=(_f, 2),
        at=(_f, 1),
        trial=(_f, 1),
        out=(_f, 1),
    )
    last: Array  # (n_actuated,) actuated joints at the last pose
    turning: Array  # (n_actuated,) which turn
    before: Array  # (3 n_actuated,) `last`, with cosines and sines of those that turn behind it
    reading: Array  # the same of a reading
    farthest: Array  # (n_actuated,) from which on readings are not usable
    limbs: Array  # (2 k,) where iterated limbs are, see `read_iterated`
    first: Array  # (m * n,) drives' rates at the last pose, for redundant actuators; (6 * m,) by twist in a space that
    # turns; else (0,)
    product: Array  # (n, n)
    at: Array  # (7,)
    trial: Array  # (2 k,)
    out: Array  # what a step gives


class LimbsUnderWay:
    """Limbs while a step of Newton's method on the pose is recorded: iterated ones take a step of their own with it.

    `instead` are the replacements of kernels for that; those of `openly` take gaps for what the step is to close, where
    up to `bound` of a block's size counts as closed.
    """

    def __init__(self, e: Engine, invert: Callable[..., Number], bound: float = CLOSED, forms: bool = True) -> None:
        self._conditions: dict[int, Number] = {}  # of blocks, by their first body
        self.moved: Number = 0.0  # the largest correction of an iterated joint
        self.gap: Number = 0.0  # the largest, 1 where it just counts as closed
        self._inverted, self._bound = invert, bound
        self._parts = parts_of_blocks(e.tables, e.home) if forms else {}
        self.instead: list[tuple[Any, Any]] = [
            (solve_newton, nearby(self._parts, self._once)),
            (invert_blocks, self.invert),
        ]
        self.openly: list[tuple[Any, Any]] = [*self.instead, (closed, self._open)]

    def _open(self, block: Any, residual: Number) -> bool:
        # in place of `closed`
        self.gap = extreme("worse", self.gap, residual / (self._bound * block.size))
        return True

    def _once(self, model: Any, data: Any, block: Any) -> tuple[Number, int]:
        """In place of `solve_newton`: one step, whose inverse is kept."""
        trace(place_iterated)(model.bodies, block, data.state)
        trace(write_block_rows)(model.closures, block, data.state, data.rows)
        self.condition(model, data, block)
        self.moved = extreme("max", self.moved, trace(correct_joints)(model, data, block))
        trace(place_iterated)(model.bodies, block, data.state)
        return trace(write_block_rows)(model.closures, block, data.state, data.rows), 1

    def invert(self, model: Any, data: Any) -> Number:
        """In place of `invert_blocks`: the regularity of the worst block."""
        return extreme("min", 1.0, *(self.condition(model, data, block) for block in model.blocks))

    def condition(self, model: Any, data: Any, block: Any) -> Number:
        """Reciprocal condition of a block, inverted where it is not yet."""
        if block.start not in self._conditions:
            self._conditions[block.start] = self._inverted(model, data, block)
        return self._conditions[block.start]

    def carry(self, model: Any, data: Any, twist: Array) -> None:
        """Let limbs that take a step move along as the platform does."""
        stepping = [b for b in model.blocks if b.solver == NEWTON and b.start not in self._parts]
        if stepping:
            trace(move_platform)(data.state, twist, np.zeros(6))
            trace(velocities)(model, data)
        for block in stepping:
            for i in range(block.start, block.start + block.count):
                trace(turn_along)(model.bodies[i], data.state[i], data.state[i].qd)

    def lengths(self, twist: Array, length: float) -> tuple[Number, Number]:
        """Turn [rad] and length [m] of a step by a twist, rotations at a length; a limb's correction if larger."""
        turn = call("sqrt", sum(x * x for x in twist[3:]))
        far = call("sqrt", sum(x * x for x in twist[:3]) + (length * turn) * (length * turn))
        if not isinstance(self.moved, Term):
            return turn, far
        return extreme("max", turn, self.moved), extreme("max", far, length * self.moved)


class _Step:
    """A step of Newton's method while it is recorded: at a pose, towards actuated joints at q."""

    def __init__(self, e: Engine, joints: Array, near: Array) -> None:
        self.n, self.m, self.tape = e.mobility, len(e.actuated_names), Tape()
        actuated = joints[e.actuated_column]
        self.tables, self.model, self.data = e.model, loose(e.model), loose(e.data(joints))
        self.last = reading_inputs(self.tape, 0, actuated, e.actuated_turning)
        self.pose = pose_inputs(self.tape, 1, near, e.model.subspace)
        self.q = reading_inputs(self.tape, 2, actuated, e.actuated_turning)
        self.limbs = joint_inputs(self.tape, 3, e.model, self.data)
        self.turning, self.by_limbs = not e.constant_space, e.task.subspace.shape[1] == 6
        self.way = LimbsUnderWay(e, trace(invert_block, [(inverse_by_rows, inverse_in_fixed_order)]))
        self.instead = self.way.openly if self.turning or self.limbs else self.way.instead
        self.closing: Array = np.zeros(6)

    def _missing(self, bodies: Any, state: Any, q: Array, error: Array) -> None:
        """In place of `actuator_error`: what is left of it once the constraints are closed."""
        trace(actuator_error)(bodies, state, q, error)
        self.error: Number = extreme("max", *(abs(x) for x in error))
        for a in range(self.m):
            error[a] = error[a] - sum(self.data.system[0, a, k] * self.closing[k] for k in range(6))

    def recording(self) -> Recording | None:
        """The step; None where it is singular, limbs do not reach, or do not alone make a motion space that turns."""
        model, data, instead = self.model, self.data, self.instead
        trace(read_actuators)(model.bodies, data.state, self.last)
        trace(place_platform)(data.state, self.pose)
        status, _, _ = trace(solve_positions, instead)(model, data, NEAREST, False)
        if status != CONVERGED:
            return None
        if self.turning:
            if not (self.by_limbs and trace(is_regular)(self.way.invert(model, data))):
                return None
            space = RecordedSpace(model, data, self.n, instead)
            if not space.condition > FIRM:
                return None
            self.closing = space.closing()
        sign, _ = trace(correction, [*instead, (actuator_error, self._missing)])(model, data, self.q)
        if not isinstance(sign, Term) and sign == 0.0:
            return None
        twist = data.system[VECTORS, TWIST, :6] + self.closing
        rates = np.zeros((self.m, self.n), dtype=object)
        trace(drive_rates)(data.system[0, : self.m], model.subspace, rates)
        if self.turning:  # where the sign of a determinant says nothing
            sign, rates = 1.0, space.rates_by_twist(rates)
        if self.limbs:
            self.way.carry(model, data, twist)
        length = model.task[0].length
        step = self.way.lengths(twist, length)
        to = np.zeros(7, dtype=object)
        trace(shift_pose)(self.pose, twist, 1.0, to)
        gap = self.way.gap
        if self.limbs or self.turning:
            gap = extreme("worse", gap, step[1] / (SMALL * length))
        results = [*to, self.error, *step, sign, gap]
        results += joint_results(self.tables, self.limbs)
        return Recording(self.tape, 4, (*results, *(rates.flat if self.turning or self.m > self.n else ())))


def record_step(e: Engine, joints: Array, near: Array) -> Recording | None:
    """The step recorded near home, at a pose `near` (7,) with joints (n_joints,) at home; None where singular there."""
    return _Step(e, joints, near).recording()


def tracked(e: Engine, recording: Recording, last: Array) -> Tracked:
    """The robot at home, actuators at `last`, which moves along; limbs are to be written."""
    n, m, results = e.mobility, len(e.actuated_names), len(recording.results)
    first = m * n if m > n else 0 if e.constant_space else 6 * m
    limbs = results - RESULTS - first
    farthest, turning = np.array(e.inputs.farthest(e.actuated_turning)), np.array(e.actuated_turning, dtype=np.int64)
    state = last, turning, np.empty(3 * m), np.empty(3 * m), farthest, np.empty(limbs), np.empty(first)
    return Tracked(*state, np.empty((n, n)), np.empty(7), np.empty(limbs), np.empty(results))


@compiled
def with_turns(q, turning, out):
    """Write q (m,), and cosines and sines of the drives that turn, to `out` (3 m,): see `reading_inputs`."""
    m = q.shape[0]
    for k in range(m):
        out[k] = q[k]
        if turning[k]:
            out[m + k] = cos(q[k])
            out[m + m + k] = sin(q[k])


@compiled
def straight_track(code, size, robot, q, pose):
    """`track_pose` by straight-line code of a step, under the same conditions, where one step of the way is enough.

    ANOTHER_BRANCH where it takes more than one, or q is not usable, with `pose` (7,) and robot left alone. `code` is
    the code's address, `size` the characteristic length [m].
    """
    at, out, trial, first, reading = robot.at, robot.out, robot.trial, robot.first, robot.reading
    for k in range(q.shape[0]):
        if not abs(q[k]) < robot.farthest[k]:
            return ANOTHER_BRANCH, 0.0, 0
    with_turns(robot.last, robot.turning, robot.before)
    with_turns(q, robot.turning, reading)
    copy(pose, at)
    copy(robot.limbs, trial)
    if call_code(code, robot.before, at, reading, trial, out) != CONVERGED:
        return ANOTHER_BRANCH, 0.0, 0
    behind = RESULTS + trial.shape[0]
    side = out[SIDE]
    copy(out[behind:], first)
    if not out[ERROR] < LONGEST_TURN:  # else the path is followed in several steps
        return ANOTHER_BRANCH, 0.0, 0
    previous = inf
    for iteration in range(1, CORRECTIONS + 1):
        step = out[LENGTH]
        if not (step < size and out[TURN] < LONGEST_TURN and contracts(step, previous, size)):
            return ANOTHER_BRANCH, 0.0, 0
        copy(out, at)
        copy(out[RESULTS:], trial)
        if call_code(code, reading, at, reading, trial, out) != CONVERGED or out[SIDE] != side:
            return ANOTHER_BRANCH, 0.0, 0
        if settled(step, previous, size) and out[GAP] < 1.0:
            if not same_sides(first, out[behind:], robot.product):
                return ANOTHER_BRANCH, 0.0, 0
            copy(at, pose)
            copy(q, robot.last)
            copy(trial, robot.limbs)
            return CONVERGED, out[ERROR], iteration
        previous = step
    return ANOTHER_BRANCH, 0.0, 0


@compiled
def same_sides(first, second, product):
    """Whether flat drives' rates (m * n,), in the motion space or by twist, are on one side; True for none."""
    m, n = first.shape[0] // product.shape[0], product.shape[0]
    gram(first.reshape(m, n), second.reshape(m, n), product)
    return m == 0 or determinant_sign(product, n) > 0.0
