# SPDX-License-Identifier: Apache-2.0
"""Writes docs/stiffness_tables: every beam, joint, drive, load and matrix of ten robots, for others to test against."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pkm_analysis import Analysis
from pkm_description import load_mechanism

DRIVES = {  # stiffness of all drives [N m/rad or N/m]
    "agile_eye": 1e4,
    "delta": 2e5,
    "five_bar": 1e5,
    "gough_stewart": 5e7,
    "hexa": 1e5,
    "linear_delta": 5e7,
    "orthoglide": 5e7,
    "planar_3rrr": 1e5,
    "quattro": 1e5,
    "tripod_3prs": 5e7,
}
ROUNDING = 1e-14
FOLDER = Path(__file__).parent / "stiffness_tables"


def rounded(value: Any, size: float = 0.0) -> Any:
    """The same with numbers of twelve digits, zero where they are the rounding of others in their matrix."""
    if isinstance(value, float):
        return float(f"{value:.12g}") if abs(value) > ROUNDING * size else 0.0
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    size = max(size, largest(value))
    return [rounded(one, size) for one in value] if isinstance(value, list) else value


def largest(value: Any) -> float:
    """Of the numbers in a list of lists."""
    if isinstance(value, list):
        return max(map(largest, value), default=0.0)
    return abs(value) if isinstance(value, float) else 0.0


def lines(told: dict[str, Any]) -> str:
    """JSON with one line for each element of a list."""
    found = []
    for key, value in told.items():
        text = json.dumps(value)
        if isinstance(value, list) and value and isinstance(value[0], dict | list):
            text = "[\n  " + ",\n  ".join(json.dumps(one) for one in value) + "\n ]"
        found.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(found) + "\n}\n"


def main() -> None:
    """Write all of them."""
    FOLDER.mkdir(exist_ok=True)
    for name, drives in DRIVES.items():
        found = Analysis(load_mechanism(name), stiffness=drives).stiffness()
        (FOLDER / f"{name}.json").write_text(lines(rounded(found.to_dict())), encoding="utf-8")


if __name__ == "__main__":
    main()
