# SPDX-License-Identifier: Apache-2.0
"""Bounds of a robot's joints, Jacobian and energy over boxes of task coordinates."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.proof.kernels.enclose import enclose
from pkm_analysis.proof.kernels.implicit import MOST
from pkm_analysis.proof.kernels.jets import SLOPE
from pkm_analysis.proof.robot_program import RobotProgram, record_robot
from pkm_description.mechanism import Array
from pkm_kinematics.kinematics import Kinematics
from pkm_kinematics.solve.constraints import scaling
from pkm_runtime.sweeps.chunks import map_chunks, slices

CHUNK = 256  # boxes
SAME = 1e-6  # rad, and of the robot's size: tolerance of the kinematics against these bounds


@dataclass(frozen=True, eq=False)
class Domain:
    """Task coordinates as origin + directions times parameters, and a box of these.

    A box of coordinates has a direction for each one that varies; a straight path has one parameter, from 0 to 1.
    """

    origin: Array  # (c,)
    directions: Array  # (c, k)
    box: Array  # (k, 2)

    @staticmethod
    def of_box(bounds: Array) -> Domain:
        """A box of coordinates, bounds (c, 2) [m, rad]; those with equal bounds are held."""
        bounds = np.asarray(bounds, dtype=float)
        varies = bounds[:, 0] < bounds[:, 1]
        origin = np.where(varies, 0.0, bounds[:, 0])
        return Domain(origin, np.eye(len(bounds))[:, varies], bounds[varies])

    @staticmethod
    def of_path(start: Array, end: Array) -> Domain:
        """A straight path in coordinates (c,) [m, rad]."""
        start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
        return Domain(start, (end - start)[:, None], np.array([[0.0, 1.0]]))

    def coordinates(self, parameters: Array) -> Array:
        """Coordinates (..., c) at parameters (..., k)."""
        return np.asarray(self.origin + parameters @ self.directions.T)


@dataclass(frozen=True, eq=False)
class Jets:
    """Bounds, lower and upper along the last axis, of some quantities (q) over boxes (n)."""

    value: Array  # (n, q, 2)
    centre: Array  # (n, q, 2)
    slope: Array  # (n, q, k, 2)
    rate: Array  # (n, q, m, 2)
    centre_rate: Array  # (n, q, m, 2)
    bend: Array  # (n, q, k, m, 2)

    def __getitem__(self, at: slice) -> Jets:
        """Those of some quantities."""
        return Jets(*(part[:, at] for part in self._parts))

    def rows(self, at: Any) -> Jets:
        """Those over some of the boxes."""
        return Jets(*(part[at] for part in self._parts))

    @property
    def _parts(self) -> tuple[Array, ...]:
        return self.value, self.centre, self.slope, self.rate, self.centre_rate, self.bend


@dataclass(frozen=True, eq=False)
class Enclosure:
    """A robot over boxes (n, k, 2) of a domain's parameters."""

    boxes: Array
    half: Array  # (n, k) how far the boxes' faces are from their centres, rounded up
    decided: NDArray[np.bool_]  # (n,) every branch is the recorded one, and every limb without a closed form determined
    reach: Array  # (n, r, 2) what must not be negative, so that the limbs reach the platform
    joints: Jets  # of `RobotProgram.joints`
    energy: Jets  # one
    system: Jets  # of `RobotProgram.entries`

    def rows(self, at: Any) -> Enclosure:
        """The same over some of the boxes."""
        jets = (self.joints.rows(at), self.energy.rows(at), self.system.rows(at))
        return Enclosure(self.boxes[at], self.half[at], self.decided[at], self.reach[at], *jets)


class Encloser:
    """Encloses a robot over boxes of a domain.

    Rates are along the columns of `twists`: independent velocities of the platform, of unit speed with rotations scaled
    by the robot's characteristic length.

    Args:
        mode: number of the working mode.
        constraints: whether to include the closure equations' own matrix, for singularities of every type.

    Raises:
        AnalysisError: the motion space is configuration-dependent, the platform has no branch of its own, or an
            operation has no interval form.
        ModeError: no such working mode.
    """

    def __init__(self, kinematics: Kinematics, domain: Domain, mode: int = 0, constraints: bool = False) -> None:
        self.kinematics, self.domain, self.mode = kinematics, domain, mode
        self.program: RobotProgram = record_robot(kinematics, mode, constraints)
        self.twists = _twists(kinematics)
        self.mobility = kinematics.mobility

    def on(self, domain: Domain) -> Encloser:
        """The same robot in another domain, not recorded again."""
        other = copy(self)
        other.domain = domain
        vars(other).pop("_fixed", None)
        return other

    def __call__(self, boxes: Array, cores: int | None = None) -> Enclosure:
        """Enclose boxes (n, k, 2) of parameters, on all cores by default."""
        boxes = np.ascontiguousarray(boxes, dtype=float)
        parts = list(map_chunks(self._chunk, [boxes[at] for at in slices(len(boxes), CHUNK)], cores))
        out = np.concatenate([part for part, _ in parts])
        decided = np.concatenate([part for _, part in parts])
        p = self.program
        jets = self._jets(out)
        first, energy = p.reach, p.reach + len(p.joints)
        middle = 0.5 * boxes[..., 0] + 0.5 * boxes[..., 1]
        half = np.maximum(boxes[..., 1] - middle, middle - boxes[..., 0])
        half = half + (np.abs(half) + np.abs(middle)) * 2.0**-52
        return Enclosure(
            boxes,
            half,
            decided,
            jets.value[:, :first],
            jets[first:energy],
            jets[energy : energy + 1],
            jets[energy + 1 :],
        )

    def _jets(self, out: Array) -> Jets:
        n, q, _ = out.shape
        k, m = self.domain.directions.shape[1], self.twists.shape[1]
        ends = np.cumsum([SLOPE, 2 * k, 2 * m, 2 * m, 2 * k * m])
        slope, rate, centre_rate, bend = (out[..., a:b] for a, b in pairwise(ends))
        return Jets(
            out[..., 0:2],
            out[..., 2:4],
            slope.reshape(n, q, k, 2),
            rate.reshape(n, q, m, 2),
            centre_rate.reshape(n, q, m, 2),
            bend.reshape(n, q, k, m, 2),
        )

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
        """All joints (n, j) at the boxes' centres, from the kinematics; NaN where they have none."""
        centres = self.domain.coordinates(0.5 * boxes[..., 0] + 0.5 * boxes[..., 1])
        return np.asarray(self.kinematics.inverse(centres, mode=self.mode or None).joints)

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


def _twists(kinematics: Kinematics) -> Array:
    """Columns (6, m) of unit speed."""
    S = kinematics.task.subspace
    speeds = np.linalg.norm(S * scaling(kinematics.characteristic_length)[:, None], axis=0)
    return np.asarray(S / np.where(speeds > 0.0, speeds, 1.0))
