# SPDX-License-Identifier: Apache-2.0
"""Descriptions of parallel robots: URDF+ text in, immutable `Mechanism` out."""

from pkm_runtime.uncollected import uncollected

with uncollected():
    from pkm_description.description_error import DescriptionError
    from pkm_description.gallery import robot_names
    from pkm_description.load import load_mechanism, mechanism_from_urdf
    from pkm_description.mechanism import Mechanism
    from pkm_runtime.errors import PkmError

__all__ = ["DescriptionError", "Mechanism", "PkmError", "load_mechanism", "mechanism_from_urdf", "robot_names"]
