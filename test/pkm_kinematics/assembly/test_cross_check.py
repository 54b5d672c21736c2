# SPDX-License-Identifier: Apache-2.0
"""What a search lacks is looked for by further starts, and the answer says how sure it is."""

from __future__ import annotations

import numpy as np
import pytest

from bench.legs_at_home import Legs, Z, offset_hexaglide, omni_wrist
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_description.rotations import pose_distance
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.assembly.closure_search import ClosureSystem, cross_check, multistart
from pkm_kinematics.assembly.whole_search import GraphClosure


def way(angle: float) -> Array:
    return np.array([np.cos(angle), np.sin(angle), 0.0])


def planar_3prp(seed: int) -> tuple[Legs, Array, Array, Array]:
    """Three driven slides, each with a pin that carries a rail along which the platform slides; feet, ways, rails."""
    random = np.random.default_rng(seed)
    robot = Legs("xyc", [*random.uniform(-0.1, 0.1, 2), 0.0])
    parts = []
    for k in range(3):
        foot = way(2.1 * k + random.uniform(-0.4, 0.4)) * random.uniform(0.4, 0.7)
        slide = way(random.uniform(0.0, 6.28))
        seat = way(2.1 * k + random.uniform(-0.4, 0.4)) * random.uniform(0.05, 0.2)
        rail = way(random.uniform(0.0, 6.28))
        robot.add([("P", foot, (slide,)), ("R", foot, (Z,))], "prismatic", seat + robot.home, rail, driven=0)
        parts.append((foot[:2], slide[:2], rail[:2]))
    feet, slides, rails = (np.array(part) for part in zip(*parts, strict=True))
    return robot, feet, slides, rails


def angles_of(feet: Array, slides: Array, rails: Array, q: Array) -> list[float]:
    """The platform's angles by hand.

    Each rail turns with the platform, so that n . R^T (b + q u - p) = n . (b - p0), with n across the rail at home. Two
    multipliers take the position out of the three, and A cos + B sin = C is left.
    """
    n = np.stack([-rails[:, 1], rails[:, 0]], axis=1)
    weight = [np.linalg.det(n[[1, 2]]), np.linalg.det(n[[2, 0]]), np.linalg.det(n[[0, 1]])]
    pins = feet + q[:, None] * slides
    A = float(weight @ np.sum(n * pins, axis=1))
    B = float(weight @ np.sum(n * np.stack([pins[:, 1], -pins[:, 0]], axis=1), axis=1))
    C = float(weight @ np.sum(n * feet, axis=1))
    middle, bent = np.arctan2(B, A), np.arccos(C / np.hypot(A, B))
    return sorted(float(np.angle(np.exp(1j * angle))) for angle in (middle + bent, middle - bent))


@pytest.mark.by_day(20)
@pytest.mark.parametrize("seed", [20, 9, 12])
def test_a_planar_3prp_has_both_of_its_modes(seed: int) -> None:
    """Of seed 20 a search that stopped when one was expected missing had one."""
    robot, *parts = planar_3prp(seed)
    q = np.random.default_rng(seed).uniform(-0.05, 0.05, 3)
    modes = Kinematics(load_mechanism(robot.text)).forward_all(q)
    found = sorted(2.0 * float(np.arctan2(mode.pose[5], mode.pose[6])) for mode in modes)
    found = sorted(float(np.angle(np.exp(1j * angle))) for angle in found)
    np.testing.assert_allclose(found, angles_of(*parts, q), atol=1e-7)
    assert not modes.certified
    assert "40 of the last 40 random starts" in modes.caution


def roots_of(n: int) -> ClosureSystem:
    """n solutions, evenly around a circle, each of which attracts as many starts."""
    return ClosureSystem(
        residual=lambda x: np.array([np.sin(0.5 * n * x[0])]),
        jacobian=lambda x: np.array([[0.5 * n * np.cos(0.5 * n * x[0])]]),
        lower=np.array([-np.pi]),
        upper=np.array([np.pi]),
        period=np.array([2.0 * np.pi]),
        scale=np.array([1.0]),
    )


def test_what_was_missed_is_added() -> None:
    system = roots_of(12)
    short = multistart(system, missing=np.inf, most_starts=8)
    checked = cross_check(system, short)
    assert len(short.solutions) < len(checked.solutions) == 12
    np.testing.assert_array_equal(checked.solutions[: len(short.solutions)], short.solutions)
    assert (checked.checks, checked.met, checked.missing) == (40, 40, 0.0)


@pytest.mark.slow
def test_what_is_missing_is_estimated() -> None:
    """Of 4,000 modes no check can find all: it says about how many there are."""
    system = roots_of(4000)
    checked = cross_check(system, multistart(system, missing=0.0, most_starts=400))
    known = len(checked.solutions)
    assert known < 900
    assert checked.met < checked.checks == 40
    assert 4000 / 3 < known + checked.missing < 3 * 4000


@pytest.mark.slow
def test_six_offset_legs_say_how_many_modes_are_missing() -> None:
    """The judge: further starts of its own meet modes that are not listed, about as often as was said."""
    k = Kinematics(load_mechanism(offset_hexaglide(0.05).text))
    q = k.inverse(k.home).actuated
    found = k.assembly.solve(q)
    assert not found.certified
    assert "more modes are missing" in found.caution
    closure = GraphClosure(k.engine.whole_graph, k.actuated_names)
    system, random = closure.system(q), np.random.default_rng(7)
    met = [system.solved(random.uniform(system.lower, system.upper)) for _ in range(60)]
    poses = np.array([closure.pose(x) for x in met if x is not None])
    apart = np.abs(poses[:, None, :3] - found.poses[None, :, :3]).max(axis=2).min(axis=1)
    assert 0.5 < np.mean(apart < 1e-6) < 1.0


@pytest.mark.slow
def test_a_pose_that_limbs_reach_in_several_ways_is_one_mode() -> None:
    """At home the limbs of an omni-wrist close in five ways, in two poses; one of the ways home is singular.

    The judge is a search of the test's own that tells solutions apart by the turns of the joints.
    """
    k = Kinematics(load_mechanism(omni_wrist().text))
    q = k.inverse(k.home).actuated
    modes = k.forward_all(q)
    assert [mode.status for mode in modes] == [Status.CONVERGED] * 2
    assert pose_distance(modes[0].pose, k.home, 0.1) < 1e-8
    closure = GraphClosure(k.engine.whole_graph, k.actuated_names)
    system, random = closure.system(q), np.random.default_rng(3)
    legs = np.flatnonzero(closure.of_free(np.char.startswith(k.engine.whole_graph.names, "leg")))
    ways: list[Array] = []
    for _ in range(150):
        x = system.solved(random.uniform(system.lower, system.upper))
        if x is None:
            continue
        assert min(pose_distance(closure.pose(x), mode.pose, 0.1) for mode in modes) < 1e-4
        off = [np.abs(np.angle(np.exp(1j * (x - way)[legs]))).max() for way in ways]
        ways += [] if off and min(off) < 1e-3 else [x]
    assert len(ways) == 5
