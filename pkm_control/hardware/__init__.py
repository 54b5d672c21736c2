# SPDX-License-Identifier: Apache-2.0
"""Machines behind the contract of ros2_control's `SystemInterface`; today the simulated one."""

from pkm_control.hardware.encoder import Encoder
from pkm_control.hardware.machine_state import CommandMode, Lifecycle, MachineState
from pkm_control.hardware.simulated_machine import SimulatedMachine

__all__ = ["CommandMode", "Encoder", "Lifecycle", "MachineState", "SimulatedMachine"]
