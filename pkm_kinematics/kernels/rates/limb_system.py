# SPDX-License-Identifier: Apache-2.0
"""The closure equations of a whole limb as matrices: J qd + G V = 0, for analysis rather than for speed."""

from pkm_kinematics.kernels.position.closures import joint_row
from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.kernels.vectors import add, cross, get, sub
from pkm_runtime.kernels.compiled import compiled


@compiled
def limb_system(model, data, first_closure, stop_closure, first_body, J, G):
    """Fill J (m, n) and G (m, 6) for the closures of a limb whose bodies start at `first_body`, at solved positions."""
    bodies, closures, state, rows = model.bodies, model.closures, data.state, data.rows
    start = closures[first_closure].rows_at
    for r in range(J.shape[0]):
        for c in range(J.shape[1]):
            J[r, c] = 0.0
        for c in range(6):
            G[r, c] = 0.0
    for k in range(first_closure, stop_closure):
        closure = closures[k]
        point = get(rows[closure.rows_at].point)
        for side in range(2):
            sign = 1.0 - 2.0 * side
            j = closure.successor if side == 0 else closure.predecessor
            while j > PLATFORM:
                for r in range(closure.rows_at, closure.rows_at + closure.rows):
                    J[r - start, j - first_body] += sign * joint_row(bodies[j], state[j], rows[r], point)
                j = bodies[j].parent
            if j == PLATFORM:
                for r in range(closure.rows_at, closure.rows_at + closure.rows):
                    force = get(rows[r].force)
                    arm = sub(point, get(state[PLATFORM].p))
                    torque = add(get(rows[r].moment), cross(arm, force))
                    for c in range(3):
                        G[r - start, c] += sign * force[c]
                        G[r - start, 3 + c] += sign * torque[c]
