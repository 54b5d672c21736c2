# SPDX-License-Identifier: Apache-2.0
"""Twists that margins refer to: unit velocities of the platform, and unit velocities that the limbs block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.model_and_data import Data, Model
from pkm_kinematics.solve.constraints import limb_constraints, scaling
from pkm_kinematics.solve.engine import Engine

INDEPENDENT = 1e-6  # of unit wrenches: smaller singular values are zero


class TwistFrame(NamedTuple):
    """A basis of twists, and what each limb blocks of them."""

    basis: Array  # (6, freedoms + blocked) [m/s, rad/s], contiguous
    freedoms: int
    ranks: NDArray[np.int64]  # (limbs,) how many of the blocked velocities each limb blocks


def twist_frame(engine: Engine, model: Model, data: Data, space: Array) -> TwistFrame:
    """The frame at the positions in `data`: unit velocities along the motion space `space` (6, f), then blocked ones.

    Those are orthonormal; the speed of a rotation is that of a point at the characteristic length.
    """
    length = engine.characteristic_length
    speeds = np.linalg.norm(space * scaling(length)[:, None], axis=0)
    free = space / np.where(speeds > 0.0, speeds, 1.0)
    blocked = 6 - engine.mobility - engine.mechanism.mobility.left_out
    ranks, wrenches = [], [np.zeros((0, 6))]
    for _, _, W in limb_constraints(model, data, length):
        _, values, Vt = np.linalg.svd(W, full_matrices=False)
        own = Vt[values > INDEPENDENT * max(1.0, float(values.max(initial=0.0)))]
        ranks.append(len(own))
        wrenches.append(own)
    _, _, Vt = np.linalg.svd(np.vstack(wrenches), full_matrices=True)
    held = Vt[:blocked].T / scaling(length)[:, None]
    return TwistFrame(np.ascontiguousarray(np.hstack([free, held])), space.shape[1], np.array(ranks, dtype=np.int64))
