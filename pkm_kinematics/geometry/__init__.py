# SPDX-License-Identifier: Apache-2.0
"""The geometry of a robot as parameters: which there are, what each does, and which can be known from measurements."""

from pkm_kinematics.geometry.geometric_parameters import GeometricParameter, GeometricParameters
from pkm_kinematics.geometry.graph_model import GraphModel, States

__all__ = ["GeometricParameter", "GeometricParameters", "GraphModel", "States"]
