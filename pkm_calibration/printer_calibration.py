# SPDX-License-Identifier: Apache-2.0
"""Calibration of a delta printer: as many parameters as its measurements tell, the others held and named.

Parameters are freed by steps (`freedoms`): radius, endstops and angles of two towers; the rods of all towers by one
amount; each rod by its own. The step with the most parameters that the measurements narrow to less than the errors
expected of them is taken. The direction of the last tower is a choice of axes, and always held. What is held is taken
to be off by the expected error where intervals of the others are told.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.optimize
import scipy.special
from numpy.typing import NDArray

from pkm_calibration.estimation import LEAST_NOISE, ContradictionError, Estimate, estimate
from pkm_calibration.estimation import SURE as OUTLIER
from pkm_calibration.printer_models import (
    STEPPERS,
    Printer,
    PrinterFit,
    Words,
    freedoms,
    listed,
    nozzle,
    root_mean_square,
    slopes,
)
from pkm_description.mechanism import Array
from pkm_runtime.errors import PkmError

ENDSTOP = 1.0  # mm, expected of endstops that were once set: less than of those from which a calibration may start
USUAL = 1.0  # such residuals: known within a factor of two
RATIO = 0.7  # of the logarithm of the noise of distances over that of heights: a factor of two
RATIOS = np.linspace(-3.0, 3.0, 25)  # such logarithms over that of the usual ratio
MISREAD = 0.1  # of a distance: calipers and plastic do not err by more
NOISIEST = {"height": 0.3, "manual": 2.5, "distance": 0.8}  # mm: with more, what is measured is no delta's
UNEXPLAINED, HARDLY = 4.0, 0.4  # times the usual noise, and of what it was: what no delta explains
UNLIKE = {"arm": 0.04, "pair": 0.03, "radius": 0.15, "angle": 5.0, "endstop": 50.0}  # shares; degrees, mm: beyond any
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
NOISY = 1.5  # such a logarithm, with which most measurements still have to agree


@dataclass(frozen=True, eq=False)
class Calibrated:
    """What measurements say of a printer; lengths in mm, angles in degrees.

    `values` (n,) are all parameters of the model. `unsure` (n, k) are what noise, and what errors of what is held, make
    of them, one column a source; the half-width of a 95 % interval is the norm of a row. `residuals` (m,) before and
    after are predicted less measured; `deviations` (m,) of the measurements. `unidentified` are held as they were.
    `bed` has points (k, 2), the height error that the settings made there, and the half-width (k,) of what is not known
    of the new one. `reasons`: why it is refused; `notes`: what to know.
    """

    printer: Printer
    values: Array
    unsure: tuple[Array, Array]
    unidentified: tuple[str, ...]
    outliers: tuple[str, ...]
    residuals: tuple[Array, Array]
    rank: int
    freedom: int
    deviations: Array
    rms: tuple[float, float]
    bed: tuple[Array, Array, Array] | None
    reasons: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def half(self) -> Array:
        """Half-widths (n,) of the 95 % intervals of `values`."""
        return np.asarray(np.linalg.norm(np.hstack(self.unsure), axis=1))

    @property
    def words(self) -> Words:
        """The firmware's words here."""
        return self.printer.words(self.printer.model, self.values)

    @property
    def parameters(self) -> dict[str, float]:
        """Values by the firmware's names."""
        return dict(zip(self.words.names, map(float, self.words.values(self.values)), strict=True))

    @property
    def settings(self) -> dict[str, float]:
        """What the parameters were."""
        words = self.printer.words(self.printer.model, self.printer.values)
        return dict(zip(words.names, map(float, words.values(self.printer.values)), strict=True))

    def intervals(self, exact: bool = False) -> dict[str, list[float]]:
        """95 % intervals by name; `exact`: as if all that is held were exact."""
        unsure = np.hstack(self.unsure[:1] if exact else self.unsure)
        known = np.isfinite(unsure).all()
        half = np.linalg.norm(self.words.by @ unsure, axis=1) if known else np.full(len(self.words.names), np.inf)
        rows = zip(self.parameters.items(), half, strict=True)
        return {name: [float(v - h), float(v + h)] for (name, v), h in rows}


@dataclass(frozen=True, eq=False)
class _Noise:
    """Deviations `width` (m,) up to a factor; the logarithm of the ratio of kinds that residuals say, `ratio`. `good`
    are outliers that are none. `spread` (k, j): the norm of a row is the half-width of a 95 % interval.
    """

    width: Array
    ratio: float
    good: tuple[int, ...]
    spread: Array


def calibrate_printer(printer: Printer) -> Calibrated:
    """Calibrate a printer; what cannot be used for it is refused in the answer, with the reasons."""
    fit = PrinterFit(printer)
    before, J = fit.misses(fit.start), fit.slopes(fit.start)
    reasons = misread(printer, fit, before)
    if not np.isfinite(before).all():
        bad = [printer.measured.names[k] for k in np.flatnonzero(~np.isfinite(before))]
        reasons.append(f"with the settings, the rods do not reach {listed(bad)}: correct arm_length and delta_radius")
    if reasons:
        stepped = wrong_step(fit, np.isfinite(before), fit.sigma)
        return _without_answer(fit, before, [stepped] if stepped else reasons)
    level, T = 1.0, freedoms(fit)[-1]
    try:
        for _ in range(4):
            T = _chosen(fit, J, level)
            found, noise = _estimated(fit, T)
            J = fit.slopes(fit.start + T @ found.values)
            new = float(np.clip(found.noise, 0.02, 20.0)) if found.freedoms >= 4 else max(1.0, level)
            if abs(np.log(new / level)) < 0.1:
                break
            level = new
    except ContradictionError as error:
        return _without_answer(fit, before, [str(error)])
    except (PkmError, np.linalg.LinAlgError):
        return _without_answer(fit, before, ["no parameters near the settings explain the measurements"])
    return _answer(fit, T, found, noise, before)


def _chosen(fit: PrinterFit, J: Array, level: float) -> Array:
    """The freest directions of which the measurements tell each to less than the error expected of it."""
    A = J / (level * fit.sigma[:, None])
    probed = int((fit.kinds != "manual").sum())
    for T in freedoms(fit):
        if T.shape[1] < len(A) and T.shape[1] <= probed + 1 and np.linalg.svd(A @ T)[1][-1] > 1.0:
            return T
    s, Vt = np.linalg.svd(A @ T)[1:]  # of the last: points at one place tell only the mean of the endstops
    return np.asarray(T @ Vt[: (s > 1e-9 * s[0]).sum()].T)


def _estimated(fit: PrinterFit, T: Array) -> tuple[Estimate, _Noise]:
    labels, ratio, trusted = np.arange(len(fit.sigma)), 0.0, set[int]()
    names = [str(k) for k in range(T.shape[1])]
    for _ in range(6):
        width = fit.width(ratio)

        def residuals(y: Array, width: Array = width) -> tuple[Array, Array]:
            x = fit.start + T @ y
            return fit.misses(x) / width, (fit.slopes(x) @ T) / width[:, None]

        none, ones = np.zeros(T.shape[1]), np.ones(T.shape[1])
        try:
            found = estimate(residuals, none, names=names, scales=ones, groups=labels, trusted=trusted)
        except ContradictionError:  # by this ratio
            if ratio > NOISY or not (fit.kinds == "distance").any():
                raise
            ratio += 1.0
            continue
        noise = _noise(fit, T, found, width)
        if not noise.good and abs(noise.ratio - ratio) < 0.02:
            break
        ratio = noise.ratio
        trusted.update(noise.good)
    return found, noise


def _noise(fit: PrinterFit, T: Array, found: Estimate, width: Array) -> _Noise:
    """What residuals say of the noise of distances over that of heights, whose ratio weighs them against each other.

    Few residuals are to spare, so that no single ratio is sure: each has its odds, those of Box and Tiao ("Bayesian
    Inference in Statistical Analysis", 1973) for a linear model, before which the usual one is known within a factor of
    two. With each, errors are Student's; an interval contains what all of them leave open, and an outlier is one by all
    of them together. There, the usual noise counts as `USUAL` residuals more: what is left where two of few are left
    out looks too good.
    """
    x, out, freedoms = fit.start + T @ found.values, list(found.outliers), found.freedoms
    used = ~np.isin(np.arange(len(fit.sigma)), out)
    misses, by_x, kinds = fit.misses(x), fit.slopes(x) @ T, fit.kinds[used] == "distance"
    ratios = RATIOS if freedoms > 0 and kinds.any() and not kinds.all() else np.zeros(1)
    odds, parts, chances = [], [], []
    for ratio in ratios:
        by = fit.width(ratio)
        r, A = misses / by, by_x / by[:, None]
        U, s, Vt = np.linalg.svd(A[used], full_matrices=False)
        seen = s > 1e-10 * s[0]
        inner = (Vt[seen].T / s[seen]) @ U[:, seen].T
        step = inner @ r[used]
        r -= A @ step
        left = float(np.sum(r[used] ** 2))
        volume = float(np.log(s[seen]).sum() + np.log(by[used]).sum())
        odds.append(-0.5 * (freedoms * np.log(max(left, 1e-300)) + (ratio / RATIO) ** 2) - volume)
        level = np.sqrt(left / freedoms) if freedoms > 0 else 1.0
        parts.append(np.column_stack([level * inner, step]))
        level = np.sqrt((left + USUAL) / (freedoms + USUAL))
        size = np.abs(r[out]) / (level * np.sqrt(1.0 + np.sum((A[out] @ inner) ** 2, axis=1)))
        chances.append(2.0 * scipy.special.stdtr(freedoms + USUAL, -size))
    shares = np.exp(np.array(odds) - max(odds))
    shares /= shares.sum()
    reach = float(scipy.special.stdtrit(freedoms, 0.975)) if freedoms > 0 else 1.96
    spread = np.hstack([np.sqrt(share) * part for share, part in zip(shares, parts, strict=True)])
    good = tuple(k for k, one in zip(out, shares @ np.array(chances), strict=True) if one > OUTLIER / len(misses))
    return _Noise(width, float(shares @ ratios), good, reach * np.asarray(np.linalg.qr(spread.T, mode="r")).T)


def _answer(fit: PrinterFit, T: Array, found: Estimate, noise: _Noise, before: Array) -> Calibrated:
    printer, names, width = fit.printer, fit.printer.model.names, noise.width
    x = fit.start + T @ found.values
    after, J = fit.misses(x), fit.slopes(x)
    used = ~np.isin(np.arange(len(after)), found.outliers)
    A = (J @ T)[used] / width[used, None]
    inner = np.linalg.pinv(A)
    prior = np.diag(np.asarray(printer.model.expected))
    prior[:, [names.index("stepper_c.angle"), len(names) - 1]] = 0.0  # a choice of axes; said apart
    held = prior - T @ np.linalg.pinv(T) @ prior
    spread = 1.96 * (held - T @ inner @ ((J @ held)[used] / width[used, None]))
    own = T @ noise.spread
    words = printer.words(printer.model, x)
    seen = np.linalg.norm(words.by @ T, axis=1) > 1e-9
    chosen = ~words.by.any(axis=1)  # 0 by the firmware's rule
    unidentified = [n for n, one in zip(words.names, seen | chosen, strict=True) if not one]
    tied = [words.names[k] for k in np.flatnonzero(seen) if np.linalg.norm(words.by[k] @ held) > 1e-6]
    notes = list[str]()
    if tied:
        notes.append(f"{listed(tied)} change by one amount: the data do not tell them apart")
    if found.freedoms < 3:
        warning, so = "", "makes the intervals wide"
        if found.freedoms < 1:
            warning, so = "WARNING: ", "leaves nothing to check them by"
        notes.append(
            f"{warning}only {found.freedoms} measurement{'s' * (found.freedoms != 1)} more than unknowns, which {so}: "
            f"probe more points, or measure the printed object of Klipper's Delta_Calibrate"
        )
    measured = printer.measured
    outliers = [measured.names[k] for k in found.outliers]

    reasons = implausible(fit, x, after, used)
    if (wrong := wrong_distances(fit, np.ones_like(used))) and outliers:
        wrong += f"; without that, {listed(outliers)} would be wrong"
    if wrong := wrong or wrong_distances(fit, used):
        reasons.insert(0, wrong)
    stepped = wrong_step(fit, used, width)
    if not stepped and outliers and (stepped := wrong_step(fit, np.ones_like(used), width)):
        reasons.insert(0, f"{stepped}; without that, {listed(outliers)} would be wrong")
    elif stepped:
        (reasons if reasons else notes).insert(0, stepped)
    else:
        unidentified.append(setting_of_steps(fit))
        level = max(found.noise, LEAST_NOISE) * width[used]
        reach = float(scipy.special.stdtrit(max(1, found.freedoms), 0.975))
        notes.append(least_step(fit, J[used, -1] / level, (J @ prior)[used] / level[:, None], reach))
    rms = root_mean_square(before[used]), root_mean_square(after[used])
    bed = _bed(printer, x, own, spread)
    usual = np.where([name.endswith("position_endstop") for name in names], ENDSTOP * (prior > 0.0), prior)
    reasons += spoilt(fit, bed[2], _bed(printer, fit.start, 1.96 * usual)[2])
    return Calibrated(
        printer, x, (own, spread), _spoken(printer, unidentified), tuple(outliers), (before, after),
        found.rank, found.freedoms, (found.noise if found.freedoms > 0 else 1.0) * width, rms, bed,
        _spoken(printer, reasons),
        _spoken(printer, notes),
    )  # fmt: skip


def _without_answer(fit: PrinterFit, before: Array, reasons: list[str]) -> Calibrated:
    none = np.full((len(fit.start), 1), np.inf)
    known = before[np.isfinite(before)]
    rms = float(np.sqrt(np.mean(known**2))) if len(known) else 0.0
    names = fit.printer.words(fit.printer.model, fit.start).names
    return Calibrated(
        fit.printer, fit.start, (none, none), names, (), (before, before), 0, 0, fit.sigma, (rms, rms), None,
        _spoken(fit.printer, reasons), (),
    )  # fmt: skip


def _spoken(printer: Printer, texts: list[str]) -> tuple[str, ...]:
    for word, other in printer.spoken.items():
        texts = [text.replace(word, other) for text in texts]
    return tuple(texts)


def _bed(printer: Printer, x: Array, *unsure: Array) -> tuple[Array, Array, Array]:
    """Points (k, 2) of the bed, height errors (k,) of the old settings, and what is not known of the new."""
    line = np.linspace(-printer.bed, printer.bed, 41)
    points = np.stack(np.meshgrid(line, line), axis=2).reshape(-1, 2)
    points = points[np.hypot(*points.T) <= printer.bed * 1.0001]
    flat = np.column_stack([points, np.zeros(len(points))])
    with np.errstate(invalid="ignore"):
        old, new = (printer.model.counts(values, flat) for values in (printer.values, x))
        J = slopes(printer.model, lambda x: nozzle(printer.model, x, new)[..., 2], x)
    return points, nozzle(printer.model, x, old)[:, 2], np.sqrt(sum(np.sum((J @ part) ** 2, axis=1) for part in unsure))


def printer_numbers(found: Calibrated) -> dict[str, Any]:
    """The answer for JSON."""
    refused = bool(found.reasons)
    names = found.printer.measured.names
    none = {key: [None, None] for key in found.parameters}  # JSON has no infinity
    known = bool(np.isfinite(found.half).all())
    intervals: Mapping[str, Any] = found.intervals() if known else none
    exact: Mapping[str, Any] = found.intervals(exact=True) if known else none
    numbers: dict[str, Any] = {
        "verdict": "refused" if refused else "accepted",
        "reasons": list(found.reasons),
        "notes": list(found.notes),
        "firmware": found.printer.firmware,
        "kinematics": found.printer.model.kinematics,
        "parameters": found.parameters,
        "interval95": intervals,
        "interval95_if_held_exact": exact,
        "rms_before": found.rms[0],
        "rms_after": found.rms[1],
        "rank": found.rank,
        "unidentified": list(found.unidentified),
        "outliers": list(found.outliers),
        "residuals": {
            name: [None if not np.isfinite(v) else float(v) for v in pair]
            for name, *pair in zip(names, *found.residuals, strict=True)
        },
    }
    if found.bed is not None:
        error, unsure = found.bed[1], found.bed[2]
        numbers["bed_error"] = {
            "before": [float(np.nanmin(error)), float(np.nanmax(error))],
            "after95": float(np.nanmax(unsure)),
        }
    return numbers


# -- why measurements are refused --------------------------------------------------------------------------------------


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
        if name.endswith("endstop") and abs(x[k] - start[k]) > UNLIKE["endstop"]:
            reasons.append(
                f"{name} comes out as {x[k]:.1f} mm, the settings say {start[k]:.1f}: no probe reaches such a bed; "
                "are the measurements of this printer, after homing?"
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
    across = np.sqrt(np.abs(np.linalg.eigvalsh(np.cov(at.T)))) if len(at) > 1 else np.zeros(2)
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


def least_step(fit: PrinterFit, by_step: Array, A: Array, reach: float) -> str:
    """Which error of the steps' length these measurements would tell from errors that printers have, in words.
    Derivatives are of residuals over their noise, those of A by parameters over what is expected of them.
    """
    rows, by = np.vstack([A, np.eye(A.shape[1])]), np.concatenate([by_step, np.zeros(A.shape[1])])
    free, own = (one - J @ np.linalg.lstsq(J, one, rcond=None)[0] for J, one in ((A, by_step), (rows, by)))
    if not len(fit.printer.measured.distances) and SHOWN * float(np.linalg.norm(free)) < 100.0 * reach:
        return f"heights alone cannot see an error of {setting_of_steps(fit)}: measure a length, such as a printed line"
    share = 100.0 * reach / max(float(np.linalg.norm(own)), 1e-9)
    return (
        f"an error of {setting_of_steps(fit)} of less than {share:.1f} % looks like other parameters: these take it up"
    )


def setting_of_steps(fit: PrinterFit) -> str:
    """Klipper's word for it."""
    return "gear_ratio" if fit.printer.model.kinematics == "rotary_delta" else "rotation_distance"
