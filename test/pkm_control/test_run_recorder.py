# SPDX-License-Identifier: Apache-2.0
"""A recording made while references and readings come: matched by stamps, cut to the run, bounded."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_control.report import run_recorder
from pkm_control.report.run_recorder import RunRecorder

RATE = 1000.0
EPOCH = 1_790_000_000_000_000_000  # ns: a time of today, which loses 200 ns as a float of seconds


@pytest.fixture
def recorder(kinematics, limits) -> RunRecorder:
    return RunRecorder(kinematics, limits, RATE)


def feed(recorder: RunRecorder, kinematics, ticks: range, still: int = 3, offset: int = 0) -> None:
    """References on a line in x, and readings that are at them; the first `still` references are at rest."""
    home = np.array(kinematics.home)
    poses = np.tile(home, (len(ticks), 1))
    poses[:, 0] += 1e-6 * np.maximum(0, np.array(ticks) - still + 1)
    q = kinematics.inverse(poses).actuated
    for k, tick in enumerate(ticks):
        stamp = EPOCH + 1_000_000 * tick
        recorder.reference(stamp, poses[k], tick >= still)
        recorder.reading(stamp + offset, q[k], np.array([1.0, -200.0, 3.0]), 1e-3 * tick)


def test_rows_begin_before_the_first_motion_and_are_where_readings_say(recorder, kinematics) -> None:
    feed(recorder, kinematics, range(50))
    recorder.advance()
    made = recorder.recording(1, 0.04)
    np.testing.assert_allclose(made.times, 1e-3 * np.arange(42), atol=1e-12)  # 0.04 s, and the rows at both ends
    np.testing.assert_allclose(made.reference[:, 0], 1e-6 * np.arange(42), atol=1e-15)
    np.testing.assert_allclose(made.measured[:, :3], made.reference[:, :3], atol=1e-9)
    np.testing.assert_array_equal(made.saturated[0], [False, True, False])
    assert made.every == 1


def test_only_stamps_that_both_have_make_a_row_and_the_first_reading_counts(recorder, kinematics) -> None:
    feed(recorder, kinematics, range(20), offset=1)
    assert not len(recorder.recording(1, 1.0).times)
    feed(recorder, kinematics, range(20, 40))
    repeated = EPOCH + 1_000_000 * 30
    recorder.reading(repeated, np.zeros(3), np.zeros(3), 0.0)  # the machine waits, and repeats itself
    made = recorder.recording(1, 1.0)
    assert len(made.times) == 20
    assert made.efforts.any(axis=1).all()


def test_a_long_run_keeps_fewer_rows_not_more_memory(recorder, kinematics, monkeypatch) -> None:
    monkeypatch.setattr(run_recorder, "_MOST", 400)
    recorder = RunRecorder(recorder._kinematics, recorder._limits, RATE)
    for begin in range(0, 3000, 100):
        feed(recorder, kinematics, range(begin, begin + 100))
        recorder.advance()
    made = recorder.recording(1, 10.0)
    assert made.every == 8
    assert len(made.times) <= 400
    np.testing.assert_allclose(np.diff(made.times), 8e-3, atol=1e-9)


def test_nothing_that_moves_makes_nothing(recorder, kinematics) -> None:
    feed(recorder, kinematics, range(50), still=100)
    assert not len(recorder.recording(1, 1.0).times)
