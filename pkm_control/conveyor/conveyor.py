# SPDX-License-Identifier: Apache-2.0
"""Conveyors: their description, their file (YAML, `docs/conveyor.md` has every key), and a motion's ride on one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pkm_control.motion.time_law import smooth_step
from pkm_description.mechanism import Array
from pkm_runtime.errors import PkmError
from pkm_runtime.yaml_section import Section, read_yaml

STANDS = 0.005  # m/s: slower than that, a belt stands
_ENDS = 1e-9  # s


class ConveyorError(PkmError):
    """An impossible motion in a moving frame; says why, and what the conveyor does."""


@dataclass(frozen=True)
class SimulatedDrive:
    """How a simulated belt runs: `speed` m/s, readings per second, and the largest error of stamps (uniform) [s]."""

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

    The rest are the bounds of a sound belt: `max_speed` [m/s], `max_acceleration` [m/s^2], a `jump` [m] between two
    readings, a `deviation` [m] from the prediction when a motion was checked, a `silence` [s] of the encoder.
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
    """The conveyor of a name; `ConveyorError` with the names that exist where there is none."""
    if name not in conveyors:
        raise ConveyorError(
            f"there is no conveyor '{name}'; known: {', '.join(conveyors) or 'none, for lack of a file'}"
        )
    return conveyors[name]


@dataclass(frozen=True)
class BeltState:
    """Travel [m] and speed [m/s] of a belt; `problem` says why they are not known, empty where they are."""

    travel: float
    speed: float
    problem: str = ""


@dataclass(frozen=True)
class Ride:
    """A motion's stretch on a moving frame.

    Points of the motion are the platform's if the frame stood at `travel` [m]. The frame's travel beyond that is added,
    by a share that rises from 0 to 1 between the first two `instants` [s, from the motion's start], stays until the
    third, and falls to 0 at the fourth. The motion begins when the frame's travel is `start` [m].
    """

    frame: str
    travel: float
    start: float
    instants: tuple[float, float, float, float]

    def problem(self, duration: float) -> str:
        """Why it makes no sense for a motion of this duration [s]; empty where it does."""
        a, b, c, d = self.instants
        if not np.isfinite((self.travel, self.start, *self.instants)).all():
            return "a number of the ride is not finite"
        if not (0.0 <= a < b <= c < d <= duration + _ENDS):
            return f"the instants of the ride ({a:g}, {b:g}, {c:g}, {d:g} s) do not rise and fall within {duration:g} s"
        return ""

    def share(self, times: Array) -> tuple[Array, Array, Array]:
        """Share (n,) of the frame's travel added at times (n,) [s] from the motion's start, and two derivatives."""
        a, b, c, d = self.instants
        up, down = (smooth_step(np.clip((times - x) / (y - x), 0.0, 1.0)) for x, y in ((a, b), (c, d)))
        return up[0] - down[0], up[1] / (b - a) - down[1] / (d - c), up[2] / (b - a) ** 2 - down[2] / (d - c) ** 2


_FAR = 1e3  # m
_MOST = 8  # conveyors
_BOUNDS = {
    **{"latency": (-1.0, 1.0), "smoothing": (0.005, 2.0), "max_speed": (0.01, 20.0), "max_acceleration": (0.01, 100.0)},
    **{"drift": (1e-5, 1.0), "jump": (1e-4, 1.0), "deviation": (1e-4, 0.5), "silence": (0.005, 5.0)},
}


def read_conveyors(path: str) -> tuple[Conveyor, ...]:
    """Read the file; none for an empty path. Raises `ConfigurationError` where it cannot be read or used."""
    if not path:
        return ()
    source, values = read_yaml(path)
    top = Section(source, "", values)
    named = top.mapping("conveyors")
    found = tuple(_conveyor(str(name), Section(source, f"conveyors.{name}", one)) for name, one in named.items())
    top.finish()
    if not 0 < len(found) <= _MOST:
        raise top.wrong("conveyors", f"names {len(found)} conveyors", f"give 1 to {_MOST}, each with its direction")
    return found


def _conveyor(name: str, section: Section) -> Conveyor:
    direction = np.array(section.numbers("direction", (3,)))
    length = float(np.linalg.norm(direction))
    if not length > 1e-6:
        raise section.wrong("direction", "has no length", "give a vector along the belt, base frame, such as [0, 1, 0]")
    begin, end = section.numbers("window", (2,))
    if not begin < end:
        raise section.wrong("window", f"[{begin:g}, {end:g}] is empty", "give its beginning and its end [m]")
    metres = section.number("metres_per_unit", None, (-_FAR, _FAR))
    if metres == 0.0:
        raise section.wrong("metres_per_unit", "is 0", "give how far the belt goes for one unit of the encoder")
    found = Conveyor(
        name=name,
        direction=direction / length,
        origin=np.array(section.numbers("origin", (3,))),
        window=(begin, end),
        topic=section.text("topic", "conveyor_encoders"),
        joint=section.text("joint", name),
        metres_per_unit=metres,
        offset=section.number("offset", 0.0),
        simulated=_drive(Section(section.source, f"{section.element}.simulated", section.mapping("simulated"))),
        **{name: section.number(name, getattr(Conveyor, name), bounds) for name, bounds in _BOUNDS.items()},
    )
    section.finish()
    return found


def _drive(section: Section) -> SimulatedDrive:
    found = SimulatedDrive(
        section.number("speed", 0.0, (-20.0, 20.0)),
        section.number("rate", 100.0, (1.0, 1e4)),
        section.number("jitter", 0.0, (0.0, 0.1)),
    )
    section.finish()
    return found
