# SPDX-License-Identifier: Apache-2.0
"""Calibration of a robot: from measurements to corrections of its description, with intervals and what cannot be known.

The parameters are those that the measurements tell apart (`GeometricParameters.identifiable`); the estimator is that of
`pkm_calibration/estimation.py`. What comes out is judged on rows that were kept aside.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from pkm_calibration.estimation import ContradictionError, Estimate, estimate, one_more, second_cluster
from pkm_calibration.measured_robot import (
    EXPECTED,
    SCALED,
    MeasuredRobot,
    check_drives,
    check_sensors,
    measuring_frame,
    swapped,
)
from pkm_calibration.measurements import SIGMA, MeasurementError, Measurements
from pkm_description.corrections import Displacement, corrected, corrections_text, joined
from pkm_description.description_error import DescriptionError
from pkm_description.mechanism import Array, Mechanism, frozen
from pkm_description.rotations import rotation_from_vector, transform
from pkm_kinematics.geometric_parameters import GeometricParameter, GeometricParameters
from pkm_kinematics.graph_model import GraphModel, States
from pkm_runtime.errors import PkmError, nearest

FRAME = 10.0  # times the errors that are expected of parameters: of a measuring frame that was found
KEPT = 0.2  # of the rows, by which the answer is judged
FAR = 10.0  # standard deviations: what is kept aside and misses by more was not measured well
UNEXPLAINED = 4.0  # times the noise
HARDLY = 0.6  # of the drawing's error, beyond the usual noise: what is left where nothing is explained
IMPOSSIBLE = 0.2  # of the rows, at most, at whose readings the drawing cannot stand
FEWEST_ROWS = 3  # different ones
VALIDATED = 10  # of which some are kept aside
USUAL = 12  # times that residuals are asked for
ENOUGH = 1.5  # numbers a parameter
FEWEST = 6  # numbers, beside those that drives read
APART = 6.0  # standard deviations between two groups of rows: an instrument was moved
TOGETHER, COMPANY = 0.1, 5  # share of the rows, and rows, that are no few wrong ones
LENGTHENED, SURELY = 1e-3, 5.0  # share, and standard deviations, from which an instrument's scale is named
NO_SCALE = 0.2  # share from which it is something else
AROUND, PLACES = 0.3, 60  # of the robot's size, or rad, and how many poses: where else it may go
FURTHER, LOST = 6.0, 20.0  # times the error at the measured poses, elsewhere: told, and refused
BLURRED = 0.8  # of the expected error of a parameter: what is not seen leaves more
IN_BASE = ("x", "y", "z", "yaw", "pitch", "roll", "distance")  # kinds that are measured in the base frame
VISIBLE = 1e-5  # of the largest effect on what is measured: parameters with less do not matter
LOST_OFTEN, LOST_ROWS = 12, 0.1  # times that a row has no configuration, and share of such rows, that are left out
LISTED = 8  # parameters in a sentence
ELSEWHERE = 0.01  # m, by which no platform was built with all of its joints beside their places


class _SingularRowsError(PkmError):
    def __init__(self, rows: NDArray[np.int64]) -> None:
        super().__init__("rows have no configuration")
        self.rows = rows


@dataclass(frozen=True, eq=False)
class Calibration:
    """What measurements say of a robot's geometry.

    `parameters` are those estimated, `estimate` has values, intervals, outliers and what was not seen, in their order.
    Errors by kind of measurement [m, rad], root mean square: `before` with the drawing, `after` with the corrections,
    `kept` on rows that were not used. `frame` (4, 4) is the measuring frame in the base frame; `notes` say what was
    noticed, `refused` why the answer is not to be used. `hidden` are parameters that other poses would show.
    `arrows` are the measured points (n, 3) in the base frame, and by how much the drawing and the corrected robot miss
    them (n, 3).
    """

    mechanism: Mechanism
    measured: Measurements
    parameters: tuple[GeometricParameter, ...]
    estimate: Estimate
    displacements: tuple[Displacement, ...]
    before: Mapping[str, float]
    after: Mapping[str, float]
    kept: Mapping[str, float]
    frame: Array
    notes: tuple[str, ...]
    refused: tuple[str, ...]
    hidden: tuple[str, ...]
    arrows: tuple[Array, Array, Array]

    @property
    def mechanism_size(self) -> float:
        """Length [m] of the robot's longest part."""
        return GraphModel(self.mechanism).length

    @property
    def values(self) -> dict[str, float]:
        """Values by parameter [m, rad]."""
        return dict(zip((one.name for one in self.parameters), self.estimate.values.tolist(), strict=True))

    def corrections(self, first: Sequence[Displacement] = ()) -> str:
        """The file of corrections, as a text; `first` are those that the robot had already."""
        errors = ", ".join(f"{kind} {self.before[kind]:.3g} -> {self.after[kind]:.3g}" for kind in self.after)
        about = [
            f"Corrections of {self.mechanism.name}, by pkm calibrate from {self.measured.source}, "
            f"{len(self.measured)} rows.",
            f"Errors, root mean square [m, rad]: {errors}.",
        ]
        return corrections_text(self.mechanism, joined(first, self.displacements), about)


def calibrate(
    mechanism: Mechanism,
    measured: Measurements,
    kept: float = KEPT,
    ideal_joints: bool = True,
    seed: int = 0,
    only: Sequence[str] = (),
    ideal_gears: bool = True,
    report_progress: Callable[[str], object] = str,
) -> Calibration:
    """Find where a robot's joints sit, or raise a `PkmError` with the reason why these measurements do not say it.

    Args:
        kept: share of the rows by which the answer is judged; 0 uses all.
        ideal_joints, ideal_gears: see `GeometricParameters`.
        only: patterns of the parameters that may be off, as `*: zero of *`; all of them where none is given.
        report_progress: is called with how much is done, in words.
    """
    notes: list[str] = []
    measured = _without_copies(measured, notes)
    _check_count(mechanism, measured)
    parameters = GeometricParameters(mechanism, ideal_joints, ideal_gears, measured.joints)
    robot = _without_impossible(parameters, measured, notes)
    measured = robot.measured
    if not np.isfinite(measured.attitude).any():
        notes.append("attitudes were not measured: parameters that only rotate the platform stay as drawn")
    frame = measuring_frame(robot, notes)
    check_sensors(robot)
    aside = _aside(len(measured), kept, seed, notes)
    used = np.setdiff1d(np.arange(len(measured)), aside)

    def part(rows: NDArray[np.int64]) -> MeasuredRobot:
        return MeasuredRobot(parameters, measured.rows(rows), frame, robot.nominal.rows(rows))

    fit = part(used)
    none = np.zeros_like(parameters.model.displacements)
    separable, chosen = _chosen(parameters, fit, only, notes)
    _check_determined(fit, separable)
    try:
        used, fit, (found, total, states) = _estimated_where_regular(part, fit, used, chosen, notes, report_progress)
    except ContradictionError as error:
        raise _explained(error, part(np.arange(len(measured))), chosen) from error
    trusted = ~np.isin(measured.lines[used][fit.rows], found.outliers)
    before, after = _by_kind(part(used), none, fit.nominal, trusted), _by_kind(fit, total, states, trusted)
    frame = fit.frame
    judged = _judged(part(aside), total, found.noise, notes) if len(aside) else {}
    moves = tuple(
        Displacement(place.element, place.side, frozen(twist))
        for place, twist in zip(parameters.model.places, total, strict=True)
        if twist.any() and place.element not in mechanism.unbuilt  # loops tilt the platform themselves
    )
    whole = part(np.arange(len(measured)))
    arrows = (whole.points, whole.arrows(none, whole.nominal), whole.arrows(total, whole.nominal))
    refused = _refusals(mechanism, found, measured, before, judged or after)
    hidden = _doubts(whole, fit, only, chosen, found, total, refused, notes)
    _check_gears(mechanism, () if refused else moves, notes)
    return Calibration(
        mechanism, measured, chosen, found, moves, before, after, judged, frame, tuple(notes), tuple(refused),
        tuple(hidden), arrows,
    )  # fmt: skip


def _check_gears(mechanism: Mechanism, moves: Sequence[Displacement], notes: list[str]) -> None:
    if moves and any(joint.mimic for joint in mechanism.joints):
        try:
            corrected(mechanism, moves)
        except DescriptionError as error:
            notes.append(f"WARNING: no program will take the file of corrections: {error}")


def _estimated_where_regular(
    part: Callable[[NDArray[np.int64]], MeasuredRobot],
    fit: MeasuredRobot,
    used: NDArray[np.int64],
    chosen: tuple[GeometricParameter, ...],
    notes: list[str],
    report_progress: Callable[[str], object],
) -> tuple[NDArray[np.int64], MeasuredRobot, tuple[Estimate, Array, States]]:
    # `_estimated` by the rows `used`, or by those of them at which the corrected robot is not nearly singular.
    most, source = LOST_ROWS * len(used), fit.measured.source
    lost = list[int]()
    while True:
        try:
            found = _estimated(fit.parameters, fit, chosen, report_progress)
            break
        except _SingularRowsError as error:
            lost += fit.measured.lines[error.rows].tolist()
            used = np.delete(used, error.rows)
        lines = ", ".join(map(str, sorted(lost)))
        if len(lost) > most:
            problem = "the corrected robot is nearly singular there"
            raise MeasurementError(f"{source}, line {lines}", problem, "measure further from singularities")
        fit = part(used)
    if lost:
        notes.append(f"left out, the corrected robot is nearly singular there: line {lines}")
    return used, fit, found


def _explained(
    error: ContradictionError, whole: MeasuredRobot, chosen: Sequence[GeometricParameter]
) -> ContradictionError:
    none = np.zeros_like(whole.model.displacements)
    causes = swapped(whole) or _causes(whole, none, chosen, np.zeros(len(chosen)))[0]
    return ContradictionError("; ".join([str(error), *causes]))


def _doubts(
    whole: MeasuredRobot, fit: MeasuredRobot, only: Sequence[str], chosen: Sequence[GeometricParameter],
    found: Estimate, total: Array, refused: list[str], notes: list[str],
) -> list[str]:  # fmt: skip
    """Add what else speaks against an answer to `refused` or `notes`; the parameters that other poses would show."""
    causes, moved = _causes(whole, total, chosen, found.values, found.outliers)
    spoilt = np.isin(moved, fit.measured.lines) & ~np.isin(moved, list(found.outliers))
    if refused or spoilt.any():
        refused += swapped(whole) or causes
    else:
        notes += [f"WARNING: {cause}" for cause in causes]
    if whole.measured.known_noise and found.noise > 1.0 and not refused:
        problem = (
            f"the remaining error is {found.noise:.3g} times the noise in the file, and intervals are as much wider"
        )
        notes.append(f"WARNING: {problem}; is a sigma too small, or is there play, bending or heat?")
    notes += _beside(chosen, found.values)
    hidden, narrow, lost = _spread(fit, only, found.noise)
    if narrow and not causes:
        (refused if lost else notes).append(narrow)
    return hidden


def _beside(chosen: Sequence[GeometricParameter], values: Array) -> list[str]:
    named = list(zip(chosen, values, strict=True))
    ends = [[value for one, value in named if one.name.endswith(f"on the platform, {axis}")] for axis in "xyz"]
    if min(map(len, ends)) < FEWEST_ROWS:
        return []
    shift = np.array([np.median(each) for each in ends])
    if np.linalg.norm(shift) < ELSEWHERE:
        return []
    point = ", ".join(f"{-1e3 * one:.1f}" for one in shift)
    return [
        f"WARNING: joints of the platform all come out elsewhere, as if the measured point were ({point}) mm beside "
        "that in the file, in the platform's frame: if it was a tool's or a marker's, give point_x, point_y, point_z"
    ]


def _judged(judge: MeasuredRobot, total: Array, noise: float, notes: list[str]) -> dict[str, float]:
    """Errors by kind on rows that were not used, without those that miss by far more than the others."""
    misses = np.abs(judge.misses(total, judge.nominal)) / judge.sigma
    far = np.isin(judge.rows, judge.rows[misses > FAR * max(1.0, noise)])
    if far.any():
        lines = ", ".join(str(line) for line in np.unique(judge.measured.lines[judge.rows[far]]))
        notes.append(f"of the poses kept aside, these have far larger errors than the others: line {lines}")
    return _by_kind(judge, total, judge.nominal, ~far)


def _check_count(mechanism: Mechanism, measured: Measurements) -> None:
    spare = max(0, len(mechanism.actuated_joints) - mechanism.mobility.platform)
    count = measured.count + len(measured) * spare
    if count < FEWEST or len(measured) < FEWEST_ROWS:
        problem = f"has {count} measured numbers at {len(measured)} different poses, too few for a calibration"
        raise MeasurementError(measured.source, problem, "measure more, and at more poses")


def _check_determined(fit: MeasuredRobot, chosen: Sequence[GeometricParameter]) -> None:
    """Numbers beyond those that parameters take up: without them, any noise looks like parameters."""
    if len(fit.groups) <= len(chosen):
        rows = len(fit.measured)
        problem = (
            f"{len(fit.groups)} numbers at {rows} poses are too few for the parameters, which explain any such numbers"
        )
        enough = math.ceil(ENOUGH * len(fit.parameters.identifiable()) * rows / len(fit.groups))
        remedy = f"measure at {max(enough, 2 * rows)} poses or more, or free fewer parameters with --only"
        raise MeasurementError(fit.measured.source, problem, remedy)


def _without_impossible(parameters: GeometricParameters, measured: Measurements, notes: list[str]) -> MeasuredRobot:
    states, there = MeasuredRobot.standing(parameters, measured)
    if states is None:
        check_drives(parameters, measured)
    if states is None or there.mean() < 1.0 - IMPOSSIBLE:
        return MeasuredRobot(parameters, measured)  # all of them are looked at again, and refused
    if not there.all():
        lines = ", ".join(str(line) for line in measured.lines[~there])
        notes.append(f"left out, the drawing has no configuration for these drive readings: line {lines}")
    return MeasuredRobot(parameters, measured.rows(there), nominal=states.rows(there))


def _estimated(
    parameters: GeometricParameters, fit: MeasuredRobot, chosen: tuple[GeometricParameter, ...],
    report_progress: Callable[[str], object],
) -> tuple[Estimate, Array, States]:  # fmt: skip
    """The estimate, displacements (n_places, 6) that close the loops, and the configurations with them. A measuring
    frame that was found takes part, so that intervals contain it; `fit.frame` is then the better one.
    """
    names, first = [one.name for one in chosen], fit.frame
    scales = np.array([EXPECTED[one.unit] for one in chosen])
    k, moves = len(chosen), not np.array_equal(first, np.eye(4))
    if moves:
        names = names + [f"measuring frame, {one}" for one in ("x", "y", "z", "about x", "about y", "about z")]
        scales = np.append(scales, FRAME * np.repeat([EXPECTED["m"], EXPECTED["rad"]], 3))
    walk, steps, lost = {"start": fit.nominal}, count(1), np.zeros(len(fit.measured), dtype=np.int64)
    last: list[tuple[Array, Array, Array]] = []  # what is asked for again

    def displaced(values: Array) -> Array:
        return parameters.displacements(dict(zip(names[:k], values[:k].tolist(), strict=True)))

    def residuals(values: Array) -> tuple[Array, Array]:
        if last and np.array_equal(last[0][0], values):
            return last[0][1:]
        done = next(steps)
        report_progress(f"{100 * done // USUAL} % done" if done < USUAL else "more steps than usual")
        if moves:
            fit.frame = transform(values[k : k + 3], rotation_from_vector(values[k + 3 :])) @ first
        try:
            total, here = parameters.moving(displaced(values), chosen)
        except PkmError:  # no such robot
            return np.full(len(fit.groups), np.nan), np.full((len(fit.groups), len(values)), np.nan)
        for start in (walk["start"], fit.nominal):  # the last that were tried may be far off
            r, J, states = fit.residuals(total, here, start, moves)
            J = J[:, : len(values)]
            if np.isfinite(r).all():
                walk["start"] = states
                break
            lost[np.unique(fit.groups[np.isnan(r)])] += 1
        rows = np.flatnonzero(lost >= LOST_OFTEN)
        if 0 < len(rows) <= LOST_ROWS * len(lost):
            raise _SingularRowsError(rows)
        last[:] = [(values.copy(), r, J)]
        return r, J

    found = estimate(
        residuals,
        np.zeros(len(names)),
        names=names,
        scales=scales,
        sigma=np.ones(len(fit.groups)) if fit.measured.known_noise else None,
        groups=fit.measured.lines[fit.groups],
    )
    residuals(found.values)  # the last that were tried may be others
    return found.of_first(k), parameters.closing(displaced(found.values)), walk["start"]


def _refusals(
    mechanism: Mechanism, found: Estimate, measured: Measurements,
    before: Mapping[str, float], judged: Mapping[str, float],
) -> list[str]:  # fmt: skip
    reasons = []
    if measured.known_noise and found.rms_after > UNEXPLAINED:
        reasons.append(
            f"the remaining error is {found.rms_after:.3g} times the noise in the file: parameters do not explain it"
        )
    units = {kind: "rad" if kind == "attitude" else "m" for kind in judged}
    units |= {kind: joint.unit for kind in judged if (joint := mechanism.joint_named.get(kind))}
    usual = {kind: UNEXPLAINED * SIGMA[unit] for kind, unit in units.items()}
    hardly = [k for k, error in judged.items() if error > max(HARDLY * before[k], usual[k])]
    if hardly and not measured.known_noise:
        reasons.append(
            f"the error of {' and '.join(hardly)} hardly falls: parameters do not explain it; is this another robot, "
            "zero, column or assembly mode? If it is the noise of the instrument, add its line, as '# sigma x [mm]: 1'"
        )
    floor = {k: usual[k] if k in mechanism.joint_named else 0.1 * SIGMA[unit] for k, unit in units.items()}  # noise
    worse = [k for k, error in judged.items() if error > 1.1 * before[k] and error > floor[k]]
    if worse:
        reasons.append(f"the corrected robot predicts {' and '.join(worse)} worse than the drawing does")
    return reasons


def _causes(
    whole: MeasuredRobot, total: Array, chosen: Sequence[GeometricParameter], values: Array,
    outliers: Sequence[int] = (),
) -> tuple[list[str], NDArray[np.int64]]:  # fmt: skip
    """What of instruments would explain measurements, in words: that one was moved, with the lines, or its scale."""
    measured, k = whole.measured, len(chosen)
    r, J, _ = whole.residuals(total, chosen, whole.nominal, True)
    if not np.isfinite(r).all():
        return [], measured.lines[:0]
    scales = np.array([EXPECTED[one.unit] for one in chosen])
    J, by_frame, by_scales = J[:, :k] * scales, J[:, k : k + 6], J[:, k + 6 :]
    frame = by_frame if not np.array_equal(whole.frame, np.eye(4)) else by_frame[:, :0]  # which was estimated
    if np.isin(whole.kinds, SCALED["positions"]).any():
        wrong = np.isin(measured.lines, list(outliers))
        side, shift, apart = second_cluster(r, np.hstack([J, frame]), by_frame[:, :3], whole.groups, wrong)
        if apart > APART and side.sum() >= max(COMPANY, TOGETHER * len(side)):
            return [_moved(measured, side, shift)], measured.lines[side]
    if frame.size:
        Q = np.linalg.qr(frame)[0]
        r, J, by_scales = (one - Q @ (Q.T @ one) for one in (r, J, by_scales))
    for what, longer in zip(SCALED, by_scales.T, strict=True):
        share, sure = one_more(r, J, values / scales, longer) if longer.any() else (0.0, 0.0)
        if LENGTHENED <= abs(share) <= NO_SCALE and sure >= SURELY:
            return [
                f"{what} {100.0 * abs(share):.2g} % too {'long' if share > 0.0 else 'short'} would explain corrections "
                "that all point one way: check the scale of the instrument"
            ], measured.lines[:0]
    return [], measured.lines[:0]


def _moved(measured: Measurements, side: NDArray[np.bool_], shift: Array) -> str:
    at = np.flatnonzero(side)
    first, last = measured.lines[at[0]], measured.lines[at[-1]]
    where = "line " + ", ".join(map(str, measured.lines[at]))
    if at[-1] - at[0] + 1 == len(at):
        where = f"lines {first} to {last}"
    by = ", ".join(f"{1e3 * one:.3g}" for one in shift)
    return (
        f"{len(at)} of {len(side)} rows lie beside the others by ({by}) mm: was the instrument moved? Measure again, "
        f"or leave out {where}"
    )


def _spread(fit: MeasuredRobot, only: Sequence[str], noise: float) -> tuple[list[str], str, bool]:
    """Parameters that other poses would show; what these leave open elsewhere, in words; whether that is too much.

    Of the platform's position, in the coordinates that were measured, with the drives held: its errors at poses around
    home and at the measured ones, by what is known of the parameters and what is expected of the others. Of redundant
    drives, whose readings alone may have been measured, what is left open in the loops is shared by them.
    """
    parameters, model = fit.parameters, fit.parameters.model
    lengths = np.isin(fit.kinds, SCALED["distances"])
    axes = [axis for axis, name in enumerate("xyz") if (fit.kinds == name).any() or lengths.any()]
    if fit.redundant:
        axes = axes or [0, 1, 2]
    if not axes:
        return [], "", False
    none, names = np.zeros_like(model.displacements), [one.name for one in parameters.all]
    model.displace(none)
    twists = parameters.sensitivity(model.random_states(PLACES, AROUND), parameters.all)[1][:, axes]
    there = twists[np.isfinite(twists).all(axis=(1, 2))].reshape(-1, len(names))
    if only:
        there = there * [any(fnmatch.fnmatchcase(name, pattern) for pattern in only) for name in names]
    if not there.any():
        return [], "", False
    shown = parameters.identifiable(there / model.length)
    scales = np.array([EXPECTED[one.unit] for one in shown])
    J = fit.residuals(none, shown, fit.nominal)[1] * scales
    known = np.linalg.inv(J.T @ J / noise**2 + np.eye(len(shown)))
    if fit.redundant:  # what no configuration takes up is of no one kind
        near = parameters.sensitivity(fit.nominal, shown)[1][:, axes].reshape(-1, len(shown)) * scales
    else:
        positions = np.isin(fit.kinds, SCALED["positions"]) | lengths
        near = J[positions] * fit.sigma[positions, None]
    at = (near, there[:, [names.index(one.name) for one in shown]] * scales)
    here, elsewhere = (float(np.sqrt(np.median(np.einsum("ij,jk,ik->i", one, known, one)))) for one in at)
    blurred = np.diag(known) > BLURRED**2
    hidden = [one.name for one, lost in zip(shown, blurred, strict=True) if lost]
    if not hidden or elsewhere < FURTHER * here:
        return [], "", False
    more = f" and {len(hidden) - LISTED} more" if len(hidden) > LISTED else ""
    lost = elsewhere > LOST * here
    return (
        hidden,
        (
            f"{'' if lost else 'WARNING: '}the poses do not spread over the workspace: elsewhere the position is known "
            f"to {1e3 * elsewhere:.2g} mm, at these poses to {1e3 * here:.2g} mm (one standard deviation); they do not "
            f"show {', '.join(hidden[:LISTED])}{more}; measure at the poses of --plan"
        ),
        lost,
    )


def _chosen(
    parameters: GeometricParameters, fit: MeasuredRobot, only: Sequence[str], notes: list[str]
) -> tuple[tuple[GeometricParameter, ...], tuple[GeometricParameter, ...]]:
    """The parameters that these measurements tell apart, at the drawing; and with those that do the same as others."""
    names = [one.name for one in parameters.all]
    for pattern in only:
        if not fnmatch.filter(names, pattern):
            lists = f"`pkm analyse {parameters.mechanism.name} errors --parameters` lists them"
            hint = nearest(pattern, names, f"{lists}; ratios need --real-gears")
            raise PkmError(f"{parameters.mechanism.name} has no geometric parameter like {pattern!r}: {hint}")
    none = np.zeros_like(parameters.model.displacements)
    r, seen, _ = fit.residuals(none, parameters.all, fit.nominal)
    if lost := sorted({int(fit.measured.lines[k]) for k in fit.groups[np.isnan(r)]}):
        problem = "the robot is singular there: its drives do not hold the platform"
        raise MeasurementError(f"{fit.measured.source}, line {', '.join(map(str, lost[:5]))}", problem, "leave it out")
    if only:
        seen = seen * [any(fnmatch.fnmatchcase(name, pattern) for pattern in only) for name in names]
    seen = seen / max(float(np.abs(seen).max()), 1e-300)
    separable = parameters.identifiable(seen)
    if not separable:
        raise PkmError(f"no geometric parameter of {parameters.mechanism.name} affects these measurements")
    return separable, _with_masked(fit, seen, separable, notes)


def _with_masked(
    fit: MeasuredRobot, seen: Array, separable: tuple[GeometricParameter, ...], notes: list[str]
) -> tuple[GeometricParameter, ...]:
    """Add, as not seen, what does to these measurements what others do, but not to the platform's pose."""
    # Intervals of the others then contain what these leave open.
    parameters, model = fit.parameters, fit.parameters.model
    norms = np.linalg.norm(seen, axis=0) * [model.length if one.unit == "m" else 1.0 for one in parameters.all]
    twist = np.nan_to_num(parameters.sensitivity(fit.nominal, parameters.all)[1]) / model.scale[model.size :, None]
    twist = twist.reshape(-1, len(norms)) * (norms > VISIBLE * norms.max())
    more = parameters.identifiable(np.vstack([seen, twist / max(float(np.abs(twist).max()), 1e-300)]))
    if not np.isin(fit.kinds, IN_BASE).any():
        notes.append(
            "nothing was measured in the base frame: the shape is known, but not where base and platform are; the "
            "corrections are the least ones"
        )
    return tuple(one for one in parameters.all if one in separable or one in more)


def _by_kind(robot: MeasuredRobot, displacements: Array, start: States, trusted: NDArray[np.bool_]) -> dict[str, float]:
    misses = robot.misses(displacements, start)
    kinds = np.where(np.isin(robot.kinds, ("x", "y", "z")), "position", robot.kinds)
    kinds = np.where(np.isin(kinds, ("yaw", "pitch", "roll")), "attitude", kinds)
    return {
        str(kind): float(np.sqrt(np.nanmean(misses[(kinds == kind) & trusted] ** 2)))
        for kind in dict.fromkeys(kinds.tolist())
        if ((kinds == kind) & trusted).any()
    }


def _aside(n: int, share: float, seed: int, notes: list[str]) -> NDArray[np.int64]:
    count = round(share * n) if n >= VALIDATED else 0
    if share and not count:
        notes.append(
            f"WARNING: with fewer than {VALIDATED} poses none is kept aside, so nothing validates this result: "
            "measure more"
        )
    return np.sort(np.random.default_rng(seed).permutation(n)[:count])


def _without_copies(measured: Measurements, notes: list[str]) -> Measurements:
    """The measurements without rows that repeat an earlier one to the last digit: no second measurement does."""
    attitude = measured.attitude.reshape(len(measured), 9)
    parts = [measured.drives, measured.position, attitude, measured.distance[:, None], *_columns(measured.joints)]
    rows = np.nan_to_num(np.hstack(parts), nan=-1e99)
    _, first = np.unique(rows, axis=0, return_index=True)
    again = np.setdiff1d(np.arange(len(measured)), first)
    if len(again):
        lines = ", ".join(str(measured.lines[k]) for k in again[:8])
        notes.append(
            f"{len(again)} rows equal earlier ones in all digits and were left out: line {lines}"
            + (" and more" if len(again) > 8 else "")
        )
    return measured.rows(np.sort(first))


def _columns(joints: Mapping[str, Array]) -> list[Array]:
    return [values[:, None] for values in joints.values()]
