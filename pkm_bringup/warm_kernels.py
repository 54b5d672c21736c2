# SPDX-License-Identifier: Apache-2.0
"""Objects and kernels of one robot, made before they are needed: for its nodes, and by `pkm warm`.

Importing libraries, building the robot, loading or compiling its kernels and planning its motion take seconds; seven
nodes that each do it at the same time take half a minute on two cores. So all are forked from a process with the
imports and objects made here, and find them through `shared_mechanism`, `shared_kinematics`, `shared_dynamics` and
`planned`. `pkm warm` compiles and caches every kernel, draws a first report, for which matplotlib looks through all
fonts, and compiles all modules to bytecode. `./pkm` and `colcon build` do this; after an installation by pip, kernels
are compiled when they are first called.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import gc
import hashlib
import importlib
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from pkm_bringup import bringup
from pkm_bringup.main_job import plan_cycle, planned, run_motion, simulated_loop
from pkm_client import options
from pkm_control.loop.control_loop import ControlLoop, switch_on, warm_up
from pkm_control.loop_settings import ControllerSettings
from pkm_control.motion.files.default_motion import motion_named
from pkm_control.motion.files.shipped import AUTO
from pkm_control.motion.planning import MotionPlanner
from pkm_control.operator_interface import LAWS
from pkm_control.robot_loop import build_follower
from pkm_description import load_mechanism
from pkm_description.command_options import wrong
from pkm_description.from_urdf import shared_mechanism
from pkm_description.load import xacro_arguments
from pkm_description.mechanism import Mechanism
from pkm_description.urdf import robot_cache
from pkm_dynamics import Dynamics
from pkm_dynamics.dynamics import shared_dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.machine_file import read_machine_file
from pkm_hardware.machine_kinds import KINDS as MACHINES
from pkm_hardware.machine_kinds import SIMULATED
from pkm_hardware.make_machine import make_machine
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics.forward.tracker import AssemblyModeTracker
from pkm_runtime.child_processes import Child, end_with_parent
from pkm_runtime.errors import PkmError
from pkm_runtime.kernels.kernel_cache import COMPILING, KERNELS, making
from pkm_viewer.report.report import Report

_COMPILED = ("pkm_runtime", "pkm_kinematics", "pkm_dynamics", "pkm_hardware", "pkm_control")  # that have kernels
_MARKS = 200  # of what was compiled; older ones go

ANALYSES = "pkm_analysis.warm"  # which control does not import; found by name
# Robots with kernels that the Delta lacks: iterated limbs, configuration-dependent motion space, redundancy, a chain
KINDS = ("quattro", "tripod_3prs", "cable_8", "capaman")


def build(text: str) -> Dynamics:
    """The robot of a description (URDF+), which all nodes share; PkmError where there is none in it."""
    with making("building the robot"):
        return shared_dynamics(shared_mechanism(text))


def compile_apart(text: str, specs: Sequence[bringup.NodeSpec], values: bringup.Values) -> None:
    """Compile a robot's kernels in another process, where the sources changed since they were compiled: it leaves a
    hundred megabytes and more there, and all nodes are forked from this one. Errors occur again here, to be reported.
    """
    mark = _mark(text, values["controller"], values["hardware"])
    if mark is None or mark.exists():
        return

    parent = os.getpid()

    def compile_all() -> None:
        interrupt_silently(parent)
        load(build(text), specs, values)

    if Child(compile_all, silent=True).wait(math.inf) == 0:  # else it fails again where it can be reported
        note_compiled(text, values["controller"], values["hardware"])


def interrupt_silently(parent: int) -> None:
    """Let a child end with its parent, and silently by Ctrl-C: its parent reports it."""
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def note_compiled(text: str, controller: str, hardware: str) -> None:
    """Note that kernels for a description, law and machine are compiled: `compile_apart` then skips them."""
    mark = _mark(text, controller, hardware)
    if mark is not None:
        with contextlib.suppress(OSError):
            robot_cache.write_cached(mark, b"")


def _mark(*what: str) -> Path | None:
    packages = Path(__file__).resolve().parents[1]
    sources = sorted(file for name in _COMPILED for file in (packages / name).rglob("*.py"))
    times = [(str(file), (found := file.stat()).st_mtime_ns, found.st_size) for file in sources]
    digest = hashlib.sha256(repr((what, times, sys.version, version("numba"))).encode(errors="surrogatepass"))
    for folder in robot_cache.folders():
        with contextlib.suppress(OSError):
            if os.access(robot_cache.cache_folder(folder), os.W_OK):
                for old in sorted(folder.glob("*.compiled"), key=lambda file: file.stat().st_mtime)[:-_MARKS]:
                    old.unlink(missing_ok=True)
                return folder / f"{digest.hexdigest()[:32]}.compiled"
    return None


def prepare(dynamics: Dynamics, specs: Sequence[bringup.NodeSpec], values: bringup.Values) -> None:
    """Make what the nodes need and what does not depend on ROS, and import their modules; PkmError: unusable motion."""
    load(dynamics, specs, values)
    with making("importing the nodes"):
        for spec in specs:
            importlib.import_module(spec.module)
    gc.collect()
    gc.freeze()  # what is made stays in pages that the nodes share


def load(dynamics: Dynamics, specs: Sequence[bringup.NodeSpec], values: bringup.Values) -> None:
    """Load nodes' kernels, and plan the motion, as `prepare` does. PkmError: the machine's file is of another robot."""
    wanted = {name for spec in specs for name in spec.nodes}
    if "hardware" in wanted and values["hardware"] in MACHINES and values["hardware_file"]:
        make_machine(values["hardware"], dynamics.kinematics, read_machine_file(values["hardware_file"]))
    with making(KERNELS):
        exercise(dynamics)
        if "controller" in wanted:
            warm_up_controller(dynamics, values["controller"])
        if "hardware" in wanted and values["hardware"] == SIMULATED:
            SimulatedMachine(dynamics, ActuatorLimits.of(dynamics.mechanism)).warm_up()
    if "motion_player" in wanted and bringup.motion_of(values) != "none":
        with making("planning the motion"):
            files = values["hardware_file"], values["tool_file"], values["keep_out_file"]
            planned(dynamics.mechanism, bringup.motion_of(values), bringup.reserve(values), *files)


def exercise(dynamics: Dynamics) -> None:
    """Call once the functions that the kinematics and dynamics nodes and the recorder of a run call."""
    kinematics = dynamics.kinematics
    home, still = np.array(kinematics.home), np.zeros(6)
    positions = np.asarray(kinematics.inverse(home).actuated)
    tracker = AssemblyModeTracker(kinematics)
    tracker.observe(positions, np.zeros(len(positions)))
    kinematics.forward(np.tile(positions, (2, 1)), near=np.tile(home, (2, 1)))
    kinematics.singularity(home)
    dynamics.inverse(home, still, still)


def warm_up_controller(dynamics: Dynamics, law: str) -> None:
    """Warm up a controller at home."""
    warm_up(build_follower(dynamics.mechanism, ControllerSettings(law), dynamics), dynamics.kinematics)


def warm_kernels(mechanism: Mechanism) -> float:
    """Call every compiled path of the library on one robot, and draw a report; return the time that it took [s]."""
    started = time.perf_counter()
    other = _in_other_process(mechanism) if len(os.sched_getaffinity(0)) > 1 else None
    _warm_library(Dynamics(mechanism))
    if other is None or other.wait(math.inf) != 0:
        _warm_rest(mechanism)
    return time.perf_counter() - started


def warm_kind(name: str) -> float:
    """Call what running a robot of the gallery takes, without a report; return the time that it took [s]."""
    started = time.perf_counter()
    mechanism = load_mechanism(name)
    _warm_library(Dynamics(mechanism))
    _warm_run(simulated_loop(mechanism))
    note_compiled(mechanism.urdf, LAWS[0], SIMULATED)
    return time.perf_counter() - started


def _in_other_process(mechanism: Mechanism) -> Child:
    """Begin with the second half in a child; what fails there is done again here."""

    parent = os.getpid()

    def warm() -> None:
        interrupt_silently(parent)
        COMPILING.quiet = True
        _warm_rest(mechanism)

    return Child(warm, silent=True)


def _warm_rest(mechanism: Mechanism) -> None:
    warm_modules()  # while the other process compiles kernels that both need
    _warm_run(simulated_loop(mechanism))
    warm_report(mechanism)


def _warm_library(dynamics: Dynamics) -> None:
    kinematics = dynamics.kinematics
    pose = np.asarray(kinematics.home)
    for poses in (pose, np.tile(pose, (8, 1))):
        twist = np.zeros((*poses.shape[:-1], 6))
        solution = kinematics.inverse(poses)
        kinematics.forward(solution.actuated, near=poses)
        kinematics.motion(poses, twist, twist)
        effort = dynamics.inverse(poses, twist, twist).effort
        dynamics.direct(poses, twist, effort)
    solution = kinematics.inverse(pose)
    kinematics.inverse_all(pose)
    kinematics.forward_all(solution.actuated)
    if kinematics.task.names:
        kinematics.inverse(kinematics.task.chain["home"][-len(kinematics.task.names) :])
    kinematics.at(pose).platform_twist(np.zeros(len(kinematics.actuated_names)))
    exercise(dynamics)
    warm_up_controller(dynamics, LAWS[0])


def _warm_run(loop: ControlLoop) -> None:
    plan_cycle(_planner(loop), motion_named(AUTO, loop.kinematics))
    switch_on(loop)
    run_motion(loop, _planner(loop).rest(np.asarray(loop.kinematics.home, dtype=np.float64), 0.01))


def _planner(loop: ControlLoop) -> MotionPlanner:
    return MotionPlanner(loop.dynamics, loop.limits)


def warm_modules() -> None:
    """Keep the bytecode of all modules, also where PYTHONDONTWRITEBYTECODE is set, as in many containers."""
    packages = Path(__file__).resolve().parents[1]
    for folder in sorted(packages.glob("pkm_*/")):
        compileall.compile_dir(folder, quiet=2)  # what cannot be written is left out
    if find_spec("matplotlib") is not None:
        importlib.import_module("matplotlib.font_manager")


def warm_report(mechanism: Mechanism) -> None:
    """Draw a page of a report and discard it, where matplotlib is installed: it looks for all fonts once."""
    if find_spec("matplotlib") is None:
        return
    loop = simulated_loop(mechanism)
    switch_on(loop)
    recording = run_motion(loop, _planner(loop).rest(np.asarray(loop.kinematics.home, dtype=np.float64), 0.05))
    report = Report.of(recording, loop.kinematics)
    with tempfile.TemporaryDirectory(prefix="pkm_") as folder:
        files = {kind: Path(folder) / f"page.{kind}" for kind in ("png", "pdf", "html")}
        importlib.import_module("pkm_viewer.report.page").write_page(recording, report, files)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = options.parser(
        "warm",
        "Compile what a robot needs, and keep it: minutes once, and the first call of everything is as quick as\n"
        "the next. What robots of other kinds need beside is compiled when it is first called.",
    )
    options.add_robot(p, default="delta")
    text = "compile what robots of other kinds need to run, too, so that no first start is slow"
    p.add_argument("--kinds", action="store_true", help=text)
    text = "what is compiled: what it takes to run, or what pkm analyse takes"
    p.add_argument("--for", dest="purpose", choices=("running", "analysis"), default="running", help=text)
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0, 2 where there is no such robot."""
    given = parser().parse_args(arguments)
    try:
        with making("building the robot"):
            mechanism = load_mechanism(given.robot, xacro_arguments(given.xacro_args))
        with making("compiling kernels"):
            if given.purpose == "analysis":
                began = time.perf_counter()
                importlib.import_module(ANALYSES).warm(mechanism)
                took = time.perf_counter() - began
            else:
                took = warm_kernels(mechanism)
                note_compiled(mechanism.urdf, LAWS[0], SIMULATED)
                took += sum(warm_kind(name) for name in (KINDS if given.kinds else ()))
    except PkmError as error:
        return wrong("warm", error)
    print(f"kernels ready after {took:.1f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
