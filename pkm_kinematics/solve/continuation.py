# SPDX-License-Identifier: Apache-2.0
"""Working modes of limbs that are solved by iteration, tracked from home to poses far away.

Newton's method finds a solution of a limb near its start, but far from it may find another one, or none. A working
mode at a pose is therefore the end of a path: the platform goes straight from home to the pose, and the limbs follow in
steps short against their lengths. Where a joint moves farther than it should, or a limb does not reach, the step is
tried again at a part of its length. In a configuration-dependent motion space the platform cannot go straight: there
Newton's method starts from home, and where that fails, the limbs follow the straight way as near to it as they get.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # whose parts load when they are first used
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.model_and_data import NEAREST, Choice, Data, Model, Solved, near
from pkm_kinematics.kernels.path.carry_on import FAR, JUMP, STEP, StraightPath, carry_on
from pkm_kinematics.status import closes
from pkm_runtime.kernels.binding import WithScratch

SHORTER = 0.25  # a step that fails is tried again at this part of its length
SHORTEST = 0.005  # where even this fails, the way is blocked


@dataclass(frozen=True, eq=False)
class Continuation:
    """Tracks the limbs of one robot from home; `solve` solves poses (n, 7) for steps of any length."""

    model: Model
    data: Callable[[], Data]
    solve: Callable[[Array, Choice], Solved]
    home: Array
    turning: NDArray[np.int64]  # bodies that are found by iteration and turn
    size: float  # m

    def carried(self, poses: Array, start: Array, branch: int) -> tuple[Array, NDArray[np.bool_]]:
        """Joint positions (n, n_joints) continued from home to poses (n, 7), and which arrived (n,).

        `start` (n_joints,) or (n, n_joints) are the joints at home, `branch` that of the closed forms. Where the path
        is blocked, the joints are those of the last step that was not.
        """
        joints, paths, lengths, done, blocked = self._in_whole_steps(poses, start, branch, False)
        if blocked:
            held_up = np.flatnonzero((done >= 0.0) & (done < 1.0))
            self._in_shorter_steps(held_up, paths[held_up], lengths[held_up], branch, joints, done)
        return joints, done == 1.0

    def led(self, poses: Array, start: Array, branch: int) -> Array:
        """Joint positions (n, n_joints) to solve from at poses (n, 7), tracked from `start` (n, n_joints) at home."""
        return self._in_whole_steps(poses, start, branch, True)[0]

    def _in_whole_steps(
        self, poses: Array, start: Array, branch: int, open_on_the_path: bool
    ) -> tuple[Array, Array, Array, Array, int]:
        n = len(poses)
        joints = np.empty((n, start.shape[-1]))
        joints[:] = start
        paths, lengths, done = np.empty((n, 6)), np.empty(n), np.empty(n)
        poses = np.ascontiguousarray(poses)
        blocked = self._carry_on(self.model, self._path, poses, branch, open_on_the_path, joints, paths, lengths, done)
        return joints, paths, lengths, done, blocked

    @cached_property
    def _path(self) -> StraightPath:
        return StraightPath(self.home, self.turning, self.size, STEP, JUMP)

    @cached_property
    def _carry_on(self) -> WithScratch:
        rows, numbers = np.empty((1, 7)), np.empty(1)
        example = self._path, rows, NEAREST, False, rows, rows, numbers, numbers
        return WithScratch(carry_on, self.data, self.model, *example)

    def _in_shorter_steps(
        self, going: NDArray[np.int64], paths: Array, lengths: Array, branch: int, joints: Array, done: Array
    ) -> None:
        """Advance the rows `going` of joints (n, n_joints) and done (n,) by steps as long as they can be."""
        columns = self.model.bodies["column"][self.turning]
        step = np.full(len(going), STEP * SHORTER)
        while len(going):
            end = np.minimum(done[going] + step / lengths, 1.0)
            solved = self.solve(self._along(paths, end), near(joints[going], len(going), branch))
            followed = closes(solved.status)
            with np.errstate(invalid="ignore"):
                turned = np.abs(solved.q[:, columns] - joints[going][:, columns]).max(axis=1, initial=0.0)
            followed &= ~(turned > JUMP)
            joints[going[followed]], done[going[followed]] = solved.q[followed], end[followed]
            step = np.where(followed, np.minimum(step / SHORTER, STEP), step * SHORTER)
            on = (done[going] < 1.0) & (step >= SHORTEST)
            going, paths, lengths, step = going[on], paths[on], lengths[on], step[on]

    def _along(self, paths: Array, fraction: Array) -> Array:
        """Poses (n, 7) at fractions (n,) of the paths (n, 6) from home."""
        Rotation = scipy.spatial.transform.Rotation
        turned = Rotation.from_rotvec(fraction[:, None] * paths[:, 3:]) * Rotation.from_quat(self.home[3:])
        return np.hstack([self.home[:3] + fraction[:, None] * paths[:, :3], turned.as_quat().reshape(-1, 4)])


def far_away(poses: Array, home: Array, size: float) -> NDArray[np.bool_]:
    """Which poses (n, 7) are too far from home (7,) for limbs of a robot of `size` [m] to be tracked there."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.abs(poses[:, :3] - home[:3]).max(axis=1) > FAR * size)
