# SPDX-License-Identifier: Apache-2.0
"""The documentation site: built without a warning by the command of `./pkm docs`, complete, and without dead links.

The whole site is built at night, for that takes long. By day its command is tried on small pages here, and the links
of the pages in `test_links.py`.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

from .markdown import ROOT

MISSING = [name for name in ("sphinx", "myst_parser", "furo") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{MISSING} not installed; ./pkm test installs them")

PACKAGES = tuple(sorted(file.parent.name for file in ROOT.glob("pkm_*/__init__.py")))
PAGES = ("index", "installation", "running", "gallery", "examples/README", "notebooks/1_first_robot", "changelog")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("pkm_script", str(ROOT / "pkm"))
    spec = importlib.util.spec_from_loader("pkm_script", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    module.PYTHON = Path(sys.executable)
    return module


@pytest.fixture(scope="module")
def built(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The site, and what was said while it was built."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(script.site_command(folder), cwd=ROOT, capture_output=True, text=True, timeout=900)
    return folder, f"{done.stderr}{done.stdout}" + (f"exit code {done.returncode}" if done.returncode else "")


class Page(HTMLParser):
    """What a page links to, shows, and names."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.names |= {given[name] for name in ("id", "name") if name in given}
        self.targets += [given[name] for name in ("href", "src") if given.get(name) and tag != "link"]


def dead(folder: Path) -> list[str]:
    """Links and pictures within a site that lead nowhere, as `page: target`."""
    pages = {file.resolve(): Page(file.read_text(encoding="utf-8")) for file in folder.rglob("*.html")}
    found = []
    for file, page in pages.items():
        for target in page.targets:
            if re.match(r"[a-z]+:|//", target):
                continue
            path, _, anchor = unquote(target).partition("#")
            there = (file.parent / path.partition("?")[0]).resolve() if path else file
            there = there / "index.html" if there.is_dir() else there
            if not there.exists() or (anchor and there in pages and anchor not in pages[there].names):
                found.append(f"{file.relative_to(folder.resolve())}: {target}")
    return found


def public() -> Iterator[str]:
    """Every public class, function and method of the packages, by its full name."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            for node in ast.parse(file.read_text(encoding="utf-8")).body if file.name != "__init__.py" else ():
                if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
                    continue
                if file.name == "__main__.py" or [
                    one for one in node.decorator_list if ast.unparse(one) == "intrinsic"
                ]:
                    continue  # programs; what Python cannot call
                yield f"{module}.{node.name}"
                for inner in node.body if isinstance(node, ast.ClassDef) else ():
                    if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
                        yield f"{module}.{node.name}.{inner.name}"


@pytest.mark.slow
def test_it_is_built_without_a_warning(built: tuple[Path, str]) -> None:
    folder, said = built
    assert said == ""
    assert all((folder / f"{page}.html").is_file() for page in PAGES)


@pytest.mark.slow
def test_it_has_no_dead_links(built: tuple[Path, str]) -> None:
    assert dead(built[0]) == []


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(built: tuple[Path, str]) -> None:
    named: set[str] = set()
    for file in (built[0] / "api").glob("*.html"):
        named |= Page(file.read_text(encoding="utf-8")).names
    wanted = set(public())
    assert len(wanted) > 1000
    assert wanted - named == set()


@pytest.mark.slow
def test_docstrings_become_sections(built: tuple[Path, str]) -> None:
    for page, name, word in (
        ("pkm_kinematics", "pkm_kinematics.kinematics.Kinematics.inverse", "Parameters"),
        ("pkm_client", "pkm_client.robot.Robot.connect", "Raises"),
    ):
        text = (built[0] / "api" / f"{page}.html").read_text(encoding="utf-8")
        assert f"{word}<span" in text[text.index(f'id="{name}"') :][:20000]


@pytest.mark.slow
def test_notebooks_show_text_and_code(built: tuple[Path, str]) -> None:
    text = (built[0] / "notebooks" / "1_first_robot.html").read_text(encoding="utf-8")
    assert "highlight-python" in text
    assert "<h1>" in text


@pytest.mark.slow
def test_a_fault_of_a_page_ends_the_building(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "conf.py").write_text('extensions = ["myst_parser"]\n')
    for text, code in (("# Page\n\n[here](https://a.org)\n", 0), ("# Page\n\n[there](gone.md)\n", 1)):
        (tmp_path / "docs" / "index.md").write_text(text)
        done = subprocess.run(script.site_command(tmp_path / "site"), capture_output=True, text=True, timeout=120)
        assert (done.returncode, "gone.md" in done.stderr) == (code, bool(code))


def test_dead_links_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#x">1</a><a href="b.html#y">2</a><img src="gone.png"><a href="#z">'
    )
    (tmp_path / "b.html").write_text('<h1 id="x">b</h1><a href="https://a.org/b#c"></a><a href="a.html">a</a>')
    assert dead(tmp_path) == ["a.html: b.html#y", "a.html: gone.png", "a.html: #z"]
