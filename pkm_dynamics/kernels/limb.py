# SPDX-License-Identifier: Apache-2.0
"""The share of one limb, and of the platform, in the equations of motion of the robot."""

from pkm_dynamics.kernels.inverse import distribute, task_force, task_jacobian
from pkm_dynamics.kernels.wrenches import limb_wrenches, platform_wrench, project
from pkm_kinematics.kernels.compiled import compiled
from pkm_kinematics.kernels.motion import move_platform
from pkm_kinematics.kernels.placement import place_platform
from pkm_kinematics.kernels.positions import CONVERGED, SINGULAR
from pkm_kinematics.kernels.projection import clear_wrench, inverse_jacobian
from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.kernels.solve_motion import solve_motion


@compiled
def put_wrench(platform, out):
    """out (6,) = force, torque of the platform."""
    for r in range(3):
        out[r] = platform.force[r]
        out[3 + r] = platform.torque[r]


@compiled
def limb_share(bodies, closures, blocks, state, rows, work, mode, friction, motion, jacobian, out):
    """Wrench `out` (6,) on the platform that moves one limb, alone in the tables, and its rows of the inverse Jacobian.

    `motion` (19,) or longer, as in `solve_motion`; `jacobian` (n_actuated, 6) is written at the limb's own actuators.
    Returns a status.
    """
    status = solve_motion(bodies, closures, blocks, state, rows, work, mode, motion)
    if status != CONVERGED:
        return status
    inverse_jacobian(bodies, closures, blocks, state, rows, work, jacobian)
    limb_wrenches(bodies, state, friction)
    clear_wrench(state[PLATFORM])
    project(bodies, closures, blocks, state, rows, work)
    put_wrench(state[PLATFORM], out)
    return CONVERGED


@compiled
def efforts_from_shares(bodies, state, system, subspace, motion, jacobian, shares, wrench, effort):
    """Efforts (m,) from the shares (k, 6) of all limbs: the platform's own is added, and all are projected at once.

    `bodies` and `state` need hold no more than base and platform; `wrench` (6,) gets the sum. Returns a status.
    """
    m, n = effort.shape[0], subspace.shape[1]
    platform = state[PLATFORM]
    place_platform(state, motion)
    move_platform(state, motion[7:], motion[13:])
    platform_wrench(bodies, state, motion[19:])
    for k in range(shares.shape[0]):
        for r in range(3):
            platform.force[r] += shares[k, r]
            platform.torque[r] += shares[k, 3 + r]
    put_wrench(platform, wrench)
    K = system[0, :m, :n]
    b = system[3, 0]
    task_jacobian(jacobian, subspace, K)
    task_force(platform, subspace, b)
    return CONVERGED if distribute(K, system[1, :n, :n], b, effort) else SINGULAR
