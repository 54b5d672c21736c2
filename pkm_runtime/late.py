# SPDX-License-Identifier: Apache-2.0
"""Lazy imports of a package's names: a wrong command line should not wait for solvers to be imported."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def late(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The `__getattr__` of a package (PEP 562), from modules to the names that they define."""
    where = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(where[name]), name)

    return find
