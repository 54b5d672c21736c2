# SPDX-License-Identifier: Apache-2.0
"""How an elastic structure gives way: displacements, forces inside, compliance of the platform, shares of the parts.

Every beam has six deformations, every joint its free and its elastic displacements: coordinates e (elastic) and q
(free). A tree of beams and joints from the ground reaches all nodes; each beam or joint beyond it closes a cycle, and
its six equations are A e + B q = 0. With the displacement of the node that carries load k, V_k = T_k e + S_k q, and the
compliance C of e,

    f = A^T m + sum T_k^T w_k        forces in the beams, elastic joints and drives
    0 = B^T m + sum S_k^T w_k        nothing is transmitted along a free direction
    A C f + B q = 0                  the cycles are closed

m are the wrenches in the cut beams and joints. With m = m_p + N s, N a basis of what B^T m = 0 leaves, the third gives
s; then q = -B^+ A C f. Nothing but C is ever inverted, so that rigid joints and bodies are exact, without penalties,
and a freedom that moves nothing else (a rod that spins) rests. It is matrix structural analysis in the form of virtual
joints (Pashkevich, Chablat and Wenger, "Stiffness analysis of overconstrained parallel manipulators", 2009; Klimchik,
Pashkevich and Chablat, "Fundamentals of manipulator stiffness modeling using matrix structural analysis", 2019).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.stiffness.elastic_model import FREE, GROUND, SLIDE, BeamBetween, ElasticModel, JointBetween, skewed
from pkm_description.mechanism import Array

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
    """Under loads (columns): displacements of the nodes at the platform's origin, elastic coordinates, their forces."""

    nodes: Array  # (n_nodes, 6, k)
    elastic: Array  # (n_e, k)
    forces: Array  # (n_e, k)
    cut: Array  # (rows, k) wrenches in the cut edges, in units of `length`


class ElasticSystem:
    """The equations of a model. `motions` (6, f) are the platform's possible twists.

    Of the others, `left_out` are held by no limb, and so by the platform's own branch (`Mobility`): those of `held`, if
    they are known.

    Raises:
        AnalysisError: the pose is singular: the platform moves though nothing gives way.
    """

    def __init__(self, model: ElasticModel, motions: Array, left_out: int = 0, held: Array | None = None) -> None:
        self.model = model
        self.length = max([float(np.linalg.norm(n.point - model.origin)) for n in model.nodes], default=1.0) or 1.0
        self._coordinates()
        self._cycles()
        self.held: Array = self._loose(motions, left_out) if held is None else held
        rows = self.held @ (self.scale[:, None] * self.paths[model.platform])
        self.rows: Array = np.concatenate([self.rows, rows])

    # -- coordinates --------------------------------------------------------------------------------------------------

    def _coordinates(self) -> None:
        """Columns of every edge: coordinate, and displacement (6,) at the platform's origin per unit of it."""
        m = self.model
        self.edges: list[BeamBetween | JointBetween] = [*m.beams, *m.joints]
        self.parts: list[Elastic] = []
        columns: list[list[tuple[int, Array]]] = [[] for _ in self.edges]
        count = 0
        for k, beam in enumerate(m.beams):
            R = beam.frame
            turned = np.zeros((6, 6))
            turned[:3, :3] = turned[3:, 3:] = R
            twists = skewed(beam.piece.end, turned.T, m.origin)
            columns[k] = [(count + i, twists[i]) for i in range(6)]
            self.parts.append(Elastic("link", beam.piece.link, slice(count, count + 6), beam.compliance))
            count += 6
        own = self.own = dict[str, int]()  # of a joint that is driven or free: its coordinate
        ordered = sorted(range(len(m.joints)), key=lambda k: bool(m.joints[k].leader))
        free: list[tuple[int, JointBetween, int]] = []
        for n in ordered:
            joint = m.joints[n]
            springs = [
                ("drive" if joint.driven == i else "joint", i, 1.0 / s) for i, s in enumerate(joint.stiffness) if s
            ]
            if joint.line is not None:
                springs.append(("cable", SLIDE, joint.line.length / joint.line.cable.stiffness))
            for kind, i, compliance in springs:
                if compliance == 0.0:
                    continue
                self.parts.append(Elastic(kind, joint.name, slice(count, count + 1), np.array([[compliance]])))
                columns[len(m.beams) + n].append((count, skewed(joint.point, joint.twist(i), m.origin)))
                if kind == "drive":
                    own[joint.name] = count
                count += 1
            if not joint.leader:
                free += [(len(m.beams) + n, joint, i) for i, s in enumerate(joint.stiffness) if s == FREE]
        self.elastic = count
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
        paths = np.full((len(m.nodes), 6, self.size), np.nan)
        paths[GROUND] = 0.0
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
                paths[other] = paths[node]
                for column, twist in self.columns[k]:
                    paths[other][:, column] += sign * twist
        if len(reached) < len(m.nodes):
            lost = next(n.link for k, n in enumerate(m.nodes) if k not in reached)
            raise AnalysisError(f"link {lost}", "nothing carries it", "check its beams and joints")
        rows = []
        self.cuts = [k for k in range(len(self.edges)) if k not in used]
        for k in self.cuts:
            first, second = self.edges[k].joins
            row = paths[second] - paths[first]
            for column, twist in self.columns[k]:
                row[:, column] -= twist
            rows.append(scale[:, None] * row)
        self.paths = paths
        self.rows = np.concatenate(rows) if rows else np.zeros((0, self.size))

    def _loose(self, motions: Array, left_out: int) -> Array:
        """What no limb holds (k, 6), for the platform's branch to hold."""
        reach = self.scale[:, None] * self.paths[self.model.platform][:, self.elastic :]
        loose = _span(reach @ self._free_motions(self.rows))
        if not loose.shape[1]:
            return np.zeros((0, 6))
        own = _span(self.scale[:, None] * motions)
        together = np.linalg.svd(np.column_stack([own, loose]), compute_uv=False)
        if loose.shape[1] > left_out or loose.shape[1] + own.shape[1] > 6 or together[-1] < RANK:
            twist = loose[:, 0] / self.scale
            words = " ".join(f"{value:.3g}" for value in twist / np.abs(twist).max())
            problem = f"it is singular: the platform moves along ({words}) though all drives are held"
            beyond = loose[:, 0] - own @ (own.T @ loose[:, 0])
            if np.linalg.norm(beyond) > RANK:  # none of its motions: the limbs should hold it, but do not
                problem = f"a constraint singularity: its limbs do not hold the platform along ({words})"
            raise AnalysisError("stiffness at this pose", problem, "take another pose")
        return _span(loose - own @ (own.T @ loose)).T

    def _free_motions(self, rows: Array) -> Array:
        """Null space (n_q, k) of the cycles' free coordinates."""
        B = rows[:, self.elastic :]
        if not B.shape[1]:
            return np.zeros((0, 0))
        _, values, Vt = np.linalg.svd(B)
        kept = int((values > RANK * max(values.max(initial=0.0), 1.0)).sum())
        return Vt[kept:].T

    # -- solution -----------------------------------------------------------------------------------------------------

    @cached_property
    def compliances(self) -> Array:
        """Compliance (n_e, n_e) of the elastic coordinates."""
        C = np.zeros((self.elastic, self.elastic))
        for part in self.parts:
            C[part.at, part.at] = part.compliance
        return C

    @cached_property
    def _split(self) -> tuple[Array, Array, Array, Array]:
        """Pseudo-inverse of B, basis N of wrenches along no free direction, A^T N, the inverse of its compliance."""
        B = self.rows[:, self.elastic :]
        U, values, Vt = np.linalg.svd(B) if B.size else (np.eye(len(B)), np.zeros(0), np.eye(B.shape[1]))
        kept = int((values > RANK * max(values.max(initial=0.0), 1.0)).sum())
        inverse = Vt[:kept].T / values[:kept] @ U[:, :kept].T
        N = U[:, kept:]
        stress = self.rows[:, : self.elastic].T @ N
        soft = stress.T @ self.compliances @ stress
        values, vectors = np.linalg.eigh(soft) if soft.size else (np.zeros(0), np.zeros((0, 0)))
        A = self.rows[:, : self.elastic]
        real = values > INDETERMINATE * float(np.trace(A @ self.compliances @ A.T))
        return inverse, N, stress, vectors[:, real] / values[real] @ vectors[:, real].T

    @property
    def stresses(self) -> tuple[int, int]:
        """Independent stresses without load, and those of them that elasticity determines."""
        _, N, _, soft = self._split
        return N.shape[1], int(np.linalg.matrix_rank(soft)) if soft.size else 0

    def response(self, loads: Array) -> Response:
        """Displacements under wrenches (n_nodes, 6, k) [N, N m] on nodes, given at the platform's origin."""
        return self.under(np.einsum("nij,nik->jk", self.paths, loads))

    def under(self, work: Array) -> Response:
        """Displacements under forces (n_e + n_q, k) along the coordinates."""
        inverse, N, stress, soft = self._split
        external, along_free = work[: self.elastic], work[self.elastic :]
        A, C = self.rows[:, : self.elastic], self.compliances
        cut = -inverse.T @ along_free
        forces = external + A.T @ cut
        s = -soft @ (stress.T @ (C @ forces))
        cut, forces = cut + N @ s, forces + stress @ s
        e = C @ forces
        q = -inverse @ (A @ e)
        return Response(self.paths @ np.concatenate([e, q]), e, forces, cut)

    def on_platform(self, wrenches: Array) -> Array:
        """Loads of wrenches (6, k) on the platform at its origin."""
        loads = np.zeros((len(self.model.nodes), 6, wrenches.shape[1]))
        loads[self.model.platform] = wrenches
        return loads

    def weights(self, payload: float = 0.0) -> Array:
        """Loads (n_nodes, 6, 1) of all masses, and of a payload [kg] at the platform's origin."""
        m = self.model
        loads = np.zeros((len(m.nodes), 6, 1))
        for one in m.masses:
            force = one.mass * m.gravity
            loads[one.node, :, 0] += np.concatenate([force, np.cross(one.point - m.origin, force)])
        loads[m.platform, :3, 0] += payload * m.gravity
        return loads

    def displacement(self, found: Response) -> Array:
        """The platform's displacement (6, k) at its origin."""
        return found.nodes[self.model.platform]

    def carried(self, found: Response, loads: Array) -> list[tuple[int, int, Array]]:
        """Of every edge its node nearer to the ground, the other one, and the wrench (6,) there at the origin.

        Under loads (n_nodes, 6, 1) and what the cut edges transmit, which end in a wrench against theirs.
        """
        cut = found.cut[: 6 * len(self.cuts), 0].reshape(-1, 6) * self.scale
        beyond = loads[:, :, 0].copy()
        edges = [(*edge.joins, np.zeros(6)) for edge in self.edges]
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

        The efforts have to balance the loads.
        """
        m, joints = self.model, []
        for one in m.joints:
            stiffness = one.stiffness.copy()
            if one.driven is not None:
                stiffness[one.driven] = FREE
            joints.append(replace(one, stiffness=stiffness, driven=None))
        let = ElasticSystem(replace(m, joints=tuple(joints)), np.zeros((6, 0)), held=self.held)
        work = np.einsum("nij,nik->jk", let.paths, loads)
        for name, effort in efforts.items():
            work[let.own[name]] += effort * (self.length if m.joint_named[name].driven == SLIDE else 1.0)
        return let.under(work)

    def by_part(self, forces: Array) -> dict[tuple[str, str], Array]:
        """Compliance (6, 6) of the platform due to each part, by kind and name, from forces (n_e, 6) per wrench."""
        found: dict[tuple[str, str], Array] = {}
        for part in self.parts:
            f = forces[part.at]
            key = part.kind, part.name
            found[key] = found.get(key, np.zeros((6, 6))) + f.T @ part.compliance @ f
        return found


def _span(matrix: Array) -> Array:
    """Orthonormal basis of the columns."""
    if not matrix.size:
        return np.zeros((6, 0))
    U, values, _ = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(U[:, values > RANK])
