# SPDX-License-Identifier: Apache-2.0
"""A step of Newton's method on the platform pose (7,), for given positions q (n_actuated,) of the actuated joints.

The inverse kinematics of every limb is solved at the present pose, and the pose moves by the twist that the inverse
Jacobian asks for. The iterate is always a closed configuration, so that near a solution convergence is quadratic with
the exact Jacobian. `follow.py` makes a path of such steps stay in its assembly mode.
"""

from math import atan2, cos, sin, sqrt

from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_kinematics.kernels.model_and_data import FACTORS, NEAREST_BRANCH, VECTORS
from pkm_kinematics.kernels.position.placement import place_platform, set_angle
from pkm_kinematics.kernels.position.positions import CONVERGED, SINGULAR, solve_positions
from pkm_kinematics.kernels.rates.motion import invert_blocks
from pkm_kinematics.kernels.rates.projection import factorise_drives, inverse_jacobian
from pkm_kinematics.kernels.regularity import is_regular, nearest, orientation, weigh_drives
from pkm_runtime.kernels.compiled import compiled

LONGEST_TURN = 0.5  # rad per iteration
RESULTS = 11  # numbers that `newton_step` gives

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


@compiled
def newton_step(model, data, start, q, pose, out):
    """One step of Newton's method from the pose `start` towards actuated joints at q, in full: a status.

    The limbs take the working mode nearest to the actuated joints `start`. `out` (RESULTS,) is the pose after the step;
    then, before it, the largest error of an actuated joint; the turn [rad] and the length [m] of the step; and the sign
    of the Jacobian's determinant.
    """
    read_actuators(model.bodies, data.state, start)
    place_platform(data.state, pose)
    status, _, _ = solve_positions(model, data, NEAREST_BRANCH, False)
    if status != CONVERGED:
        return status
    sign, out[7] = correction(model, data, q)
    if sign == 0.0:
        return SINGULAR
    twist = data.system[VECTORS, TWIST]
    out[8] = sqrt(twist[3] ** 2 + twist[4] ** 2 + twist[5] ** 2)
    out[9] = sqrt(twist[0] ** 2 + twist[1] ** 2 + twist[2] ** 2 + (model.task[0].length * out[8]) ** 2)
    out[10] = sign
    shift_pose(pose, twist, 1.0, out)
    return CONVERGED
