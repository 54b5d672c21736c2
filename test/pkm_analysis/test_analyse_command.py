# SPDX-License-Identifier: Apache-2.0
"""The command `pkm analyse`: tasks are found, answers come as pages, pictures and JSON, and what is wrong is said."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from pkm_analysis.command_line.analyse import TASKS, main
from pkm_analysis.domain import TaskCoordinates
from pkm_description import load_mechanism
from pkm_kinematics import Kinematics


def test_a_task_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["delta", "workspaec"])
    assert end.value.code == 2
    assert "no such task as 'workspaec'; did you mean 'workspace'?" in capsys.readouterr().err


def test_a_task_after_an_option_is_told_where_it_belongs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["delta", "--report", "x", "predict"])
    assert end.value.code == 2
    assert "a task comes right after the robot: pkm analyse delta predict" in capsys.readouterr().err


def test_a_robot_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["nonsense"], ["nonsense", "workspace"], ["map", "nonsense"]):
        assert main(words) == 2
        assert "no such robot" in capsys.readouterr().err


@pytest.mark.parametrize("word", TASKS)
def test_every_task_has_help(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["delta", word, "--help"])
    assert end.value.code == 0
    assert f"pkm analyse ROBOT {word}" in capsys.readouterr().out
    for action in TASKS[word].parser()._actions:
        assert action.help, action.dest


def test_a_workspace_as_json_picture_and_mesh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture, mesh = tmp_path / "delta.svg", tmp_path / "delta.stl"
    words = ["delta", "workspace", "--resolution", "16", "--range", "x=-300mm:0.3", "--range", "y=-0.3:0.3m"]
    words += ["--range", "z=-1:-0.8", "--require", "joint:limb1_arm < 80 deg", "--json"]
    assert main([*words, "--picture", str(picture), "--mesh", str(mesh)]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert numbers["unit"] == "m^3"
    assert 0.0 < numbers["size"] <= 0.072 + numbers["error"]
    assert numbers["requirements"] == ["joint:limb1_arm < 80 deg"]
    assert ET.parse(picture).getroot().tag.endswith("svg")
    assert mesh.stat().st_size > 1000


@pytest.mark.slow
def test_pages_hold_their_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["five_bar", "--report", str(tmp_path)]) == 0
    assert "five_bar_analysis.html" in capsys.readouterr().out
    page = (tmp_path / "five_bar_analysis.html").read_text()
    assert page.count("data:image/png;base64,") == 3
    assert "http" not in page.replace("http-equiv", "")
    assert "<li>actuated joints</li>" in page  # each line of what objects say of themselves is one there
    assert (
        main(["five_bar", "map", "--quantity", "joint:left_arm", "--resolution", "40", "--report", str(tmp_path)]) == 0
    )
    assert (tmp_path / "five_bar_joint_left_arm.html").exists()


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["five_bar", "workspace", "--range", "x=5:6"], "it is empty"),
        (["five_bar", "workspace", "--range", "x=5"], "write NAME=LOWER:UPPER"),
        (["five_bar", "workspace", "--range", "x=a:b"], "'a' is no number"),
        (["five_bar", "map", "--quantity", "tipe2"], "did you mean 'type2'"),
        (["five_bar", "map", "--quantity", "natural_frequency"], "give the stiffness"),
        (["gough_stewart", "map", "--vary", "x,y,z,yaw"], "more than three coordinates"),
        (["gough_stewart", "workspace", "--hold", "yaw=10"], "10 rad is more than a turn; write 10deg"),
        (["gough_stewart", "workspace", "--hold", "yaw=10rad"], "the description allows"),
        (["delta", "prove", "--box", "x=-200:200"], "write -200mm"),
        (["delta", "workspace", "--range", "z=-900:-800"], "write -900mm"),
        (["five_bar", "path", "--to", "x=0.1", "y=0.5", "--that", "margin > 5"], "margin > 5 does not hold, it is 0."),
        (["five_bar", "workspace", "--hold", "x"], "it cannot be read"),
        (["five_bar", "workspace", "--picture", "x.bmp", "--resolution", "40"], "its file extension is unknown"),
    ],
)
def test_questions_with_a_fault_are_told(words: list[str], answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert answer in capsys.readouterr().err


NONSENSE = [
    (["dleta"], "did you mean delta"),
    (["delta", "workspaec"], "did you mean 'workspace'?"),
    (["delta", "workspace", "--bogus"], "unrecognized arguments: --bogus"),
    (["delta", "map", "--quantity", "fource:z"], "did you mean 'force:z'?"),
    (["delta", "path", "--to", "x=0", "--that", "margni > 0.2"], "did you mean 'margin'?"),
    (["delta", "workspace", "--require", "speeed > 1 m/s"], "did you mean 'speed'?"),
    (["gough_stewart", "workspace", "--hold", "yav=10deg"], "did you mean 'yaw'?"),
    (["delta", "prove", "--box", "x=0:1mm", "--that", "insdie"], "did you mean 'inside'?"),
    (["delta", "workspace", "--kind", "totl"], "invalid choice"),
]


def test_nonsense_is_answered_before_solvers_are_imported() -> None:
    program = (
        "import json, sys\n"
        "from pkm_analysis.command_line.analyse import main\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    try:\n"
        "        status = main(words)\n"
        "    except SystemExit as end:\n"
        "        status = end.code\n"
        "    assert status in (1, 2), words\n"
        "    loaded = {'numba', 'scipy.linalg', 'pkm_kinematics'} & set(sys.modules)\n"
        "    assert not loaded, (words, loaded)\n"
        "    print('next', file=sys.stderr)\n"
    )
    words = json.dumps([words for words, _ in NONSENSE])
    done = subprocess.run([sys.executable, "-c", program, words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = done.stderr.split("next\n")
    for (asked, answer), said in zip(NONSENSE, answers, strict=False):
        assert answer in said, (asked, said)


def test_ranges_are_read_in_all_ways_in_which_they_are_written() -> None:
    coordinates = TaskCoordinates(Kinematics(load_mechanism("gough_stewart")))
    ends = (-math.radians(10.0), math.radians(10.0))
    for word in ("yaw=-10deg:10deg", "yaw=-10:10deg", "yaw = -10 deg : 10 deg", f"yaw={ends[0]!r}:{ends[1]!r}"):
        assert coordinates.read_range(word)[1] == pytest.approx(ends)
    assert coordinates.read_range("x=-300mm:0.3")[1] == pytest.approx((-0.3, 0.3))
    assert coordinates.read_range("z=100m:200m")[1] == (100.0, 200.0)


def test_regions_of_home_by_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["two_rpr", "regions", "--modes", "home", "--resolution", "12", "--report", str(tmp_path), "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["robot"] == "two_rpr"


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["workspace", "--tolerance", "0"], "0 m is not a tolerance; give a length above zero"),
        (["workspace", "--tolerance", "5"], "a tolerance of 5 m is as large as the robot"),
        (["workspace", "--resolution", "100000"], "1e+10 nodes; lower the resolution"),
        (["workspace", "--resolution", "0"], "0 nodes along a coordinate are not a grid"),
        (["map", "--resolution", "-3"], "-3 nodes along a coordinate are not a grid"),
        (["map", "--resolution", "1000000"], "1e+12 nodes; lower the resolution"),
        (["regions", "--resolution", "-3"], "-3 nodes along a coordinate are not a grid"),
        (["map", "--vary", "x,x"], "coordinate x: it is named twice"),
        (["map", "--quantity", "natural_frequency", "--stiffness", "-5"], "-5 is not valid; give one above zero"),
        (["map", "--quantity", "natural_frequency", "--stiffness", "nan"], "nan is not valid; give one above zero"),
        (["workspace", "--mesh", "border.foo"], "mesh border.foo: its file extension is unknown; use one of .stl"),
        (["map", "--picture", "map.foo"], "picture map.foo: its file extension is unknown; use one of .png"),
        (["workspace", "--mesh", "border.stl"], "the border is not a surface in 2 coordinates; vary three"),
    ],
)
def test_numbers_that_make_no_sense_are_refused_in_words(
    words: list[str], answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["five_bar", *words]) == 2
    assert answer in capsys.readouterr().err


def test_payloads_and_tolerances_take_units(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for words in (["--payload", "0.5"], ["--payload", "500g"]):
        assert main(["delta", "predict", "pick_and_place", *words, "--json"]) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1]
    assert said[0]["payload"] == 0.5
    for option, text, answer in (
        ("predict pick_and_place --payload", "5lb", "5lb has none of its units: kg, g"),
        ("predict pick_and_place --payload", "x", "invalid number value: 'x'"),
        ("predict pick_and_place --cycles-per-minute", "0", "0 is not a finite number greater than zero"),
        ("workspace --tolerance", "1deg", "1deg has none of its units: m, mm"),
        ("workspace --tolerance", "-1", "-1 is not a finite number, zero or greater"),
        ("workspace --tolerance", "nan", "invalid number value: 'nan'"),
    ):
        with pytest.raises(SystemExit) as refused:
            main(["delta", *option.split(), text])
        assert refused.value.code == 2
        assert answer in capsys.readouterr().err
    assert main(["five_bar", "workspace", "--tolerance", "2mm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tolerance"] == 0.002


def test_a_range_of_one_coordinate_leaves_the_others_free(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["five_bar", "workspace", "--range", "x=-0.1:0.1", "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert numbers["coordinates"] == ["x", "y"]
    assert (numbers["lower"][0], numbers["upper"][0]) == (pytest.approx(-0.1), pytest.approx(0.1))
    assert main(["delta", "workspace", "--range", "x=-0.1:0.1", "--hold", "z=-0.9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["coordinates"] == ["x", "y"]
    assert main(["gough_stewart", "workspace", "--range", "yaw=-10deg:10deg", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["coordinates"] == ["yaw"]
