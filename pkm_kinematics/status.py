# SPDX-License-Identifier: Apache-2.0
"""What answers have in common: a status per pose, arrays by name, and words for a person."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_runtime.describable import Describable, counted, listed, number
from pkm_runtime.errors import PkmError, shortened


class Status(IntEnum):
    """Outcome of a solve. Only `CONVERGED` comes with a solution that satisfies everything."""

    CONVERGED = 0
    UNREACHABLE = 1  # no real configuration closes the loops there, in the working mode that is asked for
    JOINT_LIMIT = 2  # the configuration closes the loops but leaves a joint's range
    SINGULAR = 3  # the configuration is known but its velocities or efforts are not determined
    DIVERGED = 4  # an iteration ended without closing the loops, or without efforts within their bounds
    INVALID_INPUT = (
        5  # not finite, not a unit quaternion, or outside the robot's motion space, or so large that numbers overflow
    )
    EFFORT_LIMIT = 7  # no efforts within the bounds do the work (6 and 9 are taken by the messages)
    NOT_CONNECTED = 8  # limbs solved by iteration do not get there from home or a seed; another way might lead there

    @property
    def meaning(self) -> str:
        """One sentence for a person."""
        return _MEANING[self]


_MEANING = {
    Status.CONVERGED: "solved",
    Status.UNREACHABLE: "no configuration of the limbs reaches this pose",
    Status.JOINT_LIMIT: "a joint would leave its range",
    Status.SINGULAR: "the configuration is singular",
    Status.DIVERGED: "the iteration found no solution",
    Status.INVALID_INPUT: "not finite, too large, no unit quaternion, or a motion that is impossible for the robot",
    Status.NOT_CONNECTED: "iterated limbs do not follow the platform to this pose",
    Status.EFFORT_LIMIT: "the actuators cannot do this within their effort bounds",
}


_CONVERGED, _JOINT_LIMIT = int(Status.CONVERGED), int(Status.JOINT_LIMIT)  # NumPy compares with numbers sooner
_UNREACHABLE, _DIVERGED, _NOT_CONNECTED = map(int, (Status.UNREACHABLE, Status.DIVERGED, Status.NOT_CONNECTED))


def closes(status: Any) -> Any:
    """Whether a status, or each of an array of them, comes with a configuration, its loops closed."""
    return (status == _CONVERGED) | (status == _JOINT_LIMIT)


def stays_open(status: Any) -> Any:
    """Whether a status, or each of an array of them, says that a loop stays open at the pose."""
    return (status == _UNREACHABLE) | (status == _DIVERGED) | (status == _NOT_CONNECTED)


Codes = NDArray[np.int64]
REASON = 240  # characters of a reason that fit into a line; `reason()` has them all


Made = TypeVar("Made", bound=type)


def fast_init(cls: Made) -> Made:
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


class Solution(Describable):
    """Common to all answers: a status per pose, in numbers and in words."""

    _elsewhere: ClassVar[dict[str, str]] = {
        "success converged error message": "ok says whether, status and reason() why"
    }

    if TYPE_CHECKING:  # a field or a property

        @property
        def status(self) -> Codes:
            """Status values (...,)."""

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
        return []


class NamedSolution(Solution):
    """An answer in arrays whose last axis goes through joints: by name, too."""

    _elsewhere: ClassVar[dict[str, str]] = {
        "q position positions angles values": "actuated are the drives' positions, joints those of every joint, "
        "by_name() has them by name"
    }
    _of_all: ClassVar[tuple[str, ...]] = ("joints",)  # arrays of every joint
    _of_actuated: ClassVar[tuple[str, ...]] = ("actuated",)  # arrays of actuated joints

    if TYPE_CHECKING:  # a field or a property

        @property
        def _names(self) -> JointNames: ...

    def by_name(self, what: str = "") -> dict[str, Any]:
        """Values [rad, m, or what the array holds] by joint name: floats, or arrays of the leading axes for many poses.

        `what` names the array: `"actuated"` (`"effort"` of efforts), the default, `"joints"` for every joint, passive
        ones and task coordinates included, or another of the answer's arrays. Raises `PkmError` where there is none.
        """
        what = what or self._of_actuated[0]
        arrays = (*self._of_actuated, *self._of_all)
        if what not in arrays:
            raise PkmError(f"by_name: no array {what!r} of joints; there are {', '.join(arrays)}")
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

    if TYPE_CHECKING:  # fields or properties

        @property
        def joints(self) -> Array:
            """Positions (..., n_joints) [rad, m]."""

        @property
        def residual(self) -> Array:
            """Residuals (...,)."""

        def _explain(self, status: int, joints: Array, residual: float) -> str: ...

    @property
    def actuated(self) -> Array:
        """Positions (..., n_actuated) [rad, m] of the actuated joints."""
        return self.joints[..., self._names.columns]

    def reason(self, index: int = 0) -> str:
        """Why answer number `index` (flat) has its status, with the joint or the gap that explains it."""
        n = self.joints.shape[-1]
        status = int(np.reshape(self.status, -1)[index])
        return self._explain(status, self.joints.reshape(-1, n)[index], float(np.reshape(self.residual, -1)[index]))
