# SPDX-License-Identifier: Apache-2.0
"""What was measured on a robot: one CSV file, a row for each pose at which it stood.

docs/calibration.md describes the columns, units, empty cells and comments.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pkm_description.joint_geometry import freedoms
from pkm_description.mechanism import Array, Mechanism
from pkm_description.rotations import rotation_from_quaternion, rotation_from_rpy
from pkm_kinematics.graph_model import GraphModel
from pkm_runtime.errors import UsageError, nearest
from pkm_runtime.whole_files import read_small, write_whole

LARGEST = 20_000_000  # bytes of a file
UNITS = {"m": 1.0, "mm": 1e-3, "um": 1e-6, "cm": 1e-2, "in": 0.0254, "rad": 1.0, "mrad": 1e-3, "deg": math.pi / 180.0}
LENGTHS, ANGLES = ("m", "mm", "um", "cm", "in"), ("rad", "mrad", "deg")
POSITION, ATTITUDE, QUATERNION = ("x", "y", "z"), ("yaw", "pitch", "roll"), ("qx", "qy", "qz", "qw")
FROM, POINT = ("from_x", "from_y", "from_z"), ("point_x", "point_y", "point_z")
SIGMA = {"m": 2e-5, "rad": 1e-4}  # where the file says nothing: relative weights only, the scale is then estimated
CONTRADICTING = 6.0  # standard deviations between two measurements of the same
FAR = 20.0  # sizes of the robot, or rad: what is recorded is no farther away
DECIMAL = re.compile(r"^(\s*[-+]?\d*),(\d+(?:[eE][-+]?\d+)?\s*)$")
HEAD = re.compile(r"\s*([A-Za-z_][\w/.-]*)\s*(?:\[\s*(\w+)\s*\])?\s*$")
TURN = 6.3  # rad


class MeasurementError(UsageError):
    """Measurements that cannot be used: the place in the file, the problem and the remedy."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """Rows of measurements in SI units, NaN where nothing was measured.

    `drives` (n, n_actuated) are readings in the order of the description. `joints` holds readings (n,) of other joints
    by name. `position` (n, 3) may have single components, `attitude` (n, 3, 3) is whole or NaN.
    """

    drives: Array
    joints: Mapping[str, Array]
    position: Array
    attitude: Array
    distance: Array
    origin: Array  # (n, 3) from where distances are measured, base frame
    point: Array  # (n, 3) the measured point, platform frame
    sigma: Mapping[str, float]  # standard deviation by column
    known_noise: bool  # whether the file said so: then of all that was measured
    source: str
    lines: NDArray[np.int64]  # of the file
    of_z: Array | None = None  # (n,) standard deviations of z, where rows have other instruments

    def __len__(self) -> int:
        return len(self.drives)

    def rows(self, at: NDArray[np.int64] | NDArray[np.bool_]) -> Measurements:
        """Some of the rows."""
        joints = {name: values[at] for name, values in self.joints.items()}
        parts = (self.position, self.attitude, self.distance, self.origin, self.point)
        position, attitude, distance, origin, point = (part[at] for part in parts)
        return Measurements(
            self.drives[at], joints, position, attitude, distance, origin, point,
            self.sigma, self.known_noise, self.source, self.lines[at], None if self.of_z is None else self.of_z[at],
        )  # fmt: skip

    @property
    def count(self) -> int:
        """Numbers that were measured, without the drives' readings."""
        found = sum(int(np.isfinite(values).sum()) for values in self.joints.values())
        found += int(np.isfinite(self.position).sum()) + int(np.isfinite(self.distance).sum())
        return found + 3 * int(np.isfinite(self.attitude[:, 0, 0]).sum())


def read_measurements(path: str | Path, mechanism: Mechanism) -> Measurements:
    """The measurements of a file. Raises `MeasurementError` where they cannot be used."""
    return parse_measurements(text_of(path), mechanism, Path(path).name)


def text_of(path: str | Path) -> str:
    """The text of a file of measurements. Raises `MeasurementError` where it has none."""
    return read_small(path, LARGEST, partial(MeasurementError, str(path)))


def parse_measurements(text: str, mechanism: Mechanism, source: str = "measurements") -> Measurements:
    """The measurements of a text: see the module."""
    numbered = list(enumerate(text.splitlines(), start=1))
    comments = [(k, line) for k, line in numbered if line.lstrip().startswith("#")]
    content = [(k, line) for k, line in numbered if line.strip() and not line.lstrip().startswith("#")]
    if len(content) < 2:
        raise MeasurementError(source, "has no rows", "write a line of names, then a line for each pose")
    delimiter = _delimiter(content[0][1])
    try:
        rows = list(csv.reader(io.StringIO("\n".join(line for _, line in content)), delimiter=delimiter))
    except csv.Error as error:
        raise MeasurementError(source, f"is not CSV ({error})", "separate columns by commas") from error
    while rows and rows[0] and all(len(row) == len(rows[0]) and not row[-1].strip() for row in rows):
        rows = [row[:-1] for row in rows]  # separators at the ends of lines
    if delimiter == ";":  # as where a comma is the decimal point
        rows[1:] = [[DECIMAL.sub(r"\1.\2", cell) for cell in row] for row in rows[1:]]
    known = _known(mechanism)
    columns = _columns(rows[0], known, f"{source}, line {content[0][0]}")
    values = _numbers(rows[1:], columns, [k for k, _ in content[1:]], source)
    lines = np.array([k for k, _ in content[1:]], dtype=np.int64)
    return _assembled(values, mechanism, _sigmas(comments, mechanism, source), source, lines)


def _known(mechanism: Mechanism) -> dict[str, bool]:
    known = {f.name: f.slides for joint in mechanism.joints for f in freedoms(joint)}
    for name in mechanism.platform_chain:  # the same words mean what is measured
        known.pop(name, None)
    known |= dict.fromkeys((*POSITION, "height", "distance", *FROM, *POINT), True)
    return known | dict.fromkeys((*ATTITUDE, *QUATERNION), False)


def _columns(heads: Sequence[str], known: Mapping[str, bool], place: str) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for head in heads:
        match = HEAD.match(head)
        if match is None:
            raise MeasurementError(place, f"{head[:40]!r} is not a column name", "write NAME or NAME [unit]")
        name, unit = match.group(1), match.group(2)
        if name not in known:
            hint = nearest(name, known, f"this robot has {', '.join(known)}")
            raise MeasurementError(place, f"there is no column {name!r}", hint)
        if name in (one for one, _ in found):
            raise MeasurementError(place, f"the column {name!r} appears twice", "keep one of them")
        found.append((name, _unit(name, unit, known, place)))
    return found


def _unit(name: str, unit: str | None, known: Mapping[str, bool], place: str) -> float:
    allowed = LENGTHS if known[name] else ANGLES
    if unit is None or name in QUATERNION:
        return 1.0
    if unit not in allowed:
        raise MeasurementError(place, f"{name} cannot be in {unit!r}", f"give it in one of {', '.join(allowed)}")
    return UNITS[unit]


def _numbers(
    rows: Sequence[Sequence[str]], columns: Sequence[tuple[str, float]], lines: Sequence[int], source: str
) -> dict[str, Array]:
    values = np.full((len(rows), len(columns)), np.nan)
    for k, (row, line) in enumerate(zip(rows, lines, strict=True)):
        if len(row) != len(columns):
            problem = f"has {len(row)} cells, but the first line names {len(columns)}"
            raise MeasurementError(f"{source}, line {line}", problem, "leave the cell empty if nothing was measured")
        for at, (cell, (name, factor)) in enumerate(zip(row, columns, strict=True)):
            if cell.strip().lower() in ("", "nan"):
                continue
            try:
                value = float(cell)
            except ValueError:
                value = math.nan
            if not math.isfinite(value) or abs(value) > 1e9:
                what = "is too large" if math.isfinite(value) else "is no number"
                problem = f"{cell[:40]!r} in column {name} {what}"
                raise MeasurementError(f"{source}, line {line}", problem, "write a number, or leave the cell empty")
            values[k, at] = value * factor
    return {name: values[:, at] for at, (name, _) in enumerate(columns)}


def _sigmas(comments: Sequence[tuple[int, str]], mechanism: Mechanism, source: str) -> dict[str, float]:
    found: dict[str, float] = {}
    known, exact = _known(mechanism), {*FROM, *POINT} | ({*mechanism.actuated_joints} - {*_redundant(mechanism)})
    for line, text in comments:
        match = re.match(r"\s*#\s*sigma\b([^:]*)(:?)(.*)$", text, re.IGNORECASE)
        if match is None or not (match.group(2) or re.search(r"\d", match.group(1))):
            continue
        place = f"{source}, line {line}"
        if not match.group(2):
            raise MeasurementError(place, f"{text.strip()!r} has no colon", "write '# sigma NAME [UNIT]: NUMBER'")
        ((name, factor),) = _columns([match.group(1)], known, place)
        if name in QUATERNION:
            raise MeasurementError(place, f"{name} has no deviation", "give those of yaw, pitch and roll, angles")
        if name in exact:
            raise MeasurementError(place, f"{name} counts as exact", "remove the line")
        try:
            value = float(DECIMAL.sub(r"\1.\2", match.group(3))) * factor
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value > 0.0):
            raise MeasurementError(
                place, "this standard deviation is not a positive number", "write 'sigma NAME: NUMBER'"
            )
        found[name] = value
    return found


def _redundant(mechanism: Mechanism) -> tuple[str, ...]:
    names = mechanism.actuated_joints
    return names if len(names) > mechanism.mobility.platform else ()


def _completed(
    given: Mapping[str, float], values: Mapping[str, Array], mechanism: Mechanism, source: str
) -> dict[str, float]:
    """Deviations of all that was measured: an axis or drive without a line has the largest of those beside it."""
    known, drives = _known(mechanism), _redundant(mechanism)
    found = dict(given)
    for names in (POSITION, ATTITUDE, *([n for n in drives if known[n] is slides] for slides in (True, False))):
        if beside := [given[name] for name in names if name in given]:
            found |= {name: given.get(name, max(beside)) for name in names}
    if "z" in found:
        found.setdefault("height", found["z"])
    measured = {name for name, one in values.items() if np.isfinite(one).any()}
    if measured & {*QUATERNION}:
        measured |= {*ATTITUDE}
    measured -= {*FROM, *POINT, *QUATERNION, *mechanism.actuated_joints} - {*drives}
    lacking = [name for name in known if name in measured and name not in found]
    if given and lacking:
        problem = f"gives the sigma of {', '.join(given)}, but not of {', '.join(lacking)}"
        raise MeasurementError(source, problem, "write '# sigma NAME [UNIT]: NUMBER' for all, or for none")
    return found


def _z_with_heights(
    values: dict[str, Array], sigma: Mapping[str, float], lines: NDArray[np.int64], source: str
) -> Array:
    n = len(lines)
    both = np.array([values.get(name, np.full(n, np.nan)) for name in ("z", "height")])
    wide = np.array([[sigma.get(name, SIGMA["m"])] for name in ("z", "height")])
    doubled = np.flatnonzero(np.isfinite(both).all(axis=0))
    if len(doubled) and not sigma:
        place = f"{source}, line {lines[doubled[0]]}"
        raise MeasurementError(place, "has z and height, whose weights are not known", "add '# sigma' lines of both")
    apart = np.abs(both[0] - both[1])[doubled]
    if (apart > CONTRADICTING * np.linalg.norm(wide)).any():
        worst = int(np.argmax(apart))
        problem = f"z and height, which are the same, differ by {1e3 * apart[worst]:.3g} mm, far more than their noise"
        raise MeasurementError(f"{source}, line {lines[doubled[worst]]}", problem, "correct one, or leave it empty")
    weights = np.isfinite(both) / wide**2
    total = weights.sum(axis=0)
    there = total > 0.0
    values["z"] = np.full(n, np.nan)
    values["z"][there] = (weights * np.nan_to_num(both)).sum(axis=0)[there] / total[there]
    return np.where(there, 1.0 / np.sqrt(np.where(there, total, 1.0)), SIGMA["m"])


def _assembled(
    values: dict[str, Array],
    mechanism: Mechanism,
    given: Mapping[str, float],
    source: str,
    lines: NDArray[np.int64],
) -> Measurements:
    n, none = len(lines), np.full(len(lines), np.nan)

    def three(names: Sequence[str], default: float = math.nan) -> Array:
        return np.column_stack([values.get(name, np.full(n, default)) for name in names])

    distance = values.get("distance", none)
    if len(wrong := np.flatnonzero(distance < 0.0)):
        problem = f"a distance of {distance[wrong[0]]:g} m is negative"
        raise MeasurementError(f"{source}, line {lines[wrong[0]]}", problem, "correct it, or leave it empty")
    missing = [name for name in mechanism.actuated_joints if name not in values]
    if missing:
        remedy = "add a column with the position of each drive"
        raise MeasurementError(source, f"has no column for {', '.join(missing)}", remedy)
    drives = three(mechanism.actuated_joints)
    holes = np.flatnonzero(~np.isfinite(drives).all(axis=1))
    if len(holes):
        place = f"{source}, line {lines[holes[0]]}"
        raise MeasurementError(place, "the reading of a drive is missing", "give all drives, or remove the row")
    sigma = _completed(given, values, mechanism, source)
    of_z = _z_with_heights(values, sigma, lines, source) if "height" in values else None
    sensed = {f.name for joint in mechanism.joints for f in freedoms(joint)}
    sensed -= {*mechanism.actuated_joints, *mechanism.platform_chain}
    joints = {name: one for name, one in values.items() if name in sensed}
    origin, point = three(FROM, 0.0), three(POINT, 0.0)
    for name, part in (("from_", origin), ("point_", point)):
        part[np.isnan(part).all(axis=1)] = 0.0
        if np.isnan(part).any():
            line = lines[np.flatnonzero(np.isnan(part).any(axis=1))[0]]
            problem = f"a cell of {name}x, y, z is empty"
            raise MeasurementError(f"{source}, line {line}", problem, "give all three, or none for the origin")
    found = Measurements(
        drives, joints, three(POSITION), _attitudes(values, n, lines, source), distance,
        origin, point, sigma, bool(given), source, lines, of_z,
    )  # fmt: skip
    if found.count == 0 and len(mechanism.actuated_joints) <= mechanism.mobility.platform:
        raise MeasurementError(source, "has only drive readings", "add measured columns: see --help")
    return found


def _attitudes(values: Mapping[str, Array], n: int, lines: NDArray[np.int64], source: str) -> Array:
    found = np.full((n, 3, 3), np.nan)
    quaternion, angles = ([one for one in names if one in values] for names in (QUATERNION, ATTITUDE))
    if quaternion and angles:
        raise MeasurementError(source, "has a quaternion and angles", "keep one of them")
    for whole, given in ((QUATERNION, quaternion), (ATTITUDE, angles)):
        if given and len(given) != len(whole):
            lacking = ", ".join(name for name in whole if name not in given)
            raise MeasurementError(source, f"has an attitude without {lacking}", f"give {', '.join(whole)}")
    names = quaternion or angles
    for k in range(n if names else 0):
        one = np.array([values[name][k] for name in names])
        if np.isnan(one).all():
            continue
        if np.isnan(one).any() or (quaternion and abs(np.linalg.norm(one) - 1.0) > 1e-2):
            place = f"{source}, line {lines[k]}"
            raise MeasurementError(
                place, f"{', '.join(names)} are not a complete attitude", "give all of them, or none"
            )
        if angles and np.abs(one).max() > TURN:
            place, problem = (
                f"{source}, line {lines[k]}",
                f"an angle of {np.abs(one).max():.4g} rad is more than a turn",
            )
            raise MeasurementError(place, problem, "if these are degrees, write yaw [deg], pitch [deg], roll [deg]")
        found[k] = rotation_from_quaternion(one) if quaternion else rotation_from_rpy(one[::-1])
    return found


def append_measurement(
    file: Path, mechanism: Mechanism, readings: Array, names: Sequence[str], values: Sequence[float]
) -> int:
    """Add a row to a CSV file that `read_measurements` reads, and make the file where there is none.

    New columns are added to it; comments, separators and units of its first line stay. Returns how many rows it has.
    After a `MeasurementError` the file is as it was.

    Args:
        readings: of the drives (n_actuated,) [rad, m], in the order of the description.
        values: of the columns `names` [m, rad]; NaN was not measured.
    """
    if len(names) != len(values):
        problem = f"{len(names)} names and {len(values)} values"
        raise MeasurementError("the measurement", problem, "give a value for each name")
    doubled = sorted(
        {name for name in names if list(names).count(name) > 1} | set(names) & {*mechanism.actuated_joints}
    )
    if doubled:
        problem = f"{', '.join(doubled)} is given twice"
        raise MeasurementError("the measurement", problem, "name each column once; the drives are read")
    _refuse_other_units(mechanism, dict(zip(names, values, strict=True)))
    row = dict(zip(names, values, strict=True)) | dict(zip(mechanism.actuated_joints, readings.tolist(), strict=True))
    lines = _lines(file)
    comments = [line for line in lines if line.lstrip().startswith("#")]
    at = [k for k, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")]
    mark = _delimiter(lines[at[0]]) if at else ","
    rows = [next(csv.reader([lines[k]], delimiter=mark)) for k in at] or [[]]
    heads, there = rows[0], [_name(head) for head in rows[0]]
    more = [name for name in (*mechanism.actuated_joints, *names) if name not in there]
    for k, cells in zip(at, rows, strict=False) if more else ():
        lines[k] = _line([*cells, *(more if cells is heads else [""] * len(more))], mark)
    heads = heads + more
    if not at:
        lines.append(_line(heads, mark))
    lines.append(_line([_cell(head, name, row) for head, name in zip(heads, [*there, *more], strict=True)], mark))
    for one in ([*comments, _line(heads, mark), lines[-1]], lines):  # the row itself, and with the others
        parse_measurements("\n".join(one) + "\n", mechanism, file.name)
    write_whole(file, "\n".join(lines) + "\n")
    return max(1, len(at))


def _refuse_other_units(mechanism: Mechanism, given: Mapping[str, float]) -> None:
    known, size = _known(mechanism), GraphModel(mechanism).length
    for name, value in given.items():
        slides = known.get(name, True)
        if FAR * (size if slides else 1.0) < abs(value) < math.inf:
            problem = f"{name} is {value:g} {'m' if slides else 'rad'}"
            raise MeasurementError("the measurement", problem, f"is it in {'mm' if slides else 'deg'}? Give m and rad")


def _lines(file: Path) -> list[str]:
    if not file.exists():
        return []
    if not file.is_file():  # a pipe never ends
        raise MeasurementError(str(file), "is no ordinary file", "give the path of a CSV file")
    return text_of(file).splitlines()


def _delimiter(heads: str) -> str:
    return max(",;\t", key=heads.count)


def _line(cells: Sequence[str], delimiter: str) -> str:
    made = io.StringIO()
    csv.writer(made, delimiter=delimiter, lineterminator="").writerow(cells)
    return made.getvalue()


def _name(head: str) -> str:
    found = HEAD.match(head)
    return found.group(1) if found else head


def _cell(head: str, name: str, row: Mapping[str, float]) -> str:
    value = row.get(name, math.nan)
    if math.isnan(value):
        return ""
    found = HEAD.match(head)
    return f"{value / UNITS.get(found.group(2) or '' if found else '', 1.0):.12g}"
