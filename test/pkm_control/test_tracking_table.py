# SPDX-License-Identifier: Apache-2.0
"""The table of tracking: a cell is what was run, a journal is gone on with, and what was not run is said."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from bench.tracking import EXACT, HEAVY, LAWS, MACHINES, Cell, known, page, try_out
from pkm_control.operator_interface import COMPUTED_TORQUE, HYBRID


def test_a_cell_is_a_run() -> None:
    exact, heavy = (try_out("five_bar", COMPUTED_TORQUE, kind) for kind in (EXACT, HEAVY))
    assert 0.0 < exact.position[0] <= exact.position[1] < 1e-5  # m
    assert exact.position[1] < heavy.position[1] < 1e-3
    assert (exact.refused, exact.lost, exact.saturated) == ("", "", False)


def test_hybrid_presses_while_it_slides() -> None:
    cell = try_out("five_bar", HYBRID, EXACT)
    assert (cell.refused, cell.lost) == ("", "")
    assert cell.force is not None
    assert cell.force[1] < 0.1  # N, of 10 N


def test_what_cannot_be_run_is_refused_with_the_reason() -> None:
    assert "no degree of freedom of its own" in try_out("agile_eye", HYBRID, EXACT).refused


def test_a_journal_is_read_and_missing_cells_are_named(tmp_path: Path) -> None:
    cell = Cell("delta", LAWS[0], EXACT, (1e-5, 2e-5), saturated=True)
    journal = tmp_path / "journal.jsonl"
    journal.write_text(json.dumps(asdict(cell)) + "\n", "utf-8")
    text = page(known(journal), ["delta", "hexa"])
    every = 2 * len(LAWS) * len(MACHINES)
    assert f"1 of {every} cells were run; not run: hexa" in text
    assert f"| {LAWS[0]} | 0.01, 0.02 *s* | not run |" in text
