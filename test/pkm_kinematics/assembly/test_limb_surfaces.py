# SPDX-License-Identifier: Apache-2.0
"""Surfaces read from the graph hold at every pose that the limbs reach, and give all assembly modes of whole robots."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.assembly.geometry.surfaces import normals
from pkm_kinematics.assembly.limb_surfaces import Surfaces, surface_equations
from pkm_kinematics.assembly.locked_graph import Chain, Orientation
from pkm_kinematics.assembly.whole_search import Search

FOUND = {  # number of finite complex solutions
    "orthoglide": 2, "delta_rr": 2, "par2": 2, "irsbot2": 2, "three_rpc": 8, "dymo_3uru": 16,
    "delta": 2, "linear_delta": 2, "five_bar": 2, "tripteron": 1,
}  # fmt: skip


def random_actuation(kinematics: Kinematics, rng: np.random.Generator, far: float = 0.3) -> Array:
    """Actuated joint positions (n_actuated,) around home's."""
    q = kinematics.home_joints[kinematics.engine.actuated_column]
    unit = np.where(kinematics.engine.actuated_turning, 1.0, kinematics.engine.size)
    return np.asarray(q + far * unit * rng.uniform(-1.0, 1.0, len(q)))


@pytest.mark.by_day("irsbot2", "three_rpc")
@pytest.mark.parametrize("name", FOUND)
def test_the_equations_hold_in_every_working_mode(name, of_gallery):
    """Errors as distances: equation over gradient, at poses from inverse kinematics."""
    k = of_gallery[name].kinematics
    surfaces = Surfaces(k.engine)
    assert surfaces.recognised
    rng = np.random.default_rng(1)
    drawn = k.home + np.hstack([0.2 * k.engine.size * rng.uniform(-1, 1, (40, 3)), np.zeros((40, 4))])
    linear_motion = k.task.subspace[:3]
    drawn[:, :3] = k.home[:3] + (drawn[:, :3] - k.home[:3]) @ (linear_motion @ np.linalg.pinv(linear_motion)).T
    seen = 0
    for mode in range(k.n_modes):
        solved = k.inverse(drawn, mode=mode)
        for pose, q in zip(drawn, solved.actuated, strict=True):
            if not np.isfinite(q).all():
                continue
            seen += 1
            linear, quadrics = surfaces.equations(q)
            z = np.array([1.0, *pose[:3], pose[:3] @ pose[:3]])
            errors = np.concatenate([linear @ z, np.einsum("kab,a,b->k", quadrics, z, z)])
            slopes = np.linalg.norm(normals(linear, quadrics, pose[:3]), axis=1)
            assert np.all(np.abs(errors) < 1e-12 * (1.0 + k.engine.size / 1e-3 * slopes))
            assert np.all(np.abs(errors) < 1e-9 * np.maximum(slopes, 1e-3 * k.engine.size))
    assert seen > 20


@pytest.mark.parametrize("name", FOUND)
def test_number_of_complex_solutions(name, of_gallery):
    k = of_gallery[name].kinematics
    found = Surfaces(k.engine).solve(random_actuation(k, np.random.default_rng(2), 0.1))
    assert found.certified
    assert found.n_complex == FOUND[name]


@pytest.mark.parametrize(
    "name", ["irsbot2", *(pytest.param(one, marks=pytest.mark.slow) for one in ("dymo_3uru", "par2", "three_rpc"))]
)
def test_what_a_search_over_the_whole_graph_finds_is_on_the_list(name, of_gallery):
    """The search shares nothing with the list but the description."""
    k = of_gallery[name].kinematics
    assert k.assembly_method == "surfaces"
    rng = np.random.default_rng(5)
    seen = 0
    for _ in range(3):
        q = random_actuation(k, rng)
        modes, searched = k.forward_all(q), Search(k.engine).solve(q)
        assert modes.certified, modes.caution
        listed = np.array([one.pose for one in modes]).reshape(-1, 7)
        for pose in searched.poses:
            seen += 1
            assert np.linalg.norm(listed[:, :3] - pose[:3], axis=1).min() < 1e-9
        for one in modes:  # and all are true
            assert one.status in (Status.CONVERGED, Status.JOINT_LIMIT)
            assert np.abs(k.inverse(one.pose, seed=one.joints).actuated - q).max() < 1e-8
    assert seen >= 3


def test_not_for_platforms_that_turn_nor_where_too_little_is_known(of_gallery):
    for name in ("gough_stewart", "h4", "tripod_3prs", "agile_eye"):
        assert not Surfaces(of_gallery[name].kinematics.engine).recognised


def error(equation: Array, p: Array) -> float:
    z = np.array([1.0, *p, p @ p])
    return float(abs(equation @ z if equation.ndim == 1 else z @ equation @ z))


def unit(rng: np.random.Generator) -> Array:
    vector = rng.normal(size=3)
    return np.asarray(vector / np.linalg.norm(vector))


@pytest.mark.parametrize("slides", ["own", "oblique", "none"])
def test_a_circle_or_a_line_that_turns_about_a_direction(slides):
    """Every point that such a chain can reach, by its definition, is on the surface."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        own, world, c, free = unit(rng), unit(rng), rng.normal(size=3), unit(rng)
        vector, slide = rng.normal(size=3), unit(rng)
        vector -= own * (own @ vector)
        turning = Orientation([(own, world)])
        inside = {"own": [slide]}.get(slides, [])
        chain = Chain(c, [free] if slides == "oblique" else [], {0: (vector, inside)}, [turning], {})
        equations = surface_equations(chain, 1.0)
        assert len(equations) == (2 if slides == "none" else 1)
        first = Rotation.align_vectors(world, own)[0]
        for _ in range(10):
            R = Rotation.from_rotvec(rng.uniform(-3, 3) * world) * first
            s = rng.uniform(-1, 1)
            p = c + R.apply(vector + (s * slide if inside else 0.0)) + (s * free if slides == "oblique" else 0.0)
            assert max(error(e, p) for e in equations) < 1e-11 * (1.0 + max(np.abs(e).max() for e in equations))


def test_two_hinges_in_any_position():
    rng = np.random.default_rng(8)
    for _ in range(20):
        own, world, c = unit(rng), unit(rng), rng.normal(size=3)
        hinge_a, hinge_b = unit(rng), unit(rng)
        a, b = rng.normal(size=3), rng.normal(size=3)
        a -= own * (own @ a)
        groups = [Orientation([(own, world)]), Orientation()]
        shared = {(0, 1): (hinge_a, hinge_b), (1, 0): (hinge_b, hinge_a)}
        chain = Chain(c, [], {0: (a, []), 1: (b, [])}, groups, shared)
        (equation,) = surface_equations(chain, 1.0)
        first, second = Rotation.align_vectors(world, own)[0], Rotation.align_vectors(hinge_a, hinge_b)[0]
        for _ in range(10):
            R = Rotation.from_rotvec(rng.uniform(-3, 3) * world) * first
            turned = Rotation.from_rotvec(rng.uniform(-3, 3) * hinge_a) * second
            assert error(equation, c + R.apply(a + turned.apply(b))) < 1e-11 * (1.0 + np.abs(equation).max())
