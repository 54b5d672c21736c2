# SPDX-License-Identifier: Apache-2.0
"""Constraints on a rigid body as quadrics in its Study parameters, and a generic system of that family, solved.

Study parameters z = (e, f) of a pose, a point of P^7: e = (w, x, y, z) the quaternion of the rotation R, f = p e / 2
the dual part of the translation p, both up to one common scale, on the Study quadric e . f = 0. Then

    |e|^2 R b          is quadratic in e,
    |e|^2 p  = 2 vec(f e*),   |e|^2 R^T p = 2 vec(e* f),   |e|^2 |p|^2 = 4 |f|^2,

so every constraint below is one quadric z^T M z = 0 (Husty, "An algorithm for solving the direct kinematics of general
Stewart-Gough platforms", 1996). With the squared norm of f left in one of the six only, they are members of the family

    e^T A_i e + f^T B_i e = 0,  i = 1..5,    f^T f + e^T A_6 e + f^T B_6 e = 0,    e^T f = 0,   B_i skew-symmetric,

of which a generic member has 40 solutions (Wampler, "Forward displacement analysis of general six-in-parallel SPS
(Stewart) platform manipulators using soma coordinates", 1996). That number is also the bound for every geometry.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pkm_kinematics.assembly.homotopy.quadrics import Complex
from pkm_kinematics.assembly.homotopy.start_systems import solve_by_monodromy

Array = NDArray[np.float64]

SOLUTIONS = 40  # of a generic member of the family


class ConstraintKind(IntEnum):
    """What a limb with locked actuators imposes on the platform pose (R, p), by vectors (3,) of `base` and `platform`.

    Each vector is in the frame that it is named after; `value` is a length [m], a signed distance [m] or a cosine.
    """

    SPHERE = 0  # |p + R platform - base| = value: a platform point on a sphere
    PLANE = 1  # base . (p + R platform) = value: a platform point in a plane with unit normal `base`
    MOVING_PLANE = 2  # platform . R^T (base - p) = value: a base point in a platform plane with unit normal `platform`
    DIRECTION = 3  # base . (R platform) = value: the cosine of the angle between two unit vectors


class Constraint(NamedTuple):
    """One constraint on the platform pose; see `ConstraintKind`."""

    kind: ConstraintKind
    base: Array
    platform: Array
    value: float


def _product_tensor() -> Array:
    """T[k, i, j] with (a b)_k = T[k, i, j] a_i b_j for quaternions (w, x, y, z)."""
    tensor = np.zeros((4, 4, 4))
    tensor[0] = np.diag([1.0, -1.0, -1.0, -1.0])
    for k, i, j in ((1, 2, 3), (2, 3, 1), (3, 1, 2)):
        tensor[k, i, j], tensor[k, j, i] = 1.0, -1.0
        tensor[k, 0, k] = tensor[k, k, 0] = 1.0
    return tensor


_PRODUCT = _product_tensor()
_CONJUGATE = np.diag([1.0, -1.0, -1.0, -1.0])
# vec(f e*)_k = f^T _LEFT[k] e,  vec(e* f)_k = f^T _RIGHT[k] e
_LEFT = np.einsum("kij,jl->kil", _PRODUCT, _CONJUGATE)[1:]
_RIGHT = np.einsum("kij,il->kjl", _PRODUCT, _CONJUGATE)[1:]
# |e|^2 R[k, l] = e^T _ROTATION[k, l] e: the product e (0, v) e*
_ROTATION = np.einsum("kim,ila,bm->klab", _PRODUCT, np.swapaxes(_PRODUCT, 1, 2), _CONJUGATE)[1:, 1:]
_ROTATION = 0.5 * (_ROTATION + np.swapaxes(_ROTATION, 2, 3))


def _assemble(ee: Array, fe: Array | float, ff: float) -> Array:
    """Symmetric (8, 8) matrix of e^T ee e + f^T fe e + ff f^T f."""
    matrix = np.zeros((8, 8))
    matrix[:4, :4] = ee
    matrix[4:, :4] = 0.5 * np.asarray(fe)
    matrix[:4, 4:] = 0.5 * np.asarray(fe).T
    matrix[4:, 4:] = ff * np.eye(4)
    return matrix


STUDY_QUADRIC = _assemble(np.zeros((4, 4)), np.eye(4), 0.0)


def constraint_quadric(kind: int, base: Array, platform: Array, value: float) -> Array:
    """Symmetric (8, 8) matrix of a constraint of `ConstraintKind`; `ValueError` for an unknown kind."""
    rotated = np.einsum("k,l,klab->ab", base, platform, _ROTATION)  # base . R platform
    left = 2.0 * np.einsum("k,kab->ab", base, _LEFT)  # base . p
    right = 2.0 * np.einsum("k,kab->ab", platform, _RIGHT)  # platform . R^T p
    identity = np.eye(4)
    if kind == ConstraintKind.SPHERE:
        constant = base @ base + platform @ platform - value**2
        return _assemble(constant * identity - 2.0 * rotated, 2.0 * right - 2.0 * left, 4.0)
    if kind == ConstraintKind.PLANE:
        return _assemble(rotated - value * identity, left, 0.0)
    if kind == ConstraintKind.MOVING_PLANE:
        return _assemble(rotated - value * identity, -right, 0.0)
    if kind == ConstraintKind.DIRECTION:
        return _assemble(rotated - value * identity, np.zeros((4, 4)), 0.0)
    raise ValueError(f"unknown kind of constraint: {kind}")


def rotation_form(base: Array, platform: Array, value: float) -> Array:
    """Symmetric matrix (4, 4) in the quaternion alone of base . (R platform) = value."""
    return np.einsum("k,l,klab->ab", base, platform, _ROTATION) - value * np.eye(4)


def pose_of(z: Array) -> tuple[Array, Array]:
    """Rotation matrix (3, 3) and translation (3,) of real Study parameters (8,)."""
    e, f = z[:4], z[4:]
    square = e @ e
    rotation = np.einsum("klab,a,b->kl", _ROTATION, e, e) / square
    return rotation, 2.0 * np.einsum("kab,a,b->k", _LEFT, f, e) / square


def parameters_of(rotation: Array, translation: Array) -> Array:
    """Study parameters (8,) with |e| = 1 of a pose; the quaternion is a dominant eigenvector (Bar-Itzhack, 2000)."""
    form = np.einsum("kl,klab->ab", rotation, _ROTATION)  # e^T form e = trace(R(e)^T rotation)
    e = np.linalg.eigh(form)[1][:, -1]
    f = 0.5 * np.einsum("kij,i,j->k", _PRODUCT, np.concatenate([[0.0], translation]), e)
    return np.concatenate([e, f])


def _generic_member(rng: np.random.Generator) -> Complex:
    """A random member of the family: (7, 8, 8), equation 0 the one with f^T f, equation 6 the Study quadric."""

    def number(*shape: int) -> Complex:
        return rng.normal(size=shape) + 1j * rng.normal(size=shape)

    member = np.zeros((7, 8, 8), dtype=np.complex128)
    for i in range(6):
        a, b = number(4, 4), number(4, 4)
        member[i, :4, :4] = a + a.T
        skew = 0.5 * (b - b.T)
        member[i, 4:, :4], member[i, :4, 4:] = skew, skew.T
    member[0, 4:, 4:] = number() * np.eye(4)
    member[6] = STUDY_QUADRIC
    member /= np.linalg.norm(member, axis=(1, 2))[:, None, None]
    return member


@lru_cache(maxsize=8)
def generic_system(seed: int) -> tuple[Complex, Complex]:
    """A generic member (7, 8, 8) of the family and its 40 solutions (40, 8), the same ones for the same seed."""
    rng = np.random.default_rng([1965, seed])
    point = rng.normal(size=8) + 1j * rng.normal(size=8)
    point[4:] -= point[:4] * (point[:4] @ point[4:]) / (point[:4] @ point[:4])  # onto the Study quadric
    return solve_by_monodromy(_generic_member, point, 6, SOLUTIONS, rng)
