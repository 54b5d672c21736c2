# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics of spherical robots (3-RRR, agile eye class): rotations with three given angles, at most 8.

With the actuators locked, limb i fixes the angle alpha_i between a base direction w_i and a platform direction v_i:
w_i . (R v_i) = cos(alpha_i). In quaternions these are three quadrics in P^3, which meet in 8 points by Bezout's theorem
(Gosselin, Sefrioui and Richard, 1994). They are tracked from eight solutions known in advance.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from pkm_kinematics.assembly.geometry.candidates import status_of
from pkm_kinematics.assembly.geometry.self_motion import real_part, real_roots
from pkm_kinematics.assembly.geometry.study import rotation_form
from pkm_kinematics.assembly.homotopy.quadrics import Complex
from pkm_kinematics.assembly.homotopy.start_systems import start_system
from pkm_kinematics.assembly.result import Array, AssemblyStatus, SolutionSet, no_solutions

SOLUTIONS = 8
UNIT = 1e-6  # deviation of a direction's length from 1 that is put right without complaint


def three_angles(base: ArrayLike, platform: ArrayLike, cosines: ArrayLike, consistency: float = 1e-7) -> SolutionSet:
    """All rotations R with base_i . (R platform_i) = cosines_i, i = 1 .. k, k >= 3, for unit vectors (k, 3).

    Quaternions (n, 4): qx qy qz qw, qw >= 0; residuals are errors of cosines. With more than three constraints the
    first three give the candidates, and a solution may miss any cosine by `consistency`. Where the equations allow a
    self-motion, samples of it (multiplicity 0) follow the isolated solutions.
    """
    w, v, cosine = (np.asarray(x, dtype=np.float64) for x in (base, platform, cosines))
    if not (w.ndim == 2 and w.shape == v.shape == (len(w), 3) and len(w) >= 3 and cosine.shape == (len(w),)):
        return no_solutions((4,), AssemblyStatus.INVALID_INPUT)
    if not (np.isfinite(w).all() and np.isfinite(v).all() and np.all(np.abs(cosine) <= 1.0 + UNIT)):
        return no_solutions((4,), AssemblyStatus.INVALID_INPUT)
    lengths = np.linalg.norm([w, v], axis=2)
    if np.max(np.abs(lengths - 1.0)) > UNIT:
        return no_solutions((4,), AssemblyStatus.INVALID_INPUT)
    w, v = w / lengths[0][:, None], v / lengths[1][:, None]
    forms = np.array([rotation_form(*row) for row in zip(w, v, cosine, strict=True)])
    system = forms[:3] / np.linalg.norm(forms[:3], axis=(1, 2))[:, None, None]
    points, multiplicity, roots = real_roots(system, partial(start_system, 3), lambda z: z @ z)
    solutions = np.array([_real_quaternion(z) for z in points]).reshape(-1, 4)
    residuals = np.array([np.max(np.abs(np.einsum("iab,a,b->i", forms, e, e))) for e in solutions])
    n_complex = int(roots.multiplicity[~roots.on_component].sum())
    if len(w) > 3:
        good = residuals < consistency
        solutions, residuals, multiplicity = solutions[good], residuals[good], multiplicity[good]
    order = np.lexsort(np.round(solutions[:, ::-1], 6).T)
    status = status_of(multiplicity, bool(roots.on_component.any()), roots.lost, len(w) > 3)
    listed_first = solutions[:, [1, 2, 3, 0]]
    return SolutionSet(listed_first[order], residuals[order], multiplicity[order], n_complex, status)


def _real_quaternion(z: Complex) -> Array:
    """Unit quaternion (w, x, y, z), w >= 0, of a point of P^3 that is its own conjugate."""
    e = real_part(z)
    return -e if e[0] < 0.0 else e
