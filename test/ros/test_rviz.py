# SPDX-License-Identifier: Apache-2.0
"""RViz beside a launched robot, on a screen in memory: robot, paths and surfaces are seen, and nothing is amiss.

Needs what is not on PyPI: a sourced ROS 2 installation with RViz, a workspace in which this suite is built, and Xvfb.
"""

from __future__ import annotations

import importlib
import os
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pkm_analysis.layer_file import Sheet, write_layer
from pkm_description import load_mechanism
from pkm_description.ros import topics
from pkm_description.urdf.visuals import visuals_of
from pkm_interfaces.srv import PlayMotion

from .conftest import Graph
from .installed import RVIZ, not_installed

TAKEN, PLANNED = (235, 110, 30), (70, 140, 255)  # lines are drawn in the colours of rviz/pkm.rviz
SHEET = (255, 0, 255)
AMISS, WRONG = (192, 128, 0), (192, 32, 32)  # names of displays that RViz warns of, or finds an error in
A_NAME = 40  # pixels of one; icons have some of these colours
PANELS = 440  # pixels from the left


MISSING = not_installed(RVIZ)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


class Screen:
    """An X server that draws into a file."""

    def __init__(self, folder: Path) -> None:
        read, write = os.pipe()
        words = ["-displayfd", str(write), "-screen", "0", "1400x900x24", "-fbdir", str(folder), "-nolisten", "tcp"]
        self._file = folder / "Xvfb_screen0"
        self._server = subprocess.Popen(["Xvfb", *words], pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as told:
            self.name = f":{told.readline().strip()}"

    def picture(self) -> np.ndarray:
        """Red, green, blue (height, width, 3) of what is seen now. The file is a dump as X11/XWDFile.h has it."""
        time.sleep(0.2)  # who looks leaves RViz time to draw
        dump = self._file.read_bytes()
        head = struct.unpack(">25I", dump[:100])
        size, width, height, line, colours = head[0], head[4], head[5], head[12], head[19]
        pixels = np.frombuffer(dump, np.uint8, height * line, size + 12 * colours)
        return pixels.reshape(height, line // 4, 4)[:, :width, 2::-1].astype(int)

    def panels(self) -> np.ndarray:
        return self.picture()[:, :PANELS]

    def scene(self) -> np.ndarray:
        return self.picture()[:, PANELS:]

    def close(self) -> None:
        self._server.terminate()
        self._server.wait()


class Seen:
    """A Delta that stands still in a namespace, with a prefix before its frames, a magenta surface, and RViz."""

    def __init__(self, graph: Graph, folder: Path) -> None:
        self.graph, self.screen, self.log = graph, Screen(folder), folder / "launch.log"
        corners = np.array([[-0.4, 0.3, -1.0], [0.4, 0.3, -1.0], [0.0, 0.3, -0.6]])
        colours = np.full((3, 4), (*SHEET, 255), dtype=np.uint8)
        layer = write_layer(
            folder / "a.glb", "loci", "1", "base_link", [Sheet("one", corners, np.array([[0, 1, 2]]), colours)]
        )
        transforms = importlib.import_module("tf2_msgs.msg").TFMessage
        self.moving = graph.listen(transforms, "/tf")
        self.fixed: list[Any] = []
        self._subscription = graph.client.create_subscription(
            transforms, "/tf_static", self.fixed.append, topics.LATCHED
        )
        settings = ("motion:=none", "rate:=250", "natural_frequency:=40", "frame_prefix:=left/", f"layers:={layer}")
        command = ["ros2", "launch", "pkm_control", "delta.launch.py", *settings, f"report:={folder}"]
        told = {"DISPLAY": self.screen.name, "LIBGL_ALWAYS_SOFTWARE": "1", "QT_QPA_PLATFORM": "xcb"}
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [*command, f"namespace:={graph.namespace}"],
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **told},
            )

    def wait(self, condition: Callable[[], Any]) -> None:
        self.graph.wait(lambda: condition() or self.process.poll() is not None, 240.0)
        assert self.process.poll() is None, self.log.read_text()

    def close(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(40.0)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            self.screen.close()
            print(self.log.read_text())


@pytest.fixture(scope="module")
def seen(shared_graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    made = Seen(shared_graph, tmp_path_factory.mktemp("screen"))
    yield made
    made.close()


def drawn(picture: np.ndarray, colour: tuple[float, ...]) -> int:
    """How many pixels have a colour (red, green, blue)."""
    return int((np.abs(picture - colour).max(axis=2) < 12).sum())


def lit(picture: np.ndarray, colour: tuple[float, ...]) -> int:
    """How many pixels have a colour in some light."""
    light = picture.max(axis=2, keepdims=True) / max(colour)
    return int(((np.abs(picture - light * colour).max(axis=2) < 12) & (light[..., 0] > 0.2)).sum())


def test_the_robot_and_the_surface_are_seen_and_nothing_is_amiss(seen: Seen) -> None:
    mechanism = load_mechanism("delta")
    of_platform = [one.colour[:3] for one in visuals_of(mechanism)[0] if one.link == mechanism.platform_link]
    platform = tuple(255.0 * channel for channel in of_platform[0])
    seen.wait(lambda: lit(seen.screen.scene(), platform) > 500)
    seen.wait(lambda: lit(seen.screen.scene(), SHEET) > 2000)
    seen.wait(lambda: max(drawn(seen.screen.panels(), WRONG), drawn(seen.screen.panels(), AMISS)) < A_NAME)
    said = [line for line in seen.log.read_text().splitlines() if line.startswith("[rviz2")]
    assert said
    assert [line for line in said if "ERROR" in line or "WARN" in line] == []


def test_every_link_has_a_transform_with_the_prefix(seen: Seen) -> None:
    wanted = {f"left/{joint.child}" for joint in load_mechanism("delta").joints}

    def told() -> set[str]:
        return {one.child_frame_id for message in (*seen.moving[-100:], *seen.fixed) for one in message.transforms}

    seen.wait(lambda: told() >= wanted)
    assert told() == wanted


def test_it_moves_along_both_paths(seen: Seen) -> None:
    assert not drawn(seen.screen.scene(), PLANNED)
    before = seen.screen.scene()
    order = PlayMotion.Request(motion="auto", cycles=5)
    seen.wait(lambda: seen.graph.call(PlayMotion, topics.PLAY_MOTION, order).success)  # refused until all are well
    seen.wait(lambda: drawn(seen.screen.scene(), PLANNED) > 10)
    seen.wait(lambda: drawn(seen.screen.scene(), TAKEN) > 10)
    seen.wait(lambda: (np.abs(seen.screen.scene() - before).max(axis=2) > 40).sum() > 2000)
