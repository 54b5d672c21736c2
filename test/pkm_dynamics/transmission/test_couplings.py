# SPDX-License-Identifier: Apache-2.0
"""Joints tied by an equation: sums of three joints (a differential) and polynomials (a cam), judged by MuJoCo."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pkm_analysis.zoo import there_and_back
from pkm_description import DescriptionError, load_mechanism
from pkm_description.formats.convert import WRITERS
from pkm_description.load import load_model
from pkm_description.tree_model import TreeModel
from pkm_dynamics.transmission.transmission import Transmission
from pkm_kinematics.linkage.consistent_states import closed_states, consistent_states
from pkm_kinematics.status import Status

MASS = '<inertial pos="0 0 -0.1" mass="1" diaginertia="0.02 0.02 0.01"/>'
HIP = f"""<mujoco model="hip"><compiler angle="radian"/><worldbody><body name="pelvis" pos="0 0 1">{MASS}
  <body name="cross"><joint name="roll" axis="1 0 0" range="-0.6 0.6"/>{MASS}
    <body name="thigh"><joint name="pitch" axis="0 1 0" range="-1 1"/>{MASS}
      <body name="shank" pos="0 0 -0.4"><joint name="knee" axis="0 1 0" range="-1 1"/>{MASS}</body></body></body>
  <body name="left"><joint name="left" axis="0 1 0" armature="0.01"/>{MASS}</body>
  <body name="right"><joint name="right" axis="0 -1 0" armature="0.01"/>{MASS}</body>
  <body name="cam"><joint name="cam" axis="0 1 0" armature="0.02"/>{MASS}</body>
  </body></worldbody>
  <tendon><fixed name="sum"><joint joint="left" coef="0.5"/><joint joint="right" coef="0.5"/></fixed>
    <fixed name="difference"><joint joint="left" coef="0.5"/><joint joint="right" coef="-0.5"/></fixed>
    <fixed name="roll"><joint joint="roll" coef="1"/></fixed>
    <fixed name="pitch"><joint joint="pitch" coef="1"/></fixed></tendon>
  <equality><tendon name="by_sum" tendon1="roll" tendon2="sum" polycoef="0 -1 0 0 0"/>
    <tendon name="by_difference" tendon1="pitch" tendon2="difference" polycoef="0 -1 0 0 0"/>
    <joint name="by_cam" joint1="cam" joint2="knee" polycoef="0.05 1.5 0.4 -0.3 0.1"/></equality>
  <actuator><motor joint="left"/><motor joint="right"/><motor joint="cam"/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def hip() -> TreeModel:
    pytest.importorskip("mujoco")
    return load_model(HIP)


def test_a_differential_has_two_joints_and_two_motors(hip: TreeModel) -> None:
    differential, cam = hip.clusters
    assert (differential.independent, differential.actuators) == (("roll", "pitch"), ("left", "right"))
    assert (cam.independent, cam.actuators, cam.loops) == (("knee",), ("cam",), ())
    t = Transmission(hip, ["roll", "pitch"])
    np.testing.assert_allclose(t.to_actuators([0.1, 0.2]), [-0.3, 0.1], atol=1e-15)
    np.testing.assert_allclose(t.to_joints(t.to_actuators([0.1, 0.2])), [0.1, 0.2], atol=1e-15)


def test_muj_co_finds_positions_and_rates_as_its_equalities_want_them(hip: TreeModel) -> None:
    import mujoco

    model: Any = mujoco.MjModel.from_xml_string(HIP)
    data = mujoco.MjData(model)
    states = consistent_states(hip, 50)
    for q, v in zip(states.position, states.velocity, strict=True):
        for name, x, rate in zip(states.names, q, v, strict=True):
            data.qpos[model.joint(name).qposadr[0]] = x
            data.qvel[model.joint(name).dofadr[0]] = rate
        mujoco.mj_forward(model, data)
        equal = data.efc_type[: data.nefc] == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        assert equal.sum() == 3
        np.testing.assert_allclose(data.efc_pos[: data.nefc][equal], 0.0, atol=1e-13)
        np.testing.assert_allclose(data.efc_vel[: data.nefc][equal], 0.0, atol=1e-12)


def test_a_cam_has_the_ratio_of_its_polynomial(hip: TreeModel) -> None:
    t, q = Transmission(hip, ["knee"]), np.linspace(-0.8, 0.8, 9)
    ratio = np.polynomial.Polynomial([0.05, 1.5, 0.4, -0.3, 0.1]).deriv()
    np.testing.assert_allclose(t.jacobian(q[:, None]).ravel(), ratio(q), rtol=1e-12)
    np.testing.assert_allclose(
        t.jacobian_rate(q[:, None], np.ones((9, 1))).ravel(), ratio.deriv()(q), rtol=1e-10, atol=1e-12
    )
    rotors = ratio(q) ** 2 * 0.02
    np.testing.assert_allclose(t.armature(q[:, None], linkage=False).ravel(), rotors, rtol=1e-12)


def test_a_dead_point_has_no_efforts() -> None:
    """Where a cam's curve is level the motor holds any load, and nothing that it gives reaches the joint."""
    joints = "".join(
        f'<link name="{name}"/><joint name="{name}" type="continuous"><parent link="base"/>'
        f'<child link="{name}"/></joint>'
        for name in ("knee", "cam")
    )
    tie = '<joint name="cam" coefficients="-1"/><joint name="knee" coefficients="1 1"/>'
    text = f'<robot name="r"><link name="base"/>{joints}<coupling name="tie">{tie}</coupling></robot>'
    t, q = Transmission(load_model(text), ["knee"], ["cam"]), np.array([[-0.4], [-0.5], [-0.6]])
    s, one = t.at(q), np.ones((3, 1))
    assert s.linkage.status.tolist() == [Status.CONVERGED] * 3
    assert s.status.tolist() == [Status.CONVERGED, Status.SINGULAR, Status.CONVERGED]
    np.testing.assert_allclose(s.margin, [0.2, 0.0, -0.2], atol=1e-12)
    np.testing.assert_allclose(t.to_actuator_efforts(q, one).ravel(), [5.0, np.nan, -5.0])
    np.testing.assert_allclose(t.to_joint_efforts(q, one).ravel(), [0.2, 0.0, -0.2], atol=1e-12)
    assert np.isnan(t.motor_gains(q, [1.0], [1.0])[0]).ravel().tolist() == [False, True, False]


@pytest.mark.parametrize("kind", ["urdf+", "mjcf", "sdf", "usd", "urdf+constraint"])
def test_there_and_back(hip: TreeModel, kind: str) -> None:
    if kind == "usd":
        pytest.importorskip("pxr")
    assert max(there_and_back(hip, kind)) < 1e-10
    assert [one.name for one in load_model(WRITERS[kind](hip)[0]).couplings] == ["by_sum", "by_difference", "by_cam"]


def test_what_a_format_has_no_word_for_is_listed(hip: TreeModel) -> None:
    for kind in ("sdf", "usd", "urdf", "urdf+constraint", "yaml"):
        told = " ".join(WRITERS[kind](hip)[1])
        assert all(name in told for name in ("by_sum", "by_difference", "by_cam"))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ('<joint name="a" coefficients="1"/>', "two or more joints"),
        ('<joint name="a" coefficients="1"/><joint name="a" coefficients="2"/>', "two or more joints"),
        ('<joint name="a" coefficients="1"/><joint name="c" coefficients="2"/>', "'c' is no joint"),
        ('<joint name="a" coefficients="1"/><joint name="b" coefficients="0 0"/>', "'b' has no coefficient"),
        ('<joint name="a" coefficients="1"/><joint name="b" coefficients="x"/>', "not made of numbers"),
    ],
)
def test_couplings_that_are_none_are_refused(wrong: str, words: str) -> None:
    joints = "".join(
        f'<link name="{name}"/><joint name="{name}" type="continuous"><parent link="base"/>'
        f'<child link="{name}"/></joint>'
        for name in "ab"
    )
    text = f'<robot name="r"><link name="base"/>{joints}<coupling name="tie">{wrong}</coupling></robot>'
    with pytest.raises(DescriptionError, match=words):
        load_model(text)


def test_a_robot_with_a_platform_has_none() -> None:
    robot = load_mechanism("five_bar")
    joints = "".join(f'<joint name="{name}" coefficients="1"/>' for name in robot.actuated_joints)
    with pytest.raises(DescriptionError, match="a robot with a platform has no such thing"):
        load_mechanism(robot.urdf.replace("</robot>", f'<coupling name="tie">{joints}</coupling></robot>'))


def test_a_gear_is_felt_with_its_inertia_and_friction() -> None:
    """Both are constant, and those of the geared joint count by its ratio and its square."""
    gear = f"""<mujoco><compiler angle="radian"/><worldbody>
      <body name="drive"><joint name="drive" axis="0 0 1" damping="0.2" frictionloss="0.3"/>{MASS}</body>
      <body name="wheel"><joint name="wheel" axis="0 0 1" damping="0.5" frictionloss="0.7"/>{MASS}</body></worldbody>
      <equality><joint joint1="wheel" joint2="drive" polycoef="0 -3 0 0 0"/></equality>
      <actuator><motor joint="drive"/></actuator></mujoco>"""
    pytest.importorskip("mujoco")
    t = Transmission(load_model(gear), ["drive"], ["drive"])
    np.testing.assert_allclose(t.armature([0.4]), [[9.0 * 0.01]], rtol=1e-12)
    friction = t.friction([0.4])
    np.testing.assert_allclose(friction.viscous, [[9.0 * 0.5]], rtol=1e-12)
    np.testing.assert_allclose(friction.coulomb, [3.0 * 0.7], rtol=1e-12)


def test_motors_of_a_differential_turn_on() -> None:
    """Geared down by 20, they make several turns where the joints make a part of one."""
    mujoco = pytest.importorskip("mujoco")
    text = HIP.replace('coef="0.5"', 'coef="0.025"').replace('coef="-0.5"', 'coef="-0.025"')
    hip, model = load_model(text), mujoco.MjModel.from_xml_string(text)
    t = Transmission(hip, ["roll", "pitch"])
    q = np.array([0.5, 0.9])
    motors = [-20.0 * (q[0] + q[1]), -20.0 * (q[0] - q[1])]  # -1.4 and 0.4 of roll and pitch, times 20
    np.testing.assert_allclose(t.to_actuators(q), motors, rtol=1e-12)
    np.testing.assert_allclose(t.to_joints(t.to_actuators(q)), q, rtol=1e-12)
    np.testing.assert_allclose(t.armature(q, linkage=False), 2.0 * 400.0 * 0.01 * np.eye(2), atol=1e-12)
    call, given, found, efforts = t.lean(), np.zeros(2), np.zeros(2), np.zeros(2)
    for share in np.linspace(0.0, 1.0, 40):
        given[:] = share * q
        assert call(given, np.ones(2), found, efforts)[0] == Status.CONVERGED
    np.testing.assert_allclose(found, motors, rtol=1e-12)
    states = consistent_states(hip, 50)
    assert np.abs(states.position[:, states.names.index("left")]).max() > 10.0
    closed = closed_states(hip, states.position + 0.1, states.velocity, states.acceleration)
    for some in (states, closed):
        for row in some.position:
            data = mujoco.MjData(model)
            for name, x in zip(some.names, row, strict=True):
                data.qpos[model.joint(name).qposadr[0]] = x
            mujoco.mj_forward(model, data)
            equal = data.efc_type[: data.nefc] == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
            np.testing.assert_allclose(data.efc_pos[: data.nefc][equal], 0.0, atol=1e-12)
