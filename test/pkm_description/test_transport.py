# SPDX-License-Identifier: Apache-2.0
"""Which variables keep nodes out of shared memory, and where the environment has the say."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from pkm_description.ros.transport import PROFILES, RANGE, transport_environment


@pytest.mark.parametrize(
    ("environment", "default", "expected", "profile"),
    [
        ({}, "LOCALHOST", "SYSTEM_DEFAULT", "this_computer"),
        ({}, "SUBNET", "SUBNET", "network"),
        ({RANGE: "LOCALHOST"}, "SUBNET", "SYSTEM_DEFAULT", "this_computer"),
        ({RANGE: "SUBNET", "RMW_IMPLEMENTATION": "rmw_fastrtps_cpp"}, "LOCALHOST", "SUBNET", "network"),
        ({RANGE: "OFF"}, "LOCALHOST", "OFF", None),
        ({"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}, "LOCALHOST", "LOCALHOST", None),
        ({PROFILES[0]: "mine.xml"}, "LOCALHOST", "LOCALHOST", None),
        ({"ROS_STATIC_PEERS": "robot"}, "LOCALHOST", "LOCALHOST", None),
        ({"FASTDDS_BUILTIN_TRANSPORTS": "LARGE_DATA"}, "SUBNET", "SUBNET", None),
    ],
)
def test_the_environment_decides(environment: dict[str, str], default: str, expected: str, profile: str | None) -> None:
    added = transport_environment(environment, default)
    assert added.pop(RANGE) == expected
    assert set(added) == (set(PROFILES) if profile else set())
    for file in map(Path, added.values()):
        tags = ElementTree.parse(file).iter("{http://www.eprosima.com}participant")
        assert [tag.get("profile_name") for tag in tags] == [profile]


def test_a_run_within_a_launch_keeps_what_the_launch_decided() -> None:
    environment = transport_environment({}, "SUBNET")
    assert transport_environment(environment) == {RANGE: "SUBNET"}
