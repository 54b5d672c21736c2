# SPDX-License-Identifier: Apache-2.0
"""The table of limb macros in docs/description.md: what it asks for is what they need, no more and no less."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from pkm_description import load_mechanism
from pkm_description.description_error import DescriptionError

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "description.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| `(\w+\.xacro)` \| (.*) \| (.*) \| (.*) \|$", PAGE, re.MULTILINE)
TEXTS = {"xyz": "0.1 0.2 0.3", "rpy": "0 0 0", "axis": "0 0 1", "across": "0 1 0", "along": "1 0 0"}
LISTS = {"leg_body", "leg_rod", "home_xyz", "home_rpy"}


def names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def value(name: str) -> str:
    """Something of the kind that a parameter is, by its name."""
    kind = name.rsplit("_", 1)[-1]
    if name in LISTS:
        return "${[0.3, 0.02, 0.4]}"
    if kind == "range" and name != "slide_range":
        return "${[-0.5, 0.5]}"
    if name in ("name", "base", "platform"):
        return name
    return TEXTS.get(kind, "0.3")


def expand(macro: str, file: str, given: list[str], properties: list[str], folder: Path) -> str:
    """The problem that the loader has with a file in which the macro is called; xacro's where it does not expand."""
    defined = "".join(f'<xacro:property name="{one}" value="{value(one)}"/>' for one in properties)
    call = " ".join(f'{one}="{value(one)}"' for one in given)
    text = f"""<robot name="one" xmlns:xacro="http://www.ros.org/wiki/xacro">
        <xacro:include filename="{ROOT}/pkm_description/limbs/{file}"/>{defined}<xacro:{macro} {call}/></robot>"""
    path = folder / "one.urdf.xacro"
    path.write_text(text)
    with pytest.raises(DescriptionError) as caught:  # there is no <pkm> in it
        load_mechanism(path)
    return str(caught.value)


def test_the_table_is_that_of_the_macros() -> None:
    spec = importlib.util.spec_from_file_location("make_limb_table", ROOT / "docs" / "make_limb_table.py")
    assert spec is not None
    assert spec.loader is not None
    make_limb_table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_limb_table)
    assert make_limb_table.page(PAGE) == PAGE, "run python docs/make_limb_table.py"
    assert len(ROWS) > 30


BY_DAY = {file: macro for macro, file, *_ in reversed(ROWS)}  # the first of each file


@pytest.mark.parametrize(
    "row",
    [row if BY_DAY[row[1]] == row[0] else pytest.param(row, marks=pytest.mark.slow) for row in ROWS],
    ids=lambda row: row[0],
)
def test_what_it_asks_for_is_enough_and_needed(row: tuple[str, ...], tmp_path: Path) -> None:
    macro, file, given, _, properties = row
    required = names(properties)
    assert "cannot expand" not in expand(macro, file, names(given), required, tmp_path)
    for left_out in required[:: max(1, len(required) // 2)]:
        rest = [one for one in required if one != left_out]
        assert left_out in expand(macro, file, names(given), rest, tmp_path)
