# SPDX-License-Identifier: Apache-2.0
"""Where to record, and which numbers of a motion vary in a constant motion space."""

from __future__ import annotations

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.compiled_rotations import shift_pose
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


def pose_inputs(tape: Tape, array: int, home: Array, subspace: Array, size: float) -> Array:
    """The pose of `near_home` as the first numbers of input array `array`."""
    pose = near_home(home, subspace, size)
    slides = np.flatnonzero(subspace[:3].any(axis=1))
    return tape.inputs(array, pose, [*slides, *([3, 4, 5, 6] if subspace[3:].any() else [])])


def rate_inputs(tape: Tape, array: int, first: int, subspace: Array) -> Array:
    """A twist or acceleration (6,) in the motion space (6, n): the numbers from `first` on of input array `array`."""
    rate = subspace @ some_numbers(subspace.shape[1])
    return tape.inputs(array, rate, np.flatnonzero(subspace.any(axis=1)), first)


def free_inputs(tape: Tape, array: int, first: int, n: int) -> Array:
    """Any numbers (n,): the numbers from `first` on of input array `array`."""
    return tape.inputs(array, some_numbers(n), range(n), first)
