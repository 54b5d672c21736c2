# SPDX-License-Identifier: Apache-2.0
"""The beams of one body, a link with all that is fixed to it, in its own frame: what carries from joint to joint.

Beams are said by the description, or taken from the visuals: every cylinder or box that is at least twice as long as it
is wide, as a solid beam along its axis. Joints and centres of mass hang rigidly on the nearest point of the nearest
beam; beams that touch are rigidly tied where they are nearest, and so are those that do not touch but have to. Pieces
between these *nodes* are the beams of the model; pieces that lead nowhere are left out.

Points may have leading axes, of many poses at which the structure is the same and only lengths differ.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pkm_analysis.analysis_errors import AnalysisError
from pkm_description.joint_geometry import frame_along
from pkm_description.mechanism import Array, Link, Section
from pkm_description.urdf.elements import MATERIALS, rectangle, tube
from pkm_description.urdf.visuals import Visual

SLENDER = 2.0  # length over width of a visual that is a beam
MATERIAL = "steel"  # where nothing is said
SAME = 1e-6  # of a length: nodes nearer than this are one


class DiffersError(Exception):
    """Poses that are asked for together, but at which the structure is not the same: `here` (n,) it is another one."""

    def __init__(self, here: ArrayLike = ()) -> None:
        super().__init__()
        self.here = np.asarray(here, dtype=bool)


def alike(found: ArrayLike) -> bool:
    """Whether something is so at all poses; `DiffersError` where it is so at some of them."""
    if isinstance(found, bool | np.bool_):
        return bool(found)
    all_of, any_of = bool(np.all(found)), bool(np.any(found))
    if all_of != any_of:
        raise DiffersError(found)
    return all_of


class Piece(NamedTuple):
    """A beam of a link: ends (..., 3), section, direction of its y, half its thickness [m], where it comes from."""

    link: str
    start: Array
    end: Array
    section: Section
    y: Array
    half: float
    source: str


class Hung(NamedTuple):
    """What hangs on a body: a point (..., 3), and the direction (3,) along which it may be elsewhere, or None."""

    point: Array
    along: Array | None = None


class Body(NamedTuple):
    """Beams between rigid nodes of a body: the nodes at their ends, and the node of everything that hangs on it."""

    pieces: tuple[Piece, ...]
    ends: tuple[tuple[int, int], ...]
    nodes: int
    hung: tuple[int, ...]


def described(link: Link, frame: Array, joints: Sequence[Array]) -> list[Piece]:
    """The beams that the description says of a link, in a frame in which its own is `frame` (4, 4)."""
    found = []
    for beam in link.beams:
        if beam.section is None:
            continue
        if beam.ends is None:
            apart = [p for k, p in enumerate(joints) if k == 0 or alike(np.linalg.norm(p - joints[0], axis=-1) > SAME)]
            if len(apart) != 2:
                problem = f"its beam has no ends, and its joints are at {len(apart)} places"
                raise AnalysisError(f"link {link.name}", problem, "write from and to of <beam>")
            start, end = apart
        else:
            start, end = beam.ends @ frame[:3, :3].T + frame[:3, 3]
        axis = np.atleast_2d(end - start)[0]
        alike(np.linalg.norm(np.cross(end - start, axis), axis=-1) < SAME * axis @ axis)
        y = across(axis, None if beam.y is None else frame[:3, :3] @ beam.y)
        half = float(np.sqrt(beam.section.A / np.pi))
        found.append(Piece(link.name, start, end, beam.section, y, half, "described"))
    return found


def drawn(link: Link, frame: Array, visuals: Sequence[Visual]) -> list[Piece]:
    """Solid beams of the visuals of a link, in a frame in which its own is `frame` (4, 4)."""
    material = next((beam.material for beam in link.beams if beam.material), MATERIAL)
    found = []
    for visual in visuals:
        if visual.shape == "cylinder":
            (radius, length), axes = visual.size, (2, 0)
            numbers, width = tube(float(radius)), 2.0 * radius
        elif visual.shape == "box":
            order = np.argsort(visual.size)
            length, width = visual.size[order[2]], visual.size[order[1]]
            numbers = rectangle(float(width), float(visual.size[order[0]]))
            axes = (int(order[2]), int(order[1]))
        else:
            continue
        if length < SLENDER * width:
            continue
        place = frame @ visual.frame
        half = 0.5 * length * place[:3, axes[0]]
        section, y = Section(*MATERIALS[material], *numbers), place[:3, axes[1]]
        ends = place[:3, 3] - half, place[:3, 3] + half
        found.append(Piece(link.name, *ends, section, y, 0.5 * float(width), f"drawn, as solid {material}"))
    return found


def across(axis: Array, wanted: Array | None) -> Array:
    """A unit direction (3,) across an axis, the nearest to one that is wanted."""
    x = axis / np.linalg.norm(axis)
    if wanted is not None:
        part = wanted - x * (x @ wanted)
        if np.linalg.norm(part) > 1e-6 * np.linalg.norm(wanted):
            return np.asarray(part / np.linalg.norm(part))
    return frame_along(x)[:, 0]


def body_of(pieces: Sequence[Piece], joints: Sequence[Hung], masses: Sequence[Hung]) -> Body:
    """Nodes and beams between them, in a body from whose beams joints and masses hang."""
    if len(joints) < 2 or not pieces:
        return Body((), (), 1, (0,) * (len(joints) + len(masses)))
    cuts = _Cuts(pieces)
    _tie(cuts)
    on = [cuts.hang(one, range(len(pieces))) for one in joints]
    kept = _between(cuts, on)
    if kept:  # masses hang on what carries
        by_piece = sorted({k for k, _, _ in kept})
        spans = {k: [(cuts.shares[k][a], cuts.shares[k][b]) for p, a, b in kept if p == k] for k in by_piece}
        on += [cuts.hang(one, by_piece, spans) for one in masses]
        kept = _between(cuts, on)
    nodes: dict[tuple[int, int], int] = {}
    ends, parts = [], []
    for k, a, b in kept:
        ends.append(tuple(nodes.setdefault(cuts.top((k, s)), len(nodes)) for s in (a, b)))
        parts.append(pieces[k]._replace(start=cuts.place(k, a), end=cuts.place(k, b)))
    if not kept:
        return Body((), (), 1, (0,) * (len(joints) + len(masses)))
    return Body(tuple(parts), tuple((a, b) for a, b in ends), len(nodes), tuple(nodes[cuts.top(one)] for one in on))


Cut = tuple[int, int]  # of a beam, by number, and which of its cuts


class _Cuts:
    """Where beams are cut, by the share of their length; cuts that are rigidly tied are one node."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = pieces
        self.shares: list[list[Array]] = [[] for _ in pieces]
        self.leader: dict[Cut, Cut] = {}

    def cut(self, k: int, share: Array) -> Cut:
        """The cut of a beam at a share of its length, an older one where that is the same."""
        for n, one in enumerate(self.shares[k]):
            if alike(np.abs(one - share) < SAME):
                return k, n
        self.shares[k].append(share)
        cut = k, len(self.shares[k]) - 1
        self.leader[cut] = cut
        return cut

    def place(self, k: int, n: int) -> Array:
        """Where a cut is (..., 3)."""
        piece = self.pieces[k]
        return np.asarray(piece.start + self.shares[k][n][..., None] * (piece.end - piece.start))

    def top(self, one: Cut) -> Cut:
        while self.leader[one] != one:
            one = self.leader[one]
        return one

    def tie(self, one: Cut, other: Cut) -> None:
        self.leader[self.top(one)] = self.top(other)

    def hang(self, one: Hung, among: Sequence[int], spans: dict[int, list[tuple[Array, Array]]] | None = None) -> Cut:
        best: tuple[Array, int, Array] = (np.array(np.inf), 0, np.array(0.0))
        for k in among:
            piece = self.pieces[k]
            direction = piece.end - piece.start
            share = _inside(dots(direction, one.point - piece.start) / dots(direction, direction))
            if spans is not None:
                share = _nearest_in(share, spans[k])
            apart = lengths(piece.start + share[..., None] * direction - one.point)
            if alike(apart < best[0] - SAME):
                best = (apart, k, share)
        if one.along is None or alike(best[0] <= self.pieces[best[1]].half):
            return self.cut(best[1], best[2])
        for k in among:  # elsewhere along the joint's axis
            piece = self.pieces[k]
            direction = piece.end - piece.start
            share, t = _nearest(piece.start, direction, one.point, one.along)
            place = piece.start + share[..., None] * direction - one.point - t[..., None] * one.along
            apart = lengths(place)
            if alike(apart < best[0] - SAME):
                best = (apart, k, share)
        return self.cut(best[1], best[2])


def dots(one: Array, other: Array) -> Array:
    """Inner products (...) of vectors (..., 3)."""
    return np.asarray((one * other).sum(axis=-1))


def lengths(one: Array) -> Array:
    """Lengths (...) of vectors (..., 3), in half the time of `numpy.linalg.norm`."""
    return np.asarray(np.sqrt(dots(one, one)))


def _inside(share: Array) -> Array:
    return np.asarray(np.minimum(np.maximum(share, 0.0), 1.0))


def _nearest_in(share: Array, spans: list[tuple[Array, Array]]) -> Array:
    best, *others = (np.clip(share, a, b) for a, b in spans)
    for one in others:
        if alike(np.abs(one - share) < np.abs(best - share)):
            best = one
    return best


def _nearest(start: Array, direction: Array, point: Array, along: Array, ends: bool = False) -> tuple[Array, Array]:
    """Shares of a segment, and of a line or another segment, where both are nearest."""
    a, b, c = dots(direction, direction), dots(direction, along), dots(along, along)
    gap = point - start
    d, e = dots(direction, gap), dots(along, gap)
    det = a * c - b * b
    across = det > 1e-12 * a * c
    s = _inside(np.where(across, (d * c - b * e) / np.where(across, det, 1.0), 0.5))
    t = (b * s - e) / c
    if ends:
        within = np.clip(t, 0.0, 1.0)
        s = np.where(within == t, s, np.clip((d + b * within) / a, 0.0, 1.0))
        t = within
    return s, t


def _tie(cuts: _Cuts) -> None:
    """Tie beams that touch, then the nearest of those that are still apart."""
    pieces, pairs = cuts.pieces, []
    if len(pieces) > 1 and any(piece.start.ndim > 1 for piece in pieces):
        raise DiffersError
    for k, one in enumerate(pieces):
        for m in range(k + 1, len(pieces)):
            other = pieces[m]
            d, e = one.end - one.start, other.end - other.start
            tries = [_nearest(one.start, d, other.start, e, ends=True)]
            for at, share in ((other.start, 0.0), (other.end, 1.0)):
                tries.append((np.clip(d @ (at - one.start) / (d @ d), 0.0, 1.0), np.array(share)))
            for at, share in ((one.start, 0.0), (one.end, 1.0)):
                tries.append((np.array(share), np.clip(e @ (at - other.start) / (e @ e), 0.0, 1.0)))
            gaps = [float(np.linalg.norm(one.start + a * d - other.start - b * e)) for a, b in tries]
            best = int(np.argmin(np.round(gaps, 9)))
            pairs.append((gaps[best], k, m, float(tries[best][0]), float(tries[best][1])))
    group = list(range(len(pieces)))
    for gap, k, m, s, t in sorted(pairs):
        if gap <= max(pieces[k].half, pieces[m].half) or group[k] != group[m]:
            cuts.tie(cuts.cut(k, np.array(s)), cuts.cut(m, np.array(t)))
            old, new = group[k], group[m]
            group = [new if g == old else g for g in group]


def _between(cuts: _Cuts, on: Sequence[Cut]) -> list[tuple[int, int, int]]:
    """The pieces (beam, cut, cut) that carry between what hangs on them: without those that lead nowhere."""
    pieces = []
    for k, shares in enumerate(cuts.shares):
        order = sorted(range(len(shares)), key=lambda n: float(np.ravel(shares[n])[0]))
        for a, b in itertools.pairwise(order):
            alike(shares[a] < shares[b])
            if cuts.top((k, a)) != cuts.top((k, b)):
                pieces.append((k, a, b))
    loaded = {cuts.top(one) for one in on}
    while True:
        count: dict[Cut, int] = {}
        for k, a, b in pieces:
            for s in (a, b):
                count[cuts.top((k, s))] = count.get(cuts.top((k, s)), 0) + 1
        rest = [
            (k, a, b)
            for k, a, b in pieces
            if all(count[cuts.top((k, s))] > 1 or cuts.top((k, s)) in loaded for s in (a, b))
        ]
        if len(rest) == len(pieces):
            return pieces
        pieces = rest
