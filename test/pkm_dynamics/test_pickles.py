# SPDX-License-Identifier: Apache-2.0
"""Robots and answers go to other processes and back, also after they were used: compiled calls stay behind."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_dynamics import Dynamics

ROBOTS = ("delta", "five_bar", "gough_stewart", "tripod_3prs")


def answers(d: Dynamics) -> dict[str, object]:
    """One of every kind of answer, at home and beside it."""
    k = d.kinematics
    h, still = k.home, np.zeros(6)
    far = h.copy()
    far[0] += 10.0
    q = k.inverse(h).actuated
    return {
        "inverse": k.inverse(h),
        "no inverse": k.inverse(far),
        "inverse of two": k.inverse(np.array([h, far])),
        "every mode": k.inverse_all(h),
        "forward": k.forward(q),
        "every assembly": k.forward_all(q),
        "nearest": k.nearest(h),
        "motion": k.motion(h, still),
        "singularity": k.singularity(h),
        "efforts": d.inverse(h),
        "accelerations": d.direct(h, still, np.zeros(len(q))),
        "reactions": d.reactions(h),
    }


@pytest.mark.parametrize("name", ROBOTS)
def test_used_robots_and_their_answers(name):
    d = Dynamics(load_mechanism(name))
    before = answers(d)
    d.mass_matrix(d.kinematics.home)
    d.regressor(d.kinematics.home)
    for what, answer in before.items():
        back = pickle.loads(pickle.dumps(answer))
        assert type(back) is type(answer), what
        assert str(back) == str(answer), what  # the reason included, which asks the robot
    again = pickle.loads(pickle.dumps(d))
    kinematics = pickle.loads(pickle.dumps(d.kinematics))
    assert {what: str(answer) for what, answer in answers(again).items()} == {w: str(a) for w, a in before.items()}
    assert np.array_equal(kinematics.inverse(kinematics.home).joints, before["inverse"].joints)
    assert not kinematics.home.flags.writeable
    assert again.kinematics is not d.kinematics


def test_friction_stays_left_out(delta):
    d = Dynamics(delta.kinematics, friction=False)
    d.inverse(d.kinematics.home)
    assert not pickle.loads(pickle.dumps(d)).friction
    assert not pickle.loads(pickle.dumps(d.robot)).friction
