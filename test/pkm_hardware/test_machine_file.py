# SPDX-License-Identifier: Apache-2.0
"""What a machine's file is refused for before anything is opened."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_description.corrections import Displacement, corrected
from pkm_description.mechanism import Mechanism
from pkm_hardware.machine_file import homing_of, read_machine_file, scale_of
from pkm_hardware.make_machine import limits_of
from pkm_kinematics import Kinematics
from pkm_runtime.errors import ConfigurationError


@pytest.mark.parametrize(
    ("key", "value", "right"), [("lower", -60, "-1.0472"), ("upper", 90, "1.5708"), ("velocity", 300, "5.23599")]
)
def test_degrees_are_refused_with_the_number_in_radians(
    key: str, value: float, right: str, hexapod: Kinematics, hexapod_file: Path
) -> None:
    text = hexapod_file.read_text("utf-8").replace("channel: 0,", f"channel: 0, {key}: {value},", 1)
    hexapod_file.write_text(text, "utf-8")
    with pytest.raises(ConfigurationError, match=rf"{key}.*in degrees.*, write {right}$"):
        limits_of(hexapod.mechanism, read_machine_file(hexapod_file))


@pytest.mark.parametrize(("robot", "offset", "right"), [("delta", 30, "0.523599"), ("linear_delta", -300, "-0.3")])
def test_an_offset_in_other_units_is_refused(robot: str, offset: float, right: str, tmp_path: Path) -> None:
    mechanism, path = load_mechanism(robot), tmp_path / "machine.yaml"
    rows = "".join(f"  {name}: {{id: 1, offset: {offset}}}\n" for name in mechanism.actuated_joints)
    path.write_text(f"machine: dynamixel\nrate: 100\nactuators:\n{rows}", "utf-8")
    sections = read_machine_file(path).of(mechanism)
    with pytest.raises(ConfigurationError, match=rf"offset.* write {right}$"):
        scale_of(sections, mechanism, [650.0] * 3, [2048.0] * 3)


def test_limits_that_are_wider_than_the_robots_change_nothing(hexapod: Kinematics, hexapod_file: Path) -> None:
    before = limits_of(hexapod.mechanism, read_machine_file(hexapod_file))
    text = hexapod_file.read_text("utf-8").replace("channel: 0,", "channel: 0, upper: 3.0,", 1)
    hexapod_file.write_text(text, "utf-8")
    after = limits_of(hexapod.mechanism, read_machine_file(hexapod_file))
    assert (after.upper == before.upper).all()


def test_a_corrected_gear_moves_the_joint_farther_for_the_same_counts(tmp_path: Path) -> None:
    """By the file of the drawing: the machine is told by the description."""
    drawn, path = load_mechanism("delta"), tmp_path / "machine.yaml"
    right = corrected(drawn, [Displacement("limb1_arm", "ratio", np.array([0.02, 0, 0, 0, 0, 0]))])
    again = load_mechanism(right.urdf)  # as nodes get it
    homing = "homing: {method: switch, direction: 1, speed: 0.1, at: -0.2}"
    lines = [f"  limb{k}_arm: {{id: {k}, offset: 0.3, {homing}}}" for k in (1, 2, 3)]
    path.write_text("\n".join(["machine: dynamixel", "rate: 100", "actuators:", *lines]), "utf-8")
    counts = np.array([100.0, 2000.0, 3000.0])

    def joints(mechanism: Mechanism) -> tuple[np.ndarray, list[float]]:
        sections = read_machine_file(path).of(mechanism)
        scale = scale_of(sections, mechanism, [650.0] * 3, [2048.0] * 3)
        assert scale.to_device(scale.to_joints(counts)) == pytest.approx(counts)
        return scale.to_joints(counts), [axis.at for axis in homing_of(sections, mechanism)]

    for mechanism in (right, again):
        (before, ends), (after, moved) = joints(drawn), joints(mechanism)
        assert after == pytest.approx(before * [1.02, 1.0, 1.0])
        assert moved == pytest.approx([1.02 * ends[0], *ends[1:]])
