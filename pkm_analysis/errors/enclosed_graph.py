# SPDX-License-Identifier: Apache-2.0
"""The loops of a mechanism over boxes: where every body can be, and all derivatives of the loops, as intervals.

Rows are those of many boxes at once. The gap of a loop is taken in base axes, in which what the two sides do keeps
apart.

Where every loop ends a rod between a universal joint and a ball, `EnclosedRods` asks for the rods' lengths alone: the
passive angles, whose intervals widen all that depends on them, are then no unknowns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pkm_analysis.proof.matrices import Ball
from pkm_description.joint_geometry import frame_along
from pkm_description.mechanism import Array, JointType, Loop, LoopType
from pkm_description.rotations import rotation_from_vector, skew
from pkm_kinematics.graph_model import ORIGIN, PREDECESSOR, RATIO, SUCCESSOR, GraphModel

ROUNDING = 1e-13  # of a term: more than the rounding of a sum of hundreds
TURNING = {JointType.REVOLUTE, JointType.CONTINUOUS}


@dataclass(frozen=True)
class End:
    """A side of a loop: a link, a place on it, a point (n, 3) that moves with the link, and whether it is the place's.

    `arm` (n, 3) goes to the point from the origin of a free platform that carries the link.
    """

    sign: float
    link: int
    place: int
    point: Ball
    own: bool
    arm: Ball | None = None


def crossed(one: Ball, other: Ball) -> Ball:
    """Cross products (..., 3)."""
    K = Ball(skew(one.middle), np.abs(skew(one.radius)))
    return (K @ other[..., None])[..., 0]


def dotted(one: Ball, other: Ball) -> Ball:
    """Inner products (...) of vectors (..., 3)."""
    return (one[..., None, :] @ other[..., None])[..., 0, 0]


def turned(axis: Array, angle: Array, width: Array) -> Ball:
    """Rotations (n, 3, 3) about a fixed axis (3,) by angles (n,) +- width (n,)."""
    K = np.abs(skew(axis))
    middle = rotation_from_vector(axis * angle[:, None])
    beside = width[:, None, None] * K + 0.5 * (width**2)[:, None, None] * (K @ K)
    return Ball(middle, np.abs(middle) @ beside + ROUNDING)


class EnclosedGraph:
    """Bodies, and derivatives of the gaps, of a model whose joints, platform and places are within boxes.

    `model` is as drawn, `q` (n, size), `position` (n, 3) and `attitude` (n, 3, 3) of the platform. `shifts`
    (n_places, 2) are radii of the places' displacements: translation [m] in each direction, and angle [rad]; of a ratio
    the first is its relative change.
    """

    def __init__(self, model: GraphModel, q: Ball, position: Ball, attitude: Ball, shifts: Array) -> None:
        self.model, self.q, n = model, q, len(q.middle)
        self.off = np.zeros(len(model.joints))  # relative, of what gears make of each joint's coordinate
        for place, joints in model.geared.items():
            self.off[joints] += (1.0 + self.off[joints]) * shifts[place, 0]
        self.frames = [_displaced(model.frames[k], *shifts[k]) for k in range(len(model.places))]
        still = Ball.exactly(np.tile(np.eye(3), (n, 1, 1))), Ball.exactly(np.zeros((n, 3)))
        self.bodies: dict[int, tuple[Ball, Ball]] = {0: still}
        self.moved = attitude, position
        self.arms: dict[int, Ball] = {}  # of bodies on a free platform: from its origin
        if model.free_platform:
            self.bodies[model.platform] = self.moved
            self.arms[model.platform] = still[1]
        self.axes: list[tuple[int, int, bool, Ball, Ball]] = []  # joint, column, slides, axis, point
        for k, joint in enumerate(model.joints):
            if model.links[joint.parent] not in self.bodies or not self.places_joint(k):
                continue
            self._joint(k, model.links[joint.parent], model.links[joint.child], q)

    def _joint(self, k: int, parent: int, child: int, q: Ball) -> None:
        """Where a joint's child is, and the axes that move it, by the rate of their coordinate."""
        R, p = self._at(parent, k)
        arm = self._arm(parent, k)
        for step in self.model.steps[k]:
            middle, radius = step.factor * q.middle[:, step.column] + step.offset, q.radius[:, step.column]
            radius = abs(step.factor) * (radius + self.off[k] * (np.abs(q.middle[:, step.column]) + radius))
            axis = R @ Ball.exactly(step.axis)
            spread = axis.radius + ROUNDING + self.off[k] * (np.abs(axis.middle) + axis.radius)
            rate = Ball(step.factor * axis.middle, abs(step.factor) * spread)
            self.axes.append((k, step.column, step.slides, rate, p))
            if step.slides:
                reach = np.abs(axis.middle) * radius[:, None]
                reach = reach + (axis.radius + ROUNDING) * (np.abs(middle) + radius)[:, None]
                along = Ball(axis.middle * middle[:, None], reach)
                p = p + along
                arm = None if arm is None else arm + along
            else:
                R = R @ turned(step.axis, middle, radius)
        self.bodies[child] = R, p
        if arm is not None:
            self.arms[child] = arm

    def places_joint(self, joint: int) -> bool:
        """Whether what a joint carries is needed."""
        return True

    def _at(self, link: int, place: int) -> tuple[Ball, Ball]:
        R, p = self.bodies[link]
        return R @ self.frames[place][:3, :3], p + self._reach(link, place)

    def _reach(self, link: int, place: int) -> Ball:
        R = self.bodies[link][0]
        return (R @ self.frames[place][:3, 3:4])[..., 0]

    def _arm(self, link: int, place: int) -> Ball | None:
        """From the origin of a free platform to a place on a body that it carries; None for other bodies."""
        return self.arms[link] + self._reach(link, place) if link in self.arms else None

    def derivatives(self) -> tuple[Ball, list[Ball]]:
        """Of the gaps (n, m, size + 6) by coordinates and the platform, and (n, m, 6) by each place's displacement."""
        model = self.model
        rows: list[Ball] = []
        by_place: list[list[Ball]] = [[] for _ in model.places]
        for loop in model.loops:
            first, second = model.links[loop.predecessor], model.links[loop.successor]
            here, there = model.place_at[loop.name, PREDECESSOR], model.place_at[loop.name, SUCCESSOR]
            R1, p1 = self._at(first, here)
            R2, p2 = self._at(second, there)
            pairs = self._directions(loop, R1, R2)
            across = _held_directions(loop)
            kept, one = None, End(-1.0, first, here, p1, True, self._arm(first, here))
            if across is not None:  # in directions of the first body, its point at the other end counts
                kept = (R1 @ Ball.exactly(across.T)).T
                one = End(-1.0, first, here, p2, False, None if one.arm is None else p2 - self.moved[1])
            ends = (End(1.0, second, there, p2, True, self._arm(second, there)), one)
            rows.append(_along(kept, self._by_rates(ends, pairs)))
            for k, place in enumerate(model.places):
                by_place[k].append(_along(kept, self._by_place(k, place.side, ends, pairs)))
        if not model.free_platform:
            self._held(rows, by_place)
        return _stacked(rows), [_stacked(parts) for parts in by_place]

    def _held(self, rows: list[Ball], by_place: list[list[Ball]]) -> None:
        """A platform that hangs on a limb is where the one that is given is: six rows more."""
        model, attitude = self.model, self.moved[0]
        R, p = self.bodies[model.platform]
        pairs = _turned_together(R, attitude)
        ends = (End(1.0, model.platform, -1, p, True),)
        J = self._by_rates(ends, pairs)
        for at, unit in enumerate(map(Ball.exactly, np.eye(3)), start=model.size):
            _put(J, at, -1.0, unit, None, pairs)
            _put(J, at + 3, -1.0, Ball.exactly(np.zeros(3)), unit, pairs)
        rows.append(J)
        for k, place in enumerate(model.places):
            by_place[k].append(self._by_place(k, place.side, ends, pairs))

    def _by_rates(self, ends: Sequence[End], pairs: list[Ball]) -> Ball:
        """Derivative (n, m, size + 6) of a loop's gaps by coordinates and the platform."""
        model, n = self.model, len(ends[0].point.middle)
        J = Ball(*(np.zeros((n, 3 + len(pairs), model.size + 6)) for _ in range(2)))
        for end in ends:
            for k, at, slides, axis, point in self.axes:
                if model.carried[end.link, k]:
                    linear = axis if slides else crossed(axis, end.point - point)
                    _put(J, at, end.sign, linear, None if slides else axis, pairs)
            if end.arm is not None:
                for at, unit in enumerate(map(Ball.exactly, np.eye(3)), start=model.size):
                    _put(J, at, end.sign, unit, None, pairs)
                    _put(J, at + 3, end.sign, crossed(unit, end.arm), unit, pairs)
        return J

    def _directions(self, loop: Loop, R1: Ball, R2: Ball) -> list[Ball]:
        """For each row of directions, image x fixed: what an angular velocity is multiplied by."""
        if loop.type is LoopType.SPHERICAL:
            return []
        if loop.type in (LoopType.PRISMATIC, LoopType.FIXED):
            return _turned_together(R2, R1)
        image = R2 @ Ball.exactly(loop.axis2)
        fixed = [loop.axis] if loop.type is LoopType.UNIVERSAL else list(frame_along(loop.axis).T[:2])
        return [crossed(image, R1 @ Ball.exactly(one)) for one in fixed]

    def _by_place(self, k: int, side: str, ends: Sequence[End], pairs: list[Ball]) -> Ball:
        """Derivative (n, m, 6) of a loop's gaps by a place's displacement."""
        model, n = self.model, len(ends[0].point.middle)
        J = Ball(*(np.zeros((n, 3 + len(pairs), 6)) for _ in range(2)))
        if side == RATIO:
            return self._by_ratio(k, ends, pairs)
        link = model.links[model.places[k].link]
        for end in ends:
            moves = bool(model.carried[end.link, k]) if side == ORIGIN else end.place == k
            if not moves:
                continue
            R, p = self._at(link, k)
            before = self.bodies[link][0] @ Ball.exactly(model.nominal[k][:3, :3])
            still = end.own and side != ORIGIN
            for axis in range(3):
                _put(J, axis, end.sign, before[..., axis], None, pairs)
                about = R[..., axis]
                linear = Ball.exactly(np.zeros(3)) if still else crossed(about, end.point - p)
                _put(J, 3 + axis, end.sign, linear, about, pairs)
        return J

    def _by_ratio(self, place: int, ends: Sequence[End], pairs: list[Ball]) -> Ball:
        """Derivative (n, m, 6) of a loop's gaps by a ratio: the rates of its joints times their coordinates."""
        J = Ball(*(np.zeros((len(self.q.middle), 3 + len(pairs), 6)) for _ in range(2)))
        for end in ends:
            for k, at, slides, axis, point in self.axes:
                if k in self.model.geared[place] and self.model.carried[end.link, k]:
                    turn = self.times(axis, at)
                    linear = turn if slides else crossed(turn, end.point - point)
                    _put(J, 0, end.sign, linear, None if slides else turn, pairs)
        return J

    def times(self, vector: Ball, column: int) -> Ball:
        """Vectors (n, 3) times a coordinate."""
        return (vector[..., None] @ self.q[..., column, None, None])[..., 0]


def _held_directions(loop: Loop) -> Array | None:
    """Directions (k, 3) of the predecessor's frame in which the ends of a loop that slides stay together."""
    if loop.type is LoopType.PLANAR:
        return loop.axis[None]
    return frame_along(loop.axis).T[:2] if loop.type in (LoopType.CYLINDRICAL, LoopType.PRISMATIC) else None


def _along(directions: Ball | None, J: Ball) -> Ball:
    """Derivatives whose first three rows are taken along directions (n, k, 3), if any."""
    if directions is None:
        return J
    linear = directions @ J[:, :3]
    return _stacked([linear, J[:, 3:]])


def _turned_together(R: Ball, other: Ball) -> list[Ball]:
    """Rows of two rotations that are equal: each axis of one is across the next one of the other."""
    return [crossed(R[..., k], other[..., k - 2]) for k in range(3)]


@dataclass(frozen=True)
class Rod:
    """A rod from a universal joint (places `centre` and `second` of its axes) to the ball of a loop.

    `slide` is the place of a prismatic joint on the way, -1 without one, `column` its coordinate.
    """

    loop: int
    centre: int
    second: int
    slide: int
    column: int


def rods_of(model: GraphModel) -> list[Rod] | None:
    """The rods of a mechanism all of whose loops end one; None for any other."""
    if not model.free_platform:
        return None
    parent = {joint.child: k for k, joint in enumerate(model.joints)}
    found = []
    for number, loop in enumerate(model.loops):
        if loop.type is not LoopType.SPHERICAL or loop.successor != model.mechanism.platform_link:
            return None
        at, slide, column = parent.get(loop.predecessor, -1), -1, -1
        if at >= 0 and model.joints[at].type is JointType.PRISMATIC:
            slide, column = at, model.column.get(model.joints[at].name, -1)
            if column < 0 or not model.joints[at].actuated:
                return None
            at = parent.get(model.joints[at].parent, -1)
        second = model.joints[at] if at >= 0 else None
        first = model.joints[parent[second.parent]] if second is not None and second.parent in parent else None
        if first is None or second is None or not {first.type, second.type} <= TURNING:
            return None
        meets = float(np.linalg.norm(second.origin[:3, 3])) < 1e-9 * model.length
        across = abs(float((second.origin[:3, :3] @ second.axis) @ first.axis)) < 1e-9
        driven = set(model.mechanism.actuated_joints)
        ancestors = {model.joints[k].name for k in np.flatnonzero(model.carried[model.links[first.parent], :-1])}
        moved = {name for name in ancestors if model.mechanism.joint_named[name].type is not JointType.FIXED}
        if not (meets and across) or first.actuated or second.actuated or not moved <= driven:
            return None
        found.append(Rod(number, parent[second.parent], at, slide, column))
    return found


class EnclosedRods(EnclosedGraph):
    """As `EnclosedGraph`, of a mechanism of rods: a gap is that between a rod's ends less its length, one row each."""

    def __init__(
        self, model: GraphModel, rods: list[Rod], q: Ball, position: Ball, attitude: Ball, shifts: Array
    ) -> None:
        self._ends = {rod.centre for rod in rods}
        self.rods, self.q = rods, q
        super().__init__(model, q, position, attitude, shifts)

    def places_joint(self, joint: int) -> bool:
        """Not what turns about a rod's centre."""
        return joint not in self._ends

    def derivatives(self) -> tuple[Ball, list[Ball]]:
        """Of the gaps (n, rods, size + 6) by drives and the platform, and (n, rods, 6) by each place's displacement."""
        model, n = self.model, len(self.q.middle)
        shape = (n, len(self.rods))
        J = Ball(np.zeros((*shape, model.size + 6)), np.zeros((*shape, model.size + 6)))
        places = [Ball(np.zeros((*shape, 6)), np.zeros((*shape, 6))) for _ in model.places]
        for row, rod in enumerate(self.rods):
            loop = model.loops[rod.loop]
            body, ball = model.links[model.places[rod.centre].link], model.place_at[loop.name, SUCCESSOR]
            c = self._at(body, rod.centre)[1]
            b = self._at(model.platform, ball)[1]
            n_ = _unit(b - c)
            arm = self._reach(model.platform, ball)
            _set(J, row, slice(model.size, model.size + 3), n_)
            _set(J, row, slice(model.size + 3, model.size + 6), crossed(arm, n_))
            for k, at, slides, turns, point in self.axes:
                if model.carried[body, k]:
                    speed = turns if slides else crossed(turns, c - point)
                    _set(J, row, at, dotted(n_, speed), -1.0)
                    for place, joints in model.geared.items():
                        if k in joints:
                            _set(places[place], row, 0, dotted(n_, self.times(speed, at)), -1.0)
            self._length(J, places, row, rod, loop.name)
            for k in {rod.centre, ball, *(j for j, *_ in self.axes if model.carried[body, j])}:
                before = self.bodies[model.links[model.places[k].link]][0]
                axes = before @ Ball.exactly(model.nominal[k][:3, :3])
                sign = 1.0 if k == ball else -1.0
                turn, at_place = self._at(model.links[model.places[k].link], k)
                for axis in range(3):
                    _set(places[k], row, axis, dotted(n_, axes[..., axis]), sign)
                    if k not in (rod.centre, ball):
                        about = crossed(turn[..., axis], c - at_place)
                        _set(places[k], row, 3 + axis, dotted(n_, about), sign)
        return J, places

    def _length(self, J: Ball, places: list[Ball], row: int, rod: Rod, loop: str) -> None:
        """The rod's own length: by its drive, and by the places on it."""
        model = self.model
        end = model.place_at[loop, PREDECESSOR]
        point = self.frames[end][:3, 3]
        if rod.slide < 0:
            own = _unit(point[None])
        else:
            frame, axis = self.frames[rod.slide], model.joints[rod.slide].axis
            q, off = self.q[..., rod.column, None], self.off[rod.slide]
            reach = q.radius + (off + ROUNDING) * (np.abs(q.middle) + q.radius)
            inner = Ball(point.middle + q.middle * axis, point.radius + reach * np.abs(axis))
            R = frame[:3, :3]
            along = _unit((R @ inner[..., None])[..., 0] + frame[:3, 3])  # before the slide
            own = (R[None].T @ along[..., None])[..., 0]  # in the slide's own axes
            rate = Ball(axis, off * np.abs(axis))
            _set(J, row, rod.column, dotted(own, rate), -1.0)
            for place, joints in model.geared.items():
                if rod.slide in joints:
                    along_axis = self.times(rate[None], rod.column)
                    _set(places[place], row, 0, dotted(own, along_axis), -1.0)
            for k, unit in enumerate(np.eye(3)):
                before = Ball.exactly(model.nominal[rod.slide][:3, k])
                _set(places[rod.slide], row, k, dotted(along, before), -1.0)
                _set(places[rod.slide], row, 3 + k, dotted(own, crossed(Ball.exactly(unit), inner)), -1.0)
        for k in range(3):
            _set(places[end], row, k, dotted(own, Ball.exactly(model.nominal[end][:3, k])), -1.0)


def _unit(vector: Ball) -> Ball:
    """Directions (n, 3): first order, and a bound of the second."""
    size = np.linalg.norm(vector.middle, axis=1, keepdims=True)
    spread = np.linalg.norm(vector.radius, axis=1, keepdims=True)
    least = np.maximum(size - spread, 1e-12)
    middle = vector.middle / size
    across = np.abs(np.eye(3) - middle[:, :, None] * middle[:, None, :])
    return Ball(middle, (across @ vector.radius[..., None])[..., 0] / size + 2.0 * (spread / least) ** 2 + ROUNDING)


def _set(J: Ball, row: int, at: int | slice, value: Ball, sign: float = 1.0) -> None:
    J.middle[:, row, at] += sign * value.middle
    J.radius[:, row, at] += value.radius + ROUNDING * np.abs(value.middle)


def _put(J: Ball, column: int, sign: float, linear: Ball, angular: Ball | None, pairs: list[Ball]) -> None:
    """Add a velocity to a column: its linear part to the gap's rows, its angular one to those of directions."""
    J.middle[:, :3, column] += sign * linear.middle
    J.radius[:, :3, column] += linear.radius + ROUNDING * np.abs(linear.middle)
    for row, pair in enumerate(pairs, start=3):
        if angular is not None:
            rate = dotted(pair, angular)
            J.middle[:, row, column] += sign * rate.middle
            J.radius[:, row, column] += rate.radius + ROUNDING * np.abs(rate.middle)


def _stacked(parts: list[Ball]) -> Ball:
    return Ball(*(np.concatenate([getattr(one, name) for one in parts], axis=1) for name in ("middle", "radius")))


def _displaced(frame: Array, translation: float, angle: float) -> Ball:
    """A frame (4, 4) whose origin moves by up to `translation` in each direction of its own, and turns by an angle."""
    radius = np.zeros((4, 4))
    radius[:3, 3] = np.abs(frame[:3, :3]) @ np.full(3, translation)
    radius[:3, :3] = np.abs(frame[:3, :3]) @ (angle * (1.0 - np.eye(3)) + angle**2)
    return Ball(frame, radius + ROUNDING * np.abs(frame))
