# SPDX-License-Identifier: Apache-2.0
"""Inertia, weight and springs of the bodies as wrenches and efforts, their projection on the platform, and energy.

With the projection of `pkm_kinematics` these are the right-hand side of `K_a^T tau = K^T rnea(q, qd, qdd)`. `rnea` is
the Newton-Euler recursion in base axes about each body's origin (Codourey and Burdet, equations 19 to 32); K^T is
applied limb by limb (Briot and Khalil: `tau = J_P^T (w_P + sum J_vi^T J_i^-T tau_i)`; Müller, section 6.5). Springs
read the bodies' frames, which every solver leaves, and not joint positions.
"""

from math import atan2, cos, sin, sqrt, tanh

from pkm_kinematics.kernels.compiled_rotations import write_rotation
from pkm_kinematics.kernels.position.closures import column
from pkm_kinematics.kernels.rates.projection import clear_wrench, gather_block, push, release_block
from pkm_kinematics.kernels.records import BASE, JOINT_SPRING, PLATFORM
from pkm_kinematics.kernels.vectors import (
    accumulate,
    add,
    cross,
    dot,
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

    `body` (16,): mass, centre of mass, inertia about it (3, 3), gravity. A motion is a pose, twist and acceleration.
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


NOTHING = (0.0, 0.0, 0.0)
POINT = 1e-24  # m^2: of a spring shorter than 1e-12 m the direction is lost, and its force fades


@compiled
def joint_stretch(spring, bodies, state):
    """How far a joint is from where its spring rests [rad or m]; it turns at most half a turn away from home."""
    body, me, parent = bodies[spring.second], state[spring.second], state[spring.first]
    z = (me.R[0, 2], me.R[1, 2], me.R[2, 2])
    if body.prismatic == 1:
        at = add(get(parent.p), rotate(parent.R, get(body.translation)))
        return dot(sub(get(me.p), at), z) - spring.rest
    x = (me.R[0, 0], me.R[1, 0], me.R[2, 0])
    c = dot(column(parent.R, body.rotation, 0), x)
    s = dot(column(parent.R, body.rotation, 1), x)
    ch, sh = cos(spring.home), sin(spring.home)
    return spring.home - spring.rest + atan2(s * ch - c * sh, c * ch + s * sh)


@compiled
def spring_ends(spring, state):
    """The two ends of a spring in base axes, and its length."""
    first, second = state[spring.first], state[spring.second]
    a = add(get(first.p), rotate(first.R, get(spring.first_point)))
    b = add(get(second.p), rotate(second.R, get(spring.second_point)))
    d = sub(b, a)
    return a, b, sqrt(dot(d, d) + POINT)


@compiled
def add_springs(model, state):
    """Add all springs to the wrenches of their bodies and the efforts of their joints, as what these have to resist."""
    springs = model.springs
    for k in range(springs.shape[0]):
        spring = springs[k]
        if spring.kind == JOINT_SPRING:
            state[spring.second].effort += spring.stiffness * joint_stretch(spring, model.bodies, state)
            continue
        a, b, length = spring_ends(spring, state)
        pull = spring.stiffness  # over the length, without which a zero-free-length spring does
        constant = spring.preload - spring.stiffness * spring.rest
        if constant != 0.0:
            pull += constant / length
        force = scale(pull, sub(b, a))
        push(state[spring.first], scale(-1.0, force), NOTHING, a)
        push(state[spring.second], force, NOTHING, b)


@compiled
def straight_energy(spring, state):
    """Energy of a spring between two bodies, without a square root where it has no free length."""
    k, rest = spring.stiffness, spring.rest
    a, b, length = spring_ends(spring, state)
    d = sub(b, a)
    energy = 0.5 * k * (dot(d, d) + rest * rest) - spring.preload * rest
    constant = spring.preload - k * rest
    if constant != 0.0:
        energy += constant * length
    return energy


@compiled
def spring_energy(model, state):
    """Energy of all springs [J], zero where each is as long as when at rest."""
    springs = model.springs
    energy = 0.0
    for k in range(springs.shape[0]):
        spring = springs[k]
        if spring.kind == JOINT_SPRING:
            stretch = joint_stretch(spring, model.bodies, state)
            energy += 0.5 * spring.stiffness * stretch * stretch
        else:
            energy += straight_energy(spring, state)
    return energy


@compiled
def energy_here(model, state, out):
    """Energies [J] and power lost in friction [W] (3,) of the state, zeros as in `pkm_dynamics.energy`."""
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
