# SPDX-License-Identifier: Apache-2.0
"""`pkm state`: print the robot's state."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from pkm_control.client.state import RobotState
from pkm_control.client.verbs.verb import ask_link, parser_of

if TYPE_CHECKING:
    from pkm_control.client.ros.link import RosLink


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = parser_of("state", "Say what the robot does now, and where its platform and its drives are.")
    p.add_argument_group("output").add_argument("--json", action="store_true", help="print the state as JSON")
    return p


def as_json(state: RobotState) -> str:
    """The state as JSON, with null for NaN."""
    return json.dumps(_plain({**asdict(state), "mode": state.mode.name}), indent=1)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return [_plain(one) for one in value.tolist()]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0 done, 1 where no robot answers."""
    given = parser().parse_args(arguments)

    def act(link: RosLink) -> str:
        state = link.state()
        return as_json(state) if given.json else str(state)

    return ask_link("state", given, act)


if __name__ == "__main__":
    raise SystemExit(main())
