# SPDX-License-Identifier: Apache-2.0
"""A working mode means the same to every call: what takes `mode=` agrees with itself at joints of that mode.

At home the joints are those that `Kinematics.inverse_all` lists under the mode's label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from pkm_description.gallery import robot_names
from pkm_description.mechanism import Array
from pkm_dynamics import Distribution, Dynamics
from pkm_dynamics.energy import energy, power
from pkm_dynamics.natural_frequencies import StiffnessError, natural_frequencies
from pkm_dynamics.simulation import simulate
from pkm_kinematics import Configuration, Kinematics, Status
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_kinematics.status import closes
from pkm_runtime.errors import PkmError

FREE = Distribution()  # efforts by least squares, whether or not the drives can give them

SAME = 1e-9  # limbs solved by iteration end anywhere within their tolerance; seen: below 1e-10
NEAR_HOME = 0.05  # of the characteristic length, or rad or m of an actuator: how far off home the other poses are
SINGULAR_AT_HOME = {"griffis_duffy"}
MOST = 16  # modes of a robot in the complete product


@dataclass(frozen=True, eq=False)
class Motion:
    """A mode, its joints at a pose, and rates in the motion space there."""

    mode: int
    joints: Array
    pose: Array
    twist: Array
    acceleration: Array


def flat(*parts: Any) -> Array:
    return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])


def rates_of(k: Kinematics) -> Array:
    """Some value for every actuator."""
    return np.cos(np.arange(len(k.actuated_names)))


def motion_of(k: Kinematics, at: Motion, choice: dict[str, Any]) -> Array:
    found = k.motion(at.pose, at.twist, at.acceleration, **choice)
    return flat(found.joints, found.velocities, found.accelerations)


def margins_of(k: Kinematics, at: Motion, choice: dict[str, Any]) -> Array:
    found = k.singularity(at.pose, **choice)
    hold = 0.0 if found.constraint_hold == np.inf else float(found.constraint_hold)  # limbs block nothing
    sign = 0.0 if found.type2 < 1e-12 else found.determinant_sign  # of rounding at a singularity
    return flat(found.type1, found.type2, sign, hold, found.limb_regularity)


def reactions_of(d: Dynamics, at: Motion, choice: dict[str, Any]) -> Array:
    found = d.reactions(d.kinematics.at(at.pose, **choice), at.twist, at.acceleration, distribution=FREE)
    return flat(found.wrench, found.base)


def derivatives_of(d: Dynamics, at: Motion, choice: dict[str, Any]) -> Array:
    found = d.inverse_derivatives(d.kinematics.at(at.pose, **choice), at.twist, at.acceleration)
    return flat(found.effort, found.pose, found.twist, found.acceleration)


def energies_of(d: Dynamics, at: Motion, choice: dict[str, Any]) -> Array:
    found = energy(d, d.kinematics.at(at.pose, **choice), at.twist)
    return flat(found.kinetic, found.potential, found.lost)


def frequencies_of(d: Dynamics, at: Motion, choice: dict[str, Any]) -> Array:
    """Squares, which a small error of a small one does not spoil."""
    try:
        return natural_frequencies(d, d.kinematics.at(at.pose, **choice), 1e4).frequency ** 2
    except StiffnessError:  # a singular pose, or a robot without masses
        return np.full(d.kinematics.mobility, np.nan)


# Every entry point that takes a mode or a seed, by the numbers that it answers.
KINEMATICS: dict[str, Callable[[Kinematics, Motion, dict[str, Any]], Array]] = {
    "inverse": lambda k, at, choice: k.inverse(at.pose, **choice).joints,
    "motion": motion_of,
    "inverse_jacobian": lambda k, at, choice: k.at(at.pose, **choice).inverse_jacobian,
    "motion_jacobian": lambda k, at, choice: k.at(at.pose, **choice).motion_jacobian,
    "subspace": lambda k, at, choice: k.subspace(at.pose, **choice),
    "singularity": margins_of,
    "forward_jacobian": lambda k, at, choice: k.at(at.pose, **choice).forward_jacobian,
    "platform_twist": lambda k, at, choice: k.at(at.pose, **choice).platform_twist(rates_of(k)),
    "platform_acceleration": lambda k, at, choice: k.at(at.pose, **choice).platform_acceleration(at.twist, rates_of(k)),
}
CONSTANT_SPACE: dict[str, Callable[[Kinematics, Motion, dict[str, Any]], Array]] = {
    "motion_jacobian_rate": lambda k, at, choice: k.at(at.pose, **choice).motion_jacobian_rate(at.twist),
}
DYNAMICS: dict[str, Callable[[Dynamics, Motion, dict[str, Any]], Array]] = {
    "inverse": lambda d, at, choice: (
        d.inverse(d.kinematics.at(at.pose, **choice), at.twist, at.acceleration, distribution=FREE).effort
    ),
    "direct": lambda d, at, choice: (
        d.direct(d.kinematics.at(at.pose, **choice), at.twist, rates_of(d.kinematics)).acceleration
    ),
    "gravity": lambda d, at, choice: d.inverse(d.kinematics.at(at.pose, **choice), distribution=FREE).effort,
    "mass_matrix": lambda d, at, choice: d.mass_matrix(d.kinematics.at(at.pose, **choice)),
    "coriolis": lambda d, at, choice: d.coriolis(d.kinematics.at(at.pose, **choice), at.twist),
    "regressor": lambda d, at, choice: d.regressor(d.kinematics.at(at.pose, **choice), at.twist, at.acceleration)[0],
    "reactions": reactions_of,
    "inverse_derivatives": derivatives_of,
    "energy": energies_of,
    "power": lambda d, at, choice: np.array(
        [power(d, d.kinematics.at(at.pose, **choice), at.twist, rates_of(d.kinematics))]
    ),
    "natural_frequencies": frequencies_of,
}


def sample(k: Kinematics, *, every: bool) -> list[int]:
    """Modes to look at: the first two and the last, or as many as there are, evenly spread where they are very many."""
    if not every:
        return sorted({0, min(1, k.n_modes - 1), k.n_modes - 1})
    return sorted(set(np.linspace(0, k.n_modes - 1, min(MOST, k.n_modes)).astype(int).tolist()))


def at_home(k: Kinematics) -> dict[str, Configuration]:
    return {solution.label: solution for solution in k.inverse_all(k.home)}


def poses_of(k: Kinematics, mode: int, count: int) -> Iterator[Array]:
    """Home, and poses of the mode near it."""
    random = np.random.default_rng(mode)
    yield k.home
    for _ in range(count):
        if k.constant_space:
            step = NEAR_HOME * k.characteristic_length * random.normal(size=k.mobility)
            yield displace(np.array(k.home), k.task.subspace @ step)
        else:
            joints = k.inverse(k.home, mode=mode)
            step = NEAR_HOME * random.normal(size=len(k.actuated_names))
            found = k.forward(joints.actuated + step, seed=joints.joints if joints.ok else None)
            if found.ok:
                yield found.pose


def motions(k: Kinematics, *, every: bool) -> Iterator[Motion]:
    """Motions of several modes at home and off it, wherever the mode reaches."""
    home = at_home(k)
    for mode in sample(k, every=every):
        random = np.random.default_rng(mode)
        for pose in poses_of(k, mode, 3 if every else 1):
            found = home[k.mode_label(mode)] if pose is k.home else k.inverse(pose, mode=mode)
            if not closes(found.status):
                continue
            S, _ = k.engine.spaces.at_one(pose, found.joints)
            if not np.isfinite(S).all():
                continue
            twist = S @ random.normal(size=k.mobility)
            S, bias = k.engine.spaces.at_one(pose, found.joints, twist)
            yield Motion(mode, found.joints, pose, twist, S @ random.normal(size=k.mobility) + bias)


def agree(found: Array, expected: Array, what: str) -> bool:
    """Whether there was anything to compare; both may have no answer, as at a singularity."""
    numbers = np.isfinite(expected)
    assert (np.isfinite(found) == numbers).all(), what
    scale = np.abs(expected[numbers]).max(initial=0.0)
    assert np.abs(found - expected)[numbers].max(initial=0.0) <= SAME * scale, what
    return bool(numbers.all())


PRODUCT = [False, pytest.param(True, marks=pytest.mark.slow)]


@pytest.mark.by_day("agile_eye", "delta", "gough_stewart", "planar_redundant")
@pytest.mark.parametrize("every", PRODUCT)
@pytest.mark.parametrize("name", robot_names())
def test_calls_in_a_mode_are_those_at_its_joints(of_gallery, name: str, every: bool) -> None:
    k = of_gallery[name].kinematics
    d = Dynamics(k)
    calls = [(f"kinematics {call}", k, of) for call, of in KINEMATICS.items()]
    if k.constant_space:
        calls += [(f"kinematics {call}", k, of) for call, of in CONSTANT_SPACE.items()]
    calls += [(f"dynamics {call}", d, of) for call, of in DYNAMICS.items()]
    seen = []
    for at in motions(k, every=every):
        for call, robot, of in calls:
            found, expected = (of(robot, at, choice) for choice in ({"mode": at.mode}, {"seed": at.joints}))
            seen.append(agree(found, expected, f"{name}, {call}, mode {at.mode} at {at.pose}"))
    assert name in SINGULAR_AT_HOME or np.count_nonzero(seen[: len(calls)]) == len(calls)  # home, mode 0


@pytest.mark.parametrize("every", PRODUCT)
@pytest.mark.parametrize("name", robot_names())
def test_modes_at_home_are_those_listed(of_gallery, name: str, every: bool) -> None:
    k = of_gallery[name].kinematics
    listed, found = at_home(k), []
    for mode in sample(k, every=every):
        one, expected = k.inverse(k.home, mode=mode), listed[k.mode_label(mode)]
        assert one.status == expected.status, f"{name}, mode {mode}"
        np.testing.assert_allclose(one.joints, expected.joints, atol=SAME, err_msg=f"{name}, mode {mode}")
        found.append(one.joints)
    apart = [np.abs(a - b).max() for i, a in enumerate(found) for b in found[:i]]
    assert not apart or np.nanmin(apart) > 1e-6  # no two modes are one configuration


@pytest.mark.by_day("five_bar", "tripod_3prs")
@pytest.mark.parametrize("every", PRODUCT)
@pytest.mark.parametrize("name", robot_names())
def test_lean_calls_in_a_mode_are_those_at_its_joints(of_gallery, name: str, every: bool) -> None:
    """The fast sample in the last mode alone: machine code of a mode takes about a second."""
    k = of_gallery[name].kinematics
    d, m = Dynamics(k), len(k.actuated_names)
    for mode in sample(k, every=every)[0 if every else -1 :]:
        lean = {"lean_inverse": k.lean_inverse(mode)}
        if k.engine.gears and not closes(k.inverse(k.home, mode=mode).status):
            with pytest.raises(PkmError, match="tears a gear"):
                d.lean_inverse(mode)
            continue
        if k.constant_space:
            lean |= {"lean_track": k.lean_track(mode), "inverse": d.lean_inverse(mode), "direct": d.lean_direct(mode)}
            lean |= {"step": d.lean_step(1e-4, mode)}
        for at in motions(k, every=every):
            if at.mode != mode:
                continue
            what, q, effort, acceleration = f"{name}, mode {mode} at {at.pose}", np.zeros(m), np.zeros(m), np.zeros(6)
            joints = k.inverse(at.pose, seed=at.joints)
            assert lean["lean_inverse"](at.pose.copy(), q) == Status.CONVERGED, what
            off = q - joints.actuated
            off -= np.where(k.engine.actuated_turning, 2.0 * np.pi * np.round(off / (2.0 * np.pi)), 0.0)
            np.testing.assert_allclose(off, 0.0, atol=SAME, err_msg=what)
            if not k.constant_space:
                continue
            pose = k.home.copy()
            start = k.inverse(k.home, mode=mode)
            expected = k.forward(joints.actuated, near=k.home, seed=start.joints)
            if lean["lean_track"](joints.actuated.copy(), pose)[0] == Status.CONVERGED:
                np.testing.assert_allclose(pose, expected.pose, atol=SAME, err_msg=what)
            elif k.forward(
                start.actuated, near=k.home, seed=start.joints
            ).ok:  # from a singular home nothing is promised
                assert not expected.ok, what
            motion = np.concatenate([at.pose, at.twist, at.acceleration, np.zeros(6)])
            solved = d.inverse(d.kinematics.at(at.pose, seed=at.joints), at.twist, at.acceleration, distribution=FREE)
            assert lean["inverse"](motion, effort) == solved.status, what
            if solved.ok:
                agree(effort, solved.effort, what)
            moving = d.direct(d.kinematics.at(at.pose, seed=at.joints), at.twist, rates_of(k))
            motion[13:] = 0.0
            assert lean["direct"](motion, rates_of(k), acceleration) == moving.status, what
            agree(acceleration, moving.acceleration, what)
            acceleration[:] = 0.0
            assert lean["step"](motion, rates_of(k), acceleration) == moving.status, what
            agree(acceleration, moving.acceleration, what)


def test_a_simulation_in_a_mode_is_that_from_its_joints(of_gallery) -> None:
    d = Dynamics(of_gallery["wrist_3ruu"].kinematics)
    k, times = d.kinematics, [0.0, 1e-3]
    started = [mode for mode in sample(k, every=False) if k.inverse(k.home, mode=mode).ok]
    assert len(started) > 1
    for mode in started:
        joints = k.inverse(k.home, mode=mode).joints
        found, expected = (
            simulate(d, d.kinematics.at(k.home, **c), np.zeros(6), times) for c in ({"mode": mode}, {"seed": joints})
        )
        assert expected.ok.all()
        np.testing.assert_allclose(found.joints, expected.joints, atol=SAME)
        np.testing.assert_allclose(found.joints[0], joints, atol=SAME)


def test_modes_of_a_wrist_differ(of_gallery) -> None:
    """A robot whose limbs are solved by iteration: its modes have other drives and other efforts, the lean ones too."""
    d = Dynamics(of_gallery["wrist_3ruu"].kinematics)
    k, q = d.kinematics, np.zeros(3)
    np.testing.assert_allclose(k.inverse(k.home, mode=1).actuated, [-0.505, 0.9, 0.9], atol=1e-3)
    assert k.lean_inverse(1)(k.home.copy(), q) == Status.CONVERGED
    np.testing.assert_allclose(q, [-0.505, 0.9, 0.9], atol=1e-3)
    efforts = [d.gravity(d.kinematics.at(k.home, mode=mode)).effort for mode in range(3)]
    assert min(np.abs(efforts[1] - efforts[0]).max(), np.abs(efforts[2] - efforts[0]).max()) > 1e-3


@pytest.mark.parametrize("name", ["par2", "quattro", "five_bar", "tripod_3prs", "wrist_3ups_s"])
def test_no_dynamics_where_there_is_no_configuration(of_gallery: Any, name: str) -> None:
    """Whether or not the configuration was solved before: out of reach, off the space, in modes that tear a gear."""
    d = of_gallery[name].dynamics
    k, random = d.kinematics, np.random.default_rng(3)
    scale, rest = np.repeat([k.engine.size, 1.0], 3), np.zeros(6)
    S = k.engine.model.subspace
    steps = [far * (S @ random.normal(size=S.shape[1])) for far in (0.0, 0.1, 0.5, 2.0)] + [random.normal(size=6)]
    poses = np.array([displace(np.array(k.home), step * scale) for step in steps])
    for mode in (None, *range(min(k.n_modes, MOST))):
        none = ~closes(k.inverse(poses, mode=mode).status)
        assert none.any()
        found = d.inverse(k.at(poses, mode=mode)), d.direct(k.at(poses, mode=mode), rest, rates_of(k))
        for status, numbers in ((found[0].status, found[0].effort), (found[1].status, found[1].acceleration)):
            assert (status[none] != Status.CONVERGED).all()
            assert np.isnan(numbers[none]).all()
    assert all(d.inverse(pose).status != Status.CONVERGED for pose in poses[~closes(k.inverse(poses).status)])
