# SPDX-License-Identifier: Apache-2.0
"""Kernels as plain Python functions that take terms (see `tape`) in place of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from pkm_runtime.codegen.tape import FUNCTIONS, Number, call, extreme, select_larger
from pkm_runtime.kernels.by_address import ByAddress
from pkm_runtime.kernels.selection import nan_max, select_gt


def trace(kernel: Any, instead: Sequence[tuple[Any, Callable[..., Any]]] = ()) -> Callable[..., Any]:
    """A kernel as a Python function, with all kernels that it calls, whose numbers may be terms.

    `instead` pairs called kernels with replacements. Record arrays and arrays with terms must be `loose`.
    """
    done: dict[int, Callable[..., Any]] = {
        id(nan_max): partial(extreme, "worse"),
        id(select_gt): select_larger,
    }
    done.update((id(one), other) for one, other in instead)
    return _recorded(kernel, done)


def loose(x: Any) -> Any:
    """A model and its data in a form that can hold terms: arrays of objects, records as objects, tuples of these."""
    if isinstance(x, ByAddress):
        return SimpleNamespace(**{name: loose(array) for name, array in x.arrays().items()})
    if isinstance(x, tuple):
        return type(x)(*map(loose, x))
    if isinstance(x, np.ndarray):
        return _Records(x) if x.dtype.names else x.astype(object)
    return x.item() if isinstance(x, np.generic) else x


class _Records(list[SimpleNamespace]):
    """A structured array as objects whose fields can hold terms."""

    def __init__(self, rows: np.ndarray) -> None:
        names = rows.dtype.names or ()
        super().__init__(SimpleNamespace(**{name: loose(row[name]) for name in names}) for row in rows)

    @property
    def shape(self) -> tuple[int]:
        """Number of rows, as a NumPy array has it."""
        return (len(self),)


def _recorded(kernel: Any, done: dict[int, Callable[..., Any]]) -> Callable[..., Any]:
    if id(kernel) in done:
        return done[id(kernel)]
    source = kernel.py_func
    scope = dict(source.__globals__)
    function = FunctionType(source.__code__, scope, source.__name__, source.__defaults__, source.__closure__)
    done[id(kernel)] = function
    scope["max"], scope["min"] = partial(extreme, "max"), partial(extreme, "min")
    for name in source.__code__.co_names:
        used = scope.get(name)
        if hasattr(used, "py_func"):
            scope[name] = _recorded(used, done)
        elif name in FUNCTIONS and used is FUNCTIONS[name]:
            scope[name] = partial(call, name)
        elif used is math.isfinite:
            scope[name] = _is_finite
    return function


def _is_finite(x: Number) -> bool:
    return bool(abs(x) < math.inf)
