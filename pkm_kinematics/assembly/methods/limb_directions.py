# SPDX-License-Identifier: Apache-2.0
"""Locked limbs that keep a direction: the angle of a base and a platform direction, or a plane across one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_description.rotations import transform_from_pose
from pkm_kinematics.assembly.geometry.spherical import three_angles
from pkm_kinematics.assembly.method import AssemblyMethod, read_signs
from pkm_kinematics.assembly.methods.limb_distances import LimbForms, limb_distances
from pkm_kinematics.assembly.result import AssemblyPoses, poses_from
from pkm_kinematics.kernels.position.placement import place_body, set_angle
from pkm_kinematics.model.tables import Tables


class Angles(AssemblyMethod):
    """Three rotations about the platform's origin: each limb keeps the angle of two directions."""

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


class Planes(AssemblyMethod):
    """Three translations, each limb lifted by its actuator until the rest of it lies in a plane with the platform.

    Such as a Tripteron: one pose, from linear equations.
    """

    name = "planes"

    @property
    def recognised(self) -> bool:
        """See `AssemblyMethod.recognised`."""
        forms = LimbForms(self.engine)
        return forms.known and forms.freedoms == (3, 0) and bool(forms.lifted.all())

    def solve(self, q: Array) -> AssemblyPoses:
        """See `AssemblyMethod.solve`."""
        normals, heights = self.limb_planes(q)
        point = np.linalg.lstsq(normals, heights, rcond=None)[0]
        return AssemblyPoses(np.array([[*point, *self.engine.home[3:]]]), np.ones(1, dtype=np.int64), 1, True)

    def signs(self, q: Array, poses: Array, joints: Array) -> Array:
        """See `AssemblyMethod.signs`."""
        return read_signs(self.engine, poses, joints)

    def limb_planes(self, q: Array) -> tuple[Array, Array]:
        """Unit normals (k, 3), base frame, and heights (k,) [m] of the planes of limbs with actuators at q."""
        tables, R = self.engine.tables, transform_from_pose(self.engine.home)[:3, :3]
        state, blocks = driven_state(tables, q)
        normals, heights = [], []
        for block in blocks:
            lift = int(block["lift"])
            state["q"][lift] = q[tables.bodies["actuator"][lift]]
            place_body(tables.model.bodies, state, lift)
            normal = state["R"][lift] @ tables.bodies["rotation"][block["driver"]][:, 2]
            arm = R @ tables.closures["successor_point"][block["closure_start"]]
            normals.append(normal)
            heights.append(float(normal @ (state["p"][lift] - arm)) + float(block["offset"]))
        return np.array(normals), np.array(heights)


def driven_state(tables: Tables, q: Array) -> tuple[NDArray[Any], NDArray[Any]]:
    """State of a workspace with the first body of every actuated block placed at q (n_actuated,), and those blocks."""
    state = tables.data().state
    blocks = tables.blocks[tables.blocks["actuators"] > 0]
    for block in blocks:
        i = int(block["start"])
        value = float(q[tables.bodies["actuator"][i]]) if tables.bodies["actuator"][i] >= 0 else 0.0
        set_angle(state, i, value)
        place_body(tables.model.bodies, state, i)
    return state, blocks
