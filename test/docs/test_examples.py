# SPDX-License-Identifier: Apache-2.0
"""The numbered examples: short, and shown on their pages as they are; `test_code.py` runs them from these."""

from __future__ import annotations

from pathlib import Path

import pytest

from .markdown import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MOST_LINES = 40


def test_they_are_numbered_in_order() -> None:
    assert [int(path.name[:2]) for path in EXAMPLES] == list(range(1, 14))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_its_page_shows_it(example: Path) -> None:
    source = example.read_text(encoding="utf-8")
    page = (ROOT / "docs" / "examples" / f"{example.stem}.md").read_text(encoding="utf-8")
    assert len(source.splitlines()) <= MOST_LINES
    assert f"```python\n{source.partition(chr(10))[2]}```" in page
    assert (ROOT / "docs" / "pictures" / "examples" / f"{example.stem}.png").exists()
