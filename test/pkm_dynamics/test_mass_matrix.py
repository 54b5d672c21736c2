# SPDX-License-Identifier: Apache-2.0
"""Mass matrix and Coriolis forces against the direct dynamics, which computes them by another way."""

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_dynamics import Distribution, Dynamics


@pytest.mark.by_day("delta", "tripod_3prs")
@pytest.mark.parametrize("robot", ["delta", "gough_stewart", "planar_3rrr", "tripod_3prs"])
def test_equation_of_motion(robot: str) -> None:
    """M ud + c + g = K_a^T tau, with ud from the direct dynamics by composite bodies."""
    dynamics = Dynamics(load_mechanism(robot), friction=False)
    k = dynamics.kinematics
    S, K = k.subspace(k.home), k.at(k.home).motion_jacobian
    random = np.random.default_rng(3)
    twist = S @ random.normal(size=S.shape[1])
    effort = 10.0 * random.normal(size=K.shape[0])
    answer = dynamics.direct(k.home, twist, effort)
    assert answer.status == 0
    bias = k.engine.spaces.at_one(k.home, k.home_joints, twist)[1]
    rate = np.linalg.lstsq(S, answer.acceleration - bias, rcond=None)[0]
    M = dynamics.mass_matrix(k.home)
    forces = (
        M @ rate + dynamics.coriolis(k.home, twist) + K.T @ dynamics.inverse(k.home, distribution=Distribution()).effort
    )
    np.testing.assert_allclose(forces, K.T @ effort, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(M, M.T, atol=1e-10 * np.abs(M).max())
    assert np.linalg.eigvalsh(M).min() > 0.0
