# SPDX-License-Identifier: Apache-2.0
"""The checker tells what a robot is, and what is wrong with a file that is none."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pkm_description.load import expand
from pkm_kinematics.check import as_text, examine, main
from pkm_runtime.describable import fixed, measure


def test_delta_in_words() -> None:
    report = examine("delta")
    text = as_text(report)
    assert report.usable
    assert report.mobility["motion"] == "3T"
    assert report.modes["working"] == 8
    assert report.modes["assembly"] == 2
    assert report.modes["assembly_method"] == "spheres"
    assert [limb["name"] for limb in report.limbs] == ["limb1", "limb2", "limb3"]
    assert all(len(limb["blocks"]) == 2 for limb in report.limbs)
    for expected in (
        "platform [platform]",
        "limb1_a_ball: spherical",
        "closed form in space, 2 branches",
        "delta: usable",
    ):
        assert expected in text


def test_a_tree_with_clusters_of_loops_is_usable_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    biped = str(Path(__file__).parents[1] / "pkm_description" / "biped.xml")
    assert main([biped]) == 0
    told = capsys.readouterr().out
    assert "usable, 1 warning" in told
    assert "use load_model and pkm transmission" in told
    assert "4 clusters of loops" in told
    assert told.count("actuators ") == 4
    assert main([biped, "--xacro-args", "platform:=left_foot"]) == 1


def test_of_a_tree_units_and_missing_masses_are_told() -> None:
    link = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    joint = (
        '<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/><origin xyz="{3}"/>'
        '<axis xyz="0 1 0"/></joint>'
    )
    chain = (("a", "base", "crank", "0 0 0"), ("b", "crank", "coupler", "0 0 200"), ("c", "base", "rocker", "400 0 0"))
    end = '<{0} link="{1}"><origin xyz="{2}"/></{0}>'
    ends = end.format("predecessor", "coupler", "400 0 100") + end.format("successor", "rocker", "0 0 300")
    report = examine(
        f'<robot name="r"><link name="base"/><link name="crank">{link}</link><link name="coupler"/>'
        f'<link name="rocker">{link}</link>{"".join(joint.format(*one) for one in chain)}'
        f'<loop name="pin" type="revolute">{ends}<axis xyz="0 1 0"/></loop></robot>'
    )
    assert report.usable
    assert any("mm" in one.meaning for one in report.verdicts)
    assert "no mass is stated: coupler" in report.remarks


def test_the_verdict_and_warnings_come_first_in_twenty_lines() -> None:
    for name, warnings in (("delta", 0), ("gough_stewart", 1), ("h4", 0)):
        report = examine(name, modes=name == "delta")
        lines = as_text(report, everything=False).splitlines()
        noun = "warning" if warnings == 1 else "warnings"
        assert lines[0] == f"{name}: usable, {warnings} {noun}"
        assert lines[1].startswith("  warning: ") == bool(warnings)
        assert len(lines) <= 20
        assert lines[-1].startswith("--all shows more")
        assert "Graph" not in "".join(lines)
    assert "limb1_arm, limb2_arm, limb3_arm, limb4_arm: revolute" in "\n".join(lines)


def test_nothing_is_less_than_zero_by_rounding() -> None:
    """Neither `-0.0000` for an angle of -1e-17, nor a margin of 5e-17: rounding is no number to a reader."""
    for name in ("delta", "hexa", "griffis_duffy"):
        report = examine(name, modes=False)
        assert min(abs(a["home"]) for a in report.actuators) < 1e-12 or name == "griffis_duffy"
        text = as_text(report)
        assert not re.findall(r"(?<![\w.])-0(?:\.0+)?(?![\d.])|\d+e-1[2-9]|\d+e\+1[2-9]", text), text
    assert (fixed(-1e-9, 4), fixed(-0.00016, 4), measure(-1e-17), measure(1e17)) == ("0.0000", "-0.0002", "0", "inf")


def test_articulated_platform_in_words() -> None:
    report = examine("quattro", modes=False)
    assert [limb["name"] for limb in report.limbs] == ["limb1", "limb2", "limb3", "limb4"]
    blocks = [block for part in (*report.limbs, report.articulated_platform) for block in part["blocks"]]
    assert sorted(c for block in blocks for c in block["closures"]) == ["revolute", *["spherical"] * 8]
    text = as_text(report)
    assert "Articulated platform\n  platform: 3 joints, driven: none, loops: plate_corner" in text


def test_remarks_name_what_is_unusual() -> None:
    redundant = examine("planar_redundant", modes=False)
    assert any("redundant actuator(s)" in remark for remark in redundant.remarks)
    assert redundant.modes == {}
    overconstrained = examine("irsbot2", modes=False)
    assert any(remark.startswith("overconstrained: 8") for remark in overconstrained.remarks)


def test_the_robot_of_ten_lines_is_one(tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "description.md"
    text = page.read_text(encoding="utf-8").partition("```xml\n")[2].partition("```")[0]
    assert len(text.splitlines()) == 10
    report = examine(text, modes=False)
    assert report.usable, as_text(report)
    assert report.mobility["platform"] == 2


def test_json_is_strict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["five_bar", "--json", "--no-modes"]) == 0
    out = capsys.readouterr().out
    assert "Infinity" not in out
    assert "NaN" not in out
    report = json.loads(out)
    assert report["usable"] is True
    assert [a["joint"] for a in report["actuators"]] == ["left_arm", "right_arm"]


def test_a_broken_file_gets_element_problem_remedy_and_on_request_its_graph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, _ = expand("five_bar")
    far = tmp_path / "far.urdf"
    assert 'xyz="0 0.45 0"' in text
    far.write_text(text.replace('xyz="0 0.45 0"', 'xyz="0 4.5 0"'))
    assert main([str(far)]) == 1
    out = capsys.readouterr().out
    assert "ERROR <pkm> <home>" in out
    assert "problem: " in out
    assert "remedy:  " in out
    assert "NOT usable" in out
    assert len(out.splitlines()) < 20
    assert main([str(far), "--all"]) == 1
    assert "(left_arm: revolute, driven) left_arm" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "element"),
    [("<robot", "file"), ("<robot name='r'/>", "<pkm>"), (None, "file")],
    ids=["no XML", "no pkm", "no file"],
)
def test_what_is_no_robot(tmp_path: Path, content: str | None, element: str) -> None:
    file = tmp_path / "robot.urdf"
    if content is not None:
        file.write_text(content)
    report = examine(str(file))
    assert not report.usable
    assert report.verdicts[-1].about.startswith(element)


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_a_file_that_is_not_there_is_one_line_without_a_verdict(
    options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nofile.urdf", *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("pkm check: file nofile.urdf: it does not exist")


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert "rad" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(["delta", "no_value"])
    assert stop.value.code == 2
    assert main(["no_such_robot"]) == 2
