# SPDX-License-Identifier: Apache-2.0
"""Many serialised messages read at once are what the same messages say one by one."""

from __future__ import annotations

import numpy as np
import pytest
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from pkm_description.ros.raw_rows import RawRows
from pkm_interfaces.msg import PlatformReference


def values(state: JointState) -> np.ndarray:
    return np.array([*state.position, *state.velocity, *state.effort])


def joint_state(names: list[str], k: int) -> JointState:
    n = len(names)
    state = JointState(name=names)
    state.position, state.velocity, state.effort = ((np.arange(n) + 0.1 * k + 10.0 * j).tolist() for j in range(3))
    state.header.stamp.sec, state.header.stamp.nanosec = 1_790_000_000 + k, 999_999_999 - k
    return state


@pytest.mark.parametrize("names", [["a"], ["limb1", "limb22", "limb333"], [f"joint_{k}" for k in range(8)]])
@pytest.mark.parametrize("frame", ["", "base", "base_link"])
def test_joint_states(names: list[str], frame: str) -> None:
    states = [joint_state(names, k) for k in range(50)]
    for state in states:
        state.header.frame_id = frame
    stream = RawRows(JointState, values, groups=3, gap=8)
    stamps, rows = stream.rows([serialize_message(state) for state in states])
    assert stream._at, "the layout was not found: each message was read in full"
    np.testing.assert_array_equal(rows, [values(state) for state in states])
    assert stamps.tolist() == [(1_790_000_000 + k) * 10**9 + 999_999_999 - k for k in range(50)]


def test_messages_that_look_different_are_read_in_full() -> None:
    stream = RawRows(JointState, values, groups=3, gap=8)
    stream.rows([serialize_message(joint_state(["a", "b"], 0))])
    other = [joint_state(["b", "a"], 1), joint_state(["a", "c"], 2)]
    for state in other:
        state.position[0] = 77.0
    seen: list[str] = []
    stream._read = lambda state: (seen.append("".join(state.name)), values(state))[1]
    _, rows = stream.rows([serialize_message(state) for state in other])
    assert seen == ["ba", "ac"]
    np.testing.assert_array_equal(rows, [values(state) for state in other])


def test_a_reader_that_reorders_is_never_short_cut() -> None:
    """What is wanted in another order than it stands in the message has no layout to believe in."""
    stream = RawRows(JointState, lambda state: values(state)[::-1], groups=3, gap=8)
    states = [joint_state(["a", "b"], k) for k in range(3)]
    _, rows = stream.rows([serialize_message(state) for state in states])
    np.testing.assert_array_equal(rows, [values(state)[::-1] for state in states])


def test_references() -> None:
    def pose(reference: PlatformReference) -> np.ndarray:
        p, q, v, a = reference.pose.position, reference.pose.orientation, reference.twist, reference.acceleration
        parts = (p.x, p.y, p.z, q.x, q.y, q.z, q.w), *((w.x, w.y, w.z) for w in (v.linear, v.angular))
        return np.array([x for part in (*parts, *((w.x, w.y, w.z) for w in (a.linear, a.angular))) for x in part])

    references = []
    for k in range(20):
        reference = PlatformReference()
        reference.header.frame_id = "base"
        reference.header.stamp.sec = k
        reference.pose.position.x, reference.pose.orientation.z, reference.twist.angular.y = 0.1 * k, 0.6, -k / 3
        reference.acceleration.linear.z = float("nan") if k == 7 else 1.0 / (1 + k)
        references.append(reference)
    stream = RawRows(PlatformReference, pose)
    stamps, rows = stream.rows([serialize_message(one) for one in references])
    assert stream._at
    np.testing.assert_array_equal(rows, [pose(one) for one in references])
    assert stamps.tolist() == [k * 10**9 for k in range(20)]
    assert stream.rows([])[0].size == 0
