# SPDX-License-Identifier: Apache-2.0
"""`pkm speed`: run motions at a fraction of their planned speed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pkm_control.client.verbs.verb import answered, ask_link, parser_of


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = parser_of("speed", "Run motions, the present one and those to come, at a fraction of their planned speed.")
    p.add_argument("fraction", type=float, metavar="FRACTION", help="0 to 1; 0 halts motions on their paths")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0 done, 1 refused."""
    given = parser().parse_args(arguments)

    text = f"motions run at {given.fraction:.0%} of their plan"
    return ask_link("speed", given, lambda link: answered(link.set_speed(given.fraction), text))


if __name__ == "__main__":
    raise SystemExit(main())
