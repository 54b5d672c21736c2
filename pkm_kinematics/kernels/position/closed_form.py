# SPDX-License-Identifier: Apache-2.0
"""Closed-form positions of a limb: a lift, a driven joint, a pointing joint, an extension and a wrist, in that order.

Most limbs of parallel robots are of this form, with members missing: R or P, then a universal joint that carries a rod
(RUS, PUS); a universal joint and a sliding leg (UPS); a rod alone (US); in a plane, RRR, PRR, RPR and RR; that behind a
slide out of the plane (PRRR) or a joint that turns the plane (RRRS, RPRS); on a sphere, RRR. The target is where the
closure sits on the platform, on a sphere the direction of its axis. The lift brings the chain into the plane of the
target, or the plane to the target; the driver obeys one equation, the distance (on a sphere, the angle) from the
pointing joint to the target; the pointing joint then aims at the target, and the extension makes up the distance. A
wrist is a last joint whose axis meets that of the closure (a rod of a parallelogram between its short sides): the point
where they meet is known, and is the target; the wrist then turns the closure's axes to each other. Where a ball joins
the driver to an arm that turns on the platform (RSR, PSR), that arm's axis is the target, and the arm points back at
the driver's end. Vectors are tuples of three [m]; `sign` and `branch` pick one of two solutions.
"""

from math import atan2, floor, sqrt

from pkm_kinematics.kernels.position.placement import joint_frame, move_joint, place_body
from pkm_kinematics.kernels.vectors import add, axis_z, dot, get, rotate, rotate_back, scale, sub
from pkm_runtime.kernels.compiled import compiled


@compiled
def turn_to(A, B, C, sign):
    """Solve A cos q + B sin q = C by branch `sign`: (cos q, sin q, margin), margin = 1 - C^2 / (A^2 + B^2).

    Negative where no real solution exists (the nearest is given), zero where the branches meet.
    """
    rr = A * A + B * B
    if rr == 0.0:
        return 1.0, 0.0, -1.0
    inverse = 1.0 / rr
    margin = 1.0 - C * C * inverse
    h = sign * sqrt(max(rr - C * C, 0.0))
    if margin < 0.0:
        inverse = 1.0 / (sqrt(rr) * abs(C))
    return (A * C - B * h) * inverse, (B * C + A * h) * inverse, margin


@compiled
def target_of(closures, block, state):
    """Where the chain has to get, base axes; on a sphere a direction."""
    successor = state[closures[block.closure_start].successor_anchor]
    there = rotate(successor.R, get(block.target))
    if block.spherical == 1:
        return there
    return add(get(successor.p), there)


@compiled
def reach_of(bodies, block):
    """Vector from the last pointing joint's origin to the tip, in that joint's body frame, extension at zero."""
    tip = get(block.tip)
    if block.extension < 0:
        return tip
    body = bodies[block.extension]
    return add(get(body.translation), rotate(body.rotation, tip))


@compiled
def squared(v, planar):
    """Squared length of v, without its z part in a plane."""
    if planar == 1:
        return v[0] * v[0] + v[1] * v[1]
    return dot(v, v)


@compiled
def turn_near(me, t, e, C, sign):
    """Turn a joint so that t . Rz e = C (x, y parts); `sign` 0: the nearest branch. Returns the margin of `turn_to`."""
    A = t[0] * e[0] + t[1] * e[1]
    B = t[1] * e[0] - t[0] * e[1]
    if sign == 0.0:  # of the two branches, the one on the same side of the direction (A, B) as the present position
        sign = 1.0 if me.s * A - me.c * B >= 0.0 else -1.0
    me.c, me.s, margin = turn_to(A, B, C, sign)
    return margin


@compiled
def face(me, d, t):
    """Turn a joint so that d, fixed in its body, comes nearest to the direction t in its joint frame."""
    n = sqrt((d[0] * d[0] + d[1] * d[1]) * (t[0] * t[0] + t[1] * t[1]))
    if n > 0.0:
        inverse = 1.0 / n
        me.c = (d[0] * t[0] + d[1] * t[1]) * inverse
        me.s = (d[0] * t[1] - d[1] * t[0]) * inverse


@compiled
def lift_to(bodies, block, state, target):
    """Slide or turn the lift, home's way, until the tip is in the plane of `target` across the axes; a margin."""
    i = block.lift
    joint_frame(bodies, state, i)
    me = state[i]
    normal = get(block.normal)
    t = rotate_back(me.R, sub(target, get(me.p)))
    margin = 1.0
    if bodies[i].prismatic == 1:
        me.q = (dot(normal, t) - block.offset) / normal[2]
    else:
        margin = turn_near(me, t, normal, block.offset - normal[2] * t[2], block.flip)
    move_joint(bodies, state, i)
    return margin


@compiled
def drive(bodies, block, state, target, sign):
    """Write the position of the driver, whose frame is placed, that brings the pointing joint within reach of `target`;
    `sign` is +1, -1, or 0 for the branch nearest to the state; margin as in `turn_to`.
    """
    i = block.driver
    me = state[i]
    pointing = bodies[block.pointing]
    if block.spherical == 1:
        t = rotate_back(me.R, target)
        e = axis_z(pointing.rotation)
        return turn_near(me, t, e, block.tip[2] - t[2] * e[2], sign)
    t = rotate_back(me.R, sub(target, get(me.p)))
    e = get(block.elbow)
    reach = squared(reach_of(bodies, block), block.planar)
    if bodies[i].prismatic == 1:
        d = sub(t, e)
        out_of_plane = 0.0  # squared, of the slide's direction
        if block.planar == 1:  # the pointing axis is the plane's normal
            normal = axis_z(pointing.rotation)
            d = sub(d, scale(dot(d, normal), normal))
            out_of_plane = normal[2] * normal[2]
        in_plane = 1.0 - out_of_plane
        nearest = d[2] / in_plane
        across = d[0] * d[0] + d[1] * d[1] - out_of_plane * nearest * d[2]
        h = sqrt(max(reach - across, 0.0) / in_plane)
        if sign == 0.0:
            sign = 1.0 if me.q >= nearest else -1.0
        me.q = nearest + sign * h
        return 1.0 - across / reach
    C = 0.5 * (squared(t, block.planar) + squared(e, block.planar) - reach)
    if block.planar == 0:
        C -= t[2] * e[2]
    return turn_near(me, t, e, C, sign)


@compiled
def seen_from(block, me, target):
    """Vector from a joint to the target; on a sphere, the target itself, which is a direction."""
    if block.spherical == 1:
        return target
    return sub(target, get(me.p))


@compiled
def aim(bodies, block, state, target, d):
    """Turn the pointing joint so that `d`, fixed in its last body, aims at `target`; places those bodies."""
    i = block.pointing
    joint_frame(bodies, state, i)
    me = state[i]
    t = rotate_back(me.R, seen_from(block, me, target))
    if block.pointing_count == 2:
        T = bodies[i + 1].rotation
        zx = T[0, 2]
        zy = T[1, 2]
        A = zx * t[0] + zy * t[1]
        B = zx * t[1] - zy * t[0]
        if 1e-24 * dot(t, t) < A * A + B * B:
            me.c, me.s, _ = turn_to(A, B, d[2] - T[2, 2] * (t[2] - block.rise), block.flip)
        move_joint(bodies, state, i)
        i += 1
        joint_frame(bodies, state, i)
        me = state[i]
        t = rotate_back(me.R, sub(target, get(me.p)))
    face(me, d, t)
    move_joint(bodies, state, i)


@compiled
def turn_wrist(bodies, closures, block, state):
    """Turn the last joint so that the axis of the closure comes nearest to that on its successor; places the body."""
    closure = closures[block.closure_start]
    i = block.wrist
    joint_frame(bodies, state, i)
    me = state[i]
    t = rotate_back(me.R, rotate(state[closure.successor].R, axis_z(closure.successor_rotation)))
    face(me, axis_z(closure.predecessor_rotation), t)
    move_joint(bodies, state, i)


@compiled
def extend(bodies, block, state, target):
    """Write the extension that reaches `target` from the pointing joint, whose frame is known; the aimed vector."""
    i = block.extension
    body = bodies[i]
    first = state[block.pointing]
    t = sub(target, get(first.p))
    if block.planar == 1:
        t = rotate_back(first.R, t)
    e = reach_of(bodies, block)
    z = axis_z(body.rotation)
    in_plane = squared(z, block.planar)
    b = dot(e, z) if block.planar == 0 else e[0] * z[0] + e[1] * z[1]
    longer = squared(t, block.planar) - squared(e, block.planar)
    q = (-b + block.reach * sqrt(max(b * b + in_plane * longer, 0.0))) / in_plane
    state[i].q = q
    return add(e, scale(q, z))


@compiled
def solve_closed_form(bodies, closures, block, state, branch):
    """Positions of a block in closed form; `branch` 0, 1, or -1 for that nearest to the state. Returns the margin."""
    target = target_of(closures, block, state)
    d = get(block.tip)
    margin = 1.0
    if block.lift >= 0:
        margin = lift_to(bodies, block, state, target)
    if block.driver >= 0:
        sign = 0.0 if branch < 0 else block.home_sign * (1.0 - 2.0 * branch)
        joint_frame(bodies, state, block.driver)
        margin = min(margin, drive(bodies, block, state, target, sign))
        move_joint(bodies, state, block.driver)
    if block.extension >= 0:
        joint_frame(bodies, state, block.pointing)
        d = extend(bodies, block, state, target)
        aim(bodies, block, state, target, d)
        place_body(bodies, state, block.extension)
    else:
        if closures[block.closure_start].successor == block.pointing:
            driver = state[block.driver]
            target = add(get(driver.p), rotate(driver.R, get(block.elbow)))
        aim(bodies, block, state, target, d)
    if block.wrist >= 0:
        turn_wrist(bodies, closures, block, state)
    return margin


@compiled
def driven_arm(bodies, closures, block, state):
    """Target of a driver (on a sphere, its direction) and what points there, in the driver's body; bodies in place."""
    me = state[block.driver]
    target = target_of(closures, block, state)
    if block.spherical == 1:
        return rotate_back(me.R, target), axis_z(bodies[block.pointing].rotation)
    return rotate_back(me.R, sub(target, get(me.p))), get(block.elbow)


@compiled
def bend(bodies, closures, block, state):
    """Angle [rad] that the branch adds to a turning driver behind the direction of its target; all bodies in place."""
    t, e = driven_arm(bodies, closures, block, state)
    return atan2(t[0] * e[1] - t[1] * e[0], t[0] * e[0] + t[1] * e[1])


@compiled
def turn_from_home(bodies, closures, block, state, branch, home):
    """Position of a turning driver in the turn reached as the platform goes straight from home, where it is at `home`.

    The straight way passes the driver's axis on one side: the target's direction turns by less than half a turn on it.
    """
    q = state[block.driver].q
    bent = bend(bodies, closures, block, state)
    at_home = home - block.bend * (1.0 - 2.0 * branch)
    return q + 6.283185307179586 * floor((at_home - (q - bent)) / 6.283185307179586 + 0.5)


@compiled
def read_angles(bodies, state, start, stop):
    """Write q of the turning joints of bodies `start` to `stop` from their cosine and sine, nearest to the old q."""
    for i in range(start, stop):
        if bodies[i].prismatic == 0:
            me = state[i]
            q = atan2(me.s, me.c)
            turns = (me.q - q) / 6.283185307179586
            if turns > 0.5 or turns < -0.5:
                q += 6.283185307179586 * floor(turns + 0.5)
            me.q = q
