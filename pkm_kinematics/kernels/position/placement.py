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
