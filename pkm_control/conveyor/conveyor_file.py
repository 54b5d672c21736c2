# SPDX-License-Identifier: Apache-2.0
"""The file of the conveyors about a robot (YAML). `docs/conveyor.md` has every key."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pkm_control.conveyor.conveyor import Conveyor, SimulatedDrive
from pkm_runtime.yaml_section import Section, read_yaml

_FAR = 1e3  # m
_MOST = 8  # conveyors


@lru_cache(maxsize=4)
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
        latency=section.number("latency", 0.0, (-1.0, 1.0)),
        smoothing=section.number("smoothing", 0.15, (0.005, 2.0)),
        max_speed=section.number("max_speed", 1.0, (0.01, 20.0)),
        max_acceleration=section.number("max_acceleration", 5.0, (0.01, 100.0)),
        drift=section.number("drift", 0.002, (1e-5, 1.0)),
        jump=section.number("jump", 0.02, (1e-4, 1.0)),
        deviation=section.number("deviation", 0.02, (1e-4, 0.5)),
        silence=section.number("silence", 0.1, (0.005, 5.0)),
        simulated=_drive(Section(section.source, f"{section.element}.simulated", section.mapping("simulated"))),
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
