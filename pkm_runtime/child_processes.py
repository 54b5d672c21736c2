# SPDX-License-Identifier: Apache-2.0
"""Processes that are forked from this one, with all that has been made and imported here; and the end of a process."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn

from pkm_runtime.errors import shortage
from pkm_runtime.whole_files import own_status

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15  # of prctl(2)
_NICENESS = 5  # of what keeps no time; what does gets as much less where that is permitted
_LOOK = 0.005  # s, between two looks whether one has ended
_NAMES = ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "ALRM", "VTALRM", "PROF", "IO", "PWR", "STKFLT", "XCPU")
ENDING = (
    *(getattr(signal, f"SIG{name}") for name in _NAMES if hasattr(signal, f"SIG{name}")),
    *(range(signal.SIGRTMIN, signal.SIGRTMAX + 1) if hasattr(signal, "SIGRTMIN") else ()),
)
"""Not among them: those that cannot be heard, those of a program's own errors, and those that Python ignores."""
_ends: list[Callable[[], None]] = []  # what `end_with_program` was given


class Child:
    """A process that does `act`, whose result is its exit code (None: 0), and ends: nothing that this process would do
    at its end is done there. To be made while this process has no other thread. With `silent` no error is printed.
    """

    def __init__(self, act: Callable[[], int | None], silent: bool = False) -> None:
        _flush()  # else the child writes it again
        self._looking = threading.Lock()
        self._code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            _run(act, silent)

    def poll(self) -> int | None:
        """Its exit code, negative the number of the signal that ended it; None while it runs."""
        with self._looking, contextlib.suppress(ChildProcessError):
            if self._code is None and (found := os.waitpid(self.pid, os.WNOHANG))[0]:
                self._code = os.waitstatus_to_exitcode(found[1])
        return self._code

    def wait(self, patience: float) -> int | None:
        """As `poll`, after at most `patience` [s]."""
        until = time.monotonic() + patience
        while self.poll() is None and time.monotonic() < until:
            time.sleep(_LOOK)
        return self._code

    def signal(self, number: int) -> None:
        """Send a signal while it runs."""
        if self._code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    @property
    def how_it_ended(self) -> str:
        """How it has ended, in words."""
        if self._code is None:
            return "nobody knows how"
        if self._code < 0:
            with contextlib.suppress(ValueError):
                return signal.Signals(-self._code).name
        return f"exit status {self._code}"


def _run(act: Callable[[], int | None], silent: bool) -> NoReturn:
    code = 1
    gc.freeze()  # garbage of the parent is its own: of a middleware's objects it would take down this process
    try:
        code = act() or 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException as error:
        if not silent and (short := shortage(error)):
            print(f"pkm: {short}", file=sys.stderr)
        elif not silent:
            traceback.print_exc()
    finally:
        _flush()
        os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


def end_with_parent(parent: int) -> None:
    """In a child: get SIGTERM when its parent, a process by its number, dies, or now where it has died already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def end_with_program(end: Callable[[], str]) -> Callable[[], None]:
    """Call `end` at the end of this process, also by a signal, and print its warning; what is returned withdraws it."""
    process = os.getpid()

    def ends() -> None:
        if process == os.getpid() and (warning := end()):
            print(warning, file=sys.stderr, flush=True)

    def withdraw() -> None:
        atexit.unregister(ends)
        with contextlib.suppress(ValueError):
            _ends.remove(ends)

    hear_end()
    _ends.append(ends)
    atexit.register(ends)
    return withdraw


def hear_end() -> None:
    """In the main thread: from now on, signals that would end this process do so after what it is to do at its end."""
    # those that the program ignores or handles, in C too (as rclpy does), are its own
    if threading.current_thread() is threading.main_thread():
        caught = own_status("SigCgt", 16, 0)
        for number in ENDING:
            if signal.getsignal(number) is signal.SIG_DFL and not caught >> (number - 1) & 1:
                signal.signal(number, _end_by)


def _end_by(number: int, _: FrameType | None) -> None:
    for other in ENDING:  # asked once more, it skips nothing
        signal.signal(other, signal.SIG_IGN)
    for ends in _ends[::-1]:
        try:
            ends()
        except BaseException:  # the others follow
            traceback.print_exc()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _hear_no_end() -> None:
    for number in ENDING:
        if signal.getsignal(number) is _end_by:
            signal.signal(number, signal.SIG_DFL)


os.register_at_fork(after_in_child=_hear_no_end)  # it holds no drives, and ends at once


def in_own_session(keeps_time: bool) -> None:
    """Make this process a session of its own, as Linux weighs sessions: one that keeps time goes before other programs
    where that is permitted, any other after them.
    """
    niceness = -_NICENESS if keeps_time else _NICENESS
    with contextlib.suppress(OSError):  # it is one already
        os.setsid()
    with contextlib.suppress(OSError):
        os.nice(niceness)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(niceness))


def name_process(name: str) -> None:
    """Give this process a name for `ps` and `top`, which else show the parent's."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)
