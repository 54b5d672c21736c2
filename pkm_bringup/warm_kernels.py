# SPDX-License-Identifier: Apache-2.0
"""`pkm warm`: compiles and caches every kernel, so that the first call of a node is as quick as the next.

A first report is drawn, too, for which matplotlib looks through all fonts; and all modules are compiled to bytecode.
`./pkm` and `colcon build` do this; after an installation by pip, kernels are compiled when they are first called.
"""

from __future__ import annotations

import argparse
import compileall
import importlib
import math
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from pkm_bringup.main_job import plan_cycle, run_motion, simulated_loop
from pkm_bringup.prepare import exercise, interrupt_silently, note_compiled, warm_up_controller
from pkm_client import options
from pkm_control.loop.control_loop import ControlLoop, switch_on
from pkm_control.motion.files.default_motion import motion_named
from pkm_control.motion.files.shipped import AUTO
from pkm_control.motion.planning import MotionPlanner
from pkm_control.operator_interface import LAWS
from pkm_description import load_mechanism
from pkm_description.load import xacro_arguments
from pkm_description.mechanism import Mechanism
from pkm_dynamics import Dynamics
from pkm_hardware.machine_kinds import SIMULATED
from pkm_kinematics.making import making
from pkm_runtime.child_processes import Child
from pkm_runtime.errors import PkmError
from pkm_runtime.kernels.kernel_cache import COMPILING
from pkm_viewer.report.report import Report

ANALYSES = "pkm_analysis.warm"  # which control does not import; found by name

KINDS = ("quattro", "tripod_3prs", "cable_8", "capaman")
"""Robots that take kernels which the Delta does not: limbs solved by iteration, a motion space that turns, redundant
drives, a platform that hangs on a chain of joints."""


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

    def warm() -> None:
        interrupt_silently()
        COMPILING.told_elsewhere = True
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
    return MotionPlanner(loop.kinematics, loop.dynamics, loop.limits)


def warm_modules() -> None:
    """Keep the bytecode of all modules, also where PYTHONDONTWRITEBYTECODE is set, as in many containers: there every
    process would compile all that it imports, a sixth of the time to the first inverse kinematics.
    """
    packages = Path(__file__).resolve().parents[2]
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
        importlib.import_module("pkm_viewer.report.page.write").write_page(recording, report, files)


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
    text = "what is compiled: what it takes to run, or what pkm analyse takes (default: running)"
    p.add_argument("--for", dest="purpose", choices=("running", "analysis"), default="running", help=text)
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0, 1 where there is no such robot, 2 for a wrong command line."""
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
        print(f"pkm warm: {error}", file=sys.stderr)
        return 1
    print(f"kernels ready after {took:.1f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
