# SPDX-License-Identifier: Apache-2.0
"""Expansion of xacro files and texts to plain URDF+ text, with or without a ROS installation.

A xacro file is a program: its expressions are Python, and it may read files. So it is expanded only where a user names
it, on a command line or in a script, never from the ROS graph, and in its own process, ended when it takes too long.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pkm_description.description_error import DescriptionError
from pkm_description.urdf.xml_text import LETTERS

PACKAGE = "pkm_control"
XACRO_NAMESPACE = "http://www.ros.org/wiki/xacro"
PATIENCE = 10.0  # s of processor time; robots of the gallery take a tenth of a second
_STALLED = 20.0  # times that, by the clock: a busy computer is not the fault of an expression

_ARGUMENT = re.compile(r"<xacro:arg\s+name=\"(\w+)\"[^>]*/>(?:[ \t]*<!--\s*(?:([\w/^*. \[\],]{1,12}): )?(.*?)\s*-->)?")
_WORKER = Path(__file__).with_name("xacro_worker.py")


def needs_expansion(text: str) -> bool:
    """Whether the text uses xacro."""
    return XACRO_NAMESPACE in text or "<xacro:" in text


def expand_file(path: Path, arguments: Mapping[str, str] | None = None, patience: float = PATIENCE) -> str:
    """Expand a xacro file, includes relative to it, within `patience` [s of processor time], or `DescriptionError`."""
    return str(_answer(str(path.resolve()), None, arguments, patience)["text"])


def expand_text(
    text: str, arguments: Mapping[str, str] | None = None, patience: float = PATIENCE, beside: Path | None = None
) -> str:
    """`expand_file` for a text; relative includes are resolved from the working directory, or from `beside`."""
    return str(_answer(None if beside is None else str(beside.resolve()), text, arguments, patience)["text"])


@dataclass(frozen=True)
class Argument:
    """An argument of a xacro file. Behind it, its file may say `<!-- m: length of an arm -->`: unit and meaning."""

    name: str
    default: str
    unit: str = ""
    meaning: str = ""


def arguments_of(path: Path) -> list[Argument]:
    """The arguments of a xacro file, then those of what it includes; DescriptionError as by `expand_file`."""
    answer = _answer(str(path.resolve()), None, None, PATIENCE)
    defaults: dict[str, str] = answer["defaults"]
    descriptions: dict[str, tuple[str, str]] = {}
    for file in answer["files"]:
        for name, unit, meaning in _ARGUMENT.findall(Path(file).read_text(encoding="utf-8")):
            descriptions.setdefault(name, (unit, meaning))
    names = sorted(defaults, key=list(descriptions).index) if defaults.keys() <= descriptions.keys() else list(defaults)
    return [Argument(name, defaults[name], *descriptions.get(name, ())) for name in names]


def _answer(path: str | None, text: str | None, arguments: Mapping[str, str] | None, patience: float) -> dict[str, Any]:
    element = f"file {path}" if path else "xacro text"
    task = {
        "path": path,
        "text": text,
        "arguments": {name: str(value) for name, value in (arguments or {}).items()},
        "package": PACKAGE,
        # The directory that holds `pkm_description/`, however the package was installed.
        "directory": str(Path(__file__).resolve().parents[2]),
        "longest": LETTERS,
        "patience": math.ceil(patience),
    }
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        worker = subprocess.run(
            [sys.executable, str(_WORKER)],
            input=json.dumps(task),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_STALLED * patience,
            env=environment,
        )
    except subprocess.TimeoutExpired as error:
        why = f"its expansion was not done after {_STALLED * patience:g} s"
        raise DescriptionError(element, why, "try again when the computer is less busy") from error
    if worker.returncode == -signal.SIGXCPU:
        why = f"its expansion takes more than {patience:g} s of processor time"
        raise DescriptionError(element, why, "correct the xacro expression")
    try:
        answer: dict[str, Any] = json.loads(worker.stdout)
    except ValueError as error:
        last = worker.stderr.strip().splitlines()[-1:] or [f"exit status {worker.returncode}"]
        raise DescriptionError(element, f"its expansion failed: {last[0]}", "correct the xacro expression") from error
    if "text" not in answer:
        raise DescriptionError(element, answer["problem"], answer["remedy"])
    return answer
