# SPDX-License-Identifier: Apache-2.0
"""Delta printers with their measurements, from Klipper's printer.cfg.

Lines of the block of SAVE_CONFIG begin with `#*#`; a setting above it counts before the same one there. A
stable position is the number of steps since the endstops (klipper3d.org: Config_Reference, Delta_Calibrate).
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pkm_calibration.printer_models import STEPPERS, LinearDelta, Model, RotaryDelta, Words, own_words
from pkm_description.mechanism import Array
from pkm_runtime.errors import ConfigurationError

SECTION = re.compile(r"\s*\[([^\]]+)\]\s*$")
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
SHORTEST = 5.0  # mm, of arms: shorter ones are in metres
MOST = 999  # heights, and distances, that Klipper reads
LONGEST = 20_000_000  # bytes of a file
HELD = {"delta": ("angle", (210.0, 330.0, 90.0)), "rotary_delta": ("angle", (30.0, 150.0, 270.0))}


@dataclass(frozen=True)
class Entry:
    """A setting as it is written: where, and in which file."""

    value: str
    line: int
    source: str


Settings = Mapping[tuple[str, str], Entry]


@dataclass(frozen=True, eq=False)
class Measured:
    """What a printer measured, [mm]: heights of the nozzle at steps (m, 3), distances between pairs of steps (k, 2, 3).

    `manual` (m,) are heights measured by hand with a ruler. `lines` by the name of a measurement.
    """

    names: tuple[str, ...]
    heights: Array
    places: Array
    manual: np.ndarray
    distances: Array
    pairs: Array
    lines: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class Printer:
    """A printer as its settings have it: its model with parameters (n,), what it measured, radius of the bed [mm].

    `words` are the firmware's, at values of the model's parameters; `spoken`: what to say for Klipper's words.
    `pasted` writes values in the firmware's words as its lines of settings.
    """

    source: str
    model: Model
    values: Array
    measured: Measured
    bed: float
    firmware: str = "klipper"
    words: Callable[[Model, Array], Words] = lambda model, _: own_words(model)
    spoken: Mapping[str, str] = field(default_factory=dict)
    pasted: Callable[[Mapping[str, float]], list[str]] | None = None


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
    bed = reader.number("delta_calibrate", "radius", 0.0) or 0.4 * float(max(x[0], 50.0))
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
        text = path.read_bytes().decode("utf-8").replace("\r\n", "\n")
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
