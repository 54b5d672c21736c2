# SPDX-License-Identifier: Apache-2.0
"""Whether something holds at every pose of a box or of a path: proved, refuted by a pose, or undecided in some boxes.

Branch and bound: where the bounds over a box do not prove, its corners and its centre are tried, and then it is halved.
Boxes with the worst bounds come first, so that a pose that refutes is found soon.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_analysis.analysed_robot import Robot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import TaskCoordinates
from pkm_analysis.plottable import Plottable
from pkm_analysis.proof.enclosures import Domain, Encloser, Enclosure
from pkm_analysis.proof.requirements import Requirement
from pkm_analysis.requirements.names import MOST_BOXES, RESOLUTION
from pkm_description.mechanism import Array
from pkm_kinematics.kinematics import Kinematics
from pkm_runtime.sweeps import Sweeps
from pkm_runtime.sweeps.chunks import slices

if TYPE_CHECKING:
    from typing import Unpack

BATCH = 512
PIECE = 128  # boxes of a batch that are bounded together
SAMPLES = 1024  # poses tried at random before anything is bounded
SHOWN = 5  # undecided boxes that are printed
REFUTES = -1e-12  # a slack at a pose below this is not rounding


class Refutation(NamedTuple):
    """A pose at which a requirement does not hold."""

    point: Array  # (c,)
    violated: str
    slack: float


class Part(NamedTuple):
    """The outcome for a domain: boxes of its parameters, halved as far as needed."""

    domain: Domain
    proved: Array  # (n, k, 2)
    open: Array  # (m, k, 2) undecided, or not examined before a pose refuted


@dataclass(frozen=True, eq=False, repr=False)
class Proof(Plottable):
    """The outcome of a question.

    `verdict` is "proved" where the requirements hold at every pose, "refuted" where `point` is one at which they do
    not, and "undecided" otherwise: then `undecided` are the boxes in which they may not hold.
    """

    _elsewhere: ClassVar[dict[str, str]] = {"proved success result answer": "verdict has the answer, ok whether proved"}

    _picture: ClassVar[str] = "proof_picture.proof_picture"

    verdict: str
    that: tuple[str, ...]  # the requirements
    names: tuple[str, ...]  # of the task coordinates
    units: tuple[str, ...]  # theirs, m or rad
    point: Array | None  # (c,) task coordinates where a requirement fails
    violated: str | None  # which one
    slack: float | None  # by how much, as the requirement measures it
    undecided: Array  # (n, c, 2) boxes of task coordinates around what is undecided
    share: float  # of the domain in which the requirements are proved
    boxes: int  # how many were bounded
    resolution: float  # of the domain's sides, below which boxes were not halved
    seconds: float
    parts: tuple[Part, ...]  # the domain, or each straight part of a path

    @property
    def ok(self) -> bool:
        """Whether it is proved."""
        return self.verdict == "proved"

    @property
    def way(self) -> float | None:
        """Position of the point along a straight path, from 0 to 1; None without a point or such a path."""
        domain = self.parts[0].domain if len(self.parts) == 1 else None
        if self.point is None or domain is None or domain.box.tolist() != [[0.0, 1.0]]:
            return None
        along = domain.directions[:, 0]
        return float((self.point - domain.origin) @ along / (along @ along))

    def by_name(self) -> dict[str, float]:
        """The point by names of coordinates; empty where there is none."""
        return {} if self.point is None else dict(zip(self.names, map(float, self.point), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The answer, for JSON."""
        return {
            "verdict": self.verdict,
            "that": list(self.that),
            "point": self.by_name() or None,
            "way": self.way,
            "violated": self.violated,
            "slack": self.slack,
            "proved_share": self.share,
            "undecided_boxes": self.undecided.tolist(),
            "boxes": self.boxes,
            "resolution": self.resolution,
            "seconds": self.seconds,
        }

    def _details(self) -> list[str]:
        lines = []
        for box in self.undecided[:SHOWN]:
            sides = zip(self.names, box, self.units, strict=True)
            ranges = (f"{n} {a:.6g} to {b:.6g} {unit}" for n, (a, b), unit in sides if a < b)
            lines.append(f"undecided: {', '.join(ranges)}")
        return lines

    def _summary(self) -> str:
        what = " and ".join(self.that)
        if self.verdict == "proved":
            return f"proved everywhere: {what} ({self.boxes} boxes, {self.seconds:.2g} s)"
        if self.verdict == "refuted":
            values = zip(self.by_name().items(), self.units, strict=True) if self.point is not None else ()
            there = ", ".join(f"{name} {x:.9g} {unit}" for (name, x), unit in values)
            way = "" if self.way is None else f", {100.0 * self.way:.4g} % of the way"
            return f"refuted: '{self.violated}' does not hold at {there}{way}"
        return (
            f"undecided in {len(self.undecided)} boxes at a resolution of {self.resolution:.2g} of the sides: {what}; "
            f"proved in {100.0 * self.share:.4g} % ({self.boxes} boxes, {self.seconds:.2g} s)"
        )


class Settings(TypedDict, total=False):
    """How long and where to search.

    Attributes:
        resolution: smallest box sides that are halved, relative to the domain's or those of a part of a path.
        most_boxes: number of boxes after which the answer is undecided.
        progress: called with the proved share of the domain and the number of boxes so far.
        sweeps: where boxes are bounded, on all cores by default.
    """

    resolution: float
    most_boxes: int
    progress: Callable[[float, int], None] | None
    sweeps: Sweeps | None


def prove(
    kinematics: Kinematics,
    domain: Domain,
    requirements: Requirement | Sequence[Requirement],
    mode: int = 0,
    **settings: Unpack[Settings],
) -> Proof:
    """Whether requirements hold at every pose of a domain.

    Args:
        mode: number of the working mode.
        settings: see `Settings`.

    Raises:
        AnalysisError: the domain is empty, or the robot cannot be bounded.
        ModeError: no such working mode.
    """
    wanted = _listed(requirements)
    if not np.isfinite(domain.box).all() or not np.isfinite(domain.origin).all():
        raise AnalysisError("domain", "it has bounds that are no numbers", "give each coordinate two finite bounds")
    if (domain.box[:, 0] > domain.box[:, 1]).any():
        raise AnalysisError("domain", "a lower bound is above its upper one", "exchange them")
    encloser = Encloser(kinematics, domain, mode, any(one.constraints for one in wanted))
    return _Search(encloser, wanted, **settings).run(SAMPLES)


def prove_path(
    kinematics: Kinematics,
    waypoints: ArrayLike,
    requirements: Requirement | Sequence[Requirement],
    mode: int = 0,
    **settings: Unpack[Settings],
) -> Proof:
    """Whether requirements hold along a path that is straight in task coordinates between waypoints.

    The answer's `share` is that of the straight parts; other arguments as for `prove`.

    Args:
        waypoints: task coordinates (n, c), two or more.
        mode: number of the working mode.

    Raises:
        AnalysisError: fewer than two waypoints, or the robot cannot be bounded.
        ModeError: no such working mode.
    """
    points = np.asarray(waypoints, dtype=float)
    width = len(kinematics.task.names)
    if points.ndim != 2 or len(points) < 2 or points.shape[1] != width or not np.isfinite(points).all():
        raise AnalysisError("path", f"an array of shape {points.shape} is none", f"give (n, {width}), n > 1, finite")
    lines = [Stretch(Domain.of_path(start, end), np.array([start, end])) for start, end in pairwise(points)]
    return prove_stretches(kinematics, lines, requirements, mode, **settings)


class Stretch(NamedTuple):
    """A part of a path: a domain that contains it, and points of it."""

    domain: Domain
    points: Array  # (n, c) task coordinates


def prove_stretches(
    kinematics: Kinematics,
    stretches: Sequence[Stretch],
    requirements: Requirement | Sequence[Requirement],
    mode: int = 0,
    **settings: Unpack[Settings],
) -> Proof:
    """Whether requirements hold along a path that is known by domains around its successive parts.

    A domain of one parameter is the path itself; in one with more, the path is somewhere inside: a refuting pose of the
    domain that is not a point of the path leaves that part undecided. Arguments and errors are those of `prove_path`;
    the answer's `share` is of the number of parts.
    """
    wanted = _listed(requirements)
    began = time.perf_counter()
    encloser = Encloser(kinematics, stretches[0].domain, mode, any(one.constraints for one in wanted))
    progress, most_boxes = settings.pop("progress", None), settings.get("most_boxes", MOST_BOXES)
    settings["sweeps"] = settings.get("sweeps") or Sweeps()
    first = _Search(encloser, wanted, **settings)
    refuted = first.attempt(np.concatenate([one.points for one in stretches]))
    if refuted is not None:
        return first.answer("refuted", refuted)
    parts: list[Proof] = []
    boxes = 0
    for stretch in stretches:
        settings["most_boxes"] = most_boxes - boxes
        search = _Search(encloser.on(stretch.domain), wanted, **settings)
        part = search.run(0)
        if part.verdict == "refuted" and len(stretch.domain.box) > 1:  # perhaps not on the path
            part = search.answer("undecided", rest=stretch.domain.box[None])
        parts.append(part)
        boxes += part.boxes
        if progress is not None:
            progress(len(parts) / len(stretches), boxes)
        if part.verdict == "refuted":
            break
    worst = next((one for one in parts if one.verdict == "refuted"), None)
    undecided = np.concatenate([one.undecided for one in parts])
    verdict = "refuted" if worst else "undecided" if len(undecided) else "proved"
    return replace(
        worst or parts[-1],
        verdict=verdict,
        undecided=undecided,
        share=sum(one.share for one in parts) / len(stretches),
        boxes=boxes,
        parts=tuple(part for one in parts for part in one.parts),
        seconds=time.perf_counter() - began,
    )


def certified_box(
    kinematics: Kinematics,
    bounds: ArrayLike,
    requirements: Requirement | Sequence[Requirement],
    mode: int = 0,
    *,
    tolerance: float = 0.005,
    most_boxes: int = 4000,
) -> tuple[Array, Proof]:
    """The largest proved box (c, 2), of those that shrink towards the centre of a given one, and its proof.

    Args:
        bounds: (c, 2) of the task coordinates [m, rad], such as of a box found by sampling.
        mode: number of the working mode.
        tolerance: of its sides, relative to those given.
        most_boxes: limit for each proof.

    Raises:
        AnalysisError: not even the centre is proved.
        ModeError: no such working mode.
    """
    whole = np.asarray(bounds, dtype=float)
    centre = whole.mean(axis=1, keepdims=True)
    below, above = 0.0, 1.0
    best: tuple[Array, Proof] | None = None
    scale = 1.0
    while best is None or above - below > tolerance:
        box = centre + scale * (whole - centre)
        proof = prove(kinematics, Domain.of_box(box), requirements, mode, most_boxes=most_boxes)
        if proof.ok:
            below, best = scale, (box, proof)
            if scale == 1.0:
                break
        else:
            above = scale
        if above < tolerance:
            raise AnalysisError("box", f"not even its centre is proved: {proof._summary()}", "begin at another box")
        scale = 0.5 * (below + above)
    return best


def _listed(requirements: Requirement | Sequence[Requirement]) -> tuple[Requirement, ...]:
    wanted = tuple(requirements) if isinstance(requirements, Sequence) else (requirements,)
    if not wanted:
        raise AnalysisError("proof", "there is nothing to prove", "name a requirement, such as 'inside'")
    return wanted


def _bounds(encloser: Encloser, wanted: tuple[Requirement, ...], piece: tuple[Array, NDArray[np.bool_]]) -> Array:
    """`_Search._bound` of some boxes, with a flag for each requirement asked of them."""
    boxes, asked = piece
    found = encloser(boxes, cores=1)
    slack = np.full(asked.shape, np.inf)
    for r, one in enumerate(wanted):
        at = np.flatnonzero(asked[:, r])
        if len(at):
            slack[at, r] = one.over(encloser, _rows(found, at))
    return slack


class _Search:
    def __init__(
        self,
        encloser: Encloser,
        wanted: tuple[Requirement, ...],
        resolution: float = RESOLUTION,
        most_boxes: int = MOST_BOXES,
        progress: Callable[[float, int], None] | None = None,
        sweeps: Sweeps | None = None,
    ) -> None:
        self.encloser, self.wanted = encloser, wanted
        self.kinematics, self.domain, self.mode = encloser.kinematics, encloser.domain, encloser.mode
        self.resolution, self.most, self.progress = resolution, most_boxes, progress
        self.sweeps = Sweeps() if sweeps is None else sweeps
        self.bounds = partial(_bounds, encloser, wanted)
        self.began = time.perf_counter()
        self.sides = self.domain.box[:, 1] - self.domain.box[:, 0]
        self.proved: list[Array] = []
        self.done = 0
        self.volume = 0.0

    def run(self, samples: int) -> Proof:
        """Try `samples` poses, then branch and bound."""
        refuted = self.attempt(self.domain.coordinates(self._samples(samples)))
        if refuted is not None:
            return self.answer("refuted", refuted)
        waiting = self.domain.box[None].copy()
        badness = np.zeros(1)
        open_ones = np.ones((1, len(self.wanted)), dtype=np.bool_)
        stuck: list[Array] = []
        while len(waiting) and self.done < self.most:
            order = np.argsort(badness, kind="stable")
            take, keep = order[:BATCH], order[BATCH:]
            boxes, asked = waiting[take], open_ones[take]
            slack = self._bound(boxes, asked)
            self.done += len(boxes)
            left = asked & ~(slack > 0.0)
            proved = ~left.any(axis=1)
            self.proved.append(boxes[proved])
            self.volume += float(self._shares(boxes[proved]).sum())
            if self.progress is not None:
                self.progress(self.volume, self.done)
            boxes, left, slack = boxes[~proved], left[~proved], slack[~proved]
            refuted = self.attempt(self.domain.coordinates(self._corners(boxes)))
            if refuted is not None:
                return self.answer("refuted", refuted)
            small = self._relative(boxes).max(axis=1, initial=0.0) <= self.resolution
            stuck += list(boxes[small])
            halves = self._halve(boxes[~small])
            worst = np.where(left, slack, np.inf).min(axis=1)[~small]
            waiting = np.concatenate([waiting[keep], halves])
            open_ones = np.concatenate([open_ones[keep], np.repeat(left[~small], 2, axis=0)])
            badness = np.concatenate([badness[keep], np.repeat(worst, 2)])
        rest = np.array([*stuck, *waiting]).reshape(-1, *self.domain.box.shape)
        return self.answer("undecided" if len(rest) else "proved", rest=rest)

    def _bound(self, boxes: Array, asked: NDArray[np.bool_]) -> Array:
        """Lower bounds (n, r) of the slack of each requirement where asked for, infinite elsewhere."""
        pieces = [(boxes[at], asked[at]) for at in slices(len(boxes), PIECE)]
        parts = self.sweeps.map(self.bounds, pieces, "boxes", len(pieces), self._question)
        return np.concatenate(list(parts))

    @cached_property
    def _question(self) -> str | None:
        """Distinguishes these bounds from all others in a journal."""
        if self.sweeps.journal is None:
            return None
        domain = self.domain.origin.tolist(), self.domain.directions.tolist()
        return repr((Robot(self.kinematics, self.mode).question, domain, [repr(one) for one in self.wanted]))

    def attempt(self, coordinates: Array) -> Refutation | None:
        """A pose among coordinates (n, c), or between them, at which a requirement clearly fails."""
        if not len(coordinates):
            return None
        for one in self.wanted:
            slack = one.at(self.kinematics, coordinates, self.mode)
            slack = np.where(np.isnan(slack), np.inf, slack)
            worst = int(slack.argmin())
            if slack[worst] < REFUTES:
                return Refutation(coordinates[worst], str(one), float(slack[worst]))
            suspect = one.suspect(self.kinematics, coordinates, self.mode)
            if suspect is not None:
                (there,) = one.at(self.kinematics, suspect[None], self.mode)
                if there < REFUTES:
                    return Refutation(suspect, str(one), float(there))
        return None

    def _samples(self, n: int) -> Array:
        """Corners of the domain, its centre, and random parameters."""
        rng = np.random.default_rng(0)
        inside = rng.uniform(self.domain.box[:, 0], self.domain.box[:, 1], (n, len(self.sides)))
        return np.concatenate([self._corners(self.domain.box[None]), inside])

    def _corners(self, boxes: Array) -> Array:
        k = boxes.shape[1]
        ends = [boxes[:, np.arange(k), list(choice)] for choice in product((0, 1), repeat=k)]
        return np.unique(np.concatenate([*ends, boxes.mean(axis=-1)]), axis=0)

    def _relative(self, boxes: Array) -> Array:
        """Sides (n, k) relative to the domain's."""
        return np.asarray((boxes[..., 1] - boxes[..., 0]) / np.where(self.sides > 0.0, self.sides, 1.0))

    def _shares(self, boxes: Array) -> Array:
        return np.asarray(self._relative(boxes).prod(axis=-1))

    def _halve(self, boxes: Array) -> Array:
        """Each box in two, across its longest side."""
        rows = np.arange(len(boxes))
        side = self._relative(boxes).argmax(axis=1) if len(boxes) else rows
        middle = boxes[rows, side].mean(axis=-1)
        halves = np.repeat(boxes, 2, axis=0)
        halves[2 * rows, side, 1] = middle
        halves[2 * rows + 1, side, 0] = middle
        return halves

    def answer(self, verdict: str, refuted: Refutation | None = None, rest: Array | None = None) -> Proof:
        """The proof in its current state."""
        rest = np.zeros((0, *self.domain.box.shape)) if rest is None else rest
        ends = self.domain.directions * rest[:, None, :, 0], self.domain.directions * rest[:, None, :, 1]
        lowest = self.domain.origin + np.minimum(*ends).sum(axis=-1)
        highest = self.domain.origin + np.maximum(*ends).sum(axis=-1)
        return Proof(
            verdict=verdict,
            that=tuple(map(str, self.wanted)),
            names=self.kinematics.task.names,
            units=tuple(c.unit for c in TaskCoordinates(self.kinematics).all),
            point=None if refuted is None else refuted.point,
            violated=None if refuted is None else refuted.violated,
            slack=None if refuted is None else refuted.slack,
            undecided=np.stack([lowest, highest], axis=-1),
            share=min(self.volume, 1.0),
            boxes=self.done,
            resolution=self.resolution,
            seconds=time.perf_counter() - self.began,
            parts=(Part(self.domain, np.concatenate([*self.proved, self.domain.box[None][:0]]), rest),),
        )


def _rows(found: Enclosure, at: NDArray[np.intp]) -> Enclosure:
    return found if len(at) == len(found.boxes) else found.rows(at)
