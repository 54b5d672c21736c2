# SPDX-License-Identifier: Apache-2.0
"""Writes results as one self-contained HTML file: what was found in words, its picture, tables, then all numbers."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pkm_analysis.drawing.sheet import png
from pkm_analysis.plottable import Table
from pkm_runtime.whole_files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CSS = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2733; background: #f3f6f9; margin: 0; }
main { max-width: 66rem; margin: 0 auto; padding: 1rem; }
section { background: #fff; border-radius: .5rem; padding: .3rem 1.2rem 1.2rem; margin-top: 1rem; }
img, svg { width: 100%; height: auto; } h2 { font-size: 1.1rem; } ul { padding-left: 1.2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { text-align: left; padding: .2rem 1rem .2rem 0; border-bottom: 1px solid #e4e9ee; vertical-align: top; }
.wide, pre { overflow-x: auto; } pre { font-size: 12px; }
.caution { background: #fdf3e1; color: #8a5200; border: 1px solid #8a5200; border-radius: .5rem; padding: .5rem 1rem; }
"""


class Result(Protocol):
    """What a report can show; a picture that moves, SVG, in place of its picture where it has an `animation`."""

    @property
    def tables(self) -> list[Table]:
        """Its tables."""

    def plot(self, path: str | Path | None = None) -> Figure:
        """The picture; written to a file if one is named."""

    def to_dict(self) -> dict[str, Any]:
        """The numbers."""


def write_report(
    path: Path, title: str, results: Sequence[Result], pictures: Sequence[Figure], more: Sequence[str], numbers: str
) -> None:
    """Write a page of results with their pictures, `more` lines of words, and all numbers as JSON."""
    sections = "".join(map(_section, results, pictures))
    lines = f"<section>{_listed(more)}</section>" if more else ""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(
        path,
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_CSS}</style></head>\n<body><main><h1>{escape(title)}</h1>{sections}{lines}"
        f"<section><details><summary>All numbers, in SI units</summary><pre>{escape(numbers)}</pre></details></section>"
        "</main></body></html>\n",
    )


def _section(result: Result, drawn: Figure) -> str:
    head, *lines = str(result).splitlines()
    kind, _, meaning = head.partition(" ")
    caution = result.to_dict().get("caution")
    warned = f'<p class="caution">{escape(str(caution))}</p>' if caution else ""
    picture = getattr(result, "animation", "")
    if not picture:
        image = base64.b64encode(png(drawn)).decode("ascii")
        picture = f'<img alt="{escape(kind)}" src="data:image/png;base64,{image}">'
    tables = "".join(map(_table, result.tables))
    words = "" if tables else _listed(lines)
    return f"<section><h2>{escape(kind)}: {escape(meaning)}</h2>{warned}{picture}{words}{tables}</section>"


def _listed(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line.strip())}</li>' for line in lines)}</ul>"


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.head)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    return f'<h2>{escape(table.caption)}</h2><div class="wide"><table><tr>{head}</tr>{rows}</table></div>'
