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
from typing import TYPE_CHECKING

from pkm_runtime.errors import PkmError
from pkm_runtime.progress import progress
from pkm_runtime.whole_files import write_whole

if TYPE_CHECKING:
    from pkm_calibration.printers.printer_calibration import Calibrated

MCODE = re.compile(r"[#;\s]*(?:echo:)?\s*M665\b", re.IGNORECASE)
ACCEPTED, REFUSED, UNUSABLE = 0, 3, 2


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(
        prog="pkm calibrate",
        description="Calibrate a delta printer from what its firmware has measured: Klipper's printer.cfg after "
        "DELTA_CALIBRATE or DELTA_ANALYZE, and SAVE_CONFIG; or points probed by Marlin or RepRapFirmware, a CSV with "
        "M665 and M666 at its head (docs/calibration_printers.md). Nothing is measured anew. Lengths in mm, angles in "
        "degrees.",
        epilog="Exit status: 0 accepted, 3 refused, 2 the file cannot be used.",
    )
    text = "Klipper's configuration of a delta, linear or rotary; or a CSV with M665, M666 and the points x,y,z"
    p.add_argument("printer", type=Path, metavar="PRINTER", help=text)
    text = "write the new settings, to be pasted into printer.cfg, or sent to the printer"
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


def in_words(found: Calibrated) -> list[str]:
    """The answer for people: results first."""
    import numpy as np

    count = len(found.printer.measured.names)
    lines = [f"{found.printer.source}: {'refused' if found.reasons else 'calibrated'} by {count} measurements"]
    lines += [f"  {reason}" for reason in found.reasons]
    if found.bed is not None:
        error, unsure = found.bed[1], found.bed[2]
        lines.append(f"  measurements miss by {found.rms[0]:.3f} mm before, {found.rms[1]:.3f} mm after (rms)")
        lines.append(
            f"  height of the nozzle where z is 0, over the bed: {np.nanmin(error):+.3f} to {np.nanmax(error):+.3f} mm "
            f"before; after, 0 within {np.nanmax(unsure):.3f} mm (95 %)"
        )
    lines += [f"  {note}" for note in found.notes]
    if found.outliers:
        places = ", ".join(f"{name} (line {found.printer.measured.lines.get(name, 0)})" for name in found.outliers)
        lines.append(f"  left out, they do not go with the others: {places}; measure again")
    if found.bed is None:
        return lines
    lines.append("  settings with 95 % intervals:")
    width = max(map(len, found.parameters))
    before, intervals = found.settings, found.intervals()
    for name, value in found.parameters.items():
        unit = "deg" if name.endswith(("angle", "M665.X", "M665.Y", "M665.Z")) else "mm"
        old, half = before[name], intervals[name][1] - value
        if name in found.unidentified:
            lines.append(f"    {name:<{width}}  {value:12.4f} {unit:<3}  held: these measurements cannot tell it")
        else:
            lines.append(f"    {name:<{width}}  {value:12.4f} {unit:<3}  ± {half:.4f}, was {old:.4f}")
    if len(found.unidentified) > 1:
        lines.append("  intervals count with errors of what is held (--json has them as if it were exact)")
    if found.printer.pasted and not found.reasons:
        lines += ["  to be sent, or pasted:", *(f"    {line}" for line in found.printer.pasted(found.parameters))]
    return lines


def settings_text(found: Calibrated) -> str:
    """Settings to be pasted into printer.cfg, or sent to the printer."""
    if found.printer.pasted:
        return "\n".join(found.printer.pasted(found.parameters)) + "\n"
    lines = [
        f"# Calibrated by pkm calibrate from {len(found.printer.measured.names)} measurements, "
        f"rms {found.rms[0]:.3f} -> {found.rms[1]:.3f} mm.",
        "# Put these in place of the same settings; above the block of SAVE_CONFIG they count before those in it.",
    ]
    sections = dict.fromkeys(name.split(".")[0] for name in found.parameters)
    for section in sections:
        lines += ["", f"[{section}]"]
        lines += [f"{n.split('.')[1]}: {v:.6f}" for n, v in found.parameters.items() if n.split(".")[0] == section]
    return "\n".join(lines) + "\n"
