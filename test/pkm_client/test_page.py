# SPDX-License-Identifier: Apache-2.0
"""What docs/client.md says of a robot in one process is true of one over ROS: only the line that makes it differs.

In one process the page is run by `test/docs/test_code.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import running_nodes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "client.md"
SIMULATED = 'Robot.simulated("delta", realtime=False)'
SAID = (
    "the fraction is 1000; give a number from 0 to 1",
    "PREEMPTED: another motion took over",
    "SUCCESSFUL",
)


def code(made: str) -> str:
    """The page's Python with another way to a robot."""
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(found) == 6
    assert all(SIMULATED in block for block in found)
    return "\n".join(found).replace(SIMULATED, made)


def test_examples_are_short() -> None:
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        assert len([line for line in block.splitlines() if line.strip()]) <= 14


@pytest.mark.slow  # by day the page is run in one process, with the other documents
@pytest.mark.parametrize("where", ["one process", "ros"])
def test_it_runs_and_says_what_the_page_says(
    where: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(PAGE.parents[1])
    if where == "ros":
        with running_nodes("page"):
            exec(compile(code('Robot.connect("page", 120.0)'), str(PAGE), "exec"), {"__name__": "__main__"})
    else:
        exec(compile(code(SIMULATED), str(PAGE), "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    for words in SAID:
        assert words in printed
