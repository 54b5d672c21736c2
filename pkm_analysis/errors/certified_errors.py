# SPDX-License-Identifier: Apache-2.0
"""Proof that a machine within its tolerances misses no pose of a box by more than a bound.

With the drives where the drawing has them at a pose, the loops of the machine as built hold at its own configuration.
Between the two lies, row by row, a derivative somewhere in the boxes of both (the mean value theorem):

    0 = J_u (u - u0) + J_p (p - p0),   so   e <= |C J_p| |p - p0| + |I - C J_u| e

for e = |u - u0| of passive joints and platform, C near the inverse of J_u's middle. Where the second factor's
spectral radius is below one, e <= (I - R)^-1 b; if that lies within the box for which J was enclosed, the configuration
that continues the drawing's stays in it (Krawczyk, 1969; for manipulators Goldsztejn, Chabert and Caro, 2015). Boxes of
poses that do not yield are halved.

Of an overconstrained robot there are more rows than unknowns, and C is a left inverse: what follows holds for all
machines whose loops close.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from pkm_analysis.analysed_robot import Robot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Domain
from pkm_analysis.errors.enclosed_graph import Enclosed, EnclosedGraph, EnclosedRods, rods_of
from pkm_analysis.errors.error_budget import ErrorModel, Machine, grown, plays_of
from pkm_analysis.errors.tolerances import Tolerances
from pkm_analysis.plottable import Plottable
from pkm_analysis.requirements.grammar import shown
from pkm_description.mechanism import Array
from pkm_description.rotations import transform_from_pose
from pkm_kinematics.geometric_parameters import GeometricParameters
from pkm_kinematics.graph_model import GraphModel
from pkm_kinematics.status import closes

AT_ONCE = 256  # boxes
GUESSES = 6  # of the radius of an enclosure
WIDER = 1.3
FLOOR = 1e-6  # of the largest part of a bound
FACE = 8  # cells along the side of a cube's face
COVERED = np.cos(np.sqrt(2.0) / FACE)  # of a vector's length: its part along the nearest of the directions, at least
PROVED, REFUTED, UNDECIDED = "proved", "refuted", "undecided"


def _directions() -> Array:
    """Unit vectors (k, 3), one of each opposite two: none is farther than the square root of 2 over `FACE` from one."""
    ticks = (2.0 * np.arange(FACE) + 1.0) / FACE - 1.0
    a, b = (one.ravel() for one in np.meshgrid(ticks, ticks))
    faces = [np.roll(np.column_stack((np.ones_like(a), a, b)), k, axis=1) for k in range(3)]
    found = np.concatenate(faces)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


DIRECTIONS = _directions()


@dataclass(frozen=True, eq=False, repr=False)
class ProvedErrors(Plottable):
    """Whether no pose of a box is missed by more than a bound [m].

    `largest` [m] is what is proved of those boxes that yielded, `point` (c,) task coordinates of a pose that a machine
    within the tolerances, `machine`, misses by more, by `missed`; `open_boxes` (k, c, 2) are undecided, `share` is what
    is proved.
    """

    _picture: ClassVar[str] = "proof_pictures.proved_errors_picture"

    robot: str
    verdict: str
    bound: float
    largest: float
    share: float
    boxes: int
    seconds: float
    labels: tuple[str, ...]
    units: tuple[str, ...]
    domain: Array
    proved_boxes: Array
    open_boxes: Array
    point: Array | None
    missed: float
    machine: Machine | None = None

    @property
    def ok(self) -> bool:
        """Whether it is proved."""
        return self.verdict == PROVED

    def _summary(self) -> str:
        asked, cost = f"pose_error < {1e3 * self.bound:g} mm", f"({self.boxes} boxes, {self.seconds:.2g} s)"
        if self.point is not None:
            there = ", ".join(
                f"{name} {shown(x, unit, 6)}" for name, x, unit in zip(self.labels, self.point, self.units, strict=True)
            )
            return f"refuted: a machine within the tolerances misses the pose at {there} by {1e3 * self.missed:.4g} mm"
        if self.ok:
            return f"proved everywhere: {asked}; at most {1e3 * self.largest:.4g} mm {cost}"
        return f"undecided in {len(self.open_boxes)} boxes: {asked}; proved in {100.0 * self.share:.4g} % {cost}"

    def to_dict(self) -> dict[str, Any]:
        """The answer, for JSON, in m and rad."""
        return {
            **self._plain("robot", "verdict", "bound", "largest", "share", "boxes", "seconds", "labels", "missed"),
            "point": None if self.point is None else dict(zip(self.labels, self.point.tolist(), strict=True)),
            "machine": None if self.machine is None else self.machine.to_dict(),
            "undecided_boxes": self.open_boxes.tolist(),
        }


def prove_pose_error(
    robot: Robot,
    domain: Domain,
    tolerances: Tolerances,
    bound: float,
    resolution: float = 0.01,
    most_boxes: int = 20_000,
    progress: Callable[[float, int], None] = lambda share, boxes: None,
) -> ProvedErrors:
    """Whether machines within tolerances miss no pose of a box by more than `bound` [m], with drives as drawn.

    Boxes are halved down to `resolution` of the whole one's sides.
    """
    began = time.monotonic()
    task = robot.coordinates
    enclosure = _Enclosure(robot, tolerances)
    lower, upper = domain.bounds(np.stack((domain.lower, domain.upper), axis=1)[None])[0].T
    varies = upper > lower
    todo, done, left = [np.stack((lower, upper), axis=1)], [], []
    boxes, proved, largest = 0, 0.0, 0.0
    least = resolution * np.where(varies, upper - lower, 1.0)
    point, missed, machine = None, 0.0, None
    while todo and boxes < most_boxes and point is None:
        part = np.array([todo.pop() for _ in range(min(AT_ONCE, len(todo)))])
        boxes += len(part)
        found = enclosure.errors(task, 0.5 * (part[:, :, 0] + part[:, :, 1]), 0.5 * (part[:, :, 1] - part[:, :, 0]))
        good = found <= bound
        sides = (part[:, :, 1] - part[:, :, 0])[:, varies] / (upper - lower)[varies]
        sizes = sides.prod(axis=1)
        proved += float(sizes[good].sum())
        largest = max(largest, float(found[good].max(initial=0.0)))
        done += list(part[good])
        centres = 0.5 * (part[~good, :, 0] + part[~good, :, 1])
        if len(centres):
            k, missed, machine = enclosure.counterexample(task, centres, bound)
            if k is not None:
                point = centres[k]
        for box in part[~good]:
            side = np.where(varies, (box[:, 1] - box[:, 0]) / np.where(least > 0.0, least, 1.0), 0.0)
            at = int(np.argmax(side))
            if side[at] <= 1.0:
                left.append(box)
                continue
            cut = 0.5 * (box[at, 0] + box[at, 1])
            one, other = box.copy(), box.copy()
            one[at, 1], other[at, 0] = cut, cut
            todo += [one, other]
        progress(proved, boxes)
    left += todo
    verdict = REFUTED if point is not None else UNDECIDED if left else PROVED
    return ProvedErrors(
        robot.mechanism.name, verdict, bound, largest, proved, boxes, time.monotonic() - began, task.labels,
        tuple(c.unit for c in task.all), np.stack((lower, upper), axis=1), np.array(done).reshape(-1, len(lower), 2),
        np.array(left).reshape(-1, len(lower), 2), point, missed, machine,
    )  # fmt: skip


class _Enclosure:
    def __init__(self, robot: Robot, tolerances: Tolerances) -> None:
        self.robot, self.mechanism = robot, robot.mechanism
        self.parameters = GeometricParameters(self.mechanism, ideal_gears=False)
        self.model: GraphModel = self.parameters.model
        drives = self.model.columns_of(self.mechanism.actuated_joints)
        # Held drives leave as many unknowns as there are independent equations.
        if self.model.independent + len(drives) != self.model.size + (6 if self.model.free_platform else 0):
            about = f"pose_error of {self.mechanism.name}"
            if len(drives) > self.mechanism.mobility.platform:
                problem = "its drives are more than its degrees of freedom: errors strain it"
                raise AnalysisError(about, problem, "ask for its stiffness: pkm analyse ROBOT stiffness")
            remedy = "ask for machines at random: pkm analyse ROBOT errors --machines 1000"
            raise AnalysisError(about, "a body turns idly, and its position is not determined", remedy)
        self.tolerances = tolerances
        self.rods = rods_of(self.model)
        self.chosen = [(one, t) for one in self.parameters.all if (t := tolerances.of(one.name, one.unit)) > 0.0]
        if tolerances.change:
            self.chosen.append((grown(self.model, tolerances), abs(tolerances.change)))
        self.plays = self._plays()
        weights = np.zeros((len(self.model.places), 6))
        for one, t in self.chosen:
            weights += np.abs(one.weights) * t
        for place, across, size in self.plays:
            weights[place, :3] += size * np.abs(across).max(axis=1)
        self.shifts = np.column_stack((np.linalg.norm(weights[:, :3], axis=1), np.linalg.norm(weights[:, 3:], axis=1)))
        self.sensors = np.array([tolerances.sensor(name) for name in self.mechanism.actuated_joints])
        self.drives = drives
        self.passive = np.setdiff1d(np.arange(self.model.size), drives)
        self.joints = np.arange(self.model.size)
        if self.rods is not None:  # the passive angles are no unknowns
            self.passive, self.joints = self.passive[:0], drives
        self.unknown = np.concatenate((self.passive, self.model.size + np.arange(6)))

    def _derivatives(
        self, q: Enclosed, position: Enclosed, attitude: Enclosed, shifts: Array
    ) -> tuple[Enclosed, list[Enclosed]]:
        if self.rods is not None:
            return EnclosedRods(self.model, self.rods, q, position, attitude, shifts).derivatives()
        return EnclosedGraph(self.model, q, position, attitude, shifts).derivatives()

    def errors(self, task: Any, centres: Array, half: Array) -> Array:
        """Upper bounds (n,) of the position error [m]; infinite where there is none."""
        poses = task.poses(np.where(np.isfinite(centres), centres, 0.0))[0]
        found = self.robot.kinematics.at(poses, mode=self.robot.mode)
        good = np.flatnonzero(closes(found.status))
        bounds = np.full(len(poses), np.inf)
        if not len(good):
            return bounds
        states = self.model.at(found.joints[good], self.robot.kinematics.joint_names, poses[good])
        frames = np.array([transform_from_pose(pose) for pose in poses[good]])
        reach, angle = self._widths(task, centres[good], half[good])
        ok, q = self._joints_over(states.q, frames, reach, angle)
        bounds[good[ok]] = self._off(q, frames[ok], reach[ok], angle[ok])
        return bounds

    def _widths(self, task: Any, centres: Array, half: Array) -> tuple[Array, Array]:
        """By how much the platform moves over each box: in each direction (n, 3) [m], and by an angle (n,) [rad]."""
        slides = np.array([c.unit == "m" for c in task.all])
        steps = np.zeros((len(centres), 3))
        home = np.array([c.home for c in task.all])
        at_home = task.poses(home[None])[0][0, :3]
        for k in np.flatnonzero(slides):
            along = task.poses((home + np.eye(len(home))[k])[None])[0][0, :3] - at_home
            steps += np.abs(along) * np.nan_to_num(half[:, k, None])
        return steps, np.nan_to_num(half[:, ~slides]).sum(axis=1)

    def _platform(self, frames: Array, reach: Array, angle: Array) -> tuple[Enclosed, Enclosed]:
        R = frames[:, :3, :3]
        radius = np.abs(R).sum(axis=1, keepdims=True) * angle[:, None, None]
        turns = Enclosed(R, np.minimum(np.broadcast_to(radius, R.shape), 2.0 * np.minimum(angle, 1.0)[:, None, None]))
        return Enclosed(frames[:, :3, 3], reach), turns

    def _joints_over(self, q: Array, frames: Array, reach: Array, angle: Array) -> tuple[Array, Enclosed]:
        """Enclosures of the drawing's joint coordinates over boxes of poses, and for which rows (n,) there is one."""
        size = self.model.size
        motion = np.concatenate((reach, np.repeat(angle[:, None], 3, axis=1)), axis=1)
        still = np.zeros_like(self.shifts)
        radius = np.zeros_like(q)
        ok = np.zeros(len(q), dtype=bool)
        for guess in range(GUESSES):
            at = np.flatnonzero(~ok)
            if not len(at):
                break
            position, attitude = self._platform(frames[at], reach[at], angle[at])
            J, _ = self._derivatives(Enclosed(q[at], radius[at]), position, attitude, still)
            Jq, Jx = J.part(..., self.joints), J.part(..., slice(size, None))
            C = np.linalg.pinv(Jq.middle)
            b = np.einsum("nij,nj->ni", np.abs(C @ Jx.middle) + np.abs(C) @ Jx.radius, motion[at])
            e = _bounded(np.eye(len(self.joints)) - C @ Jq.middle, np.abs(C) @ Jq.radius, b)
            inside = (e <= radius[at][:, self.joints]).all(axis=1) & np.isfinite(e).all(axis=1) & (guess > 0)
            ok[at[inside]] = True
            wider = radius[at[~inside]]
            wider[:, self.joints] = np.where(np.isfinite(e), WIDER * e, 10.0)[~inside] + 1e-12
            radius[at[~inside]] = wider
        return ok, Enclosed(q[ok], radius[ok])

    def _off(self, q: Enclosed, frames: Array, reach: Array, angle: Array) -> Array:
        """Upper bounds (n,) of the position error where joints and platform of the drawing are enclosed."""
        n = len(q.middle)
        e = np.zeros((n, len(self.unknown)))
        bounds, ok = np.full(n, np.inf), np.zeros(n, dtype=bool)
        for guess in range(GUESSES):
            at = np.flatnonzero(~ok)
            if not len(at):
                break
            wide = Enclosed(q.middle[at], q.radius[at].copy())
            wide.radius[:, self.passive] += e[at, : len(self.passive)]
            wide.radius[:, self.drives] += self.sensors
            moved = e[at, len(self.passive) :]
            position, attitude = self._platform(
                frames[at], reach[at] + moved[:, :3], angle[at] + moved[:, 3:].sum(axis=1)
            )
            J, by_place = self._derivatives(wide, position, attitude, self.shifts)
            # The mean of J along the way from the drawing: radii grow convexly with it, from those of the poses alone.
            first, _ = self._derivatives(
                q.part(at), *self._platform(frames[at], reach[at], angle[at]), 0.0 * self.shifts
            )
            J = Enclosed(J.middle, 0.5 * (J.radius + first.radius + np.abs(J.middle - first.middle)))
            Ju, Ja = J.part(..., self.unknown), J.part(..., self.drives)
            C = np.linalg.pinv(Ju.middle)
            b = np.einsum("nij,j->ni", np.abs(C @ Ja.middle) + np.abs(C) @ Ja.radius, self.sensors)
            rows = C[:, len(self.passive) : len(self.passive) + 3]
            beside = np.einsum("nij,j->ni", np.abs(rows) @ Ja.radius, self.sensors)
            along = np.einsum("nij,j->nij", rows @ Ja.middle, self.sensors)
            along = np.abs(DIRECTIONS @ along).sum(axis=2)  # of the position error to first order, in each direction
            for total, spread, t in self._sources(by_place):
                effect = C @ total
                b += t * (np.linalg.norm(effect, axis=2) + np.einsum("nij,nj->ni", np.abs(C), spread))
                moving = effect[:, len(self.passive) : len(self.passive) + 3]
                along += t * np.linalg.norm(np.einsum("di,nik->ndk", DIRECTIONS, moving), axis=2)
                beside += t * np.einsum("nij,nj->ni", np.abs(rows), spread)
            off, radius = np.eye(len(self.unknown)) - C @ Ju.middle, np.abs(C) @ Ju.radius
            found = _bounded(off, radius, b)
            inside = (found <= e[at]).all(axis=1) & np.isfinite(found).all(axis=1) & (guess > 0)
            good = at[inside]
            ok[good] = True
            moved_rows = slice(len(self.passive), len(self.passive) + 3)
            rest = np.einsum("nij,nj->ni", (np.abs(off) + radius)[inside][:, moved_rows], found[inside])
            each = along[inside] + (beside[inside] + rest) @ np.abs(DIRECTIONS).T
            box = np.linalg.norm(found[inside][:, moved_rows], axis=1)
            bounds[good] = np.minimum(each.max(axis=1) / COVERED, box) * (1.0 + 1e-9)
            e[at[~inside]] = np.where(np.isfinite(found), WIDER * found, 1.0)[~inside] + 1e-12
        return bounds

    def _plays(self) -> list[tuple[int, Array, float]]:
        """Of each passive joint with clearance: its place, a projection (3, 3) on where it can go, and how far [m].

        Where a rod's length is all that counts, its second axis moves the same end, in a direction not known.
        """
        centres = {rod.second: rod.centre for rod in self.rods or ()}
        return [
            (centres.get(place, place), np.eye(3) if place in centres else across, size)
            for place, across, size in plays_of(self.model, self.tolerances).values()
        ]

    def _sources(self, by_place: list[Enclosed]) -> Iterator[tuple[Array, Array, float]]:
        """Of each error: the gaps (n, m, k) by its components, how far these are from it (n, m), and its size.

        A parameter has one component; a joint with clearance is anywhere in a ball, or in a disc across its axis.
        """
        for one, t in self.chosen:
            total, spread = (np.zeros(by_place[0].middle.shape[:2]) for _ in range(2))
            for k in np.flatnonzero(one.weights.any(axis=1)):
                total += by_place[k].middle @ one.weights[k]
                spread += by_place[k].radius @ np.abs(one.weights[k])
            yield total[:, :, None], spread, t
        for place, across, t in self.plays:
            part = by_place[place].part(..., slice(0, 3))
            yield part.middle @ across, np.linalg.norm(part.radius, axis=2), t

    def counterexample(self, task: Any, centres: Array, bound: float) -> tuple[int | None, float, Machine | None]:
        """A centre (its number) that a machine within the tolerances misses by more than the bound, by how much, which.

        Where play locks the loops of an overconstrained robot, a machine without it is tried.
        """
        poses = task.poses(np.where(np.isfinite(centres), centres, 0.0))[0]
        there = np.flatnonzero(closes(self.robot.kinematics.at(poses, mode=self.robot.mode).status))[:8]
        if not len(there):
            return None, 0.0, None
        model = ErrorModel(self.robot, self.tolerances, poses[there])
        for k, worst in enumerate(model.worst_machines()):
            tight = replace(worst, play={name: np.zeros(3) for name in worst.play}, change=0.0)
            for machine in (worst, tight) if self.plays or worst.change else (worst,):
                displaced = GraphModel(self.mechanism, model.displacements(machine))
                start = model.states.rows(slice(k, k + 1))
                start.q[:, self.drives] += machine.read
                end, gap = displaced.closed(start, self.drives)
                off = float(np.linalg.norm(end.platform[0, :3, 3] - model.states.platform[k, :3, 3]))
                if gap[0] < 1e-9 * displaced.length and off > bound * (1.0 + 1e-9):
                    return int(there[k]), off, machine
        return None, 0.0, None


def _bounded(off: Array, radius: Array, b: Array) -> Array:
    """The least e (n, k) with e >= b + R e for R = |off| + radius (n, k, k); infinite where there is none."""
    R = np.abs(off) + radius
    b = np.maximum(b, FLOOR * b.max(axis=1, keepdims=True))  # of what hardly moves, rounding would be all there is
    k = R.shape[1]
    with np.errstate(all="ignore"):
        shrinks = np.abs(np.linalg.eigvals(np.nan_to_num(R, posinf=1e6))).max(axis=1) < 0.95
        e = np.full(b.shape, np.inf)
        if shrinks.any():
            e[shrinks] = np.linalg.solve(np.eye(k) - R[shrinks], b[shrinks][:, :, None])[:, :, 0]
            e[shrinks] *= 1.0 + 1e-9
            held = b[shrinks] * (1.0 + 1e-12) + np.einsum("nij,nj->ni", R[shrinks], e[shrinks]) <= e[shrinks] + 1e-300
            e[shrinks] = np.where(
                held.all(axis=1, keepdims=True) & (e[shrinks] >= 0.0).all(axis=1, keepdims=True), e[shrinks], np.inf
            )
    return e
