# SPDX-License-Identifier: Apache-2.0
"""Requests of the page to a running robot, and its readings: plain data, independent of the implementation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pkm_control.operator_interface import Answer, OperatorRequests
from pkm_description.mechanism import Array

# Kinds of singularities, in the order of `Readings.distances`
DISTANCES = ("type 1 (serial)", "type 2 (parallel)", "of the constraints", "inside a limb")
IDLE = ("HOLDING", "JOGGING")  # modes of the controller in which it takes targets to jog to

MOTION_KEYS = ("motion", "cycles", "file", "number")  # of the player's diagnostics: what was begun last, see `Motion`
PAGE_KEY = "page"  # of the page's diagnostics: how far it is
SERVED, OPENING, SEEN = "served", "a browser is being opened", "seen"


@dataclass(frozen=True)
class Motion:
    """A motion as requested (`name`, `cycles`), its file, and its number since the robot started."""

    name: str
    cycles: int
    source: str = ""
    number: int = 1


@dataclass(frozen=True, eq=False)
class Readings:
    """A snapshot of the running robot. What is not known is None; vectors and poses are in the base frame."""

    time: float | None = None  # s
    mode: str = ""  # of the controller
    reason: str = ""  # why it waits or has stopped, or what else there is to say
    machine: str = ""  # its life cycle: unconfigured, inactive (drives off), active (drives on), fault
    silence: float = 0.0  # s since it was heard, once that is long: what it said then may be true no more
    pose: Array | None = None  # (7,) of the platform
    error: float | None = None  # distance from the reference, m
    rotation_error: float | None = None  # rad
    speed: float | None = None  # m/s
    efforts: Array | None = None  # (n_actuated,) in the order of the mechanism's, N m or N
    speed_override: float | None = None  # 0 to 1
    distances: tuple[float | None, ...] = (None, None, None, None)  # from singularities, as `DISTANCES` names them
    units: tuple[str, ...] = field(default=("", "", "", ""))  # of the distances
    limit: tuple[str, float] | None = None  # the joint nearest to an end of its range, and the share of half that left
    clearance: float | None = None  # of the tool from the nearest place to keep out of, m
    motion: Motion | None = None  # that was begun last


class Operations(OperatorRequests, Protocol):
    """Requests of the page. They wait for the answer, except `emergency_stop_at_once`."""

    motions: Sequence[str]  # names that `play` takes, the one to begin with first

    def emergency_stop_at_once(self, then: Callable[[Answer], None]) -> None:
        """Disable the drives at once, until a reset, without waiting; `then` gets the answer later, in any thread."""

    def play(self, motion: str, cycles: int) -> Answer:
        """Plan a motion and begin it."""

    def jog_to(self, pose: Array) -> Answer:
        """Move the platform to a pose (7,) slowly."""

    def move_beside(self, positions: Array, seconds: float) -> Answer:
        """Move redundant joints to positions (r,) in so many seconds, while the platform stays."""


def motion_of(values: Mapping[str, str]) -> Motion | None:
    """The motion in the values of a player's diagnostics; None where none has begun."""
    try:
        name, cycles, source, number = (values[key] for key in MOTION_KEYS)
        return Motion(name, int(cycles), source, int(number))
    except (KeyError, ValueError):
        return None
