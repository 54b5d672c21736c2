# SPDX-License-Identifier: Apache-2.0
"""`pkm mode`: go to another working mode."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pkm_control.client.verbs.verb import ask_robot, parser_of

if TYPE_CHECKING:
    from pkm_control.client.robot import Robot


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = parser_of(
        "mode",
        "Go to the same pose in another working mode, and wait for the end; or, without one, say in which the robot "
        "is.\n'pkm stop' halts on the way; to go on, or back, ask again for either mode.",
    )
    p.add_argument("label", nargs="?", metavar="LABEL", help="of the working mode, such as +-")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0 done, 1 refused, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    signs = [word for word in words if re.fullmatch(r"[+-]+", word)]  # which argparse takes for options
    given = parser().parse_args([word for word in words if word not in signs])
    label = signs[0] if signs else given.label

    def act(robot: Robot) -> str:
        if label is None:
            return f"working mode {robot.working_mode}"
        robot.change_working_mode(label)
        return f"working mode {robot.working_mode}"

    return ask_robot("mode", given, act)


if __name__ == "__main__":
    raise SystemExit(main())
