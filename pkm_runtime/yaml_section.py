# SPDX-License-Identifier: Apache-2.0
"""Small YAML files, section by section: keys are taken one by one, and errors name their place.

PyYAML reads YAML 1.1, in which 1e12 is a text, 010 is 8, 1:30 is 90, and of two equal keys the last counts. Here
numbers are as people mean them, each key stands once, lines are known, and bad texts are refused early.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from pkm_runtime.errors import ConfigurationError, PkmError, nearest, shortened
from pkm_runtime.whole_files import read_small

DEPTH = 30  # mappings and lists within each other
_DIGITS = 18  # of an integer; beyond these it is a float
_NULL, _BOOL, _INT, _FLOAT = (f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))
_WHOLE = re.compile(r"[-+]?[0-9]+$|0x[0-9a-fA-F]+$")
_NUMBER = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$|[-+]?\.(?:inf|Inf|INF)$|\.(?:nan|NaN|NAN)$"
)
_LARGEST = 60_000  # bytes: some 600 lines, which take a second or two
_GREATEST = 1e12  # of numbers, whose squares are numbers, too


class Section:
    """A mapping of the file, whose keys are taken one by one; `finish` refuses keys that were not taken.

    `element` is its place in the file, such as `actuators.limb1_arm`; `fallback` is where keys are looked up that it
    lacks. Its methods raise `ConfigurationError` for missing keys without a default and for values of the wrong kind.
    """

    def __init__(self, source: str, element: str, values: Any, fallback: Mapping[str, Any] | None = None) -> None:
        if not isinstance(values, Mapping):
            problem, remedy = f"'{_shown(values)}' is not a mapping", "write 'key: value' lines below it"
            if values is None:
                problem, remedy = "is empty", "write 'key: value' lines into it"
            raise ConfigurationError(source, element, problem, remedy)
        self.source = source
        self.element = element
        self._values = {**(fallback or {}), **values}
        self._own = {str(key) for key in values}
        self._line = getattr(values, "line", 0)
        self._lines = {**getattr(fallback, "lines", {}), **getattr(values, "lines", {})}
        self._known: set[str] = set()

    def wrong(self, key: str, problem: str, remedy: str) -> ConfigurationError:
        """The error of a key; an empty key means the whole section."""
        line = self._lines.get(key, self._line)
        return ConfigurationError(self.source, f"{self.element}.{key}".strip("."), problem, remedy, line)

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        self._known.add(key)
        return key in self._values

    def is_number(self, key: str) -> bool:
        """Whether a key is there with a plain number."""
        return self.has(key) and _is_number(self._values[key])

    def number(
        self, key: str, default: float | None = None, bounds: tuple[float, float] = (-_GREATEST, _GREATEST)
    ) -> float:
        """A finite number within bounds, both included; required where there is no default."""
        if not self.has(key) and default is not None:
            return default
        value = self._required(key)
        if not _is_number(value):
            raise self.wrong(key, f"'{_shown(value)}' is no number", "give a number, in SI units and radians")
        low, high = bounds
        if not low <= value <= high:
            raise self.wrong(key, f"{value:g} is outside its range", f"give a number from {low:g} to {high:g}")
        return float(value)

    def whole(self, key: str, default: int | None = None, bounds: tuple[int, int] = (0, 10**9)) -> int:
        """An integer within bounds, both included."""
        value = self.number(key, default, bounds)
        if value != int(value):
            raise self.wrong(key, f"{value:g} is no integer", "give an integer")
        return int(value)

    def text(self, key: str, default: str | None = None, choices: Sequence[str] = ()) -> str:
        """A text, one of the choices where there are any."""
        if not self.has(key) and default is not None:
            return default
        value = self._required(key)
        if not isinstance(value, str) or not value:
            raise self.wrong(key, f"'{_shown(value)}' is no text", "give a text")
        if choices and value not in choices:
            raise self.wrong(key, f"'{value}' is unknown", f"give one of {', '.join(choices)}")
        return value

    def sign(self, key: str, default: int | None = 1) -> int:
        """+1 or -1."""
        value = self.number(key, default)
        if value not in (1.0, -1.0):
            raise self.wrong(key, f"{value:g} is no direction", "give 1 or -1")
        return int(value)

    def mapping(self, key: str) -> Mapping[str, Any]:
        """A mapping, empty where there is none."""
        value = self._values.get(key) if self.has(key) else {}
        if not isinstance(value, Mapping):
            raise self.wrong(key, f"'{_shown(value)}' is not a mapping", "write 'key: value' lines below it")
        return value

    def numbers(self, key: str, sizes: Sequence[int], default: Sequence[float] | None = None) -> list[float]:
        """A list of finite numbers, as many as one of `sizes`; a single number counts as a list."""
        if not self.has(key) and default is not None:
            return list(default)
        value = self._required(key)
        rows = value if isinstance(value, list) else [value]
        if len(rows) not in sizes or not all(_is_number(one) for one in rows):
            several = " or ".join(str(size) for size in sizes)
            raise self.wrong(key, f"'{_shown(value)}' is no list of {several} numbers", "give them as [a, b, c]")
        if any(abs(one) > _GREATEST for one in rows):
            raise self.wrong(key, f"'{_shown(value)}' has a number beyond all machines", f"give at most {_GREATEST:g}")
        return [float(one) for one in rows]

    def rows(self, key: str, size: int) -> list[list[float]]:
        """Lists of `size` finite numbers each, none where the key is missing."""
        value = self._values.get(key) if self.has(key) else []
        if not isinstance(value, list):
            raise self.wrong(key, f"'{_shown(value)}' is no list", f"give lists of {size} numbers")
        return [self._like(key, one).numbers(key, (size,)) for one in value]

    def names(self, key: str, choices: Sequence[str]) -> list[str]:
        """A list of texts out of the choices, empty where the key is missing."""
        value = self._values.get(key) if self.has(key) else []
        listed: list[Any] = list(value) if isinstance(value, list) else [value]
        for one in listed:
            if one not in choices:
                raise self.wrong(key, f"'{_shown(one)}' is unknown", f"give a list of {', '.join(choices)}")
        return listed

    def finish(self) -> None:
        """Refuse keys that were not taken."""
        for key in sorted(str(key) for key in self._values if key not in self._known):
            remedy = nearest(key, self._known, f"known here: {', '.join(sorted(self._known))}")
            where = self
            if key not in self._own:
                where = Section(self.source, "defaults", {})
                where._lines = self._lines
            raise where.wrong(_shown(key), "no such key", remedy)

    def _like(self, key: str, value: Any) -> Section:
        one = Section(self.source, self.element, {key: value})
        one._lines = self._lines
        return one

    def _required(self, key: str) -> Any:
        if not self.has(key) or self._values[key] is None:
            raise self.wrong(key, "is missing", "every machine of this kind needs it")
        return self._values[key]


def read_yaml(path: str | Path) -> tuple[str, Any]:
    """Name and contents of a small file; `ConfigurationError` where it cannot be read."""
    source = Path(path).name
    text = read_small(path, _LARGEST, partial(ConfigurationError, str(path), ""))
    try:
        return source, read_yaml_text(text)
    except YamlError as error:
        raise ConfigurationError(source, "", error.problem, "correct it", error.line) from error


def read_yaml_text(text: str) -> Any:
    """Content of a YAML document: mappings (`Located`), lists, texts, numbers, switches, None; or `YamlError`."""
    try:
        return _Loader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = " ".join(str(part) for part in (error.context, error.problem) if part)
        raise YamlError(mark.line + 1 if mark else 0, words) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(line, f"the character {error.character:#x} is not allowed") from error
    except (yaml.YAMLError, ValueError) as error:
        raise YamlError(0, " ".join(str(error).split())) from error


class YamlError(PkmError):
    """An unacceptable text, with its line from 1, or 0 for none."""

    def __init__(self, line: int, problem: str) -> None:
        self.line = line
        self.problem = shortened(problem, 300)
        super().__init__(f"line {line}: {self.problem}" if line else self.problem)


class Located(dict[Any, Any]):
    """A mapping that knows its first line, and that of each key."""

    line = 0

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, int] = {}


class _Loader(yaml.SafeLoader):
    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._depth += 1
        event = self.peek_event()
        if self._depth > DEPTH:
            raise yaml.composer.ComposerError(None, None, f"nests deeper than {DEPTH}", event.start_mark)
        if getattr(event, "tag", None) is not None:
            raise yaml.composer.ComposerError(None, None, f"the tag '{event.tag}' is not accepted", event.start_mark)
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Any:
    found = Located()
    found.line = node.start_mark.line + 1
    yield found
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        where = key_node.start_mark
        if not isinstance(key, (str, int, float)):
            raise yaml.constructor.ConstructorError(None, None, "a key that is not text", where)
        if key == "<<":
            raise yaml.constructor.ConstructorError(None, None, "'<<' is not accepted: write the keys out", where)
        if str(key) in found.lines:
            first = f"the first is on line {found.lines[str(key)]}"
            raise yaml.constructor.ConstructorError(None, None, f"the key '{key}' appears twice; {first}", where)
        found.lines[str(key)] = where.line + 1
        found[key] = loader.construct_object(value_node, deep=True)


def _whole(loader: _Loader, node: yaml.ScalarNode) -> int | float:
    if node.value.startswith("0x"):
        return int(node.value, 16)
    return int(node.value) if len(node.value) <= _DIGITS else float(node.value)


def _number(loader: _Loader, node: yaml.ScalarNode) -> float:
    words = node.value.lower()
    return float(words.replace(".", "") if words.endswith(("inf", "nan")) else words)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in (_NULL, _BOOL)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor(_INT, _whole)
_Loader.add_constructor(_FLOAT, _number)
for _first in "-+0123456789":
    _Loader.add_implicit_resolver(_INT, _WHOLE, [_first])
for _first in "-+.0123456789":
    _Loader.add_implicit_resolver(_FLOAT, _NUMBER, [_first])


class _ShortRepr(reprlib.Repr):
    """Values as messages quote them, shortened: by aliases a few lines of a file become a text without end."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 2

    def repr_Located(self, value: Any, level: int) -> str:
        return self.repr_dict(value, level)


_SHORT = _ShortRepr()


def _shown(value: Any) -> str:
    """A value as a message quotes it: shortened, and without control characters of terminals."""
    text = value if isinstance(value, str) else _SHORT.repr(value)
    return shortened(text if text.isprintable() else ascii(text)[1:-1], 100)


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)
