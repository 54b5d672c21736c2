# SPDX-License-Identifier: Apache-2.0
"""The command `pkm analyse`: tasks are found, and what is wrong is said."""

from __future__ import annotations

import pytest

from pkm_analysis.command_line.analyse import main


def test_a_task_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["delta", "workspaec"])
    assert end.value.code == 2
    assert "no such task as 'workspaec'" in capsys.readouterr().err


def test_a_robot_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonsense"]) == 1
    assert "no such robot" in capsys.readouterr().err
