# SPDX-License-Identifier: Apache-2.0
"""What is answered with CONVERGED is a configuration: loops closed, joints in their ranges, at any scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_description.gallery import robot_names
from pkm_description.loops.closure import ClosureModel
from pkm_description.mechanism import JointType, Mechanism
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.kernels.compiled_rotations import displace

HUGE = (1e308, -1e308, 1e200, 1e12, 1e7, np.inf, np.nan)


def loop_errors(mechanism: Mechanism, joints: np.ndarray) -> float:
    """Largest error of any loop [m, 1] by the description's own closure model, which no solver uses."""
    model = ClosureModel(mechanism.links, mechanism.joints, mechanism.loops, mechanism.base_link)
    return float(np.abs(model.closure(model.reduced(joints))[0]).max())


def out_of_range(mechanism: Mechanism, names: tuple[str, ...], joints: np.ndarray) -> bool:
    """Whether a joint is outside the range that the description gives it."""
    for name, q in zip(names, joints, strict=True):
        joint = mechanism.joint_named.get(name)
        if joint is not None and not joint.limits.lower - 1e-8 <= q <= joint.limits.upper + 1e-8:
            return True
    return False


def actuator_positions(kinematics: Kinematics) -> np.ndarray:
    """Random positions (200, n_actuated), beyond the ranges, too.

    Those of more actuators than degrees of freedom contradict each other, which takes long to find out: only some are
    random there, and the others are those of random poses.
    """
    rng = np.random.default_rng(11)
    actuated = kinematics.engine.actuated_column
    bodies = kinematics.tables.bodies
    driven = np.argsort(bodies["actuator"])[-len(actuated) :]
    span = np.minimum(bodies["upper"][driven] - bodies["lower"][driven], 2.0)
    q = kinematics.home_joints[actuated] + 0.6 * span * rng.uniform(-1.0, 1.0, (200, len(actuated)))
    if len(actuated) == kinematics.mobility:
        return q
    size = np.repeat([0.1, 0.9], 90)[:, None] * kinematics.characteristic_length
    steps = size * rng.uniform(-1.0, 1.0, (180, kinematics.mobility)) @ kinematics.subspace(kinematics.home).T
    of_poses = kinematics.inverse(np.array([displace(np.array(kinematics.home), step) for step in steps])).actuated
    of_poses = of_poses[np.isfinite(of_poses).all(axis=1)]
    assert (kinematics.forward(of_poses).status == Status.CONVERGED).sum() > 20
    return np.vstack([q[:20], of_poses])


@pytest.mark.by_day("agile_eye", "delta", "gough_stewart", "planar_redundant")
@pytest.mark.parametrize("name", robot_names())
def test_forward_knows_the_joint_limits(name: str) -> None:
    kinematics = Kinematics(load_mechanism(name))
    found = kinematics.forward(actuator_positions(kinematics))
    for k in np.flatnonzero((found.status == Status.CONVERGED) | (found.status == Status.JOINT_LIMIT)):
        beyond = out_of_range(kinematics.mechanism, kinematics.joint_names, found.joints[k])
        assert beyond == (found.status[k] == Status.JOINT_LIMIT)
        if k % 20 == 0:
            assert loop_errors(kinematics.mechanism, found.joints[k]) < 1e-9
    assert np.isnan(found.pose[(found.status != Status.CONVERGED) & (found.status != Status.JOINT_LIMIT)]).all()


@pytest.mark.parametrize("name", robot_names())
def test_numbers_too_large_to_close_loops_with(name: str) -> None:
    kinematics = Kinematics(load_mechanism(name))
    home = kinematics.home_joints[kinematics.engine.actuated_column]
    for value in HUGE:
        q = home.copy()
        q[0] = value
        assert kinematics.forward(q).status == Status.INVALID_INPUT
        seed = kinematics.home_joints.copy()
        seed[kinematics.engine.actuated_column[0]] = value
        answer = kinematics.inverse(kinematics.home, seed=seed)
        assert answer.status == Status.INVALID_INPUT
        assert np.isnan(answer.joints).all()


def scaled(mechanism: Mechanism, s: float) -> Mechanism:
    """The same robot with all lengths times `s`; masses stay, as kinematics does not look at them."""

    def frame(T: np.ndarray) -> np.ndarray:
        T = T.copy()
        T[:3, 3] *= s
        return T

    def limited(joint):
        if joint.type is not JointType.PRISMATIC:
            return replace(joint, origin=frame(joint.origin))
        limits = replace(joint.limits, lower=s * joint.limits.lower, upper=s * joint.limits.upper)
        return replace(joint, origin=frame(joint.origin), limits=limits)

    joints = tuple(limited(joint) for joint in mechanism.joints)
    loops = tuple(
        replace(loop, predecessor_frame=frame(loop.predecessor_frame), successor_frame=frame(loop.successor_frame))
        for loop in mechanism.loops
    )
    at_home = mechanism.home_joints.copy()
    for k, name in enumerate(mechanism.moving_joints):  # robots of this test have joints of one degree of freedom only
        if mechanism.joint_named[name].type is JointType.PRISMATIC:
            at_home[k] *= s
    return replace(mechanism, joints=joints, loops=loops, home_joints=at_home, home=frame(mechanism.home))


@pytest.mark.parametrize("scale", [3e-5, 1.0, 1e4])
@pytest.mark.parametrize("name", ["quattro", "irsbot2", "orthoglide", "gough_stewart", "five_bar"])
def test_the_scale_costs_no_digits(name: str, scale: float) -> None:
    mechanism = load_mechanism(name)
    plain, other = Kinematics(mechanism), Kinematics(scaled(mechanism, scale))
    rng = np.random.default_rng(5)
    poses = np.repeat(plain.home[None], 20, axis=0)
    shifts = 0.02 * rng.uniform(-1.0, 1.0, (20, plain.mobility)) @ plain.task.subspace.T
    poses[:, :3] += shifts[:, :3]
    far = poses.copy()
    far[:, :3] *= scale
    expected, found = plain.inverse(poses), other.inverse(far)
    assert expected.ok.all()
    assert found.ok.all()
    slides = ~plain.engine.joint_turning
    difference = found.joints / np.where(slides, scale, 1.0) - expected.joints
    # passive spins of rods between two balls may stand anywhere
    assert np.abs(difference[:, plain.engine.actuated_column]).max() < 1e-11
    assert (found.residual < 1e-13 * other.engine.size).all()


@pytest.mark.parametrize("name", robot_names())
def test_no_joint_is_outside_its_range_by_whole_turns(name: str, of_gallery) -> None:
    k: Kinematics = of_gallery[name].kinematics
    lower, upper = k.engine.ranges.limits
    answers = [*k.inverse_all(k.home), *k.forward_all(k.inverse(k.home).actuated)]
    several = not k.engine.iterated
    answers += [k.inverse(k.home, mode=mode) for mode in range(k.n_modes)] if several else []
    for answer in answers:
        for turns in (-2, -1, 1, 2):
            turned = answer.joints + 2.0 * np.pi * turns
            outside = k.engine.joint_turning & ~((lower <= answer.joints) & (answer.joints <= upper))
            assert not (outside & (lower <= turned) & (turned <= upper)).any()
        if np.isfinite(answer.joints).all():
            assert loop_errors(k.mechanism, answer.joints) < 1e-8
            beyond = out_of_range(k.mechanism, k.joint_names, answer.joints)
            assert beyond == (answer.status == Status.JOINT_LIMIT) or answer.status == Status.SINGULAR


@pytest.mark.parametrize(("name", "count"), [("dymo_3uru", 8), ("navaro", 64)])
def test_modes_that_a_turn_brings_into_range(name: str, count: int, of_gallery) -> None:
    k: Kinematics = of_gallery[name].kinematics
    assert [bool(mode.ok) for mode in k.inverse_all(k.home)] == [True] * count


def test_answers_near_a_seed_are_not_turned_back(of_gallery) -> None:
    k: Kinematics = of_gallery["tripteron"].kinematics
    column = k.joint_names.index("limb_x_shoulder")
    seed = k.home_joints.copy()
    seed[column] += 2.0 * np.pi
    followed = k.inverse(k.home, seed=seed)
    assert followed.status == Status.JOINT_LIMIT
    assert followed.joints[column] == pytest.approx(seed[column])
