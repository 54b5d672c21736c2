# SPDX-License-Identifier: Apache-2.0
"""Whether a robot can be somewhere, in one orientation or over many; if not, what stops it: one code for a point."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysed_robot import AnalysedRobot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import SLACK, Domain, Range
from pkm_analysis.kernels.pose_quantities import LIMIT, LIMIT_AT, REACH, REACH_AT
from pkm_analysis.plottable import Plottable
from pkm_analysis.requirements.grammar import KINDS, shown, spread
from pkm_analysis.requirements.quantities import joint_position
from pkm_analysis.requirements.quantity import Batch, Requirement
from pkm_description.mechanism import Array
from pkm_kinematics import Status
from pkm_runtime.describable import listed

INSIDE, RANGE, NOWHERE, SEAM, FIRST = range(5)  # codes; what follows depends on the robot
WHOLE = 1e-6  # rad: tolerance of a whole turn
OVER_ALL = ("reachable", "dexterous")  # over all orientations, where no range is given
SIDES = ("at least", "at most")

Codes = NDArray[np.int32]
TURNED = 20_000  # nodes of a grid at most that are asked for other turns of joints


class Stop(NamedTuple):
    """What stops a robot: its kind, and a text."""

    kind: str
    text: str


class _Layout(NamedTuple):
    reach: int
    limit: int
    requirements: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Membership:
    """The conditions of a workspace, over a domain. Thread-safe.

    A point is inside where the platform is within its limits in the description, the limbs reach, all joints, passive
    ones too, are within theirs, and all requirements hold. The code of a point outside names the first of these that
    fails, in this order. Positions may be judged over orientations [rad], by full names: all must be possible with
    `every`, else one.
    """

    robot: AnalysedRobot
    domain: Domain
    requirements: tuple[Requirement, ...] = ()
    joint_limits: bool = True
    platform_limits: bool = True
    orientations: tuple[Mapping[str, float], ...] = ()
    every: bool = False

    def over(self, domain: Domain) -> Membership:
        """The same conditions over another domain."""
        return replace(self, domain=domain)

    @cached_property
    def _first(self) -> _Layout:
        tables = self.robot.kinematics.tables
        reach = FIRST + 2 * len(self.robot.coordinates.all)
        limit = reach + len(tables.blocks)
        sizes = [2 * len(tables.bodies), *(max(1, len(one.quantity.causes)) for one in self.requirements)]
        return _Layout(reach, limit, tuple(limit + int(n) for n in np.cumsum(sizes)))

    @cached_property
    def quick(self) -> bool:
        """Whether a pose takes microseconds."""
        return self.robot.evaluator.quick and not any(one.quantity.slow for one in self.requirements)

    @cached_property
    def _needs(self) -> tuple[int, ...]:
        own = [REACH, REACH_AT, *([LIMIT, LIMIT_AT] if self.joint_limits else [])]
        return tuple(
            dict.fromkeys(own + [n for one in self.requirements if not one.quantity.slow for n in one.quantity.needs])
        )

    @cached_property
    def _turned(self) -> list[Membership]:
        alone = replace(self, orientations=())
        return [alone.over(self.domain.within(self.domain.ranges, angles)) for angles in self.orientations]

    @property
    def in_words(self) -> str:
        """The ranges, and what is held; the number of orientations at each position."""
        if not self.orientations:
            return self.domain.in_words()
        turned, ranges = [self.robot.coordinates.find(name) for name in self.orientations[0]], []
        for c in turned:
            values = {one[c.name] for one in self.orientations}
            ranges.append(f"{c.label} {spread(min(values), max(values), c.unit)} in {len(values)} values")
        of = f"{'every one' if self.every else 'one at least'} of {len(self.orientations)} orientations"
        return f"{self.domain.in_words(turned)}; in {of}: {', '.join(ranges)}"

    @cached_property
    def question(self) -> str | None:
        """Distinguishes its codes from all others in a journal; `AnalysisError` for a quantity without a version."""
        if self.robot.sweeps.journal is None:
            return None
        d = self.domain
        where = [d.labels, d.lower.tolist(), d.upper.tolist(), sorted(d.held.items())]
        asked = [one.question for one in self.requirements]
        return repr((self.robot.question, where, asked, self.joint_limits, self.platform_limits))

    def inside(self, points: Array) -> NDArray[np.bool_]:
        """Which points (n, d) the robot can reach."""
        return np.asarray(self.codes(points) == INSIDE)

    def codes(self, points: Array) -> Codes:
        """Codes (n,) of points (n, d) [m, rad]: INSIDE, or one that `stop` explains, of the first failure."""
        if self.orientations:
            return self._over_orientations(points)
        if not len(points):
            return np.empty(0, dtype=np.int32)
        return np.concatenate(self.robot.in_chunks(self._codes, points, "points", lambda: self.question, self.quick))

    def _over_orientations(self, points: Array) -> Codes:
        found, waiting = np.zeros(len(points), dtype=np.int32), np.arange(len(points))
        for k, membership in enumerate(self._turned):
            codes = membership.codes(points[waiting])
            if self.every or k == 0:
                found[waiting] = codes
            else:
                found[waiting[codes == INSIDE]] = INSIDE
            waiting = waiting[(codes == INSIDE) == self.every]
            if not len(waiting):
                break
        return found

    def stop(self, code: int) -> Stop:
        """What stops the robot, for a code other than INSIDE."""
        tables, first = self.robot.kinematics.tables, self._first
        if code == RANGE:
            ends = zip(self.domain.coordinates, self.domain.lower, self.domain.upper, strict=True)
            turns = [c.label for c, a, b in ends if c.unit == "rad" and max(c.home - a, b - c.home) > np.pi - SLACK]
            return Stop("range", f"end of the range{f', half a turn of {listed(turns)} from home' * bool(turns)}")
        if code == SEAM:
            turns = [c.label for c, seam in zip(self.domain.coordinates, self._seams, strict=True) if seam]
            return Stop("seam", f"{listed(turns)} closes on itself after a whole turn")
        if code == NOWHERE:
            return Stop("reach", "no configuration follows from home")
        if code < first.reach:
            k, side = divmod(code - FIRST, 2)
            c = self.robot.coordinates.all[k]
            limit = shown((c.lower, c.upper)[side], c.unit)
            return Stop("platform limit", f"the description lets the platform's {c.label} be {SIDES[side]} {limit}")
        if code < first.limit:
            block = tables.blocks[code - first.reach]
            names = [tables.names[b] for b in range(block["start"], block["start"] + block["count"])]
            of = next((n for n in names if n in self.robot.kinematics.actuated_names), (*names, "closure")[0])
            return Stop("reach", f"the limb of {of} is stretched or folded")
        if code < first.requirements[0]:
            body, side = divmod(code - first.limit, 2)
            name, end = tables.names[body], float(tables.bodies[body][("lower", "upper")[side]])
            unit = self.robot.kinematics.engine.names.units[name]
            return Stop("joint limit", f"{name} {SIDES[side]} {shown(end, unit)}")
        one, causes = self._requirement_of(code)
        return Stop("requirement", f"{one}{causes}")

    def turning(self, axes: Sequence[Array], codes: Codes) -> list[str]:
        """Joints that end the way to nodes of a grid with codes, though a turn back is within their ranges."""
        first, kinematics = self._first, self.robot.kinematics
        stopped = np.flatnonzero((codes >= first.limit) & (codes < first.requirements[0]))
        if self.robot.mode is not None or not len(stopped):
            return []
        stopped = stopped[:: -(-len(stopped) // TURNED)]
        places = zip(axes, np.unravel_index(stopped, codes.shape), strict=True)
        poses, known = (self._turned or [self])[0].domain.poses(np.stack([axis[at] for axis, at in places], axis=1))
        left_out = known & (kinematics.inverse(poses, mode=0).status == Status.CONVERGED)
        return [kinematics.tables.names[k] for k in np.unique((codes.ravel()[stopped[left_out]] - first.limit) // 2)]

    def why(self, code: int, point: Array) -> str:
        """What stops the robot at a point (d,) [m, rad] with a code, and the value that breaks the condition."""
        for membership, angles in zip(self._turned, self.orientations, strict=True):
            if membership.codes(point[None])[0] == code:
                where = (f"{self.robot.coordinates.find(name).label} {shown(v, 'rad')}" for name, v in angles.items())
                return f"{membership.why(code, point)}, at {', '.join(where)}"
        stop = self.stop(code)
        if stop.kind == "joint limit":
            quantity = joint_position(self.robot, self.robot.kinematics.tables.names[(code - self._first.limit) // 2])
        elif stop.kind == "requirement":
            quantity = self._requirement_of(code)[0].quantity
        else:
            return stop.text
        value = float(quantity.of(self.robot, self.domain.poses(point[None])[0])[0])
        return f"{stop.text} does not hold, it is {shown(value, quantity.unit)}"

    @cached_property
    def _seams(self) -> NDArray[np.bool_]:
        """Coordinates (d,) whose range is one whole turn, so that both ends are the same pose."""
        whole = np.abs(self.domain.upper - self.domain.lower - 2.0 * np.pi) < WHOLE
        return np.asarray(whole & np.array(self.domain.closes))

    def _requirement_of(self, code: int) -> tuple[Requirement, str]:
        starts = zip(self.requirements, self._first.requirements, strict=False)
        one, first = [(one, first) for one, first in starts if first <= code][-1]
        return one, f": {one.quantity.causes[code - first]}" if one.quantity.causes else ""

    def _codes(self, points: Array) -> Codes:
        domain, first = self.domain, self._first
        codes = np.zeros(len(points), dtype=np.int32)
        poses, known = domain.poses(points)
        batch = Batch(self.robot, poses, self._needs)
        numbered = list(zip(self.requirements, first.requirements, strict=False))
        for one, start in reversed([pair for pair in numbered if not pair[0].quantity.slow]):
            slack, causes = one.at(batch)
            fails = ~(slack >= 0.0)
            codes[fails] = start + causes[fails]
        if self.joint_limits:
            beyond = batch.number(LIMIT) < 0.0
            codes[beyond] = first.limit + batch.number(LIMIT_AT)[beyond].astype(np.int32)
        out = ~(batch.number(REACH) >= 0.0)
        codes[out] = first.reach + np.nan_to_num(batch.number(REACH_AT)[out]).astype(np.int32)
        codes[~known] = NOWHERE
        outside = ~domain.inside(points)
        if outside.any():
            seam = outside & domain.inside(np.where(self._seams, 0.5 * (domain.lower + domain.upper), points))
            codes[outside & ~seam] = RANGE
            codes[seam & (codes == INSIDE)] = SEAM
        if self.platform_limits:
            self._beyond_platform_limits(points, poses, codes)
        for one, start in [pair for pair in numbered if pair[0].quantity.slow]:
            rows = np.flatnonzero((codes == INSIDE) | (codes == SEAM) | (codes >= start))  # where none before it fails
            if len(rows):
                slack, causes = one.at(Batch(self.robot, poses[rows], one.quantity.needs))
                fails = ~(slack >= 0.0)
                codes[rows[fails]] = start + causes[fails]
        return codes

    def _beyond_platform_limits(self, points: Array, poses: Array, codes: Codes) -> None:
        values = self.domain.values(points)
        for k, c in enumerate(self.robot.coordinates.all):
            if np.isinf(c.lower) and np.isinf(c.upper):
                continue
            if np.isnan(self.domain.origin[k]):  # it follows
                values[:, k] = self.robot.coordinates.read(poses)[:, k]
            codes[values[:, k] < c.lower - c.slack] = FIRST + 2 * k
            codes[values[:, k] > c.upper + c.slack] = FIRST + 2 * k + 1


class OverDomain(Plottable):
    """A result over a domain, under conditions."""

    membership: Membership

    @property
    def domain(self) -> Domain:
        """The domain searched."""
        return self.membership.domain

    @property
    def asked(self) -> dict[str, Any]:
        """AnalysedRobot, domain and requirements, for JSON."""
        return {
            "robot": self.membership.robot.name,
            "domain": self.membership.in_words,
            "coordinates": list(self.domain.labels),
            "units": list(self.domain.units),
            "requirements": [str(one) for one in self.membership.requirements],
        }


def over_orientations(
    robot: AnalysedRobot,
    kind: str,
    angles: Mapping[str, Range] | None,
    steps: int,
    requirements: Sequence[Requirement] = (),
) -> Membership:
    """The conditions of a workspace of positions of one of `KINDS`, over ranges that do not matter.

    `angles` are ranges [rad] of the platform's angles by name, by default all that the description allows, for
    "reachable" and "dexterous"; of each, `steps` values are tried. `AnalysisError` for an unknown kind, no range of
    angles, or a platform that cannot be rotated on its own.
    """
    about = f"workspace '{kind}'"
    if kind not in KINDS:
        raise AnalysisError(about, "there is no such kind", f"choose one of: {listed(KINDS)}")
    turning = [c for c in robot.coordinates.free if c.unit == "rad"]
    sliding = [c for c in robot.coordinates.free if c.unit == "m"]
    if not turning or not sliding or not robot.kinematics.engine.constant_space:
        problem = "the platform cannot be turned at a position that is held"
        raise AnalysisError(about, problem, "ask for the workspace of its own degrees of freedom")
    if angles is None:
        if kind not in OVER_ALL:
            raise AnalysisError(about, "it needs a range of orientations", "name the angles' ranges")
        angles = {c.name: (max(c.lower, -np.pi), min(c.upper, np.pi)) for c in turning}
    chosen = robot.coordinates.named(angles)
    if steps < 2 or any(not a <= b for a, b in chosen.values()):
        raise AnalysisError(about, "its range of orientations is empty", "give the lower end first")
    values = [np.linspace(a, b, steps).tolist() for a, b in chosen.values()]
    home = {c.name: c.home for c in robot.coordinates.all}
    sets = [dict(zip(chosen, one, strict=True)) for one in itertools.product(*values)]
    sets.sort(key=lambda one: sum(abs(value - home[name]) for name, value in one.items()))  # most are decided at home
    domain = Domain.of_ranges(robot.coordinates, {c.name: (-1.0, 1.0) for c in sliding}, None)
    return Membership(robot, domain, tuple(requirements), orientations=tuple(sets), every=KINDS[kind])
