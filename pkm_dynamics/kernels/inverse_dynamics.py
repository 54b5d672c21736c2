# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics: actuator efforts `effort` (m,) for a platform motion.

`motion` (25,): pose (7), twist (6), acceleration (6), external wrench (6), base axes; finite, with a unit quaternion,
inside the motion space. `branch` as in `solve_positions`.
"""

from pkm_dynamics.kernels.mass_matrix import project_platform
from pkm_dynamics.kernels.spring_forces import add_springs
from pkm_dynamics.kernels.wrenches import limb_wrenches, platform_wrench, project
from pkm_kinematics.kernels.position.positions import CONVERGED, SINGULAR
from pkm_kinematics.kernels.rates.motion import solve_motion
from pkm_kinematics.kernels.rates.projection import drive_rates, inverse_jacobian
from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.kernels.regularity import factorise, is_regular, least_norm, make_uniform, solve_three, weigh_drives
from pkm_kinematics.kernels.vectors import get
from pkm_runtime.kernels.compiled import compiled


@compiled
def distribute(model, K, inverse, weights, b, effort):
    """Efforts with K^T effort = b for K (m, n): unique for m = n, of minimum norm for m > n.

    Returns the reciprocal condition of K; if not regular (type 2 singularity), the efforts are unchanged. K and b are
    overwritten; `inverse` (n, n) and `weights` (n,) are scratch.
    """
    m, n = K.shape
    make_uniform(model, K, b)
    condition = solve_three(K, b, effort) if m == 3 and n == 3 else 0.0
    if not is_regular(condition):
        condition = factorise(K, m, n, inverse, weights)
        if is_regular(condition):
            least_norm(K, m, n, inverse, weights, b, effort)
    if is_regular(condition):
        weigh_drives(model, m == n, effort)
    return condition


@compiled
def task_force_here(model, data, external, out):
    """Force `out` (n,) in the motion space that makes the motion in the state, whatever the drives."""
    limb_wrenches(model.bodies, data.state)
    platform_wrench(model.bodies, data.state, external)
    add_springs(model, data.state)
    project(model, data)
    platform = data.state[PLATFORM]
    project_platform(model.subspace, get(platform.force), get(platform.torque), out)


@compiled
def efforts_here(model, data, external, effort):
    """Efforts for the solved motion in the state. Returns a status and the reciprocal condition of the drives."""
    subspace, system = model.subspace, data.system
    m, n = effort.shape[0], subspace.shape[1]
    K = system[0, :m, :n]
    J = system[2, :m, :6]
    b = system[3, 0]
    inverse_jacobian(model, data, J)
    drive_rates(J, subspace, K)
    task_force_here(model, data, external, b)
    condition = distribute(model, K, system[1, :n, :n], system[3, 1], b, effort)
    return (CONVERGED if is_regular(condition) else SINGULAR), condition


@compiled
def conditioned_inverse_dynamics(model, data, branch, motion, effort):
    """`inverse_dynamics` that also returns the reciprocal condition of the drives' Jacobian, 0 without a solution."""
    status = solve_motion(model, data, branch, motion)
    if status != CONVERGED:
        return status, 0.0
    return efforts_here(model, data, motion[19:], effort)


@compiled
def inverse_dynamics(model, data, branch, motion, effort):
    """Lean inverse dynamics, inverse kinematics included. Returns a status."""
    status, _ = conditioned_inverse_dynamics(model, data, branch, motion, effort)
    return status
