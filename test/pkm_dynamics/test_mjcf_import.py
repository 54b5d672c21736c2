# SPDX-License-Identifier: Apache-2.0
"""MJCF becomes the robot that it describes: round trips, and files written by hand in MuJoCo's usual ways."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from pkm_description import DescriptionError, load_mechanism
from pkm_description.formats.convert import main
from pkm_description.formats.read import plus_text
from pkm_description.mjcf.compiled_defaults import read_compiled
from pkm_description.mjcf.export import export_mjcf
from pkm_description.mjcf.reader import read
from pkm_dynamics import Dynamics

# A five-bar as MuJoCo users write it: degrees, drawn closed, one connect with an anchor, no platform of its own.
FIVE_BAR = """<mujoco model="five_bar">
  <compiler angle="degree"/>
  <option gravity="0 -9.81 0"/>
  <worldbody>
    <body name="left_arm" pos="-0.1 0 0" euler="0 0 90">
      <joint name="left_motor" axis="0 0 1" range="-150 150" damping="0.1"/>
      <inertial pos="0.1 0 0" mass="0.5" diaginertia="1e-4 2e-3 2e-3"/>
      <body name="left_bar" pos="0.2 0 0" euler="0 0 -60">
        <joint name="left_elbow" axis="0 0 1"/>
        <inertial pos="0.1 0 0" mass="0.4" diaginertia="1e-4 1e-3 1e-3"/>
      </body>
    </body>
    <body name="right_arm" pos="0.1 0 0" euler="0 0 90">
      <joint name="right_motor" axis="0 0 1" range="-150 150" armature="0.002"/>
      <inertial pos="0.1 0 0" mass="0.5" diaginertia="1e-4 2e-3 2e-3"/>
      <body name="right_bar" pos="0.2 0 0" euler="0 0 60">
        <joint name="right_elbow" axis="0 0 1"/>
        <inertial pos="0.1 0 0" mass="0.4" diaginertia="1e-4 1e-3 1e-3"/>
      </body>
    </body>
  </worldbody>
  <equality><connect body1="left_bar" body2="right_bar" anchor="0.115470053837925 0 0"/></equality>
  <actuator>
    <motor joint="left_motor" ctrlrange="-5 5"/>
    <position joint="right_motor" kp="10"/>
  </actuator>
</mujoco>"""

# A platform on three balls: ball joints, a free platform, inertia from geoms, defaults with a class.
SIX_UPS = """<mujoco><compiler angle="radian"/>
  <default><default class="leg"><geom type="capsule" density="1000"/></default></default>
  <worldbody>
    <body name="plate" pos="0 0 0.5"><freejoint/><geom type="cylinder" size="0.2 0.01"/></body>
    {legs}
  </worldbody>
  <equality>{loops}</equality>
  <actuator>{motors}</actuator>
</mujoco>"""


def six_ups() -> str:
    legs = loops = motors = ""
    for k in range(6):
        foot = 2.0 * np.pi * (k // 2) / 3.0 + (0.25 if k % 2 else -0.25)
        head = 2.0 * np.pi * ((k + 1) // 2) / 3.0 - np.pi / 3.0 + (0.25 if k % 2 == 0 else -0.25)
        base = np.array([0.35 * np.cos(foot), 0.35 * np.sin(foot), 0.0])
        top = np.array([0.2 * np.cos(head), 0.2 * np.sin(head), 0.5])
        way = top - base
        way /= np.linalg.norm(way)
        x = np.cross(way, (0.0, 0.0, 1.0))
        x /= np.linalg.norm(x)
        axes = " ".join(str(v) for v in (*x, *np.cross(way, x)))
        legs += (
            f'<body name="leg{k}" pos="{base[0]} {base[1]} 0" xyaxes="{axes}">'
            f'<joint name="hip{k}" type="ball"/>'
            f'<geom class="leg" size="0.015" fromto="0 0 0 0 0 0.3"/>'
            f'<body name="rod{k}"><joint name="lift{k}" type="slide" axis="0 0 1"/>'
            f'<geom class="leg" size="0.01" fromto="0 0 0.1 0 0 0.4"/></body></body>'
        )
        anchor = " ".join(str(v) for v in top - (0.0, 0.0, 0.5))
        loops += f'<connect body1="plate" body2="rod{k}" anchor="{anchor}"/>'
        motors += f'<motor joint="lift{k}" gear="2"/>'
    return SIX_UPS.format(legs=legs, loops=loops, motors=motors)


@pytest.mark.parametrize("robot", ["delta", "five_bar", "gough_stewart", "dymo_3uru"])
def test_round_trip(robot: str, tmp_path: Path) -> None:
    """Export, import: the same joints, modes, positions, and efforts with friction along motions."""
    there = Dynamics(load_mechanism(robot))
    file = tmp_path / f"{robot}.xml"
    file.write_text(export_mjcf(there.mechanism))
    back = Dynamics(load_mechanism(file))
    k, n = there.kinematics, back.kinematics
    assert back.mechanism.platform_link == there.mechanism.platform_link
    assert n.actuated_names == k.actuated_names
    assert n.mechanism.mobility.motion == k.mechanism.mobility.motion
    np.testing.assert_allclose(n.home, k.home, atol=1e-9)
    # loops other than connect, weld and hinge carry bodies of a ten-millionth of the robot's mass
    tolerance = 1e-5 if robot == "dymo_3uru" else 1e-9
    random = np.random.default_rng(6)
    for _ in range(3):
        pose = k.home.copy()
        pose[:3] += k.subspace(k.home)[:3, : min(3, k.mobility)] @ random.uniform(-0.02, 0.02, min(3, k.mobility))
        twist = k.subspace(pose) @ random.uniform(-1.0, 1.0, k.mobility)
        acceleration = k.subspace(pose) @ random.uniform(-3.0, 3.0, k.mobility)
        ours, theirs = k.motion(pose, twist, acceleration), n.motion(pose, twist, acceleration)
        assert ours.status == theirs.status == 0
        np.testing.assert_allclose(theirs.actuated, ours.actuated, atol=1e-9)
        np.testing.assert_allclose(theirs.actuated_velocities, ours.actuated_velocities, atol=1e-9)
        first, second = there.inverse(pose, twist, acceleration), back.inverse(pose, twist, acceleration)
        scale = np.abs(first.effort).max()
        np.testing.assert_allclose(second.effort, first.effort, atol=tolerance * scale)


def test_a_five_bar_drawn_closed() -> None:
    mechanism = load_mechanism(FIVE_BAR, {"platform": "left_bar"})
    assert mechanism.actuated_joints == ("left_motor", "right_motor")
    assert [mechanism.joint_named[name].drive.command_interfaces for name in mechanism.actuated_joints] == [  # type: ignore[union-attr]
        ("effort",),
        ("position",),
    ]
    assert mechanism.joint_named["right_motor"].drive.armature == 0.002  # type: ignore[union-attr]
    limits = mechanism.joint_named["left_motor"].limits
    np.testing.assert_allclose([limits.lower, limits.upper, limits.effort], [-np.radians(150), np.radians(150), 5.0])
    assert mechanism.mobility.platform == 2
    # tips of the bars: 0.2 m up, then 0.1155 m at 30 degrees towards the middle
    kinematics = Dynamics(mechanism).kinematics
    np.testing.assert_allclose(kinematics.home[:3], [-0.1, 0.2, 0.0], atol=1e-9)
    assert kinematics.inverse(kinematics.home).status == 0


def test_who_is_the_platform_is_asked() -> None:
    with pytest.raises(DescriptionError, match="several bodies could be the platform: left_bar, right_bar"):
        load_mechanism(FIVE_BAR)


def test_balls_a_free_plate_and_geoms() -> None:
    pytest.importorskip("mujoco")
    dynamics = Dynamics(load_mechanism(six_ups()))
    k = dynamics.kinematics
    assert k.mechanism.platform_link == "plate"
    assert k.mobility == 6
    assert k.mechanism.mobility.idle == 6  # each leg spins about itself between two balls
    weight = 9.81 * sum(link.inertial.mass for link in k.mechanism.links)
    assert weight > 0.0
    pose = k.home + np.array([0.02, -0.01, 0.03, 0, 0, 0, 0])
    ik = k.inverse(pose)
    assert ik.status == 0
    back = k.forward(ik.actuated, near=k.home)
    np.testing.assert_allclose(back.pose, pose, atol=1e-9)
    acceleration = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    effort = dynamics.inverse(pose, np.zeros(6), acceleration)
    assert effort.status == 0
    np.testing.assert_allclose(dynamics.direct(pose, np.zeros(6), effort.effort).acceleration, acceleration, atol=1e-8)


@pytest.mark.parametrize("robot", ["delta", "five_bar", "handmade"])
def test_both_readers_agree(robot: str) -> None:
    pytest.importorskip("mujoco")
    text = FIVE_BAR if robot == "handmade" else export_mjcf(load_mechanism(robot))
    ours, theirs = read(ET.fromstring(text)), read_compiled(text, None, "a test")
    assert [b.name for b in ours.bodies] == [b.name for b in theirs.bodies]
    for one, other in zip(ours.bodies, theirs.bodies, strict=True):
        assert one.parent == other.parent
        np.testing.assert_allclose(one.frame, other.frame, atol=1e-12)
        assert one.mass == pytest.approx(other.mass)
        np.testing.assert_allclose(one.com, other.com, atol=1e-12)
        np.testing.assert_allclose(one.inertia, other.inertia, atol=1e-12)
        for a, b in zip(one.joints, other.joints, strict=True):
            assert (a.name, a.kind) == (b.name, b.kind)
            np.testing.assert_allclose(a.axis, b.axis, atol=1e-12)
            np.testing.assert_allclose(a.pos, b.pos, atol=1e-12)
            assert (a.limits is None) == (b.limits is None)
            assert (a.damping, a.friction, a.armature) == (b.damping, b.friction, b.armature)
    for c, d in zip(ours.closures, theirs.closures, strict=True):
        assert (c.kind, c.first, c.second) == (d.kind, d.first, d.second)
        np.testing.assert_allclose(c.first_frame[:3, 3], d.first_frame[:3, 3], atol=1e-9)
        np.testing.assert_allclose(c.second_frame[:3, 3], d.second_frame[:3, 3], atol=1e-9)
    assert [(a.joint, a.interface, a.effort) for a in ours.actuators] == [
        (a.joint, a.interface, a.effort) for a in theirs.actuators
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('body2="right_bar"', 'body2="nobody"', "nobody"),
        ('name="left_elbow" axis="0 0 1"', 'name="left_elbow" axis="0 0 1" stiffness="3 1"', "stretch"),
        ("<connect body1", "<distance geom1", "connect or weld"),
        ("<equality>", "<equalities>", "not well-formed"),
        ('pos="0.2 0 0"', 'pos="0.2 0"', "3 numbers"),
    ],
)
def test_what_cannot_be_used_is_named(old: str, new: str, words: str) -> None:
    with pytest.raises(DescriptionError, match=words):
        plus_text(FIVE_BAR.replace(old, new), {"platform": "left_bar"})


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "five_bar.xml", tmp_path / "five_bar.urdf"
    source.write_text(FIVE_BAR)
    assert main([str(source), "--platform", "right_bar", "-o", str(target)]) == 0
    assert load_mechanism(target).platform_link == "right_bar"
    assert main([str(source)]) == 1
    assert "platform" in capsys.readouterr().err
