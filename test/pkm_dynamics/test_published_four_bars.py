# SPDX-License-Identifier: Apache-2.0
"""Four-bars of the literature: balanced ones, one as differential-algebraic equations, and one under projectors.

Wu and Gosselin, "On the synthesis of a reactionless 6-dof parallel mechanism using planar four-bar linkages"; Khan,
Krovi and others, "Comparison of two alternate methods for distributed forward dynamic simulation of a four-bar
linkage"; Kövecses, Piedbœuf and Lange, "Methods for dynamic models of parallel robots and mechanisms": all of 2002.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from bench.strange_robots import joint, loop
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.energy import energy
from pkm_dynamics.simulation import simulate
from pkm_kinematics import Kinematics


def bar(name, mass, com, inertia):
    """A bar along x; `inertia` about the centre of mass across the plane."""
    sides = f'ixx="{inertia!r}" iyy="{inertia!r}" izz="{inertia!r}" ixy="0" ixz="0" iyz="0"'
    inertial = f'<inertial><origin xyz="{com!r} 0 0"/><mass value="{mass!r}"/><inertia {sides}/></inertial>'
    return f'<link name="{name}">{inertial}</link>'


def four_bar(lengths, base, bodies, start, gravity="0 0 0"):
    """Crank, coupler (the platform) and rocker; `bodies` as arguments of `bar`, `start` angles of the three joints."""
    crank, coupler, rocker = lengths
    parts = [bar(name, *body) for name, body in zip(("crank", "coupler", "rocker"), bodies, strict=True)]
    parts += [
        joint("crank", "base", "crank"),
        joint("coupler", "crank", "coupler", f"{crank!r} 0 0"),
        joint("rocker", "base", "rocker", f"{base!r} 0 0"),
        loop("pin", "coupler", f"{coupler!r} 0 0", "rocker", f"{rocker!r} 0 0"),
    ]
    return robot(parts, ("crank", "coupler", "rocker"), start, "coupler", gravity)


def robot(parts, joints, start, platform, gravity):
    """A whole description, its first joint driven."""
    guesses = "".join(f'<joint name="{n}" position="{float(q)!r}"/>' for n, q in zip(joints, start, strict=True))
    drive = f'<joint name="{joints[0]}"><command_interface name="effort"/></joint>'
    return (
        f'<robot name="linkage"><link name="base"/>{"".join(parts)}'
        f'<pkm base_link="base" platform_link="{platform}" gravity="{gravity}"><home>{guesses}</home></pkm>'
        f'<ros2_control name="s" type="system">{drive}</ros2_control></robot>'
    )


# -- reactionless four-bars: masses, lengths, centres of mass, radii of gyration of their table

BALANCED = [
    ((16.386, 30.178, 21.475), (1.608, 5.0, 1.608), (0.804, 3.64255, 1.64619), (2.673709, 0.1, 1.25593), 297.83),
    ((5.0, 5.0, 10.875), (0.812, 2.5, 0.812), (0.285, 1.62254, 0.2423), (0.636766, 0.84, 0.273337), 7.181),
    ((0.7, 0.5, 0.775), (0.5, 1.0, 0.5), (0.17446, 0.5115, 0.165), (0.197312, 0.175, 0.178106), 0.21924),
    ((2.8, 2.0, 3.1), (0.25, 0.5, 0.25), (0.08723, 0.25575, 0.0825), (0.098656, 0.0875, 0.089053), 0.21924),
]


def balanced(m, length, r, k, crossed):
    """The mechanism with its crank upright; centres of mass of crank and rocker lie behind their pivots."""
    bodies = [(m[i], -r[i] if i != 1 else r[i], m[i] * k[i] ** 2) for i in range(3)]
    a, d = length[0], length[1]
    if not crossed:
        start = (np.pi / 2, -np.pi / 2, np.pi / 2)
    else:  # tip of the crank to the rocker's pivot is the axis of symmetry of an antiparallelogram
        other = -2.0 * np.arctan2(a, d)
        tip = np.array([0.0, a]) + d * np.array([np.cos(other), np.sin(other)])
        start = (np.pi / 2, other - np.pi / 2, np.arctan2(tip[1], tip[0] - d))
    return Kinematics(load_mechanism(four_bar(length, d, bodies, start)))


def shaking(kinematics, turn=0.0):
    """Rates of momentum (2,) and of angular momentum about the crank's pivot, per unit acceleration of the crank.

    From rest, the ground carries what the momentum gains: per unit of the crank's rate, the momentum itself.
    """
    driven = kinematics.inverse(kinematics.home, kinematics.home_joints).actuated
    pose = kinematics.forward(driven + turn, near=kinematics.home).pose
    joints = kinematics.inverse(pose, kinematics.home_joints).joints
    S = kinematics.subspace(pose, joints)[:, 0]
    acceleration = S / (kinematics.at(pose, joints).inverse_jacobian[0] @ S)
    base = Dynamics(kinematics).reactions(kinematics.at(pose, seed=joints), np.zeros(6), acceleration).base
    return base[:2], float(base[5])


@pytest.mark.parametrize("index", range(4))
def test_balanced_on_the_crossed_branch_only(index):
    """No momentum to the digits of the table on one branch, the published angular momentum on the other.

    Four digits are printed: half a unit of the last, 5e-5, of what the numbers add up to.
    """
    *numbers, published = BALANCED[index]
    crossed, parallel = balanced(*numbers, crossed=True), balanced(*numbers, crossed=False)
    for turn in (0.0, 0.1, -0.2):
        force, moment = shaking(crossed, turn)
        assert np.linalg.norm(force) < 5e-5 * numbers[0][1] * numbers[1][0]
        assert abs(moment) < 5e-5 * published
    force, moment = shaking(parallel)
    assert np.linalg.norm(force) < 5e-5 * numbers[0][1] * numbers[1][0]
    assert abs(moment) == pytest.approx(published, rel=1e-4)


@pytest.mark.parametrize("index", range(4))
def test_the_table_meets_the_conditions_of_balance(index):
    """r2 = l2 (1 - m1 r1/(m2 l1)), r3 = m2 r2 l3/(m3 l2): to half a unit of the four digits printed."""
    m, length, r, _, _ = BALANCED[index]
    assert r[1] == pytest.approx(length[1] * (1.0 - m[0] * r[0] / (m[1] * length[0])), rel=1e-4)
    assert r[2] == pytest.approx(m[1] * r[1] * length[2] / (m[2] * length[1]), rel=1e-4)


# -- a four-bar as differential-algebraic equations --------------------------------------------------------------------

LENGTHS, TORQUE = (1.0, 2.5, 3.0), 6.0  # m, N m; masses of 1 kg, m l^2/12 about the middle


@pytest.fixture(scope="module")
def linkage():
    """The crank upright, the coupler at 0.35328 as printed; the base, which is not printed, so that the loop closes."""
    tip = np.array([0.0, LENGTHS[0]]) + LENGTHS[1] * np.array([np.cos(0.35328), np.sin(0.35328)])
    base = float(tip[0] + np.sqrt(LENGTHS[2] ** 2 - tip[1] ** 2))
    start = (np.pi / 2, 0.35328 - np.pi / 2, np.arctan2(tip[1], tip[0] - base))
    bodies = [(1.0, length / 2, length**2 / 12) for length in LENGTHS]
    return Kinematics(load_mechanism(four_bar(LENGTHS, base, bodies, start, gravity="0 -9.81 0")))


@pytest.mark.slow
@pytest.mark.by_day("task")
@pytest.mark.parametrize("form", ["task", "joint"])
def test_constraints_stay_closed_and_work_is_energy(linkage, form):
    """Projected equations keep the loop to 1e-12 (published for theirs); the drive's work is the gain of energy."""
    dynamics = Dynamics(linkage, friction=False)
    times = np.linspace(0.0, 1.0, 201)
    drive = np.array([TORQUE]), np.zeros(6)
    run = simulate(dynamics, linkage.home, np.zeros(6), times, lambda t, x, v: drive, form=form)
    assert run.ok.all()
    angle = dict(zip(linkage.joint_names, run.joints.T, strict=True))
    tips = [
        np.array([np.cos(angle["crank"]), np.sin(angle["crank"])]) * LENGTHS[0]
        + np.array([np.cos(angle["crank"] + angle["coupler"]), np.sin(angle["crank"] + angle["coupler"])]) * LENGTHS[1],
        np.array([np.cos(angle["rocker"]), np.sin(angle["rocker"])]) * LENGTHS[2],
    ]
    gap = tips[0] - tips[1]
    assert np.abs(gap - gap[:, :1]).max() < 1e-12  # the base's length, which is constant
    total = energy(dynamics, dynamics.kinematics.at(run.pose, seed=run.joints), run.twist).total
    work = TORQUE * (angle["crank"] - angle["crank"][0])
    assert np.ptp(angle["crank"]) > 0.5
    assert total - total[0] == pytest.approx(work, abs=1e-7)


# -- projectors on the constraints -------------------------------------------------------------------------------------


def test_mass_orthogonal_projection():
    """Three uniform beams, 5, 7, 12 kg and 1, 2, 3 m, at relative angles of 15, 20, 25 degrees, the end pinned.

    With A the Jacobian of the end and A+ = M^-1 A^T (A M^-1 A^T)^-1, P = 1 - A+ A projects on the motions that the pin
    allows, orthogonal with respect to M: qdd = P M^-1 (tau - h) - A+ Ad qd. The open chain is Pinocchio's.
    """
    mass, length = (5.0, 7.0, 12.0), (1.0, 2.0, 3.0)
    q, sums = np.radians([15.0, 20.0, 25.0]), np.cumsum(np.radians([15.0, 20.0, 25.0]))
    bodies = [(m, x / 2, m * x**2 / 12) for m, x in zip(mass, length, strict=True)]
    end = np.array([np.cos(sums) @ length, np.sin(sums) @ length])
    names = ("one", "two", "three")
    chain = "".join(bar(name, *body) for name, body in zip(names, bodies, strict=True))
    chain += joint("one", "base", "one") + joint("two", "one", "two", "1 0 0") + joint("three", "two", "three", "2 0 0")
    pinned = loop("pin", "three", "3 0 0", "base", f"{float(end[0])!r} {float(end[1])!r} 0")
    kinematics = Kinematics(load_mechanism(robot([chain, pinned], names, q, "two", "0 -9.81 0")))
    assert dict(zip(kinematics.joint_names, kinematics.home_joints, strict=True)) == pytest.approx(
        dict(zip(names, q, strict=True)), abs=1e-10
    )
    model = pin.buildModelFromXML(f'<robot name="open"><link name="base"/>{chain}</robot>')
    model.gravity.linear = np.array([0.0, -9.81, 0.0])
    data = model.createData()
    at = np.array([[np.cos(x), np.sin(x)] for x in q]).ravel()  # turning joints without limits are pairs there

    # the end's Jacobian and what its change adds, by hand
    A = np.array([[-np.sin(sums[k:]) @ length[k:], np.cos(sums[k:]) @ length[k:]] for k in range(3)]).T
    M = pin.crba(model, data, at)
    M = np.triu(M) + np.triu(M, 1).T
    inverse = np.linalg.inv(M)
    generalised = inverse @ A.T @ np.linalg.inv(A @ inverse @ A.T)
    P = np.eye(3) - generalised @ A
    assert pytest.approx(P, abs=1e-13) == P @ P
    assert pytest.approx(np.zeros((2, 3)), abs=1e-13) == A @ P
    assert pytest.approx((M @ P).T, abs=1e-12 * np.abs(M).max()) == M @ P
    assert np.linalg.matrix_rank(P, tol=1e-9) == 1

    dynamics = Dynamics(kinematics, friction=False)
    S = kinematics.subspace(kinematics.home)[:, 0]
    for speed, torque in ((0.0, 0.0), (0.7, 40.0), (-1.5, -200.0)):
        twist = speed * S
        qd = dict(zip(kinematics.joint_names, kinematics.motion(kinematics.home, twist).velocities, strict=True))
        v = np.array([qd[name] for name in names])
        assert A @ v == pytest.approx(np.zeros(2), abs=1e-12)
        drift = -np.array([np.cos(sums) * length, np.sin(sums) * length]) @ np.cumsum(v) ** 2
        tau = np.array([torque, 0.0, 0.0])
        projected = P @ inverse @ (tau - pin.nonLinearEffects(model, data, at, v)) - generalised @ drift
        found = dynamics.direct(kinematics.home, twist, tau[:1]).acceleration
        motion = kinematics.motion(kinematics.home, twist, found)
        seconds = dict(zip(kinematics.joint_names, motion.accelerations, strict=True))
        assert [seconds[n] for n in names] == pytest.approx(projected, abs=1e-10 * max(1.0, np.abs(projected).max()))
