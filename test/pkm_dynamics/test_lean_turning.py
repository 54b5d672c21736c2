# SPDX-License-Identifier: Apache-2.0
"""Lean calls where the motion space turns with the pose give what the convenient ones give."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from pkm_description.mechanism import Array
from pkm_dynamics import lean_calls
from pkm_dynamics.actuator_dynamics import ActuatorDynamics
from pkm_kinematics import lean_kinematics
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_kinematics.status import Status
from test.conftest import KINDS

TURNING = KINDS["turning space"]
SAME = 1e-10  # of the largest: efforts of two formulations
WALKS, STEPS = 5, 500
CLOSE = 1e-11  # of the largest, or of what is usual: efforts of straight lines and of the graph. Seen: 5e-12, capaman


def motions(k, n: int) -> Array:
    """Possible motions (n, 25) beside home, each pushed from outside."""
    random = np.random.default_rng(5)
    rows = np.zeros((n, 25))
    for row in rows:
        target = np.array(k.home)
        target[:3] += 0.02 * k.characteristic_length * random.normal(size=3)
        pose = k.nearest(target).pose
        S = np.asarray(k.subspace(pose))
        twist = S @ (0.3 * random.normal(size=S.shape[1]))
        bias = k.engine.spaces.at(pose[None], k.modes.choose(pose[None]), twist[None])[1][0]
        row[:] = np.concatenate([pose, twist, bias + S @ random.normal(size=S.shape[1]), random.normal(size=6)])
    return rows


@pytest.mark.by_day("carpal_wrist")
@pytest.mark.parametrize("name", TURNING)
def test_efforts_and_accelerations(of_gallery, name: str) -> None:
    k, d = of_gallery[name].kinematics, of_gallery[name].dynamics
    inverse, direct = d.lean_inverse(), d.lean_direct()
    effort, acceleration = np.empty(len(k.actuated_names)), np.empty(6)
    for motion in motions(k, 4):
        pose, twist, wanted, wrench = motion[:7], motion[7:13], motion[13:19], motion[19:]
        assert inverse(motion, effort) == Status.CONVERGED
        expected = d.inverse(pose, twist, wanted, wrench).effort
        np.testing.assert_allclose(effort, expected, rtol=0.0, atol=SAME * np.abs(expected).max())
        motion[13:19] = 0.0
        assert direct(motion, effort, acceleration) == Status.CONVERGED
        expected = d.direct(pose, twist, effort, wrench).acceleration
        np.testing.assert_allclose(acceleration, expected, rtol=0.0, atol=SAME * np.abs(expected).max())


def walk(k, rng: np.random.Generator, n: int) -> Iterator[Array]:
    """Poses (7,) of a walk of the actuators from home at random, in n steps of a control period, as far as it leads."""
    home = np.array(k.home_joints)[k.engine.actuated_column]
    unit = np.where(k.engine.actuated_turning, 1.0, k.engine.size)
    pose, track, way, at = np.array(k.home), k.lean_track(), rng.normal(size=len(home)), np.zeros(len(home))
    for _ in range(n):
        if np.abs(at).max() > 0.6 or rng.random() < 0.02:
            way = rng.normal(size=len(at)) - 3.0 * at
        at += 0.004 * way / np.linalg.norm(way)
        if track(home + unit * at, pose)[0] != Status.CONVERGED:
            return
        yield pose


def counting(left: list[int]):
    """In place of `with_fallback`, counts in `left` the calls that the code leaves to the general one."""

    def with_fallback(quick, general, code):
        def call(*arguments, _kept=code):
            status = quick(*arguments)
            left[0] += status < 0
            return general(*arguments) if status < 0 else status

        return call

    return with_fallback


@pytest.mark.by_day("tripod_3prs")
@pytest.mark.parametrize("name", TURNING)
def test_straight_lines_agree_with_the_graph(of_gallery, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Along ways from home to where these end, for twists and accelerations that miss the motion space, too."""
    k, d = of_gallery[name].kinematics, of_gallery[name].dynamics
    m, rng, left, errors, sizes = len(k.actuated_names), np.random.default_rng(1), [0], [], []
    expected, found, q = (np.zeros(m), np.zeros(6)), (np.zeros(m), np.zeros(6)), np.zeros((2, m))
    for _ in range(WALKS):
        for module in (lean_calls, lean_kinematics):
            monkeypatch.setattr(module, "with_fallback", lambda quick, general, code: general)
        positions, inverse, direct = k.lean_inverse(), d.lean_inverse(), d.lean_direct()
        for module in (lean_calls, lean_kinematics):
            monkeypatch.setattr(module, "with_fallback", counting(left))
        straight_positions, straight_inverse, straight_direct = k.lean_inverse(), d.lean_inverse(), d.lean_direct()
        for pose in walk(k, rng, STEPS):
            motion, effort = np.concatenate([pose, rng.normal(size=18)]), 10.0 * rng.normal(size=m)
            status = inverse(motion, expected[0])
            assert straight_inverse(motion, found[0]) == status
            if status != Status.CONVERGED:
                break
            assert positions(pose, q[0]) == straight_positions(pose, q[1]) == status
            np.testing.assert_allclose(*q, atol=CLOSE)
            motion[13:19] = 0.0
            assert direct(motion, effort, expected[1]) == straight_direct(motion, effort, found[1]) == status
            errors.append([np.abs(a - b).max() for a, b in zip(expected, found, strict=True)])
            sizes.append([np.abs(a).max() for a in expected])
    assert len(errors) > 0.2 * WALKS * STEPS
    assert left[0] < 0.2 * len(errors)  # beside singularities inside CaPaMan's limbs, one in twenty
    assert (np.array(errors) / np.maximum(sizes, np.median(sizes, axis=0))).max() < CLOSE


@pytest.mark.by_day("carpal_wrist", "two_tpr")
@pytest.mark.parametrize("name", TURNING)
def test_steps(of_gallery, name: str) -> None:
    """A step of the platform's state is a step in the actuators, by the same method."""
    k, d = of_gallery[name].kinematics, of_gallery[name].dynamics
    step, robot, h = d.lean_step(1e-3), ActuatorDynamics(d), 1e-3
    effort, acceleration = 1.2 * d.gravity(k.home).effort + 0.1, np.empty(6)
    motion = np.zeros(25)
    motion[:7] = k.home
    assert robot.place(np.array(k.home), np.array(k.home_joints)) is Status.CONVERGED
    for _ in range(5):
        assert step(motion, effort, acceleration) == Status.CONVERGED
        assert robot.step(effort, h, runge_kutta=False) is Status.CONVERGED
    assert np.abs(motion[7:13]).max() > 1e-6
    np.testing.assert_allclose(motion[:3], robot.pose[:3], rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(motion[7:13], robot.twist, rtol=0.0, atol=1e-9 * np.abs(robot.twist).max())


def test_poses_off_the_motion_space_have_a_status(of_gallery) -> None:
    k, d = of_gallery["tripod_3prs"].kinematics, of_gallery["tripod_3prs"].dynamics
    motion, effort = np.zeros(25), np.empty(len(k.actuated_names))
    motion[:7] = displace(np.array(k.home), np.array([0.01, 0.0, 0.0, 0.0, 0.0, 0.0]))
    assert d.lean_inverse()(motion, effort) == Status.UNREACHABLE
