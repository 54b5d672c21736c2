# SPDX-License-Identifier: Apache-2.0
"""The browser page, as far as it can be checked without a browser: it is served, and links are where the solver says.

Where the links are is compared with the loop closures of the description: the ends of a loop must meet in the picture.
"""

import socket
import urllib.request

import numpy as np
import pytest

viser = pytest.importorskip("viser")
pytest.importorskip("yourdfpy")

from pkm_control.viewer import RobotViewer  # noqa: E402
from pkm_control.viewer_process import ViewerProcess  # noqa: E402


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@pytest.fixture
def viewer(mechanism, kinematics):
    viewer = RobotViewer(
        mechanism, free_port(), dict(zip(kinematics.joint_names, kinematics.home_joints, strict=True)), host="127.0.0.1"
    )
    yield viewer
    viewer.close()


def test_the_page_is_served(viewer) -> None:
    with urllib.request.urlopen(viewer.url, timeout=10) as answer:
        assert answer.status == 200
        assert b"<html" in answer.read(2000).lower()


def test_the_loops_are_closed_in_the_picture(viewer, mechanism, kinematics) -> None:
    pose = kinematics.home.copy()
    pose[:3] += [0.1, -0.07, 0.03]
    viewer.update(kinematics.joint_names, kinematics.inverse(pose).joints, pose)
    picture = viewer._urdf
    for loop in mechanism.loops:
        ends = [
            (picture.get_transform(link, mechanism.base_link) @ frame)[:3, 3]
            for link, frame in (
                (loop.predecessor, loop.predecessor_frame),
                (loop.successor, loop.successor_frame),
            )
        ]
        np.testing.assert_allclose(ends[0], ends[1], atol=1e-6, err_msg=loop.name)
    platform = picture.get_transform(mechanism.platform_link, mechanism.base_link)
    np.testing.assert_allclose(platform[:3, 3], pose[:3], atol=1e-9)


def test_nonsense_does_not_move_the_picture(viewer, kinematics) -> None:
    before = viewer._configuration.copy()
    viewer.update(("limb1_arm", "no_such_joint"), np.array([np.nan, 1.0]), np.full(7, np.nan))
    np.testing.assert_array_equal(viewer._configuration, before)
    viewer.readout(time=1.0, error=0.001, speed=2.0, efforts=np.ones(3), status="fine")
    viewer.show_planned(np.zeros((1, 3)))
    viewer.show_planned(np.zeros((2, 3)))


def test_the_process_serves_and_ends(mechanism, kinematics) -> None:
    names, joints = tuple(kinematics.joint_names), np.array(kinematics.home_joints)
    viewer = ViewerProcess(mechanism, names, joints, free_port(), np.zeros((2, 3)))
    try:
        assert viewer.alive
        viewer.update(joints, np.array(kinematics.home), 1.0, 0.0, 0.0, np.zeros(3))
        with urllib.request.urlopen(viewer.url, timeout=10) as answer:
            assert answer.status == 200
    finally:
        viewer.close()
    assert not viewer.alive
