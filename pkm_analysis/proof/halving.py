# SPDX-License-Identifier: Apache-2.0
"""Whether something holds at every pose of a box or of a path: proved, refuted by a pose, or undecided in some boxes.

Branch and bound: where the bounds over a box do not prove, its corners and its centre are tried, and then it is halved.
Boxes with the worst bounds come first, so that a pose that refutes is found soon.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from pkm_analysis.analysed_robot import AnalysedRobot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Domain, TaskCoordinates, corners
from pkm_analysis.kernels.pose_quantities import TYPE2
from pkm_analysis.plottable import Plottable
from pkm_analysis.proof.enclosures import Encloser
from pkm_analysis.requirements.grammar import MOST_BOXES, REGULAR, RESOLUTION, shown, spread
from pkm_analysis.requirements.quantity import Batch, Requirement
from pkm_description.mechanism import Array
from pkm_runtime.chunks import slices
from pkm_runtime.describable import counted

if TYPE_CHECKING:
    from typing import Unpack

BATCH = 512
PIECE = 128  # boxes of a batch that are bounded together
SAMPLES = 1024  # poses tried at random before anything is bounded
SHOWN = 5  # undecided boxes that are printed
REFUTES = -1e-12  # a slack at a pose below this is not rounding
HALVINGS = 60  # of a line between two poses: down to rounding
STRAIGHT = 1e-9  # rad, and of the robot's size: rounding of task coordinates on a straight line
_TRIED = np.linspace(0.0, 1.0, 17)[:, None]  # shares of a part at which poses are tried


class Refutation(NamedTuple):
    """A pose at which a requirement does not hold."""

    point: Array  # (c,)
    violated: str
    slack: float


class Part(NamedTuple):
    """The outcome for a domain: boxes of its points, halved as far as needed."""

    domain: Domain
    proved: Array  # (n, k, 2)
    open: Array  # (m, k, 2) undecided, or not examined before a pose refuted
    share: float  # that is proved


class Stretch(NamedTuple):
    """What a proof is about: a domain, and task coordinates (n, c) in it that are tried first."""

    domain: Domain
    tried: Array
    every: bool = True  # False: the question is of a path that is somewhere in the domain


@dataclass(frozen=True, eq=False, repr=False)
class Proof(Plottable):
    """The outcome of a question.

    `verdict` is "proved" where the requirements hold at every pose, "refuted" where `point` is one at which they do
    not, and "undecided" otherwise: then `undecided` are the boxes in which they may not hold.
    """

    _elsewhere: ClassVar[dict[str, str]] = {"proved success result answer": "verdict has the answer, ok whether proved"}

    _picture: ClassVar[str] = "proof_pictures.proof_picture"

    verdict: str
    that: tuple[str, ...]  # the requirements
    task: TaskCoordinates
    refuted: Refutation | None
    share: float  # of the domain in which the requirements are proved
    boxes: int  # how many were bounded
    resolution: float  # of the domain's sides, below which boxes were not halved
    seconds: float
    parts: tuple[Part, ...]  # the domain, or each part of a path

    @property
    def ok(self) -> bool:
        """Whether it is proved."""
        return self.verdict == "proved"

    @property
    def point(self) -> Array | None:
        """Task coordinates (c,) where a requirement fails."""
        return None if self.refuted is None else self.refuted.point

    @property
    def undecided(self) -> Array:
        """Boxes (n, c, 2) of task coordinates around what is undecided."""
        return np.concatenate([part.domain.bounds(part.open) for part in self.parts])

    @property
    def way(self) -> float | None:
        """Position of the point along a straight path, from 0 to 1; None without a point or such a path."""
        domain = self.parts[0].domain
        if self.point is None or len(self.parts) > 1 or domain.coordinates or not domain.dimension:
            return None
        along = domain.directions[:, 0]
        return float((self.point - domain.origin) @ along / (along @ along))

    def by_name(self) -> dict[str, float]:
        """The point by names of coordinates; empty where there is none."""
        return {} if self.point is None else dict(zip(self.task.labels, map(float, self.point), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The answer, for JSON."""
        return {
            **self._plain("verdict", "way", "boxes", "resolution", "seconds"),
            "that": list(self.that),
            "point": self.by_name() or None,
            "violated": self.refuted and self.refuted.violated,
            "slack": self.refuted and self.refuted.slack,
            "proved_share": self.share,
            "undecided_boxes": self.undecided.tolist(),
        }

    def _details(self) -> list[str]:
        each = [zip(self.task.all, box, strict=True) for box in self.undecided[:SHOWN]]
        ranges = [", ".join(f"{c.label} {spread(a, b, c.unit)}" for c, (a, b) in sides if a < b) for sides in each]
        return [f"undecided: {one}" for one in ranges]

    def _summary(self) -> str:
        what, cost = " and ".join(self.that), f"({counted(self.boxes, 'box')}, {self.seconds:.2g} s)"
        if self.refuted is not None:
            values = zip(self.task.all, self.refuted.point, strict=True)
            there = ", ".join(f"{c.label} {shown(x, c.unit, 6)}" for c, x in values)
            way = "" if self.way is None else f", {100.0 * self.way:.4g} % of the way"
            return f"refuted: '{self.refuted.violated}' does not hold at {there}{way}"
        if self.ok:
            return f"proved everywhere: {what} {cost}"
        open_ = f"{counted(len(self.undecided), 'box')} at a resolution of {self.resolution:.2g} of the sides"
        return f"undecided in {open_}: {what}; proved in {100.0 * self.share:.4g} % {cost}"


class Settings(TypedDict, total=False):
    """How long to search.

    Boxes whose sides are a part `resolution` of the domain's are not halved, and after `most_boxes` the answer is
    undecided; `progress` is called with the proved share of the domain and the number of boxes so far.
    """

    resolution: float
    most_boxes: int
    progress: Callable[[float, int], None] | None


def prove(
    robot: AnalysedRobot, domain: Domain, requirements: Sequence[Requirement], **settings: Unpack[Settings]
) -> Proof:
    """Whether requirements hold at every pose of a domain, in the robot's working mode."""
    for c, (low, high) in zip(domain.coordinates, domain.box, strict=False):
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise AnalysisError(f"range of {c.label}", f"{low:g} to {high:g} is empty", "give the lower end first")
    inside = np.random.default_rng(0).uniform(domain.lower, domain.upper, (SAMPLES, domain.dimension))
    return prove_stretches(robot, [Stretch(domain, domain.values(inside))], requirements, **settings)


def prove_path(
    robot: AnalysedRobot, waypoints: ArrayLike, requirements: Sequence[Requirement], **settings: Unpack[Settings]
) -> Proof:
    """Whether requirements hold along a path that is straight in task coordinates between waypoints (n, c), n > 1."""
    points, width = np.asarray(waypoints, dtype=float), len(robot.coordinates.all)
    if points.ndim != 2 or len(points) < 2 or points.shape[1] != width or not np.isfinite(points).all():
        problem = f"an array of shape {points.shape} is not a path"
        raise AnalysisError("path", problem, f"give (n, {width}), n > 1, finite")
    lines = [Stretch(Domain.of_path(robot.coordinates, *ends), np.array(ends)) for ends in pairwise(points)]
    return prove_stretches(robot, lines, requirements, **settings)


def prove_stretches(
    robot: AnalysedRobot,
    stretches: Sequence[Stretch],
    requirements: Sequence[Requirement],
    **settings: Unpack[Settings],
) -> Proof:
    """Whether requirements hold in each of several domains, the successive parts of a path.

    In a domain of which not `every` pose is asked about, one that refutes and was not tried leaves it undecided.
    """
    if not requirements:
        raise AnalysisError("proof", "there is nothing to prove", "name a requirement, such as 'inside'")
    for one in requirements:
        one.check_provable()
    return Search(robot, tuple(requirements), **settings).answer(stretches)


def certified_box(
    robot: AnalysedRobot, bounds: ArrayLike, requirements: Sequence[Requirement], tolerance: float, most_boxes: int
) -> tuple[Array, Proof]:
    """See `Analysis.certified_box`; `AnalysisError` where not even the centre is proved."""
    whole = np.asarray(bounds, dtype=float)
    centre = whole.mean(axis=1, keepdims=True)
    below, above, scale = 0.0, 1.0, 1.0
    best: tuple[Array, Proof] | None = None
    while best is None or above - below > tolerance:
        box = centre + scale * (whole - centre)
        proof = prove(robot, Domain.of_box(robot.coordinates, box), requirements, most_boxes=most_boxes)
        below, above = (scale, above) if proof.ok else (below, scale)
        if proof.ok:
            best = box, proof
        if above < tolerance:
            raise AnalysisError("box", f"not even its centre is proved: {proof._summary()}", "begin at another box")
        scale = 0.5 * (below + above)
    return best


def _bounds(encloser: Encloser, wanted: tuple[Requirement, ...], piece: tuple[Array, NDArray[np.bool_]]) -> Array:
    """Lower bounds (n, r) of the slack of each requirement over boxes where asked for, infinite elsewhere."""
    boxes, asked = piece
    found = encloser(boxes, cores=1)
    slack = np.full(asked.shape, np.inf)
    for r, one in enumerate(wanted):
        at = np.flatnonzero(asked[:, r])
        if len(at):
            slack[at, r] = one.over(found.rows(at))
    return slack


class Search:
    """Branch and bound for requirements `wanted`; see `Settings`."""

    def __init__(
        self,
        robot: AnalysedRobot,
        wanted: tuple[Requirement, ...],
        resolution: float = RESOLUTION,
        most_boxes: int = MOST_BOXES,
        progress: Callable[[float, int], None] | None = None,
    ) -> None:
        self.robot, self.wanted, self.resolution, self.most = robot, wanted, resolution, most_boxes
        self.progress = progress or (lambda share, boxes: None)
        self.began, self.done = time.perf_counter(), 0

    def answer(self, stretches: Sequence[Stretch]) -> Proof:
        """Try poses, then branch and bound each stretch until one is refuted."""
        self.prepare(stretches[0].domain)
        refuted = self.attempt(np.concatenate([one.tried for one in stretches]))
        none, parts = np.zeros((0, stretches[0].domain.dimension, 2)), list[Part]()
        if refuted is not None:
            parts.append(Part(stretches[0].domain, none, none, 0.0))
        for stretch in stretches if refuted is None else ():
            part, refuted = self.over(stretch.domain, sum(one.share for one in parts), len(stretches))
            if refuted is not None and not stretch.every:  # perhaps not on the path
                part, refuted = part._replace(open=stretch.domain.box[None]), None
            parts.append(part)
            if refuted is not None:
                break
        undecided = any(len(part.open) for part in parts)
        return Proof(
            verdict="refuted" if refuted is not None else "undecided" if undecided else "proved",
            that=tuple(map(str, self.wanted)),
            task=self.robot.coordinates,
            refuted=refuted,
            share=min(sum(part.share for part in parts) / len(stretches), 1.0),
            boxes=self.done,
            resolution=self.resolution,
            seconds=time.perf_counter() - self.began,
            parts=tuple(parts),
        )

    def prepare(self, domain: Domain) -> None:
        """Get ready for domains like this one."""
        constraints = any(one.quantity.name == REGULAR for one in self.wanted)
        recorded = next((one.quantity.recorded for one in self.wanted if one.quantity.recorded), None)
        self._encloser = Encloser(domain, self.robot.mode, constraints, recorded)

    def bounds(self, domain: Domain, boxes: Array, asked: NDArray[np.bool_]) -> Array:
        """Lower bounds (n, r) of the slack of each requirement over boxes (n, k, 2) where asked for."""
        bounds = partial(_bounds, self._encloser.on(domain), self.wanted)
        pieces = [(boxes[at], asked[at]) for at in slices(len(boxes), PIECE)]
        return np.concatenate(list(self.robot.sweeps.map(bounds, pieces, "boxes", len(pieces), self._question(domain))))

    def over(self, domain: Domain, before: float, of: int) -> tuple[Part, Refutation | None]:
        """Branch and bound a domain, one `of` several, of which those before have been proved by a sum of shares."""
        sides = np.where(domain.upper > domain.lower, domain.upper - domain.lower, 1.0)
        waiting, badness = domain.box[None], np.zeros(1)
        open_ones = np.ones((1, len(self.wanted)), dtype=np.bool_)
        done, stuck = [waiting[:0]], [waiting[:0]]
        share, refuted = 0.0, self.attempt(domain.values(_points_of(waiting)))
        while len(waiting) and self.done < self.most and refuted is None:
            order = np.argsort(badness, kind="stable")
            take, keep = order[:BATCH], order[BATCH:]
            boxes, asked = waiting[take], open_ones[take]
            slack = self.bounds(domain, boxes, asked)
            self.done += len(boxes)
            left = asked & ~(slack > 0.0)
            proved = ~left.any(axis=1)
            done.append(boxes[proved])
            share += float((np.ptp(boxes[proved], axis=-1) / sides).prod(axis=-1).sum())
            self.progress((before + share) / of, self.done)
            boxes, left, slack = boxes[~proved], left[~proved], slack[~proved]
            refuted = self.attempt(domain.values(_points_of(boxes)))
            relative = np.ptp(boxes, axis=-1) / sides
            small = relative.max(axis=1, initial=0.0) <= self.resolution
            stuck.append(boxes[small])
            halves = _halved(boxes[~small], relative[~small])
            worst = np.where(left, slack, np.inf).min(axis=1)[~small]
            waiting = np.concatenate([waiting[keep], halves])
            open_ones = np.concatenate([open_ones[keep], np.repeat(left[~small], 2, axis=0)])
            badness = np.concatenate([badness[keep], np.repeat(worst, 2)])
        rest = waiting[:0] if refuted is not None else np.concatenate([*stuck, waiting])
        return Part(domain, np.concatenate(done), rest, share), refuted

    def _question(self, domain: Domain) -> str | None:
        if self.robot.sweeps.journal is None:
            return None
        where = domain.origin.tolist(), domain.directions.tolist()
        return repr((self.robot.question, where, [one.question for one in self.wanted]))

    @cached_property
    def _square(self) -> bool:
        return len(self.robot.kinematics.actuated_names) == self.robot.kinematics.mobility

    def attempt(self, coordinates: Array) -> Refutation | None:
        """A pose among coordinates (n, c), or between them, at which a requirement clearly fails."""
        if not len(coordinates):
            return None
        batch = self._at(coordinates)
        for one in self.wanted:
            points, slack = coordinates, one.at(batch)[0]
            if one.quantity.name == REGULAR and self._square and np.nanmin(slack, initial=np.inf) >= REFUTES:
                points = self._between(batch, coordinates)
                slack = one.at(self._at(points))[0]
            slack = np.where(np.isnan(slack), np.inf, slack)
            if slack.min(initial=np.inf) < REFUTES:
                worst = int(slack.argmin())
                return Refutation(points[worst], str(one), float(slack[worst]))
        return None

    def _at(self, coordinates: Array) -> Batch:
        needs = tuple(which for one in self.wanted for which in one.quantity.needs)
        return Batch(self.robot, self.robot.coordinates.poses(coordinates)[0], needs, exact=True)

    def _between(self, batch: Batch, coordinates: Array) -> Array:
        """Coordinates (1, c) between two poses whose Jacobians have determinants of opposite sign, (0, c) if none."""
        sign = batch.number(TYPE2)
        if not ((sign > 0.0).any() and (sign < 0.0).any()):
            return coordinates[:0]
        below, above = coordinates[int(np.nanargmin(sign))], coordinates[int(np.nanargmax(sign))]
        for _ in range(HALVINGS):
            middle = 0.5 * below + 0.5 * above
            here = self._at(middle[None]).number(TYPE2)[0]
            if np.isnan(here):
                return coordinates[:0]
            below, above = (middle, above) if here < 0.0 else (below, middle)
        return np.asarray(0.5 * below + 0.5 * above)[None]


def _points_of(boxes: Array) -> Array:
    return np.unique(np.concatenate([*corners(boxes), boxes.mean(axis=-1)]), axis=0)


def _halved(boxes: Array, relative: Array) -> Array:
    """Each box in two, across the side that is longest, relative to the domain's."""
    rows = np.arange(len(boxes))
    side = relative.argmax(axis=1) if len(boxes) else rows
    middle = boxes[rows, side].mean(axis=-1)
    halves = np.repeat(boxes, 2, axis=0)
    halves[2 * rows, side, 1] = middle
    halves[2 * rows + 1, side, 0] = middle
    return halves


def prove_motion(
    robot: AnalysedRobot,
    poses: ArrayLike,
    radii: ArrayLike,
    requirements: Sequence[Requirement],
    **settings: Unpack[Settings],
) -> Proof:
    """See `Analysis.prove_motion`.

    Within `radii` of a corner the path lies in the parallelogram of the last stretch before it and the first after it,
    as does every path whose way along one line ends while that along the next begins. The requirements are proved on
    the whole parallelogram. `AnalysisError` where there is no path, or it is not straight in the task coordinates.
    """
    poses, radii = np.asarray(poses, dtype=np.float64), np.asarray(radii, dtype=np.float64)
    if poses.ndim != 2 or len(poses) < 2:
        raise AnalysisError("motion", "it has no length", "give two poses or more that differ")
    task = robot.coordinates
    at = np.array([_coordinates(task, pose) for pose in poses])
    turning = [not np.allclose(a[3:], b[3:], atol=1e-12) for a, b in pairwise(poses)]
    for k, turns in enumerate(turning):
        if turns:
            _require_straight(task, poses[k : k + 2], at[k : k + 2])
    lengths = np.linalg.norm(np.diff(poses[:, :3], axis=0), axis=1)
    for k in range(1, len(poses) - 1):
        if radii[k] > 0.0 and (turning[k - 1] or turning[k]):
            raise AnalysisError("motion", "the platform turns where a corner is rounded", "leave out blends there")
    stretches: list[Stretch] = []
    for k, length in enumerate(lengths):
        step = at[k + 1] - at[k]
        begin, end = (r / length if r > 0.0 else 0.0 for r in radii[k : k + 2])
        if k and radii[k] > 0.0:
            stretches.append(_corner(task, at[k], radii[k] / lengths[k - 1] * (at[k] - at[k - 1]), begin * step))
        if begin + end < 1.0 - 1e-12:
            line = Domain.of_path(task, at[k] + begin * step, at[k + 1] - end * step)
            stretches.append(Stretch(line, line.values(_TRIED)))
    return prove_stretches(robot, stretches, requirements, **settings)


def _coordinates(task: TaskCoordinates, pose: Array) -> Array:
    return np.array(list(task.kinematics.engine.inputs.branch_at(pose).values()))


def _require_straight(task: TaskCoordinates, poses: Array, at: Array) -> None:
    """Refuse a rotation whose task coordinates do not change in proportion, as about none of their axes."""
    turn = Rotation.from_quat(poses[0, 3:])
    vector = (turn.inv() * Rotation.from_quat(poses[1, 3:])).as_rotvec()
    units = [task.kinematics.engine.size if c.unit == "m" else 1.0 for c in task.all]
    for share in (0.25, 0.5, 0.75):
        attitude = (turn * Rotation.from_rotvec(share * vector)).as_quat()
        pose = np.concatenate([poses[0, :3] + share * (poses[1, :3] - poses[0, :3]), attitude])
        missed = _coordinates(task, pose) - (at[0] + share * (at[1] - at[0]))
        if np.abs(missed / units).max() > STRAIGHT:
            raise AnalysisError("motion", "it turns about an axis of no task coordinate", "turn about one at a time")


def _corner(task: TaskCoordinates, at: Array, before: Array, after: Array) -> Stretch:
    """About a corner (c,): the last stretch before it and the first after it, both (c,), and points of the path.

    With x the rest of the first way and y the progress on the second, the path goes smoothly from (1, 0) to (0, 1):
    with the ramp of `RoundedPath`, x and y are at most 0.16 in its middle.
    """
    left, done = ((t**4 * (5.0 - 6.0 * t + 2.0 * t * t)) for t in (1.0 - _TRIED, _TRIED))
    domain = Domain(task, at, np.column_stack([-before, after]), np.zeros(2), np.ones(2))
    return Stretch(domain, domain.values(np.hstack([left, done])), every=False)
