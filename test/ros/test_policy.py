# SPDX-License-Identifier: Apache-2.0
"""The policy that comes along for SROS 2 is that of the nodes as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pkm_bringup import bringup
from pkm_bringup.runner import ros_arguments

FOLDER = Path(__file__).parents[2] / "config" / "sros2"


@pytest.mark.slow
def test_the_policy_is_that_of_the_nodes() -> None:
    """In a process of its own, which looks at a robot in a domain of its own."""
    script = (
        f"import sys; sys.path.insert(0, {str(FOLDER)!r}); import make_policy; "
        "expected = make_policy.FILE.read_text('utf-8'); text = make_policy.made(expected); "
        "sys.exit(0 if text == expected else text)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=420, check=False)
    assert done.returncode == 0, f"config/sros2/make_policy.py makes another policy:\n{done.stderr}"


def test_only_the_controller_commands_the_machine() -> None:
    root = ElementTree.parse(FOLDER / "policy.xml").getroot()

    def those_that(use: str, topic: str) -> list[str]:
        found = root.iterfind(f".//profile/topics[@{use}='ALLOW']/..")
        return [
            profile.get("node", "")
            for profile in found
            for group in profile.iterfind(f"topics[@{use}='ALLOW']")
            if topic in [one.text for one in group]
        ]

    assert set(those_that("publish", "hardware/joint_commands")) == {"controller"}
    assert set(those_that("subscribe", "hardware/joint_commands")) == {"client", "hardware"}
    assert those_that("publish", "robot_description") == ["description"]


def test_a_client_may_take_the_drives_out_of_power_and_jog() -> None:
    root = ElementTree.parse(FOLDER / "policy.xml").getroot()
    client = root.find(".//profile[@node='client']")
    assert client is not None

    def may(use: str) -> set[str | None]:
        return {one.text for group in client for one in group if group.get(use) == "ALLOW"}

    power = {f"hardware/{name}" for name in ("enable", "disable", "emergency_stop", "reset")}
    assert power <= may("request")
    assert {"emergency_stop", "jog_twist", "jog_pose", "platform_trajectory"} <= may("publish")
    assert not {"hardware/joint_commands", "hardware/joint_states", "robot_description"} & may("publish")


def test_machine_and_controller_have_the_enclave_of_their_process() -> None:
    root = ElementTree.parse(FOLDER / "policy.xml").getroot()
    nodes = {
        one.get("path", "").rpartition("/")[2]: [profile.get("node") for profile in one.iter("profile")]
        for one in root.iter("enclave")
    }
    assert nodes.pop("control") == ["controller", "hardware"]
    assert all(held == [process] for process, held in nodes.items())


def test_nodes_take_their_enclaves_where_security_is_on(monkeypatch: pytest.MonkeyPatch) -> None:
    root = ElementTree.parse(FOLDER / "policy.xml").getroot()
    enclaves = {one.get("path") for one in root.iter("enclave")}
    values = bringup.defaults()
    monkeypatch.delenv("ROS_SECURITY_ENABLE", raising=False)
    assert "--enclave" not in ros_arguments(bringup.NODES[0], values)
    monkeypatch.setenv("ROS_SECURITY_ENABLE", "true")
    for spec in (*bringup.NODES, bringup.DESCRIPTION):
        arguments = ros_arguments(spec, values)
        assert arguments[arguments.index("--enclave") + 1] in enclaves
