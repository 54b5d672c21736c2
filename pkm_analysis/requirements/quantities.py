# SPDX-License-Identifier: Apache-2.0
"""Named scalars of a pose, each with its unit, for many poses at once and where it is known over boxes."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from pkm_analysis.analysed_robot import Robot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.kernels.pose_quantities import HOLD, LIMIT, REACH, REGULARITY, TYPE1, TYPE2, UNLIMITED, WIDTH
from pkm_analysis.proof.enclosures import Enclosure
from pkm_analysis.proof.over_boxes import joint_room, least_joint_room, least_regularity
from pkm_analysis.requirements.drive_quantities import DRIVEN, NOTHING_MORE, Assumed, drive_quantity
from pkm_analysis.requirements.grammar import CLEARANCE, INSIDE, JOINT, REGULAR, WITHIN_LIMITS, read_bound, remedy_for
from pkm_analysis.requirements.quantity import Batch, Quantity, Requirement
from pkm_description.mechanism import Array
from pkm_dynamics.natural_frequencies import StiffnessError, natural_frequencies

NOTHING = 1e-6  # of a margin: rounding
SINGULAR = 1e-9  # a margin below is zero up to rounding
EVERYWHERE = "singular of type 2 everywhere: whatever the drives do, they never hold the platform"
_ROUNDED = 1e-15  # a quotient of two numbers is off by less


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


def _least_condition(found: Enclosure) -> Array:
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
    "condition": "smallest over largest singular value of the inverse Jacobian, 1 where isotropic{at}",
    "smallest_transmission": "smallest velocity transmission factor{at}",
    "largest_transmission": "largest velocity transmission factor, platform by drive speed, infinite at type 2{at}",
    REGULAR: "the least margin from singularities of any type",
}


def _of_limbs(robot: Robot) -> list[Quantity]:
    """Quantities that the limbs alone have, from numbers of `pose_quantities`."""
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
        one("condition", "1", (TYPE1, TYPE2), lambda t, u: t * np.abs(u), least=_least_condition),
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


def quantities(robot: Robot, assumed: Assumed = NOTHING_MORE) -> dict[str, Quantity]:
    """All quantities of a robot by name, without joint positions and single directions."""
    found = {one.name: one for one in _of_limbs(robot) if one.name != REGULAR}
    for name in (*DRIVEN, "natural_frequency"):
        with suppress(AnalysisError):  # the robot has no such limits or degrees of freedom, or nothing is assumed
            found[name] = find_quantity(robot, name, assumed)
    return found


def find_quantity(robot: Robot, name: str, assumed: Assumed = NOTHING_MORE) -> Quantity:
    """A quantity of `quantities`, `joint:NAME` for a joint's position, or `force:DIRECTION` and the like."""
    if name == CLEARANCE:
        return _clearance(robot)
    if name == INSIDE:
        meaning = "distance of the joints from their limits, [m] or [rad]"
        evaluate = lambda b: joint_room(b.configuration)  # noqa: E731
        return Quantity(INSIDE, "1", meaning, evaluate, signed=True, least=least_joint_room)
    if name.partition(":")[0] in DRIVEN:
        return drive_quantity(robot, name, assumed.sensors)
    if name.startswith(JOINT):
        return joint_position(robot, name.removeprefix(JOINT))
    if name == "natural_frequency":
        return _frequency(robot, assumed.stiffness)
    known = {one.name: one for one in _of_limbs(robot)}
    if name not in known:
        raise AnalysisError(f"quantity {name}", "there is none of that name", remedy_for(name))
    return known[name]


def joint_position(robot: Robot, name: str) -> Quantity:
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
    """A quantity that a Python function computes.

    Args:
        unit: SI unit, "1" where it has none.
        function: of poses (n, 7), returns (n,).
        version: of the function, needed by a journal: change it when the function computes something else.

    Raises:
        AnalysisError: no unit.
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


def _clearance(robot: Robot) -> Quantity:
    """Least distance between bodies; created on demand, as it needs a collision library."""
    clearance = robot.clearance
    meaning, causes = f"least distance between bodies, by their {clearance.source}", tuple(clearance.names)
    evaluate = lambda b: b.clearance()[0]  # noqa: E731
    return Quantity(CLEARANCE, "m", meaning, evaluate, clearance.needs, near=Batch.clearance, causes=causes)


def _frequency(robot: Robot, stiffness: float | None) -> Quantity:
    if stiffness is None:
        raise AnalysisError("natural_frequency", "it depends on the stiffness of the drives", "give the stiffness")
    if not 0.0 < stiffness < np.inf:
        raise AnalysisError("stiffness", f"{stiffness:g} is none", "give one above zero")
    unit = "N/m" if robot.actuator_unit == "m" else "N m/rad"

    def evaluate(batch: Batch) -> Array:
        values = np.full(len(batch.poses), np.nan)
        for k in np.flatnonzero(batch.number(REACH) >= 0.0):
            with suppress(StiffnessError):  # a singular configuration
                at = batch.configuration.rows(np.array([k]), ())
                values[k] = float(natural_frequencies(robot.dynamics, at, stiffness).frequency[0]) / (2.0 * np.pi)
        return values

    meaning = f"lowest natural frequency on drives of stiffness {stiffness:g} {unit}"
    return Quantity("natural_frequency", "Hz", meaning, evaluate, version=repr(stiffness))


def requirement(robot: Robot, text: str, assumed: Assumed = NOTHING_MORE) -> Requirement:
    """Read a requirement, such as "type2 > 0.2 rad/m", "joint:limb1_arm < 60 deg" or "no singularity".

    `AnalysisError` where it is unreadable, the quantity is unknown, or the unit missing or wrong.
    """
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
