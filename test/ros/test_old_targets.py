# SPDX-License-Identifier: Apache-2.0
"""A machine on topics does not follow positions that were meant for where it was."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from pkm_bringup.nodes.hardware_node import HardwareNode
from pkm_bringup.nodes.machine_thread import CommandInbox
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


def test_a_command_that_is_passed_on_again_answers_the_state_that_it_was_made_for(graph: Graph) -> None:
    """A forward controller stamps what it repeats: by that alone, a controller that stands still would seem to run."""
    mechanism = load_mechanism("delta")
    names = list(mechanism.actuated_joints)
    graph.describe(mechanism.urdf)
    node = graph.start(HardwareNode, rate=250.0, start="manual")
    inbox = CommandInbox(node)
    given = graph.client.create_publisher(JointState, topics.FORWARDED_COMMANDS, topics.STREAM_OUT)
    passed_on = graph.client.create_publisher(JointState, topics.HARDWARE_COMMANDS, topics.STREAM_OUT)
    graph.wait(lambda: given.get_subscription_count() == passed_on.get_subscription_count() == 2)

    def command(at: int, effort: float) -> JointState:
        message = JointState(name=names, effort=[effort, 0.1, 0.2])
        message.header.stamp.sec = at
        return message

    for at in (1, 2, 3):
        given.publish(command(at, min(at, 2)))
    for effort, answered in ((1.0, 1.0), (2.0, 3.0), (1.0, 1.0), (7.0, 50.0)):

        def taken(effort: float = effort) -> bool:
            passed_on.publish(command(50, effort))
            found = inbox.newest(names)
            return found is not None and found[1][0] == effort

        graph.wait(taken)
        assert inbox.stamp == answered


def test_the_last_efforts_from_before_a_silence_are_not_followed_when_it_ends(graph: Graph) -> None:
    """ros2_control sends them once more when it is activated again: some periods of what a motion needed then."""
    mechanism = load_mechanism("delta")
    names = list(mechanism.actuated_joints)
    graph.describe(mechanism.urdf)
    node = graph.start(HardwareNode, rate=250.0, start="manual")
    inbox = CommandInbox(node)
    commands = graph.client.create_publisher(JointState, topics.HARDWARE_COMMANDS, topics.STREAM_OUT)
    graph.wait(lambda: commands.get_subscription_count() == 2)

    def taken(effort: float) -> bool:
        commands.publish(JointState(name=names, effort=[effort, 0.1, 0.2]))
        time.sleep(0.02)
        found = inbox.newest(names)
        return found is not None and found[1][0] == effort

    graph.wait(lambda: taken(30.0))
    assert taken(30.0)
    time.sleep(1.0)
    before = inbox.refused
    assert not any([taken(30.0), taken(30.0)])
    assert inbox.refused >= before + 1
    assert "silence" in inbox.problem
    graph.wait(lambda: taken(5.0), 0.2)
    assert taken(30.0)
    time.sleep(1.0)
    assert not taken(30.0)
    graph.wait(lambda: taken(30.0), 3.0)  # it is meant
    assert taken(30.0)
