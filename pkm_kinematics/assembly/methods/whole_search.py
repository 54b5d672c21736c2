# SPDX-License-Identifier: Apache-2.0
"""Robots with locked limbs of no simpler known form: a search over the whole graph."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.assembly.method import UNKNOWN, AssemblyMethod, read_signs
from pkm_kinematics.assembly.result import AssemblyPoses, AssemblyStatus, caution_of
from pkm_kinematics.assembly.search.graph_search import search_graph
from pkm_kinematics.assembly.search.multistart import SearchedSet
from pkm_kinematics.kernels.records import NEWTON


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

    def signs(self, q: Array, poses: Array, joints: Array) -> Array:
        """See `AssemblyMethod.signs`."""
        return read_signs(self.engine, poses, joints)

    @cached_property
    def unsigned(self) -> str:
        """See `AssemblyMethod.unsigned`: the sign is read from closed forms and a constant motion space."""
        blocks = self.engine.tables.blocks
        iterated = bool((blocks["solver"][blocks["actuators"] > 0] == NEWTON).any())
        return super().unsigned or (UNKNOWN if iterated or not self.engine.constant_space else "")
