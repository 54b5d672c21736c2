# SPDX-License-Identifier: Apache-2.0
"""Efforts that hold a robot at rest against its weight, distributed as its controller does.

With more drives than degrees of freedom, the efforts of least norm within the drives' ranges. Winches can only pull:
there may be no solution at all, whatever the sum of their limits.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from pkm_dynamics import Dynamics
from pkm_dynamics.distribution import Distribution
from pkm_dynamics.efforts import Efforts
from pkm_kinematics.kinematics import Kinematics


def shared(kinematics: Kinematics) -> bool:
    """Whether efforts at rest depend on the drives' ranges: they are redundant, or one-sided."""
    return len(kinematics.actuated_names) > kinematics.mobility or bool(kinematics.mechanism.one_way_actuators.any())


def efforts_at_rest(dynamics: Dynamics, poses: ArrayLike, mode: int | None = None) -> Efforts:
    """Efforts (..., n_actuated) [N m, N] that hold the robot still at poses (..., 7) or task coordinates.

    Also their status (...,): NaN and EFFORT_LIMIT where `shared` drives have none within their ranges.
    """
    kinematics = dynamics.kinematics
    distribution = Distribution(bounds=kinematics.mechanism.effort_range) if shared(kinematics) else None
    return dynamics.inverse(poses, mode=mode, distribution=distribution)
