# SPDX-License-Identifier: Apache-2.0
"""The whole system, operated by a person in a browser: jog, start, pause, go on, slow down, stop."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; ./pkm test installs it")
pytest.importorskip("viser", reason="viser, which shows the page, is not installed")

from test.browser.chromium import Chromium, program
from test.browser.page_driver import PageDriver

if program() is None:
    pytest.skip("no Chromium is installed (Debian: apt-get install chromium)", allow_module_level=True)

pytestmark = pytest.mark.slow  # a browser with software rendering beside the loops takes its time

PORT = 8950
RATE = "250"


def wait(condition: Callable[[], Any], patience: float = 120.0) -> Any:
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
    return value


@contextmanager
def running(robot: str, reports: Path) -> Iterator[PageDriver]:
    command = [sys.executable, "-m", "pkm_bringup.runner", robot, "--motion", "none", "--stay", "--rate", RATE]
    command += ["--port", str(PORT), "--report", str(reports), "--natural-frequency", "40", "--browser", "false"]
    command += ["--realtime-priority", "0"]  # a browser that draws by software keeps all processors
    environment = {**os.environ, "ROS_DOMAIN_ID": str((int(os.environ["ROS_DOMAIN_ID"]) + 51) % 101)}
    with open(reports / "log", "w") as log:
        run = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
    browser = None
    try:
        url = wait(lambda: re.search(r"shown at (http\S+);", (reports / "log").read_text()), 400.0).group(1)
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert answer.status == 200
        browser = Chromium()
        yield PageDriver(browser, url, wait)
    finally:
        if browser is not None:
            browser.close()
        run.terminate()
        assert run.wait(60.0) == 0, (reports / "log").read_text()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageDriver]:
    with running("delta", tmp_path_factory.mktemp("reports")) as driver:
        yield driver


def position(page: PageDriver) -> list[float]:
    """Where the platform is, as the page says, mm."""
    found = re.search(r"position \[mm\]\s+(-?[\d.]+)\s+(-?[\d.]+)\s+(-?[\d.]+)", page.text())
    return [float(one) for one in found.groups()] if found else []


def test_a_slider_jogs_the_platform(page: PageDriver) -> None:
    wait(lambda: page.find("x [mm]", "input") and position(page) and "holding" in page.text())
    x, y, z = position(page)
    page.type("x [mm]", "30")
    wait(lambda: position(page) == pytest.approx([30.0, y, z], abs=0.2))
    wait(lambda: "holding" in page.text())
    assert x == pytest.approx(0.0, abs=0.2)


def test_a_motion_is_run_halted_and_stopped(page: PageDriver) -> None:
    page.choose("Motion", "circle")
    page.type("Cycles", "1000")
    page.type("Speed [%]", "50")
    wait(lambda: re.search(r"speed override\s+50 %", page.text()))
    page.press("Start")
    wait(lambda: "1000 x" in page.text() and "tracking" in page.text())
    page.press("Pause")
    wait(lambda: "paused" in page.text())
    wait(lambda: "0.00 m/s" in page.text())
    page.press("Resume")
    wait(lambda: "tracking" in page.text() and "0.00 m/s" not in page.text())
    page.press("Stop")
    wait(lambda: "holding" in page.text() and "0.00 m/s" in page.text())
    page.type("Speed [%]", "100")
    wait(lambda: re.search(r"speed override\s+100 %", page.text()))


def test_what_cannot_be_done_is_told(page: PageDriver) -> None:
    page.choose("Motion", "tilts")  # a Delta does not tilt
    page.press("Start")
    wait(lambda: re.search("cannot|not in|no rotation|tilt", page.answer()))
    assert "holding" in page.text()


def test_an_emergency_stop_takes_the_drives_out_of_power(page: PageDriver) -> None:
    wait(lambda: page.find("z [mm]", "input") and "holding" in page.text() and "the drives are on" in page.text())
    page.browser.run("document.getElementById('emergency-stop').click()")
    wait(lambda: "until a reset" in page.text() and "hardware: emergency stop" in page.text())
    assert page.find("Enable drives", "button") is None
    page.press("Reset")
    wait(lambda: "the drives are off" in page.text() and "until a reset" not in page.text())
    wait(lambda: "hardware: emergency stop" not in page.text())  # what is below moves up
    page.press("Enable drives")
    wait(lambda: "the drives are on" in page.text() and "holding" in page.text())
    page.type("z [mm]", "-860")
    wait(lambda: position(page) and position(page)[2] == pytest.approx(-860.0, abs=0.2))


def test_a_change_of_mode_that_is_halted_goes_back(tmp_path: Path) -> None:
    """Paused on its way, the robot is sent to the mode that it came from, which the list still offers."""
    with running("five_bar", tmp_path) as page:
        wait(lambda: page.find("Working mode", "input") and position(page) and "holding" in page.text())
        home = position(page)
        page.choose("Working mode", "-+")
        wait(lambda: "tracking" in page.text() and np.linalg.norm(np.subtract(position(page), home)) > 20.0)
        page.press("Pause")
        wait(lambda: "paused" in page.text() and "0.00 m/s" in page.text())
        page.choose("Working mode", "++")
        wait(lambda: "holding" in page.text() and position(page) == pytest.approx(home, abs=0.3))
        wait(lambda: page.find("Working mode", "input"))
        page.choose("Working mode", "-+")
        wait(lambda: "tracking" in page.text())
        wait(lambda: "holding" in page.text() and position(page) == pytest.approx(home, abs=0.3))
