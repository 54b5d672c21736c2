# SPDX-License-Identifier: Apache-2.0
"""Errors of motion files, planning and the running machine; each carries the data that explain it."""

from __future__ import annotations

from pkm_runtime.errors import PkmError, UsageError, shortened


class MotionFileError(UsageError):
    """An unusable motion file: `line` from 1, None for the whole, `column` by name, problem and remedy."""

    def __init__(self, source: str, line: int | None, column: str | None, problem: str, remedy: str) -> None:
        self.source = source
        self.line = line
        self.column = column if column is None else shortened(column)
        where = source
        if line is not None:
            where += f", line {line}"
        if column is not None:
            where += f", column '{self.column}'"
        super().__init__(where, problem, remedy)


class UnreachableMotionError(PkmError):
    """A motion that leaves the workspace: says where on the path, and the answer of the kinematics."""

    def __init__(self, where: str, place: str, reason: str) -> None:
        self.where = where
        self.place = place
        self.reason = reason
        super().__init__(f"{where}: the platform cannot be {place}: {reason}")


class LimitError(PkmError):
    """A motion that breaks a limit and may not be slowed down: names the limit, where, by how much, and the remedy.

    `bound` is what plans use of the limit, `whole` the limit where they use a part of it.
    """

    def __init__(
        self, limit: str, value: float, bound: float, unit: str, where: str, remedy: str, whole: float | None = None
    ) -> None:
        self.limit = limit
        self.value = value
        self.bound = bound
        self.unit = unit
        self.where = where
        allowed = f"the limit is {bound:.4g} {unit}"
        if whole is not None and whole > bound:
            allowed = f"the limit is {whole:.4g} {unit}, of which {bound:.4g} {unit} are used"
        super().__init__(f"{where}: {limit} would be {value:.4g} {unit}, {allowed}; {remedy}")


class SingularHomeError(PkmError):
    """A robot that is singular at home, so that no gains can be tuned to the inertia of its drives there."""

    def __init__(self, robot: str) -> None:
        self.robot = robot
        super().__init__(f"'{robot}' is singular at home; give a home where each drive alone can move the platform")


class UnequalDrivesError(PkmError):
    """A robot that one control loop per drive cannot hold by effort: says why, and what can."""

    def __init__(self, robot: str, why: str) -> None:
        self.robot = robot
        self.why = why
        super().__init__(
            f"'{robot}' is not held by one control loop per drive that commands efforts: {why}; "
            "command positions (command_interface:=position), or use our controller "
            "(controllers:=forward_effort_controller)"
        )


class LawError(UsageError, ValueError):
    """A control law that this robot, or its task, cannot have."""


class ReportError(PkmError):
    """A report that cannot be written; the message says what of it, why, and what there is."""


class GoalError(PkmError):
    """A motion that is not admitted; the message says why."""
