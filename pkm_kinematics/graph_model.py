# SPDX-License-Identifier: Apache-2.0
"""All joints of a mechanism and its loops over many configurations at once, with the place of every joint variable.

Calibration and error budgets ask what no solver for control asks: how closures, poses and joints move when a joint does
not sit where the drawing has it. Moving a joint's frame on its body by a twist is what a further joint at that place
would do, so that derivatives by geometry are screws, exact like those by joint positions.

The platform is a free body wherever the loops alone leave it its motions: a robot whose parts differ from the drawing
tilts its platform, which the drawing's task coordinates cannot express.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pkm_description.joint_geometry import frame_along, freedoms, position_at
from pkm_description.loops.closure import ROUNDED, ClosureModel, rank
from pkm_description.mechanism import Array, Joint, JointType, Loop, LoopType, Mechanism
from pkm_description.rotations import pose_from_transform, rotation_from_vector, skew, transform, transform_from_pose
from pkm_kinematics.kernels.position.closures import ALONG, POSITION, WHOLE, graph_gaps, graph_jacobian
from pkm_kinematics.kernels.position.placement import place_graph
from pkm_kinematics.kernels.regularity import SINGULAR_BELOW

ORIGIN, PREDECESSOR, SUCCESSOR, RATIO = "origin", "predecessor", "successor", "ratio"
RANK = 3e-5  # of the largest singular value: equations below depend on others
CLOSED = 1e-12  # of the robot's size
ROUNDING = 1e-10  # of a matrix: smaller singular values may be zero
STILL = 1e-13  # a dimensionless step: what is still open then stays so
ITERATIONS = 30
FEW = 4  # states at which equations are counted
LONGEST = 0.3  # rad, and of the robot's size: of one step


@dataclass(frozen=True)
class Place:
    """A frame that sits on a body `link`: the "origin" of a joint, or the "predecessor" or "successor" of a loop.

    Or no frame, but the "ratio" of a joint's gear.
    """

    element: str
    side: str
    link: str


@dataclass(frozen=True, eq=False)
class Step:
    """A degree of freedom of a joint: it slides or turns by `factor` * q[column] + `offset` about an axis (3,)."""

    column: int
    factor: float
    offset: float
    slides: bool
    axis: Array


@dataclass(frozen=True, eq=False)
class States:
    """Configurations: joint coordinates `q` (n, size) [m, rad], and the platform's frames `platform` (n, 4, 4).

    A step or rate of them is (size + 6,): of the coordinates, then the platform's at its origin, linear, then angular,
    in base axes. Where the platform hangs on the tree, its frame follows and the last six do not count.
    """

    q: Array
    platform: Array

    def __len__(self) -> int:
        return len(self.q)

    def rows(self, at: NDArray[np.int64] | NDArray[np.bool_] | slice) -> States:
        """Some of the configurations."""
        return States(self.q[at], self.platform[at])

    @property
    def poses(self) -> Array:
        """Poses (n, 7) of the platform."""
        return np.array([pose_from_transform(frame) for frame in self.platform])

    def moved(self, step: Array) -> States:
        """The configurations after a step (n, size + 6)."""
        size = self.q.shape[1]
        platform = self.platform.copy()
        platform[:, :3, 3] += step[:, size : size + 3]
        platform[:, :3, :3] = rotation_from_vector(step[:, size + 3 :]) @ platform[:, :3, :3]
        return States(self.q + step[:, :size], platform)


def joined(parts: Sequence[States]) -> States:
    """Configurations one after the other."""
    return States(*(np.concatenate([getattr(one, name) for one in parts]) for name in ("q", "platform")))


def rotation_vectors(matrices: Array) -> Array:
    """Rotation vectors (..., 3) of rotations (..., 3, 3), of length below pi."""
    from scipy.spatial.transform import Rotation  # late: only where poses are compared

    flat = Rotation.from_matrix(np.asarray(matrices).reshape(-1, 3, 3)).as_rotvec()
    return np.asarray(flat).reshape(matrices.shape[:-1])


def _right_jacobians(vectors: Array) -> Array:
    """Body angular velocities (k, 3, 3) per rate of rotation vectors (k, 3)."""
    angle = np.linalg.norm(vectors, axis=1)[:, None, None]
    K, small = skew(vectors), angle < 1e-6
    safe = np.where(small, 1.0, angle)
    a = np.where(small, 0.5, (1.0 - np.cos(safe)) / safe**2)
    b = np.where(small, 1.0 / 6.0, (safe - np.sin(safe)) / safe**3)
    return np.asarray(np.eye(3) - a * K + b * (K @ K))


class GraphModel:
    """A mechanism as a graph of joints and loops, its `places` displaced by `displacements` (n_places, 6).

    A displacement is a translation [m], then a rotation vector [rad], in the axes of the place's own frame: the frame
    becomes `frame @ [R(rotation), translation]`. Of a ratio, the first component is its relative change: a follower, or
    a geared drive, whose coordinate is what its encoder reads, moves (1 + it) times as far.

    `size` counts joint coordinates without the platform's six, `names` are those of the joints' degrees of freedom,
    `scale` (size + 6,) makes steps dimensionless by the length `length`. `independent` of the loops' equations do not
    follow from the others as drawn; `regular` where all of them are.
    """

    def __init__(self, mechanism: Mechanism, displacements: Array | None = None) -> None:
        self.mechanism = mechanism
        self.free_platform = _is_free(mechanism)
        chain = set(mechanism.virtual_chain) if self.free_platform else set()
        base = mechanism.base_link
        self.links: dict[str, int] = {base: 0}
        self.joints: list[Joint] = []
        for joint in mechanism.joints:
            if joint.name not in chain:
                if joint.parent not in self.links:  # fixed to a platform that is free
                    self.links.setdefault(mechanism.platform_link, len(self.links))
                self.links[joint.child] = len(self.links)
                self.joints.append(joint)
        self.platform = self.links.setdefault(mechanism.platform_link, len(self.links))
        self.loops: tuple[Loop, ...] = mechanism.loops
        self.places = (
            *(Place(j.name, ORIGIN, j.parent) for j in self.joints),
            *(Place(loop.name, PREDECESSOR, loop.predecessor) for loop in self.loops),
            *(Place(loop.name, SUCCESSOR, loop.successor) for loop in self.loops),
            *(Place(j.name, RATIO, j.parent) for j in self.joints if is_geared(j)),
        )
        self.place_at = {(place.element, place.side): k for k, place in enumerate(self.places)}
        self.nominal = np.array(
            [j.origin for j in self.joints]
            + [loop.predecessor_frame for loop in self.loops]
            + [loop.successor_frame for loop in self.loops]
            + [np.eye(4) for place in self.places if place.side == RATIO]
        ).reshape(-1, 4, 4)
        self._columns()
        self.displace(np.zeros((len(self.places), 6)))
        lengths = np.linalg.norm(self.nominal[:, :3, 3], axis=1)
        self.length = float(max(lengths[lengths > ROUNDED], default=1.0))
        self.scale = np.ones(self.size + 6)
        self.scale[: self.size][self.slides] = self.length
        self.scale[self.size : self.size + 3] = self.length
        J = self.closure(self.placed(self.home()))[1]
        self.independent = J.shape[1]
        self.regular = rank(J[0]) == J.shape[1]
        if not self.regular:  # at home it may have more motions than elsewhere
            around = self.closure(self.placed(self.random_states(FEW)))[1]
            self.independent = max(rank(one) for one in (*J, *around))
        if displacements is not None:
            self.displace(displacements)

    def _columns(self) -> None:
        self.column: dict[str, int] = {}
        slides: list[bool] = []
        for joint in self.joints:
            if joint.mimic is None:
                for freedom in freedoms(joint):
                    self.column[freedom.name] = len(slides)
                    slides.append(freedom.slides)
        self.drawn: list[list[Step]] = []
        for joint in self.joints:
            leader, factor, offset = "", 1.0, 0.0
            if joint.mimic is not None:
                leader, factor, offset = joint.mimic.joint, joint.mimic.multiplier, joint.mimic.offset
            found = [(self.column[leader or one.name], one) for one in freedoms(joint)]
            self.drawn.append([Step(at, factor, offset, one.slides, one.axis) for at, one in found])
        self.size = len(slides)
        self.names = tuple(self.column)
        self.slides = np.array(slides, dtype=bool)
        parent = {joint.child: joint for joint in self.joints}
        rank = {joint.name: k for k, joint in enumerate(self.joints)}
        self.carried = np.zeros((len(self.links), len(self.joints) + 1), dtype=bool)  # the last: by the free platform
        for link, row in self.links.items():
            at = link
            while at in parent:
                self.carried[row, rank[parent[at].name]] = True
                at = parent[at].parent
            self.carried[row, -1] = self.free_platform and at == self.mechanism.platform_link
        counts = [len(steps) for steps in self.drawn]
        ends = np.cumsum([0, *counts])
        self._joints = np.array(
            [
                (self.links[joint.parent], self.links[joint.child], ends[k], ends[k + 1])
                for k, joint in enumerate(self.joints)
            ],
            dtype=np.int64,
        ).reshape(-1, 4)
        self.joints_of_steps = np.repeat(np.arange(len(counts)), counts)
        each = [step for steps in self.drawn for step in steps]
        self.columns_of_steps = np.array([step.column for step in each], dtype=np.int64)
        self._sliding = np.array([step.slides for step in each], dtype=bool)
        self._axes = np.array([step.axis for step in each]).reshape(-1, 3)
        self._offsets = np.array([step.offset for step in each])
        self.geared = {  # joints that a ratio moves: its own, and those that follow it
            at: [k for k, j in enumerate(self.joints) if place.element in (j.name, j.mimic and j.mimic.joint)]
            for at, place in enumerate(self.places)
            if place.side == RATIO
        }
        self._tabulate_loops()

    def _tabulate_loops(self) -> None:
        carried = self.carried.astype(np.float64)
        ends_of = [(self.links[one.predecessor], self.links[one.successor]) for one in self.loops]
        # Which joints move a loop's successor (1) or its predecessor (-1); the last: the platform.
        self.signs = np.array([carried[second] - carried[first] for first, second in ends_of])
        self.signs = self.signs.reshape(-1, len(self.joints) + 1)
        equations = [_equations(one) for one in self.loops]
        last = np.cumsum([0, *(len(one) for one in equations)])
        self.rows_of = [slice(int(a), int(b)) for a, b in pairwise(last)]
        self._loops = np.array(
            [
                (
                    *ends_of[k],
                    self.place_at[one.name, PREDECESSOR],
                    self.place_at[one.name, SUCCESSOR],
                    *last[k : k + 2],
                )
                for k, one in enumerate(self.loops)
            ],
            dtype=np.int64,
        ).reshape(-1, 6)
        self._second_axes = np.array([one.axis2 for one in self.loops], dtype=np.float64).reshape(-1, 3)
        self._kinds = np.array([kind for each in equations for kind, _ in each], dtype=np.int64)
        self._directions = np.array([d for each in equations for _, d in each], dtype=np.float64).reshape(-1, 3)

    def displace(self, displacements: Array) -> None:
        """Take other displacements (n_places, 6)."""
        self.displacements = np.array(displacements, dtype=np.float64)
        moves = transform(self.displacements[:, :3], rotation_from_vector(self.displacements[:, 3:]))
        self.frames = self.nominal @ moves
        self.steps = list(self.drawn)
        for place, joints in self.geared.items():
            ratio = 1.0 + float(self.displacements[place, 0])
            for k in joints:
                self.steps[k] = [replace(step, factor=ratio * step.factor) for step in self.steps[k]]
        self._factors = np.array([step.factor for steps in self.steps for step in steps])

    def drawing(self) -> GraphModel:
        """The same without displacements, to be displaced by itself."""
        other = copy(self)
        other.displace(np.zeros_like(self.displacements))
        return other

    # -- states -----------------------------------------------------------------------------------------------------

    def home(self, n: int = 1) -> States:
        """The drawing's home, n times."""
        q = np.zeros(self.size)
        names = [f.name for joint in self.mechanism.joints for f in freedoms(joint)]
        for name, value in zip(names, self.mechanism.home_joints, strict=True):
            if name in self.column:
                q[self.column[name]] = value
        return States(np.tile(q, (n, 1)), np.tile(self.mechanism.home, (n, 1, 1)))

    def at(self, joints: Array, names: Sequence[str], poses: Array) -> States:
        """States of positions (n, len(names)) of joints by name, others at home, and platform poses (n, 7)."""
        states = self.home(len(joints))
        for name, values in zip(names, np.asarray(joints).T, strict=True):
            if name in self.column:
                states.q[:, self.column[name]] = values
        return States(states.q, np.array([transform_from_pose(pose) for pose in poses]))

    def joints_of(self, states: States, names: Sequence[str], others: Array) -> Array:
        """Positions (n, len(names)) of joints by name at states; of those not in the graph those in `others` (k,)."""
        joints = np.tile(others, (len(states), 1))
        for k, name in enumerate(names):
            if name in self.column:
                joints[:, k] = states.q[:, self.column[name]]
        return joints

    def columns_of(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Columns of degrees of freedom by name."""
        return np.array([self.column[name] for name in names], dtype=np.int64)

    # -- geometry ---------------------------------------------------------------------------------------------------

    def placed(self, states: States) -> Placed:
        """Bodies, frames and screws at the states."""
        n = len(states)
        bodies = np.empty((len(self.links), n, 4, 4))
        bodies[:] = np.eye(4)
        if self.free_platform:
            bodies[self.platform] = states.platform
        twists = np.zeros((n, 6, len(self._factors)))
        q = np.array(states.q, dtype=np.float64)
        steps = self.columns_of_steps, self._sliding, self._axes, self._factors, self._offsets
        place_graph(self._joints, *steps, self.frames, q, bodies, twists)
        return Placed(self, bodies, twists, bodies[self.platform], states.q)

    def closure(self, placed: Placed) -> tuple[Array, Array]:
        """Dimensionless gaps (n, m) of the loops and their derivatives (n, m, size + 6) by dimensionless steps."""
        gaps, gradients = placed.gaps
        J = np.zeros((*gaps.shape, self.size + 6))
        signs = np.column_stack([self.signs[:, self.joints_of_steps], self.signs[:, -1]])
        graph_jacobian(self._loops, signs, self.columns_of_steps, placed.twists, placed.platform, gradients, J)
        J *= self.scale
        return gaps, J

    def closed(
        self, states: States, held: NDArray[np.int64] | Sequence[int] = (), within: float = CLOSED
    ) -> tuple[States, Array]:
        """The configurations that close the loops, near `states`, with some columns held; and the gaps (n,) left [m].

        Newton's method with steps of least norm. Of loops that repeat each other in the drawing, as many equations are
        closed as are independent there: the others may stay open in a machine that differs from it.
        """
        free = np.setdiff1d(np.arange(self.size + 6), np.asarray(held, dtype=np.int64))
        states = States(states.q.copy(), states.platform.copy())
        open_, worst = np.arange(len(states)), np.full(len(states), np.inf)
        for _ in range(ITERATIONS):
            part = states.rows(open_)
            gaps, J = self.closure(self.placed(part))
            worst[open_] = np.abs(gaps).max(axis=1, initial=0.0)
            on = (worst[open_] > within) & np.isfinite(worst[open_])
            step = np.zeros((int(on.sum()), self.size + 6))
            step[:, free] = -self.least_steps(J[on][:, :, free], gaps[on][:, :, None], RANK)[:, :, 0]
            longest = np.abs(step).max(axis=1, initial=0.0)
            step *= np.minimum(1.0, LONGEST / np.maximum(longest, 1e-300))[:, None]
            moving = longest > STILL
            open_ = open_[on][moving]
            if not len(open_):
                break
            moved = part.rows(on).rows(moving).moved(step[moving] * self.scale)
            states.q[open_], states.platform[open_] = moved.q, moved.platform
        if not self.free_platform:
            states = States(states.q, self.placed(states).platform)
        return states, worst * self.length

    def least_steps(self, J: Array, wanted: Array, cutoff: float) -> Array:
        """Steps of least norm (n, columns, k) that change the gaps by `wanted` (n, rows, k), with derivatives J.

        Where equations depend on each other and leave motions, by as many singular values as are independent as drawn.
        """
        columns, back = J.shape[2], np.swapaxes(J, 1, 2)
        if columns <= self.independent or self.regular:
            with suppress(np.linalg.LinAlgError):  # exactly singular
                if columns == J.shape[1]:
                    steps = np.linalg.solve(J, wanted)
                elif columns > J.shape[1]:
                    steps = back @ np.linalg.solve(J @ back, wanted)
                else:
                    Q, R = np.linalg.qr(J)
                    steps = np.linalg.solve(R, np.swapaxes(Q, 1, 2) @ wanted)
                size = np.linalg.norm(J, axis=(1, 2)) * np.linalg.norm(steps, axis=(1, 2))
                far = size * ROUNDING > np.linalg.norm(wanted, axis=(1, 2))
                if far.any():
                    steps[far] = self._by_singular_values(J[far], wanted[far], cutoff)
                return np.asarray(steps)
            if len(J) > 1:  # others are as they would be alone
                return np.concatenate(
                    [self.least_steps(*one, cutoff) for one in zip(J[:, None], wanted[:, None], strict=True)]
                )
        return self._by_singular_values(J, wanted, cutoff)

    def _by_singular_values(self, J: Array, wanted: Array, cutoff: float) -> Array:
        U, sizes, Vt = np.linalg.svd(J, full_matrices=False)
        used = (sizes > cutoff * sizes[:, :1]) & (np.arange(sizes.shape[1]) < self.independent)
        parts = np.where(used, 1.0 / np.where(used, sizes, 1.0), 0.0)[:, :, None] * (np.swapaxes(U, 1, 2) @ wanted)
        return np.asarray(np.swapaxes(Vt, 1, 2) @ parts)

    def holding(self, J: Array) -> NDArray[np.bool_]:
        """Where (n,) the loops leave no motion, by their derivatives J (n, m, columns) without those of the drives."""
        spare = max(0, len(self.mechanism.actuated_joints) - self.mechanism.mobility.platform)
        needed = self.independent - spare
        whole = np.linalg.norm(J, axis=(1, 2))
        if self.regular and J.shape[1] == J.shape[2] == needed:
            try:
                return np.asarray(needed / (whole * np.linalg.norm(np.linalg.inv(J), axis=(1, 2))) > SINGULAR_BELOW)
            except np.linalg.LinAlgError:  # exactly singular
                pass
        sizes = np.linalg.svd(J, compute_uv=False)[:, :needed]
        with np.errstate(divide="ignore"):
            inverted = np.sqrt(np.sum(sizes**-2.0, axis=1))
        return np.asarray(needed / (whole * inverted) > SINGULAR_BELOW)

    def random_states(self, n: int, spread: float = 0.15, seed: int = 0) -> States:
        """Closed configurations around home, drives moved by up to `spread` of the robot's size, or rad."""
        random, width = np.random.default_rng(seed), self.size + 6
        drawn = [(random.standard_normal((4 * n, width)), random.uniform(0.3, 1.0, (4 * n, 1))) for _ in range(3)]
        found, begun = self.home(0), 0
        while len(found) < n and begun < 4 * n:  # most close: what is missing is drawn
            at = np.arange(begun, min(4 * n, begun + n - len(found)))
            begun, states = begun + len(at), self.home(len(at))
            for steps, lengths in drawn:
                J, step = self.closure(self.placed(states))[1], steps[at]
                if not self.free_platform:
                    step[:, self.size :] = 0.0
                step -= self.least_steps(J, J @ step[:, :, None], RANK)[:, :, 0]
                step *= spread * lengths[at] / np.abs(step).max(axis=1, keepdims=True)
                states, gap = self.closed(states.moved(step * self.scale))
                good = gap < 1e-9 * self.length
                states, at = states.rows(good), at[good]
            found = joined([found, states])
        return found

    def null_spaces(self, placed: Placed) -> Array:
        """Left null spaces (n, k, m) of the loops' equations, of those that depend on others: what no motion closes."""
        U = np.linalg.svd(self.closure(placed)[1])[0]
        return np.asarray(np.swapaxes(U[:, :, self.independent :], 1, 2))


@dataclass(frozen=True, eq=False)
class Placed:
    """Where everything is at n states; twists are at the base's origin, base axes, linear, then angular."""

    model: GraphModel
    bodies: Array  # (n_links, n, 4, 4)
    twists: Array  # (n, 6, n_steps), of the joints' degrees of freedom
    platform: Array  # (n, 4, 4)
    q: Array  # (n, size)

    def twists_of(self, row: int) -> Array:
        """Twist (n, 6, size + 6) of a link per rate of the states."""
        model, carried = self.model, self.model.carried[row]
        found = np.zeros((len(self.q), 6, model.size + 6))
        for step in np.flatnonzero(carried[model.joints_of_steps]):
            found[:, :, model.columns_of_steps[step]] += self.twists[:, :, step]
        if carried[-1]:
            found[:, :3, model.size : model.size + 3] = np.eye(3)
            found[:, :3, model.size + 3 :] = skew(self.platform[:, :3, 3])
            found[:, 3:, model.size + 3 :] = np.eye(3)
        return found

    @cached_property
    def gaps(self) -> tuple[Array, Array]:
        """Dimensionless gaps (n, m) of the loops, and their derivatives (n, m, 6) by each one's relative twist."""
        model, n, m = self.model, len(self.q), len(self.model._kinds)
        gaps, gradients = np.empty((n, m)), np.zeros((n, m, 6))
        equations = model._loops, model._second_axes, model._kinds, model._directions
        graph_gaps(*equations, model.frames, model.length, self.bodies, np.empty((3, 3, 4)), gaps, gradients)
        return gaps, gradients

    # -- geometry's own derivatives ---------------------------------------------------------------------------------

    @cached_property
    def place_twists(self) -> Array:
        """Twist (n_places, n, 6, 6) of what sits at a place per rate of its displacement."""
        model, n = self.model, len(self.q)
        bodies = self.bodies[[model.links[place.link] for place in model.places]].reshape(len(model.places), 4 * n, 4)
        before, after = ((bodies @ frames).reshape(-1, n, 4, 4) for frames in (model.nominal, model.frames))
        found = np.zeros((len(before), n, 6, 6))
        found[..., :3, :3] = before[..., :3, :3]
        omega = after[..., :3, :3] @ _right_jacobians(model.displacements[:, 3:])[:, None]
        found[..., 3:, 3:] = omega
        found[..., :3, 3:] = skew(after[..., :3, 3]) @ omega
        return found

    def _by_ratio(self, place: int, signs: Array) -> Array:
        """Twist (n, 6, 6) of what joints move with these signs (n_joints + 1,), per rate of a ratio's displacement."""
        model = self.model
        moves = np.isin(model.joints_of_steps, model.geared[place]) * signs[model.joints_of_steps]
        values = self.q[:, model.columns_of_steps] / (1.0 + model.displacements[place, 0])
        found = np.zeros((len(self.q), 6, 6))
        found[:, :, 0] = np.einsum("nij,nj->ni", self.twists, moves * values)
        return found

    def by_place(self, place: int) -> Array:
        """Derivative (n, m, 6) of the loops' dimensionless gaps by a place's displacement [m, rad]."""
        model, one = self.model, self.model.places[place]
        gradients = self.gaps[1]
        found, twist = np.zeros_like(gradients), None if one.side == RATIO else self.place_twists[place]
        for k, loop in enumerate(model.loops):
            rows, sign = model.rows_of[k], 1.0
            if one.side == ORIGIN:
                sign = model.signs[k, place]
            elif one.side != RATIO:
                sign = 0.0 if loop.name != one.element else 1.0 if one.side == SUCCESSOR else -1.0
            if sign:
                moved = self._by_ratio(place, model.signs[k]) if twist is None else sign * twist
                found[:, rows] = gradients[:, rows] @ moved
        return found

    def link_by_place(self, row: int, place: int) -> Array:
        """Twist (n, 6, 6) of a link per rate of a place's displacement, all coordinates held."""
        if self.model.places[place].side == RATIO:
            return self._by_ratio(place, self.model.carried[row].astype(np.float64))
        moves = self.model.places[place].side == ORIGIN and bool(self.model.carried[row, place])
        return self.place_twists[place] if moves else np.zeros((len(self.platform), 6, 6))

    def at_origin(self, twist: Array) -> Array:
        """Twists (n, 6, k) at the base's origin, taken to the platform's."""
        moved = twist.copy()
        moved[:, :3] -= skew(self.platform[:, :3, 3]) @ twist[:, 3:]
        return moved


def _equations(loop: Loop) -> list[tuple[int, Array]]:
    """Kind and direction (3,), in the predecessor's frame, of each equation of a loop."""

    def of(kind: int, directions: Array) -> list[tuple[int, Array]]:
        return [(kind, one) for one in directions]

    kind, across = loop.type, frame_along(loop.axis).T[:2]
    if kind is LoopType.SPHERICAL:
        return of(POSITION, np.eye(3))
    if kind is LoopType.UNIVERSAL:
        return of(POSITION, np.eye(3)) + of(ALONG, loop.axis[None])
    if kind is LoopType.REVOLUTE:
        return of(POSITION, np.eye(3)) + of(ALONG, across)
    if kind is LoopType.CYLINDRICAL:
        return of(POSITION, across) + of(ALONG, across)
    if kind is LoopType.PLANAR:
        return of(POSITION, loop.axis[None]) + of(ALONG, across)
    return of(POSITION, across if kind is LoopType.PRISMATIC else np.eye(3)) + of(WHOLE, np.eye(3))


def is_geared(joint: Joint) -> bool:
    """Whether a joint's motion comes through a gear: a follower, or a drive whose description has a gear ratio."""
    return joint.mimic is not None or (joint.drive is not None and joint.drive.gear_ratio != 1.0)


def _is_free(mechanism: Mechanism) -> bool:
    """Whether the platform's branch is only how its pose is written: without it, the loops leave the same motions."""
    chain = set(mechanism.virtual_chain)
    last = next(joint for joint in mechanism.joints if joint.child == mechanism.platform_link)
    if last.name not in chain:  # none, or the platform is fixed behind it
        return False
    kept = [joint for joint in mechanism.joints if joint.name not in chain]
    platform = Joint("", JointType.FLOATING, mechanism.base_link, mechanism.platform_link, np.eye(4), np.zeros(3))
    held = ClosureModel(mechanism.links, mechanism.joints, mechanism.loops, mechanism.base_link)
    freed = ClosureModel(mechanism.links, [platform, *kept], mechanism.loops, mechanism.base_link)
    home = held.reduced(mechanism.home_joints)
    start = [position_at(platform, mechanism.home)]
    start += [held.value(joint, home) for joint in freed.free if joint is not platform]
    freedoms_left = freed.size - rank(freed.closure(np.concatenate(start))[1])
    return freedoms_left == held.size - rank(held.closure(home)[1])
