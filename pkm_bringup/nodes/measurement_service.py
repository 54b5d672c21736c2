# SPDX-License-Identifier: Apache-2.0
"""The service `record_measurement`: a row of measurements for a calibration, from the robot as it stands."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rclpy.node import Node
from rclpy.task import Future

from pkm_calibration.robots.measured_rows import append_measurement
from pkm_control.control_errors import GoalError
from pkm_control.loop.running_loop import Controls, RunningLoop
from pkm_control.operator_interface import Answer
from pkm_description.mechanism import Array
from pkm_description.ros import topics
from pkm_interfaces.srv import RecordMeasurement
from pkm_runtime.errors import PkmError

_DURATION, _LOOK = 0.25, 0.005  # s: of the mean over readings, and between two of them
_FEWEST = 5  # readings
_STILL = 1e-3  # rad or m: drives whose readings spread more are moved by something


class MeasurementService:
    """Serves it with a file; `beside` runs what takes a quarter of a second in a thread of its own."""

    def __init__(
        self, node: Node, controls: Controls, file: Path, beside: Callable[[Callable[[], Answer]], Future]
    ) -> None:
        self._controls, self._file, self._beside = controls, file, beside
        self._turn = threading.Lock()  # of the file
        node.create_service(RecordMeasurement, topics.RECORD_MEASUREMENT, self._asked)

    async def _asked(
        self, request: RecordMeasurement.Request, response: RecordMeasurement.Response
    ) -> RecordMeasurement.Response:
        answer = await self._beside(lambda: self._record(request, response))
        response.success, response.message = answer.success, answer.message
        return response

    def _record(self, request: RecordMeasurement.Request, response: RecordMeasurement.Response) -> Answer:
        response.file = str(self._file.absolute())
        try:
            loop = self._controls.ready()
            mechanism, readings = loop.kinematics.mechanism, readings_at_rest(loop)
            with self._turn:
                response.rows = append_measurement(self._file, mechanism, readings, request.names, request.values)
        except (PkmError, OSError) as error:
            return Answer(False, str(error))
        return Answer(True)


def readings_at_rest(loop: RunningLoop) -> Array:
    """Mean (n_actuated,) of the drives' readings over a short time; `GoalError` where the robot moves meanwhile."""
    read: dict[float, Array] = {}
    until = time.monotonic() + _DURATION
    while time.monotonic() < until:
        now = loop.situation
        if now.moving or now.changing:
            raise GoalError("the robot moves: record a measurement when it is at rest")
        if now.readable:
            read[now.state.time] = np.array(now.state.positions)
        time.sleep(_LOOK)
    if len(read) < _FEWEST:
        raise GoalError("no readings of the drives arrive")
    rows = np.array(list(read.values()))
    spread = np.ptp(rows, axis=0)
    if spread.max() > _STILL:
        name = loop.kinematics.actuated_names[int(np.argmax(spread))]
        raise GoalError(f"the robot is not at rest: readings of {name} spread by {spread.max():.3g} rad or m")
    return np.asarray(rows.mean(axis=0))
