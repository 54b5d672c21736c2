# SPDX-License-Identifier: Apache-2.0
"""Rows and tables of the benchmark, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.timing import Timing


@dataclass(frozen=True)
class Row:
    """One line: the work, the peer and its time, ours, and what is asked of the ratio ours / peer."""

    work: str
    peer: str
    peer_time: Timing | None
    ours: str
    our_time: Timing
    wanted: float | None = None  # largest ratio, or largest time in µs where there is no peer
    agreement: str = ""

    def cells(self) -> list[str]:
        if self.peer_time is None:
            ratio = ""
            met = self.wanted is None or 1e6 * self.our_time.median <= self.wanted
            wanted = "" if self.wanted is None else f"≤ {self.wanted:g} µs"
        else:
            value = self.our_time.median / self.peer_time.median
            ratio = f"{value:.3f}"
            met = self.wanted is None or value <= self.wanted
            wanted = "" if self.wanted is None else f"≤ {self.wanted:.2f}"
        verdict = "" if self.wanted is None else (" met" if met else " **missed**")
        theirs = "" if self.peer_time is None else str(self.peer_time)
        return [self.work, self.peer, theirs, self.ours, str(self.our_time), ratio, wanted + verdict, self.agreement]


HEADER = ["work", "peer", "its time", "ours", "our time", "ours / peer", "asked", "same answer"]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"


def put(page: Path, header: Sequence[str], row: Sequence[str]) -> None:
    """Put a row into the table of a page, in place of that of the same first cell; rows of other widths are dropped."""
    text = page.read_text(encoding="utf-8")
    before, after = text[: text.index(BEGIN)] + BEGIN, text[text.index(END) :]
    lines = text[len(before) : text.index(END)].splitlines()[2:]
    found = {cells[0]: cells for cells in ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)}
    found[row[0]] = list(row)
    whole = table(header, [found[name] for name in sorted(found) if len(found[name]) == len(header)])
    page.write_text(f"{before}{whole.rstrip()}\n{after}", encoding="utf-8")
