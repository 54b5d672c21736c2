# SPDX-License-Identifier: Apache-2.0
"""Locked limbs of robots that turn about a centre: each keeps the angle of a base and a platform direction."""

from __future__ import annotations

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.assembly.geometry.spherical import three_angles
from pkm_kinematics.assembly.method import AssemblyMethod, read_signs
from pkm_kinematics.assembly.methods.limb_distances import limb_distances
from pkm_kinematics.assembly.methods.limb_forms import LimbForms, driven_state
from pkm_kinematics.assembly.result import AssemblyPoses, poses_from


class Angles(AssemblyMethod):
    """Three rotations about the platform's origin."""

    name = "angles"

    @property
    def recognised(self) -> bool:
        """See `AssemblyMethod.recognised`."""
        forms = LimbForms(self.engine)
        return forms.known and forms.freedoms == (0, 3) and not forms.planar.any()

    def solve(self, q: Array) -> AssemblyPoses:
        """See `AssemblyMethod.solve`."""
        found = three_angles(*self.limb_angles(q))
        centres = np.tile(self.engine.home[:3], (found.n_real, 1))
        return poses_from(found, np.column_stack([centres, found.solutions]))

    def signs(self, q: Array, poses: Array, joints: Array) -> Array:
        """See `AssemblyMethod.signs`."""
        return read_signs(self.engine, poses, joints)

    def limb_angles(self, q: Array) -> tuple[Array, Array, Array]:
        """Unit vectors (k, 3) of base and platform, each in its frame, and cosines (k,) of angles kept by locked limbs.

        A limb on a sphere keeps the angle between its second axis and its third; a limb that keeps a distance between
        two points keeps their angle seen from the centre of rotation.
        """
        tables, centre = self.engine.tables, self.engine.home[:3]
        state, blocks = driven_state(tables, q)
        if not (blocks["spherical"] == 1).all():
            centres, points, lengths = limb_distances(tables, q)
        base, platform, cosines = [], [], []
        for k, block in enumerate(blocks):
            closure = tables.closures[block["closure_start"]]
            if block["spherical"]:
                pointing = tables.bodies[block["pointing"]]
                base.append(state["R"][pointing["parent"]] @ pointing["rotation"][:, 2])
                platform.append(closure["successor_rotation"][:, 2])
                cosines.append(float(closure["predecessor_rotation"][2, 2]))
            else:
                a, b = centres[k] - centre, points[k]
                la, lb = float(np.linalg.norm(a)), float(np.linalg.norm(b))
                base.append(a / la)
                platform.append(b / lb)
                cosines.append((la**2 + lb**2 - lengths[k] ** 2) / (2.0 * la * lb))
        return np.array(base), np.array(platform), np.array(cosines)
