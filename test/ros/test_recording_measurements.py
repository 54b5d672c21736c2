# SPDX-License-Identifier: Apache-2.0
"""What was measured on a running robot goes into the file that `pkm calibrate` reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pkm_bringup.runner import ProcessGroup
from pkm_calibration.measurements import read_measurements
from pkm_control.operator_interface import Mode
from pkm_description.ros import topics
from pkm_interfaces.srv import RecordMeasurement

from .conftest import Graph
from .test_running_robot import Robot


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("measured") / "m.csv"


@pytest.fixture(scope="module")
def robot(shared_graph: Graph, file: Path) -> Iterator[Robot]:
    group = ProcessGroup()
    try:
        yield Robot(shared_graph, group, "delta", measurement_file=str(file))
    finally:
        group.stop()


def record(robot: Robot, names: list[str], values: list[float]) -> Any:
    request = RecordMeasurement.Request(names=names, values=values)
    return robot.graph.call(RecordMeasurement, topics.RECORD_MEASUREMENT, request)


def test_rows_come_at_rest_alone(robot: Robot, file: Path) -> None:
    if file.exists():  # asked again
        file.unlink()
        robot.result(robot.send(robot.way(robot.home, seconds=1.0)))
        robot.graph.wait(lambda: robot.states[-1].mode == Mode.HOLDING)
    first = record(robot, ["x", "y", "z"], robot.home[:3].tolist())
    assert first.success, first.message
    assert (first.rows, first.file) == (1, str(file))
    handle = robot.send(robot.way(robot.offset(0.03, 0.02), seconds=1.0))
    robot.graph.wait(lambda: robot.states[-1].mode == Mode.TRACKING)
    moving = record(robot, ["x"], [0.0])
    assert not moving.success
    assert "moves" in moving.message
    robot.result(handle)
    robot.graph.wait(lambda: robot.states[-1].mode == Mode.HOLDING)
    second = record(robot, ["z", "height"], [float(robot.home[2]), float(robot.home[2])])
    assert not second.success  # which are the same, and no deviations are known
    assert "z and height" in second.message
    third = record(robot, ["distance"], [0.9])
    assert third.success, third.message
    found = read_measurements(file, robot.kinematics.mechanism)
    there = robot.kinematics.inverse(np.array([robot.home, robot.offset(0.03, 0.02)])).actuated
    np.testing.assert_allclose(found.drives, there, atol=1e-3)
    np.testing.assert_allclose(found.position[0], robot.home[:3], atol=1e-9)
    assert found.distance[1] == pytest.approx(0.9)
