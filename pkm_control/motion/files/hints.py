# SPDX-License-Identifier: Apache-2.0
"""Hints for an impossible motion: most likely it was meant from home, or in millimetres."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from pkm_control.motion.files.motion_file import MotionFile
from pkm_kinematics import Kinematics

_FROM_HOME = "counted from home all waypoints are within reach: is the frame 'home' meant ('# frame: home')?"
_FAR = 20.0  # times the robot's size: numbers of that size are mm


def hint_of(kinematics: Kinematics, motion: MotionFile, mode: int | None) -> str:
    """The most likely meaning of a motion out of reach, as a sentence; or empty."""
    farthest = motion.poses[np.abs(motion.poses[:, :3]).max(axis=1).argmax(), :3]
    if looks_like_millimetres(kinematics, farthest):
        return f"places are in metres: if these are mm, give {in_metres(farthest)}"
    return _FROM_HOME if _meant_from_home(kinematics, motion, mode) else ""


def looks_like_millimetres(kinematics: Kinematics, place: ArrayLike) -> bool:
    """Whether a position or length [m] is twenty times the robot's size or more, so most likely in millimetres."""
    return float(np.abs(np.asarray(place)).max()) > _FAR * float(kinematics.engine.size)


def in_metres(place: ArrayLike) -> str:
    """The numbers (n,) of a place that was given in millimetres, as text in metres."""
    return " ".join(f"{x / 1000.0:g}" for x in np.ravel(place))


def _meant_from_home(kinematics: Kinematics, motion: MotionFile, mode: int | None) -> bool:
    """Whether a motion in the base frame begins out of reach, and is within reach when it is counted from home.

    False where it is relative to home, to a tool or to a conveyor already.
    """
    if motion.relative_to_home or motion.tool is not None or motion.riding is not None:
        return False
    from_home = replace(motion, relative_to_home=True).in_base(np.asarray(kinematics.home, dtype=np.float64))
    begins = np.asarray(kinematics.inverse(motion.poses[:1], mode=mode).status)
    there = np.asarray(kinematics.inverse(from_home.poses, mode=mode).status)
    return bool(begins[0] != 0 and not there.any())
