# SPDX-License-Identifier: Apache-2.0
"""Kinematics with arrays in and arrays out, unchecked, for time-critical loops: see `Kinematics.lean_inverse`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.forward.graph_tracker import GraphTracker
from pkm_kinematics.kernels.model_and_data import Data, near
from pkm_kinematics.kernels.path.assembled import forward_translation
from pkm_kinematics.kernels.path.carry_on import inverse_carried
from pkm_kinematics.kernels.path.fixed_steps import (
    SQUARE,
    Limbs,
    inverse_in_steps,
    read_iterated,
    settle,
)
from pkm_kinematics.kernels.path.track_reading import track_usable
from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.positions import CONVERGED
from pkm_kinematics.kernels.position.solve_poses import inverse_direct, inverse_whole, take_seed
from pkm_kinematics.kernels.records import NEWTON
from pkm_kinematics.recorded_tracking import Tracked, record_step, straight_track, tracked
from pkm_kinematics.recordings_at_home import (
    NEAR,
    TwoSteps,
    drive_results,
    joint_inputs,
    joint_results,
    near_home,
    pose_inputs,
    some_numbers,
)
from pkm_kinematics.solve.engine import Engine
from pkm_kinematics.solve.working_modes import WorkingModes
from pkm_kinematics.status import Status, closes
from pkm_runtime.codegen import AVAILABLE, MachineCode, Recording, Tape, loose, trace
from pkm_runtime.errors import PkmError
from pkm_runtime.kernels.binding import ANOTHER_BRANCH, bind, with_fallback


def lean_inverse(
    modes: WorkingModes, mode: int, joints: Array | None, pose: Array | None
) -> Callable[[Array, Array], int]:
    """See `Kinematics.lean_inverse`."""
    e, branch = modes.engine, modes.branch(mode)
    data = e.data(modes.start(mode) if joints is None else joints, pose)
    if e.direct_inverse:
        return bind(inverse_direct, (e.model, data, branch), _example(e))
    general = lean_positions(modes, data, mode)
    made = fixed_step_code(e, modes.straight, mode, lambda: _record_inverse(modes, mode))
    if made is None:
        return general
    code, start, end = made
    limbs = _limbs(e, start, end)
    read_iterated(e.model, data, limbs.last)
    limbs.angles[:] = data.state["q"][limbs.drives[:, 1]]
    found = bind(inverse_in_steps, (code.address, e.model, data, limbs, branch), _example(e))
    vars(found)["code"] = code  # kept alive
    return found


def _limbs(e: Engine, start: Array, end: Array) -> Limbs:
    # as the results of `_record_inverse` are laid out
    model, n = e.model, len(start) // 2
    iterated = [i for b in model.blocks if b["solver"] == NEWTON for i in range(b["start"], b["start"] + b["count"])]
    driven = [i for i in range(2, len(model.bodies)) if model.bodies["actuator"][i] >= 0]
    places = {i: 2 * k for k, i in enumerate(iterated + [i for i in driven if i not in iterated])}
    turning = model.bodies["prismatic"] == 0
    drives = np.zeros((len(driven), 3), dtype=np.int64)
    for i in driven:
        drives[model.bodies["actuator"][i]] = places[i], i, turning[i]
    changes = np.zeros(n), turning[iterated].astype(np.int64)
    return Limbs(start.copy(), start, end, np.zeros(SQUARE + 1), *changes, drives, np.zeros(len(driven)))


def fixed_step_code(
    e: Engine, made: dict[Any, tuple[MachineCode, int] | None], key: Any, record: Callable[[], Recording | None]
) -> tuple[MachineCode, Array, Array] | None:
    """Straight-line code with iterated limbs, from `made` or a recording, and room for their start and its results."""
    if AVAILABLE and key not in made:
        recording = record()
        made[key] = None if recording is None else (MachineCode(recording), len(recording.results))
    found, blocks = made.get(key), e.tables.blocks
    if found is None:
        return None
    return found[0], np.empty(2 * int(blocks["count"][blocks["solver"] == NEWTON].sum())), np.empty(found[1])


def _record_inverse(modes: WorkingModes, mode: int) -> Recording | None:
    # Where iterated limbs, and drives of others, end from a pose, and from where they start; None without code.
    e = modes.engine
    if not e.iterated:
        return None
    tape, start = Tape(), modes.start(mode)
    data = loose(e.data(start))
    pose = pose_inputs(tape, 0, pose_near_home(e, start), e.model.subspace)
    limbs = joint_inputs(tape, 1, e.model, data)
    drives = np.zeros(len(e.actuated_names), dtype=object)
    steps = TwoSteps(e.tables, e.home)
    kernel = trace(inverse_whole, steps.instead)
    if kernel(loose(e.model), data, modes.branch(mode), pose, drives) != CONVERGED:
        return None
    return Recording(tape, 2, (*joint_results(e.model, limbs), *drive_results(e.model, data), steps.moved, steps.gap))


def lean_positions(modes: WorkingModes, data: Data, mode: int) -> Callable[[Array, Array], int]:
    """See `Kinematics.lean_positions`."""
    e = modes.engine
    return bind(inverse_carried if e.iterated else inverse_whole, (e.model, data, modes.branch(mode)), _example(e))


def _example(engine: Engine) -> tuple[Array, Array]:
    return engine.home.copy(), np.zeros(len(engine.actuated_names))


def lean_track(e: Engine, start: Array, *, straight: bool) -> Callable[[Array, Array], tuple[int, float, int]]:
    """See `Kinematics.lean_track`; the first call starts at home with joints `start`."""
    last, data, example = start[e.actuated_column].copy(), e.data(start), (start[e.actuated_column], e.home.copy())
    graph = None if e.constant_space and not e.redundant_names else _Graph(e, start)
    general = graph or bind(track_usable, (e.model, data, last), example)
    recording = record_step(e, start, pose_near_home(e, start)) if straight else None
    if recording is None:
        return general
    code = MachineCode(recording)
    robot = tracked(e, recording, last)
    read_iterated(e.model, data, robot.limbs)
    quick = bind(straight_track, (code.address, e.characteristic_length, robot), example)
    if graph is not None:
        return graph.behind(quick, code, data, robot)
    return with_fallback(quick, _behind_steps(e, general, data, robot.limbs) if e.iterated else general, code)


def _behind_steps(
    e: Engine, general: Callable[[Array, Array], Any], data: Data, limbs: Array
) -> Callable[[Array, Array], Any]:
    """A general call on `data` whose limbs begin, and end, at `limbs`, see `read_iterated`."""

    def call(q: Array, pose: Array) -> Any:
        settle(e.model, data, pose, limbs)
        found = general(q, pose)
        read_iterated(e.model, data, limbs)
        return found

    return call


class _Graph:
    """`lean_track` on the whole graph, which keeps the configuration."""

    def __init__(self, e: Engine, start: Array) -> None:
        if not GraphTracker.serves(e):
            raise PkmError(
                "lean_track needs an actuator per degree of freedom where the motion space depends on the pose"
            )
        self.e, self.tracker, self.rest = e, GraphTracker(e), np.zeros(len(e.actuated_names))
        self.joints = start.copy()
        self.tracker.place(e.home, start)

    def __call__(self, q: Array, pose: Array) -> tuple[int, float, int]:
        """Track a reading q (n_actuated,) into `pose` (7,)."""
        status, gap, iterations, motion = self.tracker.observe(q, self.rest)
        if not closes(status):
            return int(status), gap, iterations
        pose[:] = motion.pose
        self.joints[:] = motion.joints
        return int(Status.CONVERGED), gap, iterations

    def behind(
        self, quick: Callable[[Array, Array], Any], code: MachineCode, data: Data, robot: Tracked
    ) -> Callable[[Array, Array], tuple[int, float, int]]:
        """A call of straight-line code of a robot, and of this where it has no result."""
        e, here, placed = self.e, self.e.home.copy(), [True]

        def call(q: Array, pose: Array, _kept: object = code) -> tuple[int, float, int]:
            found: tuple[int, float, int] = quick(q, here)
            if found[0] != ANOTHER_BRANCH:
                placed[0] = False
                pose[:] = here
                return found
            if not placed[0]:  # the graph is where it was at the last call of its own
                settle(e.model, data, here, robot.limbs)
                for i in range(2, len(data.state)):
                    self.joints[e.model.bodies[i]["column"]] = data.state["q"][i]
                self.joints[e.actuated_column] = robot.last
                solved = e.positions.solve(here[None], near(self.joints, 1))
                if not closes(solved.status[0]):
                    return int(solved.status[0]), float(solved.residual[0]), 0
                self.tracker.place(here, solved.q[0])
                placed[0] = True
            found = self(q, pose)
            if found[0] == Status.CONVERGED:
                here[:], robot.last[:] = pose, q
                take_seed(e.model, data, self.joints)
                read_iterated(e.model, data, robot.limbs)
            return found

        return call


def pose_near_home(e: Engine, joints: Array) -> Array:
    """A pose (7,) near home in the motion space, where the actuators go if it turns; `joints` (n_joints,) at home."""
    if e.constant_space:
        return near_home(e.home, e.model.subspace, e.size)
    pose, unit = e.home.copy(), np.where(e.actuated_turning, 1.0, e.size)
    _Graph(e, joints)(joints[e.actuated_column] + NEAR * unit * some_numbers(len(unit)), pose)
    return pose


def lean_forward(e: Engine) -> Callable[[Array, Array], int]:
    """See `Kinematics.lean_forward`."""
    data = e.data()
    place_platform(data.state, e.home)
    fixed = e.model, data, np.zeros((3, 3)), np.zeros((3, 3)), np.zeros(3)
    return bind(forward_translation, fixed, (e.home_joints[e.actuated_column], np.zeros((2, 3))))
