# SPDX-License-Identifier: Apache-2.0
"""Drive gains from two recordings of one robot, one with a known payload."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.identification.estimates import Loaded, NoKnownLoadError, drive_gains
from pkm_dynamics.linear_form.base_parameters import base_parameters
from pkm_dynamics.linear_form.random_motions import random_motions

GAINS = np.array([1.9, 2.4, 0.7])  # N m per ampere
PAYLOAD = Inertial(3.0, np.array([0.0, 0.0, -0.05]), np.diag([4e-3, 4e-3, 2e-3]))


@pytest.fixture(scope="module")
def delta():
    dynamics = Dynamics(load_mechanism("delta"))
    return dynamics, base_parameters(dynamics)


def recordings(dynamics, noise: float, seed: int) -> list[Loaded]:
    found = []
    for k, payload in enumerate((None, PAYLOAD)):
        at = random_motions(dynamics.kinematics, 300, seed=20 + k)
        motion = at.pose, 0.2 * at.twist, 0.2 * at.acceleration
        psi, _ = dynamics.regressor(*motion)
        signals = dynamics.inverse(*motion, payload=payload).effort / GAINS
        signals += np.random.default_rng(seed + k).normal(0.0, noise, signals.shape)
        found.append(Loaded(psi, signals, payload))
    return found


def test_gains_and_parameters_without_noise(delta):
    dynamics, base = delta
    found = drive_gains(recordings(dynamics, 0.0, 0), base, dynamics.parameters, "platform")
    assert found.gains == pytest.approx(GAINS, rel=1e-6)
    assert np.abs(found.base_values - base.values(dynamics.parameters.values)).max() < 1e-5


def test_gains_with_noise_lie_in_their_intervals(delta):
    """Twelve recordings of three gains: of 36 intervals of 95 %, at least 30 hold the truth (chance of less: 0.1 %)."""
    dynamics, base = delta
    inside = 0
    for k in range(12):
        found = drive_gains(recordings(dynamics, 0.3, 100 + 2 * k), base, dynamics.parameters, "platform")
        assert found.gains == pytest.approx(GAINS, rel=0.05)
        inside += int(np.sum(np.abs(found.gains - GAINS) <= found.interval))
    assert inside >= 30


def test_without_a_known_payload_the_scale_is_unknown(delta):
    dynamics, base = delta
    with pytest.raises(NoKnownLoadError, match="known payload"):
        drive_gains(recordings(dynamics, 0.0, 0)[:1], base, dynamics.parameters, "platform")
