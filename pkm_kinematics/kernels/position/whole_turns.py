# SPDX-License-Identifier: Apache-2.0
"""Joints outside their ranges by whole turns only, in configurations that nobody followed there."""

from math import ceil

from pkm_kinematics.kernels.position.chain import TAU
from pkm_kinematics.kernels.position.positions import CONVERGED, JOINT_LIMIT
from pkm_runtime.kernels.compiled import compiled


@compiled
def wrap_into_limits(lower, upper, turning, status, q):
    """Turn joints q (n, n_joints) of rows with JOINT_LIMIT into their ranges, where one more turn fits: then CONVERGED.

    The shortest turn from home need not be the one that a limb took: it comes to another branch stretched or folded.
    """
    for k in range(q.shape[0]):
        if status[k] != JOINT_LIMIT:
            continue
        inside = True
        for j in range(q.shape[1]):
            at, turned = q[k, j], q[k, j]
            if at < lower[j]:
                turned = at + TAU * ceil((lower[j] - at) / TAU)
            elif at > upper[j]:
                turned = at - TAU * ceil((at - upper[j]) / TAU)
            else:
                continue
            if turning[j] and lower[j] <= turned <= upper[j]:
                q[k, j] = turned
            else:
                inside = False
        if inside:
            status[k] = CONVERGED
