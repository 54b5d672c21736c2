# SPDX-License-Identifier: Apache-2.0
"""What the drives provide at a pose within their limits: speed, force, and errors of pose due to their sensors.

With K the rates of the m drives per velocity of the platform, velocities are bounded by |K v| <= q_max, and what the
platform exerts at rest by K^T tau for efforts within their range, less what holds the weight. Both are exact for
redundant drives, and for drives that only pull, where singular values of K are not (Krut, Company and Pierrot,
"Velocity performance indexes for parallel mechanisms with actuation redundancy", 2002; Bosscher, Riechel and
Ebert-Uphoff, "Wrench-feasible workspace generation for cable-driven robots", 2006).

Efforts at rest are distributed as the controller does: with more drives than degrees of freedom, those of least norm
within the drives' ranges. Winches can only pull: there may be no solution at all, whatever the sum of their limits.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pkm_analysis.analysed_robot import Robot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.indices.performance_indices import Part, limits_of, part_of
from pkm_analysis.indices.polytopes import largest_displacements, least_reach, zonotope_faces
from pkm_analysis.requirements.quantity import Batch, Quantity
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_dynamics.distribution import Distribution
from pkm_dynamics.efforts import Efforts
from pkm_kinematics.kinematics import Kinematics

SENSORS = ("position_error", "turning_error")
DRIVEN = {  # name: whether it concerns rotation
    "speed": False,
    "turning_speed": True,
    "force": False,
    "moment": True,
    "position_error": False,
    "turning_error": True,
}
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
OWN = 1e-9  # of a unit velocity: rounding outside the motion space


class Assumed(NamedTuple):
    """Assumptions on the drives beyond the description."""

    stiffness: float | None = None  # N m/rad or N/m
    sensors: tuple[float, ...] = ()  # largest errors of the drives' sensors, one for each or one for all [rad, m]


NOTHING_MORE = Assumed()


def drive_quantity(robot: Robot, name: str, sensors: tuple[float, ...] = ()) -> Quantity:
    """What the drives of a robot provide: a name of `DRIVEN`, with a direction if along one alone.

    Directions of speeds, forces and moments: `force:z`, `speed:-x`, `force:1,0,-1` in the base frame. `sensors` are the
    largest errors of the drives' sensors, one for each or one for all [rad, m]. `AnalysisError` where the robot has no
    such limits, degree of freedom or sensor errors.
    """
    kind, colon, word = name.partition(":")
    turning = DRIVEN[kind]
    if kind in SENSORS:
        if colon:
            raise AnalysisError(f"quantity {name}", "it is that of all directions", f"write {kind}")
        return _error(robot, kind, sensors, turning)
    direction = _direction(name, word) if colon else None
    if kind in ("force", "moment"):
        return _force(robot, name, direction, turning)
    return _speed(robot, name, direction, turning)


def _direction(name: str, word: str) -> Array:
    sign = -1.0 if word.startswith("-") and word[1:] in AXES else 1.0
    axis = word.removeprefix("-") if sign < 0.0 else word
    try:
        vector = sign * np.array(AXES[axis] if axis in AXES else [float(n) for n in axis.split(",")])
    except ValueError:
        vector = np.zeros(0)
    length = float(np.linalg.norm(vector))
    if vector.shape != (3,) or not 0.0 < length < np.inf:
        kind = name.partition(":")[0]
        raise AnalysisError(
            f"quantity {name}", f"'{word}' is no direction", f"write {kind}:z, {kind}:-x or {kind}:1,0,-1"
        )
    return np.asarray(vector / length)


def _where(direction: Array | None) -> str:
    if direction is None:
        return "in every direction"
    return f"in the direction ({', '.join(f'{v:.3g}' for v in direction + 0.0)}) of the base"


def _unlimited(robot: Robot, name: str, what: str, limits: Array) -> None:
    missing = [n for n, v in zip(robot.kinematics.actuated_names, limits, strict=True) if not np.isfinite(v)]
    if missing:
        problem = f"the description sets {missing[0]} no limit of {what}"
        raise AnalysisError(f"quantity {name}", problem, f'write <limit {what}="..."/> into the joint')


def _speed(robot: Robot, name: str, direction: Array | None, turning: bool) -> Quantity:
    kinematics = robot.kinematics
    limits = limits_of(kinematics, "velocity")
    _unlimited(robot, name, "velocity", limits)
    if not kinematics.engine.constant_space:
        problem = "the platform has no direction of its own everywhere: its motion space turns with the pose"
        raise AnalysisError(f"quantity {name}", problem, "take smallest_transmission")
    space = np.asarray(kinematics.subspace(kinematics.home))
    part: Part = "rotation" if turning else "translation"
    if direction is not None:
        twists = np.concatenate([np.zeros(3), direction] if turning else [direction, np.zeros(3)])[:, None]
    else:
        try:
            twists = part_of(space[None], part, 1.0)[0]
        except AnalysisError as none:
            other = "speed" if turning else "turning_speed"
            raise AnalysisError(f"quantity {name}", f"the platform has no {part} of its own", f"take {other}") from none
    coefficients = np.linalg.lstsq(space, twists, rcond=None)[0]
    if np.abs(space @ coefficients - twists).max() > OWN:
        raise AnalysisError(f"quantity {name}", "the platform cannot move that way", "take a direction of its freedoms")
    text = "turning speed without translation" if turning else "speed without rotation"
    meaning = f"largest {text} that the platform's origin can have {_where(direction)}, within the limits of the drives"
    evaluate = partial(_speeds, limits=limits, coefficients=coefficients)
    return Quantity(name, "rad/s" if turning else "m/s", meaning, evaluate)


def _speeds(batch: Batch, limits: Array, coefficients: Array) -> Array:
    """Distance of the nearest face of the polytope |K v| <= limits, in directions within a constant space."""
    rates = batch.rates @ coefficients / limits[:, None]
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / np.linalg.norm(rates, axis=2).max(axis=1))


def _force(robot: Robot, name: str, direction: Array | None, turning: bool) -> Quantity:
    limits = robot.kinematics.mechanism.effort_range
    _unlimited(robot, name, "effort", np.maximum(-limits[0], limits[1]))
    columns = np.eye(3) if direction is None else direction[:, None]
    none = np.zeros_like(columns)
    wrenches = np.concatenate([none, columns] if turning else [columns, none])
    evaluate = partial(_forces, limits=limits, wrenches=wrenches)
    home = Batch(robot, robot.kinematics.engine.home_row.copy(), ())
    if np.isinf(evaluate(home)).all():
        problem = "the structure alone carries it: the platform has no degree of freedom there"
        remedy = f"take {'force' if turning else 'moment'}" if direction is None else "take a direction of its freedoms"
        raise AnalysisError(f"quantity {name}", problem, remedy)
    kind, without = ("moment", "force") if turning else ("force", "moment")
    meaning = (
        f"largest {kind} at the platform's origin, without a {without}, that the robot at rest can exert "
        f"{_where(direction)} beside its weight, within the limits of the drives"
    )
    return Quantity(name, "N m" if turning else "N", meaning, evaluate)


def _forces(batch: Batch, limits: tuple[Array, Array], wrenches: Array) -> Array:
    least, most = limits
    weight = batch.gravity_efforts
    known = np.isfinite(batch.rates).all(axis=(1, 2))
    reach = np.where(known, 0.0, np.nan)  # where no efforts hold the weight
    known &= np.isfinite(weight).all(axis=1)
    if known.any():
        K = batch.rates[known]
        rows = zonotope_faces(K * (0.5 * (most - least))[:, None])
        spare = 0.5 * (most + least) - weight[known]
        held = np.einsum("nmf,nm->nf", K, spare)
        loads = np.swapaxes(batch.motion_space[known], 1, 2) @ wrenches
        reach[known] = least_reach(rows, held, loads)
    return reach


def _error(robot: Robot, name: str, sensors: tuple[float, ...], turning: bool) -> Quantity:
    if not sensors:
        remedy = "give them: --sensor-error NUMBER UNIT, or Analysis(..., sensors=...)"
        raise AnalysisError(f"quantity {name}", "it depends on the errors of the drives' sensors", remedy)
    m = len(robot.kinematics.actuated_names)
    if len(sensors) not in (1, m) or not 0.0 < min(sensors) <= max(sensors) < np.inf:
        raise AnalysisError(f"sensor errors {sensors}", "they are none", f"give one positive number, or {m}")
    errors = np.broadcast_to(np.asarray(sensors, dtype=float), (m,))
    space = np.asarray(robot.kinematics.subspace(robot.kinematics.home))
    if robot.kinematics.engine.constant_space and not (space[3:] if turning else space[:3]).any():
        raise AnalysisError(f"quantity {name}", "the platform does not move that way", "take the other error")
    text = "orientation" if turning else "position"
    given = ", ".join(f"{e:.4g}" for e in sorted(set(sensors))) + f" {robot.actuator_unit}"
    meaning = f"largest error of the platform's {text}, to the first order, for errors of the sensors up to {given}"
    unit = "rad" if turning else "m"
    return Quantity(name, unit, meaning, partial(_errors, errors=errors, turning=turning), version=repr(sensors))


def _errors(batch: Batch, errors: Array, turning: bool) -> Array:
    J = batch.robot.kinematics.forward_jacobian(batch.poses, mode=batch.robot.mode)
    found = largest_displacements(J[:, 3:] if turning else J[:, :3], errors)
    return np.where(np.isnan(found), np.inf, found)  # singular of type 2


def shared(kinematics: Kinematics) -> bool:
    """Whether efforts at rest depend on the drives' ranges: they are redundant, or one-sided."""
    return len(kinematics.actuated_names) > kinematics.mobility or bool(kinematics.mechanism.one_way_actuators.any())


def efforts_at_rest(dynamics: Dynamics, poses: ArrayLike, mode: int | None = None) -> Efforts:
    """Efforts (..., n_actuated) [N m, N] that hold the robot still at poses (..., 7) or task coordinates.

    Also their status (...,): NaN and EFFORT_LIMIT where `shared` drives have none within their ranges.
    """
    kinematics = dynamics.kinematics
    distribution = Distribution(bounds=kinematics.mechanism.effort_range) if shared(kinematics) else None
    return dynamics.inverse(dynamics.kinematics.at(poses, mode=mode), distribution=distribution)
