# SPDX-License-Identifier: Apache-2.0
"""A motion that was sent to the controller's action server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rclpy.action import ActionClient

from pkm_client.motion_task import Result
from pkm_control.loop.modes import Outcome
from pkm_control.ros.motion_messages import seconds

_LOOK = 0.2  # s, between two looks whether the controller is still there


class RosGoal:
    """Sends a goal, and keeps the feedback and the result.

    Args:
        in_executor: calls a function in the spinning thread: an action client notes a request after sending it, so
            that another thread may miss the answer.
        goal: the message.
        duration: of the motion, repetitions included [s].
        silence: says why nobody answers any more; empty while somebody does.
    """

    def __init__(
        self,
        client: ActionClient,
        in_executor: Callable[[Callable[[], Any]], Any],
        goal: Any,
        duration: float,
        silence: Callable[[], str],
    ) -> None:
        self._in_executor = in_executor
        self._duration = duration
        self._silence = silence
        self._share = 0.0
        self._begun = threading.Event()
        self._over = threading.Event()
        self._result = Result()
        self._handle: Any = None
        self._cancelled = False
        in_executor(lambda: client.send_goal_async(goal, feedback_callback=self._heard).add_done_callback(self._sent))

    @property
    def share(self) -> float:
        """How much of the motion is done, 0 to 1."""
        return self._share

    def wait_begun(self) -> bool:
        """Wait until it is admitted or refused; True: admitted."""
        while not (self._begun.wait(_LOOK) or self._over.is_set()):
            self._look()
        return not (self._over.is_set() and self._result.outcome is Outcome.INVALID_GOAL)

    def wait(self) -> Result:
        """Wait for its end."""
        while not self._over.wait(_LOOK):
            self._look()
        return self._result

    def cancel(self) -> None:
        """End it on its path, or keep it from beginning."""
        self._cancelled = True
        if self._handle is not None and not self._over.is_set():
            self._in_executor(self._handle.cancel_goal_async)

    def _look(self) -> None:
        """End the goal where nobody answers any more."""
        why = self._silence()
        if why and not self._over.is_set():
            self._end(Result(Outcome.STATE_LOST, why))

    def _heard(self, message: Any) -> None:
        if self._duration > 0.0:
            self._share = seconds(message.feedback.reference.time_from_start) / self._duration
        self._begun.set()

    def _sent(self, future: Any) -> None:
        self._handle = future.result()
        if not self._handle.accepted:
            self._end(Result(Outcome.INVALID_GOAL, "the controller did not take the goal"))
            return
        self._handle.get_result_async().add_done_callback(self._done)
        if self._cancelled:
            self._handle.cancel_goal_async()

    def _done(self, future: Any) -> None:
        result = future.result().result
        self._end(
            Result(
                Outcome(result.error_code),
                result.error_string,
                result.rms_position_error,
                result.max_position_error,
                result.rms_rotation_error,
                result.max_rotation_error,
            )
        )

    def _end(self, result: Result) -> None:
        self._result = result
        self._over.set()
        self._begun.set()
