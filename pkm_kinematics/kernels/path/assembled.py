# SPDX-License-Identifier: Apache-2.0
"""Questions about a list of assembly modes: which is nearest to home, and which agree with the actuators."""

from math import inf, sqrt

from pkm_kinematics.kernels.compiled_rotations import product, vector_of
from pkm_runtime.kernels.compiled import compiled

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
