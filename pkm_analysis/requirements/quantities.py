# SPDX-License-Identifier: Apache-2.0
"""Named scalars of a pose, each with its unit, for many poses at once and where it is known over boxes.

Among them is what the drives provide within their limits: speed, force, efforts at rest, accuracy. With K the rates of
the m drives per velocity of the platform, velocities are bounded by |K v| <= q_max, and what the platform exerts at
rest by K^T tau for efforts within their range, less what holds the weight. Both are exact for redundant drives, and for
drives that only pull, where singular values of K are not (Krut, Company and Pierrot, "Velocity performance indexes for
parallel mechanisms with actuation redundancy", 2002; Bosscher, Riechel and Ebert-Uphoff, "Wrench-feasible workspace
generation for cable-driven robots", 2006).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pkm_analysis.analysed_robot import AnalysedRobot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.indices import largest_displacements, least_reach, limits_of, part_of, zonotope_faces
from pkm_analysis.kernels.pose_quantities import HOLD, LIMIT, REACH, REGULARITY, TYPE1, TYPE2, UNLIMITED, WIDTH
from pkm_analysis.proof.enclosures import (
    Enclosure,
    joint_room,
    least_joint_room,
    least_regularity,
    least_spare,
    most_effort,
    most_error,
)
from pkm_analysis.proof.matrices import MORE, Form
from pkm_analysis.requirements.grammar import (
    CLEARANCE,
    INSIDE,
    JOINT,
    REGULAR,
    STIFFNESSES,
    WITHIN_LIMITS,
    read_bound,
    remedy_for,
)
from pkm_analysis.requirements.quantity import Batch, Quantity, Requirement, shared
from pkm_analysis.stiffness.elastic_solution import ElasticSystem
from pkm_analysis.stiffness.stiffness import STIFF, Stiffnesses
from pkm_analysis.stiffness.stiffness_bounds import ElasticOverBoxes
from pkm_description.mechanism import Array
from pkm_dynamics.natural_frequencies import StiffnessError, natural_frequencies
from pkm_kinematics.solve.singularity import scaling

NOTHING = 1e-6  # of a margin: rounding
SINGULAR = 1e-9  # a margin below is zero up to rounding
EVERYWHERE = "singular of type 2 everywhere: whatever the drives do, they never hold the platform"
_ROUNDED = 1e-15  # a quotient of two numbers is off by less
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


def singular_everywhere(type2: Array) -> bool:
    """Whether the margin `type2` vanishes at all poses where it is finite; False without such poses."""
    known = np.abs(type2[np.isfinite(type2)])
    return bool(known.size and known.max() < NOTHING)


def finite_nowhere(quantity: Quantity, where: str, everywhere: bool) -> AnalysisError:
    """The error for a quantity without a finite value at poses `where`, singular at all of them or not."""
    why = f": the robot is {EVERYWHERE}" if everywhere else ""
    problem = f"it is finite at no pose where all conditions hold, over {where}{why}"
    return AnalysisError(quantity.name, problem, "take another quantity, as type2")


def _least_type1(found: Enclosure) -> Array:
    return np.asarray((1.0 - _ROUNDED) / found.rates.largest())


def _least_type2(found: Enclosure) -> Array:
    return found.rates.smallest()


def _least_margin(found: Enclosure) -> Array:
    return np.minimum(_least_type1(found), _least_type2(found))


def _least_isotropy(found: Enclosure) -> Array:
    return np.asarray((1.0 - _ROUNDED) * _least_type1(found) * _least_type2(found))


def _most_transmission(found: Enclosure) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray((1.0 + _ROUNDED) / found.rates.smallest())


_MEANINGS = {
    "reach": "how far the limbs are from stretched or folded, 0 there; negative out of reach",
    "joint_limits": "distance from the nearest joint limit, of slides per {length:.4g} m",
    "type1": "slowest platform for unit speed of the drives, 0 at type 1{at}",
    "type2": "slowest drives for unit speed of the platform, 0 at type 2{at}",
    "type2_signed": "type2 with the sign of the determinant, positive at home: it changes at type 2 alone{at}",
    "constraint": "hold of the limbs on the blocked degrees of freedom, 0 where they lose one",
    "limb_regularity": "0 where a limb's passive joints are not determined, up to 1",
    "margin": "the smaller of the numbers of type1 and type2{at}",
    "isotropy": "smallest over largest singular value of the inverse Jacobian, 1 where isotropic{at}",
    "smallest_transmission": "smallest velocity transmission factor{at}",
    "largest_transmission": "largest velocity transmission factor, platform by drive speed, infinite at type 2{at}",
    REGULAR: "the least margin from singularities of any type",
}


def _of_limbs(robot: AnalysedRobot) -> list[Quantity]:
    length = robot.kinematics.characteristic_length
    where = {"length": length, "at": f"; rotations count at {length:.4g} m"}
    per, drive = {"m": ("1", "1"), "rad": ("m/rad", "rad/m")}.get(robot.actuator_unit, ("m/(m or rad)", "(m or rad)/m"))

    def one(name: str, unit: str, needs: tuple[int, ...], function: Callable[..., Array], **more: Any) -> Quantity:
        meaning = _MEANINGS[name].format(**where)
        return Quantity(name, unit, meaning, lambda b: function(*(b.number(k) for k in needs)), needs, **more)

    found = [
        one("reach", "1", (REACH,), np.asarray, signed=True),
        one("joint_limits", "rad", (LIMIT,), np.asarray, signed=True),
        one("type1", per, (TYPE1,), np.asarray, least=_least_type1),
        one("type2", drive, (TYPE2,), np.abs, least=_least_type2),
        one("margin", "1", (TYPE1, TYPE2), lambda t, u: np.minimum(t, np.abs(u)), least=_least_margin),
        one("constraint", "1", (HOLD,), np.asarray),
        one("limb_regularity", "1", (REGULARITY,), np.asarray),
        one("isotropy", "1", (TYPE1, TYPE2), lambda t, u: t * np.abs(u), least=_least_isotropy),
        one("smallest_transmission", per, (TYPE1,), np.asarray, least=_least_type1),
        one("largest_transmission", per, (TYPE2,), _reciprocal, most=_most_transmission),
        one(REGULAR, "1", (TYPE1, TYPE2, HOLD, REGULARITY), _regular, signed=True, least=least_regularity),
    ]
    if len(robot.kinematics.actuated_names) == robot.kinematics.mobility:
        found.append(one("type2_signed", drive, (TYPE2,), np.asarray, signed=True))
    return found


def _reciprocal(type2: Array) -> Array:
    size = np.abs(type2)
    return np.where(size * UNLIMITED > 1.0, 1.0 / np.maximum(size, 1.0 / UNLIMITED), np.inf)


def _regular(type1: Array, type2: Array, hold: Array, regularity: Array) -> Array:
    return np.minimum(np.minimum(type1, np.abs(type2)), np.minimum(hold, regularity)) - SINGULAR


def quantities(robot: AnalysedRobot, assumed: Assumed = NOTHING_MORE) -> dict[str, Quantity]:
    """All quantities of a robot by name, without joint positions and single directions."""
    found = {one.name: one for one in _of_limbs(robot) if one.name != REGULAR}
    for name in (*DRIVEN, "natural_frequency", *STIFFNESSES, "sag"):
        with suppress(AnalysisError):  # the robot has no such limits or degrees of freedom, or nothing is assumed
            found[name] = find_quantity(robot, name, assumed)
    return found


def find_quantity(robot: AnalysedRobot, name: str, assumed: Assumed = NOTHING_MORE) -> Quantity:
    """A quantity of `quantities`, `joint:NAME` for a joint's position, or `force:DIRECTION` and the like."""
    if name == CLEARANCE:
        return _clearance(robot)
    if name == INSIDE:
        meaning = "distance of the joints from their limits, [m] or [rad]"
        room = least_joint_room
        return Quantity(INSIDE, "1", meaning, lambda b: joint_room(b.configuration), signed=True, least=room)
    if name.partition(":")[0] in DRIVEN:
        return drive_quantity(robot, name, assumed.sensors)
    if name.startswith(JOINT):
        return joint_position(robot, name.removeprefix(JOINT))
    if name == "natural_frequency":
        return _frequency(robot, assumed.stiffness)
    if name == "sag" or name.partition(":")[0] in STIFFNESSES:
        return _elastic(robot, name, assumed.stiffness)
    known = {one.name: one for one in _of_limbs(robot)}
    if name not in known:
        raise AnalysisError(f"quantity {name}", "there is none of that name", remedy_for(name))
    return known[name]


def joint_position(robot: AnalysedRobot, name: str) -> Quantity:
    """The position of a limb's joint, passive or driven."""
    kinematics = robot.kinematics
    columns = [int(c) for c in kinematics.engine.body_column[2:] if c >= 0]
    names = [kinematics.joint_names[c] for c in columns]
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1) or names[:1]
        raise AnalysisError(f"joint {name}", "no limb has one of that name", f"such as {near[0]}")
    number = WIDTH + columns[names.index(name)]
    unit = kinematics.engine.names.units[name]
    return Quantity(JOINT + name, unit, f"position of {name}", lambda b: b.number(number), (number,), signed=True)


def user_quantity(
    name: str, unit: str, function: Callable[[Array], Array], meaning: str = "", version: str | None = None
) -> Quantity:
    """A quantity that a Python function of poses (n, 7) computes, (n,), in an SI unit, "1" where it has none.

    A journal needs a `version`: change it when the function computes something else. `AnalysisError`: no unit.
    """
    if not unit:
        raise AnalysisError(f"quantity {name}", "it has no unit", "give one; '1' for a pure number")

    def evaluate(batch: Batch) -> Array:
        values = np.asarray(function(batch.poses), dtype=np.float64)
        if values.shape != (len(batch.poses),):
            problem = f"the function returned an array of shape {values.shape} for {len(batch.poses)} poses"
            raise AnalysisError(f"quantity {name}", problem, "return a number for each pose")
        return values

    return Quantity(name, unit, meaning or name, evaluate, version=version)


def _clearance(robot: AnalysedRobot) -> Quantity:
    of, meaning = robot.clearance, f"least distance between bodies, by their {robot.clearance.source}"
    near, causes = Batch.clearance, tuple(of.names)
    return Quantity(CLEARANCE, "m", meaning, lambda b: b.clearance()[0], of.needs, near=near, causes=causes)


def _elastic(robot: AnalysedRobot, name: str, drives: float | None) -> Quantity:
    kind, colon, word = name.partition(":")
    elastic, part = Stiffnesses(robot, drives), slice(3, 6) if kind == STIFFNESSES[1] else slice(0, 3)
    direction = _direction(name, word) if colon else None

    def of(system: ElasticSystem) -> Array:
        if kind == "sag":
            return np.linalg.norm(system.displacement(system.sprung(system.weights()))[..., :3, 0], axis=-1)
        whole, squares = system.displacement(system.pushed(np.eye(6))), scaling(system.length) ** 2
        C = whole[..., part, part]
        most = np.linalg.eigvalsh(C)[..., -1] if direction is None else direction @ C @ direction
        largest = (squares * np.diagonal(whole, axis1=-2, axis2=-1)).max(axis=-1)
        soft = squares[part.start] * most > STIFF * largest
        return np.where(soft, 1.0 / np.where(soft, most, 1.0), np.inf)

    def evaluate(batch: Batch) -> Array:
        values, there = np.full(len(batch.poses), np.nan), np.flatnonzero(batch.number(REACH) >= 0.0)
        if len(there):
            values[there] = elastic.over(batch.configuration.rows(there), of)
        return values

    if kind == "sag":
        meaning, unit = "how far the platform's origin sags under the robot's weight and springs", "m"
    else:
        load, unit = ("moment", "N m/rad") if kind == STIFFNESSES[1] else ("force", "N/m")
        along = "in the softest direction" if direction is None else _where(direction)
        meaning = f"a {load} alone at the platform's origin over the displacement along it, {along}"
    drives_text = "" if drives is None else f", drives of {drives:g}"
    wrenches = np.zeros((6, 3 if direction is None else 1))
    wrenches[part] = np.eye(3) if direction is None else direction[:, None]
    sides = (_least_sag, _most_sag) if kind == "sag" else (_least_stiffness, _most_stiffness)
    least, most = (partial(one, drives=elastic.structure.drives, wrenches=wrenches) for one in sides)
    text, recorded = f"{meaning}{drives_text}", ElasticOverBoxes(elastic)
    about = Quantity(name, unit, text, evaluate, version=repr(drives), slow=True, recorded=recorded)
    return replace(about, least=least, most=most)


def _structure(found: Enclosure, drives: float) -> ElasticOverBoxes:
    structure = found.encloser.more
    assert isinstance(structure, ElasticOverBoxes)
    assert structure.elastic.structure.drives == drives
    return structure


def _least_stiffness(found: Enclosure, drives: float, wrenches: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray((1.0 - _ROUNDED) / _structure(found, drives).most_compliance(found, wrenches))


def _most_stiffness(found: Enclosure, drives: float, wrenches: Array) -> Array:
    C = _structure(found, drives).displacements(found, wrenches)[..., :-1]
    v = Form.exactly(np.linalg.eigh(0.5 * (C.middle + np.swapaxes(C.middle, -1, -2)))[1][..., -1:])
    softest = (v.T @ C @ v).lower[:, 0, 0]
    return np.where(softest > 0.0, MORE / np.where(softest > 0.0, softest, 1.0), np.inf)


def _least_sag(found: Enclosure, drives: float, wrenches: Array) -> Array:
    sag = _structure(found, drives).displacements(found, wrenches)[..., -1]
    return np.asarray(np.linalg.norm(np.maximum(np.maximum(sag.lower, -sag.upper), 0.0), axis=-1) / MORE)


def _most_sag(found: Enclosure, drives: float, wrenches: Array) -> Array:
    sag = _structure(found, drives).displacements(found, wrenches)[..., -1]
    return np.asarray(np.linalg.norm(sag.magnitude, axis=-1) * MORE)


def _frequency(robot: AnalysedRobot, stiffness: float | None) -> Quantity:
    if stiffness is None:
        raise AnalysisError("natural_frequency", "it depends on the stiffness of the drives", "give the stiffness")
    if not 0.0 < stiffness < np.inf:
        raise AnalysisError("stiffness", f"{stiffness:g} is not valid", "give one above zero")
    unit = "N/m" if robot.actuator_unit == "m" else "N m/rad"

    def evaluate(batch: Batch) -> Array:
        values = np.full(len(batch.poses), np.nan)
        for k in np.flatnonzero(batch.number(REACH) >= 0.0):
            with suppress(StiffnessError):  # a singular configuration
                at = batch.configuration.rows(np.array([k]), ())
                values[k] = float(natural_frequencies(robot.dynamics, at, stiffness).frequency[0]) / (2.0 * np.pi)
        return values

    meaning = f"lowest natural frequency on drives of stiffness {stiffness:g} {unit}"
    return Quantity("natural_frequency", "Hz", meaning, evaluate, version=repr(stiffness), slow=True)


def requirement(robot: AnalysedRobot, text: str, assumed: Assumed = NOTHING_MORE) -> Requirement:
    """Read a requirement, such as "type2 > 0.2 rad/m", "joint:limb1_arm < 60 deg" or "no singularity"."""
    words = " ".join(text.split())
    if words in (INSIDE, REGULAR):
        return Requirement(find_quantity(robot, words), 0.0, text=words)
    if words.replace(" ", "") == WITHIN_LIMITS.replace(" ", ""):
        return Requirement(find_quantity(robot, "spare_effort"), 0.0, text=WITHIN_LIMITS)
    bound = read_bound(text)
    name = bound.name
    if name == "psi":  # all velocity transmission factors
        name = "smallest_transmission" if bound.above else "largest_transmission"
    quantity = find_quantity(robot, name, assumed)
    return Requirement(quantity, bound.in_si(quantity.unit), bound.above, str(bound))


def drive_quantity(robot: AnalysedRobot, name: str, sensors: tuple[float, ...] = ()) -> Quantity:
    """What the drives of a robot provide: a name of `DRIVEN`, with a direction if along one alone.

    Directions of speeds, forces and moments: `force:z`, `speed:-x`, `force:1,0,-1` in the base frame. `sensors` are as
    in `Assumed`. `AnalysisError` where the robot has no such limits, degree of freedom or sensor errors.
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
        raise AnalysisError(f"quantity {name}", f"'{word}' is not a direction", remedy)
    return np.asarray(vector / length)


def _where(direction: Array | None) -> str:
    if direction is None:
        return "in every direction"
    return f"in the direction ({', '.join(f'{v:.3g}' for v in direction + 0.0)}) of the base"


def _unlimited(robot: AnalysedRobot, name: str, what: str, limits: Array) -> None:
    missing = [n for n, v in zip(robot.kinematics.actuated_names, limits, strict=True) if not np.isfinite(v)]
    if missing:
        problem = f"the description sets {missing[0]} no limit of {what}"
        raise AnalysisError(f"quantity {name}", problem, f'write <limit {what}="..."/> into the joint')


def _speed(robot: AnalysedRobot, name: str, direction: Array | None, turning: bool) -> Quantity:
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
        problem = "the platform cannot move that way"
        raise AnalysisError(f"quantity {name}", problem, "choose one of its degrees of freedom")
    text = "turning speed without translation" if turning else "speed without rotation"
    meaning = f"largest {text} that the platform's origin can have {_where(direction)}, within the limits of the drives"
    evaluate = partial(_speeds, limits=limits, coefficients=coefficients)
    return Quantity(name, "rad/s" if turning else "m/s", meaning, evaluate)


def _speeds(batch: Batch, limits: Array, coefficients: Array) -> Array:
    """Distance of the nearest face of the polytope |K v| <= limits, in directions within a constant space."""
    rates = batch.rates @ coefficients / limits[:, None]
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / np.linalg.norm(rates, axis=2).max(axis=1))


def _force(robot: AnalysedRobot, name: str, direction: Array | None, turning: bool) -> Quantity:
    limits = robot.kinematics.mechanism.effort_range
    kind, without = ("moment", "force") if turning else ("force", "moment")
    _unlimited(robot, name, "effort", np.maximum(-limits[0], limits[1]))
    columns = np.eye(3) if direction is None else direction[:, None]
    none = np.zeros_like(columns)
    wrenches = np.concatenate([none, columns] if turning else [columns, none])
    evaluate = partial(_forces, limits=limits, wrenches=wrenches)
    if np.isinf(evaluate(Batch(robot, robot.kinematics.engine.home_row.copy()))).all():
        problem = "the structure alone carries it: the platform has no degree of freedom there"
        remedy = f"take {without}" if direction is None else "choose one of its degrees of freedom"
        raise AnalysisError(f"quantity {name}", problem, remedy)
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
        held = np.einsum("nmf,nm->nf", K, 0.5 * (most + least) - weight[known])
        loads = np.swapaxes(batch.configuration.subspace[known], 1, 2) @ wrenches
        reach[known] = least_reach(rows, held, loads)
    return reach


def _error(robot: AnalysedRobot, name: str, sensors: tuple[float, ...]) -> Quantity:
    if not sensors:
        remedy = "give them: --sensor-error NUMBER UNIT, or Analysis(..., sensors=...)"
        raise AnalysisError(f"quantity {name}", "it depends on the errors of the drives' sensors", remedy)
    kinematics, turning = robot.kinematics, name in TURNING
    m = len(kinematics.actuated_names)
    if len(sensors) not in (1, m) or not 0.0 < min(sensors) <= max(sensors) < np.inf:
        raise AnalysisError(f"sensor errors {sensors}", "they are not valid", f"give one positive number, or {m}")
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


def _effort_at_rest(robot: AnalysedRobot) -> Quantity:
    meaning = "largest effort of a drive that holds the robot against gravity"
    least, most = robot.kinematics.mechanism.effort_range
    if shared(robot.kinematics):
        meaning += ", shared within their ranges; infinite where these do not hold it"
    else:
        least, most = np.full_like(least, -np.inf), np.full_like(most, np.inf)
    one_way = robot.kinematics.mechanism.one_way_actuators.any()
    over = None if one_way else partial(most_effort, least=least, most=most)
    return Quantity(EFFORTS[0], _unit(robot), meaning, lambda b: np.abs(b.efforts_at_rest).max(axis=1), most=over)


def _spare_effort(robot: AnalysedRobot) -> Quantity:
    least, most = robot.kinematics.mechanism.effort_range
    if not np.isfinite([least, most]).any():
        problem, remedy = "the description has no limits of effort", "name one, such as 'effort_at_rest < 20 N m'"
        raise AnalysisError(f"requirement '{WITHIN_LIMITS}'", problem, remedy)
    meaning = "how far the efforts that hold the robot against gravity are from the ends of the drives' ranges"

    def evaluate(batch: Batch) -> Array:
        return np.asarray(np.minimum(batch.efforts_at_rest - least, most - batch.efforts_at_rest).min(axis=1))

    over = partial(least_spare, least=least, most=most)
    return Quantity(EFFORTS[1], _unit(robot), meaning, evaluate, signed=True, least=over)


def _unit(robot: AnalysedRobot) -> str:
    return {"m": "N", "rad": "N m"}.get(robot.actuator_unit, "N or N m")
