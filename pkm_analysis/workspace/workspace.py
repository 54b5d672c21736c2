# SPDX-License-Identifier: Apache-2.0
"""A workspace: its size, its border, and what stops the robot there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import MESHES, AnalysisError, check_ending
from pkm_analysis.domain import Range, check_resolution, size_unit
from pkm_analysis.layer_file import Sheet, in_base_frame, write_layer
from pkm_analysis.requirements.conditions import INSIDE, SEAM, Membership, OverDomain, Stop
from pkm_analysis.requirements.grammar import shown, with_error
from pkm_analysis.workspace.border import (
    Refined,
    bisect,
    codes_on_grid,
    extent,
    facet_sizes,
    first_border,
    refine,
    welded,
)
from pkm_analysis.workspace.largest import Box, Cylinder, largest_box, largest_cylinder
from pkm_description.mechanism import Array
from pkm_runtime.describable import listed
from pkm_runtime.optional import optional_library
from pkm_runtime.whole_files import whole

NODES = {1: 4001, 2: 401, 3: 72}  # along each coordinate, of the grid that borders are looked for on
SLOW_NODES = {1: 401, 2: 61, 3: 25}  # the same where poses are solved by iteration
SAMPLES, SLOW_SAMPLES, COSTLY_SAMPLES = 200_000, 10_000, 2_000  # random points of the size for comparison
BORDER = (68, 119, 170, 90)  # red, green, blue, opacity
DEVIATIONS = 4.0  # standard deviations allowed between sampling and size
FINE, SLOW_FINE = 2e-3, 4e-3  # of a cube as large as the domain: the tolerance where none is given
SHARE, SLOW_SHARE = 0.01, 0.02  # of the size: what such a tolerance may leave open all along the border
STAIRS = {1: 1.0, 2: math.pi / 4.0, 3: 2.0 / 3.0}  # size of a border by that of its steps on a grid (Cauchy, Crofton)


@dataclass(frozen=True, eq=False, repr=False)
class Workspace(OverDomain):
    """The set of points of a domain where all conditions hold.

    Attributes:
        size: volume, area or length, in `unit`.
        error: largest error of the size, for features larger than the grid's `pitch` [m].
        tolerance: largest error of the border [m], angles at the characteristic length.
        corners: (n, d) of the border [m, rad], with `simplices` (k, d), triangles or sides.
        stops: (n,) codes of what stops the robot beyond each corner.
        sampled: size by random points, and its standard deviation.
        caution: why not to trust the size; empty where nothing contradicts it.
    """

    _picture: ClassVar[str] = "workspace_pictures.workspace_picture"

    membership: Membership
    size: float
    error: float
    unit: str
    tolerance: float
    pitch: float
    corners: Array
    simplices: NDArray[np.int64]
    stops: NDArray[np.int32]
    sampled: tuple[float, float]
    caution: str = ""

    @property
    def all_of_it(self) -> bool:
        """True where it holds every pose that the limbs reach in the working mode.

        False where limbs are solved iteratively, or coordinates follow others: then poses on other ways are missing.
        """
        engine = self.membership.robot.kinematics.engine
        return engine.constant_space and not engine.iterated

    @property
    def shows(self) -> str:
        """Which of the two cases of `all_of_it` applies, in words."""
        if self.all_of_it:
            return "every pose that the limbs reach in the working mode"
        if self.membership.robot.kinematics.constant_space:
            found = "to which limbs solved by iteration follow the platform on the straight way from home"
        else:
            found = "that follow from home on the straight way in these coordinates"
        return f"poses {found}; poses on other ways are left out"

    def _summary(self) -> str:
        return f"{self.membership.robot.name}: workspace {with_error(self.size, self.error, self.unit)}"

    def _details(self) -> list[str]:
        lines = [f"{100.0 * share:.3g} % of the border: {stop.text}" for stop, share in self.stopped_by]
        if (self.stops == SEAM).any():
            lines.append(f"no border: {self.membership.stop(SEAM).text}")
        lines += [self.caution] if self.caution else []
        lines += [f"searched: {self.membership.in_words}", *([] if self.all_of_it else [self.shows])]
        return [*lines, f"border to {shown(self.tolerance, 'm', 2)}, {len(self.simplices)} facets"]

    @cached_property
    def stopped_by(self) -> list[tuple[Stop, float]]:
        """What stops the robot, with its share of the border, largest first; seams of periodic angles do not count."""
        sizes = facet_sizes(self._scaled, self.simplices)
        stops = self.stops[self.simplices]
        whole = max(float(np.sum(sizes * (stops != SEAM).mean(axis=1))), 1e-300)
        shares: dict[int, float] = {}
        for code in np.unique(self.stops[(self.stops != INSIDE) & (self.stops != SEAM)]):
            shares[int(code)] = float(np.sum(sizes * (stops == code).mean(axis=1))) / whole
        order = sorted(shares.items(), key=lambda pair: -pair[1])
        return [(self.membership.stop(code), share) for code, share in order]

    @property
    def _scaled(self) -> Array:
        return np.asarray(self.corners * self.domain.scale)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Lowest and highest corner (d,) of the bounding box."""
        return self.corners.min(axis=0), self.corners.max(axis=0)

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Which points (n, d) [m, rad] are inside (n,), evaluated on the robot, not on the border."""
        return self.membership.inside(np.atleast_2d(np.asarray(points, dtype=np.float64)))

    def slice_at(self, label: str, value: float) -> Workspace:
        """The part where a coordinate, given by its label, has a value [m, rad]; `AnalysisError` where it is empty."""
        coordinate = self.domain.task.find(label)
        low, high = self.bounds
        step = 0.02 * (high - low)
        low, high = np.maximum(low - step, self.domain.lower), np.minimum(high + step, self.domain.upper)
        ranges = {c.name: (a, b) for c, a, b in zip(self.domain.coordinates, low, high, strict=True) if c != coordinate}
        return measured(self.membership.over(self.domain.within(ranges, {coordinate.name: value})), self.tolerance)

    def largest_box(self) -> Box:
        """The largest box along its coordinates inside it; raises `AnalysisError` where there is none."""
        return largest_box(self.membership, *self.bounds)

    def largest_cylinder(self) -> Cylinder:
        """The largest upright cylinder inside it, of two coordinates a circle; raises as `largest_box`."""
        return largest_cylinder(self.membership, *self.bounds)

    def save(self, path: str | Path) -> None:
        """Write the border as a mesh: .stl, .ply or .obj in the coordinates, or .glb, a layer in the base frame.

        `AnalysisError` for another extension, or no surface.
        """
        self.domain.check_surface()
        check_ending("mesh", path, MESHES)
        if Path(path).suffix == ".glb":
            mechanism = self.membership.robot.mechanism
            colours = np.tile(np.array(BORDER, dtype=np.uint8), (len(self.corners), 1))
            border = Sheet("border", in_base_frame(self.domain, self.corners), self.simplices, colours)
            write_layer(path, f"workspace of {mechanism.name}", "1", mechanism.base_link, [border])
            return
        trimesh = optional_library("trimesh", "trimesh", "files of meshes")
        with whole(path) as part:
            trimesh.Trimesh(*welded(self.corners, self.simplices), process=False).export(str(part))

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        low, high = self.bounds
        return {
            **self.asked,
            **self._plain("shows", "size", "error", "unit", "tolerance", "pitch", "caution"),
            "lower": low.tolist(),
            "upper": high.tolist(),
            "facets": len(self.simplices),
            "sampled": list(self.sampled),
            "stopped_by": [{"kind": s.kind, "what": s.text, "share": share} for s, share in self.stopped_by],
        }


def workspace(
    conditions: Membership, ranges: Mapping[str, Range], tolerance: float | None = None, resolution: int | None = None
) -> Workspace:
    """The workspace in which conditions hold, over ranges [m, rad] by full name, by default its extent."""
    if conditions.domain.dimension > 3:
        raise AnalysisError("workspace", "it has more than three coordinates", "hold some of them")
    check_resolution("workspace", resolution, conditions.domain.dimension)
    if tolerance is not None and not 0.0 < tolerance < np.inf:
        raise AnalysisError("workspace", f"{tolerance:g} m is not a tolerance", "give a length above zero")
    size = conditions.robot.kinematics.engine.size
    if tolerance is not None and tolerance >= size:
        problem = f"a tolerance of {tolerance:g} m is as large as the robot, of {size:.2g} m"
        raise AnalysisError("workspace", problem, f"give less, such as {tolerance:g}mm")
    return measured(conditions.over(conditions.domain.within(extent(conditions, ranges))), tolerance, resolution)


def measured(membership: Membership, tolerance: float | None = None, resolution: int | None = None) -> Workspace:
    """The workspace within the ranges of a domain; `AnalysisError` where it is empty."""
    domain, quick = membership.domain, membership.quick
    scale = domain.scale
    side = float(np.prod(scale * (domain.upper - domain.lower))) ** (1.0 / len(scale))
    axes = domain.grid(domain.nodes(resolution or (NODES if quick else SLOW_NODES)[domain.dimension], 8))
    on_grid = codes_on_grid(membership, axes)
    if not (on_grid == INSIDE).any():
        most = membership.stop(int(np.bincount(on_grid.ravel()).argmax())).text
        problem = f"it is empty: at none of {on_grid.size} points over {domain.in_words()} do all conditions hold"
        problem += f"; what most of them fail by: {most}"
        raise AnalysisError("workspace", problem, "loosen a requirement, or give other ranges")

    scaled = [axis * s for axis, s in zip(axes, scale, strict=True)]
    if tolerance is None:
        deep = depth(on_grid == INSIDE, scaled)
        tolerance = min(FINE * side, SHARE * deep) if quick else min(SLOW_FINE * side, SLOW_SHARE * deep)
    border = refined(membership, on_grid, scaled, tolerance, quick)
    corners = np.clip(border.corners, scale * domain.lower, scale * domain.upper)  # bisection ends on either side
    size = enclosed(corners, border.simplices)
    length = float(facet_sizes(corners, border.simplices).sum()) if domain.dimension > 1 else len(corners)
    error = length * tolerance + border.uncertain
    per = float(np.prod(scale))
    pitch = float(max(axis[1] - axis[0] for axis in scaled))
    sampled, caution = _compared(membership, size / per, error / per, pitch)
    if not border.complete and not caution:
        part = f"{100.0 * border.uncertain / size:.2g} % of the size" if size > 0.0 else "its size"
        caution = (
            f"the border was not refined to the tolerance everywhere: {part} is uncertain, which the error includes"
        )
    if names := membership.turning(axes, on_grid):
        left_out = "what other paths reach is left out, and mode 0 includes it (docs/methods.md)"
        turns = f"turns of {listed(names)} are counted on the straight path from home: {left_out}"
        caution = "; ".join(filter(None, (turns, caution)))
    sizes, mesh = (size / per, error / per, size_unit(domain)), (corners / scale, border.simplices, border.stops)
    return Workspace(membership, *sizes, tolerance, pitch, *mesh, sampled, caution)


def _compared(membership: Membership, size: float, error: float, pitch: float) -> tuple[tuple[float, float], str]:
    """Size by random points, with its standard deviation, and a text where it disagrees with the measured size."""
    costly = any(one.quantity.slow or one.quantity.near is not None for one in membership.requirements)
    samples = COSTLY_SAMPLES if costly else SAMPLES if membership.robot.evaluator.quick else SLOW_SAMPLES
    sampled = sample_size(membership, samples)
    if abs(sampled[0] - size) <= error + DEVIATIONS * sampled[1]:
        return sampled, ""
    found = with_error(*sampled, size_unit(membership.domain))
    return sampled, f"random points say {found}: parts are finer than {shown(pitch, 'm', 2)}"


def refined(
    membership: Membership, on_grid: NDArray[np.int32], axes: list[Array], tolerance: float, thorough: bool = True
) -> Refined:
    """The border of a workspace from the codes of a grid's nodes, refined to a tolerance, all in m (`Domain.scale`)."""

    def codes(points: Array) -> NDArray[np.int32]:
        return membership.codes(points / membership.domain.scale)

    if len(axes) > 1:
        border, report = first_border(codes, on_grid, axes, 0.5 * tolerance), membership.robot.sweeps.begin
        try:
            return refine(codes, *border, tolerance, thorough, report)
        finally:
            report("")
    (axis,), step = axes, axes[0][1] - axes[0][0]  # ends of intervals
    places = np.concatenate([[axis[0] - step], axis, [axis[-1] + step]])[:, None]
    solid = np.pad(on_grid == INSIDE, 1)
    change = np.flatnonzero(solid[1:] != solid[:-1])
    first, second, inner = places[change], places[change + 1], solid[change][:, None]
    corners, stops = bisect(codes, np.where(inner, first, second), np.where(inner, second, first), tolerance)
    return Refined(corners, np.arange(len(corners), dtype=np.int64)[:, None], stops, 0.0, True)


def depth(inside: NDArray[np.bool_], axes: list[Array]) -> float:
    """Size of a set of grid nodes, at least one, by the size of its border, in the unit of the axes."""
    steps = np.array([axis[1] - axis[0] for axis in axes])
    border = sum(np.prod(np.delete(steps, k)) * np.diff(np.pad(inside, 1), axis=k).sum() for k in range(inside.ndim))
    return float(np.prod(steps) * inside.sum() / (STAIRS[inside.ndim] * border))


def enclosed(corners: Array, simplices: NDArray[np.int64]) -> float:
    """Volume or area within a closed border, or total length of intervals between pairs of ends."""
    middle = corners.mean(axis=0)
    if simplices.shape[1] == 1:
        ordered = np.sort(corners[:, 0])
        return float(np.sum(ordered[1::2] - ordered[::2]))
    p = [corners[simplices[:, k]] - middle for k in range(simplices.shape[1])]
    if len(p) == 2:
        return abs(float(np.sum(p[0][:, 0] * p[1][:, 1] - p[0][:, 1] * p[1][:, 0]))) / 2.0
    return abs(float(np.sum(p[0] * np.cross(p[1], p[2])))) / 6.0


def sample_size(membership: Membership, n: int) -> tuple[float, float]:
    """Size of a workspace by random points, and its standard deviation."""
    domain = membership.domain
    points = np.random.default_rng(0).uniform(domain.lower, domain.upper, (n, domain.dimension))
    share = float(np.mean(membership.inside(points)))
    whole = float(np.prod(domain.upper - domain.lower))
    return share * whole, whole * float(np.sqrt(max(share * (1.0 - share), 1.0 / n) / n))
