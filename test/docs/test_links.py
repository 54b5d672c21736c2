# SPDX-License-Identifier: Apache-2.0
"""Links of the documents lead to pages, headings, pictures and files that are there, as a git host shows them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .markdown import PAGES, ROOT, anchors, links, markdown, named

ELSEWHERE = re.compile(r"[a-z]+:")
PLACEHOLDER = re.compile(r"\bREPOSITORY\b|<your[- _]|\bTODO\b|\bTBD\b|\bFIXME\b|\bexample\.(?:com|org)\b")


def dead(page: Path) -> list[str]:
    """Links of a page that lead nowhere."""
    found = []
    for link in links(markdown(page)):
        if ELSEWHERE.match(link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        headings = anchors(markdown(target)) if target.suffix in (".md", ".ipynb") and target.exists() else set()
        if not target.exists() or (anchor and anchor not in headings):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    assert dead(page) == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_nothing_is_left_to_fill_in(page: Path) -> None:
    assert PLACEHOLDER.findall(page.read_text(encoding="utf-8")) == []


def test_every_page_can_be_reached() -> None:
    """From the README, by links; but for the pages that only the site has."""
    reached, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page not in reached and page.suffix in (".md", ".ipynb"):
            reached.add(page)
            found = (link.partition("#")[0] for link in links(markdown(page)) if not ELSEWHERE.match(link))
            ahead += [(page.parent / file).resolve() for file in found if file]
    of_the_site = {ROOT / "docs" / f"{name}.md" for name in ("index", "changelog", "contributing")}
    of_hosts = {ROOT / f"{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY")}  # who show them themselves
    assert {named(page) for page in set(PAGES) - reached - of_the_site - of_hosts} == set()


def test_dead_links_are_noticed(tmp_path: Path) -> None:
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    other.write_text("# Speed, pause & `stop`\n\n## Twice\n\n## Twice\n\n```text\n## Not this\n```\n")
    good = ["other.md", "other.md#speed-pause--stop", "other.md#twice-1", "#here", "https://somewhere.org/x"]
    bad = ["gone.md", "other.md#not-this", "other.md#twice-2", "#there", "pictures/gone.png"]
    page.write_text("# Here\n\n" + "\n".join(f"See [`it`]({link}), ![picture]({link})." for link in good + bad))
    assert dead(page) == [link for link in bad for _ in range(2)]
    assert PLACEHOLDER.search("git clone REPOSITORY")


def test_the_readme_has_the_figures_of_the_benchmarks() -> None:
    first = next(row for row in (ROOT / "docs/benchmarks.md").read_text().splitlines() if "Pinocchio RNEA" in row)
    peer, ours = re.findall(r"\| ([\d.]+ µs) \|", first)
    assert f"in {ours} from\nPython, where Pinocchio takes {peer}" in (ROOT / "README.md").read_text()
