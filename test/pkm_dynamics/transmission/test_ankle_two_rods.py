# SPDX-License-Identifier: Apache-2.0
"""An ankle whose makers look joints up in a table: the loops against its closed form, and the table against both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.linkages import table_of_joints
from pkm_description.load import load_model
from pkm_description.mechanism import Array
from pkm_description.rotations import rotation_about
from pkm_dynamics.transmission.transmission import Transmission
from pkm_kinematics.status import Status

ANKLE = Path(__file__).with_name("ankle_two_rods.xml")
RADIUS = 0.025
SIDES = ((-1.0, 0.2, 0.192), (1.0, 0.15, 0.142))  # of a crank: to which side it points, its height, its rod's length


def closed_form(pitch: float, roll: float) -> list[float]:
    """Angles of the cranks: a circle about the crank's axis meets a sphere about the rod's lower end."""
    found = []
    for side, height, length in SIDES:
        turned = rotation_about(np.array([0.0, 1.0, 0.0]), pitch) @ rotation_about(np.array([1.0, 0.0, 0.0]), roll)
        _, y, z = away = turned @ [-0.04, side * RADIUS, 0.008] - [-0.04, 0.0, height]
        k = (away @ away + RADIUS**2 - length**2) / (2.0 * side * RADIUS)
        ways = np.arctan2(z, y) + np.array([1.0, -1.0]) * np.arccos(k / np.hypot(y, z))
        ways = (ways + np.pi) % (2.0 * np.pi) - np.pi
        found.append(float(ways[np.argmin(np.abs(ways))]))
    return found


@pytest.fixture(scope="module")
def ankle() -> Transmission:
    return Transmission(load_model(ANKLE), ["pitch", "roll"], ["right_motor", "left_motor"])


def grid(n: int) -> Array:
    axes = np.linspace(-0.3, 0.3, n), np.linspace(-0.2, 0.2, n)
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)


def test_the_loops_are_the_closed_form(ankle: Transmission) -> None:
    q = grid(21)
    np.testing.assert_allclose(ankle.to_actuators(q), [closed_form(*one) for one in q], atol=1e-13)
    np.testing.assert_allclose(ankle.to_joints(ankle.to_actuators(q)), q, atol=1e-12)


@pytest.mark.parametrize("way", [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.7, 0.7)])
def test_positions_are_found_up_to_a_fold(ankle: Transmission, way: tuple[float, float]) -> None:
    """A crank and its rod come into line where the closed form ends; the last position is 1e-6 rad before."""

    def closes(far: float) -> bool:
        with np.errstate(invalid="ignore"):
            return bool(np.isfinite(closed_form(far * way[0], far * way[1])).all())

    low = next(far for far in np.arange(0.01, 3.0, 0.01) if not closes(far)) - 0.01
    step = 0.01
    while (step := 0.5 * step) > 1e-12:
        low += step * closes(low + step)
    found = ankle.at((low - np.geomspace(1e-6, 0.1, 30))[:, None] * way)
    assert (found.linkage.status == Status.CONVERGED).all()
    assert (np.diff(found.margin) > 0.0).all()
    assert found.margin[0] < 1e-3
    assert ankle.at(np.multiply(low + 1e-6, way)).linkage.status == Status.UNREACHABLE


def test_a_table_of_the_motors_errs_with_the_square_of_its_pitch(ankle: Transmission) -> None:
    worst = [table_of_joints(ankle, nodes, 0.6)[1] for nodes in (41, 81)]
    assert worst[1] < 2e-4
    assert worst[0] / worst[1] == pytest.approx(4.0, rel=0.2)
