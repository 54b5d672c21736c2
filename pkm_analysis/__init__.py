# SPDX-License-Identifier: Apache-2.0
"""What a robot can do, and how well: workspaces, maps of any quantity, loci of singularities."""

from pkm_analysis.analysis_errors import AnalysisError

__all__ = ["AnalysisError"]
