# SPDX-License-Identifier: Apache-2.0
"""What an operator asks of the controller, and the answers: the same over ROS and in one process."""

from __future__ import annotations

import time
from collections.abc import Callable

from pkm_control.loop.follower import TrajectoryFollower
from pkm_control.loop.modes import Mode
from pkm_control.loop.recovery import continue_change, go_back, in_words, plan_change, way_back
from pkm_control.motion.trajectory import Array
from pkm_control.operation.answer import Answer
from pkm_control.operation.controls import Controls
from pkm_description.errors import PkmError
from pkm_description.introduction import fixed

_PATIENCE = 0.5  # s, for the next reading
_LOOK = 0.005  # s


class Operator:
    """Asks the follower, under its lock; what it cannot do is an answer, not an error.

    Args:
        controls: the follower.
    """

    def __init__(self, controls: Controls) -> None:
        self._controls = controls

    def pause(self) -> Answer:
        """Halt on the path."""
        return self._ask(TrajectoryFollower.pause)

    def resume(self) -> Answer:
        """Go on with what was halted."""
        return self._ask(TrajectoryFollower.resume)

    def stop(self) -> Answer:
        """End whatever moves by a deceleration on its way; a platform at rest is stopped already."""

        def stopped(follower: TrajectoryFollower) -> str:
            follower.stop("the operator stopped it")
            return ""

        return self._ask(stopped)

    def set_speed(self, fraction: float) -> Answer:
        """Run motions at a fraction (0 to 1) of their planned speed."""
        return self._ask(lambda follower: follower.set_override(fraction))

    def steer(self, twist: Array, now: float) -> Answer:
        """Jog at a twist (6,) [m/s, rad/s], base axes, for a short time from `now` on [s, clock of the follower]."""
        return self._ask(lambda follower: follower.steer(twist, now))

    def jog_to(self, pose: Array) -> Answer:
        """Move to the pose nearest to one (7,), base frame, that the platform can take."""
        try:
            follower = self._controls.ready()
            there = follower.jog.nearest(pose, follower.hold)
        except PkmError as error:
            return Answer(False, str(error))
        return self._ask(lambda follower: follower.jog_to(there))

    def recover(self) -> Answer:
        """Find a lost platform again, or bring one that is outside back inside."""
        try:
            follower = self._controls.ready()
            found = self._found_again(follower) if follower.mode is Mode.STOPPED else ""
            there = way_back(follower)
        except PkmError as error:
            return Answer(False, str(error))
        if there is None:
            return Answer(True, found or "nothing is wrong: the platform stands well")
        with self._controls.lock:
            problem = go_back(follower, there)
        if problem:
            return Answer(False, problem)
        return Answer(True, f"{found + '; ' if found else ''}the platform moves back inside at low speed")

    def change_working_mode(self, label: str) -> Answer:
        """Begin to change the working mode to that of a label, or go on with a change that was halted."""
        try:
            follower = self._controls.ready()
            if follower.change is not None:
                with self._controls.lock:
                    problem = continue_change(follower, label)
                return Answer(not problem, problem)
            change = plan_change(follower, label)
        except PkmError as error:
            return Answer(False, str(error))
        if change is None:
            return Answer(True, f"the robot is in working mode {label}")
        with self._controls.lock:
            problem = follower.begin_change(change)
        return Answer(not problem, problem or in_words(change))

    def _ask(self, act: Callable[[TrajectoryFollower], str]) -> Answer:
        """Ask for what is done between two periods; `act` says why not, and nothing where it is done."""
        try:
            follower = self._controls.ready()
            with self._controls.lock:
                problem = act(follower)
        except PkmError as error:
            problem = str(error)
        return Answer(not problem, problem)

    def _found_again(self, follower: TrajectoryFollower) -> str:
        """Look for the platform from home; return what came of it."""
        with self._controls.lock:
            follower.relocate()
        until = time.monotonic() + _PATIENCE
        while follower.mode is Mode.STOPPED and time.monotonic() < until:
            time.sleep(_LOOK)
        if follower.mode is Mode.STOPPED:
            action = self._controls.action
            why = action.reason if action else "no reading comes"
            raise PkmError(f"still stopped: {why}; bring it home by hand, or reset the machine there, and start anew")
        place = ", ".join(fixed(value, 4) for value in follower.hold[:3])
        return f"the platform is held at ({place}) m, where readings continue home"
