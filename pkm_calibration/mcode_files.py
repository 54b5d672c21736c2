# SPDX-License-Identifier: Apache-2.0
"""Linear deltas of Marlin and RepRapFirmware, with points probed below M665 and M666, which are written anew.

Both have towers X, Y, Z at 210, 330 and 90 degrees and add M665's X, Y, Z, counter-clockwise; homed carriages are where
the nozzle is at (0, 0, H). Marlin's endstops are at H - M666 (0 or less), RepRapFirmware's at H + M666. The latter's
M666 A and B are by how many percent the bed rises along x and y. (delta.cpp, motion.cpp; LinearDeltaKinematics.cpp.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pkm_calibration.printer_files import Measured, Printer, lines_of
from pkm_calibration.printer_models import LinearDelta, Model, Words
from pkm_description.mechanism import Array
from pkm_runtime.errors import ConfigurationError

LEAST = 1.0  # mm, from one end of the points to the other
TOWERS = np.array([210.0, 330.0, 90.0])  # degrees
COMMAND = re.compile(r"[#;\s]*(?:echo:)?\s*M(665|666)\b([^;#]*)", re.IGNORECASE)
WORD = re.compile(r"([A-Z])([-+]?[\d.]+(?:E[-+]?\d+)?(?::[-+]?[\d.]+)*)")
SPOKEN = {
    "printer.delta_radius": "R",
    **{f"stepper_{a}.arm_length": f"the rod of tower {b}" for a, b in zip("abc", "XYZ", strict=True)},
    **{f"stepper_{a}.angle": f"the direction of tower {b}" for a, b in zip("abc", "XYZ", strict=True)},
    "arm_length and delta_radius": "L and R of M665",
    "rotation_distance, microsteps and full_steps_per_rotation": "the steps per mm of M92",
    "its microsteps and rotation_distance": "these M665 and M666, and its steps per mm",
    "rotation_distance": "M92",
    ", or measure the printed object of Klipper's Delta_Calibrate": "",
}


class _Head:
    def __init__(self, source: str) -> None:
        self.source, self.found = source, dict[str, tuple[list[float], int]]()
        self.comments, self.last = "", 0

    def add(self, line: str, number: int) -> None:
        self.last = number
        command = COMMAND.match(line)
        if not command:
            self.comments += line.lower()
            return
        for word in command[2].upper().split():
            match = WORD.fullmatch(word)
            try:
                values = [float(part) for part in match[2].split(":")] if match else []
            except ValueError:
                values = []
            if not match or not values or not np.isfinite(values).all():
                raise self.error(f"M{command[1]}", f"'{word[:60]}' is not a letter with a number", "correct it", number)
            self.found[f"M{command[1]}.{match[1]}"] = values, number

    def has(self, *names: str) -> bool:
        return any(name in self.found for name in names)

    def number(self, name: str, default: float | None = None, positive: bool = False) -> float:
        if default is None and name not in self.found:
            problem, remedy = "is missing", "add it: the calibration starts from the settings"
            raise self.error(name, problem, remedy, self.last)
        values, line = self.found.get(name, ([default or 0.0], 0))
        if positive and not 0.0 < values[0] < 1e6:
            raise self.error(name, f"is {values[0]:g} mm, which is not a length of a printer", "correct it", line)
        return values[0]

    def three(self, command: str, letters: str = "XYZ") -> Array:
        return np.array([self.number(f"{command}.{one}", 0.0) for one in letters])

    def firmware(self) -> str:
        marlin = "marlin" in self.comments or self.has("M665.S", "M665.A", "M665.C")
        lengths = self.found["M665.L"][0] if self.has("M665.L") else []
        duet = "reprapfirmware" in self.comments or self.has("M666.A", "M666.B") or len(lengths) > 1
        if marlin == duet:
            problem = "may be from Marlin or RepRapFirmware; their signs of M666 are opposite"
            remedy = "add a line '# Marlin' or '# RepRapFirmware'"
            raise self.error("", problem, remedy, min(line for _, line in self.found.values()))
        return "marlin" if marlin else "reprapfirmware"

    def error(self, element: str, problem: str, remedy: str, line: int = 0) -> ConfigurationError:
        return ConfigurationError(self.source, element, problem, remedy, line)


def read_mcode(path: Path) -> Printer:
    """Read a CSV of x,y,z below M665 and M666.

    z is what the firmware says where the nozzle touches the bed.
    """
    head, points, lines = _Head(str(path)), list[list[float]](), list[int]()
    header = 0
    for number, line in enumerate(lines_of(path), 1):
        plain = line.strip().lower().replace(" ", "")
        if header and plain and plain[0] not in "#;":
            point = _row(head, line, number)
            if point in points:
                problem = f"equals line {lines[points.index(point)]} in all digits"
                raise head.error("", problem, "remove one: the same measurement appears twice", number)
            points.append(point)
            lines.append(number)
        elif not header and plain == "x,y,z":
            header = number
        elif not header:
            head.add(line, number)
    if not header:
        raise head.error("", "has no line 'x,y,z'", "put it between M666 and the points", head.last)
    firmware = head.firmware()
    model, x = LinearDelta(np.ones(3)), _model_values(head, firmware)
    tilt = 0.01 * head.three("M666", "AB") if firmware == "reprapfirmware" else np.zeros(2)
    if len(points) < 3:
        problem = f"has {len(points)} points; at least three are needed, use ten or more"
        raise head.error("", problem, "probe more points", lines[-1] if lines else header)
    at = np.array(points)
    if np.ptp(at[:, :2], axis=0).max() < LEAST:
        problem = f"has points within {np.ptp(at[:, :2], axis=0).max():.3g} mm of each other"
        raise head.error("", problem, "probe the whole bed, and write x, y and z in mm: are these m?", lines[0])
    raised = at[:, :2] @ tilt  # where the nozzle is believed to be: it errs by mm, and a tilt is a few in a thousand
    with np.errstate(invalid="ignore"):
        places = model.counts(x, at + np.outer(raised, [0.0, 0.0, 1.0]))
    far = np.flatnonzero(~np.isfinite(places).all(axis=1))
    if len(far):
        problem = "the rods do not reach the point with these settings"
        raise head.error("", problem, "correct it, or L and R of M665", lines[far[0]])
    names = tuple(f"point{k}" for k in range(1, len(at) + 1))
    none, where = np.zeros(0), dict(zip(names, lines, strict=True))
    measured = Measured(names, raised, places, np.zeros(len(at), bool), none, none.reshape(0, 2, 3), where)
    bed = float(np.hypot(*at[:, :2].T).max())
    trims = head.three("M665", "ABC") if firmware == "marlin" and head.has("M665.A", "M665.C") else np.zeros(3)

    def words(model: Model, x: Array) -> Words:
        return _words(firmware, float(trims.mean()), x)

    def pasted(values: Mapping[str, float]) -> list[str]:
        return _pasted(head, firmware, values)

    return Printer(str(path), model, x, measured, bed, firmware, words, SPOKEN, pasted)


def _row(head: _Head, line: str, number: int) -> list[float]:
    try:
        row = [float(part) for part in line.split(",")]
    except ValueError:
        row = []
    if len(row) != 3 or not np.isfinite(row).all() or np.abs(row).max() > 1e6:
        raise head.error("", f"'{line.strip()[:60]}' is not three numbers x,y,z in mm", "correct the row", number)
    return row


def _model_values(head: _Head, firmware: str) -> Array:
    radius, height = head.number("M665.R", positive=True), head.number("M665.H", positive=True)
    head.number("M665.L", positive=True)
    lengths, line = head.found["M665.L"]
    rods = np.array(lengths if len(lengths) == 3 else [*lengths[:1] * 3])
    if len(lengths) not in (1, 3):
        raise head.error("M665.L", f"has {len(lengths)} lengths", "give one, or one for each of three towers", line)
    if firmware == "marlin" and head.has("M665.A", "M665.C"):
        rods = rods + head.three("M665", "ABC")
    if rods.min() <= radius:
        problem = f"rods of {rods.min():g} mm are not longer than R, {radius:g} mm"
        raise head.error("M665.L", problem, "measure the rods", line)
    if not head.has("M666.X", "M666.Y", "M666.Z"):
        raise head.error("M666", "is missing", "add 'M666 X.. Y.. Z..' as the firmware has it", head.last)
    ends = head.three("M666")
    if firmware == "marlin":
        for tower, value in zip("XYZ", ends, strict=True):
            if value > 0.0:
                problem = f"is {value:g}, but Marlin writes 0 or less"
                raise head.error(f"M666.{tower}", problem, "correct it", head.found[f"M666.{tower}"][1])
        ends = -ends
    return np.array([radius, *(height + ends), *(TOWERS + head.three("M665")), *rods, 0.0])


def _words(firmware: str, trim: float, x: Array) -> Words:
    """M665 and M666 by the model's parameters; Marlin's rods have `trim` on average."""
    rows = np.eye(11)
    ends, rods, mean = rows[1:4], rows[7:10], np.ones(3) / 3.0
    if firmware == "marlin":
        height = ends[np.argmin(x[1:4])]  # no M666 is above 0
        stops, length = height - ends, ["L", "M665.A", "M665.B", "M665.C"]
        arms, at = rods - mean @ rods, [-trim, *[trim] * 3]
    else:
        height = mean @ ends  # M666 is 0 on average, as after the firmware's own calibration
        stops, length = ends - height, ["L", "L.X", "L.Y", "L.Z"]
        arms, at = rods, [0.0] * 4
    names = ("R", "H", *(f"M666.{one}" for one in "XYZ"), *(f"M665.{one}" for one in "XYZ"), *length)
    by = np.vstack([rows[0], height, stops, rows[4:7], mean @ rods, arms])
    return Words(names, by, np.array([0.0] * 5 + [*-TOWERS, *at]))


def _pasted(head: _Head, firmware: str, values: Mapping[str, float]) -> list[str]:
    def text(command: str, names: Mapping[str, str]) -> str:
        return " ".join([command, *(f"{letter}{values[name] + 0.0:.4f}" for letter, name in names.items())])

    kept = {letter: f" {letter}{head.number(f'M665.{letter}'):g}" for letter in "BS" if head.has(f"M665.{letter}")}
    first = text("M665", {"R": "R", "H": "H", **{one: f"M665.{one}" for one in "XYZ"}})
    second = text("M666", {one: f"M666.{one}" for one in "XYZ"})
    if firmware == "marlin":
        trims = {one: f"M665.{one}" for one in "ABC"}
        if head.has("M665.A", "M665.C") or max(abs(values[name]) for name in trims.values()) > 1e-9:
            kept.pop("B", None)
            first += text("", trims)
        return [f"{first} L{values['L']:.4f}{''.join(kept.values())}", second, "M500"]
    each = [f"{values[f'L.{one}']:.4f}" for one in "XYZ"]
    lengths = each[0] if len(set(each)) == 1 else ":".join(each)  # before 2.03 there was one
    tilt = "".join(f" {one}{head.number(f'M666.{one}'):g}" for one in "AB" if head.has(f"M666.{one}"))
    return [f"{first} L{lengths}{''.join(kept.values())}", second + tilt]
