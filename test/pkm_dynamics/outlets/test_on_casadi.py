# SPDX-License-Identifier: Apache-2.0
"""Robots in CasADi: Python's answers, exact derivatives and sparsity, and an optimum found with them."""

from __future__ import annotations

import runpy
from pathlib import Path
from time import process_time

import casadi
import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.export_c.recorded_function import ExportError
from pkm_dynamics.outlets.on_casadi import CasadiRobot, on_casadi
from pkm_kinematics.kernels.compiled_rotations import displace

from .judge import compare

ROOT = Path(__file__).parents[3]
FEW = ("delta", "planar_redundant", "agile_eye", "gough_stewart", "cable_8", "tricept", "wrist_3ruu", "carpal_wrist")


def judged(dynamics: Dynamics, mode: int) -> None:
    found = on_casadi(dynamics, mode)

    def call(name: str, *rows: np.ndarray) -> np.ndarray:
        result, valid = (np.array(x) for x in getattr(found, name)(*(row.T for row in rows)))
        per_state = np.stack(np.hsplit(result, len(rows[0])))  # matrices come side by side
        return np.where(valid.T[:, :, None] > 0, per_state, np.nan)

    compare(dynamics, mode, call)


@pytest.mark.by_day("planar_redundant", "carpal_wrist")
@pytest.mark.parametrize("name", FEW)
def test_answers_are_those_of_python(name: str) -> None:
    judged(Dynamics(load_mechanism(name)), 0)


@pytest.mark.slow
def test_answers_of_every_robot(robot_name: str) -> None:
    dynamics = Dynamics(load_mechanism(robot_name))
    for mode in {0, dynamics.kinematics.n_modes - 1}:
        judged(dynamics, mode)


def derivative(found: CasadiRobot, name: str, by: int, *given: np.ndarray) -> np.ndarray:
    """Of the first result by an argument."""
    function = getattr(found, name)
    symbols = [casadi.MX.sym(function.name_in(k), function.size_in(k)) for k in range(function.n_in())]
    jacobian = casadi.jacobian(function(*symbols)[0], symbols[by])
    return np.array(casadi.Function("derivative", symbols, [jacobian])(*given))


@pytest.mark.by_day("quattro")
@pytest.mark.parametrize("name", ["gough_stewart", "orthoglide", "quattro"])
def test_derivatives_are_those_of_complex_steps(name: str) -> None:
    """Through the iterated limbs of a Quattro as well."""
    dynamics = Dynamics(load_mechanism(name))
    S, found, size = dynamics.kinematics.task.subspace, on_casadi(dynamics), dynamics.kinematics.engine.size
    n, shift = S.shape[1], np.repeat([0.05 * size, 0.05], 3)
    home = displace(np.array(dynamics.kinematics.home), S @ np.linspace(0.5, 1.0, n) * shift)
    twist, acceleration = S @ np.linspace(0.3, 0.5, n), S @ np.linspace(-1.0, 2.0, n)
    wanted = dynamics.inverse_derivatives(home, twist, acceleration)
    x, y, z, w = home[3:]
    turn = 0.5 * np.array([[w, z, -y], [-z, w, x], [y, -x, w], [-x, -y, -z]])
    step = np.block([[np.eye(3), np.zeros((3, 3))], [np.zeros((4, 3)), turn]]) @ S
    for by, change, other in ((0, step, wanted.pose), (1, S, wanted.twist), (2, S, wanted.acceleration)):
        one = derivative(found, "inverse_dynamics", by, home, twist, acceleration) @ change
        np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-9 * np.abs(other).max())


@pytest.mark.slow
def test_limbs_begin_where_they_were() -> None:
    """From joints at a pose nearby, answers and derivatives are those from home; from elsewhere there are none."""
    dynamics = Dynamics(load_mechanism("wrist_3ruu"))
    from_home, warm, k = on_casadi(dynamics), on_casadi(dynamics, warm_start=True), dynamics.kinematics
    pose = np.array(displace(np.array(k.home), 0.1 * k.task.subspace.sum(axis=1)))
    near = k.inverse(displace(pose, 0.005 * k.task.subspace.sum(axis=1))).joints
    still, drives = np.zeros(6), casadi.MX.sym("pose", 7)
    for one, more in ((warm.inverse, (near,)), (from_home.inverse, ())):
        found, valid = one(pose, *more)
        assert valid == 1
        np.testing.assert_allclose(np.array(found).ravel(), k.inverse(pose).actuated, rtol=0.0, atol=1e-12)
    effort, valid = warm.inverse_dynamics(pose, still, still, near)
    np.testing.assert_allclose(effort, from_home.inverse_dynamics(pose, still, still)[0], rtol=0.0, atol=1e-11)
    both = [
        casadi.Function("J", [drives], [casadi.jacobian(call(drives)[0], drives)])(pose)
        for call in (lambda x: warm.inverse(x, near), from_home.inverse)
    ]
    np.testing.assert_allclose(*map(np.array, both), rtol=0.0, atol=1e-9)
    assert warm.inverse(pose, near + 1.0)[1] == 0


@pytest.mark.slow
def test_second_derivatives_through_iterated_limbs() -> None:
    """Of joints and efforts, against differences of first ones."""
    dynamics = Dynamics(load_mechanism("irsbot2"))
    found, pose, h = on_casadi(dynamics), casadi.MX.sym("pose", 7), 1e-6
    number = casadi.sum1(found.joints(pose)[0]) + found.gravity(pose)[0][0] ** 2
    hessian, gradient = casadi.hessian(number, pose)
    both = casadi.Function("both", [pose], [hessian, gradient])
    at = np.array(dynamics.kinematics.home) + 0.02 * np.eye(7)[0]
    rows = [(np.array(both(at + h * e)[1]) - np.array(both(at - h * e)[1])) / (2.0 * h) for e in np.eye(7)]
    np.testing.assert_allclose(both(at)[0], np.hstack(rows), rtol=0.0, atol=1e-6 * np.abs(rows).max())
    assert np.abs(rows).max() > 1.0


def test_derivatives_where_the_motion_space_turns() -> None:
    """Of a Tricept's drives by the pose along its motion space: the rates of its Jacobian."""
    dynamics = Dynamics(load_mechanism("tricept"))
    found, home = on_casadi(dynamics), np.array(dynamics.kinematics.home)
    S, J = (np.array(f(home)[0]) for f in (found.motion_space, found.jacobian))
    x, y, z, w = home[3:]
    turn = 0.5 * np.array([[w, z, -y], [-z, w, x], [y, -x, w], [-x, -y, -z]])
    step = np.block([[np.eye(3), np.zeros((3, 3))], [np.zeros((4, 3)), turn]]) @ S
    np.testing.assert_allclose(derivative(found, "inverse", 0, home) @ step, J @ S, atol=1e-10 * np.abs(J).max())


def test_sparsity_is_exact() -> None:
    """An Orthoglide does not turn: no orientation counts. Its accelerations count for the efforts by three numbers."""
    found = on_casadi(Dynamics(load_mechanism("orthoglide")))
    sparsity = found.inverse.jac_sparsity(0, 0)
    assert (sparsity.shape, sparsity.nnz()) == ((3, 7), 9)
    assert set(found.inverse_dynamics.jac_sparsity(0, 2).get_triplet()[1]) == {0, 1, 2}


@pytest.mark.parametrize("name", ["delta", "quattro"])
def test_a_pose_out_of_reach_is_not_valid(name: str) -> None:
    dynamics = Dynamics(load_mechanism(name))
    found, home = on_casadi(dynamics), np.array(dynamics.kinematics.home)
    assert float(found.gravity(home)[1]) == 1.0
    for pose in (home + np.eye(7)[2], 2.0 * home, home * np.nan):
        assert float(found.gravity(pose)[1]) == 0.0
    assert [float(found.inverse(pose)[-1]) for pose in (home, home * np.nan)] == [1.0, 0.0]


def test_what_cannot_be_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExportError, match=r"griffis_duffy: gravity: singular near home"):
        _ = on_casadi(Dynamics(load_mechanism("griffis_duffy"))).gravity
    monkeypatch.setattr("pkm_dynamics.outlets.recorded_functions.MOST", 1)
    with pytest.raises(ExportError, match=r"cable_8: gravity: drives that only pull.* more than 1 are redundant"):
        _ = on_casadi(Dynamics(load_mechanism("cable_8"))).gravity


def test_the_fastest_pick_and_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The example's optimum has a drive at its limit all the time; two seconds of a processor are enough for it."""
    main = runpy.run_path(str(ROOT / "examples" / "13_time_optimal.py"))["main"]
    before = process_time()
    main(str(tmp_path / "picture.png"))
    assert process_time() - before < 4.0  # picture included
    assert capsys.readouterr().out == "0.1906 s with at most 200.0 N m\n"
