# SPDX-License-Identifier: Apache-2.0
"""Redundant actuators share what a law asks for, within bounds, in some microseconds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_dynamics.kernels.sharing import SHARED, clip_within, share_within

_SWEEPS = 60  # of the coordinate descent where nothing within the bounds does the work


class Sharing:
    """Efforts of least norm within bounds, among all that do the same work; what `Distribution` does with norm 2.

    The answer is continuous in the efforts and in the pose as long as bounds leave room. After a call, `short` says
    whether they left none, so that the answer does less than was asked for.

    Args:
        lower: bounds (n_actuated,) [N m or N], infinite where there is none.
        upper: the same.
        freedoms: of the platform, at most n_actuated.
        length: of the robot [m], by which forces and moments are compared where bounds leave no room.
    """

    def __init__(self, lower: Array, upper: Array, freedoms: int, length: float) -> None:
        self.lower = np.array(lower, dtype=np.float64)
        self.upper = np.array(upper, dtype=np.float64)
        self.short = False
        self._freedoms = freedoms
        m = len(self.lower)
        self._scratch = np.zeros((3 * m + 8, m + 1))
        self._scale = np.repeat((1.0, length), 3)[:, None]
        self.redundant = m > freedoms

    def at_bound(self, efforts: Array) -> NDArray[np.bool_]:
        """Which efforts (n_actuated,) are at their bounds, or beyond (n_actuated,)."""
        return (efforts <= self.lower) | (efforts >= self.upper)

    def outside(self, efforts: Array) -> NDArray[np.bool_]:
        """Which efforts (n_actuated,) are beyond their bounds (n_actuated,)."""
        return (efforts < self.lower) | (efforts > self.upper)

    def share(self, jacobian: Array, efforts: Array) -> Array:
        """The efforts to apply instead of some.

        Args:
            jacobian: of the platform's twist by the actuators' velocities (6, n_actuated), base axes.
            efforts: that do the work (n_actuated,), such as a law asks for.

        Returns:
            (n_actuated,), within the bounds; NaN where an argument is not finite, or the pose is singular.
        """
        self.short = False
        if not (np.isfinite(efforts).all() and np.isfinite(jacobian).all()):
            return np.full(len(efforts), np.nan)
        if not self.redundant:
            self.short = bool(self.outside(efforts).any())
            return np.clip(efforts, self.lower, self.upper)
        shared = np.array(efforts, dtype=np.float64)
        scaled = np.ascontiguousarray(jacobian * self._scale)
        status = share_within(scaled, self._freedoms, self.lower, self.upper, shared, self._scratch)
        if status != SHARED:
            self.short = True
            clip_within(_dual(scaled, self._freedoms), self.lower, self.upper, shared, np.array(efforts), _SWEEPS)
        return shared


def _dual(jacobian: Array, freedoms: int) -> Array:
    """Rows (freedoms, n_actuated) that give the work of efforts: orthonormal, and those of the Jacobian span them."""
    return np.ascontiguousarray(np.linalg.svd(jacobian, full_matrices=False)[2][:freedoms])
