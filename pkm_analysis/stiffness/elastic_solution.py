# SPDX-License-Identifier: Apache-2.0
"""How an elastic structure gives way: displacements, forces inside, compliance of the platform, shares of the parts.

Equations and sources are those of docs/stiffness.md, for several loads w_k with displacements V_k = T_k e + S_k q. With
the wrenches m = m_p + N s in the cut edges, N a basis of what B^T m = 0 leaves, the closed cycles A C f + B q = 0 give
s; then q = -B^+ A C f. Nothing but C is ever inverted, so that rigid joints and bodies are exact, without penalties,
and a freedom that moves nothing else (a rod that spins) rests. With springs, t = k s (z - Z t): soft ones are as exact.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.stiffness.elastic_model import (
    FREE,
    GROUND,
    RIGID,
    SLIDE,
    BeamBetween,
    ElasticModel,
    JointBetween,
    SpringBetween,
    skewed,
)
from pkm_analysis.stiffness.link_beams import DiffersError, alike
from pkm_description.mechanism import Array
from pkm_description.rotations import skew

RANK = 1e-7  # of the largest singular value: below it an equation repeats others, a motion is free
INDETERMINATE = 1e-11  # of the compliance of all cycles: below it nothing gives way to a stress without load


@dataclass(frozen=True, eq=False)
class Elastic:
    """What is elastic and where its coordinates are: a link's beam, what a joint holds, or a drive."""

    kind: str
    name: str
    at: slice
    compliance: Array


@dataclass(frozen=True, eq=False)
class Response:
    """Under loads (columns): all coordinates, forces along the elastic ones, and what the cut edges transmit.

    Forces of springs are what the loads add to those at this pose.
    """

    paths: Array  # (..., n_nodes, 6, n_e + n_q)
    coordinates: Array  # (..., n_e + n_q, k)
    forces: Array  # (..., n_e + n_springs, k)
    cut: Array  # (..., rows, k) wrenches in the cut edges, in units of `length`

    @cached_property
    def nodes(self) -> Array:
        """Displacements (..., n_nodes, 6, k) of the nodes, at the platform's origin."""
        return np.asarray(self.paths @ self.coordinates[..., None, :, :])


class ElasticSystem:
    """The equations of a model. `motions` (..., 6, f) are the platform's possible twists.

    Of the others, `left_out` are held by no limb, and so by the platform's own branch (`Mobility`): those of `held`, if
    they are known. A slide's coordinate is in units of `length` [m], by default the size of the robot here.
    AnalysisError: the pose is singular: the platform moves though nothing gives way. DiffersError: so is one of several
    poses, or it has other internal loads or idle motions than another one.
    """

    def __init__(
        self,
        model: ElasticModel,
        motions: Array,
        left_out: int = 0,
        held: Array | None = None,
        length: float | None = None,
    ) -> None:
        self.model = model
        self.poses = model.origin.shape[:-1]
        arms = [np.linalg.norm(node.point - model.origin, axis=-1).max() for node in model.nodes]
        self.length = length or float(max(arms, default=1.0)) or 1.0
        self._coordinates()
        self._cycles()
        self.held: Array = self._loose(motions, left_out) if held is None else held
        rows = self.held @ (self.scale[:, None] * self.paths[..., model.platform, :, :])
        self.rows: Array = np.concatenate([self.rows, rows], axis=-2)

    # -- coordinates --------------------------------------------------------------------------------------------------

    def _coordinates(self) -> None:
        """Columns of every edge: coordinate, and displacement (6,) at the platform's origin per unit of it."""
        m = self.model
        self.edges: list[BeamBetween | JointBetween] = [*m.beams, *m.joints]
        self.parts: list[Elastic] = []
        columns: list[list[tuple[int, Array]]] = [[] for _ in self.edges]
        count = 0
        for k, beam in enumerate(m.beams):
            axes = _turned(beam.frame)
            turned = np.concatenate(
                [np.concatenate([axes, 0.0 * axes], -1), np.concatenate([0.0 * axes, axes], -1)], -2
            )
            twists = skewed(beam.piece.end[..., None, :], turned, m.origin[..., None, :])
            columns[k] = [(count + i, twists[..., i, :]) for i in range(6)]
            self.parts.append(Elastic("link", beam.piece.link, slice(count, count + 6), beam.compliance))
            count += 6
        own = self.own = dict[str, int]()  # of a joint that is driven or free: its coordinate
        ordered = sorted(range(len(m.joints)), key=lambda k: bool(m.joints[k].leader))
        free: list[tuple[int, JointBetween, int]] = []
        for n in ordered:
            joint = m.joints[n]
            springs = [
                ("drive" if joint.driven == i else "joint", i, np.array(1.0 / s))
                for i, s in enumerate(joint.stiffness)
                if s not in (FREE, RIGID)
            ]
            if joint.line is not None:
                springs.append(("cable", SLIDE, joint.line.length / joint.line.cable.stiffness))
            for kind, i, compliance in springs:
                self.parts.append(Elastic(kind, joint.name, slice(count, count + 1), compliance[..., None, None]))
                columns[len(m.beams) + n].append((count, skewed(joint.point, joint.twist(i), m.origin)))
                if kind == "drive":
                    own[joint.name] = count
                count += 1
            if not joint.leader:
                free += [(len(m.beams) + n, joint, i) for i, s in enumerate(joint.stiffness) if s == FREE]
        self.elastic, n = count, len(m.springs)
        self.parts += [
            Elastic("spring", one.name, slice(count + k, count + k + 1), np.array([[1.0 / one.stiffness]]))
            for k, one in enumerate(m.springs)
            if one.stiffness > 0.0
        ]
        self.strained = count + n
        for edge, joint, i in free:
            scale = self.length if i < 3 else 1.0
            columns[edge].append((count, scale * skewed(joint.point, joint.twist(i), m.origin)))
            own[joint.name] = count
            count += 1
        for k, joint in enumerate(m.joints):
            if joint.leader and joint.leader in own:
                i = int(np.flatnonzero(joint.stiffness == FREE)[0])
                leader = next(one for one in m.joints if one.name == joint.leader)
                slides = leader.type == "prismatic" and leader.driven is None
                scale = joint.multiplier * (self.length if slides else 1.0)
                twist = scale * skewed(joint.point, joint.twist(i), m.origin)
                columns[len(m.beams) + k].append((own[joint.leader], twist))
        self.size, self.columns = count, columns

    def _cycles(self) -> None:
        """Paths from the ground to all nodes, and the equations of the cycles."""
        m, scale = self.model, np.array(3 * [1.0 / self.length] + 3 * [1.0])
        self.scale = scale
        beside: dict[int, list[int]] = {}
        for k, edge in enumerate(self.edges):
            for node in edge.joins:
                beside.setdefault(node, []).append(k)
        paths = np.moveaxis(np.zeros((len(m.nodes), *self.poses, 6, self.size)), 0, -3)  # a node at all poses together
        used, waiting, reached = set[int](), deque([GROUND]), {GROUND}
        self.before: dict[int, tuple[int, int]] = {}  # of each node: the edge that carries it, and the node before
        while waiting:
            node = waiting.popleft()
            for k in beside.get(node, ()):
                first, second = self.edges[k].joins
                sign, other = (1.0, second) if first == node else (-1.0, first)
                if k in used or other in reached:
                    continue
                used.add(k)
                reached.add(other)
                self.before[other] = (k, node)
                waiting.append(other)
                paths[..., other, :, :] = paths[..., node, :, :]
                for column, twist in self.columns[k]:
                    paths[..., other, :, column] += sign * twist
        if len(reached) < len(m.nodes):
            lost = next(n.link for k, n in enumerate(m.nodes) if k not in reached)
            raise AnalysisError(f"link {lost}", "nothing carries it", "check its beams and joints")
        rows = []
        self.cuts = [k for k in range(len(self.edges)) if k not in used]
        for k in self.cuts:
            first, second = self.edges[k].joins
            row = paths[..., second, :, :] - paths[..., first, :, :]
            for column, twist in self.columns[k]:
                row[..., column] -= twist
            rows.append(scale[:, None] * row)
        self.paths = paths
        self.rows = np.concatenate(rows, axis=-2) if rows else np.zeros((*self.poses, 0, self.size))

    @cached_property
    def _free(self) -> tuple[Array, Array, Array]:
        return _parts(self.rows[..., self.elastic :])

    def _loose(self, motions: Array, left_out: int) -> Array:
        """What no limb holds (..., k, 6), for the platform's branch to hold."""
        reach = self.scale[:, None] * self.paths[..., self.model.platform, :, self.elastic :]
        loose = _span(reach @ self._free[2])
        if not loose.shape[-1]:
            return np.zeros((*self.poses, 0, 6))
        own = _span(self.scale[:, None] * motions)
        together = np.linalg.svd(np.concatenate([own, loose], axis=-1), compute_uv=False)[..., -1]
        few = loose.shape[-1] <= left_out and loose.shape[-1] + own.shape[-1] <= 6
        beyond = loose - own @ (_turned(own) @ loose)
        if few and alike(together > RANK):
            return _turned(_span(beyond))
        if self.poses:
            raise DiffersError
        twist = loose[:, 0] / self.scale
        words = " ".join(f"{round(value, 6) + 0.0:.3g}" for value in twist / np.abs(twist).max())
        problem = f"it is singular: the platform moves along ({words}) though all drives are held"
        if np.linalg.norm(beyond[:, 0]) > RANK:  # none of its motions: the limbs should hold it, but do not
            problem = f"a constraint singularity: its limbs do not hold the platform along ({words})"
        raise AnalysisError("stiffness at this pose", problem, "take another pose")

    # -- solution -----------------------------------------------------------------------------------------------------

    def given(self, forces: Array) -> Array:
        """Elastic coordinates (..., n_e, k) under forces (..., n_e, k) along them."""
        found = np.zeros(np.broadcast_shapes(forces.shape, (*self.poses, 1, 1)))
        for part in self.parts:
            if part.kind != "spring":
                found[..., part.at, :] = part.compliance @ forces[..., part.at, :]
        return found

    @cached_property
    def stretches(self) -> Array:
        """How far springs are stretched or wound (..., n_springs, n_e + n_q) per unit of each coordinate."""
        m = self.model
        rows = np.zeros((*self.poses, len(m.springs), self.size))
        edges = {edge.name: k for k, edge in enumerate(self.edges) if isinstance(edge, JointBetween)}
        for k, one in enumerate(m.springs):
            if one.length is None:  # its torque turns with the joint, which a moment on two nodes would not
                for column, twist in self.columns[edges[one.name]]:
                    rows[..., k, column] = (one.axis * skewed(m.origin, twist, one.point)).sum(axis=-1)
            else:
                first, second = one.joins
                apart = self.paths[..., second, :, :] - self.paths[..., first, :, :]
                rows[..., k, :] = (self.on_line(one)[..., None, :] @ apart)[..., 0, :]
        return rows

    def on_line(self, spring: SpringBetween) -> Array:
        """Wrench (..., 6) at the platform's origin of a unit force along a spring."""
        force = spring.axis[..., :3]
        return np.concatenate([force, np.cross(spring.point - self.model.origin, force)], axis=-1)

    @cached_property
    def _pulled(self) -> Array:
        return self._unsprung(_turned(self.stretches)).coordinates

    @cached_property
    def _split(self) -> tuple[Array, Array, Array, Array]:
        """Pseudo-inverse of B, basis N of wrenches along no free direction, A^T N, the inverse of its compliance."""
        inverse, N, _ = (
            _parts(self.rows[..., self.elastic :]) if self.held.shape[-2] else self._free
        )  # what `_loose` had
        A = self.rows[..., : self.elastic]
        stress = _turned(A) @ N
        values, vectors = np.linalg.eigh(_turned(stress) @ self.given(stress))
        least = INDETERMINATE * (self.given(_turned(A)) * _turned(A)).sum(axis=(-2, -1))[..., None]
        real = values > least
        parts = vectors * np.where(real, 1.0 / np.where(real, values, 1.0), 0.0)[..., None, :]
        return inverse, N, stress, parts @ _turned(vectors)

    @property
    def stresses(self) -> tuple[int, int]:
        """Independent stresses without load, and those of them that elasticity determines."""
        _, N, _, soft = self._split
        return N.shape[-1], int(np.linalg.matrix_rank(soft)) if soft.size else 0

    def unit_stresses(self, count: int) -> Array:
        """Independent stresses (..., rows, count) without load, each of unit energy: what the cut edges transmit."""
        _, N, stress, _ = self._split
        values, vectors = np.linalg.eigh(_turned(stress) @ self.given(stress))
        if N.shape[-1] != count or not (values > 0.0).all():
            raise DiffersError
        return np.asarray(N @ (vectors / np.sqrt(values)[..., None, :]))

    def response(self, loads: Array) -> Response:
        """Displacements under wrenches (..., n_nodes, 6, k) [N, N m] on nodes, given at the platform's origin."""
        return self.under((_turned(self.paths) @ loads).sum(axis=-3))

    def pushed(self, wrenches: Array) -> Response:
        """`response` to wrenches (6, k) [N, N m] on the platform at its origin."""
        return self.under(_turned(self.paths[..., self.model.platform, :, :]) @ wrenches)

    def sprung(self, loads: Array) -> Response:
        """`response` to loads (..., n_nodes, 6, 1) and to the springs, as these pull at this pose."""
        return self.under(self._work(loads))

    def held_here(self, loads: Array) -> Response:
        """`sprung` where the springs go on to pull as at this pose: its forces are those of the robot held there."""
        return self._unsprung(self._work(loads))

    def _work(self, loads: Array) -> Array:
        """Forces (..., n_e + n_q, 1) along the coordinates of loads (..., n_nodes, 6, 1) and of the springs."""
        work = (_turned(self.paths) @ loads).sum(axis=-3)
        if forces := [spring.force for spring in self.model.springs]:
            work = work - _turned(self.stretches) @ np.stack(forces, axis=-1)[..., None]
        return np.asarray(work)

    def under(self, work: Array) -> Response:
        """Displacements under forces (..., n_e + n_q, k) along the coordinates."""
        if not self.model.springs:
            return self._unsprung(work)
        s, k = self.stretches, np.array([[spring.stiffness] for spring in self.model.springs])
        t = np.linalg.solve(np.eye(len(k)) + k * (s @ self._pulled), k * (s @ self._unsprung(work).coordinates))
        found = self._unsprung(work - _turned(s) @ t)
        return replace(found, forces=np.concatenate([found.forces, t], axis=-2))

    def _unsprung(self, work: Array) -> Response:
        inverse, N, stress, soft = self._split
        external, along_free = work[..., : self.elastic, :], work[..., self.elastic :, :]
        A = self.rows[..., : self.elastic]
        cut = -_turned(inverse) @ along_free
        forces = external + _turned(A) @ cut
        s = -soft @ (_turned(stress) @ self.given(forces))
        cut, forces = cut + N @ s, forces + stress @ s
        e = self.given(forces)
        q = -inverse @ (A @ e)
        return Response(self.paths, np.concatenate([e, q], axis=-2), forces, cut)

    def on_platform(self, wrenches: Array) -> Array:
        """Loads of wrenches (6, k) on the platform at its origin."""
        loads = np.zeros((*self.poses, len(self.model.nodes), 6, wrenches.shape[1]))
        loads[..., self.model.platform, :, :] = wrenches
        return loads

    def weights(self, payload: float = 0.0) -> Array:
        """Loads (..., n_nodes, 6, 1) of all masses, and of a payload [kg] at the platform's origin."""
        m = self.model
        loads = np.zeros((*self.poses, len(m.nodes), 6, 1))
        for one in m.masses:
            force = one.mass * m.gravity
            loads[..., one.node, :3, 0] += force
            loads[..., one.node, 3:, 0] += skew(one.point - m.origin) @ force
        loads[..., m.platform, :3, 0] += payload * m.gravity
        return loads

    def displacement(self, found: Response) -> Array:
        """The platform's displacement (..., 6, k) at its origin."""
        return np.asarray(self.paths[..., self.model.platform, :, :] @ found.coordinates)

    def carried(self, found: Response, loads: Array) -> list[tuple[int, int, Array]]:
        """Of every edge its node nearer to the ground, the other one, and the wrench (6,) there at the origin.

        Under loads (n_nodes, 6, 1), springs at this pose, and what the cut edges transmit, whose ends take it up.
        """
        cut = found.cut[: 6 * len(self.cuts), 0].reshape(-1, 6) * self.scale
        beyond = loads[:, :, 0].copy()
        edges = [(*edge.joins, np.zeros(6)) for edge in self.edges]
        for spring in self.model.springs:
            if spring.length is not None:
                first, second = spring.joins
                beyond[first] += spring.force * self.on_line(spring)
                beyond[second] -= spring.force * self.on_line(spring)
        for k, one in zip(self.cuts, cut, strict=True):
            first, second = self.edges[k].joins
            beyond[second] += one
            beyond[first] -= one
            edges[k] = first, second, -one
        beyond[self.model.platform] += (self.held * self.scale).T @ found.cut[6 * len(self.cuts) :, 0]
        for node in reversed(self.before):  # from the tips down
            k, near = self.before[node]
            edges[k] = near, node, beyond[node]
            beyond[near] += beyond[node]
        return edges

    def transmitted(self, edge: int, found: Response, loads: Array) -> Array:
        """Wrench (6,) of a joint's first node on its second one, at the joint's point, under loads (n_nodes, 6, 1)."""
        joint = self.edges[edge]
        assert isinstance(joint, JointBetween)
        _, far, wrench = self.carried(found, loads)[edge]
        wrench = -wrench if far == joint.joins[1] else wrench
        arm = self.model.origin - joint.point
        return np.concatenate([wrench[:3], wrench[3:] + np.cross(arm, wrench[:3])])

    def under_efforts(self, efforts: dict[str, float], loads: Array) -> Response:
        """Under loads (n_nodes, 6, 1), the drives pushing with efforts [N m or N] by joint, wherever that takes them.

        The efforts have to balance the loads, and the springs, whose forces stay those at this pose.
        """
        let = self.on_drives(FREE)
        work = let._work(loads)
        for name, effort in efforts.items():
            work[let.own[name]] += effort * (self.length if self.model.joint_named[name].driven == SLIDE else 1.0)
        return let._unsprung(work)

    def on_drives(self, stiffness: float) -> ElasticSystem:
        """The same structure at one pose on drives that are all rigid, or all free."""
        joints = []
        for one in self.model.joints:
            held = one.stiffness.copy()
            if one.driven is not None:
                held[one.driven] = stiffness
            joints.append(replace(one, stiffness=held, driven=None))
        return ElasticSystem(replace(self.model, joints=tuple(joints)), np.zeros((6, 0)), held=self.held)

    def by_part(self, forces: Array) -> dict[tuple[str, str], Array]:
        """Compliance (6, 6) of the platform due to each part, by kind and name, from forces (n_e, 6) per wrench."""
        found: dict[tuple[str, str], Array] = {}
        for part in self.parts:
            f = forces[part.at]
            key = part.kind, part.name
            found[key] = found.get(key, np.zeros((6, 6))) + f.T @ part.compliance @ f
        return found


def _turned(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)


def _parts(matrix: Array) -> tuple[Array, Array, Array]:
    """Pseudo-inverses of matrices (..., m, n) of one rank, orthonormal bases of what is zero before and behind them."""
    columns = matrix.shape[-1]
    if columns <= matrix.shape[-2]:  # where all columns surely are independent, in a quarter of the time
        with suppress(np.linalg.LinAlgError):
            Q, R = np.linalg.qr(matrix, mode="complete")
            most, back = np.maximum(np.linalg.norm(R, axis=(-2, -1)), 1.0), np.linalg.inv(R[..., :columns, :])
            if (np.linalg.norm(back, axis=(-2, -1)) * most * RANK < 1.0).all():
                return back @ _turned(Q[..., :columns]), Q[..., columns:], np.zeros((*matrix.shape[:-2], columns, 0))
    U, values, Vt = np.linalg.svd(matrix)
    largest = values.max(axis=-1, initial=0.0, keepdims=True)
    kept = (values > RANK * np.maximum(largest, 1.0)).sum(axis=-1)
    rank = int(kept.max(initial=0))
    alike(kept == rank)
    inverse = _turned(Vt[..., :rank, :]) / values[..., None, :rank] @ _turned(U[..., :rank])
    return inverse, U[..., rank:], _turned(Vt[..., rank:, :])


def _span(matrix: Array) -> Array:
    """Orthonormal bases (..., 6, k) of the columns of matrices, of one rank."""
    if not matrix.shape[-1]:
        return matrix
    U, values, _ = np.linalg.svd(matrix, full_matrices=False)
    kept = (values > RANK).sum(axis=-1)
    rank = int(kept.max())
    alike(kept == rank)
    return np.asarray(U[..., :rank])
