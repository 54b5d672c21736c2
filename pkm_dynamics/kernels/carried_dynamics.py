# SPDX-License-Identifier: Apache-2.0
"""Lean dynamics of robots with limbs solved by iteration, warm-started in the working mode of the call before."""

from pkm_dynamics.kernels.direct_dynamics import advance, direct_dynamics
from pkm_dynamics.kernels.inverse_dynamics import inverse_dynamics
from pkm_kinematics.kernels.path.carry_on import approach, arrive
from pkm_kinematics.kernels.position.positions import CONVERGED, DIVERGED
from pkm_runtime.kernels.compiled import compiled


@compiled
def carried_inverse_dynamics(model, data, branch, motion, effort):
    """Like `inverse_dynamics`; DIVERGED where a limb cannot be tracked from the last pose."""
    if not approach(model, data, branch, motion):
        return DIVERGED
    return arrive(model, data, motion, inverse_dynamics(model, data, branch, motion, effort))


@compiled
def carried_direct_dynamics(model, data, branch, motion, effort, out):
    """Like `direct_dynamics`; DIVERGED where a limb cannot be tracked from the last pose."""
    if not approach(model, data, branch, motion):
        return DIVERGED
    return arrive(model, data, motion, direct_dynamics(model, data, branch, motion, effort, out))


@compiled
def carried_step(model, data, branch, dt, motion, effort, out):
    """Like `semi_implicit_step`, by `carried_direct_dynamics`."""
    status = carried_direct_dynamics(model, data, branch, motion, effort, out)
    if status == CONVERGED:
        advance(motion, out, dt)
    return status
