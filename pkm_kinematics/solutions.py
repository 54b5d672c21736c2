# SPDX-License-Identifier: Apache-2.0
"""What the kinematics answers: arrays, a status per pose, and words for a person."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.status import Status

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class InverseSolution:
    """Joint positions for platform poses; leading axes as in the request.

    Where the status is neither CONVERGED nor JOINT_LIMIT, the joints are NaN: there is no such configuration.
    """

    joints: Array  # (..., n_joints) rad or m
    actuated: Array  # (..., n_actuated)
    status: Codes  # (...,) Status values
    residual: Array  # (...,) largest gap of a loop closure, m (directions: 1)
    iterations: Codes  # (...,)
    mode: int | None  # working mode asked for, None for the nearest to a seed
    label: str
    _explain: Callable[[int, Array, float], str]

    @property
    def ok(self) -> NDArray[np.bool_]:
        """Where the solve converged."""
        return self.status == Status.CONVERGED

    def reason(self, index: int = 0) -> str:
        """Why a solution has the status it has, with the joint or the gap that explains it.

        Args:
            index: of the solution, flat.

        Returns:
            A sentence.
        """
        n = self.joints.shape[-1]
        status = int(np.reshape(self.status, -1)[index])
        return self._explain(status, self.joints.reshape(-1, n)[index], float(np.reshape(self.residual, -1)[index]))


@dataclass(frozen=True, eq=False)
class ForwardSolution:
    """Platform poses for actuated joint positions; NaN where the status is neither CONVERGED nor JOINT_LIMIT."""

    pose: Array  # (..., 7) x y z qx qy qz qw, base frame
    joints: Array  # (..., n_joints)
    status: Codes
    residual: Array  # (...,) largest error of an actuated joint, rad or m
    iterations: Codes
    label: str
    _explain: Callable[[int, Array, float], str]

    @property
    def ok(self) -> NDArray[np.bool_]:
        """Where the solve converged."""
        return self.status == Status.CONVERGED

    def reason(self, index: int = 0) -> str:
        """Why a solution has the status it has.

        Args:
            index: of the solution, flat.

        Returns:
            A sentence.
        """
        n = self.joints.shape[-1]
        status = int(np.reshape(self.status, -1)[index])
        return self._explain(status, self.joints.reshape(-1, n)[index], float(np.reshape(self.residual, -1)[index]))


class AssemblyModes(list[ForwardSolution]):
    """The assembly modes of one set of actuated joint positions, and how far the list can be trusted.

    Args:
        solutions: the modes.
        method: by which they were found.
        certified: every real solution is listed, and none of them is a sample of a motion that locked actuators leave.
        caution: why not, in words; empty where it is.
    """

    def __init__(self, solutions: Iterable[ForwardSolution], method: str, certified: bool, caution: str) -> None:
        super().__init__(solutions)
        self.method = method
        self.certified = certified
        self.caution = caution


@dataclass(frozen=True, eq=False)
class Motion:
    """Positions, velocities and accelerations of all joints along a platform motion."""

    joints: Array  # (..., n_joints) rad or m
    velocities: Array  # per s
    accelerations: Array  # per s^2
    actuated: Array  # (..., n_actuated)
    actuated_velocities: Array
    actuated_accelerations: Array
    status: Codes
    residual: Array
    limb_regularity: Array  # (...,) 0 where a limb is singular, up to 1

    @property
    def ok(self) -> NDArray[np.bool_]:
        """Where the solve converged."""
        return self.status == Status.CONVERGED
