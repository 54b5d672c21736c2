# SPDX-License-Identifier: Apache-2.0
"""Drive gains: effort per unit of a drive's signal (current or command), from motions with a known load.

Signals s = effort / gain alone give parameters only up to the gain. The same motion with a known payload fixes the
scale (Gautier and Briot, "Global identification of joint drive gains and dynamic parameters of robots", ASME JDSMC
2014). All recordings are fitted at once, with the noise in the signals, to

    s_a = c_a (Psi_base,a beta + Psi_payload,a p_payload),   c_a = 1 / gain_a.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # whose parts load when they are first used
import scipy.special

from pkm_description.mechanism import Array, Inertial
from pkm_dynamics.identification.least_squares import CONFIDENCE
from pkm_dynamics.linear_form.base_parameters import BaseParameters
from pkm_dynamics.linear_form.regressor import ParameterSet, payload_parameters
from pkm_runtime.errors import PkmError


class NoKnownLoadError(PkmError):
    """Recordings that do not fix the scale of the efforts."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """Regressors (n, m, n_parameters) of a motion, the drives' signals (n, m), and what is known: payload, springs."""

    psi: Array
    signals: Array
    payload: Inertial | None = None
    springs: Array | float = 0.0  # `Dynamics.spring_efforts` (n, m)


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Gains (m,) [effort per unit of signal], half-widths (m,) of their 95 % confidence, and base parameters (r,)."""

    gains: Array
    interval: Array
    base_values: Array


def drive_gains(
    recordings: Sequence[Loaded], base: BaseParameters, parameters: ParameterSet, platform: str
) -> DriveGains:
    """Fit gains and base parameters to recordings; `NoKnownLoadError` without a payload, which leaves only ratios."""
    if not any(r.payload is not None and r.payload.mass > 0.0 for r in recordings):
        raise NoKnownLoadError(
            "drive gains need a recording with a known payload; without one, only ratios are identifiable"
        )
    W = np.concatenate([base.reduce(r.psi) for r in recordings])
    known = np.concatenate(
        [
            r.psi
            @ (np.zeros(len(parameters)) if r.payload is None else payload_parameters(parameters, platform, r.payload))
            + r.springs
            for r in recordings
        ]
    )
    s = np.concatenate([r.signals for r in recordings])
    n, m, r = W.shape
    # linear in beta and gains, with the noise on the wrong side: a start that is near
    left = np.zeros((n, m, r + m))
    left[:, :, :r] = W
    left[:, np.arange(m), r + np.arange(m)] = -s
    start = np.linalg.lstsq(left.reshape(n * m, -1), -known.reshape(-1), rcond=None)[0]
    beta, gains = start[:r], start[r:]
    if not (gains != 0.0).all():
        raise NoKnownLoadError("a drive's signal has no part that moves the robot; its gain is not identifiable")
    noise = np.sqrt(np.mean((s - (W @ beta + known) / gains) ** 2, axis=0))
    noise = np.maximum(noise, 1e-9 * np.abs(s).max())
    size = np.maximum(np.linalg.norm(W.reshape(-1, r), axis=0), 1e-300)

    def residual(x: Array) -> Array:
        return np.asarray((((W @ (x[:r] / size) + known) * x[r:] - s) / noise).reshape(-1))

    def jacobian(x: Array) -> Array:
        J = np.zeros((n, m, r + m))
        J[:, :, :r] = W / size * (x[r:] / noise)[:, None]
        J[:, np.arange(m), r + np.arange(m)] = (W @ (x[:r] / size) + known) / noise
        return J.reshape(n * m, r + m)

    answer = scipy.optimize.least_squares(
        residual, np.concatenate([beta * size, 1.0 / gains]), jacobian, x_scale="jac", method="trf"
    )
    found = 1.0 / answer.x[r:]
    freedom = n * m - r - m
    J = jacobian(answer.x)
    scale = np.linalg.norm(J, axis=0)
    covariance = np.linalg.pinv((J / scale).T @ (J / scale)) / np.outer(scale, scale) * 2.0 * answer.cost / freedom
    factor = float(scipy.special.stdtrit(freedom, 0.5 + 0.5 * CONFIDENCE))
    half = factor * np.sqrt(np.diagonal(covariance)[r:]) * found**2
    return DriveGains(found, half, answer.x[:r] / size)
