# SPDX-License-Identifier: Apache-2.0
"""Random motions of any robot around its home, for ranks and checks that need general states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_kinematics.solve.singularity import scaling
from pkm_runtime.errors import PkmError

WIDEST = 0.5  # rad, and of the robot's size
NARROWEST = 2e-3
SHRINK = 0.7
REGULAR = 0.02  # ratio of singular values of the Jacobian, and of a limb's equations, below which a pose is left out


class NoMotionError(PkmError):
    """A robot that is singular, or cannot move, all around its home."""

    def __init__(self, robot: str) -> None:
        self.robot = robot
        super().__init__(f"{robot}: no regular poses near home")


@dataclass(frozen=True, eq=False)
class Motions:
    """n motions: poses (n, 7), twists and accelerations (n, 6), and the size of their box [rad, and of the robot's]."""

    pose: Array
    twist: Array
    acceleration: Array
    size: float


def random_motions(kinematics: Kinematics, n: int, seed: int = 0) -> Motions:
    """n motions inside limits and away from singularities, with rates of the size of the box per 0.1 s."""
    rng = np.random.default_rng(seed)
    size = WIDEST
    while np.count_nonzero(regular(kinematics, _draw(kinematics, rng, 60, size), size)) < 30:
        size *= SHRINK
        if size < NARROWEST:
            raise NoMotionError(kinematics.mechanism.name)
    poses = np.empty((0, 7))
    while len(poses) < n:
        drawn = _draw(kinematics, rng, n, size)
        poses = np.vstack([poses, drawn[regular(kinematics, drawn, size)]])
    poses = _to_rounding(kinematics, poses[:n])
    length = kinematics.engine.size
    rates = 10.0 * size * rng.uniform(-1.0, 1.0, (2, n, kinematics.mobility))
    at = kinematics.inverse(poses)
    unit = at.subspace * length / speeds(at.subspace, length)
    twists = np.einsum("kij,kj->ki", unit, rates[0])
    accelerations = np.einsum("kij,kj->ki", unit, 10.0 * rates[1]) + at.spaces(twists)[1]
    return Motions(poses, twists, accelerations, size)


def speeds(S: Array, length: float) -> Array:
    """Speeds (..., 1, f) [m/s] of twists (..., 6, f), rotations at `length` [m]."""
    return np.asarray(np.linalg.norm(S * scaling(length)[:, None], axis=-2, keepdims=True))


def _draw(kinematics: Kinematics, rng: np.random.Generator, n: int, size: float) -> Array:
    """Random poses (n, 7) around home, in the motion space: of the platform, else of the actuators."""
    length, S = kinematics.engine.size, kinematics.task.subspace
    if kinematics.constant_space:
        home = np.array(kinematics.home)
        steps = rng.uniform(-size, size, (n, kinematics.mobility)) @ (S * length / speeds(S, length)).T
        return np.array([displace(home, step) for step in steps])
    home = kinematics.inverse(kinematics.home).actuated
    units = np.where(kinematics.engine.actuated_turning, 1.0, length)
    return kinematics.forward(home + units * rng.uniform(-size, size, (n, len(home)))).pose


def _to_rounding(kinematics: Kinematics, poses: Array) -> Array:
    """Poses (n, 7) that miss the motion space by less than the rounding of their numbers.

    The forward kinematics stops at 1e-13 of the robot's size. Where the space turns, what a pose misses comes back in
    accelerations, a thousand times larger; beside it a further step of Newton's method leaves nothing.
    """
    if kinematics.constant_space:
        return poses
    found = kinematics.forward(kinematics.inverse(poses).actuated, near=poses).pose
    return np.where(np.isfinite(found), found, poses)


def regular(kinematics: Kinematics, poses: Array, size: float) -> np.ndarray:
    """Mask (n,) of the poses (n, 7) within limits and away from singularities."""
    good = np.isfinite(poses).all(axis=1)
    at = kinematics.inverse(poses)
    good &= at.ok & (at.condition > REGULAR)
    if good.any():
        at = at.rows(np.flatnonzero(good))
        lever = max(size, 0.1) * kinematics.engine.size  # that of which a rotation counts as a translation
        K = at.inverse_jacobian @ (at.subspace / speeds(at.subspace, lever))
        values = np.linalg.svd(kinematics.engine.drive_units[:, None] * K, compute_uv=False)
        good[good] = values[:, -1] > REGULAR * values[:, 0]
    return good
