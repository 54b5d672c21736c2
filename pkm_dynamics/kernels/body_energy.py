# SPDX-License-Identifier: Apache-2.0
"""Energy of the whole robot, every body counted once, and the power lost in its joints.

`out` (3,): kinetic energy, potential energy [J], power lost in friction [W]. Potential energy is zero with every centre
of mass at the height of the base's origin and every spring at its rest length. `motion` (25,): pose (7), twist (6), the
rest ignored.
"""

from math import tanh

import numpy as np

from pkm_dynamics.kernels.over_rows import seed_joints
from pkm_dynamics.kernels.spring_forces import spring_energy
from pkm_dynamics.kernels.wrenches import COULOMB_SPEED, spread_inertia
from pkm_kinematics.kernels.position.positions import CONVERGED
from pkm_kinematics.kernels.rates.motion import solve_motion
from pkm_kinematics.kernels.records import BASE, PLATFORM
from pkm_kinematics.kernels.vectors import add, cross, dot, get, scale, symmetric
from pkm_runtime.kernels.compiled import compiled


@compiled
def energy_here(model, state, out):
    """Energies and lost power at the positions and rates in the state."""
    bodies = model.bodies
    weightless = get(state[BASE].dv)  # minus gravity
    kinetic = 0.0
    potential = 0.0
    lost = 0.0
    for i in range(PLATFORM, bodies.shape[0]):
        body = bodies[i]
        me = state[i]
        if body.massless == 0:
            spread_inertia(body, me)
            h = get(me.moment)
            v, w = get(me.v), get(me.w)
            kinetic += 0.5 * body.mass * dot(v, v) + dot(v, cross(w, h)) + 0.5 * dot(w, symmetric(me.inertia, w))
            potential += dot(weightless, add(scale(body.mass, get(me.p)), h))
        if i > PLATFORM:
            kinetic += 0.5 * body.armature * me.qd * me.qd
            lost += me.qd * (body.viscous * me.qd + body.coulomb * tanh(me.qd / COULOMB_SPEED))
    out[0] = kinetic
    out[1] = potential + spring_energy(model, state)
    out[2] = lost


@compiled
def energy(model, data, branch, motion, out):
    """Energies and lost power at a pose and twist. Returns a status."""
    status = solve_motion(model, data, branch, motion)
    if status != CONVERGED:
        return status
    energy_here(model, data.state, out)
    return CONVERGED


@compiled
def energy_many(model, data, choice, motions, out, status):
    """Energies and lost power (k, 3) for motions (k, 25), with status (k,)."""
    for k in range(motions.shape[0]):
        if status[k] != CONVERGED:
            continue
        seed_joints(model, data, choice, k)
        status[k] = energy(model, data, choice.branch, motions[k], out[k])
        if status[k] != CONVERGED:
            out[k, :] = np.nan
