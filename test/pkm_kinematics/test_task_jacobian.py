# SPDX-License-Identifier: Apache-2.0
"""The public Jacobian is in the units, order and signs of the task coordinates: differences say so."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_description.gallery import robot_names
from pkm_kinematics import Kinematics
from pkm_runtime.errors import PkmError

SIXTH_ORDER = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60.0
STEPS = np.arange(-3, 4)

ANKLE = """<robot name="ankle">
  <pkm base_link="base" platform_link="foot" kinematics_only="true"/>
  <link name="base"/><link name="cross"/><link name="foot"/>
  <joint name="pitch" type="revolute"><parent link="base"/><child link="cross"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="10" effort="100"/></joint>
  <joint name="roll" type="revolute"><parent link="cross"/><child link="foot"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" velocity="10" effort="100"/></joint>
  {sides}
  <ros2_control name="motors" type="system">
    <joint name="left_motor"><command_interface name="effort"/></joint>
    <joint name="right_motor"><command_interface name="effort"/></joint>
  </ros2_control>
</robot>"""
SIDE = """
  <link name="{name}_crank"/><link name="{name}_fork"/><link name="{name}_rod"/>
  <joint name="{name}_motor" type="revolute"><parent link="base"/><child link="{name}_crank"/>
    <origin xyz="-0.01 {y} 0.25"/><axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="20" effort="50"/></joint>
  <joint name="{name}_swing" type="continuous"><parent link="{name}_crank"/><child link="{name}_fork"/>
    <origin xyz="-0.04 0 0"/><axis xyz="0 1 0"/></joint>
  <joint name="{name}_lean" type="continuous"><parent link="{name}_fork"/><child link="{name}_rod"/>
    <axis xyz="1 0 0"/></joint>
  <loop name="{name}_end" type="spherical">
    <predecessor link="{name}_rod"><origin xyz="0 0 -0.25"/></predecessor>
    <successor link="foot"><origin xyz="-0.05 {foot_y} 0"/></successor></loop>"""


def by_differences(kinematics: Kinematics, coordinates: np.ndarray, seed: np.ndarray) -> np.ndarray:
    """Actuated rates per rate of each task coordinate (n_actuated, k)."""
    h = 1e-4
    moved = coordinates + h * STEPS[:, None, None] * np.eye(len(coordinates))
    solved = kinematics.inverse(moved, seed=seed)
    assert solved.ok.all()
    return np.tensordot(SIXTH_ORDER, solved.actuated, axes=(0, 0)).T / h


@pytest.mark.parametrize("name", robot_names())
def test_every_robot(name: str) -> None:
    kinematics = Kinematics(load_mechanism(name))
    names = kinematics.task.names
    if not names:  # its columns are then those of the inverse Jacobian, which has a test of its own
        same = kinematics.at(kinematics.home).task_jacobian == kinematics.at(kinematics.home).inverse_jacobian
        assert same.all()
        return
    if len(names) != kinematics.mobility:
        with pytest.raises(PkmError, match="depend on each other"):
            _ = kinematics.at(kinematics.home).task_jacobian
        return
    columns = [kinematics.joint_names.index(n) for n in names]
    coordinates = kinematics.home_joints[columns] + 2e-3 * np.sin(1.0 + np.arange(len(names)))
    there = kinematics.inverse(coordinates)
    J = kinematics.at(coordinates, seed=there.joints).task_jacobian
    if name == "griffis_duffy":  # singular everywhere, though its inverse kinematics is not
        assert np.linalg.cond(J) > 1e9
    expected = by_differences(kinematics, coordinates, there.joints)
    # sixth order: what is left is rounding, 1e-15 over the step, and where a limb is nearly stretched its curvature
    assert np.abs(J - expected).max() < 1e-8 * max(1.0, np.abs(expected).max())
    rates = np.cos(np.arange(len(names)))
    twist = kinematics.at(coordinates).task_twists @ rates
    assert np.abs(
        kinematics.at(coordinates, seed=there.joints).inverse_jacobian @ twist - J @ rates
    ).max() < 1e-9 * max(1.0, np.abs(J).max())


def test_an_ankle_moved_by_two_rods() -> None:
    """Both signs, and numbers of the size of a gear, not of a length."""
    sides = SIDE.format(name="left", y=0.04, foot_y=0.04) + SIDE.format(name="right", y=-0.04, foot_y=-0.04)
    kinematics = Kinematics(load_mechanism(ANKLE.format(sides=sides)))
    assert kinematics.task.names == ("pitch", "roll")
    for angles in ([0.0, 0.0], [0.2, -0.1], [-0.3, 0.25]):
        there = kinematics.inverse(np.array(angles))
        assert there.ok, there.reason()
        J = kinematics.at(np.array(angles), seed=there.joints).task_jacobian
        expected = by_differences(kinematics, np.array(angles), there.joints)
        assert np.abs(J - expected).max() < 1e-9
        assert np.abs(expected).max() < 3.0
    at_home = kinematics.at(np.zeros(2)).task_jacobian
    assert at_home[0, 0] * at_home[1, 0] > 0.0  # both motors the same way to pitch
    assert at_home[0, 1] * at_home[1, 1] < 0.0  # against each other to roll


def test_many_poses_are_one_call_with_one_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pose depends on those before it, upright pitch and NaN among them; the scratch of the kernels is made once."""
    k = Kinematics(load_mechanism("gough_stewart"))
    rng = np.random.default_rng(5)
    poses = np.tile(k.home, (40, 1))
    poses[:, 3:] = rng.normal(size=(40, 4))
    poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1)[:, None]
    poses[7, 3:] = [0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5)]  # pitch of a quarter turn: yaw and roll are one
    poses[20] = np.nan
    alone = np.array([k.at(pose).task_twists for pose in poses])
    made = []
    data = k.engine.data
    monkeypatch.setattr(k.engine, "data", lambda *given: made.append(given) or data(*given))
    together = k.at(poses).task_twists
    np.testing.assert_array_equal(together, alone)
    assert np.isnan(together[20]).all()
    assert len(made) == 1
