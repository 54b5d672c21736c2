# SPDX-License-Identifier: Apache-2.0
"""A motion on the user's machine, from motion file to drives, in one process without ROS."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from pkm_bringup.command_line.one_process import Guardian, Interruption, run_in_one_process
from pkm_bringup.command_line.outputs import check_report
from pkm_bringup.main_job import Ready, make_ready, plan_cycle, run_motion
from pkm_client import options
from pkm_control.loop.control_loop import ControlLoop, hold, switch_on
from pkm_control.loop_settings import MachineSettings
from pkm_control.motion.files.default_motion import motion_named
from pkm_control.motion.path_events import PathEventError
from pkm_control.motion.planning import MotionPlanner
from pkm_control.operator_interface import POSITION
from pkm_control.robot_loop import last_resort, make_controller
from pkm_description.mechanism import Mechanism
from pkm_dynamics import Dynamics
from pkm_hardware.machine import Lifecycle, Machine
from pkm_hardware.machine_file import Drives, MachineFile, check_kind, read_machine_file
from pkm_hardware.machine_kinds import FIRST_MOVE, LOOPBACK, USUAL_RESERVE
from pkm_hardware.make_machine import limits_of, make_drives, make_machine
from pkm_kinematics import Kinematics
from pkm_runtime.errors import PkmError
from pkm_runtime.fixed_rate import FixedRateLoop
from pkm_runtime.kernels.kernel_cache import KERNELS, making
from pkm_runtime.optional import NotInstalledError, uncollected
from pkm_runtime.scheduling import LoopScheduling
from pkm_viewer.report.recording import ENDING_OTHERS, Recording
from pkm_viewer.report.report import Report
from pkm_viewer.report.report_files import publish_report

_REMEDIES = ("rate: {rate} in the machine's file", ENDING_OTHERS)
_REHEARSAL = 0.1  # s
_LINGER = 0.5  # s after the motion, before the drives are disabled


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = options.parser(
        "play",
        "Run a motion on a machine that takes positions (hobby servos, Dynamixel, ODrive), without ROS: the way\n"
        "from the motion file to the drives in one process. The machine's file says which machine it is, on which\n"
        "port, at which rate. It stands at home when it starts. Ctrl-C ends it, and the drives are turned off.",
    )
    options.add_robot(p, "delta")
    machine = p.add_argument_group("machine")
    options.add(machine, "hardware_file", required=True)
    options.add(machine, "simulate")
    options.add(machine, "realtime_priority")
    text = "no device: commands become readings; the file is checked, and the commands for servos are printed"
    machine.add_argument("--dry", action=options.Switch, default=False, help=text)
    motion = p.add_argument_group("motion")
    options.add(motion, "motion", help=options.MOTION)
    options.add(motion, "tool_file")
    options.add(motion, "cycles")
    options.add(p.add_argument_group("output"), "report", type=Path)
    return p


def play(
    mechanism: Mechanism,
    file: MachineFile,
    motion: str,
    cycles: int,
    dry: bool,
    interruption: Interruption,
    tool_file: str = "",
    guardian: Guardian | None = None,
    simulate: bool = False,
    priority: int | None = 0,
) -> tuple[Kinematics, Recording]:
    """Run a motion on a machine; return the robot's kinematics and the recording, with the drives disabled.

    Args:
        tool_file: path of the file of the robot's tools; empty: none.
        guardian: turns the drives off where this process cannot.
        priority: SCHED_FIFO's, of the loop, where permitted; 0: ordinary scheduling; None: periods without a clock.

    PkmError: the motion or the machine cannot be used, the machine lacks an output, or does not start.
    """
    kind = LOOPBACK if dry else file.kind
    check_kind(kind, file)
    with making(KERNELS):
        dynamics = Dynamics(Kinematics(mechanism))
        kinematics = dynamics.kinematics
        drives = _rest_of_the_file(kinematics, file) if dry else None
        limits = limits_of(mechanism, file)
        planner = MotionPlanner(dynamics, limits, reserve=USUAL_RESERVE)
        loop = _position_loop(dynamics, kind, file, simulate)
        _warm_up(dynamics, planner, file)
    with making("planning the motion", lambda: planner.done):
        waypoints = motion_named(motion, kinematics, tool_file)
        job = plan_cycle(planner, waypoints)
    loop.require_outputs(job.cycle.events.names)
    _require_outputs(drives, job.cycle.events.names)
    rest = planner.rest(np.asarray(kinematics.home, dtype=np.float64), _LINGER)
    with making("planning the motion"):
        resting, approach, cycle = (
            make_ready(loop, one, times) for one, times in ((rest, 1), (job.approach, 1), (job.cycle, cycles))
        )
    slowly = " slowly" if loop.machine.real else ""
    going = f"home and{slowly} to the start of the motion, then {cycles} times {job.cycle.duration:.3g} s"
    rest_of_it = f"would go {going}; this is tried without a device" if dry else f"go {going}; Ctrl-C turns them off"
    print(f"{mechanism.name}: the drives {rest_of_it}", flush=True)
    interruption.motion_begins()
    if guardian is not None:
        guardian.promise()
    scheduling = LoopScheduling(priority or 0, lambda text: print(f"pkm play: {text}", file=sys.stderr, flush=True))
    motions = resting, approach, cycle
    recording = _driven(loop, motions, interruption, guardian, priority is not None, scheduling)
    device = f"{kind}, simulated" if simulate and not dry else kind
    notes = (f"commanded by position at {file.rate:g} Hz; {device}", *_sent(drives, recording))
    return kinematics, recording.about(waypoints.source, notes, _REMEDIES)


def _nobody_watches(within: float = 0.0) -> None:
    return


def _is_over(interruption: Interruption, guardian: Guardian | None, promise: Callable[[], None]) -> bool:
    promise()
    return interruption.is_set() or (guardian is not None and bool(guardian.problem))


def _driven(
    loop: ControlLoop,
    motions: tuple[Ready, Ready, Ready],
    interruption: Interruption,
    guardian: Guardian | None,
    realtime: bool,
    scheduling: LoopScheduling,
) -> Recording:
    resting, approach, cycle = motions
    pace = FixedRateLoop(loop.rate)
    promise: Callable[..., None] = guardian.promise if guardian is not None else _nobody_watches
    stopped = partial(_is_over, interruption, guardian, partial(promise, 2.0 / loop.rate))
    loop.machine.unwanted = partial(_is_over, interruption, guardian, promise)
    gc.collect()
    with uncollected():  # from here to the end nothing takes longer than a period: drives take silence for a fault
        try:
            if problem := loop.configure() or loop.enable():
                raise PkmError(problem)
            _home(loop.machine, stopped)
            scheduling.request()
            pace.restart()
            hold(loop, pace if realtime else None)
            run = partial(run_motion, loop, realtime=realtime, stopped=stopped, pace=pace)
            recording = run(resting, recorded=False)
            if not recording.faults and not stopped():
                loop.follower.set_override(FIRST_MOVE if loop.machine.real else 1.0)
                recording = run(approach, recorded=False)
                loop.follower.set_override(1.0)
            if recording.faults:
                raise PkmError(recording.faults[0])
            return run(cycle)
        finally:
            promise()
            if guardian is not None:
                guardian.hurry()
            scheduling.release()
            interruption.motion_ended()
            interruption.warning = loop.shut_down()


def _position_loop(dynamics: Dynamics, kind: str, file: MachineFile, simulate: bool = False) -> ControlLoop:
    machine = make_machine(kind, dynamics.kinematics, file, simulate)
    return ControlLoop.of(machine, make_controller(POSITION, dynamics, machine.limits, 1.0 / file.rate), file.rate)


def _rest_of_the_file(kinematics: Kinematics, file: MachineFile) -> Drives | None:
    """Read what the file's own driver reads, without opening a device; None where the driver's library is missing."""
    try:
        return make_drives(file.kind, kinematics, file)
    except NotInstalledError as error:
        print(f"pkm play: what the file says to the driver alone is not checked: {error}", file=sys.stderr)
        return None


def _require_outputs(drives: Drives | None, names: Sequence[str]) -> None:
    """Refuse outputs that the file does not have: a loopback takes every name."""
    if drives is None:
        return
    for name in names:
        if problem := drives.driver.output_problem(name):
            raise PathEventError(problem)


def _sent(drives: Drives | None, recording: Recording) -> tuple[str, ...]:
    if drives is None or not len(recording):
        return ()
    ends = np.stack([drives.scale.to_device(recording.tally.lowest), drives.scale.to_device(recording.tally.highest)])
    home = drives.scale.to_device(drives.home)
    rows = zip(drives.axes, recording.limits.names, ends.min(axis=0), ends.max(axis=0), home, strict=False)
    return tuple(
        f"{name} ({axis}) would be sent {low:.0f} to {high:.0f} {drives.unit}; at home {rest:.0f}"
        for axis, name, low, high, rest in rows
    )


def _warm_up(dynamics: Dynamics, planner: MotionPlanner, file: MachineFile) -> None:
    """Run a few periods without the drives, as a warm-up: compiling a kernel later would be a silence to the drives."""
    loop = _position_loop(dynamics, LOOPBACK, file)
    switch_on(loop)
    run_motion(loop, planner.rest(np.asarray(dynamics.kinematics.home, dtype=np.float64), _REHEARSAL))
    loop.shut_down()


def _home(machine: Machine, stopped: Callable[[], bool]) -> None:
    loop = FixedRateLoop(1.0 / 0.02)
    loop.restart()
    notice = ""
    while machine.lifecycle is Lifecycle.ACTIVE and not machine.readable and not stopped():
        if machine.notice != notice:
            notice = machine.notice
            print(notice, flush=True)
        machine.step(loop.wait() * loop.period)
    if machine.fault:
        raise PkmError(machine.fault)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0 done, 1 failed, 2 bad arguments, 130 interrupted."""
    given = parser().parse_args(arguments)
    try:
        check_report(given.report)
    except ValueError as error:
        print(f"pkm play: {error}", file=sys.stderr)
        return 2

    def job(mechanism: Mechanism, interruption: Interruption) -> tuple[str, ...]:
        file = read_machine_file(given.hardware_file)
        settings = MachineSettings(kind=file.kind, file=given.hardware_file)
        real = not (given.dry or given.simulate)
        interruption.harmless = not real
        guardian = Guardian(partial(last_resort, mechanism, settings)) if real else None
        if guardian is not None:
            interruption.when_asked = guardian.hurry
        try:
            kinematics, recording = play(
                mechanism,
                file,
                given.motion,
                given.cycles,
                given.dry,
                interruption,
                tool_file=given.tool_file,
                guardian=guardian,
                simulate=given.simulate,
                priority=None if given.dry else given.realtime_priority if real else 0,
            )
        finally:
            if guardian is not None:
                guardian.end()
        given_up = interruption.motion_ended()
        unwatched = (guardian.problem,) if guardian is not None and guardian.problem else ()
        for fault in recording.faults:
            print(f"\n{mechanism.name}: {fault}", file=sys.stderr, flush=True)
        if len(recording):
            publish_report(recording, Report.of(recording, kinematics), given.report, given_up)
        else:
            print("ended on the way to the start of the motion; not a period of it was run, and there is no report")
        return *recording.faults, *unwatched

    return run_in_one_process("play", given.robot, given.xacro_args, job)
