# SPDX-License-Identifier: Apache-2.0
"""`pkm follow`: run a motion file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pkm_control.client.verbs.verb import ask_robot, in_words, parser_of
from pkm_control.command_line import options

if TYPE_CHECKING:
    from pkm_control.client.robot import Robot


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = parser_of(
        "follow", "Move to the start of a motion file, run it, and wait for the end; Ctrl-C ends it on its path."
    )
    p.add_argument("motion", metavar="FILE|NAME", help=options.MOTION)
    p.add_argument("--times", type=options.count, default=1, metavar="N", help="how many times the motion is run")
    options.add_tool_file(p)
    belt = p.add_argument_group("conveyor")
    belt.add_argument("--on", default="", metavar="NAME", help="the conveyor that carries the object")
    at = "travel of the belt when the object was at the conveyor's origin [m]; now without"
    belt.add_argument("--at", type=options.number, metavar="M", help=at)
    belt.add_argument("--conveyor-file", default="", metavar="FILE", help=options.CONVEYOR_FILE)
    p.add_argument("--hardware-file", default="", metavar="FILE", help=options.HARDWARE_FILE)
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0 done, 1 refused or ended early, 130 interrupted."""
    given = parser().parse_args(arguments)

    def act(robot: Robot) -> str:
        return in_words(robot.follow(given.motion, given.times, on=given.on, at=given.at).result())

    return ask_robot("follow", given, act)


if __name__ == "__main__":
    raise SystemExit(main())
