# SPDX-License-Identifier: Apache-2.0
"""What a robot can do, and how well: workspaces, maps of any quantity, loci of singularities."""

from pkm_analysis.analysis import Analysis
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.maps.map import Map
from pkm_analysis.requirements.quantities import Quantity, user_quantity
from pkm_analysis.requirements.requirement import Requirement
from pkm_analysis.workspace.workspace import Workspace

__all__ = ["Analysis", "AnalysisError", "Map", "Quantity", "Requirement", "Workspace", "user_quantity"]
