# SPDX-License-Identifier: Apache-2.0
"""The YAML file of one machine: its port, and for each actuator number, sign, offset, units and limits.

`docs/hardware.md` has every key. Errors name the element, the problem and the remedy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pkm_description.mechanism import Array, Mechanism
from pkm_description.urdf.unit_slips import FAST, FAST_SLIDE, LARGE, looks_like_degrees
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.drivers.driver import Driver
from pkm_hardware.homing import METHODS, AxisHoming
from pkm_hardware.machine_kinds import KINDS, LOOPBACK
from pkm_runtime.errors import ConfigurationError
from pkm_runtime.optional import need
from pkm_runtime.yaml_section import Section, read_yaml

_TURN = 2.0 * math.pi

FASTER = 1.2  # times the actuator's largest speed: with less, a drive that lags could not catch up


@dataclass(frozen=True, eq=False)
class Scale:
    """device = zero + units * (joint - offset), each (n_actuated,); `units` have the sign of the direction."""

    units: Array
    offset: Array
    zero: Array

    @staticmethod
    def one_to_one(n: int) -> Scale:
        """The scale of a device that speaks the units of the joints."""
        return Scale(np.ones(n), np.zeros(n), np.zeros(n))

    def to_device(self, joints: Array) -> Array:
        """The device's positions (n_actuated,) in its units for joint positions (n_actuated,) [rad or m]."""
        return np.asarray(self.zero + self.units * (joints - self.offset))

    def to_joints(self, device: Array) -> Array:
        """Joint positions (n_actuated,) [rad or m] for the device's (n_actuated,) in its units."""
        return np.asarray(self.offset + (device - self.zero) / self.units)


@dataclass(frozen=True, eq=False)
class Drives:
    """A machine's driver, its scale, its home position (n_actuated,) [rad or m] and the axes that need homing.
    For messages, `axes` names each actuator as the device does and `unit` is what the device counts in, where known.
    """

    driver: Driver
    scale: Scale
    home: Array
    homing: tuple[AxisHoming, ...] = ()
    axes: tuple[str, ...] = ()
    unit: str = ""


@dataclass(frozen=True, eq=False)
class MachineFile:
    """A file as read, common to every kind of machine; `section` and `actuators` go to the driver.
    `limits` has what the file states of each actuator: lower, upper, velocity, acceleration; infinite where unstated.
    """

    source: str
    kind: str
    rate: float  # Hz, the highest
    command_timeout: float  # s
    section: Section
    actuators: Mapping[str, Section]
    limits: Mapping[str, tuple[float, float, float, float]]

    def of(self, mechanism: Mechanism) -> tuple[Section, ...]:
        """The section of each actuator, in the robot's order; ConfigurationError: one lacks, or not the robot's."""
        names = mechanism.actuated_joints
        for name in names:
            if name not in self.actuators:
                problem = f"'{name}' is missing"
                raise ConfigurationError(self.source, "actuators", problem, "every actuator needs a section")
        for name in self.actuators:
            if name not in names:
                remedy = f"this robot has {', '.join(names)}"
                raise ConfigurationError(self.source, f"actuators.{name}", "the robot has no such actuator", remedy)
        return tuple(self.actuators[name] for name in names)

    def lowered(self, limits: ActuatorLimits) -> ActuatorLimits:
        """The tighter of the description's limits and the file's; ConfigurationError for a wider one in wrong units."""
        if not self.limits:
            return limits
        lower, upper, velocity, acceleration = np.array([self.limits[name] for name in limits.names]).T
        for k, name in enumerate(limits.names):
            turns = limits.length_units[k] == "rad"
            if lower[k] < limits.lower[k]:
                _require_si(self.source, f"actuators.{name}.lower", lower[k], turns)
            if upper[k] > limits.upper[k]:
                _require_si(self.source, f"actuators.{name}.upper", upper[k], turns)
            if velocity[k] > limits.velocity[k]:
                _require_si(self.source, f"actuators.{name}.velocity", velocity[k], turns)
        return replace(
            limits,
            lower=np.maximum(limits.lower, lower),
            upper=np.minimum(limits.upper, upper),
            velocity=np.minimum(limits.velocity, velocity),
            acceleration=np.minimum(limits.acceleration, acceleration),
        )


def _require_si(source: str, element: str, value: float, turns: bool) -> None:
    """Refuse a number outside the description's limits that makes sense in degrees or millimetres, not as it stands."""
    if not math.isfinite(value):
        return
    per_time = "/s" if element.endswith("velocity") else ""
    if turns:
        slips = abs(value) > FAST if per_time else looks_like_degrees(value)
        unit, right, factor = "degrees", "rad", math.pi / 180.0
    else:
        slips = abs(value) > (FAST_SLIDE if per_time else LARGE)
        unit, right, factor = "mm", "m", 1e-3
    if slips:
        problem = f"{value:g} {right}{per_time} is beyond what the robot's description allows"
        remedy = f"give it in {right}{per_time}: if it is in {unit}{per_time}, write {value * factor:.6g}"
        raise ConfigurationError(source, element, problem, remedy)


def read_machine_file(path: str | Path) -> MachineFile:
    """Read the part of a machine's file that every kind has (ConfigurationError if unusable); drivers read the rest."""
    source, values = read_yaml(path)
    top = Section(source, "", values)
    kind = top.text("machine", choices=tuple(KINDS))
    rate = top.number("rate", bounds=(1.0, 10000.0))
    timeout = top.number("command_timeout", 0.5, (0.001, 60.0))
    common = top.mapping("defaults")
    actuators = {
        str(name): Section(source, f"actuators.{name}", {} if section is None else section, common)
        for name, section in top.mapping("actuators").items()
    }
    limits = {name: _limits_of(section) for name, section in actuators.items()}
    return MachineFile(source, kind, rate, timeout, top, actuators, limits)


def check_kind(kind: str, file: MachineFile | None) -> None:
    """Refuse a kind with a wrong file (ConfigurationError), or without library; a loopback takes any."""
    if file is None and kind != LOOPBACK:
        remedy = "docs/hardware.md shows how to write it"
        raise ConfigurationError("hardware_file", "", f"hardware '{kind}' needs one", remedy)
    if file is not None and kind not in (file.kind, LOOPBACK):
        raise ConfigurationError(file.source, "machine", f"is '{file.kind}', not '{kind}'", f"ask for {file.kind}")
    need(f"hardware '{kind}'", KINDS[kind].needs, KINDS[kind].remedy)


def _limits_of(section: Section) -> tuple[float, float, float, float]:
    inf = math.inf
    lower, upper = section.number("lower", -inf), section.number("upper", inf)
    if not lower < upper:
        raise section.wrong("lower", f"{lower:g} is not below upper, {upper:g}", "give the range as lower < upper")
    velocity, acceleration = (section.number(key, inf, (1e-9, 1e9)) for key in ("velocity", "acceleration"))
    return lower, upper, velocity, acceleration


def scale_of(sections: Sequence[Section], mechanism: Mechanism, units: Sequence[float], zero: Sequence[float]) -> Scale:
    """The scale of a device by `sign` and `offset` (the joint's position at the device's zero) of the sections; `units`
    of the device for each rad or m of the joint are positive, `zero` is in its units. All are those of the drawing: the
    corrected gear of a calibrated machine moves its joint farther.
    """
    signs, farther = [section.sign("sign") for section in sections], _gear_corrections(mechanism)
    offsets, limits = [section.number("offset", 0.0) for section in sections], ActuatorLimits.of(mechanism)
    for k, (section, offset) in enumerate(zip(sections, offsets, strict=True)):
        if not limits.lower[k] <= offset <= limits.upper[k]:
            _require_si(section.source, f"{section.element}.offset", offset, limits.length_units[k] == "rad")
    return Scale(np.array(units) * signs / farther, np.array(offsets) * farther, np.array(zero, dtype=np.float64))


def _gear_corrections(mechanism: Mechanism) -> Array:
    drives = [mechanism.joint_named[name].drive for name in mechanism.actuated_joints]
    return np.array([1.0 if drive is None else drive.gear_correction for drive in drives])


def homing_of(sections: Sequence[Section], mechanism: Mechanism) -> tuple[AxisHoming, ...]:
    """Homing of the actuators that have a section `homing`, in the order of their key `order`."""
    axes, farther = list[tuple[int, AxisHoming]](), _gear_corrections(mechanism)
    for i, actuator in enumerate(sections):
        values = actuator.mapping("homing")
        if not values:
            continue
        one = Section(actuator.source, f"{actuator.element}.homing", values)
        axis = AxisHoming(
            actuator=i,
            name=actuator.element.rpartition(".")[2],
            method=one.text("method", choices=METHODS),
            direction=one.sign("direction", None),
            speed=one.number("speed", bounds=(1e-6, 100.0)),
            at=one.number("at") * float(farther[i]),
            travel=one.number("travel", _TURN, (1e-6, 1e6)),
            back_off=one.number("back_off", 0.05, (0.0, 1e3)),
            lag=one.number("lag", 0.1, (1e-6, 1e3)),
            load=one.number("load", math.inf, (0.0, 1e9)),
        )
        order = one.whole("order", i, (0, 1000))
        one.finish()
        axes.append((order, axis))
    return tuple(axis for _, axis in sorted(axes, key=lambda pair: pair[0]))


@dataclass(frozen=True, eq=False)
class DeviceLimits:
    """Of each actuator (n_actuated,), in the device's units, infinite where nothing limits it."""

    lowest: Array
    highest: Array
    speed: Array
    current: Array


def device_limits(file: MachineFile, mechanism: Mechanism, scale: Scale, homing: Sequence[AxisHoming]) -> DeviceLimits:
    """The limits of the description and the file in the device's units; `current` is the file's alone. Ranges of axes
    with `homing` are infinite: the device does not know their position. ConfigurationError: a current makes no sense.
    """
    limits = file.lowered(ActuatorLimits.of(mechanism))
    ends = np.stack([scale.to_device(limits.lower), scale.to_device(limits.upper)])
    lowest, highest = ends.min(axis=0), ends.max(axis=0)
    for axis in homing:
        lowest[axis.actuator], highest[axis.actuator] = -np.inf, np.inf
    current = [section.number("current", np.inf, (1e-3, 1e5)) for section in file.of(mechanism)]
    return DeviceLimits(lowest, highest, limits.velocity * np.abs(scale.units), np.array(current))
