# SPDX-License-Identifier: Apache-2.0
"""Random regular states of any robot: where a comparison between engines means something.

Poses are drawn in the platform's own coordinates around home, in the widest of a series of boxes in which at least half
of them can be reached within the joints' limits. States near a singularity are left out: there every engine amplifies
rounding, and no tolerance would be honest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from bench.engines.pinocchio_model import PinocchioRobot
from pkm_description.mechanism import Array, JointType, Mechanism
from pkm_dynamics.linear_form.random_motions import regular
from pkm_kinematics import Kinematics

WIDEST = 1.0  # m and rad
NARROWEST = 0.005
SHRINK = 0.7


class NoRegularStatesError(RuntimeError):
    """A robot that is singular, or cannot move, wherever one looks near its home."""


@dataclass(frozen=True, eq=False)
class States:
    """`n` states: poses (n, 7), twists and accelerations (n, 6), joints (n, n_joints), and the size of the box."""

    pose: Array
    twist: Array
    acceleration: Array
    joints: Array
    size: float

    def __len__(self) -> int:
        return len(self.pose)


def chain_pose(mechanism: Mechanism, coordinates: Array) -> Array:
    """Pose (7,) of the platform from the positions (k,) of its own branch; from a twist at home (6,) without one."""
    if not mechanism.platform_chain:
        at = pin.SE3(np.array(mechanism.home))
        at = pin.SE3(at.rotation @ pin.exp3(coordinates[3:]), at.translation + coordinates[:3])
        return pin.SE3ToXYZQUAT(at)
    at = pin.SE3.Identity()
    values = iter(coordinates)
    for name in mechanism.platform_chain:
        joint = mechanism.joint_named[name]
        at = at * pin.SE3(np.array(joint.origin))
        if joint.type is JointType.PRISMATIC:
            at = at * pin.SE3(np.eye(3), next(values) * np.array(joint.axis))
        elif joint.type is not JointType.FIXED:
            at = at * pin.SE3(pin.exp3(next(values) * np.array(joint.axis)), np.zeros(3))
    return pin.SE3ToXYZQUAT(at)


def curve(mechanism: Mechanism, coordinates: Array, rates: Array, second: Array, times: Array) -> Array:
    """Poses (n, 7) at `times` (n,) of the curve through `coordinates` (k,) with these rates and second rates."""
    return np.array([chain_pose(mechanism, coordinates + t * rates + 0.5 * t * t * second) for t in times])


def home_coordinates(kinematics: Kinematics) -> Array:
    """Positions of the platform's branch at home."""
    names = kinematics.task.names
    if not names:
        return np.zeros(6)
    column = {name: k for k, name in enumerate(kinematics.joint_names)}
    joints = kinematics.inverse(kinematics.home).joints
    return np.array([joints[column[name]] for name in names])


def draw(kinematics: Kinematics, rng: np.random.Generator, count: int, size: float) -> Array:
    """Random poses (count, 7) around home.

    Positions of the platform's branch are drawn, or of the actuators where the platform has fewer degrees of freedom
    than that.
    """
    if kinematics.constant_space:
        home = home_coordinates(kinematics)
        box = home + rng.uniform(-size, size, (count, len(home)))
        return np.array([chain_pose(kinematics.mechanism, c) for c in box])
    home = kinematics.inverse(kinematics.home).actuated
    return kinematics.forward(home + rng.uniform(-size, size, (count, len(home)))).pose


def random_poses(kinematics: Kinematics, n: int, seed: int = 0) -> tuple[Array, float]:
    """`n` regular poses (n, 7) and half the width of the box in which they were drawn [m, rad].

    Raises `NoRegularStatesError`.
    """
    rng = np.random.default_rng(seed)
    size = WIDEST
    while np.count_nonzero(regular(kinematics, draw(kinematics, rng, 100, size), size)) < 50:
        size *= SHRINK
        if size < NARROWEST:
            raise NoRegularStatesError(kinematics.mechanism.name)
    found = np.empty((0, 7))
    while len(found) < n:
        poses = draw(kinematics, rng, n, size)
        found = np.vstack([found, poses[regular(kinematics, poses, size)]])
    return found[:n], size


def random_states(kinematics: Kinematics, robot: PinocchioRobot, n: int, seed: int = 0) -> States:
    """`n` regular states with velocities of the box's size per 0.1 s, and accelerations per 0.1 s of those.

    Twists and accelerations come from random rates of the platform's own branch, or of the actuators, by Pinocchio.
    """
    poses, size = random_poses(kinematics, n, seed)
    rng = np.random.default_rng(seed + 1)
    joints = kinematics.inverse(poses).joints
    names = kinematics.task.names if kinematics.constant_space else kinematics.actuated_names
    columns = [robot.column[name] for name in names]
    width = len(columns) or 6
    rates = 10.0 * size * rng.uniform(-1, 1, (n, width))
    second = 100.0 * size * rng.uniform(-1, 1, (n, width))
    if not names:
        return States(poses, rates, second, joints, size)
    twists, accelerations = np.empty((n, 6)), np.empty((n, 6))
    for k in range(n):
        q = robot.coordinates(kinematics.joint_names, joints[k])
        v, vdot = robot.rates_from(q, columns, rates[k], second[k])
        J, drift = robot.platform_rows(q, v)
        twists[k], accelerations[k] = J @ v, J @ vdot + drift
    return States(poses, twists, accelerations, joints, size)
