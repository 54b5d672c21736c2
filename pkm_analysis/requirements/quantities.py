# SPDX-License-Identifier: Apache-2.0
"""Named scalars of a pose, each with its unit, for many poses at once, and bounds on them."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysed_robot import Robot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.kernels.pose_quantities import HOLD, LIMIT, REACH, REGULARITY, TYPE1, TYPE2, UNLIMITED, WIDTH
from pkm_analysis.requirements.drive_quantities import (
    DRIVEN,
    NOTHING_MORE,
    Assumed,
    drive_quantity,
    efforts_at_rest,
    shared,
)
from pkm_analysis.requirements.names import CLEARANCE, JOINT, remedy_for
from pkm_analysis.requirements.quantity import Batch, Quantity
from pkm_analysis.requirements.words import read_bound
from pkm_description.mechanism import Array
from pkm_dynamics.natural_frequencies import StiffnessError, natural_frequencies

NOTHING = 1e-6  # of a margin: rounding
EVERYWHERE = "singular of type 2 everywhere: whatever the drives do, they never hold the platform"


def singular_everywhere(type2: Array) -> bool:
    """Whether the margin `type2` vanishes at all poses where it is finite; False without such poses."""
    known = np.abs(type2[np.isfinite(type2)])
    return bool(known.size and known.max() < NOTHING)


def finite_nowhere(quantity: Quantity, where: str, everywhere: bool) -> AnalysisError:
    """The error for a quantity without a finite value at poses `where`, singular at all of them or not."""
    why = f": the robot is {EVERYWHERE}" if everywhere else ""
    problem = f"it is finite at no pose where all conditions hold, over {where}{why}"
    return AnalysisError(quantity.name, problem, "take another quantity, as type2")


def quantities(robot: Robot, assumed: Assumed = NOTHING_MORE) -> dict[str, Quantity]:
    """All quantities of a robot by name, without joint positions and single directions."""
    stiffness = assumed.stiffness
    unit, length = robot.actuator_unit, robot.kinematics.characteristic_length
    at = f"; rotations count at {length:.4g} m"
    per = {"m": ("1", "1"), "rad": ("m/rad", "rad/m")}.get(unit, ("m/(m or rad)", "(m or rad)/m"))
    square = len(robot.kinematics.actuated_names) == robot.kinematics.mobility
    found = [
        _number("reach", "1", "how far the limbs are from stretched or folded, 0 there; negative out of reach", REACH),
        _number("joint_limits", "rad", f"distance from the nearest joint limit, of slides per {length:.4g} m", LIMIT),
        _number("type1", per[0], f"slowest platform for unit speed of the drives, 0 at type 1{at}", TYPE1),
        Quantity(
            "type2",
            per[1],
            f"slowest drives for unit speed of the platform, 0 at type 2{at}",
            lambda b: np.abs(b.number(TYPE2)),
            (TYPE2,),
        ),
        _number("constraint", "1", "hold of the limbs on the blocked degrees of freedom, 0 where they lose one", HOLD),
        _number("limb_regularity", "1", "0 where a limb's passive joints are not determined, up to 1", REGULARITY),
        Quantity(
            "margin",
            "1",
            f"the smaller of the numbers of type1 and type2{at}",
            lambda b: np.minimum(b.number(TYPE1), np.abs(b.number(TYPE2))),
            (TYPE1, TYPE2),
        ),
        Quantity(
            "isotropy",
            "1",
            f"smallest over largest singular value of the inverse Jacobian, 1 where isotropic{at}",
            lambda b: b.number(TYPE1) * np.abs(b.number(TYPE2)),
            (TYPE1, TYPE2),
        ),
        _number("smallest_transmission", per[0], f"smallest velocity transmission factor{at}", TYPE1),
        Quantity(
            "largest_transmission",
            per[0],
            f"largest velocity transmission factor, platform speed by drive speed, infinite at type 2{at}",
            lambda b: np.where(np.abs(b.number(TYPE2)) * UNLIMITED > 1.0, 1.0 / np.abs(b.number(TYPE2)), np.inf),
            (TYPE2,),
        ),
        Quantity(
            "effort_at_rest",
            {"m": "N", "rad": "N m"}.get(unit, "N or N m"),
            "largest effort of a drive that holds the robot against gravity"
            + ", shared within their ranges; none where these do not hold it" * shared(robot.kinematics),
            lambda b: np.abs(efforts_at_rest(b.robot.dynamics, b.poses, b.robot.mode).effort).max(axis=1),
        ),
    ]
    if square:
        meaning = f"type2 with the sign of the determinant, positive at home: it changes at type 2 alone{at}"
        found.append(Quantity("type2_signed", per[1], meaning, lambda b: b.number(TYPE2), (TYPE2,), signed=True))
    if stiffness is not None:
        if not 0.0 < stiffness < np.inf:
            raise AnalysisError("stiffness", f"{stiffness:g} is none", "give one above zero")
        text = f"lowest natural frequency on drives of stiffness {stiffness:g} {'N/m' if unit == 'm' else 'N m/rad'}"
        version = repr(stiffness)
        found.append(Quantity("natural_frequency", "Hz", text, lambda b: _frequencies(b, stiffness), version=version))
    for name in DRIVEN:
        with suppress(AnalysisError):  # the robot has no such limits, or degrees of freedom
            found.append(drive_quantity(robot, name, assumed.sensors))
    return {one.name: one for one in found}


def find_quantity(robot: Robot, name: str, assumed: Assumed = NOTHING_MORE) -> Quantity:
    """A quantity of `quantities`, `joint:NAME` for a joint's position, or `force:DIRECTION` and the like."""
    if name == CLEARANCE:
        return _clearance(robot)
    if name.partition(":")[0] in DRIVEN:
        return drive_quantity(robot, name, assumed.sensors)
    known = quantities(robot, assumed)
    if name in known:
        return known[name]
    if name.startswith(JOINT):
        return joint_position(robot, name.removeprefix(JOINT))
    if name == "natural_frequency":
        raise AnalysisError(name, "it depends on the stiffness of the drives", "give the stiffness")
    raise AnalysisError(f"quantity {name}", "there is none of that name", remedy_for(name))


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
            raise AnalysisError(
                f"quantity {name}",
                f"the function returned an array of shape {values.shape} for {len(batch.poses)} poses",
                "return a number for each pose",
            )
        return values

    return Quantity(name, unit, meaning or name, evaluate, version=version)


def _number(name: str, unit: str, meaning: str, which: int) -> Quantity:
    return Quantity(name, unit, meaning, lambda b: b.number(which), (which,), signed=which in (REACH, LIMIT))


def _clearance(robot: Robot) -> Quantity:
    """Least distance between bodies; created on demand, as it needs a collision library."""
    clearance = robot.clearance
    return Quantity(
        CLEARANCE,
        "m",
        f"least distance between bodies, by their {clearance.source}",
        lambda b: b.clearance()[0],
        clearance.needs,
        near=Batch.clearance,
        causes=tuple(clearance.names),
    )


def _frequencies(batch: Batch, stiffness: float) -> Array:
    values = np.full(len(batch.poses), np.nan)
    for k in np.flatnonzero(batch.number(REACH) >= 0.0):
        try:
            vibration = natural_frequencies(
                batch.robot.dynamics, batch.robot.kinematics.at(batch.poses[k], mode=batch.robot.mode), stiffness
            )
        except StiffnessError:  # a singular configuration
            continue
        values[k] = float(vibration.frequency[0]) / (2.0 * np.pi)
    return values


@dataclass(frozen=True)
class Requirement:
    """quantity >= bound, or quantity <= bound; the bound is in the quantity's unit."""

    quantity: Quantity
    bound: float
    at_least: bool = True

    def slack(self, batch: Batch) -> Array:
        """Distance (n,) from the bound, not negative where it holds; -inf where unknown."""
        return self.judged(batch)[0]

    def judged(self, batch: Batch) -> tuple[Array, NDArray[np.int64]]:
        """`slack`, and for each pose (n,) the index of the quantity's cause that it is due to."""
        if self.quantity.near is not None:
            values, causes = self.quantity.near(batch, self.bound)
        else:
            values, causes = self.quantity.evaluate(batch), np.zeros(len(batch.poses), dtype=np.int64)
        slack = values - self.bound if self.at_least else self.bound - values
        return np.where(np.isnan(slack), -np.inf, slack), causes

    def __str__(self) -> str:
        """As it is written."""
        return f"{self.quantity.name} {'>=' if self.at_least else '<='} {self.bound:.6g}{self.quantity.suffix}"


def requirement(robot: Robot, text: str, assumed: Assumed = NOTHING_MORE) -> Requirement:
    """Read a requirement, such as "type2 > 0.2 rad/m" or "joint:limb1_arm < 60 deg", in SI units.

    `AnalysisError` where it is unreadable, the quantity is unknown, or the unit missing or wrong.
    """
    bound = read_bound(text)
    quantity = find_quantity(robot, bound.name, assumed)
    return Requirement(quantity, bound.in_si(quantity.unit), bound.above)
