# SPDX-License-Identifier: Apache-2.0
"""Whether a robot can be somewhere, in one orientation or over many; if not, what stops it: one code for a point."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysed_robot import Robot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import SLACK, Domain, Range
from pkm_analysis.kernels.pose_quantities import LIMIT, LIMIT_AT, REACH, REACH_AT
from pkm_analysis.requirements.names import KINDS
from pkm_analysis.requirements.quantities import Requirement, joint_position
from pkm_analysis.requirements.quantity import Batch
from pkm_description.mechanism import Array
from pkm_runtime.describable import listed, measure

INSIDE, RANGE, NOWHERE, SEAM, FIRST = range(5)  # codes; what follows depends on the robot
WHOLE = 1e-6  # rad: tolerance of a whole turn


OVER_ALL = ("reachable", "dexterous")  # over all orientations, where no range is given


class Stop(NamedTuple):
    """What stops a robot: its kind, and a text."""

    kind: str
    text: str


class Membership:
    """The conditions of a workspace, over a domain. Thread-safe.

    A point is inside where the platform is within its limits in the description, the limbs reach, all joints, passive
    ones too, are within theirs, and all requirements hold. The code of a point outside names the first of these that
    fails, in this order. `joint_limits` and `platform_limits` set to False ignore these.
    """

    def __init__(
        self,
        robot: Robot,
        domain: Domain,
        requirements: Sequence[Requirement] = (),
        joint_limits: bool = True,
        platform_limits: bool = True,
    ) -> None:
        self.robot, self.domain, self.requirements = robot, domain, tuple(requirements)
        self.joint_limits, self.platform_limits = joint_limits, platform_limits
        tables = robot.kinematics.tables
        self._blocks, self._bodies = len(tables.blocks), len(tables.bodies)
        self._platform = FIRST
        self._reach = self._platform + 2 * len(robot.coordinates.all)
        self._limit = self._reach + self._blocks
        self._required = self._limit + 2 * self._bodies
        sizes = [max(1, len(one.quantity.causes)) for one in self.requirements]
        self._first_of = [self._required + sum(sizes[:k]) for k in range(len(sizes))]
        needs = [REACH, REACH_AT, *([LIMIT, LIMIT_AT] if joint_limits else [])]
        self._needs = tuple(dict.fromkeys(needs + [n for one in self.requirements for n in one.quantity.needs]))

    def over(self, domain: Domain) -> Membership:
        """The same conditions over another domain."""
        return Membership(self.robot, domain, self.requirements, self.joint_limits, self.platform_limits)

    @property
    def in_words(self) -> str:
        """The ranges, and what is held."""
        return self.domain.in_words()

    def codes(self, points: Array) -> NDArray[np.int32]:
        """Codes (n,) of points (n, d) [m, rad]: INSIDE, or one that `stop` explains."""
        if not len(points):
            return np.empty(0, dtype=np.int32)
        return np.concatenate(self.robot.in_chunks(self._codes, points, "points", lambda: self.question))

    @cached_property
    def question(self) -> str | None:
        """Distinguishes its codes from all others in a journal; `AnalysisError` for a quantity without a version."""
        if self.robot.sweeps.journal is None:
            return None
        d = self.domain
        where = [d.labels, d.lower.tolist(), d.upper.tolist(), sorted(d.held.items())]
        asked = [(one.quantity.question, one.bound, one.at_least) for one in self.requirements]
        return repr((self.robot.question, where, asked, self.joint_limits, self.platform_limits))

    def inside(self, points: Array) -> NDArray[np.bool_]:
        """Which points (n, d) the robot can reach."""
        return np.asarray(self.codes(points) == INSIDE)

    def stop(self, code: int) -> Stop:
        """What stops the robot, for a code other than INSIDE."""
        if code == RANGE:
            return Stop("range", self._end_of_range)
        if code == SEAM:
            turns = listed(c.label for c, seam in zip(self.domain.coordinates, self._seams, strict=True) if seam)
            return Stop("seam", f"{turns} closes on itself after a whole turn")
        if code == NOWHERE:
            return Stop("reach", "no configuration follows from home")
        if code < self._reach:
            k, side = divmod(code - self._platform, 2)
            c = self.robot.coordinates.all[k]
            limit = (c.lower, c.upper)[side]
            return Stop(
                "platform limit",
                f"the description lets the platform's {c.label} be {_least(side)} {limit:.4g} {c.unit}",
            )
        if code < self._limit:
            return Stop("reach", self._limb_of(code - self._reach))
        if code < self._required:
            body, side = divmod(code - self._limit, 2)
            tables = self.robot.kinematics.tables
            name, row = tables.names[body], tables.bodies[body]
            unit = self.robot.kinematics.engine.names.units[name]
            return Stop("joint limit", f"{name} {_least(side)} {float(row[('lower', 'upper')[side]]):.4g} {unit}")
        k = self._requirement_of(code)
        one = self.requirements[k]
        cause = f": {one.quantity.causes[code - self._first_of[k]]}" if one.quantity.causes else ""
        return Stop("requirement", f"{one}{cause}")

    def why(self, code: int, point: Array) -> str:
        """What stops the robot at a point (d,) [m, rad] with a code, and the value that breaks the condition."""
        stop = self.stop(code)
        if stop.kind == "joint limit":
            name = self.robot.kinematics.tables.names[(code - self._limit) // 2]
            quantity = joint_position(self.robot, name)
        elif stop.kind == "requirement":
            quantity = self.requirements[self._requirement_of(code)].quantity
        else:
            return stop.text
        value = float(quantity.of(self.robot, self.domain.poses(point[None])[0])[0])
        return f"{stop.text} does not hold, it is {measure(value)}{quantity.suffix}"

    @cached_property
    def _seams(self) -> NDArray[np.bool_]:
        """Coordinates (d,) whose range is one whole turn, so that both ends are the same pose."""
        whole = np.abs(self.domain.upper - self.domain.lower - 2.0 * np.pi) < WHOLE
        return np.asarray(whole & np.array(self.domain.closes))

    @cached_property
    def _end_of_range(self) -> str:
        domain = self.domain
        ends = zip(domain.coordinates, domain.lower, domain.upper, strict=True)
        turns = [c.label for c, a, b in ends if c.unit == "rad" and max(c.home - a, b - c.home) > np.pi - SLACK]
        return f"end of the range{f', half a turn of {listed(turns)} from home' * bool(turns)}"

    def _requirement_of(self, code: int) -> int:
        return max(at for at, first in enumerate(self._first_of) if first <= code)

    def _limb_of(self, block: int) -> str:
        tables = self.robot.kinematics.tables
        row = tables.blocks[block]
        names = [tables.names[b] for b in range(row["start"], row["start"] + row["count"])]
        of = next((n for n in names if n in self.robot.kinematics.actuated_names), names[0] if names else "closure")
        return f"the limb of {of} is stretched or folded"

    def _codes(self, points: Array) -> NDArray[np.int32]:
        domain, n = self.domain, len(points)
        codes = np.zeros(n, dtype=np.int32)
        poses, known = domain.poses(points)
        batch = Batch(self.robot, poses, self._needs)
        for k in reversed(range(len(self.requirements))):
            slack, causes = self.requirements[k].judged(batch)
            fails = slack < 0.0
            codes[fails] = self._first_of[k] + causes[fails]
        if self.joint_limits:
            beyond = batch.number(LIMIT) < 0.0
            codes[beyond] = self._limit + batch.number(LIMIT_AT)[beyond].astype(np.int32)
        out = ~(batch.number(REACH) >= 0.0)
        codes[out] = self._reach + np.nan_to_num(batch.number(REACH_AT)[out]).astype(np.int32)
        codes[~known] = NOWHERE
        outside = ~domain.inside(points)
        if outside.any():
            seam = outside & domain.inside(np.where(self._seams, 0.5 * (domain.lower + domain.upper), points))
            codes[outside & ~seam] = RANGE
            codes[seam & (codes == INSIDE)] = SEAM
        if self.platform_limits:
            self._beyond_platform_limits(points, poses, codes)
        return codes

    def _beyond_platform_limits(self, points: Array, poses: Array, codes: NDArray[np.int32]) -> None:
        values = None
        for k, c in enumerate(self.robot.coordinates.all):
            if c in self.domain.coordinates:
                at = points[:, self.domain.coordinates.index(c)]
            elif c.name in self.domain.held:
                at = np.array(self.domain.held[c.name])
            else:  # it follows
                if np.isinf(c.lower) and np.isinf(c.upper):
                    continue
                values = self.robot.coordinates.read(poses) if values is None else values
                at = values[:, k]
            codes[np.broadcast_to(at < c.lower - c.slack, codes.shape)] = self._platform + 2 * k
            codes[np.broadcast_to(at > c.upper + c.slack, codes.shape)] = self._platform + 2 * k + 1


def _least(side: int) -> str:
    return ("at least", "at most")[side]


class OverOrientations(Membership):
    """Conditions on positions over a set of orientations [rad]: all must be possible with `every`, else one."""

    def __init__(self, conditions: Membership, orientations: Sequence[Mapping[str, float]], every: bool) -> None:
        super().__init__(
            conditions.robot,
            conditions.domain,
            conditions.requirements,
            conditions.joint_limits,
            conditions.platform_limits,
        )
        self._orientations, self._every, self._base = tuple(orientations), every, conditions
        ranges = {
            c.name: (float(a), float(b))
            for c, a, b in zip(self.domain.coordinates, self.domain.lower, self.domain.upper, strict=True)
        }
        self._at = [conditions.over(self.domain.within(ranges, angles)) for angles in self._orientations]

    def over(self, domain: Domain) -> OverOrientations:
        """The same conditions over another domain."""
        return OverOrientations(self._base.over(domain), self._orientations, self._every)

    @property
    def in_words(self) -> str:
        """The positions, and the number of orientations at each."""
        turned = [self.robot.coordinates.find(name) for name in self._orientations[0]]
        ranges = []
        for c in turned:
            values = {one[c.name] for one in self._orientations}
            ranges.append(f"{c.label} {min(values):.4g} to {max(values):.4g} {c.unit} in {len(values)} values")
        of = "every one" if self._every else "one at least"
        return f"{self.domain.in_words(turned)}; in {of} of {len(self._orientations)} orientations: {', '.join(ranges)}"

    def why(self, code: int, point: Array) -> str:
        """What stops the robot at a point, with the value and the orientation that break the condition."""
        for membership, angles in zip(self._at, self._orientations, strict=True):
            if membership.codes(point[None])[0] == code:
                where = (f"{self.robot.coordinates.find(name).label} {value:.4g}" for name, value in angles.items())
                return f"{membership.why(code, point)}, at {', '.join(where)} rad"
        return super().why(code, point)

    def codes(self, points: Array) -> NDArray[np.int32]:
        """Codes of points; outside, what stops the robot in the first impossible orientation."""
        found = np.zeros(len(points), dtype=np.int32)
        waiting = np.arange(len(points))
        for k, membership in enumerate(self._at):
            codes = membership.codes(points[waiting])
            if self._every:
                found[waiting] = codes
                waiting = waiting[codes == INSIDE]
            else:
                if k == 0:
                    found = codes.copy()
                found[waiting[codes == INSIDE]] = INSIDE
                waiting = waiting[codes != INSIDE]
            if not len(waiting):
                break
        return found


def over_orientations(
    robot: Robot,
    kind: str,
    angles: Mapping[str, Range] | None,
    steps: int,
    requirements: Sequence[Requirement] = (),
) -> OverOrientations:
    """The conditions of a workspace of positions of one of `KINDS`, over ranges that do not matter.

    `angles` are ranges [rad] of the platform's angles by name, by default all that the description allows, for
    "reachable" and "dexterous"; of each, `steps` values are tried, evenly spaced, both ends among them. `AnalysisError`
    for an unknown kind, no range of angles, or a platform that cannot be rotated on its own.
    """
    if kind not in KINDS:
        raise AnalysisError(f"workspace '{kind}'", "there is no such kind", f"choose one of: {listed(KINDS)}")
    turning = [c for c in robot.coordinates.free if c.unit == "rad"]
    sliding = [c for c in robot.coordinates.free if c.unit == "m"]
    if not turning or not sliding or not robot.kinematics.engine.constant_space:
        raise AnalysisError(
            f"workspace '{kind}'",
            "the platform cannot be turned at a position that is held",
            "ask for the workspace of its own freedoms",
        )
    if angles is None:
        if kind not in OVER_ALL:
            raise AnalysisError(f"workspace '{kind}'", "it needs a range of orientations", "name the angles' ranges")
        angles = {c.name: (max(c.lower, -np.pi), min(c.upper, np.pi)) for c in turning}
    chosen = robot.coordinates.named(angles)
    if steps < 2 or any(not a <= b for a, b in chosen.values()):
        raise AnalysisError(f"workspace '{kind}'", "its range of orientations is empty", "give the lower end first")
    values = [np.linspace(a, b, steps) for a, b in chosen.values()]
    # home's first: most positions are decided there
    sets = [dict(zip(chosen, map(float, one), strict=True)) for one in itertools.product(*values)]
    home = {c.name: c.home for c in robot.coordinates.all}
    sets.sort(key=lambda one: sum(abs(value - home[name]) for name, value in one.items()))
    domain = Domain(robot.coordinates, {c.name: (-1.0, 1.0) for c in sliding})
    return OverOrientations(Membership(robot, domain, requirements), sets, KINDS[kind])
