# SPDX-License-Identifier: Apache-2.0
"""A motion that cannot be run ends the player with an error that is not laid at the robot's door."""

from __future__ import annotations

from pathlib import Path

import pytest
from rcl_interfaces.msg import Log

from pkm_control.nodes.motion_player_node import MotionPlayer
from pkm_description import load_mechanism

from .conftest import Graph

MOTIONS = {
    "a hole": ("x [m], y [m], z [m]\n0, 0, -0.85\n0, , -0.85\n", "line 3, column 'y': is empty"),
    "time backwards": (
        "x [m], y [m], z [m], time [s]\n0, 0, -0.85, 0\n0, 0.05, -0.85, 0.5\n0, 0, -0.85, 0.4\n",
        "does not come after",
    ),
    "not a number": ("x [m], y [m], z [m]\n0, 0, nan\n0, 0, -0.85\n", "is nan"),
    "unknown column": ("x [m], y [m], z [m], wobble [m]\n0, 0, -0.85, 1\n", "unknown column"),
    "out of reach": ("x [m], y [m], z [m]\n0, 0, -0.85\n0, 0, -2.85\n", "the platform cannot be at"),
}


@pytest.mark.parametrize("case", MOTIONS)
def test_a_motion_that_cannot_be_run_is_told(graph: Graph, tmp_path: Path, case: str) -> None:
    text, reason = MOTIONS[case]
    path = tmp_path / "motion.csv"
    path.write_text(text)
    told = graph.listen(Log, "/rosout")
    graph.describe(load_mechanism("delta").urdf)
    player = graph.start(MotionPlayer, motion=str(path))
    graph.wait(lambda: player.exit_code is not None)
    assert player.exit_code == 1
    graph.wait(lambda: any("the motion cannot be run" in log.msg and reason in log.msg for log in told))
    assert not any("the robot description cannot be used" in log.msg for log in told)
