# SPDX-License-Identifier: Apache-2.0
"""Facts of every robot of the gallery: mobility, limbs, closure at home; and a published fact or two of each."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from pkm_description import DescriptionError, load_mechanism, robot_names
from pkm_description.gallery import robot_path
from pkm_description.loops.closure import ClosureModel, null_space
from pkm_description.loops.home import close
from pkm_description.mechanism import Array, Mechanism
from pkm_description.rotations import rotation_from_rpy, transform

# name: (motion of the platform, limbs, actuators, equations that the loops repeat)
FACTS = {
    "agile_eye": ("3R", 3, 3, 6),
    "cable_8": ("3T3R", 8, 8, 0),
    "capaman": ("3R", 3, 3, 9),
    "carpal_wrist": ("1T2R", 3, 3, 0),
    "delta": ("3T", 3, 3, 0),
    "delta_rr": ("3T", 3, 3, 12),
    "dietmaier": ("3T3R", 6, 6, 0),
    "dymo_3uru": ("3T", 3, 3, 0),
    "eclipse2": ("3T3R", 3, 6, 0),
    "five_bar": ("2T", 2, 2, 3),
    "five_dof_3rr_rrr": ("2T3R", 3, 5, 2),  # three forces along one line hold what one of them would
    "four_upu": ("3T1R", 4, 4, 2),
    "gough_stewart": ("3T3R", 6, 6, 0),
    "gough_stewart_7": ("3T3R", 7, 7, 0),
    "griffis_duffy": ("3T3R", 6, 6, 0),
    "h4": ("3T1R", 4, 4, 0),
    "hay_snyman": ("2T1R", 3, 3, 6),
    "hexa": ("3T3R", 6, 6, 0),
    "hexaglide": ("3T3R", 6, 6, 0),
    "irsbot2": ("2T", 2, 2, 8),
    "linear_delta": ("3T", 3, 3, 0),
    "navaro": ("2T1R", 3, 3, 15),
    "orthoglide": ("3T", 3, 3, 12),
    "par2": ("2T", 4, 2, 1),
    "planar_3rpr": ("2T1R", 3, 3, 6),
    "planar_3rrr": ("2T1R", 3, 3, 6),
    "planar_mixed": ("2T1R", 3, 3, 6),
    "planar_redundant": ("2T", 3, 3, 6),
    "polman": ("3T", 3, 3, 0),
    "ppa_2t": ("2T", 2, 2, 10),
    "pru_3": ("2T1R", 3, 3, 6),
    "quattro": ("3T1R", 4, 4, 4),
    "reactionless_four_bar": ("1R", 2, 1, 3),
    "spatial_4dof_5legs": ("1T3R", 5, 4, 0),
    "three_rpc": ("3T", 3, 3, 3),
    "tri_scott": ("3T3R", 3, 6, 9),
    "tricept": ("1T2R", 4, 3, 0),
    "tripod_3prs": ("1T2R", 3, 3, 0),
    "tripteron": ("3T", 3, 3, 3),
    "two_rpr": ("2T", 2, 2, 3),
    "two_tpr": ("1T1R", 2, 2, 0),
    "wrist_3ruu": ("3R", 3, 3, 0),
    "wrist_3ups_s": ("3R", 3, 3, 0),
}

load = functools.cache(load_mechanism)


def test_every_robot_has_its_facts() -> None:
    assert sorted(FACTS) == list(robot_names())


@pytest.mark.every_robot
@pytest.mark.parametrize("name", robot_names())
def test_mobility_and_limbs(name: str) -> None:
    mechanism = load(name)
    motion, limbs, actuators, repeated = FACTS[name]
    assert mechanism.name == name
    assert mechanism.mobility.motion == motion
    assert len(mechanism.limbs) == limbs == len({limb.name for limb in mechanism.limbs})
    assert mechanism.mobility.actuators == len(mechanism.actuated_joints) == actuators
    assert mechanism.mobility.redundant_constraints == repeated
    assert mechanism.mobility.total == mechanism.mobility.platform == sum(int(n) for n in re.findall(r"\d", motion))
    assert not mechanism.mobility.singular_home
    assert mechanism.mobility.uncontrolled == (1 if name == "griffis_duffy" else 0)
    # Two platforms hang on a limb: the Tricept's on its passive leg, the coupler of a four-bar on the crank.
    assert bool(mechanism.platform_chain) == (name not in ("tricept", "reactionless_four_bar"))


@pytest.mark.every_robot
@pytest.mark.parametrize("name", robot_names())
def test_home_closes_inside_the_limits_where_the_drives_start(name: str) -> None:
    mechanism = load(name)
    model, q = model_at_home(mechanism)
    assert np.abs(model.closure(q)[0]).max() < 1e-12
    values = dict(zip(mechanism.moving_joints, mechanism.home_joints, strict=True))
    for joint in mechanism.joints:
        if joint.name in values:
            assert joint.limits.lower <= values[joint.name] <= joint.limits.upper, joint.name
        if joint.drive is not None:
            # The file prints the drive's start with four decimals where it has no formula for it.
            assert joint.drive.initial_value == pytest.approx(values[joint.name], abs=1e-3), joint.name


@pytest.mark.every_robot
@pytest.mark.parametrize("name", sorted(set(robot_names()) - {"planar_3rrr", "reactionless_four_bar"}))
def test_no_body_is_flat(name: str) -> None:
    """A flat body is on the border of what is rigid: with rounding errors, RViz cannot draw its inertia.

    Left out are a plain disc and a table of planar inertias, whose diagonal numbers are exact.
    """
    for link in load(name).links:
        low, middle, high = np.linalg.eigvalsh(link.inertial.inertia)
        assert link.inertial.massless or low + middle - high > 1e-6 * high, link.name


@pytest.mark.every_robot
@pytest.mark.parametrize("name", robot_names())
def test_every_number_says_where_it_comes_from(name: str) -> None:
    text = robot_path(name).read_text()
    included = re.search(r'filename="(\w+\.xacro)"', text)
    if included:
        text += (robot_path(name).parent / included.group(1)).read_text()
    assert "representative" in text or "[1]" in text


def test_limbs_without_a_common_name_get_one_that_is_free() -> None:
    text = load("planar_3rrr").urdf
    for old, new in (
        ("limb3_arm", "lever"),
        ("limb3_forearm", "rocker"),
        ("limb3_", "third_"),
        ("limb2_", "limb3_"),
        ("limb1_", "limb2_"),
    ):
        text = text.replace(old, new)
    assert [limb.name for limb in load_mechanism(text).limbs] == ["limb2", "limb3", "limb1"]


def model_at_home(mechanism: Mechanism) -> tuple[ClosureModel, Array]:
    model = ClosureModel(mechanism.links, mechanism.joints, mechanism.loops, mechanism.base_link)
    return model, model.reduced(mechanism.home_joints)


def inverse_jacobian(mechanism: Mechanism) -> Array:
    """Rates of the actuated joints over those of the platform chain, (n_actuated, n_chain), at home."""
    model, q = model_at_home(mechanism)
    motions = null_space(model.closure(q)[1]) * model.scale[:, None]
    actuated = [model.slices[name].start for name in mechanism.actuated_joints]
    chain = [model.slices[name].start for name in mechanism.platform_chain]
    return np.asarray(motions[actuated] @ np.linalg.inv(motions[chain]))


def test_tripteron_sliders_are_the_coordinates() -> None:
    assert inverse_jacobian(load("tripteron")) == pytest.approx(np.eye(3), abs=1e-12)


def test_orthoglide_is_isotropic_at_the_centre() -> None:
    assert inverse_jacobian(load("orthoglide")) == pytest.approx(np.eye(3), abs=1e-12)


def test_agile_eye_is_isotropic_at_home() -> None:
    # Motors about x, y, z; the chain is yaw, pitch, roll.
    assert inverse_jacobian(load("agile_eye")) == pytest.approx(np.eye(3)[::-1], abs=1e-12)


def test_delta_rr_moves_like_a_delta_of_equal_lengths() -> None:
    mechanism = load("delta_rr")
    base, platform, arm, rod = 0.20, 0.045, 0.36, 0.80
    drop = np.sqrt(rod**2 - (base + arm - platform) ** 2)
    # A Delta's inverse Jacobian: rod directions over their power on the arm's velocity; arms are horizontal at home.
    rows = []
    for angle in np.arange(3) * 2.0 * np.pi / 3.0:
        outwards = np.array([np.cos(angle), np.sin(angle), 0.0])
        direction = -(base + arm - platform) * outwards - np.array([0.0, 0.0, drop])
        rows.append(direction / (direction @ (-arm * np.array([0.0, 0.0, 1.0]))))
    assert inverse_jacobian(mechanism) == pytest.approx(np.array(rows), abs=1e-9)


def test_limb_of_delta_rr_has_a_motion_jacobian_of_rank_four() -> None:
    """R R [2RR] R moves its platform end with three translations and one rotation; Mueller 2021, example 15."""
    mechanism = load("delta_rr")
    model, q = model_at_home(mechanism)
    inner = [loop for loop in mechanism.loops if loop.name == "limb1_corner"]
    pin = mechanism.loop_named["limb1_pin"]
    motions = null_space(model.closure(q, inner)[1])
    poses, columns = model.forward(q)
    twist = model.twists(columns)[model.link_index[pin.predecessor]] * model.scale
    axis = poses[model.link_index[pin.predecessor]][:3, 1]
    point = poses[model.link_index[pin.predecessor]][:3, 3]
    last = np.concatenate((np.cross(point, axis), axis))[:, None]
    assert np.linalg.matrix_rank(np.hstack((twist @ motions, last)), tol=1e-9) == 4


def test_dietmaier_home_has_his_leg_lengths() -> None:
    mechanism = load("dietmaier")
    values = dict(zip(mechanism.moving_joints, mechanism.home_joints, strict=True))
    legs = [values[name] for name in mechanism.actuated_joints]
    assert legs == pytest.approx([1.0, 0.645275, 1.086284, 1.503439, 1.281933, 0.771071], abs=1e-12)


def test_planar_3rrr_is_the_published_example() -> None:
    mechanism = load("planar_3rrr")
    arm, forearm = mechanism.link_named["limb1_arm"].inertial, mechanism.link_named["limb1_forearm"].inertial
    platform = mechanism.link_named["platform"].inertial
    assert [arm.mass, forearm.mass, platform.mass] == [3.0, 4.0, 8.0]
    assert [b.inertia[2, 2] for b in (arm, forearm, platform)] == [0.04, 0.12, 0.0817]
    assert [arm.com[0], forearm.com[0]] == pytest.approx([0.2, 0.3])


def test_seven_leg_platform_contains_the_six_leg_one() -> None:
    six, seven = load("gough_stewart"), load("gough_stewart_7")
    assert seven.mobility.redundant_actuators == 1
    for name, loop in six.loop_named.items():
        assert np.array_equal(loop.successor_frame, seven.loop_named[name].successor_frame)


def test_griffis_duffy_assembly_condition() -> None:
    """The squared leg lengths, signs alternating, sum to 3 (hb^2 - hp^2) in every pose; Husty and Karger 2002."""
    mechanism = load("griffis_duffy")
    random = np.random.default_rng(5)
    for _ in range(5):
        pose = transform(random.uniform(-1.0, 1.0, 3), rotation_from_rpy(random.uniform(-3.0, 3.0, 3)))
        total = 0.0
        for number in range(1, 7):
            base = mechanism.joint_named[f"limb{number}_first"].origin[:3, 3]
            end = pose @ mechanism.loop_named[f"limb{number}_ball"].successor_frame[:, 3]
            total += (-1) ** number * float((end[:3] - base) @ (end[:3] - base))
        assert abs(total) == pytest.approx(3.0 * (1.0**2 - 0.6**2), abs=1e-12)


def test_tripod_platform_has_parasitic_motion() -> None:
    """Away from the symmetric pose a tilt of the 3-PRS platform drags its centre sideways."""
    mechanism = load("tripod_3prs")
    model, q = model_at_home(mechanism)

    def platform_at(sliders: Array) -> Array:
        held = np.ones(model.size, dtype=bool)
        start = q.copy()
        for name, value in zip(mechanism.actuated_joints, sliders, strict=True):
            held[model.slices[name]] = False
            start[model.slices[name]] = value
        closed, gap = close(model, model.closure, held, start)
        assert gap < 1e-12
        return model.pose_of("platform", closed)

    middle = 0.5 * 0.09525
    assert platform_at(np.array([middle + 0.01] * 3))[:2, 3] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert np.linalg.norm(platform_at(np.array([middle + 0.02, middle, middle - 0.02]))[:2, 3]) > 1e-4


def test_par2_arms_across_turn_alike() -> None:
    mechanism = load("par2")
    assert mechanism.joint_named["front_arm"].mimic is not None
    # Without the gear the platform could leave its plane: the drives would not hold it.
    text = mechanism.urdf.replace('<mimic joint="back_arm"/>', "")
    branch = re.search(r'<joint name="platform_z".*?</joint>', text, re.DOTALL)
    assert branch
    freed = text.replace(
        branch.group(0),
        branch.group(0).replace('link="platform"', 'link="platform_y_slide"')
        + '<link name="platform_y_slide"/><joint name="platform_y" type="prismatic"><parent link="platform_y_slide"/>'
        '<child link="platform"/><axis xyz="0 1 0"/></joint>',
    )
    with pytest.raises(DescriptionError, match=r"3 degrees of freedom \(3T\) but 2 joint"):
        load_mechanism(freed)


def test_planar_redundant_has_the_published_inverse_jacobian() -> None:
    """Krut, Company, Pierrot 2002: the matrix behind their table of indexes, at the point (-40, -10) mm."""
    published = [[-0.43644, 1.0], [-0.92309, -0.40116], [0.71645, -0.75907]]
    assert inverse_jacobian(load("planar_redundant")) == pytest.approx(np.array(published), abs=1e-5)


def test_reactionless_four_bar_has_no_momentum_on_its_crossed_branch() -> None:
    """Wu and Gosselin 2002, first mechanism: per unit rate of the crank, to the digits of their table."""
    linear, angular = planar_momentum(load("reactionless_four_bar"), -2.1931)
    assert np.linalg.norm(linear) < 2e-4
    assert abs(angular) < 1e-3
    # On the parallelogram branch the angular momentum is 297.83.
    _, angular = planar_momentum(load("reactionless_four_bar"), -0.5 * np.pi)
    assert abs(angular) == pytest.approx(297.83, abs=0.01)


def planar_momentum(mechanism: Mechanism, coupler: float) -> tuple[Array, float]:
    """Linear momentum (2,) and angular momentum about the base origin, per unit rate of the crank, crank at home."""
    model, q = model_at_home(mechanism)
    held = np.ones(model.size, dtype=bool)
    held[model.slices["crank"]] = False
    q[model.slices["coupler"]] = coupler
    q[model.slices["rocker"]] = coupler if coupler < -2.0 else 0.5 * np.pi
    q, gap = close(model, model.closure, held, q)
    assert gap < 1e-12
    motion = null_space(model.closure(q)[1])[:, 0] * model.scale
    motion = motion / motion[model.slices["crank"].start]
    poses, columns = model.forward(q)
    linear, angular = np.zeros(3), np.zeros(3)
    for name in ("crank", "platform", "rocker"):
        body, pose = mechanism.link_named[name].inertial, poses[model.link_index[name]]
        twist = model.twists(columns)[model.link_index[name]] @ motion
        com = pose[:3, :3] @ body.com + pose[:3, 3]
        velocity = twist[:3] + np.cross(twist[3:], com)
        linear += body.mass * velocity
        angular += body.mass * np.cross(com, velocity) + pose[:3, :3] @ body.inertia @ pose[:3, :3].T @ twist[3:]
    return linear[:2], float(angular[2])


def test_quattro_plate_shears_to_turn_the_tool() -> None:
    """Half plates never turn: their hinges undo the tool's rotation."""
    mechanism = load("quattro")
    model, q = model_at_home(mechanism)
    motions = null_space(model.closure(q)[1])
    row = {name: motions[model.slices[name].start] for name in ("platform_yaw", "plate1_hinge", "plate2_hinge")}
    assert np.abs(row["platform_yaw"]).max() > 0.01
    assert row["plate1_hinge"] == pytest.approx(-row["platform_yaw"], abs=1e-9)
    assert row["plate2_hinge"] == pytest.approx(-row["platform_yaw"], abs=1e-9)


@pytest.mark.skipif(shutil.which("check_urdf") is None, reason="urdfdom's check_urdf is not installed")
@pytest.mark.parametrize("name", robot_names())
def test_ordinary_urdf_tools_read_it(name: str, tmp_path: Path) -> None:
    """urdfdom, the parser behind robot_state_publisher and RViz, accepts the text and ignores what it does not know."""
    path = tmp_path / "robot.urdf"
    path.write_text(load(name).urdf)
    result = subprocess.run(["check_urdf", str(path)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Successfully Parsed XML" in result.stdout


@pytest.mark.every_robot
@pytest.mark.parametrize("name", robot_names())
def test_names_that_ros_needs_unique(name: str) -> None:
    root = ET.fromstring(load(name).urdf.strip())
    for tag in ("link", "joint", "material", "loop", "ros2_control"):
        names = [element.get("name") for element in root.findall(tag)]
        assert len(names) == len(set(names)), tag


@pytest.mark.parametrize("name", [name for name in robot_names() if name != "reactionless_four_bar"])
def test_home_is_found_without_hints(name: str) -> None:
    """The pose alone leads to a closed configuration inside the limits, if not always in the same working mode.

    The four-bar names no pose: its home is the crossed branch at a crank angle.
    """
    mechanism = load(name)
    root = ET.fromstring(mechanism.urdf.strip())
    home = root.find("pkm/home")
    assert home is not None
    for hint in list(home):
        home.remove(hint)
    for state in root.iter("state_interface"):
        for hint in list(state):
            state.remove(hint)
    again = load_mechanism(ET.tostring(root, encoding="unicode"))
    assert again.home == pytest.approx(mechanism.home, abs=1e-9)
    assert again.mobility.motion == mechanism.mobility.motion
