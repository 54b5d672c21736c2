# SPDX-License-Identifier: Apache-2.0
"""Dynamics of the whole graph, with the actuator velocities u (n,) as coordinates: qd = N(q) u.

    (N^T M N) ud = tau - N^T rnea(q, qd, Nd u)

N and the tables are those of `pkm_kinematics/kernels/rates/graph_motion.py`; `model` has the platform's mass in its
last body. `ud` (n,) are the actuators' accelerations, `effort` (n,) their efforts, q (n_bodies,) the joint positions.

Of kinematically redundant robots the platform and the redundant joints are coordinates as in
`pkm_kinematics/kernels/rates/graph_motion.py`, given in rows; those whose status is not CONVERGED are skipped.

In a configuration-dependent motion space the limbs give the configuration (`TurningRobot`). Coordinates are those of a
redundant robot without redundant joints: the platform's twist and acceleration become the nearest possible ones, as in
`PossibleTwists.nearest_accelerations`. `motion` (25,) as in `inverse_dynamics`, its positions solved in
`limb_data`; `out` (6,) is the platform's acceleration.
"""

from math import atan2, isfinite, sqrt
from typing import Any, NamedTuple

from pkm_dynamics.kernels.mass_matrix import mass_matrix
from pkm_dynamics.kernels.wrenches import add_springs, limb_wrenches
from pkm_kinematics.kernels.dense import copy, solve_positive
from pkm_kinematics.kernels.position.chain import read_chain
from pkm_kinematics.kernels.position.positions import CONVERGED, DIVERGED, SINGULAR
from pkm_kinematics.kernels.rates.graph_motion import (
    close_graph,
    graph_columns,
    graph_velocities,
    motion_here,
    move_coordinates,
    place_row,
    read_accelerations,
    read_platform,
    start_coordinates,
)
from pkm_kinematics.kernels.rates.projection import clear_wrench, gather_block
from pkm_kinematics.kernels.records import BASE, PLATFORM
from pkm_kinematics.kernels.vectors import rotate_back
from pkm_runtime.kernels.compiled import compiled


@compiled
def graph_efforts(model, data, effort):
    """Actuator efforts that make the motion in the state."""
    bodies, block, state = model.bodies, model.blocks[0], data.state
    clear_wrench(state[BASE])
    limb_wrenches(bodies, state)
    add_springs(model, state)
    gather_block(bodies, block, state)
    for c in range(effort.shape[0]):
        effort[c] = 0.0
        for i in range(block.start, block.start + block.count):
            effort[c] += state[i].column[c] * state[i].effort


@compiled
def efforts_here(model, data, u, ud, effort):
    """Efforts for actuators moving at u with accelerations ud. Returns a status."""
    status = motion_here(model, data, u, ud)
    if status == CONVERGED:
        graph_efforts(model, data, effort)
    return status


@compiled
def accelerations_here(model, data, u, effort, ud):
    """Accelerations under efforts, left in the state at constant u, with all joints' velocities. Returns a status."""
    n = u.shape[0]
    M = data.system[1, :n, :n]
    ud[:] = 0.0
    status = efforts_here(model, data, u, ud, ud)  # `ud` is read before it is written
    if status != CONVERGED:
        return status
    for c in range(n):
        ud[c] = effort[c] - ud[c]
    mass_matrix(model.bodies, data.state, model.subspace, M)
    return CONVERGED if solve_positive(M, ud, n) else SINGULAR


@compiled
def arrive_on_graph(model, data, u):
    """Close the loops after a step of all joints, and move at u. Returns a status."""
    status = close_graph(model, data)
    if status == CONVERGED:
        status = graph_columns(model, data)
    if status == CONVERGED:
        graph_velocities(model, data, u)
    return status


@compiled
def step_actuators(model, data, runge_kutta, effort, h, q, u, scratch):
    """Advance q and u by `h` [s] under constant efforts. Returns a status; unless CONVERGED, q and u are unchanged.

    Runge-Kutta of order four, else semi-implicit Euler, of all joints, loops then closed; positions and velocities are
    in the state. `scratch` is (6, n_bodies or more).
    """
    state, block = data.state, model.blocks[0]
    n, start, stop = u.shape[0], block.start, block.start + block.count
    at, ud = scratch[0][:n], scratch[1][:n]
    sum_q, sum_u, sum_rates, sum_ud = scratch[2], scratch[3][:n], scratch[4], scratch[5][:n]
    for c in range(n):
        at[c] = u[c]
        sum_ud[c] = 0.0
    for i in range(start, stop):
        state[i].q = q[i]
        sum_rates[i] = 0.0
    for stage in range(4 if runge_kutta else 1):
        status = accelerations_here(model, data, at, effort, ud)
        if status != CONVERGED:
            return status
        if not runge_kutta:
            for c in range(n):
                at[c] = u[c] + h * ud[c]
            graph_velocities(model, data, at)
            for i in range(start, stop):
                state[i].q = q[i] + h * state[i].qd
            break
        weight = h / 6.0 if stage == 0 or stage == 3 else h / 3.0
        reach = h if stage == 2 else 0.5 * h
        for c in range(n):
            sum_ud[c] += weight * ud[c]
            sum_u[c] = u[c] + (sum_ud[c] if stage == 3 else reach * ud[c])
        for i in range(start, stop):
            sum_rates[i] += weight * state[i].qd
            sum_q[i] = q[i] + (sum_rates[i] if stage == 3 else reach * state[i].qd)
        total = 0.0
        for c in range(n):
            at[c] = sum_u[c]
            total += 0.0 * at[c]
        for i in range(start, stop):
            state[i].q = sum_q[i]
            total += 0.0 * sum_q[i]
        if not isfinite(total):
            return DIVERGED
    status = arrive_on_graph(model, data, at)
    if status != CONVERGED:
        return status
    copy(at, u)
    for i in range(start, stop):
        q[i] = state[i].q
    return CONVERGED


@compiled
def add_wrench(found, wrench, sign, effort):
    """effort (n,) += sign J^T wrench: what a wrench (6,) on the platform does to the actuators."""
    for c in range(effort.shape[0]):
        for r in range(6):
            effort[c] += sign * found.jacobian[r, c] * wrench[r]


@compiled
def redundant_efforts(model, data, at, found, positions, motions, wrenches, condition, efforts, status):
    """Efforts (k, n) of the actuators, and the reciprocal condition (k,) of their Jacobian."""
    n = efforts.shape[1]
    for k in range(positions.shape[0]):
        if status[k] != CONVERGED:
            continue
        place_row(data, positions[k])
        u, ud = data.system[3, 0, :n], data.system[3, 1, :n]
        status[k], condition[k] = move_coordinates(model, data, at, found, motions[k], u, ud)
        if status[k] == CONVERGED:
            graph_efforts(model, data, efforts[k])
            add_wrench(found, wrenches[k], -1.0, efforts[k])


@compiled
def redundant_accelerations(model, data, at, found, positions, motions, wrenches, efforts, out, status):
    """Accelerations `out` (k, 6 + r) under efforts (k, n), which are overwritten, at the rates of `motions`."""
    n = efforts.shape[1]
    for k in range(positions.shape[0]):
        if status[k] == CONVERGED:
            place_row(data, positions[k])
            u, ud = data.system[3, 0, :n], data.system[3, 1, :n]
            status[k] = free_motion(model, data, at, found, motions[k], wrenches[k], efforts[k], out[k], u, ud)


@compiled
def free_motion(model, data, at, found, rates, wrench, effort, out, u, ud):
    """Accelerations `out` (6 + r,) under an effort, which is overwritten; u and ud get the actuators'. A status."""
    status, _ = start_coordinates(model, data, at, found, rates, u)
    if status != CONVERGED:
        return status
    add_wrench(found, wrench, 1.0, effort)
    status = accelerations_here(model, data, u, effort, ud)
    if status != CONVERGED:
        return status
    read_accelerations(data, at, out)  # while the actuators' velocities are constant
    for c in range(u.shape[0]):
        for r in range(6):
            out[r] += found.jacobian[r, c] * ud[c]
        for r in range(at.bodies.shape[0]):
            out[6 + r] += data.state[at.bodies[r]].column[c] * ud[c]
    return CONVERGED


class LimbsInGraph(NamedTuple):
    """Bodies of the whole graph that belong to the limbs, and the start of the platform's branch."""

    graph: Any  # (k,)
    limb: Any  # (k,) the same bodies in the tables of the limbs
    branch: Any  # first body of the branch
    home: Any  # (4, 4) the platform at home


class TurningRobot(NamedTuple):
    """A robot as its limbs, solved for a pose, and as one graph for the rest."""

    limbs: Any  # Model
    limb_data: Any  # Data: configuration at the pose
    graph: Any  # Model, mass of the platform in its last body
    data: Any  # Data of the graph
    joins: Any  # LimbsInGraph
    at: Any  # Coordinates
    found: Any  # GraphMotion: what is read of the graph


@compiled
def take_limbs(robot):
    """Copy the limbs' joints into the graph, and bring the platform's branch to the platform."""
    limbs, limb_data, joins = robot.limbs, robot.limb_data, robot.joins
    state, platform = robot.data.state, limb_data.state[PLATFORM]
    for k in range(joins.graph.shape[0]):
        state[joins.graph[k]].q = limb_data.state[joins.limb[k]].q
    first = joins.branch
    if limbs.chain.shape[0] > 1:
        read_chain(limbs, limb_data, platform.R, platform.p)
        for i in range(1, limbs.chain.shape[0]):
            state[first + i - 1].q = limb_data.chain[i].q
        return
    H, R = joins.home, platform.R  # six joints about home stand for a branch: x y z, then turns about z, y and x
    for k in range(3):
        q = 0.0
        for r in range(3):
            q += H[r, k] * (platform.p[r] - H[r, 3])
        state[first + k].q = q
    x = rotate_back(H, R[:, 0])
    y = rotate_back(H, R[:, 1])
    z = rotate_back(H, R[:, 2])
    state[first + 3].q = atan2(x[1], x[0])
    state[first + 4].q = atan2(-x[2], sqrt(x[0] * x[0] + x[1] * x[1]))
    state[first + 5].q = atan2(y[2], z[2])


@compiled
def turning_inverse(robot, motion, effort):
    """Efforts for a platform motion. Returns a status."""
    model, data, n = robot.graph, robot.data, effort.shape[0]
    take_limbs(robot)
    u, ud = data.system[3, 0, :n], data.system[3, 1, :n]
    status, _ = move_coordinates(model, data, robot.at, robot.found, motion[7:], u, ud)
    if status == CONVERGED:
        graph_efforts(model, data, effort)
        add_wrench(robot.found, motion[19:], -1.0, effort)
    return status


@compiled
def turning_direct(robot, motion, effort, out):
    """Platform acceleration under efforts; the actuators' u and ud stay in scratch rows 0 and 1. Returns a status."""
    data, n = robot.data, effort.shape[0]
    take_limbs(robot)
    u, ud, given = data.system[3, 0, :n], data.system[3, 1, :n], data.system[3, 2, :n]
    copy(effort, given)
    return free_motion(robot.graph, data, robot.at, robot.found, motion[7:], motion[19:], given, out, u, ud)


@compiled
def turning_step(robot, dt, motion, effort, out):
    """Advance pose and twist in `motion` by `dt` [s]: semi-implicit Euler in the actuators. Returns a status."""
    model, data, found, n = robot.graph, robot.data, robot.found, effort.shape[0]
    status = turning_direct(robot, motion, effort, out)
    if status != CONVERGED:
        return status
    u, ud, block = data.system[3, 0, :n], data.system[3, 1, :n], model.blocks[0]
    for c in range(n):
        u[c] += dt * ud[c]
    graph_velocities(model, data, u)
    for i in range(block.start, block.start + block.count):
        data.state[i].q += dt * data.state[i].qd
    status = arrive_on_graph(model, data, u)
    if status != CONVERGED:
        return status
    read_platform(model, data, robot.at.places, found)
    copy(found.pose, motion[:7])
    copy(found.twist, motion[7:13])
    return CONVERGED
