# SPDX-License-Identifier: Apache-2.0
"""Side of the singularities of type 2 of a platform held by legs between two points each."""

from pkm_kinematics.kernels.compiled_rotations import write_rotation
from pkm_kinematics.kernels.dense import determinant_sign
from pkm_kinematics.kernels.vectors import add, cross, get, rotate, sub
from pkm_runtime.kernels.compiled import compiled


@compiled
def leg_sides(centres, points, subspace, poses, R, A, signs):
    """Signs (k,) of the determinant of the legs' wrenches on the motion space `subspace` (6, n), at poses (k, 7).

    Legs lead from centres (n, 3), base frame, to points (n, 3), platform frame [m]; R (3, 3) and A (n, n) are scratch.
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
