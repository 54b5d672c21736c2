# SPDX-License-Identifier: Apache-2.0
"""Whether a motion that cannot begin was written relative to home, and does not say so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pkm_control.motion.files.motion_file import MotionFile
from pkm_kinematics import Kinematics

HINT = "counted from home all waypoints are within reach: is the frame 'home' meant ('# frame: home')?"


def meant_from_home(kinematics: Kinematics, motion: MotionFile, mode: int | None) -> bool:
    """Whether a motion in the base frame begins out of reach, and is within reach when it is counted from home.

    Args:
        kinematics: of the robot.
        motion: as it was read.
        mode: index of the working mode; None is home's.

    Returns:
        False where it is relative to home, to a tool or to a conveyor already.
    """
    if motion.relative_to_home or motion.tool is not None or motion.riding is not None:
        return False
    from_home = replace(motion, relative_to_home=True).in_base(np.asarray(kinematics.home, dtype=np.float64))
    begins = np.asarray(kinematics.inverse(motion.poses[:1], mode=mode).status)
    there = np.asarray(kinematics.inverse(from_home.poses, mode=mode).status)
    return bool(begins[0] != 0 and not there.any())
