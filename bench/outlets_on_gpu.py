# SPDX-License-Identifier: Apache-2.0
"""Robots on a GPU (`python -m bench.outlets --gpu`): states per second with all data there, one line per figure.

Beside each the bytes that a state moves, and the part of the memory's own speed that this is: what a copy on the GPU
of as much reaches. Before it is timed, each function is compared with Python's answers in a thousand states.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.many_poses import poses_around_home
from pkm_description import load_mechanism, load_model
from pkm_dynamics import Dynamics
from pkm_dynamics.outlets.on_gpu import FUNCTIONS, GpuRobot
from pkm_kinematics.linkage.consistent_states import closed_states, consistent_states
from pkm_runtime.codegen.c_code import cupy_with_gpu
from pkm_runtime.errors import PkmError

WORK = (  # robot, function, how it is called
    ("delta", "inverse_dynamics", "IK + ID"),
    ("gough_stewart", "inverse_dynamics", "IK + ID"),
    ("delta", "step", "step of 1 ms, loops exact"),
    ("gough_stewart", "step", "step of 1 ms, loops exact"),
    ("delta", "inside", "membership in the workspace"),
)
ANKLE = Path(__file__).parents[1] / "docs" / "examples" / "ankle_cranks.urdf.xacro"
RANGES = {"ankle_pitch": (-0.4, 0.4), "ankle_roll": (-0.2, 0.2)}  # rad
STATES, COMPARED, REPETITIONS, DT = 1 << 22, 1000, 20, 1e-3


def seconds(cupy: Any, call: Callable[[], Any], repetitions: int) -> float:
    """Of one call, the GPU idle before and after all of them."""
    call()
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    for _ in range(repetitions):
        call()
    cupy.cuda.Device().synchronize()
    return (time.perf_counter() - start) / repetitions


def motions(dynamics: Dynamics, n: int) -> dict[str, np.ndarray]:
    """States near home, with efforts near those that hold the robot at rest."""
    S, rng = dynamics.kinematics.task.subspace, np.random.default_rng(0)
    poses = poses_around_home(dynamics.kinematics, n)
    rates = {name: rng.normal(size=(n, S.shape[1])) @ S.T for name in ("twist", "acceleration")}
    hold = np.asarray(dynamics.inverse(dynamics.kinematics.home).effort)
    return {"pose": poses, **rates, "effort": hold * rng.uniform(0.5, 1.5, (n, len(hold)))}


def largest_error(dynamics: Dynamics, name: str, rows: dict[str, np.ndarray], found: tuple[np.ndarray, ...]) -> float:
    """Of what the GPU found, over the largest number of each answer of Python's; membership counts as 0 or 1."""
    if name == "inside":
        return float((found[0] != (np.asarray(dynamics.kinematics.inverse(rows["pose"], mode=0).status) == 0)).mean())
    if name == "inverse_dynamics":
        wanted = np.asarray(dynamics.inverse(rows["pose"], rows["twist"], rows["acceleration"]).effort)
        got = found[0]
    else:
        step, wanted = dynamics.lean_step(DT), np.zeros((len(rows["pose"]), 25))
        wanted[:, :7], wanted[:, 7:13] = rows["pose"], rows["twist"]
        for motion, effort in zip(wanted, np.ascontiguousarray(rows["effort"]), strict=True):
            step(motion, effort, np.zeros(6))
        wanted, got = wanted[:, :13], np.concatenate(found[:2], axis=1)
    known = found[-1] == 0
    top = np.abs(wanted[known]).max(axis=1, keepdims=True)
    return float((np.abs(got - wanted)[known] / top).max(initial=0.0))


def figures(cupy: Any, states: int = STATES, repetitions: int = REPETITIONS) -> Iterator[str]:
    """A line for each figure."""
    copied = cupy.empty(states * 24, dtype=np.float64)
    memory = 2.0 * copied.nbytes / seconds(cupy, copied.copy, repetitions)
    yield f"memory: {memory / 1e9:.0f} GB/s, read and written by a copy"
    robots: dict[str, tuple[Dynamics, GpuRobot]] = {}
    for name, function, words in WORK:
        if name not in robots:
            dynamics = Dynamics(load_mechanism(name))
            robots[name] = dynamics, GpuRobot(dynamics, 0, cupy)
        dynamics, robot = robots[name]
        rows = motions(dynamics, states)
        start = time.perf_counter()
        few = {k: v[:COMPARED] for k, v in rows.items()}
        given, more = FUNCTIONS[function][0], [DT] if function == "step" else []
        call = getattr(robot, function)
        found = tuple(cupy.asnumpy(x) for x in call(*(few[k] for k in given), *more))
        first = time.perf_counter() - start
        error = largest_error(dynamics, function, few, found)
        there = [cupy.asarray(rows[k]) for k in given]
        moved = sum(x.nbytes for x in there) + sum(x.nbytes for x in call(*there, *more))
        took = seconds(cupy, lambda call=call, there=there, more=more: call(*there, *more), repetitions)
        yield (
            f"{name} {words}: {states / took:.3g} states/s, {moved / states:.0f} bytes each, "
            f"{100.0 * moved / took / memory:.0f} % of the memory's speed; first answer {first:.1f} s, "
            f"error {error:.1e}"
        )


def figure_of_states(cupy: Any, states: int = STATES, repetitions: int = REPETITIONS) -> str:
    """A line for consistent states of an ankle, which are drawn and stay there."""
    tree = load_model(str(ANKLE))

    def drawn(n: int) -> Any:
        return consistent_states(tree, n, RANGES, gpu=True)

    few = drawn(COMPARED)
    rows = [cupy.asnumpy(x) for x in (few.position, few.velocity, few.acceleration)]
    judged = closed_states(tree, *rows)
    wanted = (judged.position, judged.velocity, judged.acceleration)
    error = max(np.abs(a - b).max() / np.abs(b).max() for a, b in zip(rows, wanted, strict=True))
    took = seconds(cupy, lambda: drawn(states), repetitions)
    return f"ankle, consistent states: {states / took:.3g} states/s, error {error:.1e}"


def main() -> None:
    """Print all figures."""
    try:
        cupy = cupy_with_gpu("times of GPUs")
    except PkmError as error:
        sys.exit(str(error))
    for line in figures(cupy):
        print(line, flush=True)
    print(figure_of_states(cupy))
