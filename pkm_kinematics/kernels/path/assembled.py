# SPDX-License-Identifier: Apache-2.0
"""Questions about assembly modes: which is nearest to home, which agree with the actuators, on which side each is.

The sides are those of the singularities: every limb's of type 1, and the platform's of type 2.
"""

from math import inf, sqrt

import numpy as np

from pkm_kinematics.kernels.compiled_rotations import product, vector_of
from pkm_kinematics.kernels.dense import determinant_sign
from pkm_kinematics.kernels.model_and_data import NEAREST_BRANCH
from pkm_kinematics.kernels.path.follow import same_side_of_graph
from pkm_kinematics.kernels.position.closed_form import driven_arm
from pkm_kinematics.kernels.position.closures import block_jacobian
from pkm_kinematics.kernels.position.positions import SINGULAR, closes
from pkm_kinematics.kernels.position.solve_poses import solve_pose, take_seed
from pkm_kinematics.kernels.rates.motion import invert_blocks
from pkm_kinematics.kernels.rates.projection import inverse_jacobian
from pkm_kinematics.kernels.records import NEWTON
from pkm_kinematics.kernels.regularity import is_regular
from pkm_kinematics.kernels.vectors import axis_z, dot, scale, sub
from pkm_runtime.kernels.compiled import allocating, compiled

TIE = 1e-9  # of the length: poses that a symmetry puts at one distance, but for rounding


@compiled
def sort_by_distance(home, length, poses, away, order):
    """Write the numbers of poses (k, 7) to `order`, nearest to `home` (7,) first, and distances `away` (k,) [m].

    Angles count as arcs of radius `length` [m]; poses at one distance stay in order.
    """
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
    the sign of its Jacobian's determinant differs from that in `before` (n_work,), which is then updated; else +1. The
    side of the platform is the sign of the direct Jacobian's determinant: that of the inverse one, with the sign of
    each branch taken out; 1 where it is not square or the motion space is configuration-dependent. `now` (n_work,) is
    scratch.
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
        for e in range(size):
            J0[e] = J[e]
    if model.task[0].square == 0:
        return status, 1.0
    subspace = model.subspace
    n = subspace.shape[1]
    K, A = data.system[0, :n], data.system[1]
    inverse_jacobian(model, data, K)
    for r in range(n):
        for c in range(n):
            A[r, c] = 0.0
            for k in range(6):
                A[r, c] += K[r, k] * subspace[k, c]
    return status, side * determinant_sign(A, n)
