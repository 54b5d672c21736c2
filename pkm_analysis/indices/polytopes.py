# SPDX-License-Identifier: Apache-2.0
"""The velocities that a platform can have, and the forces that it can exert, within the limits of its actuators.

With K the rates of the m actuators per platform velocity, the velocities are the polytope |K v| <= q_max, cut out by m
pairs of half-spaces, and the forces the zonotope K^T tau, |tau| <= tau_max, spanned by m segments. Both are exact for
more actuators than freedoms, where the condition number of K is not (Krut, Company and Pierrot, "Velocity performance
indexes for parallel mechanisms with actuation redundancy", 2002).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import ClassVar

import numpy as np

from pkm_analysis.pictured import Pictured
from pkm_description.introduction import measure
from pkm_description.mechanism import Array

OUTSIDE = 1e-9  # of the limits: what rounding may leave a vertex outside
FLAT = 1e-12  # a determinant, of unit rows, that is zero but for rounding


@dataclass(frozen=True, eq=False, repr=False)
class VelocityPolytope(Pictured):
    """Velocities v (f,) with |K v| <= limits."""

    _picture: ClassVar[str] = "polytope_picture"

    jacobian: Array  # (m, f) actuator rates per platform velocity
    limits: Array  # (m,) of the actuators, positive

    def _summary(self) -> str:
        return f"{len(self.limits)} actuators, {measure(self.fastest)} m/s at most, {measure(self.slowest)} everywhere"

    @cached_property
    def rows(self) -> Array:
        """Normals (m, f) of the faces, of which `rows @ v` is between -1 and 1."""
        return np.asarray(self.jacobian / self.limits[:, None])

    @cached_property
    def vertices(self) -> Array:
        """Its vertices (k, f); none where the actuators do not hold the platform."""
        m, f = self.rows.shape
        signs = np.array(list(product((1.0, -1.0), repeat=f)))
        found = []
        for chosen in combinations(range(m), f):
            A = self.rows[list(chosen)]
            size = np.linalg.norm(A, axis=1)
            if size.min(initial=np.inf) == 0.0 or abs(np.linalg.det(A / size[:, None])) < FLAT:
                continue
            corners = np.linalg.solve(A, signs.T).T
            found.append(corners[(np.abs(corners @ self.rows.T) <= 1.0 + OUTSIDE).all(axis=1)])
        return np.unique(np.concatenate([np.zeros((0, f)), *found]).round(15), axis=0)

    @property
    def fastest(self) -> float:
        """The largest speed that it contains; infinite where the actuators do not hold the platform."""
        held = np.linalg.matrix_rank(self.rows) == self.rows.shape[1]
        return float(np.linalg.norm(self.vertices, axis=1).max(initial=0.0)) if held else np.inf

    @property
    def slowest(self) -> float:
        """The largest speed that is possible in every direction: the distance of its nearest face."""
        return float(1.0 / np.linalg.norm(self.rows, axis=1).max())


@dataclass(frozen=True, eq=False, repr=False)
class ForcePolytope(Pictured):
    """Forces K^T tau (f,) of efforts |tau| <= limits."""

    _picture: ClassVar[str] = "polytope_picture"

    jacobian: Array  # (m, f) actuator rates per platform velocity
    limits: Array  # (m,) of the actuators, positive

    def _summary(self) -> str:
        return f"{len(self.limits)} actuators, {measure(self.strongest)} N at most, {measure(self.weakest)} everywhere"

    @cached_property
    def generators(self) -> Array:
        """The forces (m, f) of each actuator at its limit."""
        return np.asarray(self.jacobian * self.limits[:, None])

    @cached_property
    def rows(self) -> Array:
        """Normals (k, f) of pairs of faces, of which `rows @ w` is between -1 and 1."""
        m, f = self.generators.shape
        found = []
        for chosen in combinations(range(m), f - 1):
            A = self.generators[list(chosen)]
            size = np.linalg.norm(A, axis=1)
            if size.min(initial=np.inf) == 0.0:
                continue
            _, values, Vt = np.linalg.svd(A / size[:, None])
            if f > 1 and values[-1] < FLAT:
                continue
            far = np.abs(self.generators @ Vt[-1]).sum()
            found.append(Vt[-1] / far if far > 0.0 else np.full(f, np.inf))
        return np.array(found).reshape(-1, f)

    @property
    def strongest(self) -> float:
        """The largest force that it contains, at a vertex."""
        m = len(self.generators)
        signs = np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=m - 1)])
        return float(np.linalg.norm(signs @ self.generators, axis=1).max())

    @property
    def weakest(self) -> float:
        """The largest force that is possible in every direction: the distance of the nearest face."""
        if np.linalg.matrix_rank(self.generators) < self.generators.shape[1]:
            return 0.0
        return float(1.0 / np.linalg.norm(self.rows, axis=1).max())
