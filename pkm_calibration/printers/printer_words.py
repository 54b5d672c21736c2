# SPDX-License-Identifier: Apache-2.0
"""A printer's calibration in words, and as settings to be pasted."""

from __future__ import annotations

import numpy as np

from pkm_calibration.printers.printer_calibration import Calibrated


def in_words(found: Calibrated) -> list[str]:
    """The answer for people: results first."""
    count = len(found.printer.measured.names)
    lines = [f"{found.printer.source}: {'refused' if found.reasons else 'calibrated'} by {count} measurements"]
    lines += [f"  {reason}" for reason in found.reasons]
    if found.bed is not None:
        error, unsure = found.bed[1], found.bed[2]
        lines.append(f"  measurement error {found.rms[0]:.3f} mm before, {found.rms[1]:.3f} mm after (rms)")
        lines.append(
            f"  height of the nozzle at z = 0, over the bed: {np.nanmin(error):+.3f} to {np.nanmax(error):+.3f} mm "
            f"before; after, 0 within {np.nanmax(unsure):.3f} mm (95 %)"
        )
    lines += [f"  {note}" for note in found.notes]
    if found.outliers:
        places = ", ".join(f"{name} (line {found.printer.measured.lines.get(name, 0)})" for name in found.outliers)
        lines.append(f"  left out as inconsistent: {places}; measure again")
    if found.bed is None:
        return lines
    lines.append("  settings with 95 % intervals:")
    width = max(map(len, found.parameters))
    before, intervals = found.settings, found.intervals()
    for name, value in found.parameters.items():
        unit = "deg" if name.endswith(("angle", "M665.X", "M665.Y", "M665.Z")) else "mm"
        old, half = before[name], intervals[name][1] - value
        if name in found.unidentified:
            lines.append(
                f"    {name:<{width}}  {value:12.4f} {unit:<3}  held: not identifiable from these measurements"
            )
        else:
            lines.append(f"    {name:<{width}}  {value:12.4f} {unit:<3}  ± {half:.4f}, was {old:.4f}")
    if len(found.unidentified) > 1:
        lines.append("  intervals include errors of the held parameters (--json also has them for exact ones)")
    if found.printer.pasted and not found.reasons:
        lines += ["  to send or paste:", *(f"    {line}" for line in found.printer.pasted(found.parameters))]
    return lines


def settings_text(found: Calibrated) -> str:
    """Settings to be pasted into printer.cfg, or sent to the printer."""
    if found.printer.pasted:
        return "\n".join(found.printer.pasted(found.parameters)) + "\n"
    lines = [
        f"# Calibrated by pkm calibrate from {len(found.printer.measured.names)} measurements, "
        f"rms {found.rms[0]:.3f} -> {found.rms[1]:.3f} mm.",
        "# Replace the same settings with these; above the block of SAVE_CONFIG they override its settings.",
    ]
    sections = dict.fromkeys(name.split(".")[0] for name in found.parameters)
    for section in sections:
        lines += ["", f"[{section}]"]
        lines += [f"{n.split('.')[1]}: {v:.6f}" for n, v in found.parameters.items() if n.split(".")[0] == section]
    return "\n".join(lines) + "\n"
