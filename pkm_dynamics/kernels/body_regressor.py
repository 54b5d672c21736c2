# SPDX-License-Identifier: Apache-2.0
"""The linear form: contribution of each unknown parameter to the actuator efforts.

    K_a^T tau = K^T Y(q, qd, qdd) p

Y (n, n_parameters) is built body by body (Codourey and Burdet, "A body-oriented method for finding a linear form of the
dynamic equation of fully parallel robots", ICRA 1997, equations 28 and 34: `J_A^T Omega_i`), about the body's origin in
base axes; J_A is the body's share of K. Parameters of a body are its mass, first moments and inertias about its origin,
in the axes of its link. `form` is a `LinearForm`; `motion` (25,) and `branch` as in `inverse_dynamics`.
"""

from math import tanh
from typing import Any, NamedTuple

import numpy as np

from pkm_dynamics.kernels.mass_matrix import project_platform
from pkm_dynamics.kernels.over_rows import seed_joints
from pkm_dynamics.kernels.wrenches import COULOMB_SPEED
from pkm_kinematics.kernels.position.positions import CONVERGED, SINGULAR
from pkm_kinematics.kernels.rates.motion import solve_motion
from pkm_kinematics.kernels.rates.projection import factorise_drives, inverse_jacobian, joint_columns
from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.kernels.regularity import is_regular, least_norm, weigh_drives
from pkm_kinematics.kernels.vectors import add, cross, dot, get, rotate, scale, sub
from pkm_runtime.kernels.compiled import compiled

NOTHING = (0.0, 0.0, 0.0)


class LinearForm(NamedTuple):
    """Layout of the parameters, and scratch."""

    layout: Any  # (n_bodies, 4) first column of a body's inertial parameters, then those of its joint's armature,
    # viscous and Coulomb friction; -1 where there is none
    axes: Any  # (n_bodies, 3, 3) link axes in the body frame
    jacobians: Any  # (n_bodies, 6, n) scratch
    Y: Any  # (n, n_parameters) scratch
    share: Any  # (m, n) scratch


@compiled
def body_jacobians(bodies, state, subspace, jacobians):
    """Twist of every body (n_bodies, 6, n) per velocity in the motion space: linear at its origin, then angular."""
    n = subspace.shape[1]
    for c in range(n):
        for r in range(6):
            jacobians[0, r, c] = 0.0
            jacobians[PLATFORM, r, c] = subspace[r, c]
    for i in range(2, bodies.shape[0]):
        me = state[i]
        parent = bodies[i].parent
        arm = sub(get(me.p), get(state[parent].p))
        for c in range(n):
            v = (jacobians[parent, 0, c], jacobians[parent, 1, c], jacobians[parent, 2, c])
            w = (jacobians[parent, 3, c], jacobians[parent, 4, c], jacobians[parent, 5, c])
            v = add(v, cross(w, arm))
            step = scale(me.column[c], (me.R[0, 2], me.R[1, 2], me.R[2, 2]))
            if bodies[i].prismatic == 1:
                v = add(v, step)
            else:
                w = add(w, step)
            for r in range(3):
                jacobians[i, r, c] = v[r]
                jacobians[i, 3 + r, c] = w[r]


@compiled
def body_columns(me, axes, jacobian, Y, at):
    """Ten columns of Y from `at` on, m, mx, my, mz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz of a body; weight is in `dv`."""
    w, dw, dv = get(me.w), get(me.dw), get(me.dv)
    project_platform(jacobian, dv, NOTHING, Y[:, at])
    for k in range(3):
        e = rotate(me.R, axes[:, k])
        project_platform(jacobian, add(cross(dw, e), cross(w, cross(w, e))), cross(e, dv), Y[:, at + 1 + k])
    column = at + 4
    for a in range(3):
        for b in range(a, 3):
            ea = rotate(me.R, axes[:, a])
            eb = rotate(me.R, axes[:, b])
            # the unit inertia is ea eb^T + eb ea^T, or ea ea^T on the diagonal
            Iw = scale(dot(eb, w), ea)
            Idw = scale(dot(eb, dw), ea)
            if a != b:
                Iw = add(Iw, scale(dot(ea, w), eb))
                Idw = add(Idw, scale(dot(ea, dw), eb))
            project_platform(jacobian, NOTHING, add(Idw, cross(w, Iw)), Y[:, column])
            column += 1


@compiled
def joint_column(me, value, Y, at):
    """Column of Y for a joint's own effort of size `value` per unit of the parameter."""
    for c in range(Y.shape[0]):
        Y[c, at] = me.column[c] * value


@compiled
def columns_here(bodies, state, subspace, form):
    """Y for the motion in the state, whose columns hold K."""
    layout, axes, jacobians, Y = form.layout, form.axes, form.jacobians, form.Y
    body_jacobians(bodies, state, subspace, jacobians)
    for i in range(PLATFORM, bodies.shape[0]):
        me = state[i]
        if layout[i, 0] >= 0:
            body_columns(me, axes[i], jacobians[i], Y, layout[i, 0])
        if layout[i, 1] >= 0:
            joint_column(me, me.qdd, Y, layout[i, 1])
        if layout[i, 2] >= 0:
            joint_column(me, me.qd, Y, layout[i, 2])
        if layout[i, 3] >= 0:
            joint_column(me, tanh(me.qd / COULOMB_SPEED), Y, layout[i, 3])


@compiled
def regressor(model, data, branch, form, motion, out):
    """Psi (m, n_parameters), `effort = Psi @ p`, at one motion; ignores the external wrench. Returns a status."""
    bodies, subspace, state, system = model.bodies, model.subspace, data.state, data.system
    m, n = out.shape[0], subspace.shape[1]
    status = solve_motion(model, data, branch, motion)
    if status != CONVERGED:
        return status
    joint_columns(model, data, system[2])
    Y, share = form.Y, form.share
    columns_here(bodies, state, subspace, form)
    K, inverse = system[0, :m, :n], system[1, :n, :n]
    b, weights, unit = system[3, 0], system[3, 1], system[3, 2]
    J = system[2, :m, :6]
    inverse_jacobian(model, data, J)
    if not is_regular(factorise_drives(model, J, K, inverse, weights, unit)):
        return SINGULAR
    # efforts are linear in the task force: one column of the map at a time
    for c in range(n):
        for r in range(n):
            b[r] = unit[c] if r == c else 0.0
        least_norm(K, m, n, inverse, weights, b, share[:, c])
        weigh_drives(model, m == n, share[:, c])
    for a in range(m):
        for k in range(Y.shape[1]):
            value = 0.0
            for c in range(n):
                value += share[a, c] * Y[c, k]
            out[a, k] = value
    return CONVERGED


@compiled
def regressor_many(model, data, choice, form, motions, out, status):
    """Psi (k, m, n_parameters) for motions (k, 25); skips those whose status (k,) is not CONVERGED."""
    for k in range(motions.shape[0]):
        if status[k] != CONVERGED:
            continue
        seed_joints(model, data, choice, k)
        status[k] = regressor(model, data, choice.branch, form, motions[k], out[k])
        if status[k] != CONVERGED:
            out[k, :, :] = np.nan
