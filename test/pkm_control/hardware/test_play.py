# SPDX-License-Identifier: Apache-2.0
"""The whole chain without ROS, from a motion file to pulse widths at 50 Hz: the hexapod of hobby servos."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pkm_control.command_line.one_process import Interruption
from pkm_control.command_line.play import main, play
from pkm_control.hardware.devices.servo_board import SimulatedServoBoard
from pkm_control.hardware.machine_file import read_machine_file
from pkm_control.motion.path_events import PathEventError
from pkm_control.report.report import Report
from pkm_kinematics import Kinematics

from .conftest import EXAMPLES

SIGNS = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
ROBOT = str(EXAMPLES / "hobby_hexapod.urdf.xacro")
MOTION = str(EXAMPLES / "hobby_hexapod_greeting.csv")


def test_from_motion_file_to_pulses(hexapod: Kinematics, board: SimulatedServoBoard, hexapod_file: Path) -> None:
    """Period after period, not by the clock: a stall of the computer would leave out corners."""
    file = read_machine_file(hexapod_file)
    _, recording = play(hexapod.mechanism, file, MOTION, 1, False, Interruption(), realtime=False)
    assert not recording.faults
    pulses = np.array([row[:6] for _, row in board.history], dtype=np.float64)
    assert (pulses > 0).all()
    assert len(pulses) > 100  # periods of 20 ms: half a second at rest, 1.6 s of motion
    angles = (pulses - 1500.0) / (637.0 * SIGNS)
    poses = hexapod.forward(angles, near=np.tile(hexapod.home, (len(angles), 1))).pose
    offsets = poses[:, :3] - np.asarray(hexapod.home)[:3]
    assert offsets[:, 2].max() == pytest.approx(0.008, abs=3e-4)  # "up" of the motion file; a pulse is 1 us, 30 um
    assert offsets[:, 1].max() == pytest.approx(0.008, abs=1.5e-3)  # "to one side": a corner, which is rounded
    turn = np.degrees(2.0 * np.arctan2(poses[:, 5], poses[:, 6]))
    assert turn.max() == pytest.approx(15.0, abs=1.0)
    assert turn.min() == pytest.approx(-15.0, abs=1.0)
    assert np.abs(offsets[-1]).max() < 1e-4  # home again
    assert not any(board.pulses)  # let go in the end


def test_by_the_clock(board: SimulatedServoBoard, hexapod_file: Path, tmp_path: Path) -> None:
    words = [
        ROBOT,
        "--hardware-file",
        str(hexapod_file),
        "--motion",
        MOTION,
        "--cycles",
        "1",
        "--report",
        str(tmp_path / "report"),
    ]
    assert main(words) == 0
    times = np.array([time for time, _ in board.history])
    assert times[-1] - times[0] > 1.5
    assert np.median(np.diff(times)) == pytest.approx(0.02, rel=0.2)  # of most: others use this computer too
    assert not any(board.pulses)
    assert (tmp_path / "report").is_dir()


def test_without_the_device(hexapod_file: Path, tmp_path: Path) -> None:
    text = hexapod_file.read_text(encoding="utf-8").replace("port: ", "port: /dev/nowhere # ")
    hexapod_file.write_text(text, encoding="utf-8")
    words = [
        ROBOT,
        "--hardware-file",
        str(hexapod_file),
        "--motion",
        MOTION,
        "--cycles",
        "1",
        "--report",
        str(tmp_path),
    ]
    assert main([*words, "--dry"]) == 0


def test_trouble_on_the_way_is_told(
    board: SimulatedServoBoard, hexapod_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    class Dying(list):
        def append(self, row: object) -> None:
            super().append(row)
            board.silent = len(self) > 40

    board.history = Dying()
    words = [
        ROBOT,
        "--hardware-file",
        str(hexapod_file),
        "--motion",
        MOTION,
        "--cycles",
        "1",
        "--report",
        str(tmp_path),
    ]
    assert main(words) == 1
    assert "has not answered for 0.3 s" in capsys.readouterr().err


def test_outputs_on_the_way(
    hexapod: Kinematics, board: SimulatedServoBoard, hexapod_file: Path, tmp_path: Path
) -> None:
    motion = tmp_path / "grip.csv"
    motion.write_text(
        "# frame: home\nx [mm], y [mm], z [mm], dwell [s], output:gripper\n0,0,0,0.1,0\n0,0,5,0.2,1\n0,0,0,0.1,0\n"
    )
    file = read_machine_file(hexapod_file)
    with pytest.raises(PathEventError, match="the machine has no output 'gripper'; its file names none"):
        play(hexapod.mechanism, file, str(motion), 1, False, Interruption(), realtime=False)
    assert not board.history  # nothing has moved
    hexapod_file.write_text(
        hexapod_file.read_text() + "outputs: {gripper: {channel: 6, pulse_off: 1000, pulse_on: 2000}}"
    )
    file = read_machine_file(hexapod_file)
    robot, recording = play(hexapod.mechanism, file, str(motion), 2, False, Interruption(), realtime=False)
    assert robot.machine.outputs == {"gripper": 0.0}
    seen = [row[6] for _, row in board.history if row[6]]
    changes = [pulse for k, pulse in enumerate(seen) if k == 0 or pulse != seen[k - 1]]
    assert changes == [1000, 2000, 1000, 2000, 1000]
    assert len(recording.marks) == 6
    recording.save(tmp_path / "run.csv")
    header, *rows = (tmp_path / "run.csv").read_text().splitlines()
    column = header.split(",").index("output_gripper")
    assert {row.split(",")[column] for row in rows} == {"0", "1"}
    assert ("output gripper", f"set 6 times, last to 0 at {recording.marks[-1].time:.3f} s") in Report.of(
        recording
    ).lines()
