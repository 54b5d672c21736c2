# SPDX-License-Identifier: Apache-2.0
"""Payloads that no body can be are refused wherever one is taken, with the rules of bodies in a description."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description.mechanism import Inertial
from pkm_dynamics.robot_model import checked_payload
from pkm_kinematics import ShapeError
from pkm_runtime.errors import PkmError

ROD = np.diag([1e-2, 1e-2, 0.0])
SKEW = np.array([[1e-2, 5e-3, 0.0], [0.0, 1e-2, 0.0], [0.0, 0.0, 1e-2]])
REFUSED = [
    (Inertial(-3.0), "payload: negative mass -3 kg"),
    (Inertial(float("nan")), "payload.mass: not finite"),
    (Inertial(1.0, np.array([0.0, np.inf, 0.0])), "payload.com: not finite"),
    (Inertial(1.0, np.zeros(3), SKEW), "payload.inertia: not symmetric"),
    (Inertial(1.0, np.zeros(3), np.diag([1e-2, 1e-2, -1e-2])), "payload: inertia is not positive definite"),
    (Inertial(1.0, np.zeros(3), np.diag([1.0, 1.0, 3.0])), "payload: .* triangle inequality"),
    (Inertial(0.0, np.zeros(3), ROD), "payload: inertia without mass"),
    (Inertial(1.0, np.zeros(3), np.diag([1e308, 1e308, 1e308])), "payload: 1e\\+308 is too large"),
    (Inertial(1e200), "payload: 1e\\+200 is too large"),
    (Inertial(1.0, np.full(3, -1e160)), "payload: 1e\\+160 is too large"),
]
MISSHAPEN = [
    (Inertial(1.0, np.zeros(2)), r"payload\.com: expected an array of shape \(3,\)"),
    (Inertial(1.0, np.zeros(3), np.zeros(3)), r"payload\.inertia: expected an array of shape \(3, 3\)"),
    (Inertial(np.ones(2)), r"payload\.mass: expected one number"),
    (Inertial("heavy"), r"payload\.mass: expected one number, got the text 'heavy'"),
]


@pytest.mark.parametrize(("payload", "message"), REFUSED)
def test_no_body(payload, message, delta):
    k, d = delta.kinematics, delta.dynamics
    calls = (
        lambda: d.inverse(k.home, payload=payload),
        lambda: d.direct(k.home, np.zeros(6), np.zeros(3), payload=payload),
        lambda: d.gravity(k.home, payload),
        lambda: d.model(payload),
    )
    for call in calls:
        with pytest.raises(PkmError, match=message):
            call()


@pytest.mark.parametrize(("payload", "message"), MISSHAPEN)
def test_wrong_shapes(payload, message, delta):
    with pytest.raises(ShapeError, match=message):
        delta.dynamics.inverse(delta.kinematics.home, payload=payload)


def test_thin_rods_pass_whichever_way_they_point(delta):
    """No inertia about the axis but for rounding, which may be negative."""
    rng = np.random.default_rng(1)
    negative = 0
    for _ in range(500):
        axis, mass, length = rng.normal(size=3), 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-3, 1)
        axis /= np.linalg.norm(axis)
        rod = mass * length**2 / 12.0 * (np.eye(3) - np.outer(axis, axis))
        negative += np.linalg.eigvalsh(rod)[0] < 0.0
        np.testing.assert_array_equal(checked_payload(Inertial(mass, np.zeros(3), rod)).inertia, rod)
    assert negative > 100


def test_limits_of_bodies_pass_and_lists_are_arrays(delta):
    k, d = delta.kinematics, delta.dynamics
    for payload in (Inertial(), Inertial(2), Inertial(2.0, np.zeros(3), ROD)):
        assert d.inverse(k.home, payload=payload).ok
    listed = Inertial(2.0, [0.0, 0.0, 0.1], ROD.tolist())
    arrays = Inertial(2.0, np.array([0.0, 0.0, 0.1]), ROD)
    assert np.array_equal(d.inverse(k.home, payload=listed).effort, d.inverse(k.home, payload=arrays).effort)
