# SPDX-License-Identifier: Apache-2.0
"""The benchmark still runs: its tables are made rarely, and what they call changes."""

import pytest

pytest.importorskip("pinocchio")
pytest.importorskip("mujoco")

from bench import gallery


@pytest.mark.slow
def test_the_table_of_robots_has_a_row_for_each_that_has_lean_calls() -> None:
    """One robot in closed form, one solved by iteration, one whose motion space turns."""
    rows = gallery.rows(["five_bar", "quattro", "tripod_3prs"])
    assert [row[0] for row in rows] == ["five_bar", "quattro", "tripod_3prs"]
    assert [row[3] for row in rows] == ["", "yes", ""]
    assert all(text.endswith((" ns", " µs", " ms")) for row in rows for text in row[4:])
