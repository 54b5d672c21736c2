# SPDX-License-Identifier: Apache-2.0
"""Linear and rotary deltas as printers' firmware describes them, with derivatives; mm, degrees.

Steps count downward from the endstops. Tower i stands at `delta_radius` and `angle`; its carriage triggers where the
nozzle is at (0, 0, `position_endstop`), were all towers as this one. A rotary delta's shoulder sits likewise, and its
arm triggers at that same place. The nozzle is on spheres about carriages or elbows, below them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pkm_description.mechanism import Array

STEPPERS = ("stepper_a", "stepper_b", "stepper_c")
STEP = "step_distance"  # the last parameter: by what share steps are longer than the settings say


@dataclass(frozen=True, eq=False)
class LinearDelta:
    """Towers with carriages; `steps` (3,) are lengths of a step [mm]."""

    steps: Array
    kinematics = "delta"
    arms = (tuple(f"{one}.arm_length" for one in STEPPERS),)
    radii = ("printer.delta_radius",)
    names = (
        "printer.delta_radius",
        *(f"{one}.position_endstop" for one in STEPPERS),
        *(f"{one}.angle" for one in STEPPERS),
        *(f"{one}.arm_length" for one in STEPPERS),
        STEP,
    )
    expected = (3.0, *[5.0] * 3, *[1.0] * 3, *[2.0] * 3, 0.01)

    def centres(self, x: Array, counts: Array) -> tuple[Array, Array, Array]:
        """Centres (m, 3, 3) of spheres, their derivatives (m, 3, 3, n), and radii (3,), for steps (m, 3)."""
        R, ends, angles, arms = x[0], x[1:4], np.radians(x[4:7]), x[7:10]
        rise = np.sqrt(arms**2 - R**2)
        down = counts * self.steps
        c, s = np.cos(angles), np.sin(angles)
        m = len(counts)
        t = np.empty((m, 3, 3))
        t[:, :, 0], t[:, :, 1], t[:, :, 2] = R * c, R * s, ends + rise - down * (1.0 + x[10])
        dt = np.zeros((m, 3, 3, 11))
        dt[..., 0, 0], dt[..., 1, 0], dt[..., 2, 0] = c, s, -R / rise
        for k in range(3):
            dt[:, k, 2, 1 + k] = 1.0
            dt[:, k, 0, 4 + k], dt[:, k, 1, 4 + k] = np.radians(-R * s[k]), np.radians(R * c[k])
            dt[:, k, 2, 7 + k] = arms[k] / rise[k]
        dt[..., 2, 10] = -down
        return t, dt, arms

    def counts(self, x: Array, points: Array) -> Array:
        """Steps (m, 3) at points (m, 3)."""
        R, ends, angles, arms = x[0], x[1:4], np.radians(x[4:7]), x[7:10]
        across = (R * np.cos(angles) - points[:, :1]) ** 2 + (R * np.sin(angles) - points[:, 1:2]) ** 2
        heights = np.sqrt(arms**2 - across) + points[:, 2:]
        return np.asarray((ends + np.sqrt(arms**2 - R**2) - heights) / (self.steps * (1.0 + x[10])))


@dataclass(frozen=True, eq=False)
class RotaryDelta:
    """Arms that turn at shoulders; `steps` (3,) are angles of a step [rad]."""

    steps: Array
    kinematics = "rotary_delta"
    arms = (
        tuple(f"{one}.upper_arm_length" for one in STEPPERS),
        tuple(f"{one}.lower_arm_length" for one in STEPPERS),
    )
    radii = ("printer.shoulder_radius", "printer.shoulder_height")
    names = (
        "printer.shoulder_radius",
        "printer.shoulder_height",
        *(f"{one}.position_endstop" for one in STEPPERS),
        *(f"{one}.angle" for one in STEPPERS),
        *(f"{one}.upper_arm_length" for one in STEPPERS),
        *(f"{one}.lower_arm_length" for one in STEPPERS),
        STEP,
    )
    expected = (3.0, 3.0, *[5.0] * 3, *[1.0] * 3, *[2.0] * 6, 0.01)

    def centres(self, x: Array, counts: Array) -> tuple[Array, Array, Array]:
        """As for `LinearDelta`: the elbows."""
        r, h, ends, directions, upper, lower = x[0], x[1], x[2:5], np.radians(x[5:8]), x[8:11], x[11:14]
        home = arm_angles(np.full(3, -r), ends - h, upper, lower)
        turned = counts * self.steps
        angle = home - turned * (1.0 + x[14])
        c, s = np.cos(directions), np.sin(directions)
        out = r + upper * np.cos(angle)
        m = len(counts)
        t = np.stack([out * c, out * s, h + upper * np.sin(angle)], axis=2)
        # home by the parameters: the foot (0, end) is at `lower` from the elbow (r + u cos, h + u sin)
        gx, gz = -(r + upper * np.cos(home)), ends - h - upper * np.sin(home)
        by = gx * -upper * np.sin(home) + gz * upper * np.cos(home)
        dhome = np.zeros((3, 15))
        dhome[:, 0], dhome[:, 1] = -gx / by, -gz / by
        for k in range(3):
            dhome[k, 2 + k] = gz[k] / by[k]
            dhome[k, 8 + k] = -(gx[k] * np.cos(home[k]) + gz[k] * np.sin(home[k])) / by[k]
            dhome[k, 11 + k] = -lower[k] / by[k]
        dangle = np.broadcast_to(dhome, (m, 3, 15)).copy()
        dangle[:, :, 14] = -turned
        dout = -(upper * np.sin(angle))[..., None] * dangle
        dup = (upper * np.cos(angle))[..., None] * dangle
        dout[..., 0] += 1.0
        dup[..., 1] += 1.0
        for k in range(3):
            dout[:, k, 8 + k] += np.cos(angle[:, k])
            dup[:, k, 8 + k] += np.sin(angle[:, k])
        dt = np.stack([dout * c[:, None], dout * s[:, None], dup], axis=2)
        for k in range(3):
            dt[:, k, 0, 5 + k] += np.radians(-out[:, k] * s[k])
            dt[:, k, 1, 5 + k] += np.radians(out[:, k] * c[k])
        return t, dt, lower

    def counts(self, x: Array, points: Array) -> Array:
        """Steps (m, 3) at points (m, 3)."""
        r, h, ends, directions, upper, lower = x[0], x[1], x[2:5], np.radians(x[5:8]), x[8:11], x[11:14]
        c, s = np.cos(directions), np.sin(directions)
        along, aside = points[:, :1] * c + points[:, 1:2] * s - r, points[:, 1:2] * c - points[:, :1] * s
        angle = arm_angles(along, points[:, 2:] - h, upper, np.sqrt(lower**2 - aside**2))
        home = arm_angles(np.full(3, -r), ends - h, upper, lower)
        return np.asarray((home - angle) / (self.steps * (1.0 + x[14])))


Model = LinearDelta | RotaryDelta


@dataclass(frozen=True, eq=False)
class Words:
    """A firmware's settings by a model's parameters x (n,): `by` (p, n) times x, plus `at` (p,)."""

    names: tuple[str, ...]
    by: Array
    at: Array

    def values(self, x: Array) -> Array:
        """The settings (p,)."""
        return np.asarray(self.by @ x + self.at)


def own_words(model: Model) -> Words:
    """The model's own names, which are Klipper's, without the length of a step."""
    n = len(model.names)
    return Words(model.names[:-1], np.eye(n)[:-1], np.zeros(n - 1))


def arm_angles(along: Array, up: Array, upper: Array, lower: Array) -> Array:
    """Angles of upper arms whose lower arms end at (along, up) from the shoulder, the elbow outside."""
    away = np.hypot(along, up)
    towards, open_by = np.arctan2(up, along), np.arccos((away**2 + upper**2 - lower**2) / (2.0 * upper * away))
    one, other = towards + open_by, towards - open_by
    angle = np.where(np.cos(one) > np.cos(other), one, other)
    return np.asarray(np.arctan2(np.sin(angle), np.cos(angle)))


def nozzle(model: Model, x: Array, counts: Array) -> tuple[Array, Array]:
    """Where the nozzle is (m, 3) after steps (m, 3), and the derivatives (m, 3, n); NaN where the rods do not meet."""
    with np.errstate(invalid="ignore", divide="ignore"):
        t, dt, radii = model.centres(x, counts)
        p = _below(t, radii)
    whole = np.asarray(np.isfinite(p).all(axis=1))
    J = np.full((len(counts), 3, len(x)), np.nan)
    rods = p[:, None, :] - t
    rhs = np.einsum("mij,mijn->min", rods, dt)
    first = [model.names.index(name) for name in model.arms[-1]]
    for k in range(3):
        rhs[:, k, first[k]] += radii[k]
    whole &= np.abs(np.linalg.det(np.where(whole[:, None, None], rods, 0.0))) > 1e-6
    p[~whole] = np.nan
    J[whole] = np.linalg.solve(rods[whole], rhs[whole])
    return p, J


def _below(t: Array, radii: Array) -> Array:
    """The lower point (m, 3) of three spheres about t (m, 3, 3)."""
    a, b = t[:, 1] - t[:, 0], t[:, 2] - t[:, 0]
    normal = np.cross(a, b)
    square = np.sum(normal**2, axis=1, keepdims=True)
    u = 0.5 * (np.sum(a * a, axis=1) + radii[0] ** 2 - radii[1] ** 2)
    v = 0.5 * (np.sum(b * b, axis=1) + radii[0] ** 2 - radii[2] ** 2)
    foot = (u[:, None] * np.cross(b, normal) + v[:, None] * np.cross(normal, a)) / square
    high = np.sqrt((radii[0] ** 2 - np.sum(foot**2, axis=1, keepdims=True)) / square)
    return np.asarray(t[:, 0] + foot - np.sign(normal[:, 2:]) * high * normal)
