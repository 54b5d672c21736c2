# SPDX-License-Identifier: Apache-2.0
"""The equations that recordings are made of, for every type of loop, against those of the loader."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description.joint_geometry import freedoms
from pkm_description.loops.closure import ClosureModel
from pkm_description.loops.home import close
from pkm_description.mechanism import Array, Inertial, Joint, JointType, Link, Loop, LoopType, frozen
from pkm_description.rotations import rotation_from_rpy, transform
from pkm_kinematics.linkage.loop_system import Row, loop_rows


def two_chains(kind: LoopType, rng: np.random.Generator) -> ClosureModel:
    """Two chains of joints of several types on one link, all frames and axes oblique, and a loop between their ends."""

    def axis() -> Array:
        direction = rng.normal(size=3)
        return frozen(direction / np.linalg.norm(direction))

    def frame() -> Array:
        return frozen(transform(rng.uniform(-0.5, 0.5, 3), rotation_from_rpy(rng.uniform(-1.0, 1.0, 3))))

    types = [JointType.REVOLUTE] * 3 + [JointType.FIXED, JointType.PRISMATIC, JointType.PLANAR]
    joints, links = [], ["base", "shared"]
    joints.append(Joint("first", JointType.REVOLUTE, "base", "shared", frame(), axis()))
    for side in "ab":
        parent = "shared"
        for k, type_ in enumerate(types[: 6 if side == "a" else 4]):
            links.append(f"{side}{k}")
            joints.append(Joint(f"{side}_{k}", type_, parent, links[-1], frame(), axis()))
            parent = links[-1]
    first = axis()
    loop = Loop("loop", kind, "a5", "b3", frame(), frame(), first, axis() if kind is LoopType.UNIVERSAL else first)
    return ClosureModel([Link(name, Inertial()) for name in links], joints, [loop], "base")


@pytest.mark.parametrize("kind", LoopType)
def test_equations_are_those_of_the_loader(kind: LoopType) -> None:
    rng = np.random.default_rng(list(LoopType).index(kind))
    model = two_chains(kind, rng)
    q, gap = close(model, model.closure, np.ones(model.size, dtype=bool), rng.uniform(-0.4, 0.4, model.size))
    assert gap < 1e-12
    names = [one.name for joint in model.free for one in freedoms(joint)]
    slides = {one.name: one.slides for joint in model.free for one in freedoms(joint)}

    def rows(values: Array) -> list[Row]:
        at = dict(zip(names, values, strict=True))

        def position(name: str, factor: float, offset: float) -> tuple[float, float]:
            x = factor * at[name] + offset
            return (x / model.length, 0.0) if slides[name] else (np.cos(x), np.sin(x))

        return loop_rows(model, model.loops[0], position)

    closed = rows(q)
    assert len(closed) == 6 - kind.dof
    assert np.abs([row.gap for row in closed]).max() < 1e-12
    J, step = np.array([[row.rates.get(name, 0.0) for name in names] for row in closed]), 1e-6
    for k, name in enumerate(names):
        delta = step * np.eye(len(names))[k] * (model.length if slides[name] else 1.0)
        ahead, behind = (np.array([row.gap for row in rows(q + sign * delta)]) for sign in (1.0, -1.0))
        np.testing.assert_allclose(J[:, k], (ahead - behind) / (2 * step), atol=1e-9)  # rounding over the step
    theirs = model.closure(q)[1]
    # the same, but for constant turns of the frames that they are seen from
    np.testing.assert_allclose(*(np.linalg.svd(one)[1] for one in (J, theirs)), rtol=1e-9)
    np.testing.assert_allclose(np.linalg.pinv(J) @ J, np.linalg.pinv(theirs) @ theirs, atol=1e-9)
