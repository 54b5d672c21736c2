# SPDX-License-Identifier: Apache-2.0
"""`pkm run` with drives of its own: an emergency stop waits for nothing, and what the run says last is what counts."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="there is no ROS")

from pkm_client import Robot
from pkm_client.client_errors import NoRobotError, RefusedError

from .benches import EXAMPLES, DynamixelBench, wait_until

UNTOLD = "THE DRIVES COULD NOT BE TOLD"


class Run:
    """A run with six simulated Dynamixels, which are off."""

    def __init__(self, folder: Path) -> None:
        self.bench = DynamixelBench(folder, silence="1.0", watchdog="2.0")  # others use this computer, too
        self.bench.__enter__()
        self.output = folder / "output.txt"
        words = ["--hardware", "dynamixel", "--hardware-file", str(folder / "machine.yaml"), "--controller", "position"]
        words += ["--rate", "50", "--realtime-priority=0", "--no-page", "--no-browser", "--stay"]
        words += ["--namespace", "last", "--report", str(folder / "report")]
        command = [sys.executable, "-m", "pkm_bringup.cli", "run", str(EXAMPLES / "hobby_hexapod.urdf.xacro")]
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                [*command, *words], stdout=file, stderr=file, stdin=subprocess.DEVNULL, start_new_session=True
            )
        self.robot = self._connected()

    def _connected(self) -> Robot:
        until = time.monotonic() + 120.0
        while True:
            try:
                return Robot.connect("last")
            except NoRobotError:
                assert self.process.poll() is None, self.text
                assert time.monotonic() < until, self.text

    @property
    def text(self) -> str:
        return self.output.read_text(errors="replace")

    def enable(self) -> None:
        def enabled() -> bool:
            try:
                self.robot.enable()
            except RefusedError:  # a busy computer may answer too late at first
                with contextlib.suppress(RefusedError):
                    self.robot.reset()
            return len(self.bench.on()) == self.bench.drives

        assert wait_until(enabled, 20.0), self.text

    def loop(self) -> int:
        """The number of the loop's process."""
        for folder in Path("/proc").iterdir():
            try:
                if (folder / "comm").read_text().strip() == "pkm loop":
                    words = (folder / "cmdline").read_text()
                    if str(self.output.parent) in words:
                        return int(folder.name)
            except OSError:
                continue
        raise AssertionError("there is none")

    def end(self) -> int:
        """Its exit status, once it has ended."""
        return self.process.wait(40.0)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.end()
        self.bench.__exit__(None, None, None)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    made = Run(tmp_path)
    try:
        yield made
    finally:
        made.close()


def test_an_emergency_stop_does_not_wait_until_drives_are_on_and_a_loop_that_dies_turns_them_off(run: Run) -> None:
    """Answers come by USB, 16 ms late; and drives that answer so can be enabled."""
    run.bench.bus.delay = 0.016
    run.enable()
    run.robot.disable()
    assert not run.bench.on()
    refused: list[str] = []

    def enable() -> None:
        try:
            run.robot.enable()
        except RefusedError as error:
            refused.append(str(error))

    enabling = threading.Thread(target=enable)
    enabling.start()
    time.sleep(0.2)
    most = 0
    stopping = threading.Thread(target=run.robot.emergency_stop)
    stopping.start()
    while stopping.is_alive() or enabling.is_alive():
        most = max(most, len(run.bench.on()))
        time.sleep(0.002)
    assert most == 0
    assert refused
    run.robot.reset()
    run.enable()
    run.bench.bus.delay = 0.0
    os.kill(run.loop(), signal.SIGKILL)
    assert wait_until(lambda: not run.bench.on(), 3.0)
    assert run.end() == 1
    assert "the process of the control loop has ended (SIGKILL); the drives were turned off" in run.text
    assert "control ended with code 1; stopping the others" in run.text
    assert UNTOLD not in run.text


@pytest.mark.slow
def test_a_loop_that_is_frozen_for_long_is_ended_and_does_not_come_back(run: Run) -> None:
    run.enable()
    os.kill(run.loop(), signal.SIGSTOP)
    assert wait_until(lambda: not run.bench.on(), 8.0)
    assert run.end() == 1
    assert "it is ended, and the drives are turned off without it" in run.text
    assert "the control loop is back" not in run.text


@pytest.mark.parametrize("times", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_the_last_line_says_that_drives_are_on(run: Run, times: int) -> None:
    """Whoever is in a hurry hears it, too."""
    run.enable()
    run.bench.bus.gone.add(3)
    for _ in range(times):
        run.process.send_signal(signal.SIGINT)
        time.sleep(0.06)
    assert run.end() == 1
    last = run.text.rstrip().splitlines()[-1]
    assert UNTOLD in last
    assert "drive 3" in last
    assert "pkm control: " not in run.text  # it is said once
    assert run.bench.on() == ["drive 3"]
