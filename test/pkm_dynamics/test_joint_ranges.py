# SPDX-License-Identifier: Apache-2.0
"""Dynamics answer at every configuration that closes the loops; that a joint is out of its range, kinematics tells."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_kinematics.status import closes


def out_of_range(kinematics: Kinematics) -> Array:
    """A pose (7,) beyond the range of a joint, on the way up or down from home."""
    space, home = np.asarray(kinematics.subspace(kinematics.home)), kinematics.home
    for far in np.linspace(0.05, 1.5, 30) * kinematics.engine.size:
        for way in (far, -far):
            found = kinematics.nearest(displace(home, space @ (way * np.linalg.pinv(space)[:, 2])))
            if closes(found.status) and kinematics.inverse(found.pose).status == Status.JOINT_LIMIT:
                return np.array(found.pose)
    raise AssertionError("no such pose")


@pytest.mark.parametrize("name", ["delta", "gough_stewart", "orthoglide", "tricept", "tripod_3prs"])
def test_no_call_of_the_dynamics_looks_at_ranges(of_gallery, name: str) -> None:
    k, d = of_gallery[name].kinematics, of_gallery[name].dynamics
    pose, still = out_of_range(k), np.zeros(6)
    assert k.inverse(pose).status == Status.JOINT_LIMIT
    assert k.motion(pose, still).status == Status.JOINT_LIMIT
    held = d.gravity(pose)
    for answer in (d.inverse(pose), d.reactions(pose), held, d.direct(pose, still, held.effort)):
        assert answer.status == Status.CONVERGED
    assert np.isfinite(held.effort).all()
    np.testing.assert_allclose(d.direct(pose, still, held.effort).acceleration, still, atol=1e-6)
    assert np.isfinite(d.regressor(pose)[0]).all()
    assert np.isfinite(d.mass_matrix(pose)).all()
