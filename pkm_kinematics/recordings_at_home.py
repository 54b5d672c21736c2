# SPDX-License-Identifier: Apache-2.0
"""Inputs near home with which recordings of one robot's kernels begin; `pkm_runtime.codegen` makes code of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_kinematics.kernels.model_and_data import Model
from pkm_kinematics.kernels.records import NEWTON
from pkm_runtime.codegen.tape import Tape

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
