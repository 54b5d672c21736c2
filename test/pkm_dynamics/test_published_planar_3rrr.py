# SPDX-License-Identifier: Apache-2.0
"""The trajectory of Geike and McPhee's planar 3-RRR, against their equations written out and the balance of energy.

"On the automatic generation of inverse dynamic solutions for parallel manipulators", 2002: coordinates th1 to th6, x, y
and th7 under six constraint equations; efforts by virtual work, through the partial derivatives of the constraints.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import simpson

from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.energy import energy

T = 3.0
BASES = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.5 * np.sqrt(3.0)]])
ARM, FOREARM, SIDE = 0.4, 0.6, 0.4
MASS, INERTIA = (3.0, 4.0, 8.0), (0.04, 0.12, 0.0817)  # arm, forearm, platform; about the centres of mass
ENDS = SIDE * np.array([[-0.5, -np.sqrt(3.0) / 6], [0.5, -np.sqrt(3.0) / 6], [0.0, np.sqrt(3.0) / 3]])
START = (-0.865, -2.102, -0.976, 0.728, 0.233, 3.916)  # th4, th5, th6, x, y, th7, as printed


def drivers(t):
    """The published drivers th1, th2, th3 at times (k,), and their two rates (k, 3)."""
    s = 2.0 * np.pi / T
    scale, home = np.array([1 / 6, -1 / 6, 1 / 12]), np.array([np.pi / 3, 4 * np.pi / 3, 11 * np.pi / 6])
    f, df, ddf = s * t - np.sin(s * t), s * (1.0 - np.cos(s * t)), s**2 * np.sin(s * t)
    return home + np.outer(f, scale), np.outer(df, scale), np.outer(ddf, scale)


def turned(angle):
    return np.array([np.cos(angle), np.sin(angle)])


def turned_rate(angle):
    return np.array([-np.sin(angle), np.cos(angle)])


def at(q):
    """Positions (7, 2) of the centres of mass, angles (7,) of the bodies, and gaps (6,) of the loops: q (9,)."""
    th, (x, y, phi) = q[:6], q[6:]
    centres, angles, gaps = [], [], []
    R = np.column_stack([turned(phi), turned_rate(phi)])
    for k in range(3):
        outer = th[k] + th[3 + k]
        elbow = BASES[k] + ARM * turned(th[k])
        centres += [BASES[k] + 0.5 * ARM * turned(th[k]), elbow + 0.5 * FOREARM * turned(outer)]
        angles += [th[k], outer]
        gaps.append(elbow + FOREARM * turned(outer) - np.array([x, y]) - R @ ENDS[k])
    return np.array([*centres, np.array([x, y])]), np.array([*angles, phi]), np.concatenate(gaps)


def partials(q):
    """Derivatives of centres (7, 2, 9), angles (7, 9) and gaps (6, 9) by q (9,), each term of the sums by hand."""
    th, phi = q[:6], q[8]
    centres, angles, gaps = np.zeros((7, 2, 9)), np.zeros((7, 9)), np.zeros((6, 9))
    dR = np.column_stack([turned_rate(phi), -turned(phi)])
    for k in range(3):
        inner, outer = turned_rate(th[k]), turned_rate(th[k] + th[3 + k])
        centres[2 * k, :, k] = 0.5 * ARM * inner
        centres[2 * k + 1, :, k] = ARM * inner + 0.5 * FOREARM * outer
        centres[2 * k + 1, :, 3 + k] = 0.5 * FOREARM * outer
        angles[2 * k, k] = angles[2 * k + 1, k] = angles[2 * k + 1, 3 + k] = 1.0
        rows = slice(2 * k, 2 * k + 2)
        gaps[rows, k], gaps[rows, 3 + k] = ARM * inner + FOREARM * outer, FOREARM * outer
        gaps[rows, 6:8], gaps[rows, 8] = -np.eye(2), -dR @ ENDS[k]
    centres[6, 0, 6] = centres[6, 1, 7] = angles[6, 8] = 1.0
    return centres, angles, gaps


def squares(q, qd):
    """What the squares of the rates add to the second rates of centres (7, 2) and gaps (6,)."""
    th, phi = q[:6], q[8]
    centres, gaps = np.zeros((7, 2)), np.zeros(6)
    R = np.column_stack([turned(phi), turned_rate(phi)])
    for k in range(3):
        inner = -(qd[k] ** 2) * turned(th[k])
        outer = -((qd[k] + qd[3 + k]) ** 2) * turned(th[k] + th[3 + k])
        centres[2 * k], centres[2 * k + 1] = 0.5 * ARM * inner, ARM * inner + 0.5 * FOREARM * outer
        gaps[2 * k : 2 * k + 2] = ARM * inner + FOREARM * outer + qd[8] ** 2 * R @ ENDS[k]
    return centres, gaps


def trajectory(n):
    """Times (n,), coordinates and their two rates (n, 9), efforts (n, 3): the paper's model on its own."""
    times = np.linspace(0.0, T, n)
    driven, rates, seconds = drivers(times)
    out = np.zeros((3, n, 9))
    efforts = np.zeros((n, 3))
    q = np.concatenate([driven[0], START])
    mass, inertia = np.array([*MASS[:2]] * 3 + [MASS[2]]), np.array([*INERTIA[:2]] * 3 + [INERTIA[2]])
    for i in range(n):
        q[:3] = driven[i]
        for _ in range(20):
            q[3:] -= np.linalg.solve(partials(q)[2][:, 3:], at(q)[2])
        centres, angles, gaps = partials(q)
        J = np.vstack([np.eye(3), -np.linalg.solve(gaps[:, 3:], gaps[:, :3])])
        qd = J @ rates[i]
        drift_c, drift_g = squares(q, qd)
        qdd = np.concatenate([seconds[i], -np.linalg.solve(gaps[:, 3:], gaps[:, :3] @ seconds[i] + drift_g)])
        force = mass[:, None] * (centres @ qdd + drift_c + np.array([0.0, 9.81]))
        efforts[i] = J.T @ (np.einsum("bi,bij->j", force, centres) + angles.T @ (inertia * (angles @ qdd)))
        out[:, i] = q, qd, qdd
    return times, *out, efforts


@pytest.fixture(scope="module")
def published():
    return trajectory(301)


@pytest.fixture(scope="module")
def dynamics():
    return Dynamics(load_mechanism("planar_3rrr"), friction=False)


def motions(q, qd, qdd):
    """Poses (n, 7), twists and accelerations (n, 6) of the platform."""
    n = len(q)
    pose, twist, acceleration = np.zeros((n, 7)), np.zeros((n, 6)), np.zeros((n, 6))
    pose[:, :2], pose[:, 5], pose[:, 6] = q[:, 6:8], np.sin(0.5 * q[:, 8]), np.cos(0.5 * q[:, 8])
    for rate, x in ((twist, qd), (acceleration, qdd)):
        rate[:, :2], rate[:, 5] = x[:, 6:8], x[:, 8]
    return pose, twist, acceleration


def test_start_is_the_printed_one(published, dynamics):
    """Three decimals are printed."""
    assert published[1][0, 3:] == pytest.approx(START, abs=5e-4)
    k = dynamics.kinematics
    pose = motions(*(x[:1] for x in published[1:4]))[0][0]
    all_modes = [s.actuated for s in k.inverse_all(pose) if s.ok]
    wrapped = [np.abs(np.angle(np.exp(1j * (q - published[1][0, :3])))).max() for q in all_modes]
    assert min(wrapped) < 1e-9
    tracked = k.forward(published[1][0, :3], near=pose)
    assert tracked.ok
    assert tracked.pose == pytest.approx(pose, abs=1e-9)


def mode_of(dynamics, pose, driven):
    """The working mode whose actuators stand where the drivers do."""
    k = dynamics.kinematics
    found = [s for s in k.inverse_all(pose) if s.ok]
    return min(found, key=lambda s: float(np.abs(np.angle(np.exp(1j * (s.actuated - driven)))).max())).mode


def test_efforts_along_the_published_motion(published, dynamics):
    """The paper's virtual work over nine coordinates, and the suite: two derivations of one number."""
    _, q, qd, qdd, efforts = published
    pose, twist, acceleration = motions(q, qd, qdd)
    mode = mode_of(dynamics, pose[0], q[0, :3])
    found = dynamics.inverse(dynamics.kinematics.at(pose, mode=mode), twist, acceleration)
    assert found.ok.all()
    assert np.abs(found.effort - efforts).max() < 1e-10 * np.abs(efforts).max()
    motion = dynamics.kinematics.motion(pose, twist, acceleration, mode=mode)
    assert motion.actuated_velocities == pytest.approx(qd[:, :3], abs=1e-10)
    assert motion.actuated_accelerations == pytest.approx(qdd[:, :3], abs=1e-9)


def test_work_is_the_gain_of_energy(published, dynamics):
    """Simpson's rule over 301 points of a motion of 3 s: some 1e-6 of the work, by halving the steps."""
    times, q, qd, qdd, efforts = published
    pose, twist, _ = motions(q, qd, qdd)
    mode = mode_of(dynamics, pose[0], q[0, :3])
    joints = dynamics.kinematics.inverse(pose, mode=mode).joints
    total = energy(dynamics, dynamics.kinematics.at(pose, seed=joints), twist).total
    power = np.sum(efforts * qd[:, :3], axis=1)
    for end in (101, 151, 301):
        work = simpson(power[:end], x=times[:end])
        assert work == pytest.approx(total[end - 1] - total[0], abs=2e-6 * np.abs(power).max() * T)
    assert np.abs(np.diff(total)).max() > 1e-3  # it is moving
