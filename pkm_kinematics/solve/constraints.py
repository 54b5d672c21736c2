# SPDX-License-Identifier: Apache-2.0
"""What the limbs do not let the platform do, whatever the actuators: constraint wrenches.

A limb's closure equations J qd + G V = 0 constrain the platform's twist V alone by W V = 0, W = U^T G, where U spans
the left null space of J: the reciprocal screws of the limb. The motion space holds the twists that satisfy all limbs;
for robots such as the 3-PRS it depends on the configuration ("parasitic motion").
"""

from __future__ import annotations

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.model_and_data import Data, Model
from pkm_kinematics.kernels.rates.limb_system import limb_system
from pkm_kinematics.kernels.rates.motion_space import RANK


def limb_constraints(model: Model, data: Data, length: float) -> list[tuple[slice, Array, Array]]:
    """Per limb its equations (a slice), U (m, k) and W (k, 6): what its closures impose on the platform.

    `length` [m] multiplies the angular part of the twists that W takes, so that all six components are speeds [m/s].
    """
    found = []
    for first, stop in model.limbs:
        blocks = model.blocks[first:stop]
        closures = (int(blocks["closure_start"][0]), int(blocks["closure_start"][-1] + blocks["closure_count"][-1]))
        start = int(blocks["start"][0])
        n, m = int(blocks["count"].sum()), int(blocks["rows"].sum())
        J, G = np.zeros((m, n)), np.zeros((m, 6))
        limb_system(model, data, *closures, start, J, G)
        U, values, _ = np.linalg.svd(J) if n else (np.eye(m), np.zeros(0), None)
        rank = int(np.sum(values > RANK * max(float(values[0]) if len(values) else 0.0, 1e-300)))
        at = int(blocks["rows_at"][0])
        found.append((slice(at, at + m), U[:, rank:], U[:, rank:].T @ G / scaling(length)))
    return found


def scaling(length: float) -> Array:
    """Divisors (6,) of a wrench that go with an angular velocity multiplied by `length`."""
    return np.array([1.0, 1.0, 1.0, length, length, length])


def per_unit_speed(K: Array, S: Array, length: float) -> Array:
    """Rates (..., m, n) of uniform units per unit speed in a motion space.

    Takes rates K (..., m, n) per velocity in the bases S (..., 6, n); rotations count at `length` [m].
    """
    speeds = np.linalg.norm(S * scaling(length)[:, None], axis=-2)
    return np.asarray(K / np.where(speeds > 0.0, speeds, 1.0)[..., None, :])
