# SPDX-License-Identifier: Apache-2.0
"""A file of measurements that grows by rows is one that calibration reads."""

from __future__ import annotations

import math
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from pkm_calibration.measured_robot import MeasuredRobot
from pkm_calibration.measurements import MeasurementError, append_measurement, parse_measurements, read_measurements
from pkm_description import load_mechanism
from pkm_kinematics.geometric_parameters import GeometricParameters
from pkm_runtime.errors import PkmError

READ = np.array([0.1, 0.2, 0.3])


def test_rows_of_other_columns_go_into_one_file(tmp_path: Path) -> None:
    file, delta = tmp_path / "m.csv", load_mechanism("delta")
    assert append_measurement(file, delta, READ, ["x", "y", "z"], [0.01, math.nan, -0.8]) == 1
    assert (
        append_measurement(file, delta, 2 * READ, ["distance", "point_x", "point_y", "point_z"], [0.9, 0.1, 0, 0]) == 2
    )
    assert append_measurement(file, delta, 3 * READ, ["z"], [-0.7]) == 3
    found = read_measurements(file, delta)
    assert found.drives == pytest.approx(np.outer([1, 2, 3], READ), abs=1e-12)
    assert found.position[0] == pytest.approx([0.01, math.nan, -0.8], nan_ok=True)
    assert found.distance == pytest.approx([math.nan, 0.9, math.nan], nan_ok=True)
    assert found.point.tolist() == [[0, 0, 0], [0.1, 0, 0], [0, 0, 0]]


def test_points_of_rows_without_them_are_the_origins() -> None:
    head = "limb1_arm,limb2_arm,limb3_arm,z,distance,from_x,from_y,from_z\n"
    found = parse_measurements(head + "0,0,0,-0.8,,,,\n0,0,0,,0.9,0.1,0,0\n", load_mechanism("delta"))
    assert found.origin.tolist() == [[0, 0, 0], [0.1, 0, 0]]
    with pytest.raises(MeasurementError, match="line 2: a cell of from_x, y, z is empty"):
        parse_measurements(head + "0,0,0,,0.9,0.1,,\n", load_mechanism("delta"))


def test_units_and_comments_of_a_file_stay(tmp_path: Path) -> None:
    file, delta = tmp_path / "m.csv", load_mechanism("delta")
    file.write_text("# sigma z [mm]: 0.02\nlimb1_arm [deg],limb2_arm,limb3_arm,z [mm]\n1,0.1,0.1,-800\n")
    append_measurement(file, delta, READ, ["z"], [-0.81])
    found = read_measurements(file, delta)
    assert found.position[:, 2] == pytest.approx([-0.8, -0.81])
    assert found.drives[:, 0] == pytest.approx([math.radians(1), 0.1])
    assert found.sigma["z"] == pytest.approx(2e-5)


def test_recorded_mm_and_degrees_are_asked_about(tmp_path: Path) -> None:
    file, delta = tmp_path / "m.csv", load_mechanism("delta")
    for names, values, said in (
        (["x", "y", "z"], [31.2, -8.1, -812.5], "x is 31.2 m; is it in mm"),
        (["yaw", "pitch", "roll"], [0.0, 45.0, 0.0], "pitch is 45 rad; is it in deg"),
    ):
        with pytest.raises(MeasurementError, match=said):
            append_measurement(file, delta, READ, names, values)
    assert not file.exists()
    assert append_measurement(file, delta, READ, ["x", "yaw", "pitch", "roll"], [-10.0, 3.0, 0.0, 0.0]) == 1


@pytest.mark.parametrize("mark", [";", "\t"])
def test_separators_and_the_places_of_comments_stay(mark: str, tmp_path: Path) -> None:
    file, delta = tmp_path / "m.csv", load_mechanism("delta")
    text = "# a plan\nlimb1_arm,limb2_arm,limb3_arm,x\n# first\n0.1,0.1,0.1,\n# second\n0.2,0.1,0.1,\n".replace(
        ",", mark
    )
    file.write_text(text)
    assert append_measurement(file, delta, READ, ["x"], [0.01]) == 3
    assert file.read_text() == text + mark.join(["0.1", "0.2", "0.3", "0.01"]) + "\n"
    assert append_measurement(file, delta, READ, ["z"], [-0.8]) == 4
    lines = file.read_text().splitlines()
    assert [lines[k] for k in (0, 2, 4)] == ["# a plan", "# first", "# second"]
    assert read_measurements(file, delta).position[3, 2] == -0.8


GAUGED = "limb1_arm,limb2_arm,limb3_arm,x,y,z,height\n0,0,0,0.1,0,-0.8,\n0.1,0,0,,,,-0.7\n"


def test_a_dial_gauge_has_its_own_deviation_beside_a_camera() -> None:
    delta = load_mechanism("delta")
    found = parse_measurements("# sigma x [mm]: 0.05\n# sigma height [um]: 2\n" + GAUGED, delta)
    assert found.position[:, 2] == pytest.approx([-0.8, -0.7])
    robot = MeasuredRobot(GeometricParameters(delta), found)
    assert robot.kinds.tolist() == ["x", "y", "z", "z"]
    assert robot.rows.tolist() == [0, 0, 0, 1]
    assert robot.sigma == pytest.approx([5e-5, 5e-5, 5e-5, 2e-6], abs=0)
    assert found.rows(np.array([1])).of_z == pytest.approx([2e-6])
    assert (
        parse_measurements("# sigma x [mm]: 0,02\nlimb1_arm;limb2_arm;limb3_arm;x\n0;0;0;0,1\n", delta).sigma["x"]
        == 2e-5
    )
    only = "limb1_arm,limb2_arm,limb3_arm,height\n0,0,0,-0.8\n"
    for name in ("height", "z"):
        alone = MeasuredRobot(
            GeometricParameters(delta), parse_measurements(f"# sigma {name} [mm]: 0.2\n{only}", delta)
        )
        assert alone.sigma == pytest.approx([2e-4], abs=0)


def test_z_and_height_of_one_row_count_by_their_weights() -> None:
    delta = load_mechanism("delta")
    both = GAUGED + "0,0.1,0,0,0,-0.80006,-0.8\n"
    found = parse_measurements("# sigma x [mm]: 0.03\n# sigma height [mm]: 0.01\n" + both, delta)
    assert found.position[2, 2] == pytest.approx(-0.8 - 6e-5 / 10)
    assert found.of_z is not None
    assert found.of_z[2] == pytest.approx(1e-5 * math.sqrt(0.9))
    with pytest.raises(MeasurementError, match="line 4: has z and height, whose weights are not known"):
        parse_measurements(both, delta)
    with pytest.raises(MeasurementError, match=r"line 6: z and height, which are the same, differ by 0.06 mm, far"):
        parse_measurements("# sigma x [mm]: 0.003\n# sigma height [mm]: 0.001\n" + both, delta)


@pytest.mark.parametrize(
    ("comments", "columns", "problem"),
    [
        ("# sigma x [mm] = 0.02", "x,y,z", "has no colon"),
        ("# Sigma x 0.02", "x,y,z", "has no colon"),
        ("# sigma x: 0.02", "x,distance,limb1_a_elbow", "gives the sigma of x, but not of limb1_a_elbow, distance"),
        ("# sigma height: 0.02", "x,y,height", "gives the sigma of height, but not of x, y"),
        ("# sigma qx: 0.02", "qx,qy,qz,qw", "qx has no deviation; give those of yaw, pitch and roll"),
        ("# sigma limb1_arm: 0.02", "x,y,z", "limb1_arm counts as exact"),
        ("# sigma point_x: 0.02", "x,y,z", "point_x counts as exact"),
    ],
)
def test_a_deviation_is_not_lost(comments: str, columns: str, problem: str) -> None:
    row = ",".join("0" if name != "qw" else "1" for name in columns.split(","))
    text = f"{comments}\nlimb1_arm,limb2_arm,limb3_arm,{columns}\n0,0,0,{row}\n"
    with pytest.raises(MeasurementError, match=problem):
        parse_measurements(text, load_mechanism("delta"))
    parse_measurements(text.replace(comments, "# the sigma of the camera is not known"), load_mechanism("delta"))


def test_degrees_that_are_called_radians_are_named() -> None:
    delta = load_mechanism("delta")
    head, rows = "limb1_arm [{0}],limb2_arm [{0}],limb3_arm [{0}],z\n", "40,-40,10,-0.8\n40,40,-30,-0.8\n"
    parameters = GeometricParameters(delta)
    with pytest.raises(PkmError, match=r"in deg all readings have one: write \[deg\] in the header"):
        MeasuredRobot(parameters, parse_measurements(head.format("rad") + rows, delta))
    MeasuredRobot(parameters, parse_measurements(head.format("deg") + rows, delta))
    nonsense = "900,10,-50,-0.8\n"
    with pytest.raises(PkmError, match="another robot, another zero, or another unit"):
        MeasuredRobot(parameters, parse_measurements(head.format("rad") + rows + nonsense, delta))


@pytest.mark.parametrize(
    ("names", "values", "reason"),
    [
        (["x"], [0.1, 0.2], "1 names and 2 values"),
        (["hight"], [0.1], "did you mean 'height'"),
        (["x", "x"], [0.1, 0.1], "x is given twice"),
        (["limb1_arm"], [0.1], "limb1_arm is given twice"),
        (["x"], [math.inf], "is no number"),
        ([], [], "only drive readings"),
        (["yaw"], [0.1], "without pitch, roll"),
        (["distance"], [-0.5], "a distance of -0.5 m is negative"),
    ],
)
def test_what_is_no_measurement_leaves_the_file_alone(
    tmp_path: Path, names: list[str], values: list[float], reason: str
) -> None:
    file, delta = tmp_path / "m.csv", load_mechanism("delta")
    append_measurement(file, delta, READ, ["z"], [-0.8])
    before = file.read_text()
    with pytest.raises(MeasurementError, match=reason):
        append_measurement(file, delta, READ, names, values)
    assert file.read_text() == before


def test_a_pipe_is_no_file_of_measurements(tmp_path: Path) -> None:
    pipe, said = tmp_path / "m.csv", list[str]()
    os.mkfifo(pipe)

    def append() -> None:
        try:
            append_measurement(pipe, load_mechanism("delta"), READ, ["z"], [-0.8])
        except MeasurementError as error:
            said.append(str(error))

    one = threading.Thread(target=append, daemon=True)  # which would wait for a writer
    one.start()
    one.join(20.0)
    assert said == [f"{pipe}: is no ordinary file; give the path of a CSV file"]
