# SPDX-License-Identifier: Apache-2.0
"""Motions and efforts that are finite, and too large for the answer to be: the status says so, and there is none."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_dynamics import Dynamics
from pkm_dynamics.energy import energy
from pkm_kinematics import Status

ROBOTS = ["delta", "orthoglide", "tripod_3prs"]  # closed form, iterated, and with a motion space that turns


@pytest.fixture(params=ROBOTS)
def large(of_gallery, request: pytest.FixtureRequest) -> tuple[Dynamics, np.ndarray, np.ndarray]:
    """Dynamics, poses, and twists of which the first is too fast and the second is not."""
    k = of_gallery[request.param].kinematics
    unit = k.subspace(k.home)[:, 0]
    return Dynamics(k), np.array([k.home, k.home]), np.array([1e200 * unit, unit])


def test_motions_too_fast_for_numbers_are_invalid(large) -> None:
    dynamics, pose, twist = large
    k = dynamics.kinematics
    bias = np.array([np.zeros(6), k.engine.spaces.at_one(k.home, k.home_joints, twist[1])[1]])
    for found in (
        dynamics.inverse(pose, twist, bias),
        dynamics.inverse_derivatives(pose, twist, bias),
        dynamics.reactions(pose, twist, bias),
    ):
        assert found.status.tolist() == [Status.INVALID_INPUT, Status.CONVERGED]
        assert np.isnan(found.effort[0]).all()
        assert np.isfinite(found.effort[1]).all()
    psi = dynamics.regressor(pose, twist, bias)[0]
    assert np.isnan(psi[0]).all()
    assert np.isfinite(psi[1]).all()
    moving = dynamics.direct(pose, twist, np.zeros(len(k.actuated_names)))
    assert moving.status.tolist() == [Status.INVALID_INPUT, Status.CONVERGED]
    assert np.isnan(moving.acceleration[0]).all()
    kinetic = energy(dynamics, pose, twist)
    assert kinetic.status.tolist() == [Status.INVALID_INPUT, Status.CONVERGED]
    assert np.isnan(kinetic.kinetic[0])


def test_efforts_too_large_for_numbers_never_converge(large) -> None:
    dynamics, pose, twist = large
    effort = np.full((2, len(dynamics.kinematics.actuated_names)), 1e308)
    effort[1] = 1.0
    found = dynamics.direct(pose, np.zeros(6) * twist, effort)
    assert (found.ok == np.isfinite(found.acceleration).all(axis=1)).all()  # heavy robots may take them
    assert found.ok[1]


@pytest.mark.parametrize("size", [1.0, 1e150, 1e154, 1e200, 1e300, 1.7e308])
@pytest.mark.parametrize(("name", "axis"), [("planar_3rrr", 2), ("agile_eye", 0), ("delta", 3), ("quattro", 3)])
def test_what_is_outside_the_motion_space_stays_so_however_large(of_gallery, name: str, axis: int, size: float) -> None:
    k = of_gallery[name].kinematics
    dynamics, off, none = Dynamics(k), size * np.eye(6)[axis], np.zeros(len(k.actuated_names))
    for twist, acceleration in ((off, None), (np.zeros(6), off)):
        assert k.motion(k.home, twist, acceleration).status == Status.INVALID_INPUT
        assert dynamics.inverse(k.home, twist, acceleration).status == Status.INVALID_INPUT
        assert dynamics.inverse_derivatives(k.home, twist, acceleration).status == Status.INVALID_INPUT
    assert dynamics.direct(k.home, off, none).status == Status.INVALID_INPUT


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e153, 1e154, 1e160, 1e300, 1.7e308])
@pytest.mark.parametrize("name", ["planar_3rrr", "quattro", "delta", "hexaglide", "tripod_3prs", "tricept"])
def test_motions_converge_with_numbers_only(of_gallery, name: str, size: float) -> None:
    k = of_gallery[name].kinematics
    space = k.subspace(k.home)
    dynamics = Dynamics(k)
    for twist in size * np.vstack([space.T / np.abs(space).max(axis=0)[:, None], np.eye(6)]):
        given = np.array([twist, np.zeros(6)])
        for moving in (k.motion([k.home, k.home], given), k.motion([k.home, k.home], 0.0 * given, given)):
            known = np.isfinite(moving.velocities).all(axis=1) & np.isfinite(moving.accelerations).all(axis=1)
            assert ((moving.status == Status.CONVERGED) == known).all()
            assert known[1]
            assert known[0] or (moving.status[0] == Status.INVALID_INPUT and np.isnan(moving.velocities[0]).all())
            assert size < 1e155 or not known[0], "too large to be squared"
        efforts = dynamics.inverse([k.home, k.home], given)
        assert ((efforts.status == Status.CONVERGED) == np.isfinite(efforts.effort).all(axis=1)).all()
        assert size < 1e155 or efforts.status[0] == Status.INVALID_INPUT
