# SPDX-License-Identifier: Apache-2.0
"""How every task answers: progress first, then words, JSON, a picture, a page."""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pkm_analysis.analysis_errors import MESHES, PICTURES, check_ending
from pkm_analysis.requirements.grammar import check_coordinate, check_name, check_proved
from pkm_description import PkmError, load_mechanism
from pkm_description.load import xacro_arguments
from pkm_runtime import sweeps as chunks
from pkm_runtime.whole_files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pkm_analysis.drawing.report_page import Result
    from pkm_description import Mechanism
    from pkm_runtime.sweeps import Sweeps

REPORTS = Path("reports")
MOTIONS = "pkm_control.motion.files.sampled_motion"  # reads and plans motion files; imported by name
PRINTED = "-"  # instead of a file: print
PAGES = (".html", ".htm")


Answer: TypeAlias = "Callable[[argparse.Namespace, Mechanism, Sweeps], Found]"


@dataclass(frozen=True)
class Found:
    """What a task found: results to print and show on the page, the page's title, and the exit status.

    `numbers` are for JSON, by default those of the only result; `more` are additional lines to print.
    """

    robot: str
    title: str
    results: Sequence[Result]
    numbers: Mapping[str, Any] | None = None
    more: Sequence[str] = field(default=())
    status: int = 0


def add_output(p: argparse.ArgumentParser) -> None:
    """Add the options for where the work is done and where the answer goes."""
    text = "address of a Dask scheduler that you trust, such as tcp://host:8786, whose workers do what takes long"
    p.add_argument("--scheduler", metavar="ADDRESS", help=text)
    text = "file for finished chunks of work: the same command goes on from there after it was stopped"
    p.add_argument("--journal", metavar="FILE", help=text)
    text = "write the numbers as JSON; without FILE print them, and nothing else"
    p.add_argument("--json", nargs="?", const=PRINTED, metavar="FILE", help=text)
    text = f"page to write, FILE.html or a directory (default: {REPORTS}/, and none where JSON is printed)"
    p.add_argument("--report", type=Path, metavar="PAGE", help=text)


def answered(word: str, given: argparse.Namespace, answer: Answer, no_answer: int = 1) -> int:
    """Run a task and print the answer, or what is wrong; the exit status, `no_answer` for a task without one."""
    said: list[Callable[[], str]] = []
    try:
        mechanism = load_mechanism(given.robot, xacro_arguments(given.xacro_args))
        _check_words(given, mechanism)
        making = importlib.import_module("pkm_kinematics.making").making  # import solvers only after these checks
        with making(f"analysing {given.robot}", lambda: said[0]() if said else ""):
            sweeps = chunks.Sweeps(scheduler=given.scheduler, journal=given.journal)
            said.append(sweeps.in_words)
            try:
                found = answer(given, mechanism, sweeps)
            finally:
                said.clear()
                sweeps.close()
        numbers = _numbers(found)
        pictures = _pictures(given, found)
        if given.json and given.json != PRINTED:
            _written(Path(given.json), numbers)
        page = _page(given, word, found, pictures, numbers)
    except PkmError as error:
        print(f"pkm analyse{word and ' '}{word}: {error}", file=sys.stderr)
        return no_answer
    except OSError as error:
        print(f"pkm analyse{word and ' '}{word}: {error.filename}: {error.strerror}", file=sys.stderr)
        return no_answer
    if given.json == PRINTED:
        print(numbers)
        return found.status
    for text in (*found.results, *found.more):
        print(text)
    if page is not None:
        print(f"report: {page}")
    return found.status


def _check_words(given: argparse.Namespace, mechanism: Mechanism) -> None:
    """Raise for an unknown quantity, coordinate or extension before anything heavy is imported."""
    asked = vars(given)
    proof = "most_boxes" in asked
    for what, endings in (("picture", PICTURES), ("mesh", MESHES)):
        if asked.get(what):
            check_ending(what, asked[what], endings)
    if asked.get("quantity"):
        check_name(given.quantity)
    for text in asked.get("require") or ():
        (check_proved if proof else check_name)(text)
    pairs = [word for option in ("range", "hold", "turn", "box", "start", "end") for word in asked.get(option) or ()]
    names = [pair.partition("=")[0] for pair in pairs if "=" in pair] + (asked.get("vary") or "").split(",")
    for name in filter(None, map(str.strip, names)):
        check_coordinate(name, mechanism.platform_chain)


def _numbers(found: Found) -> str:
    numbers = found.results[0].to_dict() if found.numbers is None else found.numbers
    return json.dumps(_strict(dict(numbers)), indent=1, ensure_ascii=False)


def _written(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text + "\n")


def _pictures(given: argparse.Namespace, found: Found) -> list[Figure]:
    """Each result drawn once: for the page, and the first for the file that was asked for."""
    path = getattr(given, "picture", None)
    if given.report is None and given.json == PRINTED:
        return [found.results[0].plot(path)] if path else []
    return [one.plot(path if k == 0 else None) for k, one in enumerate(found.results)]


def _page(given: argparse.Namespace, word: str, found: Found, pictures: list[Figure], numbers: str) -> Path | None:
    """Write the page; none where JSON is printed and no page was asked for."""
    if given.report is None and given.json == PRINTED:
        return None
    asked = REPORTS if given.report is None else given.report
    name = f"{found.robot}_{found.title if word in ('map', 'sweep') else word or 'analysis'}"
    file = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in name) + PAGES[0]
    page: Path = asked if asked.suffix in PAGES else asked / file
    write = importlib.import_module("pkm_analysis.drawing.report_page").write_report
    write(page, f"{found.robot}: {found.title}", found.results, pictures, found.more, numbers)
    return page


def _strict(value: Any) -> Any:
    """Replace infinities and NaN, which JSON lacks."""
    if isinstance(value, dict):
        return {key: _strict(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
