# SPDX-License-Identifier: Apache-2.0
"""Which variables keep nodes out of shared memory, and where the environment has the say."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from pkm_description.ros.transport import PROFILES, RANGE, log_environment, transport_environment


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


def test_logs_have_a_folder_where_there_is_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No node started: ROS could not make one."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "file").write_text("")
    for environment in ({}, {"HOME": ""}, {"HOME": str(tmp_path / "file")}):
        folder = Path(log_environment(environment)["ROS_LOG_DIR"])
        assert folder.parent.parent == tmp_path
        assert folder.parent.stat().st_mode & 0o777 == 0o700
    for environment in ({"HOME": str(tmp_path)}, {"ROS_LOG_DIR": "mine"}, {"ROS_HOME": "mine"}):
        assert log_environment(environment) == {}
