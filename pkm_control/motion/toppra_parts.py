# SPDX-License-Identifier: Apache-2.0
"""What planning uses of toppra, imported without matplotlib's pyplot.

toppra imports pyplot for the plots of its own debugging, which costs every start half a second and settles on a
backend. While toppra is imported, a stand-in takes pyplot's place; whoever makes one of those plots gets pyplot then.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

_PARENT, _NAME = "matplotlib", "matplotlib.pyplot"


class _Later(ModuleType):
    """A module that is imported when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)


@contextlib.contextmanager
def _without_pyplot() -> Iterator[None]:
    """Let `import matplotlib.pyplot as plt` give a stand-in, and leave no trace of it in `sys.modules`."""
    if _NAME in sys.modules:
        yield
        return
    stand_ins: dict[str, ModuleType] = {_NAME: _Later(_NAME)}
    if _PARENT not in sys.modules:
        stand_ins[_PARENT] = _Later(_PARENT)
        stand_ins[_PARENT].pyplot = stand_ins[_NAME]  # type: ignore[attr-defined]
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, module in stand_ins.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


with _without_pyplot():
    from toppra.algorithm import TOPPRA
    from toppra.constraint import LinearConstraint
    from toppra.interpolator import AbstractGeometricPath

logging.getLogger("toppra").setLevel(logging.ERROR)

__all__ = ["TOPPRA", "AbstractGeometricPath", "LinearConstraint"]
