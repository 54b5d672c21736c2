# SPDX-License-Identifier: Apache-2.0
"""How far a platform can tilt in every direction, and what stops it there."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy  # submodules load on first use
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.requirements.conditions import INSIDE, Membership, OverDomain
from pkm_analysis.requirements.grammar import shown
from pkm_analysis.workspace.border import bisect
from pkm_description.mechanism import Array

STEP = np.radians(1.0)  # between tilts that are tried in a direction
TOLERANCE = np.radians(0.01)


@dataclass(frozen=True, eq=False, repr=False)
class Tilt(OverDomain):
    """The largest tilts at one place, from the attitude that is held there, without a gap on the way.

    Attributes:
        point: the place and the attitude (d,) [m, rad].
        directions: (n,) into which the platform's z axis leans, from the base's x axis towards y [rad].
        angles: (n,) largest tilt [rad].
        stops: (n,) codes of what stops the robot beyond.
    """

    _picture: ClassVar[str] = "workspace_pictures.tilt_picture"

    membership: Membership
    point: Array
    directions: Array
    angles: Array
    stops: NDArray[np.int32]

    def _summary(self) -> str:
        every, most = (shown(float(one), "rad", 3) for one in (self.angles.min(), self.angles.max()))
        return f"{self.membership.robot.name}: {every} in every direction, {most} at most"

    def _details(self) -> list[str]:
        ends = (("least", int(self.angles.argmin())), ("most", int(self.angles.argmax())))
        lines = [
            f"{word} {shown(self.angles[k], 'rad', 3)} towards {shown(self.directions[k], 'rad')}" for word, k in ends
        ]
        lines += [f"{100.0 * share:.3g} % of the directions: {text}" for text, share in self.stopped_by.items()]
        return [*lines, f"at {self.domain.place(self.point, 4)}; 0 deg is along x of the base, 90 deg along y"]

    @property
    def stopped_by(self) -> dict[str, float]:
        """What stops the robot, with its share of the directions, largest first."""
        counts = Counter(self.membership.stop(int(code)).text if code else "half a turn" for code in self.stops)
        return {text: count / len(self.stops) for text, count in counts.most_common()}

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        own = self._plain("point", "directions", "angles", "stopped_by")
        return {**self.asked, "quantity": "tilt", **own, "every": float(self.angles.min())}


def tilt(conditions: Membership, held: dict[str, float], directions: int) -> Tilt:
    """The tilts at values held of the coordinates that vary in conditions, home's by default.

    `AnalysisError` where the platform cannot turn about two axes, or the conditions do not hold without a tilt.
    """
    domain, robot = conditions.domain, conditions.robot
    if sum(c.unit == "rad" for c in domain.coordinates) < 2:
        raise AnalysisError("tilt", "the platform does not turn about two axes", "take a robot that does")
    point = np.array([held.get(c.name, c.home) for c in domain.coordinates])
    reach = np.array(
        [100.0 * robot.kinematics.engine.size if c.unit == "m" else 2.0 * np.pi for c in domain.coordinates]
    )
    ends = zip(domain.coordinates, point - reach, point + reach, strict=True)
    membership = conditions.over(domain.within({c.name: (float(a), float(b)) for c, a, b in ends}))
    upright, known = membership.domain.poses(point[None])
    code = int(membership.codes(point[None])[0])
    if code != INSIDE or not known[0]:
        raise AnalysisError("tilt", membership.why(code, point), "hold another place")
    attitude = scipy.spatial.transform.Rotation.from_quat(upright[0, 3:])
    columns = [robot.coordinates.all.index(c) for c in domain.coordinates]

    def codes(leaning: Array) -> NDArray[np.int32]:
        """Codes (n,) at tilts and directions (n, 2)."""
        angle, to = leaning.T
        turns = scipy.spatial.transform.Rotation.from_rotvec(
            angle[:, None] * np.stack([-np.sin(to), np.cos(to), np.zeros(len(to))], axis=1)
        )
        poses = np.tile(upright, (len(to), 1))
        poses[:, 3:] = (turns * attitude).as_quat()
        values = robot.coordinates.read(poses)[:, columns]
        sliding = [c.unit == "m" for c in domain.coordinates]
        values[:, sliding] = point[sliding]
        return membership.codes(values)

    to = 2.0 * np.pi * np.arange(directions) / directions
    tried = np.arange(0.0, np.pi, STEP)
    fine = np.stack(np.meshgrid(tried, to, indexing="ij"), axis=-1)
    inside = (codes(fine.reshape(-1, 2)) == INSIDE).reshape(fine.shape[:2])
    last = np.where(inside.all(axis=0), len(tried), inside.argmin(axis=0)) - 1
    found, stops = bisect(
        codes, np.stack([tried[last], to], axis=1), np.stack([tried[last] + STEP, to], axis=1), TOLERANCE
    )
    return Tilt(membership, point, to, found[:, 0], stops)
