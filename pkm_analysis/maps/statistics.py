# SPDX-License-Identifier: Apache-2.0
"""Statistics of a quantity over very many poses, none of which is stored: memory does not grow with their number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Domain
from pkm_analysis.kernels.pose_quantities import TYPE2
from pkm_analysis.maps.map import OfQuantity
from pkm_analysis.requirements.conditions import INSIDE, Membership, Stop
from pkm_analysis.requirements.grammar import shown
from pkm_analysis.requirements.quantities import EVERYWHERE, finite_nowhere, singular_everywhere
from pkm_analysis.requirements.quantity import Batch, Quantity
from pkm_analysis.workspace.grid import extent
from pkm_description.mechanism import Array

CHUNK, SLOW_CHUNK = 1 << 18, 1 << 9  # poses
PILOT, SLOW_PILOT = 1 << 14, 1 << 9  # random poses that set the histogram's range
BINS = 100
FIRST = 1  # percent of the pilot's values on either side of the histogram's range, which is then widened
WIDER = 0.25

Chunk = tuple[int, int, int]  # number of the chunk, its first pose, the one after its last
Parts = tuple[NDArray[Any], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Statistics(OfQuantity):
    """A quantity over many poses, with the conditions over the domain in `membership`.

    `poses` were examined; all conditions hold at `inside` of them, of which `mean`, `deviation` (standard), `least` and
    `most` with their points, and the histogram are: `edges` (b + 1,), `counts` (b,), and those `beyond` it, below and
    above. `stopped_by` are shares of all poses; `notes` hold at all poses.
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

    `given` ranges [m, rad] are by full name; others are the workspace's extent. The number of poses is approximate, as
    a grid has an integer number of nodes per coordinate, the centres of its cells; with `seed` poses are random.
    `AnalysisError` where no pose is inside.
    """
    if poses < 1:
        raise AnalysisError("sweep", f"{poses} poses are none", "give a number of them")
    if len(given) < conditions.domain.dimension and conditions.domain.dimension > 3:
        raise AnalysisError("sweep", "more than three coordinates vary", "give the range of each")
    membership = conditions.over(conditions.domain.within(extent(conditions, given)))
    domain, robot = membership.domain, membership.robot
    quick = robot.evaluator.quick
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
    call = partial(_of, membership, quantity, points, edges)
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
    """Whether the robot is singular of type 2 at all of n random poses that are inside."""
    points = _random(membership.domain, 0, (0, 0, n))
    poses, _ = membership.domain.poses(points[membership.inside(points)])
    return bool(len(poses)) and singular_everywhere(Batch(membership.robot, poses, (TYPE2,)).number(TYPE2))


def _shape(domain: Domain, poses: int) -> tuple[int, ...]:
    """Nodes along each coordinate, in cells as cubic as possible."""
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
    low, high = (float(v) for v in np.percentile(values, (FIRST, 100 - FIRST)))
    room = WIDER * (high - low) or max(abs(low), 1.0) * 1e-6
    return np.linspace(low - room, high + room, BINS + 1)


def _of(membership: Membership, quantity: Quantity, points: Callable[[Chunk], Array], edges: Array, at: Chunk) -> Parts:
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
