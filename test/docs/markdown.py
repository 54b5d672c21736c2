# SPDX-License-Identifier: Apache-2.0
"""The documents as the tests read them: blocks of code, headings, links."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path
    for folder in (ROOT, ROOT / "docs", ROOT / "docs" / "examples", ROOT / "docs" / "notebooks")
    for path in [*folder.glob("*.md"), *folder.glob("*.ipynb")]
)
FENCE = re.compile(r"^(`{3,})(\S*)")
LINK = re.compile(r"(?<!`)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def named(path: Path) -> str:
    """A page as the results of the tests name it."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def markdown(path: Path) -> str:
    """The text of a page; of a notebook the text of its cells that are no code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    return "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")


@dataclass(frozen=True)
class Block:
    """A block of code: its language as written, its text, and the line of the page on which that begins."""

    language: str
    text: str
    line: int


def blocks(text: str) -> list[Block]:
    """The blocks of a page between fences, and those that are indented by four spaces after an empty line."""
    found: list[Block] = []
    lines, k = text.split("\n"), 0
    while k < len(lines):
        fence = FENCE.match(lines[k])
        if fence:
            end = next(j for j in range(k + 1, len(lines)) if lines[j].strip() == fence[1])
            found.append(Block(fence[2], "\n".join(lines[k + 1 : end]) + "\n", k + 2))
            k = end
        elif lines[k].startswith("    ") and (k == 0 or not lines[k - 1].strip()):
            end = next((j for j in range(k, len(lines)) if not lines[j].startswith("    ")), len(lines))
            found.append(Block("indented", "\n".join(line[4:] for line in lines[k:end]) + "\n", k + 1))
            k = end
        k += 1
    return found


def prose(text: str) -> str:
    """A page without its blocks of code; lines stay where they are."""
    kept, fence = [], ""
    for line in text.split("\n"):
        mark = FENCE.match(line)
        inside = bool(fence)
        if mark and (not fence or line.strip() == fence):
            fence = "" if fence else mark[1]
            inside = True
        kept.append("" if inside else line)
    return "\n".join(kept)


def links(text: str) -> Iterator[str]:
    """Targets of the links and pictures of a page."""
    for line in prose(text).split("\n"):
        yield from LINK.findall(re.sub(r"`[^`]*`(?!\])", "", line))
    yield from re.findall(r'(?:src|href)="([^"]+)"', prose(text))


def anchors(text: str) -> set[str]:
    """Names by which a git host lets links reach the headings of a page."""
    found: set[str] = set()
    for line in prose(text).split("\n"):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "")
            name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            repeated = sum(re.fullmatch(rf"{re.escape(name)}(-\d+)?", other) is not None for other in found)
            found.add(f"{name}-{repeated}" if repeated else name)
    return found
