# SPDX-License-Identifier: Apache-2.0
"""Errors that users can cause. Every error derives from `PkmError` and carries the data that explain it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

_LONGEST = 1000  # characters of a quotation in a message


class PkmError(Exception):
    """Root of all errors that this suite raises. Other processes get them with message and data."""

    def __reduce__(self) -> tuple[Any, ...]:
        """What `_made_again` takes: the arguments of `__init__` are not kept."""
        return _made_again, (type(self), self.args, self.__dict__)


def _made_again(kind: type[PkmError], arguments: tuple[Any, ...], data: dict[str, Any]) -> PkmError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(data)
    return error


class UsageError(PkmError):
    """What cannot be done as asked: the part it is about, what is wrong, and what to ask instead."""

    def __init__(self, about: str, problem: str, remedy: str) -> None:
        self.about = shortened(about)
        self.problem = shortened(problem)
        self.remedy = shortened(remedy)
        super().__init__(f"{self.about}: {self.problem}; {self.remedy}")


class ConfigurationError(UsageError):
    """An unusable file of settings: `element` is its keys joined by dots, or empty; `line` 0: not known."""

    def __init__(self, source: str, element: str, problem: str, remedy: str, line: int = 0) -> None:
        self.source = source
        self.line = line
        self.element = printable(element)
        where = ", ".join(filter(None, (source, f"line {line}" if line else "", self.element)))
        super().__init__(where, printable(problem), remedy)


def nearest(name: str, known: Iterable[str], otherwise: str) -> str:
    """A remedy for a name that is not known."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else otherwise


def shortened(text: str, longest: int = _LONGEST) -> str:
    """A text with its middle left out where it has more than `longest` characters."""
    if len(text) <= longest:
        return text
    half = (longest - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def printable(text: str) -> str:
    """Text from elsewhere for quoting in a message: shortened, and without control characters of terminals."""
    return shortened(text if text.isprintable() else ascii(text)[1:-1])


_SHORT = {  # what a process may have no more of, and what errors say then
    "open files (ulimit -n)": ("too many open files",),
    "memory or threads (ulimit -v, ulimit -u)": (
        "cannot allocate memory",
        "unable to allocate",
        "failed to map segment",
        "can't start new thread",
        "unable to start watchdog thread",
    ),
}


def shortage(error: BaseException | None) -> str:
    """What was too little, in one line, where that caused an error or one behind it; else empty."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, UnicodeEncodeError) and error.encoding == "ascii":
            letters = ascii(error.object[error.start : error.end])
            return f"{shortened(letters, 40)} cannot be written in ASCII: set LC_ALL=C.UTF-8, and unset PYTHONUTF8"
        text = "cannot allocate memory" if isinstance(error, MemoryError) else str(error).lower()
        for what, words in _SHORT.items():
            if any(word in text for word in words):
                return f"the system gives this process no more {what}"
        error = error.__cause__ or error.__context__
    return ""
