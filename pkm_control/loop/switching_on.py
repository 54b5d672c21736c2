# SPDX-License-Identifier: Apache-2.0
"""From a machine that stands to a platform that is held."""

from __future__ import annotations

from pkm_control.loop.control_loop import STALE_PERIODS, ControlLoop
from pkm_control.loop.modes import Mode
from pkm_runtime.errors import PkmError
from pkm_runtime.fixed_rate import FixedRateLoop

_COMES_TO_REST = 2.0  # s, for a platform that moves when its drives are enabled, or seems to by noise


def switch_on(loop: ControlLoop) -> None:
    """Connect a machine that stands at home, enable its drives, hold the platform; PkmError: drives are off then."""
    for problem in (loop.configure(), loop.enable()):
        if problem:
            raise PkmError(problem)
    hold(loop)


def hold(loop: ControlLoop, realtime: bool = False) -> None:
    """Run periods until the platform is held; PkmError, drives off, where it is not within `_COMES_TO_REST`."""
    fixed = FixedRateLoop(loop.rate)
    fixed.restart()
    for k in range(STALE_PERIODS + round(_COMES_TO_REST * loop.rate)):
        loop.period(fixed.wait() if realtime else 1)
        if loop.follower.mode is Mode.HOLDING:
            return
        if k >= STALE_PERIODS and loop.follower.mode is not Mode.JOGGING:  # it is not being brought to rest
            break
    fault = loop.fault or "the machine does not tell where it is"
    loop.disable()
    raise PkmError(fault)
