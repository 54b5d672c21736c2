# SPDX-License-Identifier: Apache-2.0
"""Springs as wrenches on the two bodies that they join, or as the effort of a joint, and their energy.

Where the bodies stand is read of their frames, which every solver leaves, and not of joint positions.
"""

from math import atan2, cos, sin, sqrt

from pkm_kinematics.kernels.position.closures import column
from pkm_kinematics.kernels.rates.projection import push
from pkm_kinematics.kernels.records import JOINT_SPRING
from pkm_kinematics.kernels.vectors import add, dot, get, rotate, scale, sub
from pkm_runtime.kernels.compiled import compiled

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
