# SPDX-License-Identifier: Apache-2.0
"""Questions about assembly modes: which is nearest to home, which agree with the actuators, on which side each is.

The sides are those of the singularities: every limb's of type 1, and the platform's of type 2.

What locked actuators leave of most limbs is a point of the platform at a known distance from a known centre: limbs
whose actuated joint is the driver or the extension of the closed form. The Delta, the Gough-Stewart platform, the
hexaglide and the planar 3-RRR differ only in where the centres are. centres (k, 3) are in the base frame, points (k, 3)
in the platform frame, lengths (k,), all in m; q (n_actuated,) are actuator positions.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from pkm_kinematics.kernels.compiled_rotations import product, vector_of, write_rotation
from pkm_kinematics.kernels.dense import copy, determinant_sign
from pkm_kinematics.kernels.model_and_data import NEAREST_BRANCH
from pkm_kinematics.kernels.path.follow_graph import same_side_of_graph
from pkm_kinematics.kernels.position.closed_form import driven_arm, reach_of, squared
from pkm_kinematics.kernels.position.closures import block_jacobian
from pkm_kinematics.kernels.position.placement import place_body, set_angle
from pkm_kinematics.kernels.position.positions import CONVERGED, SINGULAR, UNREACHABLE, closes
from pkm_kinematics.kernels.position.solve_poses import solve_pose, take_seed
from pkm_kinematics.kernels.rates.motion import invert_blocks
from pkm_kinematics.kernels.rates.projection import drive_rates, inverse_jacobian
from pkm_kinematics.kernels.records import NEWTON, PLATFORM
from pkm_kinematics.kernels.regularity import is_regular
from pkm_kinematics.kernels.vectors import add, axis_z, cross, dot, get, put, rotate, scale, sub
from pkm_runtime.kernels.compiled import allocating, compiled, plain

TIE = 1e-9  # of the length: poses that a symmetry puts at one distance, but for rounding


@compiled
def sort_by_distance(home, length, poses, away, order):
    """Write to `order` the numbers of poses (k, 7), nearest to `home` first; angles are arcs of radius `length`."""
    for k in range(poses.shape[0]):
        b = poses[k]
        x, y, z, w = product(b[3], b[4], b[5], b[6], -home[3], -home[4], -home[5], home[6])
        x, y, z = vector_of(x, y, z, w)
        far = sqrt(
            (b[0] - home[0]) ** 2
            + (b[1] - home[1]) ** 2
            + (b[2] - home[2]) ** 2
            + length * length * (x * x + y * y + z * z)
        )
        at = k
        while at > 0 and away[at - 1] > far + TIE * length:
            away[at] = away[at - 1]
            order[at] = order[at - 1]
            at -= 1
        away[at] = far
        order[at] = k


@compiled
def actuator_errors(joints, columns, q, errors):
    """Largest difference `errors` (k,) of the joints (k, n_joints) in some columns from q (m,); infinite for NaN."""
    for k in range(joints.shape[0]):
        worst = 0.0
        for a in range(columns.shape[0]):
            error = abs(joints[k, columns[a]] - q[a])
            worst = max(worst, error) if error == error else inf
        errors[k] = worst


@compiled
def side_of_driver(bodies, closures, block, state):
    """Derivative, up to a positive factor, of the distance equation by a block's driver; 0 where its branches meet."""
    t, e = driven_arm(bodies, closures, block, state)
    if bodies[block.driver].prismatic == 0:
        return t[0] * e[1] - t[1] * e[0]
    d = sub(t, e)
    if block.planar == 1:  # the pointing axis is the plane's normal
        normal = axis_z(bodies[block.pointing].rotation)
        d = sub(d, scale(dot(d, normal), normal))
    return -d[2]


@allocating
def read_modes(model, data, before, now, sides, pose, joints):
    """Sides of the configuration at a pose (7,) nearest to `joints` (n_joints,): (status, side of the platform).

    `sides` (n_blocks,): of a block with two branches +1 in home's, -1 in the other; of one solved by iteration -1 where
    the sign of its Jacobian's determinant differs from that in `before` (n_work,), which is then updated. The
    platform's is that of the inverse Jacobian's determinant, with the sign of each branch taken out; 1 where it is not
    square or the motion space is configuration-dependent. `now` (n_work,) is scratch.
    """
    bodies, closures, blocks, state, work = model.bodies, model.closures, model.blocks, data.state, data.work
    take_seed(model, data, joints)
    status, _, _ = solve_pose(model, data, pose, NEAREST_BRANCH)
    if not closes(status):
        return status, 0.0
    if not is_regular(invert_blocks(model, data)):
        return SINGULAR, 0.0
    side = 1.0
    for b in range(blocks.shape[0]):
        block = blocks[b]
        sides[b] = 1.0
        if block.solver != NEWTON:
            if block.branches > 1:
                if side_of_driver(bodies, closures, block, state) * block.home_sign < 0.0:
                    sides[b] = -1.0
                if bodies[block.driver].actuator >= 0:
                    side *= sides[b]
            continue
        size = block.rows * block.count
        J0 = before[block.inverse_at : block.inverse_at + size]
        J = now[block.inverse_at : block.inverse_at + size]
        block_jacobian(model, data, block, J, 0)
        A = np.empty((block.count, block.count))
        if not same_side_of_graph(block, work, J0, J, A):
            sides[b] = -1.0
        copy(J, J0)
    if model.task[0].square == 0:
        return status, 1.0
    subspace = model.subspace
    n = subspace.shape[1]
    K, A = data.system[0, :n], data.system[1, :n, :n]
    inverse_jacobian(model, data, K)
    drive_rates(K, subspace, A)
    return status, side * determinant_sign(A, n)


@compiled
def distances(model, data, q, centres, points, lengths):
    """One distance per actuated block, in a plane across the joint axes; returns their number k."""
    bodies, blocks, state = model.bodies, model.blocks, data.state
    k = 0
    for b in range(blocks.shape[0]):
        block = blocks[b]
        if block.actuators == 0:
            continue
        reach = reach_of(bodies, block)
        i = block.driver
        if i >= 0:
            set_angle(state, i, q[bodies[i].actuator])
            place_body(bodies, state, i)
        else:
            body = bodies[block.extension]
            z = (body.rotation[0, 2], body.rotation[1, 2], body.rotation[2, 2])
            reach = add(reach, scale(q[body.actuator], z))
        parent = state[bodies[block.pointing].parent]
        put(centres[k], add(get(parent.p), rotate(parent.R, get(block.elbow))))
        put(points[k], get(block.target))
        lengths[k] = sqrt(squared(reach, block.planar))
        k += 1
    return k


@allocating
def forward_translation(model, data, centres, points, lengths, q, out):
    """Both origins `out` (2, 3) of a platform on three distances, orientation as in the state; SINGULAR if not two."""
    state = data.state
    distances(model, data, q, centres, points, lengths)
    R = state[PLATFORM].R
    for k in range(3):
        put(centres[k], sub(get(centres[k]), rotate(R, get(points[k]))))
    answer = three_spheres(centres, lengths, out)
    if answer == APART:
        return UNREACHABLE
    return CONVERGED if answer > COLLINEAR and answer == 2 else SINGULAR


@compiled
def leg_sides(centres, points, subspace, poses, R, A, signs):
    """Sides (k,) of type 2 on which poses (k, 7) are: signs of the determinant of the legs' wrenches on a motion space.

    That is `subspace` (6, n); R (3, 3) and A (n, n) are scratch.
    """
    n = subspace.shape[1]
    for k in range(poses.shape[0]):
        pose = poses[k]
        write_rotation(pose[3], pose[4], pose[5], pose[6], R)
        for i in range(n):
            arm = rotate(R, get(points[i]))
            leg = sub(add(get(pose), arm), get(centres[i]))
            moment = cross(arm, leg)
            for c in range(n):
                total = 0.0
                for x in range(3):
                    total += leg[x] * subspace[x, c] + moment[x] * subspace[3 + x, c]
                A[i, c] = total
        signs[k] = determinant_sign(A, n)


Array = NDArray[np.float64]

TWO, TANGENT, APART, COLLINEAR = 2, 1, 0, -1  # answers of `three_spheres`
TANGENCY = 1e-14  # squared height over squared size below which two points count as one: lengths then err by as little
COLLINEARITY = 1e-12  # sine of the angle at the first centre


@plain
def three_spheres(centres: Array, radii: Array, points: Array) -> int:
    """Points (2, 3), written in place, at distances radii (3,) from centres (3, 3), all in m.

    Returns TWO; TANGENT where both are the same point (a type 2 singularity); APART where there is no real point, with
    both where the spheres come closest in the sense of their powers; COLLINEAR where the centres lie on a line. Point 0
    is on the side from which the centres run counter-clockwise, point 1 its mirror image in their plane.
    """
    ux, uy, uz = centres[1, 0] - centres[0, 0], centres[1, 1] - centres[0, 1], centres[1, 2] - centres[0, 2]
    vx, vy, vz = centres[2, 0] - centres[0, 0], centres[2, 1] - centres[0, 1], centres[2, 2] - centres[0, 2]
    uu, vv = ux * ux + uy * uy + uz * uz, vx * vx + vy * vy + vz * vz
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    nn = nx * nx + ny * ny + nz * nz
    if not nn > COLLINEARITY**2 * uu * vv:
        return COLLINEAR
    r = radii[0]
    ku = 0.5 * ((r - radii[1]) * (r + radii[1]) + uu) / nn  # u . p = ku nn for p seen from the first centre
    kv = 0.5 * ((r - radii[2]) * (r + radii[2]) + vv) / nn
    # foot of p in the plane of the centres: ku (v x n) + kv (n x u)
    fx = ku * (vy * nz - vz * ny) + kv * (ny * uz - nz * uy)
    fy = ku * (vz * nx - vx * nz) + kv * (nz * ux - nx * uz)
    fz = ku * (vx * ny - vy * nx) + kv * (nx * uy - ny * ux)
    ff = fx * fx + fy * fy + fz * fz
    square = r * r - ff
    answer = TWO
    if abs(square) <= TANGENCY * (r * r + ff):
        answer, square = TANGENT, 0.0
    elif square < 0.0:
        answer, square = APART, 0.0
    lift = np.sqrt(square / nn)
    x, y, z = centres[0, 0] + fx, centres[0, 1] + fy, centres[0, 2] + fz
    points[0, 0], points[0, 1], points[0, 2] = x + lift * nx, y + lift * ny, z + lift * nz
    points[1, 0], points[1, 1], points[1, 2] = x - lift * nx, y - lift * ny, z - lift * nz
    return answer
