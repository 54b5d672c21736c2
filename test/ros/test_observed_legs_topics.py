# SPDX-License-Identifier: Apache-2.0
"""Efforts from observed legs over real DDS: those of the library, and none for what cannot be used."""

from __future__ import annotations

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Vector3
from sensor_msgs.msg import JointState

from pkm_description import load_mechanism
from pkm_description.ros import topics
from pkm_dynamics import Dynamics
from pkm_dynamics.observed_legs import ObservedLegs
from pkm_dynamics.ros.dynamics_node import DynamicsNode
from pkm_interfaces.msg import ObservedLegs as Message

from .conftest import Graph


def vectors(rows: np.ndarray) -> list[Vector3]:
    return [Vector3(x=float(x), y=float(y), z=float(z)) for x, y, z in rows]


def test_efforts_from_observed_legs(graph: Graph) -> None:
    model = ObservedLegs(Dynamics(load_mechanism("delta")))
    home = model.kinematics.home
    state = model.of_pose(home + np.array([0.05, -0.1, -0.05, 0, 0, 0, 0]), [0.3, -0.2, 0.1, 0, 0, 0])
    good = Message(links=list(model.names), directions=vectors(state.directions), rates=vectors(state.rates))
    good.header.frame_id = "base_link"
    wrong_frame = Message(links=good.links, directions=good.directions, rates=good.rates)
    wrong_frame.header.frame_id = "camera"
    short = Message(links=good.links, directions=good.directions, rates=good.rates[:-1])
    heard = graph.listen(JointState, topics.OBSERVED_EFFORTS)
    said = graph.listen(DiagnosticArray, topics.DIAGNOSTICS)
    publisher = graph.client.create_publisher(Message, topics.OBSERVED_LEGS, topics.STREAM_OUT)
    graph.describe(load_mechanism("delta").urdf)
    graph.start(DynamicsNode)

    def efforts() -> bool:
        publisher.publish(good)
        return bool(heard)

    graph.wait(efforts)
    expected = model.inverse(state, np.zeros(6))  # no reference comes: for no acceleration
    np.testing.assert_allclose(heard[0].effort, expected, rtol=1e-9)
    assert list(heard[0].name) == list(model.kinematics.actuated_names)
    for bad, complaint in ((wrong_frame, "camera"), (short, "8 rates")):

        def complained(bad: Message = bad, complaint: str = complaint) -> bool:
            publisher.publish(bad)
            return any(complaint in status.message for array in said for status in array.status)

        graph.wait(complained)
    heard.clear()
    graph.wait(efforts)
