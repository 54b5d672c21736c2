# SPDX-License-Identifier: Apache-2.0
"""The table of the real controller manager goes on where it was stopped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; ./pkm test installs it")
pytest.importorskip("pkm_interfaces.msg", reason="pkm_interfaces is not built; ./pkm test builds it")

from bench import ros2_control_stack as bench

MEASURED = ("delta", "JTC, effort", 250.0)
REFUSED = ("cable_8", "JTC, effort", 1000.0)


def test_a_journal_gives_back_what_was_kept_and_the_newest_counts(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    found = {MEASURED: bench.Seen(1e-3, 2e-3, 0.0, 250.0, "mrad"), REFUSED: bench.Seen(why_not="refused: too many")}
    bench.keep(journal, MEASURED, bench.Seen(why_not="failed: nothing came"))
    assert bench.known(journal)[MEASURED].failed
    for key, seen in found.items():
        bench.keep(journal, key, seen)
    known = bench.known(journal)
    assert known[MEASURED] == found[MEASURED]
    assert known[REFUSED].why_not == "refused: too many"
    assert not known[REFUSED].failed


def test_the_page_has_a_row_for_each_robot_that_was_tried(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Words.\n\n<!-- measured -->\n\n| old |\n")
    cells = {MEASURED: bench.Seen(1e-3, 2e-3, 0.0, 250.0, "mrad"), REFUSED: bench.Seen(why_not="refused: too many")}
    bench.write(page, cells)
    text = page.read_text()
    assert text.startswith("Words.\n\n<!-- measured -->\n\n| robot | JTC, effort, 1000 Hz |")
    assert "| old |" not in text
    assert "| delta | not measured | 1, 2, 0 mrad; 250 Hz |" in text
    assert "| cable_8 | refused: too many | not measured |" in text


def test_a_cell_that_says_nothing_is_measured_again_and_one_that_failed_where_that_is_asked_for() -> None:
    refused, failed = bench.Seen(why_not="refused: too many"), bench.Seen(why_not="failed: nothing came")
    busy = bench.Seen(why_not="not measured: others took 1.2 of 2 processors")
    drives_may_be_on = bench.Seen(1e-3, np.nan, 0.0, 250.0, "mrad")
    assert bench.wanted(drives_may_be_on, 250.0, False)
    assert str(drives_may_be_on) == "1, nan, 0 mrad; 250 Hz"
    slow = bench.Seen(1e-3, 2e-3, 0.0, 180.0, "mrad")
    assert [bench.wanted(seen, 250.0, False) for seen in (None, busy, refused, failed, slow)] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert [bench.wanted(seen, 250.0, True) for seen in (refused, failed, slow)] == [False, True, True]
    assert [seen.kept(250.0) for seen in (refused, failed, slow)] == [True, False, False]
    assert slow.kept(185.0)


def test_a_machine_that_cannot_begin_is_refused_with_its_reason(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("[hardware_node-5] [INFO] [1.0] [a.hardware]: robot 'a'\n[other-6] [ERROR] [1.0] [a.other]: no\n")
    assert bench._not_begun(log) == ""
    log.write_text("[hardware_node-5] [ERROR] [1.0] [a.hardware]: the pose is singular: alas\n")
    assert bench._not_begun(log) == "refused by the machine: the pose is singular: alas"
