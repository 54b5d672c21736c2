# SPDX-License-Identifier: Apache-2.0
"""Motion files: what they say, and one error per way to get them wrong."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from pkm_control.control_errors import MotionFileError
from pkm_control.motion.files.motion_file import parse_motion, read_motion_file, task_chain_of
from pkm_control.motion.files.shipped import SHIPPED_MOTIONS
from pkm_description import load_mechanism

HOME = np.array([0.1, 0.2, -0.8, 0.0, 0.0, np.sin(0.25), np.cos(0.25)])


def test_units_and_columns_are_read() -> None:
    motion = parse_motion(
        "# frame: base\n"
        "# limit linear_acceleration: 5000 mm/s^2\n"
        "x [mm], y [m], z [mm], roll [deg], pitch [deg], yaw [rad], "
        "speed [mm/s], angular_speed [deg/s], blend [mm], dwell [ms], label\n"
        "1, 2, 3, 0, 0, 0, max, 90, 0, 0, start\n"
        "\n".strip()
        + "\n4, 5, 6, 10, -20, 0.5, 250, 180, 12, 0, middle\n"
        "7, 8, 9, 0, 0, 0, 250, max, 0, 40, end\n\n"
    )
    assert len(motion) == 3
    np.testing.assert_allclose(motion.poses[1, :3], [0.004, 5.0, 0.006])
    # URDF's roll, pitch, yaw: about the fixed x, then y, then z
    by_hand = Rotation.from_rotvec([0, 0, 0.5]) * Rotation.from_rotvec([0, np.radians(-20), 0])
    by_hand = by_hand * Rotation.from_rotvec([np.radians(10), 0, 0])
    assert (by_hand.inv() * Rotation.from_quat(motion.poses[1, 3:])).magnitude() < 1e-12
    assert list(motion.speeds) == [np.inf, 0.25, 0.25]
    np.testing.assert_allclose(motion.angular_speeds[:2], [np.pi / 2, np.pi])
    np.testing.assert_allclose(motion.blends, [0, 0.012, 0])
    np.testing.assert_allclose(motion.dwells, [0, 0, 0.04])
    assert (motion.limits.linear_acceleration, motion.limits.linear_jerk) == (5.0, np.inf)
    assert motion.labels == ("start", "middle", "end")
    assert motion.lines == (4, 5, 6)
    assert "line 5 (middle)" in motion.describe(1)


def test_without_attitude_the_platform_keeps_the_home_attitude() -> None:
    for frame in ("base", "home"):
        motion = parse_motion(f"# frame: {frame}\nx [m], y [m], z [m]\n0, 0, 0\n1, 0, 0\n", home=HOME).in_base(HOME)
        np.testing.assert_allclose(motion.poses[:, 3:], np.tile(HOME[3:], (2, 1)), atol=1e-15)


def test_relative_to_home_means_axes_of_home() -> None:
    motion = parse_motion("# frame: home\nx [m], y [m], z [m]\n0, 0, 0\n1, 0, 0\n").in_base(HOME)
    np.testing.assert_allclose(motion.poses[0, :3], HOME[:3])
    np.testing.assert_allclose(motion.poses[1, :3], HOME[:3] + np.array([np.cos(0.5), np.sin(0.5), 0.0]))


def test_task_coordinates_of_the_robot_are_columns() -> None:
    chain = task_chain_of(load_mechanism("delta"))
    text = "platform_x [mm], platform_y [mm], platform_z [m]\n10, 20, -0.8\n10, 30, -0.8\n"
    motion = parse_motion(text, task_chain=chain)
    np.testing.assert_allclose(motion.poses, [[0.01, 0.02, -0.8, 0, 0, 0, 1], [0.01, 0.03, -0.8, 0, 0, 0, 1]])


def test_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path) -> None:
    file = tmp_path / "motion.csv"
    file.write_bytes(b"\xef\xbb\xbfx [m],y [m],z [m]\r\n0,0,0\r\n1,0,0\r\n")
    assert len(read_motion_file(file)) == 2


def test_every_shipped_motion_reads() -> None:
    shipped = sorted(SHIPPED_MOTIONS.glob("*.csv"))
    assert "pick_and_place" in [file.stem for file in shipped]
    for file in shipped:
        assert len(read_motion_file(file.stem)) >= 2


def test_pick_and_place_is_the_25_305_25_cycle() -> None:
    motion = read_motion_file("pick_and_place")
    steps = np.abs(np.diff(motion.poses[:, :3], axis=0))
    expected = [[0, 0, 0.025], [0.305, 0, 0], [0, 0, 0.025], [0, 0, 0.025], [0.305, 0, 0], [0, 0, 0.025]]
    np.testing.assert_allclose(steps, expected, atol=1e-15)
    np.testing.assert_allclose(motion.poses[0], motion.poses[-1])


def test_a_robot_with_task_coordinates_of_its_own_is_told_their_names() -> None:
    chain = task_chain_of(load_mechanism("planar_3rrr"))
    with pytest.raises(MotionFileError, match="coordinates platform_x, platform_y, platform_yaw"):
        parse_motion("x [m], y [m]\n0,0\n1,0\n", source="plane.csv", task_chain=chain)


XYZ = "x [m], y [m], z [m]"
BAD = {
    # name: (text, line, column, part of the message)
    "empty file": ("", None, None, "has no header"),
    "only a header": (f"{XYZ}\n", None, None, "0 waypoint"),
    "one waypoint": (f"{XYZ}\n0,0,0\n", None, None, "1 waypoint"),
    "no header": ("0,0,0\n1,0,0\n", 1, None, "the header row is missing"),
    "another kind of file": ("# path: secret\nroot:x:0:0\n[ssh]\n", 2, None, "names no column of a motion"),
    "semicolons": ("x [m]; y [m]; z [m]\n0;0;0\n", 1, None, "semicolons"),
    "unknown column": (f"{XYZ}, colour\n0,0,0,1\n1,0,0,1\n", 1, "colour", "unknown column"),
    "column twice": (f"{XYZ}, x [m]\n0,0,0,1\n1,0,0,1\n", 1, "x", "twice"),
    "column without a name": (f"{XYZ},\n0,0,0,1\n1,0,0,1\n", 1, "4", "no name"),
    "missing column": ("x [m], y [m]\n0,0\n1,0\n", 1, "z", "missing"),
    "missing unit": ("x, y [m], z [m]\n0,0,0\n1,0,0\n", 1, "x", "no unit"),
    "wrong unit": ("x [cm], y [m], z [m]\n0,0,0\n1,0,0\n", 1, "x", "[cm]"),
    "part of a quaternion": (f"{XYZ}, qx, qy, qw\n0,0,0,0,0,1\n1,0,0,0,0,1\n", 1, "qz", "missing"),
    "two attitudes": (
        f"{XYZ}, qx, qy, qz, qw, roll [deg], pitch [deg], yaw [deg]\n0,0,0,0,0,0,1,0,0,0\n1,0,0,0,0,0,1,0,0,0\n",
        1,
        "roll",
        "second attitude",
    ),
    "unnormalised quaternion": (f"{XYZ}, qx, qy, qz, qw\n0,0,0,0,0,0,1\n1,0,0,0,0,1,1\n", 3, "qx", "length 1.414"),
    "zero quaternion": (f"{XYZ}, qx, qy, qz, qw\n0,0,0,0,0,0,0\n1,0,0,0,0,0,1\n", 2, "qx", "length 0"),
    "times and speeds": (f"{XYZ}, time [s], speed [m/s]\n0,0,0,0,1\n1,0,0,1,1\n", 1, "speed", "contradicts"),
    "hole in a cell": (f"{XYZ}\n0,0,0\n1,,0\n", 3, "y", "is empty"),
    "hole in the table": (f"{XYZ}\n0,0,0\n\n1,0,0\n", 3, None, "is empty between two waypoints"),
    "hole made of commas": (f"{XYZ}\n0,0,0\n,,\n1,0,0\n", 3, None, "is empty between two waypoints"),
    "NaN": (f"{XYZ}\n0,0,0\nnan,0,0\n", 3, "x", "nan"),
    "infinity": (f"{XYZ}\n0,0,0\n0,0,-inf\n", 3, "z", "-inf"),
    "no number": (f"{XYZ}\n0,0,0\n0,O,1\n", 3, "y", "'O' is not a number"),
    "too few cells": (f"{XYZ}\n0,0,0\n1,0\n", 3, None, "has 2 cells"),
    "too many cells": (f"{XYZ}\n0,0,0\n1,0,0,0\n", 3, None, "has 4 cells"),
    "decimal commas": (f"{XYZ}\n0,0,0\n1,5,0,0,0\n", 3, None, "has 5 cells"),
    "times that stand still": (f"{XYZ}, time [s]\n0,0,0,0\n1,0,0,0\n", 3, "time", "does not come after"),
    "times that run backwards": (f"{XYZ}, time [s]\n0,0,0,1\n1,0,0,2\n2,0,0,1.5\n", 4, "time", "does not come after"),
    "time within a dwell": (f"{XYZ}, time [s], dwell [s]\n0,0,0,0,2\n1,0,0,1,0\n", 3, "time", "does not come after"),
    "duplicated waypoint": (f"{XYZ}\n0,0,0\n1,0,0\n1,0,0\n", 4, None, "repeats the waypoint of line 3"),
    "zero speed": (f"{XYZ}, speed [m/s]\n0,0,0,1\n1,0,0,0\n", 3, "speed", "not greater than zero"),
    "negative blend": (f"{XYZ}, blend [mm]\n0,0,0,0\n1,0,0,-1\n", 3, "blend", "negative"),
    "negative dwell": (f"{XYZ}, dwell [s]\n0,0,0,0\n1,0,0,-1\n", 3, "dwell", "negative"),
    "blend and dwell": (f"{XYZ}, blend [m], dwell [s]\n0,0,0,0,0\n1,0,0,1,1\n2,0,0,0,0\n", 3, "blend", "dwells"),
    "half a turn": (f"{XYZ}, roll [deg], pitch [deg], yaw [deg]\n0,0,0,0,0,0\n0,0,0,0,0,180\n", 3, None, "ambiguous"),
    "unknown frame": (f"# frame: world\n{XYZ}\n0,0,0\n1,0,0\n", 1, None, "'world'"),
    "unknown path": (f"# path: curly\n{XYZ}\n0,0,0\n1,0,0\n", 1, None, "'curly'"),
    "smooth without times": (f"# path: smooth\n{XYZ}\n0,0,0\n1,0,0\n", 1, None, "needs a time"),
    "unknown limit": (f"# limit comfort: 3 m/s\n{XYZ}\n0,0,0\n1,0,0\n", 1, None, "'comfort'"),
    "limit with a wrong unit": (f"# limit linear_jerk: 3 m/s\n{XYZ}\n0,0,0\n1,0,0\n", 1, None, "unit 'm/s'"),
    "limit of zero": (f"# limit linear_jerk: 0 m/s^3\n{XYZ}\n0,0,0\n1,0,0\n", 1, None, "greater than zero"),
    "quotes that do not end": (f'{XYZ}, label\n0,0,0,"a\n1,0,0,b,"\n', 3, None, "has 5 cells"),
    "binary": (f"{XYZ}\n0,0,0\n1,0,\x000\n", 3, None, "NUL"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_names_line_and_column(name: str) -> None:
    text, line, column, message = BAD[name]
    with pytest.raises(MotionFileError) as caught:
        parse_motion(text, source="bad.csv", home=HOME)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert message in str(caught.value)
    assert "bad.csv" in str(caught.value)


def test_task_coordinates_cannot_be_mixed_or_left_out() -> None:
    chain = task_chain_of(load_mechanism("delta"))
    with pytest.raises(MotionFileError, match="mixed"):
        parse_motion("x [m], y [m], z [m], platform_x [m]\n0,0,0,0\n1,0,0,0\n", task_chain=chain)
    with pytest.raises(MotionFileError, match=r"platform_z.*missing"):
        parse_motion("platform_x [m], platform_y [m]\n0,0\n1,0\n", task_chain=chain)


def test_columns_of_a_pose_stay_such_where_the_coordinates_of_the_robot_are_called_x_and_y() -> None:
    chain = tuple(
        replace(joint, name=joint.name.removeprefix("platform_")) for joint in task_chain_of(load_mechanism("five_bar"))
    )
    assert [joint.name for joint in chain if joint.type.dof] == ["x", "y"]
    for name in ("circle", "tilts"):
        text = (SHIPPED_MOTIONS / f"{name}.csv").read_text()
        np.testing.assert_array_equal(parse_motion(text, task_chain=chain).poses, read_motion_file(name).poses)
    np.testing.assert_allclose(parse_motion("x [m], y [m]\n0, 0\n1, 2\n", task_chain=chain).poses[1, :2], (1.0, 2.0))
    with pytest.raises(MotionFileError, match=r"y.*missing"):
        parse_motion("x [m]\n0\n1\n", task_chain=chain)


def test_a_file_that_is_not_there_is_told_with_what_ships(tmp_path) -> None:
    with pytest.raises(MotionFileError, match="pick_and_place"):
        read_motion_file(tmp_path / "nothing.csv")
    (tmp_path / "latin.csv").write_bytes(b"x [m]\xe9")
    with pytest.raises(MotionFileError, match="UTF-8"):
        read_motion_file(tmp_path / "latin.csv")
    with pytest.raises(MotionFileError, match="cannot be read"):
        read_motion_file(tmp_path)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "x/" * 3000])
def test_a_name_that_no_file_can_have_is_one_error(name: str) -> None:
    with pytest.raises(MotionFileError, match="cannot be read") as caught:
        read_motion_file(name)
    assert len(str(caught.value)) < 8000


HEAD = "x [m], y [m], z [m]\n"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (HEAD + "0, 0, 0\n" + "1" * 131_073 + ", 0, 0\n", "characters"),  # beyond what Python's csv takes in a cell
        (HEAD + "0, 0, 0\n" + '"' + "1" * 200_000, "characters"),
        ("x" * 200_000 + " [m], y [m], z [m]\n0, 0, 0\n1, 0, 0\n", "characters"),
        (HEAD + "0, 0, 0\n" * 300_000, "waypoint"),
        ("#" * 60_000_000, "characters"),
    ],
)
def test_a_long_file_is_one_error(text: str, word: str) -> None:
    with pytest.raises(MotionFileError, match=word) as caught:
        parse_motion(text)
    assert len(str(caught.value)) < 4000


def test_a_file_of_many_bytes_is_not_read(tmp_path) -> None:
    file = tmp_path / "large.csv"
    with file.open("wb") as out:
        out.truncate(60_000_000)
    with pytest.raises(MotionFileError, match="bytes"):
        read_motion_file(file)


def test_a_number_beyond_any_machine_is_one_error() -> None:
    """Its square overflows."""
    with pytest.raises(MotionFileError, match=r"line 3.*x.*1e308") as caught:
        parse_motion("x [mm], y [mm], z [mm]\n0, 0, 0\n1e308, 0, 0\n")
    assert "1e+12 at most" in str(caught.value)


NUMBERS = ["0", "1", "-1", "1e308", "-1e308", "1e-308", "nan", "inf", "max", "", "x", '"', "0.5"]
CELL = st.sampled_from(NUMBERS) | st.text(max_size=4)
COLUMNS = (
    "x [m],y [m],z [m]",
    "x [m],y [m],z [m],time [s],dwell [s]",
    "x [m],y [m],z [m],qx,qy,qz,qw",
    "x [m],y [m],z [m],roll [deg],pitch [deg],yaw [deg],speed [m/s],blend [mm]",
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(max_size=300))
@example("# limit linear_jerk: 1e400 m/s^3")
def test_any_text_is_a_motion_or_one_error(text: str) -> None:
    with contextlib.suppress(MotionFileError):
        parse_motion(text)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from(COLUMNS), st.data())
def test_any_cells_are_a_motion_or_one_error(columns: str, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.lists(CELL, min_size=len(columns.split(",")), max_size=len(columns.split(",")))))
    with contextlib.suppress(MotionFileError):
        motion = parse_motion("\n".join([columns, *(",".join(row) for row in rows)]))
        assert np.isfinite(motion.poses).all()


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("x [m], y [m], z [m], roll [rad], pitch [rad], yaw [rad]", "0, 0, {z}, 0, 25, 0"),
        ("platform_x [m], platform_y [m], platform_z [m], platform_yaw [rad]", "0, 0, {z}, 30"),
    ],
)
def test_degrees_where_radians_are_said_are_refused(header: str, row: str) -> None:
    chain = task_chain_of(load_mechanism("quattro")) if "platform" in header else ()
    zeros = ", 0" * (header.count(",") - 2)
    with pytest.raises(MotionFileError, match=r"turns, all at once.*\[deg\]"):
        parse_motion(f"{header}\n0, 0, -0.7{zeros}\n{row.format(z=-0.7)}\n", task_chain=chain)


def test_turns_that_waypoints_lead_through_are_taken() -> None:
    rows = "\n".join(f"0, 0, {-0.7 - 0.001 * k}, 0, 0, {0.5 * k * np.pi:.9f}" for k in range(8))
    motion = parse_motion(f"x [m], y [m], z [m], roll [rad], pitch [rad], yaw [rad]\n{rows}\n")
    assert len(motion) == 8
