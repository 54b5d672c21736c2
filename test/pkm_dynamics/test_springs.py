# SPDX-License-Identifier: Apache-2.0
"""Springs of a robot: against MuJoCo, the gradient of their energy, its conservation, and between our own ways."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from functools import cache

import numpy as np
import pytest

from pkm_analysis import Analysis
from pkm_description import DescriptionError, load_mechanism
from pkm_description.formats.mjcf_compiled import read_compiled
from pkm_description.formats.mjcf_export import export_mjcf
from pkm_description.formats.mjcf_model import read
from pkm_description.urdf.unit_slips import suspects
from pkm_description.urdf.urdf_plus import parse
from pkm_dynamics import Distribution, Dynamics
from pkm_dynamics.actuator_dynamics import ActuatorDynamics
from pkm_dynamics.energy import energy, power
from pkm_dynamics.identification.identify import equations
from pkm_dynamics.identification.recorded import Recorded
from pkm_dynamics.linear_form.random_motions import random_motions
from pkm_dynamics.natural_frequencies import natural_frequencies
from pkm_dynamics.observed_legs import ObservationError, ObservedLegs
from pkm_dynamics.simulation import simulate
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_kinematics.load_verdicts import weight_at_home
from test.oracles.sprung_robots import sprung

FREE = Distribution()  # efforts by least squares, whether or not the drives can give them
CONSTANT = ["delta", "five_bar", "gough_stewart", "quattro", "orthoglide", "agile_eye", "planar_redundant"]
TURNING = ["tricept", "tripod_3prs"]


@cache
def dynamics_of(name):
    return Dynamics(sprung(name), friction=False)


@cache
def motions_of(name):
    return random_motions(dynamics_of(name).kinematics, 6, seed=4)


@pytest.mark.by_day("agile_eye", "five_bar", "planar_redundant", "quattro")
@pytest.mark.parametrize("name", CONSTANT)
def test_power_brought_is_energy_gained(name):
    """Along a motion of constant twist: difference quotient of fourth order of all energy, that of springs included."""
    dynamics, h = dynamics_of(name), 2e-4
    motions = motions_of(name)
    assert (np.abs(dynamics.spring_efforts(motions.pose)) > 1e-3).any(axis=0).all()
    for pose, twist in zip(motions.pose, 0.2 * motions.twist, strict=True):
        effort = dynamics.inverse(pose, twist, np.zeros(6), distribution=FREE).effort
        totals = [float(energy(dynamics, displace(np.array(pose), k * h * twist), twist).total) for k in (-2, -1, 1, 2)]
        gained = (totals[0] - 8 * totals[1] + 8 * totals[2] - totals[3]) / (12 * h)
        brought = float(power(dynamics, pose, twist, effort))
        assert brought == pytest.approx(gained, abs=1e-6 * max(abs(brought), abs(totals[0]), 1e-3))


class InMujoco:
    """A robot in MuJoCo without the softness of its loops: its forces, and the null space of its equalities."""

    def __init__(self, mechanism):
        mujoco = pytest.importorskip("mujoco")
        self.engine, self.mechanism = mujoco, mechanism
        self.model = mujoco.MjModel.from_xml_string(export_mjcf(mechanism))
        self.model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        self.model.dof_damping[:] = 0.0
        self.model.dof_frictionloss[:] = 0.0
        self.data = mujoco.MjData(self.model)

    def efforts(self, kinematics, motion):
        """Efforts of least squares for a motion: inertia, bias and MuJoCo's springs, projected by its closures."""
        m, d = self.model, self.data
        at = [int(m.joint(name).dofadr[0]) for name in kinematics.joint_names]
        d.qpos[at], d.qvel[at] = motion.joints, motion.velocities
        qacc = np.zeros(m.nv)
        qacc[at] = motion.accelerations
        self.engine.mj_forward(m, d)
        equal = d.efc_type[: d.nefc] == int(self.engine.mjtConstraint.mjCNSTR_EQUALITY)
        assert np.abs(d.efc_pos[: d.nefc][equal]).max() < 1e-9
        _, values, Vt = np.linalg.svd(d.efc_J.reshape(-1, m.nv)[: d.nefc][equal])
        N = Vt[np.count_nonzero(values > 1e-6 * values[0]) :].T
        Mq = np.zeros(m.nv)
        self.engine.mj_mulM(m, d, Mq, qacc)
        force = Mq + d.qfrc_bias - d.qfrc_passive
        assert np.abs(d.qfrc_passive).max() > 0.1
        driven = [int(m.joint(name).dofadr[0]) for name in self.mechanism.actuated_joints]
        return np.linalg.lstsq(N[driven].T, N.T @ force, rcond=None)[0]


@pytest.mark.parametrize("name", ["delta", "five_bar", "gough_stewart", "agile_eye", "planar_3rrr", "tripteron"])
def test_efforts_are_those_of_mujoco(name):
    """Its tendons and joint springs, its recursion, its closures; no small bodies stand in for anything in these."""
    dynamics = dynamics_of(name)
    k, engine = dynamics.kinematics, InMujoco(dynamics.mechanism)
    motions = motions_of(name)
    for pose, twist, acceleration in zip(motions.pose, motions.twist, motions.acceleration, strict=True):
        motion, ours = k.motion(pose, twist, acceleration), dynamics.inverse(pose, twist, acceleration)
        theirs = engine.efforts(k, motion)
        assert ours.status == 0
        assert np.abs(ours.effort - theirs).max() < 1e-8 * max(1.0, np.abs(theirs).max())


@pytest.mark.parametrize(("name", "form"), [
    ("delta", "task"), ("five_bar", "actuator"), ("gough_stewart", "task"), ("orthoglide", "joint"),
    ("tricept", "joint"), ("quattro", "task"),
])  # fmt: skip
def test_energy_of_a_free_motion_is_conserved(name, form):
    """Let go at home, without friction; tolerance 1e-10 of a step, some hundred steps."""
    dynamics = dynamics_of(name)
    k = dynamics.kinematics
    hold = dynamics.gravity(k.home).effort
    run = simulate(
        dynamics, k.home, np.zeros(6), np.linspace(0.0, 0.15, 6), lambda *_: (0.8 * hold, np.zeros(6)), form=form
    )
    assert run.ok.all()
    found = energy(dynamics, k.at(run.pose, seed=run.joints), run.twist)
    brought = run.joints[:, k.engine.actuated_column] @ (0.8 * hold)
    assert found.kinetic.max() > 1e-3
    total = found.total - brought
    assert np.abs(total - total[0]).max() < 1e-7 * max(found.kinetic.max(), np.abs(total).max())


@pytest.mark.by_day("delta", "tripod_3prs")
@pytest.mark.parametrize("name", ["delta", "five_bar", "gough_stewart", "quattro", "tricept", "tripod_3prs"])
def test_lean_calls_and_straight_line_code_are_the_kernels(name):
    dynamics = dynamics_of(name)
    k, motions = dynamics.kinematics, motions_of(name)
    inverse, direct = dynamics.lean_inverse(), dynamics.lean_direct()
    m = len(k.actuated_names)
    for pose, twist, acceleration in zip(motions.pose, motions.twist, motions.acceleration, strict=True):
        whole = dynamics.inverse(pose, twist, acceleration)
        found, motion = np.zeros(m), np.concatenate([pose, twist, acceleration, np.zeros(6)])
        assert inverse(motion, found) == 0
        assert found == pytest.approx(whole.effort, abs=1e-8 * np.abs(whole.effort).max())
        motion[13:], moved = 0.0, np.zeros(6)
        assert direct(motion, found, moved) == 0
        expected = dynamics.direct(pose, twist, found).acceleration
        assert moved == pytest.approx(expected, abs=1e-7 * np.abs(expected).max())


def test_straight_line_code_of_many():
    """A hundred thousand states take the code, of which a few are asked of the kernels again."""
    dynamics = dynamics_of("delta")
    motions = random_motions(dynamics.kinematics, 1000, seed=2)
    poses = np.tile(motions.pose, (100, 1))
    many = dynamics.inverse(poses, np.tile(motions.twist, (100, 1)), np.tile(motions.acceleration, (100, 1)))
    assert dynamics.robot.codes
    few = Dynamics(dynamics.kinematics, friction=False).inverse(motions.pose, motions.twist, motions.acceleration)
    assert many.effort[:1000] == pytest.approx(few.effort, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", ["delta", "five_bar", "gough_stewart", "tripod_3prs"])
def test_actuators_as_coordinates(name):
    dynamics = dynamics_of(name)
    k, other = dynamics.kinematics, ActuatorDynamics(dynamics)
    for pose in (k.home, motions_of(name).pose[0]):
        joints = k.inverse(pose).joints
        assert other.place(np.array(pose), joints) == 0
        expected = dynamics.gravity(pose).effort
        assert other.weight() == pytest.approx(expected, abs=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("name", [*CONSTANT, *TURNING])
def test_the_linear_form_with_the_springs(name):
    dynamics, motions = dynamics_of(name), motions_of(name)
    given = motions.pose, motions.twist, motions.acceleration
    psi, _ = dynamics.regressor(*given)
    expected = dynamics.inverse(*given, distribution=FREE).effort
    found = psi @ dynamics.parameters.values + dynamics.spring_efforts(motions.pose)
    assert found == pytest.approx(expected, abs=1e-8 * np.abs(expected).max())


def test_identification_takes_the_springs_out():
    """Efforts of a recorded motion less those of the springs are what the description's parameters explain."""
    dynamics = dynamics_of("delta")
    k, time = dynamics.kinematics, np.arange(0.0, 1.5, 0.001)
    joints = k.inverse(k.home).actuated + 0.1 * np.sin(np.outer(time, [6.0, 7.0, 8.0]))
    rates = 0.1 * np.cos(np.outer(time, [6.0, 7.0, 8.0])) * [6.0, 7.0, 8.0]
    seconds = -0.1 * np.sin(np.outer(time, [6.0, 7.0, 8.0])) * np.square([6.0, 7.0, 8.0])
    other, efforts = ActuatorDynamics(dynamics), []
    for q, u, ud in zip(joints, rates, seconds, strict=True):
        assert other.follow(q) == 0
        other.move(u)
        efforts.append(other.efforts(ud))
    recorded = Recorded(time, joints, np.array(efforts))
    system = equations(dynamics, recorded)
    missed = (system.psi @ dynamics.parameters.values - system.efforts)[10:-10]  # the filter starts in mid-motion
    assert np.abs(missed).max() < 1e-3 * np.abs(efforts).max()
    assert np.abs(dynamics.spring_efforts(k.home)).max() > 0.1 * np.abs(efforts).max()


@pytest.mark.parametrize("name", [*CONSTANT, *TURNING])
def test_derivatives_by_differences(name):
    """By pose at rest: central differences of fourth order along the motion space, where it is constant."""
    dynamics = dynamics_of(name)
    k, h = dynamics.kinematics, 1e-3
    pose = motions_of(name).pose[1]
    found, S = dynamics.inverse_derivatives(pose), k.subspace(pose)
    K = k.at(pose).motion_jacobian
    for c in range(S.shape[1]):

        def effort(step, c=c):
            if k.constant_space:
                return dynamics.inverse(displace(np.array(pose), step * S[:, c]), distribution=FREE).effort
            start = k.inverse(pose)
            there = k.forward(start.actuated + step * K[:, c], near=pose).pose
            return dynamics.gravity(k.at(there, seed=start.joints)).effort

        slope = (effort(-2 * h) - 8 * effort(-h) + 8 * effort(h) - effort(2 * h)) / (12 * h)
        # a step of the actuators is one of the pose to first order only, of which this is the derivative by first order
        if k.constant_space:
            assert found.pose[:, c] == pytest.approx(slope, abs=1e-5 * np.abs(found.pose).max())
        else:
            assert found.pose[:, c] == pytest.approx(slope, abs=1e-4 * np.abs(found.pose).max())


@pytest.mark.parametrize("name", ["delta", "five_bar", "gough_stewart", "orthoglide"])
def test_the_ground_carries_the_weight_whatever_the_springs(name):
    """Springs between links are inner forces: the ground bears the weight of all links, joints carry the springs."""
    dynamics = dynamics_of(name)
    plain = Dynamics(load_mechanism(name), friction=False)
    mechanism, pose = dynamics.mechanism, dynamics.kinematics.home
    found, before = dynamics.reactions(pose), plain.reactions(pose)
    mass = sum(link.inertial.mass for link in mechanism.links if link.name != mechanism.base_link)
    size = max(np.abs(found.wrench).max(), mass * 9.81)

    assert found.base[:3] == pytest.approx(mass * mechanism.gravity, abs=1e-8 * size)
    assert found.base == pytest.approx(before.base, abs=1e-7 * size)
    assert np.abs(found.wrench - before.wrench).max() > 1.0
    assert found.effort == pytest.approx(dynamics.gravity(pose).effort, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "stiffness"), [("delta", 2e3), ("five_bar", 2e3), ("gough_stewart", 1e6), ("orthoglide", 2e3)]
)
def test_small_swings_on_springs_are_harmonic(name, stiffness):
    """Pushed along its shape, under the efforts that hold it, the platform is driven back by omega^2 of the way."""
    dynamics = dynamics_of(name)
    k, pose = dynamics.kinematics, dynamics.kinematics.home
    q, hold = k.inverse(pose), dynamics.gravity(pose).effort
    found = natural_frequencies(dynamics, pose, stiffness)
    assert found.frequency.min() > 1.0
    for omega, shape in zip(found.frequency, found.shape.T, strict=True):
        step = 1e-5 / np.abs(shape).max()
        swung = []
        for sign in (1.0, -1.0):
            moved = displace(np.array(pose), sign * step * shape)
            at = k.inverse(moved, seed=q.joints)
            effort = hold - stiffness * (at.actuated - q.actuated)
            swung.append(dynamics.direct(k.at(moved, seed=at.joints), np.zeros(6), effort).acceleration)
        second = (swung[0] - swung[1]) / (2.0 * step)
        assert second == pytest.approx(-(omega**2) * shape, abs=1e-5 * max(omega**2, 1.0) * np.abs(shape).max())


@pytest.mark.parametrize("name", ["delta", "five_bar", "gough_stewart", "orthoglide", "agile_eye", "tripod_3prs"])
def test_the_verdict_on_the_weight_counts_the_springs(name):
    """By virtual work on the description alone: differences of the energy by 1e-6."""
    dynamics = dynamics_of(name)
    k = dynamics.kinematics
    found = weight_at_home(k, np.full(len(k.actuated_names), np.inf))
    expected = dynamics.gravity(k.home).effort
    assert found == pytest.approx(expected, abs=1e-6 * max(1.0, np.abs(expected).max()))


def test_the_turns_of_a_wound_spring_count():
    """A torsion spring wound by a whole turn: its effort is that of the turn, not of the angle left over."""
    text = load_mechanism("five_bar").urdf
    first = text.index("<dynamics")
    wound = text[:first] + '<dynamics spring_stiffness="2" spring_reference="-6.283185307179586"' + text[first + 9 :]
    rested = text[:first] + '<dynamics spring_stiffness="2" spring_reference="0"' + text[first + 9 :]
    one, other = (Dynamics(load_mechanism(one)) for one in (wound, rested))
    found = one.gravity(one.kinematics.home).effort - other.gravity(one.kinematics.home).effort
    assert sorted(np.abs(found)) == pytest.approx([0.0, 4.0 * np.pi], abs=1e-9)


def test_what_the_model_of_observed_legs_lacks():
    with pytest.raises(ObservationError, match="springs"):
        ObservedLegs(dynamics_of("gough_stewart"))


@pytest.mark.parametrize("name", ["delta", "gough_stewart", "five_bar"])
def test_round_trip_through_mjcf(name):
    """Back from MuJoCo's format, read by us and by its compiler: the same springs, and the same efforts."""
    plain = sprung(name)
    text = export_mjcf(plain)
    again = load_mechanism(text, {"platform": plain.platform_link, "base": plain.base_link})
    assert len(again.springs) == len(plain.springs)
    for one, other in zip(plain.springs, again.springs, strict=True):
        assert (one.name, one.from_link, one.to_link) == (other.name, other.from_link, other.to_link)
        assert other.from_point == pytest.approx(one.from_point)
        assert other.stiffness == pytest.approx(one.stiffness)
        assert other.rest_length == pytest.approx(one.rest_length - one.preload / one.stiffness)
    for joint in plain.joints:
        if joint.spring_stiffness:
            assert again.joint_named[joint.name].spring_stiffness == joint.spring_stiffness
            assert again.joint_named[joint.name].spring_reference == pytest.approx(joint.spring_reference)
    ours, theirs = read(ET.fromstring(text)), read_compiled(text, None, "a test")
    for one, other in zip(ours.springs, theirs.springs, strict=True):
        assert (one.name, one.from_link, one.to_link) == (other.name, other.from_link, other.to_link)
        assert (one.stiffness, one.rest_length) == pytest.approx((other.stiffness, other.rest_length))
        assert one.to_point == pytest.approx(other.to_point)


SPRING = '<spring name="s" stiffness="100"><from link="base_link" xyz="0 0 1"/><to link="limb1_arm"/></spring>'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('link="limb1_arm"', 'link="nobody"', "to link 'nobody' is not a link"),
        ('link="limb1_arm"', 'link="base_link"', "connects 'base_link' to itself"),
        ('stiffness="100"', 'stiffness="-1"', "stiffness -1 is negative"),
        ('stiffness="100"', "", "attribute stiffness is missing"),
        ('stiffness="100"', 'stiffness="100" rest_length="-0.1"', "rest_length -0.1 is negative"),
        ('stiffness="100"', 'stiffness="nan"', "not finite"),
        ('xyz="0 0 1"', 'xyz="0 0"', "2 number"),
        ('name="s"', "", "no name"),
        ('<to link="limb1_arm"/>', "", "no <to> link"),
        ('link="limb1_arm"', 'link="platform_x_slide"', "not a body"),
        ("<spring", '<spring name="s" stiffness="1"><from link="base_link"/><to link="platform"/></spring><spring',
         "used twice"),
    ],
)  # fmt: skip
def test_springs_that_cannot_be_are_named(old, new, words):
    text = load_mechanism("delta").urdf
    assert SPRING.count(old) == 1 or old == "<spring"
    load_mechanism(text.replace("</robot>", SPRING + "</robot>"))
    with pytest.raises(DescriptionError, match=words):
        load_mechanism(text.replace("</robot>", SPRING.replace(old, new, 1) + "</robot>"))


def test_millimetres_are_noticed():
    text = load_mechanism("delta").urdf.replace("</robot>", SPRING.replace("0 0 1", "0 0 250") + "</robot>")
    assert load_mechanism(text).springs  # it is no error by itself
    wrong = text.replace('link="limb1_arm"/></spring>', 'link="nobody"/></spring>')
    with pytest.raises(DescriptionError, match="nobody"):
        load_mechanism(wrong)
    root = ET.fromstring(text)
    about = [one.about for one in suspects(parse(text), root)]
    assert about == ['<spring name="s">']


def test_a_spring_without_a_direction_at_home():
    plain = load_mechanism("delta")
    at = " ".join(map(repr, plain.home[:3, 3].tolist()))
    spring = f'<spring name="s" stiffness="9"><from link="base_link" xyz="{at}"/><to link="platform"/></spring>'
    assert load_mechanism(plain.urdf.replace("</robot>", spring + "</robot>")).springs
    for more in ('rest_length="0.1"', 'preload="2"'):
        text = plain.urdf.replace("</robot>", spring.replace("<spring", f"<spring {more}") + "</robot>")
        with pytest.raises(DescriptionError, match="no direction"):
            load_mechanism(text)


def test_springs_of_joints_that_cannot_be():
    text = load_mechanism("delta").urdf
    for old, new, words in (
        ('damping="', 'spring_stiffness="-1" damping="', "spring_stiffness is negative"),
        ('<joint name="platform_x" type="prismatic">',
         '<joint name="platform_x" type="prismatic"><dynamics spring_stiffness="1"/>', "coordinate of the platform"),
    ):  # fmt: skip
        assert old in text
        with pytest.raises(DescriptionError, match=words):
            load_mechanism(text.replace(old, new, 1))


def test_springs_that_mujoco_cannot_have():
    text = load_mechanism("delta").urdf
    spring = SPRING.replace("<spring", '<spring preload="5"')
    with pytest.raises(DescriptionError, match="preload is more than"):
        export_mjcf(load_mechanism(text.replace("</robot>", spring + "</robot>")))


def test_proofs_of_efforts_at_rest_count_the_springs():
    """Proved a little above what dense sampling finds, refuted a little below; with springs whose energy has a root."""
    analysis = Analysis(sprung("delta"))
    ranges = {"x": (-0.003, 0.003), "y": (-0.003, 0.003), "z": (-0.903, -0.9)}
    plain, most = (
        one.map("effort_at_rest", ranges, resolution=4).most[0] for one in (Analysis(load_mechanism("delta")), analysis)
    )
    assert abs(most - plain) > 0.05 * plain
    assert analysis.prove(f"effort_at_rest < {1.02 * most} N m", ranges, most_boxes=3000).ok
    assert analysis.prove(f"effort_at_rest < {0.995 * most} N m", ranges, most_boxes=3000).refuted is not None
