# SPDX-License-Identifier: Apache-2.0
"""Wrong units in a user's xacro file: the number as it is written there is named, with what it would be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pkm_description import DescriptionError, load_mechanism, robot_names
from pkm_description.gallery import LIMBS, ROBOTS
from pkm_description.urdf.unit_slips import Slip, blamed, numbers, suspects, taken_as_radians, turned
from pkm_description.urdf.urdf_plus import parse
from pkm_description.urdf.xml_text import read_xml
from pkm_kinematics.check import as_text, examine
from pkm_kinematics.verdicts import Verdict

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def written(folder: Path, name: str, *changes: tuple[str, str]) -> Path:
    """An example with other numbers in its source."""
    text = (EXAMPLES / f"{name}.urdf.xacro").read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / f"{name}.urdf.xacro"
    path.write_text(text)
    return path


def of_numbers(path: Path) -> list[Verdict]:
    return [verdict for verdict in examine(str(path), modes=False).verdicts if verdict.about.startswith("line ")]


def test_degrees_in_a_property_that_expressions_use(tmp_path: Path) -> None:
    """In the joints the angle is a sum with others, a number that is nowhere in the file."""
    (verdict,) = of_numbers(
        written(
            tmp_path,
            "hobby_hexapod",
            ('name="base_half_angle" default="${radians(20)}"', 'name="base_half_angle" default="20"'),
        )
    )
    assert verdict.about.endswith('<xacro:arg name="base_half_angle">, default')
    assert verdict.number == 20.0
    assert "looks like degrees" in verdict.meaning
    assert "20 degrees are 0.349066" in verdict.remedy
    assert "${radians(20)}" in verdict.remedy


@pytest.mark.slow
def test_both_ends_of_a_range(tmp_path: Path) -> None:
    found = of_numbers(
        written(
            tmp_path,
            "hobby_hexapod",
            ('"arm_lower" default="${-radians(60)}"', '"arm_lower" default="-60"'),
            ('"arm_upper" default="${radians(60)}"', '"arm_upper" default="50"'),
        )
    )
    assert sorted(verdict.number for verdict in found if verdict.number is not None) == [-60.0, 50.0]
    assert all("(and 5 more alike)" in verdict.meaning for verdict in found)


@pytest.mark.slow
def test_a_rod_in_millimetres_is_no_architecture_singularity(tmp_path: Path) -> None:
    path = written(tmp_path, "hobby_hexapod", ('name="rod_length" default="0.130"', 'name="rod_length" default="130"'))
    report = examine(str(path), modes=False)
    (verdict,) = [verdict for verdict in report.verdicts if verdict.about.startswith("line ")]
    assert '<xacro:arg name="rod_length">' in verdict.about
    assert "130 mm are 0.13" in verdict.remedy
    line = int(re.findall(r"line (\d+)", verdict.about)[0])
    assert 'name="rod_length"' in path.read_text().splitlines()[line - 1]
    assert report.verdicts[-1].remedy.startswith("first correct the units")
    assert as_text(report).index("130 mm are 0.13") < as_text(report).index("ERROR")
    with pytest.raises(DescriptionError, match=r"look like mm of a slide: .* first correct the units"):
        load_mechanism(path)


def test_lengths_all_in_millimetres(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "ankle",
        ("left=[-0.06, 0.04, 0.26], right=[-0.06, -0.04, 0.26]", "left=[-60, 40, 260], right=[-60, -40, 260]"),
        ("left=[-0.06, 0.04, 0.0], right=[-0.06, -0.04, 0.0]", "left=[-60, 40, 0], right=[-60, -40, 0]"),
    )
    found = of_numbers(path)
    assert {"260 mm are 0.26"} <= {verdict.remedy.partition(": ")[2] for verdict in found}
    assert all("_points" in verdict.about for verdict in found)


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        (('name="arm_length" default="0.020"', 'name="arm_length" default="20"'), "20 mm are 0.02"),
        pytest.param(
            ('"platform_half_angle" default="${radians(50)}"', '"platform_half_angle" default="50"'),
            "50 degrees are 0.872665",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["mm", "degrees"],
)
def test_numbers_that_leave_no_root(change: tuple[str, str], remedy: str, tmp_path: Path) -> None:
    """A horn of 20 m on a rod of 13 cm, or corners that an angle of 50 rad leads astray: there is no height of home."""
    extra = () if "mm" in remedy else (('name="rod_length" default="0.130"', 'name="rod_length" default="0.050"'),)
    report = examine(str(written(tmp_path, "hobby_hexapod", change, *extra)), modes=False)
    assert "which has no value" in report.verdicts[-1].meaning
    (verdict,) = [verdict for verdict in report.verdicts if verdict.level == "warning"]
    assert "consistent if this is in" in verdict.meaning
    assert remedy in verdict.remedy
    assert as_text(report).index(remedy) < as_text(report).index("ERROR")


def test_a_rod_that_is_too_short_is_no_matter_of_units(tmp_path: Path) -> None:
    path = written(tmp_path, "hobby_hexapod", ('name="rod_length" default="0.130"', 'name="rod_length" default="0.01"'))
    report = examine(str(path), modes=False)
    assert [verdict.level for verdict in report.verdicts] == ["error"]


def test_inertias_in_kg_mm2() -> None:
    plain = load_mechanism("five_bar").urdf
    body = re.search(r"<inertia [^>]*>", plain)
    assert body is not None
    wrong = re.sub(r'(i(?:xx|yy|zz))="([^"]+)"', lambda x: f'{x[1]}="{1e6 * float(x[2])}"', body[0])
    text = plain.replace(body[0], wrong, 1)
    (found,) = suspects(parse(text), read_xml(text, "text"))
    assert (found.slip, found.value) == (Slip.INERTIA, pytest.approx(190.0))


def test_one_length_among_metres_need_not_be_large(tmp_path: Path) -> None:
    """A pin 8 m away, in a robot whose other lengths are tenths: the median tells, not the size of a hall."""
    text = load_mechanism("five_bar").urdf.replace('xyz="0.3 0 0"', 'xyz="300 0 0"', 1)
    assert [one.value for one in suspects(parse(text), read_xml(text, "text"))] == [300.0]
    robot = load_mechanism(EXAMPLES / "hobby_hexapod.urdf.xacro").urdf
    for length, expected in ((0.2, 0), (4.0, 0), (20.0, 1)):
        text = re.sub(r'(link="limb1_rod">\s*<origin xyz=)"0.13 0 0"', rf'\1"{length} 0 0"', robot)
        assert text != robot
        assert len(suspects(parse(text), read_xml(text, "text"))) == expected


@pytest.mark.parametrize("name", robot_names())
def test_the_gallery_has_no_such_numbers(name: str) -> None:
    text = load_mechanism(name).urdf
    assert suspects(parse(text), read_xml(text, "text")) == []


def test_a_file_without_such_numbers_is_blamed_for_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, "hobby_hexapod", ('name="gear_ratio" default="180"', 'name="gear_ratio" default="181"'))
    assert examine(str(path), modes=False).verdicts[0].level == "ok"
    # asked all the same: nothing looks wrong, and the fewest numbers that are to be turned are those that need not be
    assert len(blamed(path, None, Slip.DEGREES)) <= 1


def test_numbers_of_a_source() -> None:
    text = (
        '<!-- a="9" -->\n<xacro:property name="a" value="${-12.5 + b2 * 3e1}"/>\n'
        "<origin xyz=\"1 -20 x30\" rpy='40 0 0'/>\n"
    )
    found = list(numbers(text))
    assert [(one.value, one.attribute, one.line) for one in found] == [
        (-12.5, "value", 2),
        (30.0, "value", 2),
        (1.0, "xyz", 3),
        (-20.0, "xyz", 3),
        (40.0, "rpy", 3),
        (0.0, "rpy", 3),
        (0.0, "rpy", 3),
    ]
    assert [text[one.start : one.end] for one in found][:2] == ["-12.5", "3e1"]
    assert turned(text, found[:2], 0.001).splitlines()[1] == '<xacro:property name="a" value="${-0.0125 + b2 * 0.03}"/>'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("robot", "old", "new", "number"),
    [
        ("hobby_hexapod", '"platform_half_angle" default="${radians(50)}"', '"platform_half_angle" default="50"', 50.0),
        ("hobby_hexapod", 'number="3" centre="${2 * pi / 3}" side="-1"', 'number="3" centre="120" side="-1"', 120.0),
        ("ankle_cranks", '"crank_heading" default="${pi}"', '"crank_heading" default="180"', 180.0),
    ],
)
def test_degrees_of_which_only_cosines_are_taken(tmp_path: Path, robot: str, old: str, new: str, number: float) -> None:
    """Nothing in the expansion is large: without a word the robot would be another one."""
    found = of_numbers(written(tmp_path, robot, (old, new)))
    assert [verdict.number for verdict in found] == [number]
    assert f"{number:g} degrees are" in found[0].remedy


def test_no_angle_of_the_gallery_looks_like_degrees() -> None:
    for path in [*ROBOTS.glob("*.xacro"), *LIMBS.glob("*.xacro"), *EXAMPLES.glob("*.xacro")]:
        assert taken_as_radians(path.read_text()) == [], path.name


def test_counts_and_lengths_are_no_angles() -> None:
    text = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
      <xacro:property name="number" value="8"/>
      <xacro:property name="step" value="${2 * pi / number}"/>
      <xacro:property name="reach" value="12"/> <xacro:property name="turn" value="${radians(30)}"/>
      <xacro:property name="x" value="${reach * cos(number * step + turn)}"/>
      <xacro:property name="y" value="${sin(reach / 12)}"/>
    </robot>"""
    assert taken_as_radians(text) == []
    assert [one.value for one in taken_as_radians(text.replace("${radians(30)}", "30"))] == [30.0]
