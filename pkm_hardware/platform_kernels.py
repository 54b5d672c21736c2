# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels of the simulated machine: contact of its platform with solids, and one integration step."""

from math import atan2, isfinite, sqrt

from pkm_dynamics.kernels.platform_dynamics import direct_dynamics
from pkm_kinematics.kernels.compiled_rotations import product, shift_pose
from pkm_kinematics.kernels.position.positions import CONVERGED, DIVERGED
from pkm_runtime.kernels import PURPOSES
from pkm_runtime.kernels.compiled import compiled

PURPOSES["pkm_hardware"] = ("for the simulated machine", 8.0)

# columns of a solid: a half-space, with a bore where its radius is not zero
POINT, NORMAL, MOUTH, RADIUS, DEPTH = 0, 3, 6, 9, 10
STIFFNESS, DAMPING, FRICTION, CREEP = 11, 12, 13, 14
COLUMNS = 15

SCRATCH = 12  # rows of 25


@compiled
def penetration(solid, x, y, z):
    """Depth of a point in a solid, and the unit direction out of it; not positive outside. Beside the mouth of a bore
    the way out is the shorter one: up through the surface, or into the bore.
    """
    a, b, c = solid[NORMAL], solid[NORMAL + 1], solid[NORMAL + 2]
    deep = -((x - solid[POINT]) * a + (y - solid[POINT + 1]) * b + (z - solid[POINT + 2]) * c)
    if deep <= 0.0 or solid[RADIUS] <= 0.0:
        return deep, a, b, c
    u, v, w = x - solid[MOUTH], y - solid[MOUTH + 1], z - solid[MOUTH + 2]
    along = u * a + v * b + w * c
    u, v, w = u - along * a, v - along * b, w - along * c
    off = sqrt(u * u + v * v + w * w)
    wall = off - solid[RADIUS]
    if wall <= 0.0:
        return deep - solid[DEPTH], a, b, c
    if wall < deep:
        return wall, -u / off, -v / off, -w / off
    return deep, a, b, c


@compiled
def contact_wrench(solids, points, motion, wrench):
    """Wrench (6,) of solids (m, COLUMNS) on a platform, about its origin, base axes, in its motion (pose, twist, ...).
    `points` (n, 3) of the platform, in its frame, may touch. The normal force is k p (1 + d p'), never a pull (Hunt and
    Crossley, "Coefficient of restitution interpreted as damping in vibroimpact", 1975): it begins and ends at zero, so
    an impact only takes energy. Friction opposes sliding, and is proportional to its speed below `CREEP`.
    """
    for k in range(6):
        wrench[k] = 0.0
    qx, qy, qz, qw = motion[3], motion[4], motion[5], motion[6]
    for i in range(points.shape[0]):
        tx, ty, tz, tw = product(qx, qy, qz, qw, points[i, 0], points[i, 1], points[i, 2], 0.0)
        rx, ry, rz, _ = product(tx, ty, tz, tw, -qx, -qy, -qz, qw)
        vx = motion[7] + motion[11] * rz - motion[12] * ry
        vy = motion[8] + motion[12] * rx - motion[10] * rz
        vz = motion[9] + motion[10] * ry - motion[11] * rx
        for j in range(solids.shape[0]):
            solid = solids[j]
            deep, a, b, c = penetration(solid, motion[0] + rx, motion[1] + ry, motion[2] + rz)
            if deep <= 0.0:
                continue
            leaving = vx * a + vy * b + vz * c
            press = max(0.0, solid[STIFFNESS] * deep * (1.0 - solid[DAMPING] * leaving))
            ux, uy, uz = vx - leaving * a, vy - leaving * b, vz - leaving * c
            drag = solid[FRICTION] * press / max(sqrt(ux * ux + uy * uy + uz * uz), solid[CREEP])
            fx, fy, fz = press * a - drag * ux, press * b - drag * uy, press * c - drag * uz
            wrench[0] += fx
            wrench[1] += fy
            wrench[2] += fz
            wrench[3] += ry * fz - rz * fy
            wrench[4] += rz * fx - rx * fz
            wrench[5] += rx * fy - ry * fx


@compiled
def attitude_rate(displacement, twist, out):
    """Rate `out` (6,) of a displacement from the start of the step, given the twist (6,) of the moved body. The
    attitude is a rotation vector r from the start of the step; its rate is w - r x w / 2 + r x (r x w) / 12 up to terms
    of fourth order in r (Hairer, Lubich and Wanner, "Geometric numerical integration", IV.7).
    """
    x, y, z = displacement[3], displacement[4], displacement[5]
    a, b, c = twist[3], twist[4], twist[5]
    u, v, w = y * c - z * b, z * a - x * c, x * b - y * a
    for k in range(6):
        out[k] = twist[k]
    out[3] += -0.5 * u + (y * w - z * v) / 12.0
    out[4] += -0.5 * v + (z * u - x * w) / 12.0
    out[5] += -0.5 * w + (x * v - y * u) / 12.0


@compiled
def read_actuators(bodies, state, positions, velocities):
    """Actuated joint positions, with revolute joints on the turn nearest to that in `positions`, and velocities."""
    for i in range(2, bodies.shape[0]):
        a = bodies[i].actuator
        if a >= 0:
            q = state[i].q
            if bodies[i].prismatic == 0:
                q = atan2(state[i].s, state[i].c)  # the solvers of the dynamics leave angles as sine and cosine
                q += 6.283185307179586 * round((positions[a] - q) / 6.283185307179586)
            positions[a] = q
            velocities[a] = state[i].qd


@compiled
def finite(values, n):
    """True where the first n values are finite."""
    total = 0.0
    for k in range(n):
        total += 0.0 * values[k]  # NaN as soon as one is not
    return isfinite(total)


@compiled
def step_platform(model, data, branch, touch, motion, effort, h, scratch, readings):
    """Advance pose and twist in `motion` (25,) by h seconds, and read the actuators there; return a status.

    The step is the classical one of Runge-Kutta, of order four, on the rotation group by `attitude_rate`. With h = 0
    nothing moves: the state is checked and the actuators are read. `readings` are their positions and velocities
    (2, n_actuated). `motion` changes only when the status is CONVERGED; its external wrench is that of the solids in
    `touch`. `scratch` is (SCRATCH, 25).
    """
    bodies, state = model.bodies, data.state
    trial, displacement, sum_u, sum_a = scratch[0], scratch[1], scratch[2], scratch[3]
    u, a = scratch[4], scratch[5][:6]
    for k in range(25):
        trial[k] = motion[k]
    for k in range(6):
        displacement[k] = 0.0
        sum_u[k] = 0.0
        sum_a[k] = 0.0
    if h > 0.0:
        for stage in range(4):
            if not finite(trial, 13):
                return DIVERGED
            contact_wrench(touch.solids, touch.points, trial, trial[19:])
            status = direct_dynamics(model, data, branch, trial, effort, a)
            if status != CONVERGED:
                return status
            attitude_rate(displacement, trial[7:], u)
            weight = h / 6.0 if stage == 0 or stage == 3 else h / 3.0
            for k in range(6):
                sum_u[k] += weight * u[k]
                sum_a[k] += weight * a[k]
            reach = h if stage == 2 else 0.5 * h
            for k in range(6):
                displacement[k] = sum_u[k] if stage == 3 else reach * u[k]
                trial[7 + k] = motion[7 + k] + (sum_a[k] if stage == 3 else reach * a[k])
            shift_pose(motion, displacement, 1.0, trial)
    if not finite(trial, 13):
        return DIVERGED
    contact_wrench(touch.solids, touch.points, trial, trial[19:])
    status = direct_dynamics(model, data, branch, trial, effort, a)
    if status != CONVERGED:
        return status
    for k in range(13):
        motion[k] = trial[k]
    for k in range(19, 25):
        motion[k] = trial[k]
    read_actuators(bodies, state, readings[0], readings[1])
    return CONVERGED


@compiled
def stop_efforts(positions, velocities, lower, upper, stiffness, damping, out):
    """Write efforts (n,) of end stops at `lower` and `upper` (n,) into `out`: springs and dampers that only push."""
    for k in range(positions.shape[0]):
        out[k] = 0.0
        if positions[k] > upper[k]:
            out[k] = -max(stiffness[k] * (positions[k] - upper[k]) + damping[k] * velocities[k], 0.0)
        elif positions[k] < lower[k]:
            out[k] = max(stiffness[k] * (lower[k] - positions[k]) - damping[k] * velocities[k], 0.0)
