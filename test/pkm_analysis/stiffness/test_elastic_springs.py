# SPDX-License-Identifier: Apache-2.0
"""Springs in elastic structures: pendulums and columns in closed form, exact balance, rigid links in the dynamics."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from pkm_analysis import Analysis
from pkm_analysis.stiffness.elastic_model import (
    RIGID,
    BeamBetween,
    ElasticModel,
    JointBetween,
    Mass,
    Node,
    SpringBetween,
)
from pkm_analysis.stiffness.elastic_solution import ElasticSystem
from pkm_analysis.stiffness.initial_stress import loaded
from pkm_analysis.stiffness.link_beams import Piece
from pkm_description import load_mechanism
from pkm_description.mechanism import Array, Inertial, Section
from pkm_dynamics import Distribution
from pkm_dynamics.natural_frequencies import natural_frequencies
from pkm_kinematics.kernels.compiled_rotations import displace
from test.oracles.sprung_robots import sprung

K, M, L, H, R = 500.0, 12.0, 0.8, 1.1, 0.5  # N m/rad, kg, and m: bar, anchor above the pivot, spring on the bar
WEIGHT = np.array([0.0, 0.0, -9.81])


def straight(
    nodes: tuple[int, int], near: Array, far: Array, stiffness: float, rest: float, preload: float = 0.0
) -> SpringBetween:
    length = np.linalg.norm(far - near)
    axis = np.concatenate([(far - near) / length, np.zeros(3)])
    force = np.array(preload + stiffness * (length - rest))
    return SpringBetween("guy", ("", ""), nodes, near, axis, stiffness, force, np.array(length))


def pendulum(angle: float, springs: list[SpringBetween]) -> ElasticSystem:
    """A rigid bar that stands on a drive, `angle` about y from upright, with its mass and its platform at its tip."""
    tip = L * np.array([np.sin(angle), 0.0, np.cos(angle)])
    stiffness = np.full(6, RIGID)
    stiffness[4] = K
    drive = JointBetween("drive", "revolute", ("", ""), (0, 1), np.zeros(3), np.eye(3), stiffness, driven=4)
    nodes = Node("", np.zeros(3)), Node("", tip)
    mass = Mass("bar", 1, M, tip, np.zeros((3, 3)))
    model = ElasticModel(nodes, 1, tip, (), (drive,), (mass,), WEIGHT, {}, {}, tuple(springs))
    return ElasticSystem(model, np.zeros((6, 0)))


@pytest.mark.parametrize(("rest", "preload"), [(0.0, 0.0), (0.3, 0.0), (0.2, 60.0), (2.5, 0.0)])
@pytest.mark.parametrize("angle", [0.0, 0.4, -1.2, 2.5])
def test_a_pendulum_is_the_second_derivative_of_its_energy(angle: float, rest: float, preload: float) -> None:
    k, sine, cosine = 130.0, np.sin(angle), np.cos(angle)
    spring = straight((0, 1), np.array([0, 0, H]), R * np.array([sine, 0, cosine]), k, rest, preload)
    system = pendulum(angle, [spring])
    found = system.sprung(system.weights())
    stressed = loaded(system, system.held_here(system.weights()), system.weights())
    length = np.sqrt(H * H + R * R - 2.0 * H * R * cosine)
    slope = H * R * sine / length
    curve = H * R * cosine / length - slope**2 / length
    own = K + k * slope**2
    force = preload + k * (length - rest)
    turn = (M * 9.81 * L * sine - force * slope) / own
    assert system.displacement(found)[4, 0] == pytest.approx(turn, rel=1e-12, abs=1e-15)
    assert system.displacement(system.response(system.on_platform(np.eye(6))))[4, 4] == pytest.approx(1.0 / own)
    expected = own + force * curve - M * 9.81 * L * cosine
    assert 1.0 / stressed.compliance[4, 4] == pytest.approx(expected, rel=1e-12)


def test_a_balanced_pendulum_is_as_stiff_as_its_drive_anywhere() -> None:
    """k h r = m g l: without a free length the spring carries the bar, and nothing makes it buckle."""
    k = M * 9.81 * L / (H * R)
    for angle in (0.0, 0.3, 1.0, 2.0, -2.9):
        far = R * np.array([np.sin(angle), 0, np.cos(angle)])
        system = pendulum(angle, [straight((0, 1), np.array([0, 0, H]), far, k, 0.0)])
        found = system.sprung(system.weights())
        assert np.abs(system.displacement(found)).max() < 1e-14
        stressed = loaded(system, system.held_here(system.weights()), system.weights())
        assert 1.0 / stressed.compliance[4, 4] == pytest.approx(K, rel=1e-12)


def test_a_spring_of_a_joint_is_beside_its_drive() -> None:
    axis, k, torque = np.eye(6)[4], 70.0, 25.0
    turned = SpringBetween("drive", ("", ""), (0, 1), np.zeros(3), axis, k, np.array(torque), None)
    system = pendulum(0.7, [turned])
    found = system.sprung(system.weights())
    assert system.displacement(found)[4, 0] == pytest.approx((M * 9.81 * L * np.sin(0.7) - torque) / (K + k))
    stressed = loaded(system, system.held_here(system.weights()), system.weights())
    assert 1.0 / stressed.compliance[4, 4] == pytest.approx(K + k - M * 9.81 * L * np.cos(0.7), rel=1e-12)
    unit = system.response(system.on_platform(axis[:, None]))
    parts = {
        part.kind: (unit.forces[part.at].T @ part.compliance @ unit.forces[part.at]).item() for part in system.parts
    }
    assert parts == pytest.approx({"drive": K / (K + k) ** 2, "spring": k / (K + k) ** 2})


def test_a_guyed_column_gives_way_as_its_differential_equation_says() -> None:
    """Two guys press a cantilever, and hold its tip by their stiffness along them and their tension across."""
    E, A, Iy, length, foot = 2e11, 1e-4, 3e-10, 1.3, 0.6
    section = Section(E, 8e10, A, Iy, Iy, 2 * Iy)
    tip, guy = np.array([0, 0, length]), float(np.hypot(length, foot))
    springs = [straight((0, 1), np.array([x, 0, 0]), tip, 900.0, guy - 0.05) for x in (foot, -foot)]
    beam = BeamBetween((0, 1), Piece("bar", np.zeros(3), tip, section, np.array([0.0, 1, 0]), 0.01, ""))
    nodes = Node("", np.zeros(3)), Node("", tip)
    model = ElasticModel(nodes, 1, tip, (beam,), (), (), WEIGHT, {}, {}, tuple(springs))
    system = ElasticSystem(model, np.zeros((6, 0)))
    nothing = np.zeros((2, 6, 1))
    force = 900.0 * 0.05
    P = 2.0 * force * length / guy
    k = np.sqrt(P / (E * Iy))
    column = P / (np.tan(k * length) / k - length)
    held = 2.0 * (900.0 * (foot / guy) ** 2 + force / guy * (length / guy) ** 2)
    compliance = loaded(system, system.held_here(nothing), nothing).compliance
    assert 1.0 / compliance[0, 0] == pytest.approx(column + held, rel=1e-8)
    assert 1.0 / compliance[1, 1] == pytest.approx(column + 2.0 * force / guy, rel=1e-8)


def rigid(name: str) -> str:
    """The text of a robot with springs whose links are rigid and whose rotors have no inertia."""
    text = re.sub(r'(<link name="[^"]*")\s*/>', r"\1></link>", sprung(name).urdf)
    text = re.sub(r'<param name="rotor_inertia">[^<]*', '<param name="rotor_inertia">0', text)
    return re.sub(r'(<link name="[^"]*")>', r"\1><beam/>", text)


@pytest.mark.parametrize("name", ["delta", "gough_stewart", "orthoglide", "quattro"])
def test_rigid_links_sag_to_where_drives_and_springs_balance(name: str) -> None:
    """The exact balance at displaced poses; what remains of the second order shrinks with the drives' stiffness."""
    off = []
    for stiffness in (1e7, 1e8):
        found = Analysis(load_mechanism(rigid(name)), stiffness=stiffness).stiffness()
        k, dynamics, pose = found.robot.kinematics, found.robot.dynamics, found.pose
        rest, seed = k.inverse(pose).actuated, k.inverse(pose).joints
        still = displace(pose.copy(), found.sag)
        at = k.inverse(still, seed=seed)
        needed = dynamics.inverse(still, distribution=Distribution()).effort
        assert np.abs(needed).max() > 1.0
        off.append(np.abs(stiffness * (at.actuated - rest) + needed).max() / np.abs(needed).max())
    assert off[1] < 5e-3
    assert off[1] < 0.15 * off[0]


@pytest.mark.parametrize(("name", "drives"), [("delta", 2e3), ("five_bar", 2e3), ("gough_stewart", 1e6)])
def test_the_lowest_vibrations_are_those_of_rigid_links_on_springs(name: str, drives: float) -> None:
    found = Analysis(load_mechanism(rigid(name)), stiffness=drives).stiffness()
    expected = natural_frequencies(found.robot.dynamics, found.robot.kinematics.home, drives).frequency / (2.0 * np.pi)
    assert found.vibrations.frequency[: len(expected)] == pytest.approx(expected, rel=1e-6)
    text = re.sub(r"<spring.*?</spring>", "", rigid(name), flags=re.DOTALL)
    without = Analysis(load_mechanism(text), stiffness=drives).stiffness().vibrations.frequency
    assert without[0] != pytest.approx(expected[0], rel=1e-4)


def test_joints_transmit_what_the_dynamics_says_they_do() -> None:
    found = Analysis(sprung("delta"), stiffness=2e5).stiffness({"x": 0.1, "z": -0.8}, payload=2.0)
    rigid_links = found.robot.dynamics.reactions(found.pose, payload=Inertial(2.0))
    for name in ("limb1_a_ball", "limb2_b_ball", "limb3_a_ball"):
        assert found.joint_wrench(name)[:3] == pytest.approx(rigid_links.of(name)[:3], abs=1e-6)


def test_springs_are_told() -> None:
    found = Analysis(sprung("delta"), stiffness=2e5).stiffness(payload=1.0)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [one["name"] for one in told["springs"]][:2] == ["spring0", "spring1"]
    assert sum("length" in one for one in told["springs"]) == len(sprung("delta").springs)
    assert {part for kind, part in found.shares if kind == "spring"} == {one["name"] for one in told["springs"]}
    assert sum(found.shares.values()) == pytest.approx(found.compliance, rel=1e-9, abs=1e-15)
    assert "springs pull with spring0 " in str(found)
    assert "sag under weight" in str(found)
