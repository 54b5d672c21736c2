# SPDX-License-Identifier: Apache-2.0
"""Efforts that hold a robot at rest against its weight, as its controller shares them.

Of all efforts that do so those of least norm within the drives' ranges are taken, where there is a choice: with more
drives than freedoms. Winches can only pull, so that there may be none at all, whatever the sum of their limits.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from pkm_dynamics import Dynamics
from pkm_dynamics.distribution import Distribution
from pkm_dynamics.efforts import Efforts
from pkm_kinematics.kinematics import Kinematics


def shared(kinematics: Kinematics) -> bool:
    """Whether what the drives exert at rest depends on their ranges: they are redundant, or one-sided."""
    return len(kinematics.actuated_names) > kinematics.mobility or bool(kinematics.mechanism.one_way_actuators.any())


def efforts_at_rest(dynamics: Dynamics, poses: ArrayLike, mode: int | None = None) -> Efforts:
    """Efforts that hold the robot still.

    Args:
        dynamics: of the robot.
        poses: of the platform (..., 7), or its task coordinates.
        mode: working mode of the configuration.

    Returns:
        Efforts (..., n_actuated) [N m, N], and status (...,): NaN, and EFFORT_LIMIT, where `shared` drives have none
        within their ranges.
    """
    kinematics = dynamics.kinematics
    distribution = Distribution(bounds=kinematics.mechanism.effort_range) if shared(kinematics) else None
    return dynamics.inverse(poses, mode=mode, distribution=distribution)
