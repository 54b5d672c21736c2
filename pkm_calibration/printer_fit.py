# SPDX-License-Identifier: Apache-2.0
"""What a printer's measurements miss by its parameters, and the directions in which these may move."""

from __future__ import annotations

import numpy as np

from pkm_calibration.printer_files import Printer
from pkm_calibration.printer_models import nozzle, slopes
from pkm_description.mechanism import Array

NOISE = {"height": 0.02, "manual": 0.5, "distance": 0.05}  # mm, expected: probes and paper; a ruler; calipers


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
