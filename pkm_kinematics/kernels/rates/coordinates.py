# SPDX-License-Identifier: Apache-2.0
"""Platform and redundant joints as coordinates of the whole graph, whose own are the actuators.

A kinematically redundant robot has as many actuators as the platform and its redundant joints have degrees of freedom.
Rates x (6 + r,) are the platform's twist, then the rates of the redundant joints; J (6 + r, n) maps actuator velocities
u to them, and has full column rank but at singularities. The tables are those of `graph_motion`.
"""

from typing import Any, NamedTuple

from pkm_kinematics.kernels.path.graph_reading import read_acceleration, read_platform
from pkm_kinematics.kernels.position.positions import CONVERGED, INVALID_INPUT, SINGULAR
from pkm_kinematics.kernels.rates.graph_motion import graph_accelerations, graph_columns, graph_velocities
from pkm_kinematics.kernels.regularity import factorise, is_regular, nearest
from pkm_kinematics.kernels.short_vectors import all_finite
from pkm_runtime.kernels.compiled import compiled

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
def move_coordinates(model, data, at, found, motion, u, ud):
    """All bodies, placed by the joint positions in the state, moved by rates and accelerations of x.

    `motion` (2 (6 + r),) holds both; u and ud (n,) get those of the actuators, `found` the platform. Returns a status
    and the reciprocal condition of J.
    """
    m = at.units.shape[0]
    status = graph_columns(model, data)
    if status != CONVERGED:
        return status, 0.0
    condition = factorise_coordinates(model, data, at, found)
    if not is_regular(condition):
        return SINGULAR, condition
    wanted = data.system[3, WANTED, :m]
    for k in range(m):
        wanted[k] = motion[k]
    actuator_rates(data, at, wanted, u)
    graph_velocities(model, data, u)
    for c in range(ud.shape[0]):
        ud[c] = 0.0
    graph_accelerations(model, data, ud)
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
    """Rates of actuators u (k, n), of all joints qd and qdd (k, n_joints), for motions as in `move_coordinates`.

    For rows of closed positions (k, n_bodies) whose status is CONVERGED; u holds the actuators' velocities.
    """
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
