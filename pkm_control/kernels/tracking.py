# SPDX-License-Identifier: Apache-2.0
"""What a control period computes: the reference on a curve of quintics, and the correction of computed torque."""

from math import cos, sin, sqrt

from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_runtime.kernels.compiled import compiled

NUMBERS = 19  # of an instant: pose (7,), twist (6,), acceleration (6,)
_SMALL = 1e-2  # rad; below it series: the closed forms cancel


@compiled
def segment_at(times, t):
    """Number of the segment of increasing times (n,) that holds t; the first or the last for t outside."""
    low, high = 0, times.shape[0] - 2
    while low < high:
        middle = (low + high + 1) // 2
        if times[middle] <= t:
            low = middle
        else:
            high = middle - 1
    return low


@compiled
def turn_rates(r, row):
    """In `row`, make rates and accelerations of the rotation vector r (x, y, z) those of the attitude.

    w = J r' and w' = J r'' + J' r', with J = I + a [r] + b [r]^2, a = (1 - cos |r|) / |r|^2 and b = (|r| - sin |r|) /
    |r|^3; da and db are their derivatives by |r|, divided by it (Bullo and Murray 1995, see `PointTrajectory`).
    """
    x, y, z = r
    u, v, w = row[10], row[11], row[12]
    p, q, s = row[16], row[17], row[18]
    t2 = x * x + y * y + z * z
    angle = sqrt(t2)
    if angle < _SMALL:
        a, b, da, db = 0.5 - t2 / 24.0, 1.0 / 6.0 - t2 / 120.0, -1.0 / 12.0 + t2 / 180.0, -1.0 / 60.0 + t2 / 1260.0
    else:
        sine, cosine = sin(angle), cos(angle)
        a, b = (1.0 - cosine) / t2, (angle - sine) / (t2 * angle)
        da, db = (sine / angle - 2.0 * a) / t2, (a - 3.0 * b) / t2
    cx, cy, cz = y * w - z * v, z * u - x * w, x * v - y * u  # r x r'
    dx, dy, dz = y * cz - z * cy, z * cx - x * cz, x * cy - y * cx  # r x (r x r')
    ex, ey, ez = y * s - z * q, z * p - x * s, x * q - y * p  # r x r''
    along = x * u + y * v + z * w
    row[10] = u + a * cx + b * dx
    row[11] = v + a * cy + b * dy
    row[12] = w + a * cz + b * dz
    row[16] = p + a * ex + b * (y * ez - z * ey + v * cz - w * cy) + along * (da * cx + db * dx)
    row[17] = q + a * ey + b * (z * ex - x * ez + w * cx - u * cz) + along * (da * cy + db * dy)
    row[18] = s + a * ez + b * (x * ey - y * ex + u * cy - v * cx) + along * (da * cz + db * dz)


@compiled
def write_curve(times, poses, coefficients, instants, out):
    """Pose, twist and acceleration at instants (m,) [s] into `out` (m, NUMBERS).

    `coefficients` (n - 1, 6, 6) are those of the displacement from each of the poses (n, 7), n > 1, in powers of the
    share of the way to the next.
    """
    for i in range(instants.shape[0]):
        k = segment_at(times, instants[i])
        h = times[k + 1] - times[k]
        share = (instants[i] - times[k]) / h
        c, row = coefficients[k], out[i]
        turns = 0.0
        for j in range(6):
            c1, c2, c3, c4, c5 = c[1, j], c[2, j], c[3, j], c[4, j], c[5, j]
            row[j] = c[0, j] + share * (c1 + share * (c2 + share * (c3 + share * (c4 + share * c5))))
            rate = c1 + share * (2.0 * c2 + share * (3.0 * c3 + share * (4.0 * c4 + share * 5.0 * c5)))
            row[7 + j] = rate / h
            row[13 + j] = (2.0 * c2 + share * (6.0 * c3 + share * (12.0 * c4 + share * 20.0 * c5))) / (h * h)
            if j > 2:
                turns += abs(row[j]) + abs(row[7 + j]) + abs(row[13 + j])
        if turns > 0.0:
            turn_rates((row[3], row[4], row[5]), row)
        shift_pose(poses[k], row[:6], 1.0, row)


@compiled
def correct(wanted, positions, jacobian, twist_wanted, twist, stiffness, viscosity, acceleration, out):
    """Write the acceleration (6,) that corrects the platform's error into `out`. Errors of the actuators, wanted (n,) -
    positions (n,), become the platform's by its Jacobian (6, n).
    """
    for i in range(6):
        error = 0.0
        for k in range(positions.shape[0]):
            error += jacobian[i, k] * (wanted[k] - positions[k])
        out[i] = acceleration[i] + stiffness * error + viscosity * (twist_wanted[i] - twist[i])
