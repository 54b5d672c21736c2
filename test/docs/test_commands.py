# SPDX-License-Identifier: Apache-2.0
"""The commands of the documents are taken by the parsers that they go to; the files that they name are there."""

from __future__ import annotations

import argparse
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

from pkm_analysis.command_line.tasks import TASKS
from pkm_bringup import bringup, cli

from .markdown import PAGES, ROOT, blocks, markdown, named, prose

OF_THE_SCRIPT = (
    "test",
    "nightly",
    "stack",
    "python",
    "setup",
    "docs",
    "--version",
)  # of ./pkm alone
LAUNCH = (ROOT / "pkm_bringup" / "launch_bringup.py").read_text(encoding="utf-8")
ARGUMENTS = {one.name for one in bringup.SETTINGS} | set(re.findall(r'(?:bringup\.)?Setting\(\s*"(\w+)"', LAUNCH))
INLINE = re.compile(r"`((?:\./)?pkm (?:(?!`).)+|python (?:-m )?[\w./]+[^`]*|ros2 launch [^`]+)`", re.DOTALL)


def commands(page: Path) -> list[str]:
    """Command lines of a page, in blocks and within its text."""
    text = markdown(page)
    found = []
    for block in blocks(text):
        lines = re.sub(r"\\\n\s*", " ", block.text).split("\n")
        prompts = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        if block.language == "bash" or (block.language in ("", "indented") and lines[0].startswith("./pkm ")):
            prompts = lines
        found += [part for line in prompts for part in re.split(r" && | \| ", line)]
    found += [re.sub(r"\s+", " ", text) for text in INLINE.findall(prose(text))]
    return [command for command in found if command.strip()]


def refusal(command: str) -> str:
    """What is wrong with a command, empty where nothing is; what is not of the suite is not looked at."""
    if not command.startswith(("pkm", "./pkm", "python", "ros2 launch")):
        return ""
    words = shlex.split(re.sub(r"\s>(?=[^\"']*$).*", "", command), comments=True)
    if words[0] in ("pkm", "./pkm"):
        return of_pkm(words[1:])
    if words[0].startswith("python") and len(words) > 1:
        return of_python(words[1:])
    if words[:3] == ["ros2", "launch", "pkm_control"]:
        return of_launch(words[3:])
    return ""


def of_pkm(words: list[str]) -> str:
    if not words or words[0] in ("COMMAND", "...", "--help"):
        return ""
    if words[0] == "analyse" and len(words) > 2:
        return of_analysis(words[1:])
    if words[0] in cli.COMMANDS:
        # the word alone: a sentence about the command
        return of_parser(cli.command(words[0]).parser(), words[1:]) if words[1:] else ""
    if words[0] not in OF_THE_SCRIPT:
        return f"no command {words[0]}"
    if words[0] == "python":
        return of_python(words[1:])
    gone = [word for word in words[1:] if word.startswith("test/") and not (ROOT / word).exists()]
    return f"no such tests: {gone}" if gone else ""


def of_analysis(words: list[str]) -> str:
    """Of a robot and a task, the task alone: a sentence about it."""
    robot, task, *rest = words
    if task == "[TASK]":
        return ""
    if task not in TASKS:
        return f"no task {task}"
    return of_parser(TASKS[task].parser(), [robot, *rest]) if rest else ""


def of_parser(parser: argparse.ArgumentParser, words: list[str]) -> str:
    if "..." in words or (words and "--help" in words):
        words = [word for word in words if word not in ("...", "--help")]
        known = {option for action in parser._actions for option in action.option_strings}
        return "".join(f"no option {word}" for word in words if word.startswith("-") and word not in known)
    parser.error = refuse  # type: ignore[method-assign, assignment]
    parser.allow_abbrev = False
    try:
        values = vars(parser.parse_args(words))
        if parser.prog == "pkm run":
            texts = {name: str(value).lower() for name, value in values.items() if name not in ("robot", "motion")}
            given = {"robot": "", "motion": "auto", **texts}
            if bringup.motion_of(given) == "none":  # as the command itself has it
                given["stay"] = "true"
            bringup.check(given)
    except ValueError as error:
        return str(error)
    gone = [word for word in words if word.startswith("docs/") and not (ROOT / word).exists()]
    return f"no such file: {gone}" if gone else ""


def refuse(message: str) -> None:
    raise ValueError(message)


def of_python(words: list[str]) -> str:
    if not words:
        return ""
    if words[0] == "-m":
        module = words[1]
        ours = module.split(".")[0].startswith(("pkm_", "bench"))
        return f"no module {module}" if ours and find_spec(module) is None else ""
    if words[0].endswith(".py") and "/" in words[0]:
        return "" if (ROOT / words[0]).is_file() else f"no file {words[0]}"
    return ""


def of_launch(words: list[str]) -> str:
    if not (ROOT / "launch" / words[0]).is_file():
        return f"no launch file {words[0]}"
    given = {word.partition(":=")[0] for word in words[1:] if ":=" in word}
    return f"no launch arguments {sorted(given - ARGUMENTS)}" if given - ARGUMENTS else ""


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_are_taken(page: Path) -> None:
    refused = {command: refusal(command) for command in commands(page)}
    assert {command: why for command, why in refused.items() if why} == {}


def test_options_named_in_the_text_exist() -> None:
    """An option by its name belongs to a command, or to a program that the sentence names."""
    ours = {
        "--browser",
        "--check",
        "--pictures",
        "--write",
        "--poses",
        "--all-modes",
        "--show-args",
        "--symlink-install",
        "--full",
    }
    for one in [*map(cli.command, cli.COMMANDS), *TASKS.values()]:
        ours |= {option for action in one.parser()._actions for option in action.option_strings}
    named_options = {
        (named(page), option) for page in PAGES for option in re.findall(r"`(--[a-z][a-z0-9-]*)", prose(markdown(page)))
    }
    assert {(page, option) for page, option in named_options if option not in ours} == set()


def test_commands_are_found() -> None:
    found = [command for page in PAGES for command in commands(page)]
    assert len([command for command in found if command.startswith(("./pkm", "pkm"))]) > 40
    assert len([command for command in found if command.startswith("ros2 launch")]) > 5


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("./pkm run delta --cycle 3", "--cycle"),
        ("./pkm run --cycles three delta", "three"),
        ("pkm dance", "dance"),
        ("./pkm cycle delta --pick 0 0", "--pick"),
        ("./pkm check docs/examples/gone.urdf.xacro", "gone"),
        ("./pkm test test/gone.py", "gone"),
        ("./pkm python -m pkm_dynamics.gone", "gone"),
        ("python docs/gone.py", "gone"),
        ("ros2 launch pkm_control gone.launch.py", "gone"),
        ("ros2 launch pkm_control delta.launch.py cycels:=3", "cycels"),
        ("./pkm run --hosts --help", "--hosts"),
    ],
)
def test_wrong_commands_are_noticed(command: str, word: str) -> None:
    assert word in refusal(command)


def test_right_commands_are_taken() -> None:
    for command in ("./pkm run delta --cycles 3 # thrice", "./pkm test -k delta", "pkm run --help", "ls --gone"):
        assert refusal(command) == ""
