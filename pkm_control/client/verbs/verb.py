# SPDX-License-Identifier: Apache-2.0
"""What the commands share that ask a running robot: how it is found, and how errors are told."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pkm_control.client.errors import RefusedError
from pkm_control.client.task import Result
from pkm_control.command_line import options
from pkm_control.loop.scheduling import ask_for_short_slices
from pkm_control.operation.answer import Answer
from pkm_control.optional import ROS, ROS_REMEDY, need
from pkm_description.errors import PkmError
from pkm_description.progress import progress

if TYPE_CHECKING:
    from pkm_control.client.robot import Robot
    from pkm_control.client.ros.link import RosLink

NAMESPACE = "namespace of all nodes and topics"
_LOOKING = "looking for the running robot"
TIMEOUT = "how long the running robot may take to be found [s]"


def parser_of(word: str, description: str) -> argparse.ArgumentParser:
    """The parser of a command.

    Args:
        word: of the command.
        description: what it does.

    Returns:
        The parser, with the options that say which robot is meant.
    """
    p = options.parser(word, description)
    ros = p.add_argument_group("ROS")
    ros.add_argument("--namespace", default="", metavar="NAME", help=NAMESPACE)
    ros.add_argument("--timeout", type=options.positive, default=10.0, metavar="S", help=TIMEOUT)
    return p


def reported(word: str, act: Callable[[], str]) -> int:
    """Do it, and print what comes of it, or why nothing does.

    Args:
        word: of the command.
        act: asks the robot; returns what is to be printed.

    Returns:
        Exit status: 0 done, 1 not done, 130 interrupted.
    """
    try:
        text = act()
    except (PkmError, ValueError) as error:
        print(f"pkm {word}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\npkm {word}: ended", file=sys.stderr)
        return 130
    if text:
        print(text)
    return 0


def ask_robot(word: str, given: argparse.Namespace, act: Callable[[Robot], str]) -> int:
    """Ask the running robot for what takes planning.

    Args:
        word: of the command.
        given: the command line.
        act: asks; returns what is to be printed.

    Returns:
        Exit status, as `reported`.
    """

    def asked() -> str:
        hardware_file, tool_file = (getattr(given, name, "") for name in ("hardware_file", "tool_file"))
        connect = importlib.import_module("pkm_control.client.robot").Robot.connect
        conveyor_file = getattr(given, "conveyor_file", "")
        with progress(_LOOKING):
            robot = connect(
                given.namespace, given.timeout, hardware_file, tool_file=tool_file, conveyor_file=conveyor_file
            )
        with robot:
            return act(robot)

    return reported(word, asked)


def ask_link(word: str, given: argparse.Namespace, act: Callable[[RosLink], str], only: str = "") -> int:
    """Ask the nodes of the running robot for what takes no planning: that starts sooner.

    Args:
        word: of the command.
        given: the command line.
        act: asks; returns what is to be printed.
        only: the one service that is needed; empty: all.

    Returns:
        Exit status, as `reported`.
    """

    def asked() -> str:
        need(f"pkm {word}", ROS, ROS_REMEDY)
        with progress(_LOOKING):
            kind = importlib.import_module("pkm_control.client.ros.link").RosLink
            ask_for_short_slices()
            link = kind(given.namespace, given.timeout, False, only)
        try:
            return act(link)
        finally:
            link.close()

    return reported(word, asked)


def answered(answer: Answer, text: str = "") -> str:
    """What to print of an answer.

    Args:
        answer: of the controller.
        text: where it says nothing.

    Returns:
        The text.

    Raises:
        RefusedError: the answer is no, with the reason.
    """
    if not answer.success:
        raise RefusedError(answer.message or "it is refused")
    return answer.message or text


def plain(
    word: str, description: str, act: Callable[[RosLink], Answer], only: str = ""
) -> tuple[Callable[[], argparse.ArgumentParser], Callable[[Sequence[str] | None], int]]:
    """A command without arguments of its own.

    Args:
        word: of the command.
        description: what it does.
        act: asks.
        only: the one service that it asks, so that nothing else is waited for; empty: all.

    Returns:
        Its `parser` and its `main`.
    """

    def parser() -> argparse.ArgumentParser:
        return parser_of(word, description)

    def main(arguments: Sequence[str] | None = None) -> int:
        return ask_link(word, parser().parse_args(arguments), lambda link: answered(act(link)), only)

    return parser, main


def in_words(result: Result) -> str:
    """How a motion went.

    Args:
        result: of what came to its end.

    Returns:
        A line.
    """
    position, rotation = 1e3 * result.max_position_error, result.max_rotation_error
    return f"done; at most {position:.3f} mm and {rotation:.5f} rad from its reference"
