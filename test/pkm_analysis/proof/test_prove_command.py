# SPDX-License-Identifier: Apache-2.0
"""The command `pkm analyse ROBOT prove`: answers, exit codes, and what is wrong with a question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pkm_analysis.command_line.analyse import main

BOX = ["--box", "x=-0.2:0.2", "y=-200:200mm", "z=-1:-0.8"]
PATH = ["--from", "x=0.4", "y=1.4", "z=1.2", "pitch=0.2", "roll=0.1"]
PATH += ["--to", "x=0.8", "y=1.8", "z=1.8", "pitch=0.4", "roll=0.3"]


def test_what_holds_is_proved(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    assert main(["delta", "prove", *BOX, "--that", "margin > 0.2", "--json", str(answer)]) == 0
    assert "proved everywhere: margin > 0.2" in capsys.readouterr().out
    written = json.loads(answer.read_text())
    assert written["verdict"] == "proved"
    assert written["proved_share"] == pytest.approx(1.0)
    error = ["--that", "position_error < 1 mm", "--sensor-error", "0.01", "deg"]
    assert main(["delta", "prove", *BOX, *error]) == 0


def test_what_does_not_hold_is_refuted_with_the_point(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gough_stewart", "prove", *PATH, "--that", "no singularity"]) == 1
    out = capsys.readouterr().out
    assert "refuted" in out
    assert "x 680." in out
    assert main(["gough_stewart_7", "prove", *PATH, "--that", "no singularity"]) == 0


def test_what_is_not_decided_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--most-boxes", "1", "--that", "margin > 0.21"]
    assert main(["delta", "prove", *BOX, *few]) == 3
    out = capsys.readouterr().out
    assert "undecided in" in out
    assert "z -1000 to" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--that", "type2 > 0.2"], "0.2 has no unit"),
        (["--that", "type2 > 0.2 deg"], "no unit of it"),
        (["--that", "type2 around 0.2"], "cannot be read"),
        (["--that", "constraint > 0.2"], "nothing is proved of 'constraint'"),
        (["--that", "type2 < 0.2 rad/m"], "an upper bound of it is not proved"),
        (["--that", "margin > -1"], "not positive"),
        (["--that", "position_error < 1 mm"], "errors of the drives' sensors"),
        (["--that", "position_error < 1 mm", "--sensor-error", "much"], "no number"),
        (["--that", "effort_at_rest > 3 N m"], "lower bound of it is not proved"),
        (["--resolution", "2"], "between 0 and 1"),
        (["--most-boxes", "-4"], "give one or more"),
        (["--mode", "99"], "no working mode"),
    ],
)
def test_questions_without_an_answer(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["delta", "prove", *BOX, *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ranges", "said"),
    [
        (["q=0:1"], "none of that name"),
        (["x=1:0"], "it is empty"),
        (["x:0:1"], "cannot be read"),
        (["x=0:1deg"], "no unit of it"),
    ],
)
def test_boxes_that_are_none(ranges: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["delta", "prove", "--box", *ranges]) == 2
    assert said in capsys.readouterr().err


def test_a_box_outside_of_everything_is_refuted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["delta", "prove", "--box", "x=5:6"]) == 1
    said = capsys.readouterr().out
    assert "'inside' does not hold at x" in said
    assert " mm, y" in said
    assert "\n  there: " in said


def test_a_path_needs_two_ends(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["delta", "prove", "--from", "x=0"])
    assert end.value.code == 2
    assert "both --from and --to" in capsys.readouterr().err
