# SPDX-License-Identifier: Apache-2.0
"""The main job in one process: from the motion file to the report."""

import time

import numpy as np
import pytest

from pkm_bringup.main_job import make_ready, plan_cycle, run_motion, simulated_loop
from pkm_control.control_errors import GoalError
from pkm_control.controllers.pd_gravity import PdGravity
from pkm_control.loop.control_loop import ControlLoop, hold, switch_on
from pkm_control.motion.files.motion_file import parse_motion, read_motion_file
from pkm_control.motion.planning import MotionPlanner
from pkm_description.mechanism import Inertial
from pkm_hardware.machine import Lifecycle
from pkm_hardware.simulated.drive_parts import Encoder
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_runtime.fixed_rate import FixedRateLoop
from pkm_viewer.report.report import Report


@pytest.fixture
def planner(kinematics, dynamics, limits) -> MotionPlanner:
    return MotionPlanner(dynamics, limits)


@pytest.fixture
def loop(mechanism, dynamics) -> ControlLoop:
    return simulated_loop(mechanism, 1000.0, dynamics)


def do(loop: ControlLoop, motion="pick_and_place", cycles: int = 1, **settings):
    job = plan_cycle(MotionPlanner(loop.dynamics, loop.limits), read_motion_file(motion))
    switch_on(loop)
    run_motion(loop, job.approach, recorded=False)
    return run_motion(loop, job.cycle, cycles, **settings)


def test_pick_and_place_is_followed(loop) -> None:
    recording = do(loop, cycles=2)
    report = Report.of(recording)
    assert recording.faults == ()
    assert report.cycles_done == 2
    assert report.cycles_per_minute > 100.0
    # model and machine are one, so what is left is that efforts are held for a period
    assert report.position_rms < 0.03e-3
    assert report.position_max < 0.1e-3
    assert not report.saturated_periods.any()
    # the platform went where the file says, by the machine's own account
    across = recording.rows.measured[:, 0] - loop.kinematics.home[0]
    np.testing.assert_allclose([across.min(), across.max()], [-0.1525, 0.1525], atol=1e-4)


def test_a_motion_through_a_singularity_is_refused_before_it_begins(of_gallery) -> None:
    """The platform of a planar 3-RRR turned by 137 degrees: its drives, which carry no weight, lost hold on the way."""
    robot = of_gallery["planar_3rrr"]
    loop = simulated_loop(robot.kinematics.mechanism, 1000.0, robot.dynamics)
    x, y, z = robot.kinematics.home[:3]
    rows = "".join(f"{x},{y},{z},0,0,{yaw}\n" for yaw in (0.0, 2.4))
    turn = parse_motion("x [m],y [m],z [m],roll [rad],pitch [rad],yaw [rad]\n" + rows, "turn.csv")
    cycle = plan_cycle(MotionPlanner(loop.dynamics, loop.limits), turn).cycle
    with pytest.raises(GoalError, match="type 2 singularity"):
        make_ready(loop, cycle)


@pytest.mark.slow
def test_what_the_model_does_not_know_shows_in_the_error(loop, mechanism, dynamics, limits) -> None:
    exact = Report.of(do(loop))
    heavy = SimulatedMachine(dynamics, limits, payload=Inertial(mass=1.0))
    loaded = Report.of(do(simulated_loop(mechanism, 1000.0, dynamics, machine=heavy)))
    assert loaded.position_rms > 5.0 * exact.position_rms
    assert loaded.position_max < 5e-3


def test_feedforward_beats_pd(loop, mechanism, kinematics, dynamics, limits) -> None:
    exact = Report.of(do(loop))
    pd = PdGravity(dynamics, limits, 120.0)
    plain = Report.of(do(simulated_loop(mechanism, 1000.0, dynamics, pd)))
    assert plain.position_rms > 10.0 * exact.position_rms
    assert not plain.faults


@pytest.mark.slow
def test_it_copes_with_encoders(mechanism, dynamics, limits) -> None:
    encoder = Encoder(resolution=2 * np.pi / 2**17 / 55, position_noise=1e-6, velocity_noise=1e-3, seed=2)
    machine = SimulatedMachine(dynamics, limits, encoder=encoder)
    report = Report.of(do(simulated_loop(mechanism, 1000.0, dynamics, machine=machine)))
    assert report.position_max < 0.3e-3
    assert not report.faults


def test_a_motion_that_does_not_close_gets_a_way_back(planner) -> None:
    motion = parse_motion("# frame: home\nx [mm], y [mm], z [mm]\n30,0,0\n30,40,0\n")
    job = plan_cycle(planner, motion)
    np.testing.assert_allclose(job.cycle.start, job.cycle.end, atol=1e-12)
    np.testing.assert_allclose(job.approach.start, planner.kinematics.home, atol=1e-12)
    np.testing.assert_allclose(job.approach.end, job.cycle.start, atol=1e-12)


def test_a_motion_that_begins_at_home_needs_no_approach(planner) -> None:
    motion = parse_motion("# frame: home\nx [mm], y [mm], z [mm]\n0,0,0\n30,40,0\n0,0,0\n")
    job = plan_cycle(planner, motion)
    np.testing.assert_allclose(job.approach.end, job.approach.start)


def test_a_fault_ends_the_run_and_is_in_the_recording(loop, planner) -> None:
    job = plan_cycle(planner, read_motion_file("pick_and_place"))
    switch_on(loop)
    run_motion(loop, job.approach, recorded=False)
    seen = []

    def tear(period) -> None:
        seen.append(period)
        if len(seen) == 50:
            loop.machine.twist[:] = np.inf

    recording = run_motion(loop, job.cycle, watch=tear)
    assert 50 <= len(recording) <= 51  # the period in which it is torn has a reading from before
    assert recording.faults
    assert loop.machine.lifecycle is Lifecycle.FAULT
    assert np.isfinite(recording.rows.measured).all()
    assert np.isfinite(recording.rows.efforts).all()


def test_whatever_ends_a_run_leaves_the_drives_off(loop, planner) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    switch_on(loop)
    with pytest.raises(KeyboardInterrupt):
        run_motion(loop, planner.rest(np.asarray(loop.kinematics.home), 0.1), watch=interrupted)
    assert loop.machine.lifecycle is Lifecycle.INACTIVE


@pytest.mark.parametrize("silent", [100, 1500])  # ms
def test_a_short_silence_halts_a_motion_and_a_long_one_ends_it(loop, planner, silent: int) -> None:
    job = plan_cycle(planner, read_motion_file("pick_and_place"))
    switch_on(loop)
    run_motion(loop, job.approach, recorded=False)
    machine, seen = loop.machine, []
    machine.command_timeout = 0.02
    read, last = machine.read, []

    def hear_nothing() -> object:
        seen.append(None)
        if 200 <= len(seen) < 200 + silent:
            last[:] = last or [read()]
            return last[0]
        return read()

    machine.read = hear_nothing
    recording = run_motion(loop, job.cycle, cycles=2)
    if silent > 1000:
        assert len(recording.faults) == 1
        assert "measured state is" in recording.faults[0]
        assert machine.lifecycle is Lifecycle.INACTIVE
        return
    report = Report.of(recording)
    assert recording.faults == ()
    assert report.cycles_done == 2
    assert (report.speed.peak_share <= 1.02).all()


def test_a_platform_that_strays_ends_the_run(mechanism, dynamics, limits, planner) -> None:
    machine = SimulatedMachine(dynamics, limits, payload=Inertial(mass=80.0))
    loop = simulated_loop(mechanism, 1000.0, dynamics, machine=machine)
    job = plan_cycle(planner, read_motion_file("pick_and_place"))
    switch_on(loop)
    recording = run_motion(loop, job.approach)
    assert len(recording.faults) == 1
    assert "from where it should be" in recording.faults[0]
    assert machine.lifecycle is Lifecycle.INACTIVE
    loop.machine = SimulatedMachine(dynamics, limits)
    switch_on(loop)  # which forgives
    assert run_motion(loop, job.approach).faults == ()


def test_it_comes_to_rest_on_its_path_when_asked(loop) -> None:
    count = iter(range(10_000))
    recording = do(loop, stopped=lambda: next(count) > 100)
    assert 90 < len(recording) < 1000  # it takes half a second from full speed
    assert not recording.faults
    assert np.abs(recording.rows.velocities[-1]).max() < 0.02 * np.abs(recording.rows.velocities).max()


def test_in_real_time_it_takes_its_time_and_tells_what_it_missed(loop) -> None:
    """On a busy computer deadlines are missed; then they must be counted, and the robot still be where it should."""
    recording = do(loop, realtime=True)
    report = Report.of(recording)
    assert report.loop is not None
    assert report.duration > 0.95 * recording.run.cycle_duration
    skipped = round(report.duration * 1000.0) + 1 - report.loop.wakes
    assert recording.missed >= skipped - 2
    times, path = recording.rows.times, recording.rows.reference[:, :3]
    acceleration = np.gradient(np.gradient(path, times, axis=0), times, axis=0)
    fastest = np.linalg.norm(acceleration, axis=1).max()  # m/s^2, kept up while a command is late
    assert report.position_max < 1e-4 + fastest * report.loop.deviation_max**2
    assert not recording.faults


@pytest.mark.parametrize("rate", [0.0, float("nan"), -5.0])
def test_a_rate_that_makes_no_sense_is_refused(mechanism, dynamics, rate: float) -> None:
    with pytest.raises(ValueError, match="rate"):
        simulated_loop(mechanism, rate, dynamics)


def test_a_gap_before_a_motion_is_counted(loop) -> None:
    """A silence to the drives that lasted from one motion to the next is no part of either."""
    switch_on(loop)
    still = MotionPlanner(loop.dynamics, loop.limits).rest(np.array(loop.kinematics.home), 0.02)
    ready, pace = make_ready(loop, still), FixedRateLoop(loop.rate)
    pace.restart()
    hold(loop, pace)
    time.sleep(0.2)
    recording = run_motion(loop, ready, realtime=True, pace=pace)
    assert recording.faults == ()
    assert recording.missed is not None
    assert recording.missed >= 190


def test_readings_that_stop_are_the_reason_and_no_fallback_is_told_for_drives_that_are_off(loop, monkeypatch) -> None:
    switch_on(loop)
    still = MotionPlanner(loop.dynamics, loop.limits).rest(np.array(loop.kinematics.home), 0.2)
    read, seen = loop.machine.read, []

    def stale():
        seen.append(read())
        return seen[min(len(seen) - 1, 20)]

    monkeypatch.setattr(loop.machine, "read", stale)
    (fault,) = run_motion(loop, still).faults
    assert fault.startswith("measured state is")
    assert fault.endswith("ms")
    assert loop.machine.lifecycle is Lifecycle.INACTIVE
