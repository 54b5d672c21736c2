# SPDX-License-Identifier: Apache-2.0
"""One reading of the actuators turned into the motion of the whole robot, in one compiled call."""

from math import atan2

from pkm_kinematics.kernels.chain import chain_motion
from pkm_kinematics.kernels.compiled import allocating
from pkm_kinematics.kernels.dense import solve_in_place
from pkm_kinematics.kernels.follow import follow_pose
from pkm_kinematics.kernels.forward import normal_equations
from pkm_kinematics.kernels.motion import invert_blocks, move_platform, velocities
from pkm_kinematics.kernels.positions import CONVERGED, JOINT_LIMIT, SINGULAR
from pkm_kinematics.kernels.projection import inverse_jacobian
from pkm_kinematics.kernels.records import BASE, PLATFORM
from pkm_kinematics.kernels.solve import solve_pose, take_seed
from pkm_kinematics.kernels.solve_motion import NEARLY_SINGULAR

DETERMINED = 1e-12  # ratio of pivots below which the actuators do not determine the platform's twist


@allocating
def track_reading(
    bodies, closures, blocks, state, rows, work, chain, sliding, spread, tail, tail_point, chain_at,
    body_column, chain_column, subspace, size, trial, K, K0, A, b, step, kept, goal, span, still,
    positions, rates, pose, joints, twist, velocities_,
):  # fmt: skip
    """Move `pose` (7,) and `joints` (n_joints,) along to actuators at `positions`, moving at `rates` (n_actuated,).

    Also writes the platform's twist (6,) and the joints' `velocities_` (n_joints,). Returns (status, largest error of
    an actuated joint); what is written counts where the status is CONVERGED or JOINT_LIMIT. For motion spaces that are
    the same at every pose; scratch as in `follow_pose`, and `still` (6,) of zeros.
    """
    take_seed(state, chain_at, body_column, chain_column, joints)
    status, error, _ = follow_pose(
        bodies, closures, blocks, state, rows, work, subspace, size,
        trial, K, K0, A, b, step, kept, goal, span, positions, pose,
    )  # fmt: skip
    if status != CONVERGED:
        return status, error
    for i in range(2, bodies.shape[0]):
        if bodies[i].actuator >= 0:
            state[i].q = positions[bodies[i].actuator]
        elif bodies[i].prismatic == 0:
            state[i].q = atan2(state[i].s, state[i].c)
    status, _, _ = solve_pose(
        bodies, closures, blocks, state, rows, work, chain, sliding, spread, tail, tail_point, chain_at, pose, -1
    )
    if status not in (CONVERGED, JOINT_LIMIT):
        return status, error
    if not invert_blocks(bodies, closures, blocks, state, rows, work) > NEARLY_SINGULAR:
        return SINGULAR, error
    inverse_jacobian(bodies, closures, blocks, state, rows, work, K)
    n = normal_equations(K, subspace, rates, A, step)
    if not solve_in_place(A, step, n) > DETERMINED:
        return SINGULAR, error
    for k in range(6):
        twist[k] = 0.0
        for c in range(n):
            twist[k] += subspace[k, c] * step[c]
    move_platform(state, twist, still)
    velocities(bodies, closures, blocks, state, rows, work)
    for i in range(2, bodies.shape[0]):
        joints[body_column[i]] = state[i].q
        velocities_[body_column[i]] = state[i].qd
    if chain.shape[0] > 1:
        chain_motion(chain, chain_at, state[PLATFORM], state[BASE].dv)
        for i in range(1, chain.shape[0]):
            joints[chain_column[i]] = chain_at[i].q
            velocities_[chain_column[i]] = chain_at[i].qd
    return status, error
