# SPDX-License-Identifier: Apache-2.0
"""What the drives provide at a pose within their limits: speed, force, efforts at rest, accuracy.

With K the rates of the m drives per velocity of the platform, velocities are bounded by |K v| <= q_max, and what the
platform exerts at rest by K^T tau for efforts within their range, less what holds the weight. Both are exact for
redundant drives, and for drives that only pull, where singular values of K are not (Krut, Company and Pierrot,
"Velocity performance indexes for parallel mechanisms with actuation redundancy", 2002; Bosscher, Riechel and
Ebert-Uphoff, "Wrench-feasible workspace generation for cable-driven robots", 2006).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from pkm_analysis.analysed_robot import Robot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.indices import limits_of, part_of
from pkm_analysis.kernels.pose_quantities import REACH
from pkm_analysis.polytopes import largest_displacements, least_reach, zonotope_faces
from pkm_analysis.proof.over_boxes import least_spare, most_effort, most_error
from pkm_analysis.requirements.grammar import WITHIN_LIMITS
from pkm_analysis.requirements.quantity import Batch, Quantity, shared
from pkm_description.mechanism import Array

SENSORS, EFFORTS = ("position_error", "turning_error"), ("effort_at_rest", "spare_effort")
TURNING = ("turning_speed", "moment", "turning_error")  # that concern rotation
DRIVEN = ("speed", "turning_speed", "force", "moment", *SENSORS, *EFFORTS)
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
    if colon and kind in (*SENSORS, *EFFORTS):
        raise AnalysisError(f"quantity {name}", "it has no direction", f"write {kind}")
    if kind in SENSORS:
        return _error(robot, kind, sensors)
    if kind in EFFORTS:
        return _effort_at_rest(robot) if kind == EFFORTS[0] else _spare_effort(robot)
    direction = _direction(name, word) if colon else None
    return (_force if kind in ("force", "moment") else _speed)(robot, name, direction, kind in TURNING)


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
        remedy = f"write {kind}:z, {kind}:-x or {kind}:1,0,-1"
        raise AnalysisError(f"quantity {name}", f"'{word}' is no direction", remedy)
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
    space = np.asarray(kinematics.task.subspace)
    if direction is not None:
        twists = np.concatenate([np.zeros(3), direction] if turning else [direction, np.zeros(3)])[:, None]
    else:
        try:
            twists = part_of(space[None], "rotation" if turning else "translation", 1.0)[0]
        except AnalysisError as none:
            part, other = ("rotation", "speed") if turning else ("translation", "turning_speed")
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
    if np.isinf(evaluate(Batch(robot, robot.kinematics.engine.home_row.copy()))).all():
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
        loads = np.swapaxes(batch.configuration.subspace[known], 1, 2) @ wrenches
        reach[known] = least_reach(rows, held, loads)
    return reach


def _error(robot: Robot, name: str, sensors: tuple[float, ...]) -> Quantity:
    if not sensors:
        remedy = "give them: --sensor-error NUMBER UNIT, or Analysis(..., sensors=...)"
        raise AnalysisError(f"quantity {name}", "it depends on the errors of the drives' sensors", remedy)
    kinematics, turning = robot.kinematics, name in TURNING
    m = len(kinematics.actuated_names)
    if len(sensors) not in (1, m) or not 0.0 < min(sensors) <= max(sensors) < np.inf:
        raise AnalysisError(f"sensor errors {sensors}", "they are none", f"give one positive number, or {m}")
    errors = np.broadcast_to(np.asarray(sensors, dtype=float), (m,))
    if kinematics.engine.constant_space and not kinematics.task.subspace[slice(3, 6) if turning else slice(3)].any():
        raise AnalysisError(f"quantity {name}", "the platform does not move that way", "take the other error")
    given = ", ".join(f"{e:.4g}" for e in sorted(set(sensors))) + f" {robot.actuator_unit}"
    text, unit = ("orientation", "rad") if turning else ("position", "m")
    meaning = f"largest error of the platform's {text}, to the first order, for errors of the sensors up to {given}"
    over = partial(most_error, errors=errors, turning=turning)
    evaluate = partial(_errors, errors=errors, turning=turning)
    return Quantity(name, unit, meaning, evaluate, version=repr(sensors), most=over)


def _errors(batch: Batch, errors: Array, turning: bool) -> Array:
    J = batch.configuration.forward_jacobian
    found = largest_displacements(J[:, 3:] if turning else J[:, :3], errors)
    there = batch.number(REACH) >= 0.0
    return np.where(np.isnan(found) & there, np.inf, found)  # singular of type 2


def _effort_at_rest(robot: Robot) -> Quantity:
    meaning = "largest effort of a drive that holds the robot against gravity"
    least, most = robot.kinematics.mechanism.effort_range
    if shared(robot.kinematics):
        meaning += ", shared within their ranges; infinite where these do not hold it"
    else:
        least, most = np.full_like(least, -np.inf), np.full_like(most, np.inf)
    one_way = robot.kinematics.mechanism.one_way_actuators.any()
    over = None if one_way else partial(most_effort, least=least, most=most)
    evaluate = lambda b: np.abs(b.efforts_at_rest).max(axis=1)  # noqa: E731
    return Quantity(EFFORTS[0], _unit(robot), meaning, evaluate, most=over)


def _spare_effort(robot: Robot) -> Quantity:
    least, most = robot.kinematics.mechanism.effort_range
    if not np.isfinite([least, most]).any():
        problem, remedy = "the description has no limits of effort", "name one, such as 'effort_at_rest < 20 N m'"
        raise AnalysisError(f"requirement '{WITHIN_LIMITS}'", problem, remedy)
    meaning = "how far the efforts that hold the robot against gravity are from the ends of the drives' ranges"
    evaluate = lambda b: np.minimum(b.efforts_at_rest - least, most - b.efforts_at_rest).min(axis=1)  # noqa: E731
    over = partial(least_spare, least=least, most=most)
    return Quantity(EFFORTS[1], _unit(robot), meaning, evaluate, signed=True, least=over)


def _unit(robot: Robot) -> str:
    return {"m": "N", "rad": "N m"}.get(robot.actuator_unit, "N or N m")
