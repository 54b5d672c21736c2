# SPDX-License-Identifier: Apache-2.0
"""The notebooks of docs/notebooks run from top to bottom, and come without outputs.

Their code cells are executed in one namespace, as a kernel does. That takes no Jupyter on the computer that tests.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

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


def run(source: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own: matplotlib without a screen, every figure drawn and closed when it is shown."""
    show = "import matplotlib.pyplot as plt\nplt.show = lambda: (plt.gcf().canvas.draw(), plt.close('all'))\n"
    environment = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    file = folder / "cells.py"
    file.write_text(show + source, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(file)],
        cwd=ROOT / "docs" / "notebooks",
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_they_are_there() -> None:
    assert [path.name[0] for path in NOTEBOOKS] == list("123456")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path, tmp_path: Path) -> None:
    done = run(code(path), tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_has_no_outputs_and_its_links_lead_somewhere(path: Path) -> None:
    for cell in cells(path):
        text = "".join(cell["source"])
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
        for link in re.findall(r"\]\(([^)#:]+)\)", text) if cell["cell_type"] == "markdown" else []:
            assert (path.parent / link).exists(), link


def test_a_cell_that_fails_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "broken.ipynb"
    cell = {"cell_type": "code", "source": ["a = 1\n", "assert a == 2"]}
    path.write_text(json.dumps({"nbformat": 4, "cells": [cell]}))
    assert "AssertionError" in run(code(path), tmp_path).stderr
