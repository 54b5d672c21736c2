# SPDX-License-Identifier: Apache-2.0
"""Weighted least squares for base parameters, with confidence intervals.

Every actuator weighs by the noise of its own effort, from a first, unweighted fit (Gautier, "Dynamic identification of
robots with power model", ICRA 1997).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.special

from pkm_description.mechanism import Array
from pkm_dynamics.linear_form.base_parameters import BaseParameters
from pkm_runtime.errors import PkmError

CONFIDENCE = 0.95


class ExcitationTooPoorError(PkmError):
    """A recording on which some base parameters do not show."""

    def __init__(self, names: tuple[str, ...], condition: float) -> None:
        self.names, self.condition = names, condition
        super().__init__(
            f"the motion does not excite {', '.join(names)} (condition number {condition:.1e}); "
            "record a richer motion, or leave friction out"
        )


@dataclass(frozen=True, eq=False)
class Estimate:
    """Base parameters with their uncertainty.

    `values`, `deviations` (standard) and `interval` (r,): the half-width of the 95 % confidence interval. `covariance`
    (r, r). `noise` (m,): standard deviation of each actuator's residual [N m or N]. `condition` is that of the weighted
    regressor with columns of unit length. `W` (k, r) and `y` (k,) are the weighted equations.
    """

    base: BaseParameters
    values: Array
    deviations: Array
    interval: Array
    covariance: Array
    noise: Array
    condition: float
    W: Array
    y: Array

    def certain(self, percent: float = 10.0) -> np.ndarray:
        """Mask (r,) of the base parameters within this relative standard deviation."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.deviations < 0.01 * percent * np.abs(self.values)

    def text(self) -> str:
        """Table of group, value and interval."""
        width = max(len(name) for name in self.base.names)
        lines = [f"{'group led by':{width}} {'value':>13} {'+- 95 %':>11} {'%':>8}"]
        for name, value, half in zip(self.base.names, self.values, self.interval, strict=True):
            relative = 100.0 * half / abs(value) if value else np.inf
            lines.append(f"{name:{width}} {value:13.6g} {half:11.3g} {relative:8.2f}")
        return "\n".join(lines)


def estimate(psi: Array, efforts: Array, base: BaseParameters) -> Estimate:
    """Fit base parameters to efforts (n, m) [N m or N], from regressors of all parameters (n, m, n_parameters)."""
    W3 = base.reduce(psi)
    n, m, r = W3.shape
    first = np.asarray(np.linalg.lstsq(W3.reshape(-1, r), efforts.reshape(-1), rcond=None)[0], dtype=np.float64)
    noise = _noise(W3, efforts, first)
    weights = 1.0 / noise
    W = (W3 * weights[:, None]).reshape(-1, r)
    y = (efforts * weights).reshape(-1)
    size = np.linalg.norm(W, axis=0)
    size = np.where(size > 0.0, size, 1.0)
    _, s, Vt = np.linalg.svd(W / size, full_matrices=False)
    condition = float(s[0] / s[-1]) if s[-1] > 0.0 else np.inf
    if not condition < 1e7 or n * m <= r:
        silent = np.flatnonzero(np.abs(Vt[-1]) > 0.3)
        raise ExcitationTooPoorError(tuple(base.names[k] for k in silent), condition)
    values = np.asarray(np.linalg.lstsq(W / size, y, rcond=None)[0] / size, dtype=np.float64)
    freedom = n * m - r
    variance = float(np.sum((W @ values - y) ** 2)) / freedom
    inverse = (Vt.T / s**2) @ Vt
    covariance = variance * inverse / np.outer(size, size)
    deviations = np.sqrt(np.diagonal(covariance))
    factor = float(scipy.special.stdtrit(freedom, 0.5 + 0.5 * CONFIDENCE))
    return Estimate(
        base, values, deviations, factor * deviations, covariance, _noise(W3, efforts, values), condition, W, y
    )


def _noise(W3: Array, efforts: Array, values: Array) -> Array:
    """Standard deviation of each actuator's residual, never zero."""
    residual = efforts - W3 @ values
    freedom = max(1.0, len(W3) - W3.shape[2] / W3.shape[1])
    found = np.sqrt(np.sum(residual**2, axis=0) / freedom)
    return np.maximum(found, 1e-9 * max(float(np.abs(efforts).max()), 1e-300))
