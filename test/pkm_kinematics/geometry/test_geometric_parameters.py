# SPDX-License-Identifier: Apache-2.0
"""Geometric parameters: exact derivatives, counts as published, and machines that differ from their drawing."""

from __future__ import annotations

from contextlib import suppress
from copy import copy

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_description.corrections import Displacement, corrected, corrections_text, read_corrections
from pkm_description.description_error import DescriptionError
from pkm_description.gallery import robot_names
from pkm_description.mechanism import Array, Mechanism
from pkm_description.rotations import rpy_from_rotation
from pkm_kinematics import Kinematics
from pkm_kinematics.geometric_parameters import GeometricParameters
from pkm_kinematics.graph_model import GraphModel, rotation_vectors
from pkm_kinematics.status import Status
from pkm_runtime.errors import ConfigurationError, PkmError

# Those of which a step of one parameter can be followed: the others are singular everywhere, or their drives are more
# than they have degrees of freedom, so that no pose goes with drives that stay.
FOLLOWED = [
    name for name in robot_names() if name not in ("griffis_duffy", "cable_8", "gough_stewart_7", "planar_redundant")
]
STEP = 4e-5  # m, rad: extrapolated differences then err by its fourth power, or by rounding over it


def moves(parameters: GeometricParameters, displacements: Array) -> list[Displacement]:
    places = parameters.model.places
    return [Displacement(p.element, p.side, d) for p, d in zip(places, displacements, strict=True) if d.any()]


@pytest.mark.by_day("cable_8", "delta", "quattro", "tripod_3prs")
@pytest.mark.parametrize("robot_name", robot_names())
def test_loops_close_at_home_and_their_derivatives_are_those_of_differences(robot_name: str) -> None:
    model = GraphModel(load_mechanism(robot_name))
    random = np.random.default_rng(1)
    home = model.home()
    assert np.abs(model.closure(model.placed(home))[0]).max() < 1e-13
    model.displace(0.02 * random.standard_normal(model.displacements.shape))
    step = 0.05 * random.standard_normal((1, model.size + 6)) * model.scale
    states = home.moved(step)
    placed = model.placed(states)
    J = model.closure(placed)[1]
    for k in range(model.size + (6 if model.free_platform else 0)):
        unit = 1e-6 * np.eye(model.size + 6)[k][None]
        ends = [model.closure(model.placed(states.moved(sign * unit * model.scale)))[0] for sign in (1.0, -1.0)]
        np.testing.assert_allclose((ends[0] - ends[1]) / 2e-6, J[:, :, k], atol=2e-9)
    kept = model.displacements.copy()
    for place in range(len(model.places)):
        model.displace(kept)
        by = placed.by_place(place)
        for axis in range(6):
            ends = []
            for sign in (1.0, -1.0):
                other = kept.copy()
                other[place, axis] += sign * 1e-6
                model.displace(other)
                ends.append(model.closure(model.placed(states))[0])
            np.testing.assert_allclose(
                (ends[0] - ends[1]) / 2e-6, by[:, :, axis], atol=2e-9 / model.length + 2e-6 * (model.length < 0.1)
            )


@pytest.mark.by_day("delta", "cable_8")
@pytest.mark.parametrize("robot_name", ["delta", "hexa", pytest.param("quattro", marks=pytest.mark.slow), "cable_8"])
def test_the_ratio_of_a_drive_is_a_parameter_as_reloaded_robots_say(robot_name: str) -> None:
    """With the motors held: a joint is then at the motor's angle over the ratio of the reloaded description."""
    mechanism = load_mechanism(robot_name)
    parameters = GeometricParameters(mechanism, ideal_gears=False)
    assert len(parameters) == len(GeometricParameters(mechanism)) + len(mechanism.actuated_joints)
    if len(mechanism.actuated_joints) > mechanism.mobility.platform:
        return  # errors strain it: no pose goes with drives that stay
    states = parameters.model.random_states(2, 0.1)
    columns = parameters.model.columns_of(mechanism.actuated_joints)
    chosen = [one for one in parameters.all if one.kind == "ratio"]
    twists = parameters.sensitivity(states, chosen)[1]
    for k, one in enumerate(chosen):
        moved = []
        for step in (4e-4, 2e-4):
            ends = []
            for sign in (step, -step):
                built = corrected(mechanism, moves(parameters, parameters.displacements({one.name: sign})))
                kinematics = Kinematics(built)
                ratios = [
                    mechanism.joint_named[name].drive.gear_ratio / built.joint_named[name].drive.gear_ratio
                    for name in mechanism.actuated_joints
                ]
                rows = zip(states.q[:, columns] * ratios, states.poses, strict=True)
                found = [kinematics.forward(q, guess) for q, guess in rows]
                ends.append(np.array([there.pose[:3] for there in found]))
            moved.append((ends[0] - ends[1]) / (2.0 * step))
        exact = twists[:, :3, k]
        assert np.abs(exact).max() > 1e-3
        assert np.abs((4.0 * moved[1] - moved[0]) / 3.0 - exact).max() < 1e-6 * max(1.0, np.abs(exact).max())


def test_ratios_of_gears_are_identifiable_beside_the_others() -> None:
    """A drive's zero, and how far it moves per turn of the motor: six more in a Hexa."""
    assert len(GeometricParameters(load_mechanism("hexa"), ideal_gears=False).identifiable()) == 72


def test_the_ratio_of_a_follower_moves_the_platform_as_the_displaced_graph_does() -> None:
    """A Par2's front arm is geared to the back one: with another ratio the platform leaves its plane."""
    mechanism = load_mechanism("par2")
    parameters = GeometricParameters(mechanism, ideal_gears=False)
    one = parameters.named["front: ratio of arm"]
    states, held = parameters.model.random_states(3), parameters.model.columns_of(mechanism.actuated_joints)
    twist = parameters.sensitivity(states, [one])[1][:, :, 0]
    ends = [
        GraphModel(mechanism, parameters.displacements({one.name: sign})).closed(states, held, within=1e-15)[0]
        for sign in (1e-5, -1e-5)
    ]
    difference = (ends[0].platform[:, :3, 3] - ends[1].platform[:, :3, 3]) / 2e-5
    assert np.abs(twist[:, 1]).max() > 5e-3
    np.testing.assert_allclose(difference, twist[:, :3], atol=1e-8)
    with pytest.raises(DescriptionError, match="the loops imply its ratio"):
        corrected(mechanism, moves(parameters, parameters.displacements({one.name: 1e-3})))


@pytest.mark.parametrize(
    ("robot", "count"),
    [("gough_stewart", 42), ("hexaglide", 54), ("hexa", 66)],  # 6-SPS, 6-PSS, 6-RSS
)
def test_an_external_measurement_identifies_as_many_parameters_as_published(robot: str, count: int) -> None:
    """Fassi, Legnani and others (2005), after equations 1 to 16."""
    assert len(GeometricParameters(load_mechanism(robot)).identifiable()) == count


def inclined(robot: str) -> Mechanism:
    """A hexapod the axes of whose slides are beside the centres of their joints."""
    drawn = load_mechanism(robot)
    parameters = GeometricParameters(drawn)
    offset = np.zeros((len(parameters.model.places), 6))
    for k, place in enumerate(parameters.model.places):
        if place.element.endswith("_leg"):
            offset[k, :2] = 0.01, 0.02
    return corrected(drawn, moves(parameters, offset))


def test_with_legs_inclined_to_their_slides_a_6_sps_has_48() -> None:
    assert len(GeometricParameters(inclined("gough_stewart")).identifiable()) == 48


def rank(A: Array) -> int:
    scaled = A / np.maximum(np.linalg.norm(A, axis=0), 1e-12)
    return int(np.linalg.matrix_rank(scaled, tol=1e-8 * np.sqrt(len(scaled))))


@pytest.mark.slow
def test_a_double_ball_bar_in_place_of_the_external_measurement_leaves_a_6_sps_44() -> None:
    """Fassi, Legnani and others (2005): 12 less as no frame is given, 8 more of the bar, here a seventh leg."""
    built = inclined("gough_stewart_7")
    parameters = GeometricParameters(built)
    model, drives = parameters.model, parameters.model.columns_of(built.actuated_joints)
    states = model.random_states(100, seed=3)
    placed = model.placed(states)
    J = model.closure(placed)[1]
    by_place = np.stack([placed.by_place(k) for k in range(len(model.places))], axis=2)
    chosen = np.array([one.weights for one in parameters.identifiable()])
    effects = np.einsum("nmpk,ipk->nmi", by_place, chosen)
    rows = []
    for unknown, effect in zip(np.delete(J, drives, axis=2), effects, strict=True):  # passive joints and the pose
        U, size, _ = np.linalg.svd(unknown)
        rows.append(U[:, int((size > 1e-9 * size[0]).sum()) :].T @ effect)
    assert rank(np.concatenate(rows)) == 44


def test_without_frames_a_6_rss_has_54() -> None:
    """The same source: 66 by an external measurement, 12 of them where base and tool are."""
    parameters = GeometricParameters(load_mechanism("hexa"))
    states = parameters.model.random_states(60)
    twists = parameters.sensitivity(states, parameters.identifiable())[1]
    still, frames = np.zeros((3, 3)), []
    for frame in states.platform:
        R, across = frame[:3, :3], np.cross(np.eye(3), frame[:3, 3])
        frames.append(np.block([[np.eye(3), -across, R, still], [still, np.eye(3), still, R]]))
    base_and_tool = np.concatenate(frames)
    assert rank(base_and_tool) == 12
    assert rank(np.hstack((np.concatenate(twists), base_and_tool))) - 12 == 54


def test_a_6_urpu_of_general_shape_has_138() -> None:
    """As drawn its axes meet, which hides most of them to first order."""
    drawn = load_mechanism(_urpu())
    parameters = GeometricParameters(drawn, ideal_joints=False)
    general = 0.03 * np.random.default_rng(1).standard_normal((len(parameters.model.places), 6))
    built = corrected(drawn, moves(parameters, general))
    assert len(GeometricParameters(built, ideal_joints=False).identifiable()) == 138


MASS = '<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>'


def _joint(name: str, kind: str, parent: str, child: str, axis: str, origin: str = "") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin {origin}/><axis xyz="{axis}"/></joint>'
    )


def _text(values: Array) -> str:
    return " ".join(repr(float(value)) for value in values)


def _urpu() -> str:
    """A hexapod whose legs turn about themselves between two universal joints."""
    parts, drives, random = [], [], np.random.default_rng(3)
    for k in range(6):
        angle, aside = np.pi / 3 * k, 0.3 * (-1) ** k
        base = np.array([np.cos(angle + aside), np.sin(angle + aside), 0.0])
        top = np.array([0.6 * np.cos(angle - aside), 0.6 * np.sin(angle - aside), 1.0])
        along, length = (top - base) / np.linalg.norm(top - base), float(np.linalg.norm(top - base))
        across = np.cross(along, random.standard_normal(3))
        across /= np.linalg.norm(across)
        rpy = _text(rpy_from_rotation(np.column_stack((across, np.cross(along, across), along))))
        links = [f"leg{k}_{part}" for part in ("cross", "lower", "turn", "rod", "top")]
        parts += [f'<link name="{link}">{MASS}</link>' for link in links]
        cross, lower, turn, rod, last = links
        parts += [
            _joint(f"leg{k}_u1", "continuous", "base", cross, "1 0 0", f'xyz="{_text(base)}" rpy="{rpy}"'),
            _joint(f"leg{k}_u2", "continuous", cross, lower, "0 1 0"),
            _joint(f"leg{k}_roll", "continuous", lower, turn, "0 0 1"),
            _joint(f"leg{k}_slide", "prismatic", turn, rod, "0 0 1", f'xyz="0 0 {length!r}"'),
            _joint(f"leg{k}_v1", "continuous", rod, last, "1 0 0"),
            f'<loop name="leg{k}_v2" type="revolute"><predecessor link="{last}"/><successor link="platform">'
            f'<origin xyz="{_text(top - [0, 0, 1.0])}" rpy="{rpy}"/></successor><axis xyz="0 1 0"/></loop>',
        ]
        drives.append(f'<joint name="leg{k}_slide"><command_interface name="effort"/></joint>')
    chain = [(name, "prismatic", axis) for name, axis in zip("xyz", ("1 0 0", "0 1 0", "0 0 1"), strict=True)]
    chain += [(name, "revolute", axis) for name, axis in (("yaw", "0 0 1"), ("pitch", "0 1 0"), ("roll", "1 0 0"))]
    ends = ["base", *(f"behind_{name}" for name, _, _ in chain[:-1]), "platform"]
    parts += [f'<link name="{link}"/>' for link in ends[1:-1]]
    parts += [_joint(n, kind, ends[k], ends[k + 1], axis) for k, (n, kind, axis) in enumerate(chain)]
    return (
        f'<robot name="urpu"><link name="base"/><link name="platform">{MASS}</link>{"".join(parts)}'
        '<pkm base_link="base" platform_link="platform"><home xyz="0 0 1"/></pkm>'
        f'<ros2_control name="urpu" type="system">{"".join(drives)}</ros2_control></robot>'
    )


@pytest.mark.by_day("agile_eye", "five_bar", "gough_stewart", "tripod_3prs")
@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("robot_name", FOLLOWED)
def test_sensitivities_are_the_differences_of_displaced_robots(robot_name: str, every: int) -> None:
    """Of every parameter, or by day of every so many, pose and joints, with the drives held: to 1e-6, of every robot.

    Of loops that repeat each other, those equations are closed that do not depend on others. What is left open is of
    second order: it goes down to a quarter with half the step. So the parameter leaves the robot its motion.
    """
    mechanism = load_mechanism(robot_name)
    parameters = GeometricParameters(mechanism)
    states = parameters.model.random_states(2)  # near home: farther away, some are all but singular
    held = parameters.model.columns_of(mechanism.actuated_joints)
    rates, twists = parameters.sensitivity(states, parameters.all)
    for k in range(0, len(parameters), every):
        name, slopes, left = parameters.all[k].name, [], []
        for step in (STEP, 0.5 * STEP):
            ends = []
            for sign in (step, -step):
                displaced = copy(parameters.model)
                displaced.displace(parameters.displacements({name: sign}))
                end, gap = displaced.closed(states, held, within=1e-15)
                left.append(gap.max())
                ends.append(end)
            first, second = ends
            turned = first.platform[:, :3, :3] @ np.swapaxes(second.platform[:, :3, :3], 1, 2)
            moved = np.hstack((first.platform[:, :3, 3] - second.platform[:, :3, 3], rotation_vectors(turned)))
            slopes.append((moved / (2.0 * step), (first.q - second.q) / (2.0 * step)))
        assert max(left[2:]) < 0.3 * max(left[:2]) + 1e-12 * parameters.model.length, name  # or what rounding leaves
        for whole, half, exact in zip(*slopes, (twists[:, :, k], rates[:, :, k]), strict=True):
            size = max(1.0, float(np.abs(exact).max()))
            assert np.abs((4.0 * half - whole) / 3.0 - exact).max() < 1e-6 * size, name  # Richardson's


def test_where_drives_do_not_hold_the_platform_its_pose_is_no_function_of_parameters() -> None:
    """A Griffis-Duffy platform moves with its drives held, everywhere."""
    parameters = GeometricParameters(load_mechanism("griffis_duffy"))
    for derivative in parameters.sensitivity(parameters.model.random_states(3), parameters.all):
        assert np.isnan(derivative).all()
    with pytest.raises(PkmError, match="drives do not hold the platform"):
        parameters.identifiable()


@pytest.mark.by_day("delta", "gough_stewart", "tripod_3prs")
@pytest.mark.parametrize("robot_name", ["delta", "gough_stewart", "orthoglide", "planar_3rrr", "tripod_3prs", "hexa"])
def test_a_reloaded_robot_stands_where_the_displaced_graph_does(robot_name: str) -> None:
    mechanism = load_mechanism(robot_name)
    parameters = GeometricParameters(mechanism)
    random = np.random.default_rng(0)
    values = {one.name: 1e-4 * random.standard_normal() for one in parameters.all}
    displaced = parameters.closing(parameters.displacements(values))
    reloaded = corrected(mechanism, moves(parameters, displaced))
    model = GraphModel(mechanism, displaced)
    states, gap = model.closed(model.home(), model.columns_of(mechanism.actuated_joints))
    assert gap[0] < 1e-9
    np.testing.assert_allclose(reloaded.home, states.platform[0], atol=1e-9)
    assert reloaded.mobility.platform == mechanism.mobility.platform
    assert np.abs(reloaded.home - mechanism.home).max() > 1e-6  # the displacements count
    kinematics = Kinematics(reloaded)
    there, _ = model.closed(parameters.model.random_states(5, 0.1), model.columns_of(mechanism.actuated_joints))
    for pose, q in zip(there.poses, there.q, strict=True):
        found = kinematics.inverse(pose, seed=_joints(kinematics, model, q, pose))
        assert found.status == Status.CONVERGED
        np.testing.assert_allclose(found.actuated, q[model.columns_of(mechanism.actuated_joints)], atol=1e-8)


@pytest.mark.parametrize(("name", "count"), [("par2", 16), ("capaman", 30), ("quattro", 40), ("irsbot2", 16)])
def test_how_many_parameters_are_identifiable_does_not_hang_on_where_rounding_is_cut(
    name: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters = GeometricParameters(load_mechanism(name))
    for least in (1e-3, 1e-4, 1e-5):
        monkeypatch.setattr("pkm_kinematics.geometric_parameters.DISTINCT", least)
        assert len(parameters.identifiable()) == count


@pytest.mark.by_day("par2")
@pytest.mark.parametrize("name", ["quattro", "par2"])
def test_displacements_close_as_they_do_whatever_was_closed_before(name: str) -> None:
    mechanism, random = load_mechanism(name), np.random.default_rng(1)
    first, again = GeometricParameters(mechanism), GeometricParameters(mechanism)
    near, far = ({one.name: size * random.standard_normal() for one in first.all} for size in (3e-4, 1.0))
    alone, ways = first.moving(first.displacements(near), first.all)
    for other in (far, {name: -one for name, one in near.items()}):
        with suppress(PkmError):  # what is that far off closes nowhere
            again.moving(again.displacements(other), ())
        after, same = again.moving(again.displacements(near), again.all)
        np.testing.assert_allclose(after, alone, atol=2e-8)  # settled to 1e-6, a step before
        for one, way in zip(same, ways, strict=True):
            np.testing.assert_allclose(one.weights, way.weights, atol=1e-3)  # those where the last step began


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("linear_delta", "limb1: length of slider to a_elbow"),
        ("delta", "limb1: a_ball on the platform, y"),
        ("agile_eye", "limb1: zero of motor"),
    ],
)
def test_one_part_that_is_off_leaves_a_reloaded_robot_its_motions(name: str, parameter: str) -> None:
    """In some pose the loops closed without a tilt, by chance; and lengths of rounding were those of a wrist."""
    mechanism = load_mechanism(name)
    parameters = GeometricParameters(mechanism)
    displaced = parameters.closing(parameters.displacements({parameter: 3e-4}))
    reloaded = corrected(mechanism, moves(parameters, displaced))
    assert reloaded.mobility.platform == mechanism.mobility.platform
    drives = mechanism.actuated_joints
    states = parameters.model.random_states(3, 0.1, seed=5)
    model, graph = GraphModel(reloaded), GraphModel(mechanism, displaced)
    found, gap = model.closed(model.at(states.q, graph.names, states.poses), model.columns_of(drives))
    assert gap.max() < 1e-9
    wanted, _ = graph.closed(states, graph.columns_of(drives))
    np.testing.assert_allclose(found.platform, wanted.platform, atol=1e-8)


def _joints(kinematics: Kinematics, model: GraphModel, q: Array, pose: Array) -> Array:
    """Joint positions of a state; those of the platform's branch at home."""
    joints = np.array(kinematics.home_joints)
    for k, name in enumerate(kinematics.joint_names):
        if name in model.column:
            joints[k] = q[model.column[name]]
    return joints


@pytest.fixture
def delta() -> Mechanism:
    return load_mechanism("delta")


def test_a_file_of_corrections_is_applied_by_the_loader(delta: Mechanism, tmp_path) -> None:
    twist = np.array([3e-4, 0, 0, 0, 0, 0])
    file = tmp_path / "delta.yaml"
    geared = Displacement("limb2_arm", "ratio", np.array([0.01, 0, 0, 0, 0, 0]))
    made = [Displacement("limb1_a_ball", "predecessor", twist), geared]
    file.write_text(corrections_text(delta, made, ["a longer rod, another gear"]))
    robot, found = read_corrections(file)
    assert robot == "delta"
    np.testing.assert_array_equal(found[0].twist, twist)
    np.testing.assert_array_equal(found[1].twist, geared.twist)
    longer = load_mechanism("delta", {"corrections": str(file)})
    assert longer.loop_named["limb1_a_ball"].predecessor_frame[0, 3] == pytest.approx(1.0553)
    assert longer.mobility.platform == 3
    assert longer.joint_named["limb2_arm"].drive.gear_ratio == pytest.approx(55 / 1.01)
    kinematics = Kinematics(longer)
    there = kinematics.nearest([0.05, 0.1, -0.9, 0.0, 0.0, 0.0])
    assert there.status == Status.CONVERGED
    assert kinematics.inverse(there.pose).status == Status.CONVERGED


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("robot: hexa\ndisplacements: []\n", "belong to 'hexa'"),
        ("robot: delta\ndisplacements:\n  - joint: limb9_arm\n    translation: [0.001, 0, 0]\n", "no such joint"),
        ("robot: delta\ndisplacements:\n  - joint: limb1_arm\n    translation: [1.0, 0, 0]\n", "more than 0.2"),
        ("robot: delta\ndisplacements:\n  - loop: limb1_a_ball\n    translation: [0.001, 0, 0]\n", "frame"),
        (
            "robot: delta\ndisplacements:\n  - joint: limb1_arm\n    rotation: [0.001, .nan, 0]\n",
            "no list of 3 numbers",
        ),
        ("robot: delta\ndisplacements:\n  - joint: limb1_a_rod\n    ratio: 0.001\n", "no such joint with a gear"),
        ("robot: delta\ndisplacements:\n  - joint: limb1_arm\n    ratio: 3\n", "more than 0.2"),
        ("robot: delta\ndisplacements:\n  - joint: limb1_arm\n    ratio: 0.1\n    rotation: [0, 0, 0]\n", "rotation"),
        ("robot: delta\n", "is no list"),
        ("42", "is not a mapping"),
        (
            "robot: delta\ndisplacements:\n  - joint: limb1_arm\n  - loop: limb1_a_ball\n    frame: successor\n"
            "  - joint: limb1_arm\n",
            r"displacements\[2\].*displaces 'limb1_arm' a second time",
        ),
    ],
)
def test_what_is_wrong_with_corrections_is_said(text: str, problem: str, tmp_path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    with pytest.raises((DescriptionError, ConfigurationError), match=problem):
        load_mechanism("delta", {"corrections": str(file)})


def test_an_unknown_parameter_is_refused_with_one_like_it(delta: Mechanism) -> None:
    with pytest.raises(PkmError, match="did you mean 'limb1: zero of arm'"):
        GeometricParameters(delta).displacements({"limb1: zero of arms": 0.1})


def test_limbs_that_errors_leave_open_are_not_solved_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Quattro closes by 1e-12 m only, having more equations than joints, in whichever order they are solved."""
    mechanism = load_mechanism("quattro")
    parameters = GeometricParameters(mechanism)
    random = np.random.default_rng(0)
    values = {one.name: 1e-4 * random.standard_normal() for one in parameters.all}
    robot = Kinematics(corrected(mechanism, moves(parameters, parameters.closing(parameters.displacements(values)))))
    home = robot.inverse(robot.home).actuated
    poses = robot.forward(home + random.uniform(-0.1, 0.1, (50, len(home)))).pose
    robot.inverse(poses)
    again = []
    whole = robot.engine.positions._undivided_joints
    monkeypatch.setattr(robot.engine.positions, "_undivided_joints", lambda *of: again.append(of) or whole(*of))
    found = robot.inverse(poses)
    assert (found.status == Status.CONVERGED).all()
    assert not again
