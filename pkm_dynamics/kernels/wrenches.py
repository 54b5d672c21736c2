# SPDX-License-Identifier: Apache-2.0
"""Inertia and weight of every body as wrenches and joint efforts, and their projection on the platform.

With the projection of `pkm_kinematics` these are the right-hand side of `K_a^T tau = K^T rnea(q, qd, qdd)`. `rnea` is
the Newton-Euler recursion in base axes about each body's origin (Codourey and Burdet, equations 19 to 32); K^T is
applied limb by limb (Briot and Khalil: `tau = J_P^T (w_P + sum J_vi^T J_i^-T tau_i)`; Müller, section 6.5).
"""

from math import tanh

from pkm_kinematics.kernels.compiled_rotations import write_rotation
from pkm_kinematics.kernels.rates.projection import clear_wrench, gather_block, release_block
from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.kernels.vectors import (
    accumulate,
    add,
    cross,
    get,
    put,
    rotate,
    rotate_back,
    sandwich,
    scale,
    sub,
    symmetric,
)
from pkm_runtime.kernels.compiled import compiled

COULOMB_SPEED = 1e-3  # rad/s or m/s: below this speed Coulomb friction is smoothed, so that it has a sign at rest


@compiled
def spread_inertia(body, me):
    """Turn a body's first and second moments into base axes."""
    put(me.moment, rotate(me.R, get(body.moment)))
    sandwich(me.R, body.inertia, me.inertia)


@compiled
def inertia_wrench(body, me):
    """Add a body's inertia and weight to its wrench, at the motion in the state (weight is in `dv`).

    force = m dv + dw x h + w x (w x h); torque = h x dv + I dw + w x (I w), with h the first moment, about the origin.
    """
    h = get(me.moment)
    w = get(me.w)
    dw = get(me.dw)
    dv = get(me.dv)
    accumulate(me.force, add(scale(body.mass, dv), add(cross(dw, h), cross(w, cross(w, h)))))
    accumulate(
        me.torque,
        add(cross(h, dv), add(symmetric(me.inertia, dw), cross(w, symmetric(me.inertia, w)))),
    )


@compiled
def joint_effort(body, me):
    """Effort of a joint's own rotor inertia and friction [N m or N]."""
    effort = body.armature * me.qdd
    if body.viscous != 0.0 or body.coulomb != 0.0:
        effort += body.viscous * me.qd + body.coulomb * tanh(me.qd / COULOMB_SPEED)
    return effort


@compiled
def limb_wrenches(bodies, state):
    """Set every limb body's wrench and joint effort to its own inertia, weight and friction."""
    for i in range(2, bodies.shape[0]):
        me = state[i]
        body = bodies[i]
        clear_wrench(me)
        me.effort = joint_effort(body, me)
        if body.massless == 0:
            spread_inertia(body, me)
            inertia_wrench(body, me)


@compiled
def platform_wrench(bodies, state, external):
    """Set the platform's wrench to its inertia and weight, less the external wrench (6,) that helps to move it."""
    me = state[PLATFORM]
    clear_wrench(me)
    spread_inertia(bodies[PLATFORM], me)
    inertia_wrench(bodies[PLATFORM], me)
    for r in range(3):
        me.force[r] -= external[r]
        me.torque[r] -= external[3 + r]


@compiled
def project(model, data):
    """Project all wrenches and efforts on the platform, whose wrench becomes K^T f; needs inverted blocks."""
    bodies, closures, blocks = model.bodies, model.closures, model.blocks
    state, rows, work = data.state, data.rows, data.work
    for b in range(blocks.shape[0] - 1, -1, -1):
        gather_block(bodies, blocks[b], state)
        release_block(closures, blocks[b], state, rows, work)


@compiled
def carried_wrenches(body, motions, R, out):
    """Wrenches (n, 6) of a body fixed on the platform, about its origin, base axes, in motions (n, 19).

    `body` (16,): mass, centre of mass (3,), inertia about it (3, 3), and the gravity that it feels (3,). A motion is a
    pose (7,), twist (6,) and acceleration (6,). `R` (3, 3) is scratch.
    """
    inertia = (body[4], body[5], body[6], body[8], body[9], body[12])
    for i in range(motions.shape[0]):
        m = motions[i]
        write_rotation(m[3], m[4], m[5], m[6], R)
        w = (m[10], m[11], m[12])
        dw = (m[16], m[17], m[18])
        arm = rotate(R, get(body[1:4]))
        dv = add(sub(get(m[13:16]), get(body[13:16])), add(cross(dw, arm), cross(w, cross(w, arm))))
        force = scale(-body[0], dv)
        spin = rotate_back(R, w)  # in the body's axes, where its inertia is constant
        change = add(symmetric(inertia, rotate_back(R, dw)), cross(spin, symmetric(inertia, spin)))
        put(out[i], force)
        put(out[i][3:], sub(cross(arm, force), rotate(R, change)))
