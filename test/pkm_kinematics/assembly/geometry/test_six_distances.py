# SPDX-License-Identifier: Apache-2.0
"""The forward kinematics of six-legged platforms: published counts, brute force, singular and movable geometries."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

from pkm_kinematics.assembly.geometry.rigid_body import six_distances
from pkm_kinematics.assembly.result import Array, AssemblyStatus, SolutionSet

DIETMAIER_BASE = [
    (0, 0, 0),
    (1.107915, 0, 0),
    (0.549094, 0.756063, 0),
    (0.735077, -0.223935, 0.525991),
    (0.514188, -0.526063, -0.368418),
    (0.590473, 0.094733, -0.205018),
]
DIETMAIER_PLATFORM = [
    (0, 0, 0),
    (0.542805, 0, 0),
    (0.956919, -0.528915, 0),
    (0.665885, -0.353482, 1.402538),
    (0.478359, 1.158742, 0.107672),
    (-0.137087, -0.235121, 0.353913),
]
DIETMAIER_LENGTHS = [1, 0.645275, 1.086284, 1.503439, 1.281933, 0.771071]

# the seven legs of the redundant Gough-Stewart platform of the workshop proceedings, Quebec 2002
SEVEN_BASE = np.array(
    [[0.6, 0.1, -0.3, -0.3, 0.2, 0.5, 0.5], [0.2, 0.5, 0.3, -0.4, -0.3, -0.2, 0], [0, 0.1, 0.1, 0, -0.05, 0, 0]]
).T
SEVEN_PLATFORM = np.array(
    [[0.3, 0.3, 0, -0.2, -0.15, 0.15, 0], [0, 0.2, 0.3, 0.1, -0.2, -0.15, -0.2], [0.1, 0, 0, -0.1, -0.05, -0.05, 0]]
).T


def lengths_of(base: Array, platform: Array, rotation: Array, translation: Array) -> Array:
    """Distances |p + R b - a| by their definition."""
    return np.linalg.norm(translation + platform @ rotation.T - base, axis=1)


def closure_error(modes: SolutionSet, base: Array, platform: Array, lengths: Array) -> float:
    """Largest error over all solutions, recomputed with another rotation library."""
    rotations = Rotation.from_quat(modes.solutions[:, 3:]).as_matrix()
    found = [lengths_of(base, platform, r, p) for r, p in zip(rotations, modes.solutions[:, :3], strict=True)]
    return float(np.max(np.abs(np.array(found) - lengths)))


def smallest_gap(solutions: Array) -> float:
    """Smallest distance between two poses (position and quaternion, either sign)."""
    mirrored = solutions * np.array([1, 1, 1, -1, -1, -1, -1])
    both = np.minimum(
        np.linalg.norm(solutions[:, None] - solutions, axis=2), np.linalg.norm(solutions[:, None] - mirrored, axis=2)
    )
    return float(np.min(both + 1e9 * np.eye(len(solutions))))


def brute_force(base: Array, platform: Array, lengths: Array, starts: int, seed: int) -> Array:
    """Distinct poses (k, 7) that Newton's method reaches from random poses, in batch."""
    rng = np.random.default_rng(seed)
    reach = np.max(lengths) + np.max(np.linalg.norm(base, axis=1)) + np.max(np.linalg.norm(platform, axis=1))
    rotation = Rotation.random(starts, rng)
    translation = rng.uniform(-reach, reach, size=(starts, 3))
    for _ in range(40):
        turned = np.einsum("nij,kj->nki", rotation.as_matrix(), platform)
        legs = translation[:, None] + turned - base
        jacobian = 2.0 * np.concatenate([legs, np.cross(turned, legs)], axis=2)
        step = np.linalg.solve(jacobian + 1e-12 * np.eye(6), (np.sum(legs**2, axis=2) - lengths**2)[..., None])[..., 0]
        size = np.linalg.norm(step, axis=1, keepdims=True)
        step *= np.minimum(1.0, 1.0 / np.maximum(size, 1e-9))
        translation = translation - step[:, :3]
        rotation = Rotation.from_rotvec(-step[:, 3:]) * rotation
    turned = np.einsum("nij,kj->nki", rotation.as_matrix(), platform)
    error = np.max(np.abs(np.linalg.norm(translation[:, None] + turned - base, axis=2) - lengths), axis=1)
    converged = np.hstack([translation, rotation.as_quat(canonical=True)])[error < 1e-10]
    found: list[Array] = []
    for pose in converged:
        if not found or smallest_gap(np.array([*found, pose])) > 1e-5:
            found.append(pose)
    return np.array(found).reshape(-1, 7)


def same_poses(first: Array, second: Array) -> bool:
    """Whether two sets of distinct poses agree."""
    if len(first) != len(second):
        return False
    mirrored = second * np.array([1, 1, 1, -1, -1, -1, -1])
    gaps = np.minimum(
        np.linalg.norm(first[:, None] - second, axis=2), np.linalg.norm(first[:, None] - mirrored, axis=2)
    )
    return bool(np.all(gaps.min(axis=1) < 1e-6))


def random_geometry(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Base, platform and the lengths of a random pose, so that at least one real solution exists."""
    base, platform = rng.normal(size=(2, 6, 3))
    return base, platform, lengths_of(base, platform, Rotation.random(None, rng).as_matrix(), rng.normal(size=3))


def test_dietmaiers_platform_has_forty_real_postures() -> None:
    base, platform, lengths = (np.array(x) for x in (DIETMAIER_BASE, DIETMAIER_PLATFORM, DIETMAIER_LENGTHS))
    modes = six_distances(base, platform, lengths)
    assert modes.status == AssemblyStatus.COMPLETE
    assert (modes.n_complex, modes.n_real) == (40, 40)
    assert np.all(modes.multiplicity == 1)
    assert closure_error(modes, base, platform, lengths) < 1e-14
    assert smallest_gap(modes.solutions) > 1e-3


def test_dietmaiers_platform_takes_well_under_a_second() -> None:
    arguments = (DIETMAIER_BASE, DIETMAIER_PLATFORM, DIETMAIER_LENGTHS)
    six_distances(*arguments)  # compiles, and finds the generic start solutions
    begin = time.thread_time()
    six_distances(*arguments)
    assert time.thread_time() - begin < 0.3  # 0.03 s on a laptop core


def test_units_do_not_matter() -> None:
    for unit in (1e-3, 1e3):
        base, platform, lengths = (unit * np.array(x) for x in (DIETMAIER_BASE, DIETMAIER_PLATFORM, DIETMAIER_LENGTHS))
        modes = six_distances(base + 7.0 * unit, platform, lengths)
        assert modes.n_real == 40
        assert closure_error(modes, base + 7.0 * unit, platform, lengths) < 1e-13 * unit


@pytest.mark.parametrize("seed", range(20))
def test_generic_geometry_has_forty_solutions_among_them_the_known_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    base, platform = rng.normal(size=(2, 6, 3))
    rotation, translation = Rotation.random(None, rng), rng.normal(size=3)
    lengths = lengths_of(base, platform, rotation.as_matrix(), translation)
    modes = six_distances(base, platform, lengths)
    assert (modes.status, modes.n_complex) == (AssemblyStatus.COMPLETE, 40)
    assert modes.n_real % 2 == 0  # complex ones come in pairs
    gap = np.abs(modes.solutions[:, :3] - translation).max(axis=1)
    assert gap.min() < 1e-9
    assert (Rotation.from_quat(modes.solutions[gap.argmin(), 3:]) * rotation.inv()).magnitude() < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_brute_force_finds_the_same_set(seed: int) -> None:
    base, platform, lengths = random_geometry(np.random.default_rng(100 + seed))
    assert same_poses(
        six_distances(base, platform, lengths).solutions, brute_force(base, platform, lengths, 3000, seed)
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_brute_force_finds_the_same_set_on_many_geometries(seed: int) -> None:
    base, platform, lengths = random_geometry(np.random.default_rng(1000 + seed))
    assert same_poses(
        six_distances(base, platform, lengths).solutions, brute_force(base, platform, lengths, 30000, seed)
    )


def test_planar_base_and_platform_give_mirror_images() -> None:
    rng = np.random.default_rng(5)
    base, platform, _ = random_geometry(rng)
    base[:, 2] = platform[:, 2] = 0.0
    lengths = lengths_of(base, platform, Rotation.from_rotvec([0.3, 0.2, 0.1]).as_matrix(), np.array([0.1, 0.2, 1.5]))
    modes = six_distances(base, platform, lengths)
    assert (modes.status, modes.n_complex) == (AssemblyStatus.COMPLETE, 40)
    heights = modes.solutions[:, 2]
    assert np.allclose(heights, -heights[::-1], atol=1e-9)  # sorted by height


def test_legs_that_meet_in_pairs_have_sixteen_solutions() -> None:
    rng = np.random.default_rng(6)
    pairs = np.repeat(np.arange(3), 2)
    for octahedral in (False, True):
        corners = rng.normal(size=(3, 3))
        base = rng.normal(size=(3, 3))[np.roll(pairs, 1)] if octahedral else rng.normal(size=(6, 3))
        platform = corners[pairs]
        lengths = lengths_of(base, platform, Rotation.random(None, rng).as_matrix(), rng.normal(size=3))
        modes = six_distances(base, platform, lengths)
        assert (modes.status, modes.n_complex) == (AssemblyStatus.COMPLETE, 16)
        assert closure_error(modes, base, platform, lengths) < 1e-13


@pytest.mark.parametrize("seed", range(4))
def test_singular_pose_is_a_double_solution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    while True:
        base, platform = rng.normal(size=(2, 6, 3))
        ends = rng.normal(size=(2, 6))

        def pose(t: float, ends: Array = ends) -> tuple[Array, Array]:
            x = ends[0] + t * (ends[1] - ends[0])
            return Rotation.from_rotvec(x[3:]).as_matrix(), x[:3]

        def determinant(t: float, base: Array = base, platform: Array = platform) -> float:
            rotation, translation = pose(t)
            turned = platform @ rotation.T
            legs = translation + turned - base
            return float(np.linalg.det(np.hstack([legs, np.cross(turned, legs)])))

        if determinant(0.0) * determinant(1.0) < 0.0:
            break
    rotation, translation = pose(brentq(determinant, 0.0, 1.0, xtol=1e-15))
    modes = six_distances(base, platform, lengths_of(base, platform, rotation, translation))
    assert (modes.status, modes.n_complex) == (AssemblyStatus.SINGULAR, 40)
    gap = np.abs(modes.solutions[:, :3] - translation).max(axis=1)
    assert gap.min() < 1e-6  # a double root is known to the square root of rounding
    assert modes.multiplicity[gap.argmin()] == 2
    assert np.sum(modes.multiplicity > 1) == 1


def test_flat_octahedron_is_one_solution_of_multiplicity_eight() -> None:
    angle = np.deg2rad([90, 210, 330])
    base = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)[[0, 0, 1, 1, 2, 2]]
    platform = (
        0.5 * np.stack([np.cos(angle + np.pi / 3), np.sin(angle + np.pi / 3), 0 * angle], axis=1)[[0, 2, 0, 1, 1, 2]]
    )
    modes = six_distances(base, platform, lengths_of(base, platform, np.eye(3), np.zeros(3)))
    assert modes.status == AssemblyStatus.SINGULAR
    assert np.allclose(modes.solutions, [[0, 0, 0, 0, 0, 0, 1]], atol=1e-6)
    assert modes.multiplicity.tolist() == [8]


def griffis_duffy() -> tuple[Array, Array]:
    """Triangles with legs from vertices to midpoints, shifted by one (Husty and Karger, half sides 1 and 0.6)."""
    angle = np.deg2rad([90, 210, 330])
    corners = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    hexagon = np.empty((6, 3))
    hexagon[::2], hexagon[1::2] = corners, 0.5 * (corners + np.roll(corners, -1, axis=0))
    hexagon *= 2.0 / np.sqrt(3.0)  # sides 2
    return hexagon, 0.6 * np.roll(hexagon, 1, axis=0)


@pytest.mark.slow
def test_self_motion_is_reported_as_such() -> None:
    base, platform = griffis_duffy()
    rng = np.random.default_rng(8)
    for _ in range(3):
        rotation, translation = Rotation.random(None, rng).as_matrix(), rng.normal(size=3)
        lengths = lengths_of(base, platform, rotation, translation)
        # the sum that the proceedings give confirms the geometry: base vertex to platform midpoint, and so on
        assert np.sum(lengths**2 * [1, -1, 1, -1, 1, -1]) == pytest.approx(3 * (1 - 0.6**2))
        modes = six_distances(base, platform, lengths)
        assert modes.status == AssemblyStatus.POSITIVE_DIMENSIONAL
        assert modes.n_real > 3  # samples
        assert np.all(modes.multiplicity == 0)
        assert closure_error(modes, base, platform, lengths) < 1e-9
    platform = np.array([[x, 0.0, 0.0] for x in (0.0, 0.3, 0.5, 0.6, 0.9, 1.1)])  # may spin about its own line
    base = rng.normal(size=(6, 3))
    modes = six_distances(base, platform, lengths_of(base, platform, np.eye(3), np.ones(3)))
    assert modes.status == AssemblyStatus.POSITIVE_DIMENSIONAL


def test_parallel_equal_legs_are_a_self_motion() -> None:
    """Congruent base and platform without turn: the platform translates on a sphere, counted twice by the paths."""
    base = np.random.default_rng(1).normal(size=(6, 3))
    modes = six_distances(base, base, np.full(6, 0.9))
    assert modes.status == AssemblyStatus.POSITIVE_DIMENSIONAL
    assert closure_error(modes, base, base, np.full(6, 0.9)) < 1e-9


def test_seventh_leg_selects_and_contradiction_is_noticed() -> None:
    rotation, translation = Rotation.from_euler("xyz", [0.1, -0.2, 0.3]), np.array([0.1, 0.05, 0.5])
    lengths = lengths_of(SEVEN_BASE, SEVEN_PLATFORM, rotation.as_matrix(), translation)
    six = six_distances(SEVEN_BASE[:6], SEVEN_PLATFORM[:6], lengths[:6])
    assert (six.status, six.n_complex) == (AssemblyStatus.COMPLETE, 40)
    seven = six_distances(SEVEN_BASE, SEVEN_PLATFORM, lengths)
    assert seven.status == AssemblyStatus.COMPLETE
    assert np.allclose(seven.solutions, [[*translation, *rotation.as_quat()]], atol=1e-9)
    lengths[6] += 0.01
    assert six_distances(SEVEN_BASE, SEVEN_PLATFORM, lengths).status == AssemblyStatus.INCONSISTENT


def test_legs_too_short_to_meet_give_no_real_solution() -> None:
    modes = six_distances(DIETMAIER_BASE, DIETMAIER_PLATFORM, 0.05 * np.array(DIETMAIER_LENGTHS))
    assert (modes.status, modes.n_complex, modes.n_real) == (AssemblyStatus.COMPLETE, 40, 0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_invalid_input(value: float) -> None:
    lengths = np.array(DIETMAIER_LENGTHS)
    lengths[2] = value
    assert six_distances(DIETMAIER_BASE, DIETMAIER_PLATFORM, lengths).status == AssemblyStatus.INVALID_INPUT
    assert six_distances(DIETMAIER_BASE[:5], DIETMAIER_PLATFORM[:5], [1.0] * 5).status == AssemblyStatus.INVALID_INPUT


def test_redundant_legs_whose_forces_balance() -> None:
    """Eight legs between the corners of two cubes: the sum of their equations has no gradient in the middle."""
    base = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, 8).T * [1.0, 1.2, 0.9]
    platform = np.roll(base, 1, axis=1) * 0.3
    lengths = lengths_of(base, platform, np.eye(3), np.zeros(3))
    modes = six_distances(base, platform, lengths)
    assert modes.status == AssemblyStatus.COMPLETE
    assert (modes.multiplicity == 1).all()
    home = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    assert (np.abs(modes.solutions - home).max(axis=1) < 1e-9).sum() == 1
