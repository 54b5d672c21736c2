# SPDX-License-Identifier: Apache-2.0
"""Wrench of a body that is fixed on the platform."""

from pkm_kinematics.kernels.compiled_rotations import write_rotation
from pkm_runtime.kernels.compiled import compiled

BODY = 16  # numbers of a body: mass, centre of mass (3,), inertia about it (3, 3), and the gravity that it feels (3,)
MOTION = 19  # of a state of motion: pose (7,), twist (6,), acceleration (6,)


@compiled
def write_wrenches(body, motions, R, out):
    """Wrench (n, 6) of a body (BODY,) on the platform, about its origin, base axes, in motions (n, MOTION).

    `R` (3, 3) is scratch.
    """
    mass = body[0]
    for i in range(motions.shape[0]):
        m, w = motions[i], out[i]
        write_rotation(m[3], m[4], m[5], m[6], R)
        x = R[0, 0] * body[1] + R[0, 1] * body[2] + R[0, 2] * body[3]
        y = R[1, 0] * body[1] + R[1, 1] * body[2] + R[1, 2] * body[3]
        z = R[2, 0] * body[1] + R[2, 1] * body[2] + R[2, 2] * body[3]
        p, q, r = m[10], m[11], m[12]
        dp, dq, dr = m[16], m[17], m[18]
        u, v, s = q * z - r * y, r * x - p * z, p * y - q * x  # w x c
        fx = mass * (m[13] + dq * z - dr * y + q * s - r * v - body[13])
        fy = mass * (m[14] + dr * x - dp * z + r * u - p * s - body[14])
        fz = mass * (m[15] + dp * y - dq * x + p * v - q * u - body[15])
        # rates in the body's axes, where its inertia is constant
        a = R[0, 0] * p + R[1, 0] * q + R[2, 0] * r
        b = R[0, 1] * p + R[1, 1] * q + R[2, 1] * r
        c = R[0, 2] * p + R[1, 2] * q + R[2, 2] * r
        da = R[0, 0] * dp + R[1, 0] * dq + R[2, 0] * dr
        db = R[0, 1] * dp + R[1, 1] * dq + R[2, 1] * dr
        dc = R[0, 2] * dp + R[1, 2] * dq + R[2, 2] * dr
        ha = body[4] * a + body[5] * b + body[6] * c
        hb = body[7] * a + body[8] * b + body[9] * c
        hc = body[10] * a + body[11] * b + body[12] * c
        na = body[4] * da + body[5] * db + body[6] * dc + b * hc - c * hb
        nb = body[7] * da + body[8] * db + body[9] * dc + c * ha - a * hc
        nc = body[10] * da + body[11] * db + body[12] * dc + a * hb - b * ha
        w[0], w[1], w[2] = -fx, -fy, -fz
        w[3] = -(y * fz - z * fy + R[0, 0] * na + R[0, 1] * nb + R[0, 2] * nc)
        w[4] = -(z * fx - x * fz + R[1, 0] * na + R[1, 1] * nb + R[1, 2] * nc)
        w[5] = -(x * fy - y * fx + R[2, 0] * na + R[2, 1] * nb + R[2, 2] * nc)
