# SPDX-License-Identifier: Apache-2.0
"""The general searches find what the certified methods find, and say that they are searches."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_kinematics.assembly.closure_search import ClosureSystem, continue_modes, halton, multistart, search_modes
from pkm_kinematics.assembly.geometry.planar_platform import planar_poses
from pkm_kinematics.assembly.geometry.rigid_body import six_distances
from pkm_kinematics.assembly.result import Array, AssemblyStatus


def platform_in_plane(base: Array, platform: Array, lengths: Array) -> ClosureSystem:
    """Three distances in x, y, phi."""

    def legs(x: Array) -> tuple[Array, Array]:
        turned = platform @ np.array([[np.cos(x[2]), np.sin(x[2])], [-np.sin(x[2]), np.cos(x[2])]])
        return turned, x[:2] + turned - base

    def jacobian(x: Array) -> Array:
        turned, leg = legs(x)
        return 2.0 * np.column_stack([leg, leg[:, 1] * turned[:, 0] - leg[:, 0] * turned[:, 1]])

    return ClosureSystem(
        residual=lambda x: np.sum(legs(x)[1] ** 2, axis=1) - lengths**2,
        jacobian=jacobian,
        lower=np.array([-4.0, -4.0, -np.pi]),
        upper=np.array([4.0, 4.0, np.pi]),
        period=np.array([np.inf, np.inf, 2 * np.pi]),
        scale=np.ones(3),
    )


def limbs_in_plane(base: Array, links: tuple[float, float], platform: Array, inputs: Array) -> ClosureSystem:
    """3-RRR in all its angles: x, y, phi, three actuated and three passive angles; three rows lock the actuators.

    A seventh row repeats the sum of the first six, as redundant closures do.
    """
    first, second = links

    def residual(x: Array) -> Array:
        elbows = base + first * np.column_stack([np.cos(x[3:6]), np.sin(x[3:6])])
        tips = elbows + second * np.column_stack([np.cos(x[6:]), np.sin(x[6:])])
        turned = platform @ np.array([[np.cos(x[2]), np.sin(x[2])], [-np.sin(x[2]), np.cos(x[2])]])
        closure = (x[:2] + turned - tips).ravel()
        return np.concatenate([closure, [closure.sum()], x[3:6] - inputs])

    def jacobian(x: Array) -> Array:
        slope = np.zeros((10, 9))
        turned = platform @ np.array([[-np.sin(x[2]), np.cos(x[2])], [-np.cos(x[2]), -np.sin(x[2])]])
        for i in range(3):
            rows = slice(2 * i, 2 * i + 2)
            slope[rows, :2], slope[rows, 2] = np.eye(2), turned[i]
            slope[rows, 3 + i] = first * np.array([np.sin(x[3 + i]), -np.cos(x[3 + i])])
            slope[rows, 6 + i] = second * np.array([np.sin(x[6 + i]), -np.cos(x[6 + i])])
        slope[6] = slope[:6].sum(axis=0)
        slope[7:, 3:6] = np.eye(3)
        return slope

    turn = np.full(7, np.pi)
    return ClosureSystem(
        residual,
        jacobian,
        lower=np.array([-1.0, -1.0, *-turn]),
        upper=np.array([2.0, 2.0, *turn]),
        period=np.array([np.inf, np.inf, *(2 * turn)]),
        scale=np.ones(9),
    )


def six_legs(base: Array, platform: Array, lengths: Array) -> ClosureSystem:
    """Six distances and the norm of the quaternion, in x, y, z, qx, qy, qz, qw."""

    def residual(x: Array) -> Array:
        legs = x[:3] + turned(x) - base
        return np.append(np.sum(legs**2, axis=1) - lengths**2, x[3:] @ x[3:] - 1.0)

    def turned(x: Array) -> Array:
        v, w = x[3:6], x[6]
        cross = np.cross(v, platform)
        return platform * (w * w - v @ v) + 2.0 * np.outer(platform @ v, v) + 2.0 * w * cross

    def jacobian(x: Array) -> Array:
        v, w = x[3:6], x[6]
        legs = x[:3] + turned(x) - base
        slope = np.zeros((7, 7))
        slope[:6, :3] = 2.0 * legs
        for k in range(3):
            unit = np.eye(3)[k]
            change = -2.0 * v[k] * platform + 2.0 * np.outer(platform[:, k], v) + 2.0 * np.outer(platform @ v, unit)
            slope[:6, 3 + k] = 2.0 * np.sum(legs * (change + 2.0 * w * np.cross(unit, platform)), axis=1)
        slope[:6, 6] = 2.0 * np.sum(legs * (2.0 * w * platform + 2.0 * np.cross(v, platform)), axis=1)
        slope[6, 3:] = 2.0 * x[3:]
        return slope

    bound = np.array([3.0, 3, 3, 1, 1, 1, 1])
    return ClosureSystem(residual, jacobian, -bound, bound, np.full(7, np.inf), np.ones(7))


@pytest.mark.by_day(0, 2)
@pytest.mark.parametrize("seed", range(5))
def test_multistart_finds_what_the_sextic_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    base, platform = rng.normal(size=(2, 3, 2))
    pose = np.array([*rng.normal(size=2), rng.uniform(-np.pi, np.pi)])
    lengths = np.sqrt(platform_in_plane(base, platform, np.zeros(3)).residual(pose))
    system = platform_in_plane(base, platform, lengths)
    certified = planar_poses(base, platform, lengths)
    modes = multistart(system)
    assert (modes.status, modes.n_complex, modes.n_real) == (AssemblyStatus.SEARCHED, -1, certified.n_real)
    for solution in certified.solutions:
        assert min(system.distance(solution, x) for x in modes.solutions) < 1e-8
    assert modes.missing < 0.1
    assert modes.hits.sum() > 10 * modes.n_real
    assert np.array_equal(multistart(system).solutions, modes.solutions)  # deterministic


@pytest.mark.slow
def test_continuation_finds_the_other_modes_from_one() -> None:
    """A Gough-Stewart platform in quaternions: every mode twice, once per sign."""
    rng = np.random.default_rng(1)
    base, platform = rng.normal(size=(2, 6, 3))
    rotation, translation = Rotation.random(None, rng), rng.normal(size=3)
    lengths = np.linalg.norm(translation + rotation.apply(platform) - base, axis=1)
    system = six_legs(base, platform, lengths)
    start = np.array([*translation, *rotation.as_quat()])
    probe = rng.normal(size=7)
    differences = [(system.residual(probe + h) - system.residual(probe - h)) / 2e-6 for h in 1e-6 * np.eye(7)]
    assert np.allclose(system.jacobian(probe), np.transpose(differences), atol=1e-7)
    one = multistart(system, known=[start], most_starts=0)
    assert (one.n_real, one.starts, one.missing) == (1, 0, np.inf)
    modes = continue_modes(system, one, releases=[4, 5])
    certified = six_distances(base, platform, lengths)
    assert certified.n_real > 2
    assert modes.n_real == 2 * certified.n_real
    for pose in certified.solutions:
        assert min(system.distance(pose, x) for x in modes.solutions) < 1e-8


def test_all_joint_angles_with_a_redundant_row() -> None:
    """The 3-RRR of the proceedings, in nine coordinates; the actuators are the equations to release."""
    base = np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
    platform = 0.4 * np.array([[-0.5, -np.sqrt(3) / 6], [0.5, -np.sqrt(3) / 6], [0, np.sqrt(3) / 3]])
    inputs = np.array([0.4, 2.4, 2.7])
    elbows = base + 0.4 * np.column_stack([np.cos(inputs), np.sin(inputs)])
    certified = planar_poses(elbows, platform, [0.6] * 3)
    assert certified.n_real == 6
    system = limbs_in_plane(base, (0.4, 0.6), platform, inputs)
    probe = np.linspace(0.1, 0.9, 9)
    differences = [(system.residual(probe + h) - system.residual(probe - h)) / 2e-6 for h in 1e-6 * np.eye(9)]
    assert np.allclose(system.jacobian(probe), np.transpose(differences), atol=1e-8)
    modes = search_modes(system, releases=[7, 8, 9], periods=[2 * np.pi] * 3)
    assert modes.status == AssemblyStatus.SEARCHED
    assert np.max(modes.residuals) < 1e-10
    for pose in certified.solutions:
        gap = np.abs(np.exp(1j * modes.solutions[:, 2]) - np.exp(1j * pose[2]))
        assert np.min(gap + np.linalg.norm(modes.solutions[:, :2] - pose[:2], axis=1)) < 1e-8
    assert modes.n_real == certified.n_real


def test_self_motion_and_singular_solution() -> None:
    square = np.array([[0.0, 0.0], [1.0, 0.0], [0.3, 0.8]])
    pose = np.array([0.6, 0.8, 0.0])
    modes = multistart(platform_in_plane(square, square, np.ones(3)), known=[pose])
    assert modes.status == AssemblyStatus.POSITIVE_DIMENSIONAL  # congruent triangles on parallel legs
    angle = np.deg2rad([90, 210, 330])
    base = np.column_stack([np.cos(angle), np.sin(angle)])
    modes = multistart(platform_in_plane(base, 0.4 * base, np.full(3, 0.6)))  # every leg radial
    assert modes.status == AssemblyStatus.SEARCHED
    assert np.allclose(modes.solutions, 0.0, atol=1e-4)
    assert modes.multiplicity.tolist() == [2]


def test_nothing_to_find() -> None:
    base = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    modes = multistart(platform_in_plane(base, np.eye(3, 2), np.ones(3)), most_starts=50)
    assert (modes.n_real, modes.starts, modes.missing) == (0, 50, np.inf)


def test_halton_points_are_spread_evenly() -> None:
    points = halton(5, 2000)
    assert np.all((points >= 0) & (points < 1))
    counts = np.histogramdd(points[:, [0, 3]], bins=4)[0]
    assert np.all(np.abs(counts / 125 - 1) < 0.15)  # random points would scatter by 9 % each, up to 25 % among 16
