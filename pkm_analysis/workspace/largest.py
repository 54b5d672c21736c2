# SPDX-License-Identifier: Apache-2.0
"""The largest box and cylinder in which every pose is allowed, and the largest tilt in every direction."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import pi
from typing import Any, ClassVar

import numpy as np
import scipy  # submodules load on first use
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import nodes_of, size_unit
from pkm_analysis.kernels.geometry import largest_full_box
from pkm_analysis.kernels.pose_quantities import TYPE2
from pkm_analysis.requirements.conditions import INSIDE, Membership, OverDomain
from pkm_analysis.requirements.grammar import shown, spread
from pkm_analysis.requirements.quantities import find_quantity
from pkm_analysis.requirements.quantity import Requirement
from pkm_analysis.workspace.border import bisect, codes_on_grid
from pkm_description.mechanism import Array

NODES, SLOW_NODES = 41, 17  # along each coordinate
FACE = 15  # points along each side of a face that has to stay inside
ROUNDS, HALVINGS = 3, 6  # passes that move faces out, and bisection steps of each
TRIED = 2_000  # random points for each try
SHIFTS = np.array([(x, y) for x in (0.0, 1.0, -1.0) for y in (0.0, 1.0, -1.0)])  # of a centre
CHECKED, SLOW_CHECKED = 100_000, 3_000  # random points that have to be inside
SHRINK = 0.995
STEP = np.radians(1.0)  # between tilts that are tried in a direction
TOLERANCE = np.radians(0.01)


class Inner(OverDomain):
    """A body in which all conditions hold, tested at `checked` random points."""

    _picture: ClassVar[str] = "workspace_pictures.largest_picture"
    what: ClassVar[str]

    @property
    def size(self) -> float:
        """Volume or area."""
        raise NotImplementedError

    @property
    def unit(self) -> str:
        """Unit of the size."""
        return size_unit(self.domain)

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        own = [name for name in vars(self) if name != "membership"]
        return {"quantity": self.what, **self._plain(*own, "size", "unit")}


@dataclass(frozen=True, eq=False, repr=False)
class Box(Inner):
    """A box between corners (d,) [m, rad] in which all conditions hold; `checked` random points were tested."""

    what = "largest box"

    membership: Membership
    lower: Array
    upper: Array
    checked: int

    @property
    def size(self) -> float:
        """Volume or area."""
        return float(np.prod(self.upper - self.lower))

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Lowest and highest corner (d,)."""
        return self.lower, self.upper

    def _summary(self) -> str:
        ends = zip(self.domain.coordinates, self.lower, self.upper, strict=True)
        return ", ".join(f"{c.label} {spread(a, b, c.unit)}" for c, a, b in ends)


@dataclass(frozen=True, eq=False, repr=False)
class Cylinder(Inner):
    """An upright cylinder along the third coordinate in which all conditions hold; of two coordinates, a circle.

    `bottom` and `top` are in the third coordinate, 0 without one; `checked` random points were tested.
    """

    what = "largest cylinder"

    membership: Membership
    centre: Array
    radius: float
    bottom: float
    top: float
    checked: int

    @property
    def size(self) -> float:
        """Volume, or the area of a circle."""
        return pi * self.radius**2 * ((self.top - self.bottom) or 1.0)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Lowest and highest corner (d,) of the box around it."""
        low, high = self.centre - self.radius, self.centre + self.radius
        if self.domain.dimension == 2:
            return low, high
        return np.append(low, self.bottom), np.append(high, self.top)

    def _summary(self) -> str:
        coordinates = self.domain.coordinates
        middle = ", ".join(f"{c.label} {shown(v, c.unit)}" for c, v in zip(coordinates, self.centre, strict=False))
        height = [f", {c.label} {spread(self.bottom, self.top, c.unit)}" for c in coordinates[2:]]
        return f"radius {shown(self.radius, coordinates[0].unit)} about {middle}{''.join(height)}"


def largest_box(membership: Membership, lower: Array, upper: Array) -> Box:
    """The largest box between two corners (d,), by a grid, its faces then moved out, and checked at random points."""
    axes, inside = _grid(membership, lower, upper)
    solid = inside.reshape((*inside.shape, *(1,) * (3 - inside.ndim)))
    sums = np.zeros(tuple(n + 1 for n in solid.shape), dtype=np.int64)
    sums[1:, 1:, 1:] = (~solid).cumsum(0).cumsum(1).cumsum(2)
    places = np.zeros((3, max(solid.shape)))
    for row, axis in zip(places, axes, strict=False):
        row[: len(axis)] = axis
    best = np.empty(6, dtype=np.int64)
    largest_full_box(sums, places, best)
    if best[0] < 0:
        raise _none("box")
    low = np.array([axis[best[2 * k]] for k, axis in enumerate(axes)])
    high = np.array([axis[best[2 * k + 1]] for k, axis in enumerate(axes)])
    steps = np.array([axis[1] - axis[0] for axis in axes])
    for _ in range(ROUNDS):
        for k in range(len(axes)):
            for end, sense in ((low, -1.0), (high, 1.0)):
                step = steps[k]
                for _ in range(HALVINGS):
                    step *= 0.5
                    moved = end[k] + sense * step
                    if lower[k] <= moved <= upper[k] and membership.inside(_face(low, high, k, moved)).all():
                        end[k] = moved
    rng, n = np.random.default_rng(0), CHECKED if membership.quick else SLOW_CHECKED
    while not membership.inside(rng.uniform(low, high, (n, len(low)))).all():
        middle, half = 0.5 * (low + high), 0.5 * SHRINK * (high - low)
        low, high = middle - half, middle + half
    return Box(membership, low, high, n)


def largest_cylinder(membership: Membership, lower: Array, upper: Array) -> Cylinder:
    """The largest cylinder along the third coordinate, of two a circle, as `largest_box`; its radius is grown."""
    if len(set(membership.domain.units[:2])) > 1:
        raise AnalysisError("cylinder", "its circle would combine a length and an angle", "vary two lengths first")
    axes, inside = _grid(membership, lower, upper)
    layers = inside.reshape((*inside.shape[:2], -1))
    steps = [axis[1] - axis[0] for axis in axes[:2]]
    best: tuple[float, float, tuple[int, ...], int, int] = (0.0, 0.0, (0, 0), 0, 0)
    for first in range(layers.shape[2]):
        common = np.ones(layers.shape[:2], dtype=bool)
        for last in range(first, layers.shape[2]):
            common = common & layers[:, :, last]
            if not common.any():
                break
            height = float(axes[2][last] - axes[2][first]) if len(axes) == 3 else 1.0
            room = scipy.ndimage.distance_transform_edt(np.pad(common, 1), sampling=steps)[1:-1, 1:-1]
            at = np.unravel_index(int(room.argmax()), room.shape)
            radius = max(0.0, float(room[at]) - max(steps))
            if radius**2 * height > best[0]:
                best = (radius**2 * height, radius, tuple(map(int, at)), first, last)
    if best[0] <= 0.0:
        raise _none("cylinder")
    _, radius, place, first, last = best
    centre = np.array([axes[0][place[0]], axes[1][place[1]]])
    bottom, top = (float(axes[2][first]), float(axes[2][last])) if len(axes) == 3 else (0.0, 0.0)
    rng, n = np.random.default_rng(0), CHECKED if membership.quick else SLOW_CHECKED

    def fits(r: float, centre: Array, n: int = n) -> bool:
        angle = rng.uniform(0.0, 2.0 * pi, n)
        share = np.where(np.arange(n) % 2 == 0, 1.0, np.sqrt(rng.uniform(0.0, 1.0, n)))  # half of them on the circle
        points = centre + (r * share)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        if len(axes) == 3:
            points = np.column_stack([points, rng.uniform(bottom, top, n)])
        return bool(membership.inside(points).all())

    step = 2.0 * max(steps)
    for _ in range(2 * HALVINGS):
        step *= 0.5
        for shift in SHIFTS:  # a larger circle may fit beside, or in place
            if fits(radius + step, centre + step * shift, TRIED):
                radius, centre = radius + step, centre + step * shift
                break
    while not fits(radius, centre):
        radius *= SHRINK
    return Cylinder(membership, centre, radius, bottom, top, n)


def _grid(membership: Membership, lower: Array, upper: Array) -> tuple[list[Array], NDArray[np.bool_]]:
    if membership.domain.dimension not in (2, 3):
        raise AnalysisError("box", "it is looked for in two or three coordinates", "vary two or three")
    nodes = NODES if membership.quick else SLOW_NODES
    axes = [np.linspace(a, b, nodes) for a, b in zip(lower, upper, strict=True)]
    return axes, codes_on_grid(membership, axes) == INSIDE


def _face(low: Array, high: Array, k: int, value: float) -> Array:
    ticks = [np.linspace(a, b, FACE) for a, b in zip(low, high, strict=True)]
    ticks[k] = np.array([value])
    return nodes_of(ticks)


def _none(what: str) -> AnalysisError:
    return AnalysisError(what, "there is none as large as a cell of the grid", "give ranges, or loosen a requirement")


@dataclass(frozen=True, eq=False, repr=False)
class Tilt(OverDomain):
    """The largest tilts at one place, from the attitude that is held there, without a gap on the way.

    `directions` (n,) are those into which the platform's z axis leans, from the base's x axis towards y [rad], with the
    largest tilt in each, `angles` [rad], and the codes of what stops the robot beyond.
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
        place = self.domain.place(self.point, 4)
        return {**self.asked, "domain": place, "quantity": "tilt", **own, "every": float(self.angles.min())}


def tilt(conditions: Membership, held: dict[str, float], directions: int) -> Tilt:
    """The tilts at values held of the coordinates that vary in conditions, home's by default."""
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
    membership = _on_one_side(membership, upright)
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


def _on_one_side(membership: Membership, upright: Array) -> Membership:
    """With a requirement on type 2 singularities, none is passed between two steps: the determinant keeps its sign."""
    robot = membership.robot
    asked = any(TYPE2 in one.quantity.needs for one in membership.requirements)
    if not asked or len(robot.kinematics.actuated_names) != robot.kinematics.mobility:
        return membership
    signed = find_quantity(robot, "type2_signed")
    positive = bool(signed.of(robot, upright)[0] >= 0.0)
    crossed = Requirement(signed, 0.0, positive, "no singularity of type 2 on the way")
    return replace(membership, requirements=(*membership.requirements, crossed))
