# SPDX-License-Identifier: Apache-2.0
"""Runs the tests that need a sourced ROS 2 installation with this suite in it, and keeps the record of the last run.

`./pkm stack` is this: it builds nothing, and names what is missing. Options are pytest's; with any, there is no record.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import date
from pathlib import Path

import pytest
from ament_index_python.packages import get_package_share_directory

from .installed import MOVEIT, NATIVE, RVIZ, STACK, not_installed

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "stack_tests.md"
MARK = "<!-- record -->"
OUTCOMES = ("passed", "failed", "skipped", "rerun")
TESTS = ("test_launch_files.py", "test_moveit.py", "test_ros2_control_*.py", "test_rviz.py")


class Record:
    """A plugin of pytest that counts outcomes by file."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test once: by its call, or by what kept it from being called."""
        file = report.nodeid.partition("::")[0]
        self.seconds[file] += report.duration
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[file][report.outcome] += 1

    def table(self) -> str:
        """Rows of Markdown, by file."""
        head = "| tests | passed | failed | skipped | run again | time |\n|---|---|---|---|---|---|\n"
        return head + "\n".join(
            f"| `{file}` | {' | '.join(str(seen[one]) for one in OUTCOMES)} | {self.seconds[file]:.0f} s |"
            for file, seen in sorted(self.outcomes.items())
        )


def version(package: str) -> str:
    """An installed package, with its version."""
    text = (Path(get_package_share_directory(package)) / "package.xml").read_text(encoding="utf-8")
    return f"{package} {re.findall(r'<version>(.*?)</version>', text)[0]}"


def main(options: list[str]) -> int:
    """Say what is missing, run the tests, keep the record."""
    packages = ["launch_ros", *dict.fromkeys((*STACK, *NATIVE, *MOVEIT))]
    missing = sorted({*not_installed(packages), *not_installed(RVIZ)})
    if missing:
        print(f"Not installed, so that tests are skipped: {', '.join(missing)}", flush=True)
    record = Record()
    files = [str(file) for pattern in TESTS for file in sorted((ROOT / "test" / "ros").glob(pattern))]
    code = int(pytest.main([*files, "-rs", *options], plugins=[record]))
    if not options:
        command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
        commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
        there = ", ".join(version(package) for package in packages[1:] if package not in missing)
        ended = " Stopped before its end: what is not named was not run." if code == pytest.ExitCode.INTERRUPTED else ""
        about = f"{date.today():%-d %B %Y}, commit {commit}, {os.cpu_count()} cores, with {there}.{ended}"
        lacking = f"\n\nNot installed there: {', '.join(missing)}." if missing else ""
        text = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
        PAGE.write_text(f"{text}{MARK}\n\n{about}\n\n{record.table()}{lacking}\n", encoding="utf-8")
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
