# SPDX-License-Identifier: Apache-2.0
"""What papers say of robots of the gallery, where it takes solvers to see it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_description import DescriptionError, load_mechanism
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.status import closes


def capaman(crank, radius):
    return Kinematics(load_mechanism("capaman", {"crank_length": str(crank), "platform_radius": str(radius)}))


def spread(cranks):
    """The left side of Ottaviano and Ceccarelli's condition: squared differences of the sines of the cranks."""
    u, v, w = np.sin(cranks)
    return (u - v) ** 2 + (u - w) ** 2 + (v - w) ** 2


@pytest.mark.parametrize("goal", [(90.0, 10.0, 170.0), (75.0, 8.0, 150.0)])
def test_capaman_is_singular_where_its_paper_says(goal):
    """(u-v)^2 + (u-w)^2 + (v-w)^2 = G = 9 rp^2 / (2 bk^2), equations 16 and 17 of the paper, here with G = 1.

    There two assembly modes meet, so that distances go with the root of what is left to G, and forward kinematics
    refuses to go on a little before.
    """
    crank = 0.09
    k = capaman(crank, crank * np.sqrt(2.0 / 9.0))
    start, way = k.inverse(k.home).actuated, np.radians(goal) - k.inverse(k.home).actuated
    assert k.forward(start + way).status == Status.SINGULAR
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if closes(k.forward(start + middle * way).status) else (low, middle)
    assert 0.999 < spread(start + low * way) < 1.0
    # the slowest actuator speed at unit platform speed goes to zero with that root
    half, end = (k.forward(start + part * way) for part in (0.5 * low, low))
    margin = [k.singularity(f.pose, seed=f.joints).type2 for f in (half, end)]
    assert margin[1] < 0.1 * margin[0]


def test_the_prototype_of_capaman_has_no_such_singularity():
    """Its G is more than the 8 that differences of sines make at most: 200 crank angles are all reached from home."""
    assert 9.0 * 0.1095**2 / (2.0 * 0.08**2) > 8.0
    k = Kinematics(load_mechanism("capaman"))
    cranks = np.random.default_rng(2).uniform(0.25 * np.pi, 0.75 * np.pi, (200, 3))
    assert closes(k.forward(cranks).status).all()


def test_planar_mixed_has_the_two_published_poses(of_gallery):
    """Hayes 2002: all that is real of d = 2.5, a line at 135 degrees and one at 45; here at 0.1 m to his unit."""
    found = of_gallery["planar_mixed"].kinematics.forward_all([0.25, 0.75 * np.pi, 0.25 * np.pi])
    rows = [[*(10.0 * f.pose[:2]), np.degrees(2.0 * np.arctan2(f.pose[5], f.pose[6]))] for f in found]
    assert np.array(sorted(rows, reverse=True)) == pytest.approx(
        np.array([[2.2993, 0.9814, 29.0303], [1.5837, 1.9344, 16.3404]]), abs=1e-4
    )


@pytest.mark.parametrize("actuation", ["".join(digits) for digits in itertools.product("12", repeat=3)])
def test_navaro_holds_its_platform_along_forearms_or_arms(actuation):
    """A limb whose arm is driven pushes along its forearm; one whose forearm is driven, along its arm."""
    k = Kinematics(load_mechanism("navaro", {"actuation": actuation}))
    arm, base, platform = 0.24, 0.47, 0.20
    pose = k.engine.inputs.poses([0.04, -0.03, 0.3])[0][0]
    seed = k.inverse(pose, mode=0).joints
    joints = dict(zip(k.joint_names, seed, strict=True))
    rows = []
    for limb, (angle, digit) in enumerate(zip(2.0 * np.pi / 3.0 * np.arange(3), actuation, strict=True), start=1):
        first = joints[f"limb{limb}_arm"] + angle + np.pi
        second = first + joints[f"limb{limb}_elbow"]
        along_arm, along_forearm = (np.array([np.cos(a), np.sin(a)]) for a in (first, second))
        point = base * np.array([np.cos(angle), np.sin(angle)]) + arm * (along_arm + along_forearm) - pose[:2]
        assert np.linalg.norm(point) == pytest.approx(platform, abs=1e-12)
        push = along_forearm if digit == "1" else along_arm
        driven = along_arm if digit == "1" else along_forearm
        power = arm * push @ np.array([-driven[1], driven[0]])
        rows.append([*push, point[0] * push[1] - point[1] * push[0]] / power)
    assert k.at(pose, seed).motion_jacobian @ np.linalg.pinv(k.subspace(pose, seed)[[0, 1, 5]]) == pytest.approx(
        np.array(rows), abs=1e-9
    )


def test_tri_scott_has_its_published_inverse_kinematics(of_gallery):
    """Zabalza and others 2002, equations 2 to 6: heights of the corners, and sqrt(L^2 - distance^2) from the masts."""
    k = of_gallery["tri_scott"].kinematics
    mast, corner, length = 0.60, 0.20, 0.60
    rng = np.random.default_rng(4)
    coordinates = rng.uniform([-0.1, -0.1, 0.4, 0.2, -0.5, -0.5], [0.1, 0.1, 0.6, 0.9, 0.5, 0.5], (50, 6))
    poses = k.engine.inputs.poses(coordinates)[0]
    solved = k.inverse(poses, mode=0)
    reached = np.isin(solved.status, (Status.CONVERGED, Status.JOINT_LIMIT))
    assert reached.sum() > 30
    for pose, q in zip(poses[reached], solved.actuated[reached], strict=True):
        turn = Rotation.from_quat(pose[3:])
        for limb, angle in enumerate(2.0 * np.pi / 3.0 * np.arange(3)):
            way = np.array([np.cos(angle), np.sin(angle), 0.0])
            point = pose[:3] + turn.apply(corner * way)
            aside = np.linalg.norm((point - mast * way)[:2])
            assert q[2 * limb] == pytest.approx(point[2], abs=1e-12)
            assert q[2 * limb + 1] == pytest.approx(np.sqrt(length**2 - aside**2), abs=1e-9)


def test_eclipse_is_singular_with_a_ball_on_the_axis_of_its_ring(of_gallery):
    """Kim and others 2002: tilted by a quarter turn, the platform loses a degree of freedom (type 1).

    The carriage would have to go round at once; the margin is as small as the distance from the axis.
    """
    k = of_gallery["eclipse2"].kinematics
    slowest = []
    for miss in (0.1, 0.01, 0.001):
        pose = np.array([miss, 0.0, 0.3, 0.0, -np.sqrt(0.5), 0.0, np.sqrt(0.5)])  # the ball of limb 1 straight up
        slowest.append(float(k.singularity(pose).type1))
    assert slowest == pytest.approx([slowest[0], 0.1 * slowest[0], 0.01 * slowest[0]], rel=0.01)


def test_carpal_wrist_is_its_own_mirror_image(of_gallery):
    """The revolute axes of base and platform lie opposite each other across the plane of the three balls."""
    k = of_gallery["carpal_wrist"].kinematics
    radius, arm = 0.06, 0.10
    cranks = k.inverse(k.home).actuated + np.random.default_rng(1).uniform(-0.4, 0.4, (20, 3))
    found = k.forward(cranks)
    assert found.ok.all()
    away = np.array([[np.cos(a), np.sin(a), 0.0] for a in 2.0 * np.pi / 3.0 * np.arange(3)])
    for q, pose in zip(cranks, found.pose, strict=True):
        balls = (radius + arm * np.cos(q))[:, None] * away + arm * np.sin(q)[:, None] * np.array([0.0, 0.0, 1.0])
        normal = np.cross(balls[1] - balls[0], balls[2] - balls[0])
        normal /= np.linalg.norm(normal)
        pins = radius * away
        mirrored = pins - 2.0 * np.outer((pins - balls[0]) @ normal, normal)
        there = pose[:3] + Rotation.from_quat(pose[3:]).apply(pins)
        assert np.abs(there - mirrored).max() < 1e-9


def test_limbs_of_pru_3_move_in_two_planes(of_gallery):
    """Bars of the first two limbs in x = 0, the third one's parallelogram leans out of its plane by y alone."""
    k = of_gallery["pru_3"].kinematics
    mast, along, out, length = 0.45, 0.15, 0.12, 0.50
    coordinates = np.random.default_rng(6).uniform([-0.15, 0.2, -0.8], [0.15, 0.4, 0.8], (50, 3))
    solved = k.inverse(coordinates, mode=0)
    assert np.isin(solved.status, (Status.CONVERGED, Status.JOINT_LIMIT)).all()
    y, z, pitch = coordinates.T
    first, second = (z + np.sqrt(length**2 - (mast - along - side * y) ** 2) for side in (1.0, -1.0))
    third = z - out * np.sin(pitch) + np.sqrt(length**2 - (mast - out * np.cos(pitch)) ** 2 - y**2)
    assert solved.actuated == pytest.approx(np.column_stack([first, second, third]), abs=1e-9)


def test_navaro_has_no_third_place_for_a_drive():
    with pytest.raises(DescriptionError, match="actuator"):
        load_mechanism("navaro", {"actuation": "129"})


def test_navaro_is_followed_in_each_of_its_working_modes(of_gallery):
    """From the cranks and a pose near by alone, though no crank shows how the arm beside it is bent."""
    k = of_gallery["navaro"].kinematics
    pose, start = k.engine.inputs.poses([[0.03, -0.02, 0.0], [0.0305, -0.0205, 0.001]])[0]
    cranks = np.array([k.inverse(pose, mode=mode).actuated for mode in range(k.n_modes)])
    found = k.forward(cranks, near=start)
    assert found.ok.all()
    assert np.abs(found.pose - pose).max() < 1e-9
