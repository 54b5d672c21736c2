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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysed_robot import AnalysedRobot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Domain
from pkm_analysis.errors.enclosed_graph import ROUNDING, EnclosedGraph, EnclosedRods, rods_of
from pkm_analysis.errors.error_budget import ErrorModel, Machine, grown, plays_of, refuse_redundant_drives
from pkm_analysis.errors.tolerances import Tolerances
from pkm_analysis.proof.halving import Proof, Refutation, Search, Settings, Stretch
from pkm_analysis.proof.matrices import FLOOR, Ball, fixed_point
from pkm_analysis.requirements.grammar import POSE_ERROR
from pkm_analysis.requirements.quantity import Quantity, Requirement
from pkm_description.mechanism import Array
from pkm_description.rotations import skew, transform_from_pose
from pkm_kinematics.geometric_parameters import GeometricParameters
from pkm_kinematics.graph_model import GraphModel
from pkm_kinematics.status import closes

if TYPE_CHECKING:
    from typing import Unpack

TRIED = 16  # poses of boxes that do not yield, for a counterexample
GUESSES = 6  # of the radius of an enclosure
WIDER = 1.3
FACE = 16  # cells along the side of a cube's face
COVERED = np.cos(np.sqrt(2.0) / FACE)  # of a vector's length: its part along the nearest of the directions, at least
AT_ONCE = 64  # directions


def _directions() -> Array:
    """Unit vectors (k, 3), one of each opposite two: none is farther than the square root of 2 over `FACE` from one."""
    ticks = (2.0 * np.arange(FACE) + 1.0) / FACE - 1.0
    a, b = (one.ravel() for one in np.meshgrid(ticks, ticks))
    faces = [np.roll(np.column_stack((np.ones_like(a), a, b)), k, axis=1) for k in range(3)]
    found = np.concatenate(faces)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


DIRECTIONS = _directions()


@dataclass(frozen=True, eq=False, repr=False)
class ProvedErrors(Proof):
    """Whether no pose of a box is missed by more than a bound [m].

    `largest` [m] is what is proved of those boxes that yielded; the point is missed by `missed` [m] by a machine within
    the tolerances, `machine`.
    """

    bound: float
    largest: float
    missed: float
    machine: Machine | None

    def _summary(self) -> str:
        if self.machine is not None:
            return f"{super()._summary()}: a machine within the tolerances misses it by {1e3 * self.missed:.4g} mm"
        return super()._summary() + f"; at most {1e3 * self.largest:.4g} mm" * self.ok

    def to_dict(self) -> dict[str, Any]:
        """The answer, for JSON, in m and rad."""
        machine = None if self.machine is None else self.machine.to_dict()
        own = {"robot": self.task.kinematics.mechanism.name, "labels": self.task.labels, "machine": machine}
        return {**super().to_dict(), **own, **self._plain("bound", "largest", "missed"), "share": self.share}


def prove_pose_error(
    robot: AnalysedRobot, domain: Domain, tolerances: Tolerances, bound: float, **settings: Unpack[Settings]
) -> ProvedErrors:
    """Whether machines within tolerances miss no pose of a box by more than `bound` [m], with drives as drawn."""
    search = _Search(robot, tolerances, bound, **settings)
    proof = search.answer([Stretch(domain, np.zeros((0, len(robot.coordinates.all))))])
    found: dict[str, Any] = {one.name: getattr(proof, one.name) for one in fields(proof)}
    return ProvedErrors(**found, bound=bound, largest=search.largest, missed=search.missed, machine=search.machine)


class _Search(Search):
    """Branch and bound of the pose error, whose bounds and counterexamples are those of `_Enclosure`."""

    def __init__(
        self, robot: AnalysedRobot, tolerances: Tolerances, bound: float, **settings: Unpack[Settings]
    ) -> None:
        text = f"{POSE_ERROR} < {1e3 * bound:g} mm"
        error = Quantity(POSE_ERROR, "m", "by how much machines within tolerances miss a pose", lambda b: b.poses[:, 0])
        super().__init__(robot, (Requirement(error, bound, False, text),), **settings)
        self.enclosure, self.bound = _Enclosure(robot, tolerances), bound
        self.largest = self.missed = 0.0
        self.machine: Machine | None = None

    def prepare(self, domain: Domain) -> None:
        """Nothing is recorded."""

    def bounds(self, domain: Domain, boxes: Array, asked: NDArray[np.bool_]) -> Array:
        """Of the one requirement."""
        lower, upper = np.moveaxis(domain.bounds(boxes), -1, 0)
        errors = self.enclosure.errors(domain.task, 0.5 * (lower + upper), 0.5 * (upper - lower))
        self.largest = max(self.largest, float(errors[errors < self.bound].max(initial=0.0)))
        return self.bound - errors[:, None]

    def attempt(self, coordinates: Array) -> Refutation | None:
        """A pose among some of the coordinates (n, c), once bounds have not proved them all."""
        if not (self.done and len(coordinates)):
            return None
        some = coordinates[np.unique(np.linspace(0, len(coordinates) - 1, TRIED).astype(np.int64))]
        k, self.missed, self.machine = self.enclosure.counterexample(self.robot.coordinates, some, self.bound)
        return None if k is None else Refutation(some[k], str(self.wanted[0]), self.bound - self.missed)


class _Enclosure:
    def __init__(self, robot: AnalysedRobot, tolerances: Tolerances) -> None:
        self.robot, self.mechanism = robot, robot.mechanism
        self.parameters = GeometricParameters(self.mechanism, ideal_gears=False)
        self.model: GraphModel = self.parameters.model
        drives = self.model.columns_of(self.mechanism.actuated_joints)
        refuse_redundant_drives(self.mechanism)
        # Held drives leave as many unknowns as there are independent equations.
        if self.model.independent + len(drives) != self.model.size + (6 if self.model.free_platform else 0):
            about = f"pose_error of {self.mechanism.name}"
            remedy = "ask for machines at random: pkm analyse ROBOT errors --machines 1000"
            raise AnalysisError(about, "a body turns idly, and its position is not determined", remedy)
        tolerances.check_names([one.name for one in self.parameters.all], self.mechanism)
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

    def _derivatives(self, q: Ball, position: Ball, attitude: Ball, shifts: Array) -> tuple[Ball, list[Ball]]:
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
        reach, turn = self._widths(task, centres[good], half[good])
        ok, q = self._joints_over(states.q, frames, reach, turn)
        bounds[good[ok]] = self._off(q, frames[ok], reach[ok], turn[ok])
        return bounds

    def _widths(self, task: Any, centres: Array, half: Array) -> tuple[Array, Array]:
        """By how much the platform moves over each box, along (n, 3) [m] and about (n, 3) [rad] each axis."""
        slides = np.array([c.unit == "m" for c in task.all])
        steps = np.zeros((len(centres), 3))
        home = np.array([c.home for c in task.all])
        at_home = task.poses(home[None])[0][0, :3]
        for k in np.flatnonzero(slides):
            along = task.poses((home + np.eye(len(home))[k])[None])[0][0, :3] - at_home
            steps += np.abs(along) * np.nan_to_num(half[:, k, None])
        return steps, np.repeat(np.nan_to_num(half[:, ~slides]).sum(axis=1, keepdims=True), 3, axis=1)

    def _platform(self, frames: Array, reach: Array, turn: Array) -> tuple[Ball, Ball]:
        """Where it is if it moves, and turns by a rotation vector or one after another, by at most so much (n, 3)."""
        R = frames[:, :3, :3]
        second = 0.5 * (turn**2).sum(axis=1)[:, None, None]
        radius = np.abs(skew(turn)) @ np.abs(R) + second + ROUNDING
        return Ball(frames[:, :3, 3], reach), Ball(R, np.minimum(radius, 2.0))

    def _joints_over(self, q: Array, frames: Array, reach: Array, turn: Array) -> tuple[Array, Ball]:
        """Enclosures of the drawing's joint coordinates over boxes of poses, and for which rows (n,) there is one."""
        size = self.model.size
        motion = np.concatenate((reach, turn), axis=1)
        still = np.zeros_like(self.shifts)
        radius = np.zeros_like(q)
        ok = np.zeros(len(q), dtype=bool)
        for guess in range(GUESSES):
            at = np.flatnonzero(~ok)
            if not len(at):
                break
            position, attitude = self._platform(frames[at], reach[at], turn[at])
            J, _ = self._derivatives(Ball(q[at], radius[at]), position, attitude, still)
            Jq, Jx = J[..., self.joints], J[..., size:]
            C = np.linalg.pinv(Jq.middle)
            b = np.einsum("nij,nj->ni", np.abs(C @ Jx.middle) + np.abs(C) @ Jx.radius, motion[at])
            e = _bounded(np.abs(np.eye(len(self.joints)) - C @ Jq.middle) + np.abs(C) @ Jq.radius, b)
            inside = (e <= radius[at][:, self.joints]).all(axis=1) & np.isfinite(e).all(axis=1) & (guess > 0)
            ok[at[inside]] = True
            wider = radius[at[~inside]]
            wider[:, self.joints] = np.where(np.isfinite(e), WIDER * e, 10.0)[~inside] + 1e-12
            radius[at[~inside]] = wider
        return ok, Ball(q[ok], radius[ok])

    def _off(self, q: Ball, frames: Array, reach: Array, turn: Array) -> Array:
        """Upper bounds (n,) of the position error where joints and platform of the drawing are enclosed."""
        n = len(q.middle)
        e = np.zeros((n, len(self.unknown)))
        bounds, ok = np.full(n, np.inf), np.zeros(n, dtype=bool)
        for guess in range(GUESSES):
            at = np.flatnonzero(~ok)
            if not len(at):
                break
            wide = Ball(q.middle[at], q.radius[at].copy())
            wide.radius[:, self.passive] += e[at, : len(self.passive)]
            wide.radius[:, self.drives] += self.sensors
            moved = e[at, len(self.passive) :]
            position, attitude = self._platform(frames[at], reach[at] + moved[:, :3], turn[at] + moved[:, 3:])
            J, by_place = self._derivatives(wide, position, attitude, self.shifts)
            # The mean of J along the way from the drawing: radii grow convexly with it, from those of the poses alone.
            first, _ = self._derivatives(q[at], *self._platform(frames[at], reach[at], turn[at]), 0.0 * self.shifts)
            J = Ball(J.middle, 0.5 * (J.radius + first.radius + np.abs(J.middle - first.middle)))
            Ju, Ja = J[..., self.unknown], J[..., self.drives]
            C: Array = np.asarray(np.linalg.pinv(Ju.middle), dtype=np.float64)
            b = self._effects(C, Ja, by_place)
            R = np.abs(np.eye(len(self.unknown)) - C @ Ju.middle) + np.abs(C) @ Ju.radius
            found = _bounded(R, b)
            inside = (found <= e[at]).all(axis=1) & np.isfinite(found).all(axis=1) & (guess > 0)
            good = at[inside]
            ok[good] = True
            if len(good):
                parts = C[inside], Ju[inside], Ja[inside], [one[inside] for one in by_place]
                bounds[good] = self._farthest(*parts, found[inside]) * (1.0 + 1e-9)
            e[at[~inside]] = np.where(np.isfinite(found), WIDER * found, 1.0)[~inside] + 1e-12
        return bounds

    def _effects(self, rows: Array, by_drives: Ball, by_place: list[Ball]) -> Array:
        """Bounds (n, k) of what all errors make of combinations `rows` (n, k, m) of the gaps."""
        size = np.abs(rows)
        found = (np.abs(rows @ by_drives.middle) + size @ by_drives.radius) @ self.sensors
        for total, spread, t in self._sources(by_place):
            found += t * (np.linalg.norm(rows @ total, axis=2) + (size @ spread[:, :, None])[:, :, 0])
        return np.asarray(found)

    def _farthest(self, C: Array, Ju: Ball, Ja: Ball, by_place: list[Ball], e: Array) -> Array:
        """Upper bounds (n,) of the position error where the unknowns are off by at most e (n, k). In each direction,
        combinations of gaps are taken before absolute values, as those of several gaps cancel.
        """
        position = slice(len(self.passive), len(self.passive) + 3)
        largest = np.zeros(len(e))
        for along in np.array_split(DIRECTIONS, len(DIRECTIONS) // AT_ONCE):
            rows = along @ C[:, position]
            rest = -rows @ Ju.middle
            rest[:, :, position] += along
            off = self._effects(rows, Ja, by_place)
            off += ((np.abs(rest) + np.abs(rows) @ Ju.radius) @ e[:, :, None])[:, :, 0]
            largest = np.maximum(largest, off.max(axis=1))
        return np.asarray(np.minimum(largest / COVERED, np.linalg.norm(e[:, position], axis=1)))

    def _plays(self) -> list[tuple[int, Array, float]]:
        """Of each passive joint with clearance: its place, a projection (3, 3) on where it can go, and how far [m].
        Where a rod's length is all that counts, its second axis moves the same end, in a direction not known.
        """
        centres = {rod.second: rod.centre for rod in self.rods or ()}
        return [
            (centres.get(place, place), np.eye(3) if place in centres else across, size)
            for place, across, size in plays_of(self.model, self.tolerances).values()
        ]

    def _sources(self, by_place: list[Ball]) -> Iterator[tuple[Array, Array, float]]:
        """Of each error: the gaps (n, m, k) by its components, how far these are from it (n, m), and its size. A
        parameter has one component; a joint with clearance is anywhere in a ball, or in a disc across its axis.
        """
        for one, t in self.chosen:
            total, spread = (np.zeros(by_place[0].middle.shape[:2]) for _ in range(2))
            for k in np.flatnonzero(one.weights.any(axis=1)):
                total += by_place[k].middle @ one.weights[k]
                spread += by_place[k].radius @ np.abs(one.weights[k])
            yield total[:, :, None], spread, t
        for place, across, t in self.plays:
            part = by_place[place][..., :3]
            yield part.middle @ across, np.linalg.norm(part.radius, axis=2), t

    def counterexample(self, task: Any, centres: Array, bound: float) -> tuple[int | None, float, Machine | None]:
        """Number of a centre that a machine within the tolerances misses by more than the bound, by how much, which."""
        poses = task.poses(np.where(np.isfinite(centres), centres, 0.0))[0]
        there = np.flatnonzero(closes(self.robot.kinematics.at(poses, mode=self.robot.mode).status))[:8]
        if not len(there):
            return None, 0.0, None
        model, built = ErrorModel(self.robot, self.tolerances, poses[there]), GraphModel(self.mechanism)

        def off(machine: Machine, k: int) -> float:  # NaN where its loops do not close
            built.displace(model.displacements(machine))
            start = model.states.rows(np.array([k]))
            start.q[:, self.drives] += machine.read
            end, gap = built.closed(start, self.drives)
            missed = float(np.linalg.norm(end.platform[0, :3, 3] - model.states.platform[k, :3, 3]))
            return missed if gap[0] < 1e-9 * built.length else np.nan

        for k, worst in enumerate(model.worst_machines()):
            for missed, machine in self._tried(worst, partial(off, k=k)):
                if missed > bound * (1.0 + 1e-9):
                    return int(there[k]), missed, machine
        return None, 0.0, None

    def _tried(self, worst: Machine, off: Callable[[Machine], float]) -> Iterator[tuple[float, Machine]]:
        missed = off(worst)
        yield missed, worst
        if self.plays or worst.change:
            worst = replace(worst, play={name: np.zeros(3) for name in worst.play}, change=0.0)
            missed = off(worst)
            yield missed, worst
        if np.isnan(missed):  # loops of an overconstrained robot, which all errors together lock: those that do not
            free = replace(worst, parameters={})
            for name, value in worst.parameters.items():
                more = replace(free, parameters={**free.parameters, name: value})
                free = free if np.isnan(off(more)) else more
            yield off(free), free


def _bounded(R: Array, b: Array) -> Array:
    """Nearly the least e (n, k) with e >= b + R e for R (n, k, k); infinite where there is none."""
    b = np.maximum(b, FLOOR * b.max(axis=1, keepdims=True))  # of what hardly moves, rounding would be all there is
    return fixed_point(R, b[:, :, None])[:, :, 0] * (1.0 + 1e-9)
