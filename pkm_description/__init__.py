# SPDX-License-Identifier: Apache-2.0
"""Descriptions of parallel robots: URDF+ text in, immutable `Mechanism` out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pkm_description.description_error import DescriptionError
from pkm_description.gallery import robot_names
from pkm_runtime.errors import PkmError
from pkm_runtime.optional import late

if TYPE_CHECKING:
    from pkm_description.from_urdf import mechanism_from_urdf
    from pkm_description.load import load_mechanism, load_model
    from pkm_description.mechanism import Mechanism

__all__ = [
    "DescriptionError", "Mechanism", "PkmError", "load_mechanism", "load_model", "mechanism_from_urdf", "robot_names",
]  # fmt: skip

# an emergency stop by `pkm estop` does not wait for the loader
__getattr__ = late(
    __name__,
    {
        "pkm_description.from_urdf": ("mechanism_from_urdf",),
        "pkm_description.load": ("load_mechanism", "load_model"),
        "pkm_description.mechanism": ("Mechanism",),
    },
)
