# SPDX-License-Identifier: Apache-2.0
"""Bounds of a robot over boxes of task coordinates: joints, Jacobian, energy, and quantities made of these."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.domain import Domain, corners
from pkm_analysis.indices import all_signs
from pkm_analysis.proof.kernels.enclose import MOST, enclose
from pkm_analysis.proof.kernels.intervals import SLOPE
from pkm_analysis.proof.matrices import MORE, TINY, Affine, Form, least_norm, least_squares, less
from pkm_analysis.proof.robot_program import Recordable, RobotProgram, record_robot
from pkm_description.mechanism import Array
from pkm_kinematics import Configuration
from pkm_kinematics.solve.singularity import per_unit_speed
from pkm_kinematics.status import closes
from pkm_runtime.chunks import map_chunks, slices

CHUNK = 256  # boxes
SAME = 1e-6  # rad, and of the robot's size: tolerance of the kinematics against these bounds


class Jets(NamedTuple):
    """Bounds, lower and upper along the last axis, of some quantities (q) over boxes (n)."""

    value: Array  # (n, q, 2)
    centre: Array  # (n, q, 2)
    slope: Array  # (n, q, k, 2)
    rate: Array  # (n, q, m, 2)
    centre_rate: Array  # (n, q, m, 2)
    bend: Array  # (n, q, k, m, 2)

    def at(self, *where: Any) -> Jets:
        """Those over some of the boxes, and of some quantities."""
        return Jets(*(part[where] for part in self))


@dataclass(frozen=True, eq=False)
class Enclosure:
    """A robot over boxes (n, k, 2) of a domain's parameters."""

    encloser: Encloser
    boxes: Array
    half: Array  # (n, k) how far the boxes' faces are from their centres, rounded up
    decided: NDArray[np.bool_]  # (n,) every branch is the recorded one, and every limb without a closed form determined
    reach: Array  # (n, r, 2) what must not be negative, so that the limbs reach the platform
    joints: Jets  # of `RobotProgram.joints`
    energy: Jets  # one
    entries: Jets  # of `RobotProgram.tables`

    def rows(self, at: NDArray[np.intp]) -> Enclosure:
        """The same over some of the boxes."""
        if len(at) == len(self.boxes):
            return self
        jets = (self.joints.at(at), self.energy.at(at), self.entries.at(at))
        return Enclosure(self.encloser, self.boxes[at], self.half[at], self.decided[at], self.reach[at], *jets)

    @cached_property
    def rates(self) -> Affine:
        """Rates of the actuators per unit speeds of the platform's degrees of freedom."""
        n, joints = self.encloser.program.n_actuated, self.joints
        return Affine.of(joints.centre_rate[:, :n], np.moveaxis(joints.bend[:, :n], 2, 1), self.half)

    def table(self, number: int) -> Affine:
        """The closure equations by passive joints and the platform's six velocities, 0, or what else was recorded.

        The remainder of an entry is that of its derivatives over the box, or of half its second ones, if it is less:
        what is a difference of large numbers, as the angle of a forearm to the base, has small second ones.
        """
        constants, where, first = self.encloser.program.tables[number]
        (n, k), (rows, columns) = self.half.shape, where.T
        jets = self.entries.at(slice(None), slice(first, first + len(where)))
        found = Affine.of(jets.centre[:, :, None], np.moveaxis(jets.slope, 2, 1)[..., None, :], self.half)
        if self.encloser.speeds is not None:
            found = found.or_less(self._by_second_derivatives(jets, self.encloser.speeds))
        centre, slopes, rest = (np.zeros((*shape, *constants.shape)) for shape in ((n,), (n, k), (n,)))
        centre += constants
        for whole, part in ((centre, found.centre), (slopes, found.slopes), (rest, found.rest)):
            whole[..., rows, columns] = part[..., 0]
        return Affine(centre, slopes, self.half, rest)

    def _by_second_derivatives(self, jets: Jets, speeds: Array) -> Affine:
        """Quantities (n, q, 1), from rates along velocities at the centre and how these change."""
        first, second = Form.of(jets.centre_rate) @ Form.exactly(speeds), Form.of(jets.bend) @ Form.exactly(speeds)
        with np.errstate(invalid="ignore"):
            bent = np.einsum("nqkl,nk,nl->nq", second.magnitude, self.half, self.half)
            rest = Form.of(jets.centre).radius + np.einsum("nqk,nk->nq", first.radius, self.half) + 0.5 * bent
        slopes, rest = np.moveaxis(first.middle, 2, 1), np.where(np.isnan(rest), np.inf, rest)
        return Affine(Form.of(jets.centre).middle[..., None], slopes[..., None], self.half, rest[..., None] * MORE)


class Encloser:
    """Encloses a robot in a working mode over boxes of a domain.

    Rates are along the columns of `twists`: independent velocities of the platform, of unit speed with rotations scaled
    by the robot's characteristic length. With `constraints` the closure equations' own matrix is included, for
    singularities of every type, and with `more` what that records. Raises `AnalysisError` and `ModeError` as
    `record_robot`.
    """

    def __init__(
        self, domain: Domain, mode: int | None = None, constraints: bool = False, more: Recordable | None = None
    ) -> None:
        self.kinematics, self.domain, self.mode, self.more = domain.task.kinematics, domain, mode, more
        self.program: RobotProgram = record_robot(self.kinematics, mode or 0, constraints, more)
        S = self.kinematics.task.subspace
        self.twists: Array = per_unit_speed(S, S, self.kinematics.characteristic_length)

    def on(self, domain: Domain) -> Encloser:
        """The same robot in another domain, not recorded again."""
        other = copy(self)
        other.domain = domain
        vars(other).pop("_fixed", None)
        vars(other).pop("speeds", None)
        return other

    @cached_property
    def speeds(self) -> Array | None:
        """Velocities (m, k) along `twists` per unit of the parameters; None where they are not the same everywhere."""
        chain = self.kinematics.engine.task.chain[1:]
        if (chain["prismatic"][:-1] == 0).any():  # a turn, and something behind it
            return None
        return np.asarray(np.linalg.pinv(self.twists) @ self.kinematics.task.subspace @ self.domain.directions)

    def __call__(self, boxes: Array, cores: int | None = None) -> Enclosure:
        """Enclose boxes (n, k, 2) of parameters, on all cores by default."""
        boxes = np.ascontiguousarray(boxes, dtype=float)
        parts = list(map_chunks(self._chunk, [boxes[at] for at in slices(len(boxes), CHUNK)], cores))
        out, decided = (np.concatenate(one) for one in zip(*parts, strict=True))
        jets, first = self._jets(out), self.program.reach
        energy = first + len(self.program.joints)
        middle = 0.5 * boxes[..., 0] + 0.5 * boxes[..., 1]
        half = np.maximum(boxes[..., 1] - middle, middle - boxes[..., 0])
        half = half + (np.abs(half) + np.abs(middle)) * 2.0**-52
        each = (slice(first, energy), slice(energy, energy + 1), slice(energy + 1, None))
        named = (jets.at(slice(None), quantities) for quantities in each)
        return Enclosure(self, boxes, half, decided, jets.value[:, :first], *named)

    def _jets(self, out: Array) -> Jets:
        n, q, _ = out.shape
        k, m = self.domain.directions.shape[1], self.twists.shape[1]
        ends = np.cumsum([SLOPE, 2 * k, 2 * m, 2 * m, 2 * k * m])
        slope, rate, centre_rate, bend = (out[..., a:b] for a, b in pairwise(ends))
        rates = (rate.reshape(n, q, m, 2), centre_rate.reshape(n, q, m, 2), bend.reshape(n, q, k, m, 2))
        return Jets(out[..., 0:2], out[..., 2:4], slope.reshape(n, q, k, 2), *rates)

    @cached_property
    def _fixed(self) -> tuple[tuple[Any, ...], ...]:
        p = self.program
        pose = (p.pose.terms, p.pose.constants, p.pose.values, p.coordinates, p.placed)
        r = p.robot
        robot = (r.terms, r.constants, r.values, p.inputs, p.results, r.conditions, p.blocks, p.unknowns, p.equations)
        d = self.domain
        return pose, robot, tuple(map(np.ascontiguousarray, (d.origin, d.directions, self.twists)))

    def _chunk(self, boxes: Array) -> tuple[Array, NDArray[np.bool_]]:
        p = self.program
        k, m = self.domain.directions.shape[1], self.twists.shape[1]
        width = SLOPE + 2 * k + 4 * m + 2 * k * m
        scratch = (
            np.zeros((len(p.pose.terms), SLOPE + 2 * k)),
            np.zeros((len(p.robot.terms), width)),
            np.zeros((len(p.robot.terms) if len(p.blocks) else 0, SLOPE + 2 * MOST)),
            np.zeros(k),
            np.zeros((4, MOST, MOST, 2)),
            np.zeros((4, MOST, 2)),
            np.zeros((2, MOST)),
        )
        out, decided = np.empty((len(boxes), len(p.results), width)), np.zeros(len(boxes), dtype=np.bool_)
        centres = self._at_centres(boxes)
        enclose(*self._fixed, boxes, np.ascontiguousarray(centres[:, p.unknown_columns]), scratch, out, decided)
        self._turn(out[:, p.reach : p.reach + len(p.joints), :SLOPE], centres[:, p.joints], decided)
        return out, decided

    def _at_centres(self, boxes: Array) -> Array:
        centres = self.domain.values(0.5 * boxes[..., 0] + 0.5 * boxes[..., 1])
        return np.asarray(self.kinematics.at(centres, mode=self.mode).joints)

    def _turn(self, bounds: Array, centres: Array, decided: NDArray[np.bool_]) -> None:
        """Count turns as the kinematics do, in place; undecided where these find another solution at the centre."""
        turning = self.kinematics.engine.joint_turning[self.program.joints]
        with np.errstate(invalid="ignore"):
            middle = 0.5 * bounds[..., 2] + 0.5 * bounds[..., 3]
            turns = np.where(turning, np.round((centres - middle) / (2.0 * np.pi)), 0.0)
        turns = np.where(np.isfinite(turns), turns, 0.0)
        shift = turns * 2.0 * np.pi
        rounding = np.abs(turns) * 1e-15 + np.abs(bounds).max(axis=-1) * 2.0**-52
        for end, outward in ((0, -1.0), (1, 1.0), (2, -1.0), (3, 1.0)):
            moved = bounds[..., end] + shift + outward * rounding
            bounds[..., end] = np.where(turns != 0.0, moved, bounds[..., end])
        with np.errstate(invalid="ignore"):
            units = np.where(turning, 1.0, self.kinematics.engine.size)
            same = np.abs(centres - (middle + shift)) <= SAME * (units + np.abs(centres))
        decided &= same.all(axis=1)


def joint_room(at: Configuration) -> Array:
    """Distance (n,) of the joints, the platform's branch included, from their limits; minus infinity out of reach."""
    lower, upper = at.engine.ranges.limits
    with np.errstate(invalid="ignore"):
        room = np.minimum(at.joints - lower, upper - at.joints).min(axis=-1)
    return np.where(closes(at.status), room, -np.inf)


def least_joint_room(found: Enclosure) -> Array:
    """Lower bounds (n,) of `joint_room`."""
    value, (lower, upper) = found.joints.value, found.encloser.program.limits
    with np.errstate(invalid="ignore"):
        below = np.where(np.isfinite(lower), value[..., 0] - lower, np.inf)
        above = np.where(np.isfinite(upper), upper - value[..., 1], np.inf)
    reached = np.where(found.reach[..., 0] > 0.0, np.inf, found.reach[..., 0] - TINY)
    parts = [below, above, reached, _coordinate_room(found)]
    least = np.where(found.decided, np.concatenate(parts, axis=1).min(axis=1, initial=np.inf), -np.inf)
    return np.where(_turned_alike(found, least > 0.0), least, -np.inf)


def _turned_alike(found: Enclosure, asked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether the kinematics, too, find all corners of boxes inside: joints then have the same turns. They count a
    joint's turns on the straight way from home, which may pass a limb's base on either side.
    """
    alike, encloser = np.ones(len(found.boxes), dtype=np.bool_), found.encloser
    if asked.any():
        points = corners(found.boxes[asked])
        values = encloser.domain.values(points.reshape(-1, points.shape[2]))
        room = joint_room(encloser.kinematics.at(values, mode=encloser.mode)).reshape(points.shape[:2])
        alike[asked] = (room >= -1e-12).all(axis=1)
    return alike


def _coordinate_room(found: Enclosure) -> Array:
    engine = found.encloser.kinematics.engine
    lowest, highest = np.moveaxis(found.encloser.domain.bounds(found.boxes), -1, 0)
    chain = engine.task.chain[1:]
    lower, upper = (limit[chain["column"]] for limit in engine.ranges.limits)
    # Angles are read from poses: those nearest to home, of which three have two readings, half a turn apart.
    near = np.where(chain["prismatic"] == 1, np.inf, np.pi)
    if (chain["prismatic"] == 0).sum() == 3:
        near[int(np.argmin(chain["prismatic"]))] = 0.5 * np.pi
    lower, upper = np.maximum(lower, chain["home"] - near), np.minimum(upper, chain["home"] + near)
    rounding = 1e-15 * (np.abs(lowest) + np.abs(highest))
    return np.concatenate([lowest - lower - rounding, upper - highest - rounding], axis=1)


def least_regularity(found: Enclosure) -> Array:
    """Positive where there is no singularity of any type (n,): 1, 2, of the constraints, or inside a limb.

    With the actuators locked the closure equations determine all joints and the platform; actuator rates are bounded.
    """
    bounded = np.isfinite(found.joints.rate[:, : found.encloser.program.n_actuated]).all(axis=(1, 2, 3))
    return np.where(bounded, found.table(0).regularity(), -np.inf)


def most_error(found: Enclosure, errors: Array, turning: bool) -> Array:
    """Upper bounds (n,) of the platform's error of orientation [rad] or position [m], to first order.

    `errors` (m,) are the largest of the sensors; of their signs the worst combination counts.
    """
    twists = found.encloser.twists
    part = twists[3:] if turning else twists[:3]
    moved = Form.exactly(part) @ least_squares(found.rates, Affine.constant(np.diag(errors), found.half))
    sums = moved @ Form.exactly(all_signs(len(errors)))
    return np.asarray(np.sqrt((sums.magnitude**2).sum(axis=-2)).max(axis=-1) * MORE)


def efforts_over(found: Enclosure, middle: Array) -> Form:
    """Efforts (n, m) that hold the weight at rest: of least norm about `middle` (m,), over boxes."""
    energy = found.energy
    weight = Affine.of(energy.centre_rate[:, 0, :, None], energy.bend[:, 0, :, :, None], found.half)
    if not middle.any():
        return least_norm(found.rates, weight)[..., 0]
    missing = less(weight, found.rates.T, middle[:, None])
    return (least_norm(found.rates, missing) + Form.exactly(middle[:, None]))[..., 0]


def least_spare(found: Enclosure, least: Array, most: Array) -> Array:
    """Lower bounds (n,) of the distance of efforts at rest from the ends of their ranges, `least` to `most` (m,).

    Redundant ones are distributed as by the controller: least norm within their ranges, and where the least norm itself
    is within these, it is that. Of winches, which only pull, it is proved that tensions within the ranges exist: their
    middle plus the missing part by least norm (Pott, Bruckmann and Mikelsons, "Closed-form force distribution for
    parallel wire robots", 2009). The size of the controller's own tensions is not proved, as the set of those at the
    ends of their ranges changes from pose to pose.
    """
    ends = np.where(np.isfinite(least), least, most), np.where(np.isfinite(most), most, least)
    tau = efforts_over(found, np.where((least >= 0.0) | (most <= 0.0), 0.5 * (ends[0] + ends[1]), 0.0))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.minimum(tau.lower - least, most - tau.upper).min(axis=-1))


def most_effort(found: Enclosure, least: Array, most: Array) -> Array:
    """Upper bounds (n,) of the largest effort at rest; infinite where ranges may change how drives share."""
    tau = efforts_over(found, np.zeros(len(least)))
    return np.where(((tau.lower >= least) & (tau.upper <= most)).all(axis=-1), tau.magnitude.max(axis=-1), np.inf)
