# SPDX-License-Identifier: Apache-2.0
"""Calls into compiled kernels without the cost of finding the right one by the types of the arguments each time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pkm_kinematics.codegen.call_code import ANOTHER_BRANCH


def bind(kernel: Any, fixed: tuple[Any, ...], example: tuple[Any, ...]) -> Callable[..., Any]:
    """The kernel with its first arguments fixed, compiled for the types of `fixed` and of the `example` of the others.

    The result trusts its caller: arguments must have the very types and sizes of the example.
    """
    kernel(*fixed, *example)  # compiles, or loads from the cache
    types = tuple(kernel.typeof_pyval(value) for value in (*fixed, *example))
    return partial(kernel.overloads[types].entry_point, *fixed)


def or_else(quick: Callable[..., Any], general: Callable[..., Any], code: object) -> Callable[..., Any]:
    """A call of `quick`, and of `general` where it answers ANOTHER_BRANCH, alone or with more; `code` is kept alive."""

    def call(*arguments: Any, _kept: object = code) -> Any:
        found = quick(*arguments)
        if found == ANOTHER_BRANCH or (found.__class__ is tuple and found[0] == ANOTHER_BRANCH):
            return general(*arguments)
        return found

    return call
