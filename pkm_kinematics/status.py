# SPDX-License-Identifier: Apache-2.0
"""What every solve says about its answer."""

from enum import IntEnum
from typing import Any


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
    Status.INVALID_INPUT: "the input is not usable",
    Status.NOT_CONNECTED: "iterated limbs do not follow the platform to this pose",
    Status.EFFORT_LIMIT: "the actuators cannot do this within their effort bounds",
}


_CONVERGED, _JOINT_LIMIT = int(Status.CONVERGED), int(Status.JOINT_LIMIT)  # NumPy compares with numbers sooner


def closes(status: Any) -> Any:
    """Whether a status, or each of an array of them, comes with a configuration, its loops closed."""
    return (status == _CONVERGED) | (status == _JOINT_LIMIT)
