# SPDX-License-Identifier: Apache-2.0
"""The whole chain without ROS, from a motion file to pulse widths at 50 Hz: the hexapod of hobby servos."""

from __future__ import annotations

import gc
import os
import re
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from pkm_bringup.command_line.one_process import Guardian, Interruption
from pkm_bringup.command_line.play import _REMEDIES, main, play
from pkm_control.motion.curve_check import CurveCheck
from pkm_control.motion.path_clock import Braking
from pkm_control.motion.path_events import PathEventError
from pkm_description import load_mechanism
from pkm_hardware.machine_file import read_machine_file
from pkm_kinematics import Kinematics
from pkm_viewer.report.report import Report

from .conftest import EXAMPLES
from .failing_devices import SimulatedDynamixels, SimulatedServoBoard

SIGNS = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
ROBOT = str(EXAMPLES / "hobby_hexapod.urdf.xacro")
MOTION = str(EXAMPLES / "hobby_hexapod_greeting.csv")


@pytest.fixture
def patient_file(hexapod_file: Path) -> Path:
    """The machine's file for motions that are played period after period: a stall of the computer is no fault."""
    text = hexapod_file.read_text("utf-8")
    for key, value in (("silence", "0.3"), ("watchdog", "0.5")):
        assert f"{key}: {value}" in text
        text = text.replace(f"{key}: {value}", f"{key}: 5.0")
    hexapod_file.write_text(text, "utf-8")
    return hexapod_file


def asked(file: Path, cycles: int, report: Path) -> list[str]:
    """The words of `pkm play` for the hexapod's motion."""
    options = f"--hardware-file {file} --motion {MOTION} --cycles {cycles} --report {report} --realtime-priority 0"
    return [ROBOT, *options.split()]


def what_was_sent(board: SimulatedServoBoard) -> np.ndarray:
    """The pulses of every line (n, channels) [us], when the board has read all that waits in its port: let go, last."""
    until = time.monotonic() + 10.0
    while (any(board.pulses) or not board.history) and time.monotonic() < until:
        time.sleep(0.005)
    assert not any(board.pulses)
    return np.array([row for _, row in board.history], dtype=np.float64)


def test_from_motion_file_to_pulses(hexapod: Kinematics, board: SimulatedServoBoard, patient_file: Path) -> None:
    """Period after period, not by the clock: a stall of the computer would leave out corners."""
    file = read_machine_file(patient_file)
    _, recording = play(hexapod.mechanism, file, MOTION, 1, False, Interruption(), priority=None)
    assert not recording.faults
    pulses = what_was_sent(board)[:, :6]
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


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without a page, which takes seconds to draw."""
    monkeypatch.setattr("pkm_viewer.report.report_files._draw", lambda *_: True)


def test_by_the_clock(
    board: SimulatedServoBoard, hexapod_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: list[tuple[int, int, int]] = []
    monkeypatch.setattr(
        os, "sched_setscheduler", lambda thread, policy, how: asked_for.append((thread, policy, how.sched_priority))
    )
    words = [*asked(hexapod_file, 1, tmp_path / "report"), "--realtime-priority", "33"]
    assert main(words) == 0
    here = threading.get_native_id()
    assert asked_for == [(here, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, 33), (here, os.SCHED_OTHER, 0)]
    what_was_sent(board)
    times = np.array([time for time, _ in board.history])
    assert times[-1] - times[0] > 1.5
    assert np.median(np.diff(times)) == pytest.approx(0.02, rel=0.2)  # of most: others use this computer too
    assert (tmp_path / "report").is_dir()


def dry(machine_file: Path, report: Path, motion: str = MOTION) -> int:
    words = [ROBOT, "--hardware-file", str(machine_file), "--motion", motion, "--cycles", "1", "--report", str(report)]
    return main([*words, "--dry"])


@pytest.mark.usefixtures("undrawn")
def test_without_the_device_it_says_which_pulses(
    hexapod: Kinematics, hexapod_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    text = hexapod_file.read_text(encoding="utf-8").replace("port: ", "port: /dev/nowhere # ")
    hexapod_file.write_text(text, encoding="utf-8")
    motion = tmp_path / "up.csv"
    motion.write_text("# frame: home\nx [mm], y [mm], z [mm]\n0,0,0\n0,0,8\n0,0,0\n")
    assert dry(hexapod_file, tmp_path / "report", str(motion)) == 0
    out = capsys.readouterr().out
    assert "the drives would go home and" in out
    assert "Hz of simulated time; not run in real time" in out  # nobody waits for it
    found = re.findall(r"limb(\d)_arm \(channel (\d)\) would be sent (\d+) to (\d+) us; at home 1500", out)
    assert [(limb, channel) for limb, channel, *_ in found] == [(str(i + 1), str(i)) for i in range(6)]
    top = np.array(hexapod.home)
    top[2] += 0.008
    lifted = 637.0 * np.abs(hexapod.inverse(top).actuated)
    for i, (_, _, low, high) in enumerate(found):  # negative angles lift a horn; every second servo turns the other way
        ends = (1500 - lifted[i], 1500) if i % 2 == 0 else (1500, 1500 + lifted[i])
        np.testing.assert_allclose((float(low), float(high)), ends, atol=2.0)


def test_without_the_device_the_whole_file_is_checked(
    hexapod_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    text = hexapod_file.read_text(encoding="utf-8")
    hexapod_file.write_text(text.replace("pulse_zero", "pulse_zer"), encoding="utf-8")
    assert dry(hexapod_file, tmp_path) == 2
    assert "did you mean 'pulse_zero'?" in capsys.readouterr().err
    hexapod_file.write_text(text, encoding="utf-8")
    motion = tmp_path / "grip.csv"
    motion.write_text("# frame: home\nx [mm], y [mm], z [mm], output:gripper\n0,0,0,0\n0,0,5,1\n0,0,0,0\n")
    assert dry(hexapod_file, tmp_path, str(motion)) == 1
    assert "the machine has no output 'gripper'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("pulse_min: 800", "pulse_min: 1300"),  # a servo that goes less far
        ("offset: 0.0", "lower: -0.3\n  upper: 0.3\n  offset: 0.0"),
    ],
)
def test_what_the_machine_does_not_reach_is_not_planned(
    hexapod_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture, old: str, new: str
) -> None:
    text = hexapod_file.read_text(encoding="utf-8")
    assert old in text
    hexapod_file.write_text(text.replace(old, new), encoding="utf-8")
    assert dry(hexapod_file, tmp_path) == 1
    assert re.search(r"limb\d_arm would be at -?0\.\d+ rad, its range is -0\.3", capsys.readouterr().err)


def test_what_helps_a_slow_computer_is_what_the_command_has() -> None:
    """It has neither a rate nor a page: these are the machine file's, and of other commands."""
    remedies = " ".join(_REMEDIES)
    assert "machine's file" in remedies
    assert "--" not in remedies


@pytest.mark.usefixtures("undrawn")
def test_trouble_on_the_way_is_told(
    board: SimulatedServoBoard, hexapod_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    class Dying(list):
        def append(self, row: object) -> None:
            super().append(row)
            board.silent = len(self) > 40

    board.history = Dying()
    words = asked(hexapod_file, 1, tmp_path)
    assert main(words) == 1
    assert "has not answered for 0.3 s" in capsys.readouterr().err


def test_outputs_on_the_way(
    hexapod: Kinematics, board: SimulatedServoBoard, patient_file: Path, tmp_path: Path
) -> None:
    motion = tmp_path / "grip.csv"
    motion.write_text(
        "# frame: home\nx [mm], y [mm], z [mm], dwell [s], output:gripper\n0,0,0,0.1,0\n0,0,5,0.2,1\n0,0,0,0.1,0\n"
    )
    file = read_machine_file(patient_file)
    with pytest.raises(PathEventError, match="the machine has no output 'gripper'; its file names none"):
        play(hexapod.mechanism, file, str(motion), 1, False, Interruption(), priority=None)
    assert not board.history  # nothing has moved
    patient_file.write_text(
        patient_file.read_text() + "outputs: {gripper: {channel: 6, pulse_off: 1000, pulse_on: 2000}}"
    )
    file = read_machine_file(patient_file)
    _, recording = play(hexapod.mechanism, file, str(motion), 2, False, Interruption(), priority=None)
    assert not recording.faults
    seen = [row[6] for row in what_was_sent(board) if row[6]]
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


def test_nothing_is_computed_for_long_while_drives_are_on(
    hexapod: Kinematics, board: SimulatedServoBoard, patient_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Motions are ready before the drives are enabled, which take a pause between two of them for silence."""
    gc.enable()  # a run that was refused in this process may have left it off
    while_on: list[bool] = []
    braking = CurveCheck.braking

    def watched(check: CurveCheck, *arguments: object) -> Braking:
        while_on.append(any(board.pulses))
        return braking(check, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(CurveCheck, "braking", watched)
    file = read_machine_file(patient_file)
    _, recording = play(hexapod.mechanism, file, MOTION, 1, False, Interruption(), priority=None)
    assert not recording.faults
    assert len(while_on) == 4  # a rehearsal, a rest, the way to the start, the motion
    assert not any(while_on)
    assert gc.isenabled()


def test_drives_that_stand_in_another_working_mode_stay_off(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by wrong offsets: it is known before the torque goes on, and said with the readings."""
    pytest.importorskip("dynamixel_sdk", reason="dynamixel-sdk is not installed")
    from pkm_hardware.drivers.dynamixel import DynamixelDriver

    enabled: list[object] = []
    monkeypatch.setattr(DynamixelDriver, "enable", lambda *given: enabled.append(given))
    kinematics = Kinematics(load_mechanism("five_bar"))
    home = kinematics.inverse(kinematics.home).by_name()
    file = tmp_path / "machine.yaml"
    with SimulatedDynamixels([1, 2]) as bus:
        rows = [
            f"  left_arm: {{id: 1, offset: {home['left_arm'] - 3.0}}}",
            f"  right_arm: {{id: 2, offset: {home['right_arm'] + 3.0}}}",
        ]
        head = f"machine: dynamixel\nport: {bus.port}\nbaud: 1000000\nrate: 100\nsilence: 2.0\nactuators:\n"
        file.write_text(head + "\n".join(rows))
        assert main(["five_bar", "--hardware-file", str(file), "--report", str(tmp_path / "report")]) == 1
    said = capsys.readouterr().err
    assert not enabled
    assert "The drives stay off: left_arm at -0.6863 rad (at home 2.314)" in said
    assert "is an `offset`" in said


def test_a_law_that_never_returns_is_interrupted_where_no_drive_is_real(
    hexapod_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def hang(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        until = time.monotonic() + 30.0
        while time.monotonic() < until:
            pass

    monkeypatch.setattr("pkm_bringup.command_line.play.hold", hang)
    began = time.monotonic()
    assert main([ROBOT, "--hardware-file", str(hexapod_file), "--motion", MOTION, "--dry"]) == 130
    assert time.monotonic() - began < 25.0
    assert "ended where it hung for 3 s" in capsys.readouterr().err


def test_who_asks_for_the_end_does_not_wait_long_for_a_call_that_hangs() -> None:
    """The contact with a board may take 20 s, so a driver that hung there was left alone for as long."""
    guardian, interruption = Guardian(lambda: ""), Interruption()
    interruption.when_asked = guardian.hurry
    interruption.motion_begins()
    try:
        guardian.promise()
        assert guardian._until - time.monotonic() > 15.0
        interruption.hear(signal.SIGINT, None)
        for promise in (lambda: None, guardian.promise):
            promise()
            assert 3.0 < guardian._until - time.monotonic() <= 5.0
    finally:
        guardian.end()
