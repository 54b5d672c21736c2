# SPDX-License-Identifier: Apache-2.0
"""Imports: of optional libraries, of names when they are first used, and without garbage collection."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
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


def late(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The `__getattr__` of a package (PEP 562), from modules to the names that they define."""
    where = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with uncollected():
            return getattr(importlib.import_module(where[name]), name)

    return find


@contextmanager
def uncollected() -> Iterator[None]:
    """For loops that keep their time, and imports: a fifth of their time goes into collecting permanent objects."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def release() -> str:
    """Version of this suite."""
    try:
        return version("pkm_control")
    except PackageNotFoundError:
        return "of a clone"
