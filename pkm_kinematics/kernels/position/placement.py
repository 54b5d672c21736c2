# SPDX-License-Identifier: Apache-2.0
"""Where bodies are, once their joint positions are known: the forward recursion of the tree."""

from math import cos, sin

from pkm_kinematics.kernels.compiled_rotations import write_rotation
from pkm_kinematics.kernels.records import BASE, PLATFORM
from pkm_kinematics.kernels.vectors import add, get, matmul, put, rotate, scale
from pkm_runtime.kernels.compiled import compiled


@compiled
def place_platform(state, pose):
    """Put the platform at `pose` (7,): x y z qx qy qz qw, a unit quaternion."""
    platform = state[PLATFORM]
    put(platform.p, get(pose))
    write_rotation(pose[3], pose[4], pose[5], pose[6], platform.R)


@compiled
def joint_frame(bodies, state, i):
    """Write the frame of joint `i` at position zero into the body's state."""
    body = bodies[i]
    me = state[i]
    if body.parent == BASE:
        for r in range(3):
            for k in range(3):
                me.R[r, k] = body.rotation[r, k]
        put(me.p, get(body.translation))
    else:
        parent = state[body.parent]
        matmul(parent.R, body.rotation, me.R)
        put(me.p, add(get(parent.p), rotate(parent.R, get(body.translation))))


@compiled
def move_joint(bodies, state, i):
    """Move body `i` from its joint frame by its joint position: (c, s) of a turning joint, q of a sliding one."""
    me = state[i]
    R = me.R
    if bodies[i].prismatic == 1:
        q = me.q
        put(me.p, add(get(me.p), scale(q, (R[0, 2], R[1, 2], R[2, 2]))))
    else:
        c = me.c
        s = me.s
        for r in range(3):
            x = R[r, 0]
            y = R[r, 1]
            R[r, 0] = c * x + s * y
            R[r, 1] = c * y - s * x


@compiled
def place_body(bodies, state, i):
    """Place body `i` from its parent and its joint position."""
    joint_frame(bodies, state, i)
    move_joint(bodies, state, i)


@compiled
def set_angle(state, i, q):
    """Set a turning joint to `q` [rad]."""
    state[i].q = q
    state[i].c = cos(q)
    state[i].s = sin(q)


@compiled
def place_graph(joints, columns, slides, axes, factors, offsets, frames, q, bodies, twists):
    """Fill bodies (n_links, n, 4, 4) and twists (n, 6, n_steps) of a graph's joints at coordinates q (n, size)."""
    for i in range(q.shape[0]):
        for k in range(joints.shape[0]):
            a, b = joints[k, 0], joints[k, 1]
            for r in range(3):
                x, y, z = bodies[a, i, r, 0], bodies[a, i, r, 1], bodies[a, i, r, 2]
                for c in range(4):
                    bodies[b, i, r, c] = x * frames[k, 0, c] + y * frames[k, 1, c] + z * frames[k, 2, c]
                bodies[b, i, r, 3] += bodies[a, i, r, 3]
            for s in range(joints[k, 2], joints[k, 3]):
                value = factors[s] * q[i, columns[s]] + offsets[s]
                sine, versine = sin(value), 2.0 * sin(0.5 * value) ** 2
                u, v, w = axes[s, 0], axes[s, 1], axes[s, 2]
                for r in range(3):
                    x, y, z = bodies[b, i, r, 0], bodies[b, i, r, 1], bodies[b, i, r, 2]
                    along = x * u + y * v + z * w
                    twists[i, r if slides[s] else 3 + r, s] = factors[s] * along
                    if slides[s]:
                        bodies[b, i, r, 3] += value * along
                    else:
                        f, g, h = y * w - z * v, z * u - x * w, x * v - y * u
                        bodies[b, i, r, 0] += sine * f + versine * (g * w - h * v)
                        bodies[b, i, r, 1] += sine * g + versine * (h * u - f * w)
                        bodies[b, i, r, 2] += sine * h + versine * (f * v - g * u)
                if not slides[s]:
                    for r in range(3):
                        c, d = (r + 1) % 3, (r + 2) % 3
                        twists[i, r, s] = (
                            bodies[b, i, c, 3] * twists[i, 3 + d, s] - bodies[b, i, d, 3] * twists[i, 3 + c, s]
                        )
