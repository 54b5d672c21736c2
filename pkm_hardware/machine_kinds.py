# SPDX-License-Identifier: Apache-2.0
"""The kinds of machines besides the simulated one, as plain data: drivers and libraries are imported on demand."""

from __future__ import annotations

from dataclasses import dataclass

SIMULATED, LOOPBACK = "simulated", "loopback"


@dataclass(frozen=True)
class Kind:
    """The module of a driver, whose `drives(file, mechanism, home)` makes it; its libraries and how to get them.
    Where `ends` is set, the module's `ends(file, mechanism)` gives the joint limits of the device.
    """

    module: str
    needs: tuple[str, ...] = ()
    remedy: str = ""
    ends: bool = False


KINDS = {
    LOOPBACK: Kind("pkm_hardware.drivers.loopback"),
    "servos": Kind("pkm_hardware.drivers.servos", ends=True),
    "dynamixel": Kind("pkm_hardware.drivers.dynamixel", ("dynamixel_sdk", "serial"), "pip install dynamixel-sdk"),
    "odrive": Kind("pkm_hardware.drivers.odrive"),
}
"""By the name that setting and file have for it."""
