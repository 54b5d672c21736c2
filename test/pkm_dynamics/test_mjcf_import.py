# SPDX-License-Identifier: Apache-2.0
"""MJCF becomes the robot that it describes: round trips, and files written by hand in MuJoCo's usual ways."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pkm_description import DescriptionError, load_mechanism
from pkm_description.formats.bodies_and_joints import motion
from pkm_description.formats.convert import main
from pkm_description.formats.mjcf_compiled import read_compiled
from pkm_description.formats.mjcf_export import export_mjcf
from pkm_description.formats.mjcf_model import read
from pkm_description.formats.read import assembly_of, plus_text
from pkm_description.load import load_model
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

TURNED = 'pos="0.1 0.2 0.3" euler="10 -20 30">'

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


def test_ends_that_do_not_meet_are_told() -> None:
    """A plane linkage drawn open by 0.1 mm closes elsewhere; how far it was is said. By 3 mm it is refused."""
    pytest.importorskip("mujoco")
    sites = ("left_bar", "right_bar"), ("0.1154 0 0", "0.1155 0 0")
    text = FIVE_BAR
    for name, place in zip(*sites, strict=True):
        text = text.replace(f'<joint name="{name.replace("bar", "elbow")}"', f'<site name="{name}" pos="{place}"/>@')
        text = text.replace("@", f'<joint name="{name.replace("bar", "elbow")}"')
    text = re.sub("<connect [^/]*/>", '<connect name="tips" site1="left_bar" site2="right_bar"/>', text)
    notes = plus_text(text, {"platform": "left_bar"})[1]
    assert any("tips" in note and re.search(r"9.*e-05 m apart", note) for note in notes)
    with pytest.raises(DescriptionError, match=r'"tips">: its ends.* are 0.0029 m apart as drawn'):
        load_mechanism(text.replace("0.1155", "0.1184"), {"platform": "left_bar"})
    assert load_mechanism(text, {"platform": "left_bar"}).mobility.platform == 2
    assert not any("apart" in note for note in plus_text(FIVE_BAR, {"platform": "left_bar"})[1])


def test_a_loop_that_no_joint_moves_is_left_out_where_it_is_closed() -> None:
    post = '<body name="post"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody>'
    held = FIVE_BAR.replace("</worldbody>", post).replace("<equality>", '<equality><weld name="again" body1="post"/>')
    found = load_model(held)
    assert any("again" in note and "no joint moves between post and world" in note for note in found.notes)
    assert len(found.clusters) == 1
    for elsewhere in ("0 0 1e-4 1 0 0 0", "0 0 0 0 1 0 0"):
        with pytest.raises(DescriptionError, match=r'"again".*between post and world, and it is not closed'):
            load_model(held.replace('body1="post"', f'body1="post" relpose="{elsewhere}"'))


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
    assert ours.actuators == theirs.actuators


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('body2="right_bar"', 'body2="nobody"', "nobody"),
        ('name="left_elbow" axis="0 0 1"', 'name="left_elbow" axis="0 0 1" stiffness="3 1"', "depends on its length"),
        ('damping="0.1"', 'damping="1 0.5 0.25"', "damping depends on its speed"),
        ("<connect body1", "<distance geom1", "connect or weld"),
        ("<equality>", "<equalities>", "not well-formed"),
        ("equality>", "equalities>", "did you mean 'equality'"),
        ("<connect body1", "<conect body1", "did you mean 'connect'"),
        ('body2="right_bar"', 'body_2="right_bar"', "did you mean 'body2'"),
        ('pos="0.2 0 0"', 'pos="0.2 0"', "write 3"),
    ],
)
def test_what_cannot_be_used_is_named(old: str, new: str, words: str) -> None:
    with pytest.raises(DescriptionError, match=words):
        plus_text(FIVE_BAR.replace(old, new), {"platform": "left_bar"})


COMPILED = '<mujoco><default><default class="any"/></default>'  # in place of <mujoco>: the text needs MuJoCo's compiler


@pytest.mark.parametrize(
    ("joint", "actuators", "effort", "words"),
    [
        ('actuatorfrcrange="-3 3"', '<motor {} ctrlrange="-20 20"/>', 3.0, ""),
        ('actuatorfrcrange="-3 3"', "<motor {}/>", 3.0, ""),
        ('actuatorfrcrange="-3 3"', '<position {} kp="100"/>', 3.0, ""),
        ('actuatorfrcrange="-3 3" actuatorfrclimited="false"', '<motor {} ctrlrange="-20 20"/>', 20.0, ""),
        ("", '<motor {} ctrlrange="-20 20" ctrllimited="false"/>', np.inf, ""),
        ("", '<motor {0} ctrlrange="-20 20"/><motor {0} gear="3" ctrlrange="-5 5"/>', 35.0, "add up: crank"),
        ('actuatorfrcrange="-30 30"', '<motor {0} ctrlrange="-20 20"/><motor {0} ctrlrange="-20 20"/>', 30.0, "add up"),
        ("", '<motor {0} ctrlrange="-20 20"/><damper {0} kv="3" ctrlrange="0 1"/>', 20.0, "not read: the damper crank"),
        ("", '<cylinder {} ctrlrange="0 1" area="2"/>', 2.0, "crank \\(0 to 2, taken as 2"),
        ("", '<motor {} gear="-9" ctrlrange="-1 2"/>', 9.0, "crank \\(-18 to 9, taken as 9"),
        ("", '<general {} gainprm="10" ctrlrange="-1 3" biastype="affine" biasprm="-10 0 0"/>', 20.0, ""),
        ("", '<general {} gainprm="10" gear="2" ctrlrange="-1 1"%s/>', np.inf, "no limit .* crank \\(a position servo"),
        ("", '<general {} gainprm="10" gear="2" ctrlrange="-1 1" forcerange="-4 4"%s/>', 8.0, ""),
        ("", '<muscle {} ctrlrange="0 1"/>', np.inf, "no limit .* crank \\(a muscle"),
    ],
)
def test_an_effort_limit_is_what_actuators_have_together(joint: str, actuators: str, effort: float, words: str) -> None:
    """By both readers, and where forces follow from controls by MuJoCo: no more than it has either way."""
    mujoco = pytest.importorskip("mujoco")
    actuators = actuators.format('joint="crank"').replace("%s", ' biastype="affine" biasprm="0 -10 -1"')
    body = f'<body name="b"><joint name="crank" axis="0 0 1" range="-90 90" {joint}/>%s</body>'
    body %= '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    text = f"<mujoco><worldbody>{body}</worldbody><actuator>{actuators}</actuator></mujoco>"
    for one in (text, text.replace("<mujoco>", COMPILED)):
        found = assembly_of(one)
        assert found.joints[0].limits.effort == pytest.approx(effort)
        notes = [note for note in found.notes if not re.fullmatch("not read: gains of the servos crank", note)]
        told = [note for note in notes if re.search(words, note)]
        assert len(told) == len(notes) == bool(words)
    m = mujoco.MjModel.from_xml_string(text)
    data, ways = mujoco.MjData(m), []
    if effort < np.inf and m.actuator_ctrllimited.all():
        for end in (0, 1):
            data.ctrl[:], data.act[:] = m.actuator_ctrlrange[:, end], m.actuator_ctrlrange[: m.na, end]
            mujoco.mj_forward(m, data)
            ways.append(abs(float(data.qfrc_actuator[0])))
        assert min(way for way in ways if way) == pytest.approx(effort)


@pytest.mark.parametrize("spans", list(product(("", "-12 12"), ("", "-3 3"), ("", "-5 5"))))
@pytest.mark.parametrize("second", ['tendon="t"', 'joint="a" gear="-2"'])
def test_motors_of_a_tendon_are_cut_as_mujoco_cuts_them(spans: tuple[str, str, str], second: str) -> None:
    """Their forces together at the tendon, then the efforts at each joint; a leads b by 2."""
    mujoco = pytest.importorskip("mujoco")
    at, near, whole = (f'actuatorfrcrange="{span}"' if span else "" for span in spans)
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    text = f"""<mujoco><worldbody><body name="p"><joint name="a" {at}/>{inertial}
      <body name="q"><joint name="b" {near}/>{inertial}</body></body></worldbody>
      <tendon><fixed name="t" {whole}><joint joint="a" coef="1.5"/><joint joint="b" coef="0.5"/></fixed></tendon>
      <equality><joint joint1="b" joint2="a" polycoef="0 2"/></equality>
      <actuator><motor tendon="t" ctrlrange="-10 10"/><motor {second} ctrlrange="-7 7"/></actuator></mujoco>"""
    m = mujoco.MjModel.from_xml_string(text)
    data, most = mujoco.MjData(m), 0.0
    for controls in product(*m.actuator_ctrlrange):
        data.ctrl[:] = controls
        mujoco.mj_forward(m, data)
        most = max(most, abs(float(data.qfrc_actuator @ (1.0, 2.0))))
    assert assembly_of(text).joints[0].limits.effort == pytest.approx(most)


@pytest.mark.filterwarnings("ignore:compiler attribute 'settotalmass'")
@pytest.mark.parametrize("setting", ['settotalmass="50"', 'boundmass="0.45"', 'boundinertia="0.01"'])
def test_masses_are_those_that_the_compiler_sets(setting: str) -> None:
    mujoco = pytest.importorskip("mujoco")
    text = FIVE_BAR.replace('angle="degree"', f'angle="degree" {setting}')
    m = mujoco.MjSpec.from_string(text).compile()  # which writes no file of warnings
    stated = assembly_of(FIVE_BAR).bodies
    for name, body in assembly_of(text).bodies.items():
        assert body.inertial.mass == pytest.approx(float(m.body(name).mass[0]))
        own = np.linalg.eigvalsh(body.inertial.inertia)
        np.testing.assert_allclose(own, np.sort(m.body(name).inertia), rtol=1e-9, atol=1e-15)
    one, other = assembly_of(text).bodies["left_bar"].inertial, stated["left_bar"].inertial
    assert one.mass != other.mass or (one.inertia != other.inertia).any()


def test_what_is_dropped_is_told_by_name() -> None:
    pytest.importorskip("mujoco")
    ball = '<body name="ball" gravcomp="1"><joint name="ball" type="ball" range="0 30"/>%s</body></worldbody>'
    ball %= '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    text = re.sub("<mujoco.*>", "<mujoco>", FIVE_BAR, count=1).replace("</worldbody>", ball)
    still = text.replace('-9.81 0"/>', '-9.81 0"><flag equality="disable" gravity="disable"/></option>')
    assert still != text
    for one in (text, text.replace("<mujoco>", COMPILED)):
        told = " ".join(assembly_of(one).notes)
        assert "not read: gravcomp of ball" in told
        assert "not read: the range of the ball ball" in told
        assert "a <flag> disables" not in told
    for one in (still, still.replace("<mujoco>", COMPILED)):
        found = assembly_of(one)
        assert any("a <flag> disables" in note for note in found.notes)
        assert not any(joint.closes for joint in found.joints)
        assert not found.gravity.any()
    other = still.replace('equality="disable" gravity', 'actuation="disable" spring')
    for one in (other, other.replace("<mujoco>", COMPILED)):
        told = " ".join(assembly_of(one).notes)
        assert 'as if enabled: <flag spring="disable"/>, <flag actuation="disable"/>' in told


def test_what_robots_have_no_place_for_is_told_by_both_readers() -> None:
    pytest.importorskip("mujoco")
    text = re.sub("<mujoco.*>", "<mujoco>", FIVE_BAR, count=1)
    for old, new in (
        ("<option ", '<option density="1.2" '),
        ("<worldbody>", '<worldbody><light name="lamp"/><camera name="front"/><geom type="plane" size="1 1 1"/>'),
        ("</worldbody>", '<body name="aim" mocap="true"><geom type="sphere" size="0.1"/></body></worldbody>'),
        (
            'axis="0 0 1"/>',
            'axis="0 0 1" solreflimit="0.01 1"/><site name="tip"/><geom type="ellipsoid" size="1 1 1"/>',
        ),
        ("<equality>", '<equality><weld name="grip" body1="aim" body2="left_bar"/>'),
        ("</equality>", '<joint joint1="left_elbow" active="false" name="off"/></equality>'),
        ("<position ", '<position name="servo" '),
        (
            "</mujoco>",
            '<asset><material name="steel"/></asset><sensor><jointpos name="angle" joint="left_motor"/></sensor>'
            '<contact><exclude body1="left_arm" body2="right_arm"/></contact>'
            '<custom><text name="by" data="us"/></custom>'
            '<keyframe><key qpos="0 0 0 0"/><key name="bent" qpos="0 0 0 0"/></keyframe></mujoco>',
        ),
    ):
        assert old in text
        text = text.replace(old, new, 1)
    plain = read(ET.fromstring(text))
    compiled = assembly_of(text.replace("<mujoco>", COMPILED))
    assert set(compiled.notes) >= {
        "not read: cameras front",
        "not read: lights lamp",
        "not read: sites tip",
        "not read: materials steel",
        "not read: sensors angle",
        "not read: pairs and excluded pairs of contacts 1 without a name",
        "not read: numbers and texts of <custom> by",
        "not read: other keyframes bent",
        "not read: a medium, <option> density",
        "not read: the mocap body aim",
        "not read: the equality of a mocap body, grip (of aim)",
        "not read: the equality off, which is not active",
        "not read: gains of the servos servo",
        "not read: contacts of geoms, which are pictures here, of left_bar",
        "not read: how soft constraints are (solref, solimp, margin), of left_elbow",
    }
    assert {note for note in compiled.notes if "no limit of effort" not in note} == set(plain.notes)
    assert len(assembly_of(FIVE_BAR).notes) == len(compiled.notes) - len(plain.notes) + 1  # of the servo, and its gains


def test_a_spring_on_the_world_is_one_on_the_base_that_stands_for_it() -> None:
    mujoco = pytest.importorskip("mujoco")
    pull = '<tendon><spatial stiffness="30" springlength="0.4"><site site="high"/><site site="tip"/></spatial></tendon>'
    text = (
        FIVE_BAR.replace("<worldbody>", '<worldbody><site name="high" pos="0.3 0.1 1"/><body name="base" ' + TURNED)
        .replace("</worldbody>", "</body></worldbody>")
        .replace('<joint name="left_elbow"', '<site name="tip" pos="0.1 0.02 0"/><joint name="left_elbow"')
        .replace("</mujoco>", f"{pull}</mujoco>")
        .replace("-9.81", "0")
    )
    mechanism = load_mechanism(text, {"platform": "left_bar"})
    assert mechanism.base_link == "base"
    dynamics = Dynamics(mechanism)
    k = dynamics.kinematics
    m = mujoco.MjSpec.from_string(text).compile()
    m.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data = mujoco.MjData(m)

    def energy(driven: np.ndarray) -> float:
        found = k.forward(driven, near=k.home).by_name("joints")
        for n in range(m.njnt):
            data.qpos[n] = found[m.joint(n).name]
        mujoco.mj_forward(m, data)
        return float(data.energy[0])

    driven, step = k.inverse(k.home).actuated + np.array([0.1, -0.05]), 1e-5 * np.eye(2)
    effort = dynamics.inverse(k.forward(driven, near=k.home).pose, np.zeros(6)).effort
    expected = [(energy(driven + way) - energy(driven - way)) / 2e-5 for way in step]
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(effort, expected, rtol=1e-6, atol=1e-8)


def test_too_many_bodies_are_refused_before_mujoco_reads_them() -> None:
    bodies = "<body><freejoint/></body>" * 501
    with pytest.raises(DescriptionError, match="more than 500 links"):
        assembly_of(f"{COMPILED}<worldbody>{bodies}</worldbody><no_such_element/></mujoco>")


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "five_bar.xml", tmp_path / "five_bar.urdf"
    source.write_text(FIVE_BAR)
    assert main([str(source), "--platform", "right_bar", "-o", str(target)]) == 0
    assert load_mechanism(target).platform_link == "right_bar"
    assert main([str(source)]) == 0
    assert "read as a tree, with 1 cluster of loops and no platform" in (told := capsys.readouterr().err)
    assert "several bodies could be the platform" in told


# A gripper's half: a four-bar finger, its mirror coupled to it; motors and couplings as MuJoCo's models write them.
COUPLED = """<mujoco model="coupled"><compiler angle="radian"/>
  <default><default class="bar"><joint axis="0 0 1"/><geom type="capsule" size="0.01"/></default></default>
  <worldbody>
    <body name="crank" childclass="bar"><joint name="motor" ref="0.2"/><geom fromto="0 0 0 0 0.2 0"/>
      <body name="coupler" pos="0 0.2 0"><joint name="pin"/><geom fromto="0 0 0 0.3 0 0"/>
        <site name="near" pos="0.3 0 0"/></body></body>
    <body name="rocker" pos="0.3 0 0" childclass="bar"><joint name="foot"/><geom fromto="0 0 0 0 0.2 0"/>
      <site name="far" pos="0 0.2 0"/></body>
    <body name="mirror" pos="0 1 0" childclass="bar"><joint name="other" ref="0.1"/>
      <geom fromto="0 0 0 0 0.2 0"/></body>
    <body name="still" pos="0 2 0" childclass="bar"><joint name="held"/><geom fromto="0 0 0 0 0.2 0"/></body>
  </worldbody>
  <tendon><fixed name="both"><joint joint="motor" coef="0.5"/><joint joint="other" coef="0.25"/></fixed></tendon>
  <equality><connect site1="near" site2="far"/>
    <joint joint1="other" joint2="motor" polycoef="0.05 2 0 0 0"/>
    <joint joint1="held" polycoef="0.3 0 0 0 0"/></equality>
  <actuator><general tendon="both" gear="3" forcelimited="true" forcerange="-2 2"/></actuator>
</mujoco>"""


def test_couplings_and_motors_of_tendons() -> None:
    pytest.importorskip("mujoco")
    assembly = assembly_of(COUPLED)
    joints = {joint.name: joint for joint in assembly.joints}
    mimic = joints["other"].mimic
    assert mimic is not None
    assert (mimic.joint, mimic.multiplier) == ("motor", 2.0)
    assert mimic.offset == pytest.approx(0.1 + 0.05 - 2.0 * 0.2)  # between departures from `ref`
    assert joints["held"].kind == "fixed"
    assert assembly.drives == {"motor": "effort"}
    # a motor of 2 N m on a gear of 3, on half of one joint and a quarter of one that turns twice as far
    assert joints["motor"].limits.effort == pytest.approx(2.0 * 3.0 * (0.5 + 0.25 * 2.0))


def test_positions_are_those_of_mujoco_where_a_joint_has_a_ref() -> None:
    """Bodies, limits, rests of springs and what an equality leaves open, at drawn positions of MuJoCo's."""
    mujoco = pytest.importorskip("mujoco")
    spring = '<joint name="other" ref="0.1" range="-1 2" limited="true" stiffness="3" springref="0.4"'
    text = COUPLED.replace('<joint name="other" ref="0.1"', spring).replace("0.05 2 0 0 0", "0.05 2 -0.4 0.3 0.2")
    text = text.replace('<joint joint="other" coef="0.25"/>', "")
    assembly, m = assembly_of(text), mujoco.MjModel.from_xml_string(text)
    joints, data = {joint.name: joint for joint in assembly.joints}, mujoco.MjData(m)
    data.qpos[:] = np.random.default_rng(3).uniform(-1.0, 1.0, m.nq)
    mujoco.mj_forward(m, data)
    (coupling,) = assembly.couplings
    position = {m.joint(i).name: float(data.qpos[i]) for i in range(m.njnt)}
    for body in ("crank", "rocker", "mirror"):
        (joint,) = (joint for joint in joints.values() if joint.child == body and not joint.closes)
        pose = joint.first @ motion(joint, position[joint.name]) @ np.linalg.inv(joint.second)
        np.testing.assert_allclose(pose[:3, :3].ravel(), data.body(body).xmat, atol=1e-12)
    assert (joints["other"].limits.lower, joints["other"].limits.upper) == (-1.0, 2.0)
    assert joints["other"].spring_reference == pytest.approx(0.4)
    rows = [k for k in range(data.nefc) if data.efc_type[k] == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)]
    followed = data.efc_pos[rows][[data.efc_id[k] for k in rows].index(1)]
    leads = max(abs(c) for _, numbers in coupling.terms for c in numbers)  # which the equation is divided by
    assert coupling.at(position.__getitem__, lambda _: 1.0)[0] * leads == pytest.approx(followed, abs=1e-12)


def test_the_follower_that_is_driven_leads() -> None:
    pytest.importorskip("mujoco")
    driven = COUPLED.replace('<general tendon="both"', '<general joint="other"')
    joints = {joint.name: joint for joint in assembly_of(driven).joints}
    assert joints["other"].mimic is None
    mimic = joints["motor"].mimic
    assert mimic is not None
    assert (mimic.joint, mimic.multiplier) == ("other", 0.5)
    assert mimic.offset == pytest.approx(0.2 - 0.5 * (0.05 + 0.1))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('<joint joint="other" coef="0.25"/>', '<joint joint="pin" coef="0.25"/>', "drives both"),
        ("<connect", '<tendon tendon1="three" tendon2="both" polycoef="0 1 2 0 0"/><connect', "of no single joint"),
        ('<general tendon="both" gear="3"', '<general site="far" gear="3 0 0 0 0 0"', "only motors of joints"),
        ('<joint joint1="held"', '<joint joint1="other" joint2="motor"/><joint joint1="held"', "two equalities"),
        ('<joint joint1="held"', '<joint joint1="held" polycoef="0 0 0 0 0"/><joint joint1="held"', "another at 0.3"),
        ('<general tendon="both" gear="3"', '<general joint="held"', '"held">: an equality holds it and an actuator'),
        ('type="capsule" size="0.01"', 'type="mesh" mesh="gone"', "MuJoCo refuses it"),
    ],
)
def test_what_couples_otherwise_is_named(old: str, new: str, words: str) -> None:
    pytest.importorskip("mujoco")
    parts = "".join(f'<joint joint="{name}" coef="1"/>' for name in ("motor", "pin", "foot"))
    three = f'<fixed name="three">{parts}</fixed>'
    assert old in COUPLED
    with pytest.raises(DescriptionError, match=words) as raised:
        assembly_of(COUPLED.replace("</tendon>", f"{three}</tendon>").replace(old, new))
    assert "\n" not in str(raised.value)


def test_meshes_of_stated_inertias_may_be_missing() -> None:
    """Their files take long, or are elsewhere; the drawing is all that is lost."""
    pytest.importorskip("mujoco")
    inertial = '<inertial pos="0 0.1 0" mass="1" diaginertia="1e-3 1e-3 1e-3"/>'
    text = COUPLED.replace("<worldbody>", '<asset><mesh name="gone" file="gone.stl"/></asset><worldbody>')
    text = text.replace('<geom fromto="0 0 0 0.3 0 0"/>', f'{inertial}<geom type="mesh" mesh="gone"/>')
    assert assembly_of(text).bodies["coupler"].inertial.mass == 1.0


def test_a_ball_of_the_tree_is_zero_at_home() -> None:
    """A keyframe turns it, and the hinges in its place count from there."""
    pytest.importorskip("mujoco")
    key = f'<key name="home" qpos="0 0 0.5 1 0 0 0 {"1 0 0 0 0 " * 6}"/>'
    text = six_ups().replace("</mujoco>", f"<keyframe>{key}</keyframe></mujoco>")
    turned = text.replace("1 0 0 0 0 ", "0.9659258262890683 0 0 0.25881904510252074 0 ", 1)
    assert turned != text
    # a spin of 30 degrees about the leg between its balls changes nothing that is seen
    first, second = (load_mechanism(one) for one in (text, turned))
    np.testing.assert_allclose(second.home, first.home, atol=1e-9)
    assert second.mobility.total == first.mobility.total == 12


def test_contacts_with_what_is_not_there_and_ranges_of_sums_do_not_matter():
    pytest.importorskip("mujoco")
    geom = '<geom name="bar" type="sphere" size="0.01"/>'
    more = '<contact><pair geom1="bar" geom2="floor"/><exclude body1="left_bar" body2="floor"/></contact><tendon>'
    more += '<fixed name="sum" range="-0.1 0.1" limited="true"><joint joint="left_motor" coef="1"/>'
    more += '<joint joint="right_motor" coef="0.5"/><joint joint="left_elbow" coef="1"/></fixed></tendon></mujoco>'
    text = FIVE_BAR.replace('<body name="left_bar"', f'{geom}<body name="left_bar"').replace("</mujoco>", more)
    found = assembly_of(text)
    assert [joint.name for joint in found.joints] == [joint.name for joint in assembly_of(FIVE_BAR).joints]
    assert any("range of the tendon sum" in note for note in found.notes)
    with pytest.raises(DescriptionError, match="not a spring between two sites"):
        assembly_of(text.replace('name="sum"', 'name="sum" stiffness="3"'))
