# SPDX-License-Identifier: Apache-2.0
"""Every robot of the gallery: what a call costs, against the number of its moving bodies."""

from __future__ import annotations

import numpy as np

from bench.sample import Sample
from bench.states import NoRegularStatesError
from bench.timing import interleaved
from pkm_description.gallery import robot_names


def rows() -> list[list[str]]:
    """Name, freedoms, moving bodies, and the times of lean inverse kinematics, inverse and direct dynamics."""
    found = []
    for name in robot_names():
        try:
            sample = Sample(name)
        except NoRegularStatesError:
            continue
        kinematics = sample.kinematics
        bodies = len(kinematics.tables.bodies) - 1
        if not kinematics.constant_space or all(link.inertial.massless for link in sample.mechanism.links):
            continue
        mode = 0 if kinematics.straight else -1  # -1: from the last configuration on
        positions = kinematics.lean_inverse(mode)
        inverse, direct = sample.dynamics.lean_inverse(mode), sample.dynamics.lean_direct(mode)
        q, effort, acceleration = np.empty(len(sample.actuated)), np.empty(len(sample.actuated)), np.empty(6)
        moving, coasting = sample.motion(True), sample.motion(False)
        t = interleaved(
            lambda f=positions, p=sample.pose, out=q: f(p, out),
            lambda f=inverse, p=moving, out=effort: f(p, out),
            lambda f=direct, p=coasting, e=sample.effort, out=acceleration: f(p, e, out),
            repetitions=31,
        )
        iterated = "" if (kinematics.tables.blocks["solver"] == 1).all() else "yes"
        found.append(
            [name, str(kinematics.mobility), str(bodies), iterated]
            + [str(x) for x in t]
            + [f"{1e9 * t[1].median / bodies:.0f} ns"]
        )
    return found
