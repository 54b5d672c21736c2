# SPDX-License-Identifier: Apache-2.0
"""Bounds of stiffness and sag over boxes of poses, for proofs.

Of all forces inside that balance a load w, those of the elastic structure have the least energy f^T C f, which is the
compliance along w (the theorem of least work). So any f that balances it bounds the compliance from above; here

    m = m_c + Z y,   (B^T Z) y = -(S^T w + B^T m_c),   f = A^T m + T^T w

in the notation of docs/stiffness.md: m_c are the forces in the cut edges at the box's centre, Z is the pseudo-inverse
of B^T there, and y, of the first order in the size of the box, is enclosed with all solutions of its equations. As m_c
is the best there, the bound is off by the second order. Of several loads, C <= F^T C F holds for the matrices. Springs
beside the structure only stiffen it, and are left out.

What is left out of f are forces G s without a load, G = A^T N with N enclosed as m is. The least energy is that at
s = -(G^T C G)^-1 G^T C f, so that the compliance itself, and the displacement under the weight, is enclosed:

    f_d^T C f_w - (G^T C f_d)^T (G^T C G)^-1 (G^T C f_w).

A column turns with a body, in whose frame it is the same everywhere. A slide moves what is on the two bodies that it
joins in proportion, in a range of its positions at whose ends it does; beyond, nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.proof.enclosures import Enclosure
from pkm_analysis.proof.matrices import MORE, UNIT, Affine, Form, solve, solve_affine
from pkm_analysis.proof.robot_program import PIVOT, Recorder
from pkm_analysis.stiffness.elastic_model import FREE, RIGID, BeamBetween, JointBetween, skewed
from pkm_analysis.stiffness.elastic_solution import ElasticSystem
from pkm_analysis.stiffness.link_beams import DiffersError
from pkm_analysis.stiffness.stiffness import Stiffnesses
from pkm_description.joint_geometry import freedoms, link_frames
from pkm_description.mechanism import Array, JointType, LoopType
from pkm_description.rotations import inverse_transform, skew, transform_from_pose
from pkm_kinematics.kernels.records import BASE, PLATFORM, SPHERICAL
from pkm_kinematics.status import closes
from pkm_runtime.codegen.tape import Number, Term, call, value

STEP = 1e-3  # of the robot's size: of a slide, to see what it moves
AGREES = 1e-9  # of the robot's size, or of a unit direction: rounding
ZERO = 1e-14  # of the largest: rounding
HALVINGS = 10  # of the range of a slide
TORSION = 5  # degree of freedom that a universal joint holds


class _Columns(NamedTuple):
    """Twists (cols, 6) in the frames of the bodies that carry them, and lengths of beams and lines by edge."""

    twists: Array
    lengths: Array


class _Slide(NamedTuple):
    """A slide: what its position changes, per m, and the range in which it does in proportion."""

    name: str
    changes: _Columns
    low: float
    high: float


class ElasticOverBoxes:
    """A robot's elastic structure, recorded with its kinematics, as bounds over boxes need it."""

    def __init__(self, elastic: Stiffnesses) -> None:
        self.elastic, self.robot, self.mechanism = elastic, elastic.robot, elastic.robot.mechanism
        self.loops = {loop.name: loop for loop in self.mechanism.loops}

    # -- recording ----------------------------------------------------------------------------------------------------

    def record(self, recorder: Recorder) -> list[NDArray[Any]]:
        """Twists (6, cols) of all columns, compliances (n_e, 6) of the parts, positions (1, n) of slides, and weights.

        Weights (6 n, 1) are those of the masses that something carries, wrenches at the platform's origin.
        """
        at = self.robot.kinematics.at(recorder.at[None], mode=self.robot.mode).rows(np.array([0]), ())
        self.pose, self.values = transform_from_pose(np.asarray(at.pose)), dict(at.by_name("joints"))
        self.system = self.elastic._system(at)
        self._layout()
        poses = link_frames(self.mechanism, self.pose, self.values)
        frames, self.offsets = _frames(recorder), dict[str, Array]()
        for link in dict.fromkeys(self.carriers):
            placed = np.eye(4)
            placed[:3] = _values(np.column_stack(frames[self._body(link)]))
            self.offsets[link] = inverse_transform(poses[link]) @ placed
        here = self._columns(self.values)
        assert here is not None
        self.slides = self._find_slides(here)
        moved = {one.name: recorder.position(self._body_of(one.name)) for one in self.slides}
        steps = [moved[one.name] - float(self.values[one.name]) for one in self.slides]
        twists = np.zeros((6, len(here.twists)), dtype=object)
        for c, link in enumerate(self.carriers):
            own = _clean(here.twists[c]).astype(object)
            for one, step in zip(self.slides, steps, strict=True):
                own = own + _times(_clean(one.changes.twists[c]), step)
            R, p = frames[self._body(link)]
            turn = R @ own[3:]
            twists[:, c] = [*(R @ own[:3] + skew(turn) @ (frames[PLATFORM][1] - p)), *turn]
        lengths = here.lengths.astype(object)
        for one, step in zip(self.slides, steps, strict=True):
            lengths = lengths + _times(_clean(one.changes.lengths), step)
        self._check_held(twists)
        slides = np.array(list(moved.values()), dtype=object).reshape(1, -1)
        return [twists, self._compliances(lengths), slides, self._weights(frames)]

    def _layout(self) -> None:
        """Columns by edge and coordinate, and along which edges the ways to the platform and around the cycles go."""
        system = self.system
        columns = [(k, coordinate) for k, one in enumerate(system.columns) for coordinate, _ in one]
        self.edge, self.coordinate = np.array(columns).T
        self.carriers = [link for k, edge in enumerate(system.edges) for link in self._carriers(edge, k)]
        ways = np.zeros((len(system.model.nodes), len(system.edges)))
        for node, (k, near) in system.before.items():  # nearer nodes come first
            ways[node] = ways[near]
            ways[node, k] = 1.0 if system.edges[k].joins[0] == near else -1.0
        around = np.zeros((len(system.cuts), len(system.edges)))
        for row, k in enumerate(system.cuts):
            first, second = system.edges[k].joins
            around[row] = ways[second] - ways[first]
            around[row, k] -= 1.0
        self.way, self.around = ways[[system.model.platform]][:, self.edge], around[:, self.edge]
        self.masses = [one for one in system.model.masses if ways[one.node].any()]
        self.to_masses = ways[[one.node for one in self.masses]][:, self.edge]
        _, R, order = qr(system.rows[:, system.elastic :], mode="economic", pivoting=True)
        sizes = np.abs(np.diagonal(R))
        self.kept = system.elastic + np.sort(order[: int((sizes > PIVOT * sizes.max(initial=0.0)).sum())])

    def _carriers(self, edge: BeamBetween | JointBetween, k: int) -> list[str]:
        """The links in whose frames the columns of an edge are the same everywhere. A joint holds both directions
        across its axis alike, so that they may turn about it with either of its links.
        """
        count = len(self.system.columns[k])
        if isinstance(edge, BeamBetween):
            return count * [edge.piece.link]
        first, second = edge.links
        loop = self.loops.get(edge.name)
        if loop is None or loop.type not in (LoopType.UNIVERSAL, LoopType.SPHERICAL):
            return count * [second]
        if loop.type is LoopType.SPHERICAL:
            return count * [first]
        if edge.stiffness[TORSION] not in (FREE, RIGID):
            problem = "the torsion of a universal joint turns with neither of its links"
            raise AnalysisError(f"bearing of {edge.name}", problem, "leave it out, or ask at poses")
        return [*(count - 1) * [first], second]

    def _body(self, link: str) -> int:
        m = self.mechanism
        joint = next((j for j in m.joints if j.child == link), None)
        if link == m.base_link:
            return BASE
        if link == m.platform_link or joint is None or joint.name in m.virtual_chain:
            return PLATFORM
        return self._body(joint.parent) if joint.type is JointType.FIXED else self._body_of(joint.name)

    def _body_of(self, joint: str) -> int:
        last = [one.name for one in freedoms(self.mechanism.joint_named[joint])][-1]
        columns = self.robot.kinematics.engine.body_column
        return int(np.flatnonzero(columns == self.robot.kinematics.joint_names.index(last))[0])

    def _columns(self, values: dict[str, Array]) -> _Columns | None:
        """The columns with joints at other positions; None where the structure is another one."""
        poses = link_frames(self.mechanism, self.pose, values)
        try:
            model = self.elastic.structure.model(self.pose, values)
            system = ElasticSystem(model, np.zeros((6, 0)), held=np.zeros((0, 6)), length=self.system.length)
        except (AnalysisError, DiffersError):
            return None
        here, there = ([[x.joins for x in s.edges], [x.node for x in s.model.masses]] for s in (self.system, system))
        if here != there:
            return None
        columns = [(edge, twist) for edge, own in zip(system.edges, system.columns, strict=True) for _, twist in own]
        edges = [edge for edge, _ in columns]
        points = np.array([edge.point if isinstance(edge, JointBetween) else model.origin for edge in edges])
        twists, ends = skewed(model.origin, np.array([twist for _, twist in columns]), points), points.copy()
        for c, (edge, link) in enumerate(zip(edges, self.carriers, strict=True)):
            if isinstance(edge, JointBetween) and (loop := self.loops.get(edge.name)) is not None:
                if link == loop.predecessor:  # a slide that moves alone opens the loop
                    ends[c] = (poses[link] @ loop.predecessor_frame)[:3, 3]
                elif loop.type is LoopType.UNIVERSAL:
                    twists[c, 3:] = (poses[link] @ loop.successor_frame)[:3, :3] @ loop.axis2
        frames = {link: poses[link] @ offset for link, offset in self.offsets.items()}
        placed = np.array([frames[link] for link in self.carriers])
        twists = skewed(ends, twists, placed[:, :3, 3]).reshape(-1, 2, 3) @ placed[:, :3, :3]
        return _Columns(twists.reshape(-1, 6), np.array([_length(edge) for edge in system.edges]))

    def _check_held(self, twists: NDArray[Any]) -> None:
        """What the platform's own branch holds has to be the same at all poses, and none of its motions."""
        system = self.system
        if not len(system.held):
            return
        _, values, Vt = np.linalg.svd(system.rows[: -len(system.held), system.elastic :])
        idle = Vt[int((values > PIVOT * values.max(initial=0.0)).sum()) :]
        moving = system.elastic + np.flatnonzero(np.abs(idle).max(axis=0) > AGREES)
        turns = any(isinstance(x, Term) for x in twists[:, np.isin(self.coordinate, moving)].flat)
        if turns or np.abs(system.held @ (system.scale[:, None] * self.robot.kinematics.task.subspace)).max() > AGREES:
            problem = "no limb holds a motion of the platform, and it depends on the pose"
            raise AnalysisError(f"stiffness of {self.robot.name} over boxes", problem, "ask at poses")

    def _find_slides(self, here: _Columns) -> list[_Slide]:
        found, size, none = list[_Slide](), self.system.length, _Columns(*(0.0 * part for part in here))
        for joint in self.elastic.structure.joints:
            if joint.type is not JointType.PRISMATIC or joint.mimic is not None:
                continue
            start = float(self.values[joint.name])
            ends = (max(joint.limits.lower, start - size), min(joint.limits.upper, start + size))

            def at(position: float, name: str = joint.name) -> _Columns | None:
                return self._columns({**self.values, name: np.array(position)})

            changes = none
            for step in (STEP * size, -STEP * size):
                if (moved := at(start + step)) is not None:
                    changes = _Columns(*((b - a) / step for a, b in zip(here, moved, strict=True)))
                    break

            def agrees(position: float, start: float = start, changes: _Columns = changes) -> bool:
                there = at(position)
                return there is not None and all(
                    np.abs(a + (position - start) * d - b).max(initial=0.0) < AGREES * max(size, 1.0)
                    for a, d, b in zip(here, changes, there, strict=True)
                )

            low, high = (_farthest(agrees, start, end) for end in ends)
            moves = [np.asarray(np.abs(part) > AGREES) for part in changes]
            if (low, high) == ends and not any(part.any() for part in moves):
                continue
            for other in found:
                both = [part & (np.abs(old) > AGREES) for part, old in zip(moves, other.changes, strict=True)]
                if any(part.any() for part in both):
                    problem = f"{joint.name} and {other.name} slide on one body"
                    raise AnalysisError(f"stiffness of {self.robot.name} over boxes", problem, "ask at poses")
            found.append(_Slide(joint.name, changes, low, high))
        return found

    def _compliances(self, lengths: NDArray[Any]) -> NDArray[Any]:
        """Compliances (n_e, 6), of each part from its first column on."""
        system = self.system
        found = np.zeros((system.elastic, 6), dtype=object)
        edges = {edge.name: k for k, edge in enumerate(system.edges) if isinstance(edge, JointBetween)}
        beams = iter(enumerate(system.model.beams))
        for part in system.parts:
            if part.kind == "link":
                k, beam = next(beams)
                L = lengths[k]
                powers = zip(beam.by_power, (L, L * L, L * L * L), strict=True)
                found[part.at] = sum(_times(factors, power) for factors, power in powers)
            elif part.kind != "spring":
                k = edges[part.name]
                length = lengths[k] / _length(system.edges[k]) if part.kind == "cable" else 1.0
                found[part.at, 0] = float(part.compliance[0, 0]) * length
        return found

    def _weights(self, frames: list[tuple[NDArray[Any], NDArray[Any]]]) -> NDArray[Any]:
        found = list[Number]()
        for one in self.masses:
            R, p = frames[self._body(one.link)]
            own = _clean(_values(R).T @ (one.point - _values(p)))
            force = one.mass * self.system.model.gravity
            found += [*force, *(-skew(force) @ (p + R @ own - frames[PLATFORM][1]))]
        return np.array(found, dtype=object).reshape(-1, 1)

    # -- bounds -------------------------------------------------------------------------------------------------------

    def most_compliance(self, found: Enclosure, wrenches: Array) -> Array:
        """Upper bounds (n,) of the largest compliance under combinations of wrenches (6, c), each of unit size."""
        asked, f = self._forces(found, wrenches, exact=False)
        return np.where(asked, (f.T @ self._strained(found.table(2), f)).largest(), np.inf)

    def displacements(self, found: Enclosure, wrenches: Array) -> Form:
        """Displacements (n, c, c + 1) along wrenches (6, c) under each of them, and under the robot's weight.

        `AnalysisError` where that depends on more than is enclosed.
        """
        self._check_exact()
        c, compliances = wrenches.shape[1], found.table(2)
        asked, f = self._forces(found, wrenches, exact=True)
        loaded, unloaded = f[:, : c + 1], f[:, c + 1 :]
        strains = self._strained(compliances, loaded)
        moved = (loaded[:, :c].T @ strains).form()
        if unloaded.centre.shape[2]:
            K = (unloaded.T @ strains).form()
            left = solve((unloaded.T @ self._strained(compliances, unloaded)).form(), K)
            moved = moved + -(K[..., :c].T @ left)
        known = asked[:, None, None] & np.isfinite(moved.radius)
        return Form(np.where(known, moved.middle, 0.0), np.where(known, moved.radius, np.inf))

    def _check_exact(self) -> None:
        about, system = f"{self.robot.name} over boxes", self.system
        if system.model.springs:
            raise AnalysisError(about, "its springs are in no bound but 'stiffness > ...'", "ask at poses")
        free, determined = system.stresses
        if determined < free:
            problem = (
                f"rigid parts leave {free - determined} internal loads open, and nothing but 'stiffness > ...' known"
            )
            raise AnalysisError(about, problem, "describe sections or bearings")
        work = system._work(system.weights())[system.elastic :, 0]
        if np.abs(system._free[2].T @ work).max(initial=0.0) > AGREES * np.abs(work).max(initial=1.0):
            raise AnalysisError(about, "the weight of a body turns it where nothing holds it", "ask at poses")

    def _forces(self, found: Enclosure, wrenches: Array, exact: bool) -> tuple[NDArray[np.bool_], Affine]:
        """For which boxes (n,) they are known, and forces (n_e, c) inside that balance wrenches (6, c) everywhere.
        `exact`: (n_e, c + 1 + k), with those of the weight, and a basis of those without a load.
        """
        twists, slides, half = found.table(1), found.table(3).form(), found.half
        asked = np.asarray(twists.known, dtype=np.bool_) & found.decided
        for k, one in enumerate(self.slides):
            asked &= (slides.lower[:, 0, k] >= one.low) & (slides.upper[:, 0, k] <= one.high)
        cut = self._cut_forces(found, wrenches, exact)
        asked &= np.isfinite(cut).all(axis=(1, 2))
        rows, way = self._assembled(twists, self.around, self.units), self._assembled(twists, self.way, np.ones(6))
        if len(self.held):
            rows = _stacked([rows, Affine.constant(self.held, half) @ way])
        work = way.T @ Affine.constant(wrenches, half)
        if exact:
            weight = self._assembled(twists, self.to_masses, np.ones(6)).T @ found.table(4)
            none = np.zeros((self.system.size, cut.shape[2] - wrenches.shape[1] - 1))
            work = _stacked([work.T, weight.T, Affine.constant(none.T, half)]).T
        e, kept, each = slice(0, self.system.elastic), self.kept, slice(None)
        A, B = rows[each, e], rows[each, kept]
        m = Affine.constant(np.where(asked[:, None, None], cut, 0.0), half)
        inverse: Array = np.asarray(np.linalg.pinv(np.swapaxes(B.centre, 1, 2)), dtype=float)
        Z = Affine.constant(inverse, half)
        y = solve_affine(B.T @ Z, -(work[kept, each] + B.T @ m))
        return asked, A.T @ m + work[e, each] + (A.T @ Z) @ y

    @property
    def units(self) -> Array:
        """Of the rows (6,) of a cycle: exact, and near one over the robot's size."""
        return np.repeat([2.0 ** -np.round(np.log2(self.system.length)), 1.0], 3)

    @property
    def held(self) -> Array:
        """Wrenches (k, 6) by which the platform's own branch holds what no limb does."""
        return np.asarray(self.system.held * self.system.scale)

    def _assembled(self, twists: Affine, signs: Array, units: Array) -> Affine:
        """Rows (6 r, size): along edges with signs (r, cols), of all columns of each coordinate."""
        r, size = len(signs), self.system.size
        parts = []
        for part, sign in ((twists.centre, signs), (twists.slopes, signs), (twists.rest, np.abs(signs))):
            with np.errstate(invalid="ignore"):  # infinite times zero
                rows = part[..., None, :, :] * (sign[:, None, :] * units[:, None])
            whole = np.zeros((*rows.shape[:-1], size))
            for c, k in enumerate(self.coordinate):
                whole[..., k] += rows[..., c]
            parts.append(whole.reshape(*rows.shape[:-3], 6 * r, size))
        found = Affine(parts[0], parts[1], twists.half, parts[2])
        return Affine(parts[0], parts[1], twists.half, (parts[2] + 4.0 * UNIT * found._size()) * MORE)

    def _cut_forces(self, found: Enclosure, wrenches: Array, exact: bool) -> Array:
        """What the cut edges and the platform's branch transmit at the centres, NaN where that is not known. `exact`:
        with that under the weight, and a basis of what they transmit without a load.
        """
        centres = found.encloser.domain.values(0.5 * found.boxes[..., 0] + 0.5 * found.boxes[..., 1])
        at, count = self.robot.kinematics.at(centres, mode=self.robot.mode), 6 * len(self.around)
        unloaded = self.system._split[1].shape[1] if exact else 0
        columns = wrenches.shape[1] + (1 + unloaded if exact else 0)

        def of(system: ElasticSystem) -> Array:
            cut = system._unsprung(np.swapaxes(system.paths[..., system.model.platform, :, :], -1, -2) @ wrenches).cut
            if exact:
                weight = system._unsprung(system._work(system.weights())).cut
                cut = np.concatenate([cut, weight, system.unit_stresses(unloaded)], axis=-1)
            cycles = cut[..., :count, :] * np.tile(system.scale / self.units, len(self.around))[:, None]
            held = np.swapaxes(system.held * system.scale, -1, -2) @ cut[..., count:, :]
            return np.concatenate([cycles, np.linalg.pinv(self.held.T) @ held], axis=-2)

        cut = np.full((len(centres), count + len(self.held), columns), np.nan)
        there = np.flatnonzero(closes(at.status))
        if len(there):
            cut[there] = self.elastic.over(at.rows(there), of, *cut.shape[1:])
        return cut

    def _strained(self, compliances: Affine, forces: Affine) -> Affine:
        parts = [part.at for part in self.system.parts if part.kind != "spring"]
        return _stacked([compliances[at, : at.stop - at.start] @ forces[at, :] for at in parts])


def _frames(recorder: Recorder) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Rotation (3, 3) and origin (3,) of every body, rods and legs by the points between which they are.

    These depend less on the order of the turns than the product of their turns does. A rod turns about two axes that
    meet at right angles, and ends in a ball: with u along it and a along the first axis, the second one is along a x u.
    """
    bodies, state = recorder.model.bodies, recorder.data.state
    found = [(np.array(one.R, dtype=object).reshape(3, 3), np.array(list(one.p), dtype=object)) for one in state]
    for closure in recorder.model.closures:
        if closure.kind != SPHERICAL:
            continue
        ends = (closure.predecessor, closure.predecessor_point), (closure.successor, closure.successor_point)
        for (last, point), (other, there) in (ends, ends[::-1]):
            chain = [last]
            while bodies[chain[-1]].prismatic and chain[-1] > PLATFORM:
                chain.append(bodies[chain[-1]].parent)
            second = chain[-1]
            if second <= PLATFORM or (first := bodies[second].parent) <= PLATFORM or bodies[first].prismatic:
                continue
            start, a = found[second][1], found[first][0][:, 2]
            end = found[other][1] + found[other][0] @ there
            R = _values(found[second][0])
            along = _values(end - start) @ R  # in the second body's frame
            length = float(np.linalg.norm(along))
            apart = _values(found[first][1] - start), along[2:], _values(a)[None] @ R[:, 2:]
            if max(np.abs(part).max() for part in apart) > ZERO * 1e3 * max(length, 1.0) or length < AGREES:
                continue
            u = _times(end - start, 1.0 / (_size(end - start) if len(chain) > 1 else length))
            w = skew(a) @ u
            w = _times(w, float(np.sign(_values(w) @ R[:, 2])) / _size(w))
            own = along / length
            across = np.array([-own[1], own[0], 0.0])
            turned = np.outer(u, own) + np.outer(w, [0.0, 0.0, 1.0]) + np.outer(skew(w) @ u, across)
            for body in chain:
                between = _clean(R.T @ _values(found[body][0]))
                moved = turned @ between
                found[body] = moved, end - moved @ point if body == last else found[body][1]
    return found


def _values(numbers: NDArray[Any]) -> Array:
    return np.array([value(x) for x in np.ravel(numbers)]).reshape(np.shape(numbers))


def _size(vector: NDArray[Any]) -> Number:
    return call("sqrt", sum(x * x for x in vector))


def _stacked(parts: list[Affine]) -> Affine:
    centre, slopes, rest = (
        np.concatenate([getattr(p, name) for p in parts], axis=-2) for name in ("centre", "slopes", "rest")
    )
    return Affine(centre, slopes, parts[0].half, rest)


def _length(edge: BeamBetween | JointBetween) -> float:
    if isinstance(edge, BeamBetween):
        return float(edge.length)
    return 0.0 if edge.line is None else float(edge.line.length)


def _times(factors: NDArray[Any], number: Number) -> NDArray[Any]:
    found = np.zeros(factors.shape, dtype=object)
    for at, factor in np.ndenumerate(factors):
        found[at] = factor * number
    return found


def _clean(values: Array) -> Array:
    """Without what is rounding only, so that it is no term of the recording."""
    return np.where(np.abs(values) > ZERO * max(np.abs(values).max(initial=0.0), 1.0), values, 0.0)


def _farthest(holds: Callable[[float], bool], start: float, end: float) -> float:
    """The position farthest from `start`, up to `end`, at which something holds, as it does between."""
    if holds(end):
        return end
    good, bad = start, end
    for _ in range(HALVINGS):
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good
