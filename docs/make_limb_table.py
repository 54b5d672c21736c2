# SPDX-License-Identifier: Apache-2.0
"""Write the table of limb macros in docs/description.md from the macros: `python docs/make_limb_table.py`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "description.md"
BEGIN, END = "<!-- limb macros: written by docs/make_limb_table.py -->", "<!-- end of limb macros -->"
XACRO = "{http://www.ros.org/wiki/xacro}"


class Macro(NamedTuple):
    """A macro: what a call must give, what it may give, and the properties that must be there."""

    file: str
    name: str
    given: tuple[str, ...]
    optional: tuple[str, ...]
    taken: tuple[str, ...]  # from the caller's scope
    body: ElementTree.Element


def macros() -> dict[str, Macro]:
    """Every macro of the limbs, by name."""
    found = {}
    for file in sorted((ROOT / "pkm_description" / "limbs").glob("*.xacro")):
        for element in ElementTree.parse(file).getroot().iter(f"{XACRO}macro"):
            words = re.findall(r"(\*{0,2}\w+)(:=('[^']*'|\$\{[^}]*\}|\S+))?", element.get("params", ""))
            given = tuple(name for name, default, _ in words if not default)
            taken = tuple(name for name, _, default in words if default.startswith("^"))
            optional = tuple(name for name, default, _ in words if default and name not in taken)
            found[element.get("name", "")] = Macro(file.name, element.get("name", ""), given, optional, taken, element)
    return found


def needed(name: str, known: dict[str, Macro]) -> set[str]:
    """Properties that a file must define before it calls a macro, those of the macros within included."""
    macro = known[name]
    own = {*macro.given, *macro.optional}
    own |= {one.get("name", "") for one in macro.body.iter(f"{XACRO}property")}
    wanted = set(macro.taken)
    for call in macro.body.iter():
        inner = call.tag.removeprefix(XACRO)
        if call.tag.startswith(XACRO) and inner in known:
            wanted |= needed(inner, known) - set(call.attrib)
    return wanted - own


def table() -> str:
    """The table: one row for each macro that is a limb or a platform's branch."""
    known = macros()
    rows = ["| macro | file | in the call | may be in the call | properties before it |", "|---|---|---|---|---|"]
    for name, macro in known.items():
        if not re.search("_limb|platform_branch|^up_leg$|^travelling_plate$", name):
            continue
        cells = [macro.given, macro.optional, sorted(needed(name, known))]
        texts = [", ".join(f"`{one}`" for one in cell) or "none" for cell in cells]
        rows.append(f"| `{name}` | `{macro.file}` | {' | '.join(texts)} |")
    return "\n".join(rows)


def page(text: str) -> str:
    """The text of the page with the table as it should be."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
