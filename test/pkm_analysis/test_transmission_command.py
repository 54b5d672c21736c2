# SPDX-License-Identifier: Apache-2.0
"""`pkm transmission`: what it prints, and the files it writes, read again."""

from __future__ import annotations

import ast
import csv
import ctypes
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
import pytest

from pkm_analysis.transmission_range import main, over_range
from pkm_description.load import load_model
from pkm_dynamics.transmission.transmission import Transmission
from pkm_kinematics import check

BIPED = str(Path(__file__).parents[1] / "pkm_description" / "biped.xml")
ANKLE = ["--joints", "left_ankle_pitch,left_ankle_roll"]
BODY = '<inertial pos="0 0 0.1" mass="1" diaginertia="0.01 0.01 0.01"/>'
FOUR_BAR = f"""<mujoco model={{robot}}><worldbody>
<body name="crank"><joint name={{motor}} axis="0 1 0" range="-60 60"/>{BODY}
  <body name="coupler" pos="0 0 0.2"><joint name="elbow" axis="0 1 0"/>{BODY}</body></body>
<body name="rocker" pos="0.3 0 0"><joint name="rocker" axis="0 1 0"/>{BODY}</body></worldbody>
<equality><connect body1="coupler" body2="rocker" anchor="0.35 0 0"/></equality>
<actuator><motor joint={{motor}}/></actuator></mujoco>"""


def four_bar(folder: Path, robot: str = "four_bar", motor: str = "motor") -> str:
    """A file with a crank of 0.2 m that drives a rocker; names of one's own."""
    file = folder / "four_bar.xml"
    file.write_text(FOUR_BAR.format(robot=quoteattr(robot), motor=quoteattr(motor)), encoding="utf-8")
    return str(file)


def test_lists_linkages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([BIPED, "--list"]) == 0
    said = capsys.readouterr().out
    assert "on left_shank: 2 loops, joints left_ankle_pitch, left_ankle_roll" in said


def test_a_name_with_a_comma_is_quoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(four_bar(tmp_path))
    file.write_text(file.read_text().replace('<joint name="rocker"', '<joint name="rocker, left"'))
    assert main([str(file), "--joints", '"rocker, left"', "--range", "rocker, left=-20deg:20deg"]) == 0
    assert "rocker, left" in capsys.readouterr().out


def test_a_refused_output_keeps_no_other_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configuration = tmp_path / "rocker.py"
    asked = [four_bar(tmp_path), "--joints", "rocker", "--range", "rocker=-20deg:20deg"]
    assert main([*asked, "--csv", str(tmp_path / "none" / "rocker.csv"), "--mjlab", str(configuration)]) != 0
    assert "none" in capsys.readouterr().err
    assert configuration.exists()


def test_tells_ranges_and_folds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([BIPED, "--joints", "left_knee", "--range", "left_knee=-140:30deg"]) == 0
    said = capsys.readouterr().out
    assert "no solution was found in" in said
    assert "the linkage folds, at left_knee -46.6 deg" in said
    assert main([BIPED, *ANKLE]) == 0
    said = capsys.readouterr().out
    assert "it folds nowhere" in said
    row = next(line for line in said.splitlines() if line.startswith("effort of left_ankle_pitch alone"))
    assert row.partition("]")[2].split()[0] == "70"  # at home both motors push with 35 N m, one to one


def test_the_worst_is_searched_for_between_positions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    t = Transmission(load_model(four_bar(tmp_path)), ["rocker"], ["motor"])
    few, many = (over_range(t, {"rocker": (-1.5, 0.6)}, nodes) for nodes in (7, 2001))  # it folds at -1.34 rad
    for dense, coarse in zip(many.quantities(), few.quantities(), strict=True):
        found, best = few.extremes[dense.name], np.argmax(dense.badness)
        assert found.at_fold
        assert found.q == pytest.approx(many.q[best], abs=2e-3)
        assert found.badness > 0.9 * dense.badness.max() - 0.01  # beside a fold, numbers grow without bound
        assert coarse.badness.max() < 0.9 * dense.badness.max() - 0.01
    assert main([BIPED, "--joints", "left_knee", "--range", "left_knee=-140:30deg"]) == 0
    assert "where solutions end" in capsys.readouterr().out


def test_motors_have_the_limits_that_are_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [four_bar(tmp_path), "--joints", "rocker", "--range", "rocker=-10:10deg"]
    assert main(asked) == 0
    assert "effort of rocker alone" not in capsys.readouterr().out
    assert main([*asked, "--motor", "*=50", "motor=20:8:15"]) == 0
    said = capsys.readouterr().out
    t = Transmission(load_model(asked[0]), ["rocker"], ["motor"])
    ratio = abs(float(t.jacobian(t.home)[0, 0]))
    at_home = {
        line.rpartition(" [")[0]: line.rpartition("]")[2].split()[0] for line in said.splitlines() if " [" in line
    }
    assert float(at_home["effort of rocker alone"]) == pytest.approx(15 * ratio, rel=1e-3)  # at rest its line's
    assert float(at_home["speed of rocker alone"]) == pytest.approx(8 / ratio, rel=1e-3)


def test_a_range_without_a_unit_is_in_radians(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for ends in ("-0.5:0.5", "-0.5rad:0.5rad"):
        assert main([BIPED, "--joints", "left_knee", "--range", f"left_knee={ends}"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]


def test_a_crank_in_millimetres_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(four_bar(tmp_path))
    assert main([str(file)]) == 0
    assert capsys.readouterr().err == ""
    text = file.read_text()
    for old, new in (("0 0 0.2", "0 0 200"), ("0.3 0 0", "300 0 0"), ("0.35 0 0", "350 0 0")):
        text = text.replace(f'"{old}"', f'"{new}"')
    file.write_text(text)
    assert main([str(file)]) == 0
    assert "350 m, more than 50 m, in a robot of 3 kg: the unit looks like mm" in capsys.readouterr().err


def test_configurations_are_python_with_the_numbers(tmp_path: Path) -> None:
    files = tmp_path / "mjlab.py", tmp_path / "isaac.py"
    assert (
        main(
            [
                BIPED,
                *ANKLE,
                "--mjlab",
                str(files[0]),
                "--isaaclab",
                str(files[1]),
                "--kp-motor",
                "80",
                "--kd-motor",
                "2",
            ]
        )
        == 0
    )
    for file, kind, names in zip(
        files,
        ("BuiltinPositionActuatorCfg", "ImplicitActuatorCfg"),
        ("target_names_expr", "joint_names_expr"),
        strict=True,
    ):
        calls = [one for one in ast.walk(ast.parse(file.read_text())) if isinstance(one, ast.Call)]
        assert [call.func.id for call in calls] == [kind, kind]  # type: ignore[attr-defined]
        given = [{k.arg: ast.literal_eval(k.value) for k in call.keywords} for call in calls]
        assert [one[names] for one in given] == [("left_ankle_pitch",), ("left_ankle_roll",)]
        # 2 * 80 * 1^2 about pitch and 2 * 80 * 0.8^2 about roll at home; means over the range are near
        assert [one["stiffness"] for one in given] == pytest.approx([160.0, 102.4], rel=0.1)
        assert [one["armature"] for one in given] == pytest.approx([0.0205, 0.0131], rel=0.1)
    assert all(
        "#" in line
        for line in files[0].read_text().splitlines()
        if "=" in line and "names" not in line and "ACT" not in line
    )


def test_a_configuration_says_the_worst_inertia_of_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside a fold it is between the positions that are looked at first."""
    file = tmp_path / "mjlab.py"
    ankle = Path(__file__).parents[1] / "pkm_dynamics" / "transmission" / "ankle_two_rods.xml"
    command = [str(ankle), "--joints", "pitch,roll", "--actuators", "right_motor,left_motor"]
    assert main([*command, "--range", "pitch=-1.3:1.3", "roll=-0.9:0.9", "--mjlab", str(file)]) == 0
    worst = re.findall(r"with the linkage's, at \w+ \[kg m\^2\] +\S+ +\S+ +(\S+)", capsys.readouterr().out)
    told = re.findall(r"\S+ to (\S+) over the range", file.read_text())
    assert len(worst) == 2
    assert [float(one) for one in told] == pytest.approx([float(one) for one in worst], rel=6e-3)


def test_a_negative_margin_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    robot = four_bar(tmp_path)
    assert main([robot, "--joints", "rocker", "--actuators", "motor", "--range", "rocker=0:2.1rad"]) == 0
    *_, row, rotors, last = capsys.readouterr().out.splitlines()
    assert row.startswith("margin to a fold")
    assert len(row.split()) == 9  # a name of four words, at home, worst, where and its unit: a mean would say nothing
    assert "lacks the rotors of motor" in rotors
    assert "the motors lose the joints on the way: the margin passes through zero" in last


HOSTILE = [
    'm",__import__("os").system("touch harm")or"',
    '"""\nraise SystemExit(3)\n"""',
    "*/ int harm = 1; /*",
    "/*/",
    "a\nb",
    "ends in \\",
    "é ' # {x}",
    "left[0]",
    "left.*",
    'pitch, "roll"',
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_names_in_python_and_c_whatever_is_in_them(name: str, tmp_path: Path) -> None:
    files = [tmp_path / "mjlab.py", tmp_path / "isaac.py"]
    robot = four_bar(tmp_path, name, name)
    table = tmp_path / "table.csv"
    outputs = ["--mjlab", str(files[0]), "--isaaclab", str(files[1]), "--c", str(tmp_path), "--csv", str(table)]
    assert main([robot, "--actuators", "rocker", *outputs]) == 0
    for file in files:
        head, line, given = ast.parse(file.read_text(encoding="utf-8")).body
        assert isinstance(head, ast.Expr)
        assert name in ast.literal_eval(head.value)
        assert isinstance(line, ast.ImportFrom)
        assert isinstance(given, ast.Assign)
        (call,) = given.value.elts  # type: ignore[attr-defined]
        (expression,) = ast.literal_eval(call.keywords[0].value)
        assert [bool(re.fullmatch(expression, one)) for one in (name, f"{name}x")] == [True, False]
    with table.open(encoding="utf-8", newline="") as lines:
        assert next(csv.reader(lines))[0] == name
    (header,) = tmp_path.glob("*.h")
    code = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert code.split()[0] == "#ifndef"
    assert "harm =" not in code
    if shutil.which("gcc"):
        strict, library = (
            ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-shared", "-fPIC"],
            tmp_path / "c.so",
        )
        command = ["gcc", *strict, str(header.with_suffix(".c")), "-lm", "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found = ctypes.c_char_p.in_dll(ctypes.CDLL(str(library)), f"{header.stem}_joint_names").value
        assert found == name.encode()


def test_the_table_has_the_maps(tmp_path: Path) -> None:
    file = tmp_path / "ankle.csv"
    assert main([BIPED, *ANKLE, "--csv", str(file)]) == 0
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    t = Transmission(load_model(BIPED), ("left_ankle_pitch", "left_ankle_roll"))
    assert len(rows) == 41**2
    for row in rows[::100]:
        q = np.array([float(row[name]) for name in t.joints])
        np.testing.assert_allclose([float(row[name]) for name in t.actuators], t.to_actuators(q), atol=1e-9)
        assert float(row["d left_ankle_motor_a / d left_ankle_roll"]) == pytest.approx(t.jacobian(q)[0, 1], abs=1e-9)


def test_ros2_controls_differential_is_that_of_home(tmp_path: Path) -> None:
    file = tmp_path / "ankle.xml"
    assert main([BIPED, *ANKLE, "--ros-control", str(file)]) == 0
    root = ET.parse(file).getroot()
    assert root.findtext("plugin") == "transmission_interface/DifferentialTransmission"
    r = [float(one.findtext("mechanical_reduction", "")) for one in root.findall("actuator")]
    n = [float(one.findtext("mechanical_reduction", "")) for one in root.findall("joint")]
    # actuator 1 = r1 (n1 joint1 + n2 joint2), actuator 2 = r2 (n1 joint1 - n2 joint2), as its documentation says
    J = np.array([[r[0] * n[0], r[0] * n[1]], [r[1] * n[0], -r[1] * n[1]]])
    t = Transmission(load_model(BIPED), ("left_ankle_pitch", "left_ankle_roll"))
    np.testing.assert_allclose(J, t.jacobian(t.home), atol=1e-8)


def test_ros2_control_is_told_of_the_c_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Our plugin over the C, whatever the linkage is; a header of somebody else stays."""
    file, folder = tmp_path / "ankle.xml", tmp_path / "c"
    asked = [BIPED, *ANKLE, "--c", str(folder), "--ros2-control", str(file)]
    assert main(asked) == 0
    root = ET.parse(file).getroot()
    assert root.findtext("plugin") == "pkm_ros2_control/LinkageTransmission"
    t = Transmission(load_model(BIPED), ("left_ankle_pitch", "left_ankle_roll"))
    for kind, names in (("joint", t.joints), ("actuator", t.actuators)):
        assert [one.get("name") for one in root.findall(kind)] == list(names)
    header = folder / f"{root.findtext('param')}.h"
    assert f"int {header.stem}_to_actuators(" in header.read_text()
    assert main(asked) == 0  # over its own
    header.write_text("mine")
    capsys.readouterr()
    assert main(asked) == 2
    assert "it is there, and was not written by pkm transmission" in capsys.readouterr().err
    assert header.read_text() == "mine"


def test_pictures_of_one_and_two_joints(tmp_path: Path) -> None:
    for joints, name in (("left_knee", "knee.png"), (ANKLE[1], "ankle.svg")):
        assert main([BIPED, "--joints", joints, "--picture", str(tmp_path / name)]) == 0
        assert (tmp_path / name).stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--csv", "x.csv"], "the robot has 4 linkages, and this output is of one; name those of one: "),
        (["--joints", "left_knee", "--range", "left_knee=30:10deg"], "it is empty"),
        (["--joints", "left_knee", "--range", "left_knee=-30:20"], "-30 rad is more than a turn; write -30deg"),
        (["--joints", "left_knee", "--range", "knee=1:2"], "write JOINT=A:B with one of left_knee"),
        (["--joints", "left_knees"], "no such moving joint"),
        (
            ["--joints", "left_knee", "--kp-motor", "10", "--mjlab", "x.py"],
            "a stiffness of the motors without a damping",
        ),
        (["--joints", "left_knee", "--kd-motor", "10"], "a damping of the motors without a stiffness"),
        (["--kp-motor", "nan", "--kd-motor", "3"], "--kp-motor nan: no gain of a motor"),
        (["--kp-motor", "10", "--kd-motor", "-3"], "--kd-motor -3: no gain of a motor"),
        (["--picture", "p.gif"], "picture p.gif: its file extension is unknown"),
        (["--kp-motor", "inf", "--kd-motor", "0"], "--kp-motor inf: no gain of a motor"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([BIPED, *words]) == 2
    out, told = capsys.readouterr()
    assert said in told
    assert not out or "--csv" in words  # refused before the work
    assert sum(not line.endswith(" ...") for line in told.splitlines()) == 1  # beside progress on a busy computer


def test_rotors_that_the_file_does_not_know_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, text = tmp_path / "actuators.py", Path(BIPED).read_text()
    without = tmp_path / "biped.xml"
    without.write_text(text.replace('range="-1 1" armature="0.01"', 'range="-1 1"'))
    for robot, lacks in ((BIPED, False), (str(without), True)):
        assert main([robot, *ANKLE, "--mjlab", str(file)]) == 0
        said = "the rotors of left_ankle_motor_a, left_ankle_motor_b"
        assert (f"armature lacks {said}" in capsys.readouterr().out) is lacks
        assert (f"linkage, without {said}" in file.read_text()) is lacks


def test_a_changed_description_is_told_of_the_c(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, folder = four_bar(tmp_path), str(tmp_path / "c")
    assert main([file, "--joints", "rocker", "--range", "rocker=-20deg:20deg", "--c", folder]) == 0
    assert check.main([file, "--exported", folder]) == 0
    (source,) = Path(folder).glob("*.c")
    source.write_text((code := source.read_text()) + "\n")
    assert check.main([file, "--exported", folder]) == 1
    assert "was edited since the export" in capsys.readouterr().err
    source.write_text(code)
    Path(file).write_text(Path(file).read_text().replace("0.35 0 0", "0.36 0 0"))
    assert check.main([file, "--exported", folder]) == 1
    said = capsys.readouterr().err
    assert "another description, or other --xacro-args, than those of four_bar now; export it again:" in said
    assert f"pkm transmission {file} --c {folder}" in said
