# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between a script and its robot. Nothing heavy is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pkm_runtime.errors import PkmError

if TYPE_CHECKING:
    from pkm_client.backend import Result


class NoRobotError(PkmError):
    """Nobody answers: no robot runs there, or it has fallen silent."""


class RefusedError(PkmError):
    """The robot does not do what was asked; the message says why, and nothing has moved."""


class MotionEndedError(PkmError):
    """A motion that began and did not come to its end; `result` says how it ended."""

    def __init__(self, result: Result) -> None:
        self.result = result
        super().__init__(f"{result.outcome.name}: {result.reason}" if result.reason else result.outcome.name)
