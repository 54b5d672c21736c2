# SPDX-License-Identifier: Apache-2.0
"""The matrix K itself: rates of every joint for each independent velocity of the platform."""

from pkm_kinematics.kernels.position.closures import joint_velocity
from pkm_kinematics.kernels.records import PLATFORM, SPHERICAL
from pkm_kinematics.kernels.vectors import cross, dot, get, sub
from pkm_runtime.kernels.compiled import compiled


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
