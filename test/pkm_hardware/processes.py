# SPDX-License-Identifier: Apache-2.0
"""Commands in processes of their own, forked from one that has imported them."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerProcess
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")  # which has neither threads nor ROS
_BECOME = """
import os, signal, sys, traceback
from pkm_runtime.child_processes import ENDING
os.setsid()
for number in ENDING:
    signal.signal(number, signal.SIG_DFL)
file = os.open({output!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.dup2(file, 1), os.dup2(file, 2)
code = 1
try:
    import {module} as command
    sys.argv[1:] = {arguments!r}
    code = command.main()
except BaseException:
    traceback.print_exc()
finally:
    sys.stdout.flush(), sys.stderr.flush()
    os._exit(code)
"""  # as text: modules of tests cannot be imported elsewhere


def begin(module: str, arguments: list[str], output: Path) -> ForkServerProcess:
    """The process of a module's `main`; what it says goes to a file."""
    _FORKS.set_forkserver_preload(["pkm_bringup.command_line.play", "pkm_control.robot_loop"])
    code = _BECOME.format(module=module, arguments=arguments, output=str(output))
    process = _FORKS.Process(target=exec, args=(code,), daemon=True)
    process.start()
    return process


def children(pid: int) -> list[int]:
    """Processes that a process has begun."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
