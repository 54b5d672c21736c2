# SPDX-License-Identifier: Apache-2.0
"""Scheduling of a control loop's thread: ahead of ordinary threads where permitted, without starving them.

Only the thread that asks gets a real-time priority. Threads of a library that was not written for it must not: senders
of a middleware spin for a lock that an ordinary thread holds, which then never gets a processor to release it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
import struct
import sys
import threading
import time
from collections.abc import Callable

PRIORITY = 40
"""Of a loop's thread by default (SCHED_FIFO), below a controller manager's and that of interrupts, which is 50."""
SWITCH_INTERVAL = 2e-4  # s, after which a thread that waits for the interpreter gets it; Python's default is 5 ms
STARVED = 0.2  # s that ordinary threads wait for a processor before the loop loses its priority
_LOOK_EVERY = 0.02  # s
_CPU_CLOCK = 2  # in the number of a clock of another process's processor time
_SHARE = 0.5  # of the time that others waited: a loop that ran for more of it is why they did

_ALL_PAGES = 1 | 2 | 4  # MCL_CURRENT, MCL_FUTURE and MCL_ONFAULT, of mlockall(2): those that have been used
_HURRIED = -10  # niceness of what somebody waits for in an emergency
_SLICE = 100_000  # ns: what a loop computes in a period is two or three of them
_YOUNG = 200  # objects made since the last collection: of the usual 700, a collection of two generations takes 3 ms
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # number of the system call, which libc does not wrap everywhere
_SCHED_ATTR = struct.Struct("IIQiIQQQII")  # struct sched_attr of linux/sched/types.h, with size and policy before all


def ask_for_short_slices() -> bool:
    """Let the calling thread preempt ordinary ones as soon as it wakes, for short turns; needs no permission.

    Linux 6.12 and later (EEVDF) lets threads with short slices preempt those with longer ones; else a thread that wakes
    waits for the end of another slice of 3 ms. False where the system ignores the request.
    """
    call = _SCHED_SETATTR.get(platform.machine()) if sys.platform == "linux" else None
    if call is None:
        return False
    niceness = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    attributes = _SCHED_ATTR.pack(_SCHED_ATTR.size, os.SCHED_OTHER, 0, niceness, 0, _SLICE, 0, 0, 0, 0)
    return bool(ctypes.CDLL(None).syscall(call, 0, ctypes.create_string_buffer(attributes), 0) == 0)


def hurry() -> None:
    """Let the threads of this process, which are still to start, go before ordinary ones, where that is permitted."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _HURRIED)
    ask_for_short_slices()


def process_began() -> float:
    """When this process began, on the monotonic clock [s]; elsewhere than on Linux, now."""
    try:
        with open("/proc/self/stat") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])  # proc(5): starttime, since boot
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError):
        age = 0.0
    return time.monotonic() - age


def lock_memory() -> bool:
    """Lock this process' memory, so that the loop waits for no disk; False where `ulimit -l` is less than all."""
    try:
        import resource  # there on Unix alone

        if os.geteuid() != 0 and resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] != resource.RLIM_INFINITY:
            return False
        return bool(ctypes.CDLL(None).mlockall(_ALL_PAGES) == 0)
    except (ImportError, AttributeError, OSError):
        return False


def settle() -> None:
    """Exclude all present objects from garbage collection, which would take longer than a period."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 10, 10)


class Watchdog:
    """Takes the real-time priority from a thread, or a process of one thread, that starves others.

    It is an ordinary thread that sleeps for short times. Where it wakes late by more than `STARVED` and the other has
    run for most of that time, that one goes back to ordinary scheduling, and `say` gets a line, in this thread.
    `number` is the id of the thread or process, `clock` its clock of processor time, by default the process'.
    """

    def __init__(self, number: int, say: Callable[[str], None], clock: int | None = None) -> None:
        self._number, self._say = number, say
        self._clock = (~number << 3) | _CPU_CLOCK if clock is None else clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self.bitten = False

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def end(self) -> None:
        """Stop watching."""
        self._stop.set()

    def _watch(self) -> None:
        try:
            before, ran = time.monotonic(), time.clock_gettime(self._clock)
            while not self._stop.is_set():
                time.sleep(_LOOK_EVERY)
                now, runs = time.monotonic(), time.clock_gettime(self._clock)
                late = now - before - _LOOK_EVERY
                if late > STARVED and runs - ran > _SHARE * late and not self._stop.is_set():
                    self._demote(late)
                before, ran = now, runs
        except OSError:  # it has ended
            return

    def _demote(self, late: float) -> None:
        if os.sched_getscheduler(self._number) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO:
            make_ordinary(self._number)
            self.bitten = True
            text = f"the loop took the processors from others for {late:.2f} s: it has no real-time priority any more"
            self._say(text)


def make_ordinary(number: int) -> None:
    """Take the real-time priority from a thread; without effect where it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.sched_setscheduler(number, os.SCHED_OTHER, os.sched_param(0))


class LoopScheduling:
    """Gives the thread of a loop a real-time priority (SCHED_FIFO; 0: ordinary scheduling), under a watchdog.

    `say` takes log lines, from the loop's thread or the watchdog's. `alone`: the loop is the only thread of its
    process, and another process watches it.
    """

    def __init__(self, priority: int, say: Callable[[str], None], alone: bool = False) -> None:
        self._priority = priority
        self._say = say
        self._alone = alone
        self._thread = 0  # that has the priority
        self._watchdog: Watchdog | None = None

    @property
    def granted(self) -> bool:
        """Whether the loop has a real-time priority now."""
        return self._thread != 0 and not (self._watchdog is not None and self._watchdog.bitten)

    def request(self) -> None:
        """Run the calling thread ahead of all ordinary ones; in short slices where that is not permitted."""
        sys.setswitchinterval(SWITCH_INTERVAL)
        ask_for_short_slices()
        single = (os.cpu_count() or 1) < 2  # on a single core no other thread would get any time
        if self._priority == 0 or single or not hasattr(os, "sched_setscheduler"):  # as on macOS
            return
        thread = threading.get_native_id()
        try:  # what the thread starts is ordinary
            policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(thread, policy, os.sched_param(self._priority))
        except OSError as error:
            text = f"no real-time scheduling ({error.strerror}): deadlines depend on the load of the computer"
            self._say(text)
            return
        self._thread = thread
        if self._alone:
            lock_memory()
        else:
            self._watchdog = Watchdog(thread, self._say, time.pthread_getcpuclockid(threading.get_ident()))
            self._watchdog.start()

    def release(self) -> None:
        """Go back to ordinary scheduling: the loop is over."""
        if self._watchdog is not None:
            self._watchdog.end()
        if self._thread:
            make_ordinary(self._thread)
            self._thread = 0
