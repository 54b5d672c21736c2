# SPDX-License-Identifier: Apache-2.0
"""The end of a process, in processes of their own."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys

import pytest

from pkm_runtime.child_processes import Child

BEGIN = """
import ctypes, os, signal, sys, threading, time
from pkm_runtime.child_processes import end_with_program, hear_end

def end():
    os.write(1, b"off ")
    return "a warning"

def refuse():
    raise SystemExit("no")
"""
END = "os.kill(os.getpid(), signal.SIGTERM); time.sleep(10.0)\n"
ENDS = {
    "a thread's": (
        "hear_end(); t = threading.Thread(target=end_with_program, args=(end,)); t.start(); t.join()",
        "off ",
    ),
    "the second": ("end_with_program(end); end_with_program(refuse)", "off "),
    "withdrawn": ("end_with_program(end)()", ""),
    "asked once more": (
        "end_with_program(lambda: [os.kill(os.getpid(), k) for k in (2, 15, 15)] and end())",
        "off ",
    ),
    "of a child": ("end_with_program(end); os.fork() or os._exit(os.kill(os.getpid(), 15) or 0); os.wait()", "off "),
}


@pytest.mark.parametrize("case", ENDS)
def test_a_signal_ends_a_process_after_what_it_is_to_do(case: str) -> None:
    act, said = ENDS[case]
    done = subprocess.run([sys.executable, "-c", f"{BEGIN}{act}\n{END}"], capture_output=True, text=True, timeout=60.0)
    assert done.stdout == said, done.stderr
    assert done.returncode == -signal.SIGTERM
    assert ("a warning" in done.stderr) is bool(said)


OWN = {
    "of Python": "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))",
    "of a library": "h = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda _: os._exit(4)); ctypes.CDLL(None).signal(15, h)",
}


@pytest.mark.parametrize("case", OWN)
@pytest.mark.parametrize("first", [True, False])
def test_a_handler_of_the_program_stays(case: str, first: bool) -> None:
    lines = [OWN[case], "end_with_program(end)"]
    text = "\n".join((BEGIN, *(lines if first else lines[::-1]), END))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60.0)
    assert (done.returncode, done.stdout) == ((3, "off ") if case == "of Python" else (4, "")), done.stderr


def test_garbage_of_the_parent_is_left_alone() -> None:
    """Middleware's nodes among it took the control loop's process down."""

    class Node:
        def __del__(self) -> None:
            cleared.append(os.getpid())

    cleared: list[int] = []
    gc.disable()
    try:
        node = Node()
        node.itself = node  # type: ignore[attr-defined]
        del node
        child = Child(lambda: (gc.collect(), len(cleared))[1])
        assert child.wait(10.0) == 0
        gc.collect()
    finally:
        gc.enable()
    assert cleared == [os.getpid()]
