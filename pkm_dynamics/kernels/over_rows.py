# SPDX-License-Identifier: Apache-2.0
"""Dynamics of many states in one call: motions (k, 25), status (k,).

Rows whose status is not CONVERGED, or becomes another, are left as they are: NaN.
"""

import numpy as np

from pkm_dynamics.kernels.platform_dynamics import (
    conditioned_inverse_dynamics,
    direct_dynamics,
    straight_inverse,
    task_force_here,
)
from pkm_dynamics.kernels.wrenches import energy_here
from pkm_kinematics.kernels.compiled_rotations import write_quaternion
from pkm_kinematics.kernels.dense import all_finite
from pkm_kinematics.kernels.model_and_data import SOLVED
from pkm_kinematics.kernels.position.placement import set_angle
from pkm_kinematics.kernels.position.positions import CONVERGED, INVALID_INPUT
from pkm_kinematics.kernels.position.solve_poses import INSIDE, check_pose, place_within
from pkm_kinematics.kernels.rates.motion import solve_motion
from pkm_kinematics.kernels.rates.motion_space import is_off_space
from pkm_kinematics.kernels.records import CLOSED_FORM, PLATFORM
from pkm_kinematics.kernels.vectors import get, put
from pkm_runtime.kernels.binding import call_code
from pkm_runtime.kernels.compiled import allocating, compiled

BY_CODE = -2  # status of rows that straight-line code has answered, which kernels pass over


@compiled
def check_motions(motions, scale, projector, status):
    """Status as input: finite, quaternion nearly unit (then normalised), rates in the space of `projector`."""
    for k in range(motions.shape[0]):
        motion = motions[k]
        status[k] = CONVERGED if all_finite(motion) and check_pose(motion, motion) else INVALID_INPUT
        if status[k] != CONVERGED:
            continue
        for first in (7, 13):
            if is_off_space(motion[first : first + 6], scale, projector, INSIDE):
                status[k] = INVALID_INPUT


@compiled
def move_within(model, data, motions, status):
    """Move poses into the motion space, as `solve_pose`; status INVALID_INPUT where they are farther off."""
    platform = data.state[PLATFORM]
    for k in range(motions.shape[0]):
        if status[k] == CONVERGED:
            if place_within(model, data, motions[k]) != 0.0:
                status[k] = INVALID_INPUT
            elif 1 < model.chain.shape[0] < 7:
                put(motions[k], get(platform.p))
                write_quaternion(platform.R, motions[k, 3:7])


@compiled
def seed_joints(model, data, choice, k):
    """Write those joints of the seed of motion k into the state that a solver reads, to take the branch nearest to it.

    All of blocks solved by iteration; without a working mode, the driven joint of those in closed form; of SOLVED, all.
    """
    bodies, blocks, state = model.bodies, model.blocks, data.state
    seed = choice.seeds[k if choice.seeds.shape[0] > 1 else 0]
    if choice.branch == SOLVED:
        for i in range(2, bodies.shape[0]):
            state[i].q = seed[bodies[i].column]
        return
    for b in range(blocks.shape[0]):
        block = blocks[b]
        start = block.start
        stop = start + block.count
        if block.solver == CLOSED_FORM:
            start = block.driver
            stop = start + 1
            if choice.branch >= 0 or start < 0:
                continue
        for i in range(start, stop):
            set_angle(state, i, seed[bodies[i].column])


@compiled
def inverse_dynamics_many(model, data, choice, motions, condition, efforts, status):
    """Efforts (k, m), and the reciprocal condition (k,) of the drives' Jacobian."""
    for k in range(motions.shape[0]):
        if status[k] != CONVERGED:
            continue
        seed_joints(model, data, choice, k)
        status[k], condition[k] = conditioned_inverse_dynamics(model, data, choice.branch, motions[k], efforts[k])
        if status[k] != CONVERGED:
            efforts[k, :] = np.nan


@compiled
def task_forces_many(model, data, choice, motions, forces, status):
    """Forces (k, n) in the motion space, without the drives."""
    for k in range(motions.shape[0]):
        if status[k] != CONVERGED:
            continue
        seed_joints(model, data, choice, k)
        status[k] = solve_motion(model, data, choice.branch, motions[k])
        if status[k] == CONVERGED:
            task_force_here(model, data, motions[k, 19:], forces[k])


@compiled
def direct_dynamics_many(model, data, choice, motions, efforts, out, status):
    """Platform accelerations (k, 6) for efforts (k, m)."""
    for k in range(motions.shape[0]):
        if status[k] != CONVERGED:
            continue
        seed_joints(model, data, choice, k)
        status[k] = direct_dynamics(model, data, choice.branch, motions[k], efforts[k], out[k])


@compiled
def energy_many(model, data, choice, motions, out, status):
    """Energies and lost power (k, 3) for motions (k, 25)."""
    for k in range(motions.shape[0]):
        if status[k] != CONVERGED:
            continue
        seed_joints(model, data, choice, k)
        status[k] = solve_motion(model, data, choice.branch, motions[k])
        if status[k] == CONVERGED:
            energy_here(model, data.state, out[k])


@allocating
def straight_inverse_many(code, motions, condition, efforts, status):
    """Efforts (k, m) and conditions (k,) for motions (k, 25); status (k,) is BY_CODE where the code has a result."""
    m = efforts.shape[1]
    results = np.empty(m + 1)
    for k in range(motions.shape[0]):
        if status[k] == CONVERGED and straight_inverse(code, results, motions[k], efforts[k]) == CONVERGED:
            condition[k] = results[m]
            status[k] = BY_CODE


@compiled
def straight_direct_many(code, motions, efforts, out, status):
    """Platform accelerations (k, 6) for motions (k, 25) and efforts (k, m); status as in `straight_inverse_many`."""
    for k in range(motions.shape[0]):
        if status[k] == CONVERGED and call_code(code, motions[k], efforts[k], out[k]) == CONVERGED:
            status[k] = BY_CODE
