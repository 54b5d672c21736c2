# SPDX-License-Identifier: Apache-2.0
"""Answers of the kinematics: arrays, a status per pose, and words for a person."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property, wraps
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.status import Status
from pkm_runtime.errors import PkmError, shortened
from pkm_runtime.introduction import SHOWN, Introduced, counted, listed, number, vector

Codes = NDArray[np.int64]
REASON = 240  # characters of a reason that fit into a line; `reason()` has them all


Made = TypeVar("Made", bound=type)


def quickly_made(cls: Made) -> Made:
    """Make a frozen dataclass without defaults in half the time: not field by field, around its own guard."""
    names = [field.name for field in fields(cls)]
    entries = ", ".join(f"{name!r}: {name}" for name in names)
    scope: dict[str, Any] = {}
    exec(f"def made(self, {', '.join(names)}):\n    self.__dict__.update({{{entries}}})", scope)
    cls.__init__ = wraps(cls.__init__)(scope["made"])  # type: ignore[misc]
    return cls


@dataclass(frozen=True)
class JointNames:
    """Names of a robot's joints in the order of the arrays, and the units of their positions."""

    joints: tuple[str, ...]
    actuated: tuple[str, ...]
    units: dict[str, str]  # "rad" or "m", by name

    @cached_property
    def columns(self) -> NDArray[np.int64]:
        """Columns of the actuated joints among all joints."""
        return np.array([self.joints.index(name) for name in self.actuated], dtype=np.int64)


class Solution(Introduced):
    """Common to all answers: a status per pose, in numbers and in words."""

    _elsewhere: ClassVar[dict[str, str]] = {
        "success converged error message": "ok says whether, status and reason() why"
    }

    status: Codes  # (...,) Status values

    @property
    def ok(self) -> NDArray[np.bool_]:
        """Where the solve converged."""
        return self.status == Status.CONVERGED

    def reason(self, index: int = 0) -> str:
        """Why answer number `index` (flat) has its status, in one sentence."""
        return Status(int(np.reshape(self.status, -1)[index])).meaning

    @property
    def single(self) -> bool:
        """True for the answer to one pose, False for an array of them."""
        return np.ndim(self.status) == 0

    def _summary(self) -> str:
        if self.single:
            return f"{Status(int(self.status)).name}: {shortened(self.reason(), REASON)}"
        flat = np.reshape(self.status, -1)
        numbers = [f"{int((flat == status).sum())} {status.name}" for status in Status if (flat == status).any()]
        return f"of shape {self.status.shape}: {', '.join(numbers) or 'nothing'}"

    def _details(self) -> list[str]:
        if not self.single:
            wrong = np.flatnonzero(~np.reshape(self.ok, -1))
            return [f"reason({wrong[0]}): {shortened(self.reason(int(wrong[0])), REASON)}"] if len(wrong) else []
        return self._values()

    def _values(self) -> list[str]:
        """Lines of numbers, for a single answer."""
        return []


class NamedSolution(Solution):
    """An answer in arrays whose last axis goes through joints: by name, too."""

    _elsewhere: ClassVar[dict[str, str]] = {
        "q position positions angles values": "actuated are the drives' positions, joints those of every joint, "
        "by_name() has them by name",
    }
    _of_all: ClassVar[tuple[str, ...]] = ("joints",)  # arrays of every joint
    _of_actuated: ClassVar[tuple[str, ...]] = ("actuated",)  # arrays of actuated joints
    _names: JointNames

    def by_name(self, what: str = "") -> dict[str, Any]:
        """Values [rad, m, or what the array holds] by joint name: floats, or arrays of the leading axes for many poses.

        Args:
            what: name of the array: `"actuated"` (`"effort"` of efforts), the default, `"joints"` for every joint,
                passive ones and task coordinates included, or another of the answer's arrays.

        Raises:
            PkmError: there is no such array.
        """
        what = what or self._of_actuated[0]
        arrays = (*self._of_actuated, *self._of_all)
        if what not in arrays:
            raise PkmError(f"by_name: there is no array {what!r} of joints; there are {', '.join(arrays)}")
        names = self._names.actuated if what in self._of_actuated else self._names.joints
        values = np.asarray(getattr(self, what))
        columns = {name: values[..., k] for k, name in enumerate(names)}
        return {name: float(column) for name, column in columns.items()} if values.ndim == 1 else columns

    def _unit(self, name: str) -> str:
        return self._names.units[name]

    def _values(self) -> list[str]:
        found = self.by_name()
        if np.isnan(list(found.values())).all():
            return []
        lines = [listed(f"{name} {number(value)} {self._unit(name)}" for name, value in found.items())]
        others = len(self._names.joints) - len(self._names.actuated)
        if others and self._of_all:
            lines.append(f'and {counted(others, "more joint")}: by_name("{self._of_all[0]}")')
        return lines


class ExplainedSolution(NamedSolution):
    """An answer whose reasons name the joint or the gap that explains them."""

    joints: Array
    residual: Array
    _explain: Callable[[int, Array, float], str]

    def reason(self, index: int = 0) -> str:
        """Why answer number `index` (flat) has its status, with the joint or the gap that explains it."""
        n = self.joints.shape[-1]
        status = int(np.reshape(self.status, -1)[index])
        return self._explain(status, self.joints.reshape(-1, n)[index], float(np.reshape(self.residual, -1)[index]))


@quickly_made
@dataclass(frozen=True, eq=False, repr=False)
class InverseSolution(ExplainedSolution):
    """Joint positions for platform poses; leading axes as in the request.

    Where the status is neither CONVERGED nor JOINT_LIMIT, the joints are NaN: there is no such configuration.

    `condition` says how well the limbs determine them: the reciprocal condition of the equations of the worst limb, the
    number of `kernels/regularity.py`, 0 where a limb is singular or there is no configuration. Computed on request.
    """

    joints: Array  # (..., n_joints) rad or m
    status: Codes  # (...,) Status values
    residual: Array  # (...,) largest gap of a loop closure, m (directions: 1)
    iterations: Codes  # (...,)
    mode: int | None  # working mode asked for, None for the nearest to a seed
    label: str
    _names: JointNames
    _explain: Callable[[int, Array, float], str]
    _conditions: Callable[[], Array]

    @cached_property
    def condition(self) -> Array:
        """Reciprocal condition (...,) of the worst limb."""
        return np.reshape(self._conditions(), np.shape(self.status))

    @cached_property
    def actuated(self) -> Array:
        """Actuated joint positions (..., n_actuated) [rad, m]."""
        return self.joints[..., self._names.columns]

    def _summary(self) -> str:
        return f"({self.label}) {super()._summary()}"


@quickly_made
@dataclass(frozen=True, eq=False, repr=False)
class ForwardSolution(ExplainedSolution):
    """Platform poses for actuated joint positions; NaN where the status is neither CONVERGED nor JOINT_LIMIT.

    `condition` says how well the drives determine them: the reciprocal condition of their Jacobian, as of `Efforts`, 0
    at a type 2 singularity or where there is no pose. Computed on request.
    """

    pose: Array  # (..., 7) x y z qx qy qz qw, base frame
    joints: Array  # (..., n_joints)
    status: Codes
    residual: Array  # (...,) largest error of an actuated joint, rad or m
    iterations: Codes
    label: str
    _names: JointNames
    _explain: Callable[[int, Array, float], str]
    _conditions: Callable[[Array, Array, Codes], Array]

    @cached_property
    def condition(self) -> Array:
        """Reciprocal condition (...,) of the drives' Jacobian."""
        n = self.joints.shape[-1]
        rows = self.pose.reshape(-1, 7), self.joints.reshape(-1, n), np.reshape(self.status, -1)
        return np.reshape(self._conditions(*rows), np.shape(self.status))

    @property
    def actuated(self) -> Array:
        """Actuated joint positions (..., n_actuated) at the pose."""
        return self.joints[..., self._names.columns]

    def _summary(self) -> str:
        return f"({self.label}) {super()._summary()}"

    def _values(self) -> list[str]:
        return [] if np.isnan(self.pose).all() else [_pose(self.pose), *super()._values()]


class AssemblyModes(Introduced, list[ForwardSolution]):
    """The assembly modes of one set of actuated joint positions, found by `method`, and how far to trust the list.

    Args:
        certified: every real solution is listed, and none of them is a sample of a motion that locked actuators leave.
        caution: why not, in words; empty if certified.
    """

    def __init__(self, solutions: Iterable[ForwardSolution], method: str, certified: bool, caution: str) -> None:
        super().__init__(solutions)
        self.method = method
        self.certified = certified
        self.caution = caution

    def _summary(self) -> str:
        trust = "every real one" if self.certified else self.caution
        return f"{len(self)} by method '{self.method}': {trust}"

    def _details(self) -> list[str]:
        lines = []
        for one in self[:SHOWN]:
            status = "" if one.ok else f" {Status(int(one.status)).name}: {shortened(one.reason(), REASON)}"
            lines.append(f"{one.label}: {_pose(one.pose)}{status}")
        return [*lines, *([f"and {len(self) - SHOWN} more"] if len(self) > SHOWN else [])]


@quickly_made
@dataclass(frozen=True, eq=False, repr=False)
class Motion(ExplainedSolution):
    """Positions, velocities and accelerations of all joints along a platform motion."""

    _of_all: ClassVar[tuple[str, ...]] = ("joints", "velocities", "accelerations")
    _of_actuated: ClassVar[tuple[str, ...]] = ("actuated", "actuated_velocities", "actuated_accelerations")

    joints: Array  # (..., n_joints) rad or m
    velocities: Array  # per s
    accelerations: Array  # per s^2
    status: Codes
    residual: Array
    limb_regularity: Array  # (...,) 0 where a limb is singular, up to 1
    _names: JointNames
    _explain: Callable[[int, Array, float], str]

    @cached_property
    def actuated(self) -> Array:
        """Actuated joint positions (..., n_actuated) [rad, m]."""
        return self.joints[..., self._names.columns]

    @cached_property
    def actuated_velocities(self) -> Array:
        """Actuated joint velocities (..., n_actuated) [rad/s, m/s]."""
        return self.velocities[..., self._names.columns]

    @cached_property
    def actuated_accelerations(self) -> Array:
        """Actuated joint accelerations (..., n_actuated) [rad/s^2, m/s^2]."""
        return self.accelerations[..., self._names.columns]

    def _values(self) -> list[str]:
        if np.isnan(self.actuated).all():
            return []
        rows = zip(self._names.actuated, *(self.by_name(what).values() for what in self._of_actuated), strict=True)
        lines = []
        for name, q, qd, qdd in list(rows)[:SHOWN]:
            unit = self._unit(name)
            lines.append(f"{name} {number(q)} {unit}, {number(qd)} {unit}/s, {number(qdd)} {unit}/s^2")
        return lines


def _pose(pose: Array) -> str:
    return f"xyz {vector(pose[:3])} m, quaternion {vector(pose[3:])}"
