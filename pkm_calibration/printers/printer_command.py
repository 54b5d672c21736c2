# SPDX-License-Identifier: Apache-2.0
"""`pkm calibrate printer.cfg`: what a printer's firmware has measured, judged and turned into settings."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from pkm_runtime.errors import PkmError
from pkm_runtime.progress import progress
from pkm_runtime.whole_files import write_whole

MCODE = re.compile(r"[#;\s]*(?:echo:)?\s*M665\b", re.IGNORECASE)
ACCEPTED, REFUSED, UNUSABLE = 0, 3, 2


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    given = parser().parse_args(arguments)
    try:
        return _calibrate(given)
    except PkmError as error:
        print(f"pkm calibrate: {error}", file=sys.stderr)
    except OSError as error:
        print(f"pkm calibrate: {error.filename}: {error.strerror}", file=sys.stderr)
    return UNUSABLE


def _calibrate(given: argparse.Namespace) -> int:
    from pkm_calibration.printers.klipper_file import read_klipper
    from pkm_calibration.printers.mcode_file import read_mcode
    from pkm_calibration.printers.printer_calibration import as_numbers, calibrate_printer
    from pkm_calibration.printers.printer_words import in_words, settings_text

    printer = read_mcode(given.printer) if begins_with_mcode(given.printer) else read_klipper(given.printer)
    with progress(f"calibrating {given.printer}"):
        found = calibrate_printer(printer)
    numbers = json.dumps(as_numbers(found), indent=1, ensure_ascii=False)
    if given.json and given.json != "-":
        write_whole(Path(given.json), numbers + "\n")
    if given.report:
        from pkm_calibration.printers.printer_page import write_page

        write_page(given.report, found, numbers)
    if given.output and not found.reasons:
        write_whole(Path(given.output), settings_text(found))
    if given.json == "-":
        print(numbers)
    else:
        print("\n".join(in_words(found)))
        for what, file in (("settings", given.output if not found.reasons else None), ("report", given.report)):
            if file:
                print(f"{what}: {file}")
    return REFUSED if found.reasons else ACCEPTED
