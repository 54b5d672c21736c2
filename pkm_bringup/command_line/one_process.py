# SPDX-License-Identifier: Apache-2.0
"""What commands share that run a motion in their own process: the robot, Ctrl-C, faults, a guardian of the drives."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType

from pkm_bringup.command_line.outputs import leave_terminal
from pkm_description import load_mechanism
from pkm_description.command_options import WRONG
from pkm_description.load import xacro_arguments
from pkm_description.mechanism import Mechanism
from pkm_hardware.machine import drives_may_be_on
from pkm_runtime.child_processes import ENDING, Child
from pkm_runtime.errors import PkmError, UsageError
from pkm_runtime.kernels.kernel_cache import making

_BEAT_EVERY = 0.25  # s
_LOOK_EVERY = 0.1  # s
_FROZEN = 3.0  # s without a beat
_LONGEST = 20.0  # s that contact with a board may take
_ENDING = 5.0  # s that any call may take once the end is asked for
_BEAT, _WELL = b"b", b"w"


class Interruption:
    """The user's request to end. Before anything moves, it ends the command at once; later, in order."""

    def __init__(self) -> None:
        self._asked = self._moving = self._ended = self._given_up = self._over = False
        self.when_asked: Callable[[], None] = lambda: None
        self.harmless = False  # no drive is real: what does not end in order is interrupted where it hangs
        self.warning = ""  # that drives may be on: the last line, whatever else there is to say

    def is_set(self) -> bool:
        """Whether the end was requested."""
        return self._asked

    @property
    def before_motion(self) -> bool:
        """Whether the end was requested before anything moved."""
        return self._asked and not self._moving

    def motion_ended(self) -> Callable[[], bool]:
        """From now on, a request gives up what is left to do, which the returned function says."""
        self._ended = True
        if self.harmless:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        return lambda: self._given_up

    def is_over(self) -> None:
        """The end is reached: from now on, a request interrupts nothing."""
        self._over = True

    def motion_begins(self) -> None:
        """From now on, only note requests; `KeyboardInterrupt` where one came before and did not get through."""
        self._moving = True
        if self._asked:
            raise KeyboardInterrupt

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Signal handler; raises `KeyboardInterrupt` where nothing moves yet."""
        if number == signal.SIGHUP:
            leave_terminal()
        if self._ended:
            self._given_up = True
            return
        self._asked = True
        self.when_asked()
        if not (self._moving or self._over):
            raise KeyboardInterrupt
        if self.harmless and not self._over:
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, _FROZEN)


def run_in_one_process(
    word: str, robot: str, xacro_args: str, job: Callable[[Mechanism, Interruption], Sequence[str]]
) -> int:
    """Load a robot, and do a job with it until it is done or the user ends it (Ctrl-C, `ENDING` signals).

    Args:
        job: returns the faults by which it ended.

    Returns:
        Exit status: 0 done, 1 failed or drives may be on, 2 asked wrongly, 130 interrupted.
    """
    interruption = Interruption()
    previous = {number: signal.signal(number, interruption.hear) for number in ENDING}
    try:
        with making("building the robot"):
            mechanism = load_mechanism(robot, xacro_arguments(xacro_args))
        faults = job(mechanism, interruption)
        return _last_lines(word, faults, interruption)
    except PkmError as error:
        status = _last_lines(word, (str(error),), interruption)
        return WRONG if status == 1 and isinstance(error, UsageError) and not interruption.warning else status
    except (Exception, KeyboardInterrupt) as error:
        interruption.is_over()  # asked once more, it says the same
        # a compiler that is interrupted where it was called from C swallows that, and fails later in its own way
        if not isinstance(error, KeyboardInterrupt) and not interruption.before_motion:
            raise
        hung = interruption.harmless and not interruption.before_motion
        how = f"ended where it hung for {_FROZEN:g} s" if hung else "ended before the motion began; nothing was run"
        print(f"\n{how}, and there is no report", file=sys.stderr)
        return 130
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def _last_lines(word: str, faults: Sequence[str], interruption: Interruption) -> int:
    """Say what went wrong; the exit status. What is asked for from now on interrupts nothing."""
    interruption.motion_ended()
    for fault in faults:
        print(f"pkm {word}: {fault}", file=sys.stderr)
    if interruption.warning:
        if not any(interruption.warning in fault for fault in faults):
            print(f"pkm {word}: {interruption.warning}", file=sys.stderr, flush=True)
        return 1
    if interruption.is_set():
        return 130
    return 1 if faults else 0


class Guardian:
    """To be made before this process has threads, and ended with drives off. It ends a process that breaks a `promise`.
    `turn_off` disables the drives in the other process, once this one is gone; it returns a warning or nothing.
    """

    def __init__(self, turn_off: Callable[[], str]) -> None:
        self._end, theirs = socket.socketpair()
        self._watched = os.getpid()
        self._child = Child(partial(self._guard, theirs, turn_off))
        theirs.close()
        self._over = threading.Event()
        self._heart: threading.Thread | None = None
        self._until = -math.inf  # s, monotonic clock
        self._longest = _LONGEST
        self.problem = ""  # why nobody watches any more; what moves has to end then

    def promise(self, within: float = _LONGEST) -> None:
        """From now on, the process promises anew within this time [s]; else it is frozen, whatever it still does."""
        self._until = time.monotonic() + min(within, self._longest)
        if self._heart is None:  # other threads live on where a call of a driver never returns
            self._heart = threading.Thread(target=self._beat, name="beat", daemon=True)
            self._heart.start()

    def hurry(self) -> None:
        """The drives are to be off: what hangs does so no longer than `_ENDING` from now on."""
        self._longest = _ENDING
        self._until = min(self._until, time.monotonic() + _ENDING)

    def end(self) -> None:
        """End the watch: the drives are off, or it was said that they are not."""
        self._over.set()
        if self._heart is not None:
            self._heart.join()
        with contextlib.suppress(OSError):  # it has ended before
            self._end.sendall(_WELL)
        self._end.close()
        self._child.wait(math.inf)

    def _beat(self) -> None:
        self._end.setblocking(False)
        silent = 0.0
        while not self._over.wait(_BEAT_EVERY):
            if time.monotonic() > self._until:  # it is for the other process to end this one
                silent = 0.0
                continue
            silent += _BEAT_EVERY
            with contextlib.suppress(OSError):
                self._end.send(_BEAT)
                if self._end.recv(64):
                    silent = 0.0
            if frozen := silent > _FROZEN:
                self._child.signal(signal.SIGKILL)  # else nobody could wait for its end
            if frozen or self._child.poll() is not None:
                how = f"stood still for {_FROZEN:g} s" if frozen else f"ended ({self._child.how_it_ended})"
                self.problem = f"the process that would turn the drives off has {how}"
                return

    def _guard(self, end: socket.socket, turn_off: Callable[[], str]) -> None:
        os.setsid()
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        for first, last in ((3, end.fileno()), (end.fileno() + 1, os.sysconf("SC_OPEN_MAX"))):
            os.closerange(first, last)  # a line that stayed open here could not be taken away
        end.settimeout(_LOOK_EVERY)
        if how := self._what_became(end):
            try:
                warning = turn_off()
            except Exception as error:
                warning = drives_may_be_on(error)
            print(f"the command {how}: {warning or 'the drives were turned off'}", file=sys.stderr, flush=True)

    def _what_became(self, end: socket.socket) -> str:
        """How the parent has left its drives; empty where they are off."""
        begun, silent = False, 0.0
        while True:
            try:
                data = end.recv(64)
            except TimeoutError:
                silent += _LOOK_EVERY  # as long as this process has lived: the whole computer may have stood still
                if begun and silent > _FROZEN:
                    os.kill(self._watched, signal.SIGKILL)
                    return f"has stood still for {_FROZEN:g} s and was ended"
                continue
            except ConnectionError:  # killed with an answer unread
                data = b""
            if not data or _WELL in data:
                return "" if data else "was killed"
            with contextlib.suppress(OSError):
                end.send(_BEAT)
            begun, silent = True, 0.0
