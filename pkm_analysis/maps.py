# SPDX-License-Identifier: Apache-2.0
"""A quantity over a slice or volume of the workspace, with loci of singularities; statistics over very many poses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from pkm_analysis.requirements.conditions import INSIDE, Membership, OverDomain, Stop
from pkm_analysis.requirements.grammar import shown, spread
from pkm_analysis.requirements.quantities import EVERYWHERE, finite_nowhere, singular_everywhere
from pkm_analysis.requirements.quantity import Batch, Quantity
from pkm_analysis.workspace.border import extent
from pkm_description.mechanism import Array
from pkm_runtime.describable import measure
from pkm_runtime.optional import optional_library

Mask = NDArray[np.bool_]
NODES, SLOW_NODES = {1: 241, 2: 241, 3: 61}, {1: 61, 2: 61, 3: 15}  # along the longest coordinate
OUTLIERS = 2.0  # percent of values at either end that the colour scale excludes where they are far off
NONE = np.empty((0, 3)), np.empty((0, 3), dtype=np.int64)
SHARES = (25.0, 55.0, 85.0)  # percent of the volume where the quantity is less than on each surface
ROUND = 40.0  # values are rounded to about this part of the range between the first and the last
OPACITY = 200
THIN = 110  # opacity of nested surfaces
CHUNK, SLOW_CHUNK = 1 << 18, 1 << 9  # poses
PILOT, SLOW_PILOT = 1 << 14, 1 << 9  # random poses that set the histogram's range
BINS = 100
OUTER = 1  # percent of the pilot's values on either side of the histogram's range, which is then widened
WIDER = 0.25
Chunk = tuple[int, int, int]  # number of the chunk, its first pose, the one after its last
Parts = tuple[NDArray[Any], ...]


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

    `values` at the nodes of the `axes` [m, rad] are NaN where the robot cannot be; `inside` are nodes where all
    conditions hold. `loci` have by name a number at each node that changes sign on a locus, NaN out of reach; `notes`
    say what cannot be said of loci, and why.
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
        """Write a .glb layer, of a volume with its `surfaces`; `AnalysisError` unless coordinates are lengths."""
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
        if len(self.axes) != 3:
            return ()
        start, steps = np.array([(axis[0], axis[1] - axis[0]) for axis in self.axes]).T
        found = [(value, *level_surface(self.values, value)) for value in round_values(self.values)]
        return tuple(Isosurface(value, start + steps * at, sides) for value, at, sides in found if len(sides))

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
    quick = _quick(membership, quantity)
    parts = robot.in_chunks(partial(_of, membership, quantity), points, "nodes", lambda: question, quick)
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


def _quick(membership: Membership, quantity: Quantity) -> bool:
    return membership.quick and not quantity.slow


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
    return float(np.min(margin[inside & ~np.isnan(margin)], initial=np.inf))


def level_surface(values: Array, level: float) -> tuple[Array, NDArray[np.int64]]:
    """Corners (k, 3), in grid steps, and triangles (t, 3) where values (l, m, n) cross a level, in cells without NaN.

    By marching cubes (Lorensen and Cline, "Marching cubes", 1987). Needs scikit-image, else `AnalysisError`.
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


def map_sheets(domain: Domain, axes: Sequence[Array], values: Array, name: str, shown: Range) -> list[Sheet]:
    """Sheets of a map, of three coordinates the planes through home or the middle; `shown` is the range of colours."""
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


@dataclass(frozen=True, eq=False, repr=False)
class Statistics(OfQuantity):
    """A quantity over many poses, with the conditions over the domain in `membership`.

    All conditions hold at `inside` of the `poses`, of which mean, standard `deviation`, `least` and `most` with their
    points, and the histogram are: `edges` (b + 1,), `counts` (b,), and those `beyond` it, below and above.
    `stopped_by` are shares of all poses; `notes` hold at all poses.
    """

    _picture: ClassVar[str] = "map_pictures.statistics_picture"

    membership: Membership
    quantity: Quantity
    poses: int
    inside: int
    mean: float
    deviation: float
    least: tuple[float, Array]
    most: tuple[float, Array]
    edges: Array
    counts: NDArray[np.int64]
    beyond: tuple[int, int]
    stopped_by: tuple[tuple[Stop, float], ...]
    notes: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """Share of the poses that are inside."""
        return self.inside / self.poses

    @property
    def size(self) -> tuple[float, float]:
        """Size of the workspace by counting, and its standard deviation if the poses are random."""
        whole = float(np.prod(self.domain.upper - self.domain.lower))
        spread = max(self.share * (1.0 - self.share), 1.0 / self.poses) / self.poses
        return whole * self.share, whole * float(np.sqrt(spread))

    def _summary(self) -> str:
        name = f"{self.membership.robot.name}: {self.quantity.name}"
        return f"{name} at {self.poses} poses, {100.0 * self.share:.4g} % of them inside"

    def _details(self) -> list[str]:
        spread = f"standard deviation {shown(self.deviation, self.quantity.unit)}"
        stops = [f"{100.0 * share:.3g} %: {stop.text}" for stop, share in self.stopped_by[:5]]
        return [f"mean {shown(self.mean, self.quantity.unit, 9)}, {spread}", *super()._details(), *stops]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {
            **self.asked,
            **self._plain("poses", "inside"),
            "standard_deviation": self.deviation,
            "size": list(self.size),
            "histogram_from": float(self.edges[0]),
            "histogram_to": float(self.edges[-1]),
            "histogram": self.counts.tolist(),
            "beyond": list(self.beyond),
            "stopped_by": [{"kind": s.kind, "what": s.text, "share": share} for s, share in self.stopped_by],
        }


def statistics(
    conditions: Membership,
    quantity: Quantity,
    given: dict[str, tuple[float, float]],
    poses: int,
    seed: int | None = None,
) -> Statistics:
    """Statistics of a quantity where all conditions hold, whose own ranges do not matter.

    `given` ranges [m, rad] are by full name; others are the workspace's extent. Poses are about so many centres of a
    grid's cells, or random with `seed`. `AnalysisError` where no pose is inside.
    """
    if poses < 1:
        raise AnalysisError("sweep", f"{poses} poses are none", "give a number of them")
    if len(given) < conditions.domain.dimension and conditions.domain.dimension > 3:
        raise AnalysisError("sweep", "more than three coordinates vary", "give the range of each")
    membership = conditions.over(conditions.domain.within(extent(conditions, given)))
    domain, robot = membership.domain, membership.robot
    quick = _quick(membership, quantity)
    points: Callable[[Chunk], Array]
    if seed is None:
        shape = _shape(domain, poses)
        points, n = partial(_nodes, domain, shape), int(np.prod(shape))
    else:
        points, n = partial(_random, domain, seed), poses
    pilot = PILOT if quick else SLOW_PILOT
    edges = _edges(membership, quantity, pilot)
    size = CHUNK if quick else SLOW_CHUNK
    chunks = ((k, first, min(first + size, n)) for k, first in enumerate(range(0, n, size)))
    question = membership.question and repr((membership.question, quantity.question, seed, n, BINS))
    call = partial(_sums, membership, quantity, points, edges)
    total: Parts | None = None
    for part in robot.sweeps.map(call, chunks, f"{quantity.name} at {n} poses", -(-n // size), question):
        total = part if total is None else _added(total, part)
    assert total is not None  # there is one pose at least
    sums, counts, (least, most), codes = total
    known = int(counts.sum())
    if not codes[INSIDE]:
        problem = f"at none of {n} poses over {domain.in_words()} do all conditions hold"
        raise AnalysisError("sweep", problem, "give other ranges")
    everywhere = _singular_everywhere(membership, pilot)
    if not known:
        raise finite_nowhere(quantity, f"{domain.in_words()} ({n} poses)", everywhere)
    shifted, middle = sums[0] / known, 0.5 * (edges[0] + edges[-1])
    deviation = float(np.sqrt(max(sums[1] / known - shifted**2, 0.0)))
    first, last = ((float(one[0]), one[1:]) for one in (least, most))
    outside = [int(code) for code in np.flatnonzero(codes) if code != INSIDE]
    stops = sorted(((membership.stop(code), float(codes[code] / n)) for code in outside), key=lambda stop: -stop[1])
    beyond, notes = (int(counts[0]), int(counts[-1])), (EVERYWHERE,) if everywhere else ()
    mean, inside, bars = float(middle + shifted), int(codes[INSIDE]), counts[1:-1]
    asked = (membership, quantity, n, inside, mean, deviation)
    return Statistics(*asked, first, last, edges, bars, beyond, tuple(stops), notes)


def _singular_everywhere(membership: Membership, n: int) -> bool:
    points = _random(membership.domain, 0, (0, 0, n))
    poses, _ = membership.domain.poses(points[membership.inside(points)])
    return bool(len(poses)) and singular_everywhere(Batch(membership.robot, poses, (TYPE2,)).number(TYPE2))


def _shape(domain: Domain, poses: int) -> tuple[int, ...]:
    span = (domain.upper - domain.lower) * domain.scale
    pitch = (float(np.prod(span)) / poses) ** (1.0 / len(span))
    return tuple(int(n) for n in np.maximum(np.round(span / pitch), 1))


def _nodes(domain: Domain, shape: tuple[int, ...], chunk: Chunk) -> Array:
    index = np.unravel_index(np.arange(chunk[1], chunk[2]), shape)
    sides = domain.upper - domain.lower
    return np.stack(
        [low + side * (i + 0.5) / n for low, side, i, n in zip(domain.lower, sides, index, shape, strict=True)], axis=1
    )


def _random(domain: Domain, seed: int, chunk: Chunk) -> Array:
    rng = np.random.default_rng([seed, chunk[0]])
    return rng.uniform(domain.lower, domain.upper, (chunk[2] - chunk[1], domain.dimension))


def _values(membership: Membership, quantity: Quantity, points: Array) -> tuple[Array, NDArray[np.int32]]:
    """The quantity at the points inside, NaN elsewhere, and the codes of all."""
    codes = membership.codes(points)
    inside = codes == INSIDE
    poses, _ = membership.domain.poses(points[inside])
    values = np.full(len(points), np.nan)
    values[inside] = quantity.evaluate(Batch(membership.robot, poses, quantity.needs)) if inside.any() else np.nan
    return values, codes


def _edges(membership: Membership, quantity: Quantity, n: int) -> Array:
    values, _ = _values(membership, quantity, _random(membership.domain, 0, (0, 0, n)))
    values = values[np.isfinite(values)]
    if not len(values):
        return np.linspace(0.0, 1.0, BINS + 1)
    low, high = (float(v) for v in np.percentile(values, (OUTER, 100 - OUTER)))
    room = WIDER * (high - low) or max(abs(low), 1.0) * 1e-6
    return np.linspace(low - room, high + room, BINS + 1)


def _sums(
    membership: Membership, quantity: Quantity, points: Callable[[Chunk], Array], edges: Array, at: Chunk
) -> Parts:
    """Sums over a chunk, of values minus the middle of the histogram, to reduce rounding."""
    there = points(at)
    values, codes = _values(membership, quantity, there)
    use = np.isfinite(values)
    values, there = values[use], there[use]
    shifted = values - 0.5 * (edges[0] + edges[-1])
    counts = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1)
    sums = np.array([shifted.sum(), (shifted * shifted).sum()])
    extremes = np.full((2, 1 + there.shape[1]), np.nan)
    if len(values):
        for row, k in enumerate((int(values.argmin()), int(values.argmax()))):
            extremes[row] = values[k], *there[k]
    return sums, counts, extremes, np.bincount(codes)


def _added(one: Parts, other: Parts) -> Parts:
    """Sums over both; the first of two values that are as extreme."""
    ends = np.stack([one[2], other[2]])
    order = np.nan_to_num(ends[:, :, 0] * [1.0, -1.0], nan=np.inf).argmin(axis=0)
    codes = np.zeros(max(len(one[3]), len(other[3])), dtype=np.int64)
    for part in (one, other):
        codes[: len(part[3])] += part[3]
    return one[0] + other[0], one[1] + other[1], ends[order, [0, 1]], codes
