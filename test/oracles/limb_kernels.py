# SPDX-License-Identifier: Apache-2.0
"""Shares of one limb and of the platform in the robot's equations of motion.

`jacobian` (n_actuated, 6): inverse Jacobian, of which a limb writes the rows of its own actuators. `motion` (25,) as
in `inverse_dynamics`; a limb reads the first 19.
"""

from pkm_dynamics.kernels.mass_matrix import project_platform
from pkm_dynamics.kernels.platform_dynamics import distribute
from pkm_dynamics.kernels.wrenches import limb_wrenches, platform_wrench, project
from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.positions import CONVERGED, SINGULAR
from pkm_kinematics.kernels.rates.motion import move_platform, solve_motion
from pkm_kinematics.kernels.rates.projection import clear_wrench, drive_rates, inverse_jacobian
from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.kernels.regularity import is_regular
from pkm_kinematics.kernels.vectors import get
from pkm_runtime.kernels.compiled import compiled


@compiled
def put_wrench(platform, out):
    """out (6,) = force, torque of the platform."""
    for r in range(3):
        out[r] = platform.force[r]
        out[3 + r] = platform.torque[r]


@compiled
def limb_share(model, data, branch, motion, jacobian, out):
    """Wrench `out` (6,) on the platform that moves one limb, alone in the tables. Returns a status."""
    bodies, state = model.bodies, data.state
    status = solve_motion(model, data, branch, motion)
    if status != CONVERGED:
        return status
    inverse_jacobian(model, data, jacobian)
    limb_wrenches(bodies, state)
    clear_wrench(state[PLATFORM])
    project(model, data)
    put_wrench(state[PLATFORM], out)
    return CONVERGED


@compiled
def efforts_from_shares(model, data, motion, jacobian, shares, wrench, effort):
    """Efforts (m,) from the shares (k, 6) of all limbs and the platform's own, sum `wrench` (6,). Returns a status."""
    bodies, subspace, state, system = model.bodies, model.subspace, data.state, data.system
    m, n = effort.shape[0], subspace.shape[1]
    platform = state[PLATFORM]
    place_platform(state, motion)
    move_platform(state, motion[7:], motion[13:])
    platform_wrench(bodies, state, motion[19:])
    for k in range(shares.shape[0]):
        for r in range(3):
            platform.force[r] += shares[k, r]
            platform.torque[r] += shares[k, 3 + r]
    put_wrench(platform, wrench)
    K = system[0, :m, :n]
    b = system[3, 0]
    drive_rates(jacobian, subspace, K)
    project_platform(subspace, get(platform.force), get(platform.torque), b)
    condition = distribute(model, K, system[1, :n, :n], system[3, 1], b, effort)
    return CONVERGED if is_regular(condition) else SINGULAR
