# SPDX-License-Identifier: Apache-2.0
"""The report: figures of a made-up run whose answers are known."""

from dataclasses import replace

import numpy as np
import pytest

from pkm_control.report.recording import Recorder, Recording
from pkm_control.report.report import Report
from pkm_control.report.report_plot import plot


def made_up(n: int = 1001, realtime: bool = True) -> Recording:
    recorder = Recorder(n, 2)
    for k in range(n):
        t = k / 1000.0
        reference = np.array([np.sin(t), 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
        measured = reference + np.array([0.003, 0.004, 0.0, 0.0, 0.0, 0.0, 0.0])  # 5 mm off, always
        measured[3:] = [0.0, 0.0, np.sin(0.001), np.cos(0.001)]  # and turned by 2 mrad
        efforts = np.array([np.sin(2 * np.pi * t) * 10.0, -7.0])
        recorder.add(t, reference, measured, efforts, np.abs(efforts) > 9.9, 5.0 + t if realtime else np.nan)
    return recorder.recording("made_up", ("a", "b"), 1000.0, 2, 0.5, missed=3, faults=("the test said so",))


def test_figures() -> None:
    report = Report.of(made_up())
    assert report.cycles_per_minute == pytest.approx(120.0)
    assert report.cycles_done == 2
    assert report.position_rms == pytest.approx(0.005)
    assert report.position_max == pytest.approx(0.005)
    assert report.attitude_max == pytest.approx(0.002, rel=1e-6)
    np.testing.assert_allclose(report.effort_peak, [10.0, 7.0])
    np.testing.assert_allclose(report.effort_rms, [10.0 / np.sqrt(2.0), 7.0], rtol=1e-3)
    assert report.saturated_periods[0] > 0
    assert report.saturated_periods[1] == 0
    assert report.loop is not None
    assert report.loop.rate == pytest.approx(1000.0)


def test_text_says_what_was_measured() -> None:
    text = str(Report.of(made_up()))
    said = ("120.0", "5.0000 mm", "2.0000 mrad", "effort of a", "saturated", "1000.00 Hz", "3 of 1004", "test said")
    for words in said:
        assert words in text
    assert "not run in real time" in str(Report.of(made_up(realtime=False)))


def test_a_slow_computer_and_a_run_cut_short_show() -> None:
    whole = made_up()
    slow = replace(whole, wakes=whole.wakes[0] + 2.0 * (whole.wakes - whole.wakes[0]))
    assert Report.of(slow).cycles_per_minute == pytest.approx(60.0)
    cut = replace(whole, times=whole.times[:700], cycles=2)
    assert Report.of(cut).cycles_done == 1


def test_an_empty_recording_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        Report.of(made_up(0))


def test_a_full_recorder_stops_and_says_so() -> None:
    recorder = Recorder(1, 2)
    for _ in range(3):
        recorder.add(0.0, np.zeros(7), np.zeros(7), np.zeros(2), np.zeros(2, dtype=bool), 0.0)
    assert recorder.full
    assert len(recorder) == 1


@pytest.mark.parametrize("realtime", [True, False])
def test_picture_and_table_are_written(tmp_path, realtime: bool) -> None:
    recording = made_up(realtime=realtime)
    plot(recording, tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert (tmp_path / "run.png").stat().st_size > 20000
    recording.save(tmp_path / "run.csv")
    table = np.genfromtxt(tmp_path / "run.csv", delimiter=",", names=True)
    assert table.shape == (1001,)
    np.testing.assert_allclose(table["effort_b"], -7.0)
