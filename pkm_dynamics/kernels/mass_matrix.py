# SPDX-License-Identifier: Apache-2.0
"""Mass matrix M (n, n) of the whole robot in the platform's motion space, `K^T M K`, every body counted once.

Limb by limb: composite rigid bodies from the tips down give the limb's joint-space mass matrix, which K projects.
"""

from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.kernels.vectors import accumulate, add, cross, dot, get, put, scale, sub, symmetric
from pkm_runtime.kernels.compiled import compiled

NOTHING = (0.0, 0.0, 0.0)


@compiled
def start_composites(bodies, state):
    """Reset every composite to its own body; the state already holds first and second moments in base axes."""
    for i in range(PLATFORM, bodies.shape[0]):
        me = state[i]
        me.mass = bodies[i].mass
        if bodies[i].massless == 1:
            put(me.moment, NOTHING)
            for k in range(6):
                me.inertia[k] = 0.0


@compiled
def load_parent(me, parent):
    """Add a composite to that of the body that carries it, about the latter's origin."""
    r = sub(get(me.p), get(parent.p))
    h = get(me.moment)
    m = me.mass
    parent.mass += m
    accumulate(parent.moment, add(h, scale(m, r)))
    # about the new origin: I + (2 h.r + m r.r) E - h r^T - r h^T - m r r^T
    diagonal = 2.0 * dot(h, r) + m * dot(r, r)
    total = parent.inertia
    own = me.inertia
    total[0] += own[0] + diagonal - 2.0 * h[0] * r[0] - m * r[0] * r[0]
    total[1] += own[1] - h[0] * r[1] - h[1] * r[0] - m * r[0] * r[1]
    total[2] += own[2] - h[0] * r[2] - h[2] * r[0] - m * r[0] * r[2]
    total[3] += own[3] + diagonal - 2.0 * h[1] * r[1] - m * r[1] * r[1]
    total[4] += own[4] - h[1] * r[2] - h[2] * r[1] - m * r[1] * r[2]
    total[5] += own[5] + diagonal - 2.0 * h[2] * r[2] - m * r[2] * r[2]


@compiled
def unit_wrench(body, me):
    """Wrench (force, torque) at the joint for a unit joint acceleration of its composite."""
    axis = (me.R[0, 2], me.R[1, 2], me.R[2, 2])
    h = get(me.moment)
    if body.prismatic == 1:
        return scale(me.mass, axis), cross(h, axis)
    return cross(axis, h), symmetric(me.inertia, axis)


@compiled
def project_platform(subspace, force, torque, out):
    """out (n,) = S^T (force, torque)."""
    for c in range(subspace.shape[1]):
        out[c] = (
            force[0] * subspace[0, c]
            + force[1] * subspace[1, c]
            + force[2] * subspace[2, c]
            + torque[0] * subspace[3, c]
            + torque[1] * subspace[4, c]
            + torque[2] * subspace[5, c]
        )


@compiled
def mass_matrix(bodies, state, subspace, M):
    """Lower triangle of M, from K in the columns of the state and all bodies' moments in base axes."""
    n = subspace.shape[1]
    start_composites(bodies, state)
    for r in range(n):
        for c in range(r + 1):
            M[r, c] = 0.0
    for i in range(2, bodies.shape[0]):
        armature = bodies[i].armature
        for c in range(n):
            state[i].weighted[c] = armature * state[i].column[c]
    platform = state[PLATFORM]
    for i in range(bodies.shape[0] - 1, PLATFORM, -1):
        me = state[i]
        parent = bodies[i].parent
        if parent > 0:
            load_parent(me, state[parent])
        force, torque = unit_wrench(bodies[i], me)
        j = i
        while j > PLATFORM:
            other = state[j]
            axis = (other.R[0, 2], other.R[1, 2], other.R[2, 2])
            torque_there = add(torque, cross(sub(get(me.p), get(other.p)), force))
            entry = dot(axis, force) if bodies[j].prismatic == 1 else dot(axis, torque_there)
            for c in range(n):
                me.weighted[c] += entry * other.column[c]
            if j != i:
                for c in range(n):
                    other.weighted[c] += entry * me.column[c]
            j = bodies[j].parent
        if j == PLATFORM:
            at_platform = add(torque, cross(sub(get(me.p), get(platform.p)), force))
            out = platform.weighted
            project_platform(subspace, force, at_platform, out)
            for r in range(n):
                for c in range(r + 1):
                    M[r, c] += me.column[r] * out[c] + out[r] * me.column[c]
    for i in range(2, bodies.shape[0]):
        column = state[i].column
        weighted = state[i].weighted
        for r in range(n):
            for c in range(r + 1):
                M[r, c] += column[r] * weighted[c]
    add_platform(platform, subspace, platform.weighted, M)


@compiled
def add_platform(platform, subspace, out, M):
    """Add S^T I S of the platform and its payload; `out` (n,) is scratch."""
    h = get(platform.moment)
    for r in range(subspace.shape[1]):
        v = (subspace[0, r], subspace[1, r], subspace[2, r])
        w = (subspace[3, r], subspace[4, r], subspace[5, r])
        force = add(scale(platform.mass, v), cross(w, h))
        torque = add(cross(h, v), symmetric(platform.inertia, w))
        project_platform(subspace, force, torque, out)
        for c in range(r + 1):
            M[r, c] += out[c]
