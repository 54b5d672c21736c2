# SPDX-License-Identifier: Apache-2.0
"""The Python of the documents runs as it stands: the blocks of a page one after the other, in one namespace.

What is typed at the prompt (`>>>`) is a doctest and run as such by `test/packaging/test_docs.py`; what asks a running
node by `test/ros/test_documents.py`. Nothing else is left out.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pkm_bringup.command_line import export_robot

from .markdown import PAGES, ROOT, blocks, markdown, named


def code(page: Path) -> str:
    """The blocks of a page in Python as one program, each on its lines, so that errors name those."""
    text = ""
    for block in blocks(markdown(page)):
        if block.language == "python" and not block.text.startswith(">>>"):
            text += "\n" * (block.line - 1 - text.count("\n")) + block.text
    return text


CODE = {page: code(page) for page in PAGES if page.suffix == ".md"}
OF_NODES = [page for page in CODE if "import rclpy" in CODE[page]]
WITH_CODE = [page for page in CODE if CODE[page] and page not in OF_NODES]


def run(text: str, page: Path) -> dict[str, Any]:
    """Execute code of a page; return its names."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, str(page), "exec"), names)
    return names


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the documents export in the shell."""
    file = tmp_path_factory.mktemp("exported") / "biglide.xml"
    assert export_robot.main(["docs/examples/biglide.urdf.xacro", "-o", str(file)]) == 0
    return file


@pytest.fixture
def clone(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder as a reader has it who does in a clone what the documents say in the shell."""
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    shutil.copy(exported, tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    if pyplot := sys.modules.get("matplotlib.pyplot"):  # what a page drew is not drawn on by the next
        pyplot.close("all")


IN_JAX = {page for page in WITH_CODE if "\nimport jax" in CODE[page]}
AT_NIGHT = (
    "analysis",
    "assembly_modes",
    "efforts",
    "03_assembly_modes",
    "06_simulation",
    "07_identification",
)  # they take long
LONG = {*IN_JAX, *(page for page in WITH_CODE if page.stem in AT_NIGHT)}


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.slow) if page in LONG else page for page in WITH_CODE], ids=named
)
def test_it_runs(page: Path, clone: Path) -> None:
    for name in ("casadi", "jax"):  # optional for users
        if f"\nimport {name}" in CODE[page] and find_spec(name) is None:
            pytest.skip(f"{name} is not installed; ./pkm test installs it")
    if page in IN_JAX:  # it has threads, and other tests fork
        subprocess.run([sys.executable, "-c", CODE[page]], check=True)
    else:
        assert run(CODE[page], page)


def test_every_block_is_run_somewhere() -> None:
    """Code is marked as Python wherever it is Python; and the pages whose code needs nodes are this one."""
    assert [named(page) for page in OF_NODES] == ["docs/running_reference.md"]
    assert len(WITH_CODE) >= 10
    for page in CODE:
        unmarked = [block for block in blocks(markdown(page)) if block.language not in ("python", "indented")]
        assert not [block for block in unmarked if block.text.startswith((">>> ", "import ", "from "))], named(page)


def test_code_that_fails_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```python\na = 1\n```\n\nand\n\n```python\na.nothing\n```\n\n```python\n>>> b\n```\n")
    with pytest.raises(AttributeError) as caught:
        run(code(page), page)
    assert caught.traceback[-1].lineno == 9  # counted from zero: the line of the page
