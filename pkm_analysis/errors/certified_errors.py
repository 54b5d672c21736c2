# SPDX-License-Identifier: Apache-2.0
"""Proof that a machine within its tolerances misses no pose of a box by more than a bound.

With the drives where the drawing has them at a pose, the loops of the machine as built hold at its own configuration.
Between the two lies, row by row, a derivative somewhere in the boxes of both (the mean value theorem):

    0 = J_u (u - u0) + J_p (p - p0),   so   e <= |C J_p| |p - p0| + |I - C J_u| e

for e = |u - u0| of passive joints and platform, C near the inverse of J_u. Over a box of poses, J and C are affine in
its coordinates, but for a rest of second order, and effects are largest at its corners. Where the second factor's
spectral radius is below one, e <= (I - R)^-1 b; if that lies within the box for which J was enclosed, the configuration
that continues the drawing's stays in it (Krawczyk, 1969; for manipulators Goldsztejn, Chabert and Caro, 2015).

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
from pkm_analysis.proof.matrices import FLOOR, Form, fixed_point
from pkm_analysis.requirements.grammar import POSE_ERROR
from pkm_analysis.requirements.quantity import Quantity, Requirement
from pkm_description.mechanism import Array
from pkm_description.rotations import skew, transform_from_pose, vector_from_rotation
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
PIECE = 32  # boxes
OUTLINED = 0.125  # of the sides: the resolution once the answer cannot be "proved"


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
        lower, upper = np.moveaxis(domain.bounds(boxes), -1, 0)
        centres, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
        errors = self.enclosure.errors(domain.task, centres, half)
        sides = np.where(domain.upper > domain.lower, domain.upper - domain.lower, 1.0)
        small = (np.ptp(boxes, axis=-1) / sides).max(axis=1, initial=0.0) <= OUTLINED
        some = np.flatnonzero(small & (errors >= self.bound))[:PIECE]
        # What does not hold at a point does not in any box about it: undecided parts are outlined.
        if self.resolution < OUTLINED and len(some):
            alone = self.enclosure.errors(domain.task, centres[some], np.zeros_like(half[some]))
            self.resolution = OUTLINED if (alone >= self.bound).any() else self.resolution
        self.largest = max(self.largest, float(errors[errors < self.bound].max(initial=0.0)))
        return self.bound - errors[:, None]

    def attempt(self, coordinates: Array) -> Refutation | None:
        """A pose among some of the coordinates (n, c), once bounds have not proved them all."""
        if not (self.done and len(coordinates)):
            return None
        some = coordinates[np.unique(np.linspace(0, len(coordinates) - 1, TRIED).astype(np.int64))]
        k, self.missed, self.machine = self.enclosure.counterexample(self.robot.coordinates, some, self.bound)
        return None if k is None else Refutation(some[k], str(self.wanted[0]), self.bound - self.missed)


@dataclass(frozen=True, eq=False)
class _Motion:
    # How the platform moves over boxes of poses whose coordinates go from -1 to 1.

    slopes: Array  # (k, n, 6) by coordinates, along and about the axes
    reach: Array  # (n, 3) beside that, at most [m]
    turn: Array  # (n,) sum of all angles, at most [rad]

    def __getitem__(self, at: Any) -> _Motion:
        return _Motion(self.slopes[:, at], self.reach[at], self.turn[at])

    @staticmethod
    def of(task: Any, centres: Array, half: Array) -> _Motion:
        half, there = np.nan_to_num(half), np.where(np.isfinite(centres), centres, 0.0)
        moving = np.flatnonzero(half.any(axis=0))
        slopes = np.zeros((len(moving), len(half), 6))
        here = _frames(task, there)
        arms = np.zeros((len(moving), len(half)))
        turns = np.array([task.all[column].unit != "m" for column in moving], dtype=bool)
        for k, column in enumerate(moving):
            there[:, column] += 1.0
            ahead = _frames(task, there)
            there[:, column] -= 1.0
            by = ahead[:, :3, 3] - here[:, :3, 3]
            if turns[k]:
                arms[k] = np.linalg.norm(by, axis=1) / (2.0 * np.sin(0.5))
                turned = ahead[:, :3, :3] @ np.swapaxes(here[:, :3, :3], 1, 2)
                slopes[k, :, 3:] = half[:, column, None] * np.array([vector_from_rotation(one) for one in turned])
            else:
                slopes[k, :, :3] = half[:, column, None] * by
        turn, reach = half[:, moving[turns]].sum(axis=1), np.zeros((len(half), 3))
        if (arms > 1e-12).any() or (np.diff(turns.astype(int)) < 0).any():  # slides are behind what turns
            along = half[:, moving].T * np.where(turns[:, None], arms, 1.0)
            with np.errstate(divide="ignore"):
                most = np.where(turn < 1.0, along.sum(axis=0) / (1.0 - np.minimum(turn, 1.0)), np.inf)
            slopes[..., :3], reach = 0.0, np.repeat(most[:, None], 3, axis=1)
        return _Motion(slopes, reach, turn)


def _frames(task: Any, coordinates: Array) -> Array:
    return np.array([transform_from_pose(pose) for pose in task.poses(coordinates)[0]]).reshape(-1, 4, 4)


def _platform(frames: Array, motion: _Motion, off: Array | None = None) -> tuple[Form, Form]:
    # Position and attitude, where it is off and turned by at most `off` (n, 6) beside that.
    off = np.zeros((len(frames), 6)) if off is None else off
    R = frames[:, :3, :3]
    tilts = skew(motion.slopes[..., 3:]) @ R
    second = 0.5 * (motion.turn + np.linalg.norm(off[:, 3:], axis=1)) ** 2
    radius = np.abs(skew(off[:, 3:])) @ np.abs(R) + second[:, None, None] + ROUNDING
    position = Form(frames[:, :3, 3], motion.reach + off[:, :3], motion.slopes[..., :3])
    return position, Form(R, np.minimum(radius, 2.0 + np.abs(tilts).sum(axis=0)), tilts)


def _mean(one: Form, other: Form) -> Form:
    # Of what grows convexly from one to the other, about the middle of the first.
    apart = np.abs(one.middle - other.middle)
    if one.slopes is not None and other.slopes is not None:
        apart = apart + np.abs(one.slopes - other.slopes).sum(axis=0)
    return Form(one.middle, 0.5 * (one.radius + other.radius + apart), one.slopes)


@dataclass(frozen=True, eq=False)
class _Drawn:
    q: Form
    frames: Array
    motion: _Motion
    J: Form
    by_place: Form

    def __getitem__(self, at: Any) -> _Drawn:
        return _Drawn(self.q[at], self.frames[at], self.motion[at], self.J[at], self.by_place[at])


@dataclass(frozen=True, eq=False)
class _Effects:
    # The gaps that errors of full size make.

    gaps: Form  # (n, m, s)
    singles: int  # components that are an error each; the others are three of a joint's play

    def __getitem__(self, at: Any) -> _Effects:
        return _Effects(self.gaps[at], self.singles)

    def most(self, rows: Form) -> Array:
        # Bounds (n, k) of what all errors make of combinations `rows` (n, k, m) of the gaps.
        return np.asarray(self.largest(self.at_corners(rows)) + self.beside(rows))

    def at_corners(self, rows: Form) -> Array:
        # Of the combinations (corners, n, k, s), to first order in the coordinates.
        gaps = self.gaps
        centre, slopes = rows.middle @ gaps.middle, np.zeros((0, 1))
        if rows.slopes is not None and gaps.slopes is not None:
            slopes = rows.slopes @ gaps.middle + rows.middle @ gaps.slopes
        corners = [centre]
        for one in slopes:
            corners = [at + sign * one for at in corners for sign in (-1.0, 1.0)]
        return np.array(corners)

    def largest(self, at_corners: Array) -> Array:
        # Of all errors together (n, k): a convex function of the coordinates, largest at a corner.
        sizes, S = np.abs(at_corners), self.singles
        if sizes.shape[-1] > S:
            plays = at_corners[..., S:].reshape(*sizes.shape[:-1], -1, 3)
            sizes[..., S:] = 0.0
            sizes[..., S : S + plays.shape[-2]] = np.linalg.norm(plays, axis=-1)
        return np.asarray((sizes @ np.ones(sizes.shape[-1])).max(axis=0))

    def beside(self, rows: Form) -> Array:
        gaps = self.gaps
        found = np.abs(rows.middle) @ gaps.radius.sum(axis=2)[..., None]
        found += rows.radius @ (np.abs(gaps.middle) + gaps.spread).sum(axis=2)[..., None]
        return np.asarray((found + rows.tilt @ gaps.spread.sum(axis=2)[..., None])[..., 0])


def _inverse_form(J: Form) -> Form:
    # A left inverse, but for what is of the second order in the coordinates.
    C = np.asarray(np.linalg.pinv(J.middle), dtype=np.float64)
    return Form(C, np.zeros_like(C), None if J.slopes is None else -(C @ J.slopes @ C))


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
        self.weights, self.singles = self._weights()
        self.passive = np.setdiff1d(np.arange(self.model.size), drives)
        self.joints = np.arange(self.model.size)
        if self.rods is not None:  # the passive angles are no unknowns
            self.passive, self.joints = self.passive[:0], drives
        self.unknown = np.concatenate((self.passive, self.model.size + np.arange(6)))

    def _derivatives(self, q: Form, platform: tuple[Form, Form], shifts: Array) -> tuple[Form, list[Form]]:
        if self.rods is not None:
            return EnclosedRods(self.model, self.rods, q, *platform, shifts).derivatives()
        return EnclosedGraph(self.model, q, *platform, shifts).derivatives()

    def errors(self, task: Any, centres: Array, half: Array) -> Array:
        """Upper bounds (n,) of the position error [m]; infinite where there is none."""
        poses = task.poses(np.where(np.isfinite(centres), centres, 0.0))[0]
        found = self.robot.kinematics.at(poses, mode=self.robot.mode)
        good = np.flatnonzero(closes(found.status))
        bounds = np.full(len(poses), np.inf)
        for some in np.array_split(good, np.arange(PIECE, len(good), PIECE)) if len(good) else ():
            states = self.model.at(found.joints[some], self.robot.kinematics.joint_names, poses[some])
            frames = np.array([transform_from_pose(pose) for pose in poses[some]])
            motion = _Motion.of(task, centres[some], half[some])
            ok, q = self._joints_over(states.q, frames, motion)
            bounds[some[ok]] = self._off(q, frames[ok], motion[ok])
        return bounds

    def _joints_over(self, q: Array, frames: Array, motion: _Motion) -> tuple[Array, Form]:
        """Enclosures of the drawing's joint coordinates over boxes of poses, and for which rows (n,) there is one."""
        size, n, k = self.model.size, len(q), len(motion.slopes)
        still = np.zeros_like(self.shifts)
        there = _platform(frames, _Motion(0.0 * motion.slopes, 0.0 * motion.reach, 0.0 * motion.turn))
        J, _ = self._derivatives(Form(q, np.zeros_like(q)), there, still)
        first = J.radius[..., self.joints], J.radius[..., size:]
        Jq, Jx = J.middle[..., self.joints], J.middle[..., size:]
        C = np.linalg.pinv(Jq)
        steps = -((C @ Jx) @ motion.slopes[..., None])[..., 0]  # (k, n, joints)
        slopes, radius, ok = np.zeros((k, *q.shape)), np.zeros_like(q), np.zeros(n, dtype=bool)
        slopes[..., self.joints] = steps
        bent = np.concatenate((motion.reach, np.repeat(0.5 * motion.turn[:, None] ** 2, 3, axis=1)), axis=1)
        # Axes turn the most at the end of the way, where derivatives are the farthest from their middles, too.
        fastest = np.abs(motion.slopes).sum(axis=0) + np.concatenate((motion.reach, 2.0 * bent[:, 3:]), axis=1)
        for guess in range(GUESSES):
            at = np.flatnonzero(~ok)
            if not len(at):
                break
            J, _ = self._derivatives(Form(q[at], radius[at], slopes[:, at]), _platform(frames[at], motion[at]), still)
            # The mean along the way from the centre: radii grow convexly with it, and slopes in proportion.
            apart = [
                0.5 * (J[..., c].spread + one[at])
                for c, one in zip((self.joints, slice(size, None)), first, strict=True)
            ]
            D, M = C[at], Jq[at]
            R = np.abs(np.eye(len(self.joints)) - D @ M) + np.abs(D) @ apart[0]
            b = np.einsum("nij,nj->ni", np.abs(D) @ apart[1], fastest[at])
            b += np.einsum("nij,nj->ni", np.abs(D @ Jx[at]), bent[at])
            b += np.einsum("nij,nj->ni", R, np.abs(steps[:, at]).sum(axis=0))
            e = _bounded(R, b)
            inside = (e <= radius[at][:, self.joints]).all(axis=1) & np.isfinite(e).all(axis=1) & (guess > 0)
            ok[at[inside]] = True
            wider = radius[at[~inside]]
            wider[:, self.joints] = np.where(np.isfinite(e), WIDER * e, 10.0)[~inside] + 1e-12
            radius[at[~inside]] = wider
        return ok, Form(q[ok], radius[ok], slopes[:, ok])

    def _off(self, q: Form, frames: Array, motion: _Motion) -> Array:
        """Upper bounds (n,) of the position error where joints and platform of the drawing are enclosed."""
        n = len(q.middle)
        J, places = self._derivatives(q, _platform(frames, motion), 0.0 * self.shifts)
        drawn = _Drawn(q, frames, motion, J, Form.joined(places, -1))
        e = np.zeros((n, len(self.unknown)))
        bounds, ok = np.full(n, np.inf), np.zeros(n, dtype=bool)
        for guess in range(GUESSES):
            at = np.flatnonzero(~ok)
            if not len(at):
                break
            here, effects = self._along_the_way(drawn[at], e[at])
            J = here[..., self.unknown]
            C = _inverse_form(J)
            product = C @ J
            R = np.abs(np.eye(len(self.unknown)) - product.middle) + product.spread
            found = _bounded(R, effects.most(C))
            inside = (found <= e[at]).all(axis=1) & np.isfinite(found).all(axis=1) & (guess > 0)
            good = at[inside]
            ok[good] = True
            if len(good):
                bounds[good] = self._farthest(C[inside], J[inside], effects[inside], found[inside]) * (1.0 + 1e-9)
            e[at[~inside]] = np.where(np.isfinite(found), WIDER * found, 1.0)[~inside] + 1e-12
        return bounds

    def _along_the_way(self, drawn: _Drawn, e: Array) -> tuple[Form, _Effects]:
        # The mean on the way from the drawing: radii grow convexly with it, from those of the poses alone.
        q = drawn.q
        wide = q.radius.copy()
        wide[:, self.passive] += e[:, : len(self.passive)]
        wide[:, self.drives] += self.sensors
        platform = _platform(drawn.frames, drawn.motion, e[:, len(self.passive) :])
        J, places = self._derivatives(Form(q.middle, wide, q.slopes), platform, self.shifts)
        mean, by_place = _mean(J, drawn.J), _mean(Form.joined(places, -1), drawn.by_place)
        by_drives = mean[..., self.drives] @ Form.exactly(np.diag(self.sensors))
        return mean, _Effects(Form.joined([by_drives, by_place @ Form.exactly(self.weights)], -1), self.singles)

    def _farthest(self, C: Form, J: Form, effects: _Effects, e: Array) -> Array:
        """Upper bounds (n,) of the position error where the unknowns are off by at most e (n, k)."""
        # In each direction, combinations of gaps are taken before absolute values, as those of several gaps cancel.
        position = slice(len(self.passive), len(self.passive) + 3)
        largest, there = np.zeros(len(e)), effects.at_corners(C[:, position])
        for along in np.array_split(DIRECTIONS, len(DIRECTIONS) // AT_ONCE):
            rows = Form.exactly(along) @ C[:, position]
            product = rows @ J
            rest = -product.middle
            rest[:, :, position] += along
            off = effects.largest(along @ there) + effects.beside(rows)
            off += ((np.abs(rest) + product.spread) @ e[:, :, None])[:, :, 0]
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

    def _weights(self) -> tuple[Array, int]:
        # Of places (6 places, s) by each error, and how many errors have one component. A joint with clearance has
        # three: it is anywhere in a ball, or in a disc across its axis.
        places = len(self.model.places)
        columns = [one.weights.reshape(-1, 1) * t for one, t in self.chosen]
        for place, across, t in self.plays:
            whole = np.zeros((places, 6, 3))
            whole[place, :3] = t * across
            columns.append(whole.reshape(-1, 3))
        return np.concatenate([np.zeros((6 * places, 0)), *columns], axis=1), len(self.drives) + len(self.chosen)

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
