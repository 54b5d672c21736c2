# SPDX-License-Identifier: Apache-2.0
"""One reading of the actuators turned into the pose, or the motion of the whole robot, in one compiled call.

Readings that are not finite or too large to close loops with are refused, as everywhere else.
"""

import numpy as np

from pkm_kinematics.kernels.compiled import allocating, compiled
from pkm_kinematics.kernels.dense import solve_in_place
from pkm_kinematics.kernels.model_and_data import NEAREST_BRANCH, VECTORS
from pkm_kinematics.kernels.path.follow import follow_pose, read_angles_at, track_pose, usable_positions
from pkm_kinematics.kernels.path.newton import RIGHT, TRIAL, normal_equations
from pkm_kinematics.kernels.position.chain import chain_motion
from pkm_kinematics.kernels.position.positions import CONVERGED, INVALID_INPUT, SINGULAR, closes
from pkm_kinematics.kernels.position.solve_poses import all_finite, solve_pose, take_seed
from pkm_kinematics.kernels.rates.motion import invert_blocks, move_platform, velocities
from pkm_kinematics.kernels.rates.projection import inverse_jacobian
from pkm_kinematics.kernels.rates.solve_motion import NEARLY_SINGULAR

DETERMINED = 1e-12  # ratio of pivots below which the actuators do not determine the platform's twist
CONDITION = 1e10  # of the task Jacobian, about: beyond it encoder noise is all that is left


@compiled
def track_usable(model, data, last, limbs, q, pose):
    """As `track_pose`; INVALID_INPUT where actuated joint positions q (n_actuated,) are not usable."""
    if not usable_positions(model, q):
        return INVALID_INPUT, 0.0, 0
    return track_pose(model, data, last, limbs, q, pose)


@compiled
def write_forward_jacobian(model, data, jacobian):
    """Platform twist per actuated joint rates (6, m), the blocks inverted; False where it is not determined.

    Of actuators that contradict each other, the twist that comes nearest to all.
    """
    subspace, m = model.subspace, jacobian.shape[1]
    K, A, unit, step = data.system[0, :m], data.system[1], data.system[VECTORS, TRIAL], data.system[VECTORS, RIGHT]
    inverse_jacobian(model, data, K)
    largest = 0.0  # of K S, as `normal_equations` gives it for a single actuator
    longest = 0.0  # of the inverse
    for a in range(m):
        for c in range(subspace.shape[1]):
            total = 0.0
            for k in range(6):
                total += K[a, k] * subspace[k, c]
            largest = max(largest, abs(total))
    for a in range(m):
        for c in range(m):
            unit[c] = 1.0 if c == a else 0.0
        n = normal_equations(K, subspace, unit, A, step)
        if not solve_in_place(A, step, n)[0] > DETERMINED:
            return False
        for c in range(n):
            longest = max(longest, abs(step[c]))
        for k in range(6):
            jacobian[k, a] = 0.0
            for c in range(n):
                jacobian[k, a] += subspace[k, c] * step[c]
    return longest * largest < CONDITION


@allocating
def track_reading(model, data, positions, rates, pose, joints, twist, velocities_, jacobian):
    """Move `pose` (7,) and `joints` (n_joints,) along to actuators at `positions`, moving at `rates` (n_actuated,).

    Also writes the platform's twist (6,), the joints' `velocities_` (n_joints,), and the platform's twist per actuated
    joint rates, `jacobian` (6, n_actuated). Returns (status, largest error of an actuated joint); what is written
    counts where the status is CONVERGED or JOINT_LIMIT. For motion spaces that are the same at every pose.
    """
    state = data.state
    if not usable_positions(model, positions):
        return INVALID_INPUT, 0.0
    take_seed(model, data, joints)
    status, error, _ = follow_pose(model, data, positions, pose)
    if status != CONVERGED:
        return status, error
    read_angles_at(model, data, positions)
    status, _, _ = solve_pose(model, data, pose, NEAREST_BRANCH)
    if not closes(status):
        return status, error
    if not invert_blocks(model, data) > NEARLY_SINGULAR:
        return SINGULAR, error
    if not write_forward_jacobian(model, data, jacobian):
        return SINGULAR, error
    for k in range(6):
        twist[k] = 0.0
        for a in range(rates.shape[0]):
            twist[k] += jacobian[k, a] * rates[a]
    move_platform(state, twist, np.zeros(6))
    velocities(model, data)
    if model.chain.shape[0] > 1:
        chain_motion(model, data)
    for i in range(2, state.shape[0]):
        joints[model.bodies[i].column] = state[i].q
        velocities_[model.bodies[i].column] = state[i].qd
    for i in range(1, model.chain.shape[0]):
        joints[model.chain[i].column] = data.chain[i].q
        velocities_[model.chain[i].column] = data.chain[i].qd
    if not (all_finite(twist) and all_finite(velocities_)):  # of actuators faster than any
        return INVALID_INPUT, error
    return status, error
