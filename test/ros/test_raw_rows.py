# SPDX-License-Identifier: Apache-2.0
"""Many serialised messages read at once are what the same messages say one by one."""

from __future__ import annotations

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from pkm_description.ros.raw_rows import RawRows, RowPublisher
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


class Sent:
    """Stands for a publisher: keeps what is published."""

    def __init__(self) -> None:
        self.messages: list[object] = []

    def publish(self, message: object) -> None:
        self.messages.append(message)


@pytest.mark.parametrize("names", [["a"], ["limb1", "limb22", "limb333"], [f"joint_{k}" for k in range(8)]])
@pytest.mark.parametrize("frame", ["", "base", "base_link"])
def test_numbers_put_into_a_message_are_the_message_with_these_numbers(names: list[str], frame: str) -> None:
    def make(stamp: Time, numbers: np.ndarray) -> JointState:
        message = JointState(name=names)
        message.position, message.velocity, message.effort = (part.tolist() for part in np.split(numbers, 3))
        message.header.stamp, message.header.frame_id = stamp, frame
        return message

    sent = Sent()
    stream = RowPublisher(sent, make, 3 * len(names), groups=3)
    assert stream.quick
    for k in range(5):
        stamp, numbers = Time(sec=1_790_000_000 + k, nanosec=999_999_999 - k), np.arange(3.0 * len(names)) / (k + 1)
        numbers[0] = np.nan if k == 2 else numbers[0]
        stream.publish(stamp, numbers[::-1])  # not contiguous
        assert sent.messages[-1] == serialize_message(make(stamp, numbers[::-1]))


def test_a_layout_that_is_not_the_expected_one_is_not_used() -> None:
    """Numbers that do not stand at the end, or in another order, are published by messages made in full."""

    def make(stamp: Time, numbers: np.ndarray) -> JointState:
        message = JointState(name=["a", "b"], position=numbers[::-1].tolist())
        message.header.stamp = stamp
        return message

    sent = Sent()
    stream = RowPublisher(sent, make, 2)
    assert not stream.quick
    stream.publish(Time(sec=1), np.array([1.0, 2.0]))
    assert sent.messages == [make(Time(sec=1), np.array([1.0, 2.0]))]


def test_one_message_after_the_other() -> None:
    stream = RawRows(JointState, values, groups=3, gap=8)
    for k in range(4):
        state = joint_state(["a", "b"], k)
        stamp, numbers = stream.row(serialize_message(state))
        assert stamp == state.header.stamp
        np.testing.assert_array_equal(numbers, values(state))
    assert stream.knows(serialize_message(joint_state(["a", "b"], 9)))
    assert not stream.knows(serialize_message(joint_state(["b", "a"], 9)))


def test_bytes_that_pad_have_any_value() -> None:
    """The middleware leaves in them what its memory had."""
    stream = RawRows(JointState, values, groups=3, gap=8)
    stream.row(bytes(serialize_message(joint_state(["a", "b"], 0))))
    states, padded = [joint_state(["a", "b"], k) for k in range(1, 4)], 0
    for k, state in enumerate(states):
        message = bytearray(serialize_message(state))
        for at in range(12, stream._at[0].start):
            other = message.copy()
            other[at] ^= 1 + k
            try:
                same = deserialize_message(bytes(other), JointState) == state
            except Exception:
                same = False
            if same:
                message, padded = other, padded + 1
        assert stream.knows(bytes(message))
        np.testing.assert_array_equal(stream.row(bytes(message))[1], values(state))
    assert padded > 3
    assert not stream.knows(bytes(serialize_message(joint_state(["b", "a"], 9))))


def test_numbers_that_are_not_finite_are_left_to_who_reads() -> None:
    def read(state: JointState) -> np.ndarray:
        if not np.isfinite(state.position).all():
            raise ValueError("no position")
        return values(state)

    stream = RawRows(JointState, read, groups=3, gap=8)
    stream.row(serialize_message(joint_state(["a", "b"], 0)))
    bad = joint_state(["a", "b"], 1)
    bad.position[1] = float("nan")
    with pytest.raises(ValueError, match="no position"):
        stream.row(serialize_message(bad))
    late = joint_state(["a", "b"], 2)
    late.effort[0] = float("nan")
    np.testing.assert_array_equal(stream.row(serialize_message(late))[1], values(late))


def test_a_stream_without_a_layout_is_soon_taken_as_it_is() -> None:
    asked: list[int] = []
    stream = RawRows(JointState, lambda state: (asked.append(1), values(state)[::-1])[1], groups=3, gap=8)
    for k in range(20):
        state = joint_state(["a", "b"], k)
        np.testing.assert_array_equal(stream.row(serialize_message(state))[1], values(state)[::-1])
    assert len(asked) < 40
