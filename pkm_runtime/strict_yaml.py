# SPDX-License-Identifier: Apache-2.0
"""YAML as people mean it: usual numbers, each key once, lines known, bad texts refused early.

PyYAML reads YAML 1.1, in which 1e12 is a text, 010 is 8, 1:30 is 90, and of two equal keys the last counts.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from pkm_runtime.errors import PkmError, shortened

DEPTH = 30  # mappings and lists within each other
_DIGITS = 18  # of an integer; beyond these it is a float
_NULL, _BOOL, _INT, _FLOAT = (f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))
_WHOLE = re.compile(r"[-+]?[0-9]+$|0x[0-9a-fA-F]+$")
_NUMBER = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$|[-+]?\.(?:inf|Inf|INF)$|\.(?:nan|NaN|NAN)$"
)


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


def read(text: str) -> Any:
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
