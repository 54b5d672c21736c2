# SPDX-License-Identifier: Apache-2.0
"""The equations of motion in the actuators: those in the platform where both are regular, and finite beyond."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.actuator_dynamics import ActuatorDynamics
from pkm_dynamics.linear_form.random_motions import random_motions
from pkm_kinematics import Status
from pkm_runtime.errors import PkmError

PAYLOAD = Inertial(mass=0.7, com=np.array([0.01, -0.02, 0.03]), inertia=np.diag([1e-3, 2e-3, 2.5e-3]))


@pytest.mark.parametrize("payload", [None, PAYLOAD])
@pytest.mark.parametrize("name", ["five_bar", "planar_3rrr", "delta", "gough_stewart", "agile_eye", "linear_delta"])
def test_motions_and_efforts_are_those_of_the_platform(of_gallery, name: str, payload: Inertial | None) -> None:
    k, dynamics = of_gallery[name].kinematics, of_gallery[name].dynamics
    at = ActuatorDynamics(dynamics, payload)
    some = random_motions(k, 4)
    for pose, twist, acceleration in zip(some.pose, some.twist, some.acceleration, strict=True):
        motion = k.motion(pose, twist, acceleration)
        effort = dynamics.inverse(pose, twist, acceleration, payload=payload).effort
        assert at.place(pose, motion.joints) is Status.CONVERGED
        assert at.move(motion.actuated_velocities, motion.actuated_accelerations) is Status.CONVERGED
        np.testing.assert_allclose(at.joints, motion.joints, atol=1e-9)
        np.testing.assert_allclose(at.joint_velocities, motion.velocities, atol=1e-9)
        np.testing.assert_allclose(at.pose, pose, atol=1e-9)
        np.testing.assert_allclose(at.twist, twist, atol=1e-9)
        np.testing.assert_allclose(at.acceleration, acceleration, atol=1e-8)
        size = np.abs(effort).max()
        np.testing.assert_allclose(at.efforts(motion.actuated_accelerations), effort, atol=1e-9 * size)
        wanted = motion.actuated_accelerations
        np.testing.assert_allclose(at.accelerations(effort), wanted, atol=1e-9 * np.abs(wanted).max())
        np.testing.assert_allclose(at.weight(), dynamics.gravity(pose, payload=payload).effort, atol=1e-9 * size)


def stretched(k, dynamics: Dynamics) -> ActuatorDynamics:
    """A five-bar whose left limb is stretched out: its elbow at zero, found by halving the way to the other mode."""
    at = ActuatorDynamics(dynamics)
    elbow = k.joint_names.index("left_elbow")
    start = np.array(k.inverse(k.home, mode=0).actuated)
    way = np.array(k.inverse(k.home, mode=1).actuated) - start
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        assert at.place(np.array(k.home), np.array(k.home_joints)) is Status.CONVERGED
        assert at.follow(start + middle * way) is Status.CONVERGED
        same = at.joints[elbow] * k.home_joints[elbow] > 0.0
        low, high = (middle, high) if same else (low, middle)
    assert abs(at.joints[elbow]) < 1e-9
    return at


def test_efforts_are_finite_where_a_limb_is_stretched(of_gallery) -> None:
    """Where inverse dynamics has no answer; and they are the limit of those on either side."""
    k, dynamics = of_gallery["five_bar"].kinematics, of_gallery["five_bar"].dynamics
    at = stretched(k, dynamics)
    there, rates = at.actuated.copy(), np.array([0.7, -0.4])

    def effort(by: float) -> np.ndarray:
        assert at.follow(there + by * rates) is Status.CONVERGED
        assert at.move(rates) is Status.CONVERGED
        return at.efforts(np.array([1.0, 2.0]))

    before, on, after = effort(-1e-5), effort(0.0), effort(1e-5)
    assert np.isfinite(on).all()
    assert np.abs(on).max() > 1e-2
    np.testing.assert_allclose(on, 0.5 * (before + after), atol=1e-6)


def test_a_free_swing_through_a_stretched_limb_keeps_its_energy(of_gallery) -> None:
    k = of_gallery["five_bar"].kinematics
    dynamics = Dynamics(k, friction=False)

    def drift(h: float) -> float:
        at = stretched(k, dynamics)
        at.move(np.array([3.0, 1.0]))
        energies = []
        for _ in range(round(0.1 / h)):
            rest, u = at.weight(), at.velocities.copy()
            energies.append(0.5 * float(u @ (at.efforts(np.zeros(2) + u) - at.efforts(np.zeros(2)))))
            assert np.abs(rest).max() < 1e-12  # it lies flat
            assert at.step(np.zeros(2), h) is Status.CONVERGED
        return float(np.ptp(energies)) / energies[0]

    coarse, fine = drift(2e-3), drift(1e-3)
    assert coarse < 1e-4
    assert fine < coarse / 8.0  # order four: 16 in the limit


def test_a_type_2_singularity_ends_the_way_and_leaves_the_state(of_gallery) -> None:
    k, dynamics = of_gallery["five_bar"].kinematics, of_gallery["five_bar"].dynamics
    at = ActuatorDynamics(dynamics)
    before = at.joints.copy()
    both = np.array(k.inverse(k.home, mode=3).actuated)  # both limbs at once: on the way they lose hold
    assert at.follow(both) is Status.SINGULAR
    np.testing.assert_array_equal(at.joints, before)
    assert at.follow(np.array([np.nan, 0.0])) is Status.INVALID_INPUT


def test_redundant_actuators_are_no_coordinates(of_gallery) -> None:
    with pytest.raises(PkmError, match="as many"):
        ActuatorDynamics(of_gallery["gough_stewart_7"].dynamics)
