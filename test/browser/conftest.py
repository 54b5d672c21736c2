# SPDX-License-Identifier: Apache-2.0
"""A browser, a robot behind the page that does at once what it is asked, and the page as people see it."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

pytest.importorskip("viser", reason="viser, which shows the page, is not installed")

from pkm_control.operator_interface import Answer
from pkm_description.mechanism import Mechanism
from pkm_kinematics import Kinematics
from pkm_viewer.jog_space import JogSpace
from pkm_viewer.operations import Motion, Readings
from pkm_viewer.panels.jog_panel import HANDS_OFF
from pkm_viewer.viewer import RobotViewer

from .chromium import Chromium, program
from .page_driver import SLOW, PageDriver

DESKTOP, PHONE = (1280, 800), (400, 800)
SHEET = "div[style*='position: fixed'][style*='max-height: 60%']"  # viser's, with the controls of a phone
FOLDED = 80.0  # pixels, which its head alone does not have


class FakeRobot:
    """A robot that jumps to where it is sent, and notes what it is asked."""

    motions = ("auto", "circle", "pick_and_place", "tilts")

    def __init__(self, kinematics: Kinematics, operate: str = "local") -> None:
        self.kinematics = kinematics
        self.calls: list[tuple[Any, ...]] = []
        self.mode, self.speed, self.time = "HOLDING", 1.0, 0.0
        self.machine = "active"
        self.motion: Motion | None = None
        self.pose = np.array(kinematics.home)
        self.joints = np.array(kinematics.home_joints)
        self.space = JogSpace(kinematics)
        self.effort_share: float | None = None  # of every drive's limit; None: efforts that swing
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        joints = dict(zip(kinematics.joint_names, self.joints.tolist(), strict=True))
        self.viewer = RobotViewer(kinematics.mechanism, port, joints, operate=operate)
        self.viewer.operate(self, self.space)

    def note(self, *call: Any) -> Answer:
        self.calls.append(call)
        return Answer(True, f"{call[0]} is done")

    def emergency_stop_at_once(self, then: Callable[[Answer], None]) -> None:
        self.machine = "fault"
        then(self.note("emergency stop"))

    def enable(self) -> Answer:
        self.machine = "active"
        return self.note("enable")

    def disable(self) -> Answer:
        self.machine = "inactive"
        return self.note("disable")

    def reset(self) -> Answer:
        self.machine = "inactive"
        return self.note("reset")

    def play(self, motion: str, cycles: int) -> Answer:
        self.mode = "TRACKING"
        return self.note("play", motion, cycles)

    def pause(self) -> Answer:
        self.mode = "PAUSED"
        return self.note("pause")

    def resume(self) -> Answer:
        self.mode = "TRACKING"
        return self.note("resume")

    def stop(self) -> Answer:
        self.mode = "HOLDING"
        return self.note("stop")

    def recover(self) -> Answer:
        self.mode = "HOLDING"
        return self.note("recover")

    def set_speed(self, fraction: float) -> Answer:
        self.speed = fraction
        return self.note("speed", fraction)

    def jog_to(self, pose: np.ndarray) -> Answer:
        if self.mode != "HOLDING":
            return Answer(False, "stop what runs before you jog")
        self.pose = np.array(pose)
        self.joints = np.array(self.kinematics.inverse(pose, seed=self.joints).joints)
        return self.note("jog", np.array(pose))

    def change_working_mode(self, label: str) -> Answer:
        self.note("mode", label)
        return Answer(False, f"every way to {label} crosses a singularity")

    def step(self) -> None:
        self.time += 0.04
        k = self.kinematics
        self.viewer.update(k.joint_names, self.joints, self.pose)
        margins = k.singularity(self.pose, seed=self.joints)
        n = len(k.actuated_names)
        readings = Readings(
            time=self.time,
            mode=self.mode,
            machine=self.machine,
            pose=self.pose,
            error=1e-4,
            rotation_error=1e-4,
            speed=0.1,
            efforts=np.sin(self.time + np.arange(n)) if self.effort_share is None else self.effort_share * self.limits,
            speed_override=self.speed,
            distances=(float(margins.type1), float(margins.type2), float(margins.constraint_hold), None),
            units=("m/s per rad/s", "rad/s per m/s", "", ""),
            motion=self.motion,
        )
        self.viewer.show(readings)

    def wait(self, condition: Callable[[], Any], patience: float = SLOW) -> Any:
        """Go on until a condition holds, and return its value."""
        deadline = time.monotonic() + patience
        while not (value := condition()):
            assert time.monotonic() < deadline, "waited in vain"
            self.step()
            time.sleep(0.04)
        return value

    @property
    def mechanism(self) -> Mechanism:
        """The robot's description."""
        return self.kinematics.mechanism

    @property
    def limits(self) -> np.ndarray:
        """What each drive can give, (n,) [N or N m]."""
        joints = self.mechanism.joint_named
        return np.array([joints[name].limits.effort for name in self.kinematics.actuated_names])

    @property
    def rigid(self) -> bool:
        """Whether its platform moves in the same directions everywhere."""
        return self.kinematics.constant_space

    def go_home(self) -> None:
        """Stand at home, idle, until the page's controls stand there too."""
        self.mode, self.pose = "HOLDING", np.array(self.kinematics.home)
        self.joints = np.array(self.kinematics.home_joints)
        until = time.monotonic() + HANDS_OFF + 0.4  # the controls wait for hands to go off
        while time.monotonic() < until:
            self.step()
            time.sleep(0.04)

    def last(self, kind: str) -> tuple[Any, ...] | None:
        return next((call for call in reversed(self.calls) if call[0] == kind), None)


class Page(PageDriver):
    """The page of a robot that jumps."""

    def __init__(self, browser: Chromium, robot: FakeRobot) -> None:
        self.robot = robot
        self._narrow = False
        before = set(robot.viewer.server.get_clients())
        super().__init__(browser, robot.viewer.url, robot.wait)
        (self.client,) = robot.wait(lambda: set(robot.viewer.server.get_clients()) - before)

    @property
    def camera(self) -> Any:
        """The page's."""
        return self.robot.viewer.server.get_clients()[self.client].camera

    def resize(self, size: tuple[int, int]) -> None:
        """Give the page a size, wait until the camera has followed, and unfold a phone's controls."""
        self.browser.size(*size)

        def followed() -> bool:
            left, top, right, bottom = self.canvas()
            scene = self.robot.viewer.scene
            eye, width, height = scene._placed_clients[self.client]
            # viser counts pixels as it draws them, fewer than there are while it is slow
            shaped = abs(width / height - (right - left) / (bottom - top)) < 0.01
            there = np.allclose(self.camera.position, eye, atol=1e-3 * scene.size)
            return bool(bottom - top == size[1] and shaped and there)

        self.robot.wait(followed)
        if size == PHONE and not self._narrow:
            self.robot.wait(lambda: 0 < self.sheet_height() < FOLDED)
            self.tap_head_of_sheet()
            self.robot.wait(lambda: self.sheet_height() > 2 * FOLDED)
        self._narrow = size == PHONE

    def sheet_height(self) -> float:
        """Of a phone's sheet with the controls, in pixels; 0 where there is none."""
        return float(self.browser.run(f"document.querySelector({SHEET!r})?.getBoundingClientRect().height ?? 0"))

    def tap_head_of_sheet(self) -> None:
        """Fold a phone's controls, or unfold them."""
        box = f"document.querySelector({SHEET!r}).getBoundingClientRect()"
        self.browser.click(*self.browser.run(f"(box => [box.x + 60, box.y + 20])({box})"))

    def seen_at(self, point: np.ndarray) -> tuple[float, float]:
        """Where a point (3,) [m] is on the screen."""
        camera = self.camera
        R = Rotation.from_quat(np.roll(camera.wxyz, -1)).as_matrix()
        x, y, z = R.T @ (np.asarray(point) - camera.position)  # right, down, forward
        left, top, right, bottom = self.canvas()
        focal = 0.5 * (bottom - top) / np.tan(0.5 * camera.fov)
        return 0.5 * (left + right) + focal * x / z, 0.5 * (top + bottom) + focal * y / z


@contextlib.contextmanager
def started_chromium() -> Iterator[Chromium]:
    """A browser; skips the test where there is none."""
    if program() is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    one = Chromium()
    try:
        yield one
    finally:
        one.close()
