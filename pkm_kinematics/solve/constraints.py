# SPDX-License-Identifier: Apache-2.0
"""Twists and rates in uniform units, rotations at a length of the robot."""

from __future__ import annotations

import numpy as np

from pkm_description.mechanism import Array


def scaling(length: float) -> Array:
    """Divisors (6,) of a wrench that go with an angular velocity multiplied by `length`."""
    return np.array([1.0, 1.0, 1.0, length, length, length])


def per_unit_speed(K: Array, S: Array, length: float) -> Array:
    """Rates (..., m, n) of uniform units per unit speed in a motion space.

    Takes rates K (..., m, n) per velocity in the bases S (..., 6, n); rotations count at `length` [m].
    """
    speeds = np.linalg.norm(S * scaling(length)[:, None], axis=-2)
    return np.asarray(K / np.where(speeds > 0.0, speeds, 1.0)[..., None, :])
