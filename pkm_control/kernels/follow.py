# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics with its Jacobian in one call, for control periods."""

from pkm_kinematics.kernels.closed_form import read_angles
from pkm_kinematics.kernels.compiled import compiled
from pkm_kinematics.kernels.forward import forward_newton
from pkm_kinematics.kernels.motion import invert_blocks
from pkm_kinematics.kernels.positions import CONVERGED, SINGULAR
from pkm_kinematics.kernels.projection import inverse_jacobian

REGULAR = 1e-12  # of the limbs' pseudo-inverses: below it, a type 1 singularity


@compiled
def follow(bodies, closures, blocks, state, rows, work, subspace, q, pose, trial, K, A, b, twist, joints):
    """Move `pose` (7,) to the nearest one whose actuators stand at q (m,); returns a status.

    Afterwards K (m, 6) is the inverse Jacobian there, and `joints` (n_bodies,) the joint positions of all bodies.
    `trial` (7,), A, b and `twist` are scratch as in `forward_newton`.
    """
    status, _, _ = forward_newton(bodies, closures, blocks, state, rows, work, subspace, trial, K, A, b, twist, q, pose)
    if status != CONVERGED:
        return status
    if not invert_blocks(bodies, closures, blocks, state, rows, work) > REGULAR:
        return SINGULAR
    inverse_jacobian(bodies, closures, blocks, state, rows, work, K)
    read_angles(bodies, state, 2, bodies.shape[0])
    for i in range(2, bodies.shape[0]):
        joints[i] = state[i].q
    return CONVERGED
