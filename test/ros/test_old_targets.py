# SPDX-License-Identifier: Apache-2.0
"""A machine on topics does not follow positions that were meant for where it was."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from pkm_bringup.nodes.hardware_node import HardwareNode
from pkm_description import load_mechanism
from pkm_description.ros import messages, topics
from pkm_dynamics.motion_limits import ActuatorLimits

from .conftest import Graph


def test_an_old_target_is_refused_each_time_that_drives_go_on(graph: Graph) -> None:
    """Two per mille of a range from where it stands and further; smaller steps are taken, and then any."""
    mechanism = load_mechanism("delta")
    limits = ActuatorLimits.of(mechanism)
    names, span = list(limits.names), limits.upper - limits.lower
    readings: list[JointState] = graph.listen(JointState, topics.HARDWARE_STATES)
    graph.describe(mechanism.urdf)
    node = graph.start(HardwareNode, rate=250.0, start="manual")
    commands = graph.client.create_publisher(JointState, topics.HARDWARE_COMMANDS, topics.STREAM_OUT)
    graph.wait(commands.get_subscription_count)
    graph.wait(lambda: node._alone.machine is not None)

    def here() -> np.ndarray:
        return messages.joint_values(readings[-1], names, what="state")

    def near(place: np.ndarray) -> bool:
        return bool(np.abs(here() - place).max() < 5e-4 * span.min())

    def told(target: np.ndarray, until: Callable[[], bool]) -> None:
        def again() -> bool:
            commands.publish(JointState(name=names, position=target))
            return until()

        graph.wait(again, 20.0)

    def refused(target: np.ndarray) -> bool:
        before, stood = node._alone.inbox.refused, here()
        told(target, lambda: node._alone.inbox.refused > before)
        return "begin there" in node._alone.inbox.problem and near(stood)

    for way in (1.0, 0.5):
        assert graph.call(Trigger, topics.ENABLE, Trigger.Request()).success
        graph.wait(lambda: readings)
        home = here()
        assert refused(home + 0.003 * span)
        told(home + 0.001 * span, lambda home=home: near(home + 0.001 * span))
        target = home + way * 0.004 * span
        told(target, lambda target=target: near(target))
        assert graph.call(Trigger, topics.DISABLE, Trigger.Request()).success
