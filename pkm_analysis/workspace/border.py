# SPDX-License-Identifier: Apache-2.0
"""The workspace on a grid, and its border: a first one on the grid, refined to a tolerance, welded for mesh files.

Where the middle of a side is off the border by more than the tolerance, as far as samples show, the side is cut there
and the new corner moved to the border; every simplex with a cut side is divided: the mesh stays closed. A side across a
crease, where conditions meet, is cut on the crease itself, which keeps it sharp with few simplices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, log2, pi
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Coordinate, Range
from pkm_analysis.requirements.conditions import INSIDE, Membership
from pkm_analysis.requirements.grammar import shown
from pkm_description.mechanism import Array
from pkm_runtime.chunks import slices
from pkm_runtime.describable import listed
from pkm_runtime.optional import optional_library

Codes = Callable[[Array], NDArray[np.int32]]


Simplices = NDArray[np.int64]

ROUNDS, FEW_ROUNDS = 6, 4
PROBES = (0.05, 0.2, 0.5)  # of a side's length: how far from its middle the border is looked for
SHARPEST = 2.0  # of a side's length: how far the crease that it crosses may be from its middle
MOST_BENT = 0.35  # the same of the crease that it runs along
INWARD = (-0.03, 0.03, -0.1, 0.1, -0.3, 0.3)  # of a side's length: how far inside rays may begin
WIDEST = 1.5  # rad: the directions nearest to a side in which a crease is looked for
MOST = 3_000_000  # simplices; beyond, the tolerance is not met, and the result says so
_OFF = 1e-3  # of a side: how far a corner in its middle is off it, at most
REACHES = (2.0, 4.0, 8.0, 16.0, 32.0, 0.5, 0.1, 0.02)  # of the robot's size: search distances from home, in order
COARSE = {1: 401, 2: 61, 3: 25}  # nodes along each coordinate in the search for the extent
SLOW_COARSE = {1: 81, 2: 21, 3: 9}  # the same where poses are solved by iteration
PASSES = 2  # the second on the box that the first found
ROWS = 1 << 20  # nodes per batch


def bisect(codes: Codes, inside: Array, outside: Array, tolerance: float) -> tuple[Array, NDArray[np.int32]]:
    """Border points (n, d), within `tolerance` along lines from inside to outside; and the codes (n,) just outside."""
    inside, outside = inside.copy(), outside.copy()
    stops = codes(outside)
    longest = float(np.linalg.norm(outside - inside, axis=1).max(initial=0.0))
    for _ in range(max(0, ceil(log2(longest / tolerance))) if longest > 0.0 else 0):
        middle = 0.5 * (inside + outside)
        found = codes(middle)
        within = found == INSIDE
        inside[within] = middle[within]
        outside[~within] = middle[~within]
        stops[~within] = found[~within]
    return 0.5 * (inside + outside), stops


def first_border(
    codes: Codes, on_grid: NDArray[np.int32], axes: list[Array], tolerance: float
) -> tuple[Array, Simplices, NDArray[np.int32]]:
    """Corners (n, d) on the border, consistently oriented simplices (k, d), and the codes (n,) beyond corners.

    `on_grid` are the nodes' codes, `axes` their coordinates, evenly spaced; all beyond the grid is outside.
    """
    steps = np.array([axis[1] - axis[0] for axis in axes])
    start = np.array([axis[0] for axis in axes]) - steps
    solid = np.pad((on_grid == INSIDE).astype(np.float32), 1)
    points, simplices = _surface(solid) if len(axes) == 3 else _polygon(solid)
    low, high = np.floor(points).astype(np.int64), np.ceil(points).astype(np.int64)
    low_inside = solid[tuple(low.T)] > 0.5
    ends = start + steps * low, start + steps * high
    inside = np.where(low_inside[:, None], *ends)
    outside = np.where(low_inside[:, None], *ends[::-1])
    corners, stops = bisect(codes, inside, outside, tolerance)
    return corners, simplices, stops


def _surface(solid: Array) -> tuple[Array, Simplices]:
    measure = optional_library("skimage.measure", "scikit-image", "meshes of workspaces")
    points, triangles, _, _ = measure.marching_cubes(solid, 0.5, gradient_direction="ascent")
    points = np.round(2.0 * points) / 2.0  # halfway between two nodes, all of them
    return np.asarray(points, dtype=np.float64), np.asarray(triangles, dtype=np.int64)


def _polygon(solid: Array) -> tuple[Array, Simplices]:
    measure = optional_library("skimage.measure", "scikit-image", "borders of workspaces")
    points, sides, at = [np.empty((0, 2))], [np.empty((0, 2), dtype=np.int64)], 0
    for contour in measure.find_contours(solid, 0.5):
        ring = np.round(2.0 * contour[:-1]) / 2.0  # the last point is the first again
        number = at + np.arange(len(ring))
        points.append(ring)
        sides.append(np.stack([number, np.roll(number, -1)], axis=1))
        at += len(ring)
    return np.vstack(points), np.vstack(sides)


def welded(corners: Array, triangles: Simplices) -> tuple[Array, Simplices]:
    """Corners (m, 3), distinct in single precision as in .stl, and triangles (l, 3) of a closed border.

    At the end of a range, corners coincide. Degenerate triangles and pairs of them back to back are removed. The border
    stays closed: each side, in two of `triangles` (k, 3), loses as many of one orientation as of the other.
    """
    _, first, number = np.unique(corners.astype(np.float32), axis=0, return_index=True, return_inverse=True)
    kept = number.reshape(-1)[triangles]
    a, b, c = kept.T
    kept = kept[(a != b) & (b != c) & (c != a)]
    turn = np.argmin(kept, axis=1)[:, None]
    kept = np.take_along_axis(kept, (turn + np.arange(3)) % 3, axis=1)  # the lowest corner first, in the same sense
    ordered = np.sort(kept, axis=1)
    sense = np.where(kept[:, 1] == ordered[:, 1], 1, -1)
    same, which = np.unique(ordered, axis=0, return_inverse=True)
    net = np.bincount(which.reshape(-1), sense, len(same)).astype(np.int64)
    one_way = np.where((net > 0)[:, None], same, same[:, [0, 2, 1]])
    used, renumbered = np.unique(np.repeat(one_way, np.abs(net), axis=0), return_inverse=True)
    return _parted(corners[first[used]], renumbered.reshape(-1, 3))


def _parted(corners: Array, triangles: Simplices) -> tuple[Array, Simplices]:
    """The same with each side in two triangles only: along the edges of a box, thin triangles touch others. Of the
    triangles at a side of four, the two lowest get a corner of their own in its middle, just off it.
    """
    while True:
        directed = np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=2).reshape(-1, 2)
        third = np.roll(triangles, 1, axis=1).ravel()
        sides, which, count = np.unique(np.sort(directed, axis=1), axis=0, return_inverse=True, return_counts=True)
        which = which.reshape(-1)
        here = np.flatnonzero(count[which] > 2)
        if not len(here):
            return corners, triangles
        start, along = corners[sides[which[here], 0]], np.diff(corners[sides[which[here]]], axis=1)[:, 0]
        off = corners[third[here]] - start
        square = np.maximum(np.sum(along * along, axis=1, keepdims=True), 1e-300)
        off -= np.sum(off * along, axis=1, keepdims=True) / square * along
        back = directed[here, 0] > directed[here, 1]
        order = np.lexsort([np.linalg.norm(off, axis=1), back, which[here]])
        group = 2 * which[here[order]] + back[order]
        lowest = order[np.append(True, np.diff(group) > 0)].reshape(-1, 2)  # of each side, in each sense
        pair = here[lowest] // 3
        first = np.full(len(triangles), len(pair))
        np.minimum.at(first, pair, np.arange(len(pair))[:, None])
        alone = (first[pair] == np.arange(len(pair))[:, None]).all(axis=1)  # a triangle is divided once in a round
        lowest, pair, ends = lowest[alone], pair[alone], sides[which[here[lowest[alone, 0]]]]
        off, along, start = off[lowest].sum(axis=1), along[lowest[:, 0]], start[lowest[:, 0]]
        length = [np.linalg.norm(one, axis=1, keepdims=True) for one in (along, off)]
        share = np.minimum(0.25, _OFF * length[0] / np.maximum(length[1], 1e-300))
        middle = len(corners) + np.arange(len(pair))[:, None, None]
        corners = np.concatenate([corners, start + 0.5 * along + share * off])
        halves = [np.where(triangles[pair] == ends[:, k, None, None], middle, triangles[pair]) for k in (1, 0)]
        rest = np.delete(triangles, pair.ravel(), axis=0)
        triangles = np.concatenate([rest, *(half.reshape(-1, 3) for half in halves)])


@dataclass
class Refined:
    """A border as simplices."""

    corners: Array  # (n, d)
    simplices: Simplices  # (k, d)
    stops: NDArray[np.int32]  # (n,) what stops the robot beyond each corner
    uncertain: float  # size of what may lie between it and the true border, beside what the tolerance leaves
    complete: bool  # False where it was ended before the tolerance was met


def refine(
    codes: Codes,
    corners: Array,
    simplices: Simplices,
    stops: NDArray[np.int32],
    tolerance: float,
    thorough: bool = True,
    report: Callable[[str], object] = str,
) -> Refined:
    """Refine a border of corners (n, d), simplices (k, d) and codes `stops` (n,) beyond the corners to a tolerance.

    Not `thorough`, where each point takes long: no search for creases, few rounds. `report` is told of each round.
    """
    meeting = np.stack([stops, stops], axis=1)  # the conditions that meet in each corner, the same twice on a facet
    settled = np.empty(0, dtype=np.int64)  # sides that are straight enough, by key
    lost = np.empty(0, dtype=np.int64)
    rounds = ROUNDS if thorough else FEW_ROUNDS
    for k in range(rounds):
        keys = np.unique(_keys(simplices))
        sides = _ends(keys)
        lengths = np.linalg.norm(corners[sides[:, 1]] - corners[sides[:, 0]], axis=1)
        look = ~np.isin(keys, settled, assume_unique=True) & (lengths > 2.0 * tolerance)
        sides, keys, lengths = sides[look], keys[look], lengths[look]
        if not len(sides):
            return Refined(corners, simplices, meeting[:, 0], _uncertain_size(corners, simplices, lost), True)
        if len(simplices) > MOST:
            break
        normals = _normals(corners, simplices, sides)
        report(f"border, round {k + 1} of {rounds} at most, {len(sides)} sides: ")
        put = _cuts if thorough else _on_facets
        cut = put(codes, corners, meeting, sides, normals, tolerance)
        lost = np.concatenate([lost, keys[cut.lost]])
        settled = np.concatenate([settled, keys[~cut.far]])
        new = len(corners) + np.arange(int(cut.far.sum()))
        corners = np.vstack([corners, cut.points[cut.far]])
        meeting = np.vstack([meeting, cut.meeting[cut.far]])
        simplices = _divide(simplices, keys[cut.far], new)
    keys = np.unique(_keys(simplices))
    open_ = np.union1d(lost, keys[~np.isin(keys, settled)])
    return Refined(corners, simplices, meeting[:, 0], _uncertain_size(corners, simplices, open_), False)


def _uncertain_size(corners: Array, simplices: Simplices, lost: NDArray[np.int64]) -> float:
    """Bound on the size between the border and simplices with a lost side, half that side's length deep."""
    keys = _keys(simplices)
    ends = corners[_ends(keys)]
    deep = np.where(np.isin(keys, lost), 0.5 * np.linalg.norm(ends[..., 1, :] - ends[..., 0, :], axis=-1), 0.0)
    return float(np.sum(deep.max(axis=1) * facet_sizes(corners, simplices)))


def facet_sizes(corners: Array, simplices: Simplices) -> Array:
    """Areas of triangles, lengths of sides; 1 for an end."""
    if simplices.shape[1] == 1:
        return np.ones(len(simplices))
    a, b = corners[simplices[:, 0]], corners[simplices[:, 1]]
    if simplices.shape[1] == 2:
        return np.asarray(np.linalg.norm(b - a, axis=1))
    return np.asarray(0.5 * np.linalg.norm(np.cross(b - a, corners[simplices[:, 2]] - a), axis=1))


def _keys(simplices: Simplices) -> Simplices:
    """A number for each side (k, s) of simplices, the same in all of which it is one: the lower corner, the other."""
    first, second = simplices, np.roll(simplices, -1, axis=1)
    if simplices.shape[1] == 2:
        first, second = simplices[:, :1], simplices[:, 1:]
    return np.minimum(first, second) << 32 | np.maximum(first, second)


def _ends(keys: Simplices) -> Simplices:
    return np.stack([keys >> 32, keys & 0xFFFFFFFF], axis=-1)


def _normals(corners: Array, simplices: Simplices, sides: Simplices) -> Array:
    """Unit normals of the border at the middles of sides (m, 2), unoriented, weighted by simplex size."""
    across = np.zeros_like(corners)
    if simplices.shape[1] == 2:
        along = corners[simplices[:, 1]] - corners[simplices[:, 0]]
        normal = np.stack([along[:, 1], -along[:, 0]], axis=1)
    else:
        a, b, c = (corners[simplices[:, k]] for k in range(3))
        normal = np.cross(b - a, c - a)
    for k in range(simplices.shape[1]):
        for axis in range(corners.shape[1]):
            across[:, axis] += np.bincount(simplices[:, k], normal[:, axis], len(corners))
    mean = across[sides[:, 0]] + across[sides[:, 1]]
    along = corners[sides[:, 1]] - corners[sides[:, 0]]
    along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-300)
    mean -= np.sum(mean * along, axis=1, keepdims=True) * along
    return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-300)


class _Cuts(NamedTuple):
    points: Array  # (m, d) on the border
    meeting: NDArray[np.int32]  # (m, 2) conditions that meet there
    far: NDArray[np.bool_]  # (m,) where the side is off by more than the tolerance
    lost: NDArray[np.bool_]  # (m,) where no border is near


def _cuts(
    codes: Codes, corners: Array, meeting: NDArray[np.int32], sides: Simplices, normals: Array, tolerance: float
) -> _Cuts:
    first, second = meeting[sides[:, 0]], meeting[sides[:, 1]]
    common = (first[:, :, None] == second[:, None, :]).any(axis=(1, 2))
    on_crease = (first[:, 0] != first[:, 1]) & (np.sort(first, axis=1) == np.sort(second, axis=1)).all(axis=1)
    cut = _on_facets(codes, corners, meeting, sides, normals, tolerance)
    ends = corners[sides[:, 0]], corners[sides[:, 1]]
    middles, lengths = 0.5 * (ends[0] + ends[1]), np.linalg.norm(ends[1] - ends[0], axis=1)
    along = (ends[1] - ends[0]) / lengths[:, None]
    beside = np.cross(normals, along) if corners.shape[1] == 3 else along
    for at, aside, farthest in ((~common, along, SHARPEST), (on_crease, beside, MOST_BENT)):
        rows = np.flatnonzero(at)
        room = 1.25 * farthest * lengths[rows]
        points, pair, found = _crease(codes, middles[rows], normals[rows], aside[rows], room, 0.5 * tolerance)
        # not another crease that is near: one facet at each end, and no farther off than a crease between these can be
        found &= (pair[:, :1] == first[rows]).any(axis=1) & (pair[:, 1:] == second[rows]).any(axis=1)
        found &= np.linalg.norm(points - middles[rows], axis=1) < farthest * lengths[rows]
        rows, points, pair = rows[found], points[found], pair[found]
        cut.points[rows], cut.meeting[rows] = points, pair
        # a side across a crease is cut however straight it is: then its halves end on the crease, and lie on facets
        cut.far[rows] = ~common[rows] | (np.linalg.norm(points - middles[rows], axis=1) > tolerance)
        cut.lost[rows] = False
    return cut


def _on_facets(
    codes: Codes, corners: Array, _: NDArray[np.int32], sides: Simplices, normals: Array, tolerance: float
) -> _Cuts:
    """Middles of sides moved to the border along its normal."""
    ends = corners[sides[:, 0]], corners[sides[:, 1]]
    middles = 0.5 * (ends[0] + ends[1])
    lengths = np.linalg.norm(ends[1] - ends[0], axis=1)
    here = codes(middles)
    within = here == INSIDE
    far, lost, stops = np.zeros(len(sides), dtype=bool), np.zeros(len(sides), dtype=bool), here
    waiting = np.arange(len(sides))
    for sign in (1.0, -1.0):  # those that are straight enough wait no longer
        others = codes(middles[waiting] + sign * tolerance * normals[waiting])
        waiting = waiting[(others == INSIDE) == within[waiting]]
    for probe in PROBES:
        for sign in (1.0, -1.0):
            if not len(waiting):
                break
            others = middles[waiting] + (sign * probe * lengths[waiting])[:, None] * normals[waiting]
            flips = (codes(others) == INSIDE) != within[waiting]
            at = waiting[flips]
            if len(at):
                a, b = middles[at], others[flips]
                inner = within[at][:, None]
                middles[at], stops[at] = bisect(codes, np.where(inner, a, b), np.where(inner, b, a), 0.5 * tolerance)
                far[at] = True
            waiting = waiting[~flips]
    lost[waiting] = True
    return _Cuts(middles, np.stack([stops, stops], axis=1), far, lost)


def _crease(
    codes: Codes, middles: Array, normals: Array, aside: Array, lengths: Array, tolerance: float
) -> tuple[Array, NDArray[np.int32], NDArray[np.bool_]]:
    """Points on creases (m, d) near points, the two conditions that meet there (m, 2), and which were found (m,).

    What stops the robot depends on the direction of departure; it changes at a crease. Directions between unoriented
    unit normals of the border and unit vectors `aside` orthogonal to these are tried, up to `lengths` (m,).
    """
    m = len(middles)
    points, pair, found = middles.copy(), np.zeros((m, 2), dtype=np.int32), np.zeros(m, dtype=bool)
    start, within = middles.copy(), codes(middles) == INSIDE
    for share in INWARD:  # from beyond a hollow facet one has to go inside first
        others = middles + (share * lengths)[:, None] * normals
        fresh = ~within & (codes(others) == INSIDE)
        start[fresh], within = others[fresh], within | fresh
    for sense in (1.0, -1.0):  # the border may be on either side of the normal
        rows = np.flatnonzero(~found & within)
        if not len(rows):
            break

        def leave(angle: Array, rows: NDArray[np.int64], sense: float = sense) -> tuple[Array, Any, Any]:
            """Where rays meet the border, what is beyond it, and which do."""
            way = sense * np.cos(angle)[:, None] * normals[rows] + np.sin(angle)[:, None] * aside[rows]
            ends = start[rows] + lengths[rows][:, None] * way
            meets = codes(ends) != INSIDE
            at, beyond = bisect(codes, start[rows], np.where(meets[:, None], ends, start[rows]), tolerance)
            return at, beyond, meets

        low, high = np.full(len(rows), -WIDEST), np.full(len(rows), WIDEST)
        _, first, meets_first = leave(low, rows)
        at, second, meets_second = leave(high, rows)
        good = meets_first & meets_second & (first != second)
        rows, low, high, at, first, second = (values[good] for values in (rows, low, high, at, first, second))
        widest = 2.0 * WIDEST * float(lengths[rows].max(initial=0.0))
        for _ in range(max(1, ceil(log2(widest / tolerance))) if len(rows) else 0):
            middle = 0.5 * (low + high)
            here, beyond, meets = leave(middle, rows)
            same = beyond == first
            low, high = np.where(same, middle, low), np.where(same, high, middle)
            other = ~same & meets
            at[other], second[other] = here[other], beyond[other]
        points[rows], pair[rows], found[rows] = at, np.stack([first, second], axis=1), True
    return points, pair, found


def _divide(simplices: Simplices, keys: NDArray[np.int64], new: NDArray[np.int64]) -> Simplices:
    wanted = _keys(simplices)
    cuts = np.full_like(wanted, -1)
    if len(keys):
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        cuts = np.where(keys[at] == wanted, new[at], -1)
    if simplices.shape[1] == 2:
        cut, (a, b) = cuts[:, 0], simplices.T
        halves = [np.stack(ends, axis=1)[cut >= 0] for ends in ((a, cut), (cut, b))]
        return np.vstack([simplices[cut < 0], *halves])
    count = (cuts >= 0).sum(axis=1)
    parts = [simplices[count == 0]]
    # turned so that the first side is cut, and of two, the first two
    for k in range(3):
        a, b, c = (simplices[:, (k + j) % 3] for j in range(3))
        ab, bc, ca = (cuts[:, (k + j) % 3] for j in range(3))
        one = (count == 1) & (ab >= 0)
        parts += [np.stack([a, ab, c], axis=1)[one], np.stack([ab, b, c], axis=1)[one]]
        two = (count == 2) & (ab >= 0) & (bc >= 0)
        parts += [np.stack(p, axis=1)[two] for p in ((ab, b, bc), (a, ab, bc), (a, bc, c))]
        if k == 0:
            quarters = ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))
            parts += [np.stack(p, axis=1)[count == 3] for p in quarters]
    return np.vstack(parts)


def codes_on_grid(membership: Membership, axes: list[Array]) -> NDArray[np.int32]:
    """Codes of all nodes of a grid, one array axis per coordinate."""
    shape = tuple(len(axis) for axis in axes)
    codes = np.empty(int(np.prod(shape)), dtype=np.int32)
    for at in slices(len(codes), ROWS):
        index = np.unravel_index(np.arange(at.start, at.stop), shape)
        points = np.stack([axis[i] for axis, i in zip(axes, index, strict=True)], axis=1)
        codes[at] = membership.codes(points)
    return codes.reshape(shape)


def extent(conditions: Membership, given: Mapping[str, Range]) -> dict[str, Range]:
    """Range of a workspace along each of its coordinates, by name, with a margin; `given` ones stay.

    `AnalysisError` where it is unbounded along a coordinate, or empty wherever it was searched.
    """
    coordinates = conditions.domain.coordinates
    if all(c.name in given for c in coordinates):
        return {c.name: given[c.name] for c in coordinates}
    size = conditions.robot.kinematics.engine.size
    endless: list[Coordinate] = []
    asked: dict[str, Range] = {}
    for reach in REACHES:
        asked = {c.name: given.get(c.name, _asked(c, reach * size, conditions.platform_limits)) for c in coordinates}
        found = _box(conditions, asked)
        if found is None:
            continue
        open_ = [c for c in coordinates if c.name not in given and c.unit == "m"]
        endless = [c for c in open_ if _goes_on(c, found[c.name], asked[c.name], conditions)]
        if not endless:
            inner = {name: (max(a, asked[name][0]), min(b, asked[name][1])) for name, (a, b) in found.items()}
            return {**inner, **{c.name: given[c.name] for c in coordinates if c.name in given}}
    if endless:
        far = f"up to {shown(REACHES[4] * size, 'm')} from home no joint limit and no limb stops the robot"
        problem = f"it has no end along {listed(c.label for c in endless)}: {far}"
        raise AnalysisError("workspace", problem, "give a range, or limits of joints in the description")
    membership = conditions.over(conditions.domain.within(asked))
    middle = membership.domain.box.mean(axis=1)
    code = int(membership.codes(middle[None])[0])
    why = f"; in the middle of that: {membership.why(code, middle)}" if code else ""
    problem = f"it is empty: nowhere within {membership.domain.in_words()} do all conditions hold{why}"
    raise AnalysisError("workspace", problem, "loosen a requirement, or give ranges near to where it is thought to be")


def _asked(c: Coordinate, reach: float, limited: bool) -> Range:
    room = reach if c.unit == "m" else pi
    low, high = c.home - room, c.home + room
    if limited:
        low, high = max(low, min(c.lower, high)), min(high, max(c.upper, low))
    return (low, high) if low < high else (c.home - room, c.home + room)


def _goes_on(c: Coordinate, found: Range, asked: Range, conditions: Membership) -> bool:
    """Whether the workspace reaches an end of the searched range that is no limit of the description."""
    hard = (asked[0] <= c.lower, asked[1] >= c.upper) if conditions.platform_limits else (False, False)
    return (found[0] < asked[0] and not hard[0]) or (found[1] > asked[1] and not hard[1])


def _box(conditions: Membership, ranges: dict[str, Range]) -> dict[str, Range] | None:
    nodes = (COARSE if conditions.quick else SLOW_COARSE)[min(len(ranges), 3)]
    box, found = dict(ranges), None
    for _ in range(PASSES):
        domain = conditions.domain.within(box)
        axes = domain.grid([nodes] * domain.dimension)
        inside = codes_on_grid(conditions.over(domain), axes) == INSIDE
        if not inside.any():
            return found
        found = {}
        for k, (name, axis) in enumerate(zip(ranges, axes, strict=True)):
            here = np.flatnonzero(inside.any(axis=tuple(j for j in range(inside.ndim) if j != k)))
            step = float(axis[1] - axis[0])
            found[name] = (float(axis[here[0]]) - step, float(axis[here[-1]]) + step)
            box[name] = (max(ranges[name][0], found[name][0]), min(ranges[name][1], found[name][1]))
    return found
