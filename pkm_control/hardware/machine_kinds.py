# SPDX-License-Identifier: Apache-2.0
"""Which machines there are besides the simulated one: plain data, for whoever offers them to a user.

Drivers are imported when they are asked for: each needs its own libraries.
"""

from __future__ import annotations

from dataclasses import dataclass

SIMULATED, LOOPBACK = "simulated", "loopback"


@dataclass(frozen=True)
class Kind:
    """The module of a driver, whose `drives(file, mechanism, home)` makes it; what it needs, and how to get that.

    Where `ends` is set, the module's `ends(file, mechanism)` says how far the device lets the joints go.
    """

    module: str
    needs: tuple[str, ...] = ()
    remedy: str = ""
    ends: bool = False


KINDS = {
    LOOPBACK: Kind("pkm_control.hardware.drivers.loopback"),
    "servos": Kind("pkm_control.hardware.drivers.servos", ends=True),
    "dynamixel": Kind(
        "pkm_control.hardware.drivers.dynamixel", ("dynamixel_sdk", "serial"), "pip install dynamixel-sdk"
    ),
    "odrive": Kind("pkm_control.hardware.drivers.odrive"),
}
"""By the name that knob and file have for it."""
