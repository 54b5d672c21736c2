# SPDX-License-Identifier: Apache-2.0
"""Stiffness and damping of a platform in contact, from what its inertia, rate and delay carry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_dynamics import Dynamics
from pkm_kinematics.solve.constraints import scaling

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Freedoms:
    """Possible twists at home: a basis (6, n), and the mass matrix (n, n) in it."""

    basis: Array
    mass: Array

    @staticmethod
    def of(dynamics: Dynamics) -> Freedoms:
        """Those of a robot.

        Args:
            dynamics: of the robot.

        Returns:
            Its freedoms.
        """
        home = dynamics.kinematics.home
        return Freedoms(np.asarray(dynamics.kinematics.subspace(home)), dynamics.mass_matrix(home))

    def wrench_matrix(self, matrix: Array) -> Array:
        """A matrix from twists to wrenches that does what another does in the basis.

        Args:
            matrix: (n, n).

        Returns:
            (6, 6).
        """
        inverse = np.linalg.pinv(self.basis)
        return np.asarray(inverse.T @ matrix @ inverse)

    def inside(self, length: float) -> Array:
        """Projection of twists onto the possible ones.

        Args:
            length: at which rotations count [m].

        Returns:
            (6, 6).
        """
        return projection(self.basis, length, True)

    def tuned(self, stiffness: Array, damping: float, highest: float) -> tuple[Array, Array, float]:
        """Stiffness as far as it is carried, and the damping that gives every direction the same ratio.

        With the mass matrix M and K in the basis, K v = l M v are the squared natural frequencies l; the damping is
        M V diag(2 z sqrt(l)) V^T M.

        Args:
            stiffness: (6, 6) [N/m, N m/rad].
            damping: ratio z; 1 is critical.
            highest: natural frequency that the loop carries [rad/s].

        Returns:
            Stiffness and damping (6, 6), and the factor by which the former was lowered (1: not).
        """
        root = np.linalg.cholesky(self.mass)
        whitened = np.linalg.solve(root, np.linalg.solve(root, self.basis.T @ stiffness @ self.basis).T)
        squares, vectors = np.linalg.eigh(0.5 * (whitened + whitened.T))
        factor = min(1.0, highest**2 / max(float(squares[-1]), 1e-12))
        rates = 2.0 * damping * np.sqrt(np.maximum(factor * squares, 0.0))
        viscosity = root @ vectors @ np.diag(rates) @ vectors.T @ root.T
        return factor * stiffness, self.wrench_matrix(viscosity), factor

    def mass_along(self, direction: Array) -> float:
        """What the platform weighs when it is pushed along a direction and free otherwise.

        Args:
            direction: (6,), base axes.

        Returns:
            Mass or inertia [kg or kg m^2].
        """
        rate = self.basis.T @ direction
        return 1.0 / max(float(rate @ np.linalg.solve(self.mass, rate)), 1e-300)


def left_inverse(matrix: Array, independent: bool) -> Array:
    """Pseudo-inverse, in some microseconds where the columns are independent.

    Args:
        matrix: (n, m).
        independent: whether its columns are.

    Returns:
        (m, n).
    """
    if not independent:
        return np.asarray(np.linalg.pinv(matrix, rcond=1e-9))
    return np.asarray(np.linalg.solve(matrix.T @ matrix, matrix.T))


def projection(basis: Array, length: float, independent: bool) -> Array:
    """Projection (6, 6) of twists onto the columns of a basis (6, m), rotations counting at a length [m].

    Args:
        basis: of the possible twists.
        length: m.
        independent: whether its columns are.

    Returns:
        The projection.
    """
    weights = scaling(length)
    scaled = basis * weights[:, None]
    onto = scaled @ left_inverse(scaled, independent)
    return np.asarray(onto * weights / weights[:, None])
