# SPDX-License-Identifier: Apache-2.0
"""Indices of performance that hold for redundant actuation too: polytopes, ellipsoids, transmission, condition."""

from pkm_analysis.indices.performance_indices import Limits, PerformanceIndices, performance_indices, polytopes
from pkm_analysis.indices.polytopes import ForcePolytope, VelocityPolytope, largest_ellipsoid

__all__ = [
    "ForcePolytope",
    "Limits",
    "PerformanceIndices",
    "VelocityPolytope",
    "largest_ellipsoid",
    "performance_indices",
    "polytopes",
]
