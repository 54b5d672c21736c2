# SPDX-License-Identifier: Apache-2.0
"""Working modes of limbs that are solved by iteration, carried from home to poses far away.

Newton's method finds a solution of a limb near its start, but far from it may find another one, or none. A working
mode at a pose is therefore the end of a path: the platform goes straight from home to the pose, and the limbs follow in
steps that are short against their lengths. Where a joint moves farther than it should, or a limb does not reach, the
step is tried again at a part of its length.

A platform whose motion space turns with its pose cannot go straight. There Newton's method starts from home; where that
fails, the limbs are led along the straight way all the same, as near to it as they get.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.continuing import carry_on
from pkm_kinematics.status import Status
from pkm_kinematics.task import chain_state

if TYPE_CHECKING:
    from pkm_kinematics.engine import Engine

STEP = 0.15  # rad, and of the robot's size: longest step of the platform
SHORTER = 0.25  # a step that fails is tried again at this part of its length
SHORTEST = 0.005  # where even this fails, the way is blocked
JUMP = 0.6  # rad: a limb joint that turns farther in one step may have changed its solution


def continue_joints(engine: Engine, poses: Array, start: Array, mode: int) -> tuple[Array, NDArray[np.bool_]]:
    """Joint positions (n, n_joints) at poses (n, 7), continued from `start` (n_joints,) or (n, n_joints) at home.

    And which arrived (n,); where the way is blocked, those of the last step that was not.
    """
    joints, ways, lengths, done = _in_whole_steps(engine, poses, start, mode, False)
    held_up = np.flatnonzero((done >= 0.0) & (done < 1.0))
    if len(held_up):
        _in_shorter_steps(engine, held_up, ways[held_up], lengths[held_up], mode, joints, done)
    return joints, done == 1.0


def led_joints(engine: Engine, poses: Array, start: Array, mode: int) -> Array:
    """Joint positions (n, n_joints) to solve from at poses (n, 7), led there from `start` (n, n_joints) at home."""
    return _in_whole_steps(engine, poses, start, mode, True)[0]


def _in_whole_steps(
    engine: Engine, poses: Array, start: Array, mode: int, open_on_the_way: bool
) -> tuple[Array, Array, Array, Array]:
    n, t, task = len(poses), engine.tables, engine.task
    joints = np.array(np.broadcast_to(start, (n, start.shape[-1])))
    ways, lengths, done = np.empty((n, 6)), np.empty(n), np.empty(n)
    carry_on(
        t.bodies, t.closures, t.blocks, *t.workspace(),
        task.chain, task.sliding, task.spread, task.tail, task.tail_point, chain_state(task),
        engine.body_column, engine.chain_column, engine.iterated_turns, engine.home, np.ascontiguousarray(poses),
        engine.size, STEP, JUMP, open_on_the_way, mode, joints, ways, lengths, done,
    )  # fmt: skip
    return joints, ways, lengths, done


def _in_shorter_steps(
    engine: Engine, going: NDArray[np.int64], ways: Array, lengths: Array, mode: int, joints: Array, done: Array
) -> None:
    """Take the rows `going` of joints (n, n_joints) and done (n,) farther, by steps as long as they can be."""
    columns = engine.body_column[engine.iterated_turns]
    step = np.full(len(going), STEP * SHORTER)
    while len(going):
        end = np.minimum(done[going] + step / lengths, 1.0)
        solved = engine.solve(_along(engine, ways, end), joints[going], mode)
        followed = (solved.status == Status.CONVERGED) | (solved.status == Status.JOINT_LIMIT)
        with np.errstate(invalid="ignore"):
            turned = np.abs(solved.q[:, columns] - joints[going][:, columns]).max(axis=1, initial=0.0)
        followed &= ~(turned > JUMP)
        joints[going[followed]], done[going[followed]] = solved.q[followed], end[followed]
        step = np.where(followed, np.minimum(step / SHORTER, STEP), step * SHORTER)
        on = (done[going] < 1.0) & (step >= SHORTEST)
        going, ways, lengths, step = going[on], ways[on], lengths[on], step[on]


def _along(engine: Engine, ways: Array, fraction: Array) -> Array:
    """Poses (n, 7) at fractions (n,) of the ways (n, 6) from home."""
    turned = Rotation.from_rotvec(fraction[:, None] * ways[:, 3:]) * Rotation.from_quat(engine.home[3:])
    return np.hstack([engine.home[:3] + fraction[:, None] * ways[:, :3], turned.as_quat().reshape(-1, 4)])
