# SPDX-License-Identifier: Apache-2.0
"""Who publishes what one node alone may publish."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pkm_description.ros import polled as sources


def one(name: str, number: int) -> SimpleNamespace:
    return SimpleNamespace(node_namespace="/", node_name=name, endpoint_gid=[number] * 16)


class Seen:
    """Stands for a node that sees publishers, and a clock."""

    def __init__(self) -> None:
        self.publishers: list[SimpleNamespace] = []
        self.now = 100.0

    def resolve_topic_name(self, topic: str) -> str:
        return f"/{topic}"

    def get_publishers_info_by_topic(self, _: str) -> list[SimpleNamespace]:
        return self.publishers

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    node = Seen()
    monkeypatch.setattr(sources.time, "monotonic", node.monotonic)
    return node


def test_two_names_are_two_nodes_at_once(seen: Any) -> None:
    looked = sources.Sources(seen, "x", "commands")
    seen.publishers = [one("controller", 1), one("stranger", 2)]
    assert looked.look() == "commands come from 2 nodes: /controller, /stranger"
    assert looked.sure


def test_a_node_that_was_started_anew_counts_once_again_and_again(seen: Any) -> None:
    looked = sources.Sources(seen, "x", "commands")
    for number in range(10):  # killed every 15 s, and remembered for 20 s
        seen.publishers = [one("controller", number), one("controller", number + 1)]
        assert looked.look() == ""
        seen.now += 15.0
        assert looked.look() == ""
        assert not looked.sure


def test_a_namesake_that_stays_is_a_second_node(seen: Any) -> None:
    looked = sources.Sources(seen, "x", "commands")
    seen.publishers = [one("controller", 1)]
    looked.look()
    seen.now += 1000.0
    seen.publishers = [one("controller", 1), one("controller", 2)]
    assert looked.look() == ""
    seen.now += 29.0
    assert looked.look() == ""
    seen.now += 2.0
    assert looked.look() == "commands come from 2 nodes: /controller, /controller"
    assert looked.sure
    seen.publishers = seen.publishers[1:]
    assert looked.look() == ""
