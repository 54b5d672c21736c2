# SPDX-License-Identifier: Apache-2.0
"""A calibration in words and as numbers, for the terminal, the page and JSON."""

from __future__ import annotations

from typing import Any

from pkm_calibration.robots.calibration import Calibration


def as_numbers(found: Calibration) -> dict[str, Any]:
    """The answer for JSON, in m and rad."""
    e = found.estimate
    interval = {name: row.tolist() for name, row in zip(e.names, e.interval95, strict=True)}
    return {
        "robot": found.mechanism.name,
        "verdict": "refused" if found.refused else "accepted",
        "reasons": list(found.refused),
        "parameters": found.values,
        "interval95": interval,
        "units": {one.name: one.unit for one in found.parameters},
        "rank": e.rank,
        "unidentified": list(e.unidentified),
        "unseen": list(e.unseen),
        "outliers": [f"line {line}" for line in e.outliers],
        "noise": e.noise,
        "rms_before": dict(found.before),
        "rms_after": dict(found.after),
        "rms_kept": dict(found.kept),
        "frame": found.frame.tolist(),
        "notes": list(found.notes),
        "displacements": [
            {"element": one.element, "place": one.place, "twist": one.twist.tolist()} for one in found.displacements
        ],
    }


def in_words(found: Calibration) -> list[str]:
    """The answer for people: results first."""
    e, n = found.estimate, len(found.measured)
    lines = [f"{found.mechanism.name}: {'refused' if found.refused else 'calibrated'} by {n} poses"]
    lines += [f"  {reason}" for reason in found.refused]
    for kind, after in found.after.items():
        unit = "rad" if _turns(found, kind) else "m"
        kept = f", {shown(found.kept[kind], unit)} on the poses kept aside" if kind in found.kept else ""
        lines.append(
            f"  error of {kind}: {shown(found.before[kind], unit)} as drawn, {shown(after, unit)} corrected{kept}"
        )
    lines += [f"  {note}" for note in found.notes]
    if e.outliers:
        lines.append(f"  left out as inconsistent: line {', '.join(map(str, e.outliers))}")
    lines.append(f"  {e.rank} of {len(e.names)} directions are identified; errors of the drawing, with 95 % intervals:")
    width = max(map(len, e.names))
    for one, value, (low, high) in zip(found.parameters, e.values, e.interval95, strict=True):
        mark = "  not told apart" if one.name in e.unidentified else ""
        half = 0.5 * (high - low)
        lines.append(f"    {one.name:<{width}}  {_with_half(value, half, one.unit)}{mark}")
    if e.unseen:
        lines.append("  without effect on the measurements, these stay as drawn:")
        lines += [f"    {one}" for one in e.unseen[:6]]
        if len(e.unseen) > 6:
            lines.append(f"    and {len(e.unseen) - 6} more (--json has all)")
    return lines


def _turns(found: Calibration, kind: str) -> bool:
    if kind in ("position", "distance"):
        return False
    joint = found.mechanism.joint_named.get(kind)
    return joint is None or joint.unit == "rad"


def shown(value: float, unit: str) -> str:
    """A size in mm or deg."""
    return f"{1e3 * value:.3g} mm" if unit == "m" else f"{value * 57.29577951308232:.3g} deg"


def _with_half(value: float, half: float, unit: str) -> str:
    factor, name = (1e3, "mm") if unit == "m" else (57.29577951308232, "deg")
    return f"{factor * value:+9.4f} ± {factor * half:.4f} {name}"
