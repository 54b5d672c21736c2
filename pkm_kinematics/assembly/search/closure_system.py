# SPDX-License-Identifier: Apache-2.0
"""Any closure system F(x) = 0 given by functions, and the local tools that both searches for its solutions share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pkm_kinematics.assembly.result import Array

RANK = 1e-7  # relative singular value of the scaled Jacobian that counts as zero
EXCURSION = 1e-2  # how far to walk from a singular solution, in units of the scale, to see whether it is isolated


@dataclass(frozen=True, eq=False)
class ClosureSystem:
    """m equations in n unknowns; m may exceed n where the equations are redundant or the robot overconstrained.

    `residual` maps x (n,) to (m,), `jacobian` to (m, n). `lower` and `upper` (n,) bound where a search starts, not
    where it may end. `period` (n,) is 2 pi for an angle that may be counted around the circle and infinite otherwise;
    `scale` (n,) says by how much each unknown moves the robot noticeably: 1 for angles, the robot's size for lengths.

    `image` maps x to what tells solutions apart where that is less than all of x, for example the platform's pose
    where x holds every joint angle: passive joints often reach one pose in several ways. `genuine` tells true
    solutions from those that the equations allow and the mechanism does not, for example an axis turned over.
    """

    residual: Callable[[Array], Array]
    jacobian: Callable[[Array], Array]
    lower: Array
    upper: Array
    period: Array
    scale: Array
    tolerance: float = 1e-10  # largest residual of a solution, in the units of `residual`
    image: Callable[[Array], Array] | None = None
    genuine: Callable[[Array], bool] | None = None

    def wrapped(self, x: Array) -> Array:
        """x with every angle within half a period of the middle of its bounds."""
        middle = 0.5 * (self.lower + self.upper)
        finite = np.isfinite(self.period)
        period = np.where(finite, self.period, 1.0)
        return np.where(finite, x - period * np.round((x - middle) / period), x)

    def distance(self, first: Array, second: Array) -> float:
        """Largest difference of two points in units of the scale, angles compared on the circle."""
        finite = np.isfinite(self.period)
        period = np.where(finite, self.period, 1.0)
        gap = first - second
        gap = np.where(finite, gap - period * np.round(gap / period), gap)
        return float(np.max(np.abs(gap) / self.scale))

    def difference(self, first: Array, second: Array) -> float:
        """How far apart two solutions are: their images if there are any, else the points themselves."""
        if self.image is None:
            return self.distance(first, second)
        return float(np.max(np.abs(self.image(first) - self.image(second))))

    def closed(self, x: Array) -> bool:
        """Whether x solves the system."""
        if not np.max(np.abs(self.residual(x))) < self.tolerance:
            return False
        return self.genuine is None or self.genuine(x)

    def solved(self, start: Array, iterations: int = 100) -> Array | None:
        """Solution that Levenberg-Marquardt reaches from a start, polished by Newton steps; None where it does not."""
        x, damping = start.copy(), 1e-3
        value = self.residual(x)
        norm = float(np.linalg.norm(value))
        slope = self.jacobian(x) * self.scale
        for _ in range(iterations):
            normal = slope.T @ slope
            normal.flat[:: len(x) + 1] += damping * max(float(np.max(np.diag(normal))), 1e-300)
            trial = x - self.scale * np.linalg.solve(normal, slope.T @ value)
            trial_value = self.residual(trial)
            trial_norm = float(np.linalg.norm(trial_value))
            if trial_norm < norm:
                x, value, norm = trial, trial_value, trial_norm
                slope = self.jacobian(x) * self.scale
                damping = max(0.1 * damping, 1e-15)
            elif damping > 1e6 or norm < 1e-2 * self.tolerance:
                break
            else:
                damping *= 10.0
        x = self.polished(x)
        return self.wrapped(x) if self.closed(x) else None

    def polished(self, x: Array, steps: int = 10) -> Array:
        """x after minimum-norm Newton steps, as long as they reduce the residual."""
        value = self.residual(x)
        for _ in range(steps):
            trial = x - self.scale * np.linalg.lstsq(self.jacobian(x) * self.scale, value, rcond=RANK)[0]
            trial_value = self.residual(trial)
            if not np.linalg.norm(trial_value) < np.linalg.norm(value):
                break
            x, value = trial, trial_value
        return x

    def nullity(self, x: Array) -> int:
        """Number of degrees of freedom that the linearised system leaves at x."""
        sizes = np.linalg.svd(self.jacobian(x) * self.scale, compute_uv=False)
        return len(x) - int(np.sum(sizes > RANK * sizes[0]))

    def is_isolated(self, x: Array) -> bool:
        """Whether an attempt to walk away from a solution along the null space of its Jacobian fails."""
        _, sizes, right = np.linalg.svd(self.jacobian(x) * self.scale)
        rank = int(np.sum(sizes > RANK * sizes[0]))
        if rank == len(x):
            return True
        walker = x + EXCURSION * self.scale * right[-1]
        for _ in range(10):
            left, sizes, right = np.linalg.svd(self.jacobian(walker) * self.scale)
            step = right[:rank].T @ ((left[:, :rank].T @ self.residual(walker)) / sizes[:rank])
            walker = walker - self.scale * step
        return not (self.closed(walker) and self.distance(walker, x) > 0.1 * EXCURSION)
