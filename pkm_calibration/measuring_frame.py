# SPDX-License-Identifier: Apache-2.0
"""The frame in which a robot was measured; units and columns that are not what the file says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_calibration.measured_robot import MeasuredRobot
from pkm_calibration.measurements import MeasurementError
from pkm_description.mechanism import Array
from pkm_runtime.errors import PkmError

EXPECTED = {
    "m": 1e-3,
    "rad": 5e-3,
    "1": 1e-3,
}  # errors of a machine as people build them: scales of parameters
ASTRAY = 0.05  # of the robot's size: measurements this far from the drawing are not of this robot, or not in this frame
WEAK = 3.0  # times the error that is expected: measurements that are not further astray may be of a weak robot
ALIGNED = 0.3  # of the misfit: a measuring frame that leaves less was meant
SWAPPED = 0.3  # of the misfit: columns that leave less when exchanged were swapped
OTHERS = 10.0  # times the error that is expected of a joint: readings this far from the drawing are another joint's
MIRRORED = 0.5  # of what a measuring frame leaves: exchanged columns that leave less are the cause


def measuring_frame(robot: MeasuredRobot, notes: list[str]) -> Array:
    """The measuring frame in the base frame: the base's own where measurements fit the drawing in it.

    Raises `MeasurementError` where no frame makes them fit, with what else does.
    """
    measured, size = robot.measured, robot.model.length
    whole = np.isfinite(robot.measured.position).all(axis=1)
    predicted = _points(robot)
    miss = _miss(predicted, measured.position)
    if miss < ASTRAY * size or np.isnan(miss):
        _check_distances(robot, predicted)
        return np.eye(4)
    if whole.sum() >= 4:
        frame = _aligned(predicted[whole], measured.position[whole])
        left = _miss((predicted - frame[:3, 3]) @ frame[:3, :3], measured.position)
        if left < ALIGNED * miss and left < ASTRAY * size:
            # Exchanged drives or axes mirror a flat cloud of points, which a turned frame nearly fits.
            names = _swapped_axes(predicted, measured.position, min(SWAPPED * miss, ASTRAY * size))
            if names := names or _swapped_drives(robot, min(SWAPPED * miss, MIRRORED * left)):
                raise MeasurementError(measured.source, *_swapped(miss, names))
            turn = np.degrees(np.arccos(np.clip(0.5 * (np.trace(frame[:3, :3]) - 1.0), -1.0, 1.0)))
            away = ", ".join(f"{1e3 * value:.1f}" for value in frame[:3, 3])
            notes.append(
                f"the measuring frame is not the base frame: it is at ({away}) mm in the base frame, rotated by "
                f"{turn:.2f} deg; found "
                "from the measurements"
            )
            for order in _cycles(robot):
                notes.append(
                    f"WARNING: they fit the base's own frame as well, with the drives in the order {', '.join(order)}: "
                    "if the instrument was not turned like this, the columns of the drives are exchanged"
                )
            return frame
    if miss < WEAK * _expected_miss(robot):
        return np.eye(4)
    raise MeasurementError(measured.source, *_why(robot, predicted, miss))


def _expected_miss(robot: MeasuredRobot) -> float:
    """Error of the position [m], in the median over the rows, that is expected of a machine: weak robots make more."""
    chosen = robot.parameters.identifiable()
    twists = robot.parameters.sensitivity(robot.nominal, chosen)[1]
    each = twists[:, :3] * np.array([EXPECTED[one.unit] for one in chosen])
    return float(np.median(np.linalg.norm(each, axis=(1, 2))))


def _points(robot: MeasuredRobot) -> Array:
    platform = robot.nominal.platform
    return np.asarray(platform[:, :3, 3] + np.einsum("nij,nj->ni", platform[:, :3, :3], robot.measured.point))


def _miss(predicted: Array, measured: Array) -> float:
    """Median distance of what was measured from what was predicted, in the components that were."""
    there = np.isfinite(measured).any(axis=1)
    if not there.any():
        return float("nan")
    apart = np.nan_to_num(measured - predicted)[there]
    return float(np.median(np.linalg.norm(apart, axis=1)))


def _aligned(predicted: Array, measured: Array) -> Array:
    """The frame (4, 4) in which measured points are nearest to predicted ones (Kabsch, 1976)."""
    a, b = predicted - predicted.mean(axis=0), measured - measured.mean(axis=0)
    U, _, Vt = np.linalg.svd(a.T @ b)
    sign = np.diag([1.0, 1.0, np.sign(np.linalg.det(U @ Vt))])
    frame = np.eye(4)
    frame[:3, :3] = U @ sign @ Vt
    frame[:3, 3] = predicted.mean(axis=0) - frame[:3, :3] @ measured.mean(axis=0)
    return frame


def _why(robot: MeasuredRobot, predicted: Array, miss: float) -> tuple[str, str]:
    measured, problem = robot.measured, _far(miss)
    there = np.isfinite(measured.position)
    spread = float(np.nanstd(np.where(there, predicted, np.nan))), float(np.nanstd(measured.position))
    for name, factor in (("mm", 1e-3), ("cm", 1e-2), ("inches", 0.0254), ("m", 1e3)):
        if abs(np.log(max(spread[1], 1e-12) * factor / max(spread[0], 1e-12))) < 0.2:
            return (
                f"{problem}; their spread is {spread[1] / spread[0]:.3g} times that of the drawing",
                f"the unit looks like {name}: write it in the first line, as in 'x [{name.removesuffix('ches')}]'",
            )
    if names := _swapped_axes(predicted, measured.position, SWAPPED * miss):
        return _swapped(miss, names)
    if names := _swapped_drives(robot, SWAPPED * miss):
        return _swapped(miss, names)
    return problem, "check the robot, the frame (base) and the point (point_x, point_y, point_z)"


def _far(miss: float) -> str:
    return f"the median deviation of the positions from the drawing is {1e3 * miss:.3g} mm"


def _swapped(miss: float, names: str) -> tuple[str, str]:
    return _far(miss), f"columns {names} look swapped: swap their names"


def _swapped_axes(predicted: Array, position: Array, below: float) -> str:
    """Names of two axes whose columns, exchanged, leave a median deviation below this [m], or none."""
    for one, other in combinations(range(3), 2):
        if _miss(predicted, _exchanged(position, one, other)) < below:
            return f"{'xyz'[one]} and {'xyz'[other]}"
    return ""


def _swapped_drives(robot: MeasuredRobot, below: float) -> str:
    """Names of two drives whose columns, exchanged, leave a median deviation below this [m], or none."""
    drives = robot.mechanism.actuated_joints
    for one, other in combinations(range(len(drives)), 2):
        if _miss_in_order(robot, _exchanged(np.arange(len(drives))[None], one, other)[0]) < below:
            return f"{drives[one]} and {drives[other]}"
    return ""


def _miss_in_order(robot: MeasuredRobot, order: Sequence[int] | NDArray[np.int64]) -> float:
    """`_miss` in the base's frame with the columns of the drives in another order; infinite where it cannot stand."""
    measured = replace(robot.measured, drives=robot.measured.drives[:, list(order)])
    try:
        return _miss(_points(MeasuredRobot(robot.parameters, measured)), measured.position)
    except PkmError:
        return float("inf")


def _cycles(robot: MeasuredRobot) -> Iterator[list[str]]:
    """Cyclic orders of the drives in which the measurements fit the base's frame: a symmetrical robot, turned."""
    n = len(robot.drives)
    for shift in range(1, n):
        order = [(k + shift) % n for k in range(n)]
        if _miss_in_order(robot, order) < ASTRAY * robot.model.length:
            yield [robot.mechanism.actuated_joints[k] for k in order]


def check_sensors(robot: MeasuredRobot) -> None:
    """Raise `MeasurementError` where readings of passive joints fit the drawing once two columns are exchanged."""
    measured, drives = robot.measured, robot.mechanism.actuated_joints
    joints, now = measured.joints, _sensors_miss(robot)
    if now < OTHERS:
        return
    tried = []
    for one, other in combinations(joints, 2):
        turned = replace(measured, joints={**joints, one: joints[other], other: joints[one]})
        miss = _sensors_miss(MeasuredRobot(robot.parameters, turned, robot.frame, robot.nominal))
        tried.append((miss, f"{one} and {other}"))
    if not np.isfinite(measured.position).any():  # which tells exchanged drives
        for k, m in combinations(range(len(drives)), 2):
            turned = replace(measured, drives=_exchanged(measured.drives, k, m))
            if MeasuredRobot.stands(robot.parameters, turned).all():
                miss = _sensors_miss(MeasuredRobot(robot.parameters, turned))
                tried.append((miss, f"{drives[k]} and {drives[m]}"))
    miss, names = min(tried, default=(np.inf, ""))
    if miss < SWAPPED * now:
        problem = f"the readings of joints deviate from the drawing by {now:.3g} times what is expected of a machine"
        raise MeasurementError(measured.source, problem, f"columns {names} look swapped: swap their names")


def _sensors_miss(robot: MeasuredRobot) -> float:
    """Sum of the passive joints' median deviations from the drawing, over what is expected of them."""
    total = 0.0
    for name, reading in robot.measured.joints.items():
        column = robot.model.column[name]
        miss, slides = robot.nominal.q[:, column] - reading, robot.model.slides[column]
        away = np.abs(miss if slides else np.arctan2(np.sin(miss), np.cos(miss)))[np.isfinite(reading)]
        total += float(np.median(away)) / EXPECTED["m" if slides else "rad"] if len(away) else 0.0
    return total


def _exchanged(columns: NDArray[Any], one: int, other: int) -> NDArray[Any]:
    order = np.arange(columns.shape[1])
    order[[one, other]] = other, one
    return columns[:, order]


def _check_distances(robot: MeasuredRobot, predicted: Array) -> None:
    measured = robot.measured
    there = np.isfinite(measured.distance)
    if not there.any():
        return
    lengths = np.linalg.norm(predicted - measured.origin, axis=1)[there]
    ratio = float(np.median(measured.distance[there] / np.maximum(lengths, 1e-12)))
    if not 0.8 < ratio < 1.25:
        near = 500.0 < ratio < 2000.0
        hint = "the unit looks like mm: write 'distance [mm]'" if near else "give the start point: from_x, ..."
        raise MeasurementError(measured.source, f"distances are {ratio:.3g} times those of the drawing", hint)
