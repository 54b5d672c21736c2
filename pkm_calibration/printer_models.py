# SPDX-License-Identifier: Apache-2.0
"""Linear and rotary deltas as printers' firmware describes them, and what measurements miss by that; mm, degrees.

Steps count downward from the endstops. Tower i stands at `delta_radius` and `angle`; its carriage triggers where the
nozzle is at (0, 0, `position_endstop`), were all towers as this one. A rotary delta's shoulder sits likewise, and its
arm triggers at that same place. The nozzle is on spheres about carriages or elbows, below them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from pkm_description.mechanism import Array

STEPPERS = ("stepper_a", "stepper_b", "stepper_c")
SMALL = 1e-4  # of the expected error of a parameter, for differences: these are off by 1e-9 of what they are
NOISE = {"height": 0.02, "manual": 0.5, "distance": 0.05}  # mm, expected: probes and paper; a ruler; calipers
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

    def centres(self, x: Array, counts: Array) -> tuple[Array, Array]:
        """Centres (..., m, 3, 3) of spheres, and radii (..., 1, 3), by parameters (..., n) after steps (m, 3)."""
        R, ends, angles, arms, step = np.split(x[..., None, :], (1, 4, 7, 10), axis=-1)
        high = ends + np.sqrt(arms**2 - R**2) - counts * self.steps * (1.0 + step)
        across = R * np.cos(np.radians(angles)), R * np.sin(np.radians(angles))
        return np.stack(np.broadcast_arrays(*across, high), axis=-1), arms

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

    def centres(self, x: Array, counts: Array) -> tuple[Array, Array]:
        """As for `LinearDelta`: the elbows."""
        r, h, ends, directions, upper, lower, step = np.split(x[..., None, :], (1, 2, 5, 8, 11, 14), axis=-1)
        angle = arm_angles(-r, ends - h, upper, lower) - counts * self.steps * (1.0 + step)
        out, directions = r + upper * np.cos(angle), np.radians(directions)
        across = out * np.cos(directions), out * np.sin(directions)
        return np.stack([*across, h + upper * np.sin(angle)], axis=-1), lower

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


def nozzle(model: Model, x: Array, counts: Array) -> Array:
    """Where the nozzle is (..., m, 3) by parameters (..., n) after steps (m, 3); NaN where rods do not meet."""
    with np.errstate(invalid="ignore", divide="ignore"):
        t, radii = model.centres(x, counts)
        first, a, b = t[..., 0, :], t[..., 1, :] - t[..., 0, :], t[..., 2, :] - t[..., 0, :]
        normal, squares = np.cross(a, b), radii[..., :1] ** 2 - radii**2
        square = np.sum(normal**2, axis=-1, keepdims=True)
        u = 0.5 * (np.sum(a * a, axis=-1, keepdims=True) + squares[..., 1:2])
        v = 0.5 * (np.sum(b * b, axis=-1, keepdims=True) + squares[..., 2:])
        foot = (u * np.cross(b, normal) + v * np.cross(normal, a)) / square
        high = np.sqrt((radii[..., :1] ** 2 - np.sum(foot**2, axis=-1, keepdims=True)) / square)
        return np.asarray(first + foot - np.sign(normal[..., 2:]) * high * normal)  # the lower of the two points


def slopes(model: Model, function: Callable[[Array], Array], x: Array) -> Array:
    """Central differences (m, n) of a function (..., m) of parameters (..., n) at x (n,)."""
    steps = SMALL * np.asarray(model.expected)
    ahead, behind = function(x + np.diag(steps)), function(x - np.diag(steps))
    return np.asarray((ahead - behind).T / (2.0 * steps))


@dataclass(frozen=True, eq=False)
class Measured:
    """What a printer measured, [mm]: heights of the nozzle at steps (m, 3), distances between pairs of steps (k, 2, 3).

    `manual` (m,) are heights measured by hand with a ruler. `lines` by the name of a measurement.
    """

    names: tuple[str, ...]
    heights: Array
    places: Array
    manual: np.ndarray
    distances: Array
    pairs: Array
    lines: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class Printer:
    """A printer as its settings have it: its model with parameters (n,), what it measured, radius of the bed [mm].

    `words` are the firmware's, at values of the model's parameters; `spoken`: what to say for Klipper's words.
    `pasted` writes values in the firmware's words as its lines of settings.
    """

    source: str
    model: Model
    values: Array
    measured: Measured
    bed: float
    firmware: str = "klipper"
    words: Callable[[Model, Array], Words] = lambda model, _: own_words(model)
    spoken: Mapping[str, str] = field(default_factory=dict)
    pasted: Callable[[Mapping[str, float]], list[str]] | None = None


class PrinterFit:
    """What measurements miss, by kind and expected deviation [mm]."""

    def __init__(self, printer: Printer) -> None:
        m = printer.measured
        self.printer, self.start = printer, printer.values
        self.kinds = np.array([*np.where(m.manual, "manual", "height"), *["distance"] * len(m.distances)])
        self.sigma = np.array([NOISE[kind] for kind in self.kinds])

    def width(self, ratio: float) -> Array:
        """Deviations (m,) where the noise of distances over that of heights is the usual one times e^ratio."""
        return np.asarray(self.sigma * np.where(self.kinds == "distance", np.exp(ratio), 1.0))

    def misses(self, x: Array) -> Array:
        """Predicted less measured (..., m) [mm], by parameters (..., n)."""
        m, h = self.printer.measured, len(self.printer.measured.heights)
        p = nozzle(self.printer.model, x, np.concatenate([m.places, m.pairs.reshape(-1, 3)]))
        apart = np.linalg.norm(p[..., h::2, :] - p[..., h + 1 :: 2, :], axis=-1)
        return np.concatenate([p[..., :h, 2] - m.heights, apart - m.distances], axis=-1)

    def slopes(self, x: Array) -> Array:
        """Those by the parameters (m, n)."""
        return slopes(self.printer.model, self.misses, x)


def freedoms(fit: PrinterFit) -> list[Array]:
    """Directions (n, k) in which parameters may move, from the most to the fewest; columns in expected errors."""
    model = fit.printer.model
    names, scale = model.names, np.diag(model.expected)
    arms = [[names.index(name) for name in kind] for kind in model.arms]
    ends = [k for k, name in enumerate(names) if name.endswith("position_endstop")]
    angles = [names.index(f"stepper_{tower}.angle") for tower in "ab"]
    radii = [names.index(name) for name in model.radii]
    basic = scale[:, radii + ends + angles]
    ways = [np.hstack([basic, *(scale[:, kind] for kind in arms)])]
    ways += [np.hstack([basic, scale[:, kind]]) for kind in reversed(arms) if len(arms) > 1]
    ways += [np.hstack([basic, *(scale[:, kind].sum(axis=1, keepdims=True) for kind in arms)])]
    ways += [basic, scale[:, radii + ends], scale[:, radii[1:] + ends], scale[:, radii[:1] + ends], scale[:, ends]]
    return ways


def root_mean_square(misses: Array) -> float:
    """Of misses (m,)."""
    return float(np.sqrt(np.mean(misses**2)))


def listed(names: list[str]) -> str:
    """As a person writes them."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
