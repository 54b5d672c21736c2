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
FOLDER = Path(__file__).parent / "stiffness_tables"


def rounded(value: Any) -> Any:
    """The same with numbers of twelve digits."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


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
