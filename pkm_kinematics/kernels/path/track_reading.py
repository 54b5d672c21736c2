# SPDX-License-Identifier: Apache-2.0
"""One reading of the actuators turned into the pose, or the motion of the whole robot, in one compiled call."""

import numpy as np

from pkm_kinematics.kernels.dense import all_finite, multiply
from pkm_kinematics.kernels.model_and_data import FACTORS, NEAREST_BRANCH, VECTORS
from pkm_kinematics.kernels.path.follow import RIGHT, TWIST, follow_pose, read_angles_at, track_pose, usable_positions
from pkm_kinematics.kernels.position.chain import chain_motion
from pkm_kinematics.kernels.position.positions import CONVERGED, INVALID_INPUT, SINGULAR, closes
from pkm_kinematics.kernels.position.solve_poses import read_joints, solve_pose, take_seed
from pkm_kinematics.kernels.rates.motion import invert_blocks, move_platform, velocities
from pkm_kinematics.kernels.rates.projection import factorise_drives, inverse_jacobian
from pkm_kinematics.kernels.regularity import is_regular, nearest, weigh_drives
from pkm_runtime.kernels.compiled import allocating, compiled


@compiled
def track_usable(model, data, last, q, pose):
    """As `track_pose`; INVALID_INPUT where q (n_actuated,) is not finite or too large to close loops with."""
    if not usable_positions(model, q):
        return INVALID_INPUT, np.nan, 0
    return track_pose(model, data, last, q, pose)


@compiled
def write_forward_jacobian(model, data, jacobian):
    """Platform twist per actuated joint rates (6, m), nearest to all redundant ones; False where not determined."""
    subspace, m, vectors = model.subspace, jacobian.shape[1], data.system[VECTORS]
    n = subspace.shape[1]
    J, K, inverse = data.system[0, :m], data.system[1, :m, :n], data.system[2, :n, :n]
    unit, rates, weights, per_speed = vectors[RIGHT], vectors[TWIST], data.system[FACTORS, 0], data.system[FACTORS, 1]
    inverse_jacobian(model, data, J)
    if not is_regular(factorise_drives(model, J, K, inverse, weights, per_speed)):
        return False
    for a in range(m):
        for c in range(m):
            unit[c] = 1.0 if c == a else 0.0
        weigh_drives(model, m == n, unit)
        nearest(K, m, n, inverse, weights, unit, rates)
        for c in range(n):
            rates[c] *= per_speed[c]
        multiply(subspace, rates, jacobian[:, a])
    return True


@allocating
def track_reading(model, data, positions, rates, pose, joints, twist, velocities_, jacobian):
    """Move `pose` (7,) and `joints` (n_joints,) to actuators at `positions`, `rates` (n_actuated,): (status, error).

    Writes the platform's twist (6,), the joints' `velocities_` (n_joints,) and `jacobian` (6, n_actuated), which count
    where CONVERGED or JOINT_LIMIT. For constant motion spaces.
    """
    state = data.state
    if not usable_positions(model, positions):
        return INVALID_INPUT, np.nan
    take_seed(model, data, joints)
    status, error, _ = follow_pose(model, data, positions, pose)
    if status != CONVERGED:
        return status, error
    read_angles_at(model, data, positions)
    status, _, _ = solve_pose(model, data, pose, NEAREST_BRANCH)
    if not closes(status):
        return status, error
    if not is_regular(invert_blocks(model, data)):
        return SINGULAR, error
    if not write_forward_jacobian(model, data, jacobian):
        return SINGULAR, error
    multiply(jacobian, rates, twist)
    move_platform(state, twist, np.zeros(6))
    velocities(model, data)
    if model.chain.shape[0] > 1:
        chain_motion(model, data)
    read_joints(model, data, joints)
    for i in range(2, state.shape[0]):
        velocities_[model.bodies[i].column] = state[i].qd
    for i in range(1, model.chain.shape[0]):
        velocities_[model.chain[i].column] = data.chain[i].qd
    if not (all_finite(twist) and all_finite(velocities_)):  # of actuators faster than any
        return INVALID_INPUT, error
    return status, error
