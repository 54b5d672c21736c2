# SPDX-License-Identifier: Apache-2.0
"""The notebooks of docs/notebooks run from top to bottom, and come without outputs.

Their code cells are executed in one namespace, as a kernel does. That takes no Jupyter on the computer that tests.
Every figure is drawn and closed when it is shown, without a screen.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def cells(path: Path) -> list[dict[str, Any]]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    return list(notebook["cells"])


def code(path: Path) -> str:
    """All code cells one after the other, each marked where it begins."""
    sources = ["".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "code"]
    return "\n".join(f"# cell {number}\n{source}\n" for number, source in enumerate(sources, start=1))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Executes code where the notebooks are."""
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: (plt.gcf().canvas.draw(), plt.close("all")))
    monkeypatch.chdir(ROOT / "docs" / "notebooks")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield lambda source: exec(compile(source, "cells", "exec"), {"__name__": "__main__"})
    plt.close("all")


def test_they_are_there() -> None:
    assert [path.name[0] for path in NOTEBOOKS] == list("123456")


@pytest.mark.by_day(NOTEBOOKS[0])
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path, run: Callable[[str], None]) -> None:
    run(code(path))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_has_no_outputs_and_its_links_lead_somewhere(path: Path) -> None:
    for cell in cells(path):
        text = "".join(cell["source"])
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
        for link in re.findall(r"\]\(([^)#:]+)\)", text) if cell["cell_type"] == "markdown" else []:
            assert (path.parent / link).exists(), link


def test_a_cell_that_fails_is_noticed(tmp_path: Path, run: Callable[[str], None]) -> None:
    path = tmp_path / "broken.ipynb"
    cell = {"cell_type": "code", "source": ["a = 1\n", "assert a == 2"]}
    path.write_text(json.dumps({"nbformat": 4, "cells": [cell]}))
    with pytest.raises(AssertionError):
        run(code(path))
