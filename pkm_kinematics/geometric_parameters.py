# SPDX-License-Identifier: Apache-2.0
"""The geometric parameters of a robot, found from its graph, with names that a person reads.

A body with joints on it is the places of these joints' frames. Each place can be displaced in six directions, which
together describe every error of a body's manufacture: complete, and without the jumps of Denavit-Hartenberg lengths
between nearly parallel axes. Many say the same thing: sliding a hinge along its own axis on one body is undone on the
other. `GeometricParameters.identifiable` therefore keeps, in an order that people prefer (zeros of drives, lengths,
mounts, tilts, offsets), those that the measurements at hand tell apart: a minimal, complete and parametrically
continuous set as in Fassi, Legnani and others, "Automatic identification of a minimum, complete and parametrically
continuous model for the geometrical calibration of parallel robots" (2005).

In an overconstrained robot most displacements would lock the loops. Kept are those that leave its motion, some only
together: a parallelogram's rods both longer; none that lock them by their square.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from pkm_description.joint_geometry import frame_along, freedoms
from pkm_description.loops.closure import independent
from pkm_description.mechanism import Array, Joint, JointType, Mechanism
from pkm_kinematics.graph_model import ORIGIN, RANK, RATIO, GraphModel, Placed, States
from pkm_runtime.errors import PkmError, nearest

STATES = 60  # at which what can be told apart is judged
WIDE = 0.8  # rad, and of the robot's size: of those at which loops that repeat each other have to close
DISTINCT = 1e-5  # of a column of unit length: what earlier parameters leave of it below this is theirs
LOCKS = 1e-10  # of a unit displacement: what no motion closes
FEW = 30  # states at which displacements are made to close the loops, where these know all that locks them
SMALL = 1e-7  # dimensionless displacements by which what locks by its square is seen
BY_SQUARE = 5e-5  # of the largest of what locks by its square, or of one: the rest is of higher order
SURE = 2  # random displacements that show nothing more
CLOSES, NEARLY = 1e-13, 1e-9  # of the robot's length: gaps that rounding leaves, and less than the loader allows for
SETTLED, STEPS = 1e-6, 14  # a dimensionless step, after which the next is its square, and at most how many
TINY = 1e-9  # of the largest singular value: what locks by its square has vanished
PIVOTS = (0.3, 0.1, 0.01, 0.0)  # of a column of unit length: what is left of one that depends on others
NEAR = 1e-9  # of the robot's length: joints in one point
# Kinds, preferred first.
ORDER = ("zero", "ratio", "length", "base mount", "platform mount", "axis tilt", "offset", "tilt")


@dataclass(frozen=True, eq=False)
class GeometricParameter:
    """A displacement of places: `weights` (n_places, 6) [m, rad] per `unit`; `with_others` says what moves along.

    Of a ratio (`unit` "1"), a relative change.
    """

    name: str
    kind: str
    unit: str
    weights: Array
    with_others: tuple[str, ...] = ()

    def __str__(self) -> str:
        also = f" (with {', '.join(self.with_others)})" if self.with_others else ""
        return f"{self.name} [{self.unit}]{also}"


class GeometricParameters:
    """The parameters of one robot, their derivatives, and which of them measurements can know.

    With `ideal_joints` the axes of a universal joint's cross meet at right angles; else a cross has errors as any body.
    With `ideal_gears` the ratios of followers and drives, where the description has them, are as their teeth say.
    Passive joints with a sensor, `sensed`, have a zero, as drives do.
    """

    def __init__(
        self, mechanism: Mechanism, ideal_joints: bool = True, ideal_gears: bool = True, sensed: Collection[str] = ()
    ) -> None:
        self.mechanism = mechanism
        self.model = GraphModel(mechanism)
        self._limb_of = {
            name: limb.name for limb in mechanism.limbs for name in (*limb.links, *limb.joints, *limb.loops)
        }
        self._ideal, self._ideal_gears, self._sensed = ideal_joints, ideal_gears, sensed
        self._last: tuple[Array, ...] = ()  # by how much displacements were corrected so that loops close
        self._rigid = _rigid_bodies(mechanism)
        self._base, self._platform = (self._rigid[name][0] for name in (mechanism.base_link, mechanism.platform_link))
        found = sorted(self._candidates(), key=lambda one: ORDER.index(one.kind))
        self.all: tuple[GeometricParameter, ...] = tuple(self._closing(found))

    def __len__(self) -> int:
        return len(self.all)

    @cached_property
    def named(self) -> dict[str, GeometricParameter]:
        """All parameters by name."""
        return {one.name: one for one in self.all}

    @cached_property
    def states(self) -> States:
        """Configurations around home at which parameters are compared."""
        return self.model.random_states(STATES) if self.model.regular else self.model.random_states(STATES, WIDE)

    def displacements(self, values: Mapping[str, float]) -> Array:
        """Displacements (n_places, 6) of the model for values by name. Raises `PkmError` for unknown names."""
        total = np.zeros((len(self.model.places), 6))
        for name, value in values.items():
            if name not in self.named:
                remedy = nearest(name, self.named, "`named` lists them")
                raise PkmError(f"{self.mechanism.name} has no geometric parameter {name!r}; {remedy}")
            total += value * self.named[name].weights
        return total

    def closing(self, displacements: Array) -> Array:
        """The displacements (n_places, 6) near given ones with which the loops of an overconstrained robot move.

        This removes what locks them beyond first order. Raises `PkmError` where none near the given ones do.
        """
        if not self._redundant:
            return displacements
        wanted, locking = self.moving(displacements, ())[0], len(self._locking) + self._squares
        model, states, best, least = self.model.drawing(), self._few, wanted, np.inf
        for _ in range(STEPS):
            model.displace(wanted)
            states, _ = model.closed(states)
            missing, rows = self._locks(model, model.placed(states))
            size = float(np.abs(missing).max(initial=0.0))
            if size < least:
                best, least = wanted, size
            if size < CLOSES:
                break
            U, sizes, Vt = np.linalg.svd(rows, full_matrices=False)
            used = np.flatnonzero(sizes > TINY * sizes[0])[:locking]
            step = Vt[used].T @ (U[:, used].T @ missing / sizes[used])
            wanted = wanted - step.reshape(-1, 6) * self._units
        if least > NEARLY:
            raise self._open(least)
        return best

    def moving(
        self, displacements: Array, parameters: Sequence[GeometricParameter]
    ) -> tuple[Array, tuple[GeometricParameter, ...]]:
        """`closing` but for what locks loops by its square, and parameters with the weights by which loops go on so."""
        if not self._redundant:
            return displacements, tuple(parameters)
        k = len(parameters)
        weights = np.array([one.weights / self._units for one in parameters]).reshape(k, displacements.size)
        missing, model = np.full(1, np.inf), self.model.drawing()
        for correction in (*self._last, np.zeros_like(displacements)):
            wanted, states = displacements + correction, self._few
            for _ in range(STEPS):
                model.displace(wanted)
                states, _ = model.closed(states)
                missing, rows = self._locks(model, model.placed(states))
                both = self._corrections(rows, np.column_stack([missing, rows @ weights.T]))
                wanted = wanted + both[:, 0].reshape(-1, 6) * self._units
                if np.abs(both[:, 0]).max(initial=0.0) < SETTLED:
                    self._last = (wanted - displacements,)
                    each = (weights + both[:, 1:].T).reshape(k, *wanted.shape) * self._units
                    return wanted, tuple(replace(one, weights=by) for one, by in zip(parameters, each, strict=True))
        raise self._open(float(np.abs(missing).max(initial=0.0)))

    def _open(self, gap: float) -> PkmError:
        return PkmError(
            f"the loops of {self.mechanism.name} do not close with these displacements or with nearby ones: "
            f"{gap * self.model.length:.2g} m are left"
        )

    def _corrections(self, rows: Array, missing: Array) -> Array:
        """Displacements (6 n_places, k), of those that lock the loops as drawn, that close what is missing (m, k)."""
        Q, R = np.linalg.qr(rows @ self._locking.T)
        return np.asarray(-self._locking.T @ np.linalg.solve(R, Q.T @ missing))

    def _locks(self, model: GraphModel, placed: Placed) -> tuple[Array, Array]:
        """What no motion closes of the gaps (rows,), and how displacements (rows, 6 n_places) change it; no units."""
        left = model.null_spaces(placed)
        missing = np.einsum("nkm,nm->nk", left, model.closure(placed)[0]).ravel()
        slopes = [  # a ratio is as it was given
            np.zeros((*left.shape[:2], 6)) if place.side == RATIO else left @ placed.by_place(k) * self._units
            for k, place in enumerate(model.places)
        ]
        return missing, np.concatenate(slopes, axis=2).reshape(len(missing), -1)

    # -- derivatives ------------------------------------------------------------------------------------------------

    def closure_by(self, placed: Placed, parameters: Sequence[GeometricParameter]) -> Array:
        """Derivative (n, m, k) of the loops' dimensionless gaps by parameters [1/m, 1/rad]."""
        rows = self.model.closure(placed)[0].shape[1]
        return _weighed(placed.by_place, (len(placed.platform), rows), parameters)

    def platform_by(self, placed: Placed, parameters: Sequence[GeometricParameter]) -> Array:
        """Twist (n, 6, k) of a platform on the tree, at its origin, per parameter, all coordinates held."""
        by_place = partial(placed.link_by_place, self.model.platform)
        return placed.at_origin(_weighed(by_place, (len(placed.platform), 6), parameters))

    def sensitivity(self, states: States, parameters: Sequence[GeometricParameter]) -> tuple[Array, Array]:
        """How joints and platform move per parameter: rates (n, size, k) of the coordinates, and twists (n, 6, k).

        Exact, at configurations that close the loops of the displaced model, with the drives where they are: errors of
        the platform's pose. Twists are at its origin, base axes. NaN where the robot moves with its drives held: its
        pose is then no function of the parameters.
        """
        model = self.model
        placed = model.placed(states)
        C, by = model.closure(placed)[1], self.closure_by(placed, parameters)
        on_tree, size = self.platform_by(placed, parameters), model.size
        free = np.ones(size + 6, dtype=bool)
        free[model.columns_of(self.mechanism.actuated_joints)] = False
        free[size:] = model.free_platform
        rates = np.zeros((len(states), size + 6, len(parameters)))
        rates[:, free] = -model.least_steps(C[:, :, free], by, RANK)
        rates[~model.holding(C[:, :, free])] = np.nan
        rates *= model.scale[:, None]
        if model.free_platform:
            return rates[:, :size], rates[:, size:]
        return rates[:, :size], on_tree + placed.at_origin(placed.twists_of(model.platform)) @ rates

    # -- which can be known -----------------------------------------------------------------------------------------

    def identifiable(self, seen: Array | None = None) -> tuple[GeometricParameter, ...]:
        """The parameters that measurements tell apart, preferred kinds first.

        `seen` (rows, k) is the derivative of what is measured by all parameters in `all`, over many configurations, in
        comparable units; by default that of the platform's pose with the drives held.
        """
        if seen is None:
            twist = self.sensitivity(self.states, self.all)[1]
            twist = twist[np.isfinite(twist).all(axis=(1, 2))]
            if not len(twist):
                raise PkmError(f"{self.mechanism.name} is singular in every pose: its drives do not hold the platform")
            scaled = twist / self.model.scale[self.model.size :, None]
            seen = scaled.reshape(-1, len(self.all))
        units = np.array([self.model.length if one.unit == "m" else 1.0 for one in self.all])
        scaled, norms = seen * units, np.linalg.norm(seen * units, axis=0)
        shown = norms > DISTINCT * norms.max(initial=0.0)
        columns = np.where(shown, scaled / np.where(shown, norms, 1.0), 0.0)
        return tuple(self.all[k] for k in independent(columns, DISTINCT))

    # -- from the graph ---------------------------------------------------------------------------------------------

    def _candidates(self) -> list[GeometricParameter]:
        model, found = self.model, []
        joints = {joint.name: joint for joint in model.joints}
        for k, place in enumerate(model.places):
            if place.side == RATIO:
                found += [] if self._ideal_gears else [self._ratio(k)]
                continue
            joint = joints.get(place.element) if place.side == ORIGIN else None
            if joint is not None and joint.name in self._sensed and not joint.actuated:
                found += self._zero(k, joint)
            if joint is not None and (joint.type is JointType.FIXED or self._on_cross(joint)):
                continue
            found += self._of_place(k, joint)
        return found

    def _on_cross(self, joint: Joint) -> bool:
        """Whether a joint turns in the massless cross of a universal or spherical joint, taken as ideal."""
        carrier = self.mechanism.parent_joint.get(joint.parent)
        turning = (JointType.REVOLUTE, JointType.CONTINUOUS)
        return (
            self._ideal
            and carrier is not None
            and carrier.type in turning
            and joint.type in turning
            and self.mechanism.link_named[joint.parent].inertial.massless
            and float(np.linalg.norm(joint.origin[:3, 3])) < NEAR * self.model.length
        )

    def _ratio(self, k: int) -> GeometricParameter:
        name = self.model.places[k].element
        limb = self._limb_of.get(name, "")
        weights = np.zeros((len(self.model.places), 6))
        weights[k, 0] = 1.0
        prefix = f"{limb}: " if limb else ""
        return GeometricParameter(f"{prefix}ratio of {self._short(name, limb)}", "ratio", "1", weights)

    def _zero(self, k: int, joint: Joint) -> list[GeometricParameter]:
        if len(freedoms(joint)) != 1:
            return []
        limb, turning = self._limb_of.get(joint.name, ""), joint.type is not JointType.PRISMATIC
        weights = np.zeros((len(self.model.places), 6))
        weights[k, 3 * turning : 3 * turning + 3] = joint.axis
        name = f"{limb}: zero of {self._short(joint.name, limb)}" if limb else f"zero of {joint.name}"
        return [GeometricParameter(name, "zero", "rad" if turning else "m", weights)]

    def _of_place(self, k: int, joint: Joint | None) -> list[GeometricParameter]:
        """The displacements of a place, along and about directions that people name."""
        model, place = self.model, self.model.places[k]
        link = place.link
        root, to_root = self._rigid[link]
        frame = to_root @ model.nominal[k]  # in the body's own frame
        limb = self._limb_of.get(place.element) or self._limb_of.get(link, "")
        fixed = "base" if root == self._base else "platform" if root == self._platform else ""
        what, prefix = self._short(place.element, limb), f"{limb}: " if limb else ""
        body = fixed or self._short(root, limb)
        driven = joint is not None and joint.actuated
        found = []

        def add(name: str, kind: str, turning: bool, in_frame: Array) -> None:
            weights = np.zeros((len(model.places), 6))
            weights[k, 3 * turning : 3 * turning + 3] = in_frame
            found.append(GeometricParameter(prefix + name, kind, "rad" if turning else "m", weights))

        if joint is not None and driven:
            found += self._zero(k, joint)
        directions, length = np.eye(3), float(np.linalg.norm(frame[:3, 3]))
        along = not fixed and length > NEAR * model.length
        if along:
            directions = frame_along(frame[:3, 3] / length)[:, [2, 0, 1]].T
        back = frame[:3, :3].T  # from the body's axes into those of the place's frame
        for at, direction in enumerate(directions):
            axis = "xyz"[int(np.argmax(np.abs(direction)))]
            if along and at == 0:
                several = sum(self._rigid[one.link][0] == root for one in model.places if one.side != RATIO) > 1
                add(f"length of {body}" + (f" to {what}" if several else ""), "length", False, back @ direction)
            elif fixed:
                add(f"{what} on the {fixed}, {axis}", f"{fixed} mount", False, back @ direction)
            else:
                add(f"offset {axis} of {what} on {body}", "offset", False, back @ direction)
        where = f"the {fixed}" if fixed else body
        for direction in _tilts(joint, back):
            axis = "xyz"[int(np.argmax(np.abs(direction)))]
            add(f"tilt of {what} on {where} about {axis}", "axis tilt" if driven else "tilt", True, back @ direction)
        return _unique(found)

    @staticmethod
    def _short(name: str, limb: str) -> str:
        return name.removeprefix(limb).lstrip("_") or name

    def _closing(self, found: list[GeometricParameter]) -> list[GeometricParameter]:
        """Those parameters, or combinations of them, that no loop is locked by."""
        model = self.model
        placed = model.placed(self.states)
        self._redundant = model.closure(placed)[0].shape[1] - model.independent
        if not self._redundant or not found:
            return found
        self._units = np.where(np.arange(6) < 3, model.length, 1.0)
        _, sizes, Vt = np.linalg.svd(self._locks(model, placed)[1], full_matrices=False)
        self._locking = Vt[sizes > LOCKS]
        self._few = self.states.rows(slice(0, FEW))
        if np.linalg.matrix_rank(self._locks(model, model.placed(self._few))[1], tol=LOCKS) < len(self._locking):
            self._few = self.states
        units = np.array([model.length if one.unit == "m" else 1.0 for one in found])
        rows = (model.null_spaces(placed) @ self.closure_by(placed, found)).reshape(-1, len(found)) * units
        _, sizes, Vt = np.linalg.svd(np.linalg.qr(rows, mode="r"))
        first = int((sizes > LOCKS * sizes[0]).sum())
        each = np.array([one.weights for one in found]) * units[:, None, None]
        squares = self._by_square(np.tensordot(Vt[first:], each, axes=1)) @ Vt[first:]
        self._squares = len(squares)
        return self._combined(found, np.vstack([Vt[:first], squares]), each)

    def _combined(self, found: list[GeometricParameter], rows: Array, each: Array) -> list[GeometricParameter]:
        # With displacements `each` (k, n_places, 6), across orthonormal rows (m, k).
        result = []
        for leader, column in _null_basis(rows):
            one, others = found[leader], [k for k in np.flatnonzero(np.abs(column) > 1e-9) if k != leader]
            weights = np.tensordot(column, each, axes=1) / (self.model.length if one.unit == "m" else 1.0)
            names = tuple(found[k].name for k in others)
            result.append(GeometricParameter(one.name, one.kind, one.unit, weights, names))
        return result

    def _by_square(self, moves: Array) -> Array:
        # Orthonormal rows (r, k) across which displacements `moves` (k, n_places, 6) lock no loops by their square.
        # What a small random displacement newly locks, once its gaps of first order are closed, is a row of the gaps'
        # second derivative; the mean of its squares and those of the opposite displacement has no error of first order.
        random, squares = np.random.default_rng(0), np.zeros((len(moves), len(moves)))
        found, kept, seen = np.zeros((len(moves), len(moves))), np.zeros(len(moves), dtype=bool), 0
        while seen < SURE and kept.sum() < len(moves):
            wanted = SMALL * np.tensordot(random.standard_normal(len(moves)), moves, axes=1)
            for one in (wanted, -wanted):
                R = self._newly_locked(one, moves)
                squares += 0.5 * R.T @ R
            sizes, rows = np.linalg.eigh(squares)
            before, sizes, found = kept.sum(), np.sqrt(np.maximum(sizes, 0.0)), rows.T
            kept = sizes > BY_SQUARE * max(1.0, sizes[-1])
            seen = seen + 1 if kept.sum() == before else 0
        return found[kept]

    def _newly_locked(self, wanted: Array, moves: Array) -> Array:
        # What of `moves` locks the loops (rows, k) at displacements near wanted ones, over `SMALL`.
        model, states, along = self.model.drawing(), self._few, (moves / self._units).reshape(len(moves), -1)
        for k in range(3):
            model.displace(wanted)
            states, _ = model.closed(states)
            missing, rows = self._locks(model, model.placed(states))
            if k < 2:
                wanted = wanted + self._corrections(rows, missing[:, None]).reshape(-1, 6) * self._units
        Q = np.linalg.qr(rows @ self._locking.T)[0]
        more = rows @ (along.T + self._corrections(rows, rows @ along.T))
        return np.asarray(np.linalg.qr(more - Q @ (Q.T @ more), mode="r")) / SMALL


def _weighed(
    by_place: Callable[[int], Array], shape: tuple[int, int], parameters: Sequence[GeometricParameter]
) -> Array:
    """Derivatives (shape, k) by parameters, where `by_place` has those (shape, 6) by a place's displacements."""
    weights = np.array([one.weights for one in parameters]).reshape(len(parameters), -1, 6)
    total = np.zeros((len(parameters), int(np.prod(shape))))
    moved = weights.any(axis=2)
    places = np.flatnonzero(moved.any(axis=0))
    alone = moved.sum() < 2 * len(parameters)  # nearly each parameter moves one place
    for some in places[:, None] if alone else (places,):
        used = np.flatnonzero(weights[:, some].any(axis=(1, 2)))
        slopes = np.concatenate([by_place(int(place)).reshape(-1, 6) for place in some], axis=1)
        total[used] += weights[used][:, some].reshape(len(used), -1) @ slopes.T
    return np.ascontiguousarray(total.T).reshape(*shape, len(parameters))


def _tilts(joint: Joint | None, back: Array) -> Array:
    """Directions (k, 3), in the body's axes, about which a place tilts: of a hinge, two across its axis."""
    if joint is None or joint.type not in (JointType.REVOLUTE, JointType.CONTINUOUS):
        return np.eye(3)
    axis = back.T @ joint.axis
    across = np.eye(3) - np.outer(axis, axis)
    first = across[int(np.argmax(np.diag(across)))]
    first = first / np.linalg.norm(first)
    return np.array([first, np.cross(axis, first)])


def _rigid_bodies(mechanism: Mechanism) -> dict[str, tuple[str, Array]]:
    """For each link, the first link of the body that it is fixed to, and its frame (4, 4) in that link."""
    found = {mechanism.base_link: (mechanism.base_link, np.eye(4))}
    for joint in mechanism.joints:
        if joint.type is JointType.FIXED:
            first, frame = found[joint.parent]
            found[joint.child] = (first, frame @ joint.origin)
        else:
            found[joint.child] = (joint.child, np.eye(4))
    return found


def _unique(found: list[GeometricParameter]) -> list[GeometricParameter]:
    seen: dict[str, int] = {}
    result = []
    for one in found:
        seen[one.name] = seen.get(one.name, 0) + 1
        again = f" ({seen[one.name]})" if seen[one.name] > 1 else ""
        result.append(GeometricParameter(one.name + again, one.kind, one.unit, one.weights, one.with_others))
    return result


def _null_basis(rows: Array) -> list[tuple[int, Array]]:
    """A basis of what is across orthonormal rows (m, k): columns that depend on those to their right, vectors (k,)."""
    # Columns little of which is left by those to their right come last, or vectors would be long.
    m, k = rows.shape
    left, pivots = rows, list[int]()
    for least in PIVOTS:
        for column in reversed(range(k)):
            size = float(np.linalg.norm(left[:, column]))
            if len(pivots) < m and column not in pivots and size > least:
                q = left[:, column] / size
                left = left - np.outer(q, q @ left)
                pivots.append(column)
    leaders = np.setdiff1d(np.arange(k), pivots)
    basis = np.zeros((len(leaders), k))
    basis[np.arange(len(leaders)), leaders] = 1.0
    basis[:, pivots] = -np.linalg.solve(rows[:, pivots], rows[:, leaders]).T
    return list(zip(leaders.tolist(), np.where(np.abs(basis) < 1e-9, 0.0, basis), strict=True))
