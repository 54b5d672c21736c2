# SPDX-License-Identifier: Apache-2.0
"""How the forces inside a structure change its stiffness, and the factor of the load at which it buckles.

Equations and sources are those of "Under load" in docs/stiffness.md: second derivatives of the motion along the tree of
`elastic_solution`, for moments that are semitangential, as those in cut joints are, and beams as chains of infinitely
many hinges. The largest eigenvalue of -R G R^T is one over the factor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander
from scipy.linalg import eigh

from pkm_analysis.stiffness.elastic_model import BeamBetween
from pkm_analysis.stiffness.elastic_solution import ElasticSystem, Response
from pkm_description.mechanism import Array
from pkm_description.rotations import skew

ORDER = 5  # highest order of a beam's curvature: Euler's columns to 1e-6, clamped at both ends to 6e-4
BENDING, TWISTING = range(2, ORDER + 1), range(1, ORDER)
NEVER = 1e-9  # of one over the factor of buckling: below it rounding
INNER = 2 * len(BENDING) + len(TWISTING)  # coordinates of a beam that do not move its ends


class Buckling(NamedTuple):
    """The least factor of the forces inside at which a structure buckles, infinite where it never does, and how."""

    factor: float
    shares: dict[tuple[str, str], float]  # of the parts, by kind and name, in the energy of that motion, largest first
    shape: Array  # (n_nodes, 6) displacements at the platform's origin, of energy one half


@dataclass(frozen=True, eq=False)
class Loaded:
    """A structure with the forces that are inside it."""

    system: ElasticSystem
    roots: Array  # (r, n + inner) R, of which R^T R is the compliance of all coordinates without load
    change: Array  # (r, r) R G R^T
    base: Array  # (r, r) the identity, and what lines that hang have beyond straight ones

    @property
    def compliance(self) -> Array:
        """Displacement (6, 6) of the platform per small wrench more, at its origin; indefinite where it buckles."""
        W = self.roots[:, : self.system.size] @ self.system.paths[self.system.model.platform].T
        return np.asarray(W.T @ np.linalg.solve(self.base + self.change, W))

    def nodes(self, loads: Array) -> Array:
        """Displacements (n_nodes, 6, k) of the nodes per small loads (n_nodes, 6, k) more, at the platform's origin."""
        roots, paths = self.roots[:, : self.system.size], self.system.paths
        work = np.einsum("nij,nik->jk", paths, loads)
        return np.asarray(paths @ (roots.T @ np.linalg.solve(self.base + self.change, roots @ work)))

    def buckling(self) -> Buckling:
        """Where the stiffness under these forces, times a factor, ceases to be positive; lines hang as they do."""
        system, beams = self.system, len(self.system.model.beams)
        values, vectors = eigh(-self.change, self.base) if self.change.size else (np.zeros(0), self.change)
        if not len(values) or values[-1] <= NEVER:
            return Buckling(np.inf, {}, np.zeros((len(system.model.nodes), 6)))
        energy = vectors[:, -1] ** 2 / (vectors[:, -1] @ vectors[:, -1])
        inner = energy[system.strained :].reshape(beams, INNER).sum(axis=1)
        shares = dict[tuple[str, str], float]()
        for k, part in enumerate(system.parts):  # beams first
            key = part.kind, part.name
            shares[key] = shares.get(key, 0.0) + float(energy[part.at].sum() + (inner[k] if k < beams else 0.0))
        shape = system.paths @ (self.roots.T @ vectors[:, -1])[: system.size]
        return Buckling(1.0 / float(values[-1]), dict(sorted(shares.items(), key=lambda one: -one[1])), shape)


def loaded(
    system: ElasticSystem, found: Response, loads: Array, tensions: Mapping[str, float] = MappingProxyType({})
) -> Loaded:
    """The structure with the forces of a response to loads (n_nodes, 6, 1), of which weights act in their masses.

    `tensions` [N] are those of the lines, which hang, by joint.
    """
    n, beams = system.size, system.model.beams
    H = np.zeros((n + INNER * len(beams),) * 2)
    for k, (near, far, wrench) in enumerate(system.carried(found, loads)):
        turned = system.paths[near][3:].copy()  # what turns the edge, first without its own coordinates
        forward = far == system.edges[k].joins[1]
        sign = 1.0 if forward else -1.0
        own = [column for column, _ in system.columns[k]]
        twists = sign * np.array([twist for _, twist in system.columns[k]]).reshape(-1, 6)
        pull = np.cross(twists[:, :3], wrench[:3]) + 0.5 * np.cross(twists[:, 3:], wrench[3:])
        _add(H, own, pull @ turned)
        if k < len(beams):
            own += range(n + INNER * k, n + INNER * (k + 1))
            H[np.ix_(own, own)] += _within(beams[k], wrench, system.model.origin, forward)
            continue
        for j in range(len(own)) if forward else reversed(range(len(own))):
            H[own[j], own[j]] += pull[j] @ twists[j, 3:]
            for i in range(j) if forward else range(j + 1, len(own)):
                value = pull[j] @ twists[i, 3:]
                H[own[i], own[j]] += value
                H[own[j], own[i]] += value
    forces = [(one.node, one.mass * system.model.gravity, one.point) for one in system.model.masses]
    for spring in system.model.springs:
        if spring.length is not None:
            (near, far), along = spring.joins, spring.axis[:3]
            forces += [(near, spring.force * along, spring.point), (far, -spring.force * along, spring.end)]
            apart = _moved(system, far, spring.end) - _moved(system, near, spring.point)
            H[:n, :n] -= spring.force / spring.length * apart.T @ (np.eye(3) - np.outer(along, along)) @ apart
    for node, force, point in forces:  # they move with their points, not with the platform's origin
        arm = point - system.model.origin
        bent = 0.5 * (np.outer(force, arm) + np.outer(arm, force)) - force @ arm * np.eye(3)
        turned = system.paths[node][3:]
        H[:n, :n] += turned.T @ bent @ turned
    roots = _roots(system)
    beyond = sum((_hanging(system, name, tension) for name, tension in tensions.items()), start=np.zeros((n, n)))
    base = np.eye(len(roots)) + roots[:, :n] @ beyond @ roots[:, :n].T
    return Loaded(system, roots, -roots @ H @ roots.T, base)


def _hanging(system: ElasticSystem, name: str, tension: float) -> Array:
    """Stiffness (n, n) that a hanging line has beyond the straight and taut one that is there already."""
    joint, line = system.model.joint_named[name], system.model.lines[name]
    moved = _moved(system, joint.joins[1], line.far) - _moved(system, joint.joins[0], line.near)
    if name in system.own:  # what the drive lets out does not stretch it
        moved[:, system.own[name]] = 0.0
    along = np.outer(line.along, line.along)
    taut = line.cable.stiffness * along + tension * (np.eye(3) - along)
    beyond = line.hung(tension, system.model.gravity)[1] - taut / line.length
    return np.asarray(moved.T @ beyond @ moved)


def _moved(system: ElasticSystem, node: int, point: Array) -> Array:
    return np.asarray(system.paths[node][:3] - skew(point - system.model.origin) @ system.paths[node][3:])


def _add(H: Array, own: list[int], rows: Array) -> None:
    for column, row in zip(own, rows, strict=True):
        H[column, : len(row)] += row
        H[: len(row), column] += row


def _roots(system: ElasticSystem) -> Array:
    """R (r, n + inner): the root of the compliance of everything elastic, times its forces per force along each z."""
    beams = system.model.beams
    forces = system.under(np.eye(system.size)).forces
    R = np.zeros((system.strained + INNER * len(beams), system.size + INNER * len(beams)))
    for part in system.parts:
        R[part.at, : system.size] = np.linalg.cholesky(part.compliance).T @ forces[part.at]
    for k, beam in enumerate(beams):
        s, L = beam.piece.section, float(beam.length)
        orders = np.array([*TWISTING, *BENDING, *BENDING])
        against = np.repeat([s.G * s.J, s.E * s.Iy, s.E * s.Iz], [len(TWISTING), len(BENDING), len(BENDING)])
        rows, columns = (np.arange(INNER) + INNER * k + first for first in (system.strained, system.size))
        R[rows, columns] = np.sqrt(L * (2 * orders + 1) / against)
    return R


def _within(beam: BeamBetween, wrench: Array, origin: Array, forward: bool) -> Array:
    """Second derivatives (6 + INNER, 6 + INNER) of the work of a wrench at the platform's origin, by a beam alone.
    Coordinates are the six of the beam's end, then the inner ones: of twist, about y, about z.
    """
    s, L, R = beam.piece.section, float(beam.length), beam.frame
    F, M = R.T @ wrench[:3], R.T @ wrench[3:]
    start = R.T @ (beam.piece.start - origin)
    points, weights = leggauss(ORDER + 3)
    share, weights = 0.5 * (points + 1.0), 0.5 * weights
    P = legvander(points, ORDER)
    integral = (legvander(points, ORDER + 1)[:, 2:] - P[:, :-1]) / (2.0 * (2 * np.arange(1, ORDER + 1) + 1))
    P, integral = P[:, : ORDER + 1], np.column_stack([share, integral])  # over the share of the length
    at_ends = np.linalg.inv(beam.compliance)
    moments = np.zeros((len(points), 3, 6))  # per displacement of the end
    moments[:] = at_ends[3:]
    moments[:, 1] -= L * (1.0 - share)[:, None] * at_ends[2]
    moments[:, 2] += L * (1.0 - share)[:, None] * at_ends[1]
    turns = np.zeros((len(points), 3, 6 + INNER))  # curvature, per share of the length
    turns[:, :, :6] = L * moments / np.array([s.G * s.J, s.E * s.Iy, s.E * s.Iz])[:, None]
    turned = np.zeros_like(turns)
    linear = legvander(points, 1)
    # the curvature of the ends' coordinates is linear: its two Legendre coefficients, integrated
    coefficients = np.einsum("g,gk,gij->kij", weights, linear, turns[:, :, :6]) * np.array([1.0, 3.0])[:, None, None]
    turned[:, :, :6] = np.einsum("gk,kij->gij", integral[:, :2], coefficients)
    column = 6
    for axis, orders in enumerate((TWISTING, BENDING, BENDING)):
        chosen = [*orders]
        turns[:, axis, column : column + len(chosen)] = P[:, chosen]
        turned[:, axis, column : column + len(chosen)] = integral[:, chosen]
        column += len(chosen)
    arm = -(start + L * share[:, None] * np.array([1.0, 0, 0]))
    moved = np.einsum("gij,gjk->gik", -np.array([skew(one) for one in arm]), turns)
    moved[:, :, :6] += L * at_ends[:3] / np.array([s.E * s.A, s.G * s.Ay, s.G * s.Az])[:, None]
    pull = np.einsum("ij,gjk->gik", -skew(F), moved) - 0.5 * np.einsum("ij,gjk->gik", skew(M), turns)
    if not forward:  # from the end to the start
        turned = -turned
        turned[:, :, :6] += coefficients[0]
    H = np.einsum("g,gik,gil->kl", weights, turned, pull)
    return H + H.T
