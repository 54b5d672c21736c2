# SPDX-License-Identifier: Apache-2.0
"""Which method a robot gets: the first, in this order, that recognises it.

With its actuators locked, a robot is a platform on which its limbs impose constraints. Which constraints, and how the
platform can move, decides how many poses there are, and how they are found.
"""

from __future__ import annotations

from pkm_kinematics.assembly.method import AssemblyMethod
from pkm_kinematics.assembly.methods.limb_angles import Angles
from pkm_kinematics.assembly.methods.limb_constraints import Constraints
from pkm_kinematics.assembly.methods.limb_distances import Circles, Distances, Planar, Schoenflies, Spheres
from pkm_kinematics.assembly.methods.limb_planes import Planes
from pkm_kinematics.assembly.methods.limb_plates import Plates
from pkm_kinematics.assembly.methods.limb_surfaces import Surfaces
from pkm_kinematics.assembly.methods.whole_search import Search
from pkm_kinematics.solve.engine import Engine

METHODS: tuple[type[AssemblyMethod], ...] = (
    # from the closed forms of the limbs and the platform's degrees of freedom
    Angles,  # 3 rotations
    Planes,  # 3 translations, each limb in a plane
    Spheres,  # 3 translations
    Circles,  # 2 translations
    Planar,  # 2 translations and the turn about their normal
    Schoenflies,  # 3 translations and a turn
    Distances,  # all six degrees of freedom
    # from the limbs' chains of joints
    Surfaces,  # 3 or 2 translations
    Plates,  # 3 translations and a turn, with plates between limbs and platform
    Constraints,  # any degrees of freedom
    # from nothing
    Search,
)


def choose_method(engine: Engine) -> AssemblyMethod:
    """The method by which all assembly modes of a robot are found."""
    return next(method for method in (each(engine) for each in METHODS) if method.recognised)
