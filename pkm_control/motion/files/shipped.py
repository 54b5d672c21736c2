# SPDX-License-Identifier: Apache-2.0
"""The shipped motion files, and which file a name stands for. Nothing heavy is imported."""

from __future__ import annotations

import difflib
from pathlib import Path

from pkm_control.control_errors import MotionFileError

SHIPPED_MOTIONS = Path(__file__).parents[2] / "motions"
NONE = "none"  # the name of no motion, for commands that can do without
AUTO = "auto"  # the name of the motion that suits the robot; see `default_motion.py`


def motion_names() -> list[str]:
    """Names of the shipped motions, sorted."""
    return sorted(file.stem for file in SHIPPED_MOTIONS.glob("*.csv"))


def find_motion(path: str | Path) -> Path:
    """The existing file for a path or the bare name of a shipped motion; `MotionFileError` names the shipped ones."""
    if str(path) == NONE and not Path(path).is_file():
        raise MotionFileError(NONE, None, None, "is no motion", "this command runs one: give a file or a name")
    try:
        if Path(path).is_file():
            return Path(path)
        shipped = SHIPPED_MOTIONS / f"{path}.csv"
        if shipped.is_file():
            return shipped
        Path(path).stat()
    except (OSError, ValueError) as error:  # the second of names that no file can have
        raise unreadable(path, getattr(error, "strerror", None) or str(error)) from error
    raise unreadable(path, "it is no file")


def unreadable(path: str | Path, why: str) -> MotionFileError:
    """The error for a motion file that cannot be read, with the names that can."""
    names = motion_names()
    near = difflib.get_close_matches(str(path), [AUTO, *names], n=1)
    remedy = f"did you mean {near[0]}? " if near else ""
    return MotionFileError(
        str(path), None, None, f"cannot be read ({why})", f"{remedy}give a CSV file or one of: {', '.join(names)}"
    )
