# SPDX-License-Identifier: Apache-2.0
"""`pkm calibrate`: of a printer, by what its firmware has measured, or of any robot, by measurements."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from pkm_description import load_mechanism
from pkm_description.command_options import OPEN, Parser, add_robot, wrong
from pkm_description.load import CORRECTIONS, xacro_arguments
from pkm_runtime.errors import PkmError
from pkm_runtime.json_text import json_text
from pkm_runtime.progress import progress
from pkm_runtime.whole_files import write_whole

MCODE = re.compile(r"[#;\s]*(?:echo:)?\s*M665\b", re.IGNORECASE)
EPILOG = """\
DATA is a CSV file, a row for each pose: the readings of all drives by their names, and what was measured there, as in

    limb1_arm [deg], limb2_arm [deg], limb3_arm [deg], x [mm], y [mm], z [mm]

x y z: the platform's origin, or the point on it that point_x point_y point_z say; height: the same as z;
yaw pitch roll, or qx qy qz qw: its attitude; distance: from the base's origin, or from from_x from_y from_z, as by a
double ball bar; the name of another joint: a sensor on it. Any mixture; an empty cell was not measured.
A comment `# sigma x [mm]: 0.02` says how well a column is measured.

The file that -o writes is applied with --corrections FILE of any command, or corrections:=FILE of ros2 launch.
Exit status: 0, 2 where the measurements cannot be used, 3 where they do not explain themselves.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, of printers for Klipper's file, by its ending, or one with M665 at its head; the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    file = next((word for word in words if not word.startswith("-")), "")
    printer = file.lower().endswith(".cfg") or begins_with_mcode(Path(file))
    given = printer_parser().parse_args(words) if printer else _checked(words)
    try:
        if printer:
            return _calibrate_printer(given)
        return _plan(given) if given.plan is not None else _calibrate(given)
    except KeyboardInterrupt:
        print("\npkm calibrate: ended; nothing was written", file=sys.stderr)
        return 130
    except (PkmError, OSError) as error:
        return wrong("calibrate", error)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = Parser(
        prog="pkm calibrate",
        description="Estimate the joint locations of a real robot from measurements, or plan poses to measure. "
        "`pkm calibrate printer.cfg` calibrates a 3D printer.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_robot(p)
    p.add_argument("data", nargs="?", metavar="DATA", help="measurements (CSV)")
    p.add_argument("--plan", type=int, metavar="N", help="instead: choose N poses to measure")
    text = "measured quantities at the poses, commas between: position, attitude, height, distance (default: position)"
    p.add_argument("--measure", default="position", metavar="KINDS", help=text)
    p.add_argument("-o", "--output", metavar="FILE", help="file of corrections, or of the plan, to write")
    p.add_argument("--urdf", metavar="FILE", help="write the corrected description as well")
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write the numbers as JSON; else print them")
    p.add_argument("--report", type=Path, metavar="PAGE", help="page to write, FILE.html")
    text = "share of the rows used to validate the result (default: %(default)g)"
    p.add_argument("--keep", type=float, default=0.2, metavar="SHARE", help=text)
    text = "patterns of the free parameters, such as '*: zero of *'; all others stay as drawn"
    p.add_argument("--only", nargs="+", default=(), metavar="PATTERN", help=text)
    text = "free the offsets and angles between the axes of universal joints"
    p.add_argument("--real-crosses", action="store_true", help=text)
    p.add_argument("--real-gears", action="store_true", help="free the ratios of gears")
    return p


def printer_parser() -> argparse.ArgumentParser:
    """The command line."""
    p = Parser(
        prog="pkm calibrate",
        description="Calibrate a delta printer from measurements of its firmware: Klipper's printer.cfg after "
        "DELTA_CALIBRATE or DELTA_ANALYZE, and SAVE_CONFIG; or points probed by Marlin or RepRapFirmware, a CSV with "
        "M665 and M666 at its head (docs/calibration_printers.md). The command measures nothing itself. Lengths "
        "in mm, angles in "
        "degrees.",
        epilog="Exit status: 0 accepted, 3 refused, 2 the file cannot be used.",
    )
    text = "Klipper's configuration of a delta, linear or rotary; or a CSV with M665, M666 and the points x,y,z"
    p.add_argument("printer", type=Path, metavar="PRINTER", help=text)
    text = "write the new settings, to paste into printer.cfg or to send to the printer"
    p.add_argument("-o", "--output", metavar="FILE", help=text)
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write the numbers as JSON; else print them")
    text = "page to write, FILE.html, with the bed before and after"
    p.add_argument("--report", type=Path, metavar="PAGE", help=text)
    return p


def begins_with_mcode(path: Path) -> bool:
    """Whether M665 is among the first lines of a file, in comments or not: those of Marlin or RepRapFirmware."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            head = [file.readline(1000) for _ in range(30)]
    except OSError:
        return False
    return any(map(MCODE.match, takewhile(lambda line: not line.startswith("["), head)))


def _checked(words: Sequence[str]) -> argparse.Namespace:
    """The command line of robots; it exits where that asks for what cannot be."""
    p = parser()
    given = p.parse_intermixed_args(words)  # DATA may stand after options, too
    if (given.plan is None) == (given.data is None):
        if given.robot.lower().endswith(".csv"):
            if not Path(given.robot).is_file():
                p.error(f"{given.robot} is no file: give that of a printer, or a robot and its data")
            p.error(f"{given.robot} has no M665 before its points, as a printer's file has: add M665 and M666")
        if taken := [one for one in (*given.only, given.json or "") if one.lower().endswith(".csv")]:
            p.error(f"{taken[-1]} went to the option before it: write DATA right after ROBOT")
        if given.data is not None:
            p.error(f"{given.data} was taken for DATA, and --plan takes none; write kinds as position,attitude")
        p.error("give measurements, or --plan N")
    if given.plan is not None and not 1 <= given.plan <= 1000:
        p.error(f"--plan {given.plan}: give 1 to 1000 poses")
    calibrations = [f"--{name}" for name in ("urdf", "json", "report", "only") if getattr(given, name)]
    if given.plan is not None and calibrations:
        p.error(f"{' and '.join(calibrations)}: for a calibration; --plan chooses poses alone")
    if not 0.0 <= given.keep <= 0.5:
        p.error(f"--keep {given.keep:g}: give a share from 0 to 0.5")
    outputs = [one for one in (given.output, given.urdf, given.json, given.report) if one and one != "-"]
    if given.data is not None and any(_same(one, given.data) for one in outputs):
        p.error(f"{given.data} contains the measurements: write to another file")
    return given


def _write(file: str, text: str) -> None:
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    write_whole(Path(file), text)


def _same(one: str | Path, other: str | Path) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return Path(one).absolute() == Path(other).absolute()


def _plan(given: argparse.Namespace) -> int:
    from pkm_calibration.calibration_report import shown
    from pkm_calibration.measured_robot import EXPECTED
    from pkm_calibration.plan import plan_poses

    mechanism = load_mechanism(given.robot, xacro_arguments(given.xacro_args))
    with progress(f"planning poses of {mechanism.name}"):
        kinds = tuple(dict.fromkeys(kind.strip() for kind in given.measure.split(",")))
        ideal = {"ideal_joints": not given.real_crosses, "ideal_gears": not given.real_gears}
        found = plan_poses(mechanism, given.plan, kinds, **ideal)
    if given.output:
        if Path(given.output).exists():
            raise PkmError(f"{given.output} exists and may contain measurements: give another name")
        _write(given.output, found.table())
    else:
        print(found.table(), end="")
    expected = [EXPECTED[one.unit] for one in found.parameters]
    worst = max(range(len(found.parameters)), key=lambda k: found.uncertain[k] / expected[k])
    lines = [
        f"{mechanism.name}: {len(found.drives)} poses identify {found.rank} of {len(found.parameters)} parameters from "
        f"{' and '.join(kinds)}",
        f"  observability {found.observability:.3g}, of as many random poses {found.at_random:.3g}",
        f"  least known afterwards: {found.parameters[worst].name}, "
        f"to {shown(float(found.uncertain[worst]), found.parameters[worst].unit)} (one standard deviation)",
    ]
    if found.rank < len(found.parameters):
        lines.append("  ask for more poses, or measure more at each, to know them all")
    print("\n".join(lines), file=sys.stderr)
    return 0


def _calibrate(given: argparse.Namespace) -> int:
    from pkm_calibration.measurements import parse_measurements, text_of

    text = text_of(given.data)  # before what takes long
    arguments = xacro_arguments(given.xacro_args)
    mechanism = load_mechanism(given.robot, arguments)
    measured = parse_measurements(text, mechanism, Path(given.data).name)

    from pkm_calibration.calibration import calibrate
    from pkm_calibration.calibration_report import as_numbers, in_words
    from pkm_calibration.estimation import ContradictionError
    from pkm_description.corrections import corrected, read_corrections

    messages = [""]
    try:
        with progress(f"calibrating {mechanism.name}", lambda: messages[-1]):
            found = calibrate(
                mechanism,
                measured,
                given.keep,
                not given.real_crosses,
                only=given.only,
                ideal_gears=not given.real_gears,
                report_progress=messages.append,
            )
    except ContradictionError as error:
        reason = str(error)
        numbers = _numbers(given, {"verdict": "refused", "reasons": [reason]})
        return _told(given, numbers, [f"refused: {reason}"], {}, True)
    numbers = _numbers(given, as_numbers(found))
    first = read_corrections(arguments[CORRECTIONS])[1] if CORRECTIONS in arguments else ()
    if given.output and not found.refused:
        _write(given.output, found.corrections(first))
    if given.report:
        from pkm_calibration.calibration_report import write_page

        write_page(given.report, found, numbers)
    files = {"report": given.report}
    files |= {} if found.refused else {"corrections": given.output}
    status = _told(given, numbers, in_words(found), files, bool(found.refused))
    if given.urdf and not found.refused:  # which may be refused, after the answer
        _write(given.urdf, corrected(mechanism, found.displacements).urdf)
        print(f"description: {given.urdf}", file=sys.stderr if given.json == "-" else sys.stdout)
    return status


def _numbers(given: argparse.Namespace, found: dict[str, Any]) -> str:
    numbers = json_text(found)
    if given.json and given.json != "-":
        _write(given.json, numbers + "\n")
    return numbers


def _told(
    given: argparse.Namespace, numbers: str, words: Sequence[str], files: Mapping[str, object], refused: bool
) -> int:
    if given.json == "-":
        print(numbers)
    else:
        print("\n".join([*words, *(f"{what}: {file}" for what, file in files.items() if file)]))
    return OPEN if refused else 0


def _calibrate_printer(given: argparse.Namespace) -> int:
    from pkm_calibration.calibration_report import printer_words, settings_text
    from pkm_calibration.printer_calibration import calibrate_printer, printer_numbers
    from pkm_calibration.printer_files import read_klipper, read_mcode

    printer = read_mcode(given.printer) if begins_with_mcode(given.printer) else read_klipper(given.printer)
    with progress(f"calibrating {given.printer}"):
        found = calibrate_printer(printer)
    numbers = _numbers(given, printer_numbers(found))
    if given.report:
        from pkm_calibration.calibration_report import write_printer_page

        write_printer_page(given.report, found, numbers)
    if given.output and not found.reasons:
        _write(given.output, settings_text(found))
    files = {"settings": None if found.reasons else given.output, "report": given.report}
    return _told(given, numbers, printer_words(found), files, bool(found.reasons))
