# SPDX-License-Identifier: Apache-2.0
"""Dynamics of one robot as straight-line code, several times as fast as the kernels that it is recorded from.

Where limbs are iterated, the code takes a fixed number of steps from where they were (`carried_...`). It is recorded at
home and takes motions (25,) as the kernels do; where a motion takes another branch than home (limb out of reach,
singularity) it has no result, calls return ANOTHER_BRANCH, and the kernel is called. Constants of the motion space,
such as a Delta's orientation, are constants of the code; a motion space that turns is found on the way.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from pkm_dynamics.kernels.direct_dynamics import advance, direct_dynamics
from pkm_dynamics.kernels.inverse_dynamics import conditioned_inverse_dynamics
from pkm_dynamics.robot_model import RobotModel
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.model_and_data import Data
from pkm_kinematics.kernels.path.fixed_steps import newton_in_fixed_steps, set_off, settle
from pkm_kinematics.kernels.position.closures import inverse_by_rows
from pkm_kinematics.kernels.position.positions import CONVERGED, solve_newton
from pkm_kinematics.kernels.rates.motion import solve_motion
from pkm_kinematics.kernels.records import CLOSED_FORM
from pkm_kinematics.lean_kinematics import pose_near_home
from pkm_kinematics.recordings_at_home import (
    Instead,
    free_inputs,
    inverse_in_fixed_order,
    joint_inputs,
    joint_results,
    motion_in_turning_space,
    pose_inputs,
    rate_inputs,
)
from pkm_runtime.codegen import AVAILABLE, Recording, Tape, loose, trace
from pkm_runtime.kernels.binding import ANOTHER_BRANCH, call_code
from pkm_runtime.kernels.compiled import allocating, compiled

SOLVED = -2  # status of what the kernels need not look at, having passed over all that is not CONVERGED


@compiled
def straight_inverse(code, results, motion, effort):
    """Efforts (m,) for a motion (25,); `results` (m + 1,) is scratch."""
    status = call_code(code, motion, results)
    if status == CONVERGED:
        for a in range(effort.shape[0]):
            effort[a] = results[a]
    return status


@compiled
def straight_direct(code, motion, effort, out):
    """Platform acceleration (6,) for a motion (25,) and efforts (m,)."""
    return call_code(code, motion, effort, out)


@compiled
def straight_step(code, dt, motion, effort, out):
    """Like `semi_implicit_step`, by the code of `straight_direct`."""
    status = call_code(code, motion, effort, out)
    if status == CONVERGED:
        advance(motion, out, dt)
    return status


@compiled
def carried_straight_inverse(code, model, data, start, results, motion, effort):
    """`straight_inverse` with iterated limbs, from where they are in the data; `start` (2 n,) is scratch too."""
    if not set_off(model, data, motion, start):
        return ANOTHER_BRANCH
    status = call_code(code, motion, start, results)
    if status == CONVERGED:
        for a in range(effort.shape[0]):
            effort[a] = results[a]
        settle(model, data, motion, results[effort.shape[0] + 1 :])
    return status


@compiled
def carried_straight_direct(code, model, data, start, results, motion, effort, out):
    """`straight_direct` with iterated limbs; `results` (6 + 2 n,)."""
    if not set_off(model, data, motion, start):
        return ANOTHER_BRANCH
    status = call_code(code, motion, effort, start, results)
    if status == CONVERGED:
        for k in range(6):
            out[k] = results[k]
        settle(model, data, motion, results[6:])
    return status


@compiled
def carried_straight_step(code, model, data, start, results, dt, motion, effort, out):
    """Like `semi_implicit_step`, by `carried_straight_direct`."""
    status = carried_straight_direct(code, model, data, start, results, motion, effort, out)
    if status == CONVERGED:
        advance(motion, out, dt)
    return status


@allocating
def straight_inverse_many(code, motions, condition, efforts, status):
    """Efforts (k, m) and conditions (k,) for motions (k, 25); status (k,) is SOLVED where the code has a result."""
    m = efforts.shape[1]
    results = np.empty(m + 1)
    for k in range(motions.shape[0]):
        if status[k] == CONVERGED and straight_inverse(code, results, motions[k], efforts[k]) == CONVERGED:
            condition[k] = results[m]
            status[k] = SOLVED


@compiled
def straight_direct_many(code, motions, efforts, out, status):
    """Platform accelerations (k, 6) for motions (k, 25) and efforts (k, m); status as in `straight_inverse_many`."""
    for k in range(motions.shape[0]):
        if status[k] == CONVERGED and call_code(code, motions[k], efforts[k], out[k]) == CONVERGED:
            status[k] = SOLVED


POSE, TWIST, ACCELERATION, WRENCH = 0, 7, 13, 19  # where they begin in a motion (25,)


@cache
def _fixed_steps() -> Instead:
    """What is recorded of limbs in place of iteration, and of orthogonalisation."""
    quick = (inverse_by_rows, inverse_in_fixed_order)
    return (quick, (solve_newton, trace(newton_in_fixed_steps, [quick])))


def _recordable(kinematics: Kinematics, start: Data | None) -> bool:
    """Whether limbs are in closed form, or start somewhere, and the motion space is constant or limbs alone make it."""
    if kinematics.constant_space:
        return kinematics.straight or start is not None
    closed_form = bool((kinematics.tables.blocks["solver"] == CLOSED_FORM).all())
    return AVAILABLE and (closed_form or start is not None) and kinematics.task.subspace.shape[1] == 6


def _instead(kinematics: Kinematics) -> Instead:
    """What is recorded in place of kernels."""
    if kinematics.constant_space:
        return _fixed_steps()
    return (*_fixed_steps(), (solve_motion, motion_in_turning_space(kinematics.mobility, _fixed_steps())))


def record_inverse(robot: RobotModel, mode: int, start: Data | None = None) -> Recording | None:
    """Efforts (n_actuated,) and reciprocal condition of the drives' Jacobian from a motion (25,); None without code.

    With `start`, of robots with iterated limbs: from where these are as well, near home as there, to where they get.
    """
    kinematics = robot.kinematics
    if not _recordable(kinematics, start):
        return None
    tape, S, model = Tape(), kinematics.task.subspace, robot.model()
    motion = [pose_inputs(tape, 0, pose_near_home(kinematics.engine, kinematics.modes.start(mode)), S)]
    motion += [rate_inputs(tape, 0, TWIST, S), rate_inputs(tape, 0, ACCELERATION, S), free_inputs(tape, 0, WRENCH, 6)]
    effort = np.zeros(len(kinematics.actuated_names), dtype=object)
    data = loose(start or kinematics.engine.data())
    limbs = joint_inputs(tape, 1, model, data)
    kernel = trace(conditioned_inverse_dynamics, _instead(kinematics))
    branch = kinematics.modes.branch(mode)
    status, condition = kernel(loose(model), data, branch, np.concatenate(motion), effort)
    results = (*effort, condition, *joint_results(model, limbs))
    return Recording(tape, 2 if limbs else 1, results) if status == CONVERGED else None


def record_direct(robot: RobotModel, mode: int, start: Data | None = None) -> Recording | None:
    """Platform acceleration (6,) from a motion (25,) and efforts (n_actuated,); None without code. `start` as above."""
    kinematics = robot.kinematics
    if not _recordable(kinematics, start):
        return None
    tape, S, model = Tape(), kinematics.task.subspace, robot.model()
    motion = [pose_inputs(tape, 0, pose_near_home(kinematics.engine, kinematics.modes.start(mode)), S)]
    motion += [rate_inputs(tape, 0, TWIST, S), np.zeros(6), free_inputs(tape, 0, WRENCH, 6)]
    effort = free_inputs(tape, 1, 0, len(kinematics.actuated_names))
    out = np.zeros(6, dtype=object)
    data = loose(start or kinematics.engine.data())
    limbs = joint_inputs(tape, 2, model, data)
    kernel = trace(direct_dynamics, _instead(kinematics))
    branch = kinematics.modes.branch(mode)
    status = kernel(loose(model), data, branch, np.concatenate(motion), effort, out)
    results = (*out, *joint_results(model, limbs))
    return Recording(tape, 3 if limbs else 2, results) if status == CONVERGED else None
