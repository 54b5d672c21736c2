# SPDX-License-Identifier: Apache-2.0
"""What a robot can do, and how well: workspaces, maps of any quantity, loci of singularities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pkm_analysis.late import late

if TYPE_CHECKING:
    from pkm_analysis.analysed_robot import Robot
    from pkm_analysis.analysis import Analysis
    from pkm_analysis.analysis_errors import AnalysisError
    from pkm_analysis.maps.map import Map
    from pkm_analysis.requirements.quantities import Quantity, Requirement, user_quantity
    from pkm_analysis.workspace.workspace import Workspace

__all__ = ["Analysis", "AnalysisError", "Map", "Quantity", "Requirement", "Robot", "Workspace", "user_quantity"]

__getattr__ = late(
    __name__,
    {
        "Analysis": "pkm_analysis.analysis",
        "AnalysisError": "pkm_analysis.analysis_errors",
        "Map": "pkm_analysis.maps.map",
        "Quantity": "pkm_analysis.requirements.quantities",
        "Requirement": "pkm_analysis.requirements.quantities",
        "Robot": "pkm_analysis.analysed_robot",
        "Workspace": "pkm_analysis.workspace.workspace",
        "user_quantity": "pkm_analysis.requirements.quantities",
    },
)
