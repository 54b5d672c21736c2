# SPDX-License-Identifier: Apache-2.0
"""What the documents say of the code is there: files and folders by name."""

from __future__ import annotations

import doctest
import os
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROMPTS = sorted(path for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")] if ">>> " in path.read_text())
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
HIDDEN = {"__pycache__", "build", "install", "log"}


@cache
def paths() -> list[str]:
    """Files from the root on, each with the slash before its name."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in HIDDEN]
        found += [f"/{Path(folder, name).relative_to(ROOT).as_posix()}" for name in names]
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_named_files_exist(document: Path) -> None:
    """A name is the end of a path: `closures.py`, `position/closures.py`, `kernels/position/`."""
    existing = paths()
    named = re.findall(r"`((?:\w+/)*\w+\.py)`", document.read_text())
    gone = [name for name in named if not any(path.endswith("/" + name) for path in existing)]
    rooms = re.findall(r"`((?:pkm_\w+|kernels|assembly|test|bench|docs)/(?:\w+/)*)`", document.read_text())
    gone += [room for room in rooms if not any("/" + room in path for path in existing)]
    assert gone == []


@pytest.mark.by_day(*(path for path in PROMPTS if path.stem != "motors_and_joints"))  # that takes a minute
@pytest.mark.parametrize("document", PROMPTS, ids=lambda path: path.name)
def test_what_is_typed_at_the_prompt_answers_so(document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # where the documents start from
    failed, tried = doctest.testfile(str(document), module_relative=False)
    assert tried > 0
    assert failed == 0


def test_a_file_that_is_gone_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("See `kernels/position/closures.py`, `assembly/` and `kernels/closures.py`.")
    with pytest.raises(AssertionError, match=r"kernels/closures\.py"):
        test_named_files_exist(page)
