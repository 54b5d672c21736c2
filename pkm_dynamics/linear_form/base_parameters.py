# SPDX-License-Identifier: Apache-2.0
"""Base parameters: the groups of parameters on which the actuator efforts depend, the only identifiable ones.

Columns of Psi that are linear combinations of others at every motion have parameters that act as one. The rank comes
from a QR decomposition with column pivoting of Psi stacked over random motions (Gautier, "Numerical calculation of the
base inertial parameters of robots", ICRA 1990). The leader of a group is a choice: here the platform and then each limb
from base to tip, so that a limb's outer bodies are added to its inner ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy  # whose parts load when they are first used
from numpy.typing import NDArray

from pkm_description.loops.closure import independent
from pkm_description.mechanism import Array, Mechanism, frozen
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.linear_form.random_motions import random_motions
from pkm_runtime.errors import PkmError

INDEPENDENT = 1e-8  # part of a column of unit length that must be new; rounding in Psi leaves about 1e-12
NEGLIGIBLE = 1e-7  # coefficient of a group, both columns scaled to unit length, below which it is rounding
CLEAR = 1e-2  # largest ratio of what is left out to what is kept at which the rank is clear
RECOGNISED = 1e-7  # relative error with which a coefficient counts as a product of lengths


class RankError(PkmError):
    """The number of base parameters is unclear: the singular values fall without a gap."""

    def __init__(self, rank: int, gap: float, greedy: int) -> None:
        self.rank, self.gap, self.greedy = rank, gap, greedy
        super().__init__(
            f"the rank of the regressor is not clear: {rank} columns by pivoting, {greedy} in order, "
            f"gap {gap:.1e} between kept and omitted columns; use more motions or a wider range"
        )


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Grouping of parameters (n,) into base parameters (r,).

    `base = grouping @ p` and `Psi @ p = Psi[..., leading] @ base`. Base parameter k is named after its leading
    parameter, whose coefficient is one. `unseen` have no effect. `gap` is the ratio of the first discarded diagonal
    entry of R to the last one of the rank: the smaller, the clearer the rank.
    """

    names: tuple[str, ...]
    parameter_names: tuple[str, ...]
    leading: NDArray[np.int64]
    grouping: Array
    unseen: tuple[str, ...]
    rules: tuple[str, ...]
    gap: float

    def __len__(self) -> int:
        return len(self.names)

    def values(self, p: Array) -> Array:
        """Base parameters (..., r) of parameters (..., n)."""
        return np.asarray(p) @ self.grouping.T

    def reduce(self, psi: Array) -> Array:
        """Regressor (..., m, r) of the base parameters from Psi (..., m, n)."""
        return np.asarray(psi)[..., self.leading]

    def text(self) -> str:
        """The grouping rules, one line each, and the parameters without effect."""
        lines = [f"{len(self)} base parameters of {len(self.parameter_names)} parameters", *self.rules]
        if self.unseen:
            lines.append("without effect: " + ", ".join(self.unseen))
        return "\n".join(lines)


def base_parameters(dynamics: Dynamics) -> BaseParameters:
    """Base parameters, with friction as in `dynamics`, from random motions; `RankError` where the rank is unclear."""
    parameters = dynamics.parameters
    count = -(-3 * len(parameters) // len(dynamics.kinematics.actuated_names))
    motions = random_motions(dynamics.kinematics, max(count, 30))
    psi, names = dynamics.regressor(motions.pose, motions.twist, motions.acceleration)
    W = psi[np.isfinite(psi).all(axis=(1, 2))].reshape(-1, len(names))
    return grouped(W, names, lengths_of(dynamics.mechanism))


def grouped(W: Array, names: Sequence[str], lengths: Sequence[float] = ()) -> BaseParameters:
    """Base parameters from stacked regressors W (k, n), earlier columns leading; rules in products of `lengths` [m]."""
    size = np.linalg.norm(W, axis=0)
    seen = np.flatnonzero(size > 1e-10 * size.max(initial=0.0))
    scaled = W[:, seen] / size[seen]
    R = np.abs(np.diagonal(scipy.linalg.qr(scaled, mode="r", pivoting=True)[0]))
    rank = int(np.sum(INDEPENDENT * R[0] < R)) if len(R) else 0
    gap = float(R[rank] / R[rank - 1]) if 0 < rank < len(R) else 0.0
    leading = np.array(independent(scaled, INDEPENDENT), dtype=np.int64)
    if len(leading) != rank or gap > CLEAR:
        raise RankError(rank, gap, len(leading))
    # the dependent columns in terms of the leading ones, by least squares
    coefficients = np.linalg.lstsq(scaled[:, leading], scaled, rcond=None)[0] if rank else np.zeros((0, len(seen)))
    coefficients[np.abs(coefficients) < NEGLIGIBLE] = 0.0
    grouping = np.zeros((rank, len(names)))
    grouping[:, seen] = coefficients * size[seen] / size[seen[leading]][:, None]
    grouping[np.arange(rank), seen[leading]] = 1.0
    unseen = tuple(name for k, name in enumerate(names) if k not in set(seen.tolist()))
    words = _Words(lengths)
    rules = tuple(words.rule(row, names, int(k)) for row, k in zip(grouping, seen[leading], strict=True))
    return BaseParameters(
        tuple(names[k] for k in seen[leading]), tuple(names), seen[leading], frozen(grouping), unseen, rules, gap
    )


def lengths_of(mechanism: Mechanism) -> tuple[float, ...]:
    """Distances [m] between successive joints, the factors in the coefficients of groups."""
    points = [joint.origin[:3, 3] for joint in mechanism.joints]
    points += [frame[:3, 3] for loop in mechanism.loops for frame in (loop.predecessor_frame, loop.successor_frame)]
    found: list[float] = []
    for point in points:
        for length in (float(np.linalg.norm(point)), *(abs(float(x)) for x in point)):
            if length > 1e-9 and not any(abs(length - other) < 1e-9 * length for other in found):
                found.append(length)
    return tuple(found)


class _Words:
    """Coefficients as products of the lengths of a robot where possible: 0.1764 becomes 0.42^2."""

    def __init__(self, lengths: Sequence[float]) -> None:
        self.known: list[tuple[float, str]] = [(1.0, "")]
        text = [f"{length:.6g}" for length in lengths]
        pairs = list(zip(lengths, text, strict=True))
        self.known += [(a, s) for a, s in pairs] + [(a * a, f"{s}^2") for a, s in pairs]
        self.known += [(1.0 / a, f"1/{s}") for a, s in pairs] + [(1.0 / a**2, f"1/{s}^2") for a, s in pairs]
        self.known += [(a / b, f"{s}/{t}") for (a, s), (b, t) in product(pairs, pairs) if a != b]
        self.known += [(a**2 / b**2, f"{s}^2/{t}^2") for (a, s), (b, t) in product(pairs, pairs) if a != b]
        self.known += [(a / b**2, f"{s}/{t}^2") for (a, s), (b, t) in product(pairs, pairs) if a != b]
        self.known += [(a**2 / b, f"{s}^2/{t}") for (a, s), (b, t) in product(pairs, pairs) if a != b]
        self.known += [(a * b, f"{s}*{t}") for (a, s), (b, t) in product(pairs, pairs) if a < b]
        self.known += [(2.0 * a, f"2*{s}") for a, s in pairs] + [(2.0 / a, f"2/{s}") for a, s in pairs]

    def factor(self, value: float) -> str:
        """A positive coefficient in words; empty for one."""
        for known, text in self.known:
            if abs(value - known) <= RECOGNISED * known:
                return text
        return f"{value:.6g}"

    def rule(self, row: Array, names: Sequence[str], leading: int) -> str:
        """One group as a sum, its leading parameter first."""
        text = names[leading]
        for k in np.flatnonzero(row):
            if k == leading:
                continue
            factor = self.factor(abs(float(row[k])))
            text += f" {'-' if row[k] < 0 else '+'} {factor + ' ' if factor else ''}{names[int(k)]}"
        return text
