# SPDX-License-Identifier: Apache-2.0
"""An operator's requests to the controller, and the answers: the same over ROS and in one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pkm_control.loop import requests
from pkm_control.loop.follower import HALTED
from pkm_control.loop.mode_transition import ModeTransition, ModeTransitions
from pkm_control.loop.running_loop import Controls, RunningLoop
from pkm_control.motion.trajectory import Array
from pkm_control.operator_interface import STOPPED_SINCE, TOOK_OVER, Answer, Mode, OperatorRequests
from pkm_hardware.machine import Lifecycle
from pkm_runtime.describable import fixed
from pkm_runtime.errors import PkmError

_PATIENCE = 0.5  # s, for the next reading
_LOOK = 0.005  # s
_NAMED = 6  # assembly modes
_DONE = {"pause": "the motion halts on its path; resume goes on with it", "resume": "it goes on"}
_STOPPED = {  # what a stop does, by what there was to stop
    Mode.TRACKING: "the motion ends on its path, and the platform is held there",
    Mode.JOGGING: "the jog ends, and the platform is held",
    Mode.PAUSED: "the paused motion has ended; the platform is held",
    Mode.HOLDING: "nothing moved; the platform is held",
}
_HOMED = "homing is interrupted: the drives are off"
_HALTS = "the change of the working mode halts on its way; ask for either mode to go on or back"


class RecoveryError(PkmError):
    """Nothing can be done; the message says why, and what would help."""


class Operator(OperatorRequests):
    """Asks the loop; a refusal is an answer, not an error. `stop` calls `withdraw`, with why, for motions that wait."""

    def __init__(self, controls: Controls, withdraw: Callable[[str], None] = lambda _: None) -> None:
        self._controls = controls
        self._withdraw = withdraw

    def request(self, word: str) -> Answer:
        """Ask for what the function of `requests` of this name does."""
        if word in ("stop", "take_over", "emergency_stop"):
            self._withdraw(TOOK_OVER if word == "take_over" else STOPPED_SINCE)
        words = self._stopped() if word == "stop" else _DONE.get(word, "")
        answer = self._ask(getattr(requests, word))
        return Answer(True, words) if answer.success else answer

    def _stopped(self) -> str:
        try:
            now = self._controls.ready().situation
        except PkmError:
            return ""
        if now.state.lifecycle is Lifecycle.ACTIVE and not now.readable:
            return _HOMED
        return _HALTS if now.changing else _STOPPED.get(now.mode, "nothing moves: the drives are not commanded")

    def set_speed(self, fraction: float) -> Answer:
        """Run motions at a fraction (0 to 1) of their planned speed."""
        return self._ask(requests.set_override, fraction)

    def steer(self, twist: Array) -> Answer:
        """Jog at a twist (6,) [m/s, rad/s], base axes, for a short time from now on."""
        return self._answered(lambda loop: (loop.ask(requests.steer, twist), ""))

    def jog_to(self, pose: Array) -> Answer:
        """Move to the possible pose nearest to one (7,), base frame."""
        return self._answered(lambda loop: (loop.ask(requests.jog_to, loop.jog.nearest(pose, loop.situation.held)), ""))

    def recover(self) -> Answer:
        """Find a lost platform again where it was last followed, or bring one that is outside back inside."""

        def recovered(loop: RunningLoop) -> tuple[str, str]:
            now = loop.situation
            off = now.mode is Mode.WAITING and now.state.lifecycle is Lifecycle.INACTIVE
            failed = now.state.lifecycle is Lifecycle.FAULT  # no reading is looked at before a reset
            lost = not failed and (now.mode is Mode.STOPPED or (off and loop.ask(requests.pose_unknown)))
            found = self._found_again(loop) if lost else ""
            if blocked := self._controls.commands_blocked:  # until there are commands again
                return "" if found else blocked, f"{found}; {blocked}"
            there = recovery_pose(loop)
            if there is None:
                return "", found or "nothing is wrong: the platform stands well"
            moves = f"{found + '; ' if found else ''}the platform moves back inside at low speed"
            return loop.ask(requests.go_back, there), moves

        return self._answered(recovered, self._controls.ready)

    def change_working_mode(self, label: str) -> Answer:
        """Begin the change to the working mode of this label, or continue a halted change."""

        def changed(loop: RunningLoop) -> tuple[str, str]:
            if loop.situation.changing:
                return loop.ask(requests.continue_change, label), ""
            stops = loop.ask(requests.stops)
            way = plan_change(loop, label)
            if way is None:
                return "", f"the robot is in working mode {label}"
            return loop.ask(requests.begin_change, way, stops), in_words(way)

        return self._answered(changed)

    def _answered(
        self, act: Callable[[RunningLoop], tuple[str, str]], ready: Callable[[], RunningLoop] | None = None
    ) -> Answer:
        """The answer to what moves the robot: `act` returns why it is not done, or nothing, and words if it is."""
        try:
            problem, words = act((ready or self._controls.ready_to_move)())
        except PkmError as error:
            problem, words = str(error), ""
        return Answer(not problem, problem or words)

    def _ask(self, request: Callable[..., str], *arguments: Any) -> Answer:
        try:
            problem = self._controls.ready().ask(request, *arguments)
        except PkmError as error:
            problem = str(error)
        return Answer(not problem, problem)

    def _found_again(self, loop: RunningLoop) -> str:
        unknown = loop.ask(requests.pose_unknown)
        only = self._only_mode(loop, unknown) if unknown else ""
        before = loop.ask(requests.relocate)
        until = time.monotonic() + _PATIENCE
        while loop.situation.mode is Mode.STOPPED and time.monotonic() < until:
            time.sleep(_LOOK)
        now = loop.situation
        if now.mode is Mode.STOPPED:
            why = now.action.reason or "no reading comes"
            raise PkmError(f"still stopped: {why}; bring it home by hand, or reset the machine there, and start again")
        place = ", ".join(fixed(value, 4) for value in now.held[:3])
        return f"the platform is held at ({place}) m, where readings continue {only or before}"

    @staticmethod
    def _only_mode(loop: RunningLoop, unknown: str) -> str:
        """Tell the loop the one assembly mode that fits the readings; return its name. PkmError: there may be more."""
        modes = loop.kinematics.forward_all(loop.situation.state.positions)
        if modes.certified and len(modes) == 1:
            loop.ask(requests.place, modes[0].pose, modes[0].joints)
            return f"{modes[0].label}, the one assembly mode that fits them"
        names = ", ".join([mode.label for mode in modes[:_NAMED]] + ["..."] * (len(modes) > _NAMED))
        fit = f"{len(modes)} assembly modes{'' if modes.certified else ' or more'} fit its readings ({names})"
        remedy = "bring it home by hand, reset the machine there, and start again"
        raise PkmError(f"nothing is moved, because the platform's pose is unknown: {unknown}; {fit}; {remedy}")


def recovery_pose(running: RunningLoop) -> Array | None:
    """The nearest good pose (7,) on the way home; None where the platform is within limits. RecoveryError: no way."""
    now = running.situation
    if now.mode in (Mode.WAITING, Mode.STOPPED):
        if now.state.lifecycle is Lifecycle.INACTIVE:
            raise RecoveryError("the drives are off: enable them (pkm enable), and the platform is held where it is")
        if now.state.lifecycle is Lifecycle.FAULT:
            why = now.state.fault or now.action.reason
            raise RecoveryError(f"the drives are off ({why}): reset the machine (pkm reset), then enable them")
        why = f": {now.action.reason}" if now.action.reason else ""
        raise RecoveryError(f"there is no usable reading, so nothing can move{why}")
    if now.moving:
        raise RecoveryError("the platform moves; stop it first")
    if now.changing:
        raise RecoveryError(HALTED)
    pose = now.held
    if not running.check.deficits(pose[None]).any():
        return None
    there = running.jog.way_in(pose)
    if there is None:
        raise RecoveryError(
            "no path home from here keeps the limits; the platform is held where it is, move it by hand"
        )
    return there


def plan_change(running: RunningLoop, label: str) -> ModeTransition | None:
    """Plan a change to another working mode at the held pose, which takes up to some seconds; None: already there.
    `label` is that of `Kinematics.mode_label`. RecoveryError: no such mode, or not held; PkmError: the reason why not.
    """
    check, now = running.check, running.situation
    k = check.kinematics
    labels = [k.mode_label(mode) for mode in range(k.n_modes)]
    if label not in labels:
        known = f"; there are {', '.join(labels)}" if len(labels) > 1 else ": the robot has only one"
        raise RecoveryError(f"there is no working mode '{label}'{known}")
    mode = labels.index(label)
    if mode == check.mode:
        return None
    if now.mode is not Mode.HOLDING:
        raise RecoveryError(f"the controller is {now.mode.name.lower()}; it must hold the platform")
    return ModeTransitions(check).find(np.array(now.held), mode)


def in_words(way: ModeTransition) -> str:
    """How long a change takes, and how far the platform leaves its place, for a person."""
    return (
        f"on the way, {way.duration:.1f} s; meanwhile the platform leaves its place by up to "
        f"{1e3 * way.farthest:.1f} mm and {np.degrees(way.turned):.1f} degrees"
    )
