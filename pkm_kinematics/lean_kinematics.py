# SPDX-License-Identifier: Apache-2.0
"""Kinematics with arrays in and arrays out, unchecked, for time-critical loops: see `Kinematics.lean_inverse`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.forward.graph_tracker import GraphTracker
from pkm_kinematics.kernels.model_and_data import Data
from pkm_kinematics.kernels.path.carry_on import inverse_carried
from pkm_kinematics.kernels.path.distances import forward_translation
from pkm_kinematics.kernels.path.newton import RESULTS
from pkm_kinematics.kernels.path.track_reading import track_usable
from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.solve_poses import inverse_direct, inverse_whole
from pkm_kinematics.recordings_at_home import NEAR, near_home, record_newton_step, some_numbers, straight_track
from pkm_kinematics.solve.engine import Engine
from pkm_kinematics.solve.working_modes import WorkingModes
from pkm_kinematics.status import Status, closes
from pkm_runtime.codegen import MachineCode
from pkm_runtime.errors import PkmError
from pkm_runtime.kernels.binding import bind, with_fallback


def lean_inverse(modes: WorkingModes, mode: int, joints: Array | None) -> Callable[[Array, Array], int]:
    """See `Kinematics.lean_inverse`."""
    e, branch = modes.engine, modes.branch(mode)
    data = e.data(modes.start(mode) if joints is None else joints)
    if not e.direct_inverse:
        return lean_positions(modes, data, mode)
    return bind(inverse_direct, (e.model, data, branch), _example(e))


def lean_positions(modes: WorkingModes, data: Data, mode: int) -> Callable[[Array, Array], int]:
    """See `Kinematics.lean_positions`."""
    e = modes.engine
    return bind(inverse_carried if e.iterated else inverse_whole, (e.model, data, modes.branch(mode)), _example(e))


def _example(engine: Engine) -> tuple[Array, Array]:
    return engine.home.copy(), np.zeros(len(engine.actuated_names))


def lean_track(e: Engine, start: Array, *, straight: bool) -> Callable[[Array, Array], tuple[int, float, int]]:
    """See `Kinematics.lean_track`; the first call starts at home with joints `start`."""
    if not e.constant_space:
        return _track_graph(e, start)
    home = start[e.actuated_column]
    last, example = home.copy(), (home.copy(), e.home.copy())
    general = bind(track_usable, (e.model, e.data(start), last, np.empty((len(e.model.bodies), 3))), example)
    recording = record_newton_step(e.model, e.data(start), e.home, home) if straight else None
    if recording is None:
        return general
    code = MachineCode(recording)
    scratch, farthest = (np.empty(7), np.empty(RESULTS)), e.inputs.farthest(e.actuated_turning)
    fixed = (code.address, e.characteristic_length, *scratch, last, farthest)
    return with_fallback(bind(straight_track, fixed, example), general, code)


def _track_graph(e: Engine, start: Array) -> Callable[[Array, Array], tuple[int, float, int]]:
    if not GraphTracker.serves(e):
        raise PkmError("lean_track needs an actuator per degree of freedom where the motion space depends on the pose")
    tracker, rest = GraphTracker(e), np.zeros(len(e.actuated_names))
    tracker.place(e.home, start)

    def call(q: Array, pose: Array) -> tuple[int, float, int]:
        status, gap, iterations, motion = tracker.observe(q, rest)
        if not closes(status):
            return int(status), gap, iterations
        pose[:] = motion.pose
        return int(Status.CONVERGED), gap, iterations

    return call


def pose_near_home(e: Engine, joints: Array) -> Array:
    """A pose (7,) near home in the motion space, where the actuators go if it turns; `joints` (n_joints,) at home."""
    if e.constant_space:
        return near_home(e.home, e.model.subspace, e.size)
    pose, unit = e.home.copy(), np.where(e.actuated_turning, 1.0, e.size)
    _track_graph(e, joints)(joints[e.actuated_column] + NEAR * unit * some_numbers(len(unit)), pose)
    return pose


def lean_forward(e: Engine) -> Callable[[Array, Array], int]:
    """See `Kinematics.lean_forward`."""
    data = e.data()
    place_platform(data.state, e.home)
    fixed = e.model, data, np.zeros((3, 3)), np.zeros((3, 3)), np.zeros(3)
    return bind(forward_translation, fixed, (e.home_joints[e.actuated_column], np.zeros((2, 3))))
