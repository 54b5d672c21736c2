# SPDX-License-Identifier: Apache-2.0
"""Efforts of redundant actuators: the same work, least norm, and bounds, judged by a search that knows no method.

The objective is convex along the free directions, so that a grid that shrinks around its best point finds the optimum.
The null space of the search is Gaussian elimination's, the Jacobian a difference quotient of the inverse kinematics.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

from pkm_description import load_mechanism
from pkm_dynamics import Distribution, DistributionError, Dynamics
from pkm_dynamics.distribution import least
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.kernels.compiled_rotations import displace

REDUNDANT = ["gough_stewart_7", "planar_redundant"]
SOME = slice(0, 200, 10)


def asked(robot):
    s = robot.states
    return s.pose[SOME], s.twist[SOME], s.acceleration[SOME]


def jacobian_by_differences(robot, pose):
    """Actuated rates per velocity in the motion space: central difference of fourth order, error 1e-10."""
    kinematics = robot.kinematics
    h = 4e-4 * robot.states.size  # beside a singularity of a limb, more is off by 1e-6
    seed = kinematics.inverse(pose).joints
    columns = []
    for axis in kinematics.subspace(pose).T:
        q = [kinematics.inverse(displace(np.array(pose), k * h * axis), seed).actuated for k in (-2, -1, 1, 2)]
        columns.append((q[0] - 8 * q[1] + 8 * q[2] - q[3]) / (12 * h))
    return np.array(columns).T


def free_directions(K):
    """Basis (m, m - n) of the efforts without work, by elimination with full pivoting."""
    m, n = K.shape
    _, _, order = scipy.linalg.qr(K.T, pivoting=True)
    fixed, free = order[:n], order[n:]
    N = np.zeros((m, m - n))
    N[free] = np.eye(m - n)
    N[fixed] = -np.linalg.solve(K[fixed].T, K[free].T)
    return N


def search(N, start, norm, weights, lower, upper):
    """Least norm of weights * (start + N z) within bounds, on a grid that shrinks around its best point."""
    r = N.shape[1]
    width = 4.0 * np.abs(start).max() / np.abs(N).max(axis=0)
    ticks = np.linspace(-1.0, 1.0, 81 if r == 1 else 21)
    offsets = np.array(list(itertools.product(ticks, repeat=r)))
    best, centre, shrunk = np.inf, np.zeros(r), 0
    while shrunk < 40:
        z = centre + offsets * width
        x = start + z @ N.T
        inside = (x >= lower - 1e-12).all(axis=1) & (x <= upper + 1e-12).all(axis=1)
        values = np.where(inside, np.linalg.norm(weights * x, norm, axis=1), np.inf)
        k = int(np.argmin(values))
        if values[k] < best:
            best, centre = values[k], z[k]
        width, shrunk = 0.6 * width, shrunk + 1
    return best


@pytest.mark.parametrize("name", REDUNDANT)
@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 8.0, np.inf])
@pytest.mark.parametrize("weighted", [False, True])
def test_least_norm_of_all_that_do_the_same_work(of_gallery, name, norm, weighted):
    robot = of_gallery[name]
    m = len(robot.kinematics.actuated_names)
    weights = np.linspace(1.0, 2.0, m) if weighted else np.ones(m)
    rule = Distribution(norm, weights if weighted else None)
    found = robot.dynamics.inverse(*asked(robot), distribution=rule)
    plain = robot.dynamics.inverse(*asked(robot), distribution=Distribution()).effort
    assert found.ok.all()
    everywhere = np.full(m, np.inf)
    for pose, tau, other in zip(asked(robot)[0], found.effort, plain, strict=True):
        work = robot.kinematics.at(pose).motion_jacobian.T @ (tau - other)
        assert np.abs(work).max() < 1e-10 * np.abs(robot.kinematics.at(pose).motion_jacobian.T @ other).max()
        N = free_directions(jacobian_by_differences(robot, pose))
        best = search(N, other, norm, weights, -everywhere, everywhere)
        # the search ends within 1e-9 of the optimum, along directions that are as good as the difference quotient
        assert np.linalg.norm(weights * tau, norm) == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("name", REDUNDANT)
@pytest.mark.parametrize("norm", [2.0, 8.0, np.inf])
def test_within_bounds(of_gallery, name, norm):
    """Bounds between the least peak and the peak of the smallest efforts, so that they are felt and can be kept."""
    robot = of_gallery[name]
    plain = robot.dynamics.inverse(*asked(robot), distribution=Distribution()).effort
    lowest = robot.dynamics.inverse(*asked(robot), distribution=Distribution(np.inf)).effort
    felt = 0
    for pose, twist, acceleration, tau, least_peak in zip(*asked(robot), plain, lowest, strict=True):
        bound = 0.5 * (np.abs(tau).max() + np.abs(least_peak).max())
        felt += bound < (1.0 - 1e-6) * np.abs(tau).max()
        rule = Distribution(norm, bounds=(-bound, bound))
        found = robot.dynamics.inverse(pose, twist, acceleration, distribution=rule)
        assert found.status == Status.CONVERGED
        assert np.abs(found.effort).max() <= bound * (1.0 + 1e-9)
        K = robot.kinematics.at(pose).motion_jacobian
        assert np.abs(K.T @ (found.effort - tau)).max() < 1e-10 * np.abs(K.T @ tau).max()
        m = len(tau)
        best = search(free_directions(K), tau, norm, np.ones(m), np.full(m, -bound), np.full(m, bound))
        assert np.linalg.norm(found.effort, norm) == pytest.approx(best, rel=1e-6)
    assert felt > 10


@pytest.mark.parametrize("free", [1, 2, 3])
@pytest.mark.parametrize("norm", [2.0, 4.0, np.inf])
def test_several_free_directions(free, norm):
    """Random Jacobians with up to three actuators more than degrees of freedom, bounds on one side only for some."""
    rng = np.random.default_rng(40 + free)
    n = 3
    for _ in range(5):
        m = n + free
        K, tau, weights = rng.normal(size=(m, n)), 50.0 * rng.normal(size=m), rng.uniform(0.5, 2.0, m)
        feasible = tau + free_directions(K) @ rng.normal(size=free) * 20.0
        lower = np.where(rng.random(m) < 0.7, feasible - rng.uniform(0, 10, m), -np.inf)
        upper = np.where(rng.random(m) < 0.7, feasible + rng.uniform(0, 10, m), np.inf)
        found = least(K, tau, norm, weights, lower, upper)
        assert found is not None
        size = np.abs(tau).max()
        assert (found >= lower - 1e-8 * size).all()
        assert (found <= upper + 1e-8 * size).all()
        assert np.abs(K.T @ (found - tau)).max() < 1e-12 * size * np.abs(K).max() * m
        value = np.linalg.norm(weights * found, norm)
        # nothing that the search meets within the bounds is better
        best = search(free_directions(K), feasible, norm, weights, lower, upper)
        assert value <= best * (1.0 + 1e-6)


def test_the_least_peak_is_unique():
    """Where the peak leaves others free they are the smallest: actuator 1 works alone, 2 and 3 share."""
    K = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    nothing = np.full(3, np.inf)
    found = least(K, np.array([10.0, 4.0, 0.0]), np.inf, np.ones(3), -nothing, nothing)
    assert found == pytest.approx([10.0, 2.0, 2.0], abs=1e-8)


def test_peaks_are_ordered(of_gallery):
    """Dasgupta's choices: minimax has the least peak, the pseudo-inverse the least squares, the 8-norm is between."""
    robot = of_gallery["gough_stewart_7"]
    minimax, eight, two = (
        robot.dynamics.inverse(*asked(robot), distribution=Distribution(p)).effort for p in (np.inf, 8.0, 2.0)
    )
    peak = [np.abs(x).max(axis=1) for x in (minimax, eight, two)]
    assert (peak[0] <= np.minimum(peak[1], peak[2]) * (1 + 1e-9)).all()
    assert peak[0].mean() < peak[1].mean() < peak[2].mean()  # in the mean: the 8-norm's peak may be above now and then
    assert peak[0].mean() < 0.95 * peak[2].mean()  # it is worth something
    squares = [np.linalg.norm(x, axis=1) for x in (minimax, eight, two)]
    assert (squares[2] <= np.minimum(squares[0], squares[1]) * (1 + 1e-9)).all()
    assert two == pytest.approx(robot.dynamics.inverse(*asked(robot), distribution=Distribution()).effort, rel=1e-9)


def test_an_actuator_has_failed(of_gallery):
    """With the seventh leg dead, the six others do what the six equations say."""
    robot = of_gallery["gough_stewart_7"]
    limits = np.full(7, np.inf)
    limits[6] = 0.0
    found = robot.dynamics.inverse(*asked(robot), distribution=Distribution(bounds=(-limits, limits)))
    plain = robot.dynamics.inverse(*asked(robot), distribution=Distribution()).effort
    for pose, tau, other in zip(asked(robot)[0], found.effort, plain, strict=True):
        K = robot.kinematics.at(pose).motion_jacobian
        alone = np.linalg.solve(K[:6].T, K.T @ other)
        assert tau[:6] == pytest.approx(alone, abs=1e-8 * np.abs(alone).max())
        assert abs(tau[6]) < 1e-8 * np.abs(alone).max()


def test_bounds_that_cannot_be_kept(of_gallery):
    """Just below the least peak nothing is answered; the limits of the description are the bounds on request."""
    for name in REDUNDANT:
        robot = of_gallery[name]
        lowest = robot.dynamics.inverse(*asked(robot), distribution=Distribution(np.inf)).effort
        for k, (pose, twist, acceleration) in enumerate(zip(*asked(robot), strict=True)):
            peak = np.abs(lowest[k]).max()
            for norm in (1.0, 2.0, 4.0, np.inf):
                rule = Distribution(norm, bounds=(-0.999 * peak, 0.999 * peak))
                found = robot.dynamics.inverse(pose, twist, acceleration, distribution=rule)
                assert found.status == Status.EFFORT_LIMIT
                assert np.isnan(found.effort).all()
        limits = np.array(
            [robot.dynamics.mechanism.joint_named[n].limits.effort for n in robot.kinematics.actuated_names]
        )
        bounded = robot.dynamics.inverse(*asked(robot), distribution=Distribution(bounds="limits"))
        possible = (np.abs(lowest) <= limits).all(axis=1)
        assert (bounded.ok >= possible).all()
        assert (np.abs(bounded.effort[bounded.ok]) <= limits * (1 + 1e-9)).all()


def test_without_redundancy_bounds_are_only_checked(delta):
    pose, twist, acceleration = (x[:20] for x in asked(delta))
    plain = delta.dynamics.inverse(pose, twist, acceleration).effort
    peak = np.abs(plain).max(axis=1)
    middle = np.sort(peak)[10]
    found = delta.dynamics.inverse(pose, twist, acceleration, distribution=Distribution(bounds=(-middle, middle)))
    assert (found.ok == (peak <= middle)).all()
    assert (found.effort[found.ok] == plain[found.ok]).all()


def test_strong_actuators_take_more(of_gallery):
    """One slider with a tenth of the others' limit: weights by limits are its efforts counted tenfold."""
    robot = of_gallery["planar_redundant"]
    text = robot.kinematics.mechanism.urdf
    weak = text.replace('effort="100"', 'effort="10"', 1)
    assert weak.count('effort="10"') == 1
    dynamics = Dynamics(load_mechanism(weak), friction=False)
    limits = [dynamics.mechanism.joint_named[n].limits.effort for n in dynamics.kinematics.actuated_names]
    assert sorted(limits) == [10.0, 100.0, 100.0]
    by_limits = dynamics.inverse(*asked(robot), distribution=Distribution(weights="limits")).effort
    by_hand = dynamics.inverse(*asked(robot), distribution=Distribution(weights=100.0 / np.array(limits))).effort
    plain = dynamics.inverse(*asked(robot), distribution=Distribution()).effort
    assert by_limits == pytest.approx(by_hand, abs=1e-12 * np.abs(plain).max())
    weakest = int(np.argmin(limits))
    assert np.abs(by_limits[:, weakest]).sum() < 0.2 * np.abs(plain[:, weakest]).sum()


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Distribution(0.5), "norm: expected a number of at least 1, got 0.5"),
        (Distribution(float("nan")), "norm"),
        (Distribution(weights=[1.0, 2.0]), "weights: expected one number or 3"),
        (Distribution(weights=[1.0, 0.0, 1.0]), "weights: expected positive numbers"),
        (Distribution(bounds=([0.0, 1.0, 0.0], [1.0, 0.5, 1.0])), "limb2_slider"),
        (Distribution(bounds=(0.0, float("nan"))), "bounds"),
    ],
)
def test_a_distribution_that_means_nothing(of_gallery, rule, words):
    robot = of_gallery["planar_redundant"]
    with pytest.raises(DistributionError, match=words):
        robot.dynamics.inverse(robot.kinematics.home, distribution=rule)


def test_cables_stay_taut_where_forces_can_close(of_gallery):
    """Tension is minus the effort of a leg. Known of wire-driven robots: t = A+ f + N beta, all of it between bounds.

    Where a positive null vector exists, any load can be held with taut cables; beyond the frame none exists, and the
    weight of the platform cannot.
    """
    robot = of_gallery["cable_8"]
    least_tension, most = 20.0, 500.0
    rule = Distribution(bounds=(-most, -least_tension))
    inside = robot.kinematics.engine.inputs.poses([[0.0] * 6, [0.4, -0.3, 0.2, 0.2, 0.1, -0.1]])[0]
    for pose in inside:
        A = -robot.kinematics.at(pose).inverse_jacobian.T  # wrench on the platform per tension
        positive = scipy.optimize.linprog(np.ones(8), A_eq=A, b_eq=np.zeros(6), bounds=(1.0, None))
        assert positive.success
        plain = robot.dynamics.inverse(pose, distribution=Distribution()).effort
        held = robot.dynamics.inverse(pose, distribution=rule)
        assert held.ok
        tension = -held.effort
        assert tension.min() == pytest.approx(
            least_tension, abs=1e-6
        )  # the least norm lets some cable hang loose as it may
        assert tension.max() <= most
        N = scipy.linalg.null_space(A)
        left = tension + plain - N @ (N.T @ (tension + plain))
        assert np.abs(left).max() < 1e-9 * most
    above = np.array([0.0, 0.0, 1.6, 0.0, 0.0, 0.0, 1.0])
    A = -robot.kinematics.at(above).inverse_jacobian.T
    assert not scipy.optimize.linprog(np.ones(8), A_eq=A, b_eq=np.zeros(6), bounds=(1.0, None)).success
    assert robot.dynamics.inverse(above, distribution=rule).status == Status.EFFORT_LIMIT


def test_limits_of_the_description_are_of_one_sign_for_cables() -> None:
    dynamics = Dynamics(Kinematics(load_mechanism("cable_8")))
    least, most = dynamics.kinematics.mechanism.effort_range
    assert dynamics.kinematics.mechanism.one_way_actuators.all()
    effort = dynamics.inverse(dynamics.kinematics.home, distribution=Distribution(bounds="limits")).effort
    assert ((effort >= least) & (effort <= most)).all()
    free = dynamics.inverse(dynamics.kinematics.home, distribution=Distribution()).effort
    assert (np.sign(free) != np.sign(least + most)).any()  # least squares alone would push
