# SPDX-License-Identifier: Apache-2.0
"""Which motions may be requested, and their planning: requests may be hostile, and answers must come soon."""

from __future__ import annotations

import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pkm_bringup.main_job import Plan, planned
from pkm_control.control_errors import MotionFileError
from pkm_control.motion.files.default_motion import motion_named
from pkm_control.motion.files.shipped import AUTO, motion_names
from pkm_description.mechanism import Mechanism
from pkm_kinematics.kinematics import shared_kinematics
from pkm_runtime.errors import PkmError, shortened

WITHIN = 1.5  # s, after which the answer is that planning takes longer
TIMED = 20  # times as many waypoints as without times, which each take a plan of their own
_LARGEST = 10_000_000  # bytes of a file
_LONGEST = 1000  # characters of a name
_LOG = logging.getLogger(__name__)


def requested(name: str, own: str, folders: Sequence[str]) -> str:
    """The name, or the path of the file, of the motion that a request names.

    A file that may not be requested is never opened, and the answer is the same whether it exists or not:
    MotionFileError, as for one that is too large. `name` is a shipped motion, "auto", `own` (the motion that the run
    was started with), or a file in one of the folders, subfolders included, by its path or within its folder.
    """
    if name in (AUTO, *motion_names()):
        return name
    path = _file(name, own, folders) if 0 < len(name) < _LONGEST and name.isprintable() else None
    if path is None:
        shown = ascii(shortened(name, 100)).strip("'\"")
        places = f", or a file in {' or '.join(folders)}" if folders else "; files of 'motion_folders' would be, too"
        known = [AUTO, *motion_names()]
        problem = "is no motion that may be asked for"
        raise MotionFileError(shown, None, None, problem, f"name one of {', '.join(known)}{places}")
    if os.stat(path).st_size > _LARGEST:
        raise MotionFileError(
            Path(path).name, None, None, f"is larger than {_LARGEST // 1_000_000} MB", "give a table of waypoints"
        )
    return path


def _file(name: str, own: str, folders: Sequence[str]) -> str | None:
    try:
        started_with = Path(own).resolve() if own not in ("", "none", AUTO, *motion_names()) else None
        if started_with is not None and (name == own or Path(name).resolve() == started_with):
            return str(started_with) if stat.S_ISREG(started_with.stat().st_mode) else None
        for folder in folders:
            inside = Path(folder).resolve()
            path = (inside / name).resolve()
            if path.is_relative_to(inside) and path.exists() and stat.S_ISREG(path.stat().st_mode):
                return str(path)
    except (OSError, ValueError, RuntimeError):  # no name that a file can have; links in a circle
        return None
    return None


class PlanningError(PkmError):
    """A motion that cannot be planned now."""


class Planning:
    """A motion that is planned in a thread of its own, by a `path` from `requested`.

    `most`: waypoints of a motion without times; `TIMED` times as many with them. `files` of machine, tools and keep-out
    volumes. `done` is called in that thread at the end.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        path: str,
        most: int,
        reserve: float,
        files: tuple[str, str, str],
        done: Callable[[], None],
    ) -> None:
        self.path = path
        self.plan: Plan | None = None
        self.problem = ""
        self.began = time.monotonic()
        self._version = _version(path)
        self._made = mechanism, most, reserve, files
        self._done = done
        threading.Thread(target=self._run, name="planning", daemon=True).start()

    @property
    def ended(self) -> bool:
        """Whether there is a plan or a problem."""
        return self.plan is not None or bool(self.problem)

    def is_of(self, mechanism: Mechanism, path: str) -> bool:
        """Whether it is of that robot, and of the present version of that file."""
        return self._made[0] is mechanism and self.path == path and self._version == _version(path)

    def _run(self) -> None:
        mechanism, most, reserve, files = self._made
        try:
            if self._version is not None:
                self._check(_lines(self.path), TIMED * most)  # before it is read, which takes a while
            motion = motion_named(self.path, shared_kinematics(mechanism), files[1])
            self._check(len(motion), most if motion.times is None else TIMED * most)
            plan = planned if self._version is None else planned.__wrapped__  # a file may be another by now
            self.plan = plan(mechanism, self.path, reserve, *files)
        except PkmError as error:
            self.problem = str(error)
        except Exception as error:  # the request must be answered, whatever a file holds
            _LOG.exception("planning")
            self.problem = f"{Path(self.path).name} cannot be planned ({type(error).__name__})"
        self._done()

    def _check(self, waypoints: int, bound: int) -> None:
        if waypoints > bound:
            most = self._made[1]
            remedy = f"at most {most} may be asked for, {TIMED * most} where they have times; start a run with it"
            raise MotionFileError(Path(self.path).name, None, None, f"has {waypoints} waypoints", remedy)


def _lines(path: str) -> int:
    with open(path, "rb") as file:
        return sum(1 for line in file if line.strip(b", \t\r\n") and not line.lstrip().startswith(b"#")) - 1


def _version(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
