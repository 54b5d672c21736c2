# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics: actuator efforts for a platform motion."""

from pkm_dynamics.kernels.wrenches import limb_wrenches, platform_wrench, project
from pkm_kinematics.kernels.compiled import compiled
from pkm_kinematics.kernels.dense import solve_in_place
from pkm_kinematics.kernels.position.positions import CONVERGED, SINGULAR
from pkm_kinematics.kernels.rates.projection import inverse_jacobian
from pkm_kinematics.kernels.rates.solve_motion import solve_motion
from pkm_kinematics.kernels.records import PLATFORM

DETERMINED = 1e-9  # ratio of pivots below which a platform's wrench does not determine the efforts


@compiled
def motion_jacobian(K, subspace, out):
    """out (m, n) = K (m, 6) S (6, n)."""
    for a in range(K.shape[0]):
        for c in range(subspace.shape[1]):
            value = 0.0
            for r in range(6):
                value += K[a, r] * subspace[r, c]
            out[a, c] = value


@compiled
def task_force(platform, subspace, out):
    """out (n,) = S^T (force, torque of the platform)."""
    for c in range(subspace.shape[1]):
        value = 0.0
        for r in range(3):
            value += subspace[r, c] * platform.force[r] + subspace[3 + r, c] * platform.torque[r]
        out[c] = value


@compiled
def distribute(K, A, b, effort):
    """Efforts (m,) with K^T effort = b for K (m, n): unique for m = n, of minimum norm for m > n.

    A (n, n) is scratch, and the first n of b are overwritten. Returns False at a type 2 singularity.
    """
    m, n = K.shape
    if m == n:
        for r in range(n):
            for c in range(n):
                A[r, c] = K[c, r]
        regular = solve_in_place(A, b, n)[0] > DETERMINED
        for r in range(n):
            effort[r] = b[r]
        return regular
    for r in range(n):
        for c in range(n):
            A[r, c] = 0.0
            for a in range(m):
                A[r, c] += K[a, r] * K[a, c]
    if not solve_in_place(A, b, n)[0] > DETERMINED**2:
        return False
    for a in range(m):
        effort[a] = 0.0
        for r in range(n):
            effort[a] += K[a, r] * b[r]
    return True


@compiled
def efforts_here(model, data, external, effort):
    """Efforts for the motion in the state, positions, velocities and accelerations solved before. Returns a status."""
    bodies, subspace, state, system = model.bodies, model.subspace, data.state, data.system
    m, n = effort.shape[0], subspace.shape[1]
    K = system[0, :m, :n]
    A = system[1, :n, :n]
    J = system[2, :m, :6]
    b = system[3, 0]
    inverse_jacobian(model, data, J)
    motion_jacobian(J, subspace, K)
    limb_wrenches(bodies, state)
    platform_wrench(bodies, state, external)
    project(model, data)
    task_force(state[PLATFORM], subspace, b)
    return CONVERGED if distribute(K, A, b, effort) else SINGULAR


@compiled
def inverse_dynamics(model, data, branch, motion, effort):
    """Lean inverse dynamics, inverse kinematics included: efforts (m,) for one platform motion. Returns a status.

    `motion` (25,): pose (7), twist (6), acceleration (6), external wrench (6); finite, with a unit quaternion, inside
    the motion space. `branch` as in `solve_positions`.
    """
    status = solve_motion(model, data, branch, motion)
    if status != CONVERGED:
        return status
    return efforts_here(model, data, motion[19:], effort)
