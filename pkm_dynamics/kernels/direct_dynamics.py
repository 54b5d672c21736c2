# SPDX-License-Identifier: Apache-2.0
"""Direct dynamics: platform acceleration `out` (6,) for actuator efforts `effort` (m,).

    (K^T M K) ud = K_a^T tau + S^T w - K^T h,   acceleration = S ud + bias

with u the platform's velocity in its motion space S, w an external wrench, and h inertia, weight and friction
at ud = 0 (Briot and Khalil: `M_rob Vdot + c = J_inv^T tau`; Müller, section 6.5). `motion` (25,) as in
`inverse_dynamics`, its acceleration being the bias, that of a constant u: zero in a constant motion space.

A simulation in platform coordinates has pose and twist as its state (Müller, section 8.1, task space integration):
inverse kinematics closes the loops at every step `dt` [s], without drift. The motion space must be constant.
"""

from pkm_dynamics.kernels.inverse_dynamics import task_force_here
from pkm_dynamics.kernels.mass_matrix import mass_matrix
from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_kinematics.kernels.dense import solve_positive
from pkm_kinematics.kernels.position.positions import CONVERGED, SINGULAR
from pkm_kinematics.kernels.rates.motion import solve_motion
from pkm_kinematics.kernels.rates.projection import joint_columns
from pkm_runtime.kernels.compiled import compiled


@compiled
def add_actuators(bodies, state, effort, b):
    """b (n,) += K_a^T effort, with K in the columns of the state."""
    for i in range(2, bodies.shape[0]):
        a = bodies[i].actuator
        if a >= 0:
            for c in range(b.shape[0]):
                b[c] += state[i].column[c] * effort[a]


@compiled
def acceleration_here(model, data, external, bias, effort, out):
    """Acceleration at the motion in the state; leaves ud in `system[3, 0]`, K in the columns. Returns a status."""
    bodies, subspace, state, system = model.bodies, model.subspace, data.state, data.system
    n = subspace.shape[1]
    M = system[1, :n, :n]
    b = system[3, 0, :n]
    joint_columns(model, data, system[2])
    task_force_here(model, data, external, b)
    for c in range(n):
        b[c] = -b[c]
    add_actuators(bodies, state, effort, b)
    mass_matrix(bodies, state, subspace, M)
    if not solve_positive(M, b, n):
        return SINGULAR
    for r in range(6):
        out[r] = bias[r]
        for c in range(n):
            out[r] += subspace[r, c] * b[c]
    return CONVERGED


@compiled
def direct_dynamics(model, data, branch, motion, effort, out):
    """Lean direct dynamics, inverse kinematics included. Returns a status."""
    status = solve_motion(model, data, branch, motion)
    if status != CONVERGED:
        return status
    return acceleration_here(model, data, motion[19:], motion[13:], effort, out)


@compiled
def advance(motion, acceleration, dt):
    """Advance pose and twist in `motion` by a semi-implicit Euler step under an acceleration (6,)."""
    for r in range(6):
        motion[7 + r] += dt * acceleration[r]
    shift_pose(motion, motion[7:13], dt, motion)


@compiled
def semi_implicit_step(model, data, branch, dt, motion, effort, out):
    """`advance` under efforts (m,); `out` (6,) gets the acceleration. Returns a status."""
    status = direct_dynamics(model, data, branch, motion, effort, out)
    if status != CONVERGED:
        return status
    advance(motion, out, dt)
    return CONVERGED
