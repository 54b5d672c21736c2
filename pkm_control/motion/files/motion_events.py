# SPDX-License-Identifier: Apache-2.0
"""The events at a motion file's waypoints, on the clock of the plan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pkm_control.motion.files.motion_file import MotionFile
from pkm_control.motion.path_events import OutputEvent, PathEvents, PayloadChange
from pkm_control.space.tool import point_mass
from pkm_description.mechanism import Inertial


def payloads_of(motion: MotionFile) -> tuple[Inertial | None, ...] | None:
    """The platform's payload from each waypoint on; None where the file says nothing of it."""
    tool = motion.tool
    if motion.payloads is None:
        return None if tool is None or tool.mass == 0.0 else (tool.payload(0.0),) * len(motion)
    masses = motion.payloads.tolist()
    made = {mass: point_mass(mass, np.zeros(3)) if tool is None else tool.payload(mass) for mass in set(masses)}
    return tuple(made[mass] for mass in masses)


def events_of(motion: MotionFile, arrivals: Sequence[float]) -> PathEvents:
    """Outputs, by the file's lead ahead of their waypoints, and changes of payload, for arrivals (n,) [s] there."""
    outputs = [
        OutputEvent(max(0.0, float(arrivals[k]) - motion.lead), name, float(values[k]))
        for k in range(len(motion))
        for name, values in motion.outputs.items()
        if not np.isnan(values[k])
    ]
    changes = []
    payloads = payloads_of(motion)
    if payloads is not None:
        for k, payload in enumerate(payloads):
            if k == 0 or payload is not payloads[k - 1]:
                changes.append(PayloadChange(float(arrivals[k]), payload))
    return PathEvents(tuple(outputs), tuple(changes))
