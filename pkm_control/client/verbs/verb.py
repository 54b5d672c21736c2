# SPDX-License-Identifier: Apache-2.0
"""What the commands for a running robot share: how it is found, and how errors are printed."""

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
    """The parser of the command `pkm word`, with the options that select the robot."""
    p = options.parser(word, description)
    ros = p.add_argument_group("ROS")
    ros.add_argument("--namespace", default="", metavar="NAME", help=NAMESPACE)
    ros.add_argument("--timeout", type=options.positive, default=10.0, metavar="S", help=TIMEOUT)
    return p


def reported(word: str, act: Callable[[], str]) -> int:
    """Print what `act` returns, or why it failed; exit status 0 done, 1 not done, 130 interrupted."""
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
    """Run `act` with a `Robot`, for commands that plan, and print what it returns; exit status as `reported`."""

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
    """Run `act` with a link alone, for commands without planning, which starts sooner; `only` as in `RosLink`."""

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
    """The answer's message, or `text` where it has none; raises `RefusedError` where the answer is no."""
    if not answer.success:
        raise RefusedError(answer.message or "it is refused")
    return answer.message or text


def plain(
    word: str, description: str, act: Callable[[RosLink], Answer], only: str = ""
) -> tuple[Callable[[], argparse.ArgumentParser], Callable[[Sequence[str] | None], int]]:
    """`parser` and `main` of a command without arguments of its own; `only` as in `RosLink`."""

    def parser() -> argparse.ArgumentParser:
        return parser_of(word, description)

    def main(arguments: Sequence[str] | None = None) -> int:
        return ask_link(word, parser().parse_args(arguments), lambda link: answered(act(link)), only)

    return parser, main


def in_words(result: Result) -> str:
    """One line on how a finished motion went."""
    position, rotation = 1e3 * result.max_position_error, result.max_rotation_error
    return f"done; at most {position:.3f} mm and {rotation:.5f} rad from its reference"
