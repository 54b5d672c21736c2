# SPDX-License-Identifier: Apache-2.0
"""What judges a robot's functions in other libraries: Python's own calls, in states at random in one working mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pkm_dynamics import Dynamics
from pkm_dynamics.export_c.c_test import states_of
from pkm_dynamics.outlets.recorded_functions import ExportError
from pkm_kinematics.recordings_at_home import FIRM

STATES = 100
BOUND = 1e-10  # error over the largest number of an answer
MOTION = ("pose", "twist", "acceleration")
ARGUMENTS = {"joints": ("pose",), "jacobian": ("pose",), "gravity": ("pose",), "margins": ("pose",)}
ARGUMENTS |= {"inverse_dynamics": MOTION, "direct_dynamics": ("pose", "twist", "effort")}


REFUSED = {"griffis_duffy": ["inverse_dynamics", "gravity"]}
BALANCED = 1e-2  # N m: efforts at rest of a robot without weight in any pose are rounding, of 1e-12 N m


def compare(dynamics: Dynamics, mode: int, call: Callable[..., Any]) -> None:
    """Compare `call(name, *rows)`, NaN where there is no answer, with Python: every function that is not `REFUSED`."""
    refused = []
    states = states_of(dynamics, STATES * dynamics.kinematics.n_modes, seed=3)
    rows = states.mode == mode
    outside = states.at_home if mode else 0  # states whose joints leave their ranges in other modes of iterated limbs
    assert rows.sum() + outside >= STATES
    if not rows.any():  # the joints have no room for this mode
        return
    firm = states.given["hold"][rows, 0] >= FIRM  # elsewhere Python uses the whole graph
    for name, arguments in ARGUMENTS.items():
        asked = "inverse" if name == "joints" else name
        expected = np.where(np.isin(states.status[asked], (0, 2))[:, None], states.answers[asked], np.nan)[rows]
        try:
            found = np.asarray(call(name, *(states.given[what][rows] for what in arguments))).reshape(expected.shape)
        except ExportError:
            refused.append(name)
            continue
        known = np.isfinite(expected).all(axis=1)
        lost = np.isnan(found).any(axis=1)
        assert (lost == ~known)[firm].all() if not dynamics.kinematics.engine.iterated else lost[~known].all(), name
        assert lost[known].mean() < 0.2 if known.any() else True, name
        top = np.maximum(np.abs(expected).max(axis=1), 1e-6 * np.nanmax(np.abs(expected), initial=1e-300))
        if name == "gravity":
            top = np.maximum(top, BALANCED)
        off = np.abs(found - expected).max(axis=1) / top
        assert off[known & ~lost].max(initial=0.0) < BOUND, name
    assert sorted(refused) == sorted(REFUSED.get(dynamics.mechanism.name, []))
