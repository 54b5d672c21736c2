# SPDX-License-Identifier: Apache-2.0
"""`pkm move`: go to a pose."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pkm_control.client.verbs.verb import ask_robot, in_words, parser_of
from pkm_control.command_line import options

if TYPE_CHECKING:
    from pkm_control.client.robot import Robot


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = parser_of(
        "move",
        "Move the platform to a pose, straight where the robot can, and wait for the end; Ctrl-C ends it on its path.",
    )
    p.add_argument(
        "pose",
        type=options.number,
        nargs="+",
        metavar="NUMBER",
        help="the robot's task coordinates (x y z of a Delta), or x y z qx qy qz qw [m, rad], base frame",
    )
    p.add_argument("--speed", type=options.positive, metavar="M/S", help="of the platform, at most [m/s]")
    p.add_argument(
        "--nearest",
        action=options.Switch,
        default=False,
        help="go to the nearest pose that the platform can take, where it cannot take this one",
    )
    p.add_argument("--tool", default="", metavar="NAME", help=options.TOOL)
    options.add_tool_file(p)
    p.add_argument("--hardware-file", default="", metavar="FILE", help=options.HARDWARE_FILE)
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0 done, 1 refused or ended early, 130 interrupted."""
    given = parser().parse_args(arguments)

    def act(robot: Robot) -> str:
        speed = math.inf if given.speed is None else given.speed
        task = robot.move_to(given.pose, speed, nearest=given.nearest, tool=given.tool)
        return in_words(task.result())

    return ask_robot("move", given, act)


if __name__ == "__main__":
    raise SystemExit(main())
