# SPDX-License-Identifier: Apache-2.0
"""Machines behind the contract of ros2_control's `SystemInterface`: simulated ones, and those people have."""

from pkm_control.hardware.machine import Machine
from pkm_control.hardware.machine_state import CommandMode, Lifecycle, MachineState
from pkm_control.hardware.simulated.encoder import Encoder
from pkm_control.hardware.simulated.simulated_machine import SimulatedMachine

__all__ = ["CommandMode", "Encoder", "Lifecycle", "Machine", "MachineState", "SimulatedMachine"]
