# SPDX-License-Identifier: Apache-2.0
"""The task coordinates of a robot for jogging: their names, units and spans, and their poses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from pkm_control.loop.jogging import OF_ACTUATORS, jog_speeds
from pkm_description.mechanism import Array
from pkm_description.picture import extent
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.kernels.compiled_rotations import displacement_between
from pkm_viewer.fitting import diagonal

_STEPS = 24  # from home to the end of a span that is tried; and again, from the last of them that is good to the next
_TIMES = 3
_NEAR = 0.1  # of the distance from singularities that home has: a span ends before
_SMALL = 1e-5  # m or rad, for differences
_SHARE = 0.5  # of the robot's size, the longest span to a side
_TURN = np.pi  # rad, the longest span to a side
QUINTIC_PEAK = 1.875  # its largest rate over its mean
SHORTEST = 1.0  # s, of a motion of redundant joints
_FREE = ("x", "y", "z", "roll", "pitch", "yaw")  # of a platform without a branch of its own


@dataclass(frozen=True)
class Coordinate:
    """Number `index` of the task coordinates, or of redundant joints behind them: linear [m] or angular [rad].

    It goes from `low` to `high`, and starts at `home`.
    """

    index: int
    name: str
    slides: bool
    low: float
    high: float
    home: float


@dataclass(frozen=True, eq=False)
class Target:
    """A target: the pose (7,) of the platform, coordinates and joints there; or why it is out of reach."""

    pose: Array
    coordinates: Array
    joints: Array
    problem: str = ""


class JogSpace:
    """Poses for task coordinates, and the inverse, near the robot's configuration."""

    def __init__(self, kinematics: Kinematics) -> None:
        self.kinematics = kinematics
        self._names = kinematics.task.names
        self._columns = [kinematics.joint_names.index(name) for name in self._names]
        low, high = extent(kinematics.mechanism)
        self._reach = _SHARE * diagonal(low, high)
        self._beside = [kinematics.joint_names.index(name) for name in kinematics.redundant_names]
        home, beside = np.split(
            self.coordinates(np.array(kinematics.home), np.array(kinematics.home_joints)), [len(self._names) or 6]
        )
        kinds = [
            kinematics.mechanism.joint_named[name].unit == "m" if name in kinematics.mechanism.joint_named else True
            for name in self._names
        ] or [True] * 3 + [False] * 3
        self.all: tuple[Coordinate, ...] = tuple(
            Coordinate(k, name, slides, *self._span(k, slides, home), home=float(home[k]))
            for k, (name, slides) in enumerate(zip(self._names or _FREE, kinds, strict=True))
        )
        self.redundant = tuple(
            self._joint(len(self.all) + k, name, float(beside[k])) for k, name in enumerate(kinematics.redundant_names)
        )

    def _joint(self, index: int, name: str, home: float) -> Coordinate:
        joint = self.kinematics.mechanism.joint_named[name]
        slides, limits = joint.unit == "m", joint.limits
        far = self._reach if slides else _TURN
        return Coordinate(index, name, slides, max(limits.lower, home - far), min(limits.upper, home + far), home)

    @property
    def independent(self) -> tuple[Coordinate, ...]:
        """As many coordinates as the platform has degrees of freedom: those in which it moves most at home."""
        k = self.kinematics
        scale = np.repeat((1.0 / k.characteristic_length, 1.0), 3)[:, None]
        space, _ = np.linalg.qr(scale * np.asarray(k.subspace(k.home)))
        twists = scale * self._twists()
        shares = np.linalg.norm(space.T @ twists, axis=0) / np.linalg.norm(twists, axis=0)
        most = np.argsort(-np.round(shares, 6), kind="stable")[: k.mobility]
        return tuple(self.all[one] for one in sorted(most))

    def _twists(self) -> Array:
        """Twists (6, k) of the platform at home per rate of each coordinate, whether it can move alone or not."""
        if not self._columns:
            return np.eye(6)
        home = np.array([one.home for one in self.all])
        rows = np.vstack((home, home + _SMALL * np.eye(len(home))))
        poses = np.asarray(self.kinematics.engine.inputs.poses(rows)[0])
        return np.array([displacement_between(poses[0], pose) for pose in poses[1:]]).T / _SMALL

    @property
    def translations(self) -> tuple[bool, bool, bool]:
        """Along which axes of the base frame the platform can move; all of them where its directions are oblique."""
        return self._axes(0)

    @property
    def rotations(self) -> tuple[bool, bool, bool]:
        """About which axes of the base frame it can turn at home; all of them where the axes are oblique."""
        return self._axes(3)

    def _axes(self, first: int) -> tuple[bool, bool, bool]:
        k = self.kinematics
        space = np.asarray(k.subspace(k.home))
        part = space[first : first + 3]
        scale = k.characteristic_length
        size = np.linalg.norm(np.vstack((space[:3] / scale, space[3:])), axis=0)
        part = (part if first else part / scale) / np.where(size > 0, size, 1.0)
        values, vectors = np.linalg.eigh(part @ part.T)
        basis = vectors[:, values > 1e-4]
        if basis.shape[1] in (0, 3):
            return (bool(basis.shape[1]),) * 3
        lengths = np.linalg.norm(basis, axis=1)  # of the projections of the base axes onto the directions
        if np.all((lengths > 1.0 - 1e-6) | (lengths < 1e-6)):
            return tuple(bool(length > 0.5) for length in lengths)  # type: ignore[return-value]
        return (True, True, True)

    def coordinates(self, pose: Array, joints: Array) -> Array:
        """The task coordinates (k,) of a pose (7,) with joints (n_joints,), then redundant joints (r,)."""
        joints = np.asarray(joints, dtype=np.float64)
        if self._columns:
            return joints[self._columns + self._beside]
        return np.concatenate((pose[:3], Rotation.from_quat(pose[3:]).as_euler("xyz"), joints[self._beside]))

    def _places(self, coordinates: Array) -> Array:
        """Task coordinates (n, k), or poses (n, 7) where the inverse kinematics takes no coordinates."""
        if self._columns:
            return coordinates
        return np.hstack((coordinates[:, :3], Rotation.from_euler("xyz", coordinates[:, 3:]).as_quat()))

    def target(self, coordinates: Array, joints: Array) -> Target:
        """The target of task coordinates (k,), from joints (n_joints,) near by, where redundant joints stay."""
        wanted = np.asarray(coordinates, dtype=np.float64)[: len(self.all)]
        return self.target_at(self._places(wanted[None])[0], joints)

    def target_beside(self, pose: Array, coordinates: Array, joints: Array) -> Target:
        """The target of redundant joints, as in `coordinates` (k + r,), while the platform stays at a pose (7,)."""
        found = self.kinematics.inverse(np.append(pose, coordinates[len(self.all) :]), seed=joints)
        q = np.asarray(found.joints)
        return Target(pose, self.coordinates(pose, q), q, "" if found.ok else found.reason())

    def duration(self, before: Array, after: Array) -> float:
        """How long redundant joints move slowly from some coordinates (k + r,) to others, at rest at both ends [s]."""
        fastest = jog_speeds(self.kinematics)
        times = [
            QUINTIC_PEAK
            * abs(after[one.index] - before[one.index])
            / min(
                fastest[0] if one.slides else fastest[1],
                OF_ACTUATORS * self.kinematics.mechanism.joint_named[one.name].limits.velocity,
            )
            for one in self.redundant
        ]
        return max(SHORTEST, *times)

    def target_at(self, place: Array, joints: Array) -> Target:
        """The target of a pose (7,) or of task coordinates, or the nearest that the robot can have."""
        k = self.kinematics
        found = k.inverse(place, seed=joints)
        if int(found.status) == Status.CONVERGED:
            q = np.asarray(found.joints)
            pose = place if len(place) == 7 else np.asarray(k.engine.inputs.poses(place)[0][0])
            return Target(pose, self.coordinates(pose, q), q)
        none = Status.INVALID_INPUT, Status.UNREACHABLE, Status.DIVERGED, Status.NOT_CONNECTED
        if int(found.status) in none:
            near = k.nearest(place, seed=joints)
            if int(near.status) == Status.CONVERGED:
                pose, q = np.asarray(near.pose), np.asarray(near.joints)
                return Target(pose, self.coordinates(pose, q), q)
        return Target(place, np.empty(0), joints, str(found.reason()) or Status(int(found.status)).name.lower())

    def _span(self, k: int, slides: bool, home: Array) -> tuple[float, float]:
        """How far a coordinate can move from home alone, to both sides; a fixed part where it cannot move alone."""
        longest = self._reach if slides else _TURN
        ends = []
        for sign in (-1.0, 1.0):
            reach, step = 0.0, longest / _STEPS
            for _ in range(_TIMES):
                rows = np.tile(home, (_STEPS, 1))
                rows[:, k] += sign * (reach + step * np.arange(1, _STEPS + 1))
                good = self._allowed(rows)
                reach += step * (_STEPS if good.all() else int(np.argmin(good)))
                if good.all():
                    break
                step /= _STEPS
            ends.append(float(home[k] + sign * reach))
        if ends[1] - ends[0] < longest / _STEPS:  # parasitic motion: no coordinate moves alone
            share = 0.3 * longest
            ends = [float(home[k]) - share, float(home[k]) + share]
        if self._names:
            limits = self.kinematics.mechanism.joint_named[self._names[k]].limits
            ends = [max(ends[0], limits.lower), min(ends[1], limits.upper)]
        return ends[0], ends[1]

    def _allowed(self, rows: Array) -> NDArray[np.bool_]:
        """Whether the robot can be at task coordinates (n, k), away from its singularities."""
        k = self.kinematics
        rows = self._places(rows)
        good = np.asarray(k.inverse(rows).status) == Status.CONVERGED
        home, there = k.singularity(k.home), k.singularity(rows)
        for name in ("type1", "type2"):
            least, values = _NEAR * np.asarray(getattr(home, name)), np.asarray(getattr(there, name))
            good &= ~(values < least)
        return good
