# SPDX-License-Identifier: Apache-2.0
"""A loop's thread asks for short slices, and stays what it was otherwise."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
import threading

import pytest

from pkm_runtime.scheduling import ask_for_short_slices

GETATTR = {"x86_64": 315, "aarch64": 275}


@pytest.mark.skipif(sys.platform != "linux" or platform.machine() not in GETATTR, reason="asked of Linux alone")
def test_a_thread_alone_gets_short_slices() -> None:
    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    mine = slice_of_this_thread()
    seen: list[tuple[bool, int, int, int]] = []

    def ask() -> None:
        asked = ask_for_short_slices()
        me = threading.get_native_id()
        seen.append((asked, os.sched_getscheduler(me), os.getpriority(os.PRIO_PROCESS, me), slice_of_this_thread()))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    (asked, policy, niceness, after) = seen[0]
    assert asked
    assert policy == os.SCHED_OTHER
    assert niceness == before
    new = tuple(map(int, platform.release().split(".")[:2])) >= (6, 12)
    assert after == (100_000 if new else 0)
    assert slice_of_this_thread() == mine


def slice_of_this_thread() -> int:
    """Time of a slice [ns], as the system tells; zero where it knows of none."""
    room = ctypes.create_string_buffer(56)
    assert ctypes.CDLL(None).syscall(GETATTR[platform.machine()], 0, room, 56, 0) == 0
    return int(struct.unpack("IIQiIQQQII", room.raw)[5])
