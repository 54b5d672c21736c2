# SPDX-License-Identifier: Apache-2.0
"""A recording made while references and readings come: matched by stamps, cut to the run, bounded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pkm_viewer.report import recording
from pkm_viewer.report.recording import Run
from pkm_viewer.report.report import Report
from pkm_viewer.report.run_recorder import RunRecorder

RATE = 1000.0
EPOCH = 1_790_000_000_000_000_000  # ns: a time of today, which loses 200 ns as a float of seconds


def recording_of(kinematics, limits, duration: float) -> RunRecorder:
    return RunRecorder(kinematics, limits, Run("delta", "line", RATE, 1, duration))


@pytest.fixture
def recorder(kinematics, limits) -> RunRecorder:
    return recording_of(kinematics, limits, 0.04)


def feed(recorder: RunRecorder, kinematics, ticks: range, still: int = 3, offset: int = 0) -> None:
    """References on a line in x, and readings that are at them; the first `still` references are at rest."""
    home = np.array(kinematics.home)
    poses = np.tile(home, (len(ticks), 1))
    poses[:, 0] += 1e-6 * np.maximum(0, np.array(ticks) - still + 1)
    q = kinematics.inverse(poses).actuated
    for k, tick in enumerate(ticks):
        stamp = EPOCH + 1_000_000 * tick
        recorder.reference(stamp, poses[k], tick >= still)
        recorder.reading(stamp + offset, q[k], 0.1 * q[k], np.array([1.0, -200.0, 3.0]), 1e-3 * tick)


def test_rows_begin_before_the_first_motion_and_are_where_readings_say(recorder, kinematics) -> None:
    feed(recorder, kinematics, range(50))
    recorder.advance()
    rows = recorder.recording().rows
    np.testing.assert_allclose(rows.times, 1e-3 * np.arange(48), atol=1e-12)
    np.testing.assert_allclose(rows.reference[:, 0], 1e-6 * np.arange(48), atol=1e-15)
    np.testing.assert_allclose(rows.measured[:, :3], rows.reference[:, :3], atol=1e-9)
    np.testing.assert_allclose(rows.velocities, 0.1 * rows.positions)
    np.testing.assert_array_equal(rows.saturated[0], [False, True, False])
    np.testing.assert_allclose(rows.periods[1:], 1e-3)


def test_efforts_count_by_the_limit_of_their_side(kinematics, limits) -> None:
    weaker = np.array([-1000.0, -200.0, -1000.0]), np.array([1.0, 1000.0, 12.0])
    recorder = recording_of(kinematics, replace(limits, effort=np.full(3, 1000.0), effort_range=weaker), 0.04)
    feed(recorder, kinematics, range(50))
    made = recorder.recording()
    np.testing.assert_array_equal(made.rows.saturated[0], [True, True, False])
    use = Report.of(made).effort
    np.testing.assert_allclose(use.peak_share, [1.0, 1.0, 0.25])
    np.testing.assert_allclose(use.limit, [1.0, 200.0, 12.0])


def test_what_rests_after_the_end_is_left_out_but_not_what_moves_late(recorder, kinematics) -> None:
    feed(recorder, kinematics, range(30))
    home = np.array(kinematics.home)
    q = kinematics.inverse(home).actuated
    for tick in range(30, 90):
        stamp = EPOCH + 1_000_000 * tick
        recorder.reference(stamp, home, tick == 60)  # it rests from 30 on, and moves once more, after the planned end
        recorder.reading(stamp, q, 0.0 * q, q, 1e-3 * tick)
    made = recorder.recording()
    assert made.rows.times[-1] == pytest.approx(0.058)  # from the row before the third
    assert len(made) == 59


def test_only_stamps_that_both_have_make_a_row_and_the_first_reading_counts(recorder, kinematics) -> None:
    feed(recorder, kinematics, range(20), offset=1)
    assert not len(recorder.recording())
    feed(recorder, kinematics, range(20, 40))
    repeated = EPOCH + 1_000_000 * 30
    recorder.reading(repeated, np.zeros(3), np.zeros(3), np.zeros(3), 0.0)  # the machine waits, and repeats itself
    made = recorder.recording()
    assert len(made) == 20
    assert made.rows.efforts.any(axis=1).all()


def test_a_long_run_keeps_fewer_rows_not_more_memory(kinematics, limits, monkeypatch) -> None:
    monkeypatch.setattr(recording, "MOST", 400)
    monkeypatch.setattr(recording, "RECENT", 1100)
    recorder = recording_of(kinematics, limits, 10.0)
    for begin in range(0, 3000, 100):
        feed(recorder, kinematics, range(begin, begin + 100))
        recorder.advance()
    made = recorder.recording()
    assert made.every == 8
    assert len(made.rows) <= 400
    np.testing.assert_allclose(np.diff(made.rows.times), 8e-3, atol=1e-9)
    assert len(made) == 2998  # figures are over all of them
    np.testing.assert_allclose(made.tally.effort_ends, [[0.0, -200.0, 0.0], [1.0, 0.0, 3.0]])
    assert made.tally.saturated[1] == 2998
    np.testing.assert_allclose(np.diff(made.recent.times), 1e-3, atol=1e-9)
    assert made.recent.times[-1] == pytest.approx(2.997)
    assert len(made.recent) == 1100


def test_nothing_that_moves_makes_nothing(recorder, kinematics) -> None:
    feed(recorder, kinematics, range(50), still=100)
    assert not len(recorder.recording())
