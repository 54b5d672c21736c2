# SPDX-License-Identifier: Apache-2.0
"""The loops of a mechanism over boxes: where every body can be, and all derivatives of the loops, as intervals.

Rows are those of many boxes at once. The gap of a loop is taken in base axes, which keep apart what the two sides do.

Where every loop ends a rod between a universal joint and a ball, `EnclosedRods` asks for the rods' lengths alone: the
passive angles, whose intervals widen all that depends on them, are then no unknowns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pkm_analysis.proof.matrices import Form
from pkm_description.joint_geometry import frame_along
from pkm_description.mechanism import Array, JointType, Loop, LoopType
from pkm_description.rotations import rotation_from_vector, skew
from pkm_kinematics.graph_model import ORIGIN, PREDECESSOR, RATIO, SUCCESSOR, GraphModel

ROUNDING = 1e-13  # of a term: more than the rounding of a sum of hundreds
BENT = 0.5774  # of a direction: half the largest norm of the second derivative of v / |v|, by |v|^2
TURNING = {JointType.REVOLUTE, JointType.CONTINUOUS}


@dataclass(frozen=True)
class End:
    """A side of a loop: a link, a place on it, a point (n, 3) that moves with the link, and whether it is the place's.

    `arm` (n, 3) goes to the point from the origin of a free platform that carries the link.
    """

    sign: float
    link: int
    place: int
    point: Form
    own: bool
    arm: Form | None = None


def crossed(one: Form, other: Form) -> Form:
    """Cross products (..., 3)."""
    K = Form(skew(one.middle), np.abs(skew(one.radius)), None if one.slopes is None else skew(one.slopes))
    return (K @ other[..., None])[..., 0]


def dotted(one: Form, other: Form) -> Form:
    """Inner products (...) of vectors (..., 3)."""
    return (one[..., None, :] @ other[..., None])[..., 0, 0]


def turned(axis: Array, angle: Form) -> Form:
    """Rotations (n, 3, 3) about a fixed axis (3,) by angles (n,)."""
    K = np.abs(skew(axis))
    middle = rotation_from_vector(axis * angle.middle[:, None])
    sine, cosine = angle.radius + angle.spread**3 / 6.0, 0.5 * angle.spread**2  # what these are beside the slopes
    beside = sine[:, None, None] * K + cosine[:, None, None] * (K @ K)
    along = None if angle.slopes is None else angle.slopes[..., None, None] * (middle @ skew(axis))
    return Form(middle, np.abs(middle) @ beside + ROUNDING, along)


class EnclosedGraph:
    """Bodies, and derivatives of the gaps, of a model whose joints, platform and places are within boxes.

    `model` is as drawn, `q` (n, size), `position` (n, 3) and `attitude` (n, 3, 3) of the platform. `shifts`
    (n_places, 2) are radii of the places' displacements: translation [m] in each direction, and angle [rad]; of a ratio
    the first is its relative change.
    """

    def __init__(self, model: GraphModel, q: Form, position: Form, attitude: Form, shifts: Array) -> None:
        self.model, self.q, n = model, q, len(q.middle)
        self.off = np.zeros(len(model.joints))  # relative, of what gears make of each joint's coordinate
        for place, joints in model.geared.items():
            self.off[joints] += (1.0 + self.off[joints]) * shifts[place, 0]
        self.frames = [_displaced(model.frames[k], *shifts[k]) for k in range(len(model.places))]
        still = Form.exactly(np.tile(np.eye(3), (n, 1, 1))), Form.exactly(np.zeros((n, 3)))
        self.bodies: dict[int, tuple[Form, Form]] = {0: still}
        self.moved = attitude, position
        self.coordinates = max(0 if one.slopes is None else len(one.slopes) for one in (q, position, attitude))
        self.arms: dict[int, Form] = {}  # of bodies on a free platform: from its origin
        if model.free_platform:
            self.bodies[model.platform] = self.moved
            self.arms[model.platform] = still[1]
        self.axes: list[tuple[int, int, bool, Form, Form]] = []  # joint, column, slides, axis, point
        for k, joint in enumerate(model.joints):
            if model.links[joint.parent] not in self.bodies or not self.places_joint(k):
                continue
            self._joint(k, model.links[joint.parent], model.links[joint.child], q)

    def _joint(self, k: int, parent: int, child: int, q: Form) -> None:
        """Where a joint's child is, and the axes that move it, by the rate of their coordinate."""
        R, p = self._at(parent, k)
        arm = self._arm(parent, k)
        for step in self.model.steps[k]:
            own = q[:, step.column]
            radius = own.radius + self.off[k] * (np.abs(own.middle) + own.spread)
            angle = Form(
                step.factor * own.middle + step.offset,
                abs(step.factor) * radius,
                None if own.slopes is None else step.factor * own.slopes,
            )
            axis = R @ Form.exactly(step.axis)
            spread = axis.radius + ROUNDING + self.off[k] * (np.abs(axis.middle) + axis.spread)
            tilt = None if axis.slopes is None else step.factor * axis.slopes
            rate = Form(step.factor * axis.middle, abs(step.factor) * spread, tilt)
            self.axes.append((k, step.column, step.slides, rate, p))
            if step.slides:
                along = (axis[..., None] @ angle[:, None, None])[..., 0]
                p = p + along
                arm = None if arm is None else arm + along
            else:
                R = R @ turned(step.axis, angle)
        self.bodies[child] = R, p
        if arm is not None:
            self.arms[child] = arm

    def _none(self, *shape: int) -> Form:
        return Form(np.zeros(shape), np.zeros(shape), np.zeros((self.coordinates, *shape)))

    def places_joint(self, joint: int) -> bool:
        """Whether what a joint carries is needed."""
        return True

    def _at(self, link: int, place: int) -> tuple[Form, Form]:
        R, p = self.bodies[link]
        return R @ self.frames[place][:3, :3], p + self._reach(link, place)

    def _reach(self, link: int, place: int) -> Form:
        R = self.bodies[link][0]
        return (R @ self.frames[place][:3, 3:4])[..., 0]

    def _arm(self, link: int, place: int) -> Form | None:
        """From the origin of a free platform to a place on a body that it carries; None for other bodies."""
        return self.arms[link] + self._reach(link, place) if link in self.arms else None

    def derivatives(self) -> tuple[Form, list[Form]]:
        """Of the gaps (n, m, size + 6) by coordinates and the platform, and (n, m, 6) by each place's displacement."""
        model = self.model
        rows: list[Form] = []
        by_place: list[list[Form]] = [[] for _ in model.places]
        for loop in model.loops:
            first, second = model.links[loop.predecessor], model.links[loop.successor]
            here, there = model.place_at[loop.name, PREDECESSOR], model.place_at[loop.name, SUCCESSOR]
            R1, p1 = self._at(first, here)
            R2, p2 = self._at(second, there)
            pairs = self._directions(loop, R1, R2)
            across = _held_directions(loop)
            kept, one = None, End(-1.0, first, here, p1, True, self._arm(first, here))
            if across is not None:  # in directions of the first body, its point at the other end counts
                kept = (R1 @ Form.exactly(across.T)).T
                one = End(-1.0, first, here, p2, False, None if one.arm is None else p2 - self.moved[1])
            ends = (End(1.0, second, there, p2, True, self._arm(second, there)), one)
            rows.append(_along(kept, self._by_rates(ends, pairs)))
            for k, place in enumerate(model.places):
                by_place[k].append(_along(kept, self._by_place(k, place.side, ends, pairs)))
        if not model.free_platform:
            self._held(rows, by_place)
        return Form.joined(rows, -2), [Form.joined(parts, -2) for parts in by_place]

    def _held(self, rows: list[Form], by_place: list[list[Form]]) -> None:
        """A platform that hangs on a limb is where the one that is given is: six rows more."""
        model, attitude = self.model, self.moved[0]
        R, p = self.bodies[model.platform]
        pairs = _turned_together(R, attitude)
        ends = (End(1.0, model.platform, -1, p, True),)
        J = self._by_rates(ends, pairs)
        for at, unit in enumerate(map(Form.exactly, np.eye(3)), start=model.size):
            _put(J, at, -1.0, unit, None, pairs)
            _put(J, at + 3, -1.0, Form.exactly(np.zeros(3)), unit, pairs)
        rows.append(J)
        for k, place in enumerate(model.places):
            by_place[k].append(self._by_place(k, place.side, ends, pairs))

    def _by_rates(self, ends: Sequence[End], pairs: list[Form]) -> Form:
        """Derivative (n, m, size + 6) of a loop's gaps by coordinates and the platform."""
        model, n = self.model, len(ends[0].point.middle)
        J = self._none(n, 3 + len(pairs), model.size + 6)
        for end in ends:
            for k, at, slides, axis, point in self.axes:
                if model.carried[end.link, k]:
                    linear = axis if slides else crossed(axis, end.point - point)
                    _put(J, at, end.sign, linear, None if slides else axis, pairs)
            if end.arm is not None:
                for at, unit in enumerate(map(Form.exactly, np.eye(3)), start=model.size):
                    _put(J, at, end.sign, unit, None, pairs)
                    _put(J, at + 3, end.sign, crossed(unit, end.arm), unit, pairs)
        return J

    def _directions(self, loop: Loop, R1: Form, R2: Form) -> list[Form]:
        """For each row of directions, image x fixed: what an angular velocity is multiplied by."""
        if loop.type is LoopType.SPHERICAL:
            return []
        if loop.type in (LoopType.PRISMATIC, LoopType.FIXED):
            return _turned_together(R2, R1)
        image = R2 @ Form.exactly(loop.axis2)
        fixed = [loop.axis] if loop.type is LoopType.UNIVERSAL else list(frame_along(loop.axis).T[:2])
        return [crossed(image, R1 @ Form.exactly(one)) for one in fixed]

    def _by_place(self, k: int, side: str, ends: Sequence[End], pairs: list[Form]) -> Form:
        """Derivative (n, m, 6) of a loop's gaps by a place's displacement."""
        model, n = self.model, len(ends[0].point.middle)
        J = self._none(n, 3 + len(pairs), 6)
        if side == RATIO:
            return self._by_ratio(k, ends, pairs)
        link = model.links[model.places[k].link]
        for end in ends:
            moves = bool(model.carried[end.link, k]) if side == ORIGIN else end.place == k
            if not moves:
                continue
            R, p = self._at(link, k)
            before = self.bodies[link][0] @ Form.exactly(model.nominal[k][:3, :3])
            still = end.own and side != ORIGIN
            for axis in range(3):
                _put(J, axis, end.sign, before[..., axis], None, pairs)
                about = R[..., axis]
                linear = Form.exactly(np.zeros(3)) if still else crossed(about, end.point - p)
                _put(J, 3 + axis, end.sign, linear, about, pairs)
        return J

    def _by_ratio(self, place: int, ends: Sequence[End], pairs: list[Form]) -> Form:
        """Derivative (n, m, 6) of a loop's gaps by a ratio: the rates of its joints times their coordinates."""
        J = self._none(len(self.q.middle), 3 + len(pairs), 6)
        for end in ends:
            for k, at, slides, axis, point in self.axes:
                if k in self.model.geared[place] and self.model.carried[end.link, k]:
                    turn = self.times(axis, at)
                    linear = turn if slides else crossed(turn, end.point - point)
                    _put(J, 0, end.sign, linear, None if slides else turn, pairs)
        return J

    def times(self, vector: Form, column: int) -> Form:
        """Vectors (n, 3) times a coordinate."""
        return (vector[..., None] @ self.q[..., column, None, None])[..., 0]


def _held_directions(loop: Loop) -> Array | None:
    """Directions (k, 3) of the predecessor's frame in which the ends of a loop that slides stay together."""
    if loop.type is LoopType.PLANAR:
        return loop.axis[None]
    return frame_along(loop.axis).T[:2] if loop.type in (LoopType.CYLINDRICAL, LoopType.PRISMATIC) else None


def _along(directions: Form | None, J: Form) -> Form:
    """Derivatives whose first three rows are taken along directions (n, k, 3), if any."""
    if directions is None:
        return J
    linear = directions @ J[:, :3]
    return Form.joined([linear, J[:, 3:]], -2)


def _turned_together(R: Form, other: Form) -> list[Form]:
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
        self, model: GraphModel, rods: list[Rod], q: Form, position: Form, attitude: Form, shifts: Array
    ) -> None:
        self._ends = {rod.centre for rod in rods}
        self.rods, self.q = rods, q
        super().__init__(model, q, position, attitude, shifts)

    def places_joint(self, joint: int) -> bool:
        """Not what turns about a rod's centre."""
        return joint not in self._ends

    def derivatives(self) -> tuple[Form, list[Form]]:
        """Of the gaps (n, rods, size + 6) by drives and the platform, and (n, rods, 6) by each place's displacement."""
        model, n = self.model, len(self.q.middle)
        shape = (n, len(self.rods))
        J = self._none(*shape, model.size + 6)
        places = [self._none(*shape, 6) for _ in model.places]
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
                axes = before @ Form.exactly(model.nominal[k][:3, :3])
                sign = 1.0 if k == ball else -1.0
                turn, at_place = self._at(model.links[model.places[k].link], k)
                for axis in range(3):
                    _set(places[k], row, axis, dotted(n_, axes[..., axis]), sign)
                    if k not in (rod.centre, ball):
                        about = crossed(turn[..., axis], c - at_place)
                        _set(places[k], row, 3 + axis, dotted(n_, about), sign)
        return J, places

    def _length(self, J: Form, places: list[Form], row: int, rod: Rod, loop: str) -> None:
        """The rod's own length: by its drive, and by the places on it."""
        model = self.model
        end = model.place_at[loop, PREDECESSOR]
        point = self.frames[end][:3, 3]
        if rod.slide < 0:
            own = _unit(point[None])
        else:
            frame, axis = self.frames[rod.slide], model.joints[rod.slide].axis
            q, off = self.q[..., rod.column, None], self.off[rod.slide]
            reach = q.radius + (off + ROUNDING) * (np.abs(q.middle) + q.spread)
            slid = Form(q.middle * axis, reach * np.abs(axis), None if q.slopes is None else q.slopes * axis)
            inner = slid + point
            R = frame[:3, :3]
            along = _unit((R @ inner[..., None])[..., 0] + frame[:3, 3])  # before the slide
            own = (R[None].T @ along[..., None])[..., 0]  # in the slide's own axes
            rate = Form(axis, off * np.abs(axis))
            _set(J, row, rod.column, dotted(own, rate), -1.0)
            for place, joints in model.geared.items():
                if rod.slide in joints:
                    along_axis = self.times(rate[None], rod.column)
                    _set(places[place], row, 0, dotted(own, along_axis), -1.0)
            for k, unit in enumerate(np.eye(3)):
                before = Form.exactly(model.nominal[rod.slide][:3, k])
                _set(places[rod.slide], row, k, dotted(along, before), -1.0)
                _set(places[rod.slide], row, 3 + k, dotted(own, crossed(Form.exactly(unit), inner)), -1.0)
        for k in range(3):
            _set(places[end], row, k, dotted(own, Form.exactly(model.nominal[end][:3, k])), -1.0)


def _unit(vector: Form) -> Form:
    """Directions (n, 3): first order, and a bound of the second."""
    size = np.linalg.norm(vector.middle, axis=1, keepdims=True)
    spread = np.linalg.norm(vector.spread, axis=1, keepdims=True)
    least = np.maximum(size - spread, 1e-12)
    middle = vector.middle / size
    across = np.eye(3) - middle[:, :, None] * middle[:, None, :]
    beside = (np.abs(across) @ vector.radius[..., None])[..., 0] / size + BENT * (spread / least) ** 2 + ROUNDING
    along = None if vector.slopes is None else (across @ vector.slopes[..., None])[..., 0] / size
    return Form(middle, beside, along)


def _set(J: Form, row: int, at: int | slice, value: Form, sign: float = 1.0) -> None:
    _add(J, (slice(None), row, at), value, sign)


def _add(J: Form, at: tuple[Any, ...], value: Form, sign: float) -> None:
    J.middle[at] += sign * value.middle
    J.radius[at] += value.radius + ROUNDING * (np.abs(value.middle) + value.tilt)
    if value.slopes is not None and J.slopes is not None:
        J.slopes[(slice(None), *at)] += sign * value.slopes


def _put(J: Form, column: int, sign: float, linear: Form, angular: Form | None, pairs: list[Form]) -> None:
    """Add a velocity to a column: its linear part to the gap's rows, its angular one to those of directions."""
    _add(J, (slice(None), slice(0, 3), column), linear, sign)
    for row, pair in enumerate(pairs, start=3):
        if angular is not None:
            _add(J, (slice(None), row, column), dotted(pair, angular), sign)


def _displaced(frame: Array, translation: float, angle: float) -> Form:
    """A frame (4, 4) whose origin moves by up to `translation` in each direction of its own, and turns by an angle."""
    radius = np.zeros((4, 4))
    radius[:3, 3] = np.abs(frame[:3, :3]) @ np.full(3, translation)
    radius[:3, :3] = np.abs(frame[:3, :3]) @ (angle * (1.0 - np.eye(3)) + angle**2)
    return Form(frame, radius + ROUNDING * np.abs(frame))
