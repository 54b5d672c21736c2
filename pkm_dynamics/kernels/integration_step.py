# SPDX-License-Identifier: Apache-2.0
"""One step of a simulation in platform coordinates."""

from pkm_dynamics.kernels.direct_dynamics import direct_dynamics
from pkm_kinematics.kernels.compiled import compiled
from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_kinematics.kernels.position.positions import CONVERGED


@compiled
def advance(motion, acceleration, dt):
    """Advance pose and twist in `motion` (25,) by `dt` [s] under an acceleration (6,): semi-implicit Euler."""
    for r in range(6):
        motion[7 + r] += dt * acceleration[r]
    shift_pose(motion, motion[7:13], dt, motion)


@compiled
def semi_implicit_step(model, data, branch, dt, motion, effort, out):
    """Advance pose and twist in `motion` (25,) by `dt` [s] under efforts (m,), see `advance`. Returns a status.

    The platform's pose and twist are the state (Müller, section 8.1, task space integration), so that the loops are
    closed at every step by the inverse kinematics and nothing can drift. The motion space must be constant; `out` (6,)
    gets the acceleration.
    """
    status = direct_dynamics(model, data, branch, motion, effort, out)
    if status != CONVERGED:
        return status
    advance(motion, out, dt)
    return CONVERGED
