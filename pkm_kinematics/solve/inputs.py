# SPDX-License-Identifier: Apache-2.0
"""Poses, rates and joints as callers give them, brought to rows and checked; the platform's branch at a pose."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy  # whose parts load when they are first used
from numpy.typing import ArrayLike, NDArray

from pkm_description.mechanism import Array
from pkm_description.rotations import transform_from_pose, with_unit_quaternions
from pkm_kinematics.batch import ShapeError, in_rows, numbers, ready, rows_for, wrong_shape
from pkm_kinematics.kernels.model_and_data import writeable
from pkm_kinematics.kernels.position.chain import place_chains, read_chain
from pkm_kinematics.kernels.position.solve_poses import FARTHEST
from pkm_kinematics.solve.robot_constants import RobotConstants
from pkm_kinematics.solve.whole_graph import FREE
from pkm_runtime.describable import listed


class Inputs:
    """Brings what callers give to rows for solves of one robot."""

    def __init__(self, robot: RobotConstants) -> None:
        self.robot = robot

    def with_redundant(self, pose: ArrayLike) -> tuple[ArrayLike, Array | None]:
        """A redundant robot's pose without redundant positions behind it, and these (n, r), None where not given."""
        r, k = len(self.robot.redundant_names), len(self.robot.task.names)
        if _width(pose) not in [7 + r] + [k + r] * (k > 0 and k + r != 7):
            return pose, None
        array = numbers(pose, self._pose_in_words, "pose")
        return array[..., :-r], in_rows(array[..., -r:])

    def redundant_at(self, poses: Array) -> Array:
        """Positions (n, r) of redundant joints at poses (n, 7) where nobody says others: home's, or as they follow."""
        robot = self.robot
        away = (poses[:, :3] - robot.home[:3]) @ robot.redundant_follow[:, :3].T
        return np.asarray(robot.home_joints[robot.redundant_column] + away)

    def beside(self, poses: Array, offset: Array | float = 0.0) -> Array:
        """Poses (n, 7 + r): redundant joints where `redundant_at` says, moved by `offset` (r,). Such poses stay."""
        if poses.shape[1] > 7 or not self.robot.redundant_names:
            return poses
        return np.hstack([poses, self.redundant_at(poses) + offset])

    def offset(self, pose: Array) -> Array:
        """How far (r,) redundant joints of a pose (7 + r,) are from where `redundant_at` says; zero for one (7,)."""
        return (
            pose[7:] - self.redundant_at(pose[None])[0] if len(pose) > 7 else np.zeros(len(self.robot.redundant_names))
        )

    def poses(self, pose: ArrayLike) -> tuple[Array, tuple[int, ...]]:
        """Poses (..., 7) or task coordinates (..., k) as rows (n, 7), normalised, and leading axes. Or `ShapeError`."""
        array = pose if ready(pose) else numbers(pose, self._pose_in_words, "pose", "; home is spelled `k.home`")
        shape = array.shape
        if shape[-1] == 7:
            return with_unit_quaternions(in_rows(array)), shape[:-1]
        if array.shape[-1] == len(self.robot.task.names) > 0:
            coordinates = array.reshape(-1, array.shape[-1])
            return self.poses_at(coordinates), array.shape[:-1]
        raise wrong_shape(pose, self._pose_in_words, "pose")

    def one_pose(self, pose: ArrayLike) -> Array:
        """The pose (7,) of a call that takes a single one, (7,) or task coordinates (k,). Raises `ShapeError`."""
        poses, _ = self.poses(pose)
        if len(poses) != 1:
            raise ShapeError(f"pose: expected a single pose, got {len(poses)}")
        return poses[0]

    @cached_property
    def _pose_in_words(self) -> str:
        names = self.robot.task.names
        coordinates = f", or (..., {len(names)}) for {listed(names)}" if names else ""
        redundant = self.robot.redundant_names
        beside = f"; behind it there may be {listed(redundant)}" if redundant else ""
        return f"an array of shape (..., 7) for x y z qx qy qz qw{coordinates}{beside}"

    def poses_at(self, coordinates: Array) -> Array:
        """Poses (n, 7) at task coordinates (n, k); NaN where they are not finite."""
        n = len(coordinates)
        poses = np.full((n, 7), np.nan)
        usable = np.asarray(np.isfinite(coordinates).all(axis=1))
        R, p = np.empty((n, 3, 3)), np.empty((n, 3))
        known = np.where(usable[:, None], coordinates, 0.0)
        place_chains(self.robot.model, self.robot.data(), known, R, p)
        if n:
            poses[usable, :3] = p[usable]
            poses[usable, 3:] = scipy.spatial.transform.Rotation.from_matrix(R).as_quat(canonical=True)[usable]
        return poses

    def branch_at(self, pose: Array) -> dict[str, float]:
        """Positions of the platform's branch at a pose (7,), or of the six joints that stand for it, by name."""
        if self.robot.task.names:
            return dict(zip(self.robot.task.names, (float(q) for q in self._read_chain(pose)["q"][1:]), strict=True))
        return {name: float(values[0]) for name, values in self.stand_in(pose[None]).items()}

    def in_whole_graph(self, joints: Array, poses: Array) -> Array:
        """Positions (n, n_bodies) in the whole graph for joints (n, n_joints) that close the loops at poses (n, 7)."""
        whole = self.robot.whole_graph
        positions = np.tile(whole.tables.bodies["home"], (len(joints), 1))
        positions[:, self.robot.in_whole] = joints
        for name, values in self.stand_in(poses).items():
            positions[:, whole.names.index(name)] = values
        return positions

    def in_whole_graph_at(self, joints: Array, pose: Array) -> Array:
        """Positions (n_bodies,) for joints (n_joints,) that need not close the loops, the platform at a pose (7,)."""
        positions = self.in_whole_graph(joints[None], pose[None])[0]
        if self.robot.task.names:
            positions[self.robot.whole_graph.platform_branch] = self._read_chain(pose)["q"][1:]
        return positions

    def stand_in(self, poses: Array) -> dict[str, Array]:
        """Positions (n,) by name, at poses (n, 7), of the six joints that stand for a branch where there is none."""
        if self.robot.task.names or not len(poses):
            return {}
        Rotation = scipy.spatial.transform.Rotation
        home = Rotation.from_quat(self.robot.home[3:])
        away = home.inv().apply(poses[:, :3] - self.robot.home[:3])
        angles = (home.inv() * Rotation.from_quat(poses[:, 3:])).as_euler("ZYX")
        return {freedom.name: values for freedom, values in zip(FREE, np.hstack([away, angles]).T, strict=True)}

    def _read_chain(self, pose: Array) -> NDArray[Any]:
        data, pose = self.robot.data(), writeable(pose)
        read_chain(self.robot.model, data, np.ascontiguousarray(transform_from_pose(pose)[:3, :3]), pose[:3])
        return data.chain

    def rates(self, twist: ArrayLike, acceleration: ArrayLike | None, n: int) -> tuple[Array, Array]:
        """Twists and accelerations as (n, 6) rows. Raises `ShapeError`."""
        twists = rows_for(twist, 6, n, "twist")
        accelerations = np.zeros((n, 6)) if acceleration is None else rows_for(acceleration, 6, n, "acceleration")
        if len(twists) != n:
            twists = writeable(np.broadcast_to(twists, (n, 6)))
        if len(accelerations) != n:
            accelerations = writeable(np.broadcast_to(accelerations, (n, 6)))
        return twists, accelerations

    def coordinate_rates(self, values: ArrayLike | None, n: int, what: str) -> Array:
        """Rates (..., 6), redundant joints as described, or (..., 6 + r) as rows (n, 6 + r). Raises `ShapeError`."""
        found = np.zeros((n, 6 + len(self.robot.redundant_names)))
        if values is not None:
            width = found.shape[1] if _width(values) == found.shape[1] else 6
            found[:, :width] = rows_for(values, width, n, what)
            if width == 6:
                found[:, 6:] = found[:, :6] @ self.robot.redundant_follow.T
        return found

    def usable(self, joints: Array, turning: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which joint positions (n, k) are numbers fine enough to close loops with; `turning` (k,) tells which turn."""
        return np.asarray(np.abs(joints) < self.farthest(turning))

    def farthest(self, turning: NDArray[np.bool_]) -> Array:
        """Joint positions (k,) from which on numbers are too coarse to close loops with; `turning` as in `usable`."""
        return np.where(turning, FARTHEST, FARTHEST * self.robot.size)


def _width(values: ArrayLike) -> int:
    try:
        shape = np.shape(values)
    except ValueError:  # rows of several lengths, which whoever reads them refuses
        return 0
    return int(shape[-1]) if shape else 0
