# SPDX-License-Identifier: Apache-2.0
"""A robot a thousand times as large, or as small, does the same: what decides is relative to the robot's size."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from pkm_analysis import Analysis
from pkm_description import load_mechanism
from pkm_description.joint_geometry import freedoms
from pkm_dynamics import Dynamics
from pkm_dynamics.linear_form.random_motions import random_motions
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import shift_pose

SCALES = (1e-3, 1e3)
ROBOTS = [
    "agile_eye",
    "cable_8",
    "capaman",
    "delta",
    "five_bar",
    "gough_stewart",
    "h4",
    "irsbot2",
    "planar_3rrr",
    "planar_mixed",
    "planar_redundant",
    "quattro",
    "tripod_3prs",
    "tripteron",
    "wrist_3ups_s",
]


def _moved(frame, by):
    found = np.array(frame)
    found[:3, 3] *= by
    return found


def scaled(mechanism, by):
    """The mechanism with all lengths, gravity among them, times a factor: forces too are larger by it."""
    slides = {joint.name: joint.unit == "m" for joint in mechanism.joints}

    def unit(joint):
        return by if slides[joint.name] else 1.0

    def mimic(joint):
        one = joint.mimic
        ratio = unit(joint) / (by if slides[one.joint] else 1.0)
        return replace(one, multiplier=one.multiplier * ratio, offset=one.offset * unit(joint))

    def scaled_joint(joint):
        u = unit(joint)
        effort = by if slides[joint.name] else by**2
        limits = joint.limits
        drive = joint.drive
        if drive is not None:
            drive = replace(
                drive,
                effort_range=tuple(effort * bound for bound in drive.effort_range),
                rotor_inertia=drive.rotor_inertia * (1.0 if slides[joint.name] else by**2),
                initial_value=None if drive.initial_value is None else u * drive.initial_value,
            )
        return replace(
            joint,
            origin=_moved(joint.origin, by),
            limits=replace(
                limits,
                lower=u * limits.lower,
                upper=u * limits.upper,
                velocity=u * limits.velocity,
                effort=effort * limits.effort,
            ),
            viscous_friction=joint.viscous_friction * effort / u,
            coulomb_friction=joint.coulomb_friction * effort,
            drive=drive,
            mimic=None if joint.mimic is None else mimic(joint),
        )

    per = [by if freedom.slides else 1.0 for joint in mechanism.joints for freedom in freedoms(joint)]
    return replace(
        mechanism,
        gravity=by * mechanism.gravity,
        links=tuple(
            replace(
                link,
                inertial=replace(link.inertial, com=by * link.inertial.com, inertia=by**2 * link.inertial.inertia),
            )
            for link in mechanism.links
        ),
        joints=tuple(scaled_joint(joint) for joint in mechanism.joints),
        loops=tuple(
            replace(
                loop,
                predecessor_frame=_moved(loop.predecessor_frame, by),
                successor_frame=_moved(loop.successor_frame, by),
            )
            for loop in mechanism.loops
        ),
        home=_moved(mechanism.home, by),
        home_joints=np.array(per) * mechanism.home_joints,
    )


@cache
def robot(name, by):
    mechanism = load_mechanism(name)
    return Dynamics(Kinematics(mechanism if by == 1.0 else scaled(mechanism, by)))


def poses_of(name):
    """Poses of the robot as described: near home, some out of reach and some beyond limits."""
    k = robot(name, 1.0).kinematics
    rng, poses = np.random.default_rng(1), np.tile(k.home, (80, 1))
    S = np.nan_to_num(k.subspace(k.home))
    for i in range(1, len(poses)):
        shift_pose(np.array(k.home), 0.01 * i * k.engine.size * S @ rng.normal(size=S.shape[1]), 1.0, poses[i])
    return poses


@pytest.mark.parametrize("by", SCALES)
@pytest.mark.parametrize("name", ROBOTS)
def test_limbs_are_solved_in_the_same_way(name, by):
    one, other = robot(name, 1.0).kinematics, robot(name, by).kinematics
    for field in ("solver", "branches", "rows", "count", "direct", "planar", "spherical"):
        np.testing.assert_array_equal(one.tables.blocks[field], other.tables.blocks[field])
    assert one.n_modes == other.n_modes
    assert one.constant_space == other.constant_space
    if name == "agile_eye":  # all of its axes meet in one point: it has no length
        by = 1.0
    assert other.characteristic_length == pytest.approx(by * one.characteristic_length, rel=1e-9)
    assert other.engine.size == pytest.approx(by * one.engine.size, rel=1e-9)


@pytest.mark.parametrize("by", SCALES)
@pytest.mark.parametrize("name", ROBOTS)
def test_statuses_are_the_same(name, by):
    one, other = robot(name, 1.0), robot(name, by)
    poses = poses_of(name)
    large = poses.copy()
    large[:, :3] *= by
    here, there = one.kinematics.inverse(poses), other.kinematics.inverse(large)
    np.testing.assert_array_equal(here.status, there.status)
    assert here.ok.any()
    here, there = one.inverse(poses), other.inverse(large)
    np.testing.assert_array_equal(here.status, there.status)
    np.testing.assert_allclose(there.condition, here.condition, rtol=1e-6, atol=1e-12)
    margins, larger = one.kinematics.singularity(poses), other.kinematics.singularity(large)
    for field in ("condition", "limb_regularity", "constraint_hold", "determinant_sign"):
        np.testing.assert_allclose(getattr(larger, field), getattr(margins, field), rtol=1e-6, atol=1e-9, err_msg=field)


@pytest.mark.parametrize("by", SCALES)
@pytest.mark.parametrize("name", ["delta", "five_bar", "gough_stewart", "planar_mixed", "tripod_3prs"])
def test_motions_for_ranks_are_found(name, by):
    """The same random motions, so that the base parameters are of the same number."""
    one, other = robot(name, 1.0).kinematics, robot(name, by).kinematics
    here, there = random_motions(one, 10), random_motions(other, 10)
    expected = here.pose * np.repeat([by, 1.0], [3, 4])
    np.testing.assert_allclose(there.pose, expected, rtol=1e-6, atol=1e-8 * by)
    assert there.size == here.size


@pytest.mark.parametrize("by", SCALES)
@pytest.mark.parametrize("name", ["delta", "five_bar", "planar_3rrr", "wrist_3ups_s"])
def test_assembly_modes_and_ways_to_them_are_the_same(name, by):
    one, other = robot(name, 1.0).kinematics, robot(name, by).kinematics
    units = np.where(one.engine.actuated_turning, 1.0, by)
    home = one.home_joints[one.engine.actuated_column]
    rng = np.random.default_rng(2)
    shares = np.where(one.engine.actuated_turning, 0.05, 0.05 * one.engine.size)
    for _ in range(3):
        q = home + shares * rng.uniform(-1.0, 1.0, len(home))
        here, there = one.forward(q), other.forward(units * q)
        assert here.status == there.status
        np.testing.assert_allclose(there.pose[:3] / by, here.pose[:3], atol=1e-8)
        modes, others = one.forward_all(q), other.forward_all(units * q)
        assert (len(modes), modes.certified) == (len(others), others.certified)
        assert [mode.label for mode in modes] == [mode.label for mode in others]


@pytest.mark.parametrize("by", SCALES)
def test_a_workspace_is_as_much_larger(by):
    one, other = robot("five_bar", 1.0).kinematics, robot("five_bar", by).kinematics
    here, there = (Analysis(k).workspace(resolution=40, tolerance=1e-3 * k.engine.size) for k in (one, other))
    assert there.size == pytest.approx(by**2 * here.size, rel=1e-6)
