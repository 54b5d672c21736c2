# SPDX-License-Identifier: Apache-2.0
"""The end of a node's process: in order at the first signal, in spite of a long callback at a later one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pkm_bringup.start import LAUNCHER

NODE = """
import time
from rclpy.node import Node
from pkm_description.ros.process import run_node

class Busy(Node):
    def __init__(self):
        super().__init__("busy")
        self.create_timer(0.01, self.work)
        print("up", flush=True)

    def work(self):
        {work}

    def destroy_node(self):
        print("destroyed", flush=True)
        super().destroy_node()

raise SystemExit(run_node(Busy))
"""


def started(work: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", NODE.format(work=work)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    time.sleep(0.5)
    return process


def test_one_signal_ends_a_node_in_order() -> None:
    process = started("pass")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=10.0)
    assert (out, process.returncode) == ("destroyed\n", 0)


def test_a_later_signal_interrupts_a_long_callback() -> None:
    process = started("[time.sleep(0.01) for _ in range(6000)]")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)  # as launch does besides the terminal: not yet insisting
    time.sleep(1.5)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=10.0)
    assert (out, process.returncode) == ("destroyed\n", 0)


def test_a_node_that_is_still_being_made_ends_in_order() -> None:
    """While kernels are compiled for the first time, say: at the second signal."""
    code = NODE.replace("self.create_timer(0.01, self.work)", 'print("up", flush=True); time.sleep(60)')
    process = subprocess.Popen([sys.executable, "-c", code.format(work="pass")], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGINT)
    time.sleep(1.5)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10.0)
    assert process.returncode == 0


@pytest.mark.slow
def test_a_later_signal_does_not_interrupt_the_end() -> None:
    """Drives are turned off there."""
    code = NODE.replace('print("destroyed", flush=True)', 'time.sleep(2.5); print("destroyed", flush=True)')
    process = subprocess.Popen([sys.executable, "-c", code.format(work="pass")], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGINT)
    time.sleep(1.5)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=10.0)
    assert (out, process.returncode) == ("destroyed\n", 0)


@pytest.mark.slow
def test_an_end_that_hangs_shows_where_and_exits() -> None:
    """In a call that no signal reaches, as a compiled loop or a lock of the middleware is."""
    hanging = "import threading\nfrom pkm_description.ros import process\nprocess._LAST_RESORT = 2.0\n"
    at_the_end = NODE.format(work="pass").replace("super().destroy_node()", "LOCK.acquire()")
    in_a_callback = NODE.format(work="LOCK.acquire()")
    lock = "import signal\nLOCK = threading.Lock(); LOCK.acquire()\n"
    deaf = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n"
    for code in (hanging + lock + at_the_end, hanging + lock + deaf + in_a_callback):
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=15.0)
        assert process.returncode == 1
        assert "Timeout" in said
        assert "line" in said


def test_a_signal_while_python_clears_up_changes_nothing() -> None:
    """As a launch sends it, on a busy computer, after what the terminal has sent."""
    late = """
import os, signal
class Late:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
late = Late()
"""
    code = late + NODE.format(work="pass")
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10.0)
    assert process.returncode == 0


@pytest.mark.slow
def test_a_long_callback_is_interrupted_a_while_after_the_first_signal() -> None:
    """A node that compiles kernels does not keep a launch from its end."""
    process = started("[time.sleep(0.01) for _ in range(6000)]")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=10.0)
    assert (out, process.returncode) == ("destroyed\n", 0)


@pytest.mark.parametrize("unfinished", [True, False], ids=["report", "kernels"])
def test_remaining_work_is_waited_for_and_only_that(unfinished: bool) -> None:
    """A report is drawn in a callback, too; while kernels are compiled nothing has moved yet."""
    work = "[time.sleep(0.01) for _ in range(700)], print('done', flush=True)"
    end = f"    unfinished = {unfinished}\n\n    def at_exit(self):\n        print('report', flush=True)\n\n"
    code = NODE.format(work=work).replace("    def destroy_node", f"{end}    def destroy_node")
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20.0)
    assert (out, process.returncode) == ("done\n" * unfinished + "report\ndestroyed\n", 0)


@pytest.mark.slow
def test_a_node_that_was_made_ends_though_the_next_one_is_interrupted() -> None:
    code = NODE.format(work="pass").replace("run_node(Busy)", "run_nodes(make)").replace("run_node\n", "run_nodes\n")
    code = code.replace("raise SystemExit", "def make():\n    yield Busy()\n    time.sleep(60)\n\nraise SystemExit")
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=10.0)
    assert (out, process.returncode) == ("destroyed\n", 0)


def test_a_signal_that_another_thread_gets_ends_a_sleeping_node() -> None:
    """The kernel chooses the thread: here one of the middleware's, as the main thread takes no signal but a nudge."""
    deaf = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGALRM])"
    code = "import signal\n" + NODE.replace('print("up"', f'{deaf}; print("up"').format(work="time.sleep(60)")
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=15.0)
    assert (out, process.returncode) == ("destroyed\n", 0)


LAUNCHED = """
import sys
sys.path.insert(0, {folder!r})
from pkm_bringup import start
start.NODES["busy"] = "busy"
raise SystemExit(start.run("busy"))
"""


@pytest.mark.parametrize("early", [False, True])
def test_a_node_ends_in_order_with_the_process_that_launched_it(early: bool, tmp_path: Path) -> None:
    """Also where that is killed, as `ros2 launch` leaves its nodes running then, and while the node still imports."""
    node = NODE.format(work="pass").replace(
        "raise SystemExit(run_node(Busy))", "def main():\n    return run_node(Busy)"
    )
    (tmp_path / "busy.py").write_text("print('imported', flush=True)\n" + "import time\ntime.sleep(2)\n" * early + node)
    launcher = f"import os, subprocess, sys, time; os.environ['{LAUNCHER}'] = str(os.getpid())\n"
    launcher += "subprocess.Popen([sys.executable, '-c', sys.argv[1]]); time.sleep(60)"
    command = [sys.executable, "-c", launcher, LAUNCHED.format(folder=str(tmp_path))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "imported\n"
    assert early or process.stdout.readline() == "up\n"
    process.kill()
    assert process.communicate(timeout=10.0)[0] == "destroyed\n" * (not early)  # at the end of all who write there


@pytest.mark.parametrize(("executable", "niceness"), [("kinematics_node", 5), ("control_node", -5)])
def test_a_launched_node_is_a_session_of_its_own_and_loops_go_first(
    executable: str, niceness: int, tmp_path: Path
) -> None:
    """In the launch's session it would share what of a busy computer that one session gets."""
    says = "import os\ndef main():\n    print(os.getsid(0) == os.getpid(), os.nice(0), flush=True)\n    return 0\n"
    (tmp_path / "says.py").write_text(says)
    started = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom pkm_bringup import start\n"
    started += f"start.NODES[{executable!r}] = 'says'\nraise SystemExit(start.run({executable!r}))"
    launch = f"import os, subprocess, sys; os.environ['{LAUNCHER}'] = str(os.getpid())\n"
    launch += "subprocess.run([sys.executable, '-c', sys.argv[1]])"
    said = subprocess.run([sys.executable, "-c", launch, started], capture_output=True, text=True, timeout=60.0).stdout
    before = os.nice(0)
    permitted = niceness > 0 or os.geteuid() == 0
    assert said.split() == ["True", str(before + niceness if permitted else before)]


def test_a_node_whose_launch_is_gone_does_not_begin(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    environment = {**os.environ, LAUNCHER: str(gone.pid)}
    program = [sys.executable, "-c", LAUNCHED.format(folder=str(tmp_path))]
    assert subprocess.run(program, env=environment, timeout=60.0).returncode == 0


def test_a_stop_loads_nothing_that_computes() -> None:
    script = (
        "import sys, pkm_client.verbs\n"
        "from pkm_client.ros.client_node import ClientNode\n"
        "node = ClientNode('nobody')\n"
        "print(*({'numpy', 'scipy', 'numba', 'lark', 'em', 'lxml'} & set(sys.modules)))\n"
        "node._node.create_client(__import__('std_srvs.srv', fromlist=['Trigger']).Trigger, 'stop')\n"
        "print(*({'numpy', 'scipy', 'numba', 'lark', 'em', 'lxml'} & set(sys.modules)))\n"
        "node.close()\n"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120).stdout == "\n\n"
