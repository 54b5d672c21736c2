# SPDX-License-Identifier: Apache-2.0
"""How all joints of the whole graph move with the actuators, which are the coordinates u (n,): qd = N(q) u.

The tables are those of the whole graph with the actuators held: one block, the platform's branch among its bodies. This
needs no motion space and is regular where a limb is stretched or folded (type 1). At a singularity of type 2, N grows
without bounds, and a status says so.

A kinematically redundant robot has as many actuators as the platform and its redundant joints have degrees of freedom.
Rates x (6 + r,) are the platform's twist, then the rates of the redundant joints; J (6 + r, n) maps actuator velocities
u to them, and has full column rank but at singularities.
"""

from typing import Any, NamedTuple

from pkm_kinematics.kernels.compiled_rotations import write_quaternion
from pkm_kinematics.kernels.dense import all_finite, copy
from pkm_kinematics.kernels.position.closures import closed, invert_block, joint_row
from pkm_kinematics.kernels.position.positions import (
    CONVERGED,
    DIVERGED,
    INVALID_INPUT,
    JOINT_LIMIT,
    SINGULAR,
    place_block,
    solve_newton,
    write_block_rows,
)
from pkm_kinematics.kernels.rates.motion import (
    bias_acceleration,
    correct,
    move_body,
    relative_acceleration,
    row_acceleration,
)
from pkm_kinematics.kernels.records import BASE
from pkm_kinematics.kernels.regularity import factorise, is_regular, nearest
from pkm_kinematics.kernels.vectors import add, cross, get, matmul, put, rotate, sub
from pkm_runtime.kernels.compiled import compiled


@compiled
def graph_columns(model, data):
    """Place all bodies by the joint positions in the state, and write N: every joint's `column`. Returns a status."""
    bodies, closures, block = model.bodies, model.closures, model.blocks[0]
    state, rows, work = data.state, data.rows, data.work
    n, m = model.subspace.shape[1], block.rows
    place_block(bodies, block, state)
    write_block_rows(closures, block, state, rows)
    if not is_regular(invert_block(model, data, block)):
        return SINGULAR
    for i in range(block.start, block.start + block.count):
        for c in range(n):
            state[i].column[c] = 0.0
        if bodies[i].actuator >= 0:
            state[i].column[bodies[i].actuator] = 1.0
    for k in range(block.closure_start, block.closure_start + block.closure_count):
        closure = closures[k]
        point = get(rows[closure.rows_at].point)
        for side in range(2):
            sign = 1.0 - 2.0 * side
            j = closure.successor if side == 0 else closure.predecessor
            while j >= block.start:
                a = bodies[j].actuator
                if a >= 0:
                    for r in range(closure.rows_at, closure.rows_at + closure.rows):
                        rate = sign * joint_row(bodies[j], state[j], rows[r], point)
                        for i in range(block.count):
                            at = block.inverse_at + r - block.rows_at + i * m
                            state[block.start + i].column[a] -= work[at] * rate
                j = bodies[j].parent
    return CONVERGED


@compiled
def graph_velocities(model, data, u):
    """Velocities of all joints and bodies for actuator velocities u (n,), N written before."""
    bodies, block, state = model.bodies, model.blocks[0], data.state
    for i in range(block.start, block.start + block.count):
        rate = 0.0
        for c in range(u.shape[0]):
            rate += state[i].column[c] * u[c]
        state[i].qd = rate
        move_body(bodies, state, i)


@compiled
def graph_accelerations(model, data, ud):
    """Accelerations of all joints and bodies for actuator accelerations ud (n,), velocities computed before."""
    bodies, closures, block = model.bodies, model.closures, model.blocks[0]
    state, rows, work = data.state, data.rows, data.work
    m = block.rows
    stop = block.start + block.count
    for i in range(block.start, stop):
        a = bodies[i].actuator
        state[i].qdd = ud[a] if a >= 0 else 0.0
        bias_acceleration(bodies, state, i)
    correct(bodies, block, state)
    for k in range(block.closure_start, block.closure_start + block.closure_count):
        closure = closures[k]
        opening, turning = relative_acceleration(closure, state, rows)
        for r in range(closure.rows_at, closure.rows_at + closure.rows):
            rate = row_acceleration(closure, state, rows, r, opening, turning)
            for i in range(block.count):
                if bodies[block.start + i].actuator < 0:
                    state[block.start + i].qdd -= work[block.inverse_at + r - block.rows_at + i * m] * rate
    for i in range(block.start, stop):
        bias_acceleration(bodies, state, i)
    correct(bodies, block, state)


@compiled
def motion_here(model, data, u, ud):
    """The motion of all joints and bodies for u and ud (n,), at the joint positions in the state. Returns a status."""
    status = graph_columns(model, data)
    if status != CONVERGED:
        return status
    graph_velocities(model, data, u)
    graph_accelerations(model, data, ud)
    return CONVERGED


@compiled
def close_graph(model, data):
    """Close the loops with the actuators where they are, from joint positions that have drifted. Returns a status."""
    residual, _ = solve_newton(model, data, model.blocks[0])
    return CONVERGED if closed(model.blocks[0], residual) else DIVERGED


class GraphPlaces(NamedTuple):
    """Where in the whole graph the robot's actuators, its joints and its platform are."""

    actuators: Any  # (n_actuated,) their bodies
    farthest: Any  # (n_actuated,) positions from which on readings are not usable
    bodies: Any  # (n_joints,) those of the robot's own joints
    lower: Any  # (n_joints,) ends of the joints' ranges
    upper: Any  # (n_joints,)
    carrier: Any  # the platform's last body
    tail: Any  # (4, 4) the platform's frame in it


class GraphMotion(NamedTuple):
    """The motion of the whole robot, written by kernels."""

    pose: Any  # (7,) of the platform
    twist: Any  # (6,) of the platform
    joints: Any  # (n_joints,) positions
    velocities: Any  # (n_joints,)
    jacobian: Any  # (6, n_actuated) platform twist per actuated joint rates


@compiled
def read_platform(model, data, places, motion):
    """Write pose, twist and Jacobian of the platform to `motion`, the columns and velocities of all bodies known."""
    bodies, state, tail, J = model.bodies, data.state, places.tail, motion.jacobian
    me = state[places.carrier]
    arm = rotate(me.R, (tail[0, 3], tail[1, 3], tail[2, 3]))
    origin = add(get(me.p), arm)
    put(motion.pose, origin)
    R = data.system[0]  # free, and at least of this size
    matmul(me.R, tail, R)
    write_quaternion(R, motion.pose[3:])
    put(motion.twist, add(get(me.v), cross(get(me.w), arm)))
    put(motion.twist[3:], get(me.w))
    n = J.shape[1]
    for r in range(6):
        for c in range(n):
            J[r, c] = 0.0
    j = places.carrier
    while j >= model.blocks[0].start:
        axis = (state[j].R[0, 2], state[j].R[1, 2], state[j].R[2, 2])
        sliding = bodies[j].prismatic == 1
        linear = axis if sliding else cross(axis, sub(origin, get(state[j].p)))
        for c in range(n):
            rate = state[j].column[c]
            for r in range(3):
                J[r, c] += linear[r] * rate
                if not sliding:
                    J[3 + r, c] += axis[r] * rate
        j = bodies[j].parent


@compiled
def read_acceleration(data, places, out):
    """Acceleration (6,) of the platform where those of all bodies are known."""
    me, tail = data.state[places.carrier], places.tail
    arm = rotate(me.R, (tail[0, 3], tail[1, 3], tail[2, 3]))
    w = get(me.w)
    linear = add(get(me.dv), add(cross(get(me.dw), arm), cross(w, cross(w, arm))))
    for r in range(3):
        out[r] = linear[r] - data.state[BASE].dv[r]
        out[3 + r] = me.dw[r]


@compiled
def read_graph(model, data, places, u, motion):
    """The robot's motion for actuator velocities u (n_actuated,), the loops closed in the state. Returns a status."""
    status = graph_columns(model, data)
    if status != CONVERGED:
        return status
    graph_velocities(model, data, u)
    read_platform(model, data, places, motion)
    status = CONVERGED
    for k in range(places.bodies.shape[0]):
        me = data.state[places.bodies[k]]
        motion.joints[k], motion.velocities[k] = me.q, me.qd
        if not places.lower[k] <= me.q <= places.upper[k]:
            status = JOINT_LIMIT
    if not (all_finite(motion.twist) and all_finite(motion.velocities)):  # of actuators faster than any
        return INVALID_INPUT
    return status


WANTED, WEIGHTS = range(3, 5)  # scratch vectors, rows of `Data.system[3]`


class Coordinates(NamedTuple):
    """Redundant joints in the whole graph, and what makes rates uniform."""

    bodies: Any  # (r,) of the graph
    units: Any  # (6 + r,) speeds [m/s] that count as unit rates of x
    drives: Any  # (n,) the same of the actuators
    places: Any  # GraphPlaces


@compiled
def factorise_coordinates(model, data, at, found):
    """Prepare `actuator_rates` with the columns written; leaves the platform in `found`. Reciprocal condition of J."""
    read_platform(model, data, at.places, found)
    J, n, r = found.jacobian, at.drives.shape[0], at.bodies.shape[0]
    A = data.system[2, : 6 + r, :n]
    for c in range(n):
        for k in range(6 + r):
            rate = J[k, c] if k < 6 else data.state[at.bodies[k - 6]].column[c]
            A[k, c] = rate * at.units[k] / at.drives[c]
    return factorise(A, 6 + r, n, data.system[1, :n, :n], data.system[3, WEIGHTS])


@compiled
def actuator_rates(data, at, wanted, rates):
    """Actuator rates (n,) that go with rates `wanted` (6 + r,) of x, which are overwritten."""
    n, m = at.drives.shape[0], at.units.shape[0]
    for k in range(m):
        wanted[k] *= at.units[k]
    nearest(data.system[2, :m, :n], m, n, data.system[1, :n, :n], data.system[3, WEIGHTS], wanted, rates)
    for c in range(n):
        rates[c] /= at.drives[c]


@compiled
def read_accelerations(data, at, out):
    """Accelerations (6 + r,) of x where those of all bodies are known."""
    read_acceleration(data, at.places, out)
    for k in range(at.bodies.shape[0]):
        out[6 + k] = data.state[at.bodies[k]].qdd


@compiled
def start_coordinates(model, data, at, found, rates, u):
    """Rates u (n,) of the actuators for `rates` (6 + r,) of x, at the joint positions in the state.

    `found` gets the platform. Returns a status and the reciprocal condition of J.
    """
    status = graph_columns(model, data)
    if status != CONVERGED:
        return status, 0.0
    condition = factorise_coordinates(model, data, at, found)
    if not is_regular(condition):
        return SINGULAR, condition
    wanted = data.system[3, WANTED, : at.units.shape[0]]
    copy(rates, wanted)
    actuator_rates(data, at, wanted, u)
    return CONVERGED, condition


@compiled
def move_coordinates(model, data, at, found, motion, u, ud):
    """As `start_coordinates`; all bodies move by rates and accelerations of x in `motion`, actuators by u and ud."""
    m = at.units.shape[0]
    status, condition = start_coordinates(model, data, at, found, motion, u)
    if status != CONVERGED:
        return status, condition
    graph_velocities(model, data, u)
    ud[:] = 0.0
    graph_accelerations(model, data, ud)
    wanted = data.system[3, WANTED, :m]
    read_accelerations(data, at, wanted)
    for k in range(m):
        wanted[k] = motion[m + k] - wanted[k]
    actuator_rates(data, at, wanted, ud)
    graph_accelerations(model, data, ud)
    return CONVERGED, condition


@compiled
def place_row(data, positions):
    """Put the joints of the graph where a row (n_bodies,) of positions says."""
    for i in range(positions.shape[0]):
        data.state[i].q = positions[i]


@compiled
def coordinate_motions(model, data, at, found, positions, motions, u, qd, qdd, status):
    """Rates of actuators u (k, n), all joints' qd and qdd (k, n_joints), for `motions`; rows that are CONVERGED."""
    ud = data.system[3, 0, : u.shape[1]]
    for k in range(positions.shape[0]):
        if status[k] != CONVERGED:
            continue
        place_row(data, positions[k])
        status[k], _ = move_coordinates(model, data, at, found, motions[k], u[k], ud)
        if status[k] != CONVERGED:
            continue
        for j in range(at.places.bodies.shape[0]):
            me = data.state[at.places.bodies[j]]
            qd[k, j], qdd[k, j] = me.qd, me.qdd
        if not (all_finite(qd[k]) and all_finite(qdd[k])):
            status[k] = INVALID_INPUT
