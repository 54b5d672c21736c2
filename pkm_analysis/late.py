# SPDX-License-Identifier: Apache-2.0
"""Names of a package that are imported when they are asked for: a wrong command line shall not wait for solvers."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def late(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package (PEP 562).

    Args:
        package: its name.
        modules: for each of its names the module that has it.

    Returns:
        What imports that module.
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(modules[name]), name)

    return find
