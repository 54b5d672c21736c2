# SPDX-License-Identifier: Apache-2.0
"""Kinematics of parallel robots: every working and assembly mode, velocities, accelerations, singularities."""

from pkm_runtime.optional import uncollected

with uncollected():
    from pkm_kinematics.batch import ShapeError
    from pkm_kinematics.configuration import Configuration, Motion
    from pkm_kinematics.forward.along_path import ForwardSolution
    from pkm_kinematics.kinematics import Kinematics
    from pkm_kinematics.linkage.consistent_states import ConsistentStates, closed_states, consistent_states
    from pkm_kinematics.solve.singularity import Singularity
    from pkm_kinematics.status import Status

__all__ = [
    "Configuration",
    "ConsistentStates",
    "ForwardSolution",
    "Kinematics",
    "Motion",
    "ShapeError",
    "Singularity",
    "Status",
    "closed_states",
    "consistent_states",
]
