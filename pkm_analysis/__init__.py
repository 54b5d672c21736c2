# SPDX-License-Identifier: Apache-2.0
"""What a robot can do, and how well: workspaces, maps of any quantity, loci of singularities, proofs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pkm_runtime.optional import late

if TYPE_CHECKING:
    from pkm_analysis.analysed_robot import AnalysedRobot
    from pkm_analysis.analysis import Analysis
    from pkm_analysis.analysis_errors import AnalysisError
    from pkm_analysis.maps import Map
    from pkm_analysis.proof.halving import Proof
    from pkm_analysis.requirements.quantities import user_quantity
    from pkm_analysis.requirements.quantity import Quantity, Requirement
    from pkm_analysis.workspace.workspace import Workspace

__all__ = [
    "AnalysedRobot",
    "Analysis",
    "AnalysisError",
    "Map",
    "Proof",
    "Quantity",
    "Requirement",
    "Workspace",
    "user_quantity",
]

__getattr__ = late(
    __name__,
    {
        "pkm_analysis.analysed_robot": ("AnalysedRobot",),
        "pkm_analysis.analysis": ("Analysis",),
        "pkm_analysis.analysis_errors": ("AnalysisError",),
        "pkm_analysis.maps": ("Map",),
        "pkm_analysis.proof.halving": ("Proof",),
        "pkm_analysis.requirements.quantities": ("user_quantity",),
        "pkm_analysis.requirements.quantity": ("Quantity", "Requirement"),
        "pkm_analysis.workspace.workspace": ("Workspace",),
    },
)
