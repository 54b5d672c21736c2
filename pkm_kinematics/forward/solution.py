# SPDX-License-Identifier: Apache-2.0
"""Answers of the forward kinematics: poses and joints for positions of the drives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.configuration import Configuration
from pkm_kinematics.explain import explain_forward, explain_nearest
from pkm_kinematics.kernels.model_and_data import Solved
from pkm_kinematics.solutions import REASON, Codes, ExplainedSolution, JointNames, fast_init
from pkm_kinematics.solve.engine import Engine
from pkm_kinematics.status import Status, closes
from pkm_runtime.describable import SHOWN, Describable, vector
from pkm_runtime.errors import shortened


@fast_init
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
    _engine: Engine
    _nearest: bool  # to a pose, all joints free to move

    @cached_property
    def configuration(self) -> Configuration:
        """The configuration found, for all that follows from it."""
        shape = np.shape(self.status)
        status, iterations = np.ravel(self.status), np.ravel(self.iterations)
        residual, q = np.ravel(self.residual), self.joints.reshape(-1, self.joints.shape[-1])
        n = len(status)
        found = Solved(
            q, np.empty((n, 0)), np.empty((n, 0)), status, residual, iterations, residual, np.empty((n, 0, 6))
        )
        return Configuration.known(self._engine, self.pose.reshape(n, 7), shape, found, self.label)

    @cached_property
    def condition(self) -> Array:
        """Reciprocal condition (...,) of the drives' Jacobian."""
        return np.where(closes(self.status), np.nan_to_num(self.configuration.drive_condition), 0.0)

    @property
    def _names(self) -> JointNames:
        return self._engine.names

    def _explain(self, status: int, joints: Array, residual: float) -> str:
        explain = explain_nearest if self._nearest else explain_forward
        return explain(self._engine, status, joints, residual)

    def _summary(self) -> str:
        return f"({self.label}) {super()._summary()}"

    def _values(self) -> list[str]:
        return [] if np.isnan(self.pose).all() else [_pose(self.pose), *super()._values()]


class AssemblyModes(Describable, list[ForwardSolution]):
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


def _pose(pose: Array) -> str:
    return f"xyz {vector(pose[:3])} m, quaternion {vector(pose[3:])}"
