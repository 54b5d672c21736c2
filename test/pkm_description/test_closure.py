# SPDX-License-Identifier: Apache-2.0
"""The loop equations: every type of closure against its definition and against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description.joint_geometry import frame_along
from pkm_description.loops.closure import ClosureModel, advance, loop_equations, null_space
from pkm_description.loops.home import close
from pkm_description.mechanism import Array, Inertial, Joint, JointType, Link, Loop, LoopType, frozen
from pkm_description.rotations import (
    rotation_about,
    rotation_from_rpy,
    transform,
)


def unit(vector: list[float]) -> Array:
    return frozen(np.array(vector) / np.linalg.norm(vector))


def two_branches(kind: LoopType) -> ClosureModel:
    """A floating body and a chain of mixed joints, both on the base, joined by one loop in general position."""
    origin = frozen(transform(np.array([0.3, -0.2, 0.4]), rotation_from_rpy(np.array([0.3, -0.5, 0.8]))))
    joints = [
        Joint("free", JointType.FLOATING, "base", "body", origin, unit([0, 0, 1])),
        Joint("flat", JointType.PLANAR, "base", "plate", origin, unit([0.2, 0.5, 1.0])),
        Joint("slide", JointType.PRISMATIC, "plate", "slider", origin, unit([1.0, -2.0, 0.3])),
        Joint("turn", JointType.REVOLUTE, "slider", "tip", origin, unit([0.3, 0.4, -0.9])),
    ]
    frame = frozen(transform(np.array([0.1, 0.5, -0.3]), rotation_from_rpy(np.array([-0.7, 0.2, 0.4]))))
    axis = unit([1.0, 2.0, -0.5])
    axis2 = unit([0.4, -1.0, 0.6]) if kind is LoopType.UNIVERSAL else axis
    loop = Loop("loop", kind, "body", "tip", frame, origin, axis, axis2)
    links = [Link(name, Inertial()) for name in ("base", "body", "plate", "slider", "tip")]
    return ClosureModel(links, joints, [loop], "base")


@pytest.mark.parametrize("kind", LoopType)
def test_jacobian_is_the_derivative_of_the_residual_where_closed(kind: LoopType) -> None:
    model = two_branches(kind)
    random = np.random.default_rng(3)
    everything = np.ones(model.size, dtype=bool)
    q, gap = close(model, model.closure, everything, random.uniform(-0.4, 0.4, model.size))
    assert gap < 1e-12
    _, jacobian = model.closure(q)
    assert jacobian.shape == (6 - kind.dof, model.size)
    step = 1e-6
    for column in range(model.size):
        delta = np.zeros(model.size)
        delta[column] = step
        forward = model.closure(advance(model, q, delta))[0]
        backward = model.closure(advance(model, q, -delta))[0]
        # Central differences: error of order step**2 plus rounding over step.
        assert jacobian[:, column] == pytest.approx((forward - backward) / (2 * step), abs=1e-8)


@pytest.mark.parametrize("kind", LoopType)
def test_closed_frames_move_as_the_cut_joint_lets_them(kind: LoopType) -> None:
    """What the rows leave free of a relative motion is what the joint's name says."""
    axis = unit([1.0, 2.0, -0.5])
    # The axes of a universal joint are perpendicular when it is closed.
    axis2 = frozen(frame_along(axis)[:, 0]) if kind is LoopType.UNIVERSAL else axis
    eye = frozen(np.eye(4))
    loop = Loop("loop", kind, "a", "b", eye, eye, axis, axis2)
    residual, rows = loop_equations(loop, np.eye(4), np.eye(4), np.eye(6), 1.0)
    assert np.abs(residual).max() < 1e-15
    zero = np.zeros(3)
    across = frame_along(axis).T
    free = {
        LoopType.SPHERICAL: [(zero, e) for e in np.eye(3)],
        LoopType.UNIVERSAL: [(zero, axis), (zero, axis2)],
        LoopType.REVOLUTE: [(zero, axis)],
        LoopType.CYLINDRICAL: [(axis, zero), (zero, axis)],
        LoopType.PRISMATIC: [(axis, zero)],
        LoopType.PLANAR: [(across[0], zero), (across[1], zero), (zero, axis)],
        LoopType.FIXED: [],
    }[kind]
    assert null_space(rows).shape[1] == len(free)
    for linear, angular in free:
        assert rows @ np.concatenate((linear, angular)) == pytest.approx(0.0, abs=1e-15)


def test_turned_over_axis_is_open() -> None:
    """A revolute loop is not closed by the antiparallel axis, although the axes' cross product vanishes there."""
    eye = frozen(np.eye(4))
    loop = Loop("loop", LoopType.REVOLUTE, "a", "b", eye, eye, unit([0, 0, 1]), unit([0, 0, 1]))
    turned = transform(np.zeros(3), rotation_about(np.array([1.0, 0.0, 0.0]), np.pi))
    residual, _ = loop_equations(loop, np.eye(4), turned, np.eye(6), 1.0)
    assert np.linalg.norm(residual) == pytest.approx(np.pi)


@pytest.mark.parametrize("tilt", [1e-8, 1e-10, 1e-13])
def test_the_least_tilt_of_a_hinge_is_open(tilt: float) -> None:
    x = unit([1.0, 0.0, 0.0])
    loop = Loop("loop", LoopType.REVOLUTE, "body", "tip", frozen(np.eye(4)), frozen(np.eye(4)), x, x)
    turned = transform(np.zeros(3), rotation_about(unit([0.0, 0.0, 1.0]), tilt))
    gap, _ = loop_equations(loop, np.eye(4), turned, np.zeros((6, 1)), 1.0)
    assert np.linalg.norm(gap) == pytest.approx(tilt, rel=1e-6)


def test_pose_error_derivative() -> None:
    model = two_branches(LoopType.SPHERICAL)
    q = np.random.default_rng(4).uniform(-0.4, 0.4, model.size)
    target = model.pose_of("tip", q)
    _, jacobian = model.pose_error(q, "tip", target)
    for column in range(model.size):
        delta = np.zeros(model.size)
        delta[column] = 1e-6
        ahead, _ = model.pose_error(advance(model, q, delta), "tip", target)
        behind, _ = model.pose_error(advance(model, q, -delta), "tip", target)
        assert jacobian[:, column] == pytest.approx((ahead - behind) / 2e-6, abs=1e-8)
