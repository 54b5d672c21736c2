# SPDX-License-Identifier: Apache-2.0
"""Dynamics of robots with redundant joints against Pinocchio's tree and constraints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
import pytest

from bench.engines.pinocchio_model import PinocchioRobot
from pkm_description import load_mechanism
from pkm_description.mechanism import Inertial, frozen
from pkm_dynamics import Distribution, Dynamics
from pkm_dynamics.export_c.recorded_robot import RecordedRobot
from pkm_dynamics.natural_frequencies import natural_frequencies
from pkm_dynamics.observed_legs import ObservedLegs
from pkm_dynamics.simulation import simulate
from pkm_dynamics.weight import actuator_mass_matrix, free_inertia
from pkm_kinematics import Configuration, Kinematics, Status
from pkm_runtime.errors import PkmError
from test.oracles.redundant_robots import CASES, REDUNDANT, planar_3prrr

STATES = 12
CLOSE = 1e-9  # relative to the largest of a state; seen: 1e-14 to 1e-12


@dataclass(frozen=True, eq=False)
class Moved:
    """A robot without friction in random motion, its efforts under random wrenches, and its judge."""

    dynamics: Dynamics
    judge: PinocchioRobot
    at: Configuration
    rates: np.ndarray  # (n, 6 + r)
    accelerations: np.ndarray
    wrenches: np.ndarray
    efforts: np.ndarray
    q: np.ndarray  # coordinates, velocities and accelerations of the judge
    v: np.ndarray
    vdot: np.ndarray


@pytest.fixture(scope="module", params=CASES)
def moved(request) -> Moved:
    mechanism = load_mechanism(REDUNDANT[request.param][0]())
    k = Kinematics(mechanism)
    dynamics, judge = Dynamics(k, friction=False), PinocchioRobot(mechanism)
    rng, r, S = np.random.default_rng(2), len(k.redundant_names), k.task.subspace
    poses = np.tile(k.home, (STATES, 1))
    poses[:, :3] += 0.04 * rng.uniform(-1.0, 1.0, (STATES, S.shape[1])) @ S[:3].T
    redundant = k.home_joints[k.engine.redundant_column] + 0.08 * rng.uniform(-1.0, 1.0, (STATES, r))

    def some() -> np.ndarray:
        return np.hstack([rng.uniform(-1, 1, (STATES, S.shape[1])) @ S.T, rng.uniform(-1, 1, (STATES, r))])

    at, rates, accelerations = k.inverse(np.hstack([poses, redundant])), some(), 5.0 * some()
    wrenches = rng.uniform(-20.0, 20.0, (STATES, 6))
    motion = at.motion(rates, accelerations)
    found = dynamics.inverse(at, rates, accelerations, wrench=wrenches)
    assert motion.ok.all()
    assert found.ok.all()
    assert np.abs(found.condition - at.drive_condition).max() < 1e-9
    q, v, vdot = (np.empty((STATES, judge.model.nv)) for _ in range(3))
    for i in range(STATES):
        q[i] = judge.coordinates(k.joint_names, at.joints[i])
        actuated = motion.actuated_velocities[i], motion.actuated_accelerations[i]
        v[i], vdot[i] = judge.rates_from(q[i], judge.actuated, *actuated)
    return Moved(dynamics, judge, at, rates, accelerations, wrenches, found.effort, q, v, vdot)


def error(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def test_efforts(moved: Moved) -> None:
    for i in range(STATES):
        expected = moved.judge.inverse_dynamics(moved.q[i], moved.v[i], moved.vdot[i], moved.wrenches[i])
        assert error(moved.efforts[i], expected) < CLOSE


def test_accelerations(moved: Moved) -> None:
    k, rng = moved.dynamics.kinematics, np.random.default_rng(3)
    efforts = moved.efforts + np.abs(moved.efforts).max() * rng.uniform(-1.0, 1.0, moved.efforts.shape)
    found = moved.dynamics.direct(moved.at, moved.rates, efforts, wrench=moved.wrenches)
    assert found.ok.all()
    redundant = [moved.judge.column[name] for name in k.redundant_names]
    for i in range(STATES):
        platform, vdot = moved.judge.direct_dynamics(moved.q[i], moved.v[i], efforts[i], moved.wrenches[i])
        assert error(found.acceleration[i], np.append(platform, vdot[redundant])) < CLOSE


def test_direct_dynamics_undoes_inverse_dynamics_with_friction_and_payload(moved: Moved) -> None:
    dynamics = Dynamics(moved.dynamics.kinematics)
    load = Inertial(2.5, frozen([0.03, -0.02, 0.08]), frozen([[0.02, 1e-3, 0], [1e-3, 0.03, 2e-3], [0, 2e-3, 0.04]]))
    effort = dynamics.inverse(moved.at, moved.rates, moved.accelerations, payload=load).effort
    assert error(moved.efforts, effort) > 1e-3
    back = dynamics.direct(moved.at, moved.rates, effort, payload=load)
    assert error(back.acceleration, moved.accelerations) < CLOSE


def test_payload(moved: Moved) -> None:
    load = Inertial(2.5, frozen([0.03, -0.02, 0.08]), frozen([[0.02, 1e-3, 0], [1e-3, 0.03, 2e-3], [0, 2e-3, 0.04]]))
    of_judge = pin.Inertia(load.mass, np.array(load.com), np.array(load.inertia))
    loaded = PinocchioRobot(moved.dynamics.mechanism, of_judge)
    found = moved.dynamics.inverse(moved.at, moved.rates, moved.accelerations, payload=load).effort
    for i in range(STATES):
        assert error(found[i], loaded.inverse_dynamics(moved.q[i], moved.v[i], moved.vdot[i])) < CLOSE


def test_mass_matrix_and_coriolis_forces(moved: Moved) -> None:
    """In the coordinates of the motion Jacobian: energy, and what is left of the efforts."""
    dynamics, k = moved.dynamics, moved.dynamics.kinematics
    one = moved.at.rows([0], ())
    M, K = dynamics.mass_matrix(one), one.motion_jacobian
    x = np.append(np.linalg.pinv(k.task.subspace) @ moved.rates[0, :6], moved.rates[0, 6:])
    energy = 0.5 * moved.v[0] @ moved.judge.mass_matrix(moved.q[0]) @ moved.v[0]
    assert error(M, M.T) < CLOSE
    assert abs(0.5 * x @ M @ x - energy) < CLOSE * energy
    a = np.append(np.linalg.pinv(k.task.subspace) @ moved.accelerations[0, :6], moved.accelerations[0, 6:])
    efforts = dynamics.inverse(one, moved.rates[0], moved.accelerations[0]).effort
    forces = M @ a + dynamics.coriolis(one, moved.rates[0]) + K.T @ dynamics.gravity(one).effort
    assert error(K.T @ efforts, forces) < CLOSE


def test_what_the_actuators_feel(moved: Moved) -> None:
    k, home = moved.dynamics.kinematics, moved.dynamics.kinematics.home
    mass = actuator_mass_matrix(moved.dynamics, home)
    n = k.engine.freedoms
    one = k.at_one(home)
    push = moved.dynamics.direct(one, np.zeros(6), np.ones(n)).acceleration
    rest = moved.dynamics.direct(one, np.zeros(6), np.zeros(n)).acceleration
    felt = one.motion(np.zeros(6), push - rest).actuated_accelerations
    assert error(mass @ felt, np.ones(n)) < CLOSE
    assert error(free_inertia(moved.dynamics, home), 1.0 / np.diag(np.linalg.inv(mass))) < CLOSE


def test_bad_rows_have_a_status(moved: Moved) -> None:
    rates = moved.rates.copy()
    rates[1, -1] = np.nan
    found = moved.dynamics.inverse(moved.at, rates, moved.accelerations)
    assert found.status.tolist() == [0, int(Status.INVALID_INPUT), *([0] * (STATES - 2))]
    assert np.isnan(found.effort[1]).all()
    assert np.isfinite(np.delete(found.effort, 1, axis=0)).all()


def test_what_is_not_known_of_them_is_refused_by_name() -> None:
    dynamics = Dynamics(load_mechanism(planar_3prrr(locked=False)))
    home = dynamics.kinematics.home
    for call in (
        lambda: dynamics.regressor(home),
        lambda: dynamics.reactions(home),
        lambda: dynamics.inverse_derivatives(home),
        dynamics.lean_inverse,
        dynamics.lean_direct,
        lambda: natural_frequencies(dynamics, home, 1e4),
        lambda: ObservedLegs(dynamics),
        lambda: RecordedRobot(dynamics),
        lambda: simulate(dynamics, home, np.zeros(6), [0.0, 0.1]),
    ):
        with pytest.raises(PkmError, match="redundant joints: limb1_slider, limb2_slider, limb3_slider"):
            call()
    with pytest.raises(PkmError, match="no efforts to choose"):
        dynamics.inverse(home, distribution=Distribution(bounds=(-np.ones(6), np.ones(6))))
