# SPDX-License-Identifier: Apache-2.0
"""The files of the zoo: where they are public, and how they come here. Nothing of them is kept in this repository."""

from __future__ import annotations

import csv
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pkm_analysis.analysis_errors import AnalysisError

TABLE = Path(__file__).with_name("zoo.csv")
HOST = "https://github.com"
MOST = 600  # s, for one repository


@dataclass(frozen=True)
class Specimen:
    """A file: `repository` is owner/name, `commit` the one that is fetched, `arguments` what the file must be told."""

    name: str
    repository: str
    commit: str
    path: str
    arguments: str

    def told(self) -> dict[str, str]:
        """The arguments by name."""
        return dict(pair.split("=", 1) for pair in self.arguments.split())


def specimens(names: list[str], table: Path = TABLE) -> list[Specimen]:
    """Those of the table with these names, all where none is given. Raises `AnalysisError` for a name it has not."""
    with table.open(encoding="utf-8", newline="") as lines:
        found = [Specimen(**row) for row in csv.DictReader(lines)]
    known = [one.name for one in found]
    for name in names:
        if name not in known:
            raise AnalysisError(name, "not in the zoo", f"it has {', '.join(known)}")
    return [one for one in found if not names or one.name in names]


def fetched(one: Specimen, into: Path, host: str = HOST) -> Path:
    """The file, with the folder that it is in, at its commit; only these are brought. Raises `AnalysisError`."""
    folder = into / one.repository
    file = folder / one.path
    if file.exists() and _git(folder, "rev-parse", "HEAD") == one.commit:
        return file
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".git").exists():
        _git(folder, "init", "--quiet")
        _git(folder, "remote", "add", "origin", f"{host}/{one.repository}")
    _git(folder, "fetch", "--quiet", "--depth", "1", "--filter=blob:none", "origin", one.commit)
    _git(folder, "update-ref", "--no-deref", "HEAD", one.commit)
    _git(folder, "checkout", "--quiet", one.commit, "--", str(Path(one.path).parent))
    return file


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-c", "protocol.version=2", *arguments],
            cwd=folder, capture_output=True, text=True, timeout=MOST, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        problem = said[-1] if said else "no answer"
        raise AnalysisError(f"git {arguments[0]} in {folder}", problem, "fetch it by hand, and name --from") from error
    return done.stdout.strip()
