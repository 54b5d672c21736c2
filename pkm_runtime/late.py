# SPDX-License-Identifier: Apache-2.0
"""Imports of heavy libraries: when a name is first used, and without garbage collection."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any


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
    """For loops that keep their time, and for imports of libraries, of whose time a fifth goes into collecting their
    hundred thousands of permanent objects.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
