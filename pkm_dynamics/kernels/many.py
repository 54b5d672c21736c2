# SPDX-License-Identifier: Apache-2.0
"""Dynamics of many states in one call."""

from math import cos, sin

import numpy as np

from pkm_dynamics.kernels.direct import direct_dynamics
from pkm_dynamics.kernels.inverse import inverse_dynamics
from pkm_kinematics.kernels.compiled import compiled
from pkm_kinematics.kernels.positions import CONVERGED, INVALID_INPUT
from pkm_kinematics.kernels.records import CLOSED_FORM
from pkm_kinematics.kernels.solve import all_finite, check_pose


@compiled
def check_motions(motions, status):
    """Status (k,) of motions (k, 25) as input: finite, with a quaternion of nearly unit length, which is made exact."""
    for k in range(motions.shape[0]):
        status[k] = CONVERGED if all_finite(motions[k]) and check_pose(motions[k], motions[k]) else INVALID_INPUT


@compiled
def seed_joints(bodies, blocks, state, seed, mode):
    """Write joint positions (n_bodies,) into the state: what the solvers start from, and choose the nearest to.

    Only what they look at is written: all joints of blocks solved by iteration, and where no working mode is asked for
    the driven joint of those in closed form.
    """
    for b in range(blocks.shape[0]):
        block = blocks[b]
        start = block.start
        stop = start + block.count
        if block.solver == CLOSED_FORM:
            start = block.driver
            stop = start + 1
            if mode >= 0 or start < 0:
                continue
        for i in range(start, stop):
            state[i].q = seed[i]
            state[i].c = cos(seed[i])
            state[i].s = sin(seed[i])


@compiled
def inverse_dynamics_many(
    bodies, closures, blocks, state, rows, work, system, subspace, mode, friction, motions, seeds, efforts, status
):
    """Efforts (k, m) for motions (k, 25) with status (k,); `seeds` (1 or k, n_bodies) as in `seed_joints`.

    Motions whose status is not CONVERGED before are passed over.
    """
    for k in range(motions.shape[0]):
        if status[k] != CONVERGED:
            continue
        seed_joints(bodies, blocks, state, seeds[k if seeds.shape[0] > 1 else 0], mode)
        status[k] = inverse_dynamics(
            bodies, closures, blocks, state, rows, work, system, subspace, mode, friction, motions[k], efforts[k]
        )
        if status[k] != CONVERGED:
            efforts[k, :] = np.nan


@compiled
def direct_dynamics_many(
    bodies, closures, blocks, state, rows, work, system, subspace, mode, friction, motions, seeds, efforts, out, status
):
    """Platform accelerations (k, 6) for motions (k, 25) and efforts (k, m), else as `inverse_dynamics_many`."""
    for k in range(motions.shape[0]):
        if status[k] != CONVERGED:
            continue
        seed_joints(bodies, blocks, state, seeds[k if seeds.shape[0] > 1 else 0], mode)
        status[k] = direct_dynamics(
            bodies,
            closures,
            blocks,
            state,
            rows,
            work,
            system,
            subspace,
            mode,
            friction,
            motions[k],
            efforts[k],
            out[k],
        )
        if status[k] != CONVERGED:
            out[k, :] = np.nan
