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
    p.add_argument("--hardware-file", default="", metavar="FILE", help=options.HARDWARE_FILE)
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0 done, 1 refused or ended early, 130 interrupted."""
    given = parser().parse_args(arguments)
    return ask_robot("follow", given, lambda robot: _follow(robot, given.motion, given.times))


def _follow(robot: Robot, motion: str, times: int) -> str:
    return in_words(robot.follow(motion, times).result())


if __name__ == "__main__":
    raise SystemExit(main())
