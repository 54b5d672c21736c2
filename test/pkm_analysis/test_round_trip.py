# SPDX-License-Identifier: Apache-2.0
"""Trees (floating bases, several loops, no platform) through every format and back, judged by MuJoCo's mass matrix."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pkm_analysis.zoo import FORMATS, difference, there_and_back
from pkm_description.formats.convert import WRITERS, main
from pkm_description.formats.mjcf_export import export_mjcf
from pkm_description.load import load_model
from pkm_description.tree_model import TreeModel
from pkm_runtime.errors import PkmError

BIPED = Path(__file__).parents[1] / "pkm_description" / "biped.xml"
EXACT = 1e-10
NOT_IN_YAML = {"gripper": "hinges and balls alone, and no grip", "swing": "it has no loop"}
GRIPPER = """<mujoco model="gripper"><compiler angle="radian"/><worldbody><body name="hand" pos="0.1 0 0.3">
  <inertial mass="1" pos="0 0 0.02" diaginertia="2e-3 2e-3 1e-3"/>
  <body name="crank" pos="0 0.03 0.05"><joint name="crank" axis="1 0 0" range="-0.6 0.6" damping="0.01"/>
    <inertial mass="0.1" pos="0 0 0.02" diaginertia="2e-5 2e-5 1e-5"/>
    <body name="finger" pos="0 0 0.05"><joint name="finger" axis="1 0 0"/>
      <inertial mass="0.05" pos="0 0.01 0.02" diaginertia="1e-5 1e-5 1e-5"/><site name="held" pos="0 0.03 0"/></body>
  </body>
  <body name="rocker" pos="0 0.06 0.05"><joint name="rocker" axis="1 0 0" frictionloss="0.02"/>
    <inertial mass="0.05" pos="0 0 0.02" diaginertia="1e-5 1e-5 1e-5"/>
    <body name="tip" pos="0 0 0.05"><joint name="tip" axis="1 0 0"/>
      <inertial mass="0.02" pos="0 0 0" diaginertia="4e-6 4e-6 4e-6"/></body>
  </body>
  <body name="thumb" pos="0 -0.03 0.05"><joint name="thumb" axis="-1 0 0" armature="0.001"/>
    <inertial mass="0.1" pos="0 0 0.02" diaginertia="2e-5 2e-5 1e-5"/><site name="back" pos="0 0 0.03"/></body>
  <body name="ram" pos="0.05 0 0"><joint name="ram" type="slide" axis="0 0 1" range="0 0.1"/>
    <inertial mass="0.2" pos="0 0 0" diaginertia="1e-4 1e-4 1e-4"/></body>
  </body></worldbody>
  <tendon><spatial name="return" stiffness="30" springlength="0.05"><site site="held"/><site site="back"/></spatial>
  </tendon>
  <equality><weld name="grip" body1="finger" body2="tip"/>
    <joint joint1="thumb" joint2="crank" polycoef="0.1 1.5 0 0 0"/></equality>
  <actuator><position joint="crank" kp="10" forcerange="-2 2"/><motor joint="ram" ctrlrange="-40 40"/></actuator>
  <keyframe><key name="home" qpos="0 0 0 0 0.1 0.02"/></keyframe></mujoco>"""
HANGING = """<sdf version="1.9"><model name="swing">
  <link name="body"><pose>0.2 0 1 0.1 0.2 0.3</pose><inertial><mass>3</mass>
  <inertia><ixx>0.1</ixx><iyy>0.2</iyy><izz>0.15</izz></inertia></inertial></link>
  <link name="arm"><pose relative_to="body">0 0 -0.5 0 0 0</pose><inertial><mass>1</mass>
  <inertia><ixx>0.01</ixx><iyy>0.02</iyy><izz>0.015</izz></inertia></inertial></link>
  <joint name="shoulder" type="revolute"><parent>body</parent><child>arm</child><axis><xyz>0 1 0</xyz></axis></joint>
  </model></sdf>"""


@pytest.fixture(scope="module", params=["biped", "gripper", "hanging"])
def tree(request: pytest.FixtureRequest) -> TreeModel:
    return load_model({"biped": BIPED, "gripper": GRIPPER, "hanging": HANGING}[request.param])


@pytest.mark.parametrize("kind", FORMATS)
def test_there_and_back(tree: TreeModel, kind: str) -> None:
    if kind == "usd":
        pytest.importorskip("pxr")
    if kind == "yaml" and tree.name in NOT_IN_YAML:
        with pytest.raises(PkmError, match=NOT_IN_YAML[tree.name]):
            there_and_back(tree, kind)
        return
    assert max(there_and_back(tree, kind)) < EXACT


@pytest.mark.parametrize("kind", ["mjcf", "sdf", "usd", "urdf+constraint"])
def test_limits_drives_friction_and_springs_come_back(kind: str) -> None:
    if kind == "usd":
        pytest.importorskip("pxr")
    gripper = load_model(GRIPPER)
    again = load_model(WRITERS[kind](gripper)[0])
    assert again.actuated_joints == gripper.actuated_joints == ("crank", "ram")
    assert [len(one.loops) for one in (gripper, again)] == [1, 1]
    assert [len(one.floating) for one in (gripper, again)] == [0, 0]
    for name in ("crank", "rocker", "thumb", "ram"):
        mine, theirs = gripper.joint_named[name], again.joint_named[name]
        for key in ("lower", "upper", "effort"):
            assert getattr(theirs.limits, key) == pytest.approx(getattr(mine.limits, key), rel=1e-12)
        assert theirs.viscous_friction == pytest.approx(mine.viscous_friction, rel=1e-12)
        assert theirs.coulomb_friction == pytest.approx(mine.coulomb_friction, rel=1e-12)
    drive = again.joint_named["crank"].drive
    assert drive is not None
    assert drive.command_interfaces == ("position",)
    leader = again.joint_named["thumb"].mimic
    assert leader is not None
    assert (leader.joint, leader.multiplier) == ("crank", 1.5)
    assert len(again.springs) == 1
    assert any("spring" in note and "return" in note for note in WRITERS[kind](gripper)[1]) == (kind != "mjcf")


def test_muj_co_has_the_mass_matrix_of_the_file_that_it_wrote() -> None:
    """The same body floats by MuJoCo's own joint, and every body weighs the same in the same place."""
    mujoco = pytest.importorskip("mujoco")
    theirs = mujoco.MjModel.from_xml_path(str(BIPED))
    text = WRITERS["mjcf"](load_model(BIPED))[0]
    ours = mujoco.MjModel.from_xml_string(text)
    assert ET.fromstring(text).find("worldbody/body/freejoint") is not None
    found = []
    for model in (theirs, ours):
        data = mujoco.MjData(model)
        if model is ours:
            mujoco.mj_resetDataKeyframe(model, data, 0)
        mujoco.mj_forward(model, data)
        matrix = _mass_matrix(mujoco, model, data)
        names = [
            "left_hip",
            "left_knee",
            "left_ankle_pitch",
            "left_ankle_motor_a",
            "right_knee_motor",
            "right_knee_rod",
        ]
        rows = [*range(6), *(int(model.joint(name).dofadr[0]) for name in names)]
        found.append(matrix[np.ix_(rows, rows)])
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)  # rods' stubs weigh a ten-millionth


def _mass_matrix(mujoco: Any, model: Any, data: Any) -> np.ndarray:
    matrix = np.zeros((model.nv, model.nv))
    if int(mujoco.__version__.split(".")[0]) >= 4:
        mujoco.mj_fullM(model, data, matrix)
    else:
        mujoco.mj_fullM(model, matrix, data.qM)
    return matrix


@pytest.mark.parametrize(("kind", "ending"), [("mjcf", ".xml"), ("sdf", ".sdf"), ("usd", ".usda"), ("urdf", ".urdf")])
def test_the_command_writes_a_tree_and_says_that_it_is_one(
    kind: str, ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"biped{ending}"
    assert main([str(BIPED), "--to", kind, "-o", str(file)]) == 0
    told = capsys.readouterr().err
    assert "read as a tree, with 4 clusters of loops and no platform" in told
    assert ("left out: loops left_knee_loop, left_loop_a" in told) == (kind == "urdf")
    if kind != "usd":
        assert len(load_model(file).floating) == 1


def test_a_tree_that_was_written_is_read_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plus, file = tmp_path / "biped.urdf", tmp_path / "biped.sdf"
    assert main([str(BIPED), "-o", str(plus)]) == 0
    capsys.readouterr()
    assert main([str(plus), "--to", "sdf", "-o", str(file)]) == 0
    told = capsys.readouterr().err
    assert "platform_link" not in told
    assert "read as a tree" not in told
    assert max(difference(load_model(BIPED), load_model(file))) < EXACT
    assert main([str(plus), "--platform", "left_foot"]) == 2
    assert "platform_link is empty: the file is a tree" in capsys.readouterr().err


@pytest.mark.parametrize("ending", [".usd", ".usda", ".usdc", ".usdz"])
def test_usd_of_every_kind(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pxr")
    file = tmp_path / f"biped{ending}"
    assert main([str(BIPED), "--to", "usd", "-o", str(file)]) == 0
    assert file.read_bytes()[:4] == {".usda": b"#usd", ".usdz": b"PK\3\4"}.get(ending, b"PXR-")
    assert max(difference(load_model(BIPED), load_model(file))) < EXACT


def test_without_its_library_binary_usd_is_one_plain_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pxr.Sdf", None)
    assert main([str(BIPED), "--to", "usd", "-o", str(tmp_path / "biped.usdc")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert ".usdc files: they need usd-core, which is not installed" in line


def test_sdf_of_others_that_nothing_holds_floats() -> None:
    swing = load_model(HANGING)
    (chain,) = swing.floating
    assert [joint.name for joint in chain][:2] == ["floating_base/x", "floating_base/y"]
    np.testing.assert_allclose([swing.home[joint.name] for joint in chain], [0.2, 0.0, 1.0, 0.3, 0.2, 0.1])


def test_the_command_says_what_looks_like_millimetres(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gripper.xml"
    file.write_text(GRIPPER)
    assert main([str(file), "--to", "sdf"]) == 0
    assert "looks like" not in capsys.readouterr().err
    file.write_text(GRIPPER.replace('<body name="finger" pos="0 0 0.05"', '<body name="finger" pos="0 0 50.5"'))
    assert main([str(file), "--to", "sdf"]) == 0
    assert '<joint name="finger"> <origin>: 50.5 looks like mm' in capsys.readouterr().err


def test_gravity_that_a_format_cannot_say_is_no_difference() -> None:
    ankle = Path(__file__).parents[1] / "pkm_dynamics" / "transmission" / "ankle_two_rods.xml"
    turned = load_model(ankle.read_text().replace("<body ", '<body euler="0.5 0.4 0" ', 1))
    assert abs(float(turned.gravity[0])) > 1.0
    assert "gravity" in " ".join(WRITERS["yaml"](turned)[1])
    assert there_and_back(turned, "yaml").weight < EXACT


def random_tree(seed: int) -> str:
    """MJCF of bodies and frames at random, the base among them, and joints with a `pos`, a `ref` and springs."""
    random = np.random.default_rng(seed)

    def numbers(count: int, size: float) -> str:
        return " ".join(map(repr, random.uniform(-size, size, count).tolist()))

    def body(depth: int) -> str:
        moments = " ".join(map(repr, random.uniform(0.01, 0.014, 3).tolist()))
        name, place = f"b{random.integers(10**9)}", f'pos="{numbers(3, 0.2)}" quat="{numbers(4, 1.0)}"'
        text = f'<body name="{name}" {place}><inertial pos="{numbers(3, 0.05)}" quat="{numbers(4, 1.0)}" mass="1.3"'
        text += f' diaginertia="{moments}"/>'
        for n in range(random.integers(1, 3) if depth else 0):
            kind = random.choice(["hinge", "hinge", "slide"])
            text += (
                f'<joint name="{name}_{n}" type="{kind}" axis="{numbers(3, 1.0)}" pos="{numbers(3, 0.05)}" ref="0.2"'
            )
            text += f' damping="0.1" stiffness="{random.choice([0.0, 1.5])}" springref="0.1"/>'
        return text + "".join(body(depth + 1) for _ in range(2 if depth < 2 else 0)) + "</body>"

    option = f'<compiler angle="radian"/><option gravity="{numbers(3, 10.0)}"/>'
    names = re.findall(r'body name="(\w+)"', tree := body(0))
    loop = f'<connect body1="{names[-1]}" body2="{names[1]}" anchor="{numbers(3, 0.1)}"/>'
    return f"<mujoco>{option}<worldbody>{tree}</worldbody><equality>{loop}</equality></mujoco>"


@pytest.mark.parametrize("kind", ["mjcf", "sdf", "usd", "urdf+constraint"])
def test_random_trees_move_as_in_mujoco(kind: str) -> None:
    """Bodies on a base that is turned in the world, written in a format and read again."""
    mujoco = pytest.importorskip("mujoco")
    if kind == "usd":
        pytest.importorskip("pxr")
    for seed in range(2):
        text = random_tree(seed)
        back = export_mjcf(load_model(WRITERS[kind](load_model(text))[0]))
        models = [mujoco.MjSpec.from_string(one).compile() for one in (text, back)]
        states = [mujoco.MjData(m) for m in models]
        random = np.random.default_rng(seed)
        joints = [models[0].joint(j).name for j in range(models[0].njnt)]
        assert joints
        for name in joints:
            position, rate = random.uniform(-0.5, 0.5), random.normal()
            for m, state in zip(models, states, strict=True):
                state.qpos[m.joint(name).qposadr], state.qvel[m.joint(name).dofadr] = position, rate
        for m, state in zip(models, states, strict=True):
            mujoco.mj_forward(m, state)
        dofs = [[int(m.joint(name).dofadr[0]) for name in joints] for m in models]
        forces = [[s.qfrc_bias[d], s.qfrc_passive[d]] for s, d in zip(states, dofs, strict=True)]
        np.testing.assert_allclose(*forces, rtol=0.0, atol=1e-8 * np.abs(forces[0]).max())
        gaps = [float(np.linalg.norm(state.efc_pos)) for state in states]
        assert gaps[1] == pytest.approx(gaps[0], rel=1e-9)
