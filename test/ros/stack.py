# SPDX-License-Identifier: Apache-2.0
"""Runs the tests that need a sourced ROS 2 installation with this suite in it, and keeps the record of the last run.

`./pkm stack` is this: it builds nothing, and names what is missing. Options are pytest's, and write no record.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "stack_tests.md"
MARK = "<!-- record -->"
TESTS = sorted(
    str(file.relative_to(ROOT))
    for pattern in ("test_launch_files.py", "test_ros2_control_*.py", "test_rviz.py")
    for file in (ROOT / "test" / "ros").glob(pattern)
)


class Record:
    """A plugin of pytest that counts the outcomes of each file."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: object) -> None:
        """Count a test once: by its call, or by what kept it from being called."""
        file, when, outcome = report.nodeid.partition("::")[0], report.when, report.outcome  # type: ignore[attr-defined]
        self.seconds[file] += report.duration  # type: ignore[attr-defined]
        if when == "call" or outcome != "passed":
            self.outcomes[file][outcome] += 1

    def table(self) -> str:
        """Rows of Markdown, by file."""
        head = "| tests | passed | failed | skipped | time |\n|---|---|---|---|---|\n"
        return head + "\n".join(
            f"| `{file}` | {seen['passed']} | {seen['failed']} | {seen['skipped']} | {self.seconds[file]:.0f} s |"
            for file, seen in sorted(self.outcomes.items())
        )


def versions(packages: list[str]) -> str:
    """Installed packages with their versions."""
    from ament_index_python.packages import get_package_share_directory

    told = []
    for package in packages:
        text = (Path(get_package_share_directory(package)) / "package.xml").read_text(encoding="utf-8")
        told.append(f"{package} {re.findall(r'<version>(.*?)</version>', text)[0]}")
    return ", ".join(told)


def main() -> int:
    """Say what is missing, run the tests, keep the record."""
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    try:
        import pytest

        from test.ros.installed import not_installed
        from test.ros.managed_robot import STACK
        from test.ros.test_rviz import MISSING
    except ImportError as error:
        print(f"pkm stack: {error}\nSource a ROS 2 installation in which this suite is built, with pytest in its Python.")
        return 2
    missing = sorted({*not_installed(["launch_ros", *STACK]), *MISSING})
    if missing:
        print(f"Not installed, so that tests are skipped: {', '.join(missing)}", flush=True)
    record = Record()
    code = int(pytest.main([*TESTS, "-rs", *sys.argv[1:]], plugins=[record]))
    if not sys.argv[1:]:
        commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
        there = [name for name in ("launch_ros", *STACK[2:]) if name not in missing]
        about = f"{date.today():%d %B %Y}, commit {commit.stdout.strip()}, {os.cpu_count()} cores: {versions(there)}."
        lacking = f"\n\nNot installed there: {', '.join(missing)}." if missing else ""
        text = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
        PAGE.write_text(f"{text}{MARK}\n\n{about}\n\n{record.table()}{lacking}\n", encoding="utf-8")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
