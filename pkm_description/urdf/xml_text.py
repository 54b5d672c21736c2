# SPDX-License-Identifier: Apache-2.0
"""XML texts read within limits: no text runs a program, opens a file, or takes more than moments to refuse.

Every reader of a description uses `read_xml`. Entities and document types are refused, since a few lines of them make
gigabytes of text; so are texts that are longer, deeper or have more elements than any machine needs.
"""

from __future__ import annotations

import contextlib
import re
import xml.etree.ElementTree as ET
import xml.parsers.expat
from collections.abc import Iterable, Mapping
from pathlib import Path

from pkm_description.description_error import DescriptionError

LETTERS = 10_000_000  # of a text; the longest of the gallery has 31,000
LFS = "version https://git-lfs"
DEPTH = 200  # elements within elements; bodies of MJCF nest, those of URDF do not
ELEMENTS = 100_000
_REFERENCES = ("link", "reference", "base_link", "platform_link")  # attributes that name a link


def read_xml(text: str, place: str) -> ET.Element:
    """Root element of an XML text, which messages call `place`; `DescriptionError` beyond the limits."""
    check_length(text, place)
    parser = ET.XMLParser(target=_LimitedBuilder(place))
    try:
        parser.feed(text.strip().removeprefix("\ufeff"))
        root: ET.Element = parser.close()
    except ET.ParseError as error:
        raise DescriptionError(place, f"it is not well-formed XML: {error}", "correct the XML at that line") from error
    except (UnicodeError, ValueError) as error:  # lone surrogates, an encoding that the text names
        raise DescriptionError(place, f"it is not XML: {error}", "give UTF-8 text") from error
    return root


def read_file(path: Path) -> str:
    """Text of a UTF-8 file; `DescriptionError` where it is unreadable or too long."""
    try:
        size = path.stat().st_size
        if size > 4 * LETTERS:  # bytes of UTF-8
            raise DescriptionError(f"file {path}", f"it has {size} bytes", "give the description of a robot")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DescriptionError(f"file {path}", f"it cannot be read: {error}", "give a UTF-8 text file") from error
    check_length(text, f"file {path}")
    check_pointer(text, path)
    return text


def check_pointer(text: str, path: Path) -> None:
    """Refuse what Git LFS leaves in a clone in place of a large file, of which `text` is the beginning."""
    if text.startswith(LFS):
        raise DescriptionError(f"file {path}", "it is a pointer of Git LFS", "run git lfs pull in its clone")


def check_length(text: str, place: str) -> None:
    """Refuse a text of more than `LETTERS` characters; the message calls it `place`."""
    if len(text) > LETTERS:
        raise DescriptionError(
            place, f"it has {len(text)} characters, more than {LETTERS}", "remove text that does not describe a robot"
        )


def root_tag(text: str) -> str:
    """Name of the root element as far as the text is XML; empty where it has none."""
    parser = xml.parsers.expat.ParserCreate()
    found: list[str] = []

    def start(tag: str, _attributes: dict[str, str]) -> None:
        found.append(tag)
        raise _StopParsingError

    def doctype(*_: object) -> None:
        raise _StopParsingError

    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = doctype
    with contextlib.suppress(_StopParsingError, xml.parsers.expat.ExpatError, UnicodeError, ValueError):
        parser.Parse(text.strip().removeprefix("\ufeff"), True)
    return found[0] if found else ""


def append(parent: ET.Element, tag: str, **attributes: str) -> ET.Element:
    """A new element at the end of its parent."""
    return ET.SubElement(parent, tag, attributes)


def append_home(pkm: ET.Element, positions: Mapping[str, float]) -> ET.Element:
    """A `<home>` with positions by degree of freedom, in place of what there was."""
    for element in pkm.findall("home"):
        pkm.remove(element)
    home = append(pkm, "home")
    for name, value in positions.items():
        append(home, "joint", name=name, position=repr(float(value)))
    return home


def row(values: Iterable[float]) -> str:
    """Numbers with all digits, a zero without sign."""
    return " ".join(repr(float(v) + 0.0) for v in values)


class _StopParsingError(Exception):
    """The root element has begun, or a document type, before which none is read."""


class _LimitedBuilder(ET.TreeBuilder):
    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place
        self._depth = 0
        self._elements = 0

    def start(self, tag: str, attrs: dict[str, str]) -> ET.Element:
        self._depth += 1
        self._elements += 1
        if self._depth > DEPTH:
            raise DescriptionError(self._place, f"its elements nest deeper than {DEPTH}", "write them side by side")
        if self._elements > ELEMENTS:
            raise DescriptionError(
                self._place, f"it has more than {ELEMENTS} elements", "remove text that does not describe a robot"
            )
        return super().start(tag, attrs)

    def end(self, tag: str) -> ET.Element:
        self._depth -= 1
        return super().end(tag)

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        """Refuse a document type before its entities are read."""
        raise DescriptionError(self._place, "it has a <!DOCTYPE>", "remove it; entities are not expanded")


def prefix_frames(text: str, prefix: str) -> str:
    """Rename the links of a robot, wherever they are named, by a prefix such as "left/"; not its joints."""
    if not prefix:
        return text
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_/]*", prefix):
        raise DescriptionError(
            "frame_prefix", f"{prefix!r} is not a valid frame prefix", "use letters, digits, _ and /, as in left/"
        )
    root = read_xml(text, "robot description")
    links = [(link, link.get("name", "")) for link in root.findall("link")]
    names = {name for _, name in links}
    for element in root.iter():
        for attribute in _REFERENCES:
            if element.get(attribute) in names:
                element.set(attribute, prefix + element.get(attribute, ""))
    for link, name in links:
        link.set("name", prefix + name)
    return ET.tostring(root, encoding="unicode")
