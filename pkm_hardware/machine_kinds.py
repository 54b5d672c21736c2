# SPDX-License-Identifier: Apache-2.0
"""The kinds of machines as plain data: what a simulated one assumes of a real one, and the drivers of the others."""

from __future__ import annotations

from dataclasses import dataclass

SIMULATED, LOOPBACK = "simulated", "loopback"

# Assumed differences between a real machine and its description, and what plans leave for them
STEPS_PER_TURN = 2**17  # of an encoder, at the joint
LINEAR_STEP = 1e-6  # m
NOISE_STEPS = 0.5  # standard deviation of a position, in steps
VELOCITY_NOISE = 0.005, 2e-4  # standard deviation of a velocity [rad/s], [m/s]
DELAY = 1  # periods by which a command acts late
HEAVIER = 1.2  # mass and inertia of every link, over those of the description
SEED = 1  # of the noise
USUAL_RESERVE = 0.2  # of efforts and speeds: what plans leave to the controller of a machine that is as described
RESERVE = 0.4  # likewise, for heavier links, and for drives that close the loops: they make up for what they lag
FIRST_MOVE = 0.3  # of its planned speed: the first move of a machine that is not simulated
_ENOUGH = 100.0  # Hz: positions that come less often are so much coarser a path
NOTE = (
    f"realistic machine: encoders of {STEPS_PER_TURN} steps per turn or {1e6 * LINEAR_STEP:g} µm with noise, commands "
    f"{DELAY} period late, links {HEAVIER - 1.0:.0%} heavier than the controller believes; planned with a reserve of "
    f"{RESERVE:.0%}"
)


@dataclass(frozen=True)
class Kind:
    """The module of a driver, whose `drives(file, mechanism, home)` makes it; its libraries and how to get them.
    Where `ends` is set, the module's `ends(file, mechanism)` gives the joint limits of the device.
    """

    module: str
    needs: tuple[str, ...] = ()
    remedy: str = ""
    ends: bool = False


KINDS = {  # by the name that setting and file have for it
    LOOPBACK: Kind("pkm_hardware.drivers.loopback"),
    "servos": Kind("pkm_hardware.drivers.servos", ends=True),
    "dynamixel": Kind("pkm_hardware.drivers.dynamixel", ("dynamixel_sdk", "serial"), "pip install dynamixel-sdk"),
    "odrive": Kind("pkm_hardware.drivers.odrive"),
}


def reserve_of_drives(rate: float) -> float:
    """Fraction of efforts and speeds that plans leave to simulated drives with position commands at a rate [Hz]."""
    return 1.0 - (1.0 - RESERVE) * min(1.0, rate / _ENOUGH)


def payload_note(hidden: float) -> str:
    """The report's note on a payload `hidden` [kg] that the controller does not know."""
    if hidden > 0.0:
        return f"payload {hidden:g} kg, which the controller does not know of"
    return "no payload that the controller does not know of"
