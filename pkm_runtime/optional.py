# SPDX-License-Identifier: Apache-2.0
"""Optional dependencies, and the message where one is missing."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from typing import Any

from pkm_runtime.errors import PkmError, UsageError

ROS = ("rclpy", "pkm_interfaces")
ROS_REMEDY = (
    "./pkm run in a clone of the repository brings ROS 2 along, and so does a ROS 2 workspace; "
    "'pkm simulate' does the same motion without ROS"
)
PAGE = ("viser", "trimesh")
PAGE_REMEDY = "pip install viser trimesh"


class NotInstalledError(PkmError):
    """An optional dependency is missing: `what` needs it, `modules` lack, `remedy` gets them."""

    def __init__(self, what: str, modules: tuple[str, ...], remedy: str) -> None:
        self.modules = modules
        super().__init__(f"{what} needs {' and '.join(modules)}, not installed here: {remedy}")


def need(what: str, modules: tuple[str, ...], remedy: str) -> None:
    """Check that modules can be imported, without importing them; `NotInstalledError` where one cannot."""
    missing = tuple(name for name in modules if find_spec(name) is None)
    if missing:
        raise NotInstalledError(what, missing, remedy)


def optional_library(module: str, package: str, purpose: str) -> Any:
    """Import a module; `UsageError` names the pip package and the purpose where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            purpose, f"they need {package}, which is not installed", f"{sys.executable} -m pip install {package}"
        ) from error
