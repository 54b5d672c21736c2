# SPDX-License-Identifier: Apache-2.0
"""Distances along a motion: of the platform from singularities, and of the joints from their limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics
from pkm_viewer.report.recording import Recording

_POSES = 240  # at which the margins are computed; each takes a fraction of a millisecond


@dataclass(frozen=True, eq=False)
class Margins:
    """Margins at `times` (k,) [s]; `type1` and `type2` (k,) as shares of those at home: 1 as at home, 0 singular.

    `stop` (k,): of the joint that is nearest to an end of its range, as a share of the half range: 1 in the middle, 0
    at the end, negative beyond; infinite where no joint has a range. `stop_joint`: its name where it is nearest, with
    `stop_distance` left [rad or m, `stop_unit`].
    """

    times: Array
    type1: Array
    type2: Array
    stop: Array
    stop_joint: str
    stop_distance: float
    stop_unit: str


def margins_along(kinematics: Kinematics, recording: Recording) -> Margins:
    """Margins at evenly spread times of the last cycles, passive joints included; NaN where a pose has no solution."""
    rows = recording.recent
    at = np.unique(np.linspace(0, len(rows) - 1, _POSES).round().astype(np.int64))
    poses = np.ascontiguousarray(rows.reference[at] if not recording.faults else rows.measured[at])
    home = kinematics.singularity(np.asarray(kinematics.home))
    there = kinematics.singularity(poses, mode=0)
    joints = np.asarray(kinematics.inverse(poses, mode=0).joints, dtype=np.float64)
    engine = kinematics.engine
    lower, upper = engine.ranges.limits
    left = np.minimum(joints - lower, upper - joints)
    shares = engine.ranges.shares(joints)
    known = np.where(np.isnan(shares), np.inf, shares)
    row, column = np.unravel_index(int(np.argmin(known)), known.shape)
    return Margins(
        times=rows.times[at],
        type1=np.asarray(there.type1) / _or_nan(home.type1),
        type2=np.asarray(there.type2) / _or_nan(home.type2),
        stop=known.min(axis=1),
        stop_joint=engine.joint_names[column] if np.isfinite(known[row, column]) else "",
        stop_distance=float(left[row, column]),
        stop_unit="rad" if engine.joint_turning[column] else "m",
    )


def _or_nan(value: Array) -> float:
    number = float(value)
    return number if np.isfinite(number) and number > 0.0 else np.nan
