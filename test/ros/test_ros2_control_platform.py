# SPDX-License-Identifier: Apache-2.0
"""Our controller behind the real controller_manager, for robots of four kinds: they are held, moved, and rest.

Needs the same as `test_ros2_control_stack.py`. Each is a cell of docs/ros2_control_stack.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import ros2_control_stack as bench

from .managed_robot import needed

pytestmark = needed

_HELD = 2e-3  # rad or m, of a drive: what it sags, if at all, from the opening of the brakes to the first efforts
_MOVED = 1e-3  # the delay of two loops, at 250 Hz; seen were 0.05 to 0.1 mm and mrad
_ENDED = 1e-4


@pytest.mark.parametrize("robot", ["delta", "gough_stewart", "cable_8", "tripod_3prs"])
def test_our_controller_holds_and_moves_a_robot(robot: str, tmp_path: Path) -> None:
    for _ in range(3):
        seen = bench.try_out(robot, "platform controller", 250.0, tmp_path)
        if not seen.says_nothing:  # else others had the computer
            break
    assert not seen.why_not
    assert seen.held < _HELD
    assert seen.moved < _MOVED
    assert seen.ended < _ENDED
