# SPDX-License-Identifier: Apache-2.0
"""Nodes of a robot are heard on this computer, and keep out of shared memory, where stopped readers stop writers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from std_msgs.msg import String

from pkm_description.ros.transport import RANGE, transport_environment

from .conftest import Graph

pytestmark = pytest.mark.skipif(
    os.environ.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp") != "rmw_fastrtps_cpp", reason="profiles are of Fast DDS"
)

TALKER = """
import sys
import rclpy
from std_msgs.msg import String
rclpy.init()
node = rclpy.create_node("talker", namespace=sys.argv[1])
publisher = node.create_publisher(String, "said", 10)
node.create_timer(0.05, lambda: publisher.publish(String(data="hello")))
rclpy.spin(node)
"""


@pytest.mark.parametrize("discovery", ["LOCALHOST", "SUBNET"])
def test_no_shared_memory(graph: Graph, discovery: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.endswith("DEFAULT_PROFILES_FILE")}
    environment |= transport_environment({**environment, RANGE: discovery})
    process = subprocess.Popen([sys.executable, "-c", TALKER, graph.namespace], env=environment)
    try:
        heard: list[String] = graph.listen(String, "said")
        end = time.monotonic() + 20.0
        while not heard and time.monotonic() < end:
            time.sleep(0.05)
        maps = Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8")
    finally:
        process.kill()
        process.wait()
    assert heard
    assert "libfastrtps" in maps or "libfastdds" in maps
    assert "/dev/shm/fastrtps" not in maps
    assert "/dev/shm/fastdds" not in maps
