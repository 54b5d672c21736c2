# SPDX-License-Identifier: Apache-2.0
"""On which side of the singularities of type 2 a configuration is: a sign that tells assembly modes apart.

The direct Jacobian has a row per limb, the force that the limb exerts with its actuators locked; its determinant
changes sign where, and only where, assembly modes meet (Gosselin and Angeles 1990). The row is the gradient of what the
locked limb demands of the platform, and so needs no basis of a motion space that turns, nor a working mode:

| assembly method | row |
|---|---|
| `spheres`, `circles`, `planar`, `schoenflies`, `distances` | the leg between the two points that keep a distance |
| `surfaces` | the normal of the surface |
| `plates` | the rod, that stands for a pair, and its moment about the platform's axis |
| `constraints` | the wrench of the demand, all six freedoms of the platform included |
| `angles`, `planes` | that of the inverse Jacobian, with the sign of the working mode taken out |

A robot with more actuators than freedoms has no such determinant: its direct Jacobian loses rank on sets of at least
two dimensions less than the space, and these divide nothing. Where no method but `search` applies, the sign is known
only if every actuated limb has a closed form, else only along a motion (`mode_tracker.py`).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.assembly.rigid_body import gradients
from pkm_kinematics.assembly.surfaces import normals
from pkm_kinematics.assembly_modes import DISTANCE_METHODS, limb_distances
from pkm_kinematics.kernels.records import NEWTON
from pkm_kinematics.mode_reader import ModeReader
from pkm_kinematics.pose import transform_of

if TYPE_CHECKING:
    from pkm_kinematics.kinematics import Kinematics

HELD = 1e-6  # relative singular value above which rows count as independent
REDUNDANT, UNKNOWN = "redundant ", "?"


class AssemblySide:
    """The side of configurations of one robot, seen from home's."""

    def __init__(self, kinematics: Kinematics) -> None:
        self._kinematics = kinematics

    @cached_property
    def without(self) -> str:
        """What stands for the sign in labels where there is none: REDUNDANT or UNKNOWN; empty where there is one."""
        k = self._kinematics
        blocks = k.tables.blocks
        if len(k.actuated_names) > k.mobility:
            return REDUNDANT
        iterated = bool((blocks["solver"][blocks["actuators"] > 0] == NEWTON).any())
        guessed = k.assembly_method == "search" or (k.assembly_method in ("angles", "planes") and not k.constant_space)
        return UNKNOWN if guessed and (iterated or not k.constant_space) else ""

    def of(self, pose: Array, joints: Array) -> float:
        """1.0 on home's side, -1.0 on the other, 0.0 where modes meet or there is no sign.

        For a pose (7,) and joints (n_joints,) there.
        """
        return 0.0 if self.without else float(np.sign(self._determinant(pose, joints)) * self._home)

    def prefix(self, pose: Array, joints: Array) -> str:
        """How a label begins: `+`, `-`, or what stands for them, as also where a plate is folded."""
        k = self._kinematics
        if k.assembly_method == "plates" and not k.plates.unfolded(joints[k.engine.actuated_column], pose):
            return UNKNOWN
        return self.without or ("+" if self.of(pose, joints) >= 0.0 else "-")

    @cached_property
    def _home(self) -> float:
        k = self._kinematics
        return float(np.sign(self._determinant(k.home, k.home_joints)))

    def _determinant(self, pose: Array, joints: Array) -> float:
        k = self._kinematics
        if k.assembly_method in ("surfaces", "plates", "constraints"):
            return float(np.linalg.det(self._rows(pose, joints)[self._independent]))
        if k.assembly_method in DISTANCE_METHODS:
            S = k.engine.space_at(pose, joints)[0]
            centres, points, _ = limb_distances(k, joints[k.engine.actuated_column])
            arms = points @ transform_of(pose)[:3, :3].T
            legs = pose[:3] + arms - centres
            return float(np.linalg.det(np.hstack([legs, np.cross(arms, legs)]) @ S))
        return ModeReader(k).read(np.array(pose), np.array(joints))[1]

    def _rows(self, pose: Array, joints: Array) -> Array:
        """Gradients of what surfaces (k, 3), rods (k, 4) or demands (k, 6) say."""
        k = self._kinematics
        q = joints[k.engine.actuated_column]
        if k.assembly_method == "surfaces":
            return normals(*k.surfaces.at(q), pose[:3])
        if k.assembly_method == "plates":
            return k.plates.rows(q, pose)
        return gradients(k.locked_limbs.demands(q) or [], pose)

    @cached_property
    def _independent(self) -> NDArray[np.int64]:
        """As many rows, by number, as make a square matrix that is regular at home."""
        k = self._kinematics
        rows = self._rows(k.home, k.home_joints)
        rows = rows * np.repeat([1.0, 1.0 / k.characteristic_length], 3)[: rows.shape[1]]
        rows /= np.linalg.norm(rows, axis=1)[:, None]
        chosen: list[int] = []
        for candidate in range(len(rows)):
            if len(chosen) < rows.shape[1] and np.linalg.svd(rows[[*chosen, candidate]])[1][-1] > HELD:
                chosen.append(candidate)
        return np.array(chosen)
