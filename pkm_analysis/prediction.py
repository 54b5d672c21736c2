# SPDX-License-Identifier: Apache-2.0
"""What a motion requires of every joint, against the limits in the description; which motors and gears provide it.

The motion is linear between its samples: integrals follow the trapezoidal rule, and peaks are those of the samples. A
motor's torque accelerates its rotor and the gear, and carries the joint's load through the ratio: divided by the gear's
efficiency where the motor drives, times it where the load does. Tables of motors and gears are CSV with units in the
header, as in `continuous [N m]`.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.plottable import Plottable, Table
from pkm_analysis.requirements.grammar import SCALES, familiar, shown
from pkm_description.mechanism import Array, Inertial
from pkm_dynamics import Dynamics, Efforts
from pkm_dynamics.distribution import Distribution
from pkm_kinematics import Kinematics
from pkm_kinematics.configuration import Motion
from pkm_kinematics.status import closes

_TORQUE = {**SCALES["N m"], "N": 1.0}  # of linear motors, the unit of theirs
_SPEED = {**SCALES["rad/s"], "m/s": 1.0}
_INERTIA = {**SCALES["kg m^2"], "kg": 1.0}
_PURE = {"": 1.0, "1": 1.0}
_MOTOR = {"continuous": _TORQUE, "peak": _TORQUE, "speed": _SPEED, "inertia": _INERTIA}
_GEAR = {"ratio": {**_PURE, "rad/m": 1.0}, "efficiency": SCALES["1"], "inertia": _INERTIA}
_GEAR |= {"peak": _TORQUE, "speed": _SPEED}
_ROUNDING = 1e-9  # of a limit: shared efforts of cables stand on the end of their range
_HEAD = re.compile(r"\s*(?P<name>[^\[\]]*?)\s*(?:\[(?P<unit>[^\[\]]*)\])?\s*")
EFFORTS = {"rad": "N m", "m": "N"}  # units of efforts by those of positions


@dataclass(frozen=True)
class Exceeded:
    """A limit that a motion exceeds."""

    joint: str
    what: str  # "position", "velocity" or "effort"
    value: float
    limit: float
    time: float  # s, of the peak
    unit: str = "1"

    @property
    def in_words(self) -> str:
        """The value and the limit."""
        return f"{shown(self.value, self.unit)} beyond {shown(self.limit, self.unit)}"


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Plottable):
    """What a motion requires of the actuators (m) at its samples (n), and of all joints."""

    _elsewhere: ClassVar[dict[str, str]] = {
        "torque torques": "effort has what the actuators exert",
        "ok success limits": "exceeded lists the limits that the motion exceeds",
    }

    _picture: ClassVar[str] = "performance_pictures.prediction_picture"

    robot: str  # its name
    times: Array  # (n,) s
    names: tuple[str, ...]  # of the actuators
    units: tuple[str, ...]  # "rad" or "m", of their positions
    velocity: Array  # (n, m) rad/s, m/s
    acceleration: Array  # (n, m)
    effort: Array  # (n, m) N m, N: what the actuators exert on their joints, rotors accelerated
    load: Array  # (n, m) the same without the rotors of the description
    holding: Array  # (m,) N m, N: what holds the last pose, at rest there
    effort_limits: Array  # (m,)
    velocity_limits: Array  # (m,)
    exceeded: tuple[Exceeded, ...]  # of all joints, the passive ones' positions too
    joint_names: tuple[str, ...]  # all limb joints, then loops
    force: Array  # (j,) N: largest force that each transmits
    moment: Array  # (j,) N m
    base: Array  # (2,) N and N m: largest force and moment on the ground
    motion: str = ""  # its name
    payload: float = 0.0  # kg

    @property
    def duration(self) -> float:
        """Duration [s] of the motion."""
        return float(self.times[-1] - self.times[0])

    @property
    def power(self) -> Array:
        """Mechanical power (n, m) [W] of each actuator; negative where it brakes."""
        return np.asarray(self.effort * self.velocity)

    @property
    def peak_effort(self) -> Array:
        """Largest absolute effort (m,) [N m, N]."""
        return np.asarray(np.abs(self.effort).max(axis=0))

    @property
    def rms_effort(self) -> Array:
        """Root mean square effort (m,) [N m, N], which heats a motor."""
        return self.rms(self.effort)

    @property
    def peak_velocity(self) -> Array:
        """Largest absolute velocity (m,) [rad/s, m/s]."""
        return np.asarray(np.abs(self.velocity).max(axis=0))

    @property
    def rms_velocity(self) -> Array:
        """Root mean square velocity (m,) [rad/s, m/s]."""
        return self.rms(self.velocity)

    @property
    def peak_power(self) -> Array:
        """Largest power (m,) [W] that each actuator delivers."""
        return np.asarray(self.power.max(axis=0))

    @property
    def peak_total_power(self) -> float:
        """Largest power [W] of all actuators together: what the supply must deliver, without losses."""
        return float(self.power.sum(axis=1).max())

    @cached_property
    def work_given(self) -> Array:
        """Energy (m,) [J] that each actuator delivers over the motion, without what it takes back."""
        return self.integral(np.maximum(self.power, 0.0))

    @cached_property
    def work_taken(self) -> Array:
        """Energy (m,) [J] that each actuator takes back, to be dissipated or fed back."""
        return self.integral(np.maximum(-self.power, 0.0))

    @property
    def energy(self) -> float:
        """Energy [J] that the actuators deliver over the motion less what they take back."""
        return float((self.work_given - self.work_taken).sum())

    @property
    def effort_use(self) -> Array:
        """Peak effort relative to its limit (m,)."""
        return np.asarray(self.peak_effort / self.effort_limits)

    @property
    def velocity_use(self) -> Array:
        """Peak speed relative to its limit (m,)."""
        return np.asarray(self.peak_velocity / self.velocity_limits)

    def duty(self, continuous: ArrayLike, rest: float = 0.0) -> Array:
        """Thermal duty (m,): mean square of the effort by that of the continuous one; above 1 a motor overheats.

        `continuous` are efforts that each actuator can exert permanently (m,), or one for all [N m, N]; in a `rest` [s]
        after each run the actuators hold the last pose.
        """
        squares = self.rms_effort**2 * self.duration + self.holding**2 * rest
        return np.asarray(squares / (self.duration + rest) / np.asarray(continuous, dtype=float) ** 2)

    def integral(self, values: Array) -> Array:
        """Integral over the motion of values (n, ...)."""
        return np.asarray(np.trapezoid(values, self.times, axis=0))

    def rms(self, values: Array) -> Array:
        """Root mean square over the motion of values (n, ...) that are linear between samples."""
        a, b = values[:-1], values[1:]
        squares = (a * a + a * b + b * b) / 3.0
        steps = np.diff(self.times)
        return np.asarray(np.sqrt(np.einsum("n,n...->...", steps, squares) / steps.sum()))

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        columns = {
            "peak_effort": self.peak_effort,
            "rms_effort": self.rms_effort,
            "holding_effort": self.holding,
            "effort_limit": self.effort_limits,
            "peak_speed": self.peak_velocity,
            "rms_speed": self.rms_velocity,
            "speed_limit": self.velocity_limits,
            "peak_power": self.peak_power,
            "work_given": self.work_given,
            "work_taken_back": self.work_taken,
        }
        loads = zip(self.joint_names, self.force.tolist(), self.moment.tolist(), strict=True)
        return {
            **self._plain("robot", "motion", "payload", "duration", "energy", "peak_total_power"),
            "drives": {
                name: {"unit": self.units[k], **{key: float(values[k]) for key, values in columns.items()}}
                for k, name in enumerate(self.names)
            },
            "joints": {name: {"force": force, "moment": moment} for name, force, moment in loads},
            "base": {"force": float(self.base[0]), "moment": float(self.base[1])},
            "exceeded": [asdict(one) for one in self.exceeded],
        }

    def _summary(self) -> str:
        use = int(np.nanargmax(np.maximum(self.effort_use, self.velocity_use)))
        limits = f"{len(self.exceeded)} limits exceeded" if self.exceeded else "within all limits of the description"
        motion = f"{self.motion}, " * bool(self.motion) + f"payload {self.payload:.4g} kg, " * bool(self.payload)
        return f"{motion}{self.duration:.4g} s, {limits}, {self.names[use]} is loaded most"

    def _details(self) -> list[str]:
        lines = [f"{e.joint}: {e.what} {e.in_words} at {e.time:.4g} s" for e in self.exceeded]
        for k, name in enumerate(self.names):
            effort = f"effort peak {shown(self.peak_effort[k], EFFORTS[self.units[k]])}, RMS {self.rms_effort[k]:.4g}"
            speed = f"speed peak {shown(self.peak_velocity[k], f'{self.units[k]}/s')}"
            work = f"work given {self.work_given[k]:.4g} J, taken back {self.work_taken[k]:.4g} J"
            lines.append(f"{name}: {effort}; {speed}; power peak {self.peak_power[k]:.4g} W; {work}")
        return [*lines, f"all together: peak {self.peak_total_power:.4g} W, energy {self.energy:.4g} J"]

    @property
    def tables(self) -> list[Table]:
        """Drives and joints, for the page."""
        efforts = sorted({EFFORTS[unit] for unit in self.units})
        speeds, factors = zip(*(familiar(f"{unit}/s") for unit in self.units), strict=True)
        effort, speed = f"[{' or '.join(efforts)}]", f"[{' or '.join(sorted(set(speeds)))}]"
        head = ["drive", *(f"{word} effort {effort}" for word in ("peak", "RMS", "holding", "limit of"))]
        head += [*(f"{word} speed {speed}" for word in ("peak", "limit of")), "peak power [W]", "work given, taken [J]"]
        columns = [self.peak_effort, self.rms_effort, self.holding, self.effort_limits]
        columns += [np.array(factors) * one for one in (self.peak_velocity, self.velocity_limits)]
        columns += [self.peak_power]
        rows = [
            [name, *(f"{one[k]:.4g}" for one in columns), f"{self.work_given[k]:.4g}, {self.work_taken[k]:.4g}"]
            for k, name in enumerate(self.names)
        ]
        loads = zip((*self.joint_names, "base"), [*self.force, self.base[0]], [*self.moment, self.base[1]], strict=True)
        joints = [
            [name, f"{force:.4g}", f"{moment + 0.0:.4g}" if moment > 1e-9 else "0"] for name, force, moment in loads
        ]
        transmitted = Table("What joints transmit at most", ["joint", "force [N]", "moment [N m]"], joints)
        return [Table("What drives are asked for", head, rows), transmitted]


def predict(
    dynamics: Dynamics,
    times: ArrayLike,
    poses: ArrayLike,
    twists: ArrayLike,
    accelerations: ArrayLike,
    *,
    payload: Inertial | None = None,
    wrench: ArrayLike | None = None,
    distribution: Distribution | None = None,
    mode: int | None = None,
    name: str = "",
) -> Prediction:
    """What a motion requires of a robot.

    Args:
        times: of the samples (n,) [s], increasing.
        poses: (n, 7), or task coordinates (n, c).
        twists: (n, 6) [m/s, rad/s], as `accelerations` [m/s^2, rad/s^2].
        wrench: additional external wrench on the platform (n, 6), about its origin, base axes [N, N m].

    AnalysisError: fewer than two samples, times that do not increase, or a sample out of reach or without efforts.
    """
    k = dynamics.kinematics
    at = np.asarray(times, dtype=float)
    found = k.at(poses, mode=mode).motion(twists, accelerations)
    _require_reached(at, found)
    if distribution is None and len(k.actuated_names) > k.engine.freedoms:
        shared = partial(dynamics.inverse, found.at, twists, accelerations, wrench, payload=payload)
        distribution = _within_limits(shared)
    loads = dynamics.reactions(found.at, twists, accelerations, wrench, payload=payload, distribution=distribution)
    inverse = partial(dynamics.inverse, payload=payload, distribution=distribution)
    efforts = inverse(found.at, twists, accelerations, wrench)
    _require_all(at, efforts, "give it more time or less load, or lead it elsewhere")
    effort = efforts.effort
    # the last sample may still move or decelerate; in a rest after it nothing does
    still, pressed = np.zeros(6), None if wrench is None else np.broadcast_to(wrench, (len(at), 6))[-1]
    holding = inverse(found.at.rows(np.array([len(at) - 1]), ()), still, still, pressed).effort
    armature, speeds, (least, most) = _drives(k)
    (force, moment), base = _forces_and_moments(loads.wrench), np.array(_forces_and_moments(loads.base))
    return Prediction(
        robot=k.mechanism.name,
        times=at,
        names=k.actuated_names,
        units=tuple(k.engine.names.units[name] for name in k.actuated_names),
        velocity=found.actuated_velocities,
        acceleration=found.actuated_accelerations,
        effort=effort,
        load=effort - armature * found.actuated_accelerations,
        holding=holding,
        velocity_limits=speeds,
        effort_limits=np.maximum(np.abs(least), np.abs(most)),
        exceeded=_exceeded(k, found, effort, at),
        joint_names=loads.names,
        force=force,
        moment=moment,
        base=base,
        motion=name,
        payload=0.0 if payload is None else payload.mass,
    )


def _within_limits(inverse: Callable[..., Efforts]) -> Distribution | None:
    # as controllers share, where that can be
    within = Distribution(bounds="limits")
    return within if bool(np.all(closes(inverse(distribution=within).status))) else None


def _drives(k: Kinematics) -> tuple[Array, Array, tuple[Array, Array]]:
    joints = [k.mechanism.joint_named[name] for name in k.actuated_names]
    armature = np.array([0.0 if joint.drive is None else joint.drive.armature for joint in joints])
    return armature, np.array([joint.limits.velocity for joint in joints]), k.mechanism.effort_range


def _exceeded(k: Kinematics, found: Motion, effort: Array, times: Array) -> tuple[Exceeded, ...]:
    units, names = k.engine.names.units, k.actuated_names
    _, most, efforts = _drives(k)
    return (
        *_beyond("position", units, k.joint_names, found.joints, k.engine.ranges.limits, times),
        *_beyond("velocity", units, names, found.actuated_velocities, (-most, most), times),
        *_beyond("effort", units, names, effort, efforts, times),
    )


def _require_reached(times: Array, found: Motion) -> None:
    if times.ndim != 1 or len(times) < 2 or not np.isfinite(times).all() or (np.diff(times) <= 0.0).any():
        raise AnalysisError("times of the motion", "they are not two or more that increase", "give one for each sample")
    if np.shape(found.status) != times.shape:
        problem = f"{np.size(found.status)} samples go with {len(times)} times"
        raise AnalysisError("motion", problem, "give as many of both")
    _require_all(times, found, "keep it inside the workspace")


def _require_all(times: Array, found: Motion | Efforts, remedy: str) -> None:
    answered = np.asarray(closes(found.status))
    if not answered.all():
        first = int(np.argmin(answered))
        raise AnalysisError("motion", f"at {times[first]:.4g} s: {found.reason(first)}", remedy)


def _forces_and_moments(wrenches: Array) -> tuple[Array, Array]:
    largest = [np.linalg.norm(wrenches[..., part], axis=-1).max(axis=0) for part in (slice(0, 3), slice(3, 6))]
    return largest[0], largest[1]


def _beyond(
    what: str, units: dict[str, str], names: tuple[str, ...], values: Array, limits: tuple[Array, Array], at: Array
) -> list[Exceeded]:
    found = []
    for k, name in enumerate(names):
        lower, upper = limits[0][k], limits[1][k]
        over = np.maximum(values[:, k] - upper, lower - values[:, k])
        worst = int(np.argmax(over))
        value = float(values[worst, k])
        limit = float(upper if value > upper else lower)
        if over[worst] > _ROUNDING * abs(limit):
            unit = {"position": units[name], "velocity": f"{units[name]}/s", "effort": EFFORTS[units[name]]}[what]
            found.append(Exceeded(name, what, value, limit, float(at[worst]), unit))
    return found


@dataclass(frozen=True)
class Motor:
    """A motor of a catalogue; for a linear one, forces, speeds and masses."""

    name: str
    continuous: float  # N m, permanent
    peak: float  # N m
    speed: float  # rad/s, at most
    inertia: float  # kg m^2, of the rotor
    slides: bool | None = None  # a linear motor; unknown: not compared with the joint

    def __post_init__(self) -> None:
        if not (0.0 < self.continuous <= self.peak and self.speed > 0.0 and self.inertia >= 0.0):
            about = f"motor '{self.name}'"
            raise AnalysisError(about, "its numbers are not valid", "0 < continuous <= peak, speed > 0")


@dataclass(frozen=True)
class Gear:
    """A gear, a belt, or a screw."""

    name: str
    ratio: float  # motor speed by joint speed; of a screw, 2 pi by its lead [rad/m]
    efficiency: float = 1.0
    inertia: float = 0.0  # kg m^2, felt by the motor
    peak: float = np.inf  # N m or N, at the joint
    speed: float = np.inf  # rad/s, of the motor
    screw: bool | None = None  # its ratio is in rad/m; unknown: not compared with the joint

    def __post_init__(self) -> None:
        if not (self.ratio > 0.0 and 0.0 < self.efficiency <= 1.0 and self.inertia >= 0.0 and self.peak > 0.0):
            raise AnalysisError(f"gear '{self.name}'", "its numbers are not valid", "ratio > 0, 0 < efficiency <= 1")


DIRECT = Gear("direct", 1.0, screw=False)


@dataclass(frozen=True)
class Choice:
    """A motor and a gear on an actuated joint, and the share of each of their limits that the motion uses."""

    joint: str
    motor: Motor
    gear: Gear
    uses: dict[str, float]  # by name of the limit; above 1 it is exceeded
    losses: float  # J in the gear, over the motion
    unsuited: str = ""  # why the pair does not move such a joint at all

    @property
    def ok(self) -> bool:
        """Whether no limit is exceeded."""
        return not self.unsuited and all(use <= 1.0 for use in self.uses.values())

    @property
    def reason(self) -> str:
        """Why it fails: the exceeded limits, the worst first; otherwise the limit it is nearest to."""
        if self.unsuited:
            return self.unsuited
        worst = sorted(self.uses.items(), key=lambda item: -item[1])
        if self.ok:
            return f"{worst[0][0]} is used to {100.0 * worst[0][1]:.0f} %"
        return "; ".join(f"{name} exceeded by {100.0 * (use - 1.0):.0f} %" for name, use in worst if use > 1.0)

    @property
    def most(self) -> float:
        """The largest share of a limit."""
        return math.inf if self.unsuited else max(self.uses.values())

    def __str__(self) -> str:
        return f"{self.joint}: {self.pair} {self.verdict}: {self.reason}"

    @property
    def pair(self) -> str:
        """Motor and gear."""
        return f"{self.motor.name} with {self.gear.name}"

    @property
    def verdict(self) -> str:
        """Whether it fits."""
        return "fits" if self.ok else "fails"


class Drives(Plottable, list["Choice"]):
    """Choices of a motor and a gear for each actuated joint, joint by joint: the least loaded first."""

    _picture: ClassVar[str] = "performance_pictures.drives_picture"

    @property
    def by_pair(self) -> dict[str, list[Choice]]:
        """Choices on all joints by motor and gear, those of the least load on any joint first."""
        found: dict[str, list[Choice]] = {}
        for one in self:
            found.setdefault(one.pair, []).append(one)
        return dict(sorted(found.items(), key=lambda item: max(one.most for one in item[1])))

    @property
    def common(self) -> list[str]:
        """Pairs that fit all joints, the least loaded first."""
        return [pair for pair, each in self.by_pair.items() if all(one.ok for one in each)]

    def _summary(self) -> str:
        if self.common:
            return f"{self.common[0]} fits all drives; {len(self.common)} of {len(self.by_pair)} pairs do"
        return f"none of {len(self.by_pair)} pairs of motor and gear fits all drives"

    def _details(self) -> list[str]:
        lines = []
        for joint in dict.fromkeys(one.joint for one in self):
            own = [one for one in self if one.joint == joint]
            lines.append(f"{joint}: {sum(one.ok for one in own)} of {len(own)} pairs of motor and gear fit")
            lines += [f"  {one.pair}: {one.verdict}, {one.reason}" for one in own]
        return lines

    @property
    def tables(self) -> list[Table]:
        """Every pair on every joint, for the page."""
        rows = [[one.joint, one.motor.name, one.gear.name, one.verdict, one.reason] for one in self]
        return [Table("Motors and gears on each drive", ["drive", "motor", "gear", "verdict", "why"], rows)]

    def to_dict(self) -> dict[str, Any]:
        """The choices, for JSON."""
        each = [
            {**asdict(one), "motor": one.motor.name, "gear": one.gear.name, "fits": one.ok, "reason": one.reason}
            for one in self
        ]
        return {"choices": each, "common_choices": self.common}


def choose_drives(
    prediction: Prediction, motors: Iterable[Motor], gears: Iterable[Gear] = (DIRECT,), rest: float = 0.0
) -> Drives:
    """Every motor with every gear on every actuated joint, joint by joint: fitting ones first, the least loaded first.

    In a `rest` [s] after each run of the motion the motors hold the last pose.
    """
    catalogue, ratios = list(motors), list(gears)
    found = Drives()
    for k, joint in enumerate(prediction.names):
        table = [_choice(prediction, k, joint, motor, gear, rest) for motor in catalogue for gear in ratios]
        found += sorted(table, key=lambda choice: choice.most)
    return found


def _choice(p: Prediction, k: int, joint: str, motor: Motor, gear: Gear, rest: float) -> Choice:
    torque, lost = _motor_torque(p, k, motor, gear)
    held = abs(p.holding[k]) * gear.efficiency / gear.ratio  # friction in the gear helps to hold
    squares = p.rms(torque) ** 2 * p.duration + held**2 * rest
    speed = gear.ratio * np.abs(p.velocity[:, k]).max()
    uses = {
        "peak torque": float(np.abs(torque).max() / motor.peak),
        "continuous torque": float(np.sqrt(squares / (p.duration + rest)) / motor.continuous),
        "speed of the motor": float(speed / motor.speed),
        "peak torque of the gear": float(np.abs(p.load[:, k]).max() / gear.peak),
        "speed of the gear": float(speed / gear.speed),
    }
    return Choice(joint, motor, gear, uses, float(p.integral(lost)), _unsuited(p.units[k] == "m", motor, gear))


def _unsuited(slides: bool, motor: Motor, gear: Gear) -> str:
    if motor.slides is None or gear.screw is None:
        return ""
    if gear.screw:
        return (
            "" if slides and not motor.slides else "a ratio in rad/m is of a motor that turns and a drive that slides"
        )
    if motor.slides == slides:
        return ""
    remedy = "" if motor.slides else ": a gear needs its ratio in rad/m, 2 pi by the lead"
    return f"the motor {'slides' if motor.slides else 'turns'}, the drive {'slides' if slides else 'turns'}{remedy}"


def _motor_torque(p: Prediction, k: int, motor: Motor, gear: Gear) -> tuple[Array, Array]:
    load, speed = p.load[:, k], p.velocity[:, k]
    through = np.where(load * speed >= 0.0, load / gear.efficiency, load * gear.efficiency) / gear.ratio
    accelerating = (motor.inertia + gear.inertia) * gear.ratio * p.acceleration[:, k]
    return through + accelerating, (through * gear.ratio - load) * speed


Entry = TypeVar("Entry", Motor, Gear)


def read_motors(path: str | Path) -> list[Motor]:
    """Motors of a table with columns name, continuous, peak, speed, inertia; `AnalysisError` names line and column."""
    return _read(Path(path), Motor, _MOTOR, tuple(_MOTOR), _slides)


def read_gears(path: str | Path) -> list[Gear]:
    """Gears: name, ratio, optionally efficiency, inertia, peak, speed; `AnalysisError` names line and column."""
    return _read(Path(path), Gear, _GEAR, ("ratio",), lambda units: {"screw": units["ratio"] == "rad/m"})


def _slides(units: dict[str, str]) -> dict[str, bool]:
    linear = {units[name] in ("N", "m/s", "kg") for name in _MOTOR}
    if len(linear) > 1:
        raise AnalysisError("motors", "some units are of motors that turn, some of motors that slide", "write one kind")
    return {"slides": linear.pop()}


def _read(
    path: Path,
    kind: Callable[..., Entry],
    columns: dict[str, dict[str, float]],
    needed: tuple[str, ...],
    more: Callable[[dict[str, str]], dict[str, bool]],
) -> list[Entry]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise AnalysisError(f"table {path}", str(error), "give a CSV file") from error
    rows = [(k, row) for k, row in enumerate(csv.reader(lines), 1) if any(row) and not row[0].lstrip().startswith("#")]
    if len(rows) < 2:
        remedy = f"write a header, name, {', '.join(columns)}, and rows"
        raise AnalysisError(f"table {path}", "it has no entries", remedy)
    factors = [_column(path.name, cell, columns) for cell in rows[0][1]]
    missing = [name for name in ("name", *needed) if name not in [one for one, _, _ in factors]]
    if missing:
        raise AnalysisError(path.name, f"it has no column {missing[0]}", "add it")
    found, kinds = [], more({name: unit for name, _, unit in factors})
    for line, row in rows[1:]:
        about = f"{path.name}, line {line}"
        if len(row) != len(factors):
            raise AnalysisError(about, f"it has {len(row)} cells, the header {len(factors)}", "give a cell per column")
        entry: dict[str, object] = {**kinds}
        for (name, factor, _), cell in zip(factors, row, strict=True):
            entry[name] = cell.strip() if name == "name" else _number(f"{about}, column {name}", cell) * factor
        found.append(kind(**entry))
    return found


def _column(table: str, cell: str, columns: dict[str, dict[str, float]]) -> tuple[str, float, str]:
    match = _HEAD.fullmatch(cell)
    name, unit = (match["name"], match["unit"] or "") if match else (cell, "")
    about, units = f"{table}, column {name}", {"name": _PURE, **columns}
    if name not in units:
        raise AnalysisError(about, "there is none of that name", f"use name, {', '.join(columns)}")
    if unit not in units[name]:
        known = ", ".join(f"[{one}]" for one in units[name] if one)
        raise AnalysisError(about, f"it has the unit [{unit}]" if unit else "it has no unit", f"write {known}")
    return name, units[name][unit], unit


def _number(about: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise AnalysisError(about, f"{cell.strip()!r} is no number", "write one")
    return value
