# SPDX-License-Identifier: Apache-2.0
"""The matrices of `qd = K xd`: K^T from the tips of the limbs down to the platform, the inverse Jacobian, K itself.

Generalised forces of a block's joints are balanced by closure forces, `inverse^T effort`; with its joints thus relieved
the block is rigid, and what acts on its bodies acts on whatever carries them. What arrives at the platform is `K^T f`.
The same pass applied to a unit effort gives a row of K, hence the inverse Jacobian.
"""

from pkm_kinematics.kernels.position.closures import joint_velocity
from pkm_kinematics.kernels.records import BASE, PLATFORM, SPHERICAL
from pkm_kinematics.kernels.regularity import factorise, make_uniform
from pkm_kinematics.kernels.vectors import accumulate, add, cross, dot, get, put, scale, sub
from pkm_runtime.kernels.compiled import compiled

NOTHING = (0.0, 0.0, 0.0)


@compiled
def clear_wrench(me):
    """Zero the wrench accumulated on a body."""
    put(me.force, NOTHING)
    put(me.torque, NOTHING)


@compiled
def push(me, force, moment, point):
    """Apply a wrench (force, moment at a point) to a body."""
    accumulate(me.force, force)
    accumulate(me.torque, add(moment, cross(sub(point, get(me.p)), force)))


@compiled
def gather_block(bodies, block, state):
    """Move the wrenches on a block's bodies down the tree, adding to each joint's effort what it has to hold."""
    for i in range(block.start + block.count - 1, block.start - 1, -1):
        me = state[i]
        R = me.R
        held = me.force if bodies[i].prismatic == 1 else me.torque
        me.effort += R[0, 2] * held[0] + R[1, 2] * held[1] + R[2, 2] * held[2]
        push(state[bodies[i].parent], get(me.force), get(me.torque), get(me.p))


@compiled
def release_block(closures, block, state, rows, work):
    """Replace the efforts of a block's joints by the closure forces that do the same work on what carries the block."""
    m = block.rows
    for k in range(block.closure_start, block.closure_start + block.closure_count):
        closure = closures[k]
        force = NOTHING
        moment = NOTHING
        at = block.inverse_at + closure.rows_at - block.rows_at
        if closure.kind == SPHERICAL:
            for j in range(block.count):
                row = (work[at + j * m], work[at + j * m + 1], work[at + j * m + 2])
                force = add(force, scale(state[block.start + j].effort, row))
        else:
            for r in range(closure.rows):
                share = 0.0
                for j in range(block.count):
                    share += work[at + r + j * m] * state[block.start + j].effort
                force = add(force, scale(share, get(rows[closure.rows_at + r].force)))
                moment = add(moment, scale(share, get(rows[closure.rows_at + r].moment)))
        point = get(rows[closure.rows_at].point)
        if closure.successor_anchor != BASE:
            push(state[closure.successor_anchor], scale(-1.0, force), scale(-1.0, moment), point)
        if closure.predecessor_anchor != BASE:
            push(state[closure.predecessor_anchor], force, moment, point)


@compiled
def inverse_jacobian(model, data, out):
    """Actuated joint rates per twist, `out` (n_actuated, 6); blocks inverted before. Overwrites efforts, wrenches."""
    bodies, closures, blocks = model.bodies, model.closures, model.blocks
    state, rows, work = data.state, data.rows, data.work
    platform = state[PLATFORM]
    for b in range(blocks.shape[0]):
        block = blocks[b]
        if block.actuators == 0:
            continue
        for a in range(block.start, block.start + block.count):
            if bodies[a].actuator < 0:
                continue
            clear_wrench(platform)
            first = blocks[block.limb_first].start
            for i in range(first, block.start + block.count):
                clear_wrench(state[i])
                state[i].effort = 0.0
            state[a].effort = 1.0
            release_block(closures, block, state, rows, work)
            for c in range(b - 1, block.limb_first - 1, -1):
                gather_block(bodies, blocks[c], state)
                release_block(closures, blocks[c], state, rows, work)
            for r in range(3):
                out[bodies[a].actuator, r] = platform.force[r]
                out[bodies[a].actuator, 3 + r] = platform.torque[r]


@compiled
def drive_rates(K, subspace, out):
    """out (m, n) = K (m, 6) S (6, n): drives' rates per rate of the motion space."""
    for a in range(K.shape[0]):
        for c in range(subspace.shape[1]):
            value = 0.0
            for k in range(6):
                value += K[a, k] * subspace[k, c]
            out[a, c] = value


@compiled
def factorise_drives(model, J, A, inverse, weights, per_speed):
    """`factorise` A (m, n), drives' rates J (m, 6) per unit speed in uniform units; `per_speed` (n,) is filled."""
    m, n = A.shape
    drive_rates(J, model.subspace, A)
    for c in range(n):
        per_speed[c] = 1.0
    make_uniform(model, A, per_speed)
    return factorise(A, m, n, inverse, weights)


@compiled
def anchor_twist(bodies, state, point, anchor, sign, subspace, twist):
    """Add to `twist` (6, n) the velocity of a point on the body that anchors a side, and its angular velocity."""
    n = subspace.shape[1]
    j = anchor
    while j > PLATFORM:
        v = joint_velocity(bodies[j], state[j], point)
        turning = 1.0 - bodies[j].prismatic
        for c in range(n):
            rate = sign * state[j].column[c]
            for r in range(3):
                twist[r, c] += rate * v[r]
                twist[3 + r, c] += rate * turning * state[j].R[r, 2]
        j = bodies[j].parent
    if j == PLATFORM:
        arm = sub(point, get(state[PLATFORM].p))
        for c in range(n):
            w = (subspace[3, c], subspace[4, c], subspace[5, c])
            v = cross(w, arm)
            for r in range(3):
                twist[r, c] += sign * (subspace[r, c] + v[r])
                twist[3 + r, c] += sign * w[r]


@compiled
def joint_columns(model, data, twist):
    """Write each joint's `column`: qd = column . u, u in the motion space; blocks inverted, `twist` (6, n) scratch."""
    bodies, closures, blocks, subspace = model.bodies, model.closures, model.blocks, model.subspace
    state, rows, work = data.state, data.rows, data.work
    n = subspace.shape[1]
    for b in range(blocks.shape[0]):
        block = blocks[b]
        m = block.rows
        for i in range(block.start, block.start + block.count):
            for c in range(n):
                state[i].column[c] = 0.0
        for k in range(block.closure_start, block.closure_start + block.closure_count):
            closure = closures[k]
            for r in range(6):
                for c in range(n):
                    twist[r, c] = 0.0
            point = get(rows[closure.rows_at].point)
            anchor_twist(bodies, state, point, closure.successor_anchor, 1.0, subspace, twist)
            anchor_twist(bodies, state, point, closure.predecessor_anchor, -1.0, subspace, twist)
            at = block.inverse_at + closure.rows_at - block.rows_at
            if closure.kind == SPHERICAL:
                for j in range(block.count):
                    a = at + j * m
                    for c in range(n):
                        state[block.start + j].column[c] -= (
                            work[a] * twist[0, c] + work[a + 1] * twist[1, c] + work[a + 2] * twist[2, c]
                        )
                continue
            for r in range(closure.rows):
                force = get(rows[closure.rows_at + r].force)
                moment = get(rows[closure.rows_at + r].moment)
                for c in range(n):
                    rate = dot(force, (twist[0, c], twist[1, c], twist[2, c]))
                    rate += dot(moment, (twist[3, c], twist[4, c], twist[5, c]))
                    for j in range(block.count):
                        state[block.start + j].column[c] -= work[at + r + j * m] * rate
