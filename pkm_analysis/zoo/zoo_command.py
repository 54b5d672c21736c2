# SPDX-License-Identifier: Apache-2.0
"""The command `pkm zoo`: other projects' files with closed loops, loaded, solved and converted."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pkm_analysis.analysis_errors import AnalysisError, check_ending
from pkm_analysis.zoo.examine import Finding, examine
from pkm_analysis.zoo.specimens import TABLE, fetched, specimens
from pkm_description.urdf.robot_cache import folders
from pkm_runtime.errors import PkmError


def parser() -> argparse.ArgumentParser:
    """The command line."""
    about = "Load, check, solve and convert public files with closed loops, and print the results for each."
    p = argparse.ArgumentParser(prog="pkm zoo", description=about)
    p.add_argument("names", nargs="*", metavar="NAME", help="files of the table; all if none is given")
    text = "folder with clones as OWNER/NAME, at any commit; by default git fetches the commits of the table"
    p.add_argument("--from", dest="clones", type=Path, metavar="DIR", help=text)
    text = "table of other files: CSV with name, repository, commit, path, arguments"
    p.add_argument("--table", type=Path, default=TABLE, metavar="FILE", help=text)
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write the numbers as JSON; else print them")
    p.add_argument("--report", type=Path, metavar="PAGE", help="page with the results to write, FILE.md")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 1 where a file is not there; a refusal is an answer."""
    given = parser().parse_args(arguments)
    try:
        if given.report:
            check_ending("report", given.report, (".md",))
        chosen = specimens(given.names, given.table)
    except (PkmError, OSError) as error:
        print(f"pkm zoo: {error}", file=sys.stderr)
        return 1
    findings, missing = [], 0
    for one in chosen:
        found = Finding(one.name, one.repository, one.commit, one.path)
        try:
            file = _here(given.clones / one.repository / one.path) if given.clones else fetched(one, _cache())
            examine(found, file, one.told())
        except AnalysisError as error:
            found.refused, missing = str(error), missing + 1
        root = f"{given.clones or _cache()}/"  # of no use to others
        found.refused, found.notes = found.refused.replace(root, ""), found.notes.replace(root, "")
        findings.append(found)
        if given.json != "-":
            print(_line(found), flush=True)
    if given.json:
        text = json.dumps([asdict(one) for one in findings], indent=1) + "\n"
        print(text, end="") if given.json == "-" else Path(given.json).write_text(text, encoding="utf-8")
    if given.report:
        given.report.write_text(page(findings), encoding="utf-8")
    return 1 if missing else 0


def _cache() -> Path:
    return folders()[1] / "zoo"


def _here(file: Path) -> Path:
    if not file.exists():
        raise AnalysisError(str(file), "not there", "clone the repository there, or leave --from out")
    return file


def _cells(one: Finding) -> list[str]:
    numbers = (one.freedoms, one.loops, one.clusters, one.gap, one.modes, one.microseconds)
    shown = ["–" if value is None else f"{value:.2g}" if isinstance(value, float) else str(value) for value in numbers]
    differences = [value for value in one.there_and_back.values() if value is not None]
    missing = [kind for kind, value in one.there_and_back.items() if value is None]
    back = f"{max(differences, default=0.0):.0e}" + (f", not {', '.join(missing)}" if missing else "")
    return [*shown, back]


def _line(one: Finding) -> str:
    if not one.loads:
        return f"{one.name}: {one.refused}"
    free, loops, clusters, gap, modes, call, again = _cells(one)
    return (
        f"{one.name}: {free} degrees of freedom, {loops} loops in {clusters} clusters, gap {gap} m, "
        f"modes {modes}, {call} µs, there and back {again}"
    )


def page(findings: Sequence[Finding]) -> str:
    """The findings as a page of Markdown."""
    rows = [
        "| file | degrees of freedom | loops | clusters | gap [m] | modes | lean call [µs] | there and back |",
        "|---|---|---|---|---|---|---|---|",
        *(f"| `{one.name}` | {' | '.join(_cells(one))} |" for one in findings if one.loads),
    ]
    refused = [f"| `{one.name}` | `{one.refused.replace('|', '/')}` |" for one in findings if not one.loads]
    if refused:
        rows += ["", "| file | reason |", "|---|---|", *refused]
    where = [f"| `{one.name}` | {one.repository} | `{one.commit[:10]}` | `{one.path}` |" for one in findings]
    rows += ["", "| file | repository | commit | path |", "|---|---|---|---|", *where]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main())
