# SPDX-License-Identifier: Apache-2.0
"""The command `pkm`: every word leads to a command that explains itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkm_control.run.cli import COMMANDS, main


@pytest.mark.parametrize("word", COMMANDS)
def test_every_command_has_help(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([word, "--help"])
    assert end.value.code == 0
    assert "usage:" in capsys.readouterr().out


def test_what_there_is_is_listed_and_near_words_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    assert main([]) == 2
    assert capsys.readouterr().out == listed
    assert all(f"  {word} " in listed for word in COMMANDS)
    assert main(["chekc"]) == 2
    assert "did you mean check?" in capsys.readouterr().err
    assert main(["dance"]) == 2
    assert "choose one of run, simulate" in capsys.readouterr().err


def test_a_command_gets_its_options_and_gives_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "nonsense"]) == 1
    assert "no such robot" in capsys.readouterr().out
    assert main(["run", "nonsense"]) == 2


def test_it_is_installed() -> None:
    assert '"pkm = pkm_control.run.cli:main"' in (Path(__file__).parents[2] / "setup.py").read_text()
