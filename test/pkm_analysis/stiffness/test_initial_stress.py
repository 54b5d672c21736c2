# SPDX-License-Identifier: Apache-2.0
"""Stiffness under load and buckling: columns in closed form, a frame program, exactly displaced mechanisms."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from Pynite import FEModel3D
from scipy.linalg import eigh
from scipy.spatial.transform import Rotation

from pkm_analysis import Analysis
from pkm_analysis.stiffness.elastic_model import FREE, RIGID, BeamBetween, ElasticModel, JointBetween, Mass, Node
from pkm_analysis.stiffness.elastic_solution import ElasticSystem
from pkm_analysis.stiffness.initial_stress import Loaded, loaded
from pkm_analysis.stiffness.link_beams import Piece
from pkm_description import load_mechanism
from pkm_description.mechanism import Array, Inertial, Section
from pkm_dynamics import Distribution
from test.oracles.sprung_robots import sprung

E, G, A, Iy, Iz, J = 2e11, 8e10, 1e-4, 3e-10, 1e-9, 2e-9
SECTION = Section(E, G, A, Iy, Iz, J)
L = 1.3
EULER = np.pi**2 * E * Iy / L**2
BASE, TIP = np.zeros(3), np.array([0.0, 0.0, L])
BALL, SLIDE = (0, 1, 2), (0, 1, 3, 4, 5)  # what they hold


def upright(one: int, two: int, bottom: Array, top: Array, turned: bool) -> BeamBetween:
    """A beam, softest about x, that begins at its bottom or at its top."""
    nodes, ends = ((two, one), (top, bottom)) if turned else ((one, two), (bottom, top))
    return BeamBetween(nodes, Piece("bar", *ends, SECTION, np.array([1.0, 0, 0]), 0.01, "described"))


def joint(name: str, nodes: tuple[int, int], point: Array, held: tuple[int, ...]) -> JointBetween:
    stiffness = np.full(6, FREE)
    stiffness[list(held)] = RIGID
    return JointBetween(name, "", ("", ""), nodes, point, np.eye(3), stiffness)


def structure(tips: list[Array], beams: list[BeamBetween], joints: list[JointBetween], force: Array) -> Loaded:
    """A structure with a force and moment (6,) on its last node."""
    nodes = tuple(Node("", point) for point in (BASE, *tips))
    model = ElasticModel(nodes, len(tips), tips[-1], tuple(beams), tuple(joints), (), np.zeros(3), {}, {})
    system = ElasticSystem(model, np.zeros((6, 0)))
    loads = system.on_platform(force[:, None])
    return loaded(system, system.response(loads), loads)


def axis(k: int, size: float) -> Array:
    return size * np.eye(6)[k]


@pytest.mark.parametrize("turned", [False, True])
def test_columns_buckle_under_eulers_loads(turned: bool) -> None:
    middle = TIP / 3
    cantilever = [upright(0, 1, BASE, TIP, turned)]
    halves = [upright(0, 1, BASE, middle, turned), upright(1, 2, middle, TIP, not turned)]
    assert structure([TIP], cantilever, [], axis(2, -1.0)).buckling().factor == pytest.approx(EULER / 4, rel=1e-9)
    assert structure([middle, TIP], halves, [], axis(2, -1.0)).buckling().factor == pytest.approx(EULER / 4, rel=1e-9)
    assert structure([TIP], cantilever, [], axis(2, 1.0)).buckling().factor == np.inf
    bar, slide = [upright(1, 2, BASE, TIP, turned)], joint("slide", (0, 3), TIP, SLIDE)
    ends = [joint("bottom", (0, 1), BASE, BALL), joint("top", (2, 3), TIP, BALL), slide]
    assert structure([BASE, TIP, TIP], bar, ends, axis(2, -1.0)).buckling().factor == pytest.approx(EULER, rel=1e-6)
    guided = structure([TIP], cantilever, [joint("slide", (0, 1), TIP, SLIDE)], axis(2, -1.0))
    assert guided.buckling().factor == pytest.approx(4 * EULER, rel=1e-3)  # the shape is of the fifth order only
    sideways = structure([TIP], cantilever, [], axis(1, 1.0)).buckling()  # Timoshenko and Gere, eq. 6-27
    assert sideways.factor == pytest.approx(4.0126 * np.sqrt(E * Iz * G * J) / L**2, rel=1e-4)
    assert sideways.shares == pytest.approx({("link", "bar"): 1.0})


def test_rigid_bars_on_a_spring_buckle_as_the_virtual_joint_method_says() -> None:
    """Two bars between balls, a spring k against their folding: 2 k / L, with L the length of one."""
    k, middle = 700.0, TIP / 2
    stiffness = np.full(6, RIGID)
    stiffness[4] = k
    spring = JointBetween("spring", "", ("", ""), (1, 2), middle, np.eye(3), stiffness)
    ends = [joint("bottom", (0, 1), BASE, BALL), joint("top", (2, 3), TIP, BALL), joint("slide", (0, 3), TIP, SLIDE)]
    found = structure([BASE, TIP, TIP], [], [*ends, spring], axis(2, -1.0)).buckling()
    assert found.factor == pytest.approx(2 * k / (L / 2), rel=1e-12)
    assert found.shares == pytest.approx({("joint", "spring"): 1.0})


def test_a_beam_column_gives_way_as_its_differential_equation_says() -> None:
    P = 0.5 * EULER / 4
    k = np.sqrt(P / (E * Iy))
    pressed, pulled = (
        structure([TIP], [upright(0, 1, BASE, TIP, False)], [], axis(2, force)).compliance for force in (-P, P)
    )
    assert pressed[1, 1] == pytest.approx((np.tan(k * L) / k - L) / P, rel=1e-9)
    assert pulled[1, 1] == pytest.approx((L - np.tanh(k * L) / k) / P, rel=1e-9)


def test_a_frame_program_says_the_same_of_a_portal() -> None:
    """In its plane, one foot clamped, one hinged, ten pieces a bar. Of PyNite's bars only the axial force counts."""
    corners = [np.zeros(3), np.array([0, 0, L]), np.array([0.8, 0, L]), np.array([0.8, 0, 0])]
    y = np.array([0.0, 1, 0])
    beams = [BeamBetween((k, k + 1), Piece("", *corners[k : k + 2], SECTION, y, 0.01, "")) for k in range(3)]
    guides = [joint("", (0, k), corners[k], (1, 3, 5)) for k in (1, 2)]
    joints = (joint("foot", (0, 3), corners[3], BALL), *guides)
    masses = Mass("", 1, 15.0, corners[1], np.zeros((3, 3))), Mass("", 2, 9.0, corners[2], np.zeros((3, 3)))
    nodes = (Node("", BASE), *(Node("", one) for one in corners[1:]))
    model = ElasticModel(nodes, 1, corners[1], (*beams,), joints, masses, np.array([0, 0, -1.0]), {}, {})
    system = ElasticSystem(model, np.zeros((6, 0)))
    loads = system.weights()
    ours = loaded(system, system.response(loads), loads)
    K, KG = portal(corners, y, {10: masses[0].mass, 20: masses[1].mass})
    plane, factor = [0, 2, 4], 1.0 / eigh(-KG, K, eigvals_only=True)[-1]
    corner = [3 * 9 + k for k in range(3)]  # the foot is held
    unit = np.eye(len(K))[:, corner]
    assert ours.buckling().factor == pytest.approx(factor, rel=1e-4)
    theirs = np.linalg.solve(K + KG, unit)[corner]
    assert ours.compliance[np.ix_(plane, plane)] == pytest.approx(theirs, rel=1e-4, abs=1e-4 * np.abs(theirs).max())
    assert np.linalg.solve(K, unit)[corner][0, 0] < 0.95 * theirs[0, 0]  # it is the load that makes it softer


def portal(corners: list[Array], up: Array, weights: dict[int, float]) -> tuple[Array, Array]:
    """Stiffness and geometric stiffness in the plane of x and z, of the pieces that PyNite has between 31 nodes."""
    places = np.concatenate([np.linspace(corners[k], corners[k + 1], 11)[:10] for k in range(3)] + [corners[3:]])
    frame = FEModel3D()
    frame.add_material("m", E, G, 0.3, 0.0)
    frame.add_section("s", A, Iy, Iz, J)
    for k, place in enumerate(places):
        frame.add_node(str(k), *place)
    matrices = []
    for k in range(30):
        frame.add_member(f"plain {k}", str(k), str(k + 1), "m", "s")
        _, y, z = np.array(frame.members[f"plain {k}"].T())[:3, :3]
        turn = float(np.degrees(np.arctan2(up @ z, up @ y)))
        frame.add_member(str(k), str(k), str(k + 1), "m", "s", rotation=turn)
        member = frame.members[str(k)]
        T, at = np.array(member.T()), [6 * k + i for i in (0, 2, 4, 6, 8, 10)]
        matrices.append((np.array(at), T, np.array(member.ke()), member))
    free = [6 * k + i for k in range(31) for i in (0, 2, 4)][3:]  # a clamped foot
    free = [one for one in free if one not in (180, 182)]  # a hinged one
    whole, load = np.zeros((2, 186, 186)), np.zeros(186)
    for k, weight in weights.items():
        load[6 * k + 2] = -weight
    for at, T, ke, _ in matrices:
        whole[0][np.ix_(at, at)] += (T.T @ ke @ T)[0::2, 0::2]
    moved = np.zeros(186)
    moved[free] = np.linalg.solve(whole[0][np.ix_(free, free)], load[free])
    for at, T, ke, member in matrices:
        axial = (ke @ T)[6, 0::2] @ moved[at]  # tension
        whole[1][np.ix_(at, at)] += (T.T @ np.array(member.kg(axial)) @ T)[0::2, 0::2]
    return whole[0][np.ix_(free, free)], whole[1][np.ix_(free, free)]


@pytest.mark.parametrize(
    ("name", "springs"),
    [
        *((name, False) for name in ("delta", "gough_stewart", "orthoglide", "par2", "quattro", "tripod_3prs")),
        *((name, True) for name in ("delta", "gough_stewart", "orthoglide", "quattro")),
    ],
)
def test_rigid_links_on_drives_are_the_difference_quotient_of_their_balance(name: str, springs: bool) -> None:
    """What the platform is pushed with, at displaced poses: the drives' stiffness against all loads and springs."""
    robot = sprung(name) if springs else load_mechanism(name)
    text = re.sub(r'(<link name="[^"]*")\s*/>', r"\1></link>", robot.urdf)
    rigid = re.sub(r'(<link name="[^"]*")>', r"\1><beam/>", text)
    k, payload, wrench = 3e4, 20.0, np.array([1000.0, -2000, 3000, 0, 0, 0])
    found = Analysis(load_mechanism(rigid), stiffness=k).stiffness(payload=payload, wrench=wrench)
    kinematics, dynamics = found.robot.kinematics, found.robot.dynamics
    home = kinematics.at_one(found.pose)
    directions = home.subspace
    rest = kinematics.inverse(found.pose).actuated

    def pushed(displacement: Array) -> Array:
        """Efforts (n,) of the springs beyond those that all loads need."""
        pose = found.pose.copy()
        pose[:3] += displacement[:3]
        pose[3:] = (Rotation.from_rotvec(displacement[3:]) * Rotation.from_quat(pose[3:])).as_quat()
        needed = dynamics.inverse(pose, wrench=wrench, payload=Inertial(payload), distribution=Distribution()).effort
        return np.asarray(k * (kinematics.inverse(pose).actuated - rest) + needed)

    h = 1e-5
    slopes = np.column_stack([(pushed(h * d) - pushed(-h * d)) / (2.0 * h) for d in directions.T])
    K = np.linalg.pinv(home.forward_jacobian @ np.eye(slopes.shape[0])).T  # rates of the drives per twist, transposed
    expected = directions @ np.linalg.solve(directions.T @ K @ slopes, directions.T)
    scale = np.array(3 * [1.0] + 3 * [found.system.length])
    ours, theirs, plain = (scale[:, None] * C * scale for C in (found.loaded_compliance, expected, found.compliance))
    assert np.abs(ours - theirs).max() <= 1e-6 * np.abs(theirs).max()
    assert np.abs(plain - theirs).max() > 1e-2 * np.abs(theirs).max()


def test_a_rod_of_a_delta_is_eulers_column() -> None:
    found = Analysis(load_mechanism("delta"), stiffness=1e9).stiffness(wrench=[1e4, 0, 4e4, 0, 0, 0])
    kind, name = next(iter(found.buckling.shares))
    halves = [beam for beam in found.model.beams if beam.piece.link == name]  # its mass hangs between them
    rod, length = halves[0].piece, sum(beam.length for beam in halves)
    ball = next(joint for joint in found.model.joints if joint.type == "spherical" and name in joint.links)
    force = np.linalg.norm(found.joint_wrench(ball.name)[:3])
    euler = np.pi**2 * rod.section.E * rod.section.Iy / length**2
    assert kind == "link"
    assert found.buckling.factor * force == pytest.approx(euler, rel=1e-3)


def test_the_load_and_its_factor_are_told() -> None:
    robot = Analysis(load_mechanism("delta"), stiffness=2e5)
    light, heavy = (robot.stiffness(payload=payload) for payload in (0.0, 500.0))
    told = json.loads(json.dumps(heavy.to_dict(), allow_nan=False))
    assert told["buckling_factor"] == heavy.buckling.factor < light.buckling.factor
    assert np.array(told["loaded_stiffness"]) @ told["loaded_compliance"] == pytest.approx(np.eye(6), abs=1e-6)
    assert light.loaded_compliance == pytest.approx(light.compliance, rel=0.05, abs=1e-10)
    assert "times these loads" in str(heavy)
    assert sum(heavy.buckling.shares.values()) == pytest.approx(1.0)
