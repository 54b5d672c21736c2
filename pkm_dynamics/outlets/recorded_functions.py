# SPDX-License-Identifier: Apache-2.0
"""The recorded functions of a robot in one working mode, as every outlet takes them: from one array of numbers.

Drives that only pull, or only push, share a load in operations that are the same for every load: efforts of least norm
within bounds, as `pkm_dynamics.kernels.sharing` finds them by iteration, with one or two efforts to spare. In these,
bounds leave an interval or a polygon. Its point nearest to zero is zero, or lies on a side: of each side's line the
nearest point between the others is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite, pi
from typing import Any, NamedTuple

import numpy as np

from pkm_description.mechanism import Array
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.export_c.recorded_function import ExportError
from pkm_dynamics.export_c.recorded_robot import RecordedFunction, RecordedRobot
from pkm_kinematics.kernels.position.closures import CLOSED
from pkm_kinematics.status import closes
from pkm_runtime.codegen.derivatives import restated
from pkm_runtime.codegen.tape import Number, Recording, Tape, Term, call, extreme, key, select_larger, tape_of

TAU = 2.0 * pi
POSE, MOTION = ("pose",), ("pose", "twist")


@dataclass(frozen=True)
class Outlet:
    """One function: its `arguments` with their lengths, one after the other in the array; name, shape of its result."""

    name: str
    arguments: tuple[tuple[str, int], ...]
    result: str
    shape: tuple[int, ...]
    recording: Recording

    @property
    def width(self) -> int:
        """Numbers of all arguments."""
        return sum(n for _, n in self.arguments)


class RecordedFunctions:
    """Functions of a robot in a working mode; poses are checked and moved into the motion space, as by Python.

    Where limbs are iterated, all but `platform` take that pose (`at`) and positions `q` of all joints as well. Raises
    `ExportError` where they cannot be recorded, and `ModeError`.
    """

    def __init__(self, dynamics: Dynamics, mode: int) -> None:
        self.robot, self.dynamics, self.mode = RecordedRobot(dynamics), dynamics, mode
        kinematics = dynamics.kinematics
        if not closes(kinematics.inverse(self.robot.pose, mode=mode).status):
            raise self.refusal(f"mode {mode} has no configuration near home")
        self.start = kinematics.modes.start(mode)
        self._known: dict[str, Any] = {
            "side": [-1.0 if mode >> k & 1 else 1.0 for k in range(len(self.robot.sides))],
            "start": self.start,
        }

    def refusal(self, why: str) -> ExportError:
        """The error that names the robot."""
        return ExportError(f"{self.dynamics.mechanism.name}: {why}")

    @cached_property
    def joints(self) -> Outlet:
        """Positions of all joints, within their ranges where some full turns lead there."""
        f, ranges = self.robot.inverse(), self.robot.engine.ranges
        (part,) = (part for part in f.parts if part.results)
        lower, upper = ranges.limits
        part.results = [
            (place, _turned(q, low, high) if free else q)
            for (place, q), low, high, free in zip(part.results, lower, upper, ranges.turned_freely, strict=True)
        ]
        return self._outlet("joints", POSE, "joints", f)

    @cached_property
    def inverse(self) -> Outlet:
        """Positions of the actuated joints."""
        found = self.joints
        actuated = tuple(found.recording.results[k] for k in self.dynamics.kinematics.engine.actuated_column)
        recording = replace(found.recording, results=actuated)
        return replace(found, name="inverse", result="actuated", shape=(len(actuated),), recording=recording)

    @cached_property
    def jacobian(self) -> Outlet:
        """Rates of the actuated joints per twist (n_actuated, 6)."""
        return self._outlet("jacobian", POSE, "jacobian", self.robot.jacobian(), 6)

    @cached_property
    def inverse_dynamics(self) -> Outlet:
        """Efforts of a motion."""
        return self._efforts("inverse_dynamics", True)

    @cached_property
    def gravity(self) -> Outlet:
        """Efforts that hold the robot at rest."""
        return self._efforts("gravity", False)

    @cached_property
    def direct_dynamics(self) -> Outlet:
        """Acceleration of the platform under efforts."""
        return self._outlet("direct_dynamics", (*MOTION, "effort"), "acceleration", self.robot.direct_dynamics())

    @cached_property
    def margins(self) -> Outlet:
        """Regularity of the worst limb, reciprocal condition of the drives."""
        return self._outlet("margins", POSE, "margins", self.robot.margins())

    @cached_property
    def platform(self) -> Outlet:
        """A pose, checked and moved into the motion space."""
        return self._outlet("platform", POSE, "at", self.robot.platform())

    @cached_property
    def carried(self) -> Outlet:
        """Positions of all joints where limbs are iterated, from those at a pose nearby, in fixed steps."""
        return self._carried(False)

    @cached_property
    def under_way(self) -> Outlet:
        """The same on the way to another pose: near there, not exact."""
        return self._carried(True)

    def _carried(self, under_way: bool) -> Outlet:
        f, columns = self.robot.carry(under_way), range(len(self.start))
        (part,) = (part for part in f.parts if part.results)
        found = dict(part.results)
        if self.robot.turning and not under_way:  # how open limbs are says whether the pose is a possible one
            f.tape.decide("<", found["found[1]"], CLOSED * self.robot.engine.size)
        part.results = [(f"q[{k}]", found.get(f"q[{k}]", 0.0)) for k in columns]
        return self._outlet("under_way" if under_way else "carried", POSE, "joints", f)

    @cached_property
    def joint_rates(self) -> Outlet:
        """Rates of all joints of the limbs, zero for those of the platform's branch."""
        return self._outlet("joint_rates", MOTION, "rates", self.robot.joint_rates())

    @cached_property
    def motion_space(self) -> Outlet:
        """Basis of the possible twists (6, n)."""
        return self._outlet("motion_space", POSE, "motions", self.robot.motion_space(), self.robot.n)

    def _efforts(self, name: str, moving: bool) -> Outlet:
        robot, f = self.robot, self.robot.inverse_dynamics(moving)
        spare = robot.m - robot.n
        if robot.one_way and f.regular:
            if spare > MOST:
                raise self.refusal(
                    f"{name}: drives that only pull, or only push, share by an iteration where more than {MOST} are "
                    "redundant; use Python or C"
                )
            numbers = [x for _, x in f.parts[-1].results]
            null = np.array(numbers[robot.m :], dtype=object).reshape(robot.m, spare)
            efforts = shared(numbers[: robot.m], null, *self.dynamics.mechanism.effort_range)
            f.parts[-1].results = [(f"effort[{k}]", x) for k, x in enumerate(efforts)]
        arguments = (*MOTION, "acceleration") if moving else POSE
        return self._outlet(name, arguments, "effort", f)

    def _outlet(self, name: str, names: tuple[str, ...], result: str, f: RecordedFunction, columns: int = 0) -> Outlet:
        if not f.regular:
            raise self.refusal(f"{name}: singular near home")
        lengths = {"pose": 7, "twist": 6, "acceleration": 6, "effort": self.robot.m, "q": len(self.start)}
        if self.robot.iterated and name != "platform":
            names = (*names, "q")
        starts = {n: sum(lengths[before] for before in names[:k]) for k, n in enumerate(names)}
        starts["from"] = starts.get("q", 0)  # joints to begin from are given in their place
        numbers = [number for part in f.parts for _, number in part.results]
        recording = restated(Recording(f.tape, 1, tuple(numbers)), self._inputs(f, starts))
        if recording is None:
            raise self.refusal(f"{name}: mode {self.mode} takes another branch than home's")
        shape = (len(numbers) // columns, columns) if columns else (len(numbers),)
        return Outlet(name, tuple((n, lengths[n]) for n in names), result, shape, recording)

    def _inputs(self, f: RecordedFunction, starts: dict[str, int]) -> Callable[[Tape], Callable[[int, int], Number]]:
        values = {(t.how[1], t.how[2]): t.value for t in f.tape.order if t.how[0] == "input"}

        def on(tape: Tape) -> Callable[[int, int], Number]:
            def number(array: int, k: int) -> Number:
                name, place = f.inputs[array, k].rstrip("]").split("[")
                if name in self._known:
                    return float(self._known[name][int(place)])
                return tape.inputs(0, np.array([values[array, k]]), [0], starts[name] + int(place))[0]

            return number

        return on


def _turned(q: Number, lower: float, upper: float) -> Number:
    """A position, if outside its range then some full turns away where that is inside."""
    moved = q
    if isfinite(upper):
        moved = select_larger(q, upper, q + TAU * call("floor", (upper - q) / TAU), moved)
    if isfinite(lower):
        moved = select_larger(lower, q, q - TAU * call("floor", (q - lower) / TAU), moved)
    if not (isfinite(lower) and isfinite(upper)):
        return moved
    return select_larger(lower, moved, q, select_larger(moved, upper, q, moved))


MOST = 2  # efforts to spare
FAR = 1e30  # N or N m
ROUNDED = 1e-11  # of the largest effort: what rounding may leave outside


class Side(NamedTuple):
    """A bound of a drive: `normal` times the efforts to spare (r,) is `least` or more."""

    drive: int
    normal: tuple[Number, ...]
    least: Number


def shared(effort: Sequence[Number], null: Array, lower: Array, upper: Array) -> list[Number]:
    """Efforts (m,) of least norm within bounds (m,), from those of least norm without and `null` (m, r), r up to MOST.

    That there are any is a condition on the tape. `null` is an orthonormal basis of efforts that do no work.
    """
    sides = []
    for k, (now, row, low, high) in enumerate(zip(effort, null, lower, upper, strict=True)):
        if isfinite(low):
            sides.append(Side(k, tuple(row), low - now))
        if isfinite(high):
            sides.append(Side(k, tuple(-x for x in row), now - high))
    size = extreme("max", *map(abs, effort))
    if null.shape[1] == 1:
        low, high = _ends([(side.normal[0], side.least) for side in sides])
        spare = [_between(low, high)]
    else:
        spare = _in_plane(sides, size)
    found = [now + sum(x * z for x, z in zip(row, spare, strict=True)) for now, row in zip(effort, null, strict=True)]
    tape = tape_of(*found)
    assert tape is not None
    for one, low, high in zip(found, lower, upper, strict=True):
        room = 10.0 * ROUNDED * (abs(one) + size)
        tape.conditions["<=", key(extreme("max", low - one, one - high)), key(room)] = True  # it may not hold here
    return [extreme("min", extreme("max", one, low), high) for one, low, high in zip(found, lower, upper, strict=True)]


def _ends(bounds: Sequence[tuple[Number, Number]]) -> tuple[Number, Number]:
    """The least and the largest number of which each slope makes its least or more."""
    low, high = -FAR, FAR
    for slope, least in bounds:
        if isinstance(slope, Term) or slope != 0.0:
            end = least / slope
            low = extreme("max", low, select_larger(slope, 0.0, end, -FAR))
            high = extreme("min", high, select_larger(0.0, slope, end, FAR))
    return low, high


def _between(low: Number, high: Number) -> Number:
    return extreme("min", extreme("max", 0.0, low), high)


def _in_plane(sides: Sequence[Side], size: Number) -> list[Number]:
    best = select_larger(extreme("max", *(side.least for side in sides)), 0.0, FAR, 0.0)
    x, y = 0.0, 0.0
    for side in sides:
        a, b = side.normal
        square = a * a + b * b
        length = call("sqrt", square)
        foot, along = (side.least * a / square, side.least * b / square), (-b / length, a / length)
        others = [one for one in sides if one.drive != side.drive]
        low, high = _ends([(_dot(one.normal, along), one.least - _dot(one.normal, foot)) for one in others])
        t = _between(low, high)
        far = select_larger(low - high, ROUNDED * size, FAR, side.least * side.least / square + t * t)
        x, y = (select_larger(best, far, p + t * d, old) for p, d, old in zip(foot, along, (x, y), strict=True))
        best = extreme("min", best, far)
    return [x, y]


def _dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    return a[0] * b[0] + a[1] * b[1]
