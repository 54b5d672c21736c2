# SPDX-License-Identifier: Apache-2.0
"""One step `dt` [s] of a simulation in platform coordinates: pose and twist in `motion` (25,) are advanced.

These are the state (Müller, section 8.1, task space integration): inverse kinematics closes the loops at every step,
without drift. The motion space must be constant.
"""

from pkm_dynamics.kernels.direct_dynamics import direct_dynamics
from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_kinematics.kernels.position.positions import CONVERGED
from pkm_runtime.kernels.compiled import compiled


@compiled
def advance(motion, acceleration, dt):
    """Semi-implicit Euler step under an acceleration (6,)."""
    for r in range(6):
        motion[7 + r] += dt * acceleration[r]
    shift_pose(motion, motion[7:13], dt, motion)


@compiled
def semi_implicit_step(model, data, branch, dt, motion, effort, out):
    """`advance` under efforts (m,); `out` (6,) gets the acceleration. Returns a status."""
    status = direct_dynamics(model, data, branch, motion, effort, out)
    if status != CONVERGED:
        return status
    advance(motion, out, dt)
    return CONVERGED
