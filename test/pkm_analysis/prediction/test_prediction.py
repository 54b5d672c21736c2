# SPDX-License-Identifier: Apache-2.0
"""Predictions beside closed forms and the balance of energy."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.prediction import Gear, Motor, choose_drives, predict
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics


def _swing(centre: np.ndarray, way: np.ndarray, period: float, n: int = 401) -> tuple[np.ndarray, ...]:
    """A harmonic motion of a translating platform, one period: times, coordinates, twists, accelerations."""
    t = np.linspace(0.0, period, n)
    w = 2.0 * np.pi / period
    zero = np.zeros((n, 3))
    s, v, a = (1.0 - np.cos(w * t)) / 2.0, w * np.sin(w * t) / 2.0, w * w * np.cos(w * t) / 2.0
    linear = [np.hstack([one[:, None] * way, zero]) for one in (v, a)]
    return t, centre + s[:, None] * way, *linear


@pytest.fixture(scope="module")
def delta() -> Dynamics:
    return Dynamics(load_mechanism("delta"), friction=False)


@pytest.fixture(scope="module")
def motion() -> tuple[np.ndarray, ...]:
    return _swing(np.array([-0.1, 0.0, -0.9]), np.array([0.2, 0.05, 0.04]), 0.5)


def test_without_friction_a_cycle_costs_no_energy(delta, motion):
    found = predict(delta, *motion)
    assert found.work_given.sum() > 1.0
    assert found.energy == pytest.approx(0.0, abs=1e-4 * found.work_given.sum())
    assert not found.exceeded
    assert (found.effort_use < 1.0).all()
    assert "within all limits" in repr(found)


def test_with_friction_a_cycle_costs_what_friction_burns(motion):
    with_friction = Dynamics(load_mechanism("delta"))
    found = predict(with_friction, *motion)
    assert found.energy > 0.0
    without = predict(Dynamics(load_mechanism("delta"), friction=False), *motion)
    burnt = found.integral(((found.effort - without.effort) * found.velocity).sum(axis=1))
    assert found.energy == pytest.approx(burnt, rel=1e-3)


def test_peaks_and_means_are_those_of_the_dynamics(delta, motion):
    found = predict(delta, *motion)
    effort = delta.inverse(*motion[1:]).effort
    np.testing.assert_allclose(found.peak_effort, np.abs(effort).max(axis=0))
    np.testing.assert_allclose(found.rms_effort, np.sqrt((effort[:-1] ** 2).mean(axis=0)), rtol=1e-3)
    np.testing.assert_allclose(found.peak_power, (effort * found.velocity).max(axis=0))
    loads = delta.reactions(*motion[1:])
    arm = found.joint_names.index("limb1_arm")
    assert found.force[arm] == pytest.approx(np.linalg.norm(loads.of("limb1_arm")[:, :3], axis=1).max())
    still = found.duty(found.rms_effort)
    np.testing.assert_allclose(still, 1.0)


def test_a_rest_asks_for_what_holds_the_weight_not_for_what_decelerates(delta, motion):
    found = predict(delta, *motion)
    pose, still = motion[1][-1], np.zeros(6)
    weight = delta.inverse(pose, still, still).effort
    np.testing.assert_allclose(found.holding, weight)
    assert (np.abs(found.effort[-1] - weight) > 1.0).any()  # the motion ends while it decelerates
    longer = found.duty(found.rms_effort, rest=found.duration)
    np.testing.assert_allclose(longer, 0.5 + 0.5 * weight**2 / found.rms_effort**2)
    motor = Motor("any", continuous=10.0, peak=20.0, speed=1e4, inertia=2e-4)
    use = {c.joint: c.uses["continuous torque"] for c in choose_drives(found, [motor], [Gear("55", 55.0)], rest=1e6)}
    np.testing.assert_allclose([use[n] for n in found.names], np.abs(weight) / 55.0 / 10.0, rtol=1e-3)


def test_means_of_unevenly_spaced_samples():
    found = predict(Dynamics(load_mechanism("delta")), *_uneven())
    line = 3.0 * found.times[:, None]
    exact = np.sqrt(3.0 * (found.times[-1] ** 3 - found.times[0] ** 3) / found.duration)
    assert found.rms(line)[0] == pytest.approx(exact)
    assert found.integral(line)[0] == pytest.approx(1.5 * (found.times[-1] ** 2 - found.times[0] ** 2))


def _uneven() -> tuple[np.ndarray, ...]:
    t = np.array([0.0, 0.1, 0.15, 0.7])
    return t, np.repeat([[0.0, 0.0, -0.85]], 4, axis=0), np.zeros((4, 6)), np.zeros((4, 6))


def test_limits_that_are_exceeded_are_named(delta):
    fast = _swing(np.array([-0.1, 0.0, -0.9]), np.array([0.2, 0.05, 0.04]), 0.05)
    found = predict(delta, *fast)
    kinds = {(one.what, one.joint) for one in found.exceeded}
    assert any(what == "effort" for what, _ in kinds)
    worst = next(one for one in found.exceeded if one.what == "effort")
    k = found.names.index(worst.joint)
    assert abs(worst.value) == pytest.approx(found.peak_effort[k])
    assert abs(worst.value) > abs(worst.limit)
    with pytest.raises(AnalysisError, match=r"at 0 s"):
        predict(delta, *_swing(np.array([2.0, 0.0, -0.9]), np.array([0.2, 0.0, 0.0]), 0.5))
    with pytest.raises(AnalysisError, match="increase"):
        predict(delta, [0.0, 0.0], *[a[:2] for a in fast[1:]])
    with pytest.raises(AnalysisError, match="as many"):
        predict(delta, [0.0, 1.0, 2.0], *[a[:2] for a in fast[1:]])


def test_a_drive_of_a_range_of_its_own_is_judged_by_that(motion):
    text = load_mechanism("delta").urdf
    bounds = '<command_interface name="effort"><param name="min">-2</param><param name="max">150</param>'
    weak = text.replace('<command_interface name="effort"/>', f"{bounds}</command_interface>")
    found = predict(Dynamics(load_mechanism(weak)), *motion)
    assert {(one.what, one.limit) for one in found.exceeded} == {("effort", -2.0)}
    assert found.effort_limits == pytest.approx(150.0)


def test_redundant_drives_that_can_share_are_within_limits():
    robot = Dynamics(load_mechanism("planar_redundant"))
    home = robot.kinematics.home
    times, places, twists, accelerations = _swing(home[:3], np.array([0.02, 0.01, 0.0]), 0.052)
    poses = np.hstack([places, np.tile(home[3:], (len(times), 1))])
    alone = robot.inverse(poses, twists, accelerations).effort
    motion = predict(robot, times, poses, twists, accelerations)
    assert np.abs(alone).max() > motion.effort_limits[0] * 1.01  # by least squares one would be beyond its limit
    assert motion.peak_effort.max() == pytest.approx(100.0)
    assert not any(one.what == "effort" for one in motion.exceeded)
    within = np.abs(alone).max(axis=1) < 100.0
    np.testing.assert_allclose(motion.effort[within], alone[within], atol=1e-9)
    hasty = predict(robot, 0.5 * times, poses, 2.0 * twists, 4.0 * accelerations)
    assert any(one.what == "effort" for one in hasty.exceeded)


def test_cables_that_would_have_to_push_are_no_answer():
    cables = Dynamics(load_mechanism("cable_8"))
    t = np.linspace(0.0, 0.1, 41)
    pose = np.tile(cables.kinematics.home, (41, 1))
    still, falls = np.zeros((41, 6)), np.zeros((41, 6))
    assert predict(cables, t, pose, still, still).exceeded == ()  # some at the end of their range, not beyond
    falls[20:, 2] = -200.0
    with pytest.raises(AnalysisError, match=r"at 0\.05 s: .*effort"):
        predict(cables, t, pose, still, falls)


def test_motors_and_gears_with_the_reason_why_one_fails(delta, motion):
    found = predict(delta, *motion)
    ratio = 55.0
    own = np.abs(found.load[:, 0] / ratio + 2.07e-4 * ratio * found.acceleration[:, 0])
    speed = ratio * found.peak_velocity[0]
    fits = Motor("fits", continuous=2.0 * own.max(), peak=3.0 * own.max(), speed=1.2 * speed, inertia=2.07e-4)
    weak = Motor("weak", continuous=0.4 * own.max(), peak=0.5 * own.max(), speed=1.2 * speed, inertia=2.07e-4)
    slow = Motor("slow", continuous=2.0 * own.max(), peak=3.0 * own.max(), speed=0.5 * speed, inertia=2.07e-4)
    table = choose_drives(found, [slow, weak, fits], [Gear("belt and gear", ratio)])
    first = [choice for choice in table if choice.joint == found.names[0]]
    assert first[0].motor is fits
    assert first[0].ok
    assert first[0].uses["peak torque"] == pytest.approx(1.0 / 3.0)
    reasons = {choice.motor.name: choice.reason for choice in first}
    assert "peak torque exceeded by 100 %" in reasons["weak"]
    assert "speed of the motor exceeded by 100 %" in reasons["slow"]
    # a rotor of the description's own inertia at its ratio: the motor's torque is the effort by the ratio
    drive = delta.kinematics.mechanism.joint_named[found.names[0]].drive
    same = Motor("own", 1e3, 1e3, 1e6, drive.rotor_inertia)
    (choice,) = [c for c in choose_drives(found, [same], [Gear("own", drive.gear_ratio)]) if c.joint == found.names[0]]
    assert choice.uses["peak torque"] * 1e3 == pytest.approx(found.peak_effort[0] / drive.gear_ratio)


def test_a_gear_that_loses_takes_more_from_the_motor(delta, motion):
    found = predict(delta, *motion)
    motor = Motor("any", 100.0, 100.0, 1e4, 0.0)
    good, bad = choose_drives(found, [motor], [Gear("good", 10.0), Gear("bad", 10.0, efficiency=0.7)])[:2]
    assert good.gear.name == "good"
    assert good.losses == pytest.approx(0.0, abs=1e-12)
    assert bad.losses > 0.0
    with pytest.raises(AnalysisError, match="are not valid"):
        Gear("none", 10.0, efficiency=0.0)
    with pytest.raises(AnalysisError, match="are not valid"):
        Motor("none", continuous=2.0, peak=1.0, speed=1.0, inertia=0.0)
