# SPDX-License-Identifier: Apache-2.0
"""Kinematics with arrays in and arrays out, unchecked, for time-critical loops: see `Kinematics.lean_inverse`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.codegen.newton_recording import record_newton_step
from pkm_kinematics.codegen.track_code import straight_track
from pkm_kinematics.forward.graph_tracker import GraphTracker
from pkm_kinematics.kernels.model_and_data import Data
from pkm_kinematics.kernels.path.carry_on import inverse_carried
from pkm_kinematics.kernels.path.distances import forward_translation
from pkm_kinematics.kernels.path.newton import RESULTS
from pkm_kinematics.kernels.path.track_reading import track_usable
from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.solve_poses import inverse_direct, inverse_whole
from pkm_kinematics.status import Status, closes
from pkm_runtime.codegen import MachineCode
from pkm_runtime.errors import PkmError
from pkm_runtime.kernels.binding import bind, with_fallback

if TYPE_CHECKING:
    from pkm_kinematics.kinematics import Kinematics


def lean_inverse(kinematics: Kinematics, mode: int, joints: Array | None) -> Callable[[Array, Array], int]:
    """See `Kinematics.lean_inverse`."""
    e, modes = kinematics.engine, kinematics.modes
    branch = modes.branch(mode)
    data = e.data(modes.start(mode) if joints is None else joints)
    if not e.direct_inverse:
        return lean_positions(kinematics, data, mode)
    return bind(inverse_direct, (e.model, data, branch), _example(kinematics))


def lean_positions(kinematics: Kinematics, data: Data, mode: int) -> Callable[[Array, Array], int]:
    """See `Kinematics.lean_positions`."""
    kernel = inverse_carried if kinematics.engine.iterated else inverse_whole
    return bind(kernel, (kinematics.engine.model, data, kinematics.modes.branch(mode)), _example(kinematics))


def _example(kinematics: Kinematics) -> tuple[Array, Array]:
    return kinematics.home.copy(), np.zeros(len(kinematics.actuated_names))


def lean_track(kinematics: Kinematics, mode: int) -> Callable[[Array, Array], tuple[int, float, int]]:
    """See `Kinematics.lean_track`."""
    kinematics.modes.branch(mode)  # None is a mode to `inverse`, and none to start in
    e = kinematics.engine
    start = np.array(kinematics.inverse(e.home, mode=mode).joints)
    if not e.constant_space:
        return _track_graph(kinematics, start)
    home = start[e.actuated_column]
    last, example = home.copy(), (home.copy(), e.home.copy())
    general = bind(track_usable, (e.model, e.data(start), last, np.empty((len(e.model.bodies), 3))), example)
    recording = record_newton_step(e.model, e.data(start), e.home, home) if kinematics.straight else None
    if recording is None:
        return general
    code = MachineCode(recording)
    scratch, farthest = (np.empty(7), np.empty(RESULTS)), e.inputs.farthest(e.actuated_turning)
    fixed = (code.address, e.characteristic_length, *scratch, last, farthest)
    return with_fallback(bind(straight_track, fixed, example), general, code)


def _track_graph(kinematics: Kinematics, start: Array) -> Callable[[Array, Array], tuple[int, float, int]]:
    if not GraphTracker.serves(kinematics.engine):
        raise PkmError("lean_track needs an actuator per degree of freedom where the motion space depends on the pose")
    tracker, rest = GraphTracker(kinematics.engine), np.zeros(len(kinematics.actuated_names))
    tracker.place(kinematics.home, start)

    def call(q: Array, pose: Array) -> tuple[int, float, int]:
        status, gap, iterations, motion = tracker.observe(q, rest)
        if not closes(status):
            return int(status), gap, iterations
        pose[:] = motion.pose
        return int(Status.CONVERGED), gap, iterations

    return call


def lean_forward(kinematics: Kinematics) -> Callable[[Array, Array], int]:
    """See `Kinematics.lean_forward`."""
    if kinematics.assembly_method != "spheres" or len(kinematics.actuated_names) != 3:
        raise PkmError("lean_forward needs a translational platform on three distances")
    e = kinematics.engine
    data = e.data()
    place_platform(data.state, e.home)
    fixed = e.model, data, np.zeros((3, 3)), np.zeros((3, 3)), np.zeros(3)
    return bind(forward_translation, fixed, (e.home_joints[e.actuated_column], np.zeros((2, 3))))
