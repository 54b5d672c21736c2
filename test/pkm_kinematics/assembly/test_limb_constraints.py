# SPDX-License-Identifier: Apache-2.0
"""What locked limbs impose holds however their passive joints move, and gives all assembly modes of whole robots."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_description.rotations import transform
from pkm_kinematics import Kinematics
from pkm_kinematics.assembly.geometry.rigid_body import Constraint, ConstraintKind
from pkm_kinematics.assembly.limb_constraints import Axis, Constraints, PassiveChain, chain_constraints
from pkm_kinematics.assembly.whole_search import Search

SPHERE, PLANE, MOVING_PLANE, DIRECTION = ConstraintKind


def error(constraint: Constraint, pose: Array) -> float:
    """Violation of a constraint at a platform pose (4, 4), by its definition."""
    kind, base, platform, value = constraint
    R, p = pose[:3, :3], pose[:3, 3]
    found = {
        SPHERE: np.linalg.norm(p + R @ platform - base),
        PLANE: base @ (p + R @ platform),
        MOVING_PLANE: platform @ (R.T @ (base - p)),
        DIRECTION: base @ R @ platform,
    }[kind]
    return float(abs(found - value))


def unit(rng: np.random.Generator) -> Array:
    vector = rng.normal(size=3)
    return vector / np.linalg.norm(vector)


def ball(rng: np.random.Generator) -> list[Axis]:
    """Three turns through a point."""
    point = rng.normal(size=3)
    return [Axis(False, point, unit(rng)) for _ in range(3)]


def universal(rng: np.random.Generator) -> list[Axis]:
    """Two turns through a point."""
    return ball(rng)[:2]


def hinge(rng: np.random.Generator) -> list[Axis]:
    return [Axis(False, rng.normal(size=3), unit(rng))]


def slide(rng: np.random.Generator) -> list[Axis]:
    return [Axis(True, rng.normal(size=3), unit(rng))]


def in_plane(rng: np.random.Generator) -> list[Axis]:
    """A turn and a slide across it."""
    turn = hinge(rng)[0]
    across = np.cross(turn.direction, unit(rng))
    return [turn, Axis(True, rng.normal(size=3), across / np.linalg.norm(across))]


def two_parallel(rng: np.random.Generator) -> list[Axis]:
    turn = hinge(rng)[0]
    return [turn, Axis(False, rng.normal(size=3), turn.direction)]


@pytest.mark.parametrize(
    ("first", "second", "kinds"),
    [
        (universal, ball, [SPHERE]),
        (ball, ball, [SPHERE]),
        (hinge, ball, [SPHERE, PLANE]),
        (slide, ball, [PLANE, PLANE]),
        (in_plane, ball, [PLANE]),
        (two_parallel, ball, [PLANE]),
        (None, ball, [PLANE, PLANE, PLANE]),
        (ball, universal, [SPHERE]),
        (ball, hinge, [SPHERE, MOVING_PLANE]),
        (ball, slide, [MOVING_PLANE, MOVING_PLANE]),
        (ball, in_plane, [MOVING_PLANE]),
        (universal, slide, [MOVING_PLANE, MOVING_PLANE, DIRECTION]),
        (slide, universal, [PLANE, PLANE, DIRECTION]),
    ],
)
def test_constraints_hold_however_the_passive_joints_move(
    first: object, second: object, kinds: list[ConstraintKind]
) -> None:
    rng = np.random.default_rng(len(kinds))
    for _ in range(5):
        chain = (first(rng) if first else []) + second(rng)  # type: ignore[operator]
        home = transform(rng.normal(size=3), Rotation.random(None, rng).as_matrix())
        constraints = chain_constraints(PassiveChain(chain, home), 1.0)
        assert constraints is not None
        assert [one.kind for one in constraints] == kinds
        for _ in range(10):
            pose = home
            for axis in reversed(chain):
                pose = axis.motion(rng.uniform(-2.0, 2.0)) @ pose
            assert max(error(one, pose) for one in constraints) < 1e-12


def test_free_chains_impose_nothing_and_others_are_not_guessed() -> None:
    rng = np.random.default_rng(0)
    home = np.eye(4)
    assert chain_constraints(PassiveChain(universal(rng) + slide(rng) + ball(rng), home), 1.0) == []
    assert (
        chain_constraints(PassiveChain(universal(rng) + universal(rng), home), 1.0) is None
    )  # its torsion is no quadric in Study parameters
    assert chain_constraints(PassiveChain(hinge(rng) + hinge(rng) + ball(rng), home), 1.0) is None  # a torus
    assert chain_constraints(PassiveChain(hinge(rng) + hinge(rng) + hinge(rng), home), 1.0) is None


@pytest.mark.parametrize("name", ["gough_stewart", "hexa", "hexaglide", "tricept", "tripod_3prs"])
def test_constraints_hold_at_other_poses_of_a_robot(name: str) -> None:
    mechanism = load_mechanism(name)
    kinematics, limbs = Kinematics(mechanism), Constraints(Kinematics(mechanism).engine)
    assert limbs.recognised
    home = kinematics.inverse(kinematics.home).actuated
    for k in range(4):
        q = home + 0.01 * np.cos(np.arange(len(home)) + k)
        fk = kinematics.forward(q, near=kinematics.home)
        assert fk.status == 0
        pose = transform(fk.pose[:3], Rotation.from_quat(fk.pose[3:]).as_matrix())
        constraints = limbs.constraints(q)
        assert max(error(one, pose) for one in constraints) < 1e-9


@pytest.mark.by_day("tripod_3prs")
@pytest.mark.parametrize(("name", "complex_count"), [("tricept", 24), ("tripod_3prs", 16)])
def test_all_modes_of_robots_with_passive_constraints(name: str, complex_count: int) -> None:
    """The certified set is what the search over the whole graph, which shares nothing with it, finds as well."""
    kinematics = Kinematics(load_mechanism(name))
    assert kinematics.assembly_method == "constraints"
    home = kinematics.inverse(kinematics.home).actuated
    q = home + 0.02 * np.array([1.0, -0.5, 0.2])
    found = kinematics.assembly.solve(q)
    assert found.certified
    assert found.n_complex == complex_count
    searched = Search(kinematics.engine).solve(q)
    turns = np.abs(np.abs(found.poses[:, 3:] @ searched.poses[:, 3:].T) - 1.0)
    gaps = np.linalg.norm(found.poses[:, None, :3] - searched.poses[:, :3], axis=2) + turns
    assert found.poses.shape == searched.poses.shape
    assert np.max(gaps.min(axis=1)) < 1e-7
    modes = kinematics.forward_all(q)
    assert len(modes) == len(found.poses)  # none is lost for want of its joint positions
    assert max(float(mode.residual) for mode in modes) < 1e-8


def test_agile_eye_lists_its_trivial_modes_as_singular() -> None:
    """Eight modes; in four of them the limbs are locked and leave their actuators free."""
    kinematics = Kinematics(load_mechanism("agile_eye"))
    home = kinematics.inverse(kinematics.home).actuated
    modes = kinematics.forward_all(home + np.array([0.1, -0.05, 0.15]))
    assert len(modes) == 8
    assert sum(int(mode.status) == 3 for mode in modes) == 4
