# SPDX-License-Identifier: Apache-2.0
"""Stiffness and damping of a platform in contact, as its inertia, the control rate and the delay allow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_kinematics.solve.singularity import scaling


@dataclass(frozen=True, eq=False)
class Freedoms:
    """Possible twists at home: a basis (6, n), and the mass matrix (n, n) in it."""

    basis: Array
    mass: Array

    @staticmethod
    def of(dynamics: Dynamics) -> Freedoms:
        """The possible twists of a robot."""
        home = dynamics.kinematics.home
        return Freedoms(np.asarray(dynamics.kinematics.subspace(home)), dynamics.mass_matrix(home))

    def wrench_matrix(self, matrix: Array) -> Array:
        """Matrix (6, 6) from twists to wrenches that acts as a matrix (n, n) does in the basis."""
        inverse = np.linalg.pinv(self.basis)
        return np.asarray(inverse.T @ matrix @ inverse)

    def inside(self, length: float) -> Array:
        """Projection (6, 6) of twists onto the possible ones; rotations count at a length [m]."""
        return projection(self.basis, length, True)

    def tuned(self, stiffness: Array, damping: float, highest: float) -> tuple[Array, Array, float]:
        """Stiffness (6, 6), damping (6, 6) that gives every direction the same ratio z, and a factor on the stiffness.

        With the mass matrix M and K in the basis, K v = l M v are the squared natural frequencies l; the damping is
        M V diag(2 z sqrt(l)) V^T M. The factor (1: unchanged) lowers the stiffness [N/m, N m/rad] so that no natural
        frequency exceeds `highest` [rad/s].
        """
        root = np.linalg.cholesky(self.mass)
        whitened = np.linalg.solve(root, np.linalg.solve(root, self.basis.T @ stiffness @ self.basis).T)
        squares, vectors = np.linalg.eigh(0.5 * (whitened + whitened.T))
        factor = min(1.0, highest**2 / max(float(squares[-1]), 1e-12))
        rates = 2.0 * damping * np.sqrt(np.maximum(factor * squares, 0.0))
        viscosity = root @ vectors @ np.diag(rates) @ vectors.T @ root.T
        return factor * stiffness, self.wrench_matrix(viscosity), factor

    def mass_along(self, direction: Array) -> float:
        """Mass or inertia [kg or kg m^2] of the platform pushed along a direction (6,), base axes, otherwise free."""
        rate = self.basis.T @ direction
        return 1.0 / max(float(rate @ np.linalg.solve(self.mass, rate)), 1e-300)


def left_inverse(matrix: Array, independent: bool) -> Array:
    """Pseudo-inverse (m, n) of a matrix (n, m), in some microseconds where its columns are independent."""
    if not independent:
        return np.asarray(np.linalg.pinv(matrix, rcond=1e-9))
    return np.asarray(np.linalg.solve(matrix.T @ matrix, matrix.T))


def projection(basis: Array, length: float, independent: bool) -> Array:
    """Projection (6, 6) of twists onto the columns of a basis (6, m), rotations counting at a length [m]."""
    weights = scaling(length)
    scaled = basis * weights[:, None]
    onto = scaled @ left_inverse(scaled, independent)
    return np.asarray(onto * weights / weights[:, None])
