# SPDX-License-Identifier: Apache-2.0
"""Locked limbs that hold the platform's origin in planes, as those of a Tripteron: one pose, from linear equations."""

from __future__ import annotations

import numpy as np

from pkm_description.mechanism import Array
from pkm_description.rotations import transform_from_pose
from pkm_kinematics.assembly.method import AssemblyMethod, read_signs
from pkm_kinematics.assembly.methods.limb_forms import LimbForms, driven_state
from pkm_kinematics.assembly.result import AssemblyPoses
from pkm_kinematics.kernels.position.placement import place_body


class Planes(AssemblyMethod):
    """Three translations, each limb lifted by its actuator until the rest of it lies in a plane with the platform."""

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
