# SPDX-License-Identifier: Apache-2.0
"""What can be done for a platform that was stopped, or stands where it should not; and for another working mode."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.loop.follower import Mode, TrajectoryFollower
from pkm_control.loop.jog import LOW
from pkm_description.errors import PkmError
from pkm_kinematics import Status
from pkm_kinematics.kernels.compiled_rotations import displacement_between
from pkm_kinematics.status import closes

Array = NDArray[np.float64]

_STEPS = 64  # of the way between two working modes


class RecoveryError(PkmError):
    """Nothing can be done; the message says why, and what would help."""


def way_back(follower: TrajectoryFollower) -> Array | None:
    """Where to move a platform that stands outside what it may do.

    Args:
        follower: that holds it.

    Returns:
        The nearest pose (7,) on the way home where all is well, None where it stands well.

    Raises:
        RecoveryError: there is no way.
    """
    if follower.mode in (Mode.WAITING, Mode.STOPPED):
        raise RecoveryError("there is no usable reading, and without one no motion")
    if follower.moving:
        raise RecoveryError("the platform moves; stop it first")
    pose = follower.hold
    if not follower.check.deficits(pose[None]).any():
        return None
    there = follower.jog.way_in(pose)
    if there is None:
        raise RecoveryError("no way home from here keeps the limits; the platform is held where it is, move it by hand")
    return there


def go_back(follower: TrajectoryFollower, pose: Array) -> str:
    """Move there at low speed.

    Args:
        follower: that holds the platform.
        pose: (7,), from `way_back`.

    Returns:
        Why not; empty where it is done.
    """
    return follower.jog_to(pose, LOW)


def require_mode_change(follower: TrajectoryFollower, label: str) -> str:
    """What a change to another working mode would take.

    The actuators go straight from where they are to where they are in the other mode at the same pose of the platform,
    and forward kinematics follows the platform.

    Args:
        follower: that holds the platform.
        label: of the mode, as `Kinematics.mode_label` gives it.

    Returns:
        A sentence where the robot is in that mode already.

    Raises:
        RecoveryError: it cannot be changed, with the reason.
    """
    check = follower.check
    k = check.kinematics
    labels = [k.mode_label(mode) for mode in range(k.n_modes)]
    if label not in labels:
        raise RecoveryError(f"there is no working mode '{label}'; there are {', '.join(labels)}")
    if labels.index(label) == check.mode:
        return f"the robot is in working mode {label}"
    if follower.mode is not Mode.HOLDING:
        raise RecoveryError(f"the controller is {follower.mode.name.lower()}; it must hold the platform")
    pose = follower.hold
    ends = [k.inverse(pose, mode=mode) for mode in (check.mode, labels.index(label))]
    for which, end in zip((labels[check.mode], label), ends, strict=True):
        if end.status != Status.CONVERGED:
            raise RecoveryError(f"in working mode {which} the platform cannot be here: {end.reason(0)}")
    farthest = 0.0
    here, joints = np.array(pose), np.array(ends[0].joints)
    for share in np.linspace(0.0, 1.0, _STEPS + 1)[1:]:
        q = ends[0].actuated + share * (ends[1].actuated - ends[0].actuated)
        found = k.forward(q, near=here, seed=joints)
        if not closes(found.status):
            raise RecoveryError(f"the way crosses a type 2 singularity, at {share:.0%} of it: {found.reason(0)}")
        if found.status == Status.JOINT_LIMIT:
            raise RecoveryError(f"the way leaves a joint's range, at {share:.0%} of it: {found.reason(0)}")
        here, joints = np.array(found.pose), np.array(found.joints)
        farthest = max(farthest, float(np.linalg.norm(displacement_between(pose, here)[:3])))
    raise RecoveryError(
        f"there is a way, on which the platform leaves its place by {1e3 * farthest:.1f} mm, but limbs are stretched "
        "or folded on it: the control laws are written in the platform's coordinates, which do not go through type 1 "
        "singularities"
    )
