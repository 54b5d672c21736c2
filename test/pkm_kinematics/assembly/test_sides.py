# SPDX-License-Identifier: Apache-2.0
"""Signs of assembly modes: modes come and go in pairs of opposite sign, and labels say where there is no sign."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.assembly.method import REDUNDANT, UNKNOWN
from pkm_kinematics.forward.tracker import ModeTracker
from pkm_kinematics.status import closes

SIGNED = [
    "tricept", "tripod_3prs", "three_rpc", "dymo_3uru", "orthoglide", "irsbot2", "par2", "planar_3rrr", "five_bar",
    "delta", "wrist_3ups_s",
]  # fmt: skip


@pytest.mark.parametrize("name", SIGNED)
def test_signs_of_all_modes_sum_to_zero(name, of_gallery):
    """The degree of the map from poses to actuator positions: where modes meet, one of each sign vanishes.

    So the sum cannot change while the actuators move; where there is no mode at all it is zero.
    """
    k = of_gallery[name].kinematics
    home = k.home_joints[k.engine.actuated_column]
    unit = np.where(k.engine.actuated_turning, 1.0, k.engine.size)
    rng = np.random.default_rng(2)
    counts = set()
    for _ in range(8):
        modes = k.forward_all(home + 0.25 * unit * rng.uniform(-1.0, 1.0, len(home)))
        assert modes.certified
        if any(one.status not in (Status.CONVERGED, Status.JOINT_LIMIT) for one in modes):
            continue
        signs = [one.label[0] for one in modes]
        assert signs.count("+") == signs.count("-")
        counts.add(len(signs))
    assert max(counts) >= 2


@pytest.mark.by_day("tripod_3prs")
@pytest.mark.parametrize("name", ["tricept", "tripod_3prs"])
def test_a_tracker_agrees_where_the_motion_space_turns(name, of_gallery):
    """Moved by its actuators from each mode, every configuration keeps that mode's sign, as the list has it."""
    k = of_gallery[name].kinematics
    home = k.home_joints[k.engine.actuated_column]
    seen = set()
    for one in k.forward_all(home):
        if not one.ok:
            continue
        tracker, pose, joints = ModeTracker(k), one.pose, one.joints
        for part in np.linspace(0.0, 1.0, 20):
            q = home + 0.02 * part * np.array([1.0, -0.5, 0.2])
            moved = k.forward(q, near=pose, seed=joints)
            if not moved.ok:
                break
            pose, joints = moved.pose, moved.joints
            modes = tracker.observe(pose, joints)
            assert modes.assembly[0] == one.label[0]
            assert modes.change == ""
        seen.add(one.label[0])
    assert "+" in seen


@pytest.mark.parametrize("name", ["planar_redundant", "gough_stewart_7"])
def test_redundant_actuators_have_no_sign(name, of_gallery):
    k = of_gallery[name].kinematics
    assert k.assembly.unsigned == REDUNDANT
    modes = k.forward_all(k.home_joints[k.engine.actuated_column])
    assert modes[0].label == "redundant 1"
    assert ModeTracker(k).observe(k.home, k.home_joints).assembly == "redundant"


def test_what_only_a_search_lists_has_no_sign(of_gallery):
    k = of_gallery["reactionless_four_bar"].kinematics
    assert k.assembly.unsigned == UNKNOWN
    assert k.forward_all(k.home_joints[k.engine.actuated_column])[0].label == "?1"


BASE, CRANK, COUPLER, ROCKER = 4.0, 3.0, 2.6, 2.2
FOUR_BAR = f"""<robot name="four_bar">
  <link name="base"/> <link name="crank"/> <link name="coupler"/> <link name="rocker"/>
  <joint name="crank" type="continuous"><parent link="base"/><child link="crank"/><axis xyz="0 0 1"/></joint>
  <joint name="coupler" type="continuous">
    <parent link="crank"/><child link="coupler"/><origin xyz="{CRANK} 0 0"/><axis xyz="0 0 1"/></joint>
  <joint name="rocker" type="continuous">
    <parent link="base"/><child link="rocker"/><origin xyz="{BASE} 0 0"/><axis xyz="0 0 1"/></joint>
  <loop name="pin" type="revolute">
    <predecessor link="coupler"><origin xyz="{COUPLER} 0 0"/></predecessor>
    <successor link="rocker"><origin xyz="{ROCKER} 0 0"/></successor> <axis xyz="0 0 1"/></loop>
  <pkm base_link="base" platform_link="coupler" kinematics_only="true"><home>
    <joint name="crank" position="1.0"/> <joint name="coupler" position="-1.5"/> <joint name="rocker" position="1.5"/>
  </home></pkm>
  <ros2_control name="four_bar" type="system">
    <joint name="crank"><command_interface name="effort"/></joint></ros2_control>
</robot>"""


def test_a_four_bar_followed_through_its_singularities():
    """The crank turns back where coupler and rocker are in line; there its mode changes, and nowhere else.

    Its motion is written down from the rocker's angle, by triangles.
    """
    k = Kinematics(load_mechanism(FOUR_BAR))
    assert not k.constant_space
    assert k.assembly.unsigned == UNKNOWN
    tracker, last, cranks, labels = ModeTracker(k), k.home[:2], [], []
    start = dict(zip(k.joint_names, k.home_joints, strict=True))["rocker"]
    for angle in start + np.linspace(0.0, 2.5, 800):
        tip = np.array([BASE + ROCKER * np.cos(angle), ROCKER * np.sin(angle)])
        far = float(np.linalg.norm(tip))
        along = (CRANK**2 - COUPLER**2 + far**2) / (2.0 * far)
        up = np.sqrt(CRANK**2 - along**2) * np.array([-tip[1], tip[0]]) / far
        last = min(along * tip / far + up, along * tip / far - up, key=lambda p, near=last: np.linalg.norm(p - near))
        q, yaw = np.arctan2(last[1], last[0]), np.arctan2(tip[1] - last[1], tip[0] - last[0])
        pose = np.array([*last, 0.0, 0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)])
        labels.append(tracker.observe(pose, np.array([q, yaw - q, angle])))
        cranks.append(q)
    turns = np.flatnonzero(np.diff(np.sign(np.diff(np.unwrap(cranks)))))
    changes = [n for n, modes in enumerate(labels) if modes.change]
    assert len(turns) >= 1
    assert labels[0].assembly == "+1"
    assert all("type 2" in labels[n].change for n in changes)
    assert len(changes) == len(turns)
    assert np.abs(np.array(changes) - turns).max() <= 2


def test_type_1_leaves_the_assembly_mode_alone(of_gallery):
    """An arm of an IRSBot-2 stretched through: another working mode, the same assembly mode, all the way."""
    k = of_gallery["irsbot2"].kinematics
    home = k.home_joints[k.engine.actuated_column]
    goal = next(one for one in k.inverse_all(k.home) if one.label == "-+").actuated
    goal = home + np.angle(np.exp(1j * (goal - home)))
    tracker, pose, joints, labels = ModeTracker(k), k.home, k.home_joints, []
    for part in np.linspace(0.0, 1.0, 200):
        moved = k.forward(home + part * (goal - home), near=pose, seed=joints)
        assert closes(moved.status)
        pose, joints = moved.pose, moved.joints
        labels.append(tracker.observe(pose, joints))
    assert labels[0].working == "++"
    assert labels[-1].working == "-+"
    assert {modes.assembly for modes in labels} == {"+1"}
