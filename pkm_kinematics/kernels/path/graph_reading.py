# SPDX-License-Identifier: Apache-2.0
"""One reading of the actuators turned into the motion of the whole robot, on the whole graph, in one compiled call.

As `track_reading`, for configuration-dependent motion spaces, and for limbs on sides that no closed form takes: the
graph needs neither a motion space nor a working mode.
"""

from typing import Any, NamedTuple

from pkm_kinematics.kernels.compiled_rotations import write_quaternion
from pkm_kinematics.kernels.path.follow import follow_graph
from pkm_kinematics.kernels.position.closures import turned_over
from pkm_kinematics.kernels.position.positions import CONVERGED, DIVERGED, INVALID_INPUT, JOINT_LIMIT, closes
from pkm_kinematics.kernels.rates.graph_motion import graph_columns, graph_velocities
from pkm_kinematics.kernels.records import BASE
from pkm_kinematics.kernels.short_vectors import all_finite
from pkm_kinematics.kernels.vectors import add, cross, get, matmul, put, rotate, sub
from pkm_runtime.kernels.compiled import allocating, compiled


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


@allocating
def track_graph(model, data, size, places, q, u, positions, motion):
    """Move the closed `positions` (n_bodies,) to actuators at q with rates u (n_actuated,): (status, gap, iterations).

    `motion` counts where CONVERGED or JOINT_LIMIT, else positions stay. For as many actuators as degrees of freedom.
    """
    state = data.state
    for a in range(q.shape[0]):
        if not abs(q[a]) < places.farthest[a]:
            return INVALID_INPUT, 0.0, 0
    for i in range(state.shape[0]):
        state[i].q = positions[i]
    status, residual, iterations = follow_graph(model, data, size, places.actuators, q)
    if status != CONVERGED:
        return status, residual, iterations
    if turned_over(model.closures, model.blocks[0], state):
        return DIVERGED, residual, iterations
    status = read_graph(model, data, places, u, motion)
    if closes(status):
        for i in range(state.shape[0]):
            positions[i] = state[i].q
    return status, residual, iterations
