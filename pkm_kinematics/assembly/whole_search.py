# SPDX-License-Identifier: Apache-2.0
"""Robots with locked limbs of no simpler known form: a search over the whole graph.

All joints are unknown, the platform's own among them; the equations are all loop closures and each actuator at its
value. Random starts find modes, and releasing one actuator at a time leads from each mode to others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from pkm_description.mechanism import Array
from pkm_description.rotations import pose_from_transform
from pkm_kinematics.assembly.closure_search import ClosureSystem, SearchedSet, cross_check, halton, search_modes
from pkm_kinematics.assembly.method import UNKNOWN, AssemblyMethod
from pkm_kinematics.assembly.result import AssemblyPoses, AssemblyStatus, caution_of
from pkm_kinematics.kernels.records import NEWTON
from pkm_kinematics.solve.whole_graph import GraphEquations, WholeGraph


def how_sure(modes: SearchedSet) -> str:
    """In words, how many modes a search may have missed."""
    if modes.status == AssemblyStatus.POSITIVE_DIMENSIONAL:
        return f"found by search; {caution_of(modes.status)}"
    words = "found by search, which does not exclude further modes"
    if not modes.checks:
        return f"{words}: no start found a mode"
    met = f"{modes.met} of the last {modes.checks} random starts with a solution found a known mode"
    if modes.met == modes.checks:
        return f"{words}: {met}; a missing mode attracts few starts"
    return f"{words}: {met}; about {max(1, round(modes.missing))} or more modes are missing"


class Search(AssemblyMethod):
    """Any robot: true modes, but not certainly all."""

    name = "search"

    @property
    def recognised(self) -> bool:
        """Always."""
        return True

    def solve(self, q: Array) -> AssemblyPoses:
        """See `AssemblyMethod.solve`; the joints are found with the poses."""
        e = self.engine
        joints = np.array(e.home_joints)
        joints[e.actuated_column] = q
        start = e.inputs.in_whole_graph_at(joints, e.home)
        poses, positions, modes = search_graph(e.whole_graph, e.actuated_names, start)
        return AssemblyPoses(poses, modes.multiplicity, -1, False, how_sure(modes), positions[:, e.in_whole])

    @cached_property
    def unsigned(self) -> str:
        """See `AssemblyMethod.unsigned`: the sign is read from closed forms and a constant motion space."""
        blocks = self.engine.tables.blocks
        iterated = bool((blocks["solver"][blocks["actuators"] > 0] == NEWTON).any())
        return super().unsigned or (UNKNOWN if iterated or not self.engine.constant_space else "")


INDEPENDENT = 1e-9  # relative pivot below which a joint's position follows from no equation, so that it is left at home
PASSIVE_STARTS = 64  # for the passive joints of a known pose
CURVE_POINTS = 1000  # spent on curves of released actuators: about half a second


class GraphClosure:
    """The whole graph of a mechanism as functions of its joint positions, in the order of `WholeGraph.names`."""

    def __init__(self, whole: WholeGraph, actuated: Sequence[str]) -> None:
        self._whole = whole
        self._equations = GraphEquations(whole.tables)
        first = self._equations.span.start
        self._actuated = np.array([whole.names.index(name) - first for name in actuated])
        self.home, self.sliding, closures = self._equations.home, self._equations.sliding, self._equations.count
        self.actuator_rows = range(closures, closures + len(self._actuated))
        self.actuator_periods = [np.inf if self.sliding[k] else 2.0 * np.pi for k in self._actuated]
        self._equations.gaps(self.home)
        places = self._equations.state["p"]
        self.size = float(np.max(np.linalg.norm(places - places.mean(axis=0), axis=1))) or 1.0
        pivots, order = qr(self._jacobian(self.home), mode="r", pivoting=True)
        sizes = np.abs(np.diag(pivots))
        self.free = np.sort(order[: int(np.sum(sizes > INDEPENDENT * sizes[0]))])

    def _residual(self, x: Array, q: Array) -> Array:
        return np.concatenate([self._equations.gaps(x), x[self._actuated] - q])

    def _jacobian(self, x: Array) -> Array:
        self._equations.gaps(x)
        held = np.zeros((len(self._actuated), len(x)))
        held[np.arange(len(held)), self._actuated] = 1.0
        return np.vstack([self._equations.slope(), held])

    def _all(self, free: Array) -> Array:
        x = self.home.copy()
        x[self.free] = free
        return x

    def of_free(self, of_all: NDArray[Any]) -> NDArray[Any]:
        """What belongs to the free joints of something for all bodies (n_bodies,)."""
        return of_all[self._equations.span][self.free]

    def positions(self, free: Array) -> Array:
        """Positions (n_bodies,) of all joints."""
        self._equations.gaps(self._all(free))
        return np.array(self._equations.state["q"])

    def _transform(self, free: Array) -> Array:
        self._equations.gaps(self._all(free))
        return self._whole.platform_transform(self._equations.state)

    def pose(self, free: Array) -> Array:
        """Platform pose (7,) at positions of the free joints."""
        return pose_from_transform(self._transform(free))

    def _image(self, free: Array) -> Array:
        transform = self._transform(free)
        return np.append(transform[:3, :3], transform[:3, 3] / self.size)

    def _genuine(self, free: Array) -> bool:
        self._equations.gaps(self._all(free))
        return self._equations.genuine

    def system(self, q: Array) -> ClosureSystem:
        """The closure system for actuated joint positions q (n_actuated,); its unknowns are the free joints."""
        sliding = self.sliding[self.free]
        home, reach = self.home[self.free], np.where(sliding, self.size, np.pi)
        return ClosureSystem(
            residual=lambda free: self._residual(self._all(free), q),
            jacobian=lambda free: self._jacobian(self._all(free))[:, self.free],
            lower=home - reach,
            upper=home + reach,
            period=np.where(sliding, np.inf, 2.0 * np.pi),
            scale=np.where(sliding, self.size, 1.0),
            image=self._image,
            genuine=self._genuine,
        )


def passive_positions(whole: WholeGraph, actuated: Sequence[str], seed: Array) -> Array | None:
    """Positions (n_bodies,) that close the loops with drives and platform as in `seed`; None where no start does."""
    closure = GraphClosure(whole, actuated)
    drives = [whole.names.index(name) for name in actuated]
    system, start = closure.system(seed[drives]), closure.of_free(seed)
    passive = np.ones(len(seed), dtype=bool)
    passive[[*drives, *whole.platform_branch]] = False
    loose = np.flatnonzero(closure.of_free(passive))

    def complete(some: Array) -> Array:
        x = start.copy()
        x[loose] = some
        return x

    part = replace(
        system,
        residual=lambda some: system.residual(complete(some)),
        jacobian=lambda some: system.jacobian(complete(some))[:, loose],
        lower=system.lower[loose],
        upper=system.upper[loose],
        period=system.period[loose],
        scale=system.scale[loose],
        image=None,
        genuine=lambda some: system.genuine is None or system.genuine(complete(some)),
    )
    for k, point in enumerate(halton(len(loose), PASSIVE_STARTS)):
        solution = part.solved(start[loose] if k == 0 else part.lower + point * (part.upper - part.lower))
        if solution is not None:
            return closure.positions(complete(solution))
    return None


def search_graph(whole: WholeGraph, actuated: Sequence[str], seed: Array) -> tuple[Array, Array, SearchedSet]:
    """Assembly modes, told apart by the platform's pose, with joints `actuated` as in `seed` (n_bodies,); it first.

    Returns poses (k, 7), positions (k, n_bodies) of all joints, and the search that found them: see `cross_check`.
    """
    closure = GraphClosure(whole, actuated)
    system = closure.system(seed[[whole.names.index(name) for name in actuated]])
    known = system.solved(closure.of_free(seed))
    modes = search_modes(
        system,
        closure.actuator_rows,
        closure.actuator_periods,
        known=[] if known is None else [known],
        budget=CURVE_POINTS,
    )
    modes = cross_check(system, modes)
    poses = np.array([closure.pose(x) for x in modes.solutions]).reshape(-1, 7)
    return poses, np.array([closure.positions(x) for x in modes.solutions]).reshape(-1, len(seed)), modes
