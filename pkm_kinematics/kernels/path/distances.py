# SPDX-License-Identifier: Apache-2.0
"""What locked actuators leave of a limb: a point of the platform at a known distance from a known centre.

Limbs whose actuated joint is the driver or the extension of the closed form are of this kind: the Delta, the
Gough-Stewart platform, the hexaglide and the planar 3-RRR differ only in where the centres are. centres (k, 3) are in
the base frame, points (k, 3) in the platform frame, lengths (k,), all in m; q (n_actuated,) are actuator positions.
"""

from math import sqrt

from pkm_kinematics.kernels.compiled_rotations import write_rotation
from pkm_kinematics.kernels.dense import determinant_sign
from pkm_kinematics.kernels.position.closed_form import reach_of, squared
from pkm_kinematics.kernels.position.placement import place_body, set_angle
from pkm_kinematics.kernels.position.positions import CONVERGED, SINGULAR, UNREACHABLE
from pkm_kinematics.kernels.position.three_spheres import APART, COLLINEAR, three_spheres
from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.kernels.vectors import add, cross, get, put, rotate, scale, sub
from pkm_runtime.kernels.compiled import allocating, compiled


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

    That is `subspace` (6, n). Legs lead from centres (n, 3), base frame, to points (n, 3), platform frame [m]; R (3, 3)
    and A (n, n) are scratch.
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
