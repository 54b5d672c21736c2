# SPDX-License-Identifier: Apache-2.0
"""Descriptions of parallel robots: URDF+ text in, immutable `Mechanism` out."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pkm_description.description_error import DescriptionError
from pkm_description.gallery import robot_names
from pkm_runtime.errors import PkmError
from pkm_runtime.uncollected import uncollected

if TYPE_CHECKING:
    from pkm_description.from_urdf import mechanism_from_urdf
    from pkm_description.load import load_mechanism, load_model
    from pkm_description.mechanism import Mechanism

__all__ = [
    "DescriptionError", "Mechanism", "PkmError", "load_mechanism", "load_model", "mechanism_from_urdf", "robot_names",
]  # fmt: skip

_LATE = {
    "Mechanism": "mechanism", "load_mechanism": "load", "load_model": "load", "mechanism_from_urdf": "from_urdf",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import the loader on first access: an emergency stop by `pkm estop` does not wait for it."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with uncollected():
        return getattr(importlib.import_module(f"{__name__}.{_LATE[name]}"), name)
