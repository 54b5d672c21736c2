# SPDX-License-Identifier: Apache-2.0
"""Gough-Stewart platforms of the literature: the legless equations in three dresses, and seven legs along a path.

Ebert-Uphoff and Kozak, "Review of the role of quasi-coordinates for the kinematic and dynamic modeling of parallel
manipulators", 2002, equation 21; Dasgupta, "Force redundancy in parallel manipulators: theoretical and practical
issues", 2002, with his data set and his path. Both in the workshop on parallel mechanisms, Quebec 2002.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

from pkm_description import load_mechanism
from pkm_description.mechanism import Inertial, frozen
from pkm_dynamics import Distribution, Dynamics
from pkm_dynamics.energy import energy
from pkm_dynamics.linear_form.random_motions import random_motions
from test.oracles.legs_and_platform import LegsAndPlatform
from test.oracles.other_inertials import with_inertials

# Dasgupta's table: joint centres on the base and in the platform's frame, one column per leg
BASE = np.array(
    [[0.6, 0.1, -0.3, -0.3, 0.20, 0.5, 0.5], [0.2, 0.5, 0.3, -0.4, -0.30, -0.2, 0.0], [0, 0.1, 0.1, 0, -0.05, 0, 0]]
).T
PLATFORM = np.array(
    [
        [0.3, 0.3, 0, -0.2, -0.15, 0.15, 0],
        [0, 0.2, 0.3, 0.1, -0.20, -0.15, -0.2],
        [0.1, 0, 0, -0.1, -0.05, -0.05, 0],
    ]
).T
COM, MASS = np.array([0.04, 0.03, -0.06]), 40.0
IP = np.array([[0.050, 0.003, 0.004], [0.003, 0.040, 0.003], [0.004, 0.003, 0.100]])
G = np.array([0.0, 0.0, -9.81])


def without_legs(name):
    mechanism = load_mechanism(name)
    legs = [link.name for link in mechanism.links if "limb" in link.name and not link.inertial.massless]
    return Dynamics(with_inertials(mechanism, dict.fromkeys(legs, Inertial())), friction=False)


def geometric_jacobian(pose, legs):
    """J_G (legs, 6): rates of the legs' lengths per twist of the platform, from the joint centres alone."""
    arm = Rotation.from_quat(pose[3:]).apply(PLATFORM[:legs])
    leg = pose[:3] + arm - BASE[:legs]
    n = leg / np.linalg.norm(leg, axis=1)[:, None]
    return np.hstack([n, np.cross(arm, n)])


# -- one platform, three derivations ---------------------------------------------------------------------------------


def test_newton_euler(of_gallery):
    """Equation 21: applied wrench, weight and inertia of the platform balance J_G^T tau."""
    dynamics = without_legs("gough_stewart")
    motions = random_motions(dynamics.kinematics, 50, seed=3)
    inertia = dynamics.mechanism.link_named["platform"].inertial
    applied = np.array([30.0, -20.0, 10.0, 1.0, 2.0, -3.0])
    found = dynamics.inverse(motions.pose, motions.twist, motions.acceleration, wrench=applied).effort
    for pose, V, A, effort in zip(motions.pose, motions.twist, motions.acceleration, found, strict=True):
        R = Rotation.from_quat(pose[3:]).as_matrix()
        c, central = R @ inertia.com, R @ inertia.inertia @ R.T
        w, dw = V[3:], A[3:]
        a_c = A[:3] + np.cross(dw, c) + np.cross(w, np.cross(w, c))
        force = inertia.mass * (a_c - G)
        moment = central @ dw + np.cross(w, central @ w) + np.cross(c, force)
        tau = np.linalg.solve(geometric_jacobian(pose, 6).T, np.concatenate([force, moment]) - applied)
        assert effort == pytest.approx(tau, abs=1e-10 * np.abs(tau).max())


def zyz_rate(phi):
    """B(phi) of w = B phid, for R = Rz(phi1) Ry(phi2) Rz(phi3)."""
    s1, c1, s2, c2 = np.sin(phi[0]), np.cos(phi[0]), np.sin(phi[1]), np.cos(phi[1])
    return np.array([[0, -s1, c1 * s2], [0, c1, s1 * s2], [1, 0, c2]])


def zyz(phi):
    """Rotation matrix of complex angles, so that derivatives can be taken by complex steps."""
    out = np.eye(3)
    for axis, angle in zip("zyz", phi, strict=True):
        c, s = np.cos(angle), np.sin(angle)
        turn = [[c, -s, 0], [s, c, 0], [0, 0, 1]] if axis == "z" else [[c, 0, s], [0, 1, 0], [-s, 0, c]]
        out = out @ np.array(turn)
    return out


def test_lagrange_in_zyz_angles(of_gallery):
    """Analytic Jacobian J_A = J_G diag(1, B(phi)), and J_A^T tau = d/dt dL/dyd - dL/dy: quasi-coordinates or not.

    Momenta are differentiated by complex steps, exact; their rates along the motion by central differences of fourth
    order of 1e-3 s, error some 1e-9.
    """
    dynamics = without_legs("gough_stewart")
    inertia = dynamics.mechanism.link_named["platform"].inertial

    def lagrangian(y, yd):
        R = zyz(y[3:])
        w = R.T @ zyz_rate(y[3:]) @ yd[3:]
        v = R.T @ yd[:3] + np.cross(w, inertia.com)
        kinetic = 0.5 * inertia.mass * (v @ v) + 0.5 * w @ inertia.inertia @ w
        return kinetic + inertia.mass * G @ (y[:3] + R @ inertia.com)

    def by(f, x):
        return np.array([np.imag(f(x + 1e-40j * e)) / 1e-40 for e in np.eye(6)])

    rng = np.random.default_rng(4)
    home = dynamics.kinematics.home[:3]
    for _ in range(10):
        y0 = np.concatenate([home + rng.uniform(-0.1, 0.1, 3), np.array([0.3, 0.25, -0.3]) + rng.uniform(-0.1, 0.1, 3)])
        yd0, ydd = rng.normal(size=6), rng.normal(size=6)

        def momentum(t, y0=y0, yd0=yd0, ydd=ydd):
            y, yd = y0 + t * yd0 + 0.5 * t**2 * ydd, yd0 + t * ydd
            return by(lambda z: lagrangian(y.astype(complex), z), yd)

        h = 1e-3
        rate = (momentum(-2 * h) - 8 * momentum(-h) + 8 * momentum(h) - momentum(2 * h)) / (12 * h)
        force = rate - by(lambda z, yd0=yd0: lagrangian(z, yd0.astype(complex)), y0)
        B = zyz_rate(y0[3:])
        dB = np.imag(zyz_rate(y0[3:] + 1e-40j * yd0[3:])) / 1e-40
        pose = np.concatenate([y0[:3], Rotation.from_euler("ZYZ", y0[3:]).as_quat()])
        J_A = geometric_jacobian(pose, 6) @ np.block([[np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), B]])
        tau = np.linalg.solve(J_A.T, force)
        twist = np.concatenate([yd0[:3], B @ yd0[3:]])
        acceleration = np.concatenate([ydd[:3], B @ ydd[3:] + dB @ yd0[3:]])
        found = dynamics.inverse(pose, twist, acceleration).effort
        assert found == pytest.approx(tau, abs=1e-8 * np.abs(tau).max())


# -- seven legs along Dasgupta's path ---------------------------------------------------------------------------------


def path(times, duration=6.0):
    """His path: straight in position and in roll, pitch, yaw, with parabolic blends. Poses, twists, accelerations.

    Blends so that the speed between them is 0.2 m/s and 0.08 rad/s, as printed.
    """
    start, end = np.array([0.4, 1.4, 1.2, 0.1, 0.2, 0.0]), np.array([0.8, 1.8, 1.8, 0.3, 0.4, 0.0])
    y, yd, ydd = (np.zeros((len(times), 6)) for _ in range(3))
    for part, fastest in ((slice(0, 3), 0.2), (slice(3, 6), 0.08)):
        way = end[part] - start[part]
        speed = fastest / np.linalg.norm(way)
        blend = duration - 1.0 / speed
        assert 0.0 < blend <= 0.5 * duration
        a = speed / blend
        early, late = np.minimum(times, blend), np.maximum(times - duration + blend, 0.0)
        s = 0.5 * a * early**2 + speed * (times - early) - 0.5 * a * late**2
        y[:, part], yd[:, part] = start[part] + np.outer(s, way), np.outer(a * (early - late), way)
        ydd[:, part] = np.outer(a * ((times < blend) * 1.0 - (times > duration - blend) * 1.0), way)
    pose, twist, acceleration = np.zeros((len(times), 7)), np.zeros((len(times), 6)), np.zeros((len(times), 6))
    for i, angles in enumerate(y[:, 3:]):
        turn = Rotation.from_euler("ZYX", angles[::-1])
        c1, s1, c2, s2 = np.cos(angles[2]), np.sin(angles[2]), np.cos(angles[1]), np.sin(angles[1])
        B = np.array([[c1 * c2, -s1, 0], [s1 * c2, c1, 0], [-s2, 0, 1]])
        r = yd[i, 3:]  # roll, pitch, yaw
        dB = np.array(
            [
                [-s1 * c2 * r[2] - c1 * s2 * r[1], -c1 * r[2], 0],
                [c1 * c2 * r[2] - s1 * s2 * r[1], -s1 * r[2], 0],
                [-c2 * r[1], 0, 0],
            ]
        )
        pose[i] = np.concatenate([y[i, :3], turn.as_quat()])
        twist[i] = np.concatenate([yd[i, :3], B @ r])
        acceleration[i] = np.concatenate([ydd[i, :3], B @ ydd[i, 3:] + dB @ r])
    return pose, twist, acceleration


def test_geometry_is_the_published_one(of_gallery):
    kinematics = of_gallery["gough_stewart_7"].kinematics
    for pose in path(np.linspace(0.0, 6.0, 7))[0]:
        arm = Rotation.from_quat(pose[3:]).apply(PLATFORM)
        assert kinematics.inverse(pose).actuated == pytest.approx(
            np.linalg.norm(pose[:3] + arm - BASE, axis=1), abs=1e-12
        )
        assert kinematics.at(pose).inverse_jacobian == pytest.approx(geometric_jacobian(pose, 7), abs=1e-12)


def test_six_legs_are_singular_on_the_path_and_the_seventh_mends_it(of_gallery):
    """The statement of the paper; the moment is found by both, the determinant of the joint centres and the suite."""

    def pose(t):
        return path(np.array([t]))[0][0]

    six, seven = of_gallery["gough_stewart"].kinematics, of_gallery["gough_stewart_7"].kinematics
    moment = brentq(lambda t: np.linalg.det(geometric_jacobian(pose(t), 6)), 0.0, 6.0, xtol=1e-12)
    before, there, after = (six.singularity(pose(moment + dt)) for dt in (-0.5, 0.0, 0.5))
    assert there.type2 < 1e-9 < 1e-4 < min(before.type2, after.type2)
    assert before.determinant_sign == -after.determinant_sign
    margins = [seven.singularity(p).type2 for p in path(np.linspace(0.0, 6.0, 61))[0]]
    assert min(margins) > 0.5 * max(margins)
    crossing = without_legs("gough_stewart").inverse(pose(moment - 1e-3)).effort
    mended = without_legs("gough_stewart_7").inverse(pose(moment)).effort
    assert np.abs(crossing).max() > 100.0 * np.abs(mended).max()


def test_redundancy_resolution():
    """Static, massless legs: H F = [0, 0, M g; R r0 x (0, 0, M g)]; each resolution is the least in its own norm."""
    dynamics = without_legs("gough_stewart_7")
    rules = {"pinv": None, "8-norm": Distribution(8.0), "minimax": Distribution(np.inf)}
    for pose in path(np.linspace(0.0, 6.0, 13))[0]:
        H = geometric_jacobian(pose, 7).T
        lift = np.array([0.0, 0.0, MASS * 9.81])
        load = np.concatenate([lift, np.cross(Rotation.from_quat(pose[3:]).apply(COM), lift)])
        F = {name: dynamics.inverse(pose, distribution=rule).effort for name, rule in rules.items()}
        for forces in F.values():
            assert H @ forces == pytest.approx(load, abs=1e-8 * MASS)
        assert F["pinv"] == pytest.approx(np.linalg.pinv(H) @ load, abs=1e-8 * MASS)
        for norm, least in ((2.0, "pinv"), (8.0, "8-norm"), (np.inf, "minimax")):
            size = {name: np.linalg.norm(forces, norm) for name, forces in F.items()}
            assert size[least] <= min(size.values()) * (1.0 + 1e-7)
        # the 8-norm stands for the peak, which it misses by the eighth root of seven at most; that its peak is below
        # that of the pseudo-inverse is the rule on this path, with exceptions
        peaks = {name: np.abs(forces).max() for name, forces in F.items()}
        assert peaks["minimax"] <= min(peaks.values()) * (1.0 + 1e-7)
        assert peaks["8-norm"] <= 7.0**0.125 * peaks["minimax"]


def test_printed_inertias_are_impossible_and_usable():
    """His inertia tensors break what holds for bodies, and equations of motion do not mind: work is still energy.

    The axes of his base joints and with them the frames of the legs are not printed; here they are the gallery's.
    """
    Id = np.array([[0.010, 0.005, 0.007], [0.005, 0.002, 0.003], [0.007, 0.003, 0.001]])
    Iu = np.array([[0.005, 0.002, 0.002], [0.002, 0.002, 0.001], [0.002, 0.001, 0.003]])
    assert np.linalg.eigvalsh(Id)[0] < 0.0
    for I3 in (Iu, IP):
        smallest, middle, largest = np.linalg.eigvalsh(I3)
        assert largest > smallest + middle
    text = load_mechanism("gough_stewart_7").urdf.replace("<pkm ", '<pkm accept_invalid_inertia="true" ', 1)
    bodies = {"platform": Inertial(MASS, frozen(COM), frozen(IP))}
    for leg in range(1, 8):
        bodies[f"limb{leg}_body"] = Inertial(3.0, frozen([0.4, 0.14, -0.18]), frozen(Id))
        bodies[f"limb{leg}_rod"] = Inertial(1.0, frozen([-0.6, -0.08, 0.08]), frozen(Iu))
    dynamics = Dynamics(with_inertials(load_mechanism(text), bodies), friction=False)
    # the acceleration steps where blends end: Simpson's rule piece by piece, error some 1e-7 by halving the steps
    straight = [np.linalg.norm([0.4, 0.4, 0.6]) / 0.2, np.linalg.norm([0.2, 0.2]) / 0.08]
    cuts = sorted({0.0, 6.0, *straight, *(6.0 - t for t in straight)})
    for rule in (None, Distribution(np.inf)):
        work = 0.0
        for a, b in pairwise(cuts):
            times = np.linspace(a, b, 41)
            inside = times.copy()
            inside[[0, -1]] += [1e-12, -1e-12]
            pose, twist, acceleration = path(inside)
            forces = dynamics.inverse(pose, twist, acceleration, distribution=rule).effort
            rates = dynamics.kinematics.motion(pose, twist).actuated_velocities
            work += simpson(np.sum(forces * rates, axis=1), x=times)
        ends = path(np.array([0.0, 6.0]))
        total = energy(dynamics, ends[0], ends[1]).total
        assert work == pytest.approx(total[1] - total[0], rel=1e-6)
        assert work > MASS * 9.81 * 0.6  # it is lifted by 0.6 m


# -- three steps or one elimination ------------------------------------------------------------------------------------


def test_pseudo_variables_save_the_large_inverse(of_gallery):
    """Geike and McPhee 2002, 24 coordinates and 18 equations: J = -Phi_d^-1 Phi_i of all at once, or legs first.

    Of the virtual work of all coordinates, legs and platform taken apart, the first makes efforts through one matrix of
    18 by 18; the second, which is `LegsAndPlatform`, through six of 3 by 3 and one of 6 by 6.
    """
    dynamics = Dynamics(of_gallery["gough_stewart"].kinematics)
    model = LegsAndPlatform(dynamics)
    motions = random_motions(dynamics.kinematics, 10, seed=5)
    for pose, twist, acceleration in zip(motions.pose, motions.twist, motions.acceleration, strict=True):
        at, _ = model._placed(pose, None)
        to_base = np.eye(6)  # twists at the base's origin
        to_base[:3, 3:] = np.cross(np.eye(3), pose[:3])
        V = to_base @ twist
        A = to_base @ acceleration - np.concatenate([np.cross(V[3:], twist[:3]), np.zeros(3)])
        work, phi, actuated = np.zeros(24), np.zeros((18, 24)), []
        for k, leg in enumerate(at):
            assert leg.J.shape == (3, 3)
            work[3 * k : 3 * k + 3], _ = model._leg_model(leg, V, A)
            phi[3 * k : 3 * k + 3, 3 * k : 3 * k + 3], phi[3 * k : 3 * k + 3, 18:] = leg.J, -leg.Jv
            actuated.append(3 * k + next(i for i, b in enumerate(leg.leg.joints) if model.bodies[b]["actuator"] >= 0))
        inertia = model._platform_inertia(pose)
        work[18:] = inertia @ (A - model.gravity)
        momentum = inertia @ V
        work[18:21] += np.cross(V[3:], momentum[:3])
        work[21:] += np.cross(V[3:], momentum[3:]) + np.cross(V[:3], momentum[:3])
        dependent = [i for i in range(24) if i not in actuated]
        J = -np.linalg.solve(phi[:, dependent], phi[:, actuated])
        efforts = work[actuated] + J.T @ work[dependent]
        for other in (model.inverse(pose, twist, acceleration), dynamics.inverse(pose, twist, acceleration).effort):
            assert efforts == pytest.approx(other, abs=1e-10 * np.abs(efforts).max())
