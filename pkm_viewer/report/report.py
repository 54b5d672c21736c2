# SPDX-License-Identifier: Apache-2.0
"""The figures of a run, as numbers and as text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_kinematics import Kinematics
from pkm_runtime.describable import in_degrees
from pkm_runtime.fixed_rate import LoopStatistics
from pkm_viewer.report.recording import Mark, Recording, Run

_POSES = 240  # at which the margins are computed; each takes a fraction of a millisecond

_SLOW = 0.98  # of the rate that was wanted: below, the computer did not keep up
_AT_LIMITS = 0.2  # of the periods: a drive that is saturated in more is not what a plan within limits meets
_STOOD = 0.5  # s: a slow computer does not keep a loop waiting for so long
_LATE = 0.05  # of the deadlines: above, likewise
_WHOLE = 0.99  # of its periods: less is a recording with gaps
_EASY = 0.7  # of the rate that was reached: what the computer keeps
_RATES = (10, 20, 50, 100, 200, 250, 500, 800, 1000, 2000, 4000)  # Hz, of which one is proposed


@dataclass(frozen=True, eq=False)
class Margins:
    """Margins at `times` (k,) [s]; `type1` and `type2` (k,) as shares of those at home: 1 as at home, 0 singular.

    `stop` (k,): of the joint that is nearest to an end of its range, as a share of the half range: 1 in the middle, 0
    at the end, negative beyond; infinite where no joint has a range. `stop_joint`: its name where it is nearest, with
    `stop_distance` left [rad or m, `stop_unit`].
    """

    times: Array
    type1: Array
    type2: Array
    stop: Array
    stop_joint: str
    stop_distance: float
    stop_unit: str


def margins_along(kinematics: Kinematics, recording: Recording) -> Margins:
    """Margins at evenly spread times of the last cycles, passive joints included; NaN where a pose has no solution."""
    rows = recording.recent
    at = np.unique(np.linspace(0, len(rows) - 1, _POSES).round().astype(np.int64))
    poses = np.ascontiguousarray(rows.reference[at] if not recording.faults else rows.measured[at])
    if kinematics.redundant_names:  # where the drives had them
        found = kinematics.forward(rows.positions[at], near=poses)
        poses = np.hstack([poses, found.joints[:, kinematics.engine.redundant_column]])
    home = kinematics.singularity(np.asarray(kinematics.home))
    there = kinematics.singularity(poses, mode=0)
    joints = np.asarray(kinematics.inverse(poses, mode=0).joints, dtype=np.float64)
    engine = kinematics.engine
    lower, upper = engine.ranges.limits
    left = np.minimum(joints - lower, upper - joints)
    shares = engine.ranges.shares(joints)
    known = np.where(np.isnan(shares), np.inf, shares)
    row, column = np.unravel_index(int(np.argmin(known)), known.shape)
    return Margins(
        times=rows.times[at],
        type1=np.asarray(there.type1) / _or_nan(home.type1),
        type2=np.asarray(there.type2) / _or_nan(home.type2),
        stop=known.min(axis=1),
        stop_joint=engine.joint_names[column] if np.isfinite(known[row, column]) else "",
        stop_distance=float(left[row, column]),
        stop_unit="rad" if engine.joint_turning[column] else "m",
    )


def _or_nan(value: Array) -> float:
    number = float(value)
    return number if np.isfinite(number) and number > 0.0 else np.nan


@dataclass(frozen=True, eq=False)
class Use:
    """How much of a limit the actuators used: `peak` and `rms` of the magnitude, `limit`, (n_actuated,) each."""

    peak: Array
    rms: Array
    limit: Array  # of the side that was used more
    ends: Array  # (2, n_actuated), the limits of both sides
    units: tuple[str, ...]

    @staticmethod
    def of_efforts(extremes: Array, rms: Array, limits: ActuatorLimits) -> Use:
        """Of efforts whose least and most are `extremes` (2, n_actuated)."""
        sizes, bounds = np.abs(extremes), limits.effort_bound(extremes)
        shares = np.divide(sizes, bounds, out=np.zeros_like(sizes), where=sizes > 0.0)
        worse = shares.argmax(axis=0), np.arange(sizes.shape[1])
        ends = np.array([limits.least_effort, limits.most_effort])
        return Use(sizes[worse], rms, bounds[worse], ends, limits.effort_units)

    @staticmethod
    def of_speeds(peak: Array, rms: Array, limits: ActuatorLimits) -> Use:
        """Of speeds whose largest magnitudes are `peak` (n_actuated,)."""
        units = tuple(f"{unit}/s" for unit in limits.length_units)
        return Use(peak, rms, limits.velocity, np.array([-limits.velocity, limits.velocity]), units)

    def in_degrees(self) -> Use:
        """The same with degrees in place of radians, for people."""
        factors, units = zip(*map(in_degrees, self.units), strict=True)
        return Use(self.peak * factors, self.rms * factors, self.limit * factors, self.ends * factors, units)

    @property
    def peak_share(self) -> Array:
        """Peak as a share of the limit (n_actuated,); zero where there is no limit."""
        return self.peak / self.limit

    @property
    def rms_share(self) -> Array:
        """RMS as a share of the limit (n_actuated,); zero where there is no limit."""
        return self.rms / self.limit


@dataclass(frozen=True, eq=False)
class Report:
    """Figures of a run; errors in m and rad, efforts in N m or N, speeds in rad/s or m/s per actuator.

    `cycles_run` counts parts of a cycle, `cycles_done` whole ones; `cycles_per_minute` is of the clock where the run
    was in real time (`realtime`), which shows a slow computer, else of the motion, and 0 where not one cycle was done.
    `loop`: None where there was none in real time, or where its deadlines were not counted. `marks`: outputs set.
    """

    run: Run
    actuated_names: tuple[str, ...]
    cycles_done: int
    cycles_run: float
    cycles_per_minute: float
    duration: float
    position_rms: float
    position_max: float
    attitude_rms: float
    attitude_max: float
    effort: Use
    speed: Use
    saturated_periods: NDArray[np.int64]
    loop: LoopStatistics | None
    realtime: bool
    faults: tuple[str, ...]
    margins: Margins | None
    recorded: int  # control periods that were recorded
    passed: int  # that there were, by the clock of the readings
    marks: tuple[Mark, ...] = ()
    missed: int = 0  # deadlines, where the run was too short for `loop`

    @staticmethod
    def of(recording: Recording, kinematics: Kinematics | None = None) -> Report:
        """The figures of a recording, with margins where `kinematics` is given; ValueError where it is empty."""
        if not len(recording):
            raise ValueError("the recording is empty: no control period took place")
        tally, run, limits = recording.tally, recording.run, recording.limits
        moved = tally.last_time - tally.first_time
        took = tally.last_wake - tally.first_wake if recording.realtime and len(recording) > 1 else moved
        done = moved / run.cycle_duration if run.cycle_duration > 0.0 else 0.0
        whole = run.cycles if recording.completed else min(int(done + 0.01), run.cycles)
        position_rms, attitude_rms = tally.rms(tally.error_squares)
        position_max, attitude_max = tally.error_max
        return Report(
            run=run,
            actuated_names=limits.names,
            cycles_done=whole,
            cycles_run=float(run.cycles) if whole == run.cycles else min(done, float(run.cycles)),
            cycles_per_minute=60.0 * done / took if whole and took > 0.0 else 0.0,
            duration=took,
            position_rms=float(position_rms),
            position_max=float(position_max),
            attitude_rms=float(attitude_rms),
            attitude_max=float(attitude_max),
            effort=Use.of_efforts(tally.effort_ends, tally.rms(tally.effort_squares), limits),
            speed=Use.of_speeds(tally.velocity_max, tally.rms(tally.velocity_squares), limits),
            saturated_periods=tally.saturated,
            loop=_loop(recording),
            realtime=recording.realtime,
            faults=recording.faults,
            margins=margins_along(kinematics, recording) if kinematics is not None else None,
            marks=recording.marks,
            recorded=len(recording),
            passed=round(moved * run.rate) + 1,
            missed=recording.missed or 0,
        )

    @property
    def has_efforts(self) -> bool:
        """Whether efforts are known: drives that take positions report none."""
        return bool(self.effort.peak.any())

    @property
    def planned_per_minute(self) -> float:
        """Cycles per minute of the motion as planned; 0 where a cycle takes no time."""
        return 60.0 / self.run.cycle_duration if self.run.cycle_duration > 0.0 else 0.0

    @property
    def slow(self) -> bool:
        """Whether the computer did not keep the rate of the loop."""
        if self.loop is None:
            return False
        return self.loop.rate < _SLOW * self.run.rate or self.loop.missed > _LATE * self.loop.deadlines

    def count_line(self) -> str:
        """Number of cycles run; with the part of one where the run was cut short."""
        run = f"{self.cycles_done}" if self.cycles_done == self.run.cycles else f"{self.cycles_run:.1f}"
        return f"{run} of {self.run.cycles}"

    def rate_line(self) -> str:
        """Cycles per minute, by the clock in real time, beside those of the plan."""
        planned = f"{self.planned_per_minute:.1f} as planned ({self.run.cycle_duration:.4g} s each)"
        if not self.cycles_done:
            return f"not one cycle was done; {planned}"
        return planned if not self.realtime else f"{self.cycles_per_minute:.1f} by the clock; {planned}"

    def loop_line(self) -> str:
        """The loop's figures in one line."""
        if not self.realtime:
            return f"{self.run.rate:.0f} Hz of simulated time; not run in real time"
        if self.loop is None:
            missed = f"; deadlines missed before its end: {self.missed}" if self.missed else ""
            return f"wanted {self.run.rate:.0f} Hz; the run was too short for the loop to say how it ran{missed}"
        return (
            f"{self.loop.rate:.2f} Hz, wanted {self.run.rate:.0f} Hz; "
            f"{self.loop.missed} of {self.loop.deadlines} deadlines missed; deviation of the period "
            f"p50 {1e3 * self.loop.deviation_p50:.3f} ms, "
            f"p99 {1e3 * self.loop.deviation_p99:.3f} ms, max {1e3 * self.loop.deviation_max:.3f} ms"
        )

    def remarks(self) -> list[str]:
        """What a reader has to know to judge the figures, and what to do about it, in sentences."""
        return [remark for _, remark in self._remarks()]

    def _remarks(self) -> list[tuple[str, str]]:
        found = (("drives", self._of_drives()), ("computer", self._of_computer()))
        return [(subject, remark) for subject, remark in found if remark]

    def _of_drives(self) -> str:
        most = int(np.argmax(self.saturated_periods))
        share = self.saturated_periods[most] / max(self.recorded, 1)
        if share <= _AT_LIMITS:
            return ""
        limits = "at its limit of effort" if self.has_efforts else "held back by its limits"
        return (
            f"{self.actuated_names[most]} was {limits} in {share:.0%} of the periods: the motion or the payload "
            f"needs more than the drives give. The platform was up to {1e3 * self.position_max:.3g} mm and "
            f"{1e3 * self.attitude_max:.3g} mrad off."
        )

    def _of_computer(self) -> str:
        if self.loop is None:
            return ""
        ended = " That may be why the run ended early." if self.faults else ""
        if self.loop.deviation_max > _STOOD:
            still = f"The loop stood still for {self.loop.deviation_max:.1f} s"
            return f"{still}: something stopped it, or the computer.{ended}"
        if not self.slow:
            return ""
        easy = max([rate for rate in _RATES if rate <= _EASY * self.loop.rate], default=_RATES[0])
        pace = longer = ""  # where it caught up
        if self.loop.rate < _SLOW * self.run.rate:
            pace = f"ran at {self.loop.rate:.0f} Hz instead of {self.run.rate:.0f} Hz and "
            longer = ", and the motion of a simulated machine took longer"
        return (
            f"The computer was too slow for the loop, which {pace}missed {self.loop.missed} of {self.loop.deadlines} "
            f"deadlines.{ended} Commands came late: errors and efforts are larger than the controller's own{longer}. "
            f"What helps: {', '.join(self.run.remedies).replace('{rate}', str(easy))}."
        )

    def lines(self) -> list[tuple[str, str]]:
        """The figures as pairs of name and value, in reading order."""
        rows = [
            ("date", self.run.date),
            ("motion", self.run.motion),
            ("cycles", f"{self.count_line()} in {self.duration:.2f} s"),
            ("cycles per minute", self.rate_line()),
            ("position error", f"RMS {1e3 * self.position_rms:.4f} mm, max {1e3 * self.position_max:.4f} mm"),
            ("orientation error", f"RMS {1e3 * self.attitude_rms:.4f} mrad, max {1e3 * self.attitude_max:.4f} mrad"),
        ]
        used = (("effort", self.effort), ("speed", self.speed)) if self.has_efforts else (("speed", self.speed),)
        for what, use in ((what, use.in_degrees()) for what, use in used):
            for i, name in enumerate(self.actuated_names):
                text = f"peak {three_digits(use.peak[i])}, RMS {three_digits(use.rms[i])} {use.units[i]}"
                if np.isfinite(use.limit[i]):
                    text += f"; {use.peak_share[i]:.0%} and {use.rms_share[i]:.0%} of {use.limit[i]:.4g}"
                if self.saturated_periods[i] and what == used[0][0]:
                    held = "saturated" if self.has_efforts else "held back by its limits"
                    text += f"; {held} in {self.saturated_periods[i]} periods"
                rows.append((f"{what} of {name}", text))
        rows += self._margin_lines()
        for output in dict.fromkeys(mark.name for mark in self.marks):
            marks = [mark for mark in self.marks if mark.name == output]
            times = "once" if len(marks) == 1 else f"{len(marks)} times, last"
            rows.append((f"output {output}", f"set {times} to {marks[-1].value:g} at {marks[-1].time:.3f} s"))
        if self.recorded < _WHOLE * self.passed:
            text = f"{self.recorded} of {self.passed} periods were recorded; the figures are of these"
            rows.append(("recording", text))
        rows.append(("loop", self.loop_line()))
        rows += self._remarks()
        rows += [("note", note) for note in self.run.notes]
        rows += [("fault", fault) for fault in self.faults]
        return [(name, value) for name, value in rows if value]

    def _margin_lines(self) -> list[tuple[str, str]]:
        if self.margins is None:
            return []
        rows = []
        for name, values in (("type 1", self.margins.type1), ("type 2", self.margins.type2)):
            if np.isfinite(values).any():
                rows.append((f"margin to {name} singularities", f"lowest {np.nanmin(values):.0%} of home's"))
        if self.margins.stop_joint:
            factor, unit = in_degrees(self.margins.stop_unit)
            left = f"{factor * self.margins.stop_distance:.3g} {unit}"
            share = f"{float(np.min(self.margins.stop)):.0%} of its half range"
            text = f"{left} left to {self.margins.stop_joint}, {share}: the lowest share"
            rows.append(("margin to joint limits", text))
        return rows

    def __str__(self) -> str:
        rows = self.lines()
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:<{width}}  {value}" for name, value in rows]
        ruler = "-" * min(max(len(line) for line in lines), 100)
        return "\n".join([f"{self.run.robot}: what the run measured", ruler, *lines, ruler])


def three_digits(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:.0f}" if 1e3 <= value < 1e6 else f"{value:.3g}"


def _loop(recording: Recording) -> LoopStatistics | None:
    """The loop's figures; its p50 and p99 are of the periods that have a row."""
    tally, rate = recording.tally, recording.run.rate
    if not recording.realtime or recording.missed is None or tally.count < 2 or not tally.last_wake > tally.first_wake:
        return None
    periods = recording.rows.periods[1:]
    deviation = np.abs(periods - 1.0 / rate) if len(periods) else np.zeros(1)
    return LoopStatistics(
        wanted_rate=rate,
        rate=(tally.count - 1) / (tally.last_wake - tally.first_wake),
        deviation_p50=float(np.median(deviation)),
        deviation_p99=float(np.quantile(deviation, 0.99)),
        deviation_max=max(abs(tally.longest_period - 1.0 / rate), abs(tally.shortest_period - 1.0 / rate)),
        wakes=tally.count,
        missed=recording.missed,
    )
