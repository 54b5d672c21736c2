# SPDX-License-Identifier: Apache-2.0
"""A follower as those see it who ask a running loop, for tests and benches that call it themselves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pkm_control.loop.follower import TrajectoryFollower
from pkm_control.loop.mode_change import ModeChange
from pkm_control.loop.operator import plan_change
from pkm_control.loop.requests import change_on
from pkm_hardware.machine import Lifecycle


def seen(follower: TrajectoryFollower) -> Any:
    """What `recovery` needs of a running loop."""
    now = SimpleNamespace(
        mode=follower.mode,
        moving=follower.moving,
        changing=follower.change is not None,
        held=follower.known_hold,
        state=SimpleNamespace(lifecycle=Lifecycle.ACTIVE),
        action=SimpleNamespace(reason=follower.reason),
    )
    return SimpleNamespace(situation=now, check=follower.check, jog=follower.jog)


def planned_change(follower: TrajectoryFollower, label: str) -> ModeChange | None:
    """The change to a working mode; None where the robot is in it."""
    way = plan_change(seen(follower), label)
    return None if way is None else change_on(follower, way)
