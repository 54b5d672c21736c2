# SPDX-License-Identifier: Apache-2.0
"""The efforts that hold a robot at rest, as its actuators can give them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.motion.limits import ActuatorLimits
from pkm_dynamics import Distribution, Dynamics

Array = NDArray[np.float64]


def holding_efforts(dynamics: Dynamics, limits: ActuatorLimits, pose: Array, mode: int | None = None) -> Array:
    """Efforts that carry the weight at a pose; cables only pull for it.

    Args:
        dynamics: of the robot.
        limits: of its actuators.
        pose: of the platform (7,), base frame.
        mode: number of the working mode; what continues home where None.

    Returns:
        (n_actuated,) [N m or N]; NaN where nothing within the bounds of one-sided actuators does it.
    """
    still = np.zeros(6)
    answer = dynamics.inverse(pose, still, still, mode=mode, distribution=pulling(limits))
    return np.asarray(answer.effort, dtype=np.float64)


def pulling(limits: ActuatorLimits, reserve: float = 0.0) -> Distribution | None:
    """How efforts are shared that are planned or judged: within the bounds where some actuators are one-sided.

    Args:
        limits: of the actuators.
        reserve: part of the stronger side that is left to the controller.

    Returns:
        The distribution; None where actuators push and pull, whose largest efforts are judged apart.
    """
    return Distribution(bounds=limits.bounds(reserve)) if limits.one_sided else None
