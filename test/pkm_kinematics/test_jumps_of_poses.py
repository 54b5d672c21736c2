# SPDX-License-Identifier: Apache-2.0
"""Lean calls that jump keep the working mode, or say DIVERGED: a hexaglide whose universal joints are offset.

The judge solves three equations for each leg, for its slide and the two turns of its universal joint, in tiny steps.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bench.legs_at_home import Z, offset_hexaglide, ring, unit
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics, Status

OFFSET = 0.15
HOME = np.array([0.0, 0.0, 0.1])


@pytest.fixture(scope="module")
def kinematics() -> Kinematics:
    return Kinematics(load_mechanism(offset_hexaglide(OFFSET).text))


FEET = np.array(ring(6, 0.5, 0.6, 0.1))
SEATS = np.array([ring(6, 0.25, 0.0, 0.1 + 0.25 * (-1) ** k)[k] for k in range(6)])
WAYS = np.array([unit(way) for way in SEATS + HOME - FEET])
TILTS = np.array([unit(np.cross(way, [0.1, 0.9, 0.3])) for way in WAYS])  # first axes of the universal joints
BENDS = np.cross(TILTS, WAYS)  # second ones
RODS = SEATS + HOME - FEET - OFFSET * WAYS


def turned(axes: Array, angles: Array, vectors: Array) -> Array:
    """Vectors (6, 3) turned about axes (6, 3): Rodrigues' formula."""
    along = np.sum(vectors * axes, axis=1)[:, None] * axes
    c, s = np.cos(angles)[:, None], np.sin(angles)[:, None]
    return along + c * (vectors - along) + s * np.cross(axes, vectors)


def legs_closed(pose: Array, start: Array) -> Array | None:
    """Slide and turns (6, 3) at a pose, by Newton's method from near by; None where a leg leaves its side."""
    goals = pose[:3] + SEATS @ Rotation.from_quat(pose[3:]).as_matrix().T
    x = start.copy()
    for _ in range(12):
        bent = OFFSET * WAYS + turned(BENDS, x[:, 2], RODS)
        sideways = turned(BENDS, x[:, 2], np.cross(BENDS, RODS))
        arms, bars = turned(TILTS, x[:, 1], bent), turned(TILTS, x[:, 1], sideways)
        gaps = FEET + x[:, :1] * Z + arms - goals
        slopes = np.stack([np.broadcast_to(Z, (6, 3)), np.cross(TILTS, arms), bars], axis=2)
        steps = np.linalg.solve(slopes, gaps[:, :, None])[:, :, 0]
        x = x - steps
        if not np.abs(x - start).max() < 0.05:
            return None
        if np.abs(steps).max() < 1e-13:
            return x
    return None


def between(first: Array, last: Array, steps: int) -> list[Array]:
    """Poses on the straight way, the last one among them."""
    from_first = Rotation.from_quat(first[3:])
    turn = (Rotation.from_quat(last[3:]) * from_first.inv()).as_rotvec()
    shares = np.linspace(0.0, 1.0, steps + 1)[1:]
    shifts = first[:3] + shares[:, None] * (last[:3] - first[:3])
    return list(np.hstack([shifts, (Rotation.from_rotvec(shares[:, None] * turn) * from_first).as_quat()]))


def followed(legs: Array, first: Array, last: Array) -> Array | None:
    """Positions (6, 3) of the legs, led in tiny steps from one pose to another; None where one stops."""
    for steps in (100, 1000):
        led: Array | None = legs
        for pose in between(first, last, steps):
            led = legs_closed(pose, led)
            if led is None:
                break
        else:
            return led
    return None


def jumps(home: Array, count: int) -> list[tuple[Array, Array]]:
    """Poses far from home, and others 0.14 m and 8 degrees from these."""
    random, found = np.random.default_rng(1), []
    for _ in range(count):
        shift, turn, step, axis = random.uniform(-1.0, 1.0, (4, 3))
        there = Rotation.from_rotvec(0.6 * turn)
        beyond = Rotation.from_rotvec(0.14 * unit(axis)) * there
        place = home[:3] + 0.3 * shift
        found.append((np.r_[place, there.as_quat()], np.r_[place + 0.14 * unit(step), beyond.as_quat()]))
    return found


@pytest.mark.parametrize(("mode", "count"), [(5, 2), *(pytest.param(m, 12, marks=pytest.mark.slow) for m in (0, 5))])
def test_a_jump_keeps_the_mode_or_diverges(kinematics: Kinematics, mode: int, count: int) -> None:
    k = kinematics
    columns = np.array([[k.joint_names.index(f"leg{leg}_{joint}") for joint in (1, 2, 3)] for leg in range(1, 7)])
    start, home, q = k.modes.start(mode)[columns], np.array(k.home), np.zeros(6)
    reached = 0
    for first, last in jumps(k.home, count):
        call = k.lean_inverse(mode)
        at, judge = home, start
        for pose in (first, last, first):
            status = call(pose, q)
            led = followed(judge, at, pose)
            if led is None:
                assert status != Status.CONVERGED
                break
            assert status == Status.CONVERGED  # a way without a singularity is no reason to diverge
            np.testing.assert_allclose(q, led[:, 0], atol=1e-9)
            at, judge, reached = pose, led, reached + 1
        else:
            continue
        # refused: the limbs are still where they were
        assert call(at, q) == Status.CONVERGED
        np.testing.assert_allclose(q, judge[:, 0], atol=1e-9)
    assert reached > count // 3
