# SPDX-License-Identifier: Apache-2.0
"""Exciting trajectories: periodic motions on which every base parameter shows.

The coordinates are finite Fourier series (Swevers, Ganseman, Tükel, De Schutter and Van Brussel, "Optimal robot
excitation and identification", IEEE T-RA 1997) at rest at home at both ends: displacements of the platform in its
motion space, or of the actuators where that is configuration-dependent. Their coefficients minimise the condition
number of the base regressor within the limits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # whose parts load when they are first used
import scipy.linalg

from pkm_description.mechanism import Array
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.identification.recorded import RecordingError, platform_motions
from pkm_dynamics.linear_form.base_parameters import BaseParameters
from pkm_dynamics.linear_form.random_motions import Motions
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_runtime.errors import PkmError

UNREACHABLE = 1e3  # decades of condition number that a trajectory outside the limits costs


class ExcitationError(PkmError):
    """No trajectory within the limits was found."""


@dataclass(frozen=True)
class ExcitationLimits:
    """Limits of a trajectory in its coordinates, displacements from home [m, rad], and of their rates per second.

    `reach` is half the width of their box; `share` the usable part of the described joint velocity and effort limits.
    """

    reach: float = 0.15
    velocity: float = 2.0
    acceleration: float = 30.0
    share: float = 0.9


@dataclass(frozen=True, eq=False)
class Excitation:
    """A periodic trajectory: `series` (n_coordinates, 1 + 2 H) holds offset, cosine and sine coefficients."""

    kinematics: Kinematics
    series: Array
    period: float
    condition: float

    def coordinates(self, times: Array) -> tuple[Array, Array, Array]:
        """Coordinates, rates and second rates (n, n_coordinates) at `times` (n,) [s]."""
        harmonics = (self.series.shape[1] - 1) // 2
        w = 2.0 * np.pi / self.period * np.arange(1, harmonics + 1)
        c, s = np.cos(np.outer(times, w)), np.sin(np.outer(times, w))
        offset, a, b = self.series[:, 0], self.series[:, 1 : 1 + harmonics].T, self.series[:, 1 + harmonics :].T
        return offset + c @ a + s @ b, (c * w) @ b - (s * w) @ a, -((c * w**2) @ a) - (s * w**2) @ b

    def motions(self, times: Array) -> Motions:
        """Platform motions at `times` (n,) [s]; `RecordingError` where an actuator motion has no pose."""
        x, u, du = self.coordinates(times)
        if not self.kinematics.constant_space:
            home = np.asarray(self.kinematics.inverse(self.kinematics.home).actuated)
            return platform_motions(self.kinematics, home + x, u, du, self.kinematics.home)
        S = self.kinematics.task.subspace
        x, u, du = x @ S.T, u @ S.T, du @ S.T
        poses = np.array([displace(np.array(self.kinematics.home), step) for step in x])
        w, dw = turning(x[:, 3:], u[:, 3:], du[:, 3:])
        return Motions(poses, np.hstack([u[:, :3], w]), np.hstack([du[:, :3], dw]), 0.0)


def turning(r: Array, u: Array, du: Array) -> tuple[Array, Array]:
    """Angular velocity and acceleration (n, 3) [rad/s, rad/s^2], fixed axes, of rotation vectors r (n, 3) [rad].

    w = u + a r x u + b r x (r x u), a = (1 - cos t)/t^2, b = (t - sin t)/t^3, t = |r|; u and du (n, 3) are the rates
    and second rates of r, and the acceleration is the derivative of w.
    """
    s = np.sum(r * r, axis=1, keepdims=True)
    small = s < 1e-4
    safe = np.where(small, 1.0, s)
    t = np.sqrt(safe)
    sinc = np.sin(t) / t
    a = np.where(small, 0.5 - s / 24.0 + s * s / 720.0, (1.0 - np.cos(t)) / safe)
    b = np.where(small, 1.0 / 6.0 - s / 120.0 + s * s / 5040.0, (1.0 - sinc) / safe)
    da = np.where(small, -1.0 / 24.0 + s / 360.0, (0.5 * sinc - (1.0 - np.cos(t)) / safe) / safe)
    db = np.where(small, -1.0 / 120.0 + s / 2520.0, (0.5 * (sinc - np.cos(t)) - (1.0 - sinc)) / safe**2)
    ds = 2.0 * np.sum(r * u, axis=1, keepdims=True)
    ru, rdu = np.cross(r, u), np.cross(r, du)
    w = u + a * ru + b * np.cross(r, ru)
    dw = du + a * rdu + b * np.cross(r, rdu) + ds * (da * ru + db * np.cross(r, ru)) + b * np.cross(u, ru)
    return w, dw


def at_rest(harmonics: int) -> Array:
    """Basis (1 + 2 H, 2 H - 2) of the series of period 2 pi that vanish at time zero with two derivatives."""
    k = np.arange(1, harmonics + 1)
    zero = np.zeros(harmonics)
    conditions = np.array([[1.0, *np.ones(harmonics), *zero], [0.0, *zero, *k], [0.0, *(k**2), *zero]])
    return np.asarray(scipy.linalg.null_space(conditions))


def find_excitation(
    dynamics: Dynamics,
    base: BaseParameters,
    limits: ExcitationLimits | None = None,
    period: float = 5.0,
    harmonics: int = 5,
    samples: int = 60,
    evaluations: int = 600,
    seed: int = 0,
) -> Excitation:
    """Exciting trajectory of `period` [s]: the best of some random ones, improved by Powell's method.

    It minimises the condition number of the base regressor at `samples` times, in units of its columns' sizes on the
    first trajectory, in about `evaluations` trials. Raises `ExcitationError` where none keeps the limits.
    """
    limits = ExcitationLimits() if limits is None else limits
    search = _Search(dynamics, base, limits, period, harmonics, samples)
    rng = np.random.default_rng(seed)
    best, found = np.inf, None
    for _ in range(max(10, evaluations // 4)):
        x = rng.normal(size=search.size)
        value = search.cost(x)
        if value < best:
            best, found = value, x
    if found is None or best >= UNREACHABLE:
        raise ExcitationError(
            f"{dynamics.mechanism.name}: no trajectory of reach {limits.reach:g} around home stays within the "
            "limits; reduce the reach"
        )
    answer = scipy.optimize.minimize(
        search.cost, found, method="Powell", options={"maxfev": evaluations, "xtol": 1e-2, "ftol": 1e-3}
    )
    x = answer.x if answer.fun < best else found
    series = search.series(x)
    return Excitation(dynamics.kinematics, series, period, 10.0 ** float(min(answer.fun, best)))


class _Search:
    def __init__(
        self,
        dynamics: Dynamics,
        base: BaseParameters,
        limits: ExcitationLimits,
        period: float,
        harmonics: int,
        samples: int,
    ) -> None:
        self.dynamics, self.base, self.limits, self.period = dynamics, base, limits, period
        kinematics = dynamics.kinematics
        self.basis = at_rest(harmonics)
        self.n = kinematics.mobility if kinematics.constant_space else len(kinematics.actuated_names)
        self.size = self.n * self.basis.shape[1]
        self.times = np.linspace(0.0, period, samples, endpoint=False)
        self.dense = np.linspace(0.0, period, 60 * harmonics, endpoint=False)
        bounds = [dynamics.mechanism.joint_named[name].limits for name in kinematics.actuated_names]
        self.speed = np.array([bound.velocity or np.inf for bound in bounds])
        self.effort = np.array([bound.effort or np.inf for bound in bounds])
        self.unit: Array | None = None

    def series(self, x: Array) -> Array:
        """Series of free coefficients, scaled so that the tightest limit of the coordinates is just met."""
        series = np.reshape(x, (self.n, -1)) @ self.basis.T
        draft = Excitation(self.dynamics.kinematics, series, self.period, 0.0)
        positions, rates, second = draft.coordinates(self.dense)
        limits = self.limits
        largest = max(
            np.abs(positions).max() / limits.reach,
            np.abs(rates).max() / limits.velocity,
            np.abs(second).max() / limits.acceleration,
        )
        return np.asarray(series / largest)

    def cost(self, x: Array) -> float:
        """Decades of condition number; at least `UNREACHABLE` outside the limits."""
        if not np.abs(x).max() > 0.0:
            return 2.0 * UNREACHABLE
        try:
            motions = Excitation(self.dynamics.kinematics, self.series(x), self.period, 0.0).motions(self.times)
        except RecordingError:
            return 2.0 * UNREACHABLE
        answer = self.dynamics.kinematics.motion(motions.pose, motions.twist, motions.acceleration)
        if not answer.ok.all():
            return UNREACHABLE * (1.0 + float(np.mean(~answer.ok)))
        psi, _ = self.dynamics.regressor(motions.pose, motions.twist, motions.acceleration)
        if not np.isfinite(psi).all():
            return 2.0 * UNREACHABLE
        effort = psi @ self.dynamics.parameters.values
        share = max(
            float((np.abs(answer.actuated_velocities) / self.speed).max()),
            float((np.abs(effort) / self.effort).max()),
        )
        if share > self.limits.share:
            return UNREACHABLE * (1.0 + min(share - self.limits.share, 1.0))
        W = self.base.reduce(psi).reshape(-1, len(self.base))
        if self.unit is None:
            sizes = np.linalg.norm(W, axis=0)
            self.unit = np.where(sizes > 0.0, sizes, 1.0)
        values = np.linalg.svd(W / self.unit, compute_uv=False)
        return float(np.log10(values[0] / max(values[-1], 1e-300)))
