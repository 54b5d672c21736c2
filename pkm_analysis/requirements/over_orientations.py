# SPDX-License-Identifier: Apache-2.0
"""Positions judged over a range of orientations: possible in at least one of them, or in all."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Domain, Range
from pkm_analysis.requirements.membership import INSIDE, Membership
from pkm_analysis.requirements.names import KINDS
from pkm_analysis.requirements.requirement import Requirement
from pkm_analysis.robot import Robot
from pkm_description.introduction import listed
from pkm_description.mechanism import Array

WHOLE = ("reachable", "dexterous")  # over all orientations, where no range is given


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
        if kind not in WHOLE:
            raise AnalysisError(f"workspace '{kind}'", "it needs a range of orientations", "name the angles' ranges")
        angles = {c.name: (max(c.lower, -np.pi), min(c.upper, np.pi)) for c in turning}
    chosen = {robot.coordinates.find(name).name: ends for name, ends in angles.items()}
    if steps < 2 or any(not a <= b for a, b in chosen.values()):
        raise AnalysisError(f"workspace '{kind}'", "its range of orientations is empty", "give the lower end first")
    values = [np.linspace(a, b, steps) for a, b in chosen.values()]
    # home's first: most positions are decided there
    sets = [dict(zip(chosen, map(float, one), strict=True)) for one in itertools.product(*values)]
    home = {c.name: c.home for c in robot.coordinates.all}
    sets.sort(key=lambda one: sum(abs(value - home[name]) for name, value in one.items()))
    domain = Domain(robot.coordinates, {c.name: (-1.0, 1.0) for c in sliding})
    return OverOrientations(Membership(robot, domain, requirements), sets, KINDS[kind])
