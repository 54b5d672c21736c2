# SPDX-License-Identifier: Apache-2.0
"""A step of Newton's method on the platform pose (7,), for given positions q (n_actuated,) of the actuated joints.

The inverse kinematics of every limb is solved at the present pose, and the pose moves by the twist that the inverse
Jacobian asks for. The iterate is always a closed configuration, so that near a solution convergence is quadratic with
the exact Jacobian. `follow.py` makes a path of such steps stay in its assembly mode.
"""

from math import atan2, cos, sin

from pkm_kinematics.kernels.model_and_data import FACTORS, VECTORS
from pkm_kinematics.kernels.position.placement import set_angle
from pkm_kinematics.kernels.rates.motion import invert_blocks
from pkm_kinematics.kernels.rates.projection import factorise_drives, inverse_jacobian
from pkm_kinematics.kernels.regularity import is_regular, nearest, orientation, weigh_drives
from pkm_runtime.kernels.compiled import compiled

LONGEST_TURN = 0.5  # rad per iteration

RIGHT, TWIST, TRIAL, GOAL, SPAN = range(5)  # vectors of `Data.system` in use on paths


@compiled
def actuator_error(bodies, state, q, error):
    """error (n_actuated,) = wanted minus present actuated joint positions; turning joints by the shortest way."""
    for i in range(2, bodies.shape[0]):
        a = bodies[i].actuator
        if a >= 0:
            me = state[i]
            if bodies[i].prismatic == 1:
                error[a] = q[a] - me.q
            else:
                c = cos(q[a])
                s = sin(q[a])
                error[a] = atan2(s * me.c - c * me.s, c * me.c + s * me.s)


@compiled
def read_actuators(bodies, state, q):
    """Put the actuated joints at q, by which limbs choose the nearest working mode."""
    for i in range(2, bodies.shape[0]):
        a = bodies[i].actuator
        if a >= 0:
            set_angle(state, i, q[a])


@compiled
def correction(model, data, q):
    """Sign of the Jacobian's determinant (1 if not square, 0 at a singularity), and largest error of an actuated joint.

    `data.system` gets the inverse Jacobian as its first matrix, and the twist (6,) of Newton's method that takes
    actuated joints to q, linear, then angular, as the row TWIST of its vectors. Positions must be solved.
    """
    S, system = model.subspace, data.system
    m, n = q.shape[0], S.shape[1]
    K, A, inverse, vectors = system[0, :m], system[1, :m, :n], system[4, :n, :n], system[VECTORS]
    right, twist, weights, per_speed = vectors[RIGHT], vectors[TWIST], system[FACTORS, 0], system[FACTORS, 1]
    if not is_regular(invert_blocks(model, data)):
        return 0.0, 0.0
    inverse_jacobian(model, data, K)
    actuator_error(model.bodies, data.state, q, right)
    worst = 0.0
    for a in range(m):
        worst = max(worst, abs(right[a]))
    weigh_drives(model, m == n, right)
    if not is_regular(factorise_drives(model, K, A, inverse, weights, per_speed)):
        return 0.0, worst
    sign = 1.0 if m > n else orientation(inverse, n)
    nearest(A, m, n, inverse, weights, right, vectors[TRIAL])
    for k in range(6):
        twist[k] = 0.0
        for c in range(n):
            twist[k] += S[k, c] * per_speed[c] * vectors[TRIAL, c]
    return sign, worst
