# SPDX-License-Identifier: Apache-2.0
"""What a machine's file is refused for before anything is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkm_hardware.machine_file import read_machine_file
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


def test_limits_that_are_wider_than_the_robots_change_nothing(hexapod: Kinematics, hexapod_file: Path) -> None:
    before = limits_of(hexapod.mechanism, read_machine_file(hexapod_file))
    text = hexapod_file.read_text("utf-8").replace("channel: 0,", "channel: 0, upper: 3.0,", 1)
    hexapod_file.write_text(text, "utf-8")
    after = limits_of(hexapod.mechanism, read_machine_file(hexapod_file))
    assert (after.upper == before.upper).all()
