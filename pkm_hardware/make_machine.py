# SPDX-License-Identifier: Apache-2.0
"""A machine by its kind and its file."""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np

from pkm_description.mechanism import Mechanism
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.driven_machine import DrivenMachine
from pkm_hardware.machine_file import Drives, MachineFile, check_kind, read_machine_file
from pkm_hardware.machine_kinds import KINDS, LOOPBACK
from pkm_kinematics import Kinematics

_LOOPBACK_TIMEOUT = 0.5  # s


def limits_of(mechanism: Mechanism, file: MachineFile | None = None) -> ActuatorLimits:
    """Limits of the actuators: the tightest of the description's, the file's and the device's."""
    limits = ActuatorLimits.of(mechanism)
    if file is None or not file.actuators:
        return limits
    file.of(mechanism)
    limits = file.lowered(limits)
    kind = KINDS[file.kind]
    if not kind.ends:
        return limits
    lower, upper = importlib.import_module(kind.module).ends(file, mechanism)
    return replace(limits, lower=np.maximum(limits.lower, lower), upper=np.minimum(limits.upper, upper))


def limits_by_file(mechanism: Mechanism, path: str) -> ActuatorLimits:
    """As `limits_of`, from the path of the file; an empty path means no file."""
    return limits_of(mechanism, read_machine_file(path)) if path else ActuatorLimits.of(mechanism)


def make_drives(kind: str, kinematics: Kinematics, file: MachineFile | None, simulate: bool = False) -> Drives:
    """Driver and scale by kind and file, as `check_kind` permits; `simulate`: a device in this process."""
    check_kind(kind, file)
    home = np.array(kinematics.inverse(kinematics.home).actuated, dtype=np.float64)
    drives: Drives = importlib.import_module(KINDS[kind].module).drives(file, kinematics.mechanism, home)
    if simulate and kind != LOOPBACK:
        drives.driver.simulate(drives.scale.to_device(home))
    return drives


def make_machine(kind: str, kinematics: Kinematics, file: MachineFile | None, simulate: bool = False) -> DrivenMachine:
    """An unconfigured machine behind the driver of `make_drives`, which raises the same errors."""
    drives = make_drives(kind, kinematics, file, simulate)
    timeout = _LOOPBACK_TIMEOUT if file is None else file.command_timeout
    return DrivenMachine(limits_of(kinematics.mechanism, file), drives, timeout, real=kind != LOOPBACK)
