# SPDX-License-Identifier: Apache-2.0
"""Common objects of one robot's nodes, made once, in the process that they are forked from.

Importing libraries, building the robot, loading or compiling its kernels and planning its motion take seconds; seven
nodes that each do it at the same time take half a minute on two cores. The nodes find the objects made here through
`shared_mechanism`, `shared_kinematics`, `shared_dynamics` and `planned`, and kernels are compiled for all.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import math
import os
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from pkm_bringup import bringup
from pkm_bringup.main_job import planned
from pkm_control.loop.control_loop import warm_up
from pkm_control.loop_settings import ControllerSettings
from pkm_control.robot_loop import build_follower
from pkm_description.from_urdf import shared_mechanism
from pkm_description.urdf import cache_files
from pkm_dynamics import Dynamics
from pkm_dynamics.dynamics import shared_dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.machine_kinds import SIMULATED
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics.forward.tracker import AssemblyModeTracker
from pkm_kinematics.making import KERNELS, making
from pkm_runtime.child_processes import Child, end_with_parent

_COMPILED = (
    "pkm_runtime",
    "pkm_kinematics",
    "pkm_dynamics",
    "pkm_hardware",
    "pkm_control",
)  # packages that have kernels
_MARKS = 200  # of what was compiled; older ones go


def build(text: str) -> Dynamics:
    """The robot of a description (URDF+), which all nodes share; PkmError where there is none in it."""
    with making("building the robot"):
        return shared_dynamics(shared_mechanism(text))


def compile_apart(text: str, specs: Sequence[bringup.NodeSpec], values: bringup.Values) -> None:
    """Compile a robot's kernels in another process, where the sources changed since they were compiled.

    Compiling leaves a hundred megabytes and more in the process that does it, and all nodes are forked from this one.
    Where no mark can be written that it was done, it is left to this process. Errors there occur again here, where they
    are reported.
    """
    mark = _mark(text, values["controller"], values["hardware"])
    if mark is None or mark.exists():
        return

    def compile_all() -> None:
        interrupt_silently()
        load(build(text), specs, values)

    if Child(compile_all, silent=True).wait(math.inf) == 0:  # else it fails again where it can be reported
        note_compiled(text, values["controller"], values["hardware"])


def interrupt_silently() -> None:
    """Let a child end with its parent, and silently by Ctrl-C: its parent reports it."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def note_compiled(text: str, controller: str, hardware: str) -> None:
    """Note that kernels for a description, law and machine are compiled: `compile_apart` then skips them."""
    mark = _mark(text, controller, hardware)
    if mark is not None:
        with contextlib.suppress(OSError):
            cache_files.write(mark, b"")


def _mark(*what: str) -> Path | None:
    """The file that marks kernels compiled from these sources by this numba; None where it cannot be made."""
    packages = Path(__file__).resolve().parents[1]
    sources = sorted(file for name in _COMPILED for file in (packages / name).rglob("*.py"))
    times = [(str(file), (found := file.stat()).st_mtime_ns, found.st_size) for file in sources]
    digest = hashlib.sha256(repr((what, times, sys.version, version("numba"))).encode(errors="surrogatepass"))
    for folder in cache_files.folders():
        with contextlib.suppress(OSError):
            if os.access(cache_files.made(folder), os.W_OK):
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
    """Load the kernels that nodes need, and plan the motion, as `prepare` does."""
    wanted = {name for spec in specs for name in spec.nodes}
    with making(KERNELS):
        exercise(dynamics)
        if "controller" in wanted:
            warm_up_controller(dynamics, values["controller"])
        if "hardware" in wanted and values["hardware"] == SIMULATED:
            warm_up_machine(dynamics)
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


def warm_up_machine(dynamics: Dynamics) -> None:
    """Let a simulated machine pass a millisecond."""
    SimulatedMachine(dynamics, ActuatorLimits.of(dynamics.mechanism)).warm_up()
