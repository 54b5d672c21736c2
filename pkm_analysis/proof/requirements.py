# SPDX-License-Identifier: Apache-2.0
"""What is to hold at every pose, and by how much: bounds over boxes, and values at single poses.

Each requirement has a slack, positive where it holds: a lower bound over boxes, from enclosures, proves; the value at
one pose, from the ordinary kinematics and dynamics, refutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.indices.polytopes import all_signs, largest_displacements
from pkm_analysis.proof.enclosures import Encloser, Enclosure
from pkm_analysis.proof.matrices import MORE, TINY, Affine, Ball, least_norm, least_squares, less
from pkm_analysis.requirements.drive_quantities import efforts_at_rest, shared
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_kinematics.kinematics import Kinematics
from pkm_kinematics.solve.constraints import per_unit_speed
from pkm_kinematics.solve.singularity import Singularity, margins
from pkm_kinematics.status import Status

SINGULAR = 1e-9  # a margin below is zero up to rounding
FEW = 64  # poses at which constraints are evaluated, which is slow
HALVINGS = 60  # of a line between two poses: down to rounding


class Requirement(Protocol):
    """A condition to be proved at every pose."""

    @property
    def constraints(self) -> bool:
        """Whether it needs the closure equations' own matrix."""
        ...

    def over(self, encloser: Encloser, found: Enclosure) -> Array:
        """Lower bounds (n,) of the slack over boxes; minus infinity where unknown."""
        ...

    def at(self, kinematics: Kinematics, coordinates: Array, mode: int) -> Array:
        """Slack (n,) at task coordinates (n, c); NaN where the robot has no configuration."""
        ...

    def suspect(self, kinematics: Kinematics, coordinates: Array, mode: int) -> Array | None:
        """Coordinates (c,) between two of those given (n, c) where the slack is probably negative, or None."""
        ...


class _WithoutSuspects:
    """Requirements without a search between poses."""

    def suspect(self, kinematics: Kinematics, coordinates: Array, mode: int) -> Array | None:
        """See `Requirement`."""
        return None


@dataclass(frozen=True)
class Inside(_WithoutSuspects):
    """The limbs reach the platform, and all joints, passive ones too, are within their limits."""

    constraints = False

    def __str__(self) -> str:
        """As it is written in a question."""
        return "inside"

    def over(self, encloser: Encloser, found: Enclosure) -> Array:
        """See `Requirement`."""
        program, value = encloser.program, found.joints.value
        lower, upper = program.limits
        with np.errstate(invalid="ignore"):
            below = np.where(np.isfinite(lower), value[..., 0] - lower, np.inf)
            above = np.where(np.isfinite(upper), upper - value[..., 1], np.inf)
        reached = np.where(found.reach[..., 0] > 0.0, np.inf, found.reach[..., 0] - TINY)
        parts = [below, above, reached, self._coordinates(encloser, found)]
        least = np.where(found.decided, np.concatenate(parts, axis=1).min(axis=1, initial=np.inf), -np.inf)
        return np.where(self._turned_alike(encloser, found, least > 0.0), least, -np.inf)

    def _turned_alike(self, encloser: Encloser, found: Enclosure, asked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether the kinematics, too, find all corners of boxes inside: joints then have the same turns.

        They count a joint's turns on the straight way from home, which may pass a limb's base on either side: where
        ways differ in this, some of a box's corners are on each side.
        """
        alike = np.ones(len(found.boxes), dtype=np.bool_)
        if asked.any():
            k, boxes = found.boxes.shape[1], found.boxes[asked]
            corners = np.stack([boxes[:, np.arange(k), list(ends)] for ends in product((0, 1), repeat=k)], axis=1)
            coordinates = encloser.domain.coordinates(corners).reshape(-1, len(encloser.domain.origin))
            slack = self.at(encloser.kinematics, coordinates, encloser.mode).reshape(corners.shape[:2])
            alike[asked] = (slack >= -1e-12).all(axis=1)
        return alike

    def _coordinates(self, encloser: Encloser, found: Enclosure) -> Array:
        """Distance of the coordinates from their limits (n, 2 c)."""
        domain, engine = encloser.domain, encloser.kinematics.engine
        ends = domain.directions * found.boxes[:, None, :, 0], domain.directions * found.boxes[:, None, :, 1]
        lowest = domain.origin + np.minimum(*ends).sum(axis=-1)
        highest = domain.origin + np.maximum(*ends).sum(axis=-1)
        chain = engine.task.chain[1:]
        lower, upper = (limit[chain["column"]] for limit in engine.ranges.limits)
        # Angles are read from poses: those nearest to home, of which three have two readings, half a turn apart.
        near = np.where(chain["prismatic"] == 1, np.inf, np.pi)
        if (chain["prismatic"] == 0).sum() == 3:
            near[int(np.argmin(chain["prismatic"]))] = 0.5 * np.pi
        lower, upper = np.maximum(lower, chain["home"] - near), np.minimum(upper, chain["home"] + near)
        rounding = 1e-15 * (np.abs(lowest) + np.abs(highest))
        return np.concatenate([lowest - lower - rounding, upper - highest - rounding], axis=1)

    def at(self, kinematics: Kinematics, coordinates: Array, mode: int) -> Array:
        """See `Requirement`."""
        found = kinematics.inverse(coordinates, mode=mode or None)
        lower, upper = kinematics.engine.ranges.limits
        with np.errstate(invalid="ignore"):
            slack = np.minimum(found.joints - lower, upper - found.joints).min(axis=-1)
        return np.where(np.isin(found.status, (Status.CONVERGED, Status.JOINT_LIMIT)), slack, -np.inf)


@dataclass(frozen=True)
class NoSingularity:
    """No singularity of any type: 1, 2, of the constraints, or inside a limb.

    With the actuators locked the closure equations determine all joints and the platform; actuator rates are bounded.
    """

    constraints = True

    def __str__(self) -> str:
        """As it is written in a question."""
        return "no singularity"

    def over(self, encloser: Encloser, found: Enclosure) -> Array:
        """See `Requirement`."""
        least = closure_system(encloser, found).regularity()
        n = encloser.program.n_actuated
        bounded = np.isfinite(found.joints.rate[:, :n]).all(axis=(1, 2, 3))
        return np.where(found.decided & bounded, least, -np.inf)

    def at(self, kinematics: Kinematics, coordinates: Array, mode: int) -> Array:
        """See `Requirement`."""
        found = jacobian_margins(kinematics, coordinates, mode)
        least = np.minimum(found.slowest_platform, found.slowest_actuation)
        few = np.unique(np.linspace(0, len(coordinates) - 1, FEW).astype(int))
        whole = kinematics.singularity(coordinates[few], mode=mode or None)
        least[few] = np.minimum(least[few], np.minimum(whole.constraint_hold, whole.limb_regularity))
        return np.asarray(least - SINGULAR)

    def suspect(self, kinematics: Kinematics, coordinates: Array, mode: int) -> Array | None:
        """See `Requirement`: between two poses whose Jacobians have determinants of opposite sign."""
        sign = jacobian_margins(kinematics, coordinates, mode).determinant_sign
        if not ((sign > 0.0).any() and (sign < 0.0).any()):
            return None
        below, above = coordinates[int(np.nanargmin(sign))], coordinates[int(np.nanargmax(sign))]
        for _ in range(HALVINGS):
            middle = 0.5 * below + 0.5 * above
            here = jacobian_margins(kinematics, middle[None], mode).determinant_sign[0]
            if np.isnan(here):
                return None
            below, above = (middle, above) if here < 0.0 else (below, middle)
        return np.asarray(0.5 * below + 0.5 * above)


@dataclass(frozen=True)
class Margin(_WithoutSuspects):
    """A bound on the singular values of the Jacobian, by one of their usual names.

    * `type1`: least platform speed at unit actuator speed, the smallest transmission factor;
    * `type2`: least actuator speed at unit platform speed, one over the largest transmission factor;
    * `margin`: the smaller of the two;
    * `psi`: all transmission factors, platform speed by actuator speed.

    Rotations are scaled by the robot's characteristic length.
    """

    name: str
    bound: float
    above: bool  # whether the quantity must be larger than the bound, or smaller
    unit: str = ""  # of the bound, for texts
    constraints = False

    def __post_init__(self) -> None:
        """Refuse combinations that no bound covers."""
        if self.name not in ("type1", "type2", "margin", "psi"):
            raise AnalysisError(f"requirement '{self.name}'", "it is no margin", "take type1, type2, margin or psi")
        if self.name != "psi" and not self.above:
            raise AnalysisError(
                f"requirement '{self}'", "a margin has no upper bound to prove", "ask for more than that"
            )
        if not self.bound > 0.0:
            raise AnalysisError(f"requirement '{self}'", "the bound is not positive", "take a positive one")

    def __str__(self) -> str:
        """As it is written in a question."""
        return f"{self.name} {'>' if self.above else '<'} {self.bound:g} {self.unit}".rstrip()

    @property
    def _of_largest(self) -> bool:
        """Whether the largest singular value of the inverse Jacobian matters."""
        return self.name in ("type1", "margin") or (self.name == "psi" and self.above)

    @property
    def _of_smallest(self) -> bool:
        return self.name in ("type2", "margin") or (self.name == "psi" and not self.above)

    def over(self, encloser: Encloser, found: Enclosure) -> Array:
        """See `Requirement`."""
        K = inverse_jacobian(encloser, found)
        least = np.full(len(found.boxes), np.inf)
        if self._of_largest:
            least = np.minimum(least, (1.0 - 1e-15) / K.largest() - self.bound)
        if self._of_smallest:
            bound = self.bound if self.above else 1.0 / self.bound
            slack = K.smallest() - bound
            least = np.minimum(least, np.where(bound == self.bound, slack, slack - 1e-15 * bound))
        return np.where(found.decided, least, -np.inf)

    def at(self, kinematics: Kinematics, coordinates: Array, mode: int) -> Array:
        """See `Requirement`."""
        found = jacobian_margins(kinematics, coordinates, mode)
        least = np.full(len(coordinates), np.inf)
        if self._of_largest:
            least = np.minimum(least, found.slowest_platform - self.bound)
        if self._of_smallest:
            least = np.minimum(least, found.slowest_actuation - (self.bound if self.above else 1.0 / self.bound))
        return np.where(np.isnan(found.slowest_platform), np.nan, least)


@dataclass(frozen=True)
class Accuracy(_WithoutSuspects):
    """A bound on the platform's error for the worst sensor errors, to first order: the Jacobian times the errors."""

    sensors: tuple[float, ...]  # largest errors, one for each actuator or one for all [rad, m]
    bound: float  # m, or rad
    turning: bool = False  # error of orientation, not of position
    constraints = False

    def __str__(self) -> str:
        """As it is written in a question."""
        return f"turning_error < {self.bound:g} rad" if self.turning else f"position_error < {self.bound:g} m"

    def _errors(self, n: int) -> Array:
        return np.broadcast_to(np.asarray(self.sensors, dtype=float), (n,))

    def _part(self, twists: Array) -> Array:
        return twists[3:] if self.turning else twists[:3]

    def over(self, encloser: Encloser, found: Enclosure) -> Array:
        """See `Requirement`."""
        errors = np.diag(self._errors(encloser.program.n_actuated))
        moved = least_squares(inverse_jacobian(encloser, found), Affine.constant(errors, found.half))
        part = self._part(encloser.twists)
        worst = _largest_of_signs(Ball(part, np.zeros_like(part)) @ moved)
        return np.where(found.decided, self.bound - worst, -np.inf)

    def at(self, kinematics: Kinematics, coordinates: Array, mode: int) -> Array:
        """See `Requirement`."""
        J = kinematics.forward_jacobian(coordinates, mode=mode or None)
        part = J[:, 3:] if self.turning else J[:, :3]
        return np.asarray(self.bound - largest_displacements(part, self._errors(J.shape[-1])))


@dataclass(frozen=True)
class Effort(_WithoutSuspects):
    """The actuators hold the robot at rest against its weight, within their ranges of effort.

    Redundant ones are distributed as by the controller: least norm within their ranges, and where the least norm itself
    is within these, it is that. Of winches, which only pull, it is proved that tensions within the ranges exist: their
    middle plus the missing part by least norm (Pott, Bruckmann and Mikelsons, "Closed-form force distribution for
    parallel wire robots", 2009). The size of the controller's own tensions is not proved, as the set of those at the
    ends of their ranges changes from pose to pose.
    """

    dynamics: Dynamics
    bounds: tuple[float, ...] = ()  # one for each actuator or one for all [N m, N]; those of the description where none
    constraints = False

    def __post_init__(self) -> None:
        """Refuse bounds for winches: nothing is proved of them."""
        if self.bounds and self.dynamics.kinematics.mechanism.one_way_actuators.any():
            problem = (
                "how large the tensions are is not proved of drives that only pull or push: which of them are at the "
                "ends of their ranges changes from pose to pose"
            )
            remedy = (
                "ask for 'effort_at_rest < limits', that there are tensions within the ranges; or map effort_at_rest"
            )
            raise AnalysisError(f"requirement '{self}'", problem, remedy)

    def __str__(self) -> str:
        """As it is written in a question."""
        return f"effort_at_rest < {', '.join(f'{b:g}' for b in self.bounds) or 'limits'}"

    @cached_property
    def _range(self) -> tuple[Array, Array]:
        """Least and largest effort of each actuator, both (m,)."""
        kinematics = self.dynamics.kinematics
        ranges = kinematics.mechanism.effort_range
        if not self.bounds:
            if not np.isfinite(ranges).any():
                problem, remedy = "the description has no limits of effort", "name one, such as 'effort_at_rest < 20'"
                raise AnalysisError(f"requirement '{self}'", problem, remedy)
            return ranges
        bounds = np.broadcast_to(np.asarray(self.bounds, dtype=float), (len(kinematics.actuated_names),))
        if not shared(kinematics):
            return -bounds, bounds
        return np.maximum(ranges[0], -bounds), np.minimum(ranges[1], bounds)

    @cached_property
    def _middle(self) -> Array:
        """Efforts (m,) to which those of least norm are added: the middle of ranges of one sign, else zero."""
        least, most = self._range
        ends = np.where(np.isfinite(least), least, most), np.where(np.isfinite(most), most, least)
        return np.where((least >= 0.0) | (most <= 0.0), 0.5 * (ends[0] + ends[1]), 0.0)

    def over(self, encloser: Encloser, found: Enclosure) -> Array:
        """See `Requirement`."""
        energy, middle = found.energy, self._middle
        weight = Affine.of(energy.centre_rate[:, 0, :, None], energy.bend[:, 0, :, :, None], found.half)
        K = inverse_jacobian(encloser, found)
        if middle.any():
            tau = least_norm(K, less(weight, K.T, middle[:, None])) + Ball(middle[:, None], np.zeros((len(middle), 1)))
        else:
            tau = least_norm(K, weight)
        least, most = self._range
        with np.errstate(invalid="ignore"):
            slack = np.minimum(tau.lower[..., 0] - least, most - tau.upper[..., 0]).min(axis=-1)
        return np.where(found.decided & ~np.isnan(slack), slack, -np.inf)

    def at(self, kinematics: Kinematics, coordinates: Array, mode: int) -> Array:
        """See `Requirement`: minus infinity where no efforts within the ranges hold the robot."""
        least, most = self._range
        found = efforts_at_rest(self.dynamics, coordinates, mode or None)
        slack = np.minimum(found.effort - least, most - found.effort).min(axis=-1)
        return np.where(found.status == Status.EFFORT_LIMIT, -np.inf, slack)


def inverse_jacobian(encloser: Encloser, found: Enclosure) -> Affine:
    """Rates of the actuators per unit speeds of the platform's degrees of freedom, over boxes."""
    n, joints = encloser.program.n_actuated, found.joints
    return Affine.of(joints.centre_rate[:, :n], np.moveaxis(joints.bend[:, :n], 2, 1), found.half)


def closure_system(encloser: Encloser, found: Enclosure) -> Affine:
    """The closure equations by passive joints and the platform's six velocities, over boxes."""
    program, jets = encloser.program, found.system
    n, k = found.half.shape
    rows, columns = program.entries.T
    centre = np.repeat(np.broadcast_to(program.system[None, ..., None], (n, *program.system.shape, 1)), 2, axis=-1)
    slopes = np.zeros((n, k, *program.system.shape, 2))
    centre[:, rows, columns] = jets.centre
    slopes[:, :, rows, columns] = np.moveaxis(jets.slope, 2, 1)
    return Affine.of(centre, slopes, found.half)


def jacobian_margins(kinematics: Kinematics, coordinates: Array, mode: int) -> Singularity:
    """Margins of types 1 and 2 alone at task coordinates (n, c), as `Kinematics.singularity` has them."""
    S = np.nan_to_num(kinematics.subspace(coordinates, mode=mode or None))
    K = kinematics.inverse_jacobian(coordinates, mode=mode or None) @ S
    unit = per_unit_speed(K, S, kinematics.characteristic_length)
    none = np.full(len(K), np.nan)
    return margins(unit, none, none, kinematics.characteristic_length)


def _largest_of_signs(A: Ball) -> Array:
    """Upper bounds (n,) of the length of A s for all vectors s of entries between -1 and 1, A (n, 3, m)."""
    signs = all_signs(A.middle.shape[-1])
    sums = A @ Ball(signs, np.zeros_like(signs))
    return np.asarray(np.sqrt((sums.magnitude**2).sum(axis=-2)).max(axis=-1) * MORE)
