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
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pkm_description.joint_geometry import frame_along, freedoms, position_at
from pkm_description.loops.closure import ClosureModel, rank
from pkm_description.mechanism import Array, Joint, JointType, Loop, LoopType, Mechanism
from pkm_description.rotations import pose_from_transform, rotation_from_vector, skew, transform_from_pose
from pkm_kinematics.kernels.regularity import SINGULAR_BELOW

ORIGIN, PREDECESSOR, SUCCESSOR, RATIO = "origin", "predecessor", "successor", "ratio"
RANK = 3e-5  # of the largest singular value: equations below depend on others
CLOSED = 1e-12  # of the robot's size
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
    skewed: Array  # (3, 3), of the axis


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


def _times(frames: Array, matrix: Array) -> Array:
    n, k, _ = frames.shape
    return np.asarray((frames.reshape(n * k, k) @ matrix).reshape(n, k, k))


def _crossed(u: Array, v: Array) -> Array:
    """Cross products (n, 3), in a quarter of the time that `numpy.cross` takes."""
    return np.asarray(u[:, [1, 2, 0]] * v[:, [2, 0, 1]] - u[:, [2, 0, 1]] * v[:, [1, 2, 0]])


def rotation_vectors(matrices: Array) -> Array:
    """Rotation vectors (..., 3) of rotations (..., 3, 3), of length below pi."""
    from scipy.spatial.transform import Rotation  # late: only where poses are compared

    flat = Rotation.from_matrix(np.asarray(matrices).reshape(-1, 3, 3)).as_rotvec()
    return np.asarray(flat).reshape(matrices.shape[:-1])


def _right_jacobian(vector: Array) -> Array:
    """Body angular velocity (3, 3) per rate of a rotation vector (3,)."""
    angle = float(np.linalg.norm(vector))
    K = skew(vector)
    if angle < 1e-6:
        return np.asarray(np.eye(3) - 0.5 * K + K @ K / 6.0)
    return np.asarray(np.eye(3) - (1.0 - np.cos(angle)) / angle**2 * K + (angle - np.sin(angle)) / angle**3 * (K @ K))


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
        self.length = float(lengths.max(initial=0.0)) or 1.0
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
            self.drawn.append([Step(at, factor, offset, one.slides, one.axis, skew(one.axis)) for at, one in found])
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
        self.joints_of_steps = np.array([k for k, steps in enumerate(self.drawn) for _ in steps], dtype=np.int64)
        self.columns_of_steps = np.array([step.column for steps in self.drawn for step in steps], dtype=np.int64)
        self.select = np.zeros((len(self.joints_of_steps), self.size + 6))
        self.select[np.arange(len(self.select)), self.columns_of_steps] = 1.0
        self.geared = {  # joints that a ratio moves: its own, and those that follow it
            at: [k for k, j in enumerate(self.joints) if place.element in (j.name, j.mimic and j.mimic.joint)]
            for at, place in enumerate(self.places)
            if place.side == RATIO
        }

    def displace(self, displacements: Array) -> None:
        """Take other displacements (n_places, 6)."""
        self.displacements = np.array(displacements, dtype=np.float64)
        moves = np.tile(np.eye(4), (len(self.places), 1, 1))
        moves[:, :3, :3] = rotation_from_vector(self.displacements[:, 3:])
        moves[:, :3, 3] = self.displacements[:, :3]
        self.frames = self.nominal @ moves
        self.steps = list(self.drawn)
        for place, joints in self.geared.items():
            ratio = 1.0 + float(self.displacements[place, 0])
            for k in joints:
                self.steps[k] = [replace(step, factor=ratio * step.factor) for step in self.steps[k]]

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
        bodies[0] = np.eye(4)
        if self.free_platform:
            bodies[self.platform] = states.platform
        twists = np.zeros((n, 6, len(self.joints_of_steps)))
        at = 0
        for k, joint in enumerate(self.joints):
            moved = _times(bodies[self.links[joint.parent]], self.frames[k])
            for step in self.steps[k]:
                value = step.factor * states.q[:, step.column] + step.offset
                axis = moved[:, :3, :3] @ step.axis
                if step.slides:
                    twists[:, :3, at] = step.factor * axis
                    moved[:, :3, 3] += axis * value[:, None]
                else:
                    twists[:, :3, at] = step.factor * _crossed(moved[:, :3, 3], axis)
                    twists[:, 3:, at] = step.factor * axis
                    across = _times(moved[:, :3, :3], step.skewed)
                    again = _times(across, step.skewed)
                    turn = np.sin(value)[:, None, None] * across
                    moved[:, :3, :3] += turn + (2.0 * np.sin(0.5 * value) ** 2)[:, None, None] * again
                at += 1
            bodies[self.links[joint.child]] = moved
        return Placed(self, bodies, twists, bodies[self.platform], states.q)

    def closure(self, placed: Placed) -> tuple[Array, Array]:
        """Dimensionless gaps (n, m) of the loops and their derivatives (n, m, size + 6) by dimensionless steps."""
        gaps, rows = [], []
        for k, (gap, row) in enumerate(placed.loops):
            gaps.append(gap)
            rows.append(row @ placed.relative(k))
        if not gaps:
            n = len(placed.platform)
            return np.zeros((n, 0)), np.zeros((n, 0, self.size + 6))
        return np.concatenate(gaps, axis=1), np.concatenate(rows, axis=1) * self.scale

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

        By singular values where equations depend on each other: the largest ones, as many as are independent as drawn.
        """
        if self.regular and J.shape[2] >= J.shape[1]:
            try:
                if J.shape[2] == J.shape[1]:
                    return np.asarray(np.linalg.solve(J, wanted))
                back = np.swapaxes(J, 1, 2)
                return np.asarray(back @ np.linalg.solve(J @ back, wanted))
            except np.linalg.LinAlgError:  # exactly singular
                pass
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
        random = np.random.default_rng(seed)
        states = self.home(4 * n)
        for _ in range(3):
            J = self.closure(self.placed(states))[1]
            step = random.standard_normal((len(states), self.size + 6))
            if not self.free_platform:
                step[:, self.size :] = 0.0
            step -= self.least_steps(J, J @ step[:, :, None], RANK)[:, :, 0]
            step *= spread * random.uniform(0.3, 1.0, (len(states), 1)) / (np.abs(step).max(axis=1, keepdims=True))
            states, gap = self.closed(states.moved(step * self.scale))
            good = gap < 1e-9 * self.length
            states = states.rows(np.flatnonzero(good))
        return states.rows(slice(0, n))

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
        carried = self.model.carried[row]
        return self._moved(carried[self.model.joints_of_steps].astype(np.float64), float(carried[-1]))

    def relative(self, loop: int) -> Array:
        """Twist (n, 6, size + 6) of a loop's successor relative to its predecessor per rate of the states."""
        signs = self._signs(loop)
        return self._moved(signs[self.model.joints_of_steps], float(signs[-1]))

    def _signs(self, loop: int) -> Array:
        """Which joints (n_joints + 1,) move a loop's successor (1) or its predecessor (-1); the last: the platform."""
        one, carried = self.model.loops[loop], self.model.carried.astype(np.float64)
        return np.asarray(carried[self.model.links[one.successor]] - carried[self.model.links[one.predecessor]])

    def _moved(self, signs: Array, platform: float) -> Array:
        """Twist (n, 6, size + 6) of all that moves with these signs (n_steps,), the platform with its own."""
        model = self.model
        found = self.twists @ (signs[:, None] * model.select)
        if platform:
            found[:, :3, model.size : model.size + 3] = platform * np.eye(3)
            found[:, :3, model.size + 3 :] = platform * skew(self.platform[:, :3, 3])
            found[:, 3:, model.size + 3 :] = platform * np.eye(3)
        return np.asarray(found)

    @cached_property
    def loops(self) -> list[tuple[Array, Array]]:
        """Dimensionless gaps (n, m) of each loop, and their derivatives (n, m, 6) by the relative twist."""
        return [self._loop(k) for k in range(len(self.model.loops))]

    def loop_frames(self, loop: int) -> tuple[Array, Array]:
        """Frames (n, 4, 4) of a loop on its predecessor and its successor, in the base frame."""
        model, one = self.model, self.model.loops[loop]
        first = _times(self.bodies[model.links[one.predecessor]], model.frames[model.place_at[one.name, PREDECESSOR]])
        second = _times(self.bodies[model.links[one.successor]], model.frames[model.place_at[one.name, SUCCESSOR]])
        return first, second

    def _loop(self, loop: int) -> tuple[Array, Array]:
        one, length = self.model.loops[loop], self.model.length
        first, second = self.loop_frames(loop)
        back = np.swapaxes(first[:, :3, :3], 1, 2)
        point = second[:, :3, 3]
        gap = np.einsum("nij,nj->ni", back, point - first[:, :3, 3]) / length
        linear = np.concatenate((back, -back @ skew(point)), axis=2) / length
        kind = one.type
        if kind is LoopType.SPHERICAL:
            return gap, linear
        angular = np.concatenate((np.zeros_like(back), back), axis=2)
        turn = back @ second[:, :3, :3]
        image = turn @ one.axis2
        across = frame_along(one.axis).T[:2]

        def along(directions: Array) -> tuple[Array, Array]:
            """Components (n, k) of the image along fixed directions (k, 3), and their rows."""
            return image @ directions.T, np.cross(image[:, None, :], directions) @ angular

        if kind is LoopType.UNIVERSAL:
            parts = [(gap, linear), along(one.axis[None])]
        elif kind is LoopType.REVOLUTE:
            parts = [(gap, linear), along(across)]
        elif kind is LoopType.CYLINDRICAL:
            parts = [(gap @ across.T, across @ linear), along(across)]
        elif kind is LoopType.PLANAR:
            parts = [((gap @ one.axis)[:, None], one.axis[None] @ linear), along(across)]
        else:
            half = 0.5 * (turn - np.swapaxes(turn, 1, 2))
            sine = np.stack((half[:, 2, 1], half[:, 0, 2], half[:, 1, 0]), axis=1)
            trace = np.trace(turn, axis1=1, axis2=2)[:, None, None]
            rows = 0.5 * (trace * np.eye(3) - turn) @ angular
            ends = (gap @ across.T, across @ linear) if kind is LoopType.PRISMATIC else (gap, linear)
            parts = [ends, (sine, rows)]
        return np.concatenate([p[0] for p in parts], axis=1), np.concatenate([p[1] for p in parts], axis=1)

    # -- geometry's own derivatives ---------------------------------------------------------------------------------

    def place_twists(self, place: int) -> Array:
        """Twist (n, 6, 6) of what sits at a place per rate of its displacement."""
        model, at = self.model, self.model.places[place]
        before = self.bodies[model.links[at.link]] @ model.nominal[place]
        after = self.bodies[model.links[at.link]] @ model.frames[place]
        n = len(before)
        found = np.zeros((n, 6, 6))
        found[:, :3, :3] = before[:, :3, :3]
        omega = after[:, :3, :3] @ _right_jacobian(model.displacements[place, 3:])
        found[:, 3:, 3:] = omega
        found[:, :3, 3:] = skew(after[:, :3, 3]) @ omega
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
        if one.side == RATIO:
            parts = [self.loops[k][1] @ self._by_ratio(place, self._signs(k)) for k in range(len(model.loops))]
            return np.concatenate([np.zeros((len(self.q), 0, 6)), *parts], axis=1)
        twist = self.place_twists(place)
        rows = []
        joint = place if one.side == ORIGIN else -1
        for k, loop in enumerate(model.loops):
            gradient = self.loops[k][1]
            if joint >= 0:
                first, second = model.links[loop.predecessor], model.links[loop.successor]
                sign = float(model.carried[second, joint]) - float(model.carried[first, joint])
            else:
                sign = 0.0 if loop.name != one.element else 1.0 if one.side == SUCCESSOR else -1.0
            rows.append(sign * gradient @ twist if sign else np.zeros_like(gradient))
        n = len(self.platform)
        return np.concatenate(rows, axis=1) if rows else np.zeros((n, 0, 6))

    def link_by_place(self, row: int, place: int) -> Array:
        """Twist (n, 6, 6) of a link per rate of a place's displacement, all coordinates held."""
        if self.model.places[place].side == RATIO:
            return self._by_ratio(place, self.model.carried[row].astype(np.float64))
        moves = self.model.places[place].side == ORIGIN and bool(self.model.carried[row, place])
        return self.place_twists(place) if moves else np.zeros((len(self.platform), 6, 6))

    def at_origin(self, twist: Array) -> Array:
        """Twists (n, 6, k) at the base's origin, taken to the platform's."""
        moved = twist.copy()
        moved[:, :3] -= skew(self.platform[:, :3, 3]) @ twist[:, 3:]
        return moved


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
