# SPDX-License-Identifier: Apache-2.0
"""Velocities and accelerations of every body for a given platform motion, block after block.

The loops make the joint rates a linear function of the platform's twist, `qd = K xd`. K is never formed here: with the
joints of a block at rest, its bodies move rigidly with what carries them, the closures open at some rate, and the
block's pseudo-inverse gives the joint rates that keep them closed.
"""

from pkm_kinematics.kernels.position.closures import column, invert_block
from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.positions import CONVERGED, SINGULAR, solve_positions
from pkm_kinematics.kernels.records import (
    BASE,
    CYLINDRICAL,
    FIXED,
    PLANAR,
    PLATFORM,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    UNIVERSAL,
)
from pkm_kinematics.kernels.regularity import is_regular
from pkm_kinematics.kernels.vectors import accumulate, add, cross, dot, get, put, scale, sub
from pkm_runtime.kernels.compiled import compiled


@compiled
def invert_blocks(model, data):
    """Pseudo-inverse of every block at the present positions; returns the regularity of the worst, 0 to 1."""
    blocks = model.blocks
    worst = 1.0
    for b in range(blocks.shape[0]):
        worst = min(worst, invert_block(model, data, blocks[b]))
    return worst


@compiled
def move_platform(state, twist, acceleration):
    """Give the platform its twist and acceleration (6,): linear, then angular, at its origin, base axes."""
    platform = state[PLATFORM]
    weightless = state[BASE].dv  # minus gravity
    for r in range(3):
        platform.v[r] = twist[r]
        platform.w[r] = twist[3 + r]
        platform.dv[r] = acceleration[r] + weightless[r]
        platform.dw[r] = acceleration[3 + r]


@compiled
def point_velocity(me, point):
    """Velocity of a point that moves with a body."""
    return add(get(me.v), cross(get(me.w), sub(point, get(me.p))))


@compiled
def point_acceleration(me, point, velocity):
    """Acceleration of a body at a point that itself moves with `velocity`: the rate of `point_velocity`."""
    drift = cross(get(me.w), sub(velocity, get(me.v)))
    return add(add(get(me.dv), cross(get(me.dw), sub(point, get(me.p)))), drift)


@compiled
def share(work, at, gap):
    """A row of the pseudo-inverse times the vector `gap` of three open equations: what they ask of a joint."""
    return work[at] * gap[0] + work[at + 1] * gap[1] + work[at + 2] * gap[2]


@compiled
def move_body(bodies, state, i):
    """Velocities of body `i` from those of its parent and the rate of its joint."""
    me = state[i]
    parent = state[bodies[i].parent]
    slide = scale(me.qd, (me.R[0, 2], me.R[1, 2], me.R[2, 2]))
    w = get(parent.w)
    v = add(get(parent.v), cross(w, sub(get(me.p), get(parent.p))))
    if bodies[i].prismatic == 1:
        put(me.w, w)
        put(me.v, add(v, slide))
    else:
        put(me.w, add(w, slide))
        put(me.v, v)


@compiled
def velocities(model, data):
    """Joint and body velocities from the platform's twist in the state, blocks inverted before."""
    bodies, closures, blocks = model.bodies, model.closures, model.blocks
    state, rows, work = data.state, data.rows, data.work
    for b in range(blocks.shape[0]):
        block = blocks[b]
        m = block.rows
        for j in range(block.count):
            state[block.start + j].qd = 0.0
        for k in range(block.closure_start, block.closure_start + block.closure_count):
            closure = closures[k]
            p = state[closure.predecessor_anchor]
            s = state[closure.successor_anchor]
            point = get(rows[closure.rows_at].point)
            opening = sub(point_velocity(s, point), point_velocity(p, point))
            at = block.inverse_at + closure.rows_at - block.rows_at
            if closure.kind == SPHERICAL:
                for j in range(block.count):
                    state[block.start + j].qd -= share(work, at + j * m, opening)
                continue
            turning = sub(get(s.w), get(p.w))
            for r in range(closure.rows):
                row = rows[closure.rows_at + r]
                rate = dot(get(row.force), opening) + dot(get(row.moment), turning)
                for j in range(block.count):
                    state[block.start + j].qd -= work[at + r + j * m] * rate
        for i in range(block.start, block.start + block.count):
            move_body(bodies, state, i)


@compiled
def row_drift(closure, state, rows, r):
    """What the turning of an equation's own directions adds to its second rate, at the present velocities."""
    row = rows[r]
    p = state[closure.predecessor]
    s = state[closure.successor]
    wp = get(p.w)
    ws = get(s.w)
    force = get(row.force)
    if dot(force, force) > 0.0:
        if closure.kind == CYLINDRICAL or closure.kind == PRISMATIC or closure.kind == PLANAR:
            point = get(rows[closure.rows_at].point)
            opening = sub(point_velocity(s, point), point_velocity(p, point))
            return dot(cross(wp, force), opening)
        return 0.0
    # orientation: the rate of moment = b x a, with a fixed in the predecessor and b in the successor
    a, b = directions(closure, state, r - closure.rows_at)
    turning = sub(ws, wp)
    return dot(turning, add(cross(cross(ws, b), a), cross(b, cross(wp, a))))


@compiled
def directions(closure, state, r):
    """The two directions, of the predecessor and of the successor, that equation `r` of a closure keeps square."""
    Rp = state[closure.predecessor].R
    Rs = state[closure.successor].R
    Fp = closure.predecessor_rotation
    Fs = closure.successor_rotation
    kind = closure.kind
    if kind == UNIVERSAL:
        return column(Rp, Fp, 2), column(Rs, Fs, 2)
    if kind in (PRISMATIC, FIXED):
        k = r - 2 if kind == PRISMATIC else r - 3
        return column(Rp, Fp, k), column(Rs, Fs, (k + 1) % 3)
    k = r - 3 if kind == REVOLUTE else (r - 2 if kind == CYLINDRICAL else r - 1)
    return column(Rp, Fp, k), column(Rs, Fs, 2)


@compiled
def relative_acceleration(closure, state, rows):
    """Acceleration of the successor's point of a closure relative to the predecessor, and angular acceleration."""
    p = state[closure.predecessor]
    s = state[closure.successor]
    point = get(rows[closure.rows_at].point)
    moving = point_velocity(s, point)
    opening = sub(point_acceleration(s, point, moving), point_acceleration(p, point, moving))
    return opening, sub(get(s.dw), get(p.dw))


@compiled
def row_acceleration(closure, state, rows, r, opening, turning):
    """Second rate of an equation at the present motion."""
    row = rows[r]
    return dot(get(row.force), opening) + dot(get(row.moment), turning) + row_drift(closure, state, rows, r)


@compiled
def closure_accelerations(closures, state, rows, out):
    """Second rates of all equations (n_rows,) at the motion in the state: zero while they stay closed."""
    for k in range(closures.shape[0]):
        closure = closures[k]
        opening, turning = relative_acceleration(closure, state, rows)
        for r in range(closure.rows_at, closure.rows_at + closure.rows):
            if closure.kind == SPHERICAL:
                out[r] = opening[r - closure.rows_at]
            else:
                out[r] = row_acceleration(closure, state, rows, r, opening, turning)


@compiled
def bias_acceleration(bodies, state, i):
    """Angular velocity and acceleration of body `i` while its joint turns or slides at constant rate."""
    me = state[i]
    parent = state[bodies[i].parent]
    axis = (me.R[0, 2], me.R[1, 2], me.R[2, 2])
    w = get(parent.w)
    dw = get(parent.dw)
    arm = sub(get(me.p), get(parent.p))
    dv = add(get(parent.dv), add(cross(dw, arm), cross(w, cross(w, arm))))
    coriolis = scale(me.qd, cross(w, axis))
    if bodies[i].prismatic == 1:
        put(me.w, w)
        put(me.dw, dw)
        put(me.dv, add(dv, scale(2.0, coriolis)))
    else:
        put(me.w, add(w, scale(me.qd, axis)))
        put(me.dw, add(dw, coriolis))
        put(me.dv, dv)


@compiled
def accelerations(model, data):
    """Joint and body accelerations from the platform's acceleration in the state, velocities computed before."""
    bodies, closures, blocks = model.bodies, model.closures, model.blocks
    state, rows, work = data.state, data.rows, data.work
    for b in range(blocks.shape[0]):
        block = blocks[b]
        m = block.rows
        stop = block.start + block.count
        for i in range(block.start, stop):
            state[i].qdd = 0.0
            bias_acceleration(bodies, state, i)
        for k in range(block.closure_start, block.closure_start + block.closure_count):
            closure = closures[k]
            opening, turning = relative_acceleration(closure, state, rows)
            at = block.inverse_at + closure.rows_at - block.rows_at
            if closure.kind == SPHERICAL:
                for j in range(block.count):
                    state[block.start + j].qdd -= share(work, at + j * m, opening)
                continue
            for r in range(closure.rows):
                rate = row_acceleration(closure, state, rows, closure.rows_at + r, opening, turning)
                for j in range(block.count):
                    state[block.start + j].qdd -= work[at + r + j * m] * rate
        correct(bodies, block, state)


@compiled
def correct(bodies, block, state):
    """Add the joint accelerations of a block to the accelerations of its bodies."""
    start = block.start
    for i in range(start, start + block.count):
        me = state[i]
        push = scale(me.qdd, (me.R[0, 2], me.R[1, 2], me.R[2, 2]))
        dw = (0.0, 0.0, 0.0)
        dv = (0.0, 0.0, 0.0)
        parent = bodies[i].parent
        if parent >= start:
            dw = get(state[parent].extra_dw)
            dv = add(get(state[parent].extra_dv), cross(dw, sub(get(me.p), get(state[parent].p))))
        if bodies[i].prismatic == 1:
            dv = add(dv, push)
        else:
            dw = add(dw, push)
        put(me.extra_dw, dw)
        put(me.extra_dv, dv)
        accumulate(me.dw, dw)
        accumulate(me.dv, dv)


@compiled
def solve_motion(model, data, mode, motion):
    """Bring the state to a platform motion: pose (7), twist (6), acceleration (6). Status; blocks are inverted."""
    state = data.state
    place_platform(state, motion)
    status, _, _ = solve_positions(model, data, mode, False)
    if status != CONVERGED:
        return status
    if not is_regular(invert_blocks(model, data)):
        return SINGULAR
    move_platform(state, motion[7:], motion[13:])
    velocities(model, data)
    accelerations(model, data)
    return CONVERGED
