# SPDX-License-Identifier: Apache-2.0
"""Why measurements of a printer are refused, in words: mistyped, of wrong settings, or of no delta."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import scipy.optimize
import scipy.special
from numpy.typing import NDArray

from pkm_calibration.printer_files import Printer
from pkm_calibration.printer_fit import PrinterFit, freedoms, listed, root_mean_square
from pkm_calibration.printer_models import STEPPERS, nozzle
from pkm_description.mechanism import Array

MISREAD = 0.1  # of a distance: calipers and plastic do not err by more
NOISIEST = {"height": 0.3, "manual": 2.5, "distance": 0.8}  # mm: with more, what is measured is no delta's
UNEXPLAINED, HARDLY = 4.0, 0.4  # times the usual noise, and of what it was: what no delta explains
UNLIKE = {"arm": 0.04, "pair": 0.03, "radius": 0.15, "angle": 5.0}  # shares, and degrees: beyond any printer
STEPS = -0.5, 1.0  # shares by which steps are longer, where microsteps are wrong by a factor of two
FURTHER = -0.75, -0.875, -0.9375, 3.0, 7.0, 15.0  # and by further ones
EXPLAINED = 0.05  # of what measurements miss by: what is left where such a factor alone explains them
SHORTEST, LONGEST = -0.8, 4.0  # such shares that a wrong setting makes
SHOWN = 50.0  # percent of steps' length: with more, measurements do not see it
LONGER = 0.02  # share by which all distances may be off
STEPWISE = 0.05  # share by which the length of a step may be off
ODDS = 1e3  # above which distances, steps, or the order of towers are said to be wrong
STEPPED = 1e-4  # chance, below which the length of a step is said to be wrong
LINE = 0.03  # width of points over their length: these lie on a line
OUTER = 6  # distances from the centre come before those along the rim


def misread(printer: Printer, fit: PrinterFit, before: Array) -> list[str]:
    """Distances that nobody can have measured: which, how they were entered, and what would be consistent."""
    m = printer.measured
    if not len(m.distances):
        return []
    reasons = _left_by_a_failure(fit)
    predicted = np.full_like(m.distances, np.nan) if reasons else m.distances + before[len(m.heights) :]
    likely = np.median(np.r_[predicted[np.isfinite(predicted)], np.max(m.distances)])
    for what, rows in (("CENTER", slice(0, OUTER)), ("OUTER", slice(OUTER, None))):
        d, p = m.distances[rows], predicted[rows]
        if not len(d):
            continue
        far = ~(np.abs(d - p) <= MISREAD * np.abs(p)) & ~(np.abs(d - likely) <= MISREAD * likely)
        far |= d < 0.3 * max(float(np.max(m.distances)), 0.0)
        names = [m.names[len(m.heights) + k + (rows.start or 0)] for k in np.flatnonzero(far)]
        if not names:
            continue
        line = m.lines[names[0]]
        off = float(np.median(likely - d[far]))
        scale = likely / 65.0
        cause = (
            f"{what}_PILLAR_WIDTHS were typed about {off:.1f} mm too large, as if the distances had been typed again"
            if off > 0.0
            else f"{what}_PILLAR_WIDTHS were typed about {-off:.1f} mm too small"
        )
        are = "are" if len(names) > 1 else "is"
        reasons.append(
            f"{listed(names)} (line {line}) {are} {np.median(d[far]):.2f} mm where the step positions lie "
            f"{likely:.1f} mm apart: {cause}, or {what}_DISTS are wrong; widths of about {9.0 * scale:.1f} mm "
            "would be consistent: measure and enter them again"
        )
    return reasons


def _left_by_a_failure(fit: PrinterFit) -> list[str]:
    names, reasons = fit.printer.model.names, []
    for kind in fit.printer.model.arms:
        lengths = fit.start[[names.index(name) for name in kind]]
        if np.ptp(lengths) > UNLIKE["pair"] * np.mean(lengths):
            listed = ", ".join(f"{one:.2f}" for one in lengths)
            reasons.append(
                f"the settings have rods of {listed} mm, left by a failed calibration: measure a rod, set it"
            )
    return reasons


def implausible(fit: PrinterFit, x: Array, after: Array, used: NDArray[np.bool_]) -> list[str]:
    """Parameters that no printer has, and residuals that no delta leaves."""
    names, start, reasons = fit.printer.model.names, fit.start, []
    for kind in fit.printer.model.arms:
        rows = [names.index(name) for name in kind]
        for k in rows:
            if abs(x[k] - start[k]) > UNLIKE["arm"] * start[k]:
                reasons.append(
                    f"{names[k]} comes out as {x[k]:.2f} mm, the settings say {start[k]:.2f}: rods are not off by so "
                    f"much; one of the measurements is wrong, or the settings are those of a failed calibration: "
                    f"measure a rod"
                )
        if np.ptp(x[rows]) > UNLIKE["pair"] * np.mean(x[rows]) and not reasons:
            lengths = ", ".join(f"{x[k]:.2f}" for k in rows)
            reasons.append(f"rods of {lengths} mm: those of one printer are not so different; measure them")
    reasons += _left_by_a_failure(fit)
    for k, name in enumerate(names):
        if name.endswith("radius") and abs(x[k] - start[k]) > UNLIKE["radius"] * start[k]:
            reasons.append(f"{name} comes out as {x[k]:.2f} mm, the settings say {start[k]:.2f}: measure it")
        if name.endswith("angle") and abs(x[k] - start[k]) > UNLIKE["angle"]:
            reasons.append(
                f"{name} comes out as {x[k]:.2f} degrees, the settings say {start[k]:.2f}: no tower is like that"
            )
    for sensor, most in NOISIEST.items():
        those, lost = used & (fit.kinds == sensor), ~used & (fit.kinds == sensor)
        if sensor != "manual" and lost.any() and lost.sum() >= those.sum():
            reasons.append(
                f"{lost.sum()} of {lost.sum() + those.sum()} {sensor}s do not agree with the others: no delta explains "
                "most of them; are they in mm, of this printer, and all of one homing?"
            )
        left = float(np.sqrt(np.mean(after[those] ** 2))) if those.any() else 0.0
        if left > most:
            reasons.append(
                f"{'manual height' if sensor == 'manual' else sensor}s still miss by {left:.2f} mm: no delta explains "
                f"them; are they in mm, of this printer, all of one homing, with its microsteps and "
                f"{setting_of_steps(fit)}?"
            )
    first, last = (root_mean_square(one[used]) for one in (fit.misses(start), after))
    times = root_mean_square((after / fit.sigma)[used])
    if not reasons and times > UNEXPLAINED and last > HARDLY * first:
        reasons.append(
            f"errors hardly fall, from {first:.2f} to {last:.2f} mm, {times:.0f} times the usual noise: no delta "
            "explains the measurements; are towers exchanged in some of them?"
        )
    return reasons


def wrong_step(fit: PrinterFit, used: NDArray[np.bool_], width: Array) -> str:
    """Whether steps of another length explain what rods as they are said to be do not, in words; empty if not."""
    k, basic = len(fit.start) - 1, freedoms(fit)[-5]
    expected = fit.printer.model.expected[k]
    shares = (0.0, *STEPS, *FURTHER)
    misses = [root_mean_square(fit.misses(fit.start + share * np.eye(k + 1)[k])[used]) for share in shares]
    if np.nanmin(misses) < EXPLAINED * misses[0]:
        return _steps_in_words(fit, 100.0 * shares[int(np.nanargmin(misses))])
    stepped = np.hstack([basic, np.eye(k + 1)[:, k:] * expected])
    tried = []  # sums of squares, and the share by which steps are longer; microsteps are wrong by a factor of two
    for T, share in ((basic, 0.0), *((stepped, share) for share in (0.0, *STEPS))):

        def residuals(y: Array, T: Array = T) -> Array:
            return np.nan_to_num(fit.misses(fit.start + T @ y)[used] / width[used], nan=1e6)

        def by(y: Array, T: Array = T) -> Array:
            return np.nan_to_num(fit.slopes(fit.start + T @ y)[used] @ T / width[used, None])

        start = np.zeros(T.shape[1])
        start[-1] = share / expected
        found = scipy.optimize.least_squares(residuals, start, by, max_nfev=60)
        tried.append((2.0 * float(found.cost), expected * float(found.x[-1])))
    spare = int(used.sum()) - len(found.x)
    (without, _), (left, share) = tried[0], min(tried[1:])
    if spare < 2 or not SHORTEST < share < LONGEST:
        return ""
    share *= 100.0
    chance = float(scipy.special.fdtrc(1, spare, max(without - left, 0.0) / max(left / spare, 1e-300)))
    if chance > STEPPED or abs(share) < 0.2 or left > 9.0 * spare:
        return ""
    free, none = freedoms(fit)[0], np.zeros(len(used))  # rods that are off, as expected of them, may explain as much
    step = STEPWISE * np.eye(k + 1)[:, k:]
    sums = [_left(fit, T, used, none)[0] for T in (free, np.hstack([free, step]))]
    return _steps_in_words(fit, share) if used.sum() * np.log(sums[0] / sums[1]) > 2.0 * np.log(ODDS) else ""


def wrong_distances(fit: PrinterFit, used: NDArray[np.bool_]) -> str:
    """Whether distances agree with heights if all are longer, or their towers are others, in words; empty if not.

    Each way of it is fitted with all parameters, and what is expected of them; their odds are those of sums of squares.
    """
    measured, T = fit.printer.measured, freedoms(fit)[0]
    spare, orders = int(used.sum()) - T.shape[1], list(itertools.permutations(range(3)))
    if spare < 2 or not (fit.kinds[used] == "distance").any():
        return ""
    longer = LONGER * np.concatenate([np.zeros_like(measured.heights), measured.distances])
    tried = []
    for order in orders:
        turned = PrinterFit(replace(fit.printer, measured=replace(measured, places=measured.places[:, list(order)])))
        tried.append(_left(turned, T, used, np.zeros_like(longer)))
    tried.append(_left(fit, T, used, longer))
    sums = np.array([left for left, _ in tried])
    best = int(np.argmin(sums))
    if best == 0 or sums[best] > UNEXPLAINED**2 * spare or spare * np.log(sums[0] / sums[best]) < 2.0 * np.log(ODDS):
        return ""
    if best == len(orders):
        share = -100.0 * LONGER * tried[best][1]
        return (
            f"distances {abs(share):.2f} % {'longer' if share > 0.0 else 'shorter'} than typed would explain the "
            "measurements: check the calipers, and the SCALE of DELTA_ANALYZE"
        )
    towers = ", ".join(STEPPERS[k] for k in orders[best])
    return (
        f"heights with their step positions in the order {towers} would agree with the distances: these are of a "
        "printer with its towers in another order; measure both again"
    )


def _left(fit: PrinterFit, T: Array, used: NDArray[np.bool_], longer: Array) -> tuple[float, float]:
    """The least sum of squares over directions T and a multiple of `longer` (m,), all of them expected to be 1."""

    def residuals(y: Array) -> Array:
        misses = (fit.misses(fit.start + T @ y[:-1]) + y[-1] * longer) / fit.sigma
        return np.nan_to_num(np.concatenate([misses[used], y]), nan=1e6)

    def by(y: Array) -> Array:
        rows = np.column_stack([fit.slopes(fit.start + T @ y[:-1]) @ T, longer]) / fit.sigma[:, None]
        return np.nan_to_num(np.vstack([rows[used], np.eye(len(y))]))

    found = scipy.optimize.least_squares(residuals, np.zeros(T.shape[1] + 1), by, max_nfev=60)
    return 2.0 * float(found.cost), float(found.x[-1])


def _steps_in_words(fit: PrinterFit, share: float) -> str:
    return (
        f"steps {abs(share):.2f} % {'longer' if share > 0.0 else 'shorter'} than the settings say would explain the "
        f"measurements: check {setting_of_steps(fit)}, microsteps and full_steps_per_rotation first, for a "
        f"wrong one makes the bed concave or convex whatever else is set"
    )


def spoilt(fit: PrinterFit, after: Array, before: Array) -> list[str]:
    """Why the bed would be known worse by the new settings than by what is expected of printers, in words."""
    after, before = (np.nan_to_num(one, nan=np.inf).max() for one in (after, before))
    if after <= before:
        return []
    measured, bed = fit.printer.measured, fit.printer.bed
    at = nozzle(fit.printer.model, fit.start, measured.places)[:, :2]
    across = np.sqrt(np.linalg.eigvalsh(np.cov(at.T))) if len(at) > 1 else np.zeros(2)
    (x, y), (wide, deep) = at.min(axis=0), np.ptp(at, axis=0)
    where = f"their points are too few ({len(at)})"
    if across[0] < LINE * across[1]:
        where = "their points lie on a line"
    elif max(wide, deep) < bed:
        where = f"their points cover x {x:.0f} to {x + wide:.0f} and y {y:.0f} to {y + deep:.0f} mm only"
    return [
        f"with the new settings the bed may be off by {after:.3g} mm, more than the {before:.2g} mm that printers are "
        f"usually off by: the heights do not determine the endstops, for {where}; probe the whole bed, to a radius of "
        f"about {bed:.0f} mm"
    ]


def least_step(fit: PrinterFit, by_step: Array, A: Array, unsure: float) -> str:
    """Which error of the steps' length these measurements would tell from other parameters, in words."""
    own = by_step - A @ (np.linalg.pinv(A) @ by_step)
    share = 100.0 * unsure / max(float(np.linalg.norm(own)), 1e-9) if len(A) > A.shape[1] + 1 else np.inf
    if share > SHOWN:
        return f"heights alone cannot see an error of {setting_of_steps(fit)}: measure a length, such as a printed line"
    least = f" of less than {share:.1f} %"
    return f"an error of {setting_of_steps(fit)}{least} looks like other parameters: these take it up"


def setting_of_steps(fit: PrinterFit) -> str:
    """Klipper's word for it."""
    return "gear_ratio" if fit.printer.model.kinematics == "rotary_delta" else "rotation_distance"
