# SPDX-License-Identifier: Apache-2.0
"""The search over the whole graph finds the modes that algebra finds, and true ones where algebra is silent."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_description import load_mechanism
from pkm_kinematics import Kinematics
from pkm_kinematics.assembly.closure_search import SearchedSet
from pkm_kinematics.assembly.result import Array, AssemblyStatus
from pkm_kinematics.assembly.whole_search import search_graph
from pkm_kinematics.solve.whole_graph import WholeGraph


def searched(name: str, offset: float) -> tuple[Kinematics, Array, Array, SearchedSet]:
    """Robot, actuated positions near home's, and the poses and modes that the search finds for them."""
    mechanism = load_mechanism(name)
    kinematics = Kinematics(mechanism)
    home = dict(zip(kinematics.joint_names, kinematics.home_joints, strict=True))
    whole = WholeGraph(mechanism, kinematics.task, home, kinematics.home)
    q = kinematics.inverse(kinematics.home).actuated
    q = q + offset * np.linspace(-1.0, 1.0, len(q))
    start = whole.tables.bodies["home"].copy()
    start[[whole.names.index(name) for name in kinematics.actuated_names]] = q
    poses, _, modes = search_graph(whole, kinematics.actuated_names, start)
    return kinematics, q, poses, modes


def gap(first: Array, second: Array) -> float:
    """Distance of two poses (7,), m plus rad."""
    turn = Rotation.from_quat(first[3:]) * Rotation.from_quat(second[3:]).inv()
    return float(np.linalg.norm(first[:3] - second[:3]) + turn.magnitude())


@pytest.mark.slow
def test_every_pose_is_a_mode_of_its_actuators() -> None:
    kinematics, q, poses, modes = searched("tricept", 0.02)
    assert modes.status == AssemblyStatus.SEARCHED
    assert len(poses) >= 8
    assert np.max(modes.residuals) < 1e-10
    reached = [pose for pose in poses if kinematics.inverse(pose).status == 0]
    assert reached  # some modes need a limb or the passive leg beyond its range
    assert any(np.allclose(kinematics.inverse(pose).actuated, q, atol=1e-8) for pose in reached)


def test_same_modes_as_the_sextic() -> None:
    kinematics, q, poses, _ = searched("planar_3rrr", 0.1)
    certified = kinematics.forward_all(q)
    assert len(poses) == len(certified) > 0
    assert all(min(gap(pose, fk.pose) for pose in poses) < 1e-8 for fk in certified)


def test_agile_eye_has_eight_modes_four_of_them_trivial() -> None:
    """Four orientations of the orthogonal 3-RRR do not depend on its inputs."""
    sets = [searched("agile_eye", offset)[2] for offset in (0.1, 0.2)]
    assert [len(poses) for poses in sets] == [8, 8]
    shared = [pose for pose in sets[0] if min(gap(pose, other) for other in sets[1]) < 1e-7]
    assert len(shared) == 4
