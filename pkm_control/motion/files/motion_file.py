# SPDX-License-Identifier: Apache-2.0
"""Motion files: a CSV table of platform waypoints, read and checked. `docs/motion_files.md` is the user's page.

    # frame: home
    # limit linear_acceleration: 60 m/s^2
    x [mm], y [mm], z [mm], speed [mm/s], blend [mm], dwell [s], label
    ...

Lines that start with `#` are comments, except for the directives `frame`, `path`, `limit`, `tool` and `lead`. The
first other line is the header: a name and, in brackets, a unit per column. Every later line is one waypoint, every cell
but those of labels and outputs filled.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from pkm_control.control_errors import MotionFileError
from pkm_control.motion.files.shipped import find_motion
from pkm_control.motion.path_events import OutputEvent, PathEvents, PayloadChange
from pkm_control.tool import Tool, ToolError, point_mass, tool_named
from pkm_description.mechanism import Array, Inertial, Joint, JointType, Mechanism
from pkm_dynamics.motion_limits import PlatformLimits
from pkm_hardware.drivers.driver import output_name
from pkm_kinematics import Kinematics
from pkm_runtime.whole_files import read_small

_LENGTH = {"m": 1.0, "mm": 1e-3}
_ANGLE = {"rad": 1.0, "deg": math.pi / 180.0}
_TIME = {"s": 1.0, "ms": 1e-3}
_SPEED = {"m/s": 1.0, "mm/s": 1e-3}
_ANGULAR_SPEED = {"rad/s": 1.0, "deg/s": math.pi / 180.0}
_NONE = {"": 1.0}
_UNITS = {
    **dict.fromkeys(("x", "y", "z", "blend"), _LENGTH),
    **dict.fromkeys(("roll", "pitch", "yaw"), _ANGLE),
    **dict.fromkeys(("qx", "qy", "qz", "qw", "label"), _NONE),
    **dict.fromkeys(("time", "dwell"), _TIME),
    "speed": _SPEED,
    "angular_speed": _ANGULAR_SPEED,
    "ride": _NONE,
    "payload": {"kg": 1.0, "g": 1e-3},
}
_LIMIT_UNITS = {
    "linear_velocity": _SPEED,
    "linear_acceleration": {"m/s^2": 1.0, "mm/s^2": 1e-3},
    "linear_jerk": {"m/s^3": 1.0, "mm/s^3": 1e-3},
    "angular_velocity": _ANGULAR_SPEED,
    "angular_acceleration": {"rad/s^2": 1.0, "deg/s^2": math.pi / 180.0},
    "angular_jerk": {"rad/s^3": 1.0, "deg/s^3": math.pi / 180.0},
}
_POSITION = ("x", "y", "z")
_QUATERNION = ("qx", "qy", "qz", "qw")
_EULER = ("roll", "pitch", "yaw")
_AS_FAST_AS_ALLOWED = "max"
_FRAMES = ("base", "home", "conveyor")
_OUTPUT = "output:"  # a column's name begins with it, and ends with the output's
_LONGEST_LEAD = 10.0  # s
_HEADER_CELL = re.compile(r"^(?P<name>[^\[\]]*?)\s*(?:\[(?P<unit>[^\[\]]*)\])?$")
_LARGEST = 1e12  # of a number in a cell or line: squares of larger ones overflow further on
_MAX_LETTERS = 50_000_000
_MAX_LINE = 10_000  # characters
_MAX_WAYPOINTS = 200_000
_MAX_TIMED_STEP = math.radians(170.0)  # beyond it, "the shorter way round" between two recorded attitudes is a guess


@dataclass(frozen=True, eq=False)
class MotionFile:
    """The waypoints of a motion file in SI units, in the base frame or relative to the home pose.

    `poses` (n, 7): x y z qx qy qz qw. Exactly one of `times` (n,) [s] and `speeds` is the file's way to say how fast;
    `speeds` (n,) [m/s] and `angular_speeds` (n,) [rad/s] hold for the way *to* a waypoint, infinite where the machine's
    limits decide. `blends` (n,) [m]: how far before and after a waypoint the path may leave the straight lines; zero
    stops there. `dwells` (n,) [s]: rest at the waypoint. `lines` (n,): for messages; empty without a file. Of a file
    in the frame of a conveyor, `riding` (n,) says which waypoints are relative to the object on it.

    `payloads` (n,) [kg]: a mass at the tool's point, or the platform's origin, from each waypoint on; None where the
    file says nothing. `redundant`: positions (n,) [rad, m] of commanded redundant joints, by name. `outputs`: by name
    the value that each takes at a waypoint (n,), NaN where it stays; `lead`: how long before [s]. `tool`: whose poses
    these are where `of_tool`, and whose point goes straight.
    """

    source: str
    relative_to_home: bool
    straight: bool  # timed files: straight lines that stop at every waypoint, instead of one smooth curve
    poses: Array
    times: Array | None
    speeds: Array
    angular_speeds: Array
    blends: Array
    dwells: Array
    labels: tuple[str, ...]
    lines: tuple[int, ...]
    limits: PlatformLimits  # infinite where the file says nothing
    riding: NDArray[np.bool_] | None = None
    payloads: Array | None = None
    redundant: Mapping[str, Array] = field(default_factory=dict)
    outputs: Mapping[str, Array] = field(default_factory=dict)
    lead: float = 0.0
    tool: Tool | None = None
    of_tool: bool = False

    @classmethod
    def through(
        cls, source: str, poses: Array, labels: tuple[str, ...], limits: PlatformLimits, **given: Any
    ) -> MotionFile:
        """Straight lines through poses (n, 7), with stops, as fast as limits allow, but for fields `given`."""
        n = len(poses)
        endless, none = np.full(n, math.inf), np.zeros(n)
        usual = {"speeds": endless, "angular_speeds": endless, "blends": none, "dwells": none}
        return cls(source, False, True, poses, None, labels=labels, lines=(), limits=limits, **{**usual, **given})

    def __len__(self) -> int:
        return len(self.poses)

    def in_base(self, home: Array) -> MotionFile:
        """The motion in the base frame, with home (7,) for a relative one; `MotionFileError` in a conveyor's frame."""
        if self.riding is not None:
            problem, remedy = "is in the frame of a conveyor", "say which: robot.follow(file, on=...), pkm follow --on"
            raise MotionFileError(self.source, None, None, problem, remedy)
        if self.of_tool and self.tool is not None:
            tool = self.tool
            there = replace(self, of_tool=False).in_base(tool.on_platform(home))
            return replace(there, poses=tool.of_platform(there.poses))
        if not self.relative_to_home:
            return self
        rotation = Rotation.from_quat(np.array(home[3:]))
        poses = self.poses.copy()
        poses[:, :3] = home[:3] + rotation.apply(self.poses[:, :3])
        poses[:, 3:7] = (rotation * Rotation.from_quat(self.poses[:, 3:7])).as_quat()
        return replace(self, poses=poses, relative_to_home=False)

    def describe(self, index: int) -> str:
        """A waypoint as messages name it, such as "pick.csv, line 7 (above the tray)"."""
        label = self.labels[index]
        if not self.lines:
            return ", ".join(filter(None, (self.source, label or f"waypoint {index + 1}")))
        return f"{self.source}, line {self.lines[index]}" + (f" ({label})" if label else "")

    def describe_way(self, first: int, last: int) -> str:
        """The way between two waypoints as messages name it, such as "pick.csv, line 7 (above the tray) to line 9"."""
        end = f"line {self.lines[last]}" if self.lines else self.labels[last] or f"waypoint {last + 1}"
        return f"{self.describe(first)} to {end}"


def read_motion_file(
    path: str | Path,
    home: Array | None = None,
    task_chain: Sequence[Joint] = (),
    tools: Mapping[str, Tool] | None = None,
    redundant: Mapping[str, bool] = MappingProxyType({}),
) -> MotionFile:
    """Read a motion file, or a shipped one by its bare name; `MotionFileError` names line and column of what is wrong.

    The attitude of `home` (7,) holds for files in the base frame that give none; None: identity. Coordinates of the
    joints of `task_chain` (see `task_chain_of`) may be columns instead of a pose, `redundant` joints (by name, whether
    they turn) beside it. The file may name one of `tools`.
    """
    file = find_motion(path)
    text = read_small(file, _MAX_LETTERS, partial(MotionFileError, str(path), None, None))
    return parse_motion(text, source=file.name, home=home, task_chain=task_chain, tools=tools, redundant=redundant)


def parse_motion(
    text: str,
    source: str = "motion",
    home: Array | None = None,
    task_chain: Sequence[Joint] = (),
    tools: Mapping[str, Tool] | None = None,
    redundant: Mapping[str, bool] = MappingProxyType({}),
) -> MotionFile:
    """As `read_motion_file`, from the text of a file; `source` is its name in messages."""
    return _Parser(source, text, home, tuple(task_chain), tools or {}, redundant).parse()


def task_chain_of(mechanism: Mechanism) -> tuple[Joint, ...]:
    """Joints, from base to platform, whose coordinates a file may have as columns; none if one has several."""
    chain = tuple(mechanism.joint_named[name] for name in mechanism.platform_chain)
    return chain if all(joint.type.dof <= 1 for joint in chain) else ()


@dataclass(eq=False)
class _Parser:
    """One pass over one file: directives and header, then cells, then checks of the whole table."""

    source: str
    text: str
    home: Array | None
    chain: tuple[Joint, ...]
    tools: Mapping[str, Tool]
    redundant: Mapping[str, bool]
    frame: str = "base"
    path: str = "smooth"
    path_line: int | None = None
    limits: dict[str, float] = field(default_factory=dict)
    directives: list[tuple[int, str]] = field(default_factory=list)
    tool: Tool | None = None
    lead: float = 0.0
    lines: tuple[int, ...] = ()  # of the waypoints

    def __post_init__(self) -> None:
        self.task = {joint.name: joint for joint in self.chain if joint.type is not JointType.FIXED}
        self.beside = {name: _ANGLE if turns else _LENGTH for name, turns in self.redundant.items()}  # units of columns

    def fail(self, line: int | None, column: str | None, problem: str, remedy: str) -> MotionFileError:
        return MotionFileError(self.source, line, column, problem, remedy)

    def parse(self) -> MotionFile:
        if len(self.text) > _MAX_LETTERS:
            raise self.fail(None, None, f"has {len(self.text)} characters", "give a table of waypoints")
        rows = self.rows()
        if not rows:
            raise self.fail(None, None, "has no header row", "start the table with a line like: x [m], y [m], z [m]")
        header_line, header = rows[0]
        self.recognise(header_line, header)
        for line, text in self.directives:
            self.directive(line, text)
        names, factors = self.header(header_line, header)
        self.lines = lines = tuple(line for line, _ in rows[1:])
        if len(lines) < 2:
            raise self.fail(None, None, f"has {len(lines)} waypoint(s)", "a motion needs at least two")
        table, labels = self.cells(names, factors, rows[1:])
        self.check_angles(table)
        poses = self.poses(names, table)
        n = len(lines)

        def column(name: str, default: float) -> Array:
            return table[name] if name in table else np.full(n, default)

        motion = MotionFile(
            source=self.source,
            relative_to_home=self.frame == "home",
            straight="time" not in table or self.path == "straight",
            poses=poses,
            times=table.get("time"),
            speeds=column("speed", math.inf),
            angular_speeds=column("angular_speed", math.inf),
            blends=column("blend", 0.0),
            dwells=column("dwell", 0.0),
            labels=labels,
            lines=lines,
            limits=replace(PlatformLimits.none(), **self.limits),
            riding=self.riding(table),
            payloads=table.get("payload"),
            redundant={name: table[name] for name in self.beside if name in table},
            outputs={name.removeprefix(_OUTPUT): table[name] for name in names if name.startswith(_OUTPUT)},
            lead=self.lead,
            tool=self.tool,
            of_tool=self.tool is not None,
        )
        self.check(motion, names)
        return motion

    def rows(self) -> list[tuple[int, list[str]]]:
        """(line, cells) of every line that is neither comment nor blank at the end; one inside is a hole."""
        found: list[tuple[int, list[str]]] = []
        blank: int | None = None
        for number, line in enumerate(self.text.splitlines(), start=1):
            stripped = line.strip()
            if stripped.startswith("#"):
                self.directives.append((number, stripped[1:].strip()))
                continue
            if not stripped.strip(","):
                if found and blank is None:
                    blank = number
                continue
            if blank is not None and len(found) > 1:
                raise self.fail(blank, None, "is empty between two waypoints", "delete the line or fill it in")
            blank = None
            if "\x00" in line:
                raise self.fail(number, None, "holds a NUL byte", "save the file as plain UTF-8 CSV")
            if len(line) > _MAX_LINE:
                raise self.fail(number, None, f"has {len(line)} characters", "write one waypoint in a line")
            if len(found) > _MAX_WAYPOINTS:
                raise self.fail(number, None, f"is waypoint {len(found)}", f"write {_MAX_WAYPOINTS} at most")
            found.append((number, [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True))]))
        return found

    def recognise(self, line: int, cells: list[str]) -> None:
        """Refuse a file that is no motion file before anything of it is quoted: it may be any file of the computer."""
        if len(cells) == 1 and ";" in cells[0]:
            raise self.fail(line, None, "is separated by semicolons", "separate the columns by commas")
        names = [match["name"].strip() for cell in cells if (match := _HEADER_CELL.match(cell))]
        if not any(self.units_of(name) is not None for name in names):
            numbers = all(_is_number(cell) for cell in cells)
            hint = "this looks like a waypoint; the header row is missing" if numbers else "names no column of a motion"
            raise self.fail(line, None, hint, "use columns of: " + ", ".join([*_UNITS, f"{_OUTPUT}NAME", *self.task]))

    def directive(self, line: int, text: str) -> None:
        key, colon, value = (part.strip() for part in text.partition(":"))
        if not colon:
            return
        if key == "frame":
            if value not in _FRAMES:
                known = " or ".join(f"'frame: {name}'" for name in _FRAMES)
                raise self.fail(line, None, f"frame '{value}' is unknown", f"write {known}")
            self.frame = value
        elif key == "path":
            if value not in ("smooth", "straight"):
                raise self.fail(line, None, f"path '{value}' is unknown", "write 'path: smooth' or 'path: straight'")
            self.path, self.path_line = value, line
        elif key == "tool":
            try:
                self.tool = tool_named(value, self.tools)
            except ToolError as error:
                raise self.fail(line, None, str(error), "name a tool of the robot's tool file") from error
        elif key == "lead":
            self.lead = self.quantity(line, key, value, _TIME)
            if not 0.0 <= self.lead <= _LONGEST_LEAD:
                raise self.fail(line, None, f"lead is {value}", f"write a time from 0 to {_LONGEST_LEAD:g} s")
        elif key == "limit" or key.startswith("limit "):
            name = key[len("limit") :].strip()
            if name not in _LIMIT_UNITS:
                raise self.fail(line, None, f"limit '{name}' is unknown", "use one of: " + ", ".join(_LIMIT_UNITS))
            bound = self.quantity(line, f"limit '{name}'", value, _LIMIT_UNITS[name])
            if bound <= 0.0:
                raise self.fail(line, None, f"limit '{name}' is {value.split()[0]}", "a limit is greater than zero")
            self.limits[name] = bound

    def quantity(self, line: int, what: str, text: str, units: dict[str, float]) -> float:
        number, _, unit = text.partition(" ")
        if unit.strip() not in units:
            raise self.fail(line, None, f"{what} has the unit '{unit.strip()}'", f"write {' or '.join(units)}")
        return self.number(line, what, number) * units[unit.strip()]

    def header(self, line: int, cells: list[str]) -> tuple[list[str], list[float]]:
        names: list[str] = []
        factors: list[float] = []
        matches = [_HEADER_CELL.match(cell) for cell in cells]
        named = {match["name"].strip() for match in matches if match}
        poses, own = {*_POSITION, *_QUATERNION, *_EULER}, named & self.task.keys()
        if own and own <= poses and named & poses - self.task.keys():
            self.task = {}  # its coordinates are called x, y, and these columns are of a pose
        for index, (cell, match) in enumerate(zip(cells, matches, strict=True)):
            name = match["name"].strip() if match else cell
            unit = (match["unit"] or "").strip() if match else ""
            if not name:
                raise self.fail(line, str(index + 1), "has no name", "name every column in the header row")
            units = self.units_of(name)
            if units is None:
                if name.startswith(_OUTPUT):
                    raise self.fail(line, name, "is not a valid output name", "write letters, digits or any of _./-")
                known = [*_UNITS, f"{_OUTPUT}NAME", *self.task, *self.beside]
                raise self.fail(line, name, "unknown column", "use columns of: " + ", ".join(known))
            if name in names:
                raise self.fail(line, name, "appears twice", "keep one")
            if units is not _NONE and unit == "":
                raise self.fail(line, name, "has no unit", f"write e.g. '{name} [{next(iter(units))}]'")
            if unit not in units:
                allowed = " or ".join(f"[{u}]" for u in units) if units is not _NONE else "no unit"
                raise self.fail(line, name, f"has the unit [{unit}]", f"write {allowed}")
            names.append(name)
            factors.append(units[unit])
        self.check_columns(line, names)
        return names, factors

    def units_of(self, name: str) -> dict[str, float] | None:
        if name in self.task:
            return _LENGTH if self.task[name].type is JointType.PRISMATIC else _ANGLE
        if name.startswith(_OUTPUT):
            return _NONE if output_name(name.removeprefix(_OUTPUT)) else None
        return _UNITS.get(name) or self.beside.get(name)

    def check_columns(self, line: int, names: list[str]) -> None:
        def some(group: tuple[str, ...]) -> list[str]:
            return [name for name in group if name in names]

        task = [name for name in names if name in self.task]
        if task:
            if self.tool is not None:
                problem = f"is the platform's, and the poses are of tool '{self.tool.name}'"
                raise self.fail(line, task[0], problem, "give x, y and z")
            if any(name not in self.task for name in some(_POSITION + _QUATERNION + _EULER)):
                remedy = "give task coordinates or a pose, not both"
                raise self.fail(line, task[0], "is mixed with pose columns", remedy)
            missing = [name for name in self.task if name not in names]
            if missing:
                raise self.fail(line, missing[0], "is missing", "give every task coordinate: " + ", ".join(self.task))
        else:
            missing = [name for name in _POSITION if name not in names]
            if missing:
                named = f", or the robot's task coordinates {', '.join(self.task)}" if self.task else ""
                raise self.fail(line, missing[0], "is missing", f"a waypoint needs x, y and z{named}")
        for group in (_QUATERNION, _EULER):
            if some(group) and len(some(group)) < len(group):
                missing = [name for name in group if name not in names]
                raise self.fail(line, missing[0], "is missing", "give all of " + ", ".join(group) + " or none")
        if some(_QUATERNION) and some(_EULER):
            raise self.fail(line, "roll", "is a second attitude beside qx..qw", "give one of the two")
        for name in ("speed", "angular_speed", "blend"):
            if "time" in names and name in names:
                raise self.fail(line, name, "contradicts the column 'time'", "give times or speeds, not both")

    def cells(
        self, names: list[str], factors: list[float], rows: list[tuple[int, list[str]]]
    ) -> tuple[dict[str, Array], tuple[str, ...]]:
        table = {name: np.empty(len(rows)) for name in names if name != "label"}
        labels: list[str] = []
        for index, (line, cells) in enumerate(rows):
            if len(cells) != len(names):
                problem = f"has {len(cells)} cells, the header has {len(names)}"
                raise self.fail(line, None, problem, "give one cell per column")
            labels.append(cells[names.index("label")] if "label" in names else "")
            for name, cell, factor in zip(names, cells, factors, strict=True):
                if name == "label":
                    continue
                if name in ("speed", "angular_speed") and cell == _AS_FAST_AS_ALLOWED:
                    table[name][index] = math.inf
                elif name.startswith(_OUTPUT) and cell == "":
                    table[name][index] = math.nan
                else:
                    table[name][index] = self.number(line, name, cell) * factor
        return table, tuple(labels)

    def number(self, line: int, column: str, cell: str) -> float:
        if cell == "":
            raise self.fail(line, column, "is empty", "fill every cell of a waypoint")
        try:
            value = float(cell)
        except ValueError:
            raise self.fail(line, column, f"'{cell}' is not a number", "write a decimal number") from None
        if not math.isfinite(value):
            raise self.fail(line, column, f"is {cell}", "write a finite number")
        if abs(value) > _LARGEST:
            raise self.fail(line, column, f"is {cell}, beyond any machine", f"write {_LARGEST:g} at most")
        return value

    def poses(self, names: list[str], table: dict[str, Array]) -> Array:
        n = len(self.lines)
        if any(name in self.task for name in names):
            return _compose(self.chain, table, n)
        poses = np.empty((n, 7))
        home = self.home if self.home is None or self.tool is None else self.tool.on_platform(self.home)
        poses[:, :3] = np.column_stack([table[name] for name in _POSITION])
        if "qx" in names:
            quaternions = np.column_stack([table[name] for name in _QUATERNION])
            norms = np.linalg.norm(quaternions, axis=1)
            bad = np.abs(norms - 1.0) > 1e-2
            self.refuse_first(
                bad, "qx", lambda k: f"the quaternion has length {norms[k]:.4g}", "give a unit quaternion"
            )
            poses[:, 3:] = quaternions / norms[:, None]
        elif "roll" in names:
            angles = np.column_stack([table[name] for name in _EULER])
            poses[:, 3:] = Rotation.from_euler("xyz", angles).as_quat()  # extrinsic: the convention of URDF rpy
        else:
            poses[:, 3:] = home[3:] if self.frame != "home" and home is not None else (0.0, 0.0, 0.0, 1.0)
        return poses

    def riding(self, table: dict[str, Array]) -> NDArray[np.bool_] | None:
        given = table.get("ride")
        if self.frame != "conveyor":
            if given is not None:
                raise self.fail(None, "ride", "belongs to the frame of a conveyor", "add the line '# frame: conveyor'")
            return None
        if "time" in table:
            raise self.fail(None, "time", "belongs to a fixed frame", "leave it out, or give speeds")
        if beside := [name for name in self.beside if name in table]:
            raise self.fail(None, beside[0], "is not commanded in the frame of a conveyor", "leave it out")
        if given is None:
            return np.ones(len(self.lines), dtype=bool)
        odd, remedy = (given != 0.0) & (given != 1.0), "write 1 on the conveyor, 0 beside it"
        self.refuse_first(odd, "ride", lambda k: f"is {given[k]:g}", remedy)
        rides = np.flatnonzero(given == 1.0)
        if not rides.size or rides[-1] - rides[0] + 1 != rides.size:
            problem = "is 1 in no waypoint" if not rides.size else "is 1 in more than one stretch"
            raise self.fail(None, "ride", problem, "let one stretch of waypoints ride")
        return np.asarray(given == 1.0)

    def refuse_first(
        self, bad: NDArray[np.bool_], column: str | None, problem: Callable[[int], str], remedy: str
    ) -> None:
        if bad.any():
            index = int(np.argmax(bad))
            raise self.fail(self.lines[index], column, problem(index), remedy)

    def check(self, motion: MotionFile, names: list[str]) -> None:
        for name, values in (("speed", motion.speeds), ("angular_speed", motion.angular_speeds)):
            remedy = f"give a speed or '{_AS_FAST_AS_ALLOWED}'"
            self.refuse_first(values <= 0.0, name, lambda k: "is not greater than zero", remedy)
        masses = np.zeros(len(motion)) if motion.payloads is None else motion.payloads
        for name, values in (("blend", motion.blends), ("dwell", motion.dwells), ("payload", masses)):
            self.refuse_first(values < 0.0, name, lambda k: "is negative", "give zero or more")
        both, remedy = (motion.blends > 0.0) & (motion.dwells > 0.0), "a waypoint is rounded or rested at"
        self.refuse_first(both, "blend", lambda k: "is set where the platform dwells", remedy)
        times = motion.times
        if times is not None:
            free = np.append(-np.inf, times[:-1] + motion.dwells[:-1])  # from when the platform may come, for each
            self.refuse_first(
                times <= free,
                "time",
                lambda k: f"{times[k]:.6g} s does not come after {free[k]:.6g} s of line {self.lines[k - 1]}",
                "times (and dwells) must increase",
            )
        elif self.path_line is not None and self.path == "smooth":
            remedy = "add the column 'time [s]'"
            raise self.fail(self.path_line, None, "'path: smooth' needs a time for every waypoint", remedy)
        self.check_steps(motion)

    def check_angles(self, table: dict[str, Array]) -> None:
        """Refuse an angle beyond a turn that the ones before do not lead to: poses do not count turns."""
        for name, values in table.items():
            if name in _EULER or (name in self.task and self.units_of(name) is _ANGLE):
                turns, steps = np.abs(values) / (2.0 * math.pi), np.abs(np.diff(values, prepend=0.0))

                def said(k: int, values: Array = values, turns: Array = turns) -> str:
                    return f"is {values[k]:.6g} rad, {turns[k]:.1f} turns, all at once"

                remedy = f"write '{name} [deg]' in the header row if these are degrees, else waypoints in between"
                self.refuse_first((turns > 1.0) & (steps > _MAX_TIMED_STEP), name, said, remedy)

    def check_steps(self, motion: MotionFile) -> None:
        places = np.column_stack([motion.poses[:, :3], *motion.redundant.values()])
        steps = np.append(np.inf, np.linalg.norm(np.diff(places, axis=0), axis=1))
        attitudes = Rotation.from_quat(motion.poses[:, 3:])
        angles = np.append(0.0, (attitudes[:-1].inv() * attitudes[1:]).magnitude())
        if motion.times is None:
            self.refuse_first(
                (steps < 1e-9) & (angles < 1e-9),
                None,
                lambda k: f"repeats the waypoint of line {self.lines[k - 1]}",
                "remove it, or rest there with the column 'dwell [s]'",
            )
        turned = "turns by {:.1f} deg in one step, so the way round is ambiguous"
        far = angles > _MAX_TIMED_STEP
        self.refuse_first(far, None, lambda k: turned.format(math.degrees(angles[k])), "add a waypoint in between")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _compose(chain: tuple[Joint, ...], table: dict[str, Array], n: int) -> Array:
    """The poses (n, 7) of task coordinates: the product of the platform chain's joints."""
    position = np.zeros((n, 3))
    attitude = Rotation.from_quat(np.tile((0.0, 0.0, 0.0, 1.0), (n, 1)))
    for joint in chain:
        position = position + attitude.apply(joint.origin[:3, 3].copy())  # scipy refuses read-only arrays
        attitude = attitude * Rotation.from_matrix(joint.origin[:3, :3].copy())
        if joint.type is JointType.PRISMATIC:
            position = position + attitude.apply(np.outer(table[joint.name], joint.axis))
        elif joint.type is not JointType.FIXED:
            attitude = attitude * Rotation.from_rotvec(np.outer(table[joint.name], joint.axis))
    return np.hstack([position, attitude.as_quat()])


@lru_cache(maxsize=2)
def payloads_of(motion: MotionFile) -> tuple[Inertial | None, ...] | None:
    """The platform's payload from each waypoint on; None where the file says nothing of it."""
    tool = motion.tool
    if motion.payloads is None:
        return None if tool is None or tool.mass == 0.0 else (tool.payload(0.0),) * len(motion)
    masses = motion.payloads.tolist()
    made = {mass: point_mass(mass, np.zeros(3)) if tool is None else tool.payload(mass) for mass in set(masses)}
    return tuple(made[mass] for mass in masses)


def events_of(motion: MotionFile, arrivals: Sequence[float]) -> PathEvents:
    """Outputs, by the file's lead ahead of their waypoints, and changes of payload, for arrivals (n,) [s] there."""
    outputs = [
        OutputEvent(max(0.0, float(arrivals[k]) - motion.lead), name, float(values[k]))
        for k in range(len(motion))
        for name, values in motion.outputs.items()
        if not np.isnan(values[k])
    ]
    payloads = payloads_of(motion) or ()
    changed = [k for k, payload in enumerate(payloads) if k == 0 or payload is not payloads[k - 1]]
    return PathEvents(tuple(outputs), tuple(PayloadChange(float(arrivals[k]), payloads[k]) for k in changed))


_FROM_HOME = "counted from home all waypoints are within reach: is the frame 'home' meant ('# frame: home')?"
_MILLIMETRES = 20.0  # times the robot's size: numbers of that size are mm


def hint_of(kinematics: Kinematics, motion: MotionFile, mode: int | None) -> str:
    """The most likely meaning of a motion out of reach, as a sentence; or empty."""
    farthest = motion.poses[np.abs(motion.poses[:, :3]).max(axis=1).argmax(), :3]
    if looks_like_millimetres(kinematics, farthest):
        size = float(kinematics.engine.size)
        large = [f"{axis} {x / 1000.0:g}" for axis, x in zip("xyz", farthest, strict=True) if abs(x) > size]
        return f"places are in metres: if {'this is' if len(large) == 1 else 'these are'} mm, give {', '.join(large)}"
    return _FROM_HOME if _meant_from_home(kinematics, motion, mode) else ""


def looks_like_millimetres(kinematics: Kinematics, place: ArrayLike) -> bool:
    """Whether a position or length [m] is twenty times the robot's size or more, so most likely in millimetres."""
    return float(np.abs(np.asarray(place)).max()) > _MILLIMETRES * float(kinematics.engine.size)


def _meant_from_home(kinematics: Kinematics, motion: MotionFile, mode: int | None) -> bool:
    if motion.relative_to_home or motion.tool is not None or motion.riding is not None:
        return False
    from_home = replace(motion, relative_to_home=True).in_base(np.asarray(kinematics.home, dtype=np.float64))
    begins = np.asarray(kinematics.inverse(motion.poses[:1], mode=mode).status)
    there = np.asarray(kinematics.inverse(from_home.poses, mode=mode).status)
    return bool(begins[0] != 0 and not there.any())
