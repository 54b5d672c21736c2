# SPDX-License-Identifier: Apache-2.0
"""The command `pkm analyse ROBOT predict`: a motion file in, loads and drives out, and what is wrong is said."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pkm_analysis.command_line.analyse import main
from pkm_analysis.prediction import Gear, Motor, read_gears, read_motors
from pkm_control.motion.files.default_motion import sampled_motion
from pkm_description import load_mechanism
from pkm_description.command_options import NO
from pkm_dynamics import Dynamics

HEAD = "name,continuous [N m],peak [mN m],speed [rpm],inertia [kg cm^2]\n"
MOTORS = HEAD + "# of a catalogue\nA,1,3000,100,1\nB,2,9000,6000,2\n"
GEARS = "name,ratio,efficiency [%]\n1:40,40,90\n"


@pytest.fixture(scope="module")
def five_bar() -> Dynamics:
    return Dynamics(load_mechanism("five_bar"))


def test_tables_are_read_in_their_units(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(MOTORS)
    (tmp_path / "g.csv").write_text(GEARS)
    motors = read_motors(tmp_path / "m.csv")
    assert motors[0] == Motor("A", 1.0, 3.0, 100.0 * (np.pi / 30.0), 1e-4, slides=False)
    assert read_gears(tmp_path / "g.csv") == [Gear("1:40", 40.0, 0.9, screw=False)]


def test_a_motion_is_judged_and_drives_are_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.csv").write_text(MOTORS)
    (tmp_path / "g.csv").write_text(GEARS)
    page, file = tmp_path / "page.html", tmp_path / "n.json"
    tables = ["--motors", str(tmp_path / "m.csv"), "--gears", str(tmp_path / "g.csv"), "--continuous", "1e-3"]
    words = ["delta", "predict", "circle", *tables, "--report", str(page), "--json", str(file)]
    assert main(words) == NO  # too hot is beyond what the drives can give for ever
    out = capsys.readouterr().out
    assert "times kept as given" in out
    assert "too hot" in out
    assert "within all limits of the description" in out  # the others are kept
    assert "A with 1:40: fails, speed of the motor exceeded by" in out
    assert "B with 1:40 fits all drives; 1 of 2 pairs do" in out
    assert "30 cycles per minute, with a rest of 0 s after each" in out
    shown = page.read_text()
    assert shown.count("data:image/png;base64,") == 2
    for head in ("drive", "peak effort [N m]", "limit of speed [deg/s]", "moment [N m]", "gear", "why"):
        assert f"<th>{head}</th>" in shown
    for cells in ("<tr><td>limb1_arm</td><td>", "<td>A</td><td>1:40</td><td>fails</td><td>speed of the motor exceeded"):
        assert cells in shown
    assert "circle, 2 s, within all limits" in shown
    numbers = json.loads(file.read_text())
    assert numbers["duration"] == pytest.approx(2.0)
    assert set(numbers["drives"]) == {"limb1_arm", "limb2_arm", "limb3_arm"}
    assert {one["fits"] for one in numbers["choices"]} == {True, False}
    assert numbers["common_choices"] == ["B with 1:40"]
    assert (numbers["motion"], numbers["cycles_per_minute"]) == ("circle", pytest.approx(30.0))


def test_a_motor_that_turns_needs_a_screw_where_the_drive_slides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.csv").write_text(f"{HEAD}A,1e3,1e6,1e6,1\n")
    (tmp_path / "l.csv").write_text("name,continuous [N],peak [N],speed [m/s],inertia [kg]\nL,1e6,1e6,1e6,0\n")
    (tmp_path / "g.csv").write_text(GEARS)
    (tmp_path / "s.csv").write_text("name,ratio [rad/m]\nscrew,628\n")

    def common(robot: str, motor: str, *gear: str) -> list[str]:
        gears = [word for one in gear for word in ("--gears", str(tmp_path / one))]
        assert main([robot, "predict", "auto", "--motors", str(tmp_path / motor), *gears, "--json"]) == 0
        numbers = json.loads(capsys.readouterr().out)
        said.update(one["reason"] for one in numbers["choices"])
        return list(numbers["common_choices"])

    said: set[str] = set()
    assert common("linear_delta", "m.csv", "s.csv") == ["A with screw"]
    assert common("linear_delta", "l.csv") == ["L with direct"]
    said.clear()
    assert common("linear_delta", "m.csv", "g.csv") == []
    assert common("five_bar", "l.csv") == common("five_bar", "m.csv", "s.csv") == []
    assert said == {
        "the motor turns, the drive slides: a gear needs its ratio in rad/m, 2 pi by the lead",
        "the motor slides, the drive turns",
        "a ratio in rad/m is of a motor that turns and a drive that slides",
    }


@pytest.mark.slow
def test_cycles_per_minute_leave_the_rest_to_rest(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["five_bar", "predict", "circle", "--payload", "1", "--continuous", "60", "--json"]
    duties = []
    for more in (["--cycles-per-minute", "15"], ["--rest", "2"]):
        main([*words, *more])
        numbers = json.loads(capsys.readouterr().out)
        assert numbers["cycles_per_minute"] == pytest.approx(15.0)
        assert numbers["payload"] == 1.0
        duties.append(numbers["thermal_duty"]["left_arm"])
    assert duties[0] == pytest.approx(duties[1])
    assert main([*words, "--cycles-per-minute", "31"]) == 2
    assert "one takes 2 s, which is 30 a minute" in capsys.readouterr().err


def test_times_of_the_file_are_kept_whatever_they_break(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], five_bar: Dynamics
) -> None:
    file = tmp_path / "rush.csv"
    rows = [(0.00, 0.0), (0.01, 4.0), (0.02, 8.0), (0.03, 4.0), (0.04, 0.0)]
    table = "".join(f"{t},{x},0,0\n" for t, x in rows)
    file.write_text(f"# frame: home\ntime [s],x [mm],y [mm],z [mm]\n{table}")
    motion = sampled_motion(five_bar, str(file))
    assert motion.times[-1] == pytest.approx(0.04)
    status = main(["five_bar", "predict", str(file), "--json"])
    numbers = json.loads(capsys.readouterr().out)
    assert status == (NO if numbers["exceeded"] else 0)
    drive = numbers["drives"]["left_arm"]
    assert drive["peak_speed"] > 0.1
    steps = np.diff(motion.poses[:, 0]) / np.diff(motion.times)
    between = 0.5 * (motion.twists[1:, 0] + motion.twists[:-1, 0])
    np.testing.assert_allclose(steps, between, atol=0.02 * np.abs(motion.twists[:, 0]).max())


@pytest.mark.slow
def test_a_payload_of_the_file_is_one_that_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ((0.0, 0), (0.5, 40), (1.0, 0))
    file, efforts = tmp_path / "way.csv", []
    for column, more in (("", ["--payload", "2"]), (",payload [kg]", []), (",payload [kg]", ["--payload", "9"])):
        table = "".join(f"{t},{x},0,0{',2' if column else ''}\n" for t, x in rows)
        file.write_text(f"# frame: home\ntime [s],x [mm],y [mm],z [mm]{column}\n{table}")
        assert main(["five_bar", "predict", str(file), "--json", *more]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["payload"] == 2.0
        efforts.append(found["drives"]["left_arm"]["peak_effort"])
    assert efforts[1:] == pytest.approx(efforts[:1] * 2, rel=1e-9)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["delta", "predict", "none.csv"], "cannot be read"),
        (["griffis_duffy", "predict", "auto"], "singular"),
        (["delta", "predict", "circle", "--motors", "none.csv"], "give a CSV file"),
        (["delta", "predict", "circle", "--motors", "M1"], "column torque: there is none of that name"),
        (["delta", "predict", "circle", "--motors", "M2"], "column peak: it has no unit"),
        (["delta", "predict", "circle", "--motors", "M3"], "has no column inertia"),
        (["delta", "predict", "circle", "--motors", "M4"], "line 2, column speed: 'x' is no number"),
        (["delta", "predict", "circle", "--motors", "M5"], "it has no entries"),
        (["delta", "predict", "circle", "--motors", "M6"], "some of motors that slide"),
        (["five_bar", "predict", "auto", "--continuous", "1", "2", "3"], "give 1 or 2"),
    ],
)
def test_what_is_wrong_is_said(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    head = MOTORS.splitlines()[0]
    Path("M1").write_text("name,torque [N m]\nA,1\n")
    Path("M2").write_text(f"{head.replace(' [mN m]', '')}\nA,1,1,1,1\n")
    Path("M3").write_text("name,continuous [N m],peak [N m],speed [rpm]\nA,1,1,1\n")
    Path("M4").write_text(f"{head}\nA,1,1,x,1\n")
    Path("M5").write_text(f"{head}\n")
    Path("M6").write_text(f"{head.replace('[rpm]', '[m/s]')}\nA,1,1,1,1\n")
    assert main(words) == 2
    assert said in capsys.readouterr().err
