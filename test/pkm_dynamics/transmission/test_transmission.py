# SPDX-License-Identifier: Apache-2.0
"""Transmissions against the dynamics of robots, MuJoCo's mass matrix, power and differences."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_description.load import expand, load_model
from pkm_dynamics import Dynamics
from pkm_dynamics.transmission.in_c import transmission_in_c
from pkm_dynamics.transmission.transmission import MotorLine, Transmission
from pkm_kinematics.batch import ShapeError
from pkm_kinematics.linkage.loop_system import LinkageError
from pkm_kinematics.status import Status
from pkm_runtime.errors import UsageError

BIPED = Path(__file__).parents[2] / "pkm_description" / "biped.xml"
CRANKS = "docs/examples/ankle_cranks.urdf.xacro"
ANKLE = ("left_ankle_pitch", "left_ankle_roll")
UNUSABLE = [  # positions and efforts of an ankle, and what is said of them
    ([4.0, 0.0], [3.0, -1.0], Status.NOT_CONNECTED),
    ([1e300, 0.0], [3.0, -1.0], Status.NOT_CONNECTED),
    ([np.nan, 0.0], [3.0, -1.0], Status.INVALID_INPUT),
    ([0.0, 0.0], [np.nan, 0.0], Status.INVALID_INPUT),
    ([0.0, 0.0], [np.inf, 0.0], Status.INVALID_INPUT),
    ([-0.14, -0.17], [1.7e308, 1.7e308], Status.INVALID_INPUT),
]
SOME = np.random.default_rng(0).uniform(-1.0, 1.0, (30, 2)) * [0.5, 0.25]
FAR_APART = np.random.default_rng(2).uniform(-1.0, 1.0, (60, 2)) * [
    0.6,
    0.4,
]  # each in one call


@pytest.fixture(scope="module")
def ankle() -> Transmission:
    return Transmission(load_model(BIPED), ANKLE)


FOOT = """<robot name="foot">
<link name="shank"/><link name="ankle_link"><inertial><mass value="0.01"/><inertia ixx="1e-6" iyy="1e-6" izz="1e-6"
ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="ankle" type="revolute"><parent link="shank"/>
<child link="ankle_link"/><axis xyz="0 1 0"/><limit lower="-0.5" upper="0.5" effort="100" velocity="10"/></joint>
<link name="foot"><inertial><origin xyz="0.03 0 -0.05"/><mass value="1.2"/><inertia ixx="0.001" iyy="0.006" izz="0.006"
ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="foot_fixed" type="fixed"><parent link="ankle_link"/><child link="foot"/></joint>
<link name="crank"/><joint name="motor" type="revolute"><origin xyz="0 0 0.2"/><parent link="shank"/>
<child link="crank"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="20" velocity="20"/></joint>
<link name="rod"><inertial><origin xyz="0 0 -0.1"/><mass value="0.05"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-6" ixy="0"
ixz="0" iyz="0"/></inertial></link><joint name="elbow" type="continuous"><origin xyz="-0.05 0 0"/>
<parent link="crank"/><child link="rod"/><axis xyz="0 1 0"/></joint>
<loop_joint name="close" type="revolute"><link1 link="rod" xyz="0 0 -0.2" rpy="0 0 0"/>
<link2 link="foot" xyz="-0.05 0 0" rpy="0 0 0"/><axis xyz="0 1 0"/></loop_joint>
<transmission name="t1"><type>transmission_interface/SimpleTransmission</type><joint name="motor"/>
<actuator name="m"><mechanicalReduction>1</mechanicalReduction></actuator></transmission></robot>"""


@pytest.mark.parametrize("end", ["foot", "ankle_link"])
def test_what_is_fixed_to_the_link_of_a_joint_is_not_of_the_linkage(end: str, tmp_path: Path) -> None:
    """A parallelogram: the rod does not turn, and its mass moves with its end, 0.05 m from the ankle."""
    file = tmp_path / "foot.urdf"
    file.write_text(FOOT.replace('<link2 link="foot"', f'<link2 link="{end}"'))
    foot = Transmission(load_model(file))
    np.testing.assert_allclose(foot.armature(np.zeros(1)), [[0.05 * 0.05**2]], rtol=1e-12)


def test_a_joint_of_several_degrees_of_freedom_that_leaves_a_linkage_loose_is_named(tmp_path: Path) -> None:
    file = tmp_path / "foot.urdf"
    file.write_text(FOOT.replace('type="continuous"', 'type="planar"'))
    with pytest.raises(LinkageError, match=r"^elbow/x: the loops leave this free.*make joint 'elbow' one of fewer"):
        Transmission(load_model(file))


def test_motions_are_differences_and_come_back(ankle: Transmission) -> None:
    rng = np.random.default_rng(1)
    v, a = rng.normal(size=SOME.shape), rng.normal(size=SOME.shape)
    motion = ankle.to_actuator_motion(SOME, v, a)
    h = 1e-4
    ahead, behind = (ankle.to_actuators(SOME + s * h * v + 0.5 * h * h * a) for s in (1.0, -1.0))
    np.testing.assert_allclose(motion.velocity, (ahead - behind) / (2 * h), atol=1e-6)
    np.testing.assert_allclose(motion.acceleration, (ahead - 2 * motion.position + behind) / h**2, atol=1e-5)
    back = ankle.to_joint_motion(motion.position, motion.velocity, motion.acceleration)
    for found, given in zip(back, (SOME, v, a), strict=True):
        np.testing.assert_allclose(found, given, atol=1e-11)


def test_power_goes_through(ankle: Transmission) -> None:
    rng = np.random.default_rng(2)
    v, efforts = rng.normal(size=SOME.shape), rng.normal(size=SOME.shape)
    power = (efforts * ankle.to_actuator_motion(SOME, v).velocity).sum(axis=1)
    joints = ankle.to_joint_efforts(SOME, efforts)
    np.testing.assert_allclose((joints * v).sum(axis=1), power, atol=1e-13)
    np.testing.assert_allclose(ankle.to_actuator_efforts(SOME, joints), efforts, atol=1e-12)


def test_lean_calls_are_the_others(ankle: Transmission) -> None:
    call, efforts = ankle.lean(), np.array([3.0, -1.0])
    position, out = np.zeros(2), np.zeros(2)
    for t in np.linspace(0.0, 6.0, 300):
        q = np.array([0.5 * np.sin(t), 0.25 * np.sin(1.7 * t)])
        status, margin = call(q, efforts, position, out)
        assert (status, margin > 0.1) == (Status.CONVERGED, True)
        np.testing.assert_allclose(position, ankle.to_actuators(q), atol=1e-12)
        np.testing.assert_allclose(out, ankle.to_actuator_efforts(q, efforts), atol=1e-11)
    for far, exact in zip(FAR_APART, ankle.to_actuators(FAR_APART), strict=True):
        solved = call(far, efforts, position, out)[0] == Status.CONVERGED
        assert solved or not np.isfinite(exact).all()
        np.testing.assert_allclose(position, exact if solved else np.full(2, np.nan), atol=1e-12)
    for wrong, wanted, expected in UNUSABLE:
        position[:], out[:] = 1.0, 2.0
        status, margin = call(np.array(wrong), np.array(wanted), position, out)
        assert status == expected
        assert np.isnan([*position, *out]).all()
        assert call(q, efforts, position, out)[0] == Status.CONVERGED  # goes on from there


@pytest.mark.parametrize("robot", [CRANKS, "docs/examples/ankle.urdf.xacro", "wrist_3ups_s"])
def test_inertia_and_friction_are_those_of_the_dynamics(robot: str) -> None:
    """Without the platform's mass, all inertia and friction that the dynamics has is the linkage's and the motors'."""
    text = expand(robot)[0]
    start = text.index("<inertial", text.index(f'<link name="{load_mechanism(text).platform_link}"'))
    text = text[:start] + text[text.index("</inertial>", start) + len("</inertial>") :]
    dynamics, t = Dynamics(load_mechanism(text)), Transmission(load_model(text))
    k = dynamics.kinematics
    for q in np.random.default_rng(0).uniform(-0.25, 0.25, (5, len(t.joints))):
        at = k.at(q)
        np.testing.assert_allclose(t.jacobian(q), at.task_jacobian, atol=1e-13)
        J, held = at.task_jacobian, dynamics.gravity(at).effort
        pushed = [dynamics.inverse(at, np.zeros(6), way).effort - held for way in at.task_twists.T]
        np.testing.assert_allclose(t.armature(q), J.T @ np.array(pushed).T, atol=1e-12)
        np.testing.assert_allclose(t.friction(q).viscous, J.T @ np.diag(_damping(t)) @ J, atol=1e-12)


def _damping(t: Transmission) -> list[float]:
    return [t.tree.joint_named[name].viscous_friction for name in t.actuators]


def test_inertia_is_muj_cos(ankle: Transmission) -> None:
    """Twice what MuJoCo's mass matrix loses with half of the masses of cranks, rods and rotors, by our rates."""
    mujoco = pytest.importorskip("mujoco")
    m = mujoco.MjModel.from_xml_path(str(BIPED))
    matrices = []
    own = [m.body(name).id for name in ("left_crank_a", "left_rod_a", "left_crank_b", "left_rod_b")]
    at = ankle.linkage.at(np.zeros((1, 2)))
    for half in (False, True):
        if half:
            m.body_mass[own] *= 0.5
            m.body_inertia[own] *= 0.5
            m.dof_armature[:] *= 0.5
        d = mujoco.MjData(m)
        mujoco.mj_forward(m, d)
        M = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, d, M) if _new_order(mujoco) else mujoco.mj_fullM(m, M, d.qM)
        matrices.append(M)
    motion = np.zeros((m.nv, 2))
    for name, rates in zip(ankle.linkage.names, at.K[0], strict=True):
        ball, _, axis = name.rpartition("/")
        joint = m.joint(ball if axis in "xyz" else name)
        motion[joint.dofadr[0] + ("xyz".index(axis) if axis in "xyz" else 0)] = rates
    M = 2.0 * motion.T @ (matrices[0] - matrices[1]) @ motion
    np.testing.assert_allclose(ankle.armature(np.zeros(2)), M, atol=1e-12)


def _new_order(mujoco: object) -> bool:
    return int(mujoco.__version__.split(".")[0]) >= 4  # type: ignore[attr-defined]


def test_polygons_are_boxes_seen_through_the_linkage(ankle: Transmission) -> None:
    q = SOME[0]
    polygon = ankle.effort_polygon(q)
    inside = np.random.default_rng(3).uniform(-35.0, 35.0, (200, 2))
    assert _within(ankle.to_joint_efforts(np.tile(q, (200, 1)), inside), polygon).all()
    outside = ankle.to_joint_efforts(q, np.array([35.1, 0.0]))
    assert not _within(outside[None], polygon)[0]
    alone = ankle.effort_alone(q)
    assert _within(np.array([[alone[0], 0.0], [0.0, -alone[1]]]) * (1 - 1e-9), polygon).all()
    assert not _within(np.array([[alone[0], 0.0]]) * 1.001, polygon)[0]


def _within(points: np.ndarray, polygon: np.ndarray) -> np.ndarray:
    """Left of each side of a polygon that is anticlockwise."""
    sides = np.roll(polygon, -1, axis=0) - polygon
    away = points[:, None] - polygon
    return np.asarray((sides[:, 0] * away[..., 1] - sides[:, 1] * away[..., 0] > -1e-9).all(axis=1))


def test_torque_speed_lines_cut_the_polygon(ankle: Transmission) -> None:
    """At half of the speed without load the motor drives with half of its stall torque, and brakes with all."""
    motors = {name: MotorLine(35.0, speed=20.0, stall=50.0) for name in ankle.actuators}
    t = Transmission(ankle.tree, ANKLE, motors=motors)
    q = np.zeros(2)
    speed = np.linalg.solve(t.jacobian(q), [10.0, 10.0])
    low, high = t.effort_limits(q, speed)
    np.testing.assert_allclose([low[0], high[0]], [[-35.0, -35.0], [25.0, 25.0]])
    polygon = t.effort_polygon(q, speed)
    np.testing.assert_allclose(polygon.max(axis=0)[0], t.to_joint_efforts(q, np.array([25.0, 25.0]))[0])


def test_gains_there_and_back(ankle: Transmission) -> None:
    q, kp, kd = SOME[1], np.array([80.0, 60.0]), np.array([2.0, 1.5])
    stiffness, damping = ankle.gains(q, kp, kd)
    # a small turn of the joints with the motors held: their efforts seen at the joints
    turn = np.array([1e-6, -2e-6])
    effort = ankle.to_joint_efforts(q, kp * (ankle.to_actuators(q + turn) - ankle.to_actuators(q)))
    np.testing.assert_allclose(stiffness @ turn, effort, rtol=1e-5)
    back = ankle.motor_gains(q, stiffness, damping)
    np.testing.assert_allclose(back, [np.diag(kp), np.diag(kd)], atol=1e-10)


def test_a_joint_without_a_linkage_is_its_motor() -> None:
    hip = Transmission(load_model(BIPED), ["left_hip"], ["left_hip"])
    np.testing.assert_array_equal(hip.to_actuators([[0.3], [-0.2]]), [[0.3], [-0.2]])
    assert hip.effort_alone(np.zeros(1)) == pytest.approx(100.0)


def test_motors_that_no_loop_ties_to_the_joints_are_refused() -> None:
    with pytest.raises(LinkageError, match="right_knee_motor: no loop connects it to left_knee"):
        Transmission(load_model(BIPED), ["left_knee"], ["right_knee_motor"])


@pytest.mark.parametrize("wrong", [[1.0, 2.0, 3.0], "a", None, [[1.0], [2.0]], 1.0, ["a", "b"]])
def test_what_is_no_row_of_the_joints_is_refused_with_their_names(ankle: Transmission, wrong: Any) -> None:
    with pytest.raises(ShapeError, match="joints left_ankle_pitch, left_ankle_roll: expected"):
        ankle.to_actuators(wrong)
    with pytest.raises(ShapeError, match="actuators left_ankle_motor_a, left_ankle_motor_b: expected"):
        ankle.to_joints(wrong)
    with pytest.raises(ShapeError, match="actuators left_ankle_motor_a, left_ankle_motor_b: expected"):
        ankle.to_joint_efforts(SOME[0], wrong)


def test_what_does_not_fit_is_refused(ankle: Transmission) -> None:
    with pytest.raises(ShapeError, match="a polygon is at one position"):
        ankle.effort_polygon(np.zeros((3, 2)))
    with pytest.raises(ShapeError, match="1 or 3 rows"):
        ankle.to_joint_efforts(np.zeros((3, 2)), np.zeros((2, 2)))
    with pytest.raises(ShapeError, match="gains"):
        ankle.gains(np.zeros(2), np.ones(3), np.ones(2))
    with pytest.raises(LinkageError, match="motors: left_motor is none of left_ankle_motor_a"):
        Transmission(ankle.tree, ankle.joints, ankle.actuators, {"left_motor": MotorLine(1.0)})
    with pytest.raises(UsageError, match="a limit is negative or no number"):
        MotorLine(-1.0)


def test_a_polygon_of_a_motor_without_effort_is_a_line(ankle: Transmission) -> None:
    motors = {ankle.actuators[0]: MotorLine(0.0), ankle.actuators[1]: MotorLine(2.0)}
    weak = Transmission(ankle.tree, ankle.joints, ankle.actuators, motors)
    ends = 2.0 * weak.jacobian(ankle.home)[1]
    found = weak.effort_polygon(ankle.home)
    np.testing.assert_allclose(found[np.argsort(found[:, 0])], sorted([ends.tolist(), (-ends).tolist()]), atol=1e-12)


def test_rows_may_have_any_leading_axes(ankle: Transmission) -> None:
    many = SOME.reshape(2, 5, 3, 2)
    motion = ankle.to_actuator_motion(many, many, many)
    np.testing.assert_array_equal(motion.position.reshape(-1, 2), ankle.to_actuators(SOME))
    back = ankle.to_joint_motion(*motion)  # type: ignore[arg-type]
    np.testing.assert_allclose(back, [many] * 3, atol=1e-11)


def test_margins_pass_through_zero_where_the_motors_lose_the_joint() -> None:
    """A four-bar knee driven until rod and lever come into line: the Jacobian has no inverse there."""
    knee = Transmission(load_model(BIPED), ["left_knee"])
    q = np.linspace(0.0, 2.6, 100)[:, None]
    s = knee.at(q)
    margin = s.margin[s.linkage.status == Status.CONVERGED]
    assert margin[0] > 0.1
    assert (margin < 0.0).any() or margin.min() < 0.05


def test_one_motors_margin_nears_zero_before_it_loses_the_joint(tmp_path: Path) -> None:
    """A rocker moved until its crank stands still: the ratio changes its sign there, and so does the margin."""
    file, body = tmp_path / "four_bar.xml", '<inertial pos="0 0 0.1" mass="1" diaginertia="0.01 0.01 0.01"/>'
    file.write_text(
        f"""<mujoco><worldbody><body name="crank"><joint name="motor" axis="0 1 0"/>{body}
          <body name="coupler" pos="0 0 0.2"><joint name="elbow" axis="0 1 0"/>{body}</body></body>
        <body name="rocker" pos="0.3 0 0"><joint name="rocker" axis="0 1 0"/>{body}</body></worldbody>
        <equality><connect body1="coupler" body2="rocker" anchor="0.35 0 0"/></equality></mujoco>"""
    )
    t = Transmission(load_model(file), ["rocker"], ["motor"])
    s = t.at(np.linspace(0.0, 2.2, 400)[:, None])
    assert (s.linkage.status == Status.CONVERGED).all()
    margin, ratio = s.margin, s.jacobian[:, 0, 0]
    lost = int(np.flatnonzero(np.diff(np.sign(ratio)))[0])
    assert margin[0] > 0.1
    assert np.abs(margin[lost : lost + 2]).max() < 0.05
    assert margin[lost] > 0.0 > margin[lost + 1]
    assert np.abs(np.diff(margin)).max() < 0.05
    call, out = t.lean(), np.zeros((2, 1))
    found = [call(q, np.ones(1), *out) for q in np.linspace(0.0, 2.2, 400)[: lost + 1, None]]
    assert {status for status, _ in found} == {Status.CONVERGED}
    assert found[0][1] > 0.1
    assert found[-1][1] < 0.05


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler (gcc)")
def test_c_says_the_same(ankle: Transmission, tmp_path: Path) -> None:
    for name, text in transmission_in_c(ankle, "left ankle").items():
        (tmp_path / name).write_text(text)
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-O2", "-shared", "-fPIC"]
    library = tmp_path / "ankle.so"
    done = subprocess.run(
        ["gcc", *strict, str(tmp_path / "left_ankle.c"), "-o", str(library), "-lm"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    code = ctypes.CDLL(str(library))
    state, position, effort, margin = np.zeros(64), np.zeros(2), np.zeros(2), np.zeros(1)

    def address(array: np.ndarray) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)

    code.left_ankle_home(address(state))
    wanted = np.array([2.0, -1.5])
    arrays = [address(one) for one in (wanted, state, position, effort, margin)]
    for t in np.linspace(0.0, 6.0, 200):
        q = np.array([0.5 * np.sin(t), 0.25 * np.sin(1.7 * t)])
        assert code.left_ankle_to_actuators(address(q), *arrays) == Status.CONVERGED
        np.testing.assert_allclose(position, ankle.to_actuators(q), atol=1e-12)
        np.testing.assert_allclose(effort, ankle.to_actuator_efforts(q, wanted), atol=1e-11)
        assert margin[0] > 0.1
    for place, exact in zip(FAR_APART, ankle.to_actuators(FAR_APART), strict=True):
        status = code.left_ankle_to_actuators(address(place), *arrays)
        assert status == Status.CONVERGED or not np.isfinite(exact).all()
        np.testing.assert_allclose(position, exact if status == 0 else np.full(2, np.nan), atol=1e-12)
    for wrong, much, expected in UNUSABLE:
        before, far, wanted[:] = state.copy(), np.array(wrong), much
        position[:], effort[:] = 1.0, 2.0
        assert code.left_ankle_to_actuators(address(far), *arrays) == expected
        assert np.isnan([*position, *effort]).all()
        assert expected == Status.INVALID_INPUT or (state == before).all()
        state[:] = before
    one, out = np.array([0.5 * np.sin(6.0), 0.25 * np.sin(10.2)]), np.zeros(2)
    wanted[:] = 2.0, -1.5
    position[:] = one  # written where it is read
    arrays = [address(x) for x in (position, wanted, state, position, out, margin)]
    assert code.left_ankle_to_actuators(*arrays) == Status.CONVERGED
    np.testing.assert_allclose(position, ankle.to_actuators(one), atol=1e-12)


def test_files_without_actuators_say_which_to_name() -> None:
    """All sliders where they are as many as the joints, ready to copy."""
    inertial = '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
    arm = f'<body name="arm"><joint name="arm" axis="0 1 0"/>{inertial}</body>'
    rod = f'<body name="rod" pos="0 0 0.1"><joint name="rod" axis="0 1 0"/>{inertial}'
    piston = f'<body name="piston"><joint name="PISTON" type="slide" axis="1 0 0"/>{inertial}</body></body>'
    connect = '<equality><connect body1="piston" body2="arm" anchor="0.2 0 0"/></equality>'
    text = f"<mujoco><worldbody>{arm}{rod}{piston}</worldbody>{connect}</mujoco>"
    with pytest.raises(LinkageError, match=r"names no actuator there.*--actuators PISTON$"):
        Transmission(load_model(text), ["arm"])
    with pytest.raises(LinkageError, match=r"names no actuator there: .*, of arm, rod$"):
        Transmission(load_model(text), ["PISTON"])
