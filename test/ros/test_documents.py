# SPDX-License-Identifier: Apache-2.0
"""The Python of the documents that asks a running node does so, with a Delta's kinematics node, and is answered."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import rclpy
from geometry_msgs.msg import Point, Pose

from pkm_description import load_mechanism
from pkm_description.ros import topics
from pkm_interfaces.msg import SolveStatus
from pkm_interfaces.srv import SolveInverse
from pkm_kinematics.ros.kinematics_node import KinematicsNode

from .conftest import Graph

PAGE = Path(__file__).resolve().parents[2] / "docs" / "running_reference.md"


def test_the_client_of_the_page_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    graph = Graph("/")
    try:
        graph.describe(load_mechanism("delta").urdf)
        graph.start(KinematicsNode)
        home = SolveInverse.Request(poses=[Pose(position=Point(z=-0.9))])
        graph.wait(lambda: graph.call(SolveInverse, topics.SOLVE_INVERSE, home).status.code != SolveStatus.NOT_READY)
        exec(compile(code, str(PAGE), "exec"), {"__name__": "__main__"})
        printed = capsys.readouterr().out.strip().splitlines()
        assert len(printed) == 8  # every working mode
        assert printed[0].startswith("+++ [")
    finally:
        rclpy.try_shutdown()
        graph.close()
