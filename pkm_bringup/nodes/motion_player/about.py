# SPDX-License-Identifier: Apache-2.0
"""Values of diagnostics by which player and page inform each other."""

from __future__ import annotations

from collections.abc import Mapping

from pkm_viewer.operations import Motion

MOTION = ("motion", "cycles", "file", "number")  # of the player: what was begun last, see `Motion`
PAGE = "page"  # of the page: how far it is
SERVED, OPENING, SEEN = "served", "a browser is being opened", "seen"


def motion_of(values: Mapping[str, str]) -> Motion | None:
    """The motion in the values of a player's diagnostics; None where none has begun."""
    try:
        name, cycles, source, number = (values[key] for key in MOTION)
        return Motion(name, int(cycles), source, int(number))
    except (KeyError, ValueError):
        return None
