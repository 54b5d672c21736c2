# SPDX-License-Identifier: Apache-2.0
"""Delta printers with their measurements: Klipper's printer.cfg, and points below M665 and M666 of others.

Lines of the block of SAVE_CONFIG begin with `#*#`; a setting above it counts before the same one there. A
stable position is the number of steps since the endstops (klipper3d.org: Config_Reference, Delta_Calibrate).

Marlin and RepRapFirmware have towers X, Y, Z at 210, 330 and 90 degrees and add M665's X, Y, Z, counter-clockwise;
homed carriages are where the nozzle is at (0, 0, H). Marlin's endstops are at H - M666 (0 or less), RepRapFirmware's at
H + M666. The latter's M666 A and B are by how many percent the bed rises along x and y. (delta.cpp, motion.cpp;
LinearDeltaKinematics.cpp.)
"""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pkm_calibration.printer_models import STEPPERS, LinearDelta, Measured, Model, Printer, RotaryDelta, Words
from pkm_description.mechanism import Array
from pkm_runtime.errors import ConfigurationError

SECTION = re.compile(r"\s*\[([^\]]+)\]\s*$")
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
SHORTEST = 5.0  # mm, of arms: shorter ones are in metres
MOST = 999  # heights, and distances, that Klipper reads
LONGEST = 20_000_000  # bytes of a file
BED = 0.4  # of the radius of the towers, at least
LEAST = 1.0  # mm, from one end of the points to the other
TOWERS = np.array([210.0, 330.0, 90.0])  # degrees
COMMAND = re.compile(r"[#;\s]*(?:echo:)?\s*M(665|666)\b([^;#]*)", re.IGNORECASE)
WORD = re.compile(r"([A-Z])([-+]?[\d.]+(?:E[-+]?\d+)?(?::[-+]?[\d.]+)*)")
SPOKEN = {
    "printer.delta_radius": "R",
    **{f"stepper_{a}.arm_length": f"the rod of tower {b}" for a, b in zip("abc", "XYZ", strict=True)},
    **{f"stepper_{a}.position_endstop": f"the endstop of tower {b}" for a, b in zip("abc", "XYZ", strict=True)},
    **{f"stepper_{a}.angle": f"the direction of tower {b}" for a, b in zip("abc", "XYZ", strict=True)},
    "arm_length and delta_radius": "L and R of M665",
    "rotation_distance, microsteps and full_steps_per_rotation": "the steps per mm of M92",
    "its microsteps and rotation_distance": "these M665 and M666, and its steps per mm",
    "rotation_distance": "M92",
    ", or measure the printed object of Klipper's Delta_Calibrate": "",
}
HELD = {"delta": ("angle", (210.0, 330.0, 90.0)), "rotary_delta": ("angle", (30.0, 150.0, 270.0))}


@dataclass(frozen=True)
class Entry:
    """A setting as it is written: where, and in which file."""

    value: str
    line: int
    source: str


Settings = Mapping[tuple[str, str], Entry]


def read_klipper(path: Path) -> Printer:
    """Read a printer.cfg and the files that it includes."""
    settings: dict[tuple[str, str], Entry] = {}
    saved: dict[tuple[str, str], Entry] = {}
    sections = _read(path, settings, saved, ())
    merged = saved | settings
    reader = _Reader(str(path), merged)
    if not sections:
        raise ConfigurationError(str(path), "", "has no section such as [printer]", "give Klipper's printer.cfg")
    kinematics = reader.entry("printer", "kinematics", "write delta or rotary_delta: only deltas are calibrated").value
    if kinematics not in HELD:
        where = merged["printer", "kinematics"]
        problem = f"kinematics is {kinematics}, not a delta's"
        raise ConfigurationError(where.source, "printer.kinematics", problem, "give a delta's printer.cfg", where.line)
    rotary = kinematics == "rotary_delta"
    steps = np.array([reader.step(name, rotary) for name in STEPPERS])
    model: Model = RotaryDelta(steps) if rotary else LinearDelta(steps)
    defaults = dict(zip((f"{one}.angle" for one in STEPPERS), HELD[kinematics][1], strict=True))
    values = []
    for name in model.names[:-1]:
        section, key = name.split(".")
        positive = key != "angle" and key != "position_endstop"
        if name in defaults:
            values.append(reader.number(section, key, defaults[name]))
        else:
            of_a = None if section == "printer" else ("stepper_a", key)
            values.append(reader.number(section, key, of_a=of_a, positive=positive))
    x = np.array([*values, 0.0])
    _check_reach(reader, model, x)
    measured = _measured(reader)
    bed = reader.number("delta_calibrate", "radius", 0.0) or BED * float(max(x[0], 50.0))
    return Printer(str(path), model, x, measured, bed)


def _check_reach(reader: _Reader, model: Model, x: Array) -> None:
    for name, value in zip(model.names, x, strict=True):
        if name.endswith("arm_length") and value < SHORTEST:
            where = (
                reader.settings.get((name.split(".")[0], name.split(".")[1]))
                or reader.settings["stepper_a", name.split(".")[1]]
            )
            problem, remedy = f"is {value:g} mm, which looks like metres", f"write all lengths in mm: {1e3 * value:g}"
            raise ConfigurationError(where.source, name, problem, remedy, where.line)
        if name.endswith(".arm_length") and value <= x[0]:
            where = (
                reader.settings.get((name.split(".")[0], "arm_length")) or reader.settings["stepper_a", "arm_length"]
            )
            problem = f"is {value:g} mm, not more than delta_radius, {x[0]:g} mm"
            raise ConfigurationError(where.source, name, problem, "measure the rods", where.line)


def lines_of(path: Path) -> list[str]:
    """Lines of a printer's file."""
    try:
        if path.stat().st_size > LONGEST:
            raise ConfigurationError(str(path), "", "is too large for a file of printer settings", "give printer.cfg")
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
        if CONTROL.search(text):
            raise ConfigurationError(str(path), "", "is not a text file", "give Klipper's printer.cfg")
        return text.split("\n")
    except UnicodeDecodeError:
        raise ConfigurationError(str(path), "", "is not a text file", "give Klipper's printer.cfg") from None
    except OSError as error:
        raise ConfigurationError(str(path), "", f"cannot be read: {error.strerror}", "name a file") from None


def _read(
    path: Path, settings: dict[tuple[str, str], Entry], saved: dict[tuple[str, str], Entry], within: tuple[Path, ...]
) -> set[str]:
    """Read a file and those it includes; the names of the sections seen."""
    seen: set[str] = set()
    section = {id(settings): "", id(saved): ""}
    last: dict[int, tuple[str, str] | None] = {id(settings): None, id(saved): None}
    for number, raw in enumerate(lines_of(path), 1):
        into = settings
        if raw.startswith("#*#"):
            into, raw = saved, raw[4:]
            if raw.startswith("<--") or "DO NOT EDIT" in raw:
                continue
        line = re.split(r"(?:^|\s);", raw.partition("#")[0])[0].rstrip()
        if not line.strip():
            continue
        if found := SECTION.match(line):
            name = found[1].strip()
            seen.add(name)
            section[id(into)], last[id(into)] = name, None
            if name.startswith("include ") and into is settings:
                _include(path, name[8:].strip(), number, settings, saved, within, seen)
            continue
        key = last[id(into)]
        if line[0].isspace() and key is not None:
            into[key] = Entry(f"{into[key].value}\n{line.strip()}".strip(), into[key].line, str(path))
            continue
        found = re.match(r"\s*([^:=\s][^:=]*?)\s*[:=]\s*(.*)$", line)
        if not found or not section[id(into)]:
            problem = f"'{line.strip()[:60]}' is not a [section] or a setting 'name: value'"
            raise ConfigurationError(str(path), "", problem, "correct or remove the line", number)
        key = last[id(into)] = (section[id(into)], found[1].lower())
        _refuse_second(into.get(key), key, number, str(path))
        into[key] = Entry(found[2].strip(), number, str(path))
    return seen


def _refuse_second(first: Entry | None, key: tuple[str, str], line: int, source: str) -> None:
    """Refuse a setting of the calibration that is twice in one file: the last would count, in silence."""
    if first and first.source == source and key[0] in (_BLOCK, "printer", *STEPPERS):
        problem = f"is on line {first.line}, too"
        raise ConfigurationError(source, ".".join(key), problem, "remove one", line)


def _include(
    path: Path,
    what: str,
    line: int,
    settings: dict[tuple[str, str], Entry],
    saved: dict[tuple[str, str], Entry],
    within: tuple[Path, ...],
    seen: set[str],
) -> None:
    files = sorted(glob.glob(str(path.parent / what)))
    if not files and not glob.has_magic(what):
        raise ConfigurationError(str(path), "include", f"there is no file {what}", "put it beside printer.cfg", line)
    for file in map(Path, files):
        if file.resolve() in (*within, path.resolve()):
            raise ConfigurationError(str(path), "include", f"{what} includes itself", "remove the line", line)
        seen |= _read(file, settings, saved, (*within, path.resolve()))


class _Reader:
    """Numbers of the settings, with errors that say where."""

    def __init__(self, source: str, settings: Settings) -> None:
        self.source, self.settings = source, settings

    def entry(self, section: str, key: str, remedy: str) -> Entry:
        found = self.settings.get((section, key))
        if found is None:
            raise ConfigurationError(self.source, f"{section}.{key}", "is missing", remedy)
        return found

    def number(
        self,
        section: str,
        key: str,
        default: float | None = None,
        of_a: tuple[str, str] | None = None,
        positive: bool = False,
    ) -> float:
        found = self.settings.get((section, key)) or (self.settings.get(of_a) if of_a else None)
        if found is None and default is not None:
            return default
        entry = found or self.entry(section, key, "add it: the calibration starts from the settings")
        return self.numbers(entry, f"{section}.{key}", 1, positive)[0]

    def numbers(self, entry: Entry, name: str, count: int, positive: bool = False) -> list[float]:
        try:
            values = [float(part) for part in entry.value.split(",")]
        except ValueError:
            values = []
        if len(values) != count or not np.isfinite(values).all() or np.abs(values).max() > 1e12:
            what = "a number" if count == 1 else f"{count} numbers with commas between"
            problem = f"'{entry.value[:60]}' is not {what}"
            raise ConfigurationError(entry.source, name, problem, "correct it, or measure again", entry.line)
        if positive and values[0] <= 0.0:
            problem = f"is {values[0]:g}, not positive"
            raise ConfigurationError(entry.source, name, problem, "correct it", entry.line)
        return values

    def step(self, section: str, rotary: bool) -> float:
        """Length [mm] or angle [rad] of a step."""

        def number(key: str, default: float | None = None) -> float:
            return self.number(section, key, default, ("stepper_a", key), positive=True)

        if not rotary and self.settings.get((section, "step_distance")):
            return number("step_distance")
        turn = 2.0 * np.pi if rotary else number("rotation_distance")
        if rotary:
            self.entry("stepper_a", "gear_ratio", "a rotary delta has one: motor to arm, such as 107:16, 60:16")
        return turn / (number("full_steps_per_rotation", 200.0) * number("microsteps") * self.gearing(section))

    def gearing(self, section: str) -> float:
        entry = self.settings.get((section, "gear_ratio")) or self.settings.get(("stepper_a", "gear_ratio"))
        ratio = 1.0
        for part in entry.value.split(",") if entry and entry.value else ():
            try:
                a, b = (float(one) for one in part.split(":"))
                ratio *= a / b
            except (ValueError, ZeroDivisionError):
                ratio = np.nan
        if not (0.0 < ratio < np.inf):
            assert entry is not None
            name, problem = f"{section}.gear_ratio", f"'{entry.value[:60]}' is not a ratio"
            raise ConfigurationError(entry.source, name, problem, "write it as 57:11, 2:1", entry.line)
        return ratio


_BLOCK = "delta_calibrate"


def _numbers(reader: _Reader, kind: str) -> list[int]:
    """Numbers of the measurements of a kind; Klipper reads them up to the first gap."""
    keys = [key for section, key in reader.settings if section == _BLOCK]
    numbers = sorted(int(key[len(kind) :]) for key in keys if re.fullmatch(rf"{kind}\d{{1,3}}", key))
    if numbers != list(range(len(numbers))):
        gap = next(k for k, number in enumerate(numbers) if k != number)
        entry = reader.settings[_BLOCK, f"{kind}{numbers[gap]}"]
        problem = f"{kind}{gap} is missing before {kind}{numbers[gap]}, so Klipper stops reading there"
        raise ConfigurationError(entry.source, _BLOCK, problem, "add it, or renumber the rest", entry.line)
    return numbers


def _refuse_orphans(reader: _Reader, lines: Mapping[str, int]) -> None:
    for (section, key), entry in reader.settings.items():
        match = re.fullmatch(r"((?:manual_)?height\d+|distance\d+)_pos[12]?", key)
        if section == _BLOCK and match and match[1] not in lines:
            problem = "a step position has no measured value"
            raise ConfigurationError(entry.source, _BLOCK, problem, "add the value, or remove the position", entry.line)


def _measured(reader: _Reader) -> Measured:
    lines = dict[str, int]()
    heights: list[tuple[str, float, list[float], bool]] = []
    pairs: list[tuple[str, float, list[list[float]]]] = []
    places: dict[tuple[float, ...], str] = {}
    for kind in ("height", "manual_height", "distance"):
        for k in _numbers(reader, kind):
            name = f"{kind}{k}"
            entry = reader.settings[_BLOCK, name]
            value = reader.numbers(entry, name, 1)[0]
            lines[name] = entry.line
            ends = ("_pos1", "_pos2") if kind == "distance" else ("_pos",)
            stable = []
            for end in ends:
                remedy = f"every {kind} has its step position: run DELTA_CALIBRATE again"
                found = reader.settings.get((_BLOCK, name + end))
                if found is None:
                    raise ConfigurationError(entry.source, f"{_BLOCK}.{name}{end}", "is missing", remedy, entry.line)
                stable.append(reader.numbers(found, name + end, 3))
            if kind == "distance":
                pairs.append((name, value, stable))
            else:
                heights.append((name, value, stable[0], kind == "manual_height"))
            key = (value, *(one for row in stable for one in row))
            if key in places:
                problem = f"{name} equals {places[key]} in all digits"
                raise ConfigurationError(
                    entry.source, _BLOCK, problem, "remove one: the same measurement appears twice", entry.line
                )
            places[key] = name
    _refuse_orphans(reader, lines)
    if len([one for one in heights if not one[3]]) < 3:
        problem = f"has {len(heights)} probed heights; at least three are needed, seven are usual"
        remedy = "run DELTA_CALIBRATE and SAVE_CONFIG first"
        raise ConfigurationError(reader.source, f"[{_BLOCK}]", problem, remedy)
    return Measured(
        tuple([one[0] for one in heights] + [one[0] for one in pairs]),
        np.array([one[1] for one in heights]),
        np.array([one[2] for one in heights]),
        np.array([one[3] for one in heights], dtype=bool),
        np.array([one[1] for one in pairs]),
        np.array([one[2] for one in pairs]).reshape(-1, 2, 3),
        lines,
    )


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
    """Read a CSV of x,y,z below M665 and M666; z is what the firmware says where the nozzle touches the bed."""
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
    bed = max(float(np.hypot(*at[:, :2].T).max()), BED * float(x[0]))
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
