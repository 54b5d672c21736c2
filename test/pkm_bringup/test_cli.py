# SPDX-License-Identifier: Apache-2.0
"""The command `pkm`: every word leads to a command that explains itself."""

from __future__ import annotations

import argparse
import ast
import errno
import importlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import types
from importlib.metadata import version
from pathlib import Path

import pytest

from pkm_bringup import bringup
from pkm_bringup.cli import COMMANDS, command, main
from pkm_bringup.command_line import completion
from pkm_bringup.runner import read_settings
from pkm_bringup.simulate_command import read_options
from pkm_description import command_options
from pkm_runtime import optional
from pkm_runtime.child_processes import Child

ROOT = Path(__file__).resolve().parents[2]


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
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pkm {version('pkm_control')}\n"
    assert main(["chekc"]) == 2
    assert "did you mean 'check'?" in capsys.readouterr().err
    assert main(["dance"]) == 2
    assert "choose one of run, simulate, play, servo-setup, move" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["export", "five_bar", "--to", "c"], "writing five_bar in C"),
        (["convert", "five_bar", "--to", "sdf"], "converting five_bar"),
        (["transmission", "docs/examples/ankle_cranks.urdf.xacro", "--csv"], "solving the linkages of ankle_cranks"),
    ],
)
def test_long_work_is_told(
    words: list[str],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("pkm_runtime.progress._SILENT_FOR", 1e-3)
    to = str(tmp_path / {"export": "c", "convert": "x.sdf", "transmission": "x.csv"}[words[0]])
    assert main([*words, *([] if words[-1] == "--csv" else ["-o"]), to]) == 0
    assert f"pkm: {line}" in capsys.readouterr().err


def test_a_command_gets_its_options_and_gives_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "nonsense"]) == 2
    assert "no such robot" in capsys.readouterr().err
    assert main(["run", "nonsense"]) == 2


def test_negative_numbers_with_units_are_values(capsys: pytest.CaptureFixture[str]) -> None:
    """And no options that are unknown."""
    assert main(["analyse", "delta", "errors", "--reach", "-1mm"]) == 2
    assert "--reach -1mm: it is no size" in capsys.readouterr().err
    assert main(["analyse", "delta", "balance", "--move", "-1mm"]) == 2
    assert "it is not a length" in capsys.readouterr().err


def test_it_is_installed() -> None:
    assert '"pkm = pkm_bringup.cli:main"' in (ROOT / "setup.py").read_text()


def parsers() -> dict[str, argparse.ArgumentParser]:
    return {word: command(word).parser() for word in COMMANDS}


def test_the_clones_script_knows_every_command() -> None:
    listed = re.search(r"tools = (\([^)]*\))", (ROOT / "pkm").read_text())
    assert listed is not None
    assert ast.literal_eval(listed[1]) == tuple(COMMANDS)


# The same name means the same in every command


@pytest.mark.parametrize("word", COMMANDS)
def test_options_have_hyphens_help_and_units(word: str) -> None:
    parser = parsers()[word]
    assert parser.prog == f"pkm {word}"
    for action in parser._actions:
        assert action.help, action.dest
        for name in action.option_strings:
            assert "_" not in name


def test_options_of_the_same_name_are_the_same() -> None:
    seen: dict[str, tuple[str, object, object, object]] = {}
    shared = 0
    for word, parser in parsers().items():
        for action in parser._actions:
            if action.dest in ("help", "json") or not action.option_strings:
                continue
            default = action.default
            told = (action.help or "").replace(", or none", "").split(";")[0].split(" (default")[0]
            same = told, str(default).rstrip("0").rstrip("."), bool(action.nargs), action.metavar
            for name in action.option_strings:
                # the controller of run may be none; of a run there is a report in three formats, of an analysis a page;
                # what is exported is MuJoCo's if nothing is said
                if name in seen and name not in ("-o", "--output", "--controller", "--report", "--to"):
                    shared += 1
                    assert seen[name][1:] == (*same[:2], *same[2:]), f"{name} of {word} and {seen[name][0]}"
                seen.setdefault(name, (word, *same))
    assert shared > 10


def test_every_setting_is_an_option_of_run() -> None:
    words = {name for action in parsers()["run"]._actions for name in action.option_strings}
    for setting in bringup.SETTINGS:
        assert setting.name == "robot" or "--" + setting.name.replace("_", "-") in words
    assert read_settings([]) == {**bringup.defaults(), "stay": "false", "report": "reports"}


@pytest.mark.parametrize(
    ("arguments", "page"), [([], True), (["--page"], True), (["--page", "false"], False), (["--no-page"], False)]
)
def test_switches_are_said_in_three_ways(arguments: list[str], page: bool) -> None:
    assert read_options(["delta", *arguments]).page is page
    assert read_settings(["delta", *arguments])["page"] == str(page).lower()


def test_a_robot_may_follow_a_switch() -> None:
    for switch, page in (("--page", True), ("--no-page", False)):
        assert (read_options([switch, "five_bar"]).robot, read_options([switch, "five_bar"]).page) == ("five_bar", page)
        assert read_settings([switch, "five_bar"])["page"] == str(page).lower()


def test_a_switch_takes_no_other_word(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--page", "maybe"], ["--no-page", "true"]):
        with pytest.raises(SystemExit):
            read_options(["delta", *words])
        assert "--" in capsys.readouterr().err


def test_a_frequency_that_the_rate_does_not_carry_is_lowered_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert read_options(["delta", "--rate", "100"]).natural_frequency == pytest.approx(78.6, abs=0.1)
    assert "lowered from 120 to 78.6 rad/s" in capsys.readouterr().err
    assert read_options(["delta", "--rate", "100", "--realistic"]).natural_frequency == pytest.approx(26.2, abs=0.1)
    assert read_options(["delta"]).natural_frequency == 120.0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--rate", "nan"], "nan is not a number from 10 to 10000"),
        (["--rate", "inf"], "inf is not a number from 10 to 10000"),
        (["--rate", "0"], "0 is not a number from 10 to 10000"),
        (["--rate", "fast"], "invalid number value: 'fast'"),
        (["--hidden-payload", "-1"], "-1 is not a number from 0 to 1000000"),
        (["--port", "0"], "0 is not an integer from 1 to 65535"),
        (["--cycles", "2.5"], "invalid integer value: '2.5'"),
    ],
)
def test_numbers_that_an_option_does_not_take(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        read_options(["delta", *words])
    assert f"argument {words[0]}: {complaint}" in capsys.readouterr().err


# What is made of the parsers


def test_the_reference_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")  # set back afterwards
    spec = importlib.util.spec_from_file_location("make_command_line", ROOT / "docs" / "make_command_line.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made.reference() == (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8"), (
        "write it anew: ./pkm python docs/make_command_line.py"
    )


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_completion_knows_robots_motions_and_options(shell: str) -> None:
    pytest.importorskip("shtab")
    text = completion.script(shell)
    for word in (*COMMANDS, "agile_eye", "pick_and_place", "natural-frequency", "computed_torque"):
        assert word in text
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=text, text=True, check=False).returncode == 0


def test_bash_completes_a_robot(tmp_path: Path) -> None:
    pytest.importorskip("shtab")
    (tmp_path / "pkm").write_text(completion.script("bash"))
    ask = f"source {tmp_path}/pkm; COMP_WORDS=(pkm run agi); COMP_CWORD=2; COMP_LINE='pkm run agi'; COMP_POINT=11;"
    ask += "_shtab_pkm; echo ${COMPREPLY[@]}"
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "agile_eye"


def test_without_shtab_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    assert "pip install shtab" in capsys.readouterr().err


def test_numbers_are_checked() -> None:
    assert command_options.count("3") == 3
    for text, kind in (
        ("0", command_options.count),
        ("nan", command_options.number),
        ("0", command_options.positive),
        ("1", command_options.share),
    ):
        with pytest.raises(argparse.ArgumentTypeError):
            kind(text)


def test_what_is_optional_and_missing_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    present = importlib.util.find_spec
    for absent, word in (("rclpy", "pkm simulate"), ("viser", "pip install viser trimesh")):
        monkeypatch.setattr(
            optional, "find_spec", lambda name, absent=absent: None if name == absent else present(name)
        )
        assert main(["run", "delta", "--page=true"]) == 2
        said = capsys.readouterr().err
        assert f"needs {absent}, not installed here" in said
        assert word in said


@pytest.mark.parametrize(
    "words", [["completion", "bash"], pytest.param(["calibrate", "five_bar", "--plan", "3"], marks=pytest.mark.slow)]
)
def test_a_reader_who_has_enough_is_no_failure(words: list[str]) -> None:
    """As `pkm completion bash | head -0`."""
    command = [sys.executable, "-u", "-m", "pkm_bringup.cli", *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()
    assert process.returncode == 141
    assert not any(line for line in told.splitlines() if not line.startswith("pkm: planning"))  # of a slow computer


SHORT = {
    "ulimit -n": OSError(errno.EMFILE, "Too many open files"),
    "ulimit -v": MemoryError(),
    "LC_ALL": UnicodeEncodeError("ascii", "\xe4", 0, 1, "ordinal not in range"),
}


@pytest.mark.parametrize("what", SHORT)
def test_what_the_system_gives_too_little_of_is_one_line(
    what: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> int:
        raise ImportError("a library") from SHORT[what]

    monkeypatch.setitem(COMMANDS, "completion", ("test_cli_short", ""))
    monkeypatch.setitem(sys.modules, "test_cli_short", types.SimpleNamespace(main=fail))  # type: ignore[arg-type]
    assert main(["completion"]) == 1
    assert Child(lambda: fail(None)).wait(10.0) == 1
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(what in line for line in lines)


def test_names_that_ascii_lacks_are_printed() -> None:
    cmd = [sys.executable, "-c", "from pkm_bringup.cli import _open_streams as f; f(); print('\\xe4')"]
    done = subprocess.run(cmd, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, timeout=30.0)
    assert done.stdout == b"\\xe4\n", done.stderr


def test_a_full_disk_is_one_line() -> None:
    command = [sys.executable, "-m", "pkm_bringup.cli", "check", "five_bar"]
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "pkm check: output: No space left on device\n")


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_what_is_opened_does_not_get_the_number_of_a_closed_standard_stream(closed: int) -> None:
    """Else what a library writes to standard output or error would go to a serial line."""
    program = "import os; from pkm_bringup.cli import main; main(['--version'])\n"
    program += "raise SystemExit(os.open('/dev/null', os.O_RDONLY))"
    script = f'exec {sys.executable} -c "{program}" {closed}>&-'
    done = subprocess.run(["sh", "-c", script], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode > 2
    assert not done.stderr


def test_an_option_that_does_not_exist_is_one_line_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["run", "--cycels", "3"], "did you mean --cycles?"),
        (["run", "delta", "hardware_file:=a.yaml", "simulate:=true"], "did you mean --hardware-file --simulate?"),
        (["simulate", "--rate", "abc"], "argument --rate"),
        (
            ["simulate", "--controller", "position", "--hidden-payload", "3"],
            "--hidden-payload is of a machine with masses",
        ),
        (["run", "delta", "five_bar"], "unrecognized arguments: five_bar ('pkm run --help' tells all options)"),
        (["check", "delta", "--jsn"], "did you mean --json?"),
        (["analyse", "delta", "stiffness", "--jsn"], "did you mean --json?"),
        (["calibrate", "delta", "--paln", "3"], "did you mean --plan?"),
        (["export", "delta", "--outptu", "x"], "did you mean --output?"),
        (["convert"], "required: ROBOT"),
        (["identify"], "required"),
        (["transmission"], "required: ROBOT"),
        (["zoo", "--bad"], "unrecognized arguments: --bad"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert words in said


def test_an_interruption_of_executed_text_ends_a_command_with_its_code(tmp_path: Path) -> None:
    """Python notes it where it is raised, as in the making of a named tuple, and would end by SIGINT."""
    program = (
        "import sys, types\n"
        "from pkm_bringup import cli\n"
        "cli.command = lambda word: types.SimpleNamespace(main=lambda words: exec('raise KeyboardInterrupt'))\n"
        "sys.exit(cli.main(['state']))\n"
    )
    (tmp_path / "asked.py").write_text(program)
    command = [sys.executable, "-m", "asked"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60.0)
    assert done.returncode == 130
    assert done.stderr == "\npkm state: interrupted; nothing more is done\n"


def test_an_interruption_that_comes_before_everything_is_answered_in_words() -> None:
    """`./pkm` holds it back while Python starts."""

    def interrupted() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        os.kill(os.getpid(), signal.SIGINT)

    command = [sys.executable, "-m", "pkm_bringup.cli", "state"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60.0, preexec_fn=interrupted)
    assert done.returncode == 130
    assert done.stderr == "\npkm state: interrupted; nothing more is done\n"
