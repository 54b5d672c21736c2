# SPDX-License-Identifier: Apache-2.0
"""The twists and accelerations that the platform can have at a pose: the motion space."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_description.rotations import pose_distance, rotation_from_quaternion, transform_from_pose
from pkm_kinematics.kernels.model_and_data import SEEDED, Choice, Data, Model, Solved, near, writeable
from pkm_kinematics.kernels.position.chain import read_chain
from pkm_kinematics.kernels.position.solve_poses import INSIDE
from pkm_kinematics.kernels.rates.motion_space import allowed_twists, motion_space, motion_spaces, off_space
from pkm_kinematics.solve.inputs import Inputs
from pkm_kinematics.solve.position_solver import PositionSolver
from pkm_kinematics.solve.robot_constants import RobotConstants
from pkm_kinematics.solve.singularity import scaling
from pkm_kinematics.status import stays_open
from pkm_runtime.errors import PkmError
from pkm_runtime.kernels.binding import Prepared

ASTRAY = 0.05  # of an acceleration: what feedback and trajectories may miss of a motion space that turns
ROUNDED = 1e-5  # of the robot's size: a loop open by less may be so by rounding; INSIDE decides, of the pose


class PossibleTwists:
    """Motion spaces of one robot, and what lies in them."""

    def __init__(self, robot: RobotConstants, inputs: Inputs, positions: PositionSolver) -> None:
        self.robot, self.inputs, self.positions = robot, inputs, positions

    def at_one(self, pose: Array, joints: Array, twist: Array | None = None) -> tuple[Array, Array]:
        """`at` one pose (7,), near joint positions (n_joints,): S (6, mobility), and the acceleration (6,)."""
        spaces, biases = self.at(pose[None], near(joints, 1, SEEDED), None if twist is None else twist[None])
        return spaces[0], biases[0]

    def at(self, poses: Array, choice: Choice, twists: Array | None = None) -> tuple[Array, Array]:
        """Bases S (n, 6, mobility) at poses (n, 7), and accelerations (n, 6) imposed by twists; NaN if singular."""
        n, task = len(poses), self.robot.task
        if self.robot.constant_space:
            return np.broadcast_to(task.subspace, (n, *task.subspace.shape)), np.zeros((n, 6))
        spaces, biases = np.empty((n, 6, self.robot.mobility)), np.empty((n, 6))
        at = np.zeros((n, 6)) if twists is None else writeable(twists)
        poses = writeable(poses)

        def part(model: Model, data: Data, rows: Choice, row: slice) -> None:
            motion_spaces(model, data, rows, poses[row], at[row], spaces[row], biases[row])

        self.positions.over_rows(poses, choice, part)
        return spaces, biases

    def space_in(self, model: Model, data: Data, pose: Array, twist: Array) -> tuple[Array, Array]:
        """As `at`, at the one pose (7,) whose positions are in the data, its blocks inverted."""
        space, bias = np.empty((6, self.robot.mobility)), np.empty(6)
        if not self.robot.task.constant:  # the branch moves along, and with it what it blocks
            pose = writeable(pose)
            read_chain(model, data, np.ascontiguousarray(transform_from_pose(pose)[:3, :3]), pose[:3])
        motion_space(model, data, writeable(self.allowed_at(pose)), twist, space, bias)
        return space, bias

    def into_space(self, poses: Array, choice: Choice, solved: Solved | None = None) -> Array:
        """Poses (n, 7), those moved into a configuration-dependent motion space that miss it by rounding only.

        For poses in single precision: where limbs hold the platform, the nearest configuration says where. The same
        array where nothing had to be done. `solved` is what was found at the poses.
        """
        if self.robot.constant_space:
            return poses
        if solved is None:
            solved = self.positions.by_blocks(poses, choice)
        if not np.count_nonzero(solved.status):  # all CONVERGED: most calls
            return poses
        near = np.flatnonzero(stays_open(solved.status) & (solved.residual < ROUNDED * self.robot.size))
        if not len(near):
            return poses
        moved = poses.copy()
        for k, seed in zip(near, choice.seeds_for(near), strict=True):
            joints = np.array(seed)
            joints[self.robot.body_column[2:]] = self.robot.placed(poses[k], seed, choice.branch).state["q"][2:]
            start = self.inputs.in_whole_graph_at(joints, poses[k])
            found = self.robot.whole_graph.nearest(start, self.robot.characteristic_length).pose
            if pose_distance(poses[k], found, self.robot.size)[0] < INSIDE * self.robot.size:
                moved[k] = found[0]
        return moved

    def allowed_at(self, pose: Array) -> Array:
        """Twists (6, c) that the platform's own branch allows at a pose."""
        return self.robot.task.subspace if self.robot.task.constant else self.branch_twists(pose[None])[0]

    def task_twists(self, poses: Array) -> Array:
        """Platform twists (n, 6, k) per rates of the task coordinates at poses (n, 7): see `Configuration`."""
        names = self.robot.task.names
        if len(names) not in (0, self.robot.mobility):
            raise PkmError(
                f"the task coordinates {', '.join(names)} depend on each other: the platform has "
                f"{self.robot.mobility} degrees of freedom; motion_jacobian has a basis of these"
            )
        return self.branch_twists(poses) if names else np.broadcast_to(np.eye(6), (len(poses), 6, 6))

    def branch_twists(self, poses: Array) -> Array:
        """Twists (n, 6, k) of the platform per rate of each joint of its branch, at poses (n, 7); NaN if unusable."""
        found, poses = np.full((len(poses), 6, len(self.robot.task.names)), np.nan), writeable(poses)
        usable = np.flatnonzero(np.isfinite(poses).all(axis=1))
        if not len(usable):
            return found
        data = self.robot.data()
        home = data.chain.copy()  # where each row begins: near a degenerate angle no row shall depend on others
        for k in usable:
            data.chain[:] = home
            read_chain(self.robot.model, data, rotation_from_quaternion(poses[k, 3:]), poses[k, :3])
            found[k] = allowed_twists(self.robot.model, data, poses[k])
        return found

    def outside(self, rates: Array, spaces: Array | None = None) -> NDArray[np.bool_]:
        """Which twists or accelerations (n, 6) are not in the spaces (n, 6, mobility), or are too large to square."""
        scale = self.rate_scale
        if spaces is None:
            off: NDArray[np.bool_] = np.empty(len(rates), dtype=np.bool_)
            self._off_space(np.ascontiguousarray(rates), scale, self.onto_space, INSIDE, off)
            return off
        Q = np.linalg.qr(np.nan_to_num(spaces) * scale[:, None])[0]
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = rates * scale
            size = np.linalg.norm(scaled, axis=1)
            left = scaled - np.einsum("nik,njk,nj->ni", Q, Q, scaled)
            off = np.linalg.norm(left, axis=1) > INSIDE * (1.0 + size)
        return np.asarray((off & np.isfinite(spaces).all(axis=(1, 2))) | ~(size < np.inf))

    def nearest_accelerations(
        self, accelerations: Array, spaces: Array, biases: Array
    ) -> tuple[Array, NDArray[np.bool_]]:
        """The possible accelerations (n, 6) nearest to given ones, and which of those given are ASTRAY from them.

        For configuration-dependent motion spaces. A moving platform has `biases` even at constant velocity in the
        space, and callers rarely know them exactly: feedback and interpolation miss them by up to a percent.
        """
        scale = self.rate_scale
        Q = np.linalg.qr(np.nan_to_num(spaces) * scale[:, None])[0]
        with np.errstate(invalid="ignore", over="ignore"):
            free = (accelerations - biases) * scale
            kept = np.einsum("nik,njk,nj->ni", Q, Q, free)
            size = 1.0 + np.linalg.norm(accelerations * scale, axis=1) + np.linalg.norm(biases * scale, axis=1)
            astray = np.asarray((np.linalg.norm(free - kept, axis=1) > ASTRAY * size) | ~(size < np.inf))
            nearest = biases + kept / scale
        known = np.asarray(np.isfinite(spaces).all(axis=(1, 2), keepdims=True))[:, :, 0]
        return np.where(known, nearest, np.nan), astray & known[:, 0]

    @cached_property
    def _off_space(self) -> Callable[..., None]:
        example = np.empty((1, 6)), self.rate_scale, self.onto_space, INSIDE, np.empty(1, dtype=np.bool_)
        return Prepared(off_space, *example).call

    @cached_property
    def rate_scale(self) -> Array:
        """Factors (6,) that make twists speeds [m/s]: rotations at the characteristic length."""
        return scaling(self.robot.characteristic_length)

    @cached_property
    def onto_space(self) -> Array:
        """Projector (6, 6) onto the constant motion space, of rates at `rate_scale`; (0, 6) where not needed."""
        if not self.robot.constant_space or self.robot.mobility == 6:
            return np.empty((0, 6))
        Q = np.linalg.qr(self.robot.task.subspace * self.rate_scale[:, None])[0]
        projector: Array = Q @ Q.T
        return projector
