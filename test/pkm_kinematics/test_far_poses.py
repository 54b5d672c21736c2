# SPDX-License-Identifier: Apache-2.0
"""Poses and joint positions of any size get a status, in bounded time, from every solve that a request reaches."""

from __future__ import annotations

import time
import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics
from pkm_kinematics.status import Status, closes

PATIENCE = 2.0  # s of the processor for a call; kernels are loaded by then
ROBOTS = ("delta", "five_bar", "orthoglide", "quattro", "tripod_3prs", "two_tpr")  # by formula, by iteration, turning
DISTANCES = (0.1, 1.0, 10.0, 1e3, 1e6, 1e12, 1e150, 1e308)


@cache
def robot(name: str) -> Kinematics:
    kinematics = Kinematics(load_mechanism(name))
    ask(kinematics, np.array(kinematics.home), kinematics.home)  # loads kernels
    return kinematics


def ask(kinematics: Kinematics, pose: Array, start: Array) -> list[float]:
    """Ask what takes poses, and check the answers; returns the seconds that each took."""
    q = kinematics.home_joints[kinematics.engine.actuated_column]
    took = []
    for call in (
        lambda: kinematics.inverse(pose),
        lambda: kinematics.inverse(pose, seed=kinematics.home_joints),
        lambda: kinematics.forward(q, near=start),
        lambda: kinematics.forward(q, near=start, seed=kinematics.home_joints),
        lambda: kinematics.nearest(pose),
        lambda: kinematics.motion(pose, np.zeros(6)),
    ):
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # numbers overflow on the way to a status
            answer = call()
        took.append(time.process_time() - began)
        solved = closes(Status(int(answer.status)))
        assert np.isfinite(answer.joints).all() == solved
    return took


@pytest.mark.parametrize("name", ROBOTS)
def test_a_far_pose_is_answered_soon(name: str) -> None:
    kinematics = robot(name)
    for far in DISTANCES:
        pose = np.array(kinematics.home)
        pose[:3] += far * np.array([0.6, -0.48, 0.64])
        ask(kinematics, pose, pose)  # may compile what this pose needs first
        assert max(ask(kinematics, pose, pose)) < PATIENCE, far


@pytest.mark.parametrize("name", ROBOTS)
def test_far_starts_of_many_rows_cost_little(name: str) -> None:
    kinematics = robot(name)
    q = np.tile(kinematics.home_joints[kinematics.engine.actuated_column], (100, 1))
    starts = np.tile(kinematics.home, (100, 1))
    starts[:, 0] += np.geomspace(1e3, 1e300, 100) * max(1.0, kinematics.engine.size)
    kinematics.forward(q[:1], near=starts[:1])  # may compile what these need first
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        status = kinematics.forward(q, near=starts).status
    assert time.process_time() - began < PATIENCE
    assert not closes(status).any()


MAGNITUDES = st.floats(-3.0, 308.0).map(lambda power: 10.0**power)
SIGNS = st.sampled_from((-1.0, 1.0))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)  # kernels
@given(st.sampled_from(("delta", "orthoglide", "tripod_3prs", "gough_stewart", "agile_eye", "h4")), st.data())
def test_any_numbers_get_a_status(name: str, data: st.DataObject) -> None:
    kinematics = robot(name)
    number = st.one_of(st.floats(), st.tuples(MAGNITUDES, SIGNS).map(np.prod))
    count = len(kinematics.actuated_names)
    pose = np.array(data.draw(st.lists(number, min_size=7, max_size=7)), dtype=np.float64)
    if data.draw(st.booleans()):
        pose[3:] = kinematics.home[3:]
    q = np.array(data.draw(st.lists(number, min_size=count, max_size=count)), dtype=np.float64)
    joints = np.full(len(kinematics.joint_names), data.draw(number))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        answers = [
            kinematics.inverse(pose),
            kinematics.inverse(pose, seed=joints),
            kinematics.forward(q),
            kinematics.forward(q, near=pose),
            kinematics.forward(q, near=pose, seed=joints),
            *kinematics.inverse_all(pose),
        ]
        modes = kinematics.forward_all(q)
    assert time.process_time() - began < 60.0
    for answer in answers:
        assert np.isfinite(answer.joints).all() == closes(Status(int(answer.status)))
    for mode in modes:  # listed only where joint positions close the loops, singular or not
        assert np.isfinite(mode.pose).all()
        assert np.isfinite(mode.joints).all()
