# SPDX-License-Identifier: Apache-2.0
"""A quantity over a slice or volume of the workspace, with its extremes, its mean, and loci of singularities.

Surfaces of one value over a volume are found by marching cubes (Lorensen and Cline, "Marching cubes", 1987); they and
maps are coloured sheets in the base frame, for the browser page and RViz.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Domain, Range, check_resolution, nodes_of, through
from pkm_analysis.kernels.pose_quantities import HOLD, REACH, REGULARITY, TYPE2, UNLIMITED
from pkm_analysis.layer_file import Sheet, in_base_frame, write_layer
from pkm_analysis.requirements.conditions import INSIDE, Membership, OverDomain
from pkm_analysis.requirements.grammar import shown, spread
from pkm_analysis.requirements.quantities import EVERYWHERE, finite_nowhere, singular_everywhere
from pkm_analysis.requirements.quantity import Batch, Quantity
from pkm_analysis.workspace.grid import extent
from pkm_description.mechanism import Array
from pkm_runtime.describable import measure
from pkm_runtime.optional import optional_library

Mask = NDArray[np.bool_]
NODES, SLOW_NODES = {1: 241, 2: 241, 3: 61}, {1: 61, 2: 61, 3: 15}  # along the longest coordinate
OUTLIERS = 2.0  # percent of values at either end that the colour scale excludes where they are far off


class OfQuantity(OverDomain):
    """A quantity over a domain: where it is least and most, and its mean."""

    quantity: Quantity
    least: tuple[float, Array]  # the value, and its point
    most: tuple[float, Array]
    mean: float
    notes: tuple[str, ...]

    @property
    def asked(self) -> dict[str, Any]:
        """What was asked, and the extremes, for JSON."""
        quantity = {"quantity": self.quantity.name, "unit": self.quantity.unit, "meaning": self.quantity.meaning}
        ends = {word: {"value": value, "at": at.tolist()} for word, (value, at) in self._ends.items()}
        return {**super().asked, **quantity, **ends, "mean": self.mean, "notes": list(self.notes)}

    @property
    def _ends(self) -> dict[str, tuple[float, Array]]:
        return {"least": self.least, "most": self.most}

    def _details(self) -> list[str]:
        unit = self.quantity.unit
        ends = [f"{word} {shown(v, unit)} at {self.domain.place(at, 4)}" for word, (v, at) in self._ends.items()]
        about = [f"{self.quantity.name}: {self.quantity.meaning}", self.domain.in_words()]
        return [*ends, f"mean {shown(self.mean, unit)}", *self.notes, *about]


@dataclass(frozen=True, eq=False, repr=False)
class Map(OfQuantity):
    """A quantity over one, two or three coordinates, with the conditions over the map's domain in `membership`.

    Attributes:
        axes: values of each coordinate at the nodes [m, rad].
        values: at the nodes; NaN where the robot cannot be.
        inside: nodes where all conditions hold.
        loci: by name, a number at each node that changes sign on a locus; NaN out of reach.
        notes: what cannot be said of loci, and why.
    """

    _picture: ClassVar[str] = "map_pictures.map_picture"

    membership: Membership
    quantity: Quantity
    axes: tuple[Array, ...]
    values: Array
    inside: Mask
    loci: dict[str, Array]
    least: tuple[float, Array]
    most: tuple[float, Array]
    mean: float
    notes: tuple[str, ...] = ()

    def _summary(self) -> str:
        unit = self.quantity.unit
        return f"{self.membership.robot.name}: {self.quantity.name} from {spread(self.least[0], self.most[0], unit)}"

    def save(self, path: str | Path) -> Path:
        """Write a .glb layer for the browser page and RViz: one coloured sheet, or of a volume three and `surfaces`.

        `AnalysisError` for another extension, or other coordinates than two or three lengths.
        """
        robot, name, (low, high) = self.membership.robot, self.quantity.name, self.shown
        unit = self.quantity.unit
        title = f"{name} of {robot.name}, {shown(low, unit)} dark to {shown(high, unit)} bright"
        sheets = map_sheets(self.domain, self.axes, self.values, name, self.shown)
        if len(self.axes) == 3:
            sheets += surface_sheets(self.domain, self.surfaces, name, self.quantity.unit, self.shown)
        return write_layer(path, title, self.quantity.unit, robot.mechanism.base_link, sheets)

    @property
    def shown(self) -> tuple[float, float]:
        """Range of the colour scale: that of the values, without far outliers."""
        low, high = (float(v) for v in np.nanpercentile(self.values, (OUTLIERS, 100.0 - OUTLIERS)))
        wide = 0.25 * (high - low)
        least, most = self.least[0], self.most[0]
        return (least if low - least < wide else low), (most if most - high < wide else high)

    @cached_property
    def surfaces(self) -> tuple[Isosurface, ...]:
        """Isosurfaces of a few round values over a volume, by scikit-image; none over less than three coordinates."""
        return isosurfaces(self.axes, self.values, round_values(self.values)) if len(self.axes) == 3 else ()

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {**self.asked, "nodes": list(self.values.shape), "inside": int(self.inside.sum())}


def quantity_map(
    conditions: Membership, quantity: Quantity, given: dict[str, tuple[float, float]], resolution: int | None = None
) -> Map:
    """Map a quantity where all conditions hold, over one to three coordinates whose ranges do not matter.

    `given` ranges [m, rad] are by full name; others are the workspace's extent. `resolution` counts nodes along the
    longest coordinate. `AnalysisError` for more than three coordinates, or an empty map.
    """
    if conditions.domain.dimension > 3:
        raise AnalysisError("map", "it has more than three coordinates", "hold the others")
    check_resolution("map", resolution, conditions.domain.dimension)
    membership = conditions.over(conditions.domain.within(extent(conditions, given)))
    domain, robot = membership.domain, membership.robot
    spans = (domain.upper - domain.lower) * domain.scale
    nodes = resolution or (NODES if robot.evaluator.quick else SLOW_NODES)[domain.dimension]
    counts = np.maximum(np.round(nodes * spans / spans.max()).astype(int), min(nodes, 25))
    axes = tuple(domain.grid(counts))
    points = nodes_of(axes)
    question = membership.question and repr((membership.question, quantity.question))
    parts = robot.in_chunks(partial(_of, membership, quantity), points, "nodes", lambda: question)
    columns = (np.concatenate(c).reshape(tuple(counts)) for c in zip(*parts, strict=True))
    values, inside, reach, type2, hold, regularity = columns
    if not inside.any():
        raise AnalysisError("map", f"nowhere over {domain.in_words()} do all conditions hold", "give other ranges")
    loci, notes = _loci(membership, inside, reach, type2, hold, regularity)
    values = np.where(inside & np.isfinite(values), values, np.nan)
    if np.isnan(values).all():
        raise finite_nowhere(quantity, domain.in_words(), EVERYWHERE in notes)
    if np.isnan(values[inside]).any():
        unknown = int(np.isnan(values[inside]).sum())
        notes = (*notes, f"{quantity.name} is infinite or unknown at {unknown} of the nodes")
    flat = values.ravel()
    least, most = ((float(flat[k]), points[k]) for k in (int(np.nanargmin(flat)), int(np.nanargmax(flat))))
    return Map(membership, quantity, axes, values, inside, loci, least, most, float(np.nanmean(flat)), notes)


def _of(membership: Membership, quantity: Quantity, points: Array) -> tuple[Array, ...]:
    poses, known = membership.domain.poses(points)
    batch = Batch(membership.robot, poses, (TYPE2, HOLD, REGULARITY, *quantity.needs))
    reach = np.where(known, batch.number(REACH), -1.0)
    values = np.where(reach >= 0.0, quantity.evaluate(batch), np.nan)
    margins = (np.where(reach >= 0.0, batch.number(k), np.nan) for k in (TYPE2, HOLD, REGULARITY))
    return (values, membership.codes(points) == INSIDE, reach, *margins)


def _loci(
    membership: Membership, inside: Mask, reach: Array, type2: Array, hold: Array, regularity: Array
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Numbers that are zero on loci, at every node, and notes on what holds where all conditions do."""
    kinematics = membership.robot.kinematics
    loci, notes = {"type 1: a limb stretched or folded": reach}, []
    if len(kinematics.actuated_names) == kinematics.mobility:
        loci["type 2: the drives lose hold"] = type2
    else:
        notes.append(
            "more drives than degrees of freedom: type 2 has no changing sign, and needs several equations at once; "
            f"its margin is {measure(_least(np.abs(type2), inside))} at least"
        )
    if singular_everywhere(type2):
        notes.append(EVERYWHERE)
    for name, margin in (("constraint", hold), ("limb_regularity", regularity)):
        least = _least(margin, inside)
        if least < UNLIMITED / 2.0:
            notes.append(f"{name} is {measure(least)} at least, where 0 is a singularity")
    if not inside.all():
        notes.append(f"all conditions hold at {100.0 * inside.mean():.3g} % of the nodes; the figures are of these")
    return loci, tuple(notes)


def _least(margin: Array, inside: Mask) -> float:
    """The least value of a margin at nodes inside; infinite where it is unknown at all of them."""
    return float(np.min(margin[inside & ~np.isnan(margin)], initial=np.inf))


NONE = np.empty((0, 3)), np.empty((0, 3), dtype=np.int64)


SHARES = (25.0, 55.0, 85.0)  # percent of the volume where the quantity is less than on each surface
ROUND = 40.0  # values are rounded to about this part of the range between the first and the last
OPACITY = 200
THIN = 110  # opacity of nested surfaces


def level_surface(values: Array, level: float) -> tuple[Array, NDArray[np.int64]]:
    """Corners (k, 3) and triangles (t, 3) where values (l, m, n) at nodes cross a level, in cells without NaN.

    Corners are in grid steps from the first node, each on an edge of a cell. Needs scikit-image, else `AnalysisError`.
    """
    marching = optional_library("skimage.measure", "scikit-image", "surfaces of one value")
    known = np.isfinite(values)
    cells = np.ones(tuple(n - 1 for n in values.shape), dtype=bool)
    for corner in np.ndindex(2, 2, 2):
        cells &= known[tuple(slice(c, n - 1 + c) for c, n in zip(corner, values.shape, strict=True))]
    mask = np.zeros(values.shape, dtype=bool)
    mask[1:, 1:, 1:] = cells
    filled = np.where(known, values, level + 1.0)
    if not (cells.any() and filled[known].min() < level < filled[known].max()):
        return NONE
    try:
        corners, triangles, _, _ = marching.marching_cubes(filled, level, mask=mask)
    except (RuntimeError, ValueError):  # no cell with all its corners known has the value
        return NONE
    return np.asarray(corners, dtype=np.float64), np.asarray(triangles, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Isosurface:
    """Where a quantity has a value: corners (n, 3) [m, rad] and triangles (k, 3)."""

    value: float
    corners: Array
    triangles: NDArray[np.int64]


def round_values(values: Array) -> tuple[float, ...]:
    """A few increasing round values that divide a volume into similar parts; none where all values are equal."""
    found = np.nanpercentile(values, SHARES)
    span = float(found[-1] - found[0])
    if not span > 0.0:
        return ()
    step = 10.0 ** np.floor(np.log10(span / ROUND))
    step *= max(m for m in (1.0, 2.0, 5.0, 10.0) if m * step <= span / ROUND * (1.0 + 1e-9))
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return tuple(float(f"{v:.12g}") for v in np.unique(step * np.round(found / step)) if low < v < high)


def isosurfaces(axes: Sequence[Array], values: Array, levels: Sequence[float]) -> tuple[Isosurface, ...]:
    """Isosurfaces over the three coordinates of a map, in the order of the levels, by linear interpolation.

    They end where the robot cannot be, NaN in values (l, m, n), and at the ends of the ranges; empty ones are left out.
    `axes` are values at the nodes [m, rad], evenly spaced. Needs scikit-image, else `AnalysisError`.
    """
    start, steps = np.array([axis[0] for axis in axes]), np.array([axis[1] - axis[0] for axis in axes])
    found = []
    for level in levels:
        corners, triangles = level_surface(values, level)
        if len(triangles):
            found.append(Isosurface(level, start + steps * corners, triangles))
    return tuple(found)


def map_sheets(domain: Domain, axes: Sequence[Array], values: Array, name: str, shown: Range) -> list[Sheet]:
    """Sheets of a map: the plane of two coordinates, or of three the planes through home or the middle.

    `axes` [m, rad] and `values`, NaN where the robot cannot be, are at the nodes; `shown` are the values of the darkest
    and the brightest colour. `AnalysisError` for a single coordinate, or one that rotates the platform.
    """
    if len(axes) == 1:
        raise AnalysisError("layer", "a map over one coordinate is not a surface", "vary two or three")
    if len(axes) == 2:
        return [_sheet(domain, axes, values, name, shown)]
    sheets = []
    for cut, (c, axis) in enumerate(zip(domain.coordinates, axes, strict=True)):
        at = int(np.abs(axis - through(c, float(axis[0]), float(axis[-1]))).argmin())
        plane = [axis[at : at + 1] if k == cut else other for k, other in enumerate(axes)]
        there = f"{name} at {c.label} = {axis[at]:.4g} {c.unit}"
        sheets.append(_sheet(domain, plane, np.asarray(np.take(values, at, axis=cut)), there, shown))
    return sheets


def surface_sheets(domain: Domain, surfaces: Sequence[Isosurface], name: str, unit: str, shown: Range) -> list[Sheet]:
    """Sheets of isosurfaces in the map's colours, as `map_sheets`; `AnalysisError` where a coordinate is an angle."""
    found = []
    for one in surfaces:
        colours = colours_of(np.full(len(one.corners), one.value), shown, THIN)
        title = f"{name} = {measure(one.value)}" + ("" if unit == "1" else f" {unit}")
        found.append(Sheet(title, in_base_frame(domain, one.corners), one.triangles, colours))
    return found


def _sheet(domain: Domain, axes: Sequence[Array], values: Array, name: str, shown: Range) -> Sheet:
    """Values (m, n) at the nodes of a plane as triangles between nodes inside."""
    points = nodes_of(axes)
    number = np.arange(values.size).reshape(values.shape)
    a, b, c, d = (number[i : i - 1 or None, j : j - 1 or None].ravel() for i, j in ((0, 0), (1, 0), (1, 1), (0, 1)))
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    triangles = triangles[np.isfinite(values.ravel()[triangles]).all(axis=1)]
    used, renumbered = np.unique(triangles, return_inverse=True)
    return Sheet(
        name, in_base_frame(domain, points[used]), renumbered.reshape(-1, 3), colours_of(values.ravel()[used], shown)
    )


def colours_of(values: Array, shown: Range, opacity: int = OPACITY) -> NDArray[np.uint8]:
    """Colours (n, 4), 0 to 255, of values (n,); `shown` are the darkest and the brightest value."""
    low, high = shown
    viridis = optional_library("matplotlib", "matplotlib", "colours of layers").colormaps["viridis"]
    shares = np.clip((values - low) / ((high - low) or 1.0), 0.0, 1.0)
    colours = np.array(viridis(shares, bytes=True), dtype=np.uint8)
    colours[:, 3] = opacity
    return colours
