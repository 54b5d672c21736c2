# SPDX-License-Identifier: Apache-2.0
"""Calibration of a delta printer: as many parameters as its measurements tell, the others held and named.

Parameters are freed by steps (`freedoms`): radius, endstops and angles of two towers; the rods of all towers by one
amount; each rod by its own. The step with the most parameters that the measurements narrow to less than the errors
expected of them is taken. The direction of the last tower is a choice of axes, and always held. What is held is taken
to be off by the expected error where intervals of the others are told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
import scipy.special

from pkm_calibration.estimation import SURE as OUTLIER
from pkm_calibration.estimation import ContradictionError, Estimate, estimate
from pkm_calibration.printer_files import Printer
from pkm_calibration.printer_fit import PrinterFit, freedoms, listed, root_mean_square
from pkm_calibration.printer_models import Words, nozzle, slopes
from pkm_calibration.printer_refusals import (
    implausible,
    least_step,
    misread,
    setting_of_steps,
    spoilt,
    wrong_distances,
    wrong_step,
)
from pkm_description.mechanism import Array
from pkm_runtime.errors import PkmError

ENDSTOP = 1.0  # mm, expected of endstops that were once set: less than of those from which a calibration may start
USUAL = 1.0  # such residuals: known within a factor of two
RATIO = 0.7  # of the logarithm of the noise of distances over that of heights: a factor of two
RATIOS = np.linspace(-3.0, 3.0, 25)  # such logarithms over that of the usual ratio
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
    """Deviations `width` (m,) up to a factor; the logarithm of the ratio of kinds that residuals say, `ratio`.

    `good` are outliers that are none. `spread` (k, j): the norm of a row is the half-width of a 95 % interval.
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
    return freedoms(fit)[-1]


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
    if wrong := wrong_distances(fit, np.ones_like(used)) or wrong_distances(fit, used):
        reasons.insert(0, wrong)
    stepped = wrong_step(fit, used, width)
    if not stepped and outliers and (stepped := wrong_step(fit, np.ones_like(used), width)):
        reasons.insert(0, f"{stepped}; without that, {listed(outliers)} would be wrong")
    elif stepped:
        (reasons if reasons else notes).insert(0, stepped)
    else:
        unidentified.append(setting_of_steps(fit))
        half = found.noise * float(scipy.special.stdtrit(max(1, found.freedoms), 0.975))
        notes.append(least_step(fit, J[used, -1] / width[used], A, half))
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
