# SPDX-License-Identifier: Apache-2.0
"""`pkm jog`: move the platform at a twist for some time."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pkm_control.client.verbs.verb import ask_robot, parser_of
from pkm_control.command_line import options

if TYPE_CHECKING:
    from pkm_control.client.robot import Robot


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = parser_of(
        "jog", "Steer the platform at a velocity for some time; it comes to rest before borders. Ctrl-C ends it."
    )
    p.add_argument(
        "linear", type=options.number, nargs=3, metavar="M/S", help="velocity of its origin along x, y and z [m/s]"
    )
    p.add_argument(
        "--angular",
        type=options.number,
        nargs=3,
        default=(0.0, 0.0, 0.0),
        metavar="RAD/S",
        help="angular velocity about x, y and z [rad/s]",
    )
    p.add_argument("--seconds", type=options.positive, default=1.0, metavar="S", help="how long [s]")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0 done, 1 refused, 130 interrupted."""
    given = parser().parse_args(arguments)

    def act(robot: Robot) -> str:
        before = robot.state.pose
        reason = robot.jog(given.linear, given.angular, given.seconds).result().reason
        moved = f"moved by {1e3 * math.dist(before[:3], robot.state.pose[:3]):.3g} mm"
        return f"{moved}: {reason}" if reason else moved

    return ask_robot("jog", given, act)


if __name__ == "__main__":
    raise SystemExit(main())
