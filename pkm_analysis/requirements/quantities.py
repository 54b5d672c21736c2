# SPDX-License-Identifier: Apache-2.0
"""Named scalars of a pose, each with its unit, for many poses at once."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.kernels.pose_quantities import HOLD, LIMIT, REACH, REGULARITY, TYPE1, TYPE2, UNLIMITED, WIDTH
from pkm_analysis.robot import Robot
from pkm_description.mechanism import Array
from pkm_dynamics.natural_frequencies import StiffnessError, natural_frequencies

JOINT = "joint:"
CLEARANCE = "clearance"
NOTHING = 1e-6  # of a margin: rounding
EVERYWHERE = "singular of type 2 everywhere: whatever the drives do, they never hold the platform"


class Batch:
    """Poses, and what was computed of them.

    Args:
        robot: whose.
        poses: (n, 7).
        wanted: numbers of `pose_quantities` that are computed together.
    """

    def __init__(self, robot: Robot, poses: Array, wanted: tuple[int, ...]) -> None:
        self.robot = robot
        self.poses = poses
        self._wanted = tuple(dict.fromkeys((REACH, *wanted)))

    @cached_property
    def _numbers(self) -> Array:
        return self.robot.evaluator.numbers(self.poses, self._wanted)

    def number(self, which: int) -> Array:
        """A number (n,) of `pose_quantities`, one of those wanted."""
        return np.asarray(self._numbers[self._wanted.index(which)])

    def clearance(self, bound: float = np.inf) -> tuple[Array, NDArray[np.int64]]:
        """Least distances (n,) [m] between bodies, on the right side of a bound, and the pairs they are between."""
        known = np.flatnonzero(self.number(REACH) >= 0.0)
        values, pairs = np.full(len(self.poses), np.nan), np.zeros(len(self.poses), dtype=np.int64)
        if len(known):
            clearance = self.robot.clearance
            joints = np.array([self.number(k)[known] for k in clearance.needs])
            values[known], pairs[known] = clearance.of(self.poses[known], joints, bound)
        return values, pairs

    @cached_property
    def gravity_efforts(self) -> Array:
        """Efforts (n, n_actuated) [N m, N] that hold the robot against gravity; NaN where there is no configuration."""
        return np.asarray(self.robot.dynamics.gravity(self.poses, mode=self.robot.mode).effort)


@dataclass(frozen=True)
class Quantity:
    """A scalar of a pose.

    Attributes:
        name: by which it is asked for.
        unit: SI, "1" where it has none.
        meaning: in words.
        evaluate: for a batch of poses, (n,); NaN where there is no configuration.
        needs: numbers of `pose_quantities` that it is computed from.
        signed: whether it changes its sign where it is zero, so that its zeros are borders.
        version: what tells it from others of its name, None where nothing does.
        near: values that are on the right side of a bound, where that is quicker, and for each pose the number of what
            the value is due to.
        causes: what values can be due to, in words.
    """

    name: str
    unit: str
    meaning: str
    evaluate: Callable[[Batch], Array]
    needs: tuple[int, ...] = ()
    signed: bool = False
    version: str | None = ""
    near: Callable[[Batch, float], tuple[Array, NDArray[np.int64]]] | None = None
    causes: tuple[str, ...] = ()

    @property
    def question(self) -> tuple[str, str]:
        """What tells it from all others, for a journal.

        Raises:
            AnalysisError: nothing does.
        """
        if self.version is None:
            problem = "nobody knows whether its function is the one of the last run"
            raise AnalysisError(f"quantity {self.name} in a journal", problem, "give user_quantity a version")
        return self.name, self.version

    def of(self, robot: Robot, poses: Array) -> Array:
        """Its values.

        Args:
            robot: whose.
            poses: (n, 7), in the motion space.

        Returns:
            (n,), NaN where the robot does not reach the pose.
        """
        batch = Batch(robot, poses, self.needs)
        return np.where(batch.number(REACH) >= 0.0, self.evaluate(batch), np.nan)


def quantities(robot: Robot, stiffness: float | None = None) -> dict[str, Quantity]:
    """All quantities that a robot has, by name.

    Args:
        robot: whose.
        stiffness: of its drives [N m/rad or N/m], for natural frequencies, which need it.

    Returns:
        The quantities, without the positions of joints.
    """
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
        _number("constraint", "1", "hold of the limbs on the blocked freedoms, 0 where they lose one", HOLD),
        _number("limb_regularity", "1", "0 where a limb's passive joints are not determined, up to 1", REGULARITY),
        Quantity(
            "margin",
            "1",
            f"the smaller of the numbers of type1 and type2{at}",
            lambda b: np.minimum(b.number(TYPE1), np.abs(b.number(TYPE2))),
            (TYPE1, TYPE2),
        ),
        Quantity(
            "condition",
            "1",
            f"smallest over largest singular value of the inverse Jacobian, 1 where isotropic{at}",
            lambda b: b.number(TYPE1) * np.abs(b.number(TYPE2)),
            (TYPE1, TYPE2),
        ),
        Quantity(
            "fastest_platform",
            per[0],
            f"largest velocity transmission factor{at}",
            lambda b: 1.0 / np.maximum(np.abs(b.number(TYPE2)), 1.0 / UNLIMITED),
            (TYPE2,),
        ),
        Quantity(
            "effort_at_rest",
            {"m": "N", "rad": "N m"}.get(unit, "N or N m"),
            "largest effort of a drive that holds the robot against gravity",
            lambda b: np.abs(b.gravity_efforts).max(axis=1),
        ),
    ]
    if square:
        meaning = f"type2 with the sign of the determinant, positive at home: it changes at type 2 alone{at}"
        found.append(Quantity("type2_signed", per[1], meaning, lambda b: b.number(TYPE2), (TYPE2,), signed=True))
    if stiffness is not None:
        text = f"lowest natural frequency on drives of stiffness {stiffness:g} {'N/m' if unit == 'm' else 'N m/rad'}"
        version = repr(stiffness)
        found.append(Quantity("natural_frequency", "Hz", text, lambda b: _frequencies(b, stiffness), version=version))
    return {one.name: one for one in found}


def find_quantity(robot: Robot, name: str, stiffness: float | None = None) -> Quantity:
    """A quantity by name.

    Args:
        robot: whose.
        name: of `quantities`, or `joint:NAME` for the position of a joint.
        stiffness: of its drives, for natural frequencies.

    Returns:
        The quantity.

    Raises:
        AnalysisError: there is none.
    """
    known = quantities(robot, stiffness)
    if name == CLEARANCE:
        return _clearance(robot)
    if name in known:
        return known[name]
    if name.startswith(JOINT):
        return joint_position(robot, name.removeprefix(JOINT))
    if name == "natural_frequency":
        raise AnalysisError(name, "it depends on the stiffness of the drives", "give the stiffness")
    near = difflib.get_close_matches(name, [*known, CLEARANCE], n=1)
    remedy = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(known)}, {CLEARANCE}, {JOINT}NAME"
    raise AnalysisError(f"quantity {name}", "there is none of that name", remedy)


def joint_position(robot: Robot, name: str) -> Quantity:
    """The position of a joint, passive or driven.

    Args:
        robot: whose.
        name: of the joint.

    Returns:
        The quantity.

    Raises:
        AnalysisError: there is no such joint in a limb.
    """
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
        name: of the quantity.
        unit: SI unit, "1" where it has none.
        function: of poses (n, 7), that returns (n,).
        meaning: in words.
        version: of the function, which a journal needs: another one where it computes something else.

    Returns:
        The quantity.

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
    """Least distance between bodies; made when it is asked for, for it needs a collision library."""
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
            vibration = natural_frequencies(batch.robot.dynamics, batch.poses[k], stiffness, mode=batch.robot.mode)
        except StiffnessError:  # a singular configuration
            continue
        values[k] = float(vibration.frequency[0]) / (2.0 * np.pi)
    return values
