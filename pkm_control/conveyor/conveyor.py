# SPDX-License-Identifier: Apache-2.0
"""A conveyor as it is described, and a motion's ride on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_description.errors import PkmError

Array = NDArray[np.float64]

STANDS = 0.005  # m/s: slower than that, a belt stands
_ENDS = 1e-9  # s


class ConveyorError(PkmError):
    """A motion in a moving frame that cannot be; says why, and what the conveyor does."""


@dataclass(frozen=True)
class SimulatedDrive:
    """How a simulated belt runs: `speed` m/s, readings per second, and by how much its stamps err (uniformly) [s]."""

    speed: float = 0.0
    rate: float = 100.0
    jitter: float = 0.0


@dataclass(frozen=True, eq=False)
class Conveyor:
    """A belt that moves along a straight line.

    The moving frame has the axes of the base frame. Its *travel* [m] is what the encoder counts; an object that was at
    `origin` when the travel was `at` is at `origin + direction (travel - at)`. In `window` it may be followed.

    `direction` (3,) is of unit length, `origin` (3,) in m, base frame; `window` in m along the direction from the
    origin. The travel is `metres_per_unit` times what the encoder reads beyond `offset`, taken `latency` s before its
    stamp. `smoothing` [s] is how far back readings count, unless two estimates part by the `drift` [m].

    The rest is what the belt may do: `max_speed` [m/s], `max_acceleration` [m/s^2], a `jump` [m] between two readings,
    a `deviation` [m] from what was predicted when a motion was judged, a `silence` [s] of the encoder.
    """

    name: str
    direction: Array
    origin: Array
    window: tuple[float, float]
    topic: str
    joint: str
    metres_per_unit: float
    offset: float = 0.0
    latency: float = 0.0
    smoothing: float = 0.15
    max_speed: float = 1.0
    max_acceleration: float = 5.0
    drift: float = 0.002
    jump: float = 0.02
    deviation: float = 0.02
    silence: float = 0.1
    simulated: SimulatedDrive = SimulatedDrive()


def conveyor_named(conveyors: Mapping[str, Conveyor], name: str) -> Conveyor:
    """The conveyor of a name.

    Args:
        conveyors: by name.
        name: of one of them.

    Returns:
        It.

    Raises:
        ConveyorError: there is none; names those that there are.
    """
    if name not in conveyors:
        raise ConveyorError(
            f"there is no conveyor '{name}'; known: {', '.join(conveyors) or 'none, for lack of a file'}"
        )
    return conveyors[name]


@dataclass(frozen=True)
class BeltState:
    """Where a belt is: `travel` [m] and `speed` [m/s]; `problem` says why that is not known, empty where it is."""

    travel: float
    speed: float
    problem: str = ""


@dataclass(frozen=True)
class Ride:
    """A motion's stretch on a moving frame.

    Points of the motion are where the platform would be if the frame stood at `travel` [m]. What the frame travels
    beyond that is added, by a share that rises from 0 to 1 between the first two `instants` [s, from the motion's
    start], stays until the third, and falls to 0 at the fourth. The motion begins when the frame's travel is `start`.
    """

    frame: str
    travel: float
    start: float
    instants: tuple[float, float, float, float]

    def problem(self, duration: float) -> str:
        """Why it makes no sense.

        Args:
            duration: of the motion [s].

        Returns:
            The reason; empty where it does.
        """
        a, b, c, d = self.instants
        if not np.isfinite((self.travel, self.start, *self.instants)).all():
            return "a number of the ride is not finite"
        if not (0.0 <= a < b <= c < d <= duration + _ENDS):
            return f"the instants of the ride ({a:g}, {b:g}, {c:g}, {d:g} s) do not rise and fall within {duration:g} s"
        return ""

    def share(self, times: Array) -> tuple[Array, Array, Array]:
        """By which share the frame's travel is added.

        Args:
            times: (n,) [s] from the motion's start.

        Returns:
            The share, and its first and second derivative, all (n,).
        """
        a, b, c, d = self.instants
        up, down = _rise(times, a, b), _rise(times, c, d)
        return up[0] - down[0], up[1] - down[1], up[2] - down[2]


def _rise(times: Array, begin: float, end: float) -> tuple[Array, Array, Array]:
    """Return the smoothstep of degree five from 0 to 1, and its two derivatives."""
    span = end - begin
    s = np.clip((times - begin) / span, 0.0, 1.0)
    value = s**3 * (10.0 - 15.0 * s + 6.0 * s * s)
    slope = 30.0 * s**2 * (1.0 - s) ** 2 / span
    return value, slope, 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / span**2
