# SPDX-License-Identifier: Apache-2.0
"""The job of `simulate`: the main job in real time in this process, with the page in another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pkm_bringup.command_line.one_process import Interruption
from pkm_bringup.main_job import Cycle, make_ready, plan_cycle, run_motion
from pkm_bringup.simulate_command import Options
from pkm_control.loop.control_loop import ControlLoop, Period, switch_on
from pkm_control.motion.files.default_motion import motion_named
from pkm_control.motion.files.shipped import NONE
from pkm_control.operator_interface import POSITION
from pkm_control.robot_loop import build_loop, planner_of
from pkm_description.mechanism import Array, Mechanism
from pkm_hardware.machine_kinds import NOTE, payload_note
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_runtime.kernels.kernel_cache import KERNELS, making
from pkm_runtime.optional import PAGE, PAGE_REMEDY, NotInstalledError, need
from pkm_runtime.progress import progress
from pkm_viewer.report.recording import ENDING_OTHERS
from pkm_viewer.report.report import Report
from pkm_viewer.report.report_files import publish_report
from pkm_viewer.viewer_process import ViewerProcess

_HELD = 1.0  # s that a motion which stays at home lasts, until the next
_PICTURE_EVERY = 0.02  # s of machine time between two updates of the page


def _watcher(viewer: ViewerProcess, loop: ControlLoop) -> Callable[[Period], None]:
    machine, shown = loop.machine, [-np.inf]  # s, of machine time

    def watch(period: Period) -> None:
        action = period.action
        if machine.time < shown[0] + _PICTURE_EVERY or action.measured is None or action.reference is None:
            return
        shown[0] = machine.time
        error = float(np.linalg.norm(action.measured.pose[:3] - action.reference.pose[:3]))
        speed = float(np.linalg.norm(action.measured.twist[:3]))
        joints, pose = action.measured.joints, action.measured.pose
        if isinstance(machine, SimulatedMachine):  # which knows better than its encoders
            joints, pose = machine.joints, machine.pose
        efforts = action.command if loop.controller.commands == "effort" else np.full_like(action.command, np.nan)
        viewer.update(joints, pose, machine.time, error, speed, efforts)

    return watch


def simulate(mechanism: Mechanism, options: Options, interruption: Interruption) -> tuple[str, ...]:
    """Run the job of the options; return the faults that ended it early."""
    with making(KERNELS):
        loop = build_loop(mechanism, options)
    planner = planner_of(loop, options)
    held = options.motion == NONE
    with making("planning the motion", lambda: planner.done):
        if held:
            rest = planner.rest(np.asarray(loop.kinematics.home, dtype=np.float64), _HELD)
            job, source = Cycle(rest, rest), NONE
        else:
            motion = motion_named(options.motion, loop.kinematics, options.tool_file)
            job, source = plan_cycle(planner, motion), motion.source
    if not held:
        print(f"{mechanism.name}: {source}, one cycle takes {job.cycle.duration:.4f} s")
    for note in job.cycle.notes:
        print(f"  {note}")
    viewer: ViewerProcess | None = None
    with making(KERNELS):
        switch_on(loop)
        _warm_up(loop, options)
    try:
        if options.page:
            with progress("opening the page"):
                viewer = _open_page(loop, options, job.cycle.sampled(250.0).pose[:, :3])
        watch = _watcher(viewer, loop) if viewer is not None else None
        if held:
            print(f"{mechanism.name} is held at home, at {options.rate:.0f} Hz; Ctrl-C ends the run", flush=True)
            interruption.motion_begins()
            faults: tuple[str, ...] = ()
        else:
            faults = _run(loop, job, source, options, interruption, viewer, watch)
        again = make_ready(loop, job.cycle)
        while (held or options.stay) and not faults and not interruption.is_set():
            faults = run_motion(loop, again, 1, True, watch, interruption.is_set, recorded=False).faults
        return faults
    finally:
        loop.shut_down()
        if viewer is not None:
            viewer.close()


def _run(
    loop: ControlLoop,
    job: Cycle,
    source: str,
    options: Options,
    interruption: Interruption,
    viewer: ViewerProcess | None,
    watch: Callable[[Period], None] | None,
) -> tuple[str, ...]:
    """Run the motion, and report it; return the faults that ended it early."""
    way, cycle = make_ready(loop, job.approach), make_ready(loop, job.cycle, options.cycles)
    times = f"{options.cycles} cycle" + "s" * (options.cycles != 1)
    long = f"{options.cycles * job.cycle.duration:.3g} s"
    print(f"running {times} at {options.rate:.0f} Hz, which takes {long}; Ctrl-C ends the run", flush=True)
    stopped = interruption.is_set
    interruption.motion_begins()
    approach = run_motion(loop, way, realtime=True, watch=watch, stopped=stopped, recorded=False)
    if approach.faults:
        return approach.faults
    recording = run_motion(loop, cycle, options.cycles, True, watch, stopped)
    if len(recording):
        remedies = ("--rate {rate}", *(("--no-page",) if viewer is not None else ()), ENDING_OTHERS)
        recording = recording.about(source, _conditions(options), remedies)
        goes_on = options.stay and not recording.faults and not stopped()
        given_up = stopped if goes_on else interruption.motion_ended()
        publish_report(recording, Report.of(recording, loop.kinematics), options.report, given_up)
    else:
        print("ended on the way to the start of the motion; not a period of it was run, and there is no report")
    return recording.faults


def _conditions(options: Options) -> tuple[str, ...]:
    if options.controller == POSITION:
        return ("commanded by position; the machine is at its commanded position (loopback), and has no efforts",)
    law = f"{options.controller} at {options.natural_frequency:g} rad/s, damping {options.damping:g}"
    described = f"described with {options.xacro_args}" if options.xacro_args else ""
    conditions = law, NOTE if options.realistic else "", described, payload_note(options.hidden_payload)
    return tuple(filter(None, conditions))


def _warm_up(loop: ControlLoop, options: Options) -> None:
    """Run a few periods that do not count: what is compiled or cached on first use must not cost a deadline."""
    rest = planner_of(loop, options).rest(np.asarray(loop.kinematics.home, dtype=np.float64), 0.02)
    run_motion(loop, rest, recorded=False)


def _open_page(loop: ControlLoop, options: Options, planned: Array) -> ViewerProcess | None:
    try:
        need("the browser page", PAGE, PAGE_REMEDY)
    except NotInstalledError as error:
        print(f"{error}; going on without it", flush=True)
        return None
    names = tuple(loop.kinematics.joint_names)
    home = np.array(loop.kinematics.home_joints, dtype=np.float64)
    viewer = ViewerProcess(loop.kinematics.mechanism, names, home, options.port, planned, options.host)
    if viewer.alive:
        print(f"page: {viewer.url}", flush=True)
        return viewer
    viewer.close()
    print(f"the browser page could not be opened ({viewer.problem}); going on without it", flush=True)
    return None
