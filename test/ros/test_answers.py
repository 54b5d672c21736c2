# SPDX-License-Identifier: Apache-2.0
"""What services answer where something is wrong, and what they take for a payload."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from geometry_msgs.msg import Inertia, Vector3

from pkm_description.ros import messages
from pkm_description.ros.messages import RequestError
from pkm_dynamics.ros.dynamics_services import payload_of
from pkm_runtime.errors import PkmError


class _Node:
    """Keeps what is logged."""

    def __init__(self):
        self.lines = []

    def get_logger(self):
        return SimpleNamespace(error=self.lines.append)


def _answer(node, error):
    def solve():
        raise error

    return messages.answered(node, SimpleNamespace(status=None), solve).status


def test_what_is_wrong_is_said():
    node = _Node()
    refused = _answer(node, PkmError("pose: of another shape"))
    assert (refused.code, refused.reason) == (refused.INVALID_INPUT, "pose: of another shape")
    assert not node.lines
    failed = _answer(node, ZeroDivisionError("division by zero"))
    assert failed.code == messages.INTERNAL_ERROR
    assert "ZeroDivisionError" in failed.reason
    assert "Traceback" in node.lines[0]


def test_the_number_is_that_of_the_message():
    text = (Path(__file__).parents[2] / "pkm_interfaces/msg/SolveStatus.msg").read_text()
    numbers = dict(re.findall(r"^uint8 (\w+)=(\d+)", text, re.MULTILINE))
    assert int(numbers["INTERNAL_ERROR"]) == messages.INTERNAL_ERROR
    assert len(set(numbers.values())) == len(numbers)


def test_thin_rods_are_payloads_whichever_way_they_point():
    """Their inertia about the axis is rounding, which may be negative."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        axis, mass, length = rng.normal(size=3), 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-3, 1)
        axis /= np.linalg.norm(axis)
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = mass * length**2 / 12.0 * (np.eye(3) - np.outer(axis, axis))
        found = payload_of(Inertia(m=mass, com=Vector3(z=0.1), ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz))
        np.testing.assert_array_equal(found.inertia, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Inertia(m=1.0, ixx=1e308, iyy=1e308, izz=1e308), "payload: 1e\\+308 is too large"),
        (Inertia(m=-1.0), "payload: negative mass"),
        (Inertia(m=float("nan")), "payload.mass: not finite"),
        (Inertia(m=1.0, ixx=1.0, iyy=1.0, izz=3.0), "payload: principal moments .* triangle inequality"),
        (Inertia(ixx=1.0, iyy=1.0, izz=1.0), "payload: inertia without mass"),
    ],
)
def test_no_body_is_a_payload(message, words):
    with pytest.raises(RequestError, match=words):
        payload_of(message)
