# SPDX-License-Identifier: Apache-2.0
"""A file of measurements that grows row by row, while somebody measures a robot that runs."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from pkm_calibration.robots.measurements import (
    FROM,
    HEAD,
    LARGEST,
    POINT,
    UNITS,
    MeasurementError,
    parse_measurements,
)
from pkm_description.mechanism import Array, Mechanism
from pkm_runtime.whole_files import write_whole


def append_measurement(
    file: Path, mechanism: Mechanism, readings: Array, names: Sequence[str], values: Sequence[float]
) -> int:
    """Add a row to a CSV file that `read_measurements` reads, and make the file where there is none.

    New columns are added to it; comments and units of its first line stay.

    Args:
        readings: of the drives (n_actuated,) [rad, m], in the order of the description.
        names: of the columns of what was measured.
        values: m, rad; NaN was not measured.

    Returns:
        How many rows the file has now.

    Raises:
        MeasurementError: the row, or the file, cannot be used; the file is as it was.
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
    row = dict(zip(names, values, strict=True)) | dict(zip(mechanism.actuated_joints, readings.tolist(), strict=True))
    comments, heads, cells = _read(file)
    known = [_name(head) for head in heads]
    heads += [name for name in (*mechanism.actuated_joints, *names) if name not in known]
    known = [_name(head) for head in heads]
    cells = [line + [_default(name) for name in known[len(line) :]] for line in cells]
    cells.append([_cell(head, name, row) for head, name in zip(heads, known, strict=True)])
    text = _text(comments, [heads, *cells])
    for one in (_text(comments, [heads, cells[-1]]), text):  # the row itself, and with the others
        parse_measurements(one, mechanism, file.name)
    write_whole(file, text)
    return len(cells)


def _read(file: Path) -> tuple[list[str], list[str], list[list[str]]]:
    """Comments, the first line's cells and the others'; nothing where there is no file."""
    try:
        if not file.exists():
            return [], [], []
        if file.stat().st_size > LARGEST:
            raise MeasurementError(str(file), f"is larger than {LARGEST // 10**6} MB", "start another file")
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise MeasurementError(str(file), f"cannot be read ({error})", "give the path of a CSV file") from error
    comments = [line for line in lines if line.lstrip().startswith("#")]
    rows = list(csv.reader(line for line in lines if line.strip() and not line.lstrip().startswith("#")))
    return comments, (rows[0] if rows else []), rows[1:]


def _text(comments: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    made = io.StringIO()
    made.writelines(f"{line}\n" for line in comments)
    csv.writer(made, lineterminator="\n").writerows(rows)
    return made.getvalue()


def _name(head: str) -> str:
    found = HEAD.match(head)
    return found.group(1) if found else head


def _default(name: str) -> str:
    return "0" if name in (*FROM, *POINT) else ""


def _cell(head: str, name: str, row: Mapping[str, float]) -> str:
    """The value in the unit of its column; empty where it was not measured."""
    value = row.get(name, math.nan)
    if math.isnan(value):
        return _default(name)
    found = HEAD.match(head)
    return f"{value / UNITS.get(found.group(2) or '' if found else '', 1.0):.12g}"
