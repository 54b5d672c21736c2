# SPDX-License-Identifier: Apache-2.0
"""Writes results as one self-contained HTML file: pictures within it, every number as a table."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pkm_analysis.drawing.sheet import png
from pkm_runtime.whole_files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CSS = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2733; background: #f3f6f9; margin: 0; }
main { max-width: 66rem; margin: 0 auto; padding: 1.5rem; }
section { background: #fff; border-radius: .5rem; padding: .3rem 1.4rem 1.2rem; margin-top: 1rem; }
img { width: 100%; height: auto; } h2 { font-size: 1.1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem 1rem .2rem 0; border-bottom: 1px solid #e4e9ee; vertical-align: top; }
.wide { overflow-x: auto; } .wide table { font-size: 13px; }
.caution { background: #fdf3e1; color: #8a5200; border: 1px solid #8a5200; border-radius: .5rem; padding: .5rem 1rem; }
"""


MOST_SHOWN = 24  # entries of a list
_UNITS = {  # of numbers whose name says what they are
    "duration": "s",
    "seconds": "s",
    "energy": "J",
    "work_given": "J",
    "work_taken_back": "J",
    "peak_power": "W",
    "peak_total_power": "W",
    "force": "N",
    "moment": "N m",
}
_OF_A_DRIVE = {"effort": {"rad": "N m", "m": "N"}, "speed": {"rad": "rad/s", "m": "m/s"}}  # by a word of the name


class Result(Protocol):
    """What a report can show."""

    def plot(self, path: str | Path | None = None) -> Figure:
        """The picture; written to a file if one is named."""

    def to_dict(self) -> dict[str, Any]:
        """The numbers."""


def write_report(path: Path, title: str, results: Sequence[Result], picture: Figure | None = None) -> None:
    """Write a page of results, in their order; `picture` is that of the first, if it is drawn already."""
    pictures = [picture or results[0].plot(), *(result.plot() for result in results[1:])]
    sections = "".join(map(_section, results, pictures))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(
        path,
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_CSS}</style></head>\n<body><main><h1>{escape(title)}</h1>"
        f"{sections}</main></body></html>\n",
    )


def _section(result: Result, drawn: Figure) -> str:
    numbers = result.to_dict()
    picture = base64.b64encode(png(drawn)).decode("ascii")
    caution = numbers.get("caution")
    warned = f'<p class="caution">{escape(str(caution))}</p>' if caution else ""
    rows = "".join(f"<tr><th>{_named(key, numbers)}</th><td>{_cell(value)}</td></tr>" for key, value in numbers.items())
    head = escape(str(numbers.get("quantity", type(result).__name__.lower())))
    return (
        f'<section><h2>{head}</h2>{warned}<img alt="{head}" src="data:image/png;base64,{picture}">'
        f"<table>{rows}</table></section>"
    )


def _named(key: str, beside: Mapping[str, Any]) -> str:
    """A key for readers, with its unit if it has one; a drive's unit follows the `unit` beside it."""
    unit = _UNITS.get(key)
    for word, units in _OF_A_DRIVE.items():
        if word in key.split("_") and beside.get("unit") in units:
            unit = units[beside["unit"]]
    return escape(key.replace("_", " ")) + (f" [{unit}]" if unit else "")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        if _alike(list(value.values())):
            return _table(value)
        return ", ".join(f"{_named(str(key), value)}: {_cell(entry)}" for key, entry in value.items())
    if isinstance(value, list | tuple):
        if len(value) > MOST_SHOWN:
            return f"{_cell(value[:MOST_SHOWN])} ... ({len(value)} in all)"
        separator = "<br>" if any(isinstance(entry, Mapping | str) for entry in value) else ", "
        return separator.join(_cell(entry) for entry in value) or "none"
    return escape(str(value))


def _alike(rows: Sequence[Any]) -> bool:
    """Whether there are several mappings with the same keys: rows of a table."""
    return len(rows) > 1 and all(isinstance(row, Mapping) and list(row) == list(rows[0]) for row in rows)


def _table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """A table with a row for each entry; units common to all rows stand in its head."""
    each = list(rows.values())
    same = {row.get("unit") for row in each}
    beside = each[0] if len(same) == 1 else {}
    names = [key for key in each[0] if key != "unit" or not beside]
    head = "".join(f"<th>{_named(key, beside)}</th>" for key in names)
    body = "".join(
        f"<tr><th>{escape(str(name))}</th>{''.join(f'<td>{_cell(row[key])}</td>' for key in names)}</tr>"
        for name, row in rows.items()
    )
    return f'<div class="wide"><table><tr><th></th>{head}</tr>{body}</table></div>'
