# SPDX-License-Identifier: Apache-2.0
"""Which number in a xacro file makes what looks wrong in the text that it expands to.

A description shows what expressions come to: 21.57 rad where a property says 20 and means degrees. The number at fault
is found by trying: the file is expanded with numbers that its author wrote turned into the other unit, and those that
need not be turned, for nothing in the result to look wrong, are left as they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pkm_description.errors import DescriptionError
from pkm_description.urdf.unit_slips import ANGLE, Slip, suspects
from pkm_description.urdf.urdf_plus import parse
from pkm_description.urdf.xacro_expansion import expand_text
from pkm_description.xml_text import read_file, read_xml

LEAST = {Slip.DEGREES: ANGLE, Slip.MILLIMETRES: 10.0, Slip.SLIDE: 10.0}  # as written; below are counts and indices
MOST = 40  # expansions, each a tenth of a second

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"<([\w:]+)((?:\s+[\w:.]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*)\s*/?>")
_ATTRIBUTE = re.compile(r"([\w:.]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_NUMBER = re.compile(r"(?<![\w.])(?:(?<![\w)\]}.])-)?\d+\.?\d*(?:[eE][-+]?\d+)?(?![\w.])")


@dataclass(frozen=True)
class Written:
    """A number as the author of a file wrote it."""

    element: str  # such as `<xacro:property name="rod_length">`
    attribute: str
    line: int
    start: int  # place in the text
    end: int
    value: float

    @property
    def place(self) -> str:
        """Where it is."""
        return f"line {self.line}: {self.element}, {self.attribute}"


def numbers(text: str) -> Iterator[Written]:
    """All numbers in attributes of a xacro text, those of properties and macros first."""
    bare = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    tags = sorted(_TAG.finditer(bare), key=lambda tag: not tag[1].startswith("xacro:"))
    for tag in tags:
        name = re.search(r"\bname\s*=\s*[\"']([^\"'$]*)[\"']", tag[2])
        element = f'<{tag[1]} name="{name[1]}">' if name else f"<{tag[1]}>"
        for attribute in _ATTRIBUTE.finditer(bare, tag.start(2), tag.end(2)):
            group = 2 if attribute[2] is not None else 3
            for number in _NUMBER.finditer(bare, attribute.start(group), attribute.end(group)):
                line = text.count("\n", 0, number.start()) + 1
                yield Written(element, attribute[1], line, number.start(), number.end(), float(number[0]))


def blamed(path: Path, arguments: Mapping[str, str] | None, slip: Slip) -> list[Written]:
    """The numbers of a xacro file that explain why angles, or why lengths look like another unit's in its expansion.

    Args:
        path: the file.
        arguments: values of its arguments.
        slip: what to explain, with all that has the same factor.

    Returns:
        The numbers which, turned into radians or metres, leave nothing of this kind; empty where there are none.
    """
    text = read_file(path)
    tries = 0

    def explained(changed: Sequence[Written]) -> bool:
        """True where nothing looks wrong with some numbers turned."""
        nonlocal tries
        tries += 1
        try:
            description = expand_text(turned(text, changed, slip.factor), arguments, beside=path)
            left = suspects(parse(description), read_xml(description, "text"))
        except DescriptionError:
            return False
        return not [one for one in left if one.slip.factor == slip.factor]

    changed = [one for one in numbers(text) if abs(one.value) >= LEAST[slip] and not _in_radians(text, one, slip)]
    if not changed or not explained(changed):
        return []
    share = len(changed)  # how many are left as they are at once, to see whether they matter
    while share > 0:
        for part in [changed[i : i + share] for i in range(0, len(changed), share)]:
            fewer = [one for one in changed if one not in part]
            if tries < MOST and fewer and explained(fewer):
                changed = fewer
        share //= 2
    return changed if tries < MOST else []


def turned(text: str, changed: Sequence[Written], factor: float) -> str:
    """The text with some numbers multiplied by a factor."""
    for one in sorted(changed, key=lambda one: -one.start):
        text = f"{text[: one.start]}{one.value * factor!r}{text[one.end :]}"
    return text


def _in_radians(text: str, number: Written, slip: Slip) -> bool:
    """True for a number of degrees that its expression turns into radians already."""
    around = text[max(0, number.start - 20) : number.start]
    return slip is Slip.DEGREES and bool(re.search(r"radians\(\s*$", around))
