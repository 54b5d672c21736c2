# SPDX-License-Identifier: Apache-2.0
"""Every robot of the gallery: what a call costs, against the number of its moving bodies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

from bench.sample import Sample
from bench.states import NoRegularStatesError
from bench.timing import interleaved
from pkm_description.gallery import robot_names
from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics
from pkm_kinematics.forward.graph_tracker import GraphTracker

_STEPS = 40  # from home to the pose that is timed


def rows(names: Sequence[str] | None = None) -> list[list[str]]:
    """Name, degrees of freedom, moving bodies, and the times of lean inverse kinematics, inverse and direct dynamics.

    Of the robots of these `names`, of the whole gallery without; robots that have no such calls are left out.
    """
    found = []
    for name in names or robot_names():
        try:
            sample = Sample(name)
        except NoRegularStatesError:
            continue
        kinematics = sample.kinematics
        bodies = len(kinematics.tables.bodies) - 1
        serves = kinematics.constant_space or GraphTracker.serves(kinematics.engine)
        if not serves or all(link.inertial.massless for link in sample.mechanism.links):
            continue
        positions = kinematics.lean_inverse()
        inverse, direct = sample.dynamics.lean_inverse(), sample.dynamics.lean_direct()
        q, effort, acceleration = np.empty(len(sample.actuated)), np.empty(len(sample.actuated)), np.empty(6)
        moving, coasting = sample.motion(True), sample.motion(False)
        for pose in _from_home(kinematics, sample.pose):  # limbs solved by iteration follow small steps only
            there = np.concatenate([pose, np.zeros(18)])
            if positions(pose, q) or inverse(there, effort) or direct(there, sample.effort, acceleration):
                break  # a singularity or the border on the way: what comes before it will do
            moving[:7] = coasting[:7] = pose
        at = moving[:7].copy()
        if positions(at, q) or inverse(moving, effort) or direct(coasting, sample.effort, acceleration):
            raise RuntimeError(f"{name}: lean calls do not answer at {at}")
        t = interleaved(
            lambda f=positions, p=at, out=q: f(p, out),
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


def _from_home(kinematics: Kinematics, pose: Array) -> Iterator[Array]:
    """Poses (7,) from home to a pose, in small steps; home alone where the motion space turns, and leads elsewhere."""
    home = kinematics.home
    if not kinematics.constant_space:
        yield home
        return
    turned = Slerp([0.0, 1.0], Rotation.from_quat([home[3:], pose[3:]]))
    for share in np.linspace(0.0, 1.0, _STEPS + 1)[1:]:
        yield np.concatenate([home[:3] + share * (pose[:3] - home[:3]), turned(share).as_quat()])
