# SPDX-License-Identifier: Apache-2.0
"""Stiffness against formulas, its own sums, balance, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pkm_analysis import Analysis, AnalysisError
from pkm_analysis.command_line.analyse import main
from pkm_analysis.stiffness.elastic_model import BeamBetween
from pkm_analysis.stiffness.elastic_solution import ElasticSystem
from pkm_analysis.stiffness.link_beams import Hung, Piece, body_of
from pkm_analysis.stiffness.stiffness import Stiffnesses
from pkm_description import load_mechanism
from pkm_description.description_error import DescriptionError
from pkm_description.mechanism import Inertial, Section
from pkm_description.urdf.elements import hollow_section, rectangle, tube
from pkm_dynamics.natural_frequencies import natural_frequencies
from pkm_kinematics import Configuration
from test.oracles.sprung_robots import sprung

DESCRIPTION = Path(__file__).parents[3] / "docs" / "description.md"
TABLES = Path(__file__).parents[3] / "docs" / "stiffness_tables"


def changed(name: str, link: str, beam: str) -> str:
    """The text of a robot with another element at the end of a link."""
    text = load_mechanism(name).urdf
    return re.sub(rf'(<link name="{link}">)(.*?)</link>', rf"\1\2{beam}</link>", text, count=1, flags=re.DOTALL)


@pytest.fixture(scope="module")
def delta() -> Analysis:
    return Analysis(load_mechanism("delta"), stiffness=2e5)


def test_sections_are_those_of_handbooks() -> None:
    assert tube(0.01)[0] == pytest.approx(np.pi * 1e-4)
    assert tube(0.01)[1] == pytest.approx(np.pi * 1e-8 / 4)
    assert tube(0.01, 0.008)[3] == pytest.approx(np.pi / 2 * (1e-8 - 0.008**4))
    assert rectangle(0.02, 0.01)[:3] == pytest.approx((2e-4, 0.02 * 1e-6 / 12, 0.01 * 8e-6 / 12))
    assert rectangle(0.01, 0.01)[3] == pytest.approx(0.1406e-8, rel=2e-3)
    assert hollow_section(0.04, 0.04, 0.001)[3] == pytest.approx(0.039**3 * 0.001, rel=1e-9)


def test_a_leg_that_only_pulls_has_the_compliance_of_a_bar() -> None:
    """A hexapod's drives see L / EA and 1 / k of their own legs alone."""
    robot = Analysis(load_mechanism("gough_stewart"), stiffness=1e7)
    found = robot.stiffness()
    bars = np.zeros(6)
    for beam in found.model.beams:
        leg = int(beam.piece.link[4]) - 1
        length = np.linalg.norm(beam.piece.end - beam.piece.start)
        bars[leg] += length / (beam.piece.section.E * beam.piece.section.A)
    kinematics = robot.robot.kinematics
    J = kinematics.at_one(kinematics.home).forward_jacobian
    expected = J @ np.diag(bars + 1e-7) @ J.T
    assert found.compliance == pytest.approx(expected, rel=1e-8, abs=1e-8 * np.abs(expected).max())


def test_stiff_links_leave_the_compliance_of_the_drives() -> None:
    text = load_mechanism("delta").urdf
    for limb in (1, 2, 3):
        for link in ("arm", "pin", "a_rod", "b_rod"):
            text = re.sub(rf'(<link name="limb{limb}_{link}">)', r"\1<beam/>", text)
    found = Analysis(load_mechanism(text), stiffness=2e5).stiffness()
    kinematics = found.robot.kinematics
    J = kinematics.at_one(kinematics.home).forward_jacobian
    assert found.compliance == pytest.approx(J @ J.T / 2e5, abs=1e-16)
    assert len(found.rigid) == 3
    assert found.model.rigid["limb1_arm"] == "the description says so"
    assert found.stiffness[:3, :3] @ found.compliance[:3, :3] == pytest.approx(np.eye(3), abs=1e-9)


@pytest.mark.parametrize("name", ["delta", "orthoglide", "five_bar", "wrist_3ups_s", "cable_8"])
def test_shares_add_up_and_the_matrices_are_symmetric(name: str) -> None:
    found = Analysis(load_mechanism(name), stiffness=1e6).stiffness()
    assert sum(found.shares.values()) == pytest.approx(found.compliance, abs=1e-10 * np.abs(found.compliance).max())
    assert sum(found.share([1, 0, 0]).values()) == pytest.approx(0.0 if name == "wrist_3ups_s" else 1.0)
    values = np.linalg.eigvalsh(found.compliance)
    assert values.min() > -1e-12 * values.max()


def test_joints_transmit_what_the_dynamics_says_they_do(delta: Analysis) -> None:
    """Where balance determines the wrenches, elasticity changes nothing."""
    found = delta.stiffness({"x": 0.1, "z": -0.8}, payload=2.0, wrench=[30.0, -20.0, 50.0, 0, 0, 0])
    dynamics = delta.robot.dynamics
    rigid = dynamics.reactions(found.pose, wrench=found.wrench, payload=Inertial(2.0))
    for name in ("limb1_a_ball", "limb2_b_ball", "limb3_a_ball"):
        ours, theirs = found.joint_wrench(name), rigid.of(name)
        assert ours[:3] == pytest.approx(theirs[:3], abs=1e-6)


def test_internal_loads_of_an_overconstrained_robot_balance() -> None:
    found = Analysis(load_mechanism("orthoglide"), stiffness=1e7).stiffness(wrench=[0, 0, 10.0, 0, 0, 0])
    ends = [joint for joint in found.model.joints if found.model.platform in joint.joins]
    total = found.wrench.copy()
    total[:3] += sum(m.mass for m in found.model.masses if m.node == found.model.platform) * found.model.gravity
    for joint in ends:
        wrench = found.joint_wrench(joint.name) * (1.0 if joint.joins[1] == found.model.platform else -1.0)
        total += np.concatenate([wrench[:3], wrench[3:] + np.cross(joint.point - found.model.origin, wrench[:3])])
    assert total[:3] == pytest.approx(np.zeros(3), abs=1e-7)


def test_a_described_section_is_used_and_told() -> None:
    text = changed("delta", "limb1_a_rod", '<beam material="carbon" radius="0.01" inner_radius="0.008"/>')
    found = Analysis(load_mechanism(text)).stiffness()
    assert found.model.sources["limb1_a_rod"] == "described"
    assert found.model.sources["limb1_b_rod"] == "drawn, as solid steel"
    (section,) = {b.piece.section for b in found.model.beams if b.piece.link == "limb1_a_rod"}
    assert section.E == 120e9
    assert np.isclose(section.A, np.pi * (1e-4 - 0.64e-4))
    assert "described: limb1_a_rod" in str(found)


def test_bearings_give_way_as_they_say() -> None:
    text = load_mechanism("delta").urdf
    softer = text.replace(
        '<loop name="limb1_a_ball" type="spherical">',
        '<loop name="limb1_a_ball" type="spherical"><bearing radial="1e6"/>',
    )
    found = [Analysis(load_mechanism(one)).stiffness() for one in (text, softer)]
    share = found[1].shares["joint", "limb1_a_ball"]
    assert found[0].compliance + share == pytest.approx(found[1].compliance, abs=1e-15)
    assert share[2, 2] > 0.0


def test_beams_that_form_a_frame_are_all_there() -> None:
    """Two of three sides and the third: all carry between three joints."""
    section, corners = Section(1.0, 1.0, *tube(0.01)), np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    sides = [Piece("l", corners[k], corners[k - 1], section, np.array([0.0, 0, 1]), 0.01, "") for k in range(3)]
    body = body_of(sides, [Hung(corner) for corner in corners], [Hung(corners.mean(axis=0))])
    assert (len(body.pieces), body.nodes) == (4, 4)
    assert body_of(sides[:1], [Hung(corners[0])], []).nodes == 1


@pytest.mark.parametrize(
    ("beam", "words"),
    [
        ('<beam material="steal" radius="0.01"/>', "unknown"),
        ('<beam material="steel" radius="0"/>', "not greater than zero"),
        ('<beam material="steel" radius="nan"/>', "not finite"),
        ('<beam material="steel" from="0 0 0" to="1 0 0"/>', "section is missing"),
        ('<beam material="steel" radius="0.01" width="0.1"/>', "do not form a section"),
        ('<beam material="steel" radius="0.01" from="0 0 0"/>', "one end"),
        ('<beam radius="0.01"/>', "E is missing"),
        ('<beam material="steel" radius="0.01" inner_radius="0.01"/>', "not less than the radius"),
        ('<beam material="steel" E="2e11" G="8e10" radius="0.01"/>', "a material, and E or G"),
        ('<beam E="8e10" G="2e11" radius="0.01"/>', "G, 2e\\+11 Pa, is larger than E"),
        ('<beam E="70" G="26" radius="0.01"/>', "looks like GPa"),
        ('<beam material="steel" width="30" height="20"/>', "looks like mm"),
        ('<beam material="steel" radius="0.01" from="0 0 0" to="200 0 0"/>', "looks like mm"),
        ('<beam material="steel" radius="0.01" from="0 0 0" to="1 0 0" y="1 0 0"/>', "parallel"),
        (2 * '<beam material="steel" radius="0.01"/>', "two are identical"),
        ('<beam material="steel" radus="0.01"/>', "there is no attribute 'radus'; did you mean 'radius'"),
        ('<beam material="steel" diameter="0.02"/>', "there is no attribute 'diameter'; write material"),
        (
            '<beam material="steel" A="200" Iy="4000" Iz="4000" J="8000"/>',
            "A, 200 m2, looks like mm2; write m2: 0.0002",
        ),
        (
            '<beam material="steel" A="2e-4" Iy="4000" Iz="4000" J="8e-9"/>',
            "Iy, 4000 m4, looks like mm4; write m4: 4e-09",
        ),
        ('<beam material="steel" A="2e-4" Iy="0.4" Iz="0.4" J="0.8"/>', "no section has an A of 0.0002 m2"),
    ],
)
def test_a_faulty_beam_is_refused_by_name(beam: str, words: str) -> None:
    with pytest.raises(DescriptionError, match=words) as error:
        load_mechanism(changed("delta", "limb1_a_rod", beam))
    assert "limb1_a_rod" in str(error.value)


def test_a_faulty_bearing_is_refused_by_name() -> None:
    text = load_mechanism("delta").urdf.replace(
        '<joint name="limb1_arm" type="revolute">', "{}<bearing radail='1'/>", 1
    )
    joint = '<joint name="limb1_arm" type="revolute">'
    with pytest.raises(DescriptionError, match="<bearing>: there is no attribute 'radail'; did you mean 'radial'"):
        load_mechanism(text.format(joint))
    for name in ("radial", "axial"):
        words = f"<bearing>: {name}, 200 N/m, looks like N/um; write N/m: 2e\\+08"
        with pytest.raises(DescriptionError, match=words):
            load_mechanism(text.format(joint).replace("radail='1'", f"{name}='200'"))


@pytest.mark.parametrize(
    ("load", "words"),
    [
        ({"payload": -1.0}, "not a mass"),
        ({"wrench": [1.0]}, "six"),
        ({"wrench": [np.nan] * 6}, "six"),
        ({"at": {"z": -5.0}}, "no configuration"),
        ({"at": [np.nan] * 7}, "no configuration"),
    ],
)
def test_a_faulty_question_is_refused(delta: Analysis, load: dict, words: str) -> None:
    with pytest.raises(AnalysisError, match=words):
        delta.stiffness(**load)


def test_a_singular_pose_is_refused_with_its_direction() -> None:
    with pytest.raises(AnalysisError, match="singular"):
        Analysis(load_mechanism("griffis_duffy")).stiffness()
    with pytest.raises(AnalysisError, match="it is not valid"):
        Analysis(load_mechanism("delta"), stiffness=-1.0).stiffness()


def test_a_tripod_is_stiffer_in_the_printed_order() -> None:
    """Xi, Zhang and others: legs, their bending and drives of 1000 N/mm; printed is a mean trace for each design.

    Units and Jacobians are lost. Against forces all four designs are alike at home, so that the order is that against
    moments; the first two, printed alike, are not told apart.
    """
    printed = {(85.0, 230.0, 75.0): 5545, (84.2953, 229.7621, 74.9241): 5545, (82.2788, 225.3975, 69.6152): 5552}
    printed[75.0, 200.0, 65.0] = 6572
    found = []
    for radius, rod, incline in printed:
        given = {"platform_radius": radius / 1e3, "rod_length": rod / 1e3, "incline": np.radians(incline)}
        text = load_mechanism("tripod_3prs", {name: str(value) for name, value in given.items()}).urdf
        E, length, k = 2e11, rod / 1e3, 1e6
        numbers = f'A="{k * length / E}" Iy="{k * length**3 / (3 * E)}" Iz="{k * length**3 / (3 * E)}" J="1e-6"'
        beam = f'<beam E="{E}" G="8e10" {numbers} from="0 0 0" to="0 0 {length}"/>'
        text = re.sub(r'(<link name="limb\d_rod">)', rf"\1{beam}", text)
        C = Analysis(load_mechanism(text), stiffness=k).stiffness().compliance
        found.append([float(np.trace(C[part, part])) for part in (slice(0, 3), slice(3, 6))])
    forces, moments = np.array(found).T
    assert np.ptp(forces) < 0.01 * forces.mean()
    assert max(moments[:2]) < moments[2] < moments[3]
    assert moments[3] / moments[1] - 1 == pytest.approx(0.27, abs=0.01)  # 0.19 of the mean that is printed


def test_limbs_that_lose_hold_of_a_plate_are_told_apart_from_drives() -> None:
    """The kinematics, which know no stiffness, find the same of an H4 at home."""
    h4 = Analysis(load_mechanism("h4"), stiffness=1e5)
    kinematics = h4.robot.kinematics
    assert kinematics.at_one(kinematics.home).singularity.constraint_hold == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(AnalysisError, match=r"constraint singularity.*-1 "):
        h4.stiffness()
    assert np.linalg.eigvalsh(h4.stiffness({"x": 0.05}).stiffness)[0] > 0.0


def test_the_command_prints_what_a_frame_program_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["delta", "stiffness", "--json", "--at", "x=100mm", "--payload", "2", "--stiffness", "2e5"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"stiffness", "compliance", "sag", "shares", "beams", "joints", "drives", "rigid_links"} <= told.keys()
    assert told["pose"][0] == pytest.approx(0.1)
    assert np.array(told["stiffness"]) @ np.array(told["compliance"]) == pytest.approx(np.eye(6), abs=1e-6)
    assert told["drives"][0]["stiffness"] == 2e5
    with pytest.raises(SystemExit):
        main(["delta", "stiffness", "--wrench", "1", "2"])


def test_maps_and_requirements_know_it(delta: Analysis) -> None:
    found = delta.map("stiffness:z", {"x": (-0.1, 0.1), "y": (-0.1, 0.1)}, resolution=3)
    at = delta.stiffness({"x": 0.1, "y": 0.1})
    assert found.values[-1, -1] == pytest.approx(1.0 / at.compliance[2, 2])
    bound = delta.requirement("stiffness:z > 2 N/um")
    assert bound.bound == 2e6
    assert delta.requirement("turning_stiffness > 30 N m/mrad").bound == 30e3
    assert delta.quantity("sag").of(delta.robot, at.pose[None])[0] == pytest.approx(np.linalg.norm(at.sag[:3]))
    with pytest.raises(AnalysisError, match="no unit"):
        delta.requirement("stiffness > 2 mm")
    with pytest.raises(AnalysisError, match=r"nothing is proved.*known at poses"):
        delta.prove("clearance > 1 mm", {"x": (0.0, 0.1)})


@pytest.mark.parametrize(
    "requirements",
    [
        pytest.param(("stiffness:z > 2 N/um",), marks=pytest.mark.slow),
        pytest.param(("stiffness:z > 2 N/um", "joint:limb1_arm < 5 deg"), marks=pytest.mark.slow),
        ("sag < 60 um", "joint:limb1_arm < 5 deg", "stiffness > 0.35 N/um"),
    ],
)
def test_a_slow_requirement_is_asked_only_where_the_others_hold(
    delta: Analysis, requirements: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first condition that fails is named all the same: codes are those of asking for everything everywhere."""
    conditions = delta.conditions(requirements=requirements)
    points = np.random.default_rng(0).uniform((-0.7, -0.7, -1.5), (0.7, 0.7, -0.4), (1500, 3))
    hasty = [
        replace(one, quantity=replace(one.quantity, slow=False)) if one.quantity.slow else one
        for one in conditions.requirements
    ]
    assert not conditions.quick
    asked: list[int] = []
    over = Stiffnesses.over

    def counted(self: Stiffnesses, at: Configuration, of: Callable[[ElasticSystem], np.ndarray]) -> np.ndarray:
        asked.append(len(at.poses))
        return over(self, at, of)

    monkeypatch.setattr(Stiffnesses, "over", counted)
    codes = conditions.codes(points)
    few = sum(asked)
    expected = replace(conditions, requirements=tuple(hasty)).codes(points)
    np.testing.assert_array_equal(codes, expected)
    assert few < 0.8 * (sum(asked) - few)
    firsts = conditions._first.requirements
    for k in range(len(requirements)):
        assert ((codes >= firsts[k]) & (codes < firsts[k] + 1)).any()


@pytest.mark.slow
def test_a_workspace_with_a_stiffness_asks_for_few_poses(delta: Analysis) -> None:
    found = delta.workspace(requirements=["stiffness:z > 2 N/um"], resolution=11, tolerance=0.02)
    assert any("stiffness:z" in stop.text for stop, _ in found.stopped_by)
    inside = found.contains(np.array([[0.0, 0.0, -0.7], [0.0, 0.0, -1.1]]))
    at = [1.0 / delta.stiffness({"z": z}).compliance[2, 2] for z in (-0.7, -1.1)]
    assert [value > 2e6 for value in at] == inside.tolist() == [True, False]


@pytest.mark.parametrize(
    "name", ["delta", "sprung delta", "gough_stewart", "five_bar", "h4", "cable_8", "wrist_3ups_s"]
)
def test_many_poses_at_once_are_as_one_at_a_time(name: str) -> None:
    """An H4 has singular poses among them, whose structure the others do not share."""
    robot = Analysis(sprung(name.split()[1]) if " " in name else load_mechanism(name), stiffness=1e5)
    x = {"wrist_3ups_s": "yaw"}.get(name, "x")
    poses = np.array([robot.pose_at({x: value}) for value in np.linspace(-0.06, 0.06, 9)])
    stiff, sag = (robot.quantity(kind).of(robot.robot, poses) for kind in ("turning_stiffness", "sag"))
    for k, pose in enumerate(poses):
        if name == "h4" and k == 4:
            assert np.isnan([stiff[k], sag[k]]).all()
            continue
        one = robot.stiffness(pose)
        assert stiff[k] == pytest.approx(1.0 / np.linalg.eigvalsh(one.compliance[3:, 3:])[-1], rel=1e-7)
        assert sag[k] == pytest.approx(np.linalg.norm(one.sag[:3]), rel=1e-7, abs=1e-15)


def test_poses_of_several_structures_are_found_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tricept's tubes are tied to its centre of mass at other places in the order of cuts as they slide."""
    robot = Analysis(load_mechanism("tricept"), stiffness=5e7)
    domain = robot.conditions().domain
    home = np.array([one.home for one in domain.coordinates])
    points = home + np.random.default_rng(0).uniform(-0.3, 0.3, (300, len(home)))
    poses = domain.poses(points)[0]
    quantity, made, system = robot.quantity("stiffness"), list[int](), Stiffnesses._system

    def counted(self: Stiffnesses, at: Configuration) -> ElasticSystem:
        made.append(len(at.poses))
        return system(self, at)

    monkeypatch.setattr(Stiffnesses, "_system", counted)
    values = quantity.of(robot.robot, poses)
    monkeypatch.undo()
    assert len(poses) / 64 + 1 < len(made) < 30
    for k in range(0, 300, 30):
        assert values[k] == pytest.approx(1.0 / robot.stiffness(poses[k]).softest[1], rel=1e-7)


def test_a_direction_in_which_nothing_gives_way_is_infinitely_stiff() -> None:
    wrist = Analysis(load_mechanism("wrist_3ups_s"), stiffness=5e7)
    poses = wrist.robot.kinematics.home[None]
    assert np.isinf(wrist.quantity("stiffness:z").of(wrist.robot, poses)[0])
    assert np.isfinite(wrist.quantity("turning_stiffness").of(wrist.robot, poses)[0])


def test_the_lowest_vibration_on_soft_drives_is_that_of_rigid_links() -> None:
    text = load_mechanism("delta").urdf
    for limb in (1, 2, 3):
        for link in ("arm", "pin", "a_rod", "b_rod"):
            text = re.sub(rf'(<link name="limb{limb}_{link}">)', r"\1<beam/>", text)
    text = re.sub(r'<param name="rotor_inertia">[^<]*', '<param name="rotor_inertia">0', text)
    found = Analysis(load_mechanism(text), stiffness=2e4).stiffness()
    rigid = natural_frequencies(found.robot.dynamics, found.robot.kinematics.home, 2e4).frequency / (2.0 * np.pi)
    assert found.vibrations.frequency[:3] == pytest.approx(rigid, rel=1e-6)


@pytest.mark.parametrize("name", ["delta"])
def test_published_tables_are_current(name: str) -> None:
    written = json.loads((TABLES / f"{name}.json").read_text())
    now = Analysis(load_mechanism(name), stiffness=written["drives"][0]["stiffness"]).stiffness().to_dict()
    assert written.keys() == now.keys()
    assert [one.keys() for one in written["beams"]] == [one.keys() for one in now["beams"]]
    for key in ("compliance", "sag"):
        size = np.abs(np.array(now[key])).max()
        assert np.array(written[key]) == pytest.approx(np.array(now[key]), abs=1e-8 * size)


def test_a_robot_without_masses_and_sections_is_rigid_and_says_so() -> None:
    text = re.search(r"```xml\n(<robot name=.two_bars.*?</robot>)", DESCRIPTION.read_text(), re.DOTALL)
    assert text is not None
    mechanism = load_mechanism(text[1])
    rigid = Analysis(mechanism).stiffness()
    assert not rigid.compliance.any()
    assert len(rigid.rigid) == 6
    assert "x: rigid" in str(rigid)
    json.dumps(rigid.to_dict(), allow_nan=False)
    on_drives = Analysis(mechanism, stiffness=1e6).stiffness()
    assert np.linalg.matrix_rank(on_drives.compliance, tol=1e-12) == 2
    assert not len(on_drives.vibrations.frequency)


def test_a_beam_with_shear_areas_is_timoshenkos() -> None:
    """Its stiffness matrix in closed form (Przemieniecki, 1968), and that of the whole robot."""
    E, G, A, Iy, Iz, J, Ay, Az, L = 2e11, 8e10, 2e-3, 3e-6, 2e-6, 4e-6, 1.6e-3, 1.2e-3, 0.2
    ends = np.zeros(3), np.array([L, 0.0, 0.0])
    piece = Piece("l", *ends, Section(E, G, A, Iy, Iz, J, Ay, Az), np.array([0.0, 1, 0]), 0.01, "")
    K = np.linalg.inv(BeamBetween((0, 1), piece).compliance)
    for k, turn, sign, inertia, area in ((1, 5, -1.0, Iz, Ay), (2, 4, 1.0, Iy, Az)):
        phi = 12.0 * E * inertia / (G * area * L**2)
        assert phi > 0.1  # it matters
        assert K[k, k] == pytest.approx(12.0 * E * inertia / (L**3 * (1.0 + phi)))
        assert K[k, turn] == pytest.approx(sign * 6.0 * E * inertia / (L**2 * (1.0 + phi)))
        assert K[turn, turn] == pytest.approx((4.0 + phi) * E * inertia / (L * (1.0 + phi)))
    beam = '<beam material="steel" width="0.04" height="0.04" from="0 0 0" to="0.3 0 0" {}/>'
    texts = [changed("delta", "limb1_arm", beam.format(more)) for more in ("", 'Ay="0.0013" Az="0.0013"')]
    soft = [Analysis(load_mechanism(text)).stiffness() for text in texts]
    added = soft[1].compliance - soft[0].compliance
    assert np.linalg.eigvalsh(added[:3, :3])[0] > -1e-20
    assert added[2, 2] > 0.0
    assert added == pytest.approx(soft[1].shares["link", "limb1_arm"] - soft[0].shares["link", "limb1_arm"], abs=1e-18)
    with pytest.raises(DescriptionError, match="section is missing"):
        load_mechanism(changed("delta", "limb1_arm", '<beam material="steel" Ay="0.001"/>'))
