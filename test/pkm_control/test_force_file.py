# SPDX-License-Identifier: Apache-2.0
"""The force file is read as it is written; what is wrong is named with its place; a robot is made of it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pkm_client import Robot
from pkm_control.controllers.controller import Measured
from pkm_control.controllers.force_task import read_force_file
from pkm_control.loop_settings import Setup
from pkm_control.operator_interface import HYBRID
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_hardware.simulated.surroundings import Plane, Surroundings
from pkm_runtime.errors import ConfigurationError

PRESS = 10.0  # N
EXAMPLE = """
task:
  rpy: [0, 0, 1.5707963267948966]
  stiffness: [1000, 2000, 3000]
  contact_stiffness: 20000
  force_axes: [z]
  wrench: [0, 0, -10, 0, 0, 0]
sensor: {frame: ft, xyz: [0, 0, -0.02], rpy: [3.141592653589793, 0, 0], noise: 0.05}
surroundings:
  points: [[0, 0, 0]]
  peg: {radius: 0.01, length: 0.03, tip: [0, 0, -0.05]}
  planes:
    table: {point: [0, 0, -0.905], friction: 0.1, hole: {mouth: [0, 0, -0.905], radius: 0.011}}
"""


def written(folder: Path, text: str) -> str:
    path = folder / "force.yaml"
    path.write_text(text, "utf-8")
    return str(path)


def test_a_file_is_read(tmp_path: Path) -> None:
    file = read_force_file(written(tmp_path, EXAMPLE))
    assert file.sensor_frame == "ft"
    np.testing.assert_allclose(np.diag(file.task.stiffness_matrix(0.5)), [2000, 1000, 3000, 500, 500, 500])
    assert file.task.selected.tolist() == [False, False, True, False, False, False]
    assert file.surroundings.touch.solids.shape[0] == 1
    assert file.surroundings.touch.points.shape == (73, 3)


def test_a_sensor_is_read_back_as_it_is_mounted(tmp_path: Path) -> None:
    """What the simulated sensor reads where it sits is, for the controller, the wrench on the platform."""
    file = read_force_file(written(tmp_path, EXAMPLE.replace("noise: 0.05", "noise: 0")))
    wrench = np.array([1.0, -2.0, 3.0, 0.4, 0.5, -0.6])
    turned = np.array([0.0, 0.0, 0.0, 0.0, 0.0, np.sin(0.2), np.cos(0.2)])
    none = np.zeros(3)
    measured = Measured(none, none, turned, np.zeros(6), none, np.zeros((6, 3)))
    c, s = np.cos(0.4), np.sin(0.4)
    base = (wrench.reshape(2, 3) @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])).ravel()
    felt = file.task.felt(measured, file.surroundings.read(wrench))
    np.testing.assert_allclose(felt.wrench, base, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("force_axes: [z]", "force_axes: [up]"),
            "task.force_axes: 'up' is unknown; give a list of x, y, z",
        ),
        (("[1000, 2000, 3000]", "[1000, 2000]"), "no list of 1 or 3 or 6 numbers"),
        (("contact_stiffness: 20000", "contact_stiffness: 0"), "task.contact_stiffness: 0 is outside its range"),
        (
            ("friction: 0.1", "frictoin: 0.1"),
            "surroundings.planes.table.frictoin: no such key; did you mean",
        ),
        (("point: [0, 0, -0.905], ", "point: [0, 0, -0.905], normal: [0, 0, 0], "), "give a point and a direction"),
        (("tip: [0, 0, -0.05]", "tip: here"), "surroundings.peg.tip: 'here' is no list of 3 numbers"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_force_file(written(tmp_path, EXAMPLE.replace(*change)))
    assert message in str(caught.value)


def test_a_robot_presses_where_its_path_is_behind_the_surface(tmp_path: Path) -> None:
    plain = EXAMPLE.replace("  peg: {radius: 0.01, length: 0.03, tip: [0, 0, -0.05]}\n", "").replace(
        ", hole: {mouth: [0, 0, -0.905], radius: 0.011}", ""
    )
    setup = Setup(controller=HYBRID, force_file=written(tmp_path, plain))
    pressed = -0.905 - PRESS / 2e4
    with Robot.simulated("delta", realtime=False, setup=setup) as robot:
        robot.move_to([0.0, 0.0, -0.9])
        assert robot.state.pose[2] == pytest.approx(-0.9, abs=1e-5)
        robot.move_to([0.0, 0.0, -0.91], speed=0.05)
        robot.move_to([0.03, 0.0, -0.91], speed=0.05)
        assert robot.state.pose[2] == pytest.approx(pressed, abs=0.1 * PRESS / 2e4)
        robot.wait(0.2)
        assert robot.state.pose[2] == pytest.approx(pressed, abs=0.05 * PRESS / 2e4)
        robot.move_to([0.03, 0.0, -0.9])
        robot.wait(0.2)  # what left the surface catches up
        assert robot.state.pose[2] == pytest.approx(-0.9, abs=1e-5)


@pytest.mark.parametrize(("height", "said"), [(-1.1, ""), (-0.5, "point 0 of the platform is .* mm inside the plane")])
def test_a_plane_that_a_machine_would_begin_in_is_refused(dynamics, limits, height: float, said: str) -> None:
    machine = SimulatedMachine(dynamics, limits)
    machine.surround(Surroundings([Plane((0.0, 0.0, height), (0.0, 0.0, 1.0))]))
    machine.configure()
    assert bool(machine.fault) == bool(said)
    assert re.search(said, machine.fault)
