# SPDX-License-Identifier: Apache-2.0
"""Computed torque in the actuators' coordinates, up to the desired acceleration."""

from pkm_runtime.kernels.compiled import compiled


@compiled
def correct(wanted, positions, jacobian, twist_wanted, twist, stiffness, viscosity, acceleration, out):
    """Write the acceleration (6,) that corrects the platform's error into `out`.

    Errors of the actuators, wanted (n,) - positions (n,), become the platform's by its Jacobian (6, n).
    """
    for i in range(6):
        error = 0.0
        for k in range(positions.shape[0]):
            error += jacobian[i, k] * (wanted[k] - positions[k])
        out[i] = acceleration[i] + stiffness * error + viscosity * (twist_wanted[i] - twist[i])
