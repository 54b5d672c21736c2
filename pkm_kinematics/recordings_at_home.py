# SPDX-License-Identifier: Apache-2.0
"""Kernels of one robot recorded as straight-line code: what is recorded at home, and forward kinematics by it.

The recordings of the dynamics have the same inputs; `pkm_runtime.codegen` makes machine code of them.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_kinematics.kernels.model_and_data import Data, Model
from pkm_kinematics.kernels.path.follow import CORRECTIONS, contracts, settled
from pkm_kinematics.kernels.path.newton import LONGEST_TURN, RESULTS, newton_step
from pkm_kinematics.kernels.position.positions import CONVERGED
from pkm_kinematics.kernels.records import NEWTON
from pkm_runtime.codegen.call_code import ANOTHER_BRANCH, call_code
from pkm_runtime.codegen.record_kernel import loose, trace
from pkm_runtime.codegen.tape import Recording, Tape
from pkm_runtime.kernels.compiled import compiled

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
    slides = [model.bodies["prismatic"][i] == 1 for b in blocks for i in range(b["start"], b["start"] + b["count"])]
    return [x for me, slid in zip(states, slides, strict=True) for x in ((me.q, 0.0) if slid else (me.c, me.s))]


def record_newton_step(model: Model, data: Data, home: Array, actuated: Array) -> Recording | None:
    """`newton_step` recorded at home (pose, `data` and q there); None where singular or redundantly actuated."""
    m = len(actuated)
    if m != model.subspace.shape[1]:
        return None
    tape = Tape()
    start = tape.inputs(0, actuated, range(m))
    pose = pose_inputs(tape, 1, near_home(home, model.subspace, float(model.task[0].size)), model.subspace)
    q = tape.inputs(2, actuated, range(m))
    out = np.zeros(RESULTS, dtype=object)
    status = trace(newton_step)(loose(model), loose(data), start, q, pose, out)
    return Recording(tape, 3, tuple(out)) if status == CONVERGED else None


@compiled
def straight_track(code, size, at, out, last, farthest, q, pose):
    """`track_pose` by straight-line code of `newton_step`, under the same conditions, where one step leads to the end.

    A status of ANOTHER_BRANCH where it takes more than one step or q is not usable, with `pose` and `last` left alone.
    `code` is the code's address, `size` the characteristic length [m], `at` (7,) and `out` (RESULTS,) scratch. Actuated
    joint positions (n_actuated,): `last` at `pose` (7,), both of which move along; `farthest`, from which on readings
    are not usable; and q, the reading.
    """
    for k in range(q.shape[0]):
        if not abs(q[k]) < farthest[k]:
            return ANOTHER_BRANCH, 0.0, 0
    for k in range(7):
        at[k] = pose[k]
    if call_code(code, last, at, q, out) != CONVERGED:
        return ANOTHER_BRANCH, 0.0, 0
    side = out[10]
    if not out[7] < LONGEST_TURN:  # else the path is followed in several steps
        return ANOTHER_BRANCH, 0.0, 0
    previous = inf
    for iteration in range(1, CORRECTIONS + 1):
        step = out[9]
        if not (step < size and out[8] < LONGEST_TURN and contracts(step, previous, size)):
            return ANOTHER_BRANCH, 0.0, 0
        for k in range(7):
            at[k] = out[k]
        if call_code(code, q, at, q, out) != CONVERGED or out[10] != side:
            return ANOTHER_BRANCH, 0.0, 0
        if settled(step, previous, size):
            for k in range(7):
                pose[k] = at[k]
            for k in range(q.shape[0]):
                last[k] = q[k]
            return CONVERGED, out[7], iteration
        previous = step
    return ANOTHER_BRANCH, 0.0, 0
