# SPDX-License-Identifier: Apache-2.0
"""A line that hangs between two points, elastic and with mass: the elastic catenary, in its own upright plane.

At its far end, `span` beside and `rise` above the near one, H and V are the force along and up that holds it there;
docs/stiffness.md has the equations. All is written so that it holds for w = 0, too, where the line is straight, and for
H = 0, where it is upright.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pkm_analysis.analysis_errors import AnalysisError
from pkm_description.joint_geometry import frame_along
from pkm_description.mechanism import Array, Cable
from pkm_description.rotations import cross

STEPS = 60  # of Newton's method
CLOSE = 1e-13  # of the length: the residual at which it ends
UPRIGHT = 1e-9  # of the length: the span of a line that is upright
LONGEST = 2.0  # times as long as the chord: a line that hangs lower is not pulled at


class Catenary(NamedTuple):
    """A hanging line by its force at the far end [N]."""

    span: float  # m, zero or more
    rise: float  # m
    horizontal: float  # N
    vertical: float  # N, at the far end, up
    length: float  # m, without tension
    weight: float  # N/m
    EA: float  # N

    @property
    def tensions(self) -> tuple[float, float]:
        """At the near and the far end [N]."""
        near = self.vertical - self.weight * self.length
        return float(np.hypot(self.horizontal, near)), float(np.hypot(self.horizontal, self.vertical))

    @property
    def sag(self) -> float:
        """Largest distance from the chord [m]."""
        chord = float(np.hypot(self.span, self.rise))
        near = self.vertical - self.weight * self.length
        if self.weight == 0.0 or self.span == 0.0:
            return 0.0
        slope = self.horizontal * self.rise / self.span  # of the vertical force where the line is along the chord
        part = (slope - near) / self.weight
        x, z, _ = shape(self.horizontal, slope, part, self.weight, self.EA)
        return abs(x * self.rise - z * self.span) / chord

    @property
    def stiffness(self) -> Array:
        """Force (3, 3) at the far end per displacement there, along the span, across the plane, up; its length held."""
        _, _, F = shape(self.horizontal, self.vertical, self.length, self.weight, self.EA)
        K = np.zeros((3, 3))
        K[np.ix_((0, 2), (0, 2))] = np.linalg.inv(F[:, :2])
        K[1, 1] = 1.0 / _per_force(self.horizontal, self.vertical, self.length, self.weight, self.EA)
        return K


class Line(NamedTuple):
    """A cable from one point (..., 3) to another, base frame."""

    near: Array
    far: Array
    cable: Cable

    @property
    def length(self) -> Array:
        """From end to end [m]."""
        return np.asarray(np.linalg.norm(self.far - self.near, axis=-1))

    @property
    def along(self) -> Array:
        """Unit direction (3,) from the near to the far end."""
        return np.asarray((self.far - self.near) / self.length)

    def hung(self, tension: float, gravity: Array) -> tuple[Catenary, Array]:
        """How it hangs under a tension [N], and its stiffness (3, 3) in base axes, both as `Catenary` says."""
        pull = float(np.linalg.norm(gravity))
        up = -gravity / pull if pull > 0.0 else frame_along(self.along)[:, 0]
        chord = self.far - self.near
        beside = chord - up * (up @ chord)
        span = float(np.linalg.norm(beside))
        x = beside / span if span > UPRIGHT * self.length else frame_along(up)[:, 0]
        found = hanging(span, float(up @ chord), tension, pull * self.cable.mass, self.cable.stiffness)
        axes = np.column_stack([x, cross(up, x), up])
        return found, axes @ found.stiffness @ axes.T


def hanging(span: float, rise: float, tension: float, weight: float, EA: float) -> Catenary:
    """The line of which the mean of the forces at both ends, along the chord, is a tension [N] above zero."""
    chord = float(np.hypot(span, rise))
    if not (tension > 0.0 and chord > 0.0):
        raise AnalysisError(f"line under a tension of {tension:.4g} N", "it does not hang so", "give more than zero")
    along = np.array([span, rise]) / chord
    drop = weight * span / tension / np.sqrt(24.0)  # of a parabola
    length = chord * (1.0 + drop**2) / (1.0 + tension / EA)
    u = np.array([tension * along[0], tension * along[1] + 0.5 * weight * length, length])
    force = np.array([tension, tension, chord])
    for _ in range(STEPS):
        with np.errstate(all="ignore"):  # a line that folds ends in NaN
            x, z, F = shape(u[0], u[1], u[2], weight, EA)
        mean = along @ (u[0], u[1] - 0.5 * weight * u[2]) - tension
        gap = np.array([x - span, z - rise, mean * chord / tension])
        slopes = np.vstack([F, np.array([*along, -0.5 * along[1] * weight]) * chord / tension]) * force
        if not np.isfinite(slopes).all():
            break
        step = np.linalg.solve(slopes, gap) * force
        u -= step * min(1.0, 0.5 * u[2] / max(abs(step[2]), 1e-300))
        if np.abs(gap).max() < CLOSE * chord and u[2] < LONGEST * chord:
            return Catenary(span, rise, float(u[0]), float(u[1]), float(u[2]), weight, EA)
    raise AnalysisError(f"line under a tension of {tension:.4g} N", "it hangs down", "give more tension")


def _per_force(H: float, V: float, length: float, weight: float, EA: float) -> float:
    near, far = (V - weight * length, V) if weight * length <= 2.0 * V else (-V, weight * length - V)
    T0, T = np.hypot(H, near), np.hypot(H, far)
    c = (1.0 + (near + far) / (T0 + T)) / (near + T0)
    y = weight * length * c
    return float(length * (1.0 / EA + c * (np.log1p(y) / y if y else 1.0)))


def shape(H: float, V: float, length: float, weight: float, EA: float) -> tuple[float, float, Array]:
    """Where the far end is, and its derivatives (2, 3) by H, V and the length."""
    near = V - weight * length
    T0, T = np.hypot(H, near), np.hypot(H, V)
    ratio = _per_force(H, V, length, weight, EA)
    bent = length * (H * H + T * T0 - V * near) / ((T + T0) * T * T0)
    mixed = -H * length * (V + near) / ((T + T0) * T * T0)
    stretch = 1.0 / EA + 1.0 / T0
    F = np.array([[ratio - bent, mixed, H * stretch], [mixed, length / EA + bent, near * stretch]])
    return H * ratio, (V + near) * length * (0.5 / EA + 1.0 / (T + T0)), F
